package replica_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/hook"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// gated opens a replica with the user's hooks, which are real commands, for the given events.
func (p place) gated(hooks map[string]string) *replica.Replica {
	p.t.Helper()
	claude := p.t.TempDir()
	var events []string
	for event, command := range hooks {
		events = append(events, `"`+event+`": [{"hooks": [{"type": "command", "command": "`+command+`"}]}]`)
	}
	settings := `{"hooks": {` + strings.Join(events, ", ") + `}}`
	if err := os.WriteFile(filepath.Join(claude, "settings.json"), []byte(settings), 0o600); err != nil {
		p.t.Fatal(err)
	}
	children, err := proc.Open("")
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { children.Close(context.Background()) })
	trust := hook.Trust{File: filepath.Join(claude, "trust.json")}
	return p.open(replica.Options{Hooks: replica.SettingsHooks(claude, trust, hook.Runner{Children: children})})
}

// TestUntrustedHooksAreAdvised checks that a hook that was skipped because it is not trusted is a
// note with the hint that helps, and a line of the log where no caller takes notes.
func TestUntrustedHooksAreAdvised(t *testing.T) {
	p := newPlace(t)
	skips := func(context.Context, team.Team, hook.Event) (hook.Verdict, error) {
		return hook.Verdict{Untrusted: []string{"the hook was skipped"}}, nil
	}
	var notes []team.Advice
	var logged []string
	do(t, p.open(replica.Options{Hooks: skips, Advise: func(n team.Advice) { notes = append(notes, n) }}), "ann",
		&team.CreateTask{Subject: "one"})
	do(t, p.open(replica.Options{Hooks: skips, Log: func(text string) { logged = append(logged, text) }}), "ann",
		&team.CreateTask{Subject: "two"})
	want := []team.Advice{{Text: "the hook was skipped", Hints: []team.Hint{{Action: team.ActTrust, Dir: p.dir}}}}
	if !reflect.DeepEqual(notes, want) || !slices.Equal(logged, []string{"the hook was skipped"}) {
		t.Errorf("got the notes %+v and the log %q, want %+v and the text alone", notes, logged, want)
	}
}

const no = "echo not yet >&2; exit 2"

func TestAHookKeepsATaskInProgress(t *testing.T) {
	p := newPlace(t, &team.CreateTask{Subject: "look"})
	rep := p.gated(map[string]string{"TaskCompleted": no})
	do(t, rep, "ann", &team.ClaimTask{Task: "1"})
	complete := team.Command{ID: replica.NewID(), Actor: "ann", Body: &team.CompleteTask{Task: "1", Result: "found"}}
	for strike := 1; strike <= team.MaxStrikes; strike++ {
		_, err := rep.Do(within(t), complete)
		rejected, ok := errors.AsType[*replica.Rejected](err)
		if !ok || team.CodeOf(err) != team.Rejected || !strings.Contains(err.Error(), "not yet") {
			t.Fatalf("completing: %v", err)
		}
		if rejected.Final() != (strike == team.MaxStrikes) {
			t.Errorf("rejection %d is final: %t", strike, rejected.Final())
		}
	}
	if status := task(rep, "1").Status; status != team.InProgress {
		t.Errorf("the task is %s", status)
	}
	if mail := inbox(rep, "lead"); len(mail) == 0 || !strings.Contains(mail[0].Body, "10 times in a row") {
		t.Errorf("the lead has %v", mail)
	}
	// The same command succeeds once no hook rejects it: a rejection does not use up its id.
	if r, err := p.open(replica.Options{}).Do(within(t), complete); err != nil || r.Repeated {
		t.Errorf("without the hook: %v, repeated: %t", err, r.Repeated)
	}
}

func TestAHookKeepsATaskOffTheList(t *testing.T) {
	rep := newPlace(t).gated(map[string]string{"TaskCreated": no})
	_, err := rep.Do(within(t), team.Command{Actor: "ann", Body: &team.CreateTask{Subject: "look"}})
	if team.CodeOf(err) != team.Rejected {
		t.Errorf("creating: %v", err)
	}
	if task(rep, "1").ID != "" {
		t.Error("the task is on the list")
	}
}

// TestAHookKeepsATeammateAtWork checks that a teammate that may not go idle is told why. The lead
// may always go idle.
func TestAHookKeepsATeammateAtWork(t *testing.T) {
	rep := newPlace(t).gated(map[string]string{"TeammateIdle": no})
	idle := func(member string) error {
		_, err := rep.Do(within(t), team.Command{Actor: member, Body: &team.ReportStatus{Member: member,
			Status: team.Idle}})
		return err
	}
	for range team.MaxStrikes - 1 {
		if err := idle("ann"); team.CodeOf(err) != team.Rejected {
			t.Fatalf("idling: %v", err)
		}
	}
	if mail := inbox(rep, "ann"); len(mail) != team.MaxStrikes-1 || !strings.Contains(mail[0].Body, "not yet") {
		t.Errorf("ann has %d messages", len(mail))
	}
	if err := idle("ann"); err != nil { // the lead has been notified
		t.Errorf("idling for the tenth time: %v", err)
	}
	if err := idle("lead"); err != nil {
		t.Errorf("the lead idles: %v", err)
	}
}

// TestHooksAreAskedOnlyWhatCanHappen checks that hooks are not asked about what the team refuses,
// or has done already.
func TestHooksAreAskedOnlyWhatCanHappen(t *testing.T) {
	p := newPlace(t, &team.CreateTask{Subject: "look"})
	asked := filepath.Join(p.dir, "asked")
	rep := p.gated(map[string]string{"TaskCompleted": "echo $CADRE_TASK_ID $CADRE_MEMBER_NAME >>" + asked})
	if _, err := rep.Do(within(t), team.Command{Actor: "bob",
		Body: &team.CompleteTask{Task: "1"}}); team.CodeOf(err) == "" {
		t.Errorf("bob completes what he does not hold: %v", err)
	}
	do(t, rep, "ann", &team.ClaimTask{Task: "1"})
	complete := team.Command{ID: replica.NewID(), Actor: "ann", Body: &team.CompleteTask{Task: "1"}}
	for range 3 {
		if _, err := rep.Do(within(t), complete); err != nil {
			t.Fatal(err)
		}
	}
	if said, err := os.ReadFile(asked); err != nil || string(said) != "1 ann\n" {
		t.Errorf("the hook was asked: %q, %v", said, err)
	}
}

// TestUnreadableHooks checks that hooks that cannot be read reject everything.
func TestUnreadableHooks(t *testing.T) {
	p := newPlace(t)
	rep := p.gated(map[string]string{"TaskCreated": `\`})
	_, err := rep.Do(within(t), team.Command{Actor: "ann", Body: &team.CreateTask{Subject: "look"}})
	if team.CodeOf(err) != team.NotReady || task(rep, "1").ID != "" {
		t.Errorf("creating: %v", err)
	}
}

// TestHooksOfTheTeamFile checks that the team's own hooks run without a settings file.
func TestHooksOfTheTeamFile(t *testing.T) {
	p := newPlace(t)
	own := p.home
	dir := t.TempDir()
	err := own.Create("other", []team.Command{{ID: replica.NewID(), Actor: team.User, At: replica.Now(),
		Body: &team.CreateTeam{
			TeamID: "other-1", Name: "other", Dir: dir,
			Hooks: []team.Hook{{Event: "TaskCreated", Command: "pwd >&2; exit 2", Timeout: 5 * time.Second}}}}})
	if err != nil {
		t.Fatal(err)
	}
	j, _, err := own.Open("other", nil)
	if err != nil {
		t.Fatal(err)
	}
	children, err := proc.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer children.Close(context.Background())
	rep, err := replica.Open(t.Context(), j, replica.Options{Hooks: replica.SettingsHooks(t.TempDir(),
		hook.Trust{File: filepath.Join(dir, "trust.json")}, hook.Runner{Children: children})})
	if err != nil {
		t.Fatal(err)
	}
	defer rep.Close()
	_, err = rep.Do(within(t), team.Command{Actor: team.User, Body: &team.CreateTask{Subject: "look"}})
	if team.CodeOf(err) != team.Rejected || !strings.Contains(err.Error(), filepath.Base(dir)) {
		t.Errorf("creating: %v", err)
	}
}
