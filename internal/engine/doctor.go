package engine

import (
	"context"
	"os"
	"strings"
	"sync"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/drivers"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Finding is one thing that [Engine.Doctor] checked.
type Finding struct {
	Name   string `json:"name"`            // what was checked: a folder, a program or an agent
	OK     bool   `json:"ok"`              // it works
	Needed bool   `json:"needed"`          // nothing works without it
	Wrong  bool   `json:"wrong,omitempty"` // it is there, and is set up wrongly
	Detail string `json:"detail"`          // where it is and what it can do, or what is wrong
	Login  string `json:"login,omitempty"` // for an agent: logged in, not logged in, or login unknown
	// what helps
	Hints []team.Hint `json:"hints,omitempty"`
}

// NotLoggedIn is the Login of an agent that needs a login.
const NotLoggedIn = string(agent.NotLoggedIn)

// Doctor checks whether teams can work here: the folders, the programs that cadre needs, and the
// coding agents.
func (e *Engine) Doctor(ctx context.Context) []Finding {
	all := []Finding{checkFolder("teams", e.Home.Root),
		checkFolder("Claude Code's folder", e.Home.Claude),
		checkProgram(ctx, "/bin/sh", "-c", "echo runs the commands of tasks"),
		checkProgram(ctx, "git", "--version")}
	all[0].Needed, all[2].Needed = true, true
	if all[1].OK {
		all[1].Detail += ", where Claude Code finds the teams"
	}
	return append(all, checkAgents(ctx)...)
}

func checkFolder(name, dir string) Finding {
	c := Finding{Name: name, Detail: dir}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		c.Detail = err.Error()
		return c
	}
	f, err := os.CreateTemp(dir, ".doctor-")
	if err != nil {
		c.Detail = err.Error()
		return c
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if err := f.Sync(); err != nil {
		c.Detail = dir + " keeps nothing safely: " + err.Error()
		return c
	}
	c.OK = true
	return c
}

// checkAgents looks for the coding agents, all at once: each takes a while to report its version.
func checkAgents(ctx context.Context) []Finding {
	all := make([]Finding, len(drivers.Models))
	var asking sync.WaitGroup
	for i, name := range drivers.Models {
		asking.Go(func() {
			var login agent.Login
			var loggedIn sync.WaitGroup
			loggedIn.Go(func() { login = drivers.Login(ctx, name, "", "", os.Environ()) })
			p := drivers.Probe(ctx, name)
			loggedIn.Wait()
			all[i] = Finding{Name: name, OK: p.Program != "" && p.Missing == "", Detail: p.Missing}
			if p.Program == "" {
				return
			}
			all[i].Detail = strings.Join(append([]string{p.Version, p.Program}, p.Can...), ", ")
			if p.Missing != "" {
				all[i].Detail += "; " + p.Missing
				return
			}
			all[i].Login = string(login.State)
			all[i].Detail = loginLine(login) + "; " + all[i].Detail
		})
	}
	asking.Wait()
	return append(all, Finding{Name: team.Shell, OK: true, Detail: "runs the commands of tasks"},
		Finding{Name: team.ACP + "COMMAND", OK: true, Detail: "any agent that speaks the Agent Client Protocol"})
}

// loginLine describes the login, and says how to log in if there is none.
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

// programTime bounds how long a program may take to show that it works.
const programTime = 5 * time.Second

func checkProgram(ctx context.Context, program string, args ...string) Finding {
	c := Finding{Name: program}
	path, err := proc.Find(program)
	if err != nil {
		c.Detail = err.Error()
		return c
	}
	procs, err := proc.Open("")
	if err != nil {
		c.Detail = err.Error()
		return c
	}
	defer procs.Close(context.WithoutCancel(ctx))
	ctx, cancel := context.WithTimeout(ctx, programTime)
	defer cancel()
	var out proc.Capture
	exit, err := procs.Run(ctx, proc.Cmd{Args: append([]string{path}, args...), Stdout: &out, Stderr: &out},
		proc.Ladder{})
	c.Detail = strings.TrimSpace(out.String())
	switch {
	case err != nil:
		c.Detail = err.Error()
	case exit.Code != 0:
		c.Detail = exit.String() + ": " + c.Detail
	default:
		c.OK = true
	}
	return c
}
