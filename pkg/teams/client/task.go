package client

import (
	"context"
	"encoding/json"
	"time"

	core "cadre/internal/team"
	"cadre/pkg/teams"
)

// TaskSpec describes a task to add. Only Subject must be set.
type TaskSpec struct {
	Name        string                     `json:"name,omitempty"` // "" to use its id
	Subject     string                     `json:"subject"`
	Description string                     `json:"description,omitempty"`
	Owner       string                     `json:"owner,omitempty"`     // the member that should do it; "" for any
	Role        string                     `json:"role,omitempty"`      // the role that should do it
	BlockedBy   []string                   `json:"blockedBy,omitempty"` // ids or names of the tasks that it depends on
	Priority    teams.Priority             `json:"priority,omitempty"`
	Run         string                     `json:"run,omitempty"` // command of a shell member; needs the role admin
	Timeout     time.Duration              `json:"-"`             // of the command; 0 for an hour
	Retries     int                        `json:"retries,omitempty"`
	Check       string                     `json:"check,omitempty"`  // command that must pass; needs the role admin
	Rounds      int                        `json:"rounds,omitempty"` // how often an attempt is tried until Check passes
	Schema      json.RawMessage            `json:"schema,omitempty"` // JSON Schema that its result must fit
	When        teams.When                 `json:"when,omitempty"`   // when it may start
	Paths       []string                   `json:"paths,omitempty"`  // patterns of the files that it changes
	ForEach     *ForEach                   `json:"forEach,omitempty"`
	Verify      *teams.Verify              `json:"verify,omitempty"` // who must accept it before it counts as completed
	Metadata    map[string]json.RawMessage `json:"metadata,omitempty"`
}

// ForEach says for which items a task makes tasks; see [teams.ForEach]. A command needs the role
// admin.
type ForEach struct {
	Items   []json.RawMessage `json:"items,omitempty"`
	Matrix  []MatrixAxis      `json:"matrix,omitempty"`
	Exclude []json.RawMessage `json:"exclude,omitempty"`
	Glob    string            `json:"glob,omitempty"`
	Run     string            `json:"run,omitempty"`
}

// MatrixAxis is one dimension of a matrix.
type MatrixAxis struct {
	Name   string            `json:"name"`
	Values []json.RawMessage `json:"values"`
}

// MarshalJSON writes the description as the server reads it.
func (s TaskSpec) MarshalJSON() ([]byte, error) {
	type plain TaskSpec
	return json.Marshal(struct {
		plain
		Timeout int64 `json:"timeoutMs,omitempty"`
	}{plain(s), s.Timeout.Milliseconds()})
}

// TaskChange changes a task. Fields that are nil or empty change nothing.
type TaskChange struct {
	Subject         *string                    `json:"subject,omitempty"`
	Description     *string                    `json:"description,omitempty"`
	Owner           *string                    `json:"owner,omitempty"` // "" for any member
	Priority        *teams.Priority            `json:"priority,omitempty"`
	Run             *string                    `json:"run,omitempty"`      // needs the role admin
	Metadata        map[string]json.RawMessage `json:"metadata,omitempty"` // the value null deletes its key
	AddBlockedBy    []string                   `json:"addBlockedBy,omitempty"`
	RemoveBlockedBy []string                   `json:"removeBlockedBy,omitempty"`
	Paths           *[]string                  `json:"paths,omitempty"` // all files that it changes
}

// TaskState is the state of a task as a list shows it.
type TaskState string

// The states of a task.
const (
	TaskPending    TaskState = "pending"
	TaskBlocked    TaskState = "blocked" // pending, and others must be done first
	TaskInProgress TaskState = "in_progress"
	TaskVerifying  TaskState = "verifying" // done, and others have still to accept it
	TaskCompleted  TaskState = "completed"
	TaskSkipped    TaskState = "skipped" // it will never run, and counts as completed
	TaskFailed     TaskState = "failed"  // out of retries
)

// TaskFilter selects tasks. A task must match every field that is set.
type TaskFilter struct {
	States      []TaskState // one of these
	Owner       string
	Role        string
	Priority    teams.Priority
	ClaimableBy string // the member could claim it now
}

// Tasks returns the tasks that match the filter.
func (c *Client) Tasks(ctx context.Context, name string, f TaskFilter) ([]teams.Task, error) {
	r := team("GET", name, "tasks").where("owner", f.Owner).where("role", f.Role).where("priority", string(f.Priority)).
		where("claimable", f.ClaimableBy)
	for _, s := range f.States {
		r = r.where("status", string(s))
	}
	return list[teams.Task, core.Task](ctx, c, r)
}

// Task returns a task, by its id or its name.
func (c *Client) Task(ctx context.Context, name, task string) (teams.Task, error) {
	return c.task(ctx, team("GET", name, "tasks", task))
}

func (c *Client) task(ctx context.Context, r request) (teams.Task, error) {
	return public[teams.Task, core.Task](ctx, c, r)
}

// AddTask adds a task. A member can do it.
func (c *Client) AddTask(ctx context.Context, name string, s TaskSpec) (teams.Task, error) {
	return c.task(ctx, team("POST", name, "tasks").with(s).by(c))
}

// UpdateTask changes a task. A member can do it.
func (c *Client) UpdateTask(ctx context.Context, name, task string, change TaskChange) (teams.Task, error) {
	return c.task(ctx, team("PATCH", name, "tasks", task).with(change).by(c))
}

// DeleteTask removes a task. A member can do it.
func (c *Client) DeleteTask(ctx context.Context, name, task string) error {
	return c.do(ctx, team("DELETE", name, "tasks", task).by(c), nil)
}

// ClaimTask claims a task as the client's member. It returns [teams.ErrConflict] if another member
// holds it.
func (c *Client) ClaimTask(ctx context.Context, name, task string) (teams.Claim, error) {
	return c.claim(ctx, team("POST", name, "tasks", task, "claim").by(c))
}

// ClaimNext claims the next task as the client's member. It returns [teams.ErrNoTask] if there is
// none.
func (c *Client) ClaimNext(ctx context.Context, name string) (teams.Claim, error) {
	return c.claim(ctx, team("POST", name, "tasks", "claim").by(c))
}

// WaitNext is ClaimNext that waits until there is a task, or until ctx ends.
func (c *Client) WaitNext(ctx context.Context, name string) (teams.Claim, error) {
	return awaited(ctx, func(ctx context.Context) (teams.Claim, error) {
		return c.claim(ctx, team("POST", name, "tasks", "claim").number("wait", longest).by(c))
	})
}

func (c *Client) claim(ctx context.Context, r request) (teams.Claim, error) {
	t, err := ask[core.Task](ctx, c, r)
	if err != nil {
		return teams.Claim{}, err
	}
	return teams.Claim{ID: t.ID, Fence: t.Fence, Task: of[teams.Task](t)}, nil
}

// outcome is how a task ends.
type outcome struct {
	Fence  int64  `json:"fence,omitempty"`
	Reason string `json:"reason,omitempty"`
	Result string `json:"result,omitempty"`
	// of a task that verifies another one
	Verdict teams.Verdict `json:"verdict,omitempty"`
}

// CompleteTask completes a task as the client's member. It returns [teams.ErrConflict] if the claim
// was lost. With teams.Claim{ID: id}, it checks only the owner.
func (c *Client) CompleteTask(ctx context.Context, name string, claim teams.Claim, result string) (teams.Task, error) {
	return c.task(ctx, team("POST", name, "tasks", claim.ID, "complete").with(outcome{claim.Fence, "", result,
		""}).by(c))
}

// Decide completes a task that verifies another one, as the client's member: it accepts that or
// gives it back, with the reason.
func (c *Client) Decide(ctx context.Context, name string, claim teams.Claim, verdict teams.Verdict,
	reason string) (teams.Task, error) {
	return c.task(ctx, team("POST", name, "tasks", claim.ID, "complete").
		with(outcome{claim.Fence, "", reason, verdict}).by(c))
}

// FailTask ends an attempt that was not successful, as the client's member. partial is a partial
// result.
func (c *Client) FailTask(ctx context.Context, name string, claim teams.Claim, reason, partial string) (teams.Task,
	error) {
	return c.task(ctx, team("POST", name, "tasks", claim.ID, "fail").with(outcome{claim.Fence, reason, partial,
		""}).by(c))
}

// ReleaseTask returns a task to the queue. A task that is out of retries is tried again. A member
// can do it.
func (c *Client) ReleaseTask(ctx context.Context, name string, claim teams.Claim, reason string) (teams.Task, error) {
	return c.task(ctx, team("POST", name, "tasks", claim.ID, "release").with(outcome{claim.Fence, reason, "",
		""}).by(c))
}

// taskPaths are paths of a task in progress.
type taskPaths struct {
	Paths []string `json:"paths,omitempty"`
}

// Paths returns the tasks in progress to which paths belong, and then those that wait for paths.
func (c *Client) Paths(ctx context.Context, name string) ([]teams.Task, error) {
	return list[teams.Task, core.Task](ctx, c, team("GET", name, "paths"))
}

// ClaimPaths adds paths to a task in progress, as the client's member. It returns
// [teams.ErrConflict] if one belongs to another task.
func (c *Client) ClaimPaths(ctx context.Context, name, task string, paths ...string) (teams.Task, error) {
	return c.task(ctx, team("POST", name, "tasks", task, "paths", "claim").with(taskPaths{paths}).by(c))
}

// ReleasePaths gives back paths of a task in progress, as the client's member; all of them if none
// is named.
func (c *Client) ReleasePaths(ctx context.Context, name, task string, paths ...string) (teams.Task, error) {
	return c.task(ctx, team("POST", name, "tasks", task, "paths", "release").with(taskPaths{paths}).by(c))
}

// Reassign gives a task to another member, with the work on it so far. A member can do it.
func (c *Client) Reassign(ctx context.Context, name string, r teams.Reassignment) (teams.Task, error) {
	body := map[string]any{"to": r.To, "force": r.Force}
	return c.task(ctx, team("POST", name, "tasks", r.Task, "reassign").with(body).by(c))
}

// RollBackTask undoes the work of a completed task in git. A member can do it.
func (c *Client) RollBackTask(ctx context.Context, name, task, reason string) (teams.Task, error) {
	return c.task(ctx, team("POST", name, "tasks", task, "rollback").with(because(reason)).by(c))
}

// Diff is what was changed for a task. Likely secrets are replaced.
type Diff struct {
	Member  string   `json:"member"`  // who changed it
	Task    string   `json:"task"`    // id of the task
	Working bool     `json:"working"` // the worktree as it is now; otherwise recorded or saved work
	Patch   string   `json:"patch"`   // in the form that git apply takes
	Left    []string `json:"leftOut"` // files that are not in the patch, some with the reason
}

// Diff returns what was changed for a task.
func (c *Client) Diff(ctx context.Context, name, task string) (Diff, error) {
	return ask[Diff](ctx, c, team("GET", name, "tasks", task, "diff"))
}
