package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"cadre/internal/layout"
	"cadre/internal/observe/store"
)

func recording(t *testing.T, name string) [][]byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "internal", "observe", "testdata", "claude", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.SplitAfter(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
}

func (w *world) append(name string, data []byte) {
	w.t.Helper()
	f, err := os.OpenFile(filepath.Join(w.dir, name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := f.Write(data); err != nil {
		w.t.Fatal(err)
	}
	f.Close()
}

// observedTeam returns the team in the output of cadre observe --state. Its agents are its members.
func observedTeam[T any](t *testing.T, state string) (found T) {
	t.Helper()
	var named struct {
		Team struct {
			Members []struct{ Name string }
		}
		Agents []string
	}
	var session struct{ Team *T }
	if err := errors.Join(json.Unmarshal([]byte(state), &named), json.Unmarshal([]byte(state), &session)); err != nil ||
		session.Team == nil {
		t.Fatalf("not the state of a team: %v: %s", err, state)
	}
	for i, m := range named.Team.Members {
		if len(named.Agents) != len(named.Team.Members) || named.Agents[i] != m.Name {
			t.Errorf("the agents of %s are %v", state, named.Agents)
		}
	}
	return *session.Team
}

// events returns what happened in a team, without times and ids.
func (w *world) events(name string) (all []string) {
	w.t.Helper()
	for _, r := range read[[]map[string]any](w, "log", name) {
		out, err := json.Marshal(r["events"])
		if err != nil {
			w.t.Fatal(err)
		}
		all = append(all, string(out))
	}
	return all
}

// TestObserverGoesOnAfterKill kills an observer at any moment of a stream that grows in pieces. It
// continues where it stopped: nothing is missing, and nothing is duplicated.
func TestObserverGoesOnAfterKill(t *testing.T) {
	t.Parallel()
	sessions := filepath.Join("..", "internal", "agent")
	for _, c := range []struct{ name, file, agent string }{
		{"a team of Claude Code", filepath.Join("..", "internal", "observe", "testdata", "claude", "2.1.47",
			"transcript-lead.jsonl"), ""},
		{"a session of Codex", filepath.Join(sessions, "codex", "testdata", "codex-0.169.0", "turn.jsonl"), "codex"},
		{"a session of Gemini", filepath.Join(sessions, "acp", "testdata", "gemini.jsonl"), "gemini"},
		{"a session of OpenCode", filepath.Join(sessions, "acp", "testdata", "opencode.jsonl"), "opencode"},
		{"what Codex prints", filepath.Join(sessions, "headless", "testdata", "codex-0.169.0", "turn.jsonl"), "codex"},
		{"what Gemini prints", filepath.Join(sessions, "headless", "testdata", "gemini-0.61.0",
			"turn.jsonl"), "gemini"},
		{"what OpenCode prints", filepath.Join(sessions, "headless", "testdata", "opencode-1.18.33",
			"turn.jsonl"), "opencode"},
	} {
		t.Run(c.name, func(t *testing.T) {
			data, err := os.ReadFile(c.file)
			if err != nil {
				t.Fatal(err)
			}
			goesOnAfterKill(newWorld(t), data, "--agent", c.agent)
		})
	}
}

func goesOnAfterKill(w *world, data []byte, how ...string) {
	w.t.Helper()
	data = bytes.TrimSuffix(data, []byte("\n"))
	observe := func(args ...string) []string { return append(append([]string{"observe"}, how...), args...) }
	w.append("whole.jsonl", data)
	w.must(observe("whole.jsonl", "--as-team", "whole")...)
	want := w.events("whole")
	if len(want) < 10 {
		w.t.Fatalf("only %d records", len(want))
	}
	for i := range want {
		want[i] = strings.ReplaceAll(want[i], `"whole`, `"fx`) // its name, and the id that is made of it
	}
	kills := 0
	for rest := data; len(rest) > 0; {
		p := w.start(observe("grows.jsonl", "--follow", "--as-team", "fx")...)
		for range 1 + rand.IntN(4) {
			n := min(len(rest), 1+rand.IntN(len(data)/12))
			w.append("grows.jsonl", rest[:n])
			rest = rest[n:]
		}
		if kills++; kills%3 != 0 { // otherwise it is killed while it starts
			p.awaitOutput(func(said string) bool { return said != "" || len(rest) == 0 || p.over() })
		}
		p.kill()
	}
	w.append("grows.jsonl", []byte("\n"))
	w.must(observe("grows.jsonl", "--as-team", "fx")...)
	if got := w.events("fx"); !slices.Equal(got, want) {
		w.t.Errorf("after %d kills:\n%s\nwithout kills:\n%s", kills, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	w.must("fsck", "fx")
	w.t.Logf("%d kills, %d records", kills, len(want))
}

// awaitOutput waits for a while until enough accepts the output of the process. It does not fail,
// because not every process prints something.
func (p *process) awaitOutput(enough func(said string) bool) {
	p.t.Helper()
	for deadline := time.Now().Add(300 * time.Millisecond); !enough(p.said()) && time.Now().Before(deadline); {
		<-time.After(2 * time.Millisecond)
	}
}

// awaits waits until the process has printed the text.
func (p *process) awaits(text string) {
	p.t.Helper()
	for deadline := time.Now().Add(patience); !strings.Contains(p.said(), text); {
		if time.Now().After(deadline) {
			p.t.Fatalf("the output lacks %q:\n%s", text, p.said())
		}
		<-time.After(2 * time.Millisecond)
	}
}

// TestOneObserver checks that a second observer of the same name is refused while one runs, and
// that no command can remove what the first keeps. An interrupt ends it and loses nothing.
func TestOneObserver(t *testing.T) {
	w := newWorld(t)
	w.append("stream.jsonl", bytes.Join(recording(t, "2.1.47/stream.jsonl")[:120], nil))
	p := w.start("observe", "stream.jsonl", "later.jsonl", "--follow", "--as-team", "fx")
	p.awaits("carol took task 3")
	for _, args := range [][]string{{"observe", "stream.jsonl", "--as-team", "fx"}, {"cleanup", "fx", "--yes"},
		{"cleanup", "fx", "--force"}} {
		if r := w.cadre(args...); r.code != 1 || !strings.Contains(r.err, "observe") {
			t.Errorf("%v: exit status %d, %s", args, r.code, r.err)
		}
	}
	if s := read[struct{ Watched bool }](w, "status", "fx"); !s.Watched {
		t.Error("the list does not show that the team is observed")
	}
	if out := w.must("status", "fx"); !strings.Contains(out, "fx is observed") {
		t.Errorf("status printed %s, want it to say that fx is observed", out)
	}
	p.Process.Signal(os.Interrupt)
	if code := p.wait(); code != 0 {
		t.Errorf("after the interrupt it ends with %d:\n%s", code, p.said())
	}
	if store.Observes(layout.Home{Root: w.home}.Observation("fx")) {
		t.Error("the observer has ended, but its lock on the team remains")
	}
	w.must("cleanup", "fx", "--yes")
}

// TestObserverIsLive checks that an event is in the output within milliseconds after its line is
// written. If the reader leaves, the observer ends without an error message.
func TestObserverIsLive(t *testing.T) {
	const polled = 25 * time.Millisecond // half of the events would take longer if the file were polled, at best
	w := newWorld(t)
	for _, keep := range [][]string{nil, {"--as-team", "fx"}} {
		name := fmt.Sprintf("live%d.jsonl", len(keep))
		c := exec.Command(cadre, append([]string{"observe", name, "--follow", "--json"}, keep...)...)
		var errs bytes.Buffer
		c.Dir, c.Env, c.Stderr = w.dir, w.env, &errs
		out, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Process.Kill() })
		said := make(chan string)
		go func() {
			defer close(said)
			buffer := make([]byte, 1<<16)
			for {
				n, err := out.Read(buffer)
				if err != nil {
					return
				}
				said <- string(buffer[:n])
			}
		}()
		next := func() string {
			select {
			case s := <-said:
				return s
			case <-time.After(patience):
				t.Fatalf("the observer prints nothing: %s", errs.String())
			}
			panic("unreachable")
		}
		call := func(id, tool, input, result string) {
			w.append(name,
				fmt.Appendf(nil,
					`{"type":"assistant","session_id":"s","message":{"id":"m%s","content":[{"type":"tool_use","id":"%s","name":"%s","input":%s}]}}`+"\n", id, id, tool, input))
			w.append(name,
				fmt.Appendf(nil,
					`{"type":"user","session_id":"s","message":{"content":[{"type":"tool_result","tool_use_id":"%s","content":"ok"}]},"tool_use_result":%s}`+"\n", id, result))
		}
		call("t0", "TeamCreate", `{"team_name":"fx"}`, `{"team_name":"fx"}`)
		next()
		var took []time.Duration
		for i := range 100 {
			started := time.Now()
			id := fmt.Sprint(i + 1)
			call("t"+id, "TaskCreate", `{"subject":"S","description":"D"}`, `{"task":{"id":"`+id+`","subject":"S"}}`)
			if s := next(); !strings.Contains(s, `"team:task:created"`) {
				t.Fatalf("the observer prints %s", s)
			}
			took = append(took, time.Since(started))
		}
		slices.Sort(took)
		t.Logf("%v: from before the write to the reader: median %v, 95 of 100 %v, longest %v", keep, took[50],
			took[94], took[99])
		if took[50] > polled {
			t.Errorf("half of the events take longer than %v", took[50])
		}
		out.Close()
		ended := make(chan error, 1)
		go func() { ended <- c.Wait() }()
		for i := 0; ; i++ {
			call(fmt.Sprint("u", i), "TaskCreate", `{"subject":"S","description":"D"}`,
				fmt.Sprintf(`{"task":{"id":"%d","subject":"S"}}`, 101+i))
			select {
			case err := <-ended:
				if err != nil || errs.Len() > 0 {
					t.Errorf("without a reader it ends with %v, and prints %q", err, errs.String())
				}
			case <-time.After(20 * time.Millisecond):
				if i < 500 {
					continue
				}
				t.Error("cadre observe did not end after its reader had closed the pipe")
			}
			break
		}
	}
}

// TestObserverOfHugeLines checks that lines of over 10 MB and binary data are counted and passed
// on, and that the lines around them are shown.
func TestObserverOfHugeLines(t *testing.T) {
	w := newWorld(t)
	lines := recording(t, "2.1.47/stream.jsonl")[:120]
	var in bytes.Buffer
	for i, line := range lines {
		in.Write(line)
		if i%40 == 20 {
			in.WriteString(`{"type":"user","text":"` + strings.Repeat("x", 11<<20) + `"}` + "\n")
			in.WriteString(`{"type":"user","text":"TaskCreate ` + "\xff\xfe\x80" + `"}` + "\n")
		}
	}
	c := exec.Command(cadre, "observe", "-", "--pass")
	var out, errs bytes.Buffer
	c.Dir, c.Env, c.Stdin, c.Stdout, c.Stderr = w.dir, w.env, &in, &out, &errs
	sent := bytes.Clone(in.Bytes())
	if err := c.Run(); err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	if !bytes.Equal(out.Bytes(), sent) {
		t.Errorf("%d bytes came, but %d others were passed on", len(sent), out.Len())
	}
	if s := errs.String(); !strings.Contains(s, "of 126 lines: 3 too long") ||
		!strings.Contains(s, "carol took task 3") {
		t.Errorf("it says:\n%s", s)
	}
	if usage, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
		t.Logf("it needed %d MB", usage.Maxrss>>10)
	}
}

// TestRelayThatCannotBe checks that a relay that cannot start says why, and whether a retry can
// help.
func TestRelayThatCannotBe(t *testing.T) {
	w := newWorld(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	w.refused(w.cadre("observe", "--sdk-url", taken.Addr().String()), 1, "address already in use")
	w.refused(w.cadre("observe", "--sdk-url", "somewhere"), 2, `"somewhere" is not an address to listen on`)
	w.refused(w.cadre("observe", "--sdk-url", ":0", "--exec", "no-such-program"), 2, "ended before it connected: "+
		"exit status 127", "no-such-program")
	w.refused(w.cadre("observe", "--sdk-url", ":0", "--exec", "echo 'Error: --sdk-url rejected: not ours' >&2"), 2,
		"--sdk-url rejected: not ours", "2.1.47 accepts any")
}

// TestObserverOnATerminal checks that on a terminal the team is shown live on the alternate screen,
// and is printed to the terminal at the end.
func TestObserverOnATerminal(t *testing.T) {
	w := newWorld(t)
	lines := recording(t, "2.1.47/stream.jsonl")
	w.append("stream.jsonl", bytes.Join(lines[:60], nil))
	p := w.terminal(cadre, "observe", "stream.jsonl")
	p.shows("0 of 4 tasks done")
	p.shows("team-lead → alice: Hello alice from lead")
	p.shows("blocked by 1")
	w.append("stream.jsonl", bytes.Join(lines[60:120], nil))
	p.shows("2 of 4 tasks done")
	p.shows("3 Task C")
	w.append("stream.jsonl", bytes.Join(lines[120:], nil))
	p.shows("the team is gone")
	p.do("send-keys", "C-c")
	if code := p.ended(); code != 0 {
		t.Errorf("after the interrupt it ends with %d", code)
	}
	if screen := p.screen(); !strings.Contains(screen, "the team is gone") || strings.Count(screen, "MEMBER") != 1 {
		t.Errorf("it leaves\n%s", screen)
	}
}

// TestObserverQuits checks that q ends the screen, for lines from a file or from standard input,
// and restores the terminal. Other keys do nothing.
func TestObserverQuits(t *testing.T) {
	w := newWorld(t)
	lines := bytes.Join(recording(t, "2.1.47/stream.jsonl")[:120], nil)
	w.append("stream.jsonl", lines)
	pipe := filepath.Join(w.dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	stream, err := os.OpenFile(pipe, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	go stream.Write(lines)
	for _, from := range []string{"stream.jsonl", "- <pipe"} {
		p := w.terminal("sh", "-c", cadre+" observe "+from+"; echo over $?; stty -a")
		p.shows("2 of 4 tasks done")
		p.shows("q: quit")
		p.do("send-keys", "x", "Up")
		p.do("send-keys", "q")
		p.shows("over 0")
		if code := p.ended(); code != 0 {
			t.Errorf("it ends with %d", code)
		}
		screen := p.screen()
		for _, want := range []string{"2 of 4 tasks done", " icanon", " echo "} {
			if !strings.Contains(screen, want) {
				t.Errorf("after observing %s, %q is not on the screen:\n%s", from, want, screen)
			}
		}
		if strings.Contains(screen, "q: quit") {
			t.Errorf("it leaves\n%s", screen)
		}
	}
}

// TestObserverOnANarrowTerminal checks that a line as wide as the terminal is shown to its last
// column.
func TestObserverOnANarrowTerminal(t *testing.T) {
	w := newWorld(t)
	w.append("lead.jsonl", bytes.Join(recording(t, "2.1.329/tmux/transcript-lead.jsonl"), nil))
	p := w.terminal(cadre, "observe", "lead.jsonl")
	p.do("resize-window", "-x", "80", "-y", "24")
	whole := func() bool {
		full := 0
		for line := range strings.Lines(p.screen()) {
			if line = strings.TrimRight(line, "\n"); utf8.RuneCountInString(line) == 80 &&
				(strings.HasSuffix(line, "shut down as asked") || strings.HasSuffix(line, "…")) {
				full++
			}
		}
		return full == 5 // four teammates, and a warning that is cut
	}
	p.wait("lines lack their last column", whole)
	p.do("send-keys", "C-c")
	if code := p.ended(); code != 0 {
		t.Errorf("after the interrupt it ends with %d", code)
	}
	if !whole() {
		t.Errorf("it leaves\n%s", p.screen())
	}
}
