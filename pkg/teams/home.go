package teams

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"time"

	"cadre/internal/engine"
	"cadre/internal/engine/transfer"
	"cadre/internal/engine/upkeep"
	"cadre/internal/inspect/attention"
	"cadre/internal/inspect/catalog"
	"cadre/internal/team"
)

// Overview is a team in the list of teams.
type Overview struct {
	Team        TeamInfo
	Hosted      bool // a living process runs its sessions
	Led         bool // a process that is alive leads it
	Dormant     bool // a process should run it, and none is alive
	Interrupted bool // a consolidation was interrupted
	Observed    bool // another program runs it, and cadre only observes it
	Pending     int  // tasks
	InProgress  int
	Completed   int
	Teammates   int // that have not ended
	Offline     int // of them
	Attention   []Attention
	// Err is the reason why the team cannot be read; then only Team.Name is known.
	Err error
}

// Teams lists the teams of the home, or of the memory, by name. An unreadable team is listed with
// its error.
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

// see opens a team for reading while the callback runs.
func (m *Manager) see(ctx context.Context, name string, see func(*engine.Team) error) error {
	of, err := m.engine.Look(ctx, name)
	if err != nil {
		return err
	}
	return errors.Join(see(of), of.Close())
}

func (m *Manager) overview(ctx context.Context, of *engine.Team, one *Overview) error {
	outside, err := of.Looker().Look(ctx, time.Now())
	if err != nil {
		return err
	}
	of.View(func(s *team.State) {
		*one = overviewOf(catalog.Summarize(m.engine.Home, s, outside))
		one.Team = infoOf(s.Team())
	})
	return nil
}

// overviewOf returns the overview with what it says of the team itself.
func overviewOf(o catalog.Overview) Overview {
	info := TeamInfo{ID: o.ID, Name: o.Name, Status: TeamStatus(o.Status), Goal: o.Goal, Dir: o.Dir, Lead: o.Lead,
		Delegate: o.Delegate, Exhausted: BudgetKind(o.Exhausted), Report: o.Report, Metadata: maps.Clone(o.Metadata),
		Usage: Usage(o.Usage), CreatedAt: clock(o.CreatedAt), UpdatedAt: clock(o.UpdatedAt)}
	return Overview{Team: info, Hosted: o.Hosted, Led: o.Led, Dormant: o.Dormant, Interrupted: o.Interrupted,
		Observed: o.Observed != "", Pending: o.Tasks["pending"], InProgress: o.Tasks["in_progress"],
		Completed: o.Tasks["completed"], Teammates: o.Teammates, Offline: o.Offline,
		Attention: attentionOf(o.Name, o.Attention)}
}

// View opens a team for reading while see runs. It starts no session, runs no hook, and changes
// nothing. It also works for observed teams and for teams that other processes run. The name of an
// archived team is its id. View returns the error of see, or ErrNotFound if the team does not
// exist.
func (m *Manager) View(ctx context.Context, name string, see func(*View) error) error {
	if err := m.pass("Manager.View"); err != nil {
		return err
	}
	return public(m.see(ctx, name, func(of *engine.Team) error { return see(viewOf(of)) }))
}

// Attention returns the items that wait for a person in all teams of the home, team by team. A
// damaged team is an item. If other teams cannot be examined, the error names them, and the list
// has the items of the rest.
func (m *Manager) Attention(ctx context.Context) ([]Attention, error) {
	return m.follow("Manager.Attention", func(f *attention.Follower) ([]attention.Item, error) { return f.List(ctx) })
}

// AwaitAttention waits until an item waits for the user in any team of the home, and returns the
// list at that time.
func (m *Manager) AwaitAttention(ctx context.Context) ([]Attention, error) {
	return m.follow("Manager.AwaitAttention", func(f *attention.Follower) ([]attention.Item, error) {
		return f.Wait(ctx)
	})
}

func (m *Manager) follow(entry string, list func(*attention.Follower) ([]attention.Item, error)) ([]Attention, error) {
	if err := m.pass(entry); err != nil {
		return nil, err
	}
	if err := m.onDisk("has no files to examine; call Team.Attention"); err != nil {
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

// onDisk returns an error if the teams are in memory. instead ends its text.
func (m *Manager) onDisk(instead string) error {
	if m.engine.Memory != nil {
		return refuse(ErrInvalid, "a team in memory "+instead)
	}
	return nil
}

// CheckpointInfo describes the last checkpoint of a team on a branch of a repository.
type CheckpointInfo struct {
	Team      string // its name
	ID        string // of the team; "" if the checkpoint cannot be read
	Branch    string // as git names it
	Commit    string
	Status    TeamStatus
	Completed int // tasks
	Open      int // tasks
	UpdatedAt time.Time
	Here      bool   // the same team is in this home
	Unread    string // why the checkpoint cannot be read; "" if it can
}

// Checkpoints lists the last checkpoint of each team in the repository of the directory, on its own
// branches and on fetched ones. It lists none outside a repository.
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
		all = append(all, checkpointInfoOf(c))
	}
	return all, nil
}

func checkpointInfoOf(c catalog.Checkpoint) CheckpointInfo {
	return CheckpointInfo{Team: c.Name, ID: c.Team, Branch: c.Branch, Commit: c.Commit, Status: TeamStatus(c.Status),
		Completed: c.Completed, Open: c.Pending + c.InProgress, UpdatedAt: clock(c.UpdatedAt), Here: c.Here,
		Unread: c.Why}
}

// dir returns the given directory, or that of the options.
func (m *Manager) dir(given string) (string, error) {
	if given == "" {
		return m.opts.Dir, nil
	}
	return filepath.Abs(given)
}

// RestoreOptions configure how a team is restored.
type RestoreOptions struct {
	Dir string // in the repository with the checkpoints; "" for Options.Dir
	At  string // the branch, if there are two histories: cadre/TEAM or REMOTE/cadre/TEAM
	// Checks repeats the checks whose commands were redacted in the checkpoint.
	Checks []Check
}

// RestoreTeam restores a team with its work from its last checkpoint, as cadre resume --from-git
// does before it continues. It is for a team whose folder was lost or is damaged; a damaged folder
// is set aside. It starts no session; call [Manager.ResumeTeam] next. It returns ErrNameTaken if
// the team exists, ErrNotFound without a checkpoint, and ErrForked if there are two histories and
// At selects neither.
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

// Health is the result of a check of a team's files.
type Health struct {
	Healthy  bool
	Records  int64    // the history is complete up to this record
	Problems []string // with file and line
	Notes    []string
	Mended   bool
	Hole     string   // records that are lost, while their effect is still present; "" for none
	Lost     string   // records that are lost with their effect; "" for none
	Aside    []string // damaged files that were set aside
}

// CheckTeam reads all files of a team, as cadre fsck does, and reports damage. It does not change
// the team. It rewrites the projection in Claude Code's folders if that differs.
func (m *Manager) CheckTeam(ctx context.Context, name string) (Health, error) {
	h, _, err := m.examine(ctx, "Manager.CheckTeam", name)
	return healthOf(h), public(err)
}

// MendTeam does what CheckTeam does, and repairs a damaged team with as little loss as possible. It
// returns ErrNotReady while a host runs the team, and ErrFinished if nothing can be repaired.
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
	x = upkeep.FileCheck{Home: m.engine.Home, Log: m.opts.log}
	h, err = x.Check(ctx, name)
	return h, x, err
}

func healthOf(h upkeep.Health) Health {
	return Health{Healthy: h.Healthy, Records: h.Last, Problems: h.Problems, Notes: h.Notes, Mended: h.Mended,
		Hole: h.Hole, Lost: h.Lost, Aside: h.Aside}
}

// RemoveOptions configure how a team is removed.
type RemoveOptions struct {
	Force    bool // end running teammates, and remove branches whose commits would be lost
	Branches bool // also remove its branches
}

// Branch is a branch of a team.
type Branch struct {
	Name    string
	Commit  string
	Removed bool
	// Lost are the commits that no other branch has. While there are any, only a forced removal
	// removes the branch.
	Lost []string
}

// RemoveTeam removes a team of the home and everything that belongs to it, as cadre cleanup does,
// and returns its branches. A name identifies only a team of the project of Options.Dir. A team of
// another project, or an archived one, is removed by its id. It returns ErrNotReady while a
// teammate runs. It also returns ErrNotReady if branches stay because commits would be lost; then
// the team is removed, and the branches name these commits. A manager that has the team must clean
// it up first; see [Manager.Cleanup].
func (m *Manager) RemoveTeam(ctx context.Context, name string, o RemoveOptions) ([]Branch, error) {
	if err := m.pass("Manager.RemoveTeam"); err != nil {
		return nil, err
	}
	if err := m.onDisk("has no files to remove; call Manager.Cleanup"); err != nil {
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
		err = refuse(ErrNotReady, "team "+name+" is removed; branches stay, because they have commits that are in no "+
			"other branch")
	}
	return all, err
}
