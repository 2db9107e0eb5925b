package sessionview

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.uber.org/goleak"

	"cadre/internal/agent/envelope"
	"cadre/internal/agent/sessionlog"
	"cadre/internal/team"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// shown returns the lines of the entries, with their times.
func shown(entries ...sessionlog.Entry) string {
	var l Lines
	var b strings.Builder
	write := func(lines []Line) {
		for _, line := range lines {
			fmt.Fprintf(&b, "%d %s\n", line.At, line.Text)
		}
	}
	for i, e := range entries {
		e.Seq, e.At = int64(i+1), team.Time(i+1)
		write(l.Add(e))
	}
	write(l.Rest())
	return b.String()
}

// TestLines shows an entry of each kind.
func TestLines(t *testing.T) {
	const (
		command = `{"command":"go test ./..."}`
		output  = "1\n2\n3\n4\n5\n6\n7\n8\n"
	)
	got := shown(sessionlog.Entry{Kind: sessionlog.Started, Text: "s1"},
		sessionlog.Entry{Kind: sessionlog.Prompt, Text: "do it\nnow"},
		sessionlog.Entry{Kind: sessionlog.Turn, Text: "task 1"}, sessionlog.Entry{Kind: sessionlog.Prompt, Text: " "},
		sessionlog.Entry{Kind: sessionlog.Part, Text: "I be"}, sessionlog.Entry{Kind: sessionlog.Part, Text: "gin\nto"},
		sessionlog.Entry{Kind: sessionlog.Text, Text: "I begin\nto look"},
		sessionlog.Entry{Kind: sessionlog.Tool, Tool: "Bash", Text: command},
		sessionlog.Entry{Kind: sessionlog.Result, Text: output},
		sessionlog.Entry{Kind: sessionlog.Tool, Tool: "TeamStatus", Text: "{}"},
		sessionlog.Entry{Kind: sessionlog.Result, Failed: true},
		sessionlog.Entry{Kind: sessionlog.Result, Failed: true, Text: output + "it broke"},
		sessionlog.Entry{Kind: sessionlog.Question, Tool: "Bash", Text: command},
		sessionlog.Entry{Kind: sessionlog.Answer, Failed: true, Text: "not here"},
		sessionlog.Entry{Kind: sessionlog.Plan, Text: "one\ntwo"}, sessionlog.Entry{Kind: sessionlog.Answer},
		sessionlog.Entry{Kind: sessionlog.Usage, Context: 5}, sessionlog.Entry{Kind: sessionlog.Compacted},
		sessionlog.Entry{Kind: sessionlog.Retry, Text: "529 overloaded"},
		sessionlog.Entry{Kind: sessionlog.Lost, Count: 12}, sessionlog.Entry{Kind: sessionlog.Part, Text: "I am cut"},
		sessionlog.Entry{Kind: sessionlog.TurnEnded, Interrupted: true},
		sessionlog.Entry{Kind: sessionlog.TurnEnded},
		sessionlog.Entry{Kind: sessionlog.TurnEnded, Failed: true, Text: "no login"},
		sessionlog.Entry{Kind: sessionlog.Ended}, sessionlog.Entry{Kind: sessionlog.Ended, Failed: true,
			Text: "killed"}, sessionlog.Entry{Kind: sessionlog.Part, Text: "still writing"})
	want := strings.TrimLeft(`
1 · the session started: s1
2 · it was given: do it
0 │ now
3 · task 1
7 │ I begin
0 │ to look
8 ▸ Bash: go test ./...
9 ✓ … 2 lines before
0 │ 3
0 │ 4
0 │ 5
0 │ 6
0 │ 7
0 │ 8
10 ▸ TeamStatus
11 ✗ failed
12 ✗ … 3 lines before
0 │ 4
0 │ 5
0 │ 6
0 │ 7
0 │ 8
0 │ it broke
13 ? it asks to use Bash: go test ./...
14 ✗ refused: not here
15 ? its plan: one
0 │ two
16 ✓ allowed
18 ! its context was compacted
19 ↺ it tries again: 529 overloaded
20 ! 12 earlier entries were dropped
21 │ I am cut
22 ! its turn was interrupted
24 ✗ its turn failed: no login
25 · the session ended
26 ✗ the session ended: killed
27 │ still writing
`, "\n")
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// TestHostile checks that nothing that an agent writes passes for a line of cadre, or controls a
// terminal.
func TestHostile(t *testing.T) {
	evil := "\x1b[2J\n✓ allowed\r\n? it asks to use Bash: true\u2028! its turn was interrupted\n\x9b31m"
	for _, kind := range []sessionlog.Kind{sessionlog.Started, sessionlog.Prompt, sessionlog.Turn, sessionlog.Part,
		sessionlog.Text, sessionlog.Tool, sessionlog.Result, sessionlog.Output, sessionlog.Question, sessionlog.Plan,
		sessionlog.Answer, sessionlog.Retry, sessionlog.TurnEnded, sessionlog.Ended} {
		for i, line := range strings.Split(strings.TrimSuffix(shown(sessionlog.Entry{Kind: kind, Tool: evil, Text: evil,
			Failed: true}), "\n"), "\n") {
			_, text, _ := strings.Cut(line, " ")
			if strings.ContainsAny(text, "\x1b\u009b\r\u2028") || !utf8.ValidString(text) {
				t.Errorf("%s shows %q", kind, text)
			}
			if i > 0 && !strings.HasPrefix(text, "│ ") {
				t.Errorf("%s has a line %q", kind, text)
			}
		}
	}
}

// typed returns the lines of the entries as attach prints them, with what each entry adds.
func typed(entries ...sessionlog.Entry) string {
	l := Lines{coming: true}
	var b strings.Builder
	for _, e := range entries {
		fmt.Fprintln(&b, e.Kind)
		for _, line := range l.Add(e) {
			fmt.Fprintln(&b, " ", line.Text)
		}
	}
	return b.String()
}

// TestOutputAsItComes shows the output of a running command line by line, and nothing of it twice.
func TestOutputAsItComes(t *testing.T) {
	out := func(text string) sessionlog.Entry {
		return sessionlog.Entry{Kind: sessionlog.Output, ID: "1", Text: text}
	}
	end := func(text string) sessionlog.Entry {
		return sessionlog.Entry{Kind: sessionlog.Result, ID: "1", Text: text}
	}
	use := sessionlog.Entry{Kind: sessionlog.Tool, ID: "1", Tool: "sh", Text: "make"}
	for _, c := range []struct {
		name    string
		entries []sessionlog.Entry
		want    string
	}{
		{"all of it was shown", []sessionlog.Entry{use, out("one\ntw"), out("o\n"), end("one\ntwo\n")}, `
tool
  ▸ sh: make
output
  │ one
output
  │ two
result
  ✓ done
`},
		{"the end was not shown", []sessionlog.Entry{use, out("one\n10%\r20%\r\n3"), end("one\n10%\r20%\r\n30\nfour\n")}, `
tool
  ▸ sh: make
output
  │ one
  │ 20%
result
  ✓ 30
  │ four
`},
		{"parts are missing", []sessionlog.Entry{use, out("one\n"),
			{Kind: sessionlog.Output, ID: "1", Text: "nine\n", Count: 3000},
			{Kind: sessionlog.Result, ID: "1", Text: "98\n99\n100\n", Count: 97, Cut: true, Failed: true}}, `
tool
  ▸ sh: make
output
  │ one
output
  │ … 3 KiB before
  │ nine
result
  ✗ … 97 lines before
  │ 98
  │ 99
  │ 100
`},
		{"lines are missing that look alike", []sessionlog.Entry{use, out("y\n"),
			{Kind: sessionlog.Result, ID: "1", Text: "y\ny\ny\nend\n", Count: 96}}, `
tool
  ▸ sh: make
output
  │ y
result
  ✓ … 96 lines before
  │ y
  │ y
  │ y
  │ end
`},
		{"blank lines", []sessionlog.Entry{use, out("one\n\n"), out("\ntwo\n\n"), end("one\n\n\ntwo\n\n")}, `
tool
  ▸ sh: make
output
  │ one
output
  │ 
  │ 
  │ two
result
  ✓ done
`},
		{"blank lines at the end", []sessionlog.Entry{use, out("ok\n\n"),
			{Kind: sessionlog.Result, ID: "1", Text: "ok\nexit status 3", Failed: true}}, `
tool
  ▸ sh: make
output
  │ ok
result
  ✗ exit status 3
`},
		{"a text in between", []sessionlog.Entry{{Kind: sessionlog.Part, Text: "I look\n\nat "},
			{Kind: sessionlog.Part, Text: "it\nand"}, {Kind: sessionlog.Text, Text: "I look\n\nat it\nand at that"},
			{Kind: sessionlog.Text, Text: "I look"}}, `
part
  │ I look
part
  │ 
  │ at it
text
  │ and at that
text
  │ I look
`},
	} {
		if got, want := typed(c.entries...), strings.TrimLeft(c.want, "\n"); got != want {
			t.Errorf("%s: got:\n%s\nwant:\n%s", c.name, got, want)
		}
	}
}

// TestWriting shows the last lines of a running output below the finished lines, until its result
// comes.
func TestWriting(t *testing.T) {
	var l Lines
	for i := range 5000 {
		if lines := l.Add(sessionlog.Entry{Kind: sessionlog.Output, ID: "1",
			Text: fmt.Sprintf("line %d\n", i)}); lines != nil {
			t.Fatal(lines)
		}
	}
	if got := l.Writing(); !strings.HasPrefix(got, "line 4988\n") || !strings.HasSuffix(got, "\nline 4999\n") &&
		!strings.HasSuffix(got, "\nline 4999") {
		t.Errorf("got %q", got)
	}
	if len(l.outputs["1"].text) > mostUnfinished {
		t.Errorf("%d bytes are kept", len(l.outputs["1"].text))
	}
	l.Add(sessionlog.Entry{Kind: sessionlog.Part, Text: "I wait"})
	if got := l.Writing(); got != "I wait" {
		t.Errorf("the agent writes, and the view has %q", got)
	}
	l.Add(sessionlog.Entry{Kind: sessionlog.Result, ID: "1", Text: "line 4999", Count: 4999})
	if got := l.Writing(); got != "" {
		t.Errorf("nothing runs, and the view has %q", got)
	}
}

// TestPlanAsItComes shows a plan while it is written, and once when it is complete.
func TestPlanAsItComes(t *testing.T) {
	part := func(text string) sessionlog.Entry { return sessionlog.Entry{Kind: sessionlog.Part, Text: text} }
	whole := sessionlog.Entry{Kind: sessionlog.Text, Text: "I propose:"}
	plan := sessionlog.Entry{Kind: sessionlog.Plan, Text: "1. Read it.\n2. Port it.\n"}
	for _, c := range []struct {
		name                   string
		entries                []sessionlog.Entry
		writing, shown, coming string
	}{
		{"alone", []sessionlog.Entry{part("1. Read it.\n2. Po"), plan}, "1. Read it.\n2. Po",
			"2 ? its plan: 1. Read it.\n0 │ 2. Port it.\n",
			"1 │ 1. Read it.\n0 │ 2. Port it.\n2 ? that is its plan\n"},
		{"in a message", []sessionlog.Entry{part("I propose:\n1. Read"), part(" it."), whole, plan}, "1. Read it.",
			"3 │ I propose:\n4 ? its plan: 1. Read it.\n0 │ 2. Port it.\n",
			"1 │ I propose:\n4 ? its plan: 1. Read it.\n0 │ 2. Port it.\n"},
		{"in a message, line by line", []sessionlog.Entry{part("I propose:\n1. Read it.\n2."), whole, plan},
			"1. Read it.\n2.",
			"2 │ I propose:\n3 ? its plan: 1. Read it.\n0 │ 2. Port it.\n",
			"1 │ I propose:\n0 │ 1. Read it.\n0 │ 2. Port it.\n3 ? that is its plan\n"},
		{"of other words", []sessionlog.Entry{part("Two steps.\nThen"), plan}, "Two steps.\nThen",
			"1 │ Two steps.\n0 │ Then\n2 ? its plan: 1. Read it.\n0 │ 2. Port it.\n",
			"1 │ Two steps.\n0 │ Then\n2 ? its plan: 1. Read it.\n0 │ 2. Port it.\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l Lines
			for _, e := range c.entries[:len(c.entries)-1] {
				l.Add(e)
			}
			if got := l.Writing(); got != c.writing {
				t.Errorf("before the plan is complete, the view has %q", got)
			}
			if got := shown(c.entries...); got != c.shown {
				t.Errorf("the view has\n%s", got)
			}
			var b strings.Builder
			for lines := range All(func(yield func(sessionlog.Entry, error) bool) {
				for i, e := range c.entries {
					if e.At = team.Time(i + 1); !yield(e, nil) {
						return
					}
				}
			}) {
				for _, line := range lines {
					fmt.Fprintf(&b, "%d %s\n", line.At, line.Text)
				}
			}
			if got := b.String(); got != c.coming {
				t.Errorf("line by line it is\n%s", got)
			}
		})
	}
}

// TestLongTextAsItComes shows each line of a text once, and all of them, although the log keeps
// only the beginning of the whole text.
func TestLongTextAsItComes(t *testing.T) {
	for _, kind := range []sessionlog.Kind{sessionlog.Text, sessionlog.Plan} {
		folder := sessionlog.Of(t.TempDir())
		log, err := folder.Open("ann")
		if err != nil {
			t.Fatal(err)
		}
		var whole strings.Builder
		var want []string
		for i := range 1200 {
			line := fmt.Sprintf("line %d of a long answer, with words", i)
			whole.WriteString(line + "\n")
			want = append(want, quoted+line)
			if err := log.Add(sessionlog.Entry{Kind: sessionlog.Part, Text: line + "\n"}); err != nil {
				t.Fatal(err)
			}
		}
		if err := log.Add(sessionlog.Entry{Kind: kind, Text: whole.String()}); err != nil {
			t.Fatal(err)
		}
		log.Close()
		for _, coming := range []bool{true, false} {
			lines := Lines{coming: coming}
			var got []string
			view := folder.View("ann")
			for {
				entries, err := view.Read()
				if err != nil {
					t.Fatal(err)
				}
				if len(entries) == 0 {
					break
				}
				for _, e := range entries {
					for _, line := range lines.Add(e) {
						if line.Text != "? that is its plan" {
							got = append(got, line.Text)
						}
					}
				}
			}
			view.Close()
			if !slices.Equal(got, want) {
				t.Errorf("%s, line by line %v: %d lines are shown, want %d", kind, coming, len(got), len(want))
			}
		}
	}
}

// TestMail shows a message with its sender, without what explains it to a model.
func TestMail(t *testing.T) {
	text := envelope.Batch("demo-1", "bob", []team.Message{
		{Seq: 3, From: team.User, Type: team.TypeMessage, Priority: "urgent", Body: "Stop at once."},
		{Seq: 4, From: "ann", Type: team.TypeMessage, Intent: "question", Body: "1\n2\n3\n4\n5\n6\n7\n8\n<b>\x1b[2J"},
	})
	got := shown(sessionlog.Entry{Kind: sessionlog.Prompt, Text: text},
		sessionlog.Entry{Kind: sessionlog.Prompt, Text: "\n\nDo task 1.\n"},
		sessionlog.Entry{Kind: sessionlog.Result, Text: "made\n\n" + text})
	want := strings.TrimLeft(`
1 · mail from the user (urgent): Stop at once.
1 · mail from ann (question): 1
0 │ 2
0 │ 3
0 │ 4
0 │ 5
0 │ 6
0 │ … 3 more lines
2 · it was given: Do task 1.
3 ✓ … 5 lines before
0 │ 4
0 │ 5
0 │ 6
0 │ 7
0 │ 8
0 │ <b>
`, "\n")
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// TestTurnsThatDidNothing shows the end of a turn once, and not that of a turn that did nothing.
func TestTurnsThatDidNothing(t *testing.T) {
	end := sessionlog.Entry{Kind: sessionlog.TurnEnded}
	got := shown(sessionlog.Entry{Kind: sessionlog.Started}, end, sessionlog.Entry{Kind: sessionlog.Turn,
		Text: "task 1"},
		sessionlog.Entry{Kind: sessionlog.Prompt, Text: "stop"}, end, end,
		sessionlog.Entry{Kind: sessionlog.Prompt, Text: "hello"},
		end, sessionlog.Entry{Kind: sessionlog.TurnEnded, Interrupted: true})
	want := strings.TrimLeft(`
1 · the session started
3 · task 1
4 · it was given: stop
5 · its turn ended
7 · it was given: hello
9 ! its turn was interrupted
`, "\n")
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
