package main

import (
	"context"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/agent"
	"cadre/internal/agent/drivers"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// version is set by the build of a release.
var version = "development"

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: exactly(0),
		RunE: func(*cobra.Command, []string) error { return a.printVersion() },
	}
}

// built is which program this is.
type built struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"` // it has more than the commit
	Go       string `json:"go"`
	Platform string `json:"platform"`
	Format   int    `json:"format"` // of teams
}

// printVersion prints what the build says of this program.
func (a *app) printVersion() error {
	v := built{Version: version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH,
		Format: team.Version}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				v.Commit = s.Value
			case "vcs.modified":
				v.Modified = s.Value == "true"
			}
		}
	}
	commit := ""
	if v.Commit != "" {
		commit = ", commit " + v.Commit[:min(12, len(v.Commit))]
	}
	if v.Modified {
		commit += ", modified"
	}
	return a.print(v, said("cadre %s%s, %s, %s, team format %d", v.Version, commit, v.Go, v.Platform, v.Format))
}

// check is one thing that doctor looked at.
type check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Needed bool   `json:"needed"`
	Detail string `json:"detail"`
	Login  string `json:"login,omitempty"` // of an agent: logged in, not logged in, or login unknown
}

func (a *app) doctorCommand() *cobra.Command {
	return &cobra.Command{
		Use: "doctor", Short: "Check that cadre can work here", Args: exactly(0),
		RunE: func(c *cobra.Command, _ []string) error {
			checks := []check{a.checkFolder("teams", a.home.Root, true), a.checkFolder("Claude Code's folder",
				a.home.Claude, false)}
			checks = append(checks, checkProgram(c.Context(), "/bin/sh", true, "-c", "echo runs the commands of tasks"),
				checkProgram(c.Context(), "git", false, "--version"))
			checks = append(checks, checkAgents(c.Context())...)
			healthy := true
			for _, c := range checks {
				healthy = healthy && (c.OK || !c.Needed)
			}
			err := a.print(checks, func(w *sanitize.Writer) error {
				var t render.Table
				for _, c := range checks {
					mark := "ok"
					switch {
					case !c.OK:
						mark = "missing"
					case c.Login == string(agent.NotLoggedIn):
						mark = "log in"
					}
					t.Row(mark, c.Name, c.Detail)
				}
				return t.Write(w)
			})
			if err == nil && !healthy {
				return exit(hopeless)
			}
			return err
		},
	}
}

func (a *app) checkFolder(name, dir string, needed bool) check {
	c := check{Name: name, Needed: needed, Detail: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		c.Detail = explain(err)
		return c
	}
	f, err := os.CreateTemp(dir, ".doctor-")
	if err != nil {
		c.Detail = explain(err)
		return c
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := f.Sync(); err != nil {
		c.Detail = dir + " keeps nothing safely: " + explain(err)
		return c
	}
	c.OK = true
	return c
}

// checkAgents looks for the coding agents, all at once: each takes a while to say its version.
func checkAgents(ctx context.Context) []check {
	checks := make([]check, len(drivers.Models))
	var asking sync.WaitGroup
	for i, name := range drivers.Models {
		asking.Go(func() {
			var login agent.Login
			var loggedIn sync.WaitGroup
			loggedIn.Go(func() { login = drivers.Login(ctx, name, "", "", os.Environ()) })
			p := drivers.Probe(ctx, name)
			loggedIn.Wait()
			checks[i] = check{Name: name, OK: p.Program != "" && p.Missing == "", Detail: p.Missing}
			if p.Program != "" {
				checks[i].Detail = strings.Join(append([]string{p.Version, p.Program}, p.Can...), ", ") +
					prefix("; ", p.Missing)
				if p.Missing == "" {
					checks[i].Login = string(login.State)
					checks[i].Detail = loginLine(login) + "; " + checks[i].Detail
				}
			}
		})
	}
	asking.Wait()
	return append(checks, check{Name: team.Shell, OK: true, Detail: "runs the commands of tasks"},
		check{Name: team.ACP + "COMMAND", OK: true, Detail: "any agent that speaks the Agent Client Protocol"})
}

// loginLine says whether somebody is logged in, and how that is done where nobody is for sure.
func loginLine(l agent.Login) string {
	line := string(l.State)
	if l.Detail != "" {
		line += " (" + l.Detail + ")"
	}
	if l.State != agent.LoggedIn && l.How != "" {
		line += "; to log in: " + l.How
	}
	return line
}

func checkProgram(ctx context.Context, program string, needed bool, args ...string) check {
	c := check{Name: program, Needed: needed}
	path, err := proc.Find(program)
	if err != nil {
		c.Detail = explain(err)
		return c
	}
	procs, err := proc.Open("")
	if err != nil {
		c.Detail = explain(err)
		return c
	}
	defer procs.Close(context.WithoutCancel(ctx))
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var out proc.Capture
	exit, err := procs.Run(ctx, proc.Cmd{Args: append([]string{path}, args...), Stdout: &out, Stderr: &out},
		proc.Ladder{})
	c.Detail = strings.TrimSpace(out.String())
	switch {
	case err != nil:
		c.Detail = explain(err)
	case exit.Code != 0:
		c.Detail = exit.String() + ": " + c.Detail
	default:
		c.OK = true
	}
	return c
}
