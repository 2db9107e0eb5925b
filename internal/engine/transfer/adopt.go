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
	"cadre/internal/journal/store/filestore"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/sys/paths"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Options configure the move of a team. Each function may be nil.
type Options struct {
	Home layout.Home
	Team string
	Dir  string // a directory in the project's repository; absolute
	// Named reports that the user named the directory. If not, the team works where it did before,
	// if that is in the same repository.
	Named bool
	// At is the ref of the checkpoint to continue from, if there are two histories; "" for the
	// newest.
	At     string
	Checks []team.Check // replacements for checks that were redacted
	Log    func(string)
	// Advise receives advice, with what to do about it; if nil, Log receives it.
	Advise func(team.Advice)

	clear func(context.Context) error // moves an old copy with the team's name out of the way
	all   bool                        // it moves the teams in the team, too
	step  func(string)                // for tests: called between any two steps, with the name of the finished one
}

func (o *Options) advise(n team.Advice) {
	if o.Advise != nil {
		o.Advise(n)
		return
	}
	o.log("%s", n.Text)
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

// Clear sets the function that moves an old, damaged copy of the team out of the way. Adopt calls
// it before the restored team appears.
func (o *Options) Clear(move func(context.Context) error) { o.clear = move }

func (o *Options) store(ctx context.Context, procs *proc.Register, dir string) (*checkpoint.Store, error) {
	folder, err := o.Home.Own(o.Team)
	if err != nil {
		folder = o.Home.Nowhere()
	}
	return checkpoint.Open(ctx, procs, dir, o.Team, folder)
}

// Arrived is a team that was restored from a checkpoint.
type Arrived struct {
	*checkpoint.Restored
	Dir     string         // where the team works
	Missing []team.Missing // the team's work that is not here
	// Left lists the files that were not carried, are not here, and belong to no task's record.
	// More is the number of further paths, which the checkpoint only counts.
	Left []checkpoint.Left
	More int
}

// MissingCheck reports a check that was redacted in the checkpoint and has to be entered again.
type MissingCheck struct{ Name string }

func (e *MissingCheck) Error() string {
	return fmt.Sprintf("the command of the check %q was redacted in the checkpoint, and nothing is committed "+
		"without that check", e.Name)
}

// HereError reports that the team of a checkpoint is in this home already. A home has a team once.
type HereError struct {
	ID, Folder string
	Released   bool // this machine released it
}

func (e *HereError) Error() string {
	if e.Released {
		return fmt.Sprintf("team %s is in this home already, in %s, and this machine released it", e.ID, e.Folder)
	}
	return fmt.Sprintf("team %s is in this home already, in %s; it can be continued there", e.ID, e.Folder)
}

func (e *HereError) Unwrap() error {
	hint := team.Hint{Action: team.ActResume, Team: e.ID}
	if e.Released {
		hint.Action = team.ActTakeBack
	}
	return team.Refuse(team.Taken, "%s", e.Error()).With(hint)
}

// ErrNoRepository reports a directory outside any git repository.
var ErrNoRepository = errors.New("is not in a git repository")

// Adopt restores the team from its newest checkpoint, with its work. The team must not exist here.
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
		return nil, fmt.Errorf("%s %w", o.Dir, ErrNoRepository)
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
	below, err := o.nested(ctx, r, store)
	if err != nil {
		return nil, err
	}
	if err := o.complete(r, below); err != nil {
		return nil, err
	}
	if id := r.State.Team().ID; o.clear == nil {
		if there := o.Home.Has(id); there != "" {
			e := &HereError{ID: id, Folder: there}
			copied := o // opened changes it
			err := copied.openedIn(ctx, there, func(rep *replica.Replica, _ string) error {
				e.Released = rep.Team().Released != (team.Released{})
				return nil
			})
			return nil, errors.Join(e, err)
		}
	}
	if err := o.alone(r.State.Team()); err != nil {
		return nil, err
	}
	own := slices.ContainsFunc(found, func(f checkpoint.Found) bool { return f.Own })
	return o.bring(ctx, procs, store, from, r, below, own)
}

// complete refuses a checkpoint with a redacted check that was not entered again. It adds what was
// redacted in the teams in the team to what was redacted in the team.
func (o *Options) complete(r *checkpoint.Restored, below []*nested) error {
	checks := slices.Clone(r.Checks)
	each(below, func(n *nested) error {
		checks, r.Redacted = append(checks, n.Checks...), append(r.Redacted, n.Redacted...)
		return nil
	})
	for _, lost := range checks {
		if !slices.ContainsFunc(o.Checks, func(c team.Check) bool { return c.Name == lost }) {
			return &MissingCheck{lost}
		}
	}
	return nil
}

// alone refuses a nested team: it is restored with its parent. A damaged copy in the home of the
// parent is replaced.
func (o *Options) alone(t team.Team) error {
	if t.Parent.Team == "" || o.clear != nil {
		return nil
	}
	if o.Home.Has(t.Parent.Team) != "" {
		return team.Refuse(team.Invalid, "team %s does a task of team %s, and is not restored by itself; where that team "+
			"continues here, a new team does the task", t.Name, t.Parent.Name).
			With(t.Aim(team.Hint{Action: team.ActResume}))
	}
	return team.Refuse(team.Invalid, "team %s does a task of team %s, and is not restored by itself, but with that team",
		t.Name, t.Parent.Name).With(t.Aim(team.Hint{Action: team.ActContinueCopy}))
}

// choose returns the checkpoint to continue from. A choice between two histories is recorded in the
// branch.
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
			Text: fmt.Sprintf("%s is not a branch with checkpoints of team %s; the branches are: %s", o.At, o.Team,
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

// bring restores the branches and the files, and creates the team with the teams in it.
func (o *Options) bring(ctx context.Context, procs *proc.Register, store *checkpoint.Store, from checkpoint.Found,
	r *checkpoint.Restored, below []*nested, own bool) (*Arrived, error) {
	a := &Arrived{Restored: r}
	old := r.State.Team()
	p, err := o.putting(ctx, procs, store, r, own)
	if err != nil {
		return nil, err
	}
	if a.Dir = p.dir; a.Dir == o.Dir && !p.same && !o.Named {
		a.Dir = cmp.Or(counterpart(old, p.top), a.Dir)
	}
	if err := o.placeAll(ctx, old, a.Dir, below); err != nil {
		return nil, err
	}
	over := old.Status.Ended()
	if !p.same && !from.Released && !over {
		o.advise(o.heldBy(ctx, procs, from))
	}
	if o.clear != nil { // before the branches move: if the old copy continues after all, it still has its own
		if err := o.clear(ctx); err != nil {
			return nil, err
		}
		o.did("cleared")
	}
	begin, err := o.begin(ctx, p, a, below)
	if err != nil {
		return nil, err
	}
	if err := o.Home.CreateAll(begin...); err != nil {
		return nil, err
	}
	o.Home = o.Home.In(a.Dir)
	o.did("created")
	if err := o.sealAll(ctx, below); err != nil {
		return nil, err
	}
	if err := o.checkpoint(ctx); err != nil { // so that the lost history cannot continue beside this one
		return nil, err
	}
	o.did("checkpoint")
	return a, nil
}

// placeAll decides where the teams in the team will be. That is known only with the folder of the
// team itself.
func (o *Options) placeAll(ctx context.Context, old team.Team, dir string, below []*nested) error {
	if len(below) == 0 {
		return nil
	}
	folder := o.Home.Has(old.ID)
	if folder == "" && o.clear != nil { // a damaged one may not tell its id
		folder, _ = o.Home.Own(o.Team)
	}
	if folder == "" {
		old.Dir = dir
		var err error
		if folder, err = o.Home.Vacant(old); err != nil {
			return err
		}
	}
	return o.place(ctx, below, folder, dir, o.all)
}

// begin restores the branches and the files of the team and of the teams in it, and returns the
// commands that begin their histories, its own last.
func (o *Options) begin(ctx context.Context, p *putting, a *Arrived, below []*nested) (begin []layout.Beginning,
	err error) {
	var stale []string
	each(below, func(n *nested) error {
		if n.stale != "" {
			stale = append(stale, n.stale)
		}
		return nil
	})
	if err := o.setAside(stale, layout.Replaced); err != nil {
		return nil, err
	}
	if err := carryOver(ctx, p.store, p.r, below); err != nil {
		return nil, err
	}
	if p.branches, err = p.store.Branches(ctx, p.r); err != nil {
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
	old := p.r.State.Team()
	moved := []team.Moved{{From: old.Base.Top, To: p.top}, {From: old.Dir, To: a.Dir}}
	if begin, err = o.bringNested(ctx, p, below, base, moved, &a.Missing); err != nil {
		return nil, err
	}
	a.Missing = a.Missing[:min(len(a.Missing), team.MaxMissing)]
	a.Left, a.More = p.unclaimed(a.Missing)
	where := a.Dir
	if where == old.Dir {
		where = ""
	}
	checks := o.Checks
	if len(below) > 0 { // others may be theirs
		checks = checksOf(o.Checks, old)
	}
	c := p.r.Command(replica.NewID(), replica.Now(), where, checks...)
	body := c.Body.(*team.RestoreTeam)
	body.Base, body.Missing = base, a.Missing
	return append(begin, layout.Beginning{Name: o.Team, Commands: []team.Command{c}}), nil
}

// sealAll writes the records of the teams that were consolidated before they were restored.
func (o *Options) sealAll(ctx context.Context, below []*nested) error {
	seal := func(rep *replica.Replica, folder string) error {
		return consolidate.SealRestored(ctx, rep, filestore.Team(folder))
	}
	if err := each(below, func(n *nested) error {
		copied := *o
		return copied.openedIn(ctx, o.Home.Has(n.Team), seal)
	}); err != nil {
		return err
	}
	return o.opened(ctx, seal)
}

// putting finds where the work of the team goes: into its former directory, if that is in this
// repository, or else into the options' one.
func (o *Options) putting(ctx context.Context, procs *proc.Register, store *checkpoint.Store,
	r *checkpoint.Restored, own bool) (*putting, error) {
	old, dir := r.State.Team(), o.Dir
	if !o.Named || below(o.Dir, old.Dir) {
		if there, err := o.store(ctx, procs, old.Dir); err == nil && there.Place() == store.Place() {
			dir = old.Dir
		}
	}
	head, top, err := consolidate.Head(ctx, procs, dir)
	if err != nil {
		return nil, err
	}
	p := &putting{Options: o, procs: procs, store: store, r: r, work: r.Work, dir: dir, head: head, top: top}
	p.same = store.SamePlace(r.Work) && r.Work.Top == top
	if r.Work.Machine == "" { // the old format carries no work, so the branches exist only in the old clone
		p.same = own && old.Base.Top == top && top != ""
	}
	return p, nil
}

// counterpart returns the folder in the work tree top that corresponds to the team's former
// directory, or "".
func counterpart(t team.Team, top string) string {
	if top == "" || t.Base.Top == "" {
		return ""
	}
	rel, err := filepath.Rel(t.Base.Top, t.Dir)
	if err != nil || !filepath.IsLocal(rel) {
		return ""
	}
	dir := filepath.Join(top, rel)
	if info, err := os.Stat(dir); err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

// heldBy returns a note about the machine that did not release the team, and what to do about it. A
// machine's name does not identify it. Only the path of the team's former repository shows whether
// it is this machine.
func (o *Options) heldBy(ctx context.Context, procs *proc.Register, from checkpoint.Found) team.Advice {
	release := team.Hint{Action: team.ActRelease, Team: o.Team,
		Name: cmp.Or(from.Work.Machine, "the machine that had it")}
	who, with := release.Name, ""
	if top := from.Work.Top; top != "" {
		if store, err := o.store(ctx, procs, top); err == nil && store.SamePlace(from.Work) {
			who, with = "the copy in "+top+" on this machine", ", with the CADRE_HOME of that copy"
			release.Name, release.Dir = "", top
		}
	}
	return team.Advice{Text: fmt.Sprintf("%s did not release team %s: it may still run there (last seen %s). "+
		"If it continues there, the team has two histories. Release it there%s, and then pull it here.", who,
		o.Team, checkpoint.Date(from.Heard), with),
		Hints: []team.Hint{release, {Action: team.ActPull, Team: o.Team}}}
}

// checkpoint makes a checkpoint of the local team.
func (o *Options) checkpoint(ctx context.Context, include ...string) error {
	return o.opened(ctx, func(rep *replica.Replica, folder string) error {
		_, err := host.Checkpoint(ctx, rep, folder, include...)
		return err
	})
}

// opened opens the local team and calls do with it.
func (o *Options) opened(ctx context.Context, do func(rep *replica.Replica, folder string) error) error {
	folder, err := o.Home.Folder(o.Team)
	if err != nil {
		return err
	}
	return o.openedIn(ctx, folder, do)
}

// openedIn is opened for the team in that folder.
func (o *Options) openedIn(ctx context.Context, folder string,
	do func(rep *replica.Replica, folder string) error) error {
	j, err := o.Home.OpenFolder(folder, o.Log)
	if err != nil {
		return err
	}
	rep, err := replica.Open(ctx, j, replica.Options{Log: o.Log})
	if err != nil {
		return err
	}
	of := rep.Team()
	o.Team, o.Home = of.Name, o.Home.In(of.Dir) // it may have been named by its id, from elsewhere
	return errors.Join(do(rep, folder), rep.Close())
}

// below reports whether dir is the folder or inside it; symbolic links are followed.
func below(folder, dir string) bool {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return false
	}
	if folder, err = filepath.EvalSymlinks(folder); err != nil {
		return false
	}
	return paths.Within(real, folder)
}
