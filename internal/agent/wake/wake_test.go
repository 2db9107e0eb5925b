package wake

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// mailbox is a team of which only the news counts.
type mailbox struct {
	mu      sync.Mutex
	seq     int64
	news    int64
	idle    bool
	changed chan struct{}
}

func (b *mailbox) set(news int64, idle bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.seq++
	b.news, b.idle = news, idle
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *mailbox) wait(ctx context.Context, after int64) error {
	for {
		b.mu.Lock()
		seq, changed := b.seq, b.changed
		b.mu.Unlock()
		if seq > after {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-changed:
		}
	}
}

// TestKeep: a session is woken once for each news, and only when its turn has ended.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &mailbox{changed: make(chan struct{})}
		locked := func(see func()) { b.mu.Lock(); defer b.mu.Unlock(); see() }
		woken := 0
		var said []string
		var trouble error
		ctx, cancel := context.WithCancel(t.Context())
		var kept sync.WaitGroup
		kept.Go(func() {
			Keep(ctx, Options{
				News: func() (n int64) { locked(func() { n = b.news }); return n },
				Seq:  func() (n int64) { locked(func() { n = b.seq }); return n }, Wait: b.wait,
				Idle: func() (idle bool) { locked(func() { idle = b.idle }); return idle },
				Wake: func(context.Context) (err error) { locked(func() { woken++; err = trouble }); return err },
				Log:  func(line string) { locked(func() { said = append(said, line) }) }})
		})
		for i, step := range []struct {
			news int64
			idle bool
			want int
		}{
			{0, true, 0},
			{5, false, 0}, // at work: its tools bring it
			{5, true, 1},
			{5, true, 1}, // it does not look
			{5, false, 1},
			{0, true, 1},
			{7, true, 2},
			{9, false, 2},
			{0, false, 2}, // its tools brought it
			{0, true, 2},
		} {
			b.set(step.news, step.idle)
			time.Sleep(5 * time.Second)
			locked(func() {
				if woken != step.want {
					t.Fatalf("step %d: it was woken %d times, not %d", i, woken, step.want)
				}
			})
		}
		// What fails is tried again, also without any change in the team, until it works.
		locked(func() { trouble = errors.New("the database is locked") })
		b.set(11, true)
		time.Sleep(3 * time.Second) // of which the second try is after one
		locked(func() {
			if woken != 4 || len(said) != 2 || !strings.Contains(said[0], "the database is locked") {
				t.Errorf("woken %d times, said %q", woken, said)
			}
			trouble = nil
		})
		time.Sleep(time.Hour)
		locked(func() {
			if woken != 5 || len(said) != 2 {
				t.Errorf("woken %d times, said %q", woken, said)
			}
			trouble = errors.New("no such session")
		})
		// What fails for good is left, until there is other news.
		b.set(12, true)
		time.Sleep(time.Hour)
		locked(func() {
			if woken != 5+tries || len(said) != 2+tries {
				t.Errorf("woken %d times, said %q", woken, said)
			}
			trouble = nil
		})
		b.set(12, true)
		time.Sleep(time.Hour)
		locked(func() {
			if woken != 5+tries {
				t.Errorf("woken %d times", woken)
			}
		})
		b.set(13, true)
		time.Sleep(time.Second)
		locked(func() {
			if woken != 6+tries {
				t.Errorf("woken %d times", woken)
			}
		})
		before := len(said)
		cancel()
		kept.Wait()
		if len(said) != before {
			t.Errorf("its end is told: %q", said)
		}
	})
}

// TestIdle reads the files of Codex: the last turn counts, and one that the user broke off has not
// ended.
func TestIdle(t *testing.T) {
	const started, complete, aborted = `{"type":"event_msg","payload":{"type":"task_started"}}`,
		`{"type":"event_msg","payload":{"type":"task_complete","last_agent_message":"x"}}`,
		`{"type":"event_msg","payload":{"type":"turn_aborted"}}`
	said := `{"type":"response_item","payload":{"type":"message","text":"task_complete"}}`
	const id = "01a2046a-3f30-74a1-badb-4c55c0e6412e"
	for name, c := range map[string]struct {
		lines []string
		want  bool
	}{
		"nothing":                  {nil, false},
		"at work":                  {[]string{started, said}, false},
		"done":                     {[]string{started, said, complete}, true},
		"done, and more":           {[]string{started, complete, said, said}, true},
		"at work again":            {[]string{started, complete, started, said}, false},
		"broken off":               {[]string{started, said, aborted}, false},
		"a line that is not whole": {[]string{started, complete, `{"type":"event_msg","payl`}, true},
		"much since": {[]string{complete, `{"type":"response_item","payload":{"text":"` + strings.Repeat(
			"x", maxTail) + `"}}`}, false},
	} {
		t.Run(name, func(t *testing.T) {
			codex := &Codex{Home: t.TempDir()}
			if codex.Idle() {
				t.Error("a session that nobody knows is idle")
			}
			dir := filepath.Join(codex.Home, "sessions", "2026", "11", "22")
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, "rollout-2026-11-22T18-01-59-"+id+".jsonl"),
				[]byte(strings.Join(c.lines, "\n")+"\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			for _, bad := range []any{nil, 7, "", "../../x", "*"} {
				codex.Called(map[string]any{"sessionId": bad})
			}
			codex.Called(map[string]any{"sessionId": id, "threadId": "another"})
			codex.Called(nil)
			if got := codex.Idle(); got != c.want {
				t.Errorf("idle is %t", got)
			}
		})
	}
}

// TestHooked reads the settings of Claude Code: only a hook that can wake the session counts.
func TestHooked(t *testing.T) {
	with := func(command string) string { return strings.Replace(Hook, "cadre wake", command, 1) }
	for text, want := range map[string]bool{
		Hook:                                 true,
		with("/opt/bin/cadre wake --as ann"): true,
		with("cadre wake --team demo"):       true,
		with("'cadre' wake --team='demo' --as=ann"):                      true,
		with("cadre wake --team other"):                                  false,
		with("cadre wake --team=other"):                                  false,
		with("cadre wake --as lead"):                                     false,
		with("cadre wake --team demo --as x"):                            false,
		with("cadre wake --team"):                                        false,
		with("cadre wake --team=$TEAM"):                                  false,
		with("cadre wake --json"):                                        false,
		with("cadre wake || true"):                                       false,
		with("cadre waken"):                                              false,
		with("notcadre wake"):                                            false,
		with("cadre"):                                                    false,
		strings.Replace(Hook, `"asyncRewake": true`, `"async": true`, 1): false,
		strings.Replace(Hook, `{"hooks"`, `{"disableAllHooks": true, "hooks"`, 1): false,
		strings.Replace(Hook, "Stop", "SubagentStop", 1):                          false,
		`{"hooks": 7}`: false, `{}`: false, "": false,
	} {
		s := claudeSession(t)
		put(t, filepath.Join(s.Dir, ".claude", "settings.local.json"), text)
		if got := s.Stays(t.Context()); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// TestHooksOff: what turns all hooks off does so for those of the other files, in whichever file it
// is.
func TestHooksOff(t *testing.T) {
	s := claudeSession(t)
	files := []string{filepath.Join(s.Claude, "settings.json"), filepath.Join(s.Dir, ".claude", "settings.json"),
		filepath.Join(s.Dir, ".claude", "settings.local.json")}
	for _, hook := range files {
		put(t, hook, Hook)
		if !s.Stays(t.Context()) {
			t.Errorf("the hook in %s does not count", hook)
		}
		for _, off := range files {
			for _, text := range []string{`{"disableAllHooks": true}`, `{"disableAllHooks": true, "hooks": 7}`} {
				if off == hook {
					continue
				}
				put(t, off, text)
				if s.Stays(t.Context()) {
					t.Errorf("%s in %s does not hold for %s", text, off, hook)
				}
				os.Remove(off)
			}
		}
		os.Remove(hook)
	}
}

func claudeSession(t *testing.T) Session {
	return Session{Claude: t.TempDir(), Dir: t.TempDir(), Team: "demo", Member: "ann"}
}

func put(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestOf(t *testing.T) {
	for name, want := range map[string]string{"claude-code": "claude", "codex-mcp-client": "codex",
		"gemini-cli-mcp-client": "gemini", "opencode": "opencode", "": "", "other": ""} {
		if c := Of(name); c.Agent != want || c.Longest <= 0 || c.Longest > 10*time.Minute {
			t.Errorf("%q is %+v", name, c)
		}
	}
}
