package web

import (
	"context"
	"errors"
	"sync"

	"cadre/internal/engine"
	"cadre/internal/inspect/history"
	"cadre/internal/team"
	"cadre/internal/ui/costs"
	"cadre/internal/ui/timeline"
)

// lanes are what the members of a team did over time, and what it cost, in columns.
type lanes struct {
	Edges []team.Time `json:"edges"` // times between the columns, one more than there are columns
	Quiet []int       `json:"quiet"` // the columns that stand for a long time in which no member worked
	Rows  []row       `json:"rows"`
	Costs []cost      `json:"costs"` // first of all members together, then of each member that used something
	Gaps  int         `json:"gaps"`  // parts of the history that are lost to damage
	First team.Time   `json:"first"` // the time of the first record
	Last  team.Time   `json:"last"`  // the time of the last record
	Money bool        `json:"money"` // some agent reported what it cost
	Seq   int64       `json:"seq"`   // the last record that was read
}

// row is the lane of one member.
type row struct {
	Member string `json:"member"`
	Runs   []run  `json:"runs"`
	Marks  []mark `json:"marks"`
}

// run is a number of columns in which the member does the same.
type run struct {
	N    int    `json:"n"`
	Kind string `json:"kind"`
}

// mark is something that happened at one time.
type mark struct {
	At   team.Time `json:"at"`
	Seq  int64     `json:"seq"`
	Kind string    `json:"kind"`
}

// cost is the use of one member up to the end of each column; of all members for "".
type cost struct {
	Member string  `json:"member"`
	Tokens []int64 `json:"tokens"`
	Micro  []int64 `json:"microUsd"`
}

var markWords = map[timeline.MarkKind]string{timeline.Retry: "retry", timeline.Plan: "plan",
	timeline.Failure: "failure"}

// recalled is the history of a team, as far as it was read. It grows record by record.
type recalled struct {
	mu    sync.Mutex
	lanes timeline.Timeline
	costs costs.Costs
	marks history.Marks
	tasks history.Tasks
	seq   int64
	gaps  []int64 // the first record after each part that is lost; 0 where that is not known
}

// read adds the records that came since the last call, up to the record to.
func (h *recalled) read(ctx context.Context, t *engine.Team, to int64) error {
	for r, err := range t.Records(ctx, h.seq) {
		var lost *engine.LostError
		switch {
		case errors.As(err, &lost):
			if lost.Next > to {
				return nil
			}
			h.gaps = append(h.gaps, lost.Next)
			if lost.Next == 0 {
				return nil
			}
			state, err := t.Past().At(ctx, lost.Next)
			if err != nil {
				return err
			}
			h.lanes.Restore(state)
			h.costs.Restore(state)
			h.seq = lost.Next
		case err != nil:
			return err
		case r.Seq > to:
			return nil
		default:
			h.add(r)
		}
	}
	return nil
}

func (h *recalled) add(r *team.Record) {
	h.lanes.Add(r)
	h.costs.Add(r)
	h.marks.Add(r)
	h.tasks.Add(r)
	h.seq = r.Seq
}

// until returns the lanes and the costs as they were after the record seq. Of the history it reads
// again only a few records before that one.
func (h *recalled) until(ctx context.Context, t *engine.Team, seq int64) (*recalled, error) {
	if seq >= h.seq {
		return h, nil
	}
	var records []*team.Record
	for r, err := range t.Records(ctx, h.costs.Known(seq)) {
		if _, lost := errors.AsType[*engine.LostError](err); lost || err == nil && r.Seq > seq {
			break
		}
		if err != nil {
			return nil, err
		}
		records = append(records, r)
	}
	costs, at := h.costs.Until(seq, records)
	was := &recalled{lanes: *h.lanes.Until(seq, at), costs: *costs, seq: seq}
	for _, next := range h.gaps {
		if next > 0 && next <= seq {
			was.gaps = append(was.gaps, next)
		}
	}
	return was, nil
}

// view returns the time from one moment to another, in columns; 0 for the first and the last
// record.
func (h *recalled) view(from, to team.Time, columns int) lanes {
	f := h.lanes.Frame(timeline.View{Columns: columns, From: from, To: to})
	first, last := h.lanes.Bounds()
	v := lanes{Edges: f.Edges, Quiet: []int{}, Rows: []row{}, Costs: []cost{}, Gaps: len(h.gaps), First: first,
		Last: last, Money: h.costs.Dollars(), Seq: h.seq}
	for i, quiet := range f.Quiet {
		if quiet {
			v.Quiet = append(v.Quiet, i)
		}
	}
	for _, lane := range f.Rows {
		one := row{Member: lane.Member, Runs: []run{}, Marks: []mark{}}
		for _, cell := range lane.Cells {
			kind := cell.Kind.String()
			if n := len(one.Runs); n > 0 && one.Runs[n-1].Kind == kind {
				one.Runs[n-1].N++
			} else {
				one.Runs = append(one.Runs, run{1, kind})
			}
		}
		for _, m := range h.lanes.Marks(lane.Member, f.Edges[0], f.Edges[columns]+1) {
			if n := len(one.Marks); n < mostMarks {
				one.Marks = append(one.Marks, mark{m.At, m.Seq, markWords[m.Kind]})
			}
		}
		v.Rows = append(v.Rows, one)
	}
	if !h.costs.Any() {
		return v
	}
	tokens := h.costs.Rows(costs.View{Edges: f.Edges})
	micro := h.costs.Rows(costs.View{Edges: f.Edges, Unit: costs.Dollars})
	for i, of := range tokens {
		v.Costs = append(v.Costs, cost{of.Member, of.Cells, micro[i].Cells})
	}
	return v
}

// mostMarks bounds the marks of a lane. Closer ones cannot be told apart.
const mostMarks = 500
