package hook

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Result is what one run of a command left.
type Result struct {
	ExitCode int    // -1 if a signal ended the command, or if it could not be run
	Signal   string // the signal that ended it; "" for none
	Stdout   string // long output is cut in the middle
	Stderr   string
	Duration time.Duration
	TimedOut bool  // it did not end within its timeout and was killed
	Err      error // why it could not be run
}

// Trial is one run of one hook, and how its answer is read.
type Trial struct {
	Result
	Rejected bool
	Feedback string // of a rejection
	Stop     bool   // it answered {"continue": false}
	Reason   string // its reason for that
	Notes    []string
}

// ErrUntrusted is returned for a trial of a hook that came with the repository and is not trusted.
var ErrUntrusted = errors.New("this project's hooks are not trusted yet, or they changed")

// Try runs one hook and changes nothing else. A hook that is switched off can be tried; an
// untrusted one cannot. The command reads input, or the event as JSON if input is nil. The error is
// ctx's, [ErrUntrusted], or says why the event or the trust cannot be read.
func (r *Runner) Try(ctx context.Context, h Hook, event Event, input []byte) (Trial, error) {
	event.Name = h.Event
	if h.Source.NeedsTrust() {
		switch trusted, err := r.Trust.Trusted(r.Config); {
		case err != nil:
			return Trial{}, err
		case !trusted:
			return Trial{}, ErrUntrusted
		}
	}
	if input == nil {
		var err error
		if input, err = event.input(r.Config.Dir); err != nil {
			return Trial{}, fmt.Errorf("write the event for a hook: %w", err)
		}
	}
	result := r.start(ctx, h, event, input, event.environment(r.Config.Dir))
	if ctx.Err() != nil {
		return Trial{}, fmt.Errorf("%s hook [%s]: %w", h.Event, h.Command, context.Cause(ctx))
	}
	a := judge(h, result)
	trial := Trial{Result: result, Rejected: a.rejected, Stop: a.stop, Notes: a.notes}
	if a.rejected {
		trial.Feedback = a.text
	} else {
		trial.Reason = a.text
	}
	return trial, nil
}

// Sample returns an event with made-up values for a trial.
func Sample(name string) Event {
	e := Event{Name: name, TeamID: "example-id", TeamName: "example", MemberID: "ann@example", Member: "ann",
		Role: "developer"}
	if e.aboutTask() {
		e.TaskID, e.TaskSubject, e.TaskDescription = "1", "An example task", "It exists only for this trial."
	}
	if name == TaskCompleted {
		e.Duration = 90 * time.Second
		e.DependentTasks, e.Result = []string{"2"}, "An example result"
	}
	if name == TeammateIdle {
		e.CompletedTasks, e.RemainingTasks, e.IdleSince = []string{"1"}, 1, time.Unix(1_700_000_000, 0)
	}
	return e
}

// ReadEvent reads the JSON object that the command of a hook reads on its standard input. Fields
// that are missing are zero, and fields that are unknown are skipped.
func ReadEvent(data []byte) (Event, error) {
	var p payload
	d := json.NewDecoder(bytes.NewReader(data))
	if err := d.Decode(&p); err != nil {
		return Event{}, fmt.Errorf("the input is not an event as JSON: %w", err)
	}
	if d.More() {
		return Event{}, errors.New("the input is not an event as JSON: there is more after the object")
	}
	e := Event{Name: p.Name, TeamID: p.TeamID, TeamName: p.TeamName, MemberID: p.MemberID, Member: p.Member,
		SessionID: p.SessionID, TranscriptPath: p.TranscriptPath, TaskID: value(p.TaskID),
		TaskSubject: value(p.TaskSubject), TaskDescription: value(p.TaskDescription),
		DependentTasks: value(p.DependentTasks), Duration: time.Duration(value(p.Duration)),
		Result:         value(p.Result),
		CompletedTasks: value(p.CompletedTasks), RemainingTasks: value(p.RemainingTasks), IdleSince: value(p.IdleSince)}
	return e, nil
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
