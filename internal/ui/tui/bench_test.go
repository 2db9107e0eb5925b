package tui

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/team"
	"cadre/internal/ui/sessionview"
)

// long returns a team with about that many records. Most of them report usage.
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
			&team.MemberStatusChanged{Member: "ann", Status: team.Idle},
			&team.UsageReported{Member: "ann", Usage: team.Usage{InputTokens: 900, CostMicroUSD: 40}},
			&team.MemberStatusChanged{Member: "ann", Status: team.Active},
			&team.UsageReported{Member: "lukas", Usage: team.Usage{OutputTokens: 80}},
			&team.TaskCompleted{Task: id, By: "lukas"}} {
			seq++
			s.at += 10
			r := &team.Record{Seq: seq, ID: fmt.Sprint("r", seq), At: s.at, Events: []team.Event{e}}
			s.state.Apply(r)
			s.records = append(s.records, r)
		}
	}
	return s
}

// BenchmarkFrame measures the time from a key to the frame, while 8 members stream, in teams with
// few and with many records. p99 is the 99th percentile.
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

// BenchmarkTabs measures a key and its frame in each tab of a team, and in the session of a member,
// in times of the same with a tenth of the history and a hundredth of the session.
func BenchmarkTabs(b *testing.B) {
	few, many := long(b, 10_000), long(b, 100_000)
	open := func(s *story, lines int, keys ...string) *screen {
		x := newScreen(s, 120, 40)
		x.open(s)
		if lines == 0 {
			x.keys(keys...)
			return x
		}
		x.view("ann")
		streamed := sessionMsg{ref: "demo", member: "ann"}
		for i := range lines {
			streamed.lines = append(streamed.lines, sessionview.Line{At: s.at, Text: fmt.Sprint("│ line ", i,
				strings.Repeat(" streamed words", i%12))})
		}
		x.send(streamed)
		return x
	}
	frame := func(x *screen) float64 {
		began := time.Now()
		for i := range 20 {
			x.Update(tea.KeyPressMsg([]tea.Key{{Code: tea.KeyPgUp}, {Code: tea.KeyPgDown}}[i%2]))
			_ = x.View()
		}
		return float64(time.Since(began))
	}
	for i, name := range append(slices.Clone(tabs[:]), "session") {
		b.Run(name, func(b *testing.B) {
			short, whole := open(few, 0, fmt.Sprint(i+1)), open(many, 0, fmt.Sprint(i+1))
			if name == "session" {
				short, whole = open(few, 200), open(few, mostSession)
			}
			var ofShort, ofWhole float64
			for b.Loop() {
				ofShort += frame(short)
				ofWhole += frame(whole)
			}
			b.ReportMetric(ofWhole/ofShort, "x-short")
			b.ReportMetric(ofWhole/20/float64(b.N)/1000, "µs/frame")
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

// TestMemory: after 12 hours in which 8 members work and the session of one of them streams, the
// screen takes hardly more memory than after one, beside the team's own state.
func TestMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes a long history")
	}
	hours, own := memory(t, 12, true), memory(t, 12, false)
	t.Logf("after each hour, in KB: %d, of which the team has %d", hours, own)
	const tasks = 530 // in 11 hours
	if grown := grown(hours) - grown(own); grown > 1.4*tasks {
		t.Errorf("in 11 hours the screen grew by %.0f KB", grown)
	}
}

// grown returns how much more there was in the last hour than in the first one.
func grown(hours []uint64) float64 { return float64(hours[len(hours)-1]) - float64(hours[0]) }

// BenchmarkMemory reports how much the heap grows from the first hour to the twelfth: by the team's
// own state, and by what the screen keeps. It also reports the heap of the first hour.
func BenchmarkMemory(b *testing.B) {
	var hours, own []uint64
	for b.Loop() {
		hours, own = memory(b, 12, true), memory(b, 12, false)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(hours[0])/1024, "MB-first-hour")
	b.ReportMetric(grown(own)/1024, "MB-grown-team")
	b.ReportMetric((grown(hours)-grown(own))/1024, "MB-grown-screen")
}

// memory returns the KB in use after each hour of a team in which 8 members have a turn every two
// minutes, for which their mail is delivered, and complete a task every ten. The session that is
// shown streams 10 lines a second. Without the screen it is what the team takes.
func memory(t testing.TB, hours int, screen bool) (used []uint64) {
	s := newStory(t)
	host := team.Host("host-1")
	var names []string
	for i := range 8 {
		names = append(names, fmt.Sprint("worker-", i))
		s.do(team.User, &team.SpawnMember{Name: names[i], Agent: "claude"})
		s.do(host, &team.AttachMember{Member: names[i]})
		s.do(host, &team.ReportStarted{Member: names[i], Session: names[i]})
	}
	x := newScreen(s, 120, 40)
	x.open(s)
	x.view("worker-0")
	s.records = nil
	began, task := s.at, len(slices.Collect(s.state.Tasks()))
	for minute := range 60 * hours {
		s.at = began + team.Time(minute)*60_000
		for i, name := range names {
			if minute%2 != i%2 {
				continue
			}
			if mail := s.state.Inbox(name); len(mail) > 0 {
				s.do(host, &team.ReceiveMessages{Member: name})
			}
			s.do(host, &team.ReportStatus{Member: name, Status: team.Active})
			if minute%10 == i%10 {
				task++
				s.do(team.User, &team.CreateTask{Subject: "Look at another module", Owner: name})
				s.do(name, &team.ClaimTask{Task: fmt.Sprint(task)})
				s.do(name, &team.CompleteTask{Task: fmt.Sprint(task), Fence: 1, Result: "It is done."})
			}
			s.do(host, &team.ReportUsage{Member: name, Usage: team.Usage{InputTokens: 9_000, OutputTokens: 400}})
			s.do(host, &team.ReportStatus{Member: name, Status: team.Idle})
			s.do("lead", &team.ReceiveMessages{})
		}
		if screen {
			msg := s.message()
			msg.fresh = false
			x.Update(msg)
			x.Update(recordsMsg{ref: "demo", records: s.records, whole: true})
			streamed := sessionMsg{ref: "demo", member: "worker-0"}
			for i := range 600 {
				streamed.lines = append(streamed.lines, sessionview.Line{At: s.at, Text: fmt.Sprint("│ minute ", minute,
					" line ", i, strings.Repeat(" streamed words", i%8))})
			}
			x.Update(streamed)
			x.Update(clockMsg(s.at))
			_ = x.View()
		}
		s.records = nil
		if minute%60 == 59 {
			runtime.GC()
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			used = append(used, m.HeapAlloc>>10)
		}
	}
	runtime.KeepAlive(x)
	return used
}

// TestFrameTime: with 100,000 records and 8 members that stream, a key is on the screen in time,
// and the cost of a frame does not grow with the history. The limits are far above what a frame
// takes, for machines that are busy.
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
