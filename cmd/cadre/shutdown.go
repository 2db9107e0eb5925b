package main

import (
	"cadre/internal/host"
	"cadre/internal/render"
	"cadre/internal/replica"
	"cadre/internal/team"
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
)

func (a *app) shutdownCommand() *cobra.Command {
	var reason string
	var deadline time.Duration
	var graceful, withdraw bool
	c := &cobra.Command{
		Use: "shutdown [TEAM] NAME | shutdown TEAM --graceful", Short: "Shut a teammate down, or bring the whole " +
			"team to its end",
		Long: "Ask a teammate to finish and end, and wait until it has. At the deadline its session is ended " +
			"whatever it answered. Its\ntasks go back on the list and its unread mail back to the senders. A " +
			"teammate that refuses works until then; --withdraw takes the\nrequest back, so that it need not " +
			"end.\n\nWith --graceful the whole team is brought to its end: everybody ends what they are at, nothing " +
			"new is begun, and the team waits\nfor its consolidation (cadre consolidate).",
		RunE: func(c *cobra.Command, args []string) error {
			if graceful {
				return a.windDown(c, args)
			}
			name, args, err := a.split(c, args, 1)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeoutCause(c.Context(), deadline+30*time.Second,
				fmt.Errorf("%s has not ended yet", args[0]))
			defer cancel()
			rep, dir, err := a.open(ctx, name, true)
			if err != nil {
				return err
			}
			defer rep.Close()
			if withdraw {
				if _, err := rep.Do(ctx, team.Command{Actor: a.actor,
					Body: &team.WithdrawShutdown{Member: args[0]}}); err != nil {
					return err
				}
				return a.print(map[string]any{"member": args[0]}, said("%s need not shut down", args[0]))
			}
			before := rep.Seq()
			_, err = rep.Do(ctx, team.Command{Actor: a.actor, Body: &team.RequestShutdown{Member: args[0],
				Reason: reason, Deadline: replica.Now() + team.Time(deadline.Milliseconds())}})
			if err != nil && team.CodeOf(err) != team.Conflict { // asked before: wait with the one who asked
				return err
			}
			return a.awaitEnd(ctx, rep, dir, args[0], before)
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "why, for the teammate")
	c.Flags().BoolVar(&graceful, "graceful", false, "bring the whole team to its end")
	c.Flags().BoolVar(&withdraw, "withdraw", false, "take the request back that the teammate was sent")
	c.MarkFlagsMutuallyExclusive("graceful", "withdraw")
	actsAs(c)
	c.Flags().DurationVar(&deadline, "deadline", 30*time.Second, "when it is ended whatever it answered")
	return c
}

// refusal is why a request to shut down was refused, by the records after the given one; "" where
// they do not say.
func refusal(ctx context.Context, rep *replica.Replica, after int64, request string) (reason string, err error) {
	for r, err := range rep.Read(ctx, after) {
		if err != nil {
			return "", err
		}
		for _, e := range r.Events {
			if e, ok := e.(*team.ShutdownAnswered); ok && e.Request == request {
				reason = e.Reason
			}
		}
	}
	return reason, nil
}

// awaitEnd waits until the member has ended, and ends it itself where it has no session that a host
// could end. A refusal is told, once for each request. What it says of that is in the history after
// the given record.
func (a *app) awaitEnd(ctx context.Context, rep *replica.Replica, dir, member string, after int64) error {
	told := ""
	for {
		var m team.Member
		var seq int64
		rep.View(func(s *team.State) { m, _ = s.Member(member); seq = s.Seq() })
		switch {
		case !m.Status.Running():
			return a.print(m, said("%s has %s%s", m.Name, m.Status, prefix(": ", m.Summary)))
		case m.Shutdown.Request == "":
			return &team.Error{Code: team.NotReady, Text: fmt.Sprintf("%s need not shut down any more: the request "+
				"was withdrawn", m.Name)}
		case m.Shutdown.Answer == "rejected" && told != m.Shutdown.Request:
			told = m.Shutdown.Request
			reason, err := refusal(ctx, rep, after, told)
			if err != nil {
				return err
			}
			a.note(fmt.Sprintf("%s refuses to shut down%s; it is ended at the deadline, in %s; to let it work: cadre "+
				"shutdown %s %s --withdraw", m.Name, prefix(": ", reason),
				render.Span(time.Duration(max(0, m.Shutdown.Deadline-replica.Now()))*time.Millisecond),
				rep.Team().Name, m.Name))
		}
		wait := time.Hour
		hostless := m.Agent == team.External || m.Host == "" || !host.Hosted(filepath.Join(dir, "hosts"))
		if hostless {
			if m.Host != "" { // its host is dead: nobody else will end it
				if err := host.Clear(ctx, filepath.Join(dir, "hosts"), a.note); err != nil {
					return err
				}
			}
			wait = time.Duration(m.Shutdown.Deadline-replica.Now()) * time.Millisecond
			if m.Agent != team.External {
				wait = 0
			}
			if wait <= 0 {
				if err := a.expire(ctx, rep, m); err != nil {
					return err
				}
				continue
			}
		}
		waiting, cancel := context.WithTimeout(ctx, min(wait, time.Second))
		err := rep.Wait(waiting, seq)
		cancel()
		if err != nil && ctx.Err() != nil {
			return &team.Error{Code: team.NotReady, Text: context.Cause(ctx).Error()}
		}
		if err != nil && waiting.Err() == nil {
			return err
		}
	}
}

func (a *app) expire(ctx context.Context, rep *replica.Replica, m team.Member) error {
	body := team.Body(&team.ExpireShutdown{Member: m.Name})
	if m.Agent != team.External {
		body = &team.ReportStopped{Member: m.Name, Reason: team.NoHost}
	}
	_, err := rep.Do(ctx, team.Command{Actor: team.User, Body: body})
	if code := team.CodeOf(err); code == team.NotReady || code == team.Finished {
		return nil
	}
	return err
}
