package render

import (
	"fmt"
	"strings"

	"cadre/internal/team"
)

// ofOutcome describes how a member ended a task, and what others said of it. is reports whether e
// is such an event.
func ofOutcome(e team.Event, called func(id string) string) (line string, is bool) {
	all := func(ids []string) string {
		var names []string
		for _, id := range ids {
			names = append(names, called(id))
		}
		return strings.Join(names, ", ")
	}
	switch e := e.(type) {
	case *team.TaskSubmitted:
		return fmt.Sprintf("%s is done with task %s; it is verified with task %s", e.By, called(e.Task),
			all(e.Tasks)), true
	case *team.WordsRecorded:
		return fmt.Sprintf("%s said at the end of task %s", e.Member, called(e.Task)) + tail(e.Words), true
	case *team.TaskCompleted:
		if e.Verdict != "" {
			return fmt.Sprintf("%s verified with task %s: %s", e.By, called(e.Task), e.Verdict) + tail(e.Result), true
		}
		var free []string
		for _, id := range e.Unblocked {
			free = append(free, called(id))
		}
		return fmt.Sprintf("%s completed task %s%s%s", e.By, called(e.Task),
			prefixed(", accepted by ", strings.ReplaceAll(strings.Join(e.Verified, ", "), "@", "")), frees(free)), true
	}
	return "", false
}

// ofRejection describes a result that was sent back. is reports whether e is one.
func ofRejection(e team.Event, called func(id string) string) (line string, is bool) {
	if e, is := e.(*team.TaskRejected); is {
		return fmt.Sprintf("task %s goes back to %s: %s", called(e.Task), e.Member, e.Words()) + tail(e.Feedback), true
	}
	return "", false
}
