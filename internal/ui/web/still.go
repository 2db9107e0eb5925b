package web

import (
	"cadre/internal/team"
	"cadre/internal/ui/costs"
)

// stillLanes are the lanes and the costs of a file, from which the page makes columns by itself:
// of any part of the time, and as they were after any record. See page/lanes.js.
type stillLanes struct {
	Times []team.Time    `json:"times"` // of the first record, and from each record to the next
	Quiet [][2]team.Time `json:"quiet"` // long times in which no member worked
	Since team.Time      `json:"since"` // since when no member works; -1 if one works
	Rows  []stillRow     `json:"rows"`
	Costs []stillCosts   `json:"costs"` // first of all members together

	last team.Time
}

// stillRow is the lane of one member.
type stillRow struct {
	Member string   `json:"member"`
	Joined int64    `json:"joined"` // the record with which it joined
	Starts [][3]any `json:"starts"` // of its spans: time, record, kind
	Marks  []mark   `json:"marks"`
}

// stillCosts are the sums of one member, or of all members for "".
type stillCosts struct {
	Member string     `json:"member"`
	Sums   [][4]int64 `json:"sums"` // time, record, tokens, millionths of a US dollar; where they changed

	now costs.Amount
}

func newStillLanes() *stillLanes {
	return &stillLanes{Times: []team.Time{}, Quiet: [][2]team.Time{}, Rows: []stillRow{}, Costs: []stillCosts{}}
}

// add adds the last record that h has read.
func (l *stillLanes) add(h *recalled) {
	_, last := h.lanes.Bounds()
	l.Times = append(l.Times, last-l.last)
	l.last = last
	for i, row := range h.costs.Sums() {
		if i == len(l.Costs) {
			l.Costs = append(l.Costs, stillCosts{Member: row.Member, Sums: [][4]int64{}})
		} else if l.Costs[i].now == row.Sum {
			continue
		}
		one := &l.Costs[i]
		one.now = row.Sum
		one.Sums = append(one.Sums, [4]int64{int64(last), h.seq, row.Sum.Tokens, row.Sum.CostMicroUSD})
	}
}

// end adds the lanes, once h has read all records.
func (l *stillLanes) end(h *recalled) {
	ended, since := h.lanes.Quiet()
	l.Quiet, l.Since = append(l.Quiet, ended...), since
	for _, lane := range h.lanes.Lanes() {
		row := stillRow{Member: lane.Member, Joined: lane.Joined, Starts: [][3]any{}, Marks: []mark{}}
		for _, s := range lane.Starts {
			row.Starts = append(row.Starts, [3]any{s.At, s.Seq, s.Kind.String()})
		}
		for _, m := range lane.Marks {
			row.Marks = append(row.Marks, mark{m.At, m.Seq, markWords[m.Kind]})
		}
		l.Rows = append(l.Rows, row)
	}
}
