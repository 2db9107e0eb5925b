package guest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"cadre/internal/agent"
	"cadre/internal/claude/teamfiles"
	"cadre/internal/render/excerpt"
	"cadre/internal/team"
)

// replica is a member's view of the team and its way to change it: an [agent.Team] over the files.
type replica struct {
	team  *teamfiles.Team
	color string
	// answered receives the member's answer to a request to shut down. An approval is not sent
	// here: the lead is told once the member has really ended.
	answered func(approved bool)

	mu    sync.Mutex // held while the files are read and changed
	self  self
	files map[string]teamfiles.Task // the files that state was read from

	stateMu sync.RWMutex
	state   *team.State

	activityMu sync.Mutex
	activity   activity
}

// activity is what the member did in its turn, for the notice at the turn's end.
type activity struct {
	summary string // of its last message to a colleague
	task    string // the task that it completed last
}

// errNotListed reports that the member is not on the roster.
var errNotListed = errors.New("it is not on the team's roster")

// Refresh reads the files again.
func (d *replica) Refresh(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.refresh(ctx)
}

func (d *replica) refresh(ctx context.Context) error {
	c, err := d.team.Config(ctx)
	if err != nil {
		return err
	}
	tasks, err := d.team.Tasks(ctx)
	if err != nil && tasks == nil {
		return err
	}
	d.files = map[string]teamfiles.Task{}
	for _, t := range tasks {
		d.files[t.ID] = t
	}
	s := stateOf(c, tasks, d.self)
	d.stateMu.Lock()
	d.state = s
	d.stateMu.Unlock()
	if _, on := s.Member(d.self.name); !on {
		return errNotListed
	}
	return nil
}

// updateSelf changes what the member knows about itself, and reads the files again.
func (d *replica) updateSelf(ctx context.Context, change func(*self)) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(&d.self)
	return d.refresh(ctx)
}

// View implements [agent.Team].
func (d *replica) View(see func(*team.State)) {
	d.stateMu.RLock()
	defer d.stateMu.RUnlock()
	see(d.state)
}

func now() team.Time { return team.Time(time.Now().UnixMilli()) }

// attempts bounds how often a command is decided again because a file changed in between. Each such
// change means that another member made progress.
const attempts = 30

// Do implements [agent.Team]. It waits for the locks of the files.
func (d *replica) Do(ctx context.Context, body team.Body) (*team.Record, error) {
	ctx, cancel := context.WithTimeout(ctx, fileTimeout)
	defer cancel()
	d.mu.Lock()
	defer d.mu.Unlock()
	for range attempts {
		if err := d.refresh(ctx); err != nil {
			return nil, err
		}
		decision, err := team.Decide(d.state, team.Command{ID: rand.Text(), Actor: d.self.name, At: now(), Body: body})
		if err != nil || decision.Record == nil {
			return nil, err
		}
		err = d.write(ctx, decision.Record)
		if errors.Is(err, teamfiles.ErrChanged) {
			continue
		}
		if err == nil {
			err = d.refresh(ctx)
		}
		return decision.Record, err
	}
	return nil, &team.Error{Code: team.Conflict, Text: "other members keep changing the same task; read it again"}
}

// write turns events into changes of the files.
func (d *replica) write(ctx context.Context, r *team.Record) error {
	ids := map[string]string{} // tasks that got another id than the decided one
	id := func(decided string) string {
		if given, ok := ids[decided]; ok {
			return given
		}
		return decided
	}
	for _, e := range r.Events {
		var err error
		switch e := e.(type) {
		case *team.TaskCreated:
			decided := e.Task.ID
			e.Task.ID, err = d.create(ctx, &e.Task)
			if err == nil {
				ids[decided] = e.Task.ID
			}
		case *team.MessageSent:
			err = d.send(ctx, &e.Message, id)
		case *team.ShutdownAnswered:
			err = d.answerShutdown(ctx, e)
		case *team.PlanSubmitted:
			e.Request = d.planID()
			err = d.submit(ctx, e.Request, e.Plan)
			if err == nil {
				d.self.plan.State, d.self.plan.Request, d.self.plan.Text = "submitted", e.Request, e.Plan
			}
		default:
			err = d.writeTask(ctx, e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeTask turns an event about an existing task into a change of its file.
func (d *replica) writeTask(ctx context.Context, e team.Event) error {
	switch e := e.(type) {
	case *team.TaskUpdated:
		return d.updateTask(ctx, e)
	case *team.TaskClaimed:
		return d.changeTask(ctx, e.Task, func(t *teamfiles.Task) error {
			t.Status, t.Owner = string(team.InProgress), e.Member
			return setMetadata(t, keyFailure, "")
		})
	case *team.TaskReleased:
		return d.changeTask(ctx, e.Task, func(t *teamfiles.Task) error {
			t.Status, t.Owner = string(team.Pending), e.Owner
			return nil
		})
	case *team.TaskFailed:
		return d.changeTask(ctx, e.Task, func(t *teamfiles.Task) error {
			t.Status, t.Owner = string(team.Pending), ""
			return errors.Join(setMetadata(t, keyFailure, e.Reason), setMetadata(t, keyResult, e.Result))
		})
	case *team.TaskCompleted:
		err := d.changeTask(ctx, e.Task, func(t *teamfiles.Task) error {
			t.Status = string(team.Completed)
			if t.Owner == "" {
				t.Owner = e.By
			}
			return errors.Join(setMetadata(t, keyResult, e.Result), setMetadata(t, keyFailure, ""))
		})
		d.addActivity(func(did *activity) { did.task = e.Task })
		return err
	case *team.TaskDeleted:
		return d.team.DeleteTask(ctx, e.Task)
	}
	return nil
}

// answerShutdown records the answer to a request to shut down. It notifies the lead of a rejection.
func (d *replica) answerShutdown(ctx context.Context, e *team.ShutdownAnswered) error {
	if e.Approved {
		d.self.shutdown.Answer = "approved"
	} else {
		err := d.notifyLead(ctx, &teamfiles.ShutdownRejected{RequestID: e.Request, From: d.self.name,
			Reason: e.Reason, Timestamp: teamfiles.Stamp(time.Now())})
		d.self.shutdown = team.Shutdown{}
		if err != nil {
			return err
		}
	}
	d.answered(e.Approved)
	return nil
}

func (d *replica) planID() string {
	return fmt.Sprintf("plan_approval-%d@%s@%s", now(), d.self.name, d.team.Name)
}

func (d *replica) submit(ctx context.Context, request, plan string) error {
	return d.notifyLead(ctx, &teamfiles.PlanRequest{From: d.self.name, Timestamp: teamfiles.Stamp(time.Now()),
		Plan:      plan,
		RequestID: request})
}

// changeTask changes a task if it is still as it was when the command was decided.
func (d *replica) changeTask(ctx context.Context, id string, change func(*teamfiles.Task) error) error {
	decided := d.files[id]
	return d.team.ChangeTask(ctx, id, func(t *teamfiles.Task) error {
		if t.Status != decided.Status || t.Owner != decided.Owner || !slices.Equal(t.BlockedBy, decided.BlockedBy) {
			return teamfiles.ErrChanged
		}
		return change(t)
	})
}

func setMetadata(t *teamfiles.Task, key, words string) error {
	if words == "" {
		delete(t.Metadata, key)
		return nil
	}
	data, err := json.Marshal(words)
	if err != nil {
		return err
	}
	if t.Metadata == nil {
		t.Metadata = map[string]json.RawMessage{}
	}
	t.Metadata[key] = data
	return nil
}

func (d *replica) create(ctx context.Context, t *team.Task) (string, error) {
	file := teamfiles.Task{Subject: t.Subject, Description: t.Description, ActiveForm: t.ActiveForm, Owner: t.Owner,
		Status: string(team.Pending), Metadata: t.Metadata}
	if t.Priority != team.DefaultPriority {
		if err := setMetadata(&file, keyPriority, t.Priority); err != nil {
			return "", err
		}
	}
	if err := errors.Join(setMetadata(&file, keyRole, t.Role), setMetadata(&file, keyRun, t.Run)); err != nil {
		return "", err
	}
	id, err := d.team.CreateTask(ctx, file)
	for _, blocker := range t.BlockedBy {
		if err == nil {
			err = d.team.Block(ctx, blocker, id)
		}
	}
	return id, err
}

func (d *replica) updateTask(ctx context.Context, e *team.TaskUpdated) error {
	err := d.team.ChangeTask(ctx, e.Task, func(t *teamfiles.Task) error {
		for _, f := range []struct {
			to *string
			is *string
		}{{&t.Subject, e.Subject}, {&t.Description, e.Description}, {&t.ActiveForm, e.ActiveForm},
			{&t.Owner, e.Owner}} {
			if f.is != nil {
				*f.to = *f.is
			}
		}
		for key, value := range e.Metadata {
			if string(value) == "null" {
				delete(t.Metadata, key)
				continue
			}
			if t.Metadata == nil {
				t.Metadata = map[string]json.RawMessage{}
			}
			t.Metadata[key] = value
		}
		if e.Priority != nil {
			return setMetadata(t, keyPriority, *e.Priority)
		}
		return nil
	})
	edges := []struct {
		ids    []string
		change func(other string) error
	}{
		{e.AddBlockedBy, func(other string) error { return d.team.Block(ctx, other, e.Task) }},
		{e.RemoveBlockedBy, func(other string) error { return d.team.Unblock(ctx, other, e.Task) }},
		{e.AddBlocks, func(other string) error { return d.team.Block(ctx, e.Task, other) }},
		{e.RemoveBlocks, func(other string) error { return d.team.Unblock(ctx, e.Task, other) }},
	}
	for _, edge := range edges {
		for _, other := range edge.ids {
			if err == nil {
				err = edge.change(other)
			}
		}
	}
	return err
}

// send delivers a message. Notices that our team creates by itself are left out, because Claude
// Code has notices of its own.
func (d *replica) send(ctx context.Context, m *team.Message, id func(string) string) error {
	switch m.Type {
	case team.TypeMessage:
		return d.post(ctx, m.To, m.Body)
	case team.TypeBroadcast:
		var missed []string
		var errs []error
		for _, to := range m.Recipients {
			if err := d.post(ctx, to, m.Body); err != nil {
				missed, errs = append(missed, to), append(errs, err)
			}
		}
		if len(missed) > 0 {
			return fmt.Errorf("sent, but not to %s; do not send it to the others again: %w",
				strings.Join(missed, ", "), errors.Join(errs...))
		}
	case team.TypeTaskAssignment:
		task := id(m.Ref)
		if m.To == d.self.name {
			return nil
		}
		file, err := d.team.Task(ctx, task)
		if err != nil {
			return err
		}
		return d.notify(ctx, m.To, &teamfiles.Assignment{TaskID: task, Subject: file.Subject,
			Description: file.Description, AssignedBy: d.self.name, Timestamp: teamfiles.Stamp(time.Now())})
	}
	return nil
}

// maxSummary is how many bytes of a message Claude Code shows in one line.
const maxSummary = 120

func (d *replica) post(ctx context.Context, to, body string) error {
	summary := excerpt.Bytes(excerpt.FirstLine(body), maxSummary, excerpt.Mark)
	if to != d.lead() {
		d.addActivity(func(did *activity) { did.summary = "[to " + to + "] " + summary })
	}
	return d.team.Send(ctx, to, teamfiles.Entry{From: d.self.name, Text: body, Summary: summary, Color: d.color})
}

func (d *replica) notify(ctx context.Context, to string, m teamfiles.Structured) error {
	return d.team.Send(ctx, to, teamfiles.Entry{From: d.self.name, Text: teamfiles.Text(m), Color: d.color})
}

func (d *replica) notifyLead(ctx context.Context, m teamfiles.Structured) error {
	return d.notify(ctx, d.lead(), m)
}

func (d *replica) lead() (name string) {
	d.View(func(s *team.State) { name = s.Team().Lead })
	return name
}

func (d *replica) addActivity(what func(*activity)) {
	d.activityMu.Lock()
	defer d.activityMu.Unlock()
	what(&d.activity)
}

// takeActivity returns the activity of the finished turn, and starts over for the next one.
func (d *replica) takeActivity() (did activity) {
	d.addActivity(func(now *activity) { did, *now = *now, activity{} })
	return did
}

// ruling answers a permission request by the rules alone. ruled is false if they leave it to a
// person or the lead.
func (d *replica) ruling(tool, input string, reads bool) (allow bool, reason string, ruled bool) {
	d.View(func(s *team.State) {
		decision, err := team.Decide(s, team.Command{ID: "asked", Actor: d.self.name, At: now(),
			Body: &team.RequestPermission{Tool: tool, Input: input, Deadline: now() + 1, Reads: reads}})
		if err != nil {
			allow, reason, ruled = false, err.Error(), true
			return
		}
		if e, ok := team.EventIn[*team.PermissionAnswered](decision.Record); ok {
			allow, reason, ruled = e.Outcome == "allowed", e.Reason, true
		}
	})
	return allow, reason, ruled
}

// access returns what the member's session may do without asking.
func (d *replica) access() (a agent.Access) {
	d.View(func(s *team.State) {
		m, _ := s.Member(d.self.name)
		a = agent.Access{Mode: m.PermissionMode, Writes: s.Writes(d.self.name), Gated: s.Gated(d.self.name),
			Allow: s.Team().Permissions.Allow}
	})
	return a
}

// gate returns an error if the rules forbid a tool. reads reports whether this call only reads.
func (d *replica) gate(tool string, reads bool) (err error) {
	d.View(func(s *team.State) { err = s.Gate(d.self.name, tool, reads) })
	return err
}
