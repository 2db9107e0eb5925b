package projection

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"cadre/internal/journal"
	"cadre/internal/team"
)

// MarkFile is the usual name of a [Projector]'s Mark, in the team's folder. All processes that
// project a team must use the same file.
const MarkFile = "projected"

// Projector projects one team. It may be used from any goroutine. Its fields must not change after
// the first use.
type Projector struct {
	Claude string // Claude Code's folder, absolute
	Mark   string // file in the team's own folder that records and locks the projection
	// Beside says that another team of the home has the folders of the team's name. This team is
	// projected to the first free folders of the names NAME-2, NAME-3 and so on.
	Beside bool
	Log    func(string) // called when a folder was moved out of the place of a file; may be nil
	step   func(string)
}

// ErrForeign reports that a folder with the team's name is not ours. It is returned once for a
// team, and again only after the folder was free in between.
var ErrForeign = errors.New("it belongs to another program's team, or to a newer team of the same name")

// Project updates Claude Code's folders to s, which it only reads. It ignores an observed team,
// because that team's own program writes these folders. It waits until ctx ends for another process
// that is projecting. An error does not affect the team, and the next call tries again.
func (p *Projector) Project(ctx context.Context, j journal.Journal, s *team.State) error {
	t := s.Team()
	if t.ID == "" || t.Observed != "" {
		return nil
	}
	_, err := p.run(ctx, j, s, false)
	return err
}

// Withdraw removes what Project wrote of a team whose name is about to be given to another one. A
// later Project would write it again.
func (p *Projector) Withdraw(t team.Team) error {
	f := foldersOf(p.Claude, t, p.step)
	if m, ok := readMark(p.Mark); ok && m.Team == t.ID && m.Name != "" {
		f.use(m.Name)
	}
	return f.remove()
}

// Repair is like Project, but compares every file with the state. It corrects files that another
// program modified, removed or added, and returns their number.
func (p *Projector) Repair(ctx context.Context, j journal.Journal, s *team.State) (files int, err error) {
	if t := s.Team(); t.ID == "" || t.Observed != "" {
		return 0, nil
	}
	return p.run(ctx, j, s, true)
}

func (p *Projector) run(ctx context.Context, j journal.Journal, s *team.State, whole bool) (files int, err error) {
	t := s.Team()
	r := &run{Projector: p, ctx: ctx, journal: j, state: s, compareAll: whole, folders: foldersOf(p.Claude, t, p.step)}
	r.panes, r.panesSum = readPanes(filepath.Dir(p.Mark))
	err = r.project()
	for _, aside := range r.aside {
		if p.Log != nil {
			p.Log("a folder was in the place of a file of team " + t.Name +
				" in Claude Code's folders; it was moved to " + aside)
		}
	}
	if err != nil {
		return r.changed, fmt.Errorf("Claude Code's folders could not be updated for team %s; the team itself is "+
			"not affected: %w", t.Name, err)
	}
	return r.changed, nil
}

// run is one call of Project.
type run struct {
	*Projector
	*folders
	ctx        context.Context
	journal    journal.Journal
	state      *team.State
	compareAll bool // compare every file
	panes      map[string]Pane
	panesSum   string // checksum of the panes
}

// maxNumber bounds the names that are tried for a team beside another one.
const maxNumber = 99

// useMarkedName selects the folders that were projected to before.
func (r *run) useMarkedName(m mark) {
	switch {
	case m.Team == r.team.ID && m.Name != "":
		r.use(m.Name)
	case r.Beside && (m.Team != r.team.ID || m.Seq == 0):
		r.use(team.Numbered(r.team.Name, 2))
	}
}

// findFolders returns the owners of the folders, and the mark to continue from. A team beside
// another one leaves folders of another owner and takes the next ones.
func (r *run) findFolders(m mark) (now mark, roster, tasks holder, err error) {
	roster, tasks, err = r.holders(m.Seq > 0)
	for n := 2; r.name != r.team.Name && n <= maxNumber; n++ {
		if err != nil || (roster == free || roster == ours) && (tasks == free || tasks == ours) {
			break
		}
		m = mark{}
		r.use(team.Numbered(r.team.Name, n))
		roster, tasks, err = r.holders(false)
	}
	return m, roster, tasks, err
}

// removeAll removes the folders that are ours. Without a mark, a team beside another one may have
// been projected to any of the names.
func (r *run) removeAll(marked bool) error {
	err := r.remove()
	for n := 2; r.Beside && !marked && n <= maxNumber; n++ {
		r.use(team.Numbered(r.team.Name, n))
		if missing(r.roster) && missing(r.tasks) {
			break
		}
		err = errors.Join(err, r.remove())
	}
	return err
}

func (r *run) project() error {
	m, ok := readMark(r.Mark)
	if r.useMarkedName(m); ok {
		if done, err := r.done(m); done || err != nil {
			return err
		}
	}
	lock, err := lockMark(r.ctx, r.Mark)
	if errors.Is(err, fs.ErrNotExist) {
		if r.team.CleanedUp {
			return r.removeAll(false)
		}
		return journal.ErrGone
	}
	if err != nil {
		return err
	}
	defer lock.unlock()
	m, ok = lock.read()
	r.useMarkedName(m)
	if done, err := r.done(m); ok && (done || err != nil) {
		return err
	}
	if m.Team != r.team.ID || m.Seq > r.state.Seq() {
		m = mark{} // of another team, or of a history that no longer exists
	}
	if r.team.CleanedUp {
		if err := r.removeAll(m.Team == r.team.ID); err != nil {
			return err
		}
		return lock.write(mark{Team: r.team.ID, State: removed})
	}
	m, roster, tasks, err := r.findFolders(m)
	if err != nil {
		return err
	}
	if roster == others || tasks == others {
		return r.leaveForeign(lock, m, roster)
	}
	if err := r.write(m, roster, tasks); err != nil {
		return err
	}
	r.at("mark")
	last := mark{Team: r.team.ID, Seq: r.state.Seq(), Tasks: r.tasksChanged(), Panes: r.panesSum}
	if r.name != r.team.Name {
		last.Name = r.name
	}
	return lock.write(last)
}

// done reports whether the mark shows that nothing needs to be done for this state.
func (r *run) done(m mark) (bool, error) {
	switch {
	case m.Team != r.team.ID || m.State == foreign:
		return false, nil
	case m.State == removed:
		return true, nil
	case m.Seq == r.state.Seq():
		return !r.compareAll && m.Tasks == r.tasksChanged() && m.Panes == r.panesSum && r.intact(), nil
	case m.Seq > r.state.Seq():
		// Another process had a newer state. If the history has no such record, the mark belongs to
		// another history.
		for rec, err := range r.journal.Read(r.ctx, m.Seq-1) {
			return err == nil && rec.Seq == m.Seq, err
		}
	}
	return false, nil
}

// leaveForeign leaves the folders to their owner.
func (r *run) leaveForeign(lock *markLock, m mark, roster holder) error {
	if m.State == foreign || finished(r.team) {
		return nil // it was reported, or there is nothing left to show
	}
	path := r.tasks
	if roster == others {
		path = r.roster
	}
	if err := lock.write(mark{Team: r.team.ID, State: foreign}); err != nil {
		return err
	}
	return fmt.Errorf("%s was not changed: %w", path, ErrForeign)
}

// write updates the files from the state of the mark m to the present state.
func (r *run) write(m mark, roster, tasks holder) error {
	if finished(r.team) {
		if err := r.removeFolder(r.tasks, tasks != free); err != nil {
			return err
		}
		if roster == free && m.Seq > 0 {
			return nil // the folder of a team that has ended was removed by another program
		}
		return r.writeConfig()
	}
	c := &changes{all: true}
	if !r.compareAll && m.Seq > 0 && m.Tasks == r.tasksChanged() && roster == ours && tasks == ours {
		c = r.changesSince(m.Seq)
		if err := r.ctx.Err(); err != nil {
			return err
		}
	}
	if tasks != ours {
		if err := r.openTasks(r.state.Seq()); err != nil {
			return err
		}
	}
	if c.all || c.roster || m.Panes != r.panesSum {
		if err := r.writeConfig(); err != nil {
			return err
		}
	}
	if c.all {
		return r.writeAll()
	}
	for id := range c.tasks {
		if err := r.writeTask(id, r.put); err != nil {
			return err
		}
	}
	if c.ids {
		return r.writeHighest()
	}
	return nil
}

func (r *run) writeConfig() error {
	if err := os.MkdirAll(r.roster, 0o700); err != nil {
		return err
	}
	data, err := Encode(configOf(r.state, r.name, r.panes))
	if err != nil {
		return err
	}
	return r.putChanged(r.config(), data)
}

func (r *run) writeTask(id string, put func(path string, data []byte) error) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	if !r.state.Listed(id) {
		return r.drop(r.task(id))
	}
	t, _ := r.state.Task(id)
	return r.writeListed(&t, put)
}

// writeListed writes a task that was not deleted.
func (r *run) writeListed(t *team.Task, put func(path string, data []byte) error) error {
	data, err := Encode(taskOf(r.state, t))
	if err != nil {
		return err
	}
	return put(r.task(t.ID), data)
}

// writeHighest prevents Claude Code from reusing the id of a deleted task.
func (r *run) writeHighest() error {
	path := filepath.Join(r.tasks, highWaterName)
	if r.state.Count(team.Deleted) == 0 {
		return r.drop(path)
	}
	return r.putChanged(path, strconv.AppendInt(nil, int64(highestID(r.state)), 10))
}

// writeAll compares every file with the state. If it is interrupted, the changes made so far stay.
func (r *run) writeAll() error {
	if lock := filepath.Join(r.tasks, lockName); missing(lock) {
		if err := r.put(lock, nil); err != nil {
			return err
		}
	}
	there, err := r.taskFiles()
	if err != nil {
		return err
	}
	for _, id := range there {
		if r.state.Listed(id) {
			continue
		}
		if err := r.drop(r.task(id)); err != nil {
			return err
		}
	}
	for t := range r.state.Tasks() {
		if err := cmp.Or(r.ctx.Err(), r.writeListed(&t, r.putChanged)); err != nil {
			return err
		}
	}
	return r.writeHighest()
}
