package render

import (
	"fmt"

	"cadre/internal/team"
)

// ofGroup describes an event of a task that is done by the tasks that it makes. is reports whether
// e is one.
func ofGroup(e team.Event, called func(id string) string) (line string, is bool) {
	all := func(ids []string) (names []string) {
		for _, id := range ids {
			names = append(names, called(id))
		}
		return names
	}
	switch e := e.(type) {
	case *team.TaskExpanded:
		return expanded(e, called), true
	case *team.TaskFolded:
		return "task " + called(e.Task) + " will make its tasks again", true
	case *team.TaskCreated: // the line of its group names it
		return "", e.Task.Of != ""
	case *team.TaskFailed:
		return fmt.Sprintf("task %s FAILED to make its tasks%s", called(e.Task), frees(all(e.Unblocked))) +
			tail(e.Reason), e.By == ""
	case *team.TaskCompleted:
		return fmt.Sprintf("task %s is completed%s", called(e.Task), frees(all(e.Unblocked))), e.By == ""
	}
	return "", false
}

// expanded says which tasks a group has made.
func expanded(e *team.TaskExpanded, called func(id string) string) string {
	switch n := len(e.Tasks); n {
	case 0:
		return "task " + called(e.Task) + " has no items and makes no tasks"
	case 1:
		return fmt.Sprintf("task %s makes 1 task: %s", called(e.Task), called(e.Tasks[0]))
	default:
		return fmt.Sprintf("task %s makes %d tasks: %s to %s", called(e.Task), n, called(e.Tasks[0]),
			called(e.Tasks[n-1]))
	}
}
