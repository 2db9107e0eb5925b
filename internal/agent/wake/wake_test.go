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

// mailbox is a team that has only news.
type mailbox struct {
	mu      sync.Mutex
	seq     int64
	news    News
	idle    bool
	changed chan struct{}
}

func (b *mailbox) set(idle bool, seqs ...int64) { b.setNews(idle, News{Seqs: seqs}) }

func (b *mailbox) setNews(idle bool, news News) {
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

// keeping is a call of Keep on a mailbox, in a bubble of [synctest].
type keeping struct {
	mailbox
	woken   int
	trouble error // the error of waking
	said    []string
}

func keep(t *testing.T) *keeping {
	k := &keeping{mailbox: mailbox{changed: make(chan struct{})}}
	ctx, cancel := context.WithCancel(t.Context())
	var kept sync.WaitGroup
	kept.Go(func() {
		Keep(ctx, Options{
			News: func() (n News) { k.locked(func() { n = k.news }); return n },
			Seq:  func() (n int64) { k.locked(func() { n = k.seq }); return n }, Wait: k.wait,
			Idle: func() (idle bool) { k.locked(func() { idle = k.idle }); return idle },
			Wake: func(context.Context) (err error) { k.locked(func() { k.woken++; err = k.trouble }); return err },
			Log:  func(line string) { k.locked(func() { k.said = append(k.said, line) }) }})
	})
	t.Cleanup(func() {
		before := len(k.said)
		cancel()
		kept.Wait()
		if len(k.said) != before {
			t.Errorf("its end is told: %q", k.said)
		}
	})
	return k
}

func (k *keeping) locked(see func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	see()
}

// fails makes waking fail from now on; nil ends that.
func (k *keeping) fails(trouble error) { k.locked(func() { k.trouble = trouble }) }

// after lets time pass, and checks how often it was tried to wake the session since the beginning.
func (k *keeping) after(t *testing.T, long time.Duration, woken int) {
	t.Helper()
	time.Sleep(long)
	synctest.Wait()
	k.locked(func() {
		if k.woken != woken {
			t.Fatalf("it was woken %d times, not %d; said %q", k.woken, woken, k.said)
		}
	})
}

// TestKeep checks that a session is woken once for each message, and only when its turn has ended.
func TestKeep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keep(t)
		for i, step := range []struct {
			news []int64
			idle bool
			want int
		}{
			{nil, true, 0},
			{[]int64{5}, false, 0}, // at work: its tools bring it
			{[]int64{5}, true, 1},
			{[]int64{5}, true, 1}, // it does not look
			{[]int64{5}, false, 1},
			{nil, true, 1},
			{[]int64{7}, true, 2},
			{[]int64{7, 9}, false, 2},
			{nil, false, 2}, // its tools brought it
			{nil, true, 2},
			{[]int64{12}, true, 3},
			{[]int64{11, 12}, true, 4}, // #11 was held until now
			{[]int64{11, 12}, true, 4},
			{[]int64{11}, true, 4},
		} {
			k.set(step.idle, step.news...)
			t.Logf("step %d", i)
			k.after(t, 5*time.Second, step.want)
		}
		k.setNews(true, News{Seqs: []int64{11}, Resent: 1}) // sent again, it is the same message
		k.after(t, time.Hour, 5)
		k.setNews(true, News{Resent: 2})
		k.after(t, time.Hour, 5)
	})
}

// TestKeepTrying checks that a failed attempt is repeated, even if the team does not change, until
// one works or [tries] have failed.
func TestKeepTrying(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keep(t)
		k.fails(errors.New("the database is locked"))
		k.set(true, 11)
		k.after(t, 3*time.Second, 2) // the second try is after one
		k.fails(nil)
		k.after(t, time.Hour, 3)
		if len(k.said) != 2 || !strings.Contains(k.said[0], "the database is locked") {
			t.Errorf("said %q", k.said)
		}
		k.fails(errors.New("no such session"))
		k.set(true, 12)
		k.after(t, time.Hour, 3+tries)
		if len(k.said) != 2+tries {
			t.Errorf("said %q", k.said)
		}
		k.fails(nil) // what failed for good is left, until there is other news
		k.set(true, 12)
		k.after(t, time.Hour, 3+tries)
		k.set(true, 12, 13)
		k.after(t, time.Second, 4+tries)
	})
}

// TestKeepTryingForOtherNews checks that news that comes while waking fails has all of its
// attempts, the first one at once.
func TestKeepTryingForOtherNews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := keep(t)
		k.fails(errors.New("the database is locked"))
		k.set(true, 11)
		k.after(t, 30*time.Second, tries-1) // and the last try after 64 s more
		k.set(true, 11, 12)
		k.after(t, 0, tries)
		k.after(t, time.Hour, 2*tries-1)
		k.set(true, 11, 12, 13)
		k.after(t, 30*time.Second, 3*tries-2)
		k.set(true, 12, 13) // less than before is no other news
		k.after(t, 0, 3*tries-2)
		k.fails(nil)
		k.after(t, time.Hour, 3*tries-1)
		// A success resets the count: the next news has all of its attempts.
		k.fails(errors.New("the database is locked"))
		k.set(true, 12, 13, 14)
		k.after(t, time.Hour, 4*tries-1)
	})
}

// TestIdle reads the files of Codex: the last turn counts, and a turn that the user interrupted has
// not ended.
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
				t.Error("an unknown session is idle")
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
		if got := s.hooked(); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

// TestHooksOff checks that a setting that turns all hooks off applies to the hooks of the other
// files, whichever file has it.
func TestHooksOff(t *testing.T) {
	s := claudeSession(t)
	files := append(own(s), s.Managed...)
	for _, hook := range own(s) {
		put(t, hook, Hook)
		if !s.hooked() {
			t.Errorf("the hook in %s does not count", hook)
		}
		for _, off := range files {
			for _, text := range []string{`{"disableAllHooks": true}`, `{"disableAllHooks": true, "hooks": 7}`} {
				if off == hook {
					continue
				}
				put(t, off, text)
				if s.hooked() {
					t.Errorf("%s in %s does not hold for %s", text, off, hook)
				}
				os.Remove(off)
			}
		}
		os.Remove(hook)
	}
}

// TestManagedHooks checks that the administrator of the machine can allow only managed hooks, and
// that no other file turns those off.
func TestManagedHooks(t *testing.T) {
	with := func(setting string) string { return strings.Replace(Hook, `{"hooks"`, `{`+setting+`, "hooks"`, 1) }
	only := `"allowManagedHooksOnly": true`
	for _, c := range []struct {
		own, managed, dropped string // "" for no file
		want                  bool
	}{
		{Hook, "{}", "", true},
		{Hook, "{" + only + "}", "", false},
		{Hook, "", "{" + only + "}", false},
		{Hook, `{"allowManagedHooksOnly": false}`, "{}", true},
		{with(only), "", "", true}, // which counts in the files of the administrator only
		{"", Hook, "", true},
		{"", with(only), "", true},
		{"", "{" + only + "}", Hook, true},
		{"", with(`"disableAllHooks": true`), "", false},
		{Hook, `{"disableAllHooks": true}`, "", false},
		{`{"disableAllHooks": true}`, Hook, "", true},
		{`{"disableAllHooks": true}`, with(only), "", true},
		{Hook, `{"strictPluginOnlyCustomization": true}`, "", false},
		{Hook, `{"strictPluginOnlyCustomization": ["skills", "hooks"]}`, "", false},
		{Hook, `{"strictPluginOnlyCustomization": ["skills"]}`, "", true},
		{Hook, `{"strictPluginOnlyCustomization": false}`, "", true},
		{"", with(`"strictPluginOnlyCustomization": true`), "", true},
		{Hook, `{"allowManagedHooks`, "", false}, // its content is unknown
		{`{"disableAllHooks`, Hook, "", true},
	} {
		s := claudeSession(t)
		for file, text := range map[string]string{own(s)[0]: c.own, s.Managed[0]: c.managed, s.Managed[1]: c.dropped} {
			if text != "" {
				put(t, file, text)
			}
		}
		if got := s.hooked(); got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
}

// TestPrints checks that a session that prints an answer ends with it.
func TestPrints(t *testing.T) {
	for line, want := range map[string]bool{"claude": false, "claude -p x": true, "node claude --print": true,
		"claude --permission-mode plan": false, "": false} {
		if got := prints(strings.Fields(line)); got != want {
			t.Errorf("%q: %t", line, got)
		}
	}
}

// own returns the settings files of a user of Claude Code.
func own(s Session) []string {
	return []string{filepath.Join(s.Claude, "settings.json"), filepath.Join(s.Dir, ".claude", "settings.json"),
		filepath.Join(s.Dir, ".claude", "settings.local.json")}
}

func claudeSession(t *testing.T) Session {
	managed := t.TempDir()
	return Session{Claude: t.TempDir(), Dir: t.TempDir(), Team: "demo", Member: "ann",
		Managed: []string{filepath.Join(managed, "managed-settings.json"), filepath.Join(managed, "managed-settings.d",
			"10-hooks.json")}}
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
