package tools

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cadre/internal/team"
)

func (c *call) taskCreate(in *taskCreate) (string, error) {
	if err := c.tasks(every(in.BlockedBy.all)...); err != nil {
		return "", err
	}
	body := &team.CreateTask{Subject: in.Subject.value(), Description: in.Description.value(),
		ActiveForm: in.ActiveForm.value(), Owner: c.name(in.Owner.value()),
		Role: in.Role.value(), BlockedBy: in.BlockedBy.all, Priority: in.Priority.s, Metadata: in.Metadata.m,
		Paths: in.Paths.value()}
	if name := in.Check.value(); name != "" { // only a name: a member brings no command
		body.Check = &team.TaskCheck{Name: name}
	}
	if len(in.Result.m) > 0 {
		body.Schema, _ = json.Marshal(in.Result.m)
	}
	if len(in.ForEach.all) > 0 {
		body.ForEach = &team.ForEach{Items: in.ForEach.all}
	}
	var err error
	if body.Verify, err = c.verify(in.Verify.m); err != nil {
		return "", err
	}
	if t, ok := c.same(body); ok {
		return fmt.Sprintf("You created this task already: %s\nNothing was added. To add it a second time, give "+
			"it another subject.", brief(t)), nil
	}
	r, err := c.do(body)
	if err != nil {
		return "", err
	}
	e, _ := team.EventIn[*team.TaskCreated](r)
	t, ok := c.task(e.Task.ID)
	if !ok {
		t = e.Task
	}
	return fmt.Sprintf("Task %s created: %s%s%s", t.Ref(), subject(t.Subject), marks(t), c.awaits(t)), nil
}

// verify returns who verifies a new task, as a model wrote it; nil for nobody.
func (c *call) verify(m map[string]json.RawMessage) (*team.Verify, error) {
	if len(m) == 0 {
		return nil, nil
	}
	v := &team.Verify{}
	for _, key := range sorted(m) {
		raw := m[key]
		text, is := scalar(raw)
		n, err := strconv.ParseInt(text, 10, 64)
		switch folded(key) {
		case "by":
			v.By = c.name(text)
		case "rule":
			v.Rule = strings.ToLower(text)
		case "count":
			v.Count, is = n, is && err == nil
		case "rounds":
			v.Rounds, is = n, is && err == nil
		default:
			is = false
		}
		if !is {
			return nil, mistake("Nothing was added: verify takes by (a member or a role), count, rule (%s) and rounds, "+
				"and %s does not fit.", strings.Join(team.VerifyRules, " or "), quoted(key))
		}
	}
	return v, nil
}

// awaits says that a task waits for a member that is not on the team, so that a misspelled name is
// noticed.
func (c *call) awaits(t team.Task) (words string) {
	c.view(func(s *team.State) {
		if s.Awaits(t.ID) {
			words = fmt.Sprintf("\nNo member is named %s: the task waits until you spawn a teammate of "+
				"that name.", t.Owner)
		}
	})
	return words
}

// same returns the open task that the caller created with the same words: the answer to the
// previous call was lost.
func (c *call) same(b *team.CreateTask) (same team.Task, ok bool) {
	importance := b.Priority
	if importance == "" {
		importance = team.DefaultPriority
	}
	c.view(func(s *team.State) {
		for t := range s.Tasks() {
			if t.CreatedBy == c.me && t.Status != team.Completed && t.Subject == b.Subject &&
				t.Description == b.Description && t.Priority == importance &&
				t.Role == b.Role && (t.Owner == b.Owner || !t.Assigned && b.Owner == "") &&
				slices.Equal(t.BlockedBy, b.BlockedBy) {
				same, ok = t, true
			}
		}
	})
	return same, ok
}

// written returns the caller's texts as our tools write them.
func written(ref string) string {
	if strings.Trim(ref, "0123456789") == "" {
		ref = "#" + ref
	}
	return line(ref, mostOfASubject)
}

// mostTasks bounds how many tasks a list shows.
const mostTasks = 200

func (c *call) taskList(in *taskList) (string, error) {
	var lines, free []string
	left := 0
	owner := c.name(in.Owner.value())
	c.view(func(s *team.State) {
		open := s.Count(team.Pending) + s.Count(team.InProgress)
		for t := range s.Tasks() {
			switch {
			case in.Status.s != "" && string(t.Status) != in.Status.s, owner != "" && t.Owner != owner:
			case len(lines) == mostTasks || in.Status.s == "" && t.Status == team.Completed &&
				open+s.Count(team.Completed) > mostTasks:
				left++ // completed tasks are left out first
			default:
				lines = append(lines, brief(t)+outcome(t))
			}
		}
		if s.AllowsTool(c.me, "TaskClaim") == nil {
			for _, t := range s.Claimable(c.me) {
				if len(free) < 10 {
					free = append(free, t.Ref())
				}
			}
		}
	})
	switch {
	case len(lines)+left > 0 && left > 0:
		lines = append(lines, fmt.Sprintf("and %d more; name a status or an owner to see fewer.", left))
	case len(lines) == 0 && (in.Status.s != "" || owner != ""):
		lines = append(lines, "No such tasks. TaskList without status and owner shows all.")
	case len(lines) == 0:
		lines = append(lines, "No tasks yet.")
	}
	if len(free) > 0 {
		lines = append(lines, "You can claim: "+strings.Join(free, ", "))
	}
	return strings.Join(lines, "\n"), nil
}

func (c *call) taskGet(in *taskGet) (shown string, err error) {
	if err := c.tasks(&in.TaskID.s); err != nil {
		return "", err
	}
	err = mistake("There is no task %s. TaskList shows the tasks.", written(in.TaskID.s))
	c.view(func(s *team.State) {
		switch t, ok := s.Task(in.TaskID.s); {
		case ok && t.Status == team.Deleted:
			err = mistake("Task %s was deleted. TaskList shows the tasks.", t.Ref())
		case ok:
			shown, err = whole(s, t), nil
		}
	})
	return shown, err
}

func (c *call) taskClaim(in *taskClaim) (string, error) {
	switch {
	case in.TaskID.s != "" && in.Next.on:
		return "", mistake("Nothing was claimed: give either taskId or next, not both.")
	case in.TaskID.s != "":
		if err := c.tasks(&in.TaskID.s); err != nil {
			return "", err
		}
		return c.claim(in.TaskID.s, "")
	}
	// A caller that asks for the next task while it works on one has most likely not seen the
	// answer to its previous call.
	if held := c.held(); len(held) > 0 {
		return "You are at a task already. Finish it with TaskUpdate, or claim another one by its taskId.\n" +
			c.show(held[0]), nil
	}
	return c.claim("", "")
}

// held returns the ids of the caller's tasks in progress.
func (c *call) held() (ids []string) {
	c.view(func(s *team.State) {
		for t := range s.Tasks() {
			if t.Status == team.InProgress && t.Owner == c.me {
				ids = append(ids, t.ID)
			}
		}
	})
	return ids
}

func (c *call) show(id string) (shown string) {
	c.view(func(s *team.State) {
		if t, ok := s.Task(id); ok {
			shown = whole(s, t)
		}
	})
	return shown
}

// claim claims a task (the next one if id is "") for a member (the caller if it is "").
func (c *call) claim(id, member string) (string, error) {
	r, err := c.do(&team.ClaimTask{Task: id, Member: member})
	if team.CodeOf(err) == team.Nothing {
		return sentence(line(err.Error(), mostOfAnError)) + " End your turn; you are woken when there is something " +
			"for you.", nil
	}
	if err != nil {
		if text, ok := c.already(id, team.InProgress, member); ok {
			return text, nil
		}
		return "", err
	}
	e, _ := team.EventIn[*team.TaskClaimed](r)
	if e.Member != c.me {
		return fmt.Sprintf("Task %s is in progress by %s now.", c.ref(e.Task), e.Member), nil
	}
	return fmt.Sprintf("You hold task %s now.\n%s%s", c.ref(e.Task), c.show(e.Task), c.noteNews()), nil
}

// already says that a task is already as the caller wants it.
func (c *call) already(id string, wanted team.TaskStatus, member string) (string, bool) {
	t, ok := c.task(id)
	if member == "" {
		member = c.me
	}
	switch {
	case !ok || t.Status != wanted:
	case wanted == team.Deleted:
		return fmt.Sprintf("Task %s was deleted already.", t.Ref()), true
	case wanted == team.Pending && !t.OutOfRetries() && t.Submission == nil:
		return fmt.Sprintf("Task %s is in the queue already.", t.Ref()), true
	case wanted == team.Completed && t.CompletedBy == c.me && t.Verifies == "":
		return fmt.Sprintf("You completed task %s already; its result is as it was.", t.Ref()), true
	case wanted == team.InProgress && t.Owner == member && member == c.me:
		return fmt.Sprintf("You hold task %s already.\n%s", t.Ref(), c.show(t.ID)), true
	case wanted == team.InProgress && t.Owner == member:
		return fmt.Sprintf("Task %s is in progress by %s already.", t.Ref(), member), true
	}
	return "", false
}
