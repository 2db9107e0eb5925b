package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"cadre/internal/claude/sdkrelay"
	observeproto "cadre/internal/observe/protocol"
	"cadre/internal/observe/source"
	"cadre/internal/sys/proc"
)

// consumerVariable has the bearer token for the consumer of a relayed session.
const consumerVariable = "CADRE_CONSUMER_TOKEN"

// relaySource is the source name of a relayed session.
const relaySource = "sdk-url"

// The exit statuses of a shell if a program does not exist, or cannot be run.
const (
	notRunnable = 126
	notFound    = 127
)

// relayed is a feed: it relays between a Claude Code that connects to cadre, and its user.
type relayed struct {
	relay *sdkrelay.Relay
	errs  io.Closer // what the program writes to standard error
	procs *proc.Register
	note  func(string)
	to    source.Listener
}

// relayFeed listens for the program. It prints where its user connects, unless that is standard
// input and output.
func (o *observation) relayFeed(args []string) (*relayed, error) {
	procs, err := proc.Open("")
	if err != nil {
		return nil, err
	}
	errs := o.err.Others()
	f := &relayed{procs: procs, note: o.note, errs: errs}
	options := sdkrelay.Options{
		Listen: o.sdkURL, Insecure: o.insecure, Procs: procs, Stderr: errs, Warn: o.note, Consumer: !o.pass,
		ConsumerToken: os.Getenv(consumerVariable), Token: os.Getenv(sdkrelay.TokenVariable),
		See: func(line []byte) {
			f.to.Line(relaySource, bytes.TrimSuffix(line, []byte("\n")), source.Place{Event: f.relay.Last()})
		},
		Lost: func(reason string) { f.to.Gap(relaySource, reason) },
	}
	if o.exec != "" { // the shell parses the command as the user wrote it
		options.Command = append([]string{"/bin/sh", "-c", "exec " + o.exec + ` "$@"`, "sh"}, args...)
	}
	if o.pass {
		options.In, options.Out = os.Stdin, passing{o}
	}
	f.relay, err = sdkrelay.Listen(options)
	if _, exposed := errors.AsType[*sdkrelay.ExposedError](err); exposed {
		return nil, usage{fmt.Errorf("%w; listen on 127.0.0.1 and use a tunnel, or allow it with --insecure-listen",
			err)}
	}
	switch {
	case errors.Is(err, syscall.EADDRINUSE): // for now
		return nil, err
	case err != nil:
		return nil, usage{err}
	}
	if o.exec == "" {
		o.note(fmt.Sprintf("the program is started with --sdk-url %s and %s=%s", f.relay.URL(), sdkrelay.TokenVariable,
			f.relay.Token()))
	}
	if !o.pass {
		o.note(fmt.Sprintf("its user connects to %s, with the header Authorization: Bearer %s", f.relay.ConsumerURL(),
			f.relay.ConsumerToken()))
	}
	return f, nil
}

// Run implements [source.Feed].
func (f *relayed) Run(ctx context.Context, to source.Listener) error {
	f.to = to
	f.relay.After(to.Place(relaySource).Event)
	if ofTeam, member := observeproto.TeammateOf(os.Getenv); member != "" {
		to.Introduce(relaySource, ofTeam, member)
	}
	defer f.procs.Close(context.WithoutCancel(ctx))
	exit, err := f.relay.Run(ctx)
	f.errs.Close()
	switch {
	case err == nil && ctx.Err() == nil:
		f.note(fmt.Sprintf("the program ended: %v", exit))
	case err != nil && (exit.Code == notRunnable || exit.Code == notFound):
		return usage{err}
	}
	return otherWays(err)
}

// otherWays adds to the error of a program that refused the relay how else to observe the program.
func otherWays(err error) error {
	if _, refused := errors.AsType[*sdkrelay.RefusedError](err); !refused {
		return err
	}
	return withWays(err, way{"observe it by its stream",
		"claude -p --output-format stream-json --verbose PROMPT | cadre observe -"},
		way{"observe it by its transcripts", "cadre observe --transcripts DIR"})
}

// passing writes the program's output to standard output, with events between the lines.
type passing struct{ o *observation }

func (p passing) Write(line []byte) (int, error) {
	if err := errors.Join(p.o.passOn(line), p.o.flush()); err != nil {
		return 0, err
	}
	return len(line), nil
}
