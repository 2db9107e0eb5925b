package web

import (
	"errors"
	"strings"

	"cadre/internal/engine"
	"cadre/internal/render"
	"cadre/internal/team"
)

// line is an event in words, as the screen has it.
type line struct {
	Seq   int64     `json:"seq"`            // number of the record
	At    team.Time `json:"at"`             // when it was recorded
	Actor string    `json:"actor"`          // who did it
	Kind  string    `json:"kind"`           // kind of the record's first event
	Task  string    `json:"task,omitempty"` // id of the task that the record is about
	Text  string    `json:"text"`
}

// mostLines bounds the records of one answer.
const mostLines = 1_000

// linesOf returns the lines of records that follow each other. s is a state after them.
func linesOf(records []*team.Record, s *team.State) []line {
	all := []line{}
	render.Headlines(records, s, func(r *team.Record, text string) {
		kind := ""
		if len(r.Events) > 0 {
			kind = r.Events[0].Kind()
		}
		all = append(all, line{r.Seq, r.At, r.Actor, kind, taskOf(r), render.Clean(strings.TrimLeft(text, " "))})
	})
	return all
}

// taskOf returns the id of the task that the record is about; "" for none.
func taskOf(r *team.Record) string {
	for _, e := range r.Events {
		switch e := e.(type) {
		case *team.TaskCreated:
			return e.Task.ID
		case *team.TaskExpanded:
			return e.Task
		case *team.TaskUpdated:
			return e.Task
		case *team.TaskClaimed:
			return e.Task
		case *team.TaskReleased:
			return e.Task
		case *team.TaskFailed:
			return e.Task
		case *team.TaskCompleted:
			return e.Task
		case *team.TaskSubmitted:
			return e.Task
		case *team.TaskRejected:
			return e.Task
		case *team.TaskRolledBack:
			return e.Task
		case *team.TaskSkipped:
			return e.Task
		case *team.TaskDeleted:
			return e.Task
		}
	}
	return ""
}

// log answers with the lines of the records after the record after.
func (b *Board) log(v *view) (any, error) {
	after, err := v.number("after", 0, latest)
	if err != nil {
		return nil, err
	}
	to, err := v.number("to", latest, latest)
	if err != nil {
		return nil, err
	}
	t, err := v.look()
	if err != nil {
		return nil, err
	}
	defer t.Close()
	var records []*team.Record
	for r, err := range t.Records(v.Context(), after) {
		if _, lost := errors.AsType[*engine.LostError](err); lost {
			continue
		}
		if err != nil {
			return nil, err
		}
		if r.Seq > to || len(records) == mostLines {
			break
		}
		records = append(records, r)
	}
	all := []line{}
	t.View(func(s *team.State) { all = linesOf(records, s) })
	return all, nil
}
