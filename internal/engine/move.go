package engine

import (
	"context"
	"errors"

	"cadre/internal/engine/transfer"
	"cadre/internal/engine/upkeep"
	"cadre/internal/host"
	"cadre/internal/journal"
	"cadre/internal/layout"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// here fills in the options of a move.
func (e *Engine) here(o *transfer.Options) {
	o.Home = e.Home
	if o.Log == nil { // a caller with a Log of its own gets everything there
		o.Log = e.Note
		if o.Advise == nil {
			o.Advise = e.Tell
		}
	}
}

// onFiles refuses to do that with teams that live in a place which every machine reaches.
func (e *Engine) onFiles(what string) error {
	if e.Home.Place == nil {
		return nil
	}
	return team.Refuse(team.Invalid, "teams in %s are not %s: each machine that has its address has them, and its "+
		"backups keep them", e.Home.Place.Called, what)
}

// Restore creates a team again from its last checkpoint, with its work. The team's folder was lost,
// or is damaged and is then set aside. It refuses a team that exists and can be read. The engine
// sets Home, and Log if the options have none.
func (e *Engine) Restore(ctx context.Context, o transfer.Options) (*transfer.Arrived, error) {
	if err := e.onFiles("restored from checkpoints"); err != nil {
		return nil, err
	}
	e.here(&o)
	o.Home = o.Home.In(o.Dir)
	damaged, err := e.damaged(ctx, o.Home, o.Team)
	if err != nil {
		return nil, err
	}
	if damaged {
		o.Clear(func(ctx context.Context) error {
			aside, err := upkeep.SetAside(ctx, o.Home, o.Team, o.Log)
			if err == nil {
				o.Log("the damaged team is kept in " + aside)
			}
			return err
		})
	}
	arrived, err := transfer.Adopt(ctx, o)
	if err == nil {
		e.forgetLost(ctx, o)
	}
	return arrived, lasting(err)
}

// forgetLost removes git's records of the worktrees that were lost with the folder of a restored
// team. The next start of the team reports those that it could not remove.
func (e *Engine) forgetLost(ctx context.Context, o transfer.Options) {
	folder, err := e.Home.Folder(o.Team)
	if err != nil {
		return
	}
	t, err := e.LookIn(ctx, folder)
	if err != nil {
		return
	}
	procs, err := proc.Open("")
	if err == nil {
		t.forgetLost(ctx, procs, t.Team().Dir, o.Log)
		procs.Close(context.WithoutCancel(ctx))
	}
	t.Close()
}

// forgetLost does that for the team and the teams in it. project is a directory in their
// repository.
func (t *Team) forgetLost(ctx context.Context, procs *proc.Register, project string, log func(string)) {
	of := t.Team()
	of.Dir = project
	var members []team.Member
	t.View(func(s *team.State) { members = s.Members() })
	for _, m := range members {
		if m.Isolation != team.Worktree || !m.Status.Running() {
			continue
		}
		if words, err := host.ForgetLost(ctx, procs, host.Place(of, t.Dir, m.Name)); err != nil {
			log(m.Name + ": " + err.Error())
		} else if words != "" {
			log(m.Name + ": " + words)
		}
	}
	for _, c := range t.children() {
		below, err := t.engine.LookIn(ctx, c.dir)
		if err != nil {
			continue
		}
		below.forgetLost(ctx, procs, project, log)
		below.Close()
	}
}

// damaged reports whether the team's folder exists and its history cannot be read. It refuses a
// team that can be read. If another machine has continued the team, the error says so.
func (e *Engine) damaged(ctx context.Context, home layout.Home, name string) (bool, error) {
	folder, err := home.Own(name)
	if team.CodeOf(err) == team.NotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	t, err := e.lookIn(ctx, name, folder)
	if _, broken := errors.AsType[*journal.DamageError](err); broken || team.CodeOf(err) == team.NotFound {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	defer t.Close()
	if err := transfer.Here(ctx, t.Replica, folder, false); err != nil {
		return false, lasting(err)
	}
	return false, team.Refuse(team.Taken, "team %s exists in %s, and its history is newer than any checkpoint",
		name, folder).
		With(team.Hint{Action: team.ActResume, Team: name})
}

// CanPush asks the remote whether the team could be pushed, before anything changes; see
// [transfer.CanPush].
func (e *Engine) CanPush(ctx context.Context, o transfer.PushOptions) (first bool, err error) {
	if err := e.onFiles("pushed"); err != nil {
		return false, err
	}
	e.here(&o.Options)
	first, err = transfer.CanPush(ctx, o)
	return first, lasting(err)
}

// Push makes a checkpoint of the team and pushes its branch. It calls agree once per remote that
// gets the team for the first time, with an error that says what is sent; an error of agree refuses
// the push. If agree is nil, the push is refused. The engine sets the options as [Engine.Restore]
// does.
func (e *Engine) Push(ctx context.Context, o transfer.PushOptions, agree func(error) error) (*transfer.Pushed, error) {
	if err := e.onFiles("pushed"); err != nil {
		return nil, err
	}
	e.here(&o.Options)
	if of, err := e.Glance(ctx, o.Team); err == nil {
		if err := e.WithParent(ctx, of, "pushed", ""); err != nil {
			return nil, err
		}
		if e.Elsewhere != nil {
			e.tellElsewhere(of)
		}
	}
	pushed, err := transfer.Push(ctx, o)
	if first, ok := errors.AsType[*transfer.UnconfirmedError](err); ok && agree != nil {
		if err := agree(first); err != nil {
			return nil, err
		}
		o.Yes = true
		pushed, err = transfer.Push(ctx, o)
	}
	return pushed, lasting(err)
}

// Pull fetches the branch of the team from a remote, and restores the team from it if the remote
// has newer state. The engine sets the options as [Engine.Restore] does.
func (e *Engine) Pull(ctx context.Context, o transfer.PullOptions) (*transfer.Pulled, error) {
	if err := e.onFiles("pulled"); err != nil {
		return nil, err
	}
	e.here(&o.Options)
	o.Home = o.Home.In(o.Dir)
	if of, err := e.In(o.Dir).Glance(ctx, o.Team); err == nil {
		if err := e.WithParent(ctx, of, "pulled", team.ActPull); err != nil {
			return nil, err
		}
	}
	pulled, err := transfer.Pull(ctx, o)
	return pulled, lasting(err)
}
