package transfer

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"cadre/internal/git/checkpoint"
	"cadre/internal/git/project"
	"cadre/internal/host"
	"cadre/internal/journal/store"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/layout"
	"cadre/internal/liveness/leader"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// PullOptions configure a pull.
type PullOptions struct {
	Options
	Remote string // name of the remote; "" for git's default remote for a push
	Theirs bool   // of two histories, the remote's continues
}

// Pulled is the result of a pull.
type Pulled struct {
	Remote  checkpoint.Remote
	There   checkpoint.Found
	Arrived *Arrived // nil if the local team has everything already
	Aside   string   // where the former local copy is now; "" if there was none
	// Released reports that there was nothing new, and that this machine has released the team.
	Released bool
}

// Pull fetches the branch of the team. If the remote has records that the local team lacks, Pull
// restores the team from it. A team that is running here is not touched. With two histories, the
// error is a [*checkpoint.ForkError].
func Pull(ctx context.Context, o PullOptions) (*Pulled, error) {
	procs, err := proc.Open("")
	if err != nil {
		return nil, err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	folder, err := o.local()
	if team.CodeOf(err) == team.NotFound {
		return o.first(ctx, procs)
	}
	if err != nil {
		return nil, err
	}
	var pulled *Pulled
	var replace bool
	err = o.openedIn(ctx, folder, func(rep *replica.Replica, folder string) error {
		var err error
		pulled, replace, err = o.compare(ctx, procs, rep, folder)
		return err
	})
	if err != nil || !replace {
		return pulled, err
	}
	o.all, o.clear = true, func(ctx context.Context) error {
		lock, err := o.idle(ctx, folder)
		if err != nil {
			return err
		}
		defer lock.Release()
		if err := o.clearNested(ctx, folder); err != nil { // first, because the team names them
			return err
		}
		pulled.Aside, err = o.Home.SetAside(folder, layout.Replaced)
		return err
	}
	o.At = pulled.There.Commit
	pulled.Arrived, err = o.adopt(ctx, procs, pulled.There)
	return pulled, err
}

// clearNested moves the copies of the teams in the team away.
func (o *PullOptions) clearNested(ctx context.Context, folder string) error {
	var below []string
	err := o.openedIn(ctx, folder, func(rep *replica.Replica, _ string) (err error) {
		below, err = o.inHome(ctx, rep.Team())
		return err
	})
	if err != nil {
		return err
	}
	for _, its := range below {
		if host.Hosted(ctx, filestore.Team(its)) {
			return team.Refuse(team.NotReady, "team %s is running here: a host runs sessions of a team in it", o.Team).With(
				team.Hint{Action: team.ActShowAlive, Team: o.Team})
		}
		if err := o.setAside([]string{its}, layout.Replaced); err != nil {
			return err
		}
		o.did("cleared " + layout.NameOf(filepath.Base(its)))
	}
	return nil
}

// local returns the folder of the local team: the one of the project in which the caller works. If
// the caller neither named a directory nor works in a repository, it is the only team of that name.
func (o *PullOptions) local() (string, error) {
	folder, err := o.Home.Own(o.Team)
	if _, elsewhere := errors.AsType[*layout.ElsewhereError](err); elsewhere && !o.Named {
		if _, repository := project.Of(o.Dir); !repository {
			return o.Home.Folder(o.Team)
		}
	}
	return folder, err
}

// first pulls a team that does not exist here.
func (o *PullOptions) first(ctx context.Context, procs *proc.Register) (*Pulled, error) {
	store, remote, err := o.open(ctx, procs, o.Dir)
	if err != nil {
		return nil, err
	}
	p := &Pulled{Remote: remote}
	if p.There, err = store.Fetch(ctx, remote); err != nil {
		return nil, err
	}
	o.did("fetched")
	found, err := store.Found(ctx)
	if err != nil {
		return nil, err
	}
	from := p.There
	if !o.Theirs {
		if from, err = store.Newest(ctx, found); err != nil {
			return nil, err
		}
	}
	p.Arrived, err = o.adopt(ctx, procs, from)
	return p, err
}

// adopt restores the team from a checkpoint. It leaves other histories behind.
func (o *PullOptions) adopt(ctx context.Context, procs *proc.Register, from checkpoint.Found) (*Arrived, error) {
	o.At = ""
	store, err := o.store(ctx, procs, o.Dir)
	if err != nil {
		return nil, err
	}
	if found, err := store.Found(ctx); err != nil {
		return nil, err
	} else if newest, err := store.Newest(ctx, found); err != nil || newest.Commit != from.Commit {
		o.At = from.Commit
	}
	return Adopt(ctx, o.Options)
}

func (o *PullOptions) open(ctx context.Context, procs *proc.Register,
	dir string) (*checkpoint.Store, checkpoint.Remote, error) {
	store, err := o.store(ctx, procs, dir)
	if err != nil {
		return nil, checkpoint.Remote{}, err
	}
	if store.Notice() != "" {
		return nil, checkpoint.Remote{}, fmt.Errorf("%s %w", dir, ErrNoRepository)
	}
	remote, err := store.Remote(ctx, o.Remote)
	return store, remote, err
}

// idle makes sure that no process runs the team here, and takes its lead lock.
func (o *PullOptions) idle(ctx context.Context, folder string) (store.Lease, error) {
	if host.Hosted(ctx, filestore.Team(folder)) {
		return nil, team.Refuse(team.NotReady, "team %s is running here: a host runs its sessions", o.Team).With(
			team.Hint{Action: team.ActRelease, Team: o.Team}, team.Hint{Action: team.ActShowAlive, Team: o.Team})
	}
	lock, err := leader.Claim(ctx, filestore.Team(folder))
	if errors.Is(err, store.ErrHeld) {
		return nil, team.Refuse(team.NotReady, "team %s is running here: a process leads it. End that process first",
			o.Team).With(team.Hint{Action: team.ActShowAlive, Team: o.Team})
	}
	return lock, err
}

// compare decides whether the remote's team replaces the local one.
func (o *PullOptions) compare(ctx context.Context, procs *proc.Register, rep *replica.Replica,
	folder string) (*Pulled, bool, error) {
	t := rep.Team()
	if err := t.CheckOurs(); err != nil {
		return nil, false, err
	}
	lock, err := o.idle(ctx, folder)
	if err != nil {
		return nil, false, err
	}
	defer lock.Release()
	if !o.Named {
		o.Dir = t.Dir
	}
	store, remote, err := o.open(ctx, procs, o.Dir)
	if err != nil {
		return nil, false, err
	}
	p := &Pulled{Remote: remote}
	if p.There, err = store.Fetch(ctx, remote); err != nil {
		return nil, false, err
	}
	o.did("fetched")
	found, err := store.Found(ctx)
	if err != nil {
		return nil, false, err
	}
	c, err := compare(ctx, store, rep, folder, p.There, found)
	if err != nil {
		return nil, false, err
	}
	relation, common, history := c.toPull(), c.common, t.Restored.ID
	var ours checkpoint.Side
	rep.View(func(s *team.State) { ours = side(s, common) })
	over := t.Status == team.TeamComplete || t.Status == team.TeamAborted
	switch {
	case relation == checkpoint.Behind:
		p.Released = t.Released != team.Released{}
		return p, false, nil
	case relation == checkpoint.Another && !over:
		return nil, false, team.Refuse(team.Taken, "team %s is %s, and %s has another team of that name; remove "+
			"the local one first", o.Team, t.Status, remote.Name).With(team.Hint{Action: team.ActCleanUp, Team: o.Team})
	}
	if relation == checkpoint.Forked && !o.Theirs {
		for _, f := range found { // decided earlier, if the team's branch contains it
			if f.Own && f.History == history {
				if in, err := store.Leads(ctx, p.There.Commit, f.Commit); in || err != nil {
					return p, false, err
				}
			}
		}
		return nil, false, &checkpoint.ForkError{Team: o.Team, Since: common, Sides: []checkpoint.Side{ours,
			p.There.Side(common)}}
	}
	if err := o.keep(ctx, procs, rep, folder, over); err != nil {
		return nil, false, err
	}
	return p, true, nil
}

// keep commits the leftover work in worktrees to their branches, and makes a last checkpoint of the
// local copy.
func (o *PullOptions) keep(ctx context.Context, procs *proc.Register, rep *replica.Replica, folder string,
	over bool) error {
	keep := func(rep *replica.Replica, folder string, over bool) error {
		t := rep.Team()
		if t.CheckHere() == nil && !over {
			if err := host.RecordWork(ctx, rep, procs, folder, "", o.tell); err != nil {
				return err
			}
		}
		return host.KeepWork(ctx, folder, t.Dir, o.tell)
	}
	t := rep.Team()
	err := o.eachInHome(ctx, t, func(rep *replica.Replica, folder string) error {
		of := rep.Team()
		return keep(rep, folder, of.Ended())
	})
	if err == nil {
		err = keep(rep, folder, over)
	}
	if err != nil {
		return err
	}
	o.did("kept")
	if _, err := host.Checkpoint(ctx, rep, folder); err != nil && !errors.Is(err, checkpoint.ErrForked) &&
		!errors.Is(err, checkpoint.ErrTaken) {
		return err
	}
	o.did("checkpoint")
	return nil
}
