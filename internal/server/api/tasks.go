package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"cadre/internal/engine"
	"cadre/internal/engine/upkeep"
	"cadre/internal/server/auth"
	"cadre/internal/team"
)

// TaskSpec describes a task to add.
type TaskSpec struct {
	Name        string   `json:"name,omitempty"`        // name of the task; its number by default
	Subject     string   `json:"subject"`               // what is to be done, in a few words
	Description string   `json:"description,omitempty"` // the rest of what its member has to know
	Owner       string   `json:"owner,omitempty"`       // member that it is for
	Role        string   `json:"role,omitempty"`        // role of the members that may claim it
	BlockedBy   []string `json:"blockedBy,omitempty"`   // tasks that must be done first, by their ids or names
	Priority    string   `json:"priority,omitempty"`    // low, medium, high or critical
	// command of a task for a shell member; needs the role admin
	Run string `json:"run,omitempty"`
	// command that must pass before it is completed; needs the role admin
	Check string `json:"check,omitempty"`
	// how often one attempt at the task is tried until the check passes; 0 for a plain check
	Rounds int64 `json:"rounds,omitempty"`
	// JSON Schema that its result must fit
	Schema json.RawMessage `json:"schema,omitempty"`
	// when it may start: completed, after the tasks before it are done; failed, if one of them has
	// failed; always, in both cases
	When string `json:"when,omitempty"`
	// longest time of the command in milliseconds; 0 for an hour
	Timeout int64    `json:"timeoutMs,omitempty"`
	Paths   []string `json:"paths,omitempty"`   // patterns of the files that it changes
	Retries int64    `json:"retries,omitempty"` // how often it is tried again after a failure
	// items, a pattern or a command: one task is made for each item; a command needs the role admin
	ForEach  *team.ForEach              `json:"forEach,omitempty"`
	Verify   *team.Verify               `json:"verify,omitempty"`   // who must accept it before it counts as completed
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"` // what its creator keeps with it
}

// TaskChange changes a task. What is missing stays.
type TaskChange struct {
	Subject     *string `json:"subject,omitempty"`     // what is to be done
	Description *string `json:"description,omitempty"` // the rest of it
	Owner       *string `json:"owner,omitempty"`       // member that it is for; "" for any
	Priority    *string `json:"priority,omitempty"`    // low, medium, high or critical
	// command for a shell member; needs the role admin
	Run          *string                    `json:"run,omitempty"`
	Metadata     map[string]json.RawMessage `json:"metadata,omitempty"`     // keys to set; null removes one
	AddBlockedBy []string                   `json:"addBlockedBy,omitempty"` // tasks that must be done first, too
	Paths        *[]string                  `json:"paths,omitempty"`        // patterns of all files that it changes
	// tasks that need not be done first any more
	RemoveBlockedBy []string `json:"removeBlockedBy,omitempty"`
}

// Outcome is how a task ended. Fence is the one of the claim; 0 checks only the owner.
type Outcome struct {
	Fence  int64  `json:"fence,omitempty"`  // fence of the claim that ends
	Reason string `json:"reason,omitempty"` // why it failed or is released
	Result string `json:"result,omitempty"` // what was done or found
	// of a task that verifies another one: accepted or rejected, with the reason as the result
	Verdict string `json:"verdict,omitempty"`
}

// TaskPaths are paths of a task in progress.
type TaskPaths struct {
	Paths []string `json:"paths,omitempty"` // patterns from the team's directory; none gives back all
}

// Reassignment gives a task to another member.
type Reassignment struct {
	To    string `json:"to"`              // name of the member
	Force bool   `json:"force,omitempty"` // also from a member that is alive and works on it
}

// Undoing says why the work of a task is undone.
type Undoing struct {
	Reason string `json:"reason,omitempty"` // why, for the history
}

// Diff is what was changed for a task. Likely secrets are replaced.
type Diff struct {
	Member  string   `json:"member"`            // who changed it
	Task    string   `json:"task"`              // id of the task
	Working bool     `json:"working"`           // the worktree as it is now; otherwise recorded or saved work
	Patch   string   `json:"patch"`             // in the form that git apply takes
	Left    []string `json:"leftOut,omitempty"` // files that are not in the patch, some with the reason
}

var pageStatus = []Param{
	{"status", "array", "pending, blocked, in_progress, completed or failed; may be repeated"},
	{"owner", "string", "only tasks of this member"}, {"role", "string", "only tasks of this role"},
	{"priority", "string", "only tasks of this priority"},
	{"claimable", "string", "only tasks that this member could claim now"},
}

var taskRoutes = []Route{
	{Method: "GET", Path: "/v1/teams/{team}/tasks", ID: "listTasks", Command: "task list", Role: auth.Observe,
		About: "List the tasks of a team.", Query: pageStatus, Answer: reflect.TypeFor[[]team.Task](),
		handle: (*call).listTasks},
	{Method: "POST", Path: "/v1/teams/{team}/tasks", ID: "addTask", Command: "task add", Role: auth.Steer,
		About: "Add a task.", Query: []Param{pageAs}, Body: reflect.TypeFor[TaskSpec](),
		Answer: reflect.TypeFor[team.Task](),
		Flags: func(body any) []string {
			var flags []string
			if body.(*TaskSpec).Run != "" {
				flags = append(flags, "run")
			}
			if body.(*TaskSpec).Check != "" {
				flags = append(flags, "check")
			}
			return flags
		}, handle: (*call).addTask},
	{Method: "GET", Path: "/v1/teams/{team}/tasks/{task}", ID: "getTask", Command: "task show", Role: auth.Observe,
		About: "Show a task.", Answer: reflect.TypeFor[team.Task](), handle: (*call).getTask},
	{Method: "PATCH", Path: "/v1/teams/{team}/tasks/{task}", ID: "updateTask", Command: "task update", Role: auth.Steer,
		About: "Change a task.", Query: []Param{pageAs}, Body: reflect.TypeFor[TaskChange](),
		Answer: reflect.TypeFor[team.Task](),
		Flags: func(body any) []string {
			if body.(*TaskChange).Run != nil {
				return []string{"run"}
			}
			return nil
		}, handle: (*call).updateTask},
	{Method: "DELETE", Path: "/v1/teams/{team}/tasks/{task}", ID: "deleteTask", Command: "task rm", Role: auth.Steer,
		About: "Remove a task.", Query: []Param{pageAs}, handle: (*call).deleteTask},
	{Method: "POST", Path: "/v1/teams/{team}/tasks/claim", ID: "claimNext", Command: "task claim", Role: auth.Steer,
		About: "Claim the next task as a member. The answer has the fence of the claim.",
		Query: []Param{pageAs, pageWait}, Answer: reflect.TypeFor[team.Task](), handle: (*call).claimNext},
	{Method: "POST", Path: "/v1/teams/{team}/tasks/{task}/claim", ID: "claimTask", Command: "task claim",
		Role: auth.Steer, About: "Claim a task as a member. The answer has the fence of the claim.",
		Query: []Param{pageAs}, Answer: reflect.TypeFor[team.Task](), handle: (*call).claimTask},
	{Method: "POST", Path: "/v1/teams/{team}/tasks/{task}/complete", ID: "completeTask", Command: "task done",
		Role: auth.Steer, About: "Complete a task as its owner.", Query: []Param{pageAs},
		Body: reflect.TypeFor[Outcome](), Answer: reflect.TypeFor[team.Task](), handle: (*call).completeTask},
	{Method: "POST", Path: "/v1/teams/{team}/tasks/{task}/fail", ID: "failTask", Command: "task fail", Role: auth.Steer,
		About: "Say as its owner that a task failed.", Query: []Param{pageAs}, Body: reflect.TypeFor[Outcome](),
		Answer: reflect.TypeFor[team.Task](), handle: (*call).failTask},
	{Method: "POST", Path: "/v1/teams/{team}/tasks/{task}/release", ID: "releaseTask", Command: "task release",
		Role: auth.Steer, About: "Return a task to the queue. A task that is out of retries is tried again.",
		Query: []Param{pageAs}, Body: reflect.TypeFor[Outcome](), Answer: reflect.TypeFor[team.Task](),
		handle: (*call).releaseTask},
	{Method: "GET", Path: "/v1/teams/{team}/paths", ID: "listPaths", Command: "task paths", Role: auth.Observe,
		About:  "List the tasks in progress to which paths belong, and the tasks that wait for paths.",
		Answer: reflect.TypeFor[[]team.Task](), handle: (*call).listPaths},
	{Method: "POST", Path: "/v1/teams/{team}/tasks/{task}/paths/claim", ID: "claimPaths", Command: "task paths claim",
		Role: auth.Steer, About: "Add paths to a task in progress. A path of another task is refused.",
		Query: []Param{pageAs}, Body: reflect.TypeFor[TaskPaths](), Answer: reflect.TypeFor[team.Task](),
		handle: (*call).claimPaths},
	{Method: "POST", Path: "/v1/teams/{team}/tasks/{task}/paths/release", ID: "releasePaths",
		Command: "task paths release", Role: auth.Steer, About: "Give back paths of a task in progress.",
		Query: []Param{pageAs}, Body: reflect.TypeFor[TaskPaths](), Answer: reflect.TypeFor[team.Task](),
		handle: (*call).releasePaths},
	{Method: "POST", Path: "/v1/teams/{team}/tasks/{task}/reassign", ID: "reassignTask", Command: "reassign",
		Role: auth.Steer, About: "Give a task to another member, with the work on it so far.", Query: []Param{pageAs},
		Body: reflect.TypeFor[Reassignment](), Answer: reflect.TypeFor[team.Task](), handle: (*call).reassignTask},
	{Method: "POST", Path: "/v1/teams/{team}/tasks/{task}/rollback", ID: "rollBackTask", Command: "task rollback",
		Role: auth.Admin, About: "Undo the work of a completed task in git.", Query: []Param{pageAs},
		Body: reflect.TypeFor[Undoing](), Answer: reflect.TypeFor[team.Task](), handle: (*call).rollBackTask},
	{Method: "GET", Path: "/v1/teams/{team}/tasks/{task}/diff", ID: "getDiff", Command: "task show", Role: auth.Observe,
		About: "Show what was changed for a task.", Answer: reflect.TypeFor[Diff](), handle: (*call).getDiff},
}

func (c *call) listTasks() (any, error) {
	t, err := c.look()
	if err != nil {
		return nil, err
	}
	query := c.URL.Query()
	known := team.TaskStates
	for _, status := range query["status"] {
		if !slices.Contains(known, status) {
			return nil, usageError{fmt.Errorf("status=%s is not one of: %s", short(status), strings.Join(known, ", "))}
		}
	}
	all := []team.Task{}
	t.View(func(s *team.State) {
		tasks := s.Tasks()
		if member := query.Get("claimable"); member != "" {
			tasks = slices.Values(s.Claimable(member))
		}
		for task := range tasks {
			if is := query["status"]; len(is) > 0 && !slices.Contains(is, task.State()) {
				continue
			}
			if fits(query.Get("owner"), task.Owner) && fits(query.Get("role"), task.Role) &&
				fits(query.Get("priority"), task.Priority) {
				all = append(all, task)
			}
		}
	})
	return all, nil
}

func fits(wanted, is string) bool { return wanted == "" || wanted == is }

func (c *call) addTask() (any, error) {
	spec := c.body.(*TaskSpec)
	if spec.Run != "" || spec.Check != "" || spec.ForEach != nil && spec.ForEach.Run != "" {
		if err := c.who.Needs(auth.Admin, "a task with a command"); err != nil {
			return nil, err
		}
	}
	body := &team.CreateTask{Name: spec.Name, Subject: spec.Subject, Description: spec.Description, Owner: spec.Owner,
		Role: spec.Role, BlockedBy: spec.BlockedBy, Priority: spec.Priority, Run: spec.Run,
		Timeout: time.Duration(spec.Timeout) * time.Millisecond, Retries: spec.Retries, Paths: spec.Paths,
		ForEach: spec.ForEach, Metadata: spec.Metadata, Schema: spec.Schema, When: spec.When, Verify: spec.Verify}
	if spec.Check != "" || spec.Rounds != 0 {
		body.Check = &team.TaskCheck{Run: spec.Check, Rounds: spec.Rounds}
	}
	var task team.Task
	subject := func(e *team.TaskCreated) bool { return e.Task.Subject == spec.Subject }
	err := c.act(body, makes(subject), func(t *engine.Team, r *team.Record) error {
		made, err := event[*team.TaskCreated](r)
		if err == nil {
			task = made.Task
			t.View(func(s *team.State) { task, _ = s.Task(made.Task.ID) })
		}
		return err
	})
	return task, err
}

func (c *call) getTask() (any, error) {
	t, err := c.look()
	if err != nil {
		return nil, err
	}
	var task team.Task
	t.View(func(s *team.State) { task, err = s.Find(c.PathValue("task")) })
	return task, err
}

func (c *call) updateTask() (any, error) {
	change := c.body.(*TaskChange)
	if change.Run != nil {
		if err := c.who.Needs(auth.Admin, "a task with a command"); err != nil {
			return nil, err
		}
	}
	return task(c, &team.UpdateTask{Task: c.PathValue("task"), Subject: change.Subject, Description: change.Description,
		Owner: change.Owner, Priority: change.Priority, Run: change.Run, Metadata: change.Metadata,
		Paths: change.Paths, AddBlockedBy: change.AddBlockedBy, RemoveBlockedBy: change.RemoveBlockedBy},
		func(e *team.TaskUpdated) string { return e.Task })
}

// task sends the command about the task of the route, and returns the task. of returns the task of
// an event that the command makes.
func task[E team.Event](c *call, body team.Body, of func(E) string) (task team.Task, err error) {
	err = c.act(body, makes[E](nil), func(t *engine.Team, r *team.Record) (err error) {
		t.View(func(s *team.State) { task, err = s.Find(c.PathValue("task")) })
		if err != nil {
			return err
		}
		return makes(func(e E) bool { return of(e) == task.ID }).check(r)
	})
	return task, err
}

func (c *call) deleteTask() (any, error) {
	return nil, c.act(&team.DeleteTask{Task: c.PathValue("task")}, makes[*team.TaskDeleted](nil),
		func(*engine.Team, *team.Record) error { return nil })
}

func (c *call) claimNext() (any, error) {
	wait, err := c.wait()
	if err != nil {
		return nil, err
	}
	return c.claim(&team.ClaimTask{}, wait)
}

func (c *call) claimTask() (any, error) {
	return c.claim(&team.ClaimTask{Task: c.PathValue("task")}, 0)
}

// claim claims a task, and waits until there is one.
func (c *call) claim(body *team.ClaimTask, wait time.Duration) (task team.Task, err error) {
	actor, err := c.actor()
	if err != nil {
		return task, err
	}
	see := func(t *engine.Team, r *team.Record) error {
		c.recorded(r)
		claimed, err := event[*team.TaskClaimed](r)
		if err != nil {
			return err
		}
		wanted := claimed.Task
		t.View(func(s *team.State) {
			task, _ = s.Task(claimed.Task)
			if body.Task != "" {
				wanted, err = s.TaskID(body.Task)
			}
		})
		return errors.Join(err, makes(func(e *team.TaskClaimed) bool { return e.Task == wanted }).check(r))
	}
	if wait == 0 {
		return task, c.engine.Act(c.Context(), c.PathValue("team"), actor, body, see)
	}
	ctx, cancel := c.within(wait)
	defer cancel()
	return task, c.engine.ActWhenReady(ctx, c.PathValue("team"), actor, body, see)
}

func (c *call) listPaths() (any, error) {
	t, err := c.look()
	if err != nil {
		return nil, err
	}
	all := []team.Task{}
	t.View(func(s *team.State) { all = append(all, s.WithPaths()...) })
	return all, nil
}

func (c *call) claimPaths() (any, error) {
	return task(c, &team.ClaimPaths{Task: c.PathValue("task"), Paths: c.body.(*TaskPaths).Paths},
		func(e *team.PathsChanged) string { return e.Task })
}

func (c *call) releasePaths() (any, error) {
	return task(c, &team.ReleasePaths{Task: c.PathValue("task"), Paths: c.body.(*TaskPaths).Paths},
		func(e *team.PathsChanged) string { return e.Task })
}

func (c *call) completeTask() (any, error) {
	o := c.body.(*Outcome)
	body := &team.CompleteTask{Task: c.PathValue("task"), Fence: o.Fence, Result: o.Result, Verdict: o.Verdict}
	var t team.Task
	var about made = func(e team.Event) bool {
		return makes(func(e *team.TaskCompleted) bool { return e.Task == t.ID })(e) ||
			makes(func(e *team.TaskSubmitted) bool { return e.Task == t.ID })(e)
	}
	done := func(e team.Event) bool {
		return makes[*team.TaskCompleted](nil)(e) || makes[*team.TaskSubmitted](nil)(e)
	}
	err := c.act(body, done, func(of *engine.Team, r *team.Record) (err error) {
		of.View(func(s *team.State) { t, err = s.Find(c.PathValue("task")) })
		if err != nil {
			return err
		}
		return about.check(r)
	})
	return t, err
}

func (c *call) failTask() (any, error) {
	o := c.body.(*Outcome)
	return task(c, &team.FailTask{Task: c.PathValue("task"), Fence: o.Fence, Reason: o.Reason, Result: o.Result},
		func(e *team.TaskFailed) string { return e.Task })
}

func (c *call) releaseTask() (any, error) {
	o := c.body.(*Outcome)
	return task(c, &team.ReleaseTask{Task: c.PathValue("task"), Fence: o.Fence, Reason: o.Reason},
		func(e *team.TaskReleased) string { return e.Task })
}

func (c *call) reassignTask() (any, error) {
	r := c.body.(*Reassignment)
	return onTask[*team.UpdateTask](c, func(e *team.TaskUpdated) string { return e.Task },
		func(t *engine.Team, actor string) error {
			_, err := t.Reassign(c.Context(), actor, upkeep.Reassignment{Task: c.PathValue("task"), To: r.To,
				Force: r.Force})
			if _, busy := errors.AsType[*upkeep.BusyError](err); busy {
				return team.Refuse(team.NotReady, "%v; to take it all the same, set force", err)
			}
			return err
		})
}

func (c *call) rollBackTask() (any, error) {
	return onTask[*team.RollBackTask](c, func(e *team.TaskRolledBack) string { return e.Task },
		func(t *engine.Team, actor string) error {
			_, err := t.RollBackTask(c.Context(), actor, c.PathValue("task"), c.body.(*Undoing).Reason)
			return err
		})
}

// onTask does what takes more than a command to the task of the route, and returns the task. The
// command B carries it out, and of returns the task of the event that it makes.
func onTask[B team.Body, E team.Event](c *call, of func(E) string, do func(t *engine.Team, actor string) error) (
	task team.Task, err error) {
	t, actor, err := c.acting()
	if err != nil {
		return task, err
	}
	t.View(func(s *team.State) { task, err = s.Find(c.PathValue("task")) })
	if err != nil {
		return task, err
	}
	decides[B](c)
	r, err := c.earlier(t, makes(func(e E) bool { return of(e) == task.ID }))
	if err == nil && r == nil {
		if err = do(t, actor); err == nil {
			c.seq = t.Seq()
		}
	}
	t.View(func(s *team.State) { task, _ = s.Task(task.ID) })
	return task, err
}

func (c *call) getDiff() (any, error) {
	t, err := c.look()
	if err != nil {
		return nil, err
	}
	changes, err := t.Changes(c.Context(), c.PathValue("task"))
	return Diff{Member: changes.Member, Task: changes.Task, Working: changes.Dir != "", Patch: changes.Patch,
		Left: changes.Left}, err
}
