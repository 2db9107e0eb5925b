package teams

import (
	"context"
	"errors"
	"path/filepath"
	"time"

	"cadre/internal/engine"
	"cadre/internal/engine/upkeep"
	"cadre/internal/inspect"
	"cadre/internal/inspect/attention"
	"cadre/internal/inspect/catalog"
	"cadre/internal/team"
	"cadre/internal/transfer"
)

// Overview is a team in a list.
type Overview struct {
	Team        TeamInfo
	Hosted      bool // a living process runs its sessions
	Led         bool // a living process leads it
	Dormant     bool // no process of it is alive although one should be
	Interrupted bool // a consolidation was begun and no process is at it
	Observed    bool // somebody else runs it, and it is only observed
	Pending     int  // tasks
	InProgress  int
	Completed   int
	Teammates   int // that have not ended
	Offline     int // of them
	Attention   []Attention
	// Err says why the team cannot be read; then only Team.Name is known.
	Err error
}

// Teams lists the teams of the home, or of the memory, by their names. A team that cannot be read
// is in the list with its error.
func (m *Manager) Teams(ctx context.Context) ([]Overview, error) {
	if err := m.pass("Manager.Teams"); err != nil {
		return nil, err
	}
	names, err := m.names()
	if err != nil {
		return nil, public(err)
	}
	all := make([]Overview, 0, len(names))
	for _, name := range names {
		one := Overview{Team: TeamInfo{Name: name}}
		if err := m.see(ctx, name, func(of *engine.Team) error { return m.overview(ctx, of, &one) }); err != nil {
			one.Err = public(err)
		}
		all = append(all, one)
	}
	return all, nil
}

func (m *Manager) names() ([]string, error) {
	if m.engine.Memory != nil {
		return m.engine.Memory.Names(), nil
	}
	return m.engine.Home.Names()
}

// see opens a team for reading while see runs.
func (m *Manager) see(ctx context.Context, name string, see func(*engine.Team) error) error {
	of, err := m.engine.Look(ctx, name)
	if err != nil {
		return err
	}
	return errors.Join(see(of), of.Close())
}

func (m *Manager) overview(ctx context.Context, of *engine.Team, one *Overview) error {
	outside, err := inspect.Look(ctx, of.Replica, of.Dir, time.Now())
	if err != nil {
		return err
	}
	of.View(func(s *team.State) {
		o := catalog.Summarize(m.engine.Home, s, outside)
		*one = Overview{Team: infoOf(s.Team()), Hosted: o.Hosted, Led: o.Led, Dormant: o.Dormant,
			Interrupted: o.Interrupted, Observed: o.Observed != "", Pending: o.Tasks["pending"],
			InProgress: o.Tasks["in_progress"], Completed: o.Tasks["completed"], Teammates: o.Teammates,
			Offline: o.Offline, Attention: attentionOf(o.Name, o.Attention)}
	})
	return nil
}

// View opens a team for reading while see runs: no session is started, no hook is asked, and
// nothing is changed. Teams that are only observed, or that other processes run, can be viewed. Of
// an archived team the name is its id. It returns what see does, or ErrNotFound where there is no
// such team.
func (m *Manager) View(ctx context.Context, name string, see func(*View) error) error {
	if err := m.pass("Manager.View"); err != nil {
		return err
	}
	return public(m.see(ctx, name, func(of *engine.Team) error { return see(viewOf(of)) }))
}

// Attention returns what waits for a person in all teams of the home, team by team. A damaged team
// is an item. A team that cannot be examined for another reason is named by the error; the list has
// the others.
func (m *Manager) Attention(ctx context.Context) ([]Attention, error) {
	return m.follow("Manager.Attention", func(f *attention.Follower) ([]attention.Item, error) { return f.List(ctx) })
}

// AwaitAttention waits until something waits for the user in some team of the home, and returns the
// list as it is then.
func (m *Manager) AwaitAttention(ctx context.Context) ([]Attention, error) {
	return m.follow("Manager.AwaitAttention", func(f *attention.Follower) ([]attention.Item, error) {
		return f.Wait(ctx)
	})
}

func (m *Manager) follow(entry string, list func(*attention.Follower) ([]attention.Item, error)) ([]Attention, error) {
	if err := m.pass(entry); err != nil {
		return nil, err
	}
	if err := m.onDisk("is looked at with Team.Attention"); err != nil {
		return nil, err
	}
	f := attention.Follower{Home: m.engine.Home, Log: m.opts.log}
	defer f.Close()
	items, err := list(&f)
	var all []Attention
	for _, i := range items {
		all = append(all, attentionOf(i.Team, []team.Item{i.Item})...)
	}
	return all, public(err)
}

// onDisk refuses what teams in memory have not.
func (m *Manager) onDisk(instead string) error {
	if m.engine.Memory != nil {
		return refuse(ErrInvalid, "a team in memory "+instead)
	}
	return nil
}

// CheckpointInfo is the last checkpoint of a team on a branch of a repository.
type CheckpointInfo struct {
	Team      string // its name
	ID        string // of the team; "" where the checkpoint cannot be read
	Branch    string // as git names it
	Commit    string
	Status    TeamStatus
	Completed int // tasks
	Open      int // tasks
	UpdatedAt time.Time
	Here      bool   // the very team is in this home
	Unread    string // why the checkpoint cannot be read; "" where it can
}

// Checkpoints lists the last checkpoints that the repository of the directory has of teams, on its
// own branches and on those that it has fetched. A directory in no repository has none.
func (m *Manager) Checkpoints(ctx context.Context, dir string) ([]CheckpointInfo, error) {
	if err := m.pass("Manager.Checkpoints"); err != nil {
		return nil, err
	}
	found, err := catalog.InRepository(ctx, m.engine.Home, dir, m.opts.log)
	if err != nil {
		return nil, public(err)
	}
	var all []CheckpointInfo
	for _, c := range found {
		all = append(all, CheckpointInfo{Team: c.Name, ID: c.Team, Branch: c.Branch, Commit: c.Commit,
			Status: TeamStatus(c.Status), Completed: c.Completed, Open: c.Pending + c.InProgress,
			UpdatedAt: clock(c.UpdatedAt), Here: c.Here, Unread: c.Why})
	}
	return all, nil
}

// dir is the directory that was given, or that of the options.
func (m *Manager) dir(given string) (string, error) {
	if given == "" {
		return m.opts.Dir, nil
	}
	return filepath.Abs(given)
}

// RestoreOptions say from where a team is restored.
type RestoreOptions struct {
	Dir string // in the repository with the checkpoints; "" for Options.Dir
	At  string // the branch, where there are two histories: cadre/TEAM or REMOTE/cadre/TEAM
	// Checks are those whose commands were redacted in the checkpoint, given again.
	Checks []Check
}

// RestoreTeam creates a team again from its last checkpoint, with its work, as cadre resume
// --from-git does before it continues: its folder was lost, or is damaged, and then it is set
// aside. No session is started: [Manager.ResumeTeam] does that. It is refused with ErrNameTaken
// where the team is there, with ErrNotFound without a checkpoint, and with ErrForked where there
// are two histories and At says of none.
func (m *Manager) RestoreTeam(ctx context.Context, name string, o RestoreOptions) (Pulled, error) {
	if err := m.pass("Manager.RestoreTeam"); err != nil {
		return Pulled{}, err
	}
	if err := m.onDisk("has no checkpoints"); err != nil {
		return Pulled{}, err
	}
	dir, err := m.dir(o.Dir)
	if err != nil {
		return Pulled{}, err
	}
	var p Pulled
	found, err := m.engine.Restore(ctx, transfer.Options{Team: name, Dir: dir, Named: o.Dir != "", At: o.At,
		Checks: checksOf(o.Checks), Log: func(text string) { p.Notices = append(p.Notices, text) }})
	if err != nil {
		return Pulled{}, moved(err)
	}
	p.arrived(found)
	return p, nil
}

// Health is what the files of a team were found to be.
type Health struct {
	Healthy  bool
	Records  int64    // the history is whole up to this record
	Problems []string // with file and line
	Notes    []string
	Mended   bool
	Hole     string   // records that are gone, while their effect is not; "" for none
	Lost     string   // records that are lost with their effect; "" for none
	Aside    []string // damaged files that were set aside
}

// CheckTeam reads everything of a team, as cadre fsck does, and says what is damaged. Nothing of the
// team is changed; what Claude Code's folders show of it is written again where it differs.
func (m *Manager) CheckTeam(ctx context.Context, name string) (Health, error) {
	h, _, err := m.examine(ctx, "Manager.CheckTeam", name)
	return healthOf(h), public(err)
}

// MendTeam is CheckTeam that makes a damaged team usable again, with as little loss as possible. It
// is refused with ErrNotReady while a host runs the team, and with ErrFinished where nothing can be
// mended.
func (m *Manager) MendTeam(ctx context.Context, name string) (Health, error) {
	h, x, err := m.examine(ctx, "Manager.MendTeam", name)
	if err == nil && !h.Healthy {
		err = x.Mend(ctx, &h)
	}
	return healthOf(h), public(err)
}

func (m *Manager) examine(ctx context.Context, entry, name string) (h upkeep.Health, x upkeep.FileCheck, err error) {
	if err := m.pass(entry); err != nil {
		return h, x, err
	}
	if err := m.onDisk("has no files"); err != nil {
		return h, x, err
	}
	x = upkeep.FileCheck{Home: m.engine.Home, Log: m.opts.log, Explain: error.Error}
	h, err = x.Check(ctx, name)
	return h, x, err
}

func healthOf(h upkeep.Health) Health {
	return Health{Healthy: h.Healthy, Records: h.Last, Problems: h.Problems, Notes: h.Notes, Mended: h.Mended,
		Hole: h.Hole, Lost: h.Lost, Aside: h.Aside}
}

// RemoveOptions say how a team is removed.
type RemoveOptions struct {
	Force    bool // end whoever still runs, and remove branches whose commits would be lost
	Branches bool // remove its branches, too
}

// Branch is a branch of a team.
type Branch struct {
	Name    string
	Commit  string
	Removed bool
	// Lost are the commits that are in no other branch: while there are any, the branch stays
	// unless its removal is forced.
	Lost []string
}

// RemoveTeam removes a team of the home with everything that belongs to it, as cadre cleanup does,
// and returns its branches. A name stands for a team of the project of Options.Dir alone; a team of
// another project, or an archived one, is removed by its id. It is refused with ErrNotReady while a teammate runs, and where
// branches stay because commits would be lost: then the team is removed, and the branches say which
// commits. A manager that has the team cleans it up first; see [Manager.Cleanup].
func (m *Manager) RemoveTeam(ctx context.Context, name string, o RemoveOptions) ([]Branch, error) {
	if err := m.pass("Manager.RemoveTeam"); err != nil {
		return nil, err
	}
	if err := m.onDisk("is removed with Manager.Cleanup"); err != nil {
		return nil, err
	}
	if has := m.Team(); has != nil && (has.name == name || has.View.id == name) {
		return nil, refuse(ErrNotReady, "this manager has team "+name+"; clean it up, or close the manager first")
	}
	removed, err := m.engine.RemoveTeam(ctx, name, engine.Removal{Actor: team.User, Force: o.Force,
		Branches: o.Branches})
	if err == nil && removed.Gone {
		err = team.Refuse(team.NotFound, "no team %s", name)
	}
	if err != nil {
		return nil, public(err)
	}
	var all []Branch
	for _, b := range removed.Branches {
		one := Branch{Name: b.Name, Commit: b.Commit, Removed: b.Removed}
		for _, lost := range b.Lost {
			one.Lost = append(one.Lost, lost.Commit)
		}
		all = append(all, one)
	}
	if len(removed.Lost()) > 0 {
		err = refuse(ErrNotReady, "team "+name+" is removed; branches stay, because commits of theirs are in no other "+
			"branch")
	}
	return all, err
}
