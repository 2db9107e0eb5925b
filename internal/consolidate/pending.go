package consolidate

import (
	"context"

	"cadre/internal/host"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Pending is what a consolidation of the team would commit. The zero Pending is nothing.
type Pending struct {
	Branches []team.Branch
	Files    []string // of the team's, in the work tree, by their paths from the top
	Unknown  string   // why nobody can tell what there is; "" where it is known
}

// LookPending looks at what there is to be consolidated, and touches nothing. Of the options it
// takes Replica, Dir and Except. Where nobody can tell what is the team's, only branches are known.
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
		if p.Branches, _, err = host.Waiting(ctx, o.Replica, procs); err != nil {
			return p, err
		}
	}
	if t.Base.Unknown != "" || t.Base.Top != r.top {
		return p, nil
	}
	w := &work{Options: o.within(), repo: r}
	s, err := w.selected(ctx, team.Consolidation{})
	p.Files = append(s.ours, s.both...)
	if team.CodeOf(err) != "" { // the person is in the middle of something
		err = nil
	}
	return p, err
}
