package sessionlog

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/agent"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, f Folder, member string) *Log {
	t.Helper()
	l, err := f.Open(member)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func add(t *testing.T, l *Log, entries ...Entry) {
	t.Helper()
	if err := l.Add(entries...); err != nil {
		t.Fatal(err)
	}
}

// all reads until there is nothing more now.
func all(t *testing.T, v *Viewer) (entries []Entry) {
	t.Helper()
	for {
		more, err := v.Read()
		if err != nil {
			t.Fatal(err)
		}
		if len(more) == 0 {
			return entries
		}
		entries = append(entries, more...)
	}
}

// lines renders entries in one line each.
func lines(entries []Entry) string {
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintf(&b, "%d %s", e.Seq, e.Kind)
		for _, part := range []string{e.ID, e.Tool, e.Text} {
			if part != "" {
				b.WriteString(" " + part)
			}
		}
		for _, mark := range []struct {
			name string
			set  bool
		}{{" cut", e.Cut}, {" failed", e.Failed}, {" interrupted", e.Interrupted}} {
			if mark.set {
				b.WriteString(mark.name)
			}
		}
		if e.Count > 0 {
			fmt.Fprintf(&b, " %d", e.Count)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func check(t *testing.T, got, want string) {
	t.Helper()
	if want = strings.TrimLeft(want, "\n"); got != want {
		t.Fatalf("got:\n%s\nwant:\n%s", got, want)
	}
}

// TestViewers has viewers that come before, during and after the entries see the same ones.
func TestViewers(t *testing.T) {
	f := Of(t.TempDir())
	early := f.View("ann")
	defer early.Close()
	if got := all(t, early); got != nil {
		t.Fatalf("a log that does not exist has %v", got)
	}
	l := open(t, f, "ann")
	other := open(t, f, "ann.2") // a name that begins alike
	add(t, l, Entry{Kind: Started, Text: "s1"})
	add(t, other, Entry{Kind: Text, Text: "not ann"})
	check(t, lines(all(t, early)), `
1 started s1
`)
	add(t, l, Entry{Kind: Text, Text: "hello"}, Entry{Kind: TurnEnded})
	check(t, lines(all(t, early)), `
2 text hello
3 turn_ended
`)
	late := f.View("ann")
	defer late.Close()
	check(t, lines(all(t, late)), `
1 started s1
2 text hello
3 turn_ended
`)
}

// TestBounded checks that a log never takes more than it may, and that viewers are told what is not
// kept any more.
func TestBounded(t *testing.T) {
	dir := t.TempDir()
	f := Of(dir)
	l := open(t, f, "ann")
	slow := f.View("ann")
	defer slow.Close()
	add(t, l, Entry{Kind: Started})
	first, err := slow.Read()
	if err != nil || len(first) != 1 {
		t.Fatal(first, err)
	}
	const n = 400
	text := strings.Repeat("x", 10_000)
	for range n {
		add(t, l, Entry{Kind: Text, Text: text})
		total := int64(0)
		files, err := os.ReadDir(string(f))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			info, err := file.Info()
			if err != nil {
				t.Fatal(err)
			}
			total += info.Size()
		}
		if most := int64(2*SegmentSize + 11_000); total > most {
			t.Fatalf("the log takes %d bytes, and %d are the most", total, most)
		}
	}
	for name, v := range map[string]*Viewer{"late": f.View("ann"), "slow": slow} {
		got := all(t, v)
		v.Close()
		next, lost := int64(1), int64(0)
		if name == "slow" {
			next = 2
		}
		for _, e := range got {
			if e.Seq != next {
				t.Fatalf("%s: entry %d comes where %d was expected", name, e.Seq, next)
			}
			if next++; e.Kind == Lost {
				next, lost = e.Seq+e.Count, lost+e.Count
			}
		}
		if next != n+2 {
			t.Errorf("%s: the last entry is %d of %d", name, next-1, n+1)
		}
		if lost == 0 {
			t.Errorf("%s: nothing is said of what is not kept", name)
		}
	}
}

// TestNothingIsSkipped has a viewer keep up with a log that begins new segments.
func TestNothingIsSkipped(t *testing.T) {
	f := Of(t.TempDir())
	l, v := open(t, f, "ann"), f.View("ann")
	defer v.Close()
	text := strings.Repeat("x", 30_000)
	next := int64(1)
	for range 200 {
		add(t, l, Entry{Kind: Text, Text: text}, Entry{Kind: TurnEnded})
		for _, e := range all(t, v) {
			if e.Seq != next || e.Kind == Lost {
				t.Fatalf("entry %d (%s) comes where %d was expected", e.Seq, e.Kind, next)
			}
			next++
		}
	}
	if next != 401 {
		t.Fatalf("%d of 400 entries came", next-1)
	}
}

// TestReopened continues a log whose writer was killed in the middle of a line.
func TestReopened(t *testing.T) {
	f := Of(t.TempDir())
	l := open(t, f, "ann")
	add(t, l, Entry{Kind: Started, Text: "s1"})
	path := filepath.Join(string(f), "ann.1.jsonl")
	file, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = file.WriteString(`{"seq":2,"kind":"te`); err != nil {
		t.Fatal(err)
	}
	file.Close()
	add(t, open(t, f, "ann"), Entry{Kind: Started, Text: "s2"})
	v := f.View("ann")
	defer v.Close()
	check(t, lines(all(t, v)), `
1 started s1
2 started s2
`)
}

// TestGoneTeam checks that a log never brings back the folder of a team that was removed.
func TestGoneTeam(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "gone")
	if _, err := Of(dir).Open("ann"); !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Fatal("the team's folder was made")
	}
}

// TestFollow waits for entries until its context ends.
func TestFollow(t *testing.T) {
	f := Of(t.TempDir())
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	got := make(chan Entry)
	over := make(chan error, 1)
	go func() {
		defer close(over)
		for e, err := range f.Follow(ctx, "ann") {
			if err != nil {
				over <- err
				return
			}
			got <- e
		}
	}()
	l := open(t, f, "ann") // the follower came before the log
	for i := range 3 {
		add(t, l, Entry{Kind: Text, Text: fmt.Sprint(i)})
		if e := <-got; e.Text != fmt.Sprint(i) {
			t.Fatalf("%+v", e)
		}
	}
	cancel()
	if err := <-over; err != nil {
		t.Fatal(err)
	}
}

// talker is a session that shows what the test says.
type talker struct {
	agent.Session
	updates chan agent.Update
}

func (s *talker) Updates() <-chan agent.Update             { return s.updates }
func (s *talker) Give(context.Context, agent.Prompt) error { return nil }

// TestRecord logs each kind of update, and passes all but parts of texts on.
func TestRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := Of(t.TempDir())
		l, err := f.Open("ann")
		if err != nil {
			t.Fatal(err)
		}
		s := &talker{updates: make(chan agent.Update)}
		now, long := team.Time(0), strings.Repeat("l", mostText)+"ong"
		r := Record(s, l, func() team.Time { now++; return now }, func(err error) { t.Error(err) })
		passed, answers := 0, []string{}
		done := make(chan struct{})
		go func() {
			defer close(done)
			for u := range r.Updates() {
				passed++
				switch u := u.(type) {
				case agent.PermissionAsked:
					u.Answer(false, "not now")
				case agent.PlanProposed:
					u.Answer(true, "")
				}
			}
		}()
		if err := r.Give(t.Context(), agent.Prompt{Text: "do it"}); err != nil {
			t.Fatal(err)
		}
		hear := func(allow bool, reason string) { answers = append(answers, fmt.Sprint(allow, reason)) }
		for _, u := range []agent.Update{
			agent.Started{Session: "s1"}, agent.TurnStarted{Summary: "work"},
			agent.TextPart{Text: "I "}, agent.TextPart{Text: "begin"}, nil, agent.TextPart{Text: "…"},
			agent.Text{Text: "I begin…"}, agent.ToolStarted{ID: "t1", Tool: "Bash", Input: strings.Repeat("i", 5000)},
			agent.ToolFinished{ID: "t1", Failed: true, Output: strings.Repeat("o", 2000)},
			agent.PermissionAsked{Tool: "Edit", Input: "{}", Answer: hear},
			agent.PlanProposed{Plan: "a plan", Answer: hear},
			agent.Used{Usage: team.Usage{InputTokens: 7}, Context: 12}, agent.Compacted{},
			agent.Retrying{Problem: agent.Problem{Text: "busy"}}, agent.Received{ID: "p"},
			agent.TextPart{Text: long[:mostText]}, agent.TextPart{Text: long[mostText:]}, agent.Text{Text: long},
			agent.TextPart{Text: "cut sh"}, agent.TurnEnded{Interrupted: true},
			agent.TurnEnded{Problem: &agent.Problem{Text: "no model"}}, agent.Ended{Err: errors.New("it crashed")},
		} {
			if u == nil { // long enough for the parts to be shown
				time.Sleep(oldEnough)
				synctest.Wait()
				continue
			}
			s.updates <- u
			synctest.Wait() // the host has answered it
		}
		close(s.updates)
		<-done
		if passed != 15 {
			t.Errorf("%d updates were passed on", passed)
		}
		check(t, strings.Join(answers, "\n"), "falsenot now\ntrue")
		v := f.View("ann")
		defer v.Close()
		got := all(t, v)
		check(t, lines(got), `
1 prompt do it
2 started s1
3 turn work
4 part I begin
5 text I begin…
6 tool t1 Bash `+strings.Repeat("i", mostInput)+` cut
7 result t1 `+got[6].Text+` cut failed
8 question q1 Edit {}
9 answer q1 not now failed
10 plan q2 a plan
11 answer q2
12 usage
13 compacted
14 retry busy
15 part `+long[:mostText]+`
16 part ong
17 text `+long[:mostText]+` cut
18 part cut sh
19 turn_ended interrupted
20 turn_ended no model failed
21 ended it crashed failed
`)
		if got[6].Text != strings.Repeat("o", mostResult) || got[11].Usage.InputTokens != 7 || got[11].Context != 12 ||
			got[0].At == 0 {
			t.Errorf("%+v", got)
		}
	})
}

// TestEarlierLog checks that a log of an earlier version is read with its times.
func TestEarlierLog(t *testing.T) {
	folder := Folder(t.TempDir())
	line := `{"seq":1,"time":1700000000000,"kind":"started","text":"s1"}` + "\n"
	if err := os.WriteFile(filepath.Join(string(folder), "ann.1"+suffix), []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	v := folder.View("ann")
	defer v.Close()
	got, err := v.Read()
	if err != nil || len(got) != 1 || got[0].At != 1_700_000_000_000 || got[0].Kind != Started {
		t.Errorf("%+v, %v", got, err)
	}
}

// TestUnwritable checks that a log that cannot be written disturbs no session, and is reported
// once.
func TestUnwritable(t *testing.T) {
	l, err := Of(t.TempDir()).Open("ann")
	if err != nil {
		t.Fatal(err)
	}
	whole := l.file
	defer whole.Close()
	if l.file, err = os.Open(os.DevNull); err != nil { // it cannot be written to
		t.Fatal(err)
	}
	s := &talker{updates: make(chan agent.Update, 3)}
	var failures []error
	r := Record(s, l, func() team.Time { return 1 }, func(err error) { failures = append(failures, err) })
	s.updates <- agent.Text{Text: "one"}
	s.updates <- agent.Text{Text: "two"}
	close(s.updates)
	n := 0
	for range r.Updates() {
		n++
	}
	if n != 2 || len(failures) != 1 {
		t.Fatalf("%d updates, failures %v", n, failures)
	}
}

// TestTheEndOfAResult checks that the log keeps the end of a long result.
func TestTheEndOfAResult(t *testing.T) {
	t.Parallel()
	text := "begins" + strings.Repeat("ä", mostResult) + "it broke"
	for _, failed := range []bool{false, true} {
		e := Entry{Kind: Result, Text: text, Failed: failed}
		e.limit()
		if !e.Cut || len(e.Text) > mostResult || strings.HasPrefix(e.Text, "begins") ||
			!strings.HasSuffix(e.Text, "it broke") || e.Count != 0 {
			t.Errorf("failed: %t, and the text begins with %q and ends with %q", failed, e.Text[:8],
				e.Text[len(e.Text)-8:])
		}
	}
}

// TestRunning shows the output of a running tool to viewers that come early and late, and keeps it
// out of the log.
func TestRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := Of(t.TempDir())
		l, err := f.Open("ann")
		if err != nil {
			t.Fatal(err)
		}
		s := &talker{updates: make(chan agent.Update)}
		r := Record(s, l, func() team.Time { return 1 }, func(err error) { t.Error(err) })
		done := make(chan struct{})
		go func() {
			defer close(done)
			for u := range r.Updates() {
				if _, is := u.(agent.ToolOutput); is {
					t.Error("a part of an output was passed on")
				}
			}
		}()
		say := func(all ...agent.Update) {
			for _, u := range all {
				s.updates <- u
			}
			time.Sleep(outputPace)
			synctest.Wait()
		}
		early := f.View("ann")
		defer early.Close()
		say(agent.ToolStarted{ID: "t1", Tool: "sh", Input: "make"}, agent.ToolOutput{ID: "t1", Text: "one\ntw\xc3"})
		check(t, lines(all(t, early)), `
1 tool t1 sh make
1 output t1 one
tw
`)
		say(agent.ToolOutput{ID: "t1", Text: "\xa4\n"}, agent.ToolOutput{ID: "t2", Text: "other"})
		late := f.View("ann")
		defer late.Close()
		check(t, lines(all(t, late)), `
1 tool t1 sh make
1 output t1 one
twä

1 output t2 other
`)
		check(t, lines(all(t, early)), `
1 output t1 ä

1 output t2 other
`)
		big := strings.Repeat("ä", mostRunning)
		say(agent.ToolOutput{ID: "t1", Text: big + "x", Missed: 1000})
		got := all(t, early)
		if len(got) != 1 || got[0].Count+int64(len(got[0].Text)) != int64(1000+len(big)+1) ||
			len(got[0].Text) > mostRunning || !strings.HasPrefix(got[0].Text, "ä") ||
			!strings.HasSuffix(got[0].Text, "äx") {
			t.Errorf("%d bytes after %d that are missing", len(got[0].Text), got[0].Count)
		}
		if got := all(t, early); len(got) > 0 {
			t.Errorf("nothing new came, and the viewer has %+v", got)
		}
		say(agent.ToolFinished{ID: "t1", Output: "made\n", Lines: 300}, agent.ToolFinished{ID: "t2", Output: "other"})
		for name, v := range map[string]*Viewer{"early": early, "late": late} {
			got := all(t, v)
			if check(t, lines(got), "2 result t1 made\n 299\n3 result t2 other\n"); got[0].Count != 299 {
				t.Errorf("%s: %+v", name, got)
			}
		}
		close(s.updates)
		<-done
	})
}

// TestRunningOfAKilledHost keeps the last output for viewers, and removes it when the next session
// starts.
func TestRunningOfAKilledHost(t *testing.T) {
	f := Of(t.TempDir())
	l := open(t, f, "ann")
	add(t, l, Entry{Kind: Tool, ID: "t1", Tool: "sh"})
	var o outputs
	o.add("t1", "it begins\n", 0, 1)
	if err := l.show(o); err != nil {
		t.Fatal(err)
	}
	v := f.View("ann")
	defer v.Close()
	check(t, lines(all(t, v)), `
1 tool t1 sh
1 output t1 it begins

`)
	add(t, open(t, f, "ann"), Entry{Kind: Started})
	again := f.View("ann")
	defer again.Close()
	check(t, lines(all(t, again)), `
1 tool t1 sh
2 started
`)
	if files, err := os.ReadDir(string(f)); err != nil || len(files) != 1 {
		t.Errorf("the folder has %v, %v", files, err)
	}
}

// TestCompleteResult checks that blank lines at the end of a complete output do not count as
// missing.
func TestCompleteResult(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"ok\n\n", "\nok", "ok\n\nexit status 3", "ok\n \t\r\n"} {
		var all proc.Capture
		for i := range text { // byte by byte, as a command may print
			all.Write([]byte{text[i]})
		}
		e := Entry{Kind: Result, Text: text, Count: int64(all.Lines())}
		if e.limit(); e.Count != 0 || e.Cut {
			t.Errorf("%q: %d lines are missing", text, e.Count)
		}
	}
}

// TestDamagedRunning shows what is sound in a damaged file of running outputs.
func TestDamagedRunning(t *testing.T) {
	t.Parallel()
	for damaged, want := range map[string]string{
		`[{"id":"x","total":-5},{"id":"y","total":3,"tail":"YWJj"}]`:              "1 output y abc\n",
		`[{"id":"x","total":1,"tail":"YWJj"},{"id":"y","total":3,"tail":"YWJj"}]`: "1 output y abc\n",
		`[{"id":"x","total":-5}]`: "",
		`[{}]`:                    "",
		`[{"id":"x","total":`:     "",
	} {
		f := Of(t.TempDir())
		open(t, f, "ann")
		if err := os.WriteFile(f.runningPath("ann"), []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		v := f.View("ann")
		if got := lines(all(t, v)); got != want {
			t.Errorf("%s: %q", damaged, got)
		}
		v.Close()
	}
}

// TestAnIdAgain checks that the output of a use is complete where an earlier one had the same id.
func TestAnIdAgain(t *testing.T) {
	t.Parallel()
	f := Of(t.TempDir())
	l := open(t, f, "ann")
	v := f.View("ann")
	defer v.Close()
	show := func(ids ...string) {
		t.Helper()
		var o outputs
		for i, id := range ids {
			o.add(id, fmt.Sprintf("output %d of many\n", i+len(ids)), 0, 1)
		}
		if err := l.show(o); err != nil {
			t.Fatal(err)
		}
	}
	add(t, l, Entry{Kind: Tool, ID: "t1"})
	show("t1")
	check(t, lines(all(t, v)), "1 tool t1\n1 output t1 output 1 of many\n\n")
	// another use runs, so there is always a file
	show("t0", "t1")
	add(t, l, Entry{Kind: Result, ID: "t1"}, Entry{Kind: Tool, ID: "t1"})
	check(t, lines(all(t, v)), `
2 result t1
3 tool t1
3 output t0 output 2 of many

3 output t1 output 3 of many

`)
	show()
	all(t, v)
	show("t1")
	check(t, lines(all(t, v)), "3 output t1 output 1 of many\n\n")
}
