package engine

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/drivers"
	"cadre/internal/git/checkout"
	"cadre/internal/git/transport"
	"cadre/internal/git/worktree"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// BusyTime bounds how long a command waits for other writers of its team.
const BusyTime = 30 * time.Second

// startTime bounds the wait for a session; each driver bounds its own start below that.
const startTime = 4 * time.Minute

// Spawn adds the member as actor, and starts a background host for its session. It checks what can
// fail before the member is recorded: that the team's directory is usable, the agent is installed
// and logged in, a worktree is possible, the limit of turns is valid, and a host can be started.
// joined is called with the member once it is recorded. After that only its host can fail.
func (t *Team) Spawn(ctx context.Context, actor string, m *team.SpawnMember, joined func(team.Member) error) error {
	if len(m.RunsOn) > 0 {
		return t.spawnElsewhere(ctx, actor, m, joined)
	}
	var l *Launch
	giveBack := func() {}
	if m.Agent != team.External {
		of := t.Team()
		if !of.Ended() {
			if err := unworkable(of, checkout.Glance(of)); err != nil {
				return err
			}
		}
		if err := Able(ctx, m, of.Dir); err != nil {
			return err
		}
		if err := t.engine.CheckTurns(); err != nil {
			return err
		}
		var err error
		if l, err = t.Launch(); err != nil {
			return fmt.Errorf("%s was not added: %w", m.Name, err)
		}
		defer l.Close()
		if room := t.room(); room != nil {
			if giveBack, err = room(ctx, m.Name); err != nil {
				return err
			}
		}
	}
	adding, cancel := busy(ctx, t.Name)
	defer cancel()
	if _, err := t.Do(adding, team.Command{Actor: actor, Body: m}); err != nil {
		giveBack()
		return err
	}
	added, _ := t.member(m.Name)
	if err := joined(added); err != nil || l == nil {
		return err
	}
	return l.Ensure(ctx, m.Name)
}

// room returns what reserves room for a teammate of the team; nil if nobody counts.
func (t *Team) room() func(ctx context.Context, name string) (giveBack func(), err error) {
	if t.engine.Room == nil {
		return nil
	}
	return func(ctx context.Context, name string) (func(), error) {
		return t.engine.Room(ctx, t.Team().ID, name)
	}
}

// Placed says why the member cannot have its isolation in that directory.
func Placed(ctx context.Context, m *team.SpawnMember, dir string) error {
	if m.Isolation != team.Worktree {
		return nil
	}
	if err := Isolates(ctx, dir); err != nil {
		return team.Refuse(team.Invalid, "%s cannot have a worktree of its own: %v", m.Name, err)
	}
	return nil
}

// Able says why no session of the member, with an agent of the engine's drivers, could work in that
// directory. It finds out what it can without starting one.
func Able(ctx context.Context, m *team.SpawnMember, dir string) error {
	if err := Placed(ctx, m, dir); err != nil {
		return err
	}
	var login agent.Login
	var asking sync.WaitGroup
	asking.Go(func() { login = drivers.Login(ctx, m.Agent, m.Program, dir, append(os.Environ(), m.Env...)) })
	err := drivers.Missing(ctx, m.Agent, m.Program)
	asking.Wait()
	switch {
	case err != nil:
		return team.Refuse(team.Invalid, "%s was not added: %s cannot work here: %v", m.Name, m.Agent, err)
	case login.State == agent.NotLoggedIn && len(m.Args) == 0: // arguments may say how the agent logs in
		detail := ""
		if login.Detail != "" {
			detail = ": " + login.Detail
		}
		return team.Refuse(team.NotReady, "%s was not added: %s has no login here%s. To log in: %s. Then "+
			"try again", m.Name, m.Agent, detail, login.How)
	}
	return nil
}

// CheckTurns returns an error if the limit of turns on this machine is not valid. Then no host of a
// team on disk can start.
func (e *Engine) CheckTurns() error {
	if e.Memory != nil { // its teams have no limit
		return nil
	}
	_, err := (&Team{engine: e}).turns()
	return err
}

// Isolates says why no member can have its own worktree in that directory.
func Isolates(ctx context.Context, dir string) error {
	procs, err := proc.Open("")
	if err != nil {
		return err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	return worktree.Able(ctx, procs, dir)
}

// AwaitStart waits until the member's session is running. The first failure ends the wait, even if
// the session is tried again.
func (t *Team) AwaitStart(ctx context.Context, name string) (team.Member, error) {
	of := t.Team().Name
	ctx, cancel := context.WithTimeoutCause(ctx, startTime, team.Refuse(team.NotReady, "the session of %s did not "+
		"start within %s", name, team.Span(startTime)).With(team.Hint{Action: team.ActShowLog, Team: of}))
	defer cancel()
	for {
		m, seq := t.member(name)
		switch {
		case !m.Status.Running():
			return m, team.Refuse(team.NotReady, "%s could not start: %s", name, m.Summary).
				With(team.Hint{Action: team.ActSpawn, Team: of, Agent: m.Agent})
		case t.waitsForLimit(name) && m.Status == team.Spawning:
			return m, team.Refuse(team.NotReady, "%s waits for a rate limit, and starts by itself when it is over",
				name).
				With(team.Hint{Action: team.ActShowTeam, Team: of})
		case m.Setbacks > 0:
			return m, team.Refuse(team.NotReady, "%s could not start yet, and is tried again: %s", name, m.Summary)
		case m.Status != team.Spawning:
			return m, nil
		}
		if err := t.Wait(ctx, seq); err != nil {
			return m, context.Cause(ctx)
		}
	}
}

// waitsForLimit reports whether the member waits for the rate limit of its pool.
func (t *Team) waitsForLimit(name string) (waits bool) {
	t.View(func(s *team.State) { waits = s.WaitsForLimit(name) != nil })
	return waits
}

// spawnElsewhere is Spawn for a member that a machine with its labels runs.
func (t *Team) spawnElsewhere(ctx context.Context, actor string, m *team.SpawnMember,
	joined func(team.Member) error) error {
	if of := t.Team(); of.Remote != "" && !of.Ended() {
		if err := t.engine.SendBase(ctx, of); err != nil {
			return err
		}
	}
	adding, cancel := busy(ctx, t.Name)
	defer cancel()
	if _, err := t.Do(adding, team.Command{Actor: actor, Body: m}); err != nil {
		return err
	}
	added, _ := t.member(m.Name)
	return joined(added)
}

// Remotely refuses a team that cannot have members on machines with labels: one on files, or whose
// repository does not have its remote.
func (e *Engine) Remotely(ctx context.Context, of team.Team) error {
	if e.Home.Place == nil {
		return team.Refuse(team.Invalid, "only a team in a database can have members on other machines; give the "+
			"address of one with --store or CADRE_STORE, or leave runsOn out")
	}
	return e.remotely(ctx, of, func(*transport.Road) error { return nil })
}

// SendBase is Remotely, and makes sure that the machines can begin: it sends the commit that the
// team starts from to the team's remote.
func (e *Engine) SendBase(ctx context.Context, of team.Team) error {
	if err := e.Remotely(ctx, of); err != nil {
		return err
	}
	if of.Base.Commit == "" {
		return team.Refuse(team.Invalid, "%s is in no git repository with a commit, so other machines have nothing to "+
			"start from; commit something first, or leave runsOn out", of.Dir)
	}
	return e.remotely(ctx, of, func(road *transport.Road) error {
		if err := road.SendBase(ctx); err != nil {
			return team.Refuse(team.NotReady, "other machines would not have the work: %v", err)
		}
		return nil
	})
}

// remotely calls do with the road to the remote of the team.
func (e *Engine) remotely(ctx context.Context, of team.Team, do func(*transport.Road) error) error {
	procs, err := proc.Open("")
	if err != nil {
		return err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	road, err := transport.Open(ctx, procs, of.Dir, of)
	if err != nil {
		return err
	}
	return do(road)
}
