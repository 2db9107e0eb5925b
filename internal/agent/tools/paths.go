package tools

import (
	"fmt"

	"cadre/internal/team"
)

func (c *call) pathClaim(in *pathClaim) (string, error) {
	if len(in.Paths.value()) == 0 {
		return "", mistake("Nothing was added: say which paths, such as src/parser/**.")
	}
	return c.movePaths(&in.TaskID, func(task string) team.Body {
		return &team.ClaimPaths{Task: task, Paths: in.Paths.value()}
	})
}

func (c *call) pathRelease(in *pathRelease) (string, error) {
	return c.movePaths(&in.TaskID, func(task string) team.Body {
		return &team.ReleasePaths{Task: task, Paths: in.Paths.value()}
	})
}

// movePaths sends a command for paths of the task, or of the caller's only task in progress, and
// says which paths it has then.
func (c *call) movePaths(task *id, body func(task string) team.Body) (string, error) {
	if task.s != "" {
		if err := c.tasks(&task.s); err != nil {
			return "", err
		}
	}
	r, err := c.do(body(task.s))
	if err != nil {
		return "", err
	}
	if task.s == "" {
		if held := c.held(); len(held) > 0 {
			task.s = held[0]
		}
	}
	if e, ok := team.EventIn[*team.PathsChanged](r); ok {
		task.s = e.Task
	}
	t, _ := c.task(task.s)
	if len(t.Holds) == 0 {
		return fmt.Sprintf("Task %s has no paths now.", t.Ref()), nil
	}
	return fmt.Sprintf("Task %s has these paths now: %s.", t.Ref(), patterns(t.Holds)), nil
}
