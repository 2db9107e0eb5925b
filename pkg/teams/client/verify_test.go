package client

import (
	"slices"
	"testing"

	"cadre/pkg/teams"
)

// TestDecide has a member verify the task of another one, which is refused the verdict itself.
func TestDecide(t *testing.T) {
	l := newLab(t)
	l.serve()
	c, ctx := l.open(Options{}), within(t)
	_, err := c.CreateTeam(ctx, TeamSpec{Name: "demo"})
	ok(t, err)
	for _, name := range []string{"ann", "eve"} {
		_, err = c.Spawn(ctx, "demo", MemberSpec{Name: name, Agent: teams.External})
		ok(t, err)
	}
	made, err := c.AddTask(ctx, "demo", TaskSpec{Subject: "checked", Verify: &teams.Verify{By: "eve"}})
	ok(t, err)
	if want := (teams.Verify{By: "eve", Count: 1, Rule: teams.VerifyAll, Rounds: 3}); *made.Verify != want {
		t.Errorf("it is verified by %+v, want %+v", *made.Verify, want)
	}
	mine, err := c.As("ann").ClaimTask(ctx, "demo", made.ID)
	ok(t, err)
	made, err = c.As("ann").CompleteTask(ctx, "demo", mine, "It is checked.")
	ok(t, err)
	if b := made.Submission; b == nil || b.By != "ann" || b.Result != "It is checked." || len(b.Tasks) != 1 {
		t.Fatalf("it is submitted as %+v", b)
	}
	theirs, err := c.As("eve").ClaimTask(ctx, "demo", made.Submission.Tasks[0])
	ok(t, err)
	if _, err := c.As("ann").Decide(ctx, "demo", teams.Claim{ID: theirs.ID}, teams.VerdictAccepted,
		"Mine."); err == nil {
		t.Error("ann decided on its own work")
	}
	is, err := c.As("eve").Decide(ctx, "demo", theirs, teams.VerdictAccepted, "It is right.")
	ok(t, err)
	if is.Verdict != teams.VerdictAccepted || is.Verifies != made.ID || is.Result != "It is right." {
		t.Errorf("the verification is %+v", is)
	}
	made, err = c.Task(ctx, "demo", made.ID)
	ok(t, err)
	if made.Status != teams.TaskStatusCompleted || made.CompletedBy != "ann" ||
		!slices.Equal(made.Verified, []string{"eve"}) {
		t.Errorf("the task is %+v", made)
	}
}
