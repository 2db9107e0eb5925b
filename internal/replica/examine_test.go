package replica_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/hook"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// checks runs checks in the team's directory, and counts them in the file ran.
func checks(ctx context.Context, of team.Team, t team.Task, member string) (string, error) {
	c := exec.CommandContext(ctx, "/bin/sh", "-c", "echo "+member+" >>ran; "+t.Check.Run)
	c.Dir = of.Dir
	out, err := c.CombinedOutput()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed && ctx.Err() == nil {
		return string(out) + exit.String(), nil
	}
	return "", err
}

// TestAResultThatDoesNotFit checks that every error goes back to the member, and that the third
// such result ends the attempt.
func TestAResultThatDoesNotFit(t *testing.T) {
	p := newPlace(t, &team.CreateTask{Subject: "look", Retries: 1,
		Schema: json.RawMessage(`{"type": "object", "required": ["verdict", "why"]}`)})
	rep := p.open(replica.Options{})
	do(t, rep, "ann", &team.ClaimTask{Task: "1"})
	for n := range team.MaxMisfits {
		_, err := rep.Do(within(t), team.Command{Actor: "ann", Body: &team.CompleteTask{Task: "1", Result: "{}"}})
		rejected, is := errors.AsType[*replica.Rejected](err)
		if !is || team.CodeOf(err) != team.Rejected || !strings.Contains(err.Error(),
			"- verdict: is missing\n- why: is missing") {
			t.Fatalf("completing: %v", err)
		}
		if last := n == team.MaxMisfits-1; rejected.Ended() != last || rejected.Final() != last {
			t.Errorf("rejection %d ends the attempt: %t", n+1, rejected.Ended())
		}
	}
	if now := task(rep, "1"); now.Status != team.Pending || now.Failures != 1 {
		t.Fatalf("the task is %+v", now)
	}
	do(t, rep, "ann", &team.ClaimTask{Task: "1"})
	do(t, rep, "ann", &team.CompleteTask{Task: "1", Result: `{"verdict": "good", "why": "it is"}`})
}

// TestACheck checks that a completion waits for the check, whose output goes back to the member,
// and that nobody gets past it: not a person, not a caller that says that it was examined, and not
// a replica that runs no checks.
func TestACheck(t *testing.T) {
	p := newPlace(t, &team.CreateTask{Subject: "build", Check: &team.TaskCheck{Run: "test -e built || { echo no build; exit 3; }"}})
	asked := 0
	rep := p.open(replica.Options{Check: checks, Hooks: func(context.Context, team.Team, hook.Event) (hook.Verdict,
		error) {
		asked++
		return hook.Verdict{}, nil
	}})
	none := p.open(replica.Options{})
	do(t, rep, "ann", &team.ClaimTask{Task: "1"})
	complete := &team.CompleteTask{Task: "1", Examined: true}
	_, err := none.Do(within(t), team.Command{Actor: "ann", Body: complete})
	if team.CodeOf(err) != team.NotReady {
		t.Errorf("without checks: %v", err)
	}
	for _, actor := range []string{"ann", team.User} {
		_, err = rep.Do(within(t), team.Command{Actor: actor, Body: complete})
		if team.CodeOf(err) != team.Rejected || !strings.Contains(err.Error(), "no build") ||
			actor == "ann" && !strings.Contains(err.Error(), "round 1 of 10") {
			t.Errorf("%s completes: %v", actor, err)
		}
	}
	if got := task(rep, "1").Rejected; got == nil || got.Checks != 1 || got.By != team.ByCheck {
		t.Errorf("the task was sent back: %+v", got)
	}
	if asked != 0 {
		t.Error("the hooks were asked before the check had passed")
	}
	if err := os.WriteFile(filepath.Join(p.dir, "built"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	id := replica.NewID()
	for range 2 { // the second time it is done already, and nothing runs
		if _, err := rep.Do(within(t), team.Command{ID: id, Actor: "ann", Body: complete}); err != nil {
			t.Fatal(err)
		}
	}
	ran, err := os.ReadFile(filepath.Join(p.dir, "ran"))
	if err != nil || string(ran) != "ann\n@user\nann\n" || asked != 1 {
		t.Errorf("the check ran for %q (%v), and the hooks were asked %d times", ran, err, asked)
	}
}

// TestACheckThatIsInterrupted checks that an examination that ends half-way records nothing.
func TestACheckThatIsInterrupted(t *testing.T) {
	p := newPlace(t, &team.CreateTask{Subject: "build", Check: &team.TaskCheck{Run: "true"}})
	ctx, cancel := context.WithCancel(within(t))
	rep := p.open(replica.Options{Check: func(ctx context.Context, _ team.Team, _ team.Task, _ string) (string, error) {
		cancel()
		<-ctx.Done()
		return "", ctx.Err()
	}})
	do(t, rep, "ann", &team.ClaimTask{Task: "1"})
	seq := rep.Seq()
	_, err := rep.Do(ctx, team.Command{Actor: "ann", Body: &team.CompleteTask{Task: "1"}})
	if !errors.Is(err, context.Canceled) || rep.Seq() != seq {
		t.Errorf("completing: %v, and there are %d records more", err, rep.Seq()-seq)
	}
}

// TestAnInvalidSchema checks that no task gets a schema that nothing can fit or be checked against.
func TestAnInvalidSchema(t *testing.T) {
	rep := newPlace(t).open(replica.Options{})
	body := &team.CreateTask{Subject: "look", Schema: json.RawMessage(`{"properties": {"a": {"type": "text"}}}`)}
	for _, one := range []team.Body{body, &team.Batch{Bodies: []team.Body{body}}} {
		_, err := rep.Do(within(t), team.Command{Actor: "ann", Body: one})
		if team.CodeOf(err) != team.Invalid || !strings.Contains(err.Error(), "/properties/a/type") {
			t.Errorf("creating: %v", err)
		}
	}
}

// TestASubmissionIsExaminedOnce checks that the check of a task that others verify runs when it is
// submitted, and not again when a person accepts that by hand; with another result it does.
func TestASubmissionIsExaminedOnce(t *testing.T) {
	p := newPlace(t, &team.CreateTask{Subject: "build", Check: &team.TaskCheck{Run: "test -e built"},
		Verify: &team.Verify{By: "reviewer"}})
	ran := 0
	rep := p.open(replica.Options{Check: func(context.Context, team.Team, team.Task, string) (string, error) {
		ran++
		if ran == 2 {
			return "no build", nil
		}
		return "", nil
	}})
	do(t, rep, "ann", &team.ClaimTask{Task: "1"})
	do(t, rep, "ann", &team.CompleteTask{Task: "1", Result: "built"})
	other := &team.CompleteTask{Task: "1", Result: "another"}
	if _, err := rep.Do(within(t), team.Command{Actor: team.User, Body: other}); team.CodeOf(err) != team.Rejected {
		t.Errorf("another result is accepted: %v", err)
	}
	do(t, rep, team.User, &team.CompleteTask{Task: "1"})
	if now := task(rep, "1"); ran != 2 || now.Status != team.Completed || now.Result != "built" {
		t.Errorf("after %d checks the task is %+v", ran, now)
	}
}
