package sessionlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"cadre/internal/agent"
	"cadre/internal/team"
)

// Parts of a text are logged together, once there are enough of them or the first one is old
// enough.
const (
	enoughText = 2 << 10
	oldEnough  = 100 * time.Millisecond
)

// recorded is a session whose updates are logged on their way to its host.
type recorded struct {
	agent.Session
	log     *Log
	now     func() team.Time
	failed  func(error)
	once    sync.Once
	updates chan agent.Update
	// The goroutine of forward owns these.
	questions int // number of questions and plans in the session
	running   outputs
	shown     bool // viewers may see running outputs
}

// Record returns the session with a log of what it shows. A log that cannot be written never
// disturbs the session: failed gets the first error. The log is closed when the session ends. now
// returns the time.
func Record(s agent.Session, log *Log, now func() team.Time, failed func(error)) agent.Session {
	r := &recorded{Session: s, log: log, now: now, failed: failed, updates: make(chan agent.Update)}
	go r.forward()
	return r
}

func (r *recorded) Updates() <-chan agent.Update { return r.updates }

// Give logs the prompt once the session took it.
func (r *recorded) Give(ctx context.Context, p agent.Prompt) error {
	err := r.Session.Give(ctx, p)
	if err == nil {
		r.add(Entry{Kind: Prompt, Text: p.Text})
	}
	return err
}

func (r *recorded) add(e Entry) {
	e.At = r.now()
	r.report(r.log.Add(e))
}

// report reports the first error of the log.
func (r *recorded) report(err error) {
	if err != nil && !errors.Is(err, os.ErrClosed) { // questions may be answered later
		r.once.Do(func() { r.failed(err) })
	}
}

// showRunning shows the running outputs to viewers.
func (r *recorded) showRunning() {
	if len(r.running) > 0 || r.shown {
		r.report(r.log.show(r.running))
	}
	r.shown = len(r.running) > 0
}

// forward passes the updates on, and logs each one before its host gets it.
func (r *recorded) forward() {
	defer close(r.updates)
	defer r.log.Close()
	var parts strings.Builder
	var due, outputDue <-chan time.Time
	flush := func() {
		if parts.Len() > 0 {
			r.add(Entry{Kind: Part, Text: parts.String()})
		}
		parts.Reset()
		due = nil
	}
	source := r.Session.Updates()
	for {
		select {
		case <-due:
			flush()
		case <-outputDue:
			outputDue = nil
			r.showRunning()
		case u, ok := <-source:
			if !ok {
				flush()
				r.running, outputDue = nil, nil
				r.showRunning()
				return
			}
			switch u := u.(type) {
			case agent.TextPart: // only viewers need it
				parts.WriteString(u.Text)
				if due == nil {
					due = time.After(oldEnough)
				}
				if parts.Len() >= enoughText {
					flush()
				}
				continue
			case agent.ToolOutput: // only viewers need it
				r.running.add(u.ID, u.Text, u.Missed, r.now())
				if outputDue == nil {
					outputDue = time.After(outputPace)
				}
				continue
			case agent.ToolFinished: // before its result is in the log, so that no viewer sees its output after that
				if r.running.remove(u.ID) {
					r.showRunning()
				}
			case agent.Text: // the whole block makes its last parts unnecessary, unless it is cut
				if len(u.Text) <= mostText {
					parts.Reset()
				}
			}
			flush()
			r.updates <- r.logged(u)
		}
	}
}

// logged logs the update and returns it. A question that it returns also logs its answer.
func (r *recorded) logged(u agent.Update) agent.Update {
	e := entryOf(u)
	switch q := u.(type) {
	case agent.PermissionAsked:
		e.ID = r.question()
		q.Answer = r.answers(e.ID, q.Answer)
		u = q
	case agent.PlanProposed:
		e.ID = r.question()
		q.Answer = r.answers(e.ID, q.Answer)
		u = q
	}
	if e.Kind != "" {
		r.add(e)
	}
	return u
}

// question returns an id that is unique in the session.
func (r *recorded) question() string {
	r.questions++
	return fmt.Sprintf("q%d", r.questions)
}

// answers returns answer, which also logs the answer to the question.
func (r *recorded) answers(question string, answer func(bool, string)) func(bool, string) {
	return func(yes bool, why string) {
		r.add(Entry{Kind: Answer, ID: question, Failed: !yes, Text: why})
		answer(yes, why)
	}
}

// entryOf returns the entry for an update; none for one that shows nothing.
func entryOf(u agent.Update) Entry {
	switch u := u.(type) {
	case agent.Started:
		return Entry{Kind: Started, Text: u.Session}
	case agent.TurnStarted:
		return Entry{Kind: Turn, Text: u.Summary}
	case agent.Text:
		return Entry{Kind: Text, Text: u.Text}
	case agent.ToolStarted:
		return Entry{Kind: Tool, ID: u.ID, Tool: u.Tool, Text: u.Input}
	case agent.ToolFinished:
		return Entry{Kind: Result, ID: u.ID, Failed: u.Failed, Text: u.Output, Count: int64(u.Lines)}
	case agent.PermissionAsked:
		return Entry{Kind: Question, Tool: u.Tool, Text: u.Input}
	case agent.PlanProposed:
		return Entry{Kind: Plan, Text: u.Plan}
	case agent.Used:
		return Entry{Kind: Usage, Usage: &u.Usage, Context: u.Context}
	case agent.Compacted:
		return Entry{Kind: Compacted}
	case agent.Retrying:
		return Entry{Kind: Retry, Text: u.Problem.Text}
	case agent.TurnEnded:
		e := Entry{Kind: TurnEnded, Interrupted: u.Interrupted}
		if u.Problem != nil {
			e.Failed, e.Text = true, u.Problem.Text
		}
		return e
	case agent.Ended:
		e := Entry{Kind: Ended}
		if u.Err != nil {
			e.Failed, e.Text = true, u.Err.Error()
		}
		return e
	}
	return Entry{}
}
