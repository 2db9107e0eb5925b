package teams_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"cadre/pkg/teams"
)

// TestAt checks that an earlier moment of a team is shown as it was, with its marks, and that a
// summary says what happened since.
func TestAt(t *testing.T) {
	m := manage(t, teams.Options{})
	team := found(t, m, teams.TeamConfig{Name: "core",
		Members: []teams.MemberConfig{{Name: "ann", Agent: teams.External, PlanApproval: true}}})
	ann := as(t, team, "ann")
	seq := func() (last int64) {
		t.Helper()
		marks, err := team.Since(limited(t), 0)
		ok(t, err)
		return marks.To
	}
	add(t, team.Tasks(), "lint")
	before := seq()
	request, err := ann.SubmitPlan(limited(t), "write")
	ok(t, err)
	waiting := seq()
	since, err := team.Since(limited(t), before)
	ok(t, err)
	equal(t, "what waits", since.Waiting, 1)
	equal(t, "its line", fmt.Sprint(since.Lines), "[ann submitted a plan and waits for its approval.]")
	ok(t, team.ApprovePlan(limited(t), request, ""))
	claim, err := ann.Tasks().Claim(limited(t), "1")
	ok(t, err)
	ok(t, ann.Tasks().Fail(limited(t), claim, "exit 1", ""))

	then, err := team.At(limited(t), before)
	ok(t, err)
	if then.Seq != before || then.At.IsZero() || len(then.Members) != 2 || len(then.Tasks) != 1 ||
		then.Tasks[0].Status != "pending" || len(then.Attention) != 0 || then.Info.Name != "core" {
		t.Errorf("before the plan it was %+v", then)
	}
	then, err = team.At(limited(t), waiting)
	ok(t, err)
	if len(then.Attention) != 1 || then.Attention[0].Kind != "plan" {
		t.Errorf("while the plan waited the list was %+v", then.Attention)
	}
	marks, err := team.Marks(limited(t))
	ok(t, err)
	if len(marks) != 2 || marks[0].Kind != teams.MarkWait || marks[0].Seq != waiting || marks[0].Member != "ann" ||
		marks[0].At.IsZero() || marks[1].Kind != teams.MarkFailure || marks[1].Task != "1" {
		t.Errorf("the marks are %+v, not the wait at %d and a failure", marks, waiting)
	}
	again, err := team.Marks(limited(t))
	ok(t, err)
	if !slices.Equal(again, marks) {
		t.Errorf("the marks are %+v the second time", again)
	}
	for _, seq := range []int64{-1, 0} {
		_, err = team.At(limited(t), seq)
		want(t, err, teams.ErrInvalid)
	}
	_, err = team.At(limited(t), 1_000)
	want(t, err, teams.ErrNotFound)
	if !strings.Contains(err.Error(), "the history ends with record") {
		t.Error(err)
	}
	_, err = team.Since(limited(t), -1)
	want(t, err, teams.ErrInvalid)
}
