package replica

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"cadre/internal/replica/schema"
	"cadre/internal/team"
)

// Checker runs the check of a task in the place where the member works, which may be "" for a
// person who works in the team's directory. failure is what the check printed, or why it did not
// pass; "" if it passed. An error means that the check could not be run, or that ctx ended.
type Checker func(ctx context.Context, of team.Team, t team.Task, member string) (failure string, err error)

// checkSchemas refuses a command that would give a task an invalid schema. The core does not know
// which schemas are valid.
func checkSchemas(body team.Body) error {
	var of []byte
	switch b := body.(type) {
	case *team.Batch:
		for _, one := range b.Bodies {
			if err := checkSchemas(one); err != nil {
				return err
			}
		}
	case *team.CreateTask:
		of = b.Schema
	case *team.ReviseTask:
		of = b.To.Schema
	}
	if len(of) == 0 || len(of) > team.MaxSchema || string(of) == "null" { // the core refuses one that is too long
		return nil
	}
	if _, err := schema.Parse(of); err != nil {
		return team.Refuse(team.Invalid, "the schema of the result cannot be used: %v", err)
	}
	return nil
}

// examination is a completion that the gate examines before the team is asked.
type examination struct {
	body *team.CompleteTask // the gate's own copy
	task team.Task
	by   string // who completes it
}

// examining returns the command with a body of the gate's own, whose Examined only the gate sets.
func examining(c team.Command) (team.Command, *examination) {
	body, is := c.Body.(*team.CompleteTask)
	if !is {
		return c, nil
	}
	own := *body
	own.Examined = false
	c.Body = &own
	return c, &examination{body: &own, by: cmp.Or(body.Member, c.Actor)}
}

// look finds the task. A completion by its holder is bound to the present claim, because what is
// demanded of a task cannot change under one.
func (x *examination) look(s *team.State) {
	x.task, _ = s.Lookup(x.body.Task)
	if t := &x.task; x.demanded() && t.Status == team.InProgress && t.Owner == x.by && x.body.Fence == 0 {
		x.body.Fence = t.Fence
	}
}

// demanded reports whether there is something to examine.
func (x *examination) demanded() bool { return x != nil && x.task.Examines(x.body.Result) }

// examine validates the result and runs the check. It returns nil if the task's demands are met. An
// error means that the command must not be sent.
func (rep *Replica) examine(ctx context.Context, c team.Command, of team.Team, x *examination) error {
	about := &team.RejectResult{Task: x.task.ID, Member: x.body.Member, Fence: x.body.Fence, Result: x.body.Result}
	if len(x.task.Schema) > 0 {
		s, err := schema.Parse(x.task.Schema)
		if err != nil {
			return team.Refuse(team.NotReady, "the schema of task %s cannot be used: %v", x.task.Called(), err)
		}
		if errs := s.Misfits(x.body.Result); len(errs) > 0 {
			about.By, about.Feedback = team.ByResult, listed(errs)
		}
	}
	if about.By == "" && x.task.Check != nil {
		failure, err := rep.opts.Check(ctx, of, x.task, x.by)
		if err != nil {
			return err
		}
		if failure != "" {
			about.By, about.Feedback = team.ByCheck, failure
		}
	}
	if about.By == "" {
		return nil
	}
	return rep.sendBack(ctx, c, x.task, about)
}

// listed returns the reasons below each other; one alone as it is.
func listed(reasons []string) string {
	if len(reasons) == 1 {
		return reasons[0]
	}
	return "- " + strings.Join(reasons, "\n- ")
}

// sendBack records the rejection, and returns it as the refusal for the caller.
func (rep *Replica) sendBack(ctx context.Context, c team.Command, t team.Task, about *team.RejectResult) error {
	receipt, err := rep.send(ctx, team.Command{ID: rep.opts.NewID(), Actor: c.Actor, At: rep.opts.Now(), Via: c.Via,
		Incarnation: c.Incarnation, Lease: c.Lease, Body: about})
	switch {
	case team.CodeOf(err) != "": // the member has no claim any more, for example
		return err
	case err != nil:
		return fmt.Errorf("the rejection of a result could not be recorded: %w", err)
	}
	e, recorded := team.EventIn[*team.TaskRejected](receipt.Record)
	if !recorded {
		e = &team.TaskRejected{Task: t.ID, By: about.By, Feedback: about.Feedback}
	}
	return &Rejected{refusal: &team.Error{Code: team.Rejected, Text: e.Refusal(t)}, count: e.Count, ended: e.Final(),
		demanded: true}
}
