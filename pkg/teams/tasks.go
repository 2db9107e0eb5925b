package teams

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"cadre/internal/team"
)

// TaskList is the team's task list, as one member uses it.
type TaskList struct {
	*TaskReader
	actor
}

func tasksOf(a actor) *TaskList { return &TaskList{a.team.View.Tasks(), a} }

// TaskConfig describes a task to create. Only Subject must be set.
type TaskConfig struct {
	// Name is the name of the task for people and agents; "" to use its id. It is unique in the
	// list. It has a letter or digit, and then up to 63 letters, digits, dots, _ or -.
	Name        string
	Subject     string
	Description string
	ActiveForm  string   // the subject in the present continuous form: "Fixing the parser"
	Owner       string   // the member that should do it; "" for any
	Role        string   // the role that should do it, instead of an owner
	BlockedBy   []string // ids or names of the tasks that it depends on
	Priority    Priority // "" for medium
	Run         string   // command that a shell member runs, by /bin/sh in the team's directory
	RunIn       RunIn    // where the command runs, if not in the team's directory
	RunDir      string   // the subdirectory in which the command runs
	RunEnv      []string // added to the environment of the command, each as "name=value"
	When        When     // when it may start
	// Check is a command that must pass where the member works before the task is completed; "" for
	// none. Its output goes back to the member. With Rounds, an attempt at the task is tried so
	// many times until it passes; with 0, the task of a shell member is tried once.
	Check  string
	Rounds int
	// Schema is a JSON Schema that the result must fit; nil for any result. A result that does not
	// fit goes back to the member, with the errors.
	Schema  json.RawMessage
	Timeout time.Duration // of one attempt of a shell member, and of Check, in whole milliseconds; 0 for an hour
	Retries int           // how many failed attempts are retried
	// Paths are the files that it changes, as patterns from the team's directory: src/parser/**.
	// While it is in progress, a task of another member with a path in common waits.
	Paths []string
	// ForEach makes one task for each item, when the tasks that it depends on are completed; nil
	// for a task by itself. Each has the fields of this one, and its item.
	ForEach *ForEach
	// Verify says who must accept it before it counts as completed; nil for nobody.
	Verify   *Verify
	Metadata map[string]json.RawMessage

	fileDigests []string // of the part of the team file about it; nil for no file
	checkName   string   // of the team's command that Check is; "" for none
}

func (n TaskConfig) core() *team.CreateTask {
	var check *team.TaskCheck
	if n.Check != "" || n.Rounds != 0 {
		check = &team.TaskCheck{Run: n.Check, Rounds: int64(n.Rounds), Name: n.checkName}
	}
	return &team.CreateTask{Schema: n.Schema, Check: check, Name: n.Name, Subject: n.Subject,
		Description: n.Description, ActiveForm: n.ActiveForm,
		Owner: n.Owner, Role: n.Role,
		BlockedBy: n.BlockedBy, Priority: string(n.Priority), Run: n.Run, In: string(n.RunIn), Dir: n.RunDir,
		Env: n.RunEnv, When: string(n.When), Timeout: n.Timeout, Retries: int64(n.Retries), Paths: n.Paths,
		ForEach: n.ForEach.core(), Verify: n.Verify.core(), Metadata: n.Metadata, FileDigests: n.fileDigests}
}

// Create adds a task and returns it. The hook TaskCreated can reject it.
func (l *TaskList) Create(ctx context.Context, n TaskConfig) (Task, error) {
	if err := l.team.pass("TaskList.Create", map[string]bool{"Run": n.Run != "", "Check": n.Check != "",
		"ForEachRun": n.ForEach.runs()}); err != nil {
		return Task{}, err
	}
	r, err := l.do(ctx, n.core())
	if err != nil {
		return Task{}, err
	}
	e, _ := team.EventIn[*team.TaskCreated](r)
	return l.seen(e.Task.ID), nil
}

// CreateAll adds all of the tasks and returns them in the given order. After an error it has added
// none. A task may depend on other tasks of the list, by name and in any order, and on tasks of the
// team. The hook TaskCreated runs for each task; one rejection rejects all.
func (l *TaskList) CreateAll(ctx context.Context, tasks []TaskConfig) ([]Task, error) {
	runs := slices.ContainsFunc(tasks, func(n TaskConfig) bool { return n.Run != "" })
	checks := slices.ContainsFunc(tasks, func(n TaskConfig) bool { return n.Check != "" })
	lists := slices.ContainsFunc(tasks, func(n TaskConfig) bool { return n.ForEach.runs() })
	if err := l.team.pass("TaskList.CreateAll", map[string]bool{"Run": runs, "Check": checks,
		"ForEachRun": lists}); err != nil {
		return nil, err
	}
	if len(tasks) == 0 {
		return nil, refuse(ErrInvalid, "there is no task to create")
	}
	order, err := inOrder(tasks)
	if err != nil {
		return nil, err
	}
	batch := &team.Batch{}
	for _, i := range order {
		batch.Bodies = append(batch.Bodies, tasks[i].core())
	}
	var taken error
	if err := l.look(ctx, func(s *team.State) { taken = ownBlockers(s, batch, tasks) }); err != nil {
		return nil, err
	}
	if taken != nil {
		return nil, taken
	}
	r, err := l.do(ctx, batch)
	if err != nil {
		return nil, err
	}
	created, next := make([]Task, len(tasks)), 0
	for _, e := range r.Events {
		if e, is := e.(*team.TaskCreated); is && e.Task.Of == "" {
			created[order[next]] = l.seen(e.Task.ID)
			next++
		}
	}
	return created, nil
}

// inOrder returns the indexes of the tasks in an order in which each follows those that it depends
// on.
func inOrder(tasks []TaskConfig) (order []int, err error) {
	named := map[string]int{}
	for i, n := range tasks {
		if n.Name != "" {
			named[n.Name] = i
		}
	}
	const open, placed = 1, 2
	state := make([]int, len(tasks))
	var place func(i int) error
	place = func(i int) error {
		switch state[i] {
		case placed:
			return nil
		case open:
			return refuse(ErrInvalid, fmt.Sprintf("task %s would wait for itself, directly or through others",
				tasks[i].Name))
		}
		state[i] = open
		for _, ref := range tasks[i].BlockedBy {
			if b, own := named[ref]; own {
				if err := place(b); err != nil {
					return err
				}
			}
		}
		state[i] = placed
		order = append(order, i)
		return nil
	}
	for i := range tasks {
		if err := place(i); err != nil {
			return nil, err
		}
	}
	return order, nil
}

// ownBlockers makes the commands refer to the tasks of their own list by name, even if the name is
// a number. It returns an error if such a name is also the id of a task of the team.
func ownBlockers(s *team.State, batch *team.Batch, tasks []TaskConfig) error {
	own := map[string]bool{}
	for _, n := range tasks {
		own[n.Name] = n.Name != ""
	}
	for _, body := range batch.Bodies {
		b := body.(*team.CreateTask)
		b.BlockedBy = slices.Clone(b.BlockedBy) // the slice is the caller's
		for i, ref := range b.BlockedBy {
			if !own[ref] {
				continue
			}
			if t, there := s.Task(ref); there && t.Status != team.Deleted {
				return refuse(ErrInvalid, fmt.Sprintf("%s is the name of a task of the list and the id of one of the "+
					"team; write #%s for that", ref, ref))
			}
			b.BlockedBy[i] = team.ByName(ref)
		}
	}
	return nil
}

// seen returns a task that is known to exist.
func (l *TaskList) seen(id string) (t Task) {
	l.team.of.View(func(s *team.State) {
		core, _ := s.Lookup(id)
		t = taskOf(core)
	})
	return t
}

// Claim is the right to complete a task. ID and Fence identify it, so a program can save it and use
// it after a restart. A claim is lost when the task is released, reassigned or deleted, and when
// its member ends.
type Claim struct {
	ID    string // of the task
	Fence int64  // counts the claims of that task; 0 to act as the member without a claim
	Task  Task   // the state at the time of the claim
}

// Claim takes a task, by its id or its name; a number is always an id. It returns ErrConflict if
// another member holds the task, and ErrNotReady while the task is blocked. It returns ErrDenied if
// the task is for another role, or if the lead is in delegate mode.
func (l *TaskList) Claim(ctx context.Context, id string) (Claim, error) {
	if id == "" {
		return Claim{}, refuse(ErrInvalid, "say which task to claim, or use ClaimNext")
	}
	return l.claim(ctx, id)
}

// ClaimNext takes the next task that the member may claim: the highest priority first, then the
// lowest id. If no task can be claimed, the error has the code ErrNoTask.
func (l *TaskList) ClaimNext(ctx context.Context) (Claim, error) { return l.claim(ctx, "") }

func (l *TaskList) claim(ctx context.Context, id string) (Claim, error) {
	r, err := l.do(ctx, &team.ClaimTask{Task: id})
	if err != nil {
		return Claim{}, err
	}
	e, _ := team.EventIn[*team.TaskClaimed](r)
	return Claim{ID: e.Task, Fence: e.Fence, Task: l.seen(e.Task)}, nil
}

// WaitNext is ClaimNext that waits until there is a task, or until ctx or the team ends.
func (l *TaskList) WaitNext(ctx context.Context) (Claim, error) {
	for {
		seq := l.team.of.Seq() // a later record ends the wait
		claim, err := l.ClaimNext(ctx)
		if !errors.Is(err, ErrNoTask) {
			return claim, err
		}
		if err := l.team.of.Await(ctx, seq); err != nil {
			return Claim{}, public(err)
		}
	}
}

// Complete completes a task with its result, and returns the ids of the tasks that are no longer
// blocked. It returns ErrConflict if the claim was lost. If the hook TaskCompleted rejects it, it
// returns ErrRejected with the feedback, and the task stays in progress. The lead may complete any
// task that is not blocked, with Claim{ID: id}. A task that others verify is submitted to them.
func (l *TaskList) Complete(ctx context.Context, c Claim, result string) (unblocked []string, err error) {
	r, err := l.do(ctx, &team.CompleteTask{Task: c.ID, Fence: c.Fence, Result: result})
	if err != nil {
		return nil, err
	}
	e, ok := team.EventIn[*team.TaskCompleted](r)
	if !ok {
		return nil, nil
	}
	return append(unblocked, e.Unblocked...), nil
}

// Decide completes a task that verifies another one with a verdict, and the reason. It returns the
// verified task, whose round may have ended with that. It returns ErrDenied to the member whose
// work is verified.
func (l *TaskList) Decide(ctx context.Context, c Claim, verdict Verdict, reason string) (Task, error) {
	if err := l.team.pass("TaskList.Decide", nil); err != nil {
		return Task{}, err
	}
	_, err := l.do(ctx, &team.CompleteTask{Task: c.ID, Fence: c.Fence, Result: reason, Verdict: string(verdict)})
	if err != nil {
		return Task{}, err
	}
	return l.seen(l.seen(c.ID).Verifies), nil
}

// Fail ends an attempt that was not successful. partial is a partial result. The task returns to
// the queue while it has retries left. Otherwise the lead is notified, and the task waits until a
// member claims it by its id.
func (l *TaskList) Fail(ctx context.Context, c Claim, reason, partial string) error {
	_, err := l.do(ctx, &team.FailTask{Task: c.ID, Fence: c.Fence, Reason: reason, Result: partial})
	return err
}

// Release returns a task to the queue. The lead may release any task in progress, with Claim{ID:
// id}.
func (l *TaskList) Release(ctx context.Context, c Claim, reason string) error {
	_, err := l.do(ctx, &team.ReleaseTask{Task: c.ID, Fence: c.Fence, Reason: reason})
	return err
}

// TaskUpdate holds the changes of a task. Fields that are nil or empty change nothing.
type TaskUpdate struct {
	Subject, Description, ActiveForm *string
	Priority                         *Priority
	Run                              *string // a new command gets all of its retries again
	// "" removes the owner; a task in progress returns to the queue
	Owner                         *string
	Metadata                      map[string]json.RawMessage // the value null deletes its key
	AddBlockedBy, RemoveBlockedBy []string                   // tasks that block it
	AddBlocks, RemoveBlocks       []string                   // tasks that it blocks
	Paths                         *[]string                  // all files that it changes
}

// Update changes a task, by its id or its name, and returns it. If a dependency would close a
// cycle, it returns ErrInvalid, whose text shows the cycle.
func (l *TaskList) Update(ctx context.Context, id string, u TaskUpdate) (Task, error) {
	if err := l.team.pass("TaskList.Update", map[string]bool{"Run": u.Run != nil}); err != nil {
		return Task{}, err
	}
	_, err := l.do(ctx, &team.UpdateTask{Task: id, Run: u.Run, Subject: u.Subject, Description: u.Description,
		ActiveForm: u.ActiveForm, Owner: u.Owner, Priority: (*string)(u.Priority),
		Metadata: u.Metadata, AddBlockedBy: u.AddBlockedBy, RemoveBlockedBy: u.RemoveBlockedBy, AddBlocks: u.AddBlocks,
		RemoveBlocks: u.RemoveBlocks, Paths: u.Paths})
	if err != nil {
		return Task{}, err
	}
	return l.seen(id), nil
}

// ClaimPaths adds paths to a task in progress, by its id or its name. They belong to it until it
// ends. A path that another task has is refused with ErrConflict, and nothing waits.
func (l *TaskList) ClaimPaths(ctx context.Context, id string, paths ...string) error {
	if err := l.team.pass("TaskList.ClaimPaths", nil); err != nil {
		return err
	}
	_, err := l.do(ctx, &team.ClaimPaths{Task: id, Paths: paths})
	return err
}

// ReleasePaths gives back paths of a task in progress before it ends, all of them if none is named.
func (l *TaskList) ReleasePaths(ctx context.Context, id string, paths ...string) error {
	if err := l.team.pass("TaskList.ReleasePaths", nil); err != nil {
		return err
	}
	_, err := l.do(ctx, &team.ReleasePaths{Task: id, Paths: paths})
	return err
}

// Delete deletes a task, by its id or its name. It no longer blocks other tasks, and its id is not
// used again.
func (l *TaskList) Delete(ctx context.Context, id string) error {
	_, err := l.do(ctx, &team.DeleteTask{Task: id})
	return err
}
