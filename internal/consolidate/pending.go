package consolidate

import (
	"context"

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
	if team.CodeOf(err) != "" { // a git operation is in progress
		err = nil
	}
	return p, err
}
