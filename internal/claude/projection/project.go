package projection

import (
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

// MarkFile is the name, in a team's folder, of the file that is a [Projector]'s Mark. All who
// project a team must have it in common.
const MarkFile = "projected"

// Projector projects one team. It may be used from any goroutine; nothing in it may change after
// its first use.
type Projector struct {
	Claude string       // Claude Code's folder, absolute
	Mark   string       // file in the team's own folder that says what was projected, and its lock
	Log    func(string) // is told of a folder that was moved away from the place of a file; nil for nobody
	step   func(string)
}

// ErrForeign marks the error that says that a folder of the team's name is not ours. It is returned
// once for a team, and again only after the folder had been free in between.
var ErrForeign = errors.New("it belongs to another program's team, or to a newer team of the same name")

// Project brings Claude Code's folders up to date with s, which it only reads. A team that is only
// observed is left alone: its own program has those folders. It waits for another process that is
// projecting until ctx ends. An error leaves the team as it is, and the next call tries again.
func (p *Projector) Project(ctx context.Context, j journal.Journal, s *team.State) error {
	t := s.Team()
	if t.ID == "" || t.Observed != "" {
		return nil
	}
	_, err := p.run(ctx, j, s, false)
	return err
}

// Repair does what Project does, and compares every file with the state instead of only those that
// have to change: one that somebody altered, removed or added is as it should be afterwards. It
// returns how many files were not.
func (p *Projector) Repair(ctx context.Context, j journal.Journal, s *team.State) (files int, err error) {
	if t := s.Team(); t.ID == "" || t.Observed != "" {
		return 0, nil
	}
	return p.run(ctx, j, s, true)
}

func (p *Projector) run(ctx context.Context, j journal.Journal, s *team.State, whole bool) (files int, err error) {
	t := s.Team()
	r := &run{Projector: p, ctx: ctx, journal: j, state: s, whole: whole, folders: foldersOf(p.Claude, t, p.step)}
	err = r.project()
	for _, aside := range r.aside {
		if p.Log != nil {
			p.Log("a folder lay in the place of a file that shows team " + t.Name +
				" to Claude Code; it is now " + aside)
		}
	}
	if err != nil {
		return r.changed, fmt.Errorf("Claude Code's folders do not show team %s as it is, which does the team itself "+
			"no harm: %w", t.Name, err)
	}
	return r.changed, nil
}

// run is one call of Project.
type run struct {
	*Projector
	*folders
	ctx     context.Context
	journal journal.Journal
	state   *team.State
	whole   bool // every file is to be compared
}

func (r *run) project() error {
	if m, ok := readMark(r.Mark); ok {
		if done, err := r.done(m); done || err != nil {
			return err
		}
	}
	lock, err := lockMark(r.ctx, r.Mark)
	if errors.Is(err, fs.ErrNotExist) {
		if r.team.CleanedUp {
			return r.remove()
		}
		return journal.ErrGone
	}
	if err != nil {
		return err
	}
	defer lock.unlock()
	m, ok := lock.read()
	if done, err := r.done(m); ok && (done || err != nil) {
		return err
	}
	if m.Team != r.team.ID || m.Seq > r.state.Seq() {
		m = mark{} // of another team, or of a history that is no more
	}
	if r.team.CleanedUp {
		if err := r.remove(); err != nil {
			return err
		}
		return lock.write(mark{Team: r.team.ID, State: removed})
	}
	roster, err := r.rosterHolder(m.Seq > 0)
	if err != nil {
		return err
	}
	tasks, err := r.tasksHolder()
	if err != nil {
		return err
	}
	if roster == others || tasks == others {
		return r.yield(lock, m, roster)
	}
	if err := r.write(m, roster, tasks); err != nil {
		return err
	}
	r.at("mark")
	return lock.write(mark{Team: r.team.ID, Seq: r.state.Seq(), Tasks: r.tasksChanged()})
}

// done reports whether the mark says that there is nothing to do for this state.
func (r *run) done(m mark) (bool, error) {
	switch {
	case m.Team != r.team.ID || m.State == foreign:
		return false, nil
	case m.State == removed:
		return true, nil
	case m.Seq == r.state.Seq():
		return !r.whole && m.Tasks == r.tasksChanged() && r.intact(), nil
	case m.Seq > r.state.Seq():
		// Somebody with a newer state was here, unless the history has no such record: then the
		// mark is from another one.
		for rec, err := range r.journal.Read(r.ctx, m.Seq-1) {
			return err == nil && rec.Seq == m.Seq, err
		}
	}
	return false, nil
}

// yield leaves the folders to who has them.
func (r *run) yield(lock *markLock, m mark, roster holder) error {
	if m.State == foreign || finished(r.team) {
		return nil // it was said, or there is nothing left to show
	}
	path := r.tasks
	if roster == others {
		path = r.roster
	}
	if err := lock.write(mark{Team: r.team.ID, State: foreign}); err != nil {
		return err
	}
	return fmt.Errorf("%s is left alone: %w", path, ErrForeign)
}

// write brings the files from what m says to the state.
func (r *run) write(m mark, roster, tasks holder) error {
	if finished(r.team) {
		if err := r.removeFolder(r.tasks, tasks != free); err != nil {
			return err
		}
		if roster == free && m.Seq > 0 {
			return nil // somebody removed the last of a team that is over
		}
		return r.writeConfig()
	}
	c := &changes{all: true}
	if !r.whole && m.Seq > 0 && m.Tasks == r.tasksChanged() && roster == ours && tasks == ours {
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
	if c.all || c.roster {
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
	data, err := Encode(configOf(r.state))
	if err != nil {
		return err
	}
	return r.putChanged(r.config(), data)
}

func (r *run) writeTask(id string, put func(path string, data []byte) error) error {
	if err := r.ctx.Err(); err != nil {
		return err
	}
	t, ok := r.state.Task(id)
	if !ok || t.Status == team.Deleted {
		return r.drop(r.task(id))
	}
	data, err := Encode(taskOf(r.state, &t))
	if err != nil {
		return err
	}
	return put(r.task(id), data)
}

// writeHighest keeps Claude Code from giving the id of a deleted task again.
func (r *run) writeHighest() error {
	path := filepath.Join(r.tasks, waterName)
	if r.state.Count(team.Deleted) == 0 {
		return r.drop(path)
	}
	return r.putChanged(path, strconv.AppendInt(nil, int64(highestID(r.state)), 10))
}

// writeAll compares every file with the state. Where it is stopped, what it did stays done.
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
		if t, ok := r.state.Task(id); ok && t.Status != team.Deleted {
			continue
		}
		if err := r.drop(r.task(id)); err != nil {
			return err
		}
	}
	for t := range r.state.Tasks() {
		if err := r.writeTask(t.ID, r.putChanged); err != nil {
			return err
		}
	}
	return r.writeHighest()
}
