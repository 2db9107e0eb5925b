package team

import (
	"fmt"
	"strings"
	"testing"
)

// TestSecondAnswer checks that a second answer is refused even if the first was so long ago that
// the team does not remember who gave it.
func TestSecondAnswer(t *testing.T) {
	s := &State{}
	seq := int64(0)
	apply := func(events ...Event) {
		seq++
		s.Apply(&Record{Seq: seq, At: Time(seq), Actor: "lead", Events: events})
	}
	apply(&TeamCreated{Team: Team{ID: "demo-1", Name: "demo", Lead: "lead"}, Lead: Member{Name: "lead", Agent: External,
		Status: Active}},
		&MemberSpawned{Member: Member{Name: "ann", Agent: "claude", Status: Active, Incarnation: 1,
			Plan: Plan{Required: true}}},
		&PlanSubmitted{Member: "ann", Request: "plan-1@ann", Plan: "think"},
		&PlanAnswered{Member: "ann", Request: "plan-1@ann", Approved: true, By: "lead"})
	again := func(want string) {
		t.Helper()
		d, err := Decide(s, Command{ID: "again", Actor: User, At: 1000, Body: &AnswerPlan{Request: "plan-1@ann",
			Approved: true}})
		if CodeOf(err) != Conflict || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v, %v; want %q", d.Record, err, want)
		}
	}
	again("by lead already; the first answer counts")
	for n := range rememberedAnswers {
		request := fmt.Sprintf("permission-%d@ann", n)
		apply(&PermissionRequested{Permission: Permission{Request: request, Member: "ann"}},
			&PermissionAnswered{Request: request, Member: "ann", Outcome: "allowed"})
	}
	again("was approved already")
}
