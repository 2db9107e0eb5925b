package engine_test

import (
	"os"
	"path/filepath"
	"testing"

	"cadre/internal/engine"
	"cadre/internal/inspect/history"
	"cadre/internal/team"
)

// TestPast checks the marks and the summary of a team, and that a look is remembered beside it.
func TestPast(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.create(&team.SpawnMember{Name: "ann", Agent: team.External, PlanApproval: true})
	of := l.open()
	seen := of.Seq()
	l.do(of, "ann", &team.SubmitPlan{Plan: "this"})
	marks, err := of.Marks(within(t))
	if err != nil || len(marks) != 1 || marks[0].Kind != history.MarkWait || marks[0].Seq != of.Seq() {
		t.Fatalf("%+v, %v", marks, err)
	}
	l.do(of, team.User, &team.ReportFailed{Member: "ann", Reason: "crash"})
	if marks, err = of.Marks(within(t)); err != nil || len(marks) != 2 || marks[1].Kind != history.MarkFailure {
		t.Errorf("%+v, %v", marks, err)
	}
	sum, err := of.Since(within(t), seen)
	if err != nil || sum.From != seen+1 || sum.To != of.Seq() || len(sum.Ended) != 1 || sum.Reader != of.Lead().Name {
		t.Errorf("%+v, %v", sum, err)
	}
	if s, err := of.Past().At(within(t), seen+1); err != nil || s.Seq() != seen+1 {
		t.Errorf("%v", err)
	}

	if at := of.Looked(within(t)); at != 0 {
		t.Errorf("got %d, want 0 before the first look", at)
	}
	if err := of.Saw(within(t), seen); err != nil || of.Looked(within(t)) != seen {
		t.Errorf("%d, %v", of.Looked(within(t)), err)
	}
	file := filepath.Join(of.Dir, "looked.json")
	for _, wrong := range []string{`{"seq":100000}`, `{"seq":-1}`, `x`, ``} {
		if err := os.WriteFile(file, []byte(wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		if at := of.Looked(within(t)); at != 0 {
			t.Errorf("%s is %d", wrong, at)
		}
	}
	if err := of.Saw(within(t), seen); err != nil || of.Looked(within(t)) != seen {
		t.Errorf("%d, %v", of.Looked(within(t)), err)
	}
	if left, _ := filepath.Glob(file + "*"); len(left) != 1 {
		t.Errorf("files are left: %v", left)
	}
}

// TestLookShared: two looks at a team are on one replica, and each has states of the past of its
// own, which take memory only as long as that look.
func TestLookShared(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.create()
	l.Shared = new(engine.Shared)
	first, err := l.Look(within(t), "demo")
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	second, err := l.Look(within(t), first.Team().ID)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if first.Replica != second.Replica {
		t.Error("each look has a replica of its own")
	}
	if first.Past() == second.Past() {
		t.Error("two looks share the states of the past")
	}
	if f := l.Attention(""); f.Shared != l.Shared {
		t.Error("what follows the teams does not share their replicas")
	}
	of := l.open()
	if of.Replica == first.Replica {
		t.Error("an actor works on the replica of readers, which runs no hooks")
	}
	if _, err := of.Do(within(t), team.Command{Actor: team.User, Body: &team.CreateTask{Subject: "one"}}); err != nil {
		t.Fatal(err)
	}
	if first.Seq() != of.Seq() {
		t.Error("an actor and the readers have two states")
	}
}
