package engine_test

import (
	"os"
	"path/filepath"
	"testing"

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

	if at := of.Looked(); at != 0 {
		t.Errorf("got %d, want 0 before the first look", at)
	}
	if err := of.Saw(seen); err != nil || of.Looked() != seen {
		t.Errorf("%d, %v", of.Looked(), err)
	}
	file := filepath.Join(of.Dir, "looked.json")
	for _, wrong := range []string{`{"seq":100000}`, `{"seq":-1}`, `x`, ``} {
		if err := os.WriteFile(file, []byte(wrong), 0o600); err != nil {
			t.Fatal(err)
		}
		if at := of.Looked(); at != 0 {
			t.Errorf("%s is %d", wrong, at)
		}
	}
	if left, _ := filepath.Glob(file + "*"); len(left) != 1 {
		t.Errorf("files are left: %v", left)
	}
}
