package host_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"cadre/internal/host"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// project is a repository, and the team's commits in it.
type project struct {
	t   *testing.T
	dir string
}

func newProject(t *testing.T) *project {
	t.Helper()
	p := &project{t: t, dir: t.TempDir()}
	p.git("init", "-q")
	p.git("-c", "user.name=ann", "-c", "user.email=ann@example.com", "commit", "-q", "--allow-empty", "-m", "begin")
	return p
}

func (p *project) git(args ...string) string {
	p.t.Helper()
	out, err := exec.CommandContext(p.t.Context(), "git", append([]string{"-C", p.dir}, args...)...).CombinedOutput()
	if err != nil {
		p.t.Fatalf("git %v: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// covered returns the seq that the newest checkpoint covers.
func (p *project) covered() (seq int64) {
	p.t.Helper()
	text := p.git("for-each-ref", "--format=%(contents:body)", "refs/heads/cadre/demo")
	if text == "" {
		return 0
	}
	if _, err := fmt.Sscanf(text, "[skip ci]\n\nCheckpoint %d of team demo", &seq); err != nil {
		p.t.Fatalf("%q: %v", text, err)
	}
	return seq
}

// untilCovered waits for a checkpoint that covers the record.
func (p *project) untilCovered(seq int64) {
	p.t.Helper()
	for until := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		switch have := p.covered(); {
		case have >= seq:
			return
		case time.Now().After(until):
			p.t.Fatalf("the last checkpoint has %d records, and none came with %d", have, seq)
		}
	}
}

// keeping starts a host that makes checkpoints after each such period in which anything changed. 0
// is for the default of half a minute, which no test waits for. Heartbeats have their own, slower
// pace here.
func keeping(t *testing.T, p *project, every time.Duration) (*stage, *hosted) {
	t.Helper()
	s := newStageOf(t, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: p.dir,
		Timing: team.Timing{Beat: 10 * time.Minute, Offline: 20 * time.Minute, LeadLost: 20 * time.Minute,
			Checkpoint: every}}, spawn("ann"), &team.CreateTask{Subject: "look"})
	h := s.start("h1", scripted(obedient), func(o *host.Options) { o.Checkpoints = true })
	s.untilStatus("ann", team.Idle)
	p.untilCovered(1) // of its start
	return s, h
}

// TestCheckpointsAreMadeFor checks that these changes make a checkpoint before the next period.
func TestCheckpointsAreMadeFor(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	for name, act := range map[string]func(*stage) *team.Record{
		"a completed task": func(s *stage) *team.Record {
			s.do("ann", &team.ClaimTask{Task: "1"})
			return s.do("ann", &team.CompleteTask{Task: "1"})
		},
		// Wait for the first message first: a checkpoint in progress may cover it, and then the
		// others are too few for a new one.
		"ten messages": func(s *stage) *team.Record {
			first := s.do("lead", &team.SendMessage{To: "ann", Body: "hear this"})
			for range 9 {
				s.do("lead", &team.SendMessage{To: "ann", Body: "hear this"})
			}
			return first
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProject(t)
			s, _ := keeping(t, p, 0)
			p.untilCovered(act(s).Seq)
		})
	}
	t.Run("a period with a change", func(t *testing.T) {
		p := newProject(t)
		s, _ := keeping(t, p, 100*time.Millisecond)
		p.untilCovered(s.do("lead", &team.SendMessage{To: "ann", Body: "hear this"}).Seq)
	})
}

// TestTheLastCheckpoint checks that a host makes a last checkpoint as it ends, even if it ends at
// once. The checkpoint covers the records by which the host gives its members back.
func TestTheLastCheckpoint(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	p := newProject(t)
	s, h := keeping(t, p, 0)
	r := s.do("lead", &team.SendMessage{To: "ann", Body: "hear this"})
	h.wait()
	s.until("ann is given back", func(st *team.State) bool {
		m, _ := st.Member("ann")
		return m.Host == ""
	})
	if have, last := p.covered(), s.Seq(); last <= r.Seq || have != last {
		t.Errorf("the last checkpoint has %d records of %d; the message is number %d", have, last, r.Seq)
	}
	r = s.do("lead", &team.SendMessage{To: "ann", Body: "and this"})
	s.start("h2", scripted(obedient), func(o *host.Options) { o.Checkpoints = true }).wait()
	if have := p.covered(); have < r.Seq {
		t.Errorf("a host that ended at once kept %d of at least %d records", have, r.Seq)
	}
	if left := p.git("status", "--short", "--ignored"); left != "" {
		t.Errorf("the work tree has %q", left)
	}
}
