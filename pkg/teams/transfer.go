package teams

import (
	"context"
	"errors"
	"path/filepath"

	"cadre/internal/engine/transfer"
	"cadre/internal/git/checkpoint"
)

// PushOptions configure a push. The zero PushOptions push to git's default remote.
type PushOptions struct {
	Remote string // its name
	// Include has paths, relative to the top of the work tree, that are pushed although they are
	// ignored, large, or likely contain a secret.
	Include []string
	// Agree is called once for each remote, with a sentence about what the first push sends there.
	// Without Agree, the push is refused.
	Agree func(what string) bool
	// Commit also pushes the commit of a consolidated team, to the remote's branch with the name of
	// the checked-out one, as cadre consolidate --push does.
	Commit  bool
	Release bool // release the team: it no longer changes on this machine, and another machine continues it
	Ours    bool // of two histories, continue the local one
}

// PullOptions configure a pull.
type PullOptions struct {
	Remote string // its name; "" for git's default
	Dir    string // in a clone of the project; "" for the current directory
	Theirs bool   // of two histories, continue the remote's
}

// Pushed is the result of a push.
type Pushed struct {
	Remote, URL    string
	Records        int64  // of the team, that the remote has
	Checkpoint     string // the commit of the checkpoint
	New            bool   // the remote got something new
	Released       bool   // this machine has released the team
	Commit, Branch string // the consolidated commit and its branch; "" if it was not pushed
}

// Pulled is the result of a pull.
type Pulled struct {
	Restored bool      // the team was restored from the remote; false if nothing was new
	Dir      string    // where it works
	Missing  []Missing // work of completed tasks that was not pulled
	Notices  []string  // what a person should know, for example that the team may still run elsewhere
}

// Missing is work of a completed task that a pull could not bring.
type Missing struct{ Task, What string }

// PushTeam makes a checkpoint of the team of that name and pushes its branch, as cadre push does.
// It returns ErrForked if the remote has another history of the team, and ErrDenied if the caller
// did not agree to a first push. It returns ErrNotReady if the team is led and cannot be released.
// With an error, the result has what was done before. A manager that has the team leads it; close
// that manager first to use Release.
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

// agree returns nil if the caller agrees to a first push, and otherwise the error that describes
// it.
func (p PushOptions) agree(first error) error {
	if p.Agree == nil || !p.Agree(first.Error()) {
		return first
	}
	return nil
}

// PullTeam fetches the team of that name and restores it with its work, as cadre pull does. It
// starts no session; call [Manager.OpenTeam] next. It returns ErrForked if both sides have their
// own history, ErrNotReady if the team runs here, and ErrNotFound if the remote does not have it.
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

// arrived copies the result of a restore.
func (p *Pulled) arrived(a *transfer.Arrived) {
	p.Restored, p.Dir = true, a.Dir
	for _, one := range a.Redacted {
		p.Notices = append(p.Notices, one.Text)
	}
	for _, one := range a.Missing {
		p.Missing = append(p.Missing, Missing{one.Task, one.What})
	}
}

// moved adds codes to the errors of a push or pull.
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
