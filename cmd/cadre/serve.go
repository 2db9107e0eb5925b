package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/render/sanitize"
	"cadre/internal/server"
	"cadre/internal/team"
	"cadre/internal/ui/web"
)

// serving has the options of one call of cadre serve.
type serving struct {
	*app
	options server.Options
	dir     string
	all     bool // --all
	yes     bool // --yes
	// what to do instead of running the server
	status, stop, installs bool
}

func (a *app) serveCommand() *cobra.Command {
	s := &serving{app: a}
	c := &cobra.Command{
		Use: "serve [TEAM...]", Short: "Keep teams running, and answer requests about them",
		Long: `Keep teams running, and answer HTTP requests about all teams of this machine. The server runs the teams
that you name, and those that it ran when it stopped. --all adds every team that can be resumed, that no process runs
and that nobody paused; they are listed first. A team whose host dies is resumed. A team that you paused, or whose
budget is spent, is not.

There is one server for all teams of $CADRE_HOME. cadre run --detach and cadre spawn give it their teams while it runs.
Ctrl-C, or --stop from elsewhere, pauses its teams and ends it. The next server resumes them.

Requests are answered on a unix socket that only you can use. --listen adds a TCP address on this machine, for
browsers, with a token. Beyond this machine it also needs a certificate.`,
		Example: "  cadre serve release\n  cadre serve --listen 127.0.0.1:7433\n  cadre serve --status\n" +
			"  cadre serve --stop",
		RunE: func(c *cobra.Command, args []string) error {
			switch {
			case s.status:
				return s.printStatus(c.Context())
			case s.stop:
				return s.end(c.Context())
			case s.installs:
				return s.install(c, args)
			}
			return s.run(c, args)
		},
	}
	f := c.Flags()
	f.BoolVar(&s.all, "all", false, "also run every team that no process runs")
	f.BoolVar(&s.yes, "yes", false, "with --all and --install, do not ask")
	f.BoolVar(&s.status, "status", false, "show the server and its teams")
	f.BoolVar(&s.stop, "stop", false, "stop the server, and pause its teams")
	f.BoolVar(&s.installs, "install", false,
		"show the unit with which systemd or launchd starts the server, and write it")
	f.StringVar(&s.options.Listen, "listen", "",
		"TCP address to listen on besides the socket, for example 127.0.0.1:7433")
	f.StringArrayVar(&s.options.Hosts, "host", nil, "HOST:PORT by which browsers reach that address, besides its own, "+
		"or https://HOST of a tunnel that ends TLS; may be repeated")
	f.StringVar(&s.options.Certificate, "tls-cert", "", "file with the certificate for TLS")
	f.StringVar(&s.options.Key, "tls-key", "", "file with the key of the certificate")
	f.StringVar(&s.dir, "dir", ".", "directory in which teams work that are created over the API")
	f.IntVar(&s.options.MaxSessions, "max-sessions", 100, "teammates that may run in all teams of the server together")
	f.DurationVar(&s.options.Heartbeat, "heartbeat", 30*time.Second,
		"how often a silent connection shows that it is alive")
	f.DurationVar(&s.options.Shutdown, "shutdown", 10*time.Second,
		"how long sessions may take to end when the server stops")
	c.MarkFlagsMutuallyExclusive("status", "stop", "all", "install")
	c.AddCommand(s.serveTokens())
	return c
}

// run runs the server.
func (s *serving) run(c *cobra.Command, args []string) (err error) {
	stays()
	o := &s.options
	if o.Dir, err = workDir(s.dir); err != nil {
		return err
	}
	o.Engine = s.engine()
	o.Engine.Room = nil // this process counts, and reserves room by itself
	o.Version = version
	board := &web.Board{Engine: o.Engine}
	o.Page, o.Data = board.Page(), board.Data()
	o.Resume = func(id string) []string { return []string{self(), "resume", id, "--plain"} }
	o.Log = s.note
	for _, name := range args {
		of, err := o.Engine.Glance(c.Context(), name)
		if err != nil {
			return err
		}
		if err := s.alone(c.Context(), of); err != nil {
			return err
		}
		o.Teams = append(o.Teams, of)
	}
	if s.all {
		others, paused, err := server.Idle(c.Context(), o.Engine)
		if err != nil {
			return err
		}
		if len(paused) > 0 {
			s.note("left out, because paused: " + strings.Join(names(paused), ", ") + "; to run one: cadre serve TEAM")
		}
		if err := s.agreeTo(c.Context(), others); err != nil {
			return err
		}
		o.Teams = append(o.Teams, others...)
	}
	err = server.Run(c.Context(), *o, func(is *server.Server) {
		s.note("the server answers on " + is.Socket())
		if at := is.Board(); at != "" {
			s.note("and on " + at)
		}
	})
	if running, is := errors.AsType[*server.RunningError](err); is {
		return s.give(c.Context(), running)
	}
	return err
}

// alone refuses a team that runs with the team that it is in, and says how to run that.
func (s *serving) alone(ctx context.Context, of team.Team) error {
	err := s.options.Engine.WithParent(ctx, of, "run", "")
	if team.CodeOf(err) != team.Invalid {
		return err
	}
	top, failed := s.options.Engine.Outermost(ctx, of)
	if failed != nil {
		return errors.Join(err, failed)
	}
	return withWays(err, way{"keep that team running", "cadre serve " + top.Name})
}

// give gives the teams to the server that is running already.
func (s *serving) give(ctx context.Context, running *server.RunningError) error {
	if len(s.options.Teams) == 0 {
		return withWays(running, way{"show it", "cadre serve --status"}, way{"stop it", "cadre serve --stop"})
	}
	for _, of := range s.options.Teams {
		if err := server.Add(ctx, s.home, of.ID); err != nil {
			return err
		}
		if s.json {
			continue
		}
		if err := s.out.Printf("the server, process %d, runs team %s from now on\n", running.Pid, of.Name); err != nil {
			return err
		}
	}
	if s.json {
		return s.printStatus(ctx)
	}
	return nil
}

// agreeTo lists the teams that are to be run as well, and asks about them on a terminal.
func (s *serving) agreeTo(ctx context.Context, others []team.Team) error {
	if len(others) == 0 {
		s.note("no other team can be resumed")
		return nil
	}
	s.note(fmt.Sprintf("%s: %s", team.Count(len(others), "more team"), strings.Join(names(others), ", ")))
	if s.yes || !atTerminal() {
		return nil
	}
	return s.confirm(ctx, "Run them?", way{"run them without a question", "cadre serve --all --yes"})
}

// names returns the names of the teams.
func names(teams []team.Team) (all []string) {
	for _, of := range teams {
		all = append(all, of.Name)
	}
	return all
}

// serverStatus is the server of a home, and its teams.
type serverStatus struct {
	Pid    int              `json:"pid"`    // process of the server; 0 if none is running
	Socket string           `json:"socket"` // path of its socket
	Teams  []server.Keeping `json:"teams"`  // the teams that it keeps running
}

func (s *serving) printStatus(ctx context.Context) error {
	is := serverStatus{Pid: server.Pid(s.home), Socket: server.Socket(s.home), Teams: []server.Keeping{}}
	if is.Pid == 0 {
		return withWays(team.Refuse(team.NotReady, "no server is running"), way{"start it", "cadre serve"})
	}
	var err error
	if is.Teams, err = server.Teams(ctx, s.home); err != nil {
		return err
	}
	return s.print(is, func(w *sanitize.Writer) error {
		w.Printf("process %d is the server; it answers on %s\n", is.Pid, is.Socket)
		for _, t := range is.Teams {
			state := "running"
			if !t.Running {
				state = t.Why
			}
			w.Printf("%s: %s\n", t.Name, state)
		}
		return nil
	})
}

// end stops the server, and waits until it has ended.
func (s *serving) end(ctx context.Context) error {
	pid := server.Pid(s.home)
	if pid == 0 {
		return s.printStopped("no server is running")
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.options.Shutdown+10*time.Second)
	defer cancel()
	if err := server.AwaitEnd(ctx, s.home); err != nil {
		return team.Refuse(team.NotReady, "the server, process %d, has not ended yet", pid)
	}
	return s.printStopped("the server has stopped; its teams are paused")
}

// printStopped prints that no server is running.
func (s *serving) printStopped(words string) error {
	return s.print(serverStatus{Socket: server.Socket(s.home), Teams: []server.Keeping{}}, said("%s", words))
}

// room has the server of the home, if one is running, reserve room for a teammate of the team with
// that id. Without an answer the teammate joins: the server counts it then.
func (a *app) room(ctx context.Context, id, member string) (giveBack func(), err error) {
	const most = 5 * time.Second
	asking, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	switch err := server.Room(asking, a.home, id, member); {
	case team.CodeOf(err) == team.NotReady:
		return nil, err
	case err != nil:
		return func() {}, nil
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), most)
		defer cancel()
		server.GiveBack(ctx, a.home, id, member) // without an answer the time of the reservation ends it
	}, nil
}

// keep has the server of the home, if one is running, keep the team with that id running.
func (a *app) keep(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, err := server.Keep(ctx, a.home, id); err != nil {
		a.note(fmt.Sprintf("the server does not keep the team running: %v; to add it: cadre serve %s", err, id))
	}
}
