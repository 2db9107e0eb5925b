package shell_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/agent"
	"cadre/internal/agent/shell"
	"cadre/internal/journal/memjournal"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// bench is a team in memory with the shell teammate ann and her session. She has no host: the test
// takes its role.
type bench struct {
	t *testing.T
	*replica.Replica
	spec    agent.Spec
	session agent.Session
	updates chan agent.Update
	claimed func() // called after each claim, before the session knows of it
	ctx     context.Context
}

func newBench(t *testing.T, tasks ...team.CreateTask) *bench {
	t.Helper()
	b := &bench{t: t, updates: make(chan agent.Update, 1000)}
	var cancel context.CancelFunc
	b.ctx, cancel = context.WithTimeout(context.Background(), 30*time.Second)
	t.Cleanup(cancel)
	var err error
	if b.Replica, err = replica.Open(b.ctx, memjournal.New("demo").Open(),
		replica.Options{Check: b.check}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	procs, err := proc.Open(filepath.Join(t.TempDir(), "host"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := procs.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	b.spec = agent.Spec{TeamID: "demo-1", Team: "demo", Member: "ann", Incarnation: 1, Lead: "lead", Dir: t.TempDir(),
		Scratch: filepath.Join(t.TempDir(), "scratch"), Procs: procs}
	b.do(team.User, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: b.spec.Dir})
	b.do(team.User, &team.SpawnMember{Name: "ann", Agent: team.Shell})
	for _, task := range tasks {
		if task.Subject == "" {
			task.Subject = "a task"
		}
		b.do(team.User, &task)
	}
	return b
}

// check runs the check of a task in the directory of the session, as an assembled replica does.
func (b *bench) check(ctx context.Context, _ team.Team, t team.Task, _ string) (string, error) {
	var out proc.Capture
	exit, err := b.spec.Procs.Run(ctx, proc.Cmd{Args: []string{"/bin/sh", "-c", t.Check.Run}, Dir: b.spec.Dir,
		Stdout: &out,
		Stderr: &out}, proc.Ladder{})
	if err != nil || exit.Code == 0 {
		return "", err
	}
	return out.String(), nil
}

// TestUntil checks that a command runs again with the output of the check until that passes, within
// one attempt.
func TestUntil(t *testing.T) {
	const run = `echo "$CADRE_FEEDBACK" >>told; echo x >>tries`
	b := newBench(t, team.CreateTask{Run: run, Check: &team.TaskCheck{
		Run: `n=$(wc -l <tries); echo "only $n tries"; test $n -ge 3`, Rounds: 3}})
	b.start(shell.Agent{})
	until[agent.TurnEnded](b)
	told, err := os.ReadFile(filepath.Join(b.spec.Dir, "told"))
	if got := b.task("1"); err != nil || got.Status != team.Completed || got.Attempts != 1 || got.Failures != 0 ||
		got.Rejected != nil {
		t.Errorf("the task is %+v, %v", got, err)
	}
	for _, want := range []string{"round 1 of 3", "only 1 tries", "round 2 of 3", "only 2 tries"} {
		if !strings.Contains(string(told), want) {
			t.Errorf("the command was not told %q, but\n%s", want, told)
		}
	}
}

// TestFeedbackOfOthers checks that a command is told why its last result was rejected where its
// session does not know that: by a verifier, and by the check before the session was replaced.
func TestFeedbackOfOthers(t *testing.T) {
	told := func(b *bench, want string) {
		t.Helper()
		if got := b.task("1").Result; got != want {
			t.Errorf("the command was told %q, want %q", got, want)
		}
	}
	b := newBench(t, team.CreateTask{Run: `echo "[$CADRE_FEEDBACK]"`, Verify: &team.Verify{By: "lead"}})
	b.start(shell.Agent{})
	until[agent.TurnEnded](b)
	b.do("lead", &team.CompleteTask{Task: b.task("1").Submission.Tasks[0], Verdict: team.VerdictRejected,
		Result: "use the other file"})
	if err := b.session.Give(b.ctx, agent.Prompt{ID: "again"}); err != nil {
		t.Fatal(err)
	}
	until[agent.TurnEnded](b)
	b.do("lead", &team.CompleteTask{Task: b.task("1").Submission.Tasks[0], Verdict: team.VerdictAccepted, Result: "good"})
	told(b, "[use the other file]\n")

	b = newBench(t, team.CreateTask{Run: `echo x >>runs; test $(wc -l <runs) != 2 || sleep 60; echo "[$CADRE_FEEDBACK]"`,
		Check: &team.TaskCheck{Run: `echo not yet; test $(wc -l <runs) -ge 3`, Rounds: 3}})
	b.start(shell.Agent{})
	until[agent.ToolFinished](b)
	until[agent.ToolStarted](b)
	if err := b.session.Stop(b.ctx); err != nil {
		t.Fatal(err)
	}
	b.updates = make(chan agent.Update, 1000)
	if err := os.WriteFile(filepath.Join(b.spec.Dir, "runs"), []byte("x\nx\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.start(shell.Agent{})
	until[agent.TurnEnded](b)
	told(b, "[not yet\n]\n")
}

// TestChecksOfACommand checks that a check that fails, a result that does not fit, and used-up
// rounds end the attempt of a command, with the output as the reason.
func TestChecksOfACommand(t *testing.T) {
	for name, c := range map[string]struct {
		task   team.CreateTask
		reason string
		words  []string // what the history says of each rejection
	}{
		"check": {team.CreateTask{Run: "true", Check: &team.TaskCheck{Run: "echo not built; false"}}, "not built\n",
			[]string{"the check failed"}},
		"result": {team.CreateTask{Run: "echo '[1]'", Schema: json.RawMessage(`{"type": "object"}`)},
			"the result: must be object, and is an array", []string{"the result does not fit its schema"}},
		"until": {team.CreateTask{Run: "true", Check: &team.TaskCheck{Run: "echo not built; false", Rounds: 2}},
			"its check failed, 2 times:\nnot built\n",
			[]string{"the check failed in round 1 of 2", "the check failed in round 2 of 2"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.task)
			b.start(shell.Agent{})
			until[agent.TurnEnded](b)
			if got := b.task("1"); !got.OutOfRetries() || got.Failures != 1 || got.Failure != c.reason {
				t.Errorf("the task is %+v, want the reason %q", got, c.reason)
			}
			var words []string
			for r, err := range b.Replica.Read(b.ctx, 0) {
				if err != nil {
					t.Fatal(err)
				}
				for _, e := range r.Events {
					if rejected, is := e.(*team.TaskRejected); is {
						words = append(words, rejected.Words())
					}
				}
			}
			if !slices.Equal(words, c.words) {
				t.Errorf("the history says %q, want %q", words, c.words)
			}
		})
	}
}

func (b *bench) do(actor string, body team.Body) *team.Record {
	b.t.Helper()
	r, err := b.Replica.Do(b.ctx, team.Command{Actor: actor, Body: body})
	if err != nil {
		b.t.Fatal(err)
	}
	return r.Record
}

// asAnn is the replica that the session gets.
type asAnn struct{ *bench }

func (d asAnn) Do(ctx context.Context, body team.Body) (*team.Record, error) {
	r, err := d.Replica.Do(ctx, team.Command{Actor: "ann", Body: body})
	if _, claims := body.(*team.ClaimTask); claims && err == nil && d.claimed != nil {
		d.claimed()
	}
	return r.Record, err
}

// active makes ann active, as her host does when her session starts.
func (b *bench) active() {
	const lease = 1
	b.do(team.Host("h1"), &team.AttachMember{Member: "ann"})
	for _, body := range []team.Body{&team.ReportStarted{Member: "ann"},
		&team.ReportStatus{Member: "ann", Status: team.Active}} {
		if _, err := b.Replica.Do(b.ctx, team.Command{Actor: team.Host("h1"), Lease: lease, Body: body}); err != nil {
			b.t.Fatal(err)
		}
	}
}

func (b *bench) start(a shell.Agent) {
	b.t.Helper()
	var err error
	if b.session, err = a.Start(b.ctx, b.spec, asAnn{b}); err != nil {
		b.t.Fatal(err)
	}
	session, updates, read := b.session, b.updates, make(chan struct{}) // a test may start another one
	go func() {
		defer close(read)
		defer close(updates)
		for u := range session.Updates() {
			updates <- u
		}
	}()
	b.t.Cleanup(func() {
		session.Stop(b.ctx)
		<-read
	})
}

// until waits for an update of that type.
func until[U agent.Update](b *bench) (u U) {
	b.t.Helper()
	for {
		select {
		case one, ok := <-b.updates:
			if !ok {
				b.t.Fatalf("the session ended before it said %T", u)
			}
			if u, ok := one.(U); ok {
				return u
			}
		case <-b.ctx.Done():
			b.t.Fatalf("the session does not say %T", u)
		}
	}
}

func (b *bench) task(id string) (t team.Task) {
	b.View(func(s *team.State) { t, _ = s.Task(id) })
	return t
}

func (b *bench) lead() (bodies []string) {
	b.View(func(s *team.State) {
		for _, m := range s.Inbox("lead") {
			if m.From == "ann" {
				bodies = append(bodies, m.Body)
			}
		}
	})
	return bodies
}

func TestATask(t *testing.T) {
	b := newBench(t, team.CreateTask{Subject: "look\naround",
		Run: `pwd; echo "$CADRE_TEAM $CADRE_TEAM_ID $CADRE_MEMBER_NAME $CADRE_TASK_ID $CADRE_TASK_SUBJECT $EXTRA" >&2; ls "$CADRE_RESULTS"`})
	b.spec.Env = []string{"EXTRA=and more"}
	b.start(shell.Agent{})
	until[agent.Started](b)
	if u := until[agent.TurnStarted](b); !strings.Contains(u.Summary, "task 1") {
		t.Errorf("it works on %q", u.Summary)
	}
	until[agent.ToolStarted](b)
	if u := until[agent.ToolFinished](b); u.Failed || u.Output == "" {
		t.Errorf("its command: %+v", u)
	}
	until[agent.TurnEnded](b)
	task := b.task("1")
	where, what, _ := strings.Cut(task.Result, "\n")
	if task.Status != team.Completed || filepath.Base(where) != filepath.Base(b.spec.Dir) ||
		what != "demo demo-1 ann 1 look around and more\n" {
		t.Errorf("the task is %s with %q", task.Status, task.Result)
	}
	if mail := b.lead(); len(mail) != 1 || !strings.Contains(mail[0], "is done; its command took ") {
		t.Errorf("the lead was told %q", mail)
	}
	if left, _ := os.ReadDir(b.spec.Scratch); len(left) > 0 {
		t.Errorf("in its scratch folder are %v", left)
	}
}

// TestATaskThatIsHeld checks that a task that its member holds already is worked on once. Another
// actor claimed it for the member, or the answer to a claim was lost.
func TestATaskThatIsHeld(t *testing.T) {
	b := newBench(t, team.CreateTask{Run: "echo one"}, team.CreateTask{Run: "echo two"})
	b.do("lead", &team.ClaimTask{Task: "2", Member: "ann"})
	b.start(shell.Agent{})
	if u := until[agent.TurnStarted](b); !strings.Contains(u.Summary, "task 2") {
		t.Errorf("it works on %q", u.Summary)
	}
	until[agent.TurnEnded](b)
	for _, id := range []string{"1", "2"} {
		if task := b.task(id); task.Status != team.Completed || task.Attempts != 1 {
			t.Errorf("task %s is %s after %d attempts", id, task.Status, task.Attempts)
		}
	}
}

// TestResults checks that the results of earlier tasks are in files, named by the ids of the team
// file where those are valid names.
func TestResults(t *testing.T) {
	id := func(id string) map[string]json.RawMessage {
		text, _ := json.Marshal(id)
		return map[string]json.RawMessage{team.FileIDKey: text}
	}
	b := newBench(t,
		team.CreateTask{Run: "echo one"},
		team.CreateTask{Run: "echo two", Metadata: id("survey")},
		team.CreateTask{Run: "echo three", Metadata: id("../../escape")},
		team.CreateTask{Run: "echo four"},
		team.CreateTask{Run: `cd "$CADRE_RESULTS" && for f in *; do echo "$f: $(cat "$f")"; done`,
			BlockedBy: []string{"1", "2", "3"}},
	)
	b.start(shell.Agent{})
	until[agent.TurnEnded](b)
	if got, want := b.task("5").Result, "1.md: one\n3.md: three\nsurvey.md: two\n"; got != want {
		t.Errorf("it found %q, not %q", got, want)
	}
}

// TestResultsOfOneNumber checks that two results do not go to one file where a task is named like
// the number of another one.
func TestResultsOfOneNumber(t *testing.T) {
	b := newBench(t,
		team.CreateTask{Run: "echo one", Name: "2"},
		team.CreateTask{Run: "echo two"},
		team.CreateTask{Run: `cd "$CADRE_RESULTS" && for f in *; do echo "$f: $(cat "$f")"; done`,
			BlockedBy: []string{"1", "2"}},
	)
	b.start(shell.Agent{})
	until[agent.TurnEnded](b)
	if got, want := b.task("3").Result, "#2.md: two\n2.md: one\n"; got != want {
		t.Errorf("it found %q, not %q", got, want)
	}
}

// TestFailedTasks checks that a task with When always gets the names of the failed tasks before it,
// direct or not.
func TestFailedTasks(t *testing.T) {
	const say = `echo "failed: $CADRE_FAILED_TASKS"`
	b := newBench(t,
		team.CreateTask{Name: "lint", Run: "false"},
		team.CreateTask{Name: "test", Run: "false"},
		team.CreateTask{Name: "other", Run: "false"},
		team.CreateTask{Name: "good", Run: say},
		team.CreateTask{Name: "deploy", Run: "true", BlockedBy: []string{"1", "4"}},
		team.CreateTask{Name: "sum", Run: say, When: team.Always, BlockedBy: []string{"5", "2", "1"}},
	)
	b.start(shell.Agent{})
	until[agent.TurnEnded](b)
	if got := b.task("6").Result; got != "failed: lint,test\n" {
		t.Errorf("it learns %q", got)
	}
	if got := b.task("4").Result; got != "failed: \n" {
		t.Errorf("a task that waits for none learns %q", got)
	}
}

func TestWaking(t *testing.T) {
	b := newBench(t)
	b.start(shell.Agent{})
	until[agent.TurnEnded](b)
	b.do(team.User, &team.CreateTask{Subject: "look", Run: "true"})
	if err := b.session.Give(b.ctx, agent.Prompt{ID: "wake"}); err != nil {
		t.Fatal(err)
	}
	until[agent.ToolFinished](b)
	until[agent.TurnEnded](b)
	if status := b.task("1").Status; status != team.Completed {
		t.Errorf("the task is %s", status)
	}
}

func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name, failure string
		task          team.CreateTask
		agent         shell.Agent
	}{
		{"exit status", "exit status 7", team.CreateTask{Run: "exit 7"}, shell.Agent{}},
		{"no command", "has no command", team.CreateTask{Run: " \n"}, shell.Agent{}},
		{"the task's timeout", "timed out after 50 ms", team.CreateTask{Run: "sleep 1000",
			Timeout: 50 * time.Millisecond},
			shell.Agent{}},
		{"the agent's timeout", "timed out after 50 ms", team.CreateTask{Run: "sleep 1000"},
			shell.Agent{Timeout: 50 * time.Millisecond}},
		{"no such command", "exit status 127", team.CreateTask{Run: "no-such-command-anywhere"}, shell.Agent{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t, c.task)
			b.start(c.agent)
			until[agent.TurnEnded](b)
			task := b.task("1")
			if !task.OutOfRetries() || !strings.Contains(task.Failure, c.failure) {
				t.Errorf("the task is %s: %q", task.Status, task.Failure)
			}
			if mail := b.lead(); len(mail) != 1 || !strings.Contains(mail[0], c.failure) {
				t.Errorf("the lead was told %q", mail)
			}
		})
	}
}

func TestOutputIsBounded(t *testing.T) {
	b := newBench(t, team.CreateTask{Run: "echo begin; head -c 1000000 /dev/zero | tr '\\0' x; echo; echo end"})
	b.start(shell.Agent{Output: 100})
	until[agent.TurnEnded](b)
	if r := b.task("1").Result; len(r) > 400 || !strings.HasPrefix(r, "begin\n") || !strings.HasSuffix(r, "end\n") {
		t.Errorf("the result has %d bytes: %.300q", len(r), r)
	}
}

// TestOutputAsItComes shows what a command prints while it runs.
func TestOutputAsItComes(t *testing.T) {
	t.Parallel()
	gate := filepath.Join(t.TempDir(), "gate")
	b := newBench(t, team.CreateTask{Run: "echo one; until [ -e " + gate + " ]; do sleep 0.05; done; echo two; exit 3"})
	b.start(shell.Agent{})
	use := until[agent.ToolStarted](b)
	if got := until[agent.ToolOutput](b); got != (agent.ToolOutput{ID: use.ID, Text: "one\n"}) {
		t.Errorf("while it runs: %+v", got)
	}
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := until[agent.ToolFinished](b); got != (agent.ToolFinished{ID: use.ID, Failed: true,
		Output: "one\ntwo\nexit status 3", Lines: 3}) {
		t.Errorf("at its end: %+v", got)
	}
}

// TestBlankLinesAtTheEnd checks that no line counts as missing where an output is complete.
func TestBlankLinesAtTheEnd(t *testing.T) {
	t.Parallel()
	for run, want := range map[string]agent.ToolFinished{
		`printf 'ok\n\n'`:            {Output: "ok\n\n", Lines: 1},
		`printf 'ok\n \n\n'; exit 3`: {Output: "ok\nexit status 3", Lines: 2, Failed: true},
		`printf '\n\nok'; exit 3`:    {Output: "\n\nok\nexit status 3", Lines: 4, Failed: true},
		`printf '\n\n'; exit 3`:      {Output: "exit status 3", Lines: 1, Failed: true},
	} {
		b := newBench(t, team.CreateTask{Run: run})
		b.start(shell.Agent{})
		want.ID = until[agent.ToolStarted](b).ID
		if got := until[agent.ToolFinished](b); got != want {
			t.Errorf("%s: %+v, not %+v", run, got, want)
		}
	}
}

// TestMuchOutput runs a command that prints 100 MB. Viewers get little of it, and the number of its
// lines.
func TestMuchOutput(t *testing.T) {
	t.Parallel()
	b := newBench(t, team.CreateTask{Run: "yes 123456789 | head -n 10000000; echo the end"})
	b.start(shell.Agent{})
	until[agent.ToolStarted](b)
	began := time.Now()
	shown, parts := 0, 0
	for {
		switch u := (<-b.updates).(type) {
		case agent.ToolOutput:
			shown, parts = shown+len(u.Text), parts+1
			continue
		case agent.ToolFinished:
			if u.Failed || u.Lines != 10_000_001 || len(u.Output) > 70<<10 ||
				!strings.HasSuffix(u.Output, "the end\n") {
				t.Errorf("%d lines, %d bytes, failed: %t", u.Lines, len(u.Output), u.Failed)
			}
		default:
			continue
		}
		break
	}
	if most := 2 + int(time.Since(began)/(100*time.Millisecond)); parts > most || shown > parts*8<<10 {
		t.Errorf("%d bytes were shown in %d parts, and %d parts are the most", shown, parts, most)
	}
}

// TestInterrupt checks that an interrupted command is a failed attempt, and that the session
// continues.
func TestInterrupt(t *testing.T) {
	b := newBench(t, team.CreateTask{Run: "sleep 1000"}, team.CreateTask{Run: "echo next"})
	b.start(shell.Agent{})
	until[agent.ToolStarted](b)
	if err := b.session.Interrupt(b.ctx); err != nil {
		t.Fatal(err)
	}
	until[agent.TurnEnded](b)
	if task := b.task("1"); !strings.Contains(task.Failure, "interrupted") {
		t.Errorf("the task is %s: %q", task.Status, task.Failure)
	}
	if status := b.task("2").Status; status != team.Completed {
		t.Errorf("the next task is %s", status)
	}
}

// interrupt does what the user's command and ann's host do.
func (b *bench) interrupt() {
	b.do(team.User, &team.Interrupt{Member: "ann"})
	if err := b.session.Interrupt(b.ctx); err != nil {
		b.t.Error(err)
	}
}

// TestEndedBeforeItsCommand checks that an interrupt and an urgent message hold that come after the
// claim of a task, and before its command starts. An urgent message from before the claim does
// nothing.
func TestEndedBeforeItsCommand(t *testing.T) {
	urgent := func(b *bench) {
		r := b.do(team.User, &team.SendMessage{To: "ann", Body: "stop", Priority: "urgent"})
		sent, _ := team.EventIn[*team.MessageSent](r)
		if err := b.session.Give(b.ctx, agent.Prompt{ID: "mail", Mail: []team.Message{sent.Message},
			Urgent: true}); err != nil {
			b.t.Error(err)
		}
	}
	for name, one := range map[string]struct {
		comes   func(*bench)
		failure string
	}{
		"an interrupt":      {(*bench).interrupt, "interrupted"},
		"an urgent message": {urgent, "interrupted by an urgent message of the user"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.active()
			b.start(shell.Agent{})
			until[agent.TurnEnded](b)
			urgent(b)
			until[agent.TurnEnded](b)
			b.claimed = func() { b.claimed = nil; one.comes(b) }
			b.do(team.User, &team.CreateTask{Subject: "a task", Run: "touch ran"})
			if err := b.session.Give(b.ctx, agent.Prompt{ID: "work"}); err != nil {
				t.Fatal(err)
			}
			until[agent.TurnStarted](b)
			until[agent.TurnEnded](b)
			if task := b.task("1"); task.Failure != one.failure {
				t.Errorf("the task is %s: %q", task.Status, task.Failure)
			}
			if names := files(t, b.spec.Dir); len(names) > 0 {
				t.Errorf("its command made %v", names)
			}
		})
	}
}

// TestEndedBeforeItsDirectory checks that the output does not say that a command was ended if it
// never started: the time of the task was over before it had a directory.
func TestEndedBeforeItsDirectory(t *testing.T) {
	b := newBench(t, team.CreateTask{Subject: "a task", Run: "touch ran", Timeout: 50 * time.Millisecond})
	b.spec.Where = func(ctx context.Context, _ team.Task) (string, func(), error) {
		<-ctx.Done()
		return "", nil, ctx.Err()
	}
	b.active()
	b.start(shell.Agent{})
	if shown := until[agent.ToolFinished](b); shown.Output != "timed out after 50 ms" || !shown.Failed {
		t.Errorf("it shows %+v", shown)
	}
	until[agent.TurnEnded](b)
	if task := b.task("1"); task.Failure != "timed out after 50 ms" {
		t.Errorf("the task is %s: %q", task.Status, task.Failure)
	}
}

// TestInterruptedWhileItHoldsAnother checks that an interrupted member does not begin another task
// that it holds before it gets a message.
func TestInterruptedWhileItHoldsAnother(t *testing.T) {
	b := newBench(t, team.CreateTask{Run: "sleep 1000"}, team.CreateTask{Run: "echo next"})
	b.active()
	for _, id := range []string{"1", "2"} {
		b.do("lead", &team.ClaimTask{Task: id, Member: "ann"})
	}
	b.start(shell.Agent{})
	until[agent.ToolStarted](b)
	b.interrupt()
	until[agent.TurnEnded](b)
	if task := b.task("2"); task.Status != team.InProgress || task.Failure != "" {
		t.Errorf("the other task is %s: %q", task.Status, task.Failure)
	}
	if err := b.session.Give(b.ctx, agent.Prompt{ID: "mail", Mail: []team.Message{{Seq: 9,
		Type: team.TypeMessage}}}); err != nil {
		t.Fatal(err)
	}
	until[agent.TurnStarted](b)
	until[agent.TurnEnded](b)
	if task := b.task("2"); task.Result != "next\n" {
		t.Errorf("after a message the other task is %s: %q", task.Status, task.Failure)
	}
}

// TestUrgentMessage checks that an urgent message of the user ends the command. An urgent
// broadcast, and a message that is not urgent, do not.
func TestUrgentMessage(t *testing.T) {
	b := newBench(t, team.CreateTask{Run: "until [ -e go ]; do sleep 0.01; done; echo went"},
		team.CreateTask{Run: "sleep 1000"}, team.CreateTask{Run: "echo next"})
	b.start(shell.Agent{})
	until[agent.ToolStarted](b)
	give := func(id string, m team.Message) {
		t.Helper()
		p := agent.Prompt{ID: id, Mail: []team.Message{m}, Urgent: m.Priority == "urgent"}
		if err := b.session.Give(b.ctx, p); err != nil {
			t.Fatal(err)
		}
	}
	give("plain", team.Message{Type: team.TypeMessage, From: team.User, Priority: "normal"})
	give("all", team.Message{Type: team.TypeBroadcast, From: team.User, Priority: "urgent"})
	if err := os.WriteFile(filepath.Join(b.spec.Dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	until[agent.ToolStarted](b)
	give("stop", team.Message{Type: team.TypeMessage, From: team.User, Priority: "urgent"})
	until[agent.TurnEnded](b)
	if one := b.task("1"); one.Result != "went\n" {
		t.Errorf("the first task is %s: %q %s", one.Status, one.Result, one.Failure)
	}
	if two := b.task("2"); two.Failure != "interrupted by an urgent message of the user" {
		t.Errorf("the second task is %s: %q", two.Status, two.Failure)
	}
	if status := b.task("3").Status; status != team.Completed {
		t.Errorf("the next task is %s", status)
	}
}

// TestStop checks that a stopped session leaves its task to its host, and no process of its
// command. A command that ignores signals is killed after the time that Stop was given.
func TestStop(t *testing.T) {
	b := newBench(t, team.CreateTask{Run: "trap '' TERM; echo $$ >pid; while :; do sleep 1000; done"})
	b.start(shell.Agent{Ladder: proc.Ladder{Term: time.Hour}})
	until[agent.ToolStarted](b)
	for !slices.ContainsFunc(files(t, b.spec.Dir), func(name string) bool { return name == "pid" }) {
		<-time.After(time.Millisecond)
	}
	ctx, cancel := context.WithTimeout(b.ctx, 50*time.Millisecond)
	defer cancel()
	if err := b.session.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if u := until[agent.Ended](b); u.Err != nil {
		t.Errorf("it ended with %v", u.Err)
	}
	if task := b.task("1"); task.Status != team.InProgress || task.Failure != "" {
		t.Errorf("the task is %s: %q", task.Status, task.Failure)
	}
	if err := b.session.Stop(b.ctx); err != nil {
		t.Errorf("stopping again: %v", err)
	}
}

func files(t *testing.T, dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// askedInACommand asks the session to shut down while a command runs, which then ends because the
// file go is there.
func (b *bench) askedInACommand() {
	b.t.Helper()
	b.start(shell.Agent{})
	until[agent.ToolStarted](b)
	b.do("lead", &team.RequestShutdown{Member: "ann", Deadline: replica.Now() + 60_000})
	var mail []team.Message
	b.View(func(s *team.State) { mail = s.Inbox("ann") })
	if err := b.session.Give(b.ctx, agent.Prompt{ID: "mail", Mail: mail}); err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.spec.Dir, "go"), nil, 0o600); err != nil {
		b.t.Fatal(err)
	}
	until[agent.TurnEnded](b)
}

// TestShutdown checks that a session agrees to a shutdown after the running command and before the
// next one.
func TestShutdown(t *testing.T) {
	b := newBench(t, team.CreateTask{Run: "until test -e go; do sleep 0.01; done"}, team.CreateTask{Run: "true"})
	b.askedInACommand()
	if status := b.task("1").Status; status != team.Completed {
		t.Errorf("the task that ran is %s", status)
	}
	if status := b.task("2").Status; status != team.Pending {
		t.Errorf("the next task is %s", status)
	}
	var m team.Member
	b.View(func(s *team.State) { m, _ = s.Member("ann") })
	if m.Status != team.Stopped && m.Shutdown.Answer != "approved" {
		t.Errorf("ann is %s and answered %q", m.Status, m.Shutdown.Answer)
	}
}

// TestShutdownBetweenRounds checks that a session that is asked to shut down begins no other round
// of its task. The task returns to the queue with the rounds that it had, and why it was sent back.
func TestShutdownBetweenRounds(t *testing.T) {
	b := newBench(t, team.CreateTask{Run: "echo x >>runs; until test -e go; do sleep 0.01; done",
		Check: &team.TaskCheck{Run: "echo not yet; false", Rounds: 20}})
	b.askedInACommand()
	runs, err := os.ReadFile(filepath.Join(b.spec.Dir, "runs"))
	if task := b.task("1"); string(runs) != "x\n" || err != nil || task.Status != team.Pending || task.Failures != 0 ||
		task.Rejected == nil || task.Rejected.Checks != 1 {
		t.Errorf("the command ran %d times (%v), and the task is %+v", strings.Count(string(runs), "x"), err, task)
	}
	var m team.Member
	b.View(func(s *team.State) { m, _ = s.Member("ann") })
	if m.Status != team.Stopped && m.Shutdown.Answer != "approved" {
		t.Errorf("ann is %s and answered %q", m.Status, m.Shutdown.Answer)
	}
}

// TestALostClaim checks that a claim that is lost meanwhile ends the command, and not the session.
func TestALostClaim(t *testing.T) {
	b := newBench(t, team.CreateTask{Run: "sleep 1000"})
	b.start(shell.Agent{})
	until[agent.ToolStarted](b)
	b.do(team.User, &team.ReleaseTask{Task: "1", Reason: "somebody else shall do it"})
	b.do(team.User, &team.UpdateTask{Task: "1", Owner: new("lead")})
	if ended := until[agent.ToolFinished](b); !strings.Contains(ended.Output, "its task was taken from it") {
		t.Errorf("the command ended with %q", ended.Output)
	}
	until[agent.TurnEnded](b)
	if task := b.task("1"); task.Status != team.Pending || task.Owner != "lead" {
		t.Errorf("the task is %s, of %s", task.Status, task.Owner)
	}
}

// TestADeletedTask checks that the command of a task ends when the task is deleted.
func TestADeletedTask(t *testing.T) {
	b := newBench(t, team.CreateTask{Run: "sleep 1000"}, team.CreateTask{Run: "echo next"})
	b.start(shell.Agent{})
	until[agent.ToolStarted](b)
	b.do(team.User, &team.DeleteTask{Task: "1"})
	until[agent.TurnEnded](b)
	if status := b.task("2").Status; status != team.Completed {
		t.Errorf("the next task is %s", status)
	}
}

func TestNowhereToWork(t *testing.T) {
	b := newBench(t)
	file := filepath.Join(b.spec.Dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{filepath.Join(b.spec.Dir, "nowhere"), file} {
		b.spec.Dir = dir
		if _, err := (shell.Agent{}).Start(b.ctx, b.spec, asAnn{b}); err == nil || !strings.Contains(err.Error(), dir) {
			t.Errorf("in %s: %v", dir, err)
		}
	}
}
