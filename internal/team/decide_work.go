package team

import (
	"fmt"
	"slices"
	"strings"
)

// Work is what a task did, in git. A host records the task's starting point, and completes the
// record when the task is completed. Base..Commit is what the task did. In a worktree these are
// commits on the member's branch. In the team's directory they are snapshots that no branch points
// at.
type Work struct {
	Member string // who did it
	Branch string // branch of the commits; "" for the team's directory
	// Machine is the machine with labels on which it was done, which alone can record it; "" where
	// the team is run.
	Machine string
	Base    string   // commit at the start; "" if Left says why it is unknown
	Commit  string   // last commit, or Base if nothing changed; "" until completion, or if Left says why it is unknown
	Files   []string // changed files, from the top of the repository; of very many the first ones
	Left    []string // what no commit contains, and why; what else the record lacks
	Others  []string // members that worked in the same directory at the same time, so that some of Files may be theirs
	Fence   int64    // number of the claim under which it was done
	Since   Time     // when Base was recorded
	Done    bool     // the task is completed or submitted, and its record is final
}

// MaxFiles limits the files that the record of a task's work lists.
const MaxFiles = 1000

// Open reports whether the task's result is still to be recorded.
func (w *Work) Open() bool { return w != nil && w.Base != "" && !w.Done }

// WorkWanted returns what must be recorded now of the task's work: [WantBase], [WantRecord], or ""
// for nothing. Nothing is recorded for a team that is only observed: its own program does the work.
func (s *State) WorkWanted(task string) WantKind {
	t := s.task(task)
	switch {
	case t == nil || s.team.Observed != "":
		return ""
	case t.Status == InProgress && (t.Work == nil || t.Work.Fence != t.Fence):
		return WantBase
	case (t.Status == Completed || t.Submission != nil) && t.Work.Open():
		return WantRecord
	}
	return ""
}

func (s *State) appendTraceWants(wants []Want) []Want {
	for i := range s.traced.all() {
		t := &s.tasks[i]
		switch kind := s.WorkWanted(t.ID); kind {
		case WantBase:
			wants = append(wants, Want{Kind: kind, Key: fmt.Sprintf("%s/%s/%d", kind, t.ID, t.Fence),
				Member: t.Owner, Task: t.ID})
		case WantRecord:
			wants = append(wants, Want{Kind: kind, Key: fmt.Sprintf("%s/%s/%d", kind, t.ID, t.Work.Fence),
				Member: t.Work.Member, Task: t.ID})
		}
	}
	return wants
}

// Unrecorded returns the completed and submitted tasks whose work a host must still record.
func (s *State) Unrecorded() (tasks []Task) {
	for i := range s.traced.all() {
		if t := &s.tasks[i]; s.WorkWanted(t.ID) == WantRecord {
			tasks = append(tasks, s.show(t))
		}
	}
	return tasks
}

// RecordWork records the starting point of a task in progress, and the work of a completed or
// submitted one.
// Recorded values never change.
type RecordWork struct {
	Task string
	Work Work // Fence is that of the claim; the core sets Others, Since and Done
}

func (b *RecordWork) decide(d *decision) error {
	if d.Actor != User && !d.isHost() {
		return refuse(Denied, "only a host records the work of a task")
	}
	t, err := d.live(b.Task)
	if err != nil {
		return err
	}
	w := b.Work
	if _, err := d.known(w.Member); err != nil {
		return err
	}
	if err := limit(text{"branch", w.Branch, MaxSubject}, text{"commit", w.Base + w.Commit, MaxSubject},
		text{"list of files", strings.Join(w.Files, ""), MaxText},
		text{"list of what is in no commit", strings.Join(w.Left, ""), MaxText}); err != nil {
		return err
	}
	switch want := d.WorkWanted(t.ID); {
	case len(w.Files) > MaxFiles:
		return refuse(TooLarge, "the work has %d files, of at most %d", len(w.Files), MaxFiles)
	case (w.Base == "" || (t.Status == Completed || t.Submission != nil) && w.Commit == "") && len(w.Left) == 0:
		return refuse(Invalid, "the record of a task's work names its commits, or says why there are none")
	case want == "":
		return nil // it is recorded already, or the task is neither in progress nor completed
	case want == WantBase && (w.Member != t.Owner || w.Fence != t.Fence):
		return refuse(Conflict, "%s was claimed again since", t.label())
	case want == WantRecord && (w.Fence != t.Work.Fence || w.Base != t.Work.Base):
		return refuse(Conflict, "%s started from %s, not from %s", t.label(), brief(t.Work.Base), brief(w.Base))
	}
	if w.Since, w.Others = d.At, nil; t.Status != InProgress {
		w.Machine = t.Work.Machine
	}
	if before := t.Work; before != nil && before.Base == w.Base && w.Base != "" {
		w.Since = before.Since
	}
	if w.Done = t.Status != InProgress; !w.Done {
		w.Commit, w.Files = "", nil
	} else {
		w.Others = d.alongside(t, w)
	}
	d.emit(&WorkRecorded{Task: t.ID, Work: w})
	d.tellFiles(t, w)
	return nil
}

// tellFiles sends the lead the files of a completed task, which were not known when the message
// about the completion was sent. They are worth no turn.
func (d *decision) tellFiles(t *Task, w Work) {
	done := *t
	done.Work = &w
	lead, changed := d.lead(), done.Summary().changed()
	if !w.Done || t.Status != Completed || changed == "" || !d.tellsLead(t.CompletedBy) || d.team.Ended() ||
		!lead.Status.Running() {
		return
	}
	d.post(Message{To: lead.Name, Type: TypeSystem, Ref: t.ID, Priority: "normal", Quiet: true,
		Body: clip(fmt.Sprintf("Task %s changed these files: %s.", t.titled(), changed))})
}

// alongside returns the members that had a task in the team's directory between that base and now.
func (s *State) alongside(t *Task, w Work) (others []string) {
	for i := range s.tasks {
		o := &s.tasks[i]
		switch {
		case w.Branch != "" || o == t || o.Work == nil || o.Work.Branch != "" || o.Work.Member == w.Member ||
			slices.Contains(others, o.Work.Member):
		case o.Submission != nil && o.Submission.At < w.Since:
		case o.Status != Completed || o.CompletedAt >= w.Since: // making a base takes longer than a tick of the clock
			others = append(others, o.Work.Member)
		}
	}
	return others
}

// Alongside returns the members that have had a task in the team's directory since the work of that
// task began.
func (s *State) Alongside(task string) []string {
	if t := s.task(task); t != nil && t.Work != nil {
		return s.alongside(t, *t.Work)
	}
	return nil
}

// WorkRecorded says where the task started, or what it did.
type WorkRecorded struct {
	Task string
	Work Work
}

func (e *WorkRecorded) fields(c *coder) {
	c.str("task", &e.Task)
	c.sub("work", false, &e.Work)
}

func (e *WorkRecorded) apply(s *State, r *Record) {
	w := e.Work
	w.own(s)
	s.change(e.Task, r, func(t *Task) { t.Work = &w })
}

func (w *Work) fields(c *coder) {
	c.str("member", &w.Member)
	c.str("branch", &w.Branch)
	c.str("machine", &w.Machine)
	c.str("base", &w.Base)
	c.str("commit", &w.Commit)
	c.strs("files", &w.Files)
	c.strs("left", &w.Left)
	c.strs("others", &w.Others)
	c.int("fence", &w.Fence)
	c.int("since", (*int64)(&w.Since))
	c.bool("done", &w.Done)
}
