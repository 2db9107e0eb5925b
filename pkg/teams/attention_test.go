package teams_test

import (
	"reflect"
	"testing"

	"cadre/pkg/teams"
)

// TestAttention checks that an item is on the list for as long as it waits for a person, and that a
// caller that awaits it is woken.
func TestAttention(t *testing.T) {
	m := manage(t, teams.Options{})
	team := found(t, m, teams.TeamConfig{Name: "core",
		Members: []teams.MemberConfig{{Name: "ann", Agent: teams.External, PlanApproval: true}}})
	ann := as(t, team, "ann")
	list, err := team.Attention(limited(t))
	ok(t, err)
	equal(t, "items", len(list), 0)

	awaited := make(chan []teams.Attention, 1)
	go func() {
		list, err := team.AwaitAttention(limited(t))
		if err != nil {
			t.Error(err)
		}
		awaited <- list
	}()
	request, err := ann.SubmitPlan(limited(t), "write")
	ok(t, err)
	list = <-awaited
	if len(list) != 1 || list[0].Kind != "plan" || list[0].WaitsFor != teams.ForUser || list[0].Since.IsZero() ||
		!reflect.DeepEqual(list[0].Hint, teams.Hint{Action: teams.ActAnswerPlan, Team: team.Name(), Request: request}) {
		t.Errorf("the item is %+v", list)
	}
	ok(t, team.ApprovePlan(limited(t), request, ""))
	list, err = team.Attention(limited(t))
	ok(t, err)
	equal(t, "items when it is answered", len(list), 0)
	_, err = team.Tasks().Create(limited(t), teams.TaskConfig{Subject: "for nobody", Role: "tester"})
	ok(t, err)
	list, err = team.Attention(limited(t))
	ok(t, err)
	if len(list) != 1 || list[0].Kind != "unassigned" || list[0].Task != "1" {
		t.Errorf("the item is %+v", list)
	}
}
