package hook

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/sys/proc"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newRunner(t *testing.T, dir string, hooks ...Hook) *Runner {
	t.Helper()
	children, err := proc.Open("")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		if err := children.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	config, err := Load(filepath.Join(t.TempDir(), "none"), dir, hooks)
	if err != nil {
		t.Fatal(err)
	}
	return &Runner{Config: config, Trust: Trust{File: filepath.Join(t.TempDir(), "trust.json")}, Children: children}
}

func run(t *testing.T, r *Runner, event Event) Verdict {
	t.Helper()
	v, err := r.Run(t.Context(), event)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVerdict(t *testing.T) {
	tests := []struct {
		name     string
		event    string
		commands []string
		rejected bool
		feedback string
		stop     bool
		notes    []string // what each note contains
	}{
		{"allow", TaskCompleted, []string{"echo fine"}, false, "", false, nil},
		{"reject", TaskCompleted, []string{"echo no tests >&2; exit 2"}, true, "TaskCompleted hook feedback:\n[echo " +
			"no tests >&2; exit 2]: no tests", false, nil},
		{"reject on standard output", TaskCreated, []string{"echo vague; exit 2"}, true,
			"TaskCreated hook feedback:\n[echo vague; exit 2]: vague", false, nil},
		{"reject silently", TaskCreated, []string{"exit 2"}, true, "TaskCreated hook feedback:\n[exit 2]: rejected " +
			"without a reason", false, nil},
		{"block", TeammateIdle, []string{`echo '{"decision":"block","reason":"more to do"}'`}, true,
			"TeammateIdle hook feedback:\n" + `[echo '{"decision":"block","reason":"more to do"}']: more to do`, false,
			nil},
		{"approve", TeammateIdle, []string{`echo '{"decision":"approve"}'`}, false, "", false, nil},
		{"let idle", TeammateIdle, []string{"echo work >&2; exit 2", `echo '{"continue":false,"stopReason":"late"}'`},
			false, "", true, nil},
		{"stop does not complete a task", TaskCompleted, []string{"echo work >&2; exit 2",
			`echo '{"continue":false}'`}, true,
			"TaskCompleted hook feedback:\n[echo work >&2; exit 2]: work", true, nil},
		{"JSON counts only with status 0", TeammateIdle, []string{`echo '{"decision":"block"}'; exit 1`}, false, "",
			false, []string{"exit status 1: no message"}},
		{"broken JSON", TeammateIdle, []string{`echo '{"decision":'`}, false, "", false,
			[]string{"JSON that cannot be used"}},
		{"JSON of another shape", TeammateIdle, []string{`echo '{"decision":7}'`}, false, "", false,
			[]string{"JSON that cannot be used"}},
		{"error", TaskCompleted, []string{"echo oops >&2; exit 1"}, false, "", false, []string{"exit status 1: oops"}},
		{"not found", TaskCompleted, []string{"./no-such-script.sh"}, false, "", false, []string{"exit status 127"}},
		{"signal", TaskCompleted, []string{"kill -9 $$"}, false, "", false, []string{"ended by signal: killed"}},
		{"all run, all are heard", TaskCompleted, []string{"echo a >&2; exit 2", "exit 1", "echo b >&2; exit 2",
			"true"}, true,
			"TaskCompleted hook feedback:\n[echo a >&2; exit 2]: a\n[echo b >&2; exit 2]: b", false,
			[]string{"exit status 1"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			var hooks []Hook
			for _, command := range test.commands {
				hooks = append(hooks, Hook{Event: test.event, Command: command})
			}
			v := run(t, newRunner(t, t.TempDir(), hooks...), Event{Name: test.event, TaskID: "1"})
			if v.Rejected != test.rejected || v.Feedback != test.feedback || v.Stop != test.stop ||
				v.Ran != len(hooks) {
				t.Errorf("got %+v", v)
			}
			if len(v.Notes) != len(test.notes) {
				t.Fatalf("got notes %q", v.Notes)
			}
			for i, want := range test.notes {
				if !strings.Contains(v.Notes[i], want) {
					t.Errorf("note %q does not say %q", v.Notes[i], want)
				}
			}
		})
	}
}

func TestWhatACommandGets(t *testing.T) {
	idle := Event{Name: TeammateIdle, TeamID: "t-1", TeamName: "blue", MemberID: "m-2", Member: "alice", Role: "qa",
		SessionID:      "s",
		CompletedTasks: []string{"1", "4"}, RemainingTasks: 3, IdleSince: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}
	task := Event{TeamID: "t-1", TeamName: "blue", MemberID: "m-2", Member: "alice", Role: "qa", TaskID: "7",
		TaskName:        "b",
		TaskSubject:     "build\x00 it",
		TaskDescription: "two\nlines", DependentTasks: []string{"8", "9"}, Duration: 1500 * time.Millisecond}
	created, completed := task, task
	created.Name, completed.Name, completed.Result = TaskCreated, TaskCompleted, "12 tests passed"
	tests := []struct {
		event Event
		json  string
		env   string
	}{
		{idle, `{"session_id":"s","cwd":"DIR","hook_event_name":"TeammateIdle","teammate_name":"alice","team_name":"blue","team_id":"t-1","member_id":"m-2",
			"completed_task_ids":["1","4"],"remaining_tasks":3,"idle_since":"2026-01-02T03:04:05Z"}`,
			"CADRE_COMPLETED_TASKS=1,4 CADRE_EVENT_MEMBER=alice CADRE_HOOK_EVENT=TeammateIdle CADRE_MEMBER_ID=m-2 " +
				"CADRE_MEMBER_NAME=alice CADRE_PROJECT_DIR=DIR CADRE_REMAINING_TASKS=3 CADRE_TEAM=blue " +
				"CADRE_TEAM_ID=t-1 CADRE_TEAM_NAME=blue CADRE_TEAM_ROLE=qa"},
		{Event{Name: TeammateIdle},
			`{"cwd":"DIR","hook_event_name":"TeammateIdle","completed_task_ids":[],"remaining_tasks":0}`,
			"CADRE_COMPLETED_TASKS= CADRE_EVENT_MEMBER= CADRE_HOOK_EVENT=TeammateIdle CADRE_MEMBER_ID= " +
				"CADRE_MEMBER_NAME= CADRE_PROJECT_DIR=DIR CADRE_REMAINING_TASKS=0 CADRE_TEAM= CADRE_TEAM_ID= " +
				"CADRE_TEAM_NAME= CADRE_TEAM_ROLE="},
		{created, `{"cwd":"DIR","hook_event_name":"TaskCreated","teammate_name":"alice","team_name":"blue","task_id":"7","task_subject":"build\u0000 it","task_description":"two\nlines",
			"team_id":"t-1","member_id":"m-2","dependent_task_ids":["8","9"]}`,
			"CADRE_DEPENDENT_TASKS=8,9 CADRE_EVENT_MEMBER=alice CADRE_HOOK_EVENT=TaskCreated CADRE_MEMBER_ID=m-2 " +
				"CADRE_MEMBER_NAME=alice CADRE_PROJECT_DIR=DIR CADRE_TASK_ID=7 CADRE_TASK_NAME=b " +
				"CADRE_TASK_SUBJECT=build it CADRE_TASK_TITLE=build it CADRE_TEAM=blue CADRE_TEAM_ID=t-1 " +
				"CADRE_TEAM_NAME=blue CADRE_TEAM_ROLE=qa"},
		{completed, `{"cwd":"DIR","hook_event_name":"TaskCompleted","teammate_name":"alice","team_name":"blue","task_id":"7","task_subject":"build\u0000 it","task_description":"two\nlines",
			"team_id":"t-1","member_id":"m-2","dependent_task_ids":["8","9"],"duration_ms":1500,"result":"12 tests passed"}`,
			"CADRE_COMPLETED_BY=alice CADRE_DEPENDENT_TASKS=8,9 CADRE_EVENT_MEMBER=alice " +
				"CADRE_HOOK_EVENT=TaskCompleted CADRE_MEMBER_ID=m-2 CADRE_MEMBER_NAME=alice CADRE_PROJECT_DIR=DIR " +
				"CADRE_TASK_DURATION=1500 CADRE_TASK_ID=7 CADRE_TASK_NAME=b CADRE_TASK_SUBJECT=build it " +
				"CADRE_TASK_TITLE=build it CADRE_TEAM=blue CADRE_TEAM_ID=t-1 CADRE_TEAM_NAME=blue CADRE_TEAM_ROLE=qa"},
	}
	for _, test := range tests {
		t.Run(test.event.Name, func(t *testing.T) {
			dir := t.TempDir()
			r := newRunner(t, dir, Hook{Event: test.event.Name,
				Command: `cat >input; pwd >folder; env | grep '^CADRE_' | grep -v '^CADRE_PROC=\|^CADRE_HOME=' | LC_ALL=C sort >env; test "$CLAUDE_PROJECT_DIR" = "$CADRE_PROJECT_DIR"`})
			if v := run(t, r, test.event); len(v.Notes) > 0 {
				t.Fatal(v.Notes)
			}
			read := func(name string) string {
				data, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					t.Fatal(err)
				}
				return strings.ReplaceAll(strings.TrimSuffix(string(data), "\n"), r.Config.Dir, "DIR")
			}
			var got, want any
			if err := errors.Join(json.Unmarshal([]byte(read("input")), &got), json.Unmarshal([]byte(test.json),
				&want)); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
			if env := strings.ReplaceAll(read("env"), "\n", " "); env != test.env {
				t.Errorf("got  %s\nwant %s", env, test.env)
			}
			if read("folder") != "DIR" {
				t.Errorf("ran in %s", read("folder"))
			}
		})
	}
}

func TestTimeoutEndsTheGroup(t *testing.T) {
	dir := t.TempDir()
	r := newRunner(t, dir,
		Hook{Event: TaskCompleted, Timeout: 300 * time.Millisecond, Command: "(trap '' TERM; sleep 1000) & echo $! " +
			">pids; sleep 1000 & echo $! >>pids; trap '' TERM; wait"},
		Hook{Event: TaskCompleted, Command: "echo next >&2; exit 2"})
	v := run(t, r, Event{Name: TaskCompleted})
	if !v.Rejected || len(v.Notes) != 1 || !strings.Contains(v.Notes[0], "did not end within 300 ms and was killed") {
		t.Errorf("got %+v", v)
	}
	data, err := os.ReadFile(filepath.Join(dir, "pids"))
	if err != nil {
		t.Fatal(err)
	}
	pids := strings.Fields(string(data))
	if len(pids) != 2 {
		t.Fatalf("got %q", data)
	}
	for _, text := range pids {
		pid, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		if started, err := proc.StartTime(pid); err == nil && proc.Alive(pid, started) {
			t.Errorf("process %d is still running", pid)
		}
	}
}

func TestContextEnds(t *testing.T) {
	r := newRunner(t, t.TempDir(), Hook{Event: TaskCreated, Command: "sleep 1000"})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if v, err := r.Run(ctx, Event{Name: TaskCreated}); !errors.Is(err, context.DeadlineExceeded) || v.Rejected {
		t.Errorf("got %+v, %v", v, err)
	}
}

func TestBigOutputAndInput(t *testing.T) {
	r := newRunner(t, t.TempDir(), Hook{Event: TaskCompleted, Command: "head -c 3000000 /dev/zero | tr '\\0' x " +
		">&2; exit 2"})
	ids := strings.Split(strings.Repeat("123456,", 100_000), ",")
	v := run(t, r, Event{Name: TaskCompleted, TaskDescription: strings.Repeat("é", 1<<20), DependentTasks: ids,
		TaskSubject: strings.Repeat("é", 1<<17)})
	if !v.Rejected || len(v.Feedback) > 3*keepOutput || !strings.Contains(v.Feedback, "bytes left out") {
		t.Errorf("got %d bytes of feedback, notes %v", len(v.Feedback), v.Notes)
	}
}

func TestCannotStart(t *testing.T) {
	dir := t.TempDir()
	r := newRunner(t, dir, Hook{Event: TaskCompleted, Command: "exit 2"})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if v := run(t, r, Event{Name: TaskCompleted}); v.Rejected || len(v.Notes) != 1 ||
		!strings.Contains(v.Notes[0], "could not be run") {
		t.Errorf("got %+v", v)
	}
}

func TestUnknownEvent(t *testing.T) {
	r := newRunner(t, t.TempDir())
	if _, err := r.Run(t.Context(), Event{Name: "PreToolUse"}); err == nil {
		t.Error("no error")
	}
	if v := run(t, r, Event{Name: TaskCreated}); !reflect.DeepEqual(v, Verdict{}) {
		t.Errorf("got %+v", v)
	}
}

// TestBackgroundDoesNotHoldUp checks that a hook's background processes end with it, and that a
// pipe they hold causes no delay.
func TestBackgroundDoesNotHoldUp(t *testing.T) {
	dir := t.TempDir()
	r := newRunner(t, dir, Hook{Event: TaskCompleted, Command: "sleep 1000 & echo $! >pid; echo bad >&2; exit 2"})
	if v := run(t, r, Event{Name: TaskCompleted}); !v.Rejected {
		t.Errorf("got %+v", v)
	}
	data, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	if started, err := proc.StartTime(pid); err == nil && proc.Alive(pid, started) {
		t.Error("the background process is still running")
		syscall.Kill(pid, syscall.SIGKILL)
	}
}

// TestDocumented checks that docs/hooks.md names every field of what a command reads.
func TestDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/hooks.md")
	if err != nil {
		t.Fatal(err)
	}
	fields := reflect.TypeFor[payload]()
	for i := range fields.NumField() {
		name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
		if !strings.Contains(string(page), "| `"+name+"` |") {
			t.Errorf("docs/hooks.md has no row for the field %s", name)
		}
	}
}
