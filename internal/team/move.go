package team

import (
	"fmt"
	"slices"
	"strings"
)

// Missing is work of a task that a restored team has completed, and that is not where it should be.
type Missing struct {
	Task   string // id of the task
	What   string // what is missing, and where it is, for people
	Commit string // commit that has the work; "" if unknown
	Branch string // branch that should have the commit; "" for what is checked out
	Path   string // path of a missing file from the top of the work tree; "" if the whole commit is missing
	// object name of the file in git; "" if there should be no file, "any" for any content
	Object string
}

// AnyFile stands for the object name of a file that has to exist, whatever its content.
const AnyFile = "any"

// Advice says what is missing of the task, and what a person can do about it. t is its team, and
// called what the task is called.
func (m Missing) Advice(t Team, called string) Advice {
	a := Advice{Text: fmt.Sprintf("missing of task %s: %s", called, m.What)}
	if m.Path != "" && m.Commit != "" && m.Object != "" && m.Object != AnyFile {
		a.Hints = []Hint{{Action: ActShowFile, Team: t.Name, Dir: t.Dir, From: m.Commit, Paths: []string{m.Path}}}
	}
	return a
}

// Released says that the machine which had the team released it: the team continues elsewhere. It
// is zero while this copy of the team is the valid one.
type Released struct {
	Machine string // machine that released the team
	At      Time   // when it released the team
}

// The events of a team that moves from one machine to another.
type (
	// TeamReleased says that this machine released the team.
	TeamReleased struct{ Machine string }
	// TeamTakenBack says that the team continues here, though this machine had released it.
	TeamTakenBack struct{}
	// WorkFound says that the missing work of these tasks was found.
	WorkFound struct{ Tasks []string }
)

func (*TeamReleased) Kind() string  { return "team_released" }
func (*TeamTakenBack) Kind() string { return "team_taken_back" }
func (*WorkFound) Kind() string     { return "work_found" }

func (e *TeamReleased) fields(c *coder) { c.str("machine", &e.Machine) }
func (e *TeamTakenBack) fields(*coder)  {}
func (e *WorkFound) fields(c *coder)    { c.strs("tasks", &e.Tasks) }

func (r *Released) fields(c *coder) {
	c.str("machine", &r.Machine)
	c.int("at", (*int64)(&r.At))
}

func (m *Missing) fields(c *coder) {
	c.str("task", &m.Task)
	c.str("what", &m.What)
	c.str("commit", &m.Commit)
	c.str("branch", &m.Branch)
	c.str("path", &m.Path)
	c.str("object", &m.Object)
}

func (e *TeamReleased) apply(s *State, r *Record) { s.team.Released = Released{e.Machine, r.At} }
func (*TeamTakenBack) apply(s *State, _ *Record)  { s.team.Released = Released{} }

func (e *WorkFound) apply(s *State, _ *Record) {
	s.team.Missing = slices.DeleteFunc(slices.Clone(s.team.Missing),
		func(m Missing) bool { return slices.Contains(e.Tasks, m.Task) })
}

// Ended reports whether the team cannot change any more.
func (t *Team) Ended() bool {
	return t.CleanedUp || t.Status.Ended()
}

// Ended reports whether a team of that status is complete or aborted.
func (s TeamStatus) Ended() bool { return s == TeamComplete || s == TeamAborted }

// CheckHere refuses a team that this machine released.
func (t *Team) CheckHere() error {
	if t.Released == (Released{}) {
		return nil
	}
	if place := t.Released.Place(); place != "" {
		return Refuse(Denied, "team %s was moved to %s, and continues there", t.Name, place).With(t.hint(ActTakeBack))
	}
	return Refuse(Denied, "this machine released team %s, so that it continues elsewhere", t.Name).
		With(t.hint(ActPull), t.hint(ActTakeBack))
}

// Place returns the place of teams, such as a database, to which the release moved the team; "" for
// a release to any machine.
func (r Released) Place() string {
	_, place, _ := strings.Cut(r.Machine, movedMark)
	return place
}

const movedMark = ", to "

// MovedTo returns the name of the machine in a release by which the team moves to another place of
// teams, such as a database.
func MovedTo(machine, place string) string { return machine + movedMark + place }

// ReleaseTeam releases the team, so that another machine can continue it. Its sessions end as if
// their host had died: each resumes there, with its tasks.
type ReleaseTeam struct{ Machine string }

func (b *ReleaseTeam) decide(d *decision) error {
	t := &d.team
	switch {
	case d.Actor != User:
		return refuse(Denied, "the command must be run by the user")
	case t.Released != (Released{}):
		return nil
	case t.Consolidation.Open():
		return Refuse(NotReady, "the consolidation of team %s is under way", t.Name).With(t.hint(ActFinish))
	case t.LeadSession != "" && t.LeadSession != User:
		return Refuse(NotReady, "session %s leads team %s; end it first", brief(t.LeadSession),
			t.Name).With(t.hint(ActTakeOver))
	}
	if err := limit(text{"name of the machine", b.Machine, MaxSubject}); err != nil {
		return err
	}
	for i := range d.members {
		if m := &d.members[i]; m.Host != "" && m.Status.Running() {
			d.detach(m, "the team moves to another machine")
		}
	}
	d.emit(&TeamReleased{Machine: b.Machine})
	return nil
}

// TakeBackTeam continues a team here that this machine had released. With Machine it takes back
// that release alone, and refuses a later one.
type TakeBackTeam struct{ Machine string }

func (b *TakeBackTeam) decide(d *decision) error {
	if d.Actor != User {
		return refuse(Denied, "only the user takes a team back")
	}
	if b.Machine != "" && b.Machine != d.team.Released.Machine {
		return refuse(Conflict, "the team has gone on since it was released by %s", b.Machine)
	}
	if d.team.Released != (Released{}) {
		d.emit(&TeamTakenBack{})
	}
	return nil
}

// ReportFound says that the missing work of these tasks was found.
type ReportFound struct{ Tasks []string }

func (b *ReportFound) decide(d *decision) error {
	if d.Actor != User && !d.isHost() {
		return refuse(Denied, "whether work is there is found out by looking, and is not a member's to say")
	}
	var found []string
	for _, m := range d.team.Missing {
		if slices.Contains(b.Tasks, m.Task) && !slices.Contains(found, m.Task) {
			found = append(found, m.Task)
		}
	}
	if len(found) > 0 {
		d.emit(&WorkFound{Tasks: found})
	}
	return nil
}

// Missing returns the missing work of completed tasks, in the order of the tasks.
func (s *State) Missing() []Missing {
	var all []Missing
	for _, m := range s.team.Missing {
		if t := s.task(m.Task); t != nil && t.Status == Completed {
			all = append(all, m)
		}
	}
	return all
}

// hasWork refuses to complete a team while work of completed tasks is missing, except for the tasks
// that it is to be completed without.
func (d *decision) hasWork(without []string) error {
	for _, id := range without {
		if d.task(id) == nil {
			return d.noTask(id)
		}
	}
	var reasons, tasks []string
	for _, m := range d.State.Missing() {
		if slices.Contains(without, m.Task) {
			continue
		}
		if !slices.Contains(tasks, m.Task) {
			tasks = append(tasks, m.Task)
		}
		if len(reasons) < mostReasons {
			reasons = append(reasons, fmt.Sprintf("task %s: %s", d.Called(m.Task), m.What))
		}
	}
	if len(tasks) == 0 {
		return nil
	}
	return Refuse(NotReady, "work of completed tasks is missing here: %s. Put it back first",
		strings.Join(reasons, "; ")).With(d.team.hint(ActResume),
		Hint{Action: ActGoWithout, Team: d.team.Name, Tasks: tasks})
}

// MaxMissing limits the missing work that a team lists.
const MaxMissing = 10_000

func checkMissing(all []Missing) error {
	if len(all) > MaxMissing {
		return refuse(TooLarge, "%d pieces of work are missing, of at most %d", len(all), MaxMissing)
	}
	for _, m := range all {
		if err := limit(text{"task", m.Task, MaxSubject}, text{"missing work", m.What, MaxSubject},
			text{"commit", m.Commit, MaxSubject}, text{"branch", m.Branch, MaxSubject},
			text{"path", m.Path, MaxSubject}, text{"object", m.Object, MaxSubject}); err != nil {
			return err
		}
	}
	return nil
}
