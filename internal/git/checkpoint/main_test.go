package checkpoint

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/git"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(writerDir); dir != "" {
		os.Exit(write(dir))
	}
	soak.InMemory()
	dir, err := os.MkdirTemp("", "cadre-checkpoint-")
	config := filepath.Join(dir, "gitconfig")
	if err == nil {
		err = os.WriteFile(config, []byte("[user]\n\tname = Ann Example\n\temail = "+
			"ann@example.org\n[init]\n\tdefaultBranch = main\n[protocol \"file\"]\n\tallow = "+
			"always\n[maintenance]\n\tauto = false\n"), 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Setenv("GIT_CONFIG_GLOBAL", config) // once for all tests, which run in parallel
	os.Setenv("GIT_CONFIG_NOSYSTEM", "1")
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		os.RemoveAll(dir)
		os.Exit(code)
	}))
}

// work is a team in memory that works: a [Source].
type work struct {
	mu      sync.RWMutex
	state   *team.State
	records []*team.Record
	sent    int
}

// newWork returns a team of three with a few tasks.
func newWork(t testing.TB, id string) *work {
	w := &work{state: &team.State{}}
	w.do(t, team.User, &team.CreateTeam{TeamID: id, Name: "demo", Goal: "Audit <this> & that", Dir: "/d",
		LeadAgent: "claude"})
	w.do(t, "lead", &team.SpawnMember{Name: "ann", Agent: team.External, Role: "r"})
	w.do(t, "lead", &team.SpawnMember{Name: "bob", Agent: "claude", PlanApproval: true,
		Prompt: "You are bob.\nBe \"good\"."})
	w.do(t, team.Host("h1"), &team.AttachMember{Member: "bob"})
	w.do(t, team.Host("h1"), &team.ReportStarted{Member: "bob", Session: "5e551011"})
	w.do(t, "lead", &team.CreateTask{Subject: "first"})
	w.do(t, "lead", &team.CreateTask{Subject: "second", BlockedBy: []string{"1"}})
	return w
}

// try sends a command and returns its record, nil if it changes nothing.
func (w *work) try(actor string, body team.Body) (*team.Record, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sent++
	d, err := team.Decide(w.state, team.Command{ID: fmt.Sprintf("%d-of-%p", w.sent, w), Actor: actor,
		At: team.Time(1_795_000_000_000 + w.sent*1000), Body: body})
	if err == nil && d.Record != nil {
		w.state.Apply(d.Record)
		w.records = append(w.records, d.Record)
	}
	return d.Record, err
}

func (w *work) do(t testing.TB, actor string, body team.Body) {
	t.Helper()
	if _, err := w.try(actor, body); err != nil {
		t.Fatal(err)
	}
}

// step does a little more work: a task from its creation to its end, and a message.
func (w *work) step(t testing.TB) {
	t.Helper()
	w.do(t, "lead", &team.CreateTask{Subject: fmt.Sprint("task after ", w.sent),
		Description: strings.Repeat("what to do ", 10)})
	id := w.records[len(w.records)-1].Events[0].(*team.TaskCreated).Task.ID
	w.do(t, "ann", &team.ClaimTask{Task: id})
	w.do(t, "ann", &team.CompleteTask{Task: id, Result: "done"})
	w.do(t, "ann", &team.SendMessage{To: "bob", Body: "Task " + id + " is done, and this is what I found in it."})
	w.do(t, team.Host("h1"), &team.ReceiveMessages{Member: "bob"})
	w.do(t, "lead", &team.ReceiveMessages{Member: "lead"})
}

func (w *work) View(see func(*team.State)) {
	w.mu.RLock()
	defer w.mu.RUnlock()
	see(w.state)
}

func (w *work) Read(_ context.Context, after int64) iter.Seq2[*team.Record, error] {
	return func(yield func(*team.Record, error) bool) {
		w.mu.RLock()
		records := w.records[after:] // records are only ever appended
		w.mu.RUnlock()
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// all returns everything that a checkpoint restores of a state, as text.
func all(s *team.State) string {
	out := fmt.Appendf(nil, "%+v", team.Keep(s))
	for id := 1; ; id++ {
		task, ok := s.Task(fmt.Sprint(id))
		if !ok {
			return string(out)
		}
		one, _ := task.MarshalJSON()
		out = append(append(out, '\n'), one...)
	}
}

func (w *work) all() (text string) {
	w.View(func(s *team.State) { text = all(s) })
	return text
}

// brings checks that the newest checkpoint of the store restores the team as it is.
func brings(t testing.TB, s *Store, w *work) *Restored {
	t.Helper()
	r, err := s.Restore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got, want := all(r.State), w.all(); got != want {
		t.Fatalf("restored\n%s\nwant\n%s", got, want)
	}
	if w.View(func(s *team.State) {
		if r.State.Seq() != s.Seq() || r.Seq != s.Position() {
			t.Errorf("restored at %d, position %d; want %d, %d", r.State.Seq(), r.Seq, s.Seq(), s.Position())
		}
	}); t.Failed() {
		t.FailNow()
	}
	return r
}

// lab is a folder with git repositories, and a register for the processes of the stores.
type lab struct {
	testing.TB
	dir   string
	procs *proc.Register
}

func newLab(t testing.TB) *lab {
	t.Helper()
	procs, err := proc.Open("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		defer cancel()
		procs.Close(ctx)
	})
	return &lab{t, t.TempDir(), procs}
}

// git runs git in a folder, without the variables by which the test misleads the store.
func (l *lab) git(dir string, args ...string) string {
	l.Helper()
	out, err := l.try(dir, args...)
	if err != nil {
		l.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

func (l *lab) try(dir string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(l.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", dir}, args...)...)
	cmd.Env = git.Local(os.Environ())
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return strings.TrimSuffix(out.String(), "\n"), err
}

// repository makes a plain repository with a commit.
func (l *lab) repository(name string, init ...string) string {
	l.Helper()
	dir := filepath.Join(l.dir, name)
	l.git(l.dir, append([]string{"init", "-q", dir}, init...)...)
	l.write(filepath.Join(dir, "a.txt"), "one\n")
	l.git(dir, "add", "-A")
	l.git(dir, "commit", "-q", "-m", "first")
	return dir
}

func (l *lab) write(path, text string) {
	l.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		l.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		l.Fatal(err)
	}
}

func (l *lab) store(project string) *Store {
	l.Helper()
	s, err := Open(l.Context(), l.procs, project, "demo", filepath.Join(l.dir, "own"))
	if err != nil {
		l.Fatal(err)
	}
	return s
}

func (l *lab) checkpoint(s *Store, w *work) Checkpoint {
	l.Helper()
	c, err := s.Write(l.Context(), w, Beside{})
	if err != nil {
		l.Fatal(err)
	}
	return c
}
