package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cadre/internal/consolidate"
	"cadre/internal/git/checkpoint"
	"cadre/internal/host"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Options say which team is moved, and where. Of the functions all may be nil.
type Options struct {
	Home layout.Home
	Team string
	Dir  string // in the project's repository; absolute
	// Named says that the user named the directory. Else the team works where it did, if that is in
	// the same repository.
	Named bool
	// At is the ref of the checkpoint to continue from, where there are two histories; "" for the
	// newest.
	At     string
	Checks []team.Check // that were redacted, and are given anew
	Log    func(string)

	clear func(context.Context) error // moves what has the team's name out of the way
	step  func(string)                // for tests: called between any two steps, with the name of the one before
}

func (o *Options) log(format string, args ...any) {
	if o.Log != nil {
		o.Log(fmt.Sprintf(format, args...))
	}
}

func (o *Options) did(step string) {
	if o.step != nil {
		o.step(step)
	}
}

// Clear has what has the team's name moved out of the way before the team appears: a damaged one.
func (o *Options) Clear(move func(context.Context) error) { o.clear = move }

func (o *Options) store(ctx context.Context, procs *proc.Register, dir string) (*checkpoint.Store, error) {
	return checkpoint.Open(ctx, procs, dir, o.Team, filepath.Join(o.Home.Root, "teams", o.Team))
}

// Arrived is a team that was restored from a checkpoint.
type Arrived struct {
	*checkpoint.Restored
	Dir     string         // where it works
	Missing []team.Missing // of its work
	// Left is what was not carried from where the team worked, is not here, and is no task's by its
	// record; More is how many further paths the checkpoint only counts.
	Left []checkpoint.Left
	More int
}

// MissingCheck says that a check was redacted in the checkpoint and has to be given anew.
type MissingCheck struct{ Name string }

func (e *MissingCheck) Error() string {
	return fmt.Sprintf("the command of the check %q was redacted in the checkpoint, and nothing may be committed "+
		"without it", e.Name)
}

// ErrNoRepository says that a directory is in no git repository.
var ErrNoRepository = errors.New("it is in no git repository")

// Adopt restores the team from its newest checkpoint, with its work. The team must not be here.
func Adopt(ctx context.Context, o Options) (*Arrived, error) {
	procs, err := proc.Open("")
	if err != nil {
		return nil, err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	store, err := o.store(ctx, procs, o.Dir)
	if err != nil {
		return nil, err
	}
	if store.Notice() != "" {
		return nil, fmt.Errorf("%s: %w", o.Dir, ErrNoRepository)
	}
	found, err := store.Found(ctx)
	if err != nil {
		return nil, err
	}
	from, err := o.choose(ctx, store, found)
	if err != nil {
		return nil, err
	}
	r, err := store.RestoreAt(ctx, from.Commit)
	if err != nil {
		return nil, err
	}
	for _, lost := range r.Checks {
		if !slices.ContainsFunc(o.Checks, func(c team.Check) bool { return c.Name == lost }) {
			return nil, &MissingCheck{lost}
		}
	}
	own := slices.ContainsFunc(found, func(f checkpoint.Found) bool { return f.Own })
	return o.bring(ctx, procs, store, from, r, own)
}

// choose returns the checkpoint to continue from. One of two histories that was chosen leaves the
// others.
func (o *Options) choose(ctx context.Context, store *checkpoint.Store,
	found []checkpoint.Found) (checkpoint.Found, error) {
	if o.At == "" {
		return store.Newest(ctx, found)
	}
	i := slices.IndexFunc(found, func(f checkpoint.Found) bool { return f.Ref == o.At || o.At == f.Commit })
	if i < 0 {
		var refs []string
		for _, f := range found {
			refs = append(refs, f.Ref)
		}
		return checkpoint.Found{}, &team.Error{Code: team.NotFound,
			Text: fmt.Sprintf("%s is no branch with checkpoints of team %s; there are: %s", o.At, o.Team,
				cmp.Or(strings.Join(refs, ", "), "none"))}
	}
	var others []string
	for _, f := range found {
		others = append(others, f.Commit)
	}
	if err := store.Settle(ctx, found[i].Commit, others...); err != nil {
		return checkpoint.Found{}, err
	}
	o.did("settled")
	return found[i], nil
}

// bring makes the branches, puts the work back, and founds the team.
func (o *Options) bring(ctx context.Context, procs *proc.Register, store *checkpoint.Store, from checkpoint.Found,
	r *checkpoint.Restored, own bool) (*Arrived, error) {
	a := &Arrived{Restored: r}
	old := r.State.Team()
	if a.Dir = o.Dir; !o.Named || below(o.Dir, old.Dir) { // it works on where it did, if that is in this repository
		if there, err := o.store(ctx, procs, old.Dir); err == nil && there.Place() == store.Place() {
			a.Dir = old.Dir
		}
	}
	head, top, err := consolidate.Head(ctx, procs, a.Dir)
	if err != nil {
		return nil, err
	}
	p := &putting{Options: o, procs: procs, store: store, r: r, dir: a.Dir, head: head, top: top}
	p.same = store.SamePlace(r.Work) && r.Work.Top == top
	if r.Work.Machine == "" { // a checkpoint without work: of another clone there is no branch of the repository's own
		p.same = own && old.Base.Top == top && top != ""
	}
	if a.Dir == o.Dir && !p.same && top != "" && old.Base.Top != "" { // in the folder of the project that it worked in
		if rel, err := filepath.Rel(old.Base.Top, old.Dir); err == nil && filepath.IsLocal(rel) && !o.Named {
			if info, err := os.Stat(filepath.Join(top, rel)); err == nil && info.IsDir() {
				a.Dir = filepath.Join(top, rel)
			}
		}
	}
	if !p.same && !from.Released {
		o.log("%s", o.heldBy(ctx, procs, from))
	}
	if o.clear != nil { // before its branches are moved: a copy that is continued after all has what it had
		if err := o.clear(ctx); err != nil {
			return nil, err
		}
		o.did("cleared")
	}
	if p.branches, err = store.Branches(ctx, r); err != nil {
		return nil, err
	}
	o.did("branches")
	base, err := p.put(ctx)
	if err != nil {
		return nil, err
	}
	o.did("files")
	if a.Missing, err = p.missing(ctx); err != nil {
		return nil, err
	}
	a.Left, a.More = p.unclaimed(a.Missing)
	where := a.Dir
	if where == old.Dir {
		where = ""
	}
	c := r.Command(replica.NewID(), replica.Now(), where, o.Checks...)
	body := c.Body.(*team.RestoreTeam)
	body.Base, body.Missing = base, a.Missing
	if err := o.Home.Create(o.Team, []team.Command{c}); err != nil {
		return nil, err
	}
	o.did("created")
	if err := o.checkpoint(ctx); err != nil { // so that the history that was lost cannot go on beside this one
		return nil, err
	}
	o.did("checkpoint")
	return a, nil
}

// heldBy says who did not let go of the team, and what to do about it. The name of a machine tells
// nothing of which one it is, so only the repository that the team worked in says that it is this
// one.
func (o *Options) heldBy(ctx context.Context, procs *proc.Register, from checkpoint.Found) string {
	who, where := cmp.Or(from.Work.Machine, "the machine that had it"), "there"
	if top := from.Work.Top; top != "" {
		if store, err := o.store(ctx, procs, top); err == nil && store.SamePlace(from.Work) {
			who, where = "the copy in "+top+" on this machine", "with the CADRE_HOME of that copy"
		}
	}
	return fmt.Sprintf("%s did not let go of team %s: it may still run there. The last that was heard of it is of "+
		"%s. What it does there from now on is another history of the team. To let go of it, %s: cadre push %s "+
		"--release; then, here: cadre pull %s",
		who, o.Team, checkpoint.Date(from.Heard), where, o.Team, o.Team)
}

// checkpoint makes one of the team that is here.
func (o *Options) checkpoint(ctx context.Context, include ...string) error {
	_, err := o.opened(ctx, func(rep *replica.Replica, folder string) error {
		_, err := host.Checkpoint(ctx, rep, folder, include...)
		return err
	})
	return err
}

// opened calls do with the team that is here, and returns its folder.
func (o *Options) opened(ctx context.Context, do func(rep *replica.Replica, folder string) error) (string, error) {
	j, folder, err := o.Home.Open(o.Team, o.Log)
	if err != nil {
		return "", err
	}
	rep, err := replica.Open(ctx, j, replica.Options{Log: o.Log})
	if err != nil {
		return folder, err
	}
	return folder, errors.Join(do(rep, folder), rep.Close())
}

// below reports whether the directory is in the folder, or is it; links are followed.
func below(folder, dir string) bool {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	if folder, err = filepath.EvalSymlinks(folder); err != nil {
		return false
	}
	rel, err := filepath.Rel(folder, real)
	return err == nil && filepath.IsLocal(rel)
}
