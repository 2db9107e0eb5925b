package tools

import (
	"fmt"
	"strings"

	"cadre/internal/team"
)

// partial is a call of which the first half was done and the second was not.
type partial struct {
	done string
	err  error
}

func (p *partial) Error() string { return p.done + ": " + p.err.Error() }
func (p *partial) Unwrap() error { return p.err }

// taskUpdate changes a task's fields, and then what became of it. The team takes one command at a
// time, so what it would refuse of the second is found out before the first is sent, as far as the
// first does not make it possible.
func (c *call) taskUpdate(in *taskUpdate) (string, error) {
	t, _ := c.task(in.TaskID.s)
	wanted := team.TaskStatus(in.Status.s)
	change, names := c.change(in, t)
	switch {
	case in.Result.s != nil && wanted != team.Completed:
		return "", mistake("Nothing was changed: a result goes with status completed.")
	case in.Reason.s != nil && wanted != team.Pending:
		return "", mistake("Nothing was changed: a reason goes with status pending.")
	case wanted == "" && len(names) == 0:
		return "", mistake("Nothing was changed: give a status, or a field to change.")
	case wanted == team.Completed && change.Owner != nil && *change.Owner != t.Owner:
		return "", mistake("Nothing was changed: complete the task, or give it to %s, not both.", quoted(*change.Owner))
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
			len(change.RemoveBlocks) > 0
		if _, is := c.already(in.TaskID.s, wanted, member); !is && (!opens || member != "") {
			if err := c.refused(body); err != nil && (!opens || team.CodeOf(err) == team.Denied) {
				return "", err
			}
		}
	}
	var said []string
	if len(names) > 0 {
		r, err := c.do(change)
		switch {
		case err != nil:
			return "", err
		case r == nil:
			said = append(said, fmt.Sprintf("Task #%s has the same %s already.", change.Task,
				strings.Join(names, ", ")))
		default:
			said = append(said, fmt.Sprintf("Task #%s changed: %s.", change.Task, strings.Join(names, ", ")))
			if t, _ := c.task(change.Task); change.Owner != nil {
				said[len(said)-1] += c.awaits(t)
			}
		}
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

// change is the command that changes fields, and their names for the caller.
func (c *call) change(in *taskUpdate, t team.Task) (change *team.UpdateTask, names []string) {
	change = &team.UpdateTask{Task: in.TaskID.s, Subject: in.Subject.s, Description: in.Description.s,
		ActiveForm: in.ActiveForm.s, Owner: c.owner(in, t), Metadata: in.Metadata.m,
		AddBlockedBy: in.AddBlockedBy.all, RemoveBlockedBy: in.RemoveBlockedBy.all, AddBlocks: in.AddBlocks.all,
		RemoveBlocks: in.RemoveBlocks.all}
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
	name(len(change.AddBlockedBy) > 0, "waits for "+numbered(change.AddBlockedBy))
	name(len(change.RemoveBlockedBy) > 0, "waits no more for "+numbered(change.RemoveBlockedBy))
	name(len(change.AddBlocks) > 0, "blocks "+numbered(change.AddBlocks))
	name(len(change.RemoveBlocks) > 0, "blocks no more "+numbered(change.RemoveBlocks))
	name(len(change.Metadata) > 0, "metadata")
	for i := range names {
		names[i] = line(names[i], mostOfASubject)
	}
	return change, names
}

// owner is the new owner that the input asks for; nil for none. Agents name themselves when they
// claim a task, and a claim says that already.
func (c *call) owner(in *taskUpdate, t team.Task) *string {
	if in.Owner.s == nil {
		return nil
	}
	owner := c.name(*in.Owner.s)
	switch team.TaskStatus(in.Status.s) {
	case team.InProgress:
		// of somebody else's task the claim says best whose it is
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

// settle is the command behind a status; nil for none.
func settle(wanted team.TaskStatus, in *taskUpdate, member string) team.Body {
	switch wanted {
	case team.InProgress:
		return &team.ClaimTask{Task: in.TaskID.s, Member: member}
	case team.Completed:
		return &team.CompleteTask{Task: in.TaskID.s, Result: in.Result.value()}
	case team.Pending:
		return &team.ReleaseTask{Task: in.TaskID.s, Reason: in.Reason.value()}
	case team.Deleted:
		return &team.DeleteTask{Task: in.TaskID.s}
	}
	return nil
}

// settled sends such a command and says what came of it.
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
		e, _ := found[*team.TaskCompleted](r)
		return fmt.Sprintf("Task #%s completed%s.%s", id, frees(e.Unblocked), c.more()), nil
	case team.Deleted:
		e, _ := found[*team.TaskDeleted](r)
		return fmt.Sprintf("Task #%s deleted%s.", id, frees(e.Unblocked)), nil
	}
	return fmt.Sprintf("Task #%s is back on the list.", id), nil
}

func frees(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return "; it frees " + numbered(ids)
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
