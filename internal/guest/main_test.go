package guest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/agent"
	"cadre/internal/claude/projection"
	"cadre/internal/claude/teamfiles"
	"cadre/internal/render/sanitize"
	"cadre/internal/sys/proc"
)

// asMember makes the test binary the member ann, with a slot and a watchdog. Its value is the
// folder of Claude Code and, optionally, a word for its behaviour. "deaf" gets its mail and never
// has it in its context, "busy" works on it for ever, and "joined" does the same after joining by
// hand.
const asMember = "CADRE_CLAUDETEAM_TEST"

// asWatchdog makes the test binary what a watchdog runs, with the same value.
const asWatchdog = "CADRE_CLAUDETEAM_TEST_WATCHDOG"

func TestMain(m *testing.M) {
	var err error
	if value := os.Getenv(asMember); value != "" {
		claude, what, _ := strings.Cut(value, "|")
		err = beMember(claude, what)
	} else if value := os.Getenv(asWatchdog); value != "" {
		claude, _, _ := strings.Cut(value, "|")
		err = ReportKilled(context.Background(), claude, slots(claude), "demo", "ann", "start it")
		// This tells the test that nothing is written any more.
		if f, err := os.CreateTemp(filepath.Dir(claude), "buried-"); err == nil {
			f.Close()
		}
	} else {
		goleak.VerifyTestMain(m)
		return
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func slots(claude string) string { return claude + "-slots" }

func beMember(claude, what string) error {
	ctx := context.Background()
	t, err := teamfiles.Open(claude, "demo")
	if err != nil {
		return err
	}
	slot, err := TakeSlot(ctx, slots(claude), t, "ann", "claude")
	if err != nil {
		return err
	}
	if err := slot.Procs.RunOnDeath("/usr/bin/env", asWatchdog+"="+claude+"|"+what, os.Args[0]); err != nil {
		return err
	}
	if what == "joined" {
		if err := slot.Join(ctx, teamfiles.Member{AgentID: "ann@demo", Name: "ann", AgentType: "general-purpose",
			JoinedAt: time.Now().UnixMilli(), Subscriptions: []string{}}); err != nil {
			return err
		}
		fmt.Println("joined")
	}
	held := actor(func(*act, agent.Prompt) { fmt.Println("given"); select {} })
	held.deaf = what == "deaf"
	return Work(ctx, Options{Team: t, Name: "ann", Agent: held, AgentName: "claude", Slot: slot,
		Spec: agent.Spec{Dir: claude, Procs: slot.Procs, Scratch: slot.Scratch()}})
}

const patience = 20 * time.Second

// stage is a team of Claude Code's; the test is its lead.
type stage struct {
	t      *testing.T
	team   *teamfiles.Team
	claude string
	ctx    context.Context
	procs  *proc.Register
	heard  []teamfiles.Entry // entries that the lead has read so far
	killed int
}

func newStage(t *testing.T, members ...string) *stage {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	procs, err := proc.Open(filepath.Join(t.TempDir(), "host"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { procs.Close(context.Background()) })
	s := &stage{t: t, claude: filepath.Join(t.TempDir(), "claude"), ctx: ctx, procs: procs}
	c := projection.Config{Name: "demo", CreatedAt: 1, LeadAgentID: "team-lead@demo", LeadSessionID: "s",
		Members: []teamfiles.Member{{AgentID: "team-lead@demo", Name: teamfiles.Lead, AgentType: teamfiles.Lead,
			Subscriptions: []string{}}}}
	prompt := "You look after the port."
	for _, name := range members {
		c.Members = append(c.Members, teamfiles.Member{AgentID: name + "@demo", Name: name,
			AgentType: "general-purpose", Prompt: &prompt, Subscriptions: []string{}})
	}
	if s.team, err = teamfiles.Found(s.claude, c); err != nil {
		t.Fatal(err)
	}
	return s
}

// victim starts ann in a process of its own, and waits for its first word.
func (s *stage) victim(what, word string) *exec.Cmd {
	s.t.Helper()
	c := exec.CommandContext(s.ctx, os.Args[0])
	c.Env = append(os.Environ(), asMember+"="+s.claude+"|"+what)
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		s.t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != word {
	}
	if lines.Text() != word {
		s.t.Fatalf("the victim does not print %q", word)
	}
	return c
}

// kill kills a victim. It may have died with a lock, which holds for a minute. The end of the test
// waits for its watchdog.
func (s *stage) kill(victim *exec.Cmd) {
	victim.Process.Kill()
	victim.Wait()
	s.killed++
	killed := s.killed
	s.t.Cleanup(func() {
		for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
			if buried, _ := filepath.Glob(filepath.Join(filepath.Dir(s.claude), "buried-*")); len(buried) >= killed {
				return
			}
			if time.Now().After(deadline) {
				s.t.Error("the watchdog of the killed member does not end")
				return
			}
		}
	})
	for _, pattern := range []string{"*/demo/*.lock", "*/demo/*/*.lock"} {
		locks, _ := filepath.Glob(filepath.Join(s.claude, pattern))
		for _, lock := range locks {
			old := time.Now().Add(-2 * time.Minute)
			os.Chtimes(lock, old, old)
		}
	}
}

// seen is the output of a pane.
type seen struct {
	mu   sync.Mutex
	text strings.Builder
}

func (s *seen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *seen) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.TrimSuffix(s.text.String(), "\n")
}

// work runs ann; over receives the result of Work.
func (s *stage) work(a agent.Agent, change func(*Options)) (over chan error, screen func() string) {
	s.t.Helper()
	var shown seen
	o := Options{Team: s.team, Name: "ann", Agent: a, AgentName: "claude", Color: "blue", Pane: "%7",
		Spec: agent.Spec{Dir: s.t.TempDir(), Scratch: filepath.Join(s.t.TempDir(), "scratch"), Procs: s.procs,
			Access: agent.Access{Mode: "default"}},
		Show: sanitize.NewWriter(&shown)}
	if change != nil {
		change(&o)
	}
	screen = shown.String
	ctx, stop := context.WithCancel(context.Background())
	over = make(chan error, 1)
	ended := make(chan struct{})
	go func() { over <- Work(ctx, o); close(ended) }()
	s.t.Cleanup(func() {
		stop()
		select {
		case <-ended:
		case <-time.After(patience):
			s.t.Error("the member does not end")
		}
		if s.t.Failed() {
			s.t.Logf("its screen:\n%s\nthe lead heard: %v", screen(), s.heard)
		}
	})
	return over, screen
}

func (s *stage) say(from, text string) {
	s.t.Helper()
	if err := s.team.Send(s.ctx, "ann", teamfiles.Entry{From: from, Text: text}); err != nil {
		s.t.Fatal(err)
	}
}

// hears waits for an entry for the lead, and reads its inbox up to this entry.
func (s *stage) hears(what string, is func(e teamfiles.Entry) bool) teamfiles.Entry {
	s.t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		waiting, err := s.team.Waiting(s.ctx, teamfiles.Lead)
		if err != nil {
			s.t.Fatal(err)
		}
		for _, e := range waiting {
			s.heard = append(s.heard, e)
			if err := s.team.MarkDelivered(s.ctx, teamfiles.Lead, e.Key()); err != nil {
				s.t.Fatal(err)
			}
			if is(e) {
				return e
			}
		}
		if time.Now().After(deadline) {
			s.t.Fatalf("the lead does not get %s", what)
		}
	}
}

// notice waits for a structured message of a kind.
func notice[M teamfiles.Structured](s *stage) (found M) {
	s.t.Helper()
	s.hears(fmt.Sprintf("a %T", found), func(e teamfiles.Entry) bool {
		m, ok := teamfiles.Parse(e.Text).(M)
		if ok {
			found = m
		}
		return ok && e.From == "ann"
	})
	return found
}

func (s *stage) ends(over chan error) error {
	s.t.Helper()
	select {
	case err := <-over:
		return err
	case <-time.After(patience):
		s.t.Fatal("the member does not end")
		return nil
	}
}

func (s *stage) eventually(what string, holds func() bool) {
	s.t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			s.t.Fatalf("this does not happen: %s", what)
		}
	}
}

// acting is an agent; the test plays its turns.
type acting struct {
	react func(*act, agent.Prompt)
	deaf  bool    // it never confirms a prompt
	seen  []int64 // what a resumed session has
}

func actor(react func(*act, agent.Prompt)) acting { return acting{react: react} }

// act is one of its sessions.
type act struct {
	acting
	spec    agent.Spec
	updates chan agent.Update
	prompts chan agent.Prompt
	ctx     context.Context
	stop    context.CancelFunc
	access  chan agent.Access
	crash   error // the session ends with it after this turn
}

func (a acting) Start(_ context.Context, spec agent.Spec, _ agent.Team) (agent.Session, error) {
	s := &act{acting: a, spec: spec, updates: make(chan agent.Update), prompts: make(chan agent.Prompt, 16),
		access: make(chan agent.Access, 16)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	go s.run()
	return s, nil
}

func (s *act) run() {
	defer close(s.updates)
	s.updates <- agent.Started{Session: "one", Resumed: s.spec.Resume != "", Seen: s.seen}
	for {
		select {
		case p := <-s.prompts:
			if !s.deaf {
				s.updates <- agent.Received{ID: p.ID}
			}
			s.updates <- agent.TurnStarted{}
			s.react(s, p)
			if s.crash != nil {
				s.updates <- agent.Ended{Err: s.crash}
				return
			}
		case <-s.ctx.Done():
			s.updates <- agent.Ended{}
			return
		}
	}
}

func (s *act) says(text string) {
	s.updates <- agent.Text{Text: text}
	s.updates <- agent.TurnEnded{Text: text}
}

// uses calls one of the team's tools.
func (s *act) uses(tool string, input map[string]any) (string, bool) {
	data, _ := json.Marshal(input)
	return s.spec.Tools.Call(s.ctx, tool, data)
}

func (s *act) Updates() <-chan agent.Update { return s.updates }
func (s *act) Give(_ context.Context, p agent.Prompt) error {
	select {
	case s.prompts <- p:
		return nil
	case <-s.ctx.Done():
		return errors.New("over")
	}
}
func (s *act) SetAccess(_ context.Context, a agent.Access) error { s.access <- a; return nil }
func (s *act) Interrupt(context.Context) error                   { return nil }
func (s *act) Stop(context.Context) error                        { s.stop(); return nil }
