package observe

import (
	"bytes"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/observe/present"
	"cadre/internal/team"

	"pgregory.net/rapid"
)

var timestamps = regexp.MustCompile(`"timestamp\\?":\\?"([^"\\]+)`)

// later returns a recording as if another team had done the same later, in sessions of its own.
func later(lines [][]byte, by time.Duration) [][]byte {
	another := strings.NewReplacer("b1a8c647", "c2b9d758", "e49217a6", "f5a32807", "1004d5cb", "2115e6dc", "0963947b",
		"1a74a58c", `"agentId":"a`, `"agentId":"b`, "toolu_", "toolu_2", `"uuid":"`, `"uuid":"2-`, `"parentUuid":"`,
		`"parentUuid":"2-`)
	var all [][]byte
	for _, line := range lines {
		one := timestamps.ReplaceAllStringFunc(string(line), func(field string) string {
			text := timestamps.FindStringSubmatch(field)[1]
			at, err := time.Parse(time.RFC3339Nano, text)
			if err != nil {
				return field
			}
			return strings.Replace(field, text, at.Add(by).Format("2006-01-02T15:04:05.000Z"), 1)
		})
		all = append(all, []byte(another.Replace(one)))
	}
	return all
}

// TestTeamThatBeganLast has the transcripts of two teams in one folder, without the end of either.
// The later team is observed, in whatever order they are read.
func TestTeamThatBeganLast(t *testing.T) {
	inputs := recordings["2.1.329 team in tmux"]
	var old [][][]byte
	for _, in := range inputs {
		old = append(old, recorded(t, in.file))
	}
	files := map[time.Duration][][][]byte{}
	want := ""
	// The second team begins while the first is active, or long after.
	for _, after := range []time.Duration{10 * time.Second, 30 * 24 * time.Hour} {
		var all [][][]byte
		alone := watch()
		for i, lines := range old {
			all = append(all, later(lines, after))
			for _, line := range all[i] {
				alone.see(fmt.Sprint("later ", i), line)
			}
		}
		files[after], want = append(all, old...), alone.view()
		if s := alone.State(); s == nil || s.Name != "session-c2b9d758" || len(s.Members) != 4 || len(s.Tasks) < 3 {
			t.Fatalf("the later team alone is %s", want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		w := watch()
		all := files[rapid.SampledFrom([]time.Duration{10 * time.Second, 30 * 24 * time.Hour}).Draw(t, "later by")]
		at := make([]int, len(all))
		left := rapid.Permutation([]int{0, 1, 2, 3, 4, 5}).Draw(t, "order")
		for len(left) > 0 {
			next := rapid.IntRange(0, len(left)-1).Draw(t, "file")
			i := left[next]
			n := min(rapid.IntRange(1, 400).Draw(t, "lines"), len(all[i])-at[i])
			for _, line := range all[i][at[i] : at[i]+n] {
				w.see(fmt.Sprint("file ", i), line)
			}
			if at[i] += n; at[i] == len(all[i]) {
				left = slices.Delete(left, next, next+1)
			}
			if rapid.IntRange(0, 4).Draw(t, "ends") == 0 {
				saved, err := w.Save()
				if err != nil {
					t.Fatal(err)
				}
				if w.Observer, err = Restore(Options{}, saved, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := w.view(); got != want {
			t.Fatalf("observed is\n%s\nthe later team alone is\n%s", got, want)
		}
	})
}

// TestTeamsOfOneName checks that nameless transcripts of in-process teammates are assigned to the
// right team. An older team with the same members and prompts must not be confused with this one,
// whichever is read first.
func TestTeamsOfOneName(t *testing.T) {
	inputs := recordings["2.1.47 lead and teammate"]
	lead, alice := clip(recorded(t, inputs[0].file), `"text":"ops done"`), recorded(t, inputs[1].file)
	files := map[string][][]byte{"old lead": lead, "old alice": alice, "new lead": later(lead, time.Hour),
		"new alice": later(alice, time.Hour)}
	alone := watch()
	for _, name := range []string{"new lead", "new alice"} {
		for _, line := range files[name] {
			alone.see(name, line)
		}
	}
	if s := alone.State(); s == nil || s.Tasks[0].Status != "completed" || len(alone.messages) == 0 {
		t.Fatalf("the new team alone is %s", alone.view())
	}
	rapid.Check(t, func(t *rapid.T) {
		w := watch()
		for _, name := range rapid.Permutation(slices.Sorted(maps.Keys(files))).Draw(t, "order") {
			for _, line := range files[name] {
				w.see(name, line)
			}
		}
		if got, want := w.view(), alone.view(); got != want {
			t.Fatalf("observed is\n%s\nthe new team alone is\n%s", got, want)
		}
		if c := w.Counts(); c.Held != 0 {
			t.Fatalf("%d doings of the old team are held", c.Held)
		}
	})
}

func TestSuccession(t *testing.T) {
	t.Run("a run of the agent after another, in one log", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.spawn("alice")
		s.session = "55556666-7777" // the first run was killed and deleted nothing
		s.createTeam("gx")
		s.want("gx/lead")
		s.wantNames("created member:joined member:shutdown deleted created")
		s.task("1", "B")
		s.want("gx/lead #1:pending")
	})
	t.Run("of the same name", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.spawn("alice")
		s.session = "55556666-7777"
		s.createTeam("fx")
		s.want("fx/lead")
	})
	t.Run("its deletion was not seen", func(t *testing.T) {
		s := play(t)
		s.createTeam("fx")
		s.Gap("lead", "the connection was down", s.now)
		s.createTeam("gx")
		s.want("gx/lead")
	})
	t.Run("the restored team has ended", func(t *testing.T) {
		s := play(t)
		s.Observer, _ = FromTeamState(Options{}, &present.TeamState{Name: "old", Role: present.RoleLead}, s.now)
		s.createTeam("fx")
		s.want("fx/lead")
	})
	t.Run("each has its own id", func(t *testing.T) {
		s := play(t)
		ids := map[string]bool{}
		for range 4 {
			s.createTeam("fx")
			ids[s.Team().Team().ID] = true
			s.do("TeamDelete", obj{}, obj{"success": true})
		}
		if len(ids) != 4 {
			t.Errorf("4 teams have the ids %v", ids)
		}
	})
	t.Run("an earlier team is reported once", func(t *testing.T) {
		o := New(Options{})
		var warnings []string
		show := func(source string, lines [][]byte) {
			for i, line := range lines {
				warnings = append(warnings, o.Line(source, line, epochMillis+team.Time(i)).Warnings...)
			}
		}
		old := recorded(t, "2.1.329/tmux/transcript-lead.jsonl")
		show("new", later(old, time.Hour))
		show("old", old)
		want := "team session-b1a8c647 began before the observed team session-c2b9d758 and is ignored"
		if n := strings.Count(strings.Join(warnings, "\n"), want); n != 1 ||
			strings.Contains(strings.Join(warnings, "\n"), "whose creation") {
			t.Errorf("it is told %d times: %q", n, warnings)
		}
	})
	t.Run("earlier usage of its sessions does not count", func(t *testing.T) {
		s := play(t)
		used := func(cost float64) {
			s.n++
			s.line(obj{"type": "result", "session_id": s.session, "uuid": fmt.Sprint("r", s.n), "total_cost_usd": cost})
		}
		s.createTeam("fx")
		used(1)
		s.do("TeamDelete", obj{}, obj{"success": true})
		s.createTeam("gx")
		used(1.5)
		if got := s.Team().Team().Usage.CostMicroUSD; got != 500_000 {
			t.Errorf("the second team used %d", got)
		}
	})
}

// TestUsageBeforeJoining checks that the usage of a teammate before it was known is reported when
// it joins, even by an observer restored meanwhile.
func TestUsageBeforeJoining(t *testing.T) {
	s := play(t)
	s.createTeam("fx")
	s.Introduce("alice", "fx", "alice")
	lead := s.source
	s.source = "alice"
	s.line(obj{"type": "result", "session_id": "99998888", "uuid": "r", "total_cost_usd": 0.25})
	s.source = lead
	saved, err := s.Save()
	if err != nil {
		t.Fatal(err)
	}
	if s.Observer, err = Restore(Options{}, saved, nil); err != nil {
		t.Fatal(err)
	}
	s.spawn("alice")
	if alice, _ := s.Team().Member("alice"); alice.Usage.CostMicroUSD != 250_000 {
		t.Errorf("alice used %+v", alice.Usage)
	}
}

// TestTooMuchIsHeld checks that the number of held facts is bounded, and that their loss is
// reported once.
func TestTooMuchIsHeld(t *testing.T) {
	t.Parallel()
	s := play(t)
	s.Observer = New(Options{Of: "fx"})
	s.source, s.session = "alice", "99990000"
	s.Introduce("alice", "", "alice")
	gaps := 0
	for i := range mostHeld + 10 {
		s.use(fmt.Sprint("m", i), "SendMessage", obj{"type": "message", "recipient": "team-lead",
			"content": fmt.Sprint("word ", i)})
		for _, text := range s.answer(fmt.Sprint("m", i), obj{"success": true}, "").Warnings {
			if strings.Contains(text, "too many facts by") {
				gaps++
			}
		}
	}
	if c := s.Counts(); c.Dropped != 10 || c.Held != mostHeld || gaps != 1 || c.Gaps != 1 {
		t.Errorf("%d dropped, %d held, told %d times, %d gaps", c.Dropped, c.Held, gaps, c.Gaps)
	}
	s.source, s.session = "lead", "11112222-3333"
	s.createTeam("fx")
	s.want("fx/lead alice:active")
	if got := s.Team().MessageSeq(); got != mostHeld {
		t.Errorf("%d messages", got)
	}
	if c := s.Counts(); c.Held != 0 {
		t.Errorf("%d are still held", c.Held)
	}
}

// TestStrangersMakeRoom checks that held facts of other teams' teammates are dropped before those
// of this team.
func TestStrangersMakeRoom(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it reads a transcript thousands of times; not with -short")
	}
	o := New(Options{})
	for i, line := range recorded(t, "2.1.329/tmux/transcript-lead.jsonl") {
		o.Line("lead", line, epochMillis+team.Time(i))
	}
	strangers := later(recorded(t, "2.1.329/tmux/transcript-alice.jsonl"), time.Hour)
	for i := range mostHeld {
		for _, line := range strangers {
			o.Line("stranger", bytes.ReplaceAll(line, []byte("toolu_2"), fmt.Append(nil, "toolu_3x", i, "x")),
				epochMillis+team.Time(i))
		}
		if o.Counts().Held >= mostHeld {
			break
		}
	}
	if c := o.Counts(); c.Held != mostHeld || c.Dropped != 0 || c.Gaps != 0 {
		t.Errorf("%+v", c)
	}
	if s := o.State(); s == nil || s.Name != "session-b1a8c647" {
		t.Errorf("%+v", s)
	}
}

// mostHeld is the maximum number of facts held until their author is known.
const mostHeld = 4096
