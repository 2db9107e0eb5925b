package transfer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"cadre/internal/consolidate"
	"cadre/internal/git/checkpoint"
	"cadre/internal/host"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// nested is a team in a team that is restored, as the checkpoint of its parent carries it.
type nested struct {
	*checkpoint.Restored
	store *checkpoint.Store
	link  team.Child // of its parent
	below []*nested

	folder string // where it will be
	dir    string // where it will work
	stays  bool   // the home has it, with all that the checkpoint has
	stale  string // folder of an older or damaged copy in the home; "" for none
}

// team returns the team as the checkpoint has it.
func (n *nested) team() team.Team { return n.State.Team() }

// nested reads the teams that a checkpoint carries, however deep. All of them can be restored, or
// none is.
func (o *Options) nested(ctx context.Context, of *checkpoint.Restored, store *checkpoint.Store) ([]*nested, error) {
	t := of.State.Team()
	if t.Depth > team.MostDepth {
		return nil, fmt.Errorf("team %s is nested %d deep, and teams can be nested at most %d deep", t.Name, t.Depth,
			team.MostDepth)
	}
	var all []*nested
	for _, c := range of.Nested {
		if c.Commit == "" {
			o.log("team %s in team %s is not in the checkpoint: %s", c.Name, t.Name, c.Why)
			continue
		}
		n, err := o.nestedAt(ctx, c, t, store)
		if err != nil {
			return nil, fmt.Errorf("team %s in team %s cannot be restored, so nothing is: %w", c.Name, t.Name, err)
		}
		all = append(all, n)
	}
	return all, nil
}

// nestedAt reads the checkpoint of one team in the team, and those of the teams in it.
func (o *Options) nestedAt(ctx context.Context, c checkpoint.Nested, of team.Team,
	store *checkpoint.Store) (*nested, error) {
	n := &nested{}
	var err error
	if n.store, err = store.Of(c); err != nil {
		return nil, err
	}
	if n.Restored, err = n.store.RestoreAt(ctx, c.Commit); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(of.Children, func(link team.Child) bool { return link.Team == c.Team })
	if t := n.team(); i < 0 || t.ID != c.Team || t.Parent.Team != of.ID || t.Depth != of.Depth+1 {
		return nil, &checkpoint.DamageError{Place: n.store.Place(),
			Reason: fmt.Sprintf("the commit %.12s is not of a team in team %s", c.Commit, of.Name)}
	}
	n.link = of.Children[i]
	n.below, err = o.nested(ctx, n.Restored, n.store)
	return n, err
}

// each calls do for the teams, each after the teams in it.
func each(all []*nested, do func(*nested) error) error {
	for _, n := range all {
		if err := each(n.below, do); err != nil {
			return err
		}
		if err := do(n); err != nil {
			return err
		}
	}
	return nil
}

// place decides where each team will be: those in a team that works in that directory and has that
// folder. It refuses a name or a branch that another team has. It changes nothing. replaced says
// that all copies in the home are moved away first.
func (o *Options) place(ctx context.Context, all []*nested, folder, dir string, replaced bool) error {
	for _, n := range all {
		t := n.team()
		if n.dir = dir; t.Parent.Worktree {
			n.dir = host.Place(team.Team{}, folder, t.Parent.Member).Dir
		}
		if err := n.store.Free(ctx, t.ID); err != nil {
			return fmt.Errorf("team %s, which does a task of team %s, cannot be restored: %w", t.Name, t.Parent.Name, err)
		}
		t.Dir = dir // a worktree that does not exist is in no project
		if err := o.home(ctx, n, t, replaced); err != nil {
			return fmt.Errorf("team %s, which does a task of team %s, cannot be restored: %w", t.Name, t.Parent.Name, err)
		}
		if err := o.place(ctx, n.below, n.folder, n.dir, replaced); err != nil {
			return err
		}
	}
	return nil
}

// home decides the folder of a team in a team, and what happens to a copy that the home has. A copy
// with all that the checkpoint has stays: a killed restoration left it, or only the folder of its
// parent was lost.
func (o *Options) home(ctx context.Context, n *nested, t team.Team, replaced bool) (err error) {
	if n.folder = o.Home.Has(t.ID); n.folder == "" {
		if n.stale = o.unreadable(t); n.stale == "" || replaced {
			n.folder, err = o.Home.Vacant(t)
			return err
		}
		n.folder = n.stale
		return nil
	}
	if host.Hosted(ctx, filestore.Team(n.folder)) {
		return team.Refuse(team.NotReady, "team %s is running here: a host runs its sessions", t.Name).
			With(team.Hint{Action: team.ActShowAlive, Team: t.ID})
	}
	if replaced {
		return nil
	}
	found := n.found(ctx)
	copied := *o // openedIn changes it
	err = copied.openedIn(ctx, n.folder, func(rep *replica.Replica, _ string) error {
		rep.View(func(s *team.State) {
			relation, _ := found[0].Compare(s, found)
			n.stays = relation == checkpoint.Behind && s.Team().Dir == n.dir
		})
		return nil
	})
	if err != nil && ctx.Err() != nil {
		return err
	}
	if !n.stays {
		n.stale = n.folder
	}
	return nil
}

// unreadable returns the folder in the home of a team of that name that cannot be read, and so does
// not tell whose it is; "" for none.
func (o *Options) unreadable(t team.Team) string {
	folder, err := o.Home.In(t.Dir).Own(t.Name)
	if err != nil {
		return ""
	}
	j, err := o.Home.OpenFolder(folder, nil)
	if err == nil {
		j.Close()
		return ""
	}
	return folder
}

// found returns the checkpoint that the team is restored from, and then all others of it.
func (n *nested) found(ctx context.Context) []checkpoint.Found {
	its, err := n.store.At(ctx, n.Commit)
	if err != nil {
		return []checkpoint.Found{{Checkpoint: n.Checkpoint, Work: n.Work, Before: n.Before}}
	}
	others, _ := n.store.Found(ctx) // a damaged one shows nothing
	return append([]checkpoint.Found{its}, others...)
}

// carryOver adds the uncommitted work of teams in worktrees to the branches of their members, as a
// commit: the worktrees are made again from these branches.
func carryOver(ctx context.Context, store *checkpoint.Store, r *checkpoint.Restored, below []*nested) error {
	for _, n := range below {
		t, shared := n.team(), n.Work.Shared
		_, err := os.Lstat(n.dir)
		if !t.Parent.Worktree || shared == "" || n.link.Over || err == nil {
			continue
		}
		i := slices.IndexFunc(r.Work.Branches, func(b checkpoint.Tip) bool { return b.Name == n.branch() })
		if i < 0 {
			continue
		}
		if on, err := store.Leads(ctx, r.Work.Branches[i].Commit, shared); err != nil {
			return err
		} else if on {
			r.Work.Branches = slices.Clone(r.Work.Branches)
			r.Work.Branches[i].Commit = shared
		}
	}
	return nil
}

// branch returns the branch of the member whose worktree the team works in; "" for none.
func (n *nested) branch() string {
	p := n.team().Parent
	if !p.Worktree {
		return ""
	}
	return team.BranchOf(p.Name, p.Member)
}

// bringNested restores the branches of the teams in a team, and returns the commands that begin
// their histories, each after those of the teams in it. outer puts the work of the team that they
// are in, and base is the project there without the work of the tree. What is missing of their work
// is added to missing, because their work is that of their parent's task.
func (o *Options) bringNested(ctx context.Context, outer *putting, all []*nested, base *team.Base, moved []team.Moved,
	missing *[]team.Missing) (begin []layout.Beginning, err error) {
	for _, n := range all {
		p, its := outer.within(ctx, n, base)
		lost, err := p.bringBranches(ctx, n)
		if err != nil {
			return nil, err
		}
		t := n.team()
		o.did("branches of " + t.Name)
		around := append([]team.Moved{{From: t.Base.Top, To: p.top}, {From: t.Dir, To: n.dir}}, moved...)
		below, err := o.bringNested(ctx, p, n.below, its, around, &lost)
		if err != nil {
			return nil, err
		}
		if begin = append(begin, below...); !n.stays {
			begin = append(begin, layout.Beginning{Name: t.Name,
				Commands: []team.Command{n.command(o.Checks, its, moved)}})
		}
		*missing = append(*missing, n.lost(lost, outer)...)
	}
	return begin, nil
}

// bringBranches restores the branches of a team in a team, and returns what is missing of its work.
// The branches of one that stays are as they should be.
func (p *putting) bringBranches(ctx context.Context, n *nested) (missing []team.Missing, err error) {
	if n.stays {
		return nil, nil
	}
	if err := n.store.Rejoin(ctx, n.Restored); err != nil {
		return nil, err
	}
	if err := carryOver(ctx, n.store, n.Restored, n.below); err != nil {
		return nil, err
	}
	if p.branches, err = n.store.Branches(ctx, n.Restored); err != nil {
		return nil, err
	}
	return p.missing(ctx)
}

// command returns the command that begins the history of the team.
func (n *nested) command(checks []team.Check, base *team.Base, moved []team.Moved) team.Command {
	t, where := n.team(), n.dir
	if where == t.Dir {
		where = ""
	}
	c := n.Command(replica.NewID(), replica.Now(), where, checksOf(checks, t)...)
	body := c.Body.(*team.RestoreTeam)
	body.Base, body.Moved = base, moved
	return c
}

// checksOf returns the checks that the team has.
func checksOf(checks []team.Check, of team.Team) []team.Check {
	return slices.DeleteFunc(slices.Clone(checks), func(c team.Check) bool {
		return !slices.ContainsFunc(of.Checks, func(its team.Check) bool { return its.Name == c.Name })
	})
}

// lost returns the missing work of the team as missing work of the task that it does. For a team
// that is over it returns none: its work became the work of the task, which has a check of its own.
func (n *nested) lost(its []team.Missing, outer *putting) (all []team.Missing) {
	if n.link.Over {
		return nil
	}
	t := n.team()
	for _, m := range its {
		m.What = fmt.Sprintf("task %s of team %s: %s", n.State.Called(m.Task), t.Name, m.What)
		if m.Task = n.link.Task; t.Parent.Worktree { // the path is one in the worktree
			m.Path, m.Object = "", ""
		}
		all = append(all, m)
	}
	for _, b := range outer.branches {
		if b.Name == n.branch() {
			all = append(all, team.Missing{Task: n.link.Task, Branch: b.Name, Commit: b.Commit,
				What: outer.onBranch(b.Name, b.Commit)})
		}
	}
	return all
}

// within returns what puts the work of a team in the team, and the project there without the work
// of the tree. In the directory of its parent, its work is the parent's, which was put there. In a
// worktree, which is made when it continues, it is on the branch of the member.
func (p *putting) within(ctx context.Context, n *nested, base *team.Base) (*putting, *team.Base) {
	its := *p.Options
	its.Team = n.team().Name
	in := &putting{Options: &its, procs: p.procs, store: n.store, r: n.Restored, work: p.work, dir: p.dir, head: p.head,
		top: p.top, same: p.same, lacks: p.lacks, branch: n.branch()}
	if in.branch == "" {
		in.branch = p.branch
		return in, base
	}
	in.work, in.top, in.lacks = n.Work, n.dir, nil
	_, top, err := consolidate.Head(ctx, p.procs, n.dir) // it may be there still, where only a folder was lost
	in.same = err == nil && top == n.dir && n.store.SamePlace(n.Work) && n.Work.Top == top
	was := n.team().Base
	if was.Top == n.dir || was.Top == "" {
		return in, nil
	}
	was.Top = n.dir
	return in, &was
}

// inHome lists the folders of the teams in the team that the home has, each after those of the
// teams in it.
func (o *Options) inHome(ctx context.Context, of team.Team) (folders []string, err error) {
	for _, c := range of.Children {
		folder := o.Home.Has(c.Team)
		if folder == "" {
			continue
		}
		copied := *o
		err := copied.openedIn(ctx, folder, func(rep *replica.Replica, _ string) error {
			below, err := copied.inHome(ctx, rep.Team())
			folders = append(folders, below...)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("team %s: %w", c.Name, err)
		}
		folders = append(folders, folder)
	}
	return folders, nil
}

// eachInHome calls do with the teams in the team that are in the home, each after the teams in it.
func (o *Options) eachInHome(ctx context.Context, of team.Team,
	do func(rep *replica.Replica, folder string) error) error {
	folders, err := o.inHome(ctx, of)
	if err != nil {
		return err
	}
	for _, folder := range folders {
		copied := *o
		if err := copied.openedIn(ctx, folder, do); err != nil {
			return err
		}
	}
	return nil
}

// compared is what a checkpoint and the local team have of each other.
type compared struct {
	relation    checkpoint.Relation
	common      int64 // records of the outermost team
	more, lacks bool  // the local tree has records that the checkpoint does not have, and the other way round
	absent      bool  // the checkpoint carries a team that the home does not have
}

// toPull returns the relation for a pull, which brings the teams in the team that the home does not
// have: a killed pull moved them away.
func (c compared) toPull() checkpoint.Relation {
	switch {
	case !c.absent || c.relation != checkpoint.Behind:
		return c.relation
	case c.more:
		return checkpoint.Forked
	}
	return checkpoint.Ahead
}

// compare relates a checkpoint to the local team, with the teams in it: where one of them has
// records that the checkpoint lacks, and another one lacks some, the tree has two histories. So the
// choice between them is made once, for the whole tree.
func compare(ctx context.Context, store *checkpoint.Store, rep *replica.Replica, folder string, f checkpoint.Found,
	found []checkpoint.Found) (c compared, err error) {
	rep.View(func(s *team.State) {
		c.relation, c.common = f.Compare(s, found)
		c.more, c.lacks = s.Position() > c.common, f.Seq > c.common
	})
	if c.relation == checkpoint.Another {
		return c, nil
	}
	home := layout.Of(folder)
	for _, link := range rep.Team().Children {
		i := slices.IndexFunc(f.Nested, func(n checkpoint.Nested) bool { return n.Team == link.Team && n.Commit != "" })
		its := home.Has(link.Team)
		c.absent = c.absent || i >= 0 && its == ""
		if link.Over || i < 0 || its == "" {
			continue
		}
		inner, err := compareNested(ctx, store, home, its, f.Nested[i])
		if damage := (*checkpoint.DamageError)(nil); errors.As(err, &damage) { // it shows no other history
			continue
		}
		if err != nil {
			return c, fmt.Errorf("team %s: %w", link.Name, err)
		}
		c.more, c.lacks, c.absent = c.more || inner.more, c.lacks || inner.lacks, c.absent || inner.absent
	}
	switch {
	case !c.lacks:
		c.relation = checkpoint.Behind
	case c.more:
		c.relation = checkpoint.Forked
	default:
		c.relation = checkpoint.Ahead
	}
	return c, nil
}

// compareNested relates a carried checkpoint to a local team in a team.
func compareNested(ctx context.Context, store *checkpoint.Store, home layout.Home, folder string,
	n checkpoint.Nested) (c compared, err error) {
	own, err := store.Of(n)
	if err != nil {
		return c, err
	}
	f, err := own.At(ctx, n.Commit)
	if err != nil {
		return c, err
	}
	found := []checkpoint.Found{f}
	if others, err := own.Found(ctx); err == nil { // they show where the local team comes from
		found = append(found, others...)
	}
	j, err := home.OpenFolder(folder, nil)
	if err != nil {
		return c, err
	}
	rep, err := replica.Open(ctx, j, replica.Options{})
	if err != nil {
		return c, err
	}
	defer rep.Close()
	return compare(ctx, own, rep, folder, f, found)
}

// releaseNested releases the teams in a team that this machine released. Their sessions have ended
// with its own.
func (o *Options) releaseNested(ctx context.Context, procs *proc.Register, of team.Team, machine string) error {
	return o.eachInHome(ctx, of, func(rep *replica.Replica, folder string) error {
		t := rep.Team()
		if t.Ended() || t.Released != (team.Released{}) {
			return nil
		}
		if err := host.Settle(ctx, filestore.Team(folder), filepath.Join(folder, "hosts"), t.Dir, o.tell); err != nil {
			return &team.Error{Code: team.NotReady, Text: fmt.Sprintf("a process of team %s is still running: %v; push again",
				t.Name, err)}
		}
		if err := host.RecordWork(ctx, rep, procs, folder, "", o.tell); err != nil {
			return err
		}
		var bodies []team.Body
		if t.LeadSession != "" && t.LeadSession != team.User {
			bodies = append(bodies, &team.AttachLead{Session: team.User, TakeOver: true})
		}
		for _, body := range append(bodies, &team.ReleaseTeam{Machine: machine}) {
			if _, err := rep.Do(ctx, team.Command{Actor: team.User, Body: body}); err != nil {
				return err
			}
		}
		o.did("released " + t.Name)
		return nil
	})
}

// consolidating refuses to release a tree in which a team is being consolidated.
func (o *Options) consolidating(ctx context.Context, of team.Team) error {
	return o.eachInHome(ctx, of, func(rep *replica.Replica, _ string) error {
		t := rep.Team()
		if !t.Consolidation.Open() {
			return nil
		}
		return team.Refuse(team.NotReady, "the consolidation of team %s, which does a task of team %s, is under way",
			t.Name, t.Parent.Name).With(t.Aim(team.Hint{Action: team.ActResume}))
	})
}

// TakeBack takes back the teams in a team that this machine released and that is taken back.
func TakeBack(ctx context.Context, home layout.Home, of team.Team, log func(string)) error {
	o := &Options{Home: home, Log: log}
	return o.eachInHome(ctx, of, func(rep *replica.Replica, _ string) error {
		t := rep.Team()
		if t.Released == (team.Released{}) {
			return nil
		}
		_, err := rep.Do(ctx, team.Command{Actor: team.User, Body: &team.TakeBackTeam{}})
		return err
	})
}

// setAside moves the copies of teams in a team away that are replaced, and logs where they are.
func (o *Options) setAside(folders []string, why string) error {
	var errs []error
	for _, folder := range folders {
		aside, err := o.Home.SetAside(folder, why)
		if err == nil {
			o.log("the earlier copy of team %s is kept in %s", layout.NameOf(filepath.Base(folder)), aside)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
