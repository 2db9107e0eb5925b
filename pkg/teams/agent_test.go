package teams_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"cadre/pkg/teams"
)

// TestLeadHistoryIsolation checks that a teammate knows its prompt and its own mail, and nothing of
// the conversation between the lead and others.
func TestLeadHistoryIsolation(t *testing.T) {
	ctx := limited(t)
	agent := newListener()
	m := manage(t, teams.Options{Agents: map[string]teams.Agent{"listener": agent}})
	create(t, m, "core", "ann")
	ok(t, send(ctx, m, "lead", "ann", "between us"))
	ok(t, broadcast(ctx, m, "lead", "to all who are here"))
	_, err := m.Team().Spawn(ctx, teams.MemberConfig{Name: "bob", Agent: "listener", Prompt: "begin"})
	ok(t, err)
	slot := next(t, agent.slots)
	equal(t, "what bob begins with", slot.Prompt+slot.Resume, "begin")
	ok(t, send(ctx, m, "lead", "bob", "hello"))
	equal(t, "the first that bob hears", next(t, agent.mail).Body, "hello")
}

// TestSessionEndsByItself checks that a member fails if its session ends by itself. Its tasks
// return to the queue, and the lead is told why.
func TestSessionEndsByItself(t *testing.T) {
	for _, cause := range []error{errors.New("out of memory"), nil} {
		agent := newListener()
		m := manage(t, teams.Options{Agents: map[string]teams.Agent{"listener": agent}})
		team := create(t, m, "core")
		_, err := m.Team().Spawn(limited(t), teams.MemberConfig{Name: "ann", Agent: "listener"})
		ok(t, err)
		slot := next(t, agent.slots)
		add(t, team.Tasks(), "look")
		_, err = slot.Tasks().ClaimNext(limited(t))
		ok(t, err)
		agent.crash("ann", cause)
		is, err := team.AwaitEnd(limited(t), "ann")
		ok(t, err)
		reason := "its session ended by itself"
		if cause != nil {
			reason = cause.Error()
		}
		equal(t, "status", fmt.Sprint(is.Status, ": ", is.Summary), "failed: "+reason)
		if note := await(t, team.Mail(), teams.MessageSystem); !strings.Contains(note.Body, reason) {
			t.Errorf("the lead is told %q", note.Body)
		}
		task, err := team.Tasks().Get(limited(t), "1")
		ok(t, err)
		equal(t, "task", task.Status, teams.TaskStatusPending)
		want(t, slot.Busy(limited(t), "alive"), teams.ErrFinished)
		slot.Used("", teams.Usage{InputTokens: 1}) // it has no receiver, and the call does not block
	}
}

// TestLeadAgent checks that a lead may be a session too.
func TestLeadAgent(t *testing.T) {
	agent := newListener()
	m := manage(t, teams.Options{Agents: map[string]teams.Agent{"listener": agent}})
	team, err := m.CreateTeam(limited(t), teams.TeamConfig{Name: "core", Lead: teams.MemberConfig{Agent: "listener"}})
	ok(t, err)
	equal(t, "slot", next(t, agent.slots).Name(), "lead")
	_, err = m.Team().Spawn(limited(t), teams.MemberConfig{Name: "ann", Agent: teams.External})
	ok(t, err)
	ok(t, as(t, team, "ann").Idle(limited(t), "done"))
	equal(t, "what the lead hears", next(t, agent.mail).Body, "done")
	_, err = manage(t, teams.Options{}).CreateTeam(limited(t), teams.TeamConfig{Name: "core",
		Lead: teams.MemberConfig{Agent: "dog"}})
	want(t, err, teams.ErrInvalid)
}

// TestWorker runs in virtual time because of the pauses after rejections.
func TestWorker(t *testing.T) { synctest.Test(t, testWorker) }

func testWorker(t *testing.T) {
	ctx := limited(t)
	var mu sync.Mutex
	var heard []string
	var tries atomic.Int32
	worker := teams.Worker{
		Task: func(_ context.Context, slot *teams.Slot, job teams.Job) (string, error) {
			if job.Task.Subject == "impossible" {
				return "half", errors.New("cannot")
			}
			return fmt.Sprint(slot.Name(), " did it", job.Feedback), nil
		},
		Mail: func(ctx context.Context, slot *teams.Slot, m teams.Message) error {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, m.Body)
			_, err := slot.Mail().Send(ctx, teams.Message{To: m.From, Body: "heard: " + m.Body})
			return err
		},
	}
	m := manage(t, teams.Options{Agents: map[string]teams.Agent{"worker": worker}, Hooks: []teams.Hook{{
		Event: teams.HookTaskCompleted, Ask: func(_ context.Context, e teams.HookEvent) error {
			if e.Subject == "twice" && tries.Add(1) == 1 {
				return teams.Reject(", again")
			}
			if e.Subject == "never" {
				return teams.Reject("not good")
			}
			return nil
		}}}})
	team := create(t, m, "core")
	for _, subject := range []string{"plain", "twice", "impossible", "never"} {
		add(t, team.Tasks(), subject)
	}
	_, err := m.Team().Spawn(ctx, teams.MemberConfig{Name: "ann", Agent: "worker"})
	ok(t, err)
	await(t, team.Mail(), teams.MessageIdle)
	all, err := team.Tasks().List(ctx, teams.TaskFilter{})
	ok(t, err)
	for i, should := range []string{"completed ann did it", "completed ann did it, again", "pending half cannot",
		"pending not good"} {
		task := all[i]
		equal(t, task.Subject, strings.Join(strings.Fields(fmt.Sprint(task.Status, " ", task.Result, " ",
			task.Failure)), " "), should)
	}
	ok(t, send(ctx, m, "", "ann", "hello"))
	equal(t, "answer", await(t, team.Mail(), "message").Body, "heard: hello")
	add(t, team.Tasks(), "later")
	first(t, team, func(f teams.TaskCompleted) bool { return f.Task == "5" })
	ok(t, m.Team().Shutdown(ctx, "ann"))
	is, err := team.Member(ctx, "ann")
	ok(t, err)
	equal(t, "status", is.Status, teams.StatusStopped)
	first(t, team, func(f teams.ShutdownAnswered) bool { return f.Approved })

	_, err = m.Team().Spawn(ctx, teams.MemberConfig{Name: "bob", Agent: "worker", PlanApproval: true})
	want(t, err, teams.ErrSessionFailed)
}

// TestWorkerIsInterrupted checks that a worker's function is cancelled when its manager closes, and
// that its task returns to the queue.
func TestWorkerIsInterrupted(t *testing.T) {
	begun := make(chan struct{})
	worker := teams.Worker{Task: func(ctx context.Context, _ *teams.Slot, _ teams.Job) (string, error) {
		close(begun)
		<-ctx.Done()
		return "too late", nil
	}}
	o := teams.Options{Memory: new(teams.Memory), Agents: map[string]teams.Agent{"worker": worker}}
	m := manage(t, o)
	team := create(t, m, "core")
	add(t, team.Tasks(), "endless")
	_, err := m.Team().Spawn(limited(t), teams.MemberConfig{Name: "ann", Agent: "worker"})
	ok(t, err)
	next(t, begun)
	ok(t, m.Close())
	o.Agents = nil // this manager does not know the agent: ann waits
	m = manage(t, o)
	team, err = m.OpenTeam(limited(t), "core")
	ok(t, err)
	task, err := team.Tasks().Get(limited(t), "1")
	ok(t, err)
	equal(t, "task", task.Status, teams.TaskStatusPending)
	is, err := team.Member(limited(t), "ann")
	ok(t, err)
	equal(t, "ann", is.Status, teams.StatusSpawning)
}

// TestWorkerThatDoesNotEnd checks a function that ignores its cancelled context. It delays neither
// its shutdown nor its manager.
func TestWorkerThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		release := make(chan struct{})
		defer close(release)
		worker := teams.Worker{Task: func(_ context.Context, slot *teams.Slot, job teams.Job) (string, error) {
			<-release
			_, err := slot.Tasks().Complete(ctx, job.Claim, "too late")
			if !errors.Is(err, teams.ErrConflict) && !errors.Is(err, teams.ErrFinished) {
				t.Errorf("an abandoned session gets %v", err)
			}
			return "", err
		}}
		m := manage(t, teams.Options{StopGrace: 3 * time.Second, ShutdownWithin: 10 * time.Second,
			Agents: map[string]teams.Agent{"worker": worker}})
		team := create(t, m, "core")
		for _, name := range []string{"ann", "bob"} {
			add(t, team.Tasks(), "for "+name)
			_, err := m.Team().Spawn(ctx, teams.MemberConfig{Name: name, Agent: "worker"})
			ok(t, err)
		}
		synctest.Wait()
		began := time.Now()
		ok(t, m.Team().Shutdown(ctx, "ann"))
		// The deadline, and the grace period after it.
		if took := time.Since(began); took < 10*time.Second || took > 15*time.Second {
			t.Errorf("the shutdown took %s", took)
		}
		is, err := team.Member(ctx, "ann")
		ok(t, err)
		equal(t, "status", is.Status, teams.StatusStopped)
		task, err := team.Tasks().Get(ctx, "1")
		ok(t, err)
		equal(t, "task", task.Status, teams.TaskStatusPending)
		ok(t, m.Close())
	})
}

func TestShellTeammate(t *testing.T) {
	t.Parallel()
	o := folders(t)
	o.Env = []string{"GREETING=hello"}
	m := manage(t, o)
	team := create(t, m, "core")
	_, err := team.Tasks().Create(limited(t), teams.TaskConfig{Subject: "greet",
		Run: `echo "$GREETING from $CADRE_MEMBER_NAME"`})
	ok(t, err)
	_, err = m.Team().Spawn(limited(t), teams.MemberConfig{Name: "ann", Agent: teams.Shell})
	ok(t, err)
	done := first(t, team, any1[teams.TaskCompleted])
	equal(t, "result", strings.TrimSpace(done.Result), "hello from ann")
	ok(t, m.Team().Shutdown(limited(t), "ann"))
	ok(t, m.Cleanup(limited(t)))
}

func TestTeammateIdleHook(t *testing.T) {
	var asked atomic.Int32
	m := manage(t, teams.Options{Hooks: []teams.Hook{{Event: teams.HookTeammateIdle,
		Ask: func(_ context.Context, e teams.HookEvent) error {
			if asked.Add(1) == 1 {
				return teams.Reject(fmt.Sprintf("%s, there are %d tasks left", e.Member, e.Remaining))
			}
			return errors.New("a broken hook stops no work")
		}}}})
	team := create(t, m, "core", "ann")
	add(t, team.Tasks(), "look")
	ann := as(t, team, "ann")
	err := ann.Idle(limited(t), "")
	want(t, err, teams.ErrRejected)
	equal(t, "feedback", err.Error(), "ann, there are 1 tasks left")
	equal(t, "and as mail", await(t, ann.Mail(), teams.MessageSystem).Body, "The hook TeammateIdle has you "+
		"continue:\n> "+err.Error())
	is, err := ann.Member(limited(t))
	ok(t, err)
	equal(t, "status", is.Status, teams.StatusActive)
	ok(t, ann.Idle(limited(t), ""))
	ok(t, as(t, team, "lead").Idle(limited(t), "")) // the lead is not a teammate
	equal(t, "times asked", asked.Load(), 2)
}

func TestTaskCompletedHook(t *testing.T) {
	ctx := limited(t)
	m := manage(t, teams.Options{Hooks: []teams.Hook{
		{Event: teams.HookTaskCreated, Ask: func(_ context.Context, e teams.HookEvent) error {
			if strings.Contains(e.Subject, "secret") {
				return teams.Reject("no secrets")
			}
			return nil
		}},
		{Event: teams.HookTaskCompleted, Ask: func(_ context.Context, e teams.HookEvent) error {
			return teams.Reject("tests fail in " + e.Subject)
		}},
	}})
	team := create(t, m, "core", "ann")
	_, err := team.Tasks().Create(ctx, teams.TaskConfig{Subject: "secret things"})
	want(t, err, teams.ErrRejected)
	add(t, team.Tasks(), "parser")
	l := as(t, team, "ann").Tasks()
	claim, err := l.ClaimNext(ctx)
	ok(t, err)
	for n := 1; ; n++ {
		_, err = l.Complete(ctx, claim, "done")
		want(t, err, teams.ErrRejected)
		equal(t, "feedback", err.Error(), "tests fail in parser")
		e, _ := errors.AsType[*teams.Error](err)
		if e.Final {
			equal(t, "rejections until the lead is told", n, 10)
			break
		}
	}
	await(t, team.Mail(), teams.MessageSystem)
	task, err := l.Get(ctx, "1")
	ok(t, err)
	equal(t, "task", string(task.Status)+" by "+task.Owner, "in_progress by ann")
}

// TestSettingsHooks checks that the commands of settings.json are hooks too, and that both kinds
// can reject.
func TestSettingsHooks(t *testing.T) {
	t.Parallel()
	o := folders(t)
	ok(t, os.MkdirAll(o.ClaudeHome, 0o700))
	settings := `{"hooks": {"TaskCompleted": [{"hooks": [{"type": "command", "command": "echo from the command >&2; exit 2"}]}]}}`
	ok(t, os.WriteFile(filepath.Join(o.ClaudeHome, "settings.json"), []byte(settings), 0o600))
	o.Hooks = []teams.Hook{{Event: teams.HookTaskCompleted,
		Ask: func(context.Context, teams.HookEvent) error { return teams.Reject("from the function") }}}
	for _, off := range []bool{false, true} {
		o.NoSettingsHooks = off
		m := manage(t, o)
		team := create(t, m, fmt.Sprint("core-", off))
		add(t, team.Tasks(), "look")
		_, err := team.Tasks().Complete(limited(t), teams.Claim{ID: "1"}, "")
		want(t, err, teams.ErrRejected)
		equal(t, "from the command", strings.Contains(err.Error(), "from the command"), !off)
		equal(t, "from the function", strings.Contains(err.Error(), "from the function"), true)
	}
}

func TestOptions(t *testing.T) {
	for _, o := range []teams.Options{
		{Agents: map[string]teams.Agent{"external": teams.Worker{}}},
		{Agents: map[string]teams.Agent{"": teams.Worker{}}},
		{Agents: map[string]teams.Agent{"x": nil}},
		{As: "../x"},
		{ShutdownWithin: -1},
	} {
		if _, err := teams.New(o); err == nil {
			t.Errorf("%+v is accepted", o)
		}
	}
}
