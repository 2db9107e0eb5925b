package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/team"
	"cadre/internal/ui/sessionview"
)

// long returns a team with about that many records.
func long(b testing.TB, records int) *story {
	s := newStory(b)
	for i := 0; len(s.records) < 400; i++ { // through the core, so that the last ones are as in life
		s.do(team.User, &team.CreateTask{Subject: fmt.Sprint("Another task ", i), Owner: "lukas"})
		id := fmt.Sprint(5 + i)
		s.do("lukas", &team.ClaimTask{Task: id})
		s.do("lukas", &team.CompleteTask{Task: id, Fence: 1, Result: "done"})
	}
	for seq := s.state.Seq(); seq < int64(records); { // the others cost a core decision each
		id := fmt.Sprint(1000 + seq)
		for _, e := range []team.Event{&team.TaskCreated{Task: team.Task{ID: id, Subject: "Old " + id,
			Status: team.Pending}}, &team.TaskClaimed{Task: id, Member: "lukas", Fence: 1},
			&team.TaskCompleted{Task: id, By: "lukas"}} {
			seq++
			s.at += 10
			s.state.Apply(&team.Record{Seq: seq, ID: fmt.Sprint("r", seq), At: s.at, Events: []team.Event{e}})
		}
	}
	return s
}

// BenchmarkFrame measures the time from a key to the frame, while 8 members stream, in teams with few
// and with many records. p99 is the 99th percentile.
func BenchmarkFrame(b *testing.B) {
	for _, records := range []int{500, 100_000} {
		b.Run(fmt.Sprint(records, "-records"), func(b *testing.B) {
			s := long(b, records)
			x := newScreen(s, 120, 40)
			x.open(s)
			x.view("ann")
			lines := make([]sessionview.Line, 8)
			for i := range lines {
				lines[i] = sessionview.Line{At: s.at, Text: "│ " + strings.Repeat("streamed words ", 12)}
			}
			view := s.message()
			var took []time.Duration
			keys := []tea.Key{{Code: tea.KeyPgUp}, {Code: tea.KeyPgDown}, {Code: 'x', Text: "x"}}
			for i := 0; b.Loop(); i++ {
				x.Update(sessionMsg{ref: "demo", member: "ann", lines: lines})
				x.Update(view)
				began := time.Now()
				x.Update(tea.KeyPressMsg(keys[i%len(keys)]))
				_ = x.View()
				took = append(took, time.Since(began))
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs-p50")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "µs-p99")
		})
	}
}

// BenchmarkView measures what a change of the team costs: the copy of what is shown.
func BenchmarkView(b *testing.B) {
	for _, records := range []int{500, 100_000} {
		b.Run(fmt.Sprint(records, "-records"), func(b *testing.B) {
			s := long(b, records)
			for b.Loop() {
				viewOf("demo", s.state, nil)
			}
		})
	}
}

// TestFrameTime: with 100,000 records and 8 members that stream, a key is on the screen in time, and
// the cost of a frame does not grow with the history. The limits are far above what a frame takes,
// for machines that are busy.
func TestFrameTime(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes a long history")
	}
	least := func(records int) time.Duration {
		s := long(t, records)
		x := newScreen(s, 120, 40)
		x.open(s)
		x.view("ann")
		best := time.Hour
		for range 50 {
			began := time.Now()
			x.Update(tea.KeyPressMsg{Code: 'x', Text: "x"})
			_ = x.View()
			best = min(best, time.Since(began))
		}
		return best
	}
	short, many := least(500), least(100_000)
	if many > 16*time.Millisecond || many > 3*short+time.Millisecond {
		t.Errorf("a frame takes %v with many records, and %v with few", many, short)
	}
}
