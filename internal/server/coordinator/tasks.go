package coordinator

import (
	"encoding/json"

	"cadre/internal/engine"
	"cadre/internal/team"
)

type jsonValue = json.RawMessage

func (q *call) createTask() (answer, error) {
	p := q.payload.(*TeamCreateTask)
	t, err := q.team(p.TeamID)
	if err != nil {
		return answer{}, err
	}
	actor, err := q.actor(t, "createdBy", p.CreatedBy)
	if err != nil {
		return answer{}, err
	}
	body := &team.CreateTask{Subject: p.Title, Description: p.Description, Priority: p.Priority, Metadata: p.Metadata}
	if p.AssigneeID != "" {
		if body.Owner, err = q.member(t, p.AssigneeID); err != nil {
			return answer{}, err
		}
	}
	if t.View(func(s *team.State) { body.BlockedBy, err = s.TaskIDs(p.Dependencies) }); err != nil {
		return answer{}, err
	}
	r, err := q.do(t, actor, body)
	if err != nil {
		return answer{}, err
	}
	made, ok := team.EventIn[*team.TaskCreated](r)
	if !ok {
		return answer{}, repeats()
	}
	return taskAnswer(t, r, made.Task.ID), nil
}

// taskAnswer returns the answer with a task.
func taskAnswer(t *engine.Team, r *team.Record, id string) answer {
	return after(t, r, func(s *team.State) (any, []event) {
		task, _ := s.Task(id)
		return one(teamTaskUpdate, TaskPayload{taskOf(s, &task)})
	})
}

// taskID returns the id of the task that the client names.
func (q *call) taskID(t *engine.Team, ref string) (task team.Task, err error) {
	t.View(func(s *team.State) { task, err = s.Find(ref) })
	return task, err
}

func (q *call) updateTask() (answer, error) {
	p := q.payload.(*TeamUpdateTask)
	t, err := q.team(p.TeamID)
	if err != nil {
		return answer{}, err
	}
	task, err := q.taskID(t, p.TaskID)
	if err != nil {
		return answer{}, err
	}
	actor, err := q.caller()
	if err != nil {
		return answer{}, err
	}
	body := &team.UpdateTask{Task: task.ID, Subject: p.Title, Description: p.Description, Priority: p.Priority,
		Owner: p.AssigneeID, Metadata: p.Metadata}
	if body.Owner != nil && *body.Owner != "" {
		name, err := q.member(t, *body.Owner)
		if err != nil {
			return answer{}, err
		}
		body.Owner = &name
	}
	var last *team.Record
	if p.Title != nil || p.Description != nil || p.Priority != nil || p.AssigneeID != nil || len(p.Metadata) > 0 {
		if last, err = q.do(t, actor, body); err != nil {
			return answer{}, err
		}
	}
	if p.Status != nil {
		r, err := q.setStatus(t, actor, task.ID, *p.Status)
		if err != nil {
			return answer{}, err
		}
		if r != nil {
			last = r
		}
	}
	return taskAnswer(t, last, task.ID), nil
}

// setStatus makes a status of a task true by the command that leads to it. A task that has the
// status stays as it is.
func (q *call) setStatus(t *engine.Team, actor, id, status string) (*team.Record, error) {
	task, err := q.taskID(t, id)
	if err != nil || string(task.Status) == status {
		return nil, err
	}
	switch status {
	case "completed":
		r, err := q.do(t, actor, &team.CompleteTask{Task: id})
		return r, at(atClaim, err)
	case "in_progress":
		if task.Owner == "" {
			return nil, usage("a task in progress has an assignee: set assigneeId too, or let a teammate claim it")
		}
		r, err := q.do(t, actor, &team.ClaimTask{Task: id, Member: task.Owner})
		return r, at(atClaim, err)
	}
	return q.do(t, actor, &team.ReleaseTask{Task: id})
}

// asTeammate sends a command about a task as the teammate.
func (q *call) asTeammate(body func(id string) team.Body) (answer, error) {
	p := q.payload.(*TeamTask)
	t, err := q.team(p.TeamID)
	if err != nil {
		return answer{}, err
	}
	actor, err := q.actor(t, "teammateId", p.TeammateID)
	if err != nil {
		return answer{}, err
	}
	task, err := q.taskID(t, p.TaskID)
	if err != nil {
		return answer{}, err
	}
	r, err := q.do(t, actor, body(task.ID))
	if err != nil {
		return answer{}, at(atClaim, err)
	}
	return taskAnswer(t, r, task.ID), nil
}

func (q *call) claimTask() (answer, error) {
	return q.asTeammate(func(id string) team.Body { return &team.ClaimTask{Task: id} })
}

func (q *call) completeTask() (answer, error) {
	return q.asTeammate(func(id string) team.Body { return &team.CompleteTask{Task: id} })
}

func (q *call) listTasks() (answer, error) {
	t, err := q.look(q.payload.(*OneTeam).TeamID)
	if err != nil {
		return answer{}, err
	}
	return after(t, nil, func(s *team.State) (any, []event) {
		all := tasksOf(s)
		var events []event
		for _, task := range all.Tasks {
			events = append(events, event{teamTaskUpdate, TaskPayload{task}})
		}
		return all, events
	}), nil
}
