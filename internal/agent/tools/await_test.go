package tools_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"cadre/internal/agent/tools"
	"cadre/internal/team"
)

// outsideBench returns a team that an agent leads in its own session, with a working shell.
func outsideBench(t *testing.T) (*bench, *tools.Set) {
	t.Helper()
	b := newBench(t, &team.AttachLead{Session: "mcp-1", Agent: true}, &team.SpawnMember{Name: "ann", Agent: team.Shell},
		&team.CreateTask{Subject: "Look"})
	o := b.options("lead")
	o.Wait = b.Wait
	return b, tools.New(o)
}

type answer struct {
	text   string
	failed bool
}

// waits calls TeamStatus. It returns, once the call waits, a channel for the answer.
func waits(t *testing.T, ctx context.Context, o tools.Options, seconds string) <-chan answer {
	t.Helper()
	waiting, answers := make(chan struct{}, 16), make(chan answer, 1)
	wait := o.Wait
	o.Wait = func(ctx context.Context, after int64) error {
		waiting <- struct{}{}
		return wait(ctx, after)
	}
	go func() {
		text, failed := tools.New(o).Call(ctx, "TeamStatus", json.RawMessage(`{"wait_seconds":`+seconds+`}`))
		answers <- answer{text, failed}
	}()
	select {
	case <-waiting:
	case a := <-answers:
		t.Fatalf("it does not wait: %s", a.text)
	}
	return answers
}

// TestStatusWaits checks that the call ends with the first news, which follows the result, and with
// nothing else.
func TestStatusWaits(t *testing.T) {
	b, tools := outsideBench(t)
	o := b.options("lead")
	o.Wait = b.Wait
	before := time.Now()
	answers := waits(t, b.ctx, o, "600")
	b.do("ann", &team.ClaimTask{Task: "1"})
	b.do(team.User, &team.CreateTask{Subject: "More"})
	select {
	case a := <-answers:
		t.Fatalf("a claim ends it: %s", a.text)
	default:
	}
	b.do("ann", &team.CompleteTask{Task: "1", Result: "all is well"})
	a := <-answers
	if a.failed || !strings.Contains(a.text, "1 completed") || !strings.Contains(a.text, "----\n") ||
		!strings.Contains(a.text, "Task 1 (Look) is completed by ann.\n> all is well") {
		t.Errorf("%v %s", a.failed, a.text)
	}
	if long := time.Since(before); long > 20*time.Second {
		t.Errorf("it took %s", long)
	}
	for tool, want := range map[string]string{"TaskList": `#1 [completed] Look (ann): "all is well"`,
		"TaskGet": "result:\n  all is well"} {
		if text, failed := tools.Call(b.ctx, tool,
			json.RawMessage(map[string]string{"TaskList": "{}", "TaskGet": `{"taskId":"1"}`}[tool])); failed ||
			!strings.Contains(text, want) {
			t.Errorf("%s: %s", tool, text)
		}
	}
}

// TestStatusWaitIsBounded checks the limits of the wait: of the input, of the agent and of cadre.
func TestStatusWaitIsBounded(t *testing.T) {
	b, _ := outsideBench(t)
	o := b.options("lead")
	var bound time.Duration
	o.Wait = func(ctx context.Context, _ int64) error { // no news comes
		deadline, _ := ctx.Deadline()
		bound = time.Until(deadline).Round(time.Second)
		ended, cancel := context.WithDeadline(ctx, time.Now())
		defer cancel()
		<-ended.Done()
		return errors.New("the disk is gone")
	}
	call := func(input string) (string, bool) {
		return tools.New(o).Call(t.Context(), "TeamStatus", json.RawMessage(input))
	}
	for input, want := range map[string]time.Duration{`{"wait_seconds":7}`: 7 * time.Second,
		`{"waitSeconds":"3600"}`: tools.MaxWait} {
		if text, failed := call(input); !failed || !strings.Contains(text, "the disk is gone") || bound != want {
			t.Errorf("%s waits %s: %s", input, bound, text)
		}
	}
	o.LongestWait = func() time.Duration { return 50 * time.Second }
	if _, failed := call(`{"wait_seconds":600}`); !failed || bound != 50*time.Second {
		t.Errorf("it waits %s", bound)
	}
	o.LongestWait = func() time.Duration { return 20 * time.Millisecond }
	o.Wait = b.Wait
	if text, failed := call(`{"wait_seconds":600}`); failed || !strings.HasPrefix(text, "No news in 0 s.") {
		t.Error(text)
	}
	if text, failed := call(`{"wait_seconds":3601}`); !failed ||
		!strings.Contains(text, "wait_seconds takes a number of seconds from 0 to 3600") {
		t.Error(text)
	}
}

// TestStatusWaitIsCancelled checks that a call that its client cancels takes no mail.
func TestStatusWaitIsCancelled(t *testing.T) {
	b, tools := outsideBench(t)
	o := b.options("lead")
	o.Wait = b.Wait
	ctx, cancel := context.WithCancel(b.ctx)
	answers := waits(t, ctx, o, "600")
	cancel()
	if a := <-answers; !a.failed || !strings.Contains(a.text, "was cancelled") {
		t.Errorf("%v %s", a.failed, a.text)
	}
	b.do("ann", &team.SendMessage{To: "lead", Body: "I begin."})
	if text, failed := tools.Call(b.ctx, "TeamStatus", json.RawMessage(`{"wait_seconds":600}`)); failed ||
		!strings.Contains(text, "I begin.") || strings.Contains(text, "No news") {
		t.Error(text)
	}
}

// TestStatusDoesNotWait checks that the call does not wait if no news can come, or if the session
// will be woken.
func TestStatusDoesNotWait(t *testing.T) {
	b := newBench(t, &team.AttachLead{Session: "mcp-1", Agent: true})
	o := b.options("lead")
	o.Wait = b.Wait
	call := func() string {
		text, failed := tools.New(o).Call(b.ctx, "TeamStatus", json.RawMessage(`{"wait_seconds":600}`))
		if failed {
			t.Error(text)
		}
		return text
	}
	if text := call(); !strings.HasPrefix(text, "You did not wait: no other member is working") {
		t.Error(text)
	}
	b.do(team.User, &team.SpawnMember{Name: "eve", Agent: team.External}) // whose activity is unknown
	o.LongestWait = func() time.Duration { return time.Millisecond }
	if text := call(); !strings.HasPrefix(text, "No news in 0 s") {
		t.Error(text)
	}
	o.Wait = nil
	if text := call(); !strings.HasPrefix(text, "There is no need to wait: end your turn") {
		t.Error(text)
	}
	for _, tool := range tools.New(o).List() {
		if tool.Name == "TeamStatus" && strings.Contains(string(tool.Schema), "wait_seconds") {
			t.Errorf("it is offered to wait: %s", tool.Schema)
		}
	}
	o.Wait = b.Wait
	for _, tool := range tools.New(o).List() {
		if tool.Name == "TeamStatus" && !strings.Contains(string(tool.Schema), `"wait_seconds":{"type":"integer"`) {
			t.Errorf("it is not offered to wait: %s", tool.Schema)
		}
	}
}
