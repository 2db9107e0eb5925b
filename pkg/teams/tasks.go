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

// TaskList is the team's task list, used as one member.
type TaskList struct {
	*TaskReader
	actor
}

func tasksOf(a actor) *TaskList { return &TaskList{a.team.View.Tasks(), a} }

// TaskConfig says which task to create. Only Subject must be set.
type TaskConfig struct {
	// what people and agents call the task; "" for its id. It is a letter or digit and then up to 63
	// letters, digits, dots, _ or -, and no other task of the list has it
	Name        string
	Subject     string
	Description string
	ActiveForm  string        // the subject as what is being done
	Owner       string        // the member it is meant for; "" for any
	Role        string        // the role it is meant for, instead of an owner
	BlockedBy   []string      // ids or names of the tasks that it comes after
	Priority    Priority      // "" for medium
	Run         string        // command for a shell member, which runs it by /bin/sh in the team's directory
	RunIn       RunIn         // where that is, if not in the team's directory
	RunDir      string        // the directory below that, in which the command runs
	RunEnv      []string      // added to the environment of the command, each as "name=value"
	When        When          // when it may begin
	Timeout     time.Duration // of one attempt of a shell member, in whole milliseconds; 0 for an hour
	Retries     int           // failed attempts after which it is tried again
	Metadata    map[string]json.RawMessage

	fileDigests []string // of what the team file says of it; nil for no file
}

func (n TaskConfig) core() *team.CreateTask {
	return &team.CreateTask{Name: n.Name, Subject: n.Subject, Description: n.Description, ActiveForm: n.ActiveForm,
		Owner: n.Owner, Role: n.Role,
		BlockedBy: n.BlockedBy, Priority: string(n.Priority), Run: n.Run, In: string(n.RunIn), Dir: n.RunDir,
		Env: n.RunEnv, When: string(n.When), Timeout: n.Timeout, Retries: int64(n.Retries), Metadata: n.Metadata,
		FileDigests: n.fileDigests}
}

// Create adds a task and returns it. The hook TaskCreated can reject it.
func (l *TaskList) Create(ctx context.Context, n TaskConfig) (Task, error) {
	if err := l.team.pass("TaskList.Create", map[string]bool{"Run": n.Run != ""}); err != nil {
		return Task{}, err
	}
	r, err := l.do(ctx, n.core())
	if err != nil {
		return Task{}, err
	}
	e, _ := found[*team.TaskCreated](r)
	return l.seen(e.Task.ID), nil
}

// CreateAll adds all of the tasks or, after an error, none, and returns them in the order given. A
// task may come after others of the list, by their names and in any order, and after tasks of the
// team. The hook TaskCreated is asked about each; one rejection rejects all.
func (l *TaskList) CreateAll(ctx context.Context, tasks []TaskConfig) ([]Task, error) {
	runs := slices.ContainsFunc(tasks, func(n TaskConfig) bool { return n.Run != "" })
	if err := l.team.pass("TaskList.CreateAll", map[string]bool{"Run": runs}); err != nil {
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
		if e, is := e.(*team.TaskCreated); is {
			created[order[next]] = l.seen(e.Task.ID)
			next++
		}
	}
	return created, nil
}

// inOrder returns the places of the tasks, each after the tasks of the list that it comes after.
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

// ownBlockers has the commands name the tasks of their own list by name, even by a name that is a
// number. Such a name that is also the id of a task of the team is refused.
func ownBlockers(s *team.State, batch *team.Batch, tasks []TaskConfig) error {
	own := map[string]bool{}
	for _, n := range tasks {
		own[n.Name] = n.Name != ""
	}
	for _, body := range batch.Bodies {
		b := body.(*team.CreateTask)
		b.BlockedBy = slices.Clone(b.BlockedBy) // the caller's
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

// seen returns a task that is known to be there.
func (l *TaskList) seen(id string) (t Task) {
	l.team.of.View(func(s *team.State) {
		core, _ := s.Lookup(id)
		t = taskOf(core)
	})
	return t
}

// Claim is the right to complete a task. It can be written down and used after a restart: ID and
// Fence are all of it. A claim is lost when the task is released, given to somebody else, or
// deleted, and when its member ends.
type Claim struct {
	ID    string // of the task
	Fence int64  // counts the claims of that task; 0 is no claim, only a member's word about a task
	Task  Task   // as it was when it was claimed
}

// Claim takes a task, by its id or its name; what is a number is always an id. It is refused with ErrConflict where somebody else has it, ErrNotReady while
// it waits for other tasks, and ErrDenied where it is for another role or the lead is in delegate
// mode.
func (l *TaskList) Claim(ctx context.Context, id string) (Claim, error) {
	if id == "" {
		return Claim{}, refuse(ErrInvalid, "say which task to claim, or use ClaimNext")
	}
	return l.claim(ctx, id)
}

// ClaimNext takes the next task that the member may have: the highest priority first, then the
// lowest id. Where there is none the error has the code ErrNoTask.
func (l *TaskList) ClaimNext(ctx context.Context) (Claim, error) { return l.claim(ctx, "") }

func (l *TaskList) claim(ctx context.Context, id string) (Claim, error) {
	r, err := l.do(ctx, &team.ClaimTask{Task: id})
	if err != nil {
		return Claim{}, err
	}
	e, _ := found[*team.TaskClaimed](r)
	return Claim{ID: e.Task, Fence: e.Fence, Task: l.seen(e.Task)}, nil
}

// WaitNext is ClaimNext that waits for a task, until ctx or the team ends.
func (l *TaskList) WaitNext(ctx context.Context) (Claim, error) {
	for {
		seq := l.team.of.Seq() // whatever comes after it ends the wait
		claim, err := l.ClaimNext(ctx)
		if !errors.Is(err, ErrNoTask) {
			return claim, err
		}
		if err := l.team.of.Await(ctx, seq); err != nil {
			return Claim{}, public(err)
		}
	}
}

// Complete ends a task with its result, and returns the ids of the tasks that wait for nothing any
// more. It is refused with ErrConflict when the claim was lost, and with ErrRejected, and feedback,
// by the hook TaskCompleted: the task stays in progress then. The lead may complete any task that
// waits for nothing, with Claim{ID: id}.
func (l *TaskList) Complete(ctx context.Context, c Claim, result string) (unblocked []string, err error) {
	r, err := l.do(ctx, &team.CompleteTask{Task: c.ID, Fence: c.Fence, Result: result})
	if err != nil {
		return nil, err
	}
	e, ok := found[*team.TaskCompleted](r)
	if !ok {
		return nil, nil
	}
	return append(unblocked, e.Unblocked...), nil
}

// Fail ends an attempt without success. The task is back on the list while it has retries left;
// else it is given up until somebody claims it by its id, and the lead is told. partial is what
// there is of a result.
func (l *TaskList) Fail(ctx context.Context, c Claim, reason, partial string) error {
	_, err := l.do(ctx, &team.FailTask{Task: c.ID, Fence: c.Fence, Reason: reason, Result: partial})
	return err
}

// Release puts a task back on the list. The lead may release any task in progress, with Claim{ID:
// id}.
func (l *TaskList) Release(ctx context.Context, c Claim, reason string) error {
	_, err := l.do(ctx, &team.ReleaseTask{Task: c.ID, Fence: c.Fence, Reason: reason})
	return err
}

// TaskUpdate says what to change: what is not nil or empty.
type TaskUpdate struct {
	Subject, Description, ActiveForm *string
	Priority                         *Priority
	Run                              *string // a new command is tried as if it were the first
	// "" removes the owner; a task in progress goes back on the list
	Owner                         *string
	Metadata                      map[string]json.RawMessage // the value null deletes its key
	AddBlockedBy, RemoveBlockedBy []string                   // tasks that it comes after
	AddBlocks, RemoveBlocks       []string                   // tasks that come after it
}

// Update changes a task, by its id or its name, and returns it. A dependency that would close a circle is refused with
// Invalid and the circle.
func (l *TaskList) Update(ctx context.Context, id string, u TaskUpdate) (Task, error) {
	if err := l.team.pass("TaskList.Update", map[string]bool{"Run": u.Run != nil}); err != nil {
		return Task{}, err
	}
	_, err := l.do(ctx, &team.UpdateTask{Task: id, Run: u.Run, Subject: u.Subject, Description: u.Description,
		ActiveForm: u.ActiveForm, Owner: u.Owner, Priority: (*string)(u.Priority),
		Metadata: u.Metadata, AddBlockedBy: u.AddBlockedBy, RemoveBlockedBy: u.RemoveBlockedBy, AddBlocks: u.AddBlocks,
		RemoveBlocks: u.RemoveBlocks})
	if err != nil {
		return Task{}, err
	}
	return l.seen(id), nil
}

// Delete takes a task off the list, by its id or its name. What waited for it waits no more, and its id is not used again.
func (l *TaskList) Delete(ctx context.Context, id string) error {
	_, err := l.do(ctx, &team.DeleteTask{Task: id})
	return err
}
