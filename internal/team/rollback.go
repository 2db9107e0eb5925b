package team

import (
	"cmp"
	"slices"
	"strings"
)

// RollsBack says why the work of the task cannot be rolled back. It is nil where the team's state
// allows it.
func (s *State) RollsBack(task string) error {
	d := decision{State: s}
	t, err := d.live(task)
	if err != nil {
		return err
	}
	waiting, holders := s.buildOn(t)
	done := t.Status == Completed
	if err := cmp.Or(s.team.CheckHere(), d.unverified(t)); err != nil {
		return err
	}
	switch {
	case s.over() && !s.team.reopens():
		if c := &s.team.Consolidation; s.team.Status == TeamComplete && c.Commit != "" {
			undo := Hint{Action: ActRevertCommit, Team: s.team.Name, Dir: s.team.Dir, From: c.Commit}
			if len(c.Branches) > 0 { // its commit is a merge
				undo.To = c.Parent
			}
			return Refuse(Finished, "team %s is complete and its work is committed", s.team.Name).With(undo)
		}
		return refuse(Finished, "team %s is %s, and the work of its tasks stays as it is", s.team.Name, s.team.Status)
	case s.team.Consolidation.Open():
		return Refuse(NotReady, "team %s is being consolidated", s.team.Name).With(s.team.hint(ActRollBack))
	case t.ForEach != nil:
		return Refuse(Nothing, "%s has no work of its own; roll back the tasks that it made, one at a time", t.label()).
			With(t.Hint(&s.team, ActShowTask))
	case t.Status == InProgress:
		return Refuse(NotReady, "%s is in progress by %s", t.label(), t.Owner).
			With(t.Hint(&s.team, ActRetryTask))
	case t.Skipped != "":
		return refuse(Nothing, "%s was skipped: it has no work to roll back", t.label())
	case done && len(waiting) > 0:
		return refuse(Conflict, "%s builds on %s and is completed; roll that back first",
			strings.Join(waiting, ", "), t.label())
	case done && len(holders) > 0:
		return refuse(Conflict, "%s builds on %s and is in progress; release it first",
			strings.Join(holders, ", "), t.label())
	case !done && t.Saved == nil:
		return Refuse(Nothing, "no work of %s was saved. Only the work of completed tasks is recorded. "+
			"There may be uncommitted changes of this one.", t.label()).With(t.Hint(&s.team, ActShowTask))
	case !done:
		return nil
	case t.Work == nil || t.Work.Base == "":
		return Refuse(Nothing, "the work of %s is not recorded: no host ran when it was claimed, or the team is not "+
			"in a repository", t.label()).With(t.Hint(&s.team, ActShowTask))
	case t.Work.Open():
		return Refuse(NotReady, "a host must still record the work of %s", t.label()).
			With(s.team.hint(ActResume))
	case t.Work.Commit == "":
		return refuse(Nothing, "the work of %s could not be recorded: %s", t.label(),
			clipTo(strings.Join(t.Work.Left, "; "), 500))
	}
	return nil
}

// buildOn returns the completed tasks that build on the task, and those in progress with their
// holders. The group that made the task is not among them: it is done again with it.
func (s *State) buildOn(t *Task) (completed, held []string) {
	behind := t.Blocks
	if g := s.task(t.Of); g != nil {
		behind = slices.Concat(behind, g.Blocks)
	}
	for _, id := range behind {
		switch w := s.task(id); {
		case w == nil || w.ID == t.Of || w.Skipped != "": // a skipped one returns to the queue with this one
		case w.Status == Completed:
			completed = append(completed, w.label())
		case w.begun():
			held = append(held, w.label()+" by "+w.Owner)
		}
	}
	return completed, held
}

// reopens reports whether the rollback of a task reopens the team: it is complete, and was not
// consolidated.
func (t *Team) reopens() bool { return t.Status == TeamComplete && t.Consolidation.Step != Done }

// RollBackTask returns a task whose work was undone to the queue. A complete team that was not
// consolidated is active again.
type RollBackTask struct {
	Task   string
	Fence  int64  // of the task, when its work was looked at
	Commit string // that undid it on the member's branch; "" for work in the team's directory
	Reason string
}

func (b *RollBackTask) decide(d *decision) error {
	if d.Actor != User {
		return refuse(Denied, "the user rolls back a task")
	}
	if err := limit(text{"commit", b.Commit, MaxSubject}, text{"reason", b.Reason, MaxText}); err != nil {
		return err
	}
	if err := d.RollsBack(b.Task); err != nil {
		return err
	}
	t := d.referred(b.Task)
	if t.Fence != b.Fence {
		return refuse(Conflict, "%s has changed since its work was looked at; try again", t.label())
	}
	owner := d.meantFor(t)
	if s := d.team.Status; s == TeamConsolidating || s == TeamComplete { // in another status no member would take it
		d.emit(&TeamStatusChanged{Status: TeamActive, Reason: t.label() + " was rolled back"})
	}
	d.emit(&TaskRolledBack{Task: t.ID, Owner: owner, Commit: b.Commit, Reason: b.Reason})
	d.reopenGroup(t, "its task "+t.Called()+" was rolled back")
	d.retried(t)
	if owner != "" {
		d.assigned(owner, t.ID, "The work of task %s was rolled back, and the task is in the queue again.",
			t.titled())
	}
	if d.ledByAgent() {
		d.tell(d.team.Lead, t.ID, "The work of task %s was rolled back by the user, and the task is "+
			"in the queue again.", t.titled())
	}
	return nil
}

// TaskRolledBack says that the work of the task was undone, and that the task returned to the
// queue. Owner is the member that it is meant for.
type TaskRolledBack struct{ Task, Owner, Commit, Reason string }

func (e *TaskRolledBack) fields(c *coder) {
	c.str("task", &e.Task)
	c.str("owner", &e.Owner)
	c.str("commit", &e.Commit)
	c.str("reason", &e.Reason)
}

func (e *TaskRolledBack) apply(s *State, r *Record) {
	if t := s.task(e.Task); t == nil || t.Status == Deleted {
		return
	}
	s.reopenReport()
	s.change(e.Task, r, func(t *Task) {
		t.Status, t.StartedAt, t.CompletedAt, t.CompletedBy, t.Result = Pending, 0, 0, "", ""
		t.Owner, t.Assigned = s.known(e.Owner), e.Owner != ""
		t.Failure, t.FailedBy, t.Failures = "", "", 0
		t.Saved, t.Work, t.Rejected, t.Skipped, t.Submission = nil, nil, nil, "", nil
		t.Verified, t.Verdict, t.LastWords = nil, "", ""
		t.Fence++
	})
	s.childrenOver(e.Task)
}
