package timeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/team"
	"cadre/internal/testkit/historytest"

	"pgregory.net/rapid"
)

// expected returns what the state says that a member does. It looks at all tasks, while the lanes
// count them as they change.
func expected(s *team.State, m team.Member, l *lane) Kind {
	asks := slices.ContainsFunc(s.Permissions(), func(p team.Permission) bool { return p.Member == m.Name })
	switch {
	case !m.Status.Running():
		return Ended
	case l.limited: // the state does not say whether a trouble is over
		return Limit
	case m.Status == team.Spawning:
		return Starting
	case asks || m.Plan.State == "submitted" || m.Status == team.Blocked:
		return Person
	case m.Agent == team.External && (len(s.Held(m.Name)) > 0 || m.Status == team.Active && l.busy),
		m.Agent != team.External && m.Status == team.Active:
		return Working
	case m.Interrupt != 0 && m.Status == team.Idle:
		return Person
	}
	lead, _ := s.Member(s.Team().Lead)
	if lead.Agent == team.External && slices.ContainsFunc(s.Inbox(lead.Name), func(msg team.Message) bool {
		return msg.Asks() && msg.From == m.Name
	}) {
		return Person
	}
	ready, blocked := 0, 0
	for t := range s.Tasks() {
		own := t.Owner == m.Name
		pool := t.Owner == "" && (t.Role == "" || t.Role == m.Role) && m.Name != s.Team().Lead
		switch {
		case !own && !pool || t.Status != team.Pending || t.OutOfRetries():
		case len(t.Blocked()) > 0:
			blocked++
		default:
			ready++
		}
	}
	if ready == 0 && blocked > 0 {
		return Dependency
	}
	return Idle
}

// TestLanesAgreeWithTheState checks each lane after each record of random histories, and a timeline
// that begins again from a state in their middle.
func TestLanesAgreeWithTheState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := historytest.Play(historytest.Choices(150).Draw(t, "choices"))
		restart := rapid.Int64Range(1, h.State.Seq()).Draw(t, "restart")
		s, err := team.DecodeSnapshot(0, "")
		if err != nil {
			t.Fatal(err)
		}
		var whole, rest Timeline
		for _, r := range h.Records {
			s.Apply(r)
			whole.Add(r)
			whole.Add(r) // a second time changes nothing
			rest.Add(r)
			if r.Seq == restart {
				rest = Timeline{}
				rest.Restore(s)
			}
			for _, line := range []*Timeline{&whole, &rest} {
				if r.Seq < restart && line == &rest {
					continue
				}
				working := 0
				for _, m := range s.Members() {
					l := line.named[m.Name]
					if line == &rest && m.Setbacks > 0 {
						continue // a state does not say whether a trouble is over
					}
					if want := expected(s, m, l); l.kind() != want {
						t.Fatalf("after record %d, %s: %s, not %s: %s", r.Seq, m.Name, l.kind(), want,
							team.AppendRecord(nil, r))
					}
				}
				for _, l := range line.lanes {
					working += toInt(l.kind().works())
				}
				if working != line.working {
					t.Fatalf("after record %d %d work, counted as %d", r.Seq, working, line.working)
				}
			}
		}
		if whole.Through() != h.State.Seq() || len(whole.Members()) != len(h.State.Members()) {
			t.Fatalf("through %d, %v", whole.Through(), whole.Members())
		}
	})
}

// TestSpans checks that the spans of a lane have no gap, and that sums over them are those of plain
// additions.
func TestSpans(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := historytest.Play(historytest.Choices(250).Draw(t, "choices"))
		var line Timeline
		for _, r := range h.Records {
			line.Add(r)
		}
		from := historytest.Began + team.Time(rapid.IntRange(-5_000, 500_000).Draw(t, "from"))
		to := from + team.Time(rapid.IntRange(1, 900_000).Draw(t, "length"))
		for _, name := range line.Members() {
			l := line.named[name]
			var sum totals
			at := from
			for i, span := range line.Spans(name, from, to) {
				if span.From < at || i > 0 && span.From != at || span.To <= span.From {
					t.Fatalf("%s: %+v after %d", name, span, at)
				}
				sum[Absent] += span.From.Sub(at)
				sum[span.Kind] += span.To.Sub(span.From)
				at = span.To
			}
			sum[Absent] += to.Sub(at)
			if got := l.between(from, to); got != sum {
				t.Fatalf("%s: %v, not %v", name, got, sum)
			}
			for i := 1; i < len(l.spans); i++ {
				if l.spans[i].kind == l.spans[i-1].kind || l.spans[i].at <= l.spans[i-1].at {
					t.Fatalf("%s: %+v follows %+v", name, l.spans[i], l.spans[i-1])
				}
			}
		}
	})
}

// mainly returns the kind that stands for the time: the longest, but what is worth a look where it
// takes a quarter.
func mainly(l *lane, from, to team.Time) Kind {
	d := l.between(from, to)
	longest, best := Absent, Working
	for k, took := range d {
		if took > d[longest] {
			longest = Kind(k)
		}
		if k := Kind(k); k > Working && k <= Dependency && took > d[best] {
			best = k
		}
	}
	if d[best] > 0 && 4*d[best] >= to.Sub(from) {
		return best
	}
	return longest
}

// TestFrame checks that columns follow each other without a gap, that they show what fills them,
// and that only times without work are compressed.
func TestFrame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := historytest.Play(historytest.Choices(120).Draw(t, "choices"))
		pause := team.Time(rapid.SampledFrom([]int{0, 0, 90_000, 500_000, 86_400_000}).Draw(t, "pause"))
		every := rapid.IntRange(3, 40).Draw(t, "every")
		var line Timeline
		for i, r := range h.Records {
			later := *r
			later.At += pause * team.Time(i/every)
			line.Add(&later)
		}
		first, last := line.Bounds()
		v := View{Columns: rapid.IntRange(1, 200).Draw(t, "columns"), Whole: rapid.Bool().Draw(t, "whole")}
		if rapid.Bool().Draw(t, "part") {
			v.From = first + team.Time(rapid.Int64Range(0, int64(last-first)).Draw(t, "from"))
			v.To = v.From + team.Time(rapid.Int64Range(1, 10_000_000).Draw(t, "length"))
		}
		f := line.Frame(v)
		from, to := v.From, v.To
		if from == 0 {
			from = first
		}
		if to == 0 {
			to = max(last, from+1)
		}
		if len(f.Edges) != v.Columns+1 || f.Edges[0] != from || f.Edges[v.Columns] != to || !slices.IsSorted(f.Edges) {
			t.Fatalf("edges from %d to %d: %v", from, to, f.Edges)
		}
		if len(f.Rows) != len(line.lanes) {
			t.Fatalf("%d rows", len(f.Rows))
		}
		for i, quiet := range f.Quiet {
			middle := f.Edges[i] + (f.Edges[i+1]-f.Edges[i])/2
			for _, row := range f.Rows {
				l, c := line.named[row.Member], row.Cells[i]
				switch {
				case quiet != c.Quiet:
					t.Fatalf("column %d of %s is %+v", i, row.Member, c)
				case quiet && (v.Whole || c.Kind.works()):
					t.Fatalf("column %d of %s is compressed: %+v", i, row.Member, c)
				case !quiet && f.Edges[i+1] > f.Edges[i] && c.Kind != mainly(l, f.Edges[i], f.Edges[i+1]):
					t.Fatalf("column %d of %s is %s at %d", i, row.Member, c.Kind, middle)
				}
			}
			if at := f.Column(f.Edges[i]); f.Edges[at] != f.Edges[i] {
				t.Fatalf("the time of column %d is in column %d", i, at)
			}
		}
		marks := 0
		for _, l := range line.lanes {
			marks += len(line.Marks(l.name, from, to+1))
		}
		shown := 0
		for _, row := range f.Rows {
			for _, c := range row.Cells {
				shown += toInt(c.Mark != NoMark)
			}
			if n := len([]rune(row.Text(false))); n != v.Columns || len(row.Text(true)) != v.Columns {
				t.Fatalf("the lane of %s has %d columns, not %d", row.Member, n, v.Columns)
			}
		}
		if (marks == 0) != (shown == 0) || shown > marks {
			t.Fatalf("%d marks, %d shown", marks, shown)
		}
	})
}

// TestAMarkIsShownOnce checks a frame with more columns than milliseconds, in which columns begin
// at the same time.
func TestAMarkIsShownOnce(t *testing.T) {
	var line Timeline
	at := team.Time(1_000_000_000)
	for seq, events := range [][]team.Event{
		{&team.TeamCreated{Lead: team.Member{Name: "lead", Agent: team.External, Status: team.Active}}},
		{&team.MemberSpawned{Member: team.Member{Name: "ann", Agent: team.Claude, Status: team.Active}}},
		{&team.MemberFailed{Member: "ann", Reason: "crash"}},
	} {
		line.Add(&team.Record{Seq: int64(seq + 1), At: at + team.Time(seq), Events: events})
	}
	for _, columns := range []int{1, 2, 4, 8} {
		f := line.Frame(View{Columns: columns, From: at, To: at + 2, Members: []string{"ann"}})
		if n := strings.Count(f.Rows[0].Text(false), "✗"); n != 1 {
			t.Errorf("in %d columns it is %q, with %d marks", columns, f.Rows[0].Text(false), n)
		}
		f = line.Frame(View{Columns: columns, From: at + 2, To: at + 3, Members: []string{"ann"}})
		if n := strings.Count(f.Rows[0].Text(false), "✗"); n != 1 {
			t.Errorf("from its time on, in %d columns, it is %q, with %d marks", columns, f.Rows[0].Text(false), n)
		}
	}
}

// TestACompressedTimeBeforeTheView checks a view that begins where a compressed time ends: no
// column of the view is compressed.
func TestACompressedTimeBeforeTheView(t *testing.T) {
	var line Timeline
	at := team.Time(1_000_000_000)
	add := func(events ...team.Event) {
		line.Add(&team.Record{Seq: line.Through() + 1, At: at, Events: events})
	}
	add(&team.TeamCreated{Lead: team.Member{Name: "lead", Agent: team.External, Status: team.Active}})
	add(&team.MemberSpawned{Member: team.Member{Name: "ann", Agent: team.Claude, Status: team.Idle}})
	at += Long
	add(&team.MemberStatusChanged{Member: "ann", Status: team.Active})
	f := line.Frame(View{Columns: 3, From: at, To: at + 3, Members: []string{"ann"}})
	if got := f.Rows[0].Text(false); got != "███" || slices.Contains(f.Quiet, true) {
		t.Errorf("it is %q, compressed: %v", got, f.Quiet)
	}
}

// story is a day of a team: work, a rate limit, a permission request over lunch, tasks that wait
// for each other, a failure and a retry.
func story() (*Timeline, team.Time) {
	var line Timeline
	at, seq := team.Time(1_000_000_000), int64(0)
	add := func(seconds int, events ...team.Event) {
		at += team.Time(seconds * 1000)
		seq++
		line.Add(&team.Record{Seq: seq, At: at, Events: events})
	}
	add(0, &team.TeamCreated{Lead: team.Member{Name: "lead", Agent: team.External, Status: team.Active}})
	for _, name := range []string{"ann", "bob"} {
		add(1, &team.MemberSpawned{Member: team.Member{Name: name, Agent: team.Claude, Status: team.Spawning}})
	}
	add(1, &team.TaskCreated{Task: team.Task{ID: "1", Status: team.Pending}},
		&team.TaskCreated{Task: team.Task{ID: "2", Status: team.Pending, BlockedBy: []string{"1"}}})
	add(5, &team.MemberStarted{Member: "ann"}, &team.MemberStarted{Member: "bob"},
		&team.TaskClaimed{Task: "1", Member: "ann"})
	add(10, &team.MemberStatusChanged{Member: "bob", Status: team.Idle})
	line.Tool("ann", at+10_000, true)
	line.Tool("ann", at+30_000, false)
	add(40, &team.MemberStatusChanged{Member: "ann", Status: team.Active, Trouble: "limit"})
	add(30, &team.MemberStatusChanged{Member: "ann", Status: team.Active})
	add(30, &team.PermissionRequested{Permission: team.Permission{Request: "p1", Member: "ann"}})
	add(3600, &team.PermissionAnswered{Request: "p1", Member: "ann", Outcome: "allowed"})
	add(60, &team.TaskCompleted{Task: "1", By: "ann", Unblocked: []string{"2"}},
		&team.MemberStatusChanged{Member: "ann", Status: team.Idle}, &team.TaskClaimed{Task: "2", Member: "bob"})
	add(60, &team.TaskFailed{Task: "2", By: "bob"})
	add(30, &team.MemberFailed{Member: "bob", Reason: "crash"})
	return &line, at
}

func TestStory(t *testing.T) {
	line, end := story()
	for name, c := range map[string]struct {
		view  View
		plain bool
		want  string
	}{
		"compressed": {View{Columns: 40, To: end + 20_000}, false, `
lead |················⋯·······················|
ann  |‥███▓▓▓↺~~~~███?⋯████████···············|
bob  |‥█░░░░░░░░░░░░░░⋯░░░░░░░░████████✗███✗  |`},
		"ascii": {View{Columns: 40, To: end + 20_000}, true, `
lead |................-.......................|
ann  |,###===r~~~~###?-########...............|
bob  |,#::::::::::::::-::::::::########x###x  |`},
		"whole": {View{Columns: 40, Whole: true, Members: []string{"bob", "ann"}}, false, `
bob  |░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░✗|
ann  |↺?????????????????????????????????????█·|`},
	} {
		t.Run(name, func(t *testing.T) {
			f := line.Frame(c.view)
			var b strings.Builder
			for _, row := range f.Rows {
				fmt.Fprintf(&b, "\n%-5s|%s|", row.Member, row.Text(c.plain))
			}
			if b.String() != c.want {
				t.Errorf("it is%s\nnot%s", b.String(), c.want)
			}
		})
	}
}

func TestNothingYet(t *testing.T) {
	var line Timeline
	f := line.Frame(View{Columns: 0})
	if len(f.Rows) != 0 || len(f.Quiet) != 1 {
		t.Errorf("%+v", f)
	}
	line.Tool("nobody", 5, true)
	if line.Spans("nobody", 0, 9) != nil || line.Marks("nobody", 0, 9) != nil {
		t.Error("nobody has spans or marks")
	}
}

// TestToolsFromALateLog checks tools whose log is read after records that are newer.
func TestToolsFromALateLog(t *testing.T) {
	var line Timeline
	add := func(at team.Time, events ...team.Event) {
		line.Add(&team.Record{Seq: line.Through() + 1, At: at, Events: events})
	}
	add(10_000, &team.TeamCreated{Lead: team.Member{Name: "lead", Agent: team.Claude, Status: team.Active}})
	for i, step := range []struct {
		at   team.Time
		runs bool
		want Kind
	}{
		{9_500, true, Tool},     // half a second before the last record
		{9_000, false, Working}, // an end always counts
		{1_000, true, Working},  // long ago
		{11_000, true, Tool},
		{11_500, true, Tool},
		{12_000, false, Tool}, // one of two ended
		{12_500, false, Working},
		{13_000, false, Working}, // one too many
	} {
		line.Tool("lead", step.at, step.runs)
		if got := line.named["lead"].kind(); got != step.want {
			t.Errorf("step %d: %s, not %s", i, got, step.want)
		}
	}
	line.Tool("lead", 14_000, true)
	add(15_000, &team.MemberStatusChanged{Member: "lead", Status: team.Idle})
	add(16_000, &team.MemberStatusChanged{Member: "lead", Status: team.Active})
	if got := line.named["lead"].kind(); got != Working {
		t.Errorf("a tool outlived its turn: %s", got)
	}
}

func TestAxisAndLegend(t *testing.T) {
	line, _ := story()
	f := line.Frame(View{Columns: 30, Whole: true})
	n := 0
	axis := f.Axis(func(team.Time) string { n++; return fmt.Sprintf("%02d:00", n) })
	if axis != "01:00   02:00   03:00   04:00" {
		t.Errorf("the axis is %q", axis)
	}
	for _, plain := range []bool{true, false} {
		if l := f.Legend(plain); !strings.Contains(l, "waits for a person") || plain &&
			strings.ContainsFunc(l, func(r rune) bool { return r > 126 }) {
			t.Errorf("the legend is %q", l)
		}
		f := line.Frame(View{Columns: 30, Members: []string{}})
		if l := f.Legend(plain); l != "" {
			t.Errorf("the legend of an empty frame is %q", l)
		}
	}
}

// BenchmarkAdd measures adding a whole history.
func BenchmarkAdd(b *testing.B) {
	h := historytest.Long(100_000, 100)
	for b.Loop() {
		var line Timeline
		for _, r := range h.Records {
			line.Add(r)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/100_000, "ns/record")
}

// BenchmarkFrame measures a frame of a long history in times of one of a short history.
func BenchmarkFrame(b *testing.B) {
	var short, long Timeline
	h := historytest.Long(100_000, 100)
	for i, r := range h.Records {
		long.Add(r)
		if i < 1_000 {
			short.Add(r)
		}
	}
	frame := func(line *Timeline) float64 {
		began := time.Now()
		for range 20 {
			line.Frame(View{Columns: 120})
		}
		return float64(time.Since(began)) / 20
	}
	var ofLong, ratios []float64
	for b.Loop() {
		ofLong = append(ofLong, frame(&long))
		ratios = append(ratios, ofLong[len(ofLong)-1]/frame(&short))
	}
	slices.Sort(ofLong)
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "x-short")
	b.ReportMetric(ofLong[len(ofLong)/2]/1000, "µs/frame")
}

// TestAxisRepeatsNoLabel: columns that the label calls alike share one label.
func TestAxisRepeatsNoLabel(t *testing.T) {
	f := Frame{Quiet: make([]bool, 60), Edges: make([]team.Time, 61)}
	for i := range f.Edges {
		f.Edges[i] = team.Time(i * 3_000) // three minutes in all
	}
	got := f.Axis(func(at team.Time) string { return fmt.Sprintf("23:%02d", at/60_000) })
	if want := "23:00               23:01               23:02"; got != want {
		t.Errorf("the axis is %q, and not %q", got, want)
	}
}
