package consolidate

import (
	"context"
	"slices"

	"cadre/internal/git/worktree"
	"cadre/internal/host"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Pending is what a consolidation of the team would commit. The zero Pending is empty.
type Pending struct {
	Branches []team.Branch
	Files    []string // the team's files in the work tree, by their paths from the top
	Unknown  string   // why the work cannot be determined; "" if it is known
}

// LookPending determines what there is to consolidate, and changes nothing. It uses the options
// Replica, Dir and Except. If the team's files cannot be determined, only branches are known.
func LookPending(ctx context.Context, o Options) (p Pending, err error) {
	procs, err := proc.Open("")
	if err != nil {
		return p, err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	t := o.Replica.Team()
	r, err := open(ctx, procs, t.Dir)
	if err != nil || r.top == "" {
		return p, err
	}
	head, err := r.head(ctx)
	if err != nil {
		return p, err
	}
	if head != "" {
		if err := host.Arrive(ctx, o.Replica, procs, ""); err != nil {
			p.Unknown = err.Error()
			return p, nil
		}
		if p.Branches, _, err = host.Waiting(ctx, o.Replica, procs); err != nil {
			return p, err
		}
	}
	p.Files, err = r.files(ctx, o, t)
	return p, err
}

// files returns the files that a consolidation of the team would commit, and those that it would
// ask about. If they cannot be determined, it returns none.
func (r *repository) files(ctx context.Context, o Options, t team.Team) ([]string, error) {
	if t.Base.Unknown != "" || t.Base.Top != r.top {
		return nil, nil
	}
	w := &work{Options: o.within(), repo: r}
	s, err := w.selected(ctx, team.Consolidation{})
	if team.CodeOf(err) != "" { // a git operation is in progress
		err = nil
	}
	return append(s.ours, s.both...), err
}

// Complete reports whether the team is complete without a consolidation, so that its work in the
// shared directory may not be committed.
func Complete(t team.Team) bool {
	return t.Status == team.TeamComplete && !t.CleanedUp && t.Consolidation.Step != team.Done && t.Observed == "" &&
		t.Base.Top != ""
}

// Uncommitted returns the files of a team that is [Complete] which are not committed, by their
// paths from the top. It leaves out cadre's report on the team. It returns none for other teams,
// and if the files cannot be determined. It uses the options Replica, Dir, Except and Foreign.
// trees shares what git says of a work tree with other calls; nil for no other call.
func Uncommitted(ctx context.Context, o Options, trees Trees) ([]string, error) {
	t := o.Replica.Team()
	if !Complete(t) {
		return nil, nil
	}
	procs, err := proc.Open("")
	if err != nil {
		return nil, err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	r, err := trees.open(ctx, procs, t.Dir)
	if err != nil || r.top == "" {
		return nil, err
	}
	r.Runner = r.With("GIT_OPTIONAL_LOCKS=0") // git status writes the index otherwise
	files, err := r.files(ctx, o, t)
	report := worktree.From(t.Base.Top, t.Report)
	return slices.DeleteFunc(files, func(path string) bool { return path == report }), err
}

// Trees has what git said of work trees, by the directories of their teams. Calls of [Uncommitted]
// that come one soon after the other share it, so that git is asked once for a work tree. It
// belongs to one goroutine.
type Trees map[string]*answers

// answers is what git said of the work tree of a directory.
type answers struct {
	repository repository
	status     []byte // nil before git was asked
}

// open is the function open, with the answers that are known already.
func (t Trees) open(ctx context.Context, procs *proc.Register, dir string) (*repository, error) {
	if known := t[dir]; known != nil {
		r := known.repository
		r.said, r.Procs = known, procs
		return &r, nil
	}
	r, err := open(ctx, procs, dir)
	if err == nil && t != nil {
		t[dir] = &answers{repository: *r}
		r.said = t[dir]
	}
	return r, err
}
