package teams

import (
	"context"
	"errors"
	"path/filepath"

	"cadre/internal/git/checkpoint"
	"cadre/internal/transfer"
)

// PushOptions say how a team is pushed. The zero PushOptions push to the remote that git would push to.
type PushOptions struct {
	Remote string // its name
	// paths from the top of the work tree that go along although they are ignored, large, or likely
	// hold a secret
	Include []string
	// Agree is asked once for each remote, with a sentence about what goes there for the first
	// time. Nil refuses.
	Agree func(what string) bool
	// Commit pushes the commit of a team that was consolidated, too, to the remote's branch of the
	// name that is checked out: cadre consolidate --push.
	Commit  bool
	Release bool // this machine lets go of the team: it changes no more here, and another machine continues it
	Ours    bool // of two histories the one that is here continues
}

// PullOptions say how a team is pulled.
type PullOptions struct {
	Remote string // its name; "" for the one that git would push to
	Dir    string // in a clone of the project; "" for the current directory
	Theirs bool   // of two histories the remote's continues
}

// Pushed is what a push brought where.
type Pushed struct {
	Remote, URL    string
	Records        int64  // of the team, that the remote has
	Checkpoint     string // the commit of the checkpoint
	New            bool   // the remote has something that it had not
	Released       bool   // this machine has let go of the team
	Commit, Branch string // the consolidated commit and the branch that names it; "" where it was not pushed
}

// Pulled is what a pull brought.
type Pulled struct {
	Restored bool      // the team is here, as the remote had it; false where there was nothing new
	Dir      string    // where it works
	Missing  []Missing // work of completed tasks that is not here
	Notices  []string  // what a person should know: that the team may still run elsewhere, say
}

// Missing is work of a completed task that a pull could not bring.
type Missing struct{ Task, What string }

// PushTeam makes a checkpoint of the team of that name and pushes its branch, as cadre push does.
// It is refused with ErrForked where the remote has another history of the team, with ErrDenied
// where something would go there that nobody agreed to, and with ErrNotReady where the team is led
// and cannot be let go of. With an error the result is what was done before it. A manager that has
// the team leads it, and is to be closed first for Release.
func (m *Manager) PushTeam(ctx context.Context, name string, p PushOptions) (Pushed, error) {
	if err := m.pass("Manager.PushTeam"); err != nil {
		return Pushed{}, err
	}
	if m.engine.Memory != nil {
		return Pushed{}, refuse(ErrInvalid, "teams in memory are in no repository")
	}
	if has := m.Team(); p.Release && has != nil && has.name == name {
		return Pushed{}, refuse(ErrNotReady,
			"this manager has team "+name+" and runs it; close it, and push with another one")
	}
	done, err := m.engine.Push(ctx, transfer.PushOptions{Options: transfer.Options{Team: name}, Remote: p.Remote,
		Include: p.Include, Head: p.Commit, Release: p.Release, Ours: p.Ours}, p.agree)
	if done == nil {
		return Pushed{}, moved(err)
	}
	return Pushed{Remote: done.Remote.Name, URL: done.Remote.URL, Records: done.Seq, Checkpoint: done.Commit,
		New: done.New, Released: done.Released, Commit: done.Head.Commit, Branch: done.Head.Branch}, moved(err)
}

// agree returns nil where the caller agrees to a first push, and else the error that says what it
// would bring.
func (p PushOptions) agree(first error) error {
	if p.Agree == nil || !p.Agree(first.Error()) {
		return first
	}
	return nil
}

// PullTeam fetches the team of that name and restores it with its work, as cadre pull does. No
// session is started: [Manager.OpenTeam] does that. It is refused with ErrForked where both sides
// have a history of their own, with ErrNotReady where the team runs here, and with ErrNotFound
// where the remote does not have it.
func (m *Manager) PullTeam(ctx context.Context, name string, p PullOptions) (Pulled, error) {
	if err := m.pass("Manager.PullTeam"); err != nil {
		return Pulled{}, err
	}
	if m.engine.Memory != nil {
		return Pulled{}, refuse(ErrInvalid, "teams in memory are in no repository")
	}
	dir, err := filepath.Abs(p.Dir)
	if err != nil {
		return Pulled{}, err
	}
	var pulled Pulled
	found, err := m.engine.Pull(ctx, transfer.PullOptions{Remote: p.Remote, Theirs: p.Theirs,
		Options: transfer.Options{Team: name, Dir: dir, Named: p.Dir != "",
			Log: func(text string) { pulled.Notices = append(pulled.Notices, text) }}})
	if err != nil {
		return Pulled{}, moved(err)
	}
	if found.Arrived != nil {
		pulled.arrived(found.Arrived)
	}
	return pulled, nil
}

// arrived takes what was restored.
func (p *Pulled) arrived(a *transfer.Arrived) {
	p.Restored, p.Dir = true, a.Dir
	p.Notices = append(p.Notices, a.Redacted...)
	for _, one := range a.Missing {
		p.Missing = append(p.Missing, Missing{one.Task, one.What})
	}
}

// moved gives the errors of a move their codes.
func moved(err error) error {
	_, unconfirmed := errors.AsType[*transfer.UnconfirmedError](err)
	_, suspect := errors.AsType[*transfer.SuspectError](err)
	_, damage := errors.AsType[*checkpoint.DamageError](err)
	switch {
	case err == nil:
		return nil
	case errors.Is(err, checkpoint.ErrForked):
		return &Error{Code: ErrForked, Text: err.Error(), Hints: hintsOf(err), cause: err}
	case unconfirmed, suspect:
		return &Error{Code: ErrDenied, Text: err.Error(), Hints: hintsOf(err), cause: err}
	case errors.Is(err, checkpoint.ErrNone), errors.Is(err, checkpoint.ErrNoRemote),
		errors.Is(err, transfer.ErrNoRepository):
		return &Error{Code: ErrNotFound, Text: err.Error(), Hints: hintsOf(err), cause: err}
	case damage:
		return &Error{Code: ErrDamaged, Text: err.Error(), Hints: hintsOf(err), cause: err}
	}
	return public(err)
}
