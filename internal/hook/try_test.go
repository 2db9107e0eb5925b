package hook

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestTry(t *testing.T) {
	tests := []struct {
		name, command string
		timeout       time.Duration
		want          Trial // without notes and duration
		note          string
	}{
		{"allows", "echo fine; echo but >&2", 0, Trial{Result: Result{Stdout: "fine\n", Stderr: "but\n"}}, ""},
		{"rejects", "echo out; echo no >&2; exit 2", 0,
			Trial{Result: Result{ExitCode: 2, Stdout: "out\n", Stderr: "no\n"}, Rejected: true, Feedback: "no"}, ""},
		{"blocks", `echo '{"decision":"block","reason":"more"}'`, 0, Trial{Result: Result{
			Stdout: `{"decision":"block","reason":"more"}` + "\n"}, Rejected: true, Feedback: "more"}, ""},
		{"stops", `echo '{"continue":false,"stopReason":"late"}'`, 0, Trial{Result: Result{
			Stdout: `{"continue":false,"stopReason":"late"}` + "\n"}, Stop: true, Reason: "late"}, ""},
		{"breaks", "echo oh >&2; exit 7", 0, Trial{Result: Result{ExitCode: 7, Stderr: "oh\n"}}, "exit status 7"},
		{"is killed", "kill -9 $$", 0, Trial{Result: Result{ExitCode: -1, Signal: "killed"}}, "ended by signal"},
		{"is late", "echo begun; sleep 1000", 300 * time.Millisecond,
			Trial{Result: Result{ExitCode: -1, Signal: "killed", Stdout: "begun\n", TimedOut: true}}, "within 300 ms"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h := Hook{Event: TeammateIdle, Command: test.command, Timeout: test.timeout, Off: true}
			r := newRunner(t, t.TempDir())
			got, err := r.Try(t.Context(), h, Sample(h.Event), nil)
			if err != nil {
				t.Fatal(err)
			}
			if notes := strings.Join(got.Notes, "\n"); !strings.Contains(notes, test.note) ||
				(test.note == "") != (notes == "") {
				t.Errorf("notes %q", notes)
			}
			// the timeout includes the start of the process, which takes a while on a busy machine
			if got.Duration <= 0 || got.Duration < test.timeout/2 {
				t.Errorf("it took %v", got.Duration)
			}
			got.Notes, got.Duration = nil, 0
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got  %+v\nwant %+v", got, test.want)
			}
		})
	}
}

func TestTryInput(t *testing.T) {
	dir := t.TempDir()
	r := newRunner(t, dir)
	h := Hook{Event: TaskCompleted, Command: "cat; echo $CADRE_HOOK_EVENT $CADRE_TASK_ID $CADRE_TASK_DURATION >&2"}
	input := `{"task_id": "7", "duration_ms": 1500, "later": true}`
	event, err := ReadEvent([]byte(input))
	if err != nil {
		t.Fatal(err)
	}
	got, err := r.Try(t.Context(), h, event, []byte(input))
	if err != nil || got.Stdout != input || got.Stderr != "TaskCompleted 7 1500\n" {
		t.Errorf("got %+v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.Try(ctx, h, event, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if got, err := r.Try(t.Context(), h, event, nil); err != nil || got.Err == nil || got.ExitCode != -1 ||
		got.Rejected {
		t.Errorf("in no folder: %+v, %v", got, err)
	}
}

// TestTryNeedsTrust checks that a project's hook is not run before it is trusted, and not after it
// changed.
func TestTryNeedsTrust(t *testing.T) {
	dir := t.TempDir()
	settings := write(t, filepath.Join(dir, ".claude", "settings.json"),
		`{"hooks":{"TaskCreated":[{"hooks":[{"type":"command","command":"touch ran"}]}]}}`)
	r := newRunner(t, dir)
	try := func() error {
		_, err := r.Try(t.Context(), r.Config.Hooks[0], Sample(TaskCreated), nil)
		return err
	}
	if err := try(); !errors.Is(err, ErrUntrusted) {
		t.Errorf("untrusted: %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "ran")); err == nil {
		t.Error("it ran")
	}
	if err := record(r.Trust, r.Config, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := try(); err != nil {
		t.Errorf("trusted: %v", err)
	}
	write(t, settings, `{"hooks":{"TaskCreated":[{"hooks":[{"type":"command","command":"touch more"}]}]}}`)
	var err error
	if r.Config, err = Load(filepath.Join(dir, "none"), dir, nil); err != nil {
		t.Fatal(err)
	}
	if err := try(); !errors.Is(err, ErrUntrusted) {
		t.Errorf("changed: %v", err)
	}
}

// TestEventIsReadAsWritten checks that what a hook gets can be kept and given to it again.
func TestEventIsReadAsWritten(t *testing.T) {
	for _, name := range Events() {
		want := Sample(name)
		if name == TaskCreated {
			want.DependentTasks = []string{}
		}
		want.Role, want.SessionID, want.TranscriptPath = "", "s-1", "/t" // a role is in the environment alone
		data, err := want.input("/dir")
		if err != nil {
			t.Fatal(err)
		}
		got, err := ReadEvent(data)
		if err != nil {
			t.Fatal(err)
		}
		got.IdleSince, want.IdleSince = got.IdleSince.UTC(), want.IdleSince.UTC()
		if !reflect.DeepEqual(got, want) {
			t.Errorf("got  %+v\nwant %+v", got, want)
		}
	}
	for _, bad := range []string{"", "x", "[]", `{"task_id": 7}`, `{} {}`, `{"duration_ms": "x"}`,
		`{"duration_ms": 1.5}`} {
		if e, err := ReadEvent([]byte(bad)); err == nil {
			t.Errorf("%q is read as %+v", bad, e)
		}
	}
}

func TestID(t *testing.T) {
	one := Hook{Event: TaskCompleted, Command: "make lint", Source: User, File: "/a", Line: 3, Timeout: time.Second}
	moved := Hook{Event: TaskCompleted, Command: "make lint", Source: User, File: "/b", Matcher: "x"}
	if one.ID() != moved.ID() || one.ID() != "b9ceb546" { // IDs are in histories: they stay as they are
		t.Errorf("got %s and %s", one.ID(), moved.ID())
	}
	seen := map[string]Hook{}
	for _, h := range []Hook{one, {Event: TaskCreated, Command: "make lint", Source: User},
		{Event: TaskCompleted, Command: "make lint", Source: Project},
		{Event: TaskCompleted, Command: "make", Source: User},
		{Event: TaskCompleted, Command: "", Source: "userTaskCompleted"}} {
		if before, taken := seen[h.ID()]; taken {
			t.Errorf("%+v and %+v share an ID", before, h)
		}
		seen[h.ID()] = h
	}
}

func TestSwitchedOff(t *testing.T) {
	r := newRunner(t, t.TempDir(), Hook{Event: TaskCreated, Command: "echo no >&2; exit 2"},
		Hook{Event: TaskCreated, Command: "true"}, Hook{Event: TaskCompleted, Command: "exit 2"})
	off := r.Config.Hooks[0].ID()
	r.Config.SwitchOff(func(id string) bool { return id == off })
	if v := run(t, r, Event{Name: TaskCreated}); v.Rejected || v.Ran != 1 || len(v.Notes) > 0 {
		t.Errorf("got %+v", v)
	}
	if v := run(t, r, Event{Name: TaskCompleted}); !v.Rejected {
		t.Errorf("another hook: %+v", v)
	}
}
