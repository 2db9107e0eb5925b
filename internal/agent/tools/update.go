package tools

import (
	"fmt"
	"strings"

	"cadre/internal/team"
)

// partial reports that only the first half of a call was done.
type partial struct {
	done string
	err  error
}

func (p *partial) Error() string { return p.done + ": " + p.err.Error() }
func (p *partial) Unwrap() error { return p.err }

// taskUpdate changes a task's fields, and then its status. The team accepts one command at a time.
// So a refusal of the second is detected before the first is sent, unless the first makes the
// second possible.
func (c *call) taskUpdate(in *taskUpdate) (string, error) {
	if err := c.tasks(append(every(in.AddBlockedBy.all, in.RemoveBlockedBy.all, in.AddBlocks.all, in.RemoveBlocks.all),
		&in.TaskID.s)...); err != nil {
		return "", err
	}
	t, _ := c.task(in.TaskID.s)
	wanted := team.TaskStatus(in.Status.s)
	change, names := c.change(in, t)
	if err := contradiction(in, t, change, names); err != nil {
		return "", err
	}
	member := ""
	if change.Owner != nil && *change.Owner != c.me {
		member = *change.Owner
	}
	if text, ok := c.already(in.TaskID.s, wanted, member); ok && len(names) == 0 {
		return text, nil
	}
	body := settle(wanted, in, member)
	if body != nil && len(names) > 0 {
		opens := change.Owner != nil || len(change.AddBlockedBy)+len(change.RemoveBlockedBy)+len(change.AddBlocks)+
			len(change.RemoveBlocks) > 0 || change.Paths != nil
		if _, is := c.already(in.TaskID.s, wanted, member); !is && (!opens || member != "") {
			if err := c.refused(body); err != nil && (!opens || team.CodeOf(err) == team.Denied) {
				return "", err
			}
		}
	}
	var said []string
	if len(names) > 0 {
		text, err := c.changed(change, names)
		if err != nil {
			return "", err
		}
		said = append(said, text)
	}
	if body != nil {
		text, err := c.settled(body, in.TaskID.s, wanted, member)
		switch {
		case err != nil && len(said) > 0:
			return "", &partial{said[0], err}
		case err != nil:
			return "", err
		}
		said = append(said, text)
	}
	return strings.Join(said, "\n"), nil
}

// contradiction refuses an update whose fields do not fit together.
func contradiction(in *taskUpdate, t team.Task, change *team.UpdateTask, names []string) error {
	wanted := team.TaskStatus(in.Status.s)
	switch {
	case in.Result.s != nil && wanted != team.Completed:
		return mistake("Nothing was changed: a result goes with status completed.")
	case in.Verdict.s != "" && wanted != team.Completed:
		return mistake("Nothing was changed: a verdict goes with status completed.")
	case in.Reason.s != nil && wanted != team.Pending:
		return mistake("Nothing was changed: a reason goes with status pending.")
	case wanted == "" && len(names) == 0:
		return mistake("Nothing was changed: give a status, or a field to change.")
	case wanted == team.Completed && change.Owner != nil && *change.Owner != t.Owner:
		return mistake("Nothing was changed: complete the task, or give it to %s, not both.", quoted(*change.Owner))
	}
	return nil
}

// changed changes the named fields, and reports it.
func (c *call) changed(change *team.UpdateTask, names []string) (string, error) {
	r, err := c.do(change)
	switch {
	case err != nil:
		return "", err
	case r == nil:
		return fmt.Sprintf("Task %s has the same %s already.", c.ref(change.Task), strings.Join(names, ", ")), nil
	}
	text := fmt.Sprintf("Task %s changed: %s.", c.ref(change.Task), strings.Join(names, ", "))
	if t, _ := c.task(change.Task); change.Owner != nil {
		text += c.awaits(t)
	}
	return text, nil
}

// change returns the command that changes fields, and the fields' names for the caller.
func (c *call) change(in *taskUpdate, t team.Task) (change *team.UpdateTask, names []string) {
	change = &team.UpdateTask{Task: in.TaskID.s, Subject: in.Subject.s, Description: in.Description.s,
		ActiveForm: in.ActiveForm.s, Owner: c.owner(in, t), Metadata: in.Metadata.m,
		AddBlockedBy: in.AddBlockedBy.all, RemoveBlockedBy: in.RemoveBlockedBy.all, AddBlocks: in.AddBlocks.all,
		RemoveBlocks: in.RemoveBlocks.all, Paths: in.Paths.all}
	if in.Priority.s != "" {
		change.Priority = &in.Priority.s
	}
	name := func(there bool, words string) {
		if there {
			names = append(names, words)
		}
	}
	name(change.Subject != nil, "subject")
	name(change.Description != nil, "description")
	name(change.ActiveForm != nil, "activeForm")
	name(change.Owner != nil, "owner")
	name(change.Priority != nil, "priority")
	name(change.Paths != nil, "paths")
	name(len(change.AddBlockedBy) > 0, "waits for "+c.refs(change.AddBlockedBy))
	name(len(change.RemoveBlockedBy) > 0, "no longer waits for "+c.refs(change.RemoveBlockedBy))
	name(len(change.AddBlocks) > 0, "blocks "+c.refs(change.AddBlocks))
	name(len(change.RemoveBlocks) > 0, "no longer blocks "+c.refs(change.RemoveBlocks))
	name(len(change.Metadata) > 0, "metadata")
	for i := range names {
		names[i] = line(names[i], mostOfASubject)
	}
	return change, names
}

// owner returns the new owner in the input; nil for none. Agents name themselves when they claim a
// task, and a claim already says that.
func (c *call) owner(in *taskUpdate, t team.Task) *string {
	if in.Owner.s == nil {
		return nil
	}
	owner := c.name(*in.Owner.s)
	switch team.TaskStatus(in.Status.s) {
	case team.InProgress:
		// for another member's task, the refusal of the claim names the owner
		free := t.Owner == "" || t.Owner == c.me || t.Status == team.InProgress && !c.leads
		if owner == "" || owner == c.me && free {
			return nil
		}
	case team.Completed, team.Deleted:
		if owner == "" {
			return nil
		}
	}
	return &owner
}

// settle returns the command for a status; nil for none.
func settle(wanted team.TaskStatus, in *taskUpdate, member string) team.Body {
	switch wanted {
	case team.InProgress:
		return &team.ClaimTask{Task: in.TaskID.s, Member: member}
	case team.Completed:
		return &team.CompleteTask{Task: in.TaskID.s, Result: in.Result.value(), Verdict: in.Verdict.s}
	case team.Pending:
		return &team.ReleaseTask{Task: in.TaskID.s, Reason: in.Reason.value()}
	case team.Deleted:
		return &team.DeleteTask{Task: in.TaskID.s}
	}
	return nil
}

// settled sends such a command and reports its outcome.
func (c *call) settled(body team.Body, id string, wanted team.TaskStatus, member string) (string, error) {
	if text, ok := c.already(id, wanted, member); ok {
		return text, nil
	}
	if id == "" && wanted == team.InProgress {
		return "", mistake("Nothing was claimed: taskId is empty. TaskClaim with next: true takes the next task.")
	}
	if wanted == team.InProgress {
		return c.claim(id, member)
	}
	r, err := c.do(body)
	if err != nil {
		if text, ok := c.already(id, wanted, member); ok { // the same call was made twice at once
			return text, nil
		}
		return "", err
	}
	switch wanted {
	case team.Completed:
		if e, submitted := team.EventIn[*team.TaskSubmitted](r); submitted {
			return fmt.Sprintf("Task %s is done and is being verified by others (%s). If they do not accept it, it "+
				"returns with what is to be mended.%s", c.ref(id), c.refs(e.Tasks), c.more()), nil
		}
		e, _ := team.EventIn[*team.TaskCompleted](r)
		if e.Verdict != "" {
			return fmt.Sprintf("Task %s completed: you %s it.%s%s", c.ref(id), e.Verdict, c.outcomeOf(r, e.Task),
				c.more()), nil
		}
		return fmt.Sprintf("Task %s completed%s.%s", c.ref(id), c.frees(e.Unblocked), c.more()), nil
	case team.Deleted:
		e, _ := team.EventIn[*team.TaskDeleted](r)
		return fmt.Sprintf("Task %s deleted%s.", c.ref(id), c.frees(e.Unblocked)), nil
	}
	return fmt.Sprintf("Task %s is in the queue again.", c.ref(id)), nil
}

// outcomeOf says what a verdict made of the task that was verified.
func (c *call) outcomeOf(r *team.Record, verification string) string {
	for _, e := range r.Events {
		switch e := e.(type) {
		case *team.TaskCompleted:
			if e.Task != verification {
				return fmt.Sprintf(" Task %s is completed%s.", c.ref(e.Task), c.frees(e.Unblocked))
			}
		case *team.TaskRejected:
			return fmt.Sprintf(" Task %s was given back.", c.ref(e.Task))
		}
	}
	return ""
}

func (c *call) frees(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return "; it frees " + c.refs(ids)
}

// more says what a teammate may do after a task.
func (c *call) more() (words string) {
	if c.leads {
		return ""
	}
	c.view(func(s *team.State) {
		if words = " There is no other task for you now."; s.HasWork(c.me) {
			words = " TaskClaim with next: true takes the next one."
		}
	})
	return words
}
