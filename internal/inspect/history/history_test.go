package history

import (
	"errors"
	"iter"
	"reflect"
	"slices"
	"testing"

	"cadre/internal/team"
)

// past is a history with an event of each role that a member can have.
var past = []*team.Record{
	{Seq: 1, At: 100, Actor: "lead", Events: []team.Event{
		&team.MemberSpawned{Member: team.Member{Name: "ann", Agent: team.Shell}},
		&team.MemberSpawned{Member: team.Member{Name: "bob", Agent: team.Shell}}}},
	{Seq: 2, At: 200, Actor: "lead", Events: []team.Event{
		&team.TaskCreated{Task: team.Task{ID: "1", Owner: "ann", CreatedBy: "lead"}}}},
	{Seq: 3, At: 300, Actor: "@host:h", Events: []team.Event{&team.TaskClaimed{Task: "1", Member: "ann"}}},
	{Seq: 4, At: 400, Actor: "eve", Events: []team.Event{
		&team.MessageSent{Message: team.Message{Seq: 1, From: "eve", To: "*", Recipients: []string{"ann", "bob"}}}}},
	{Seq: 5, At: 500, Actor: "@host:h", Events: []team.Event{&team.TasksSkipped{},
		&team.MessagesDelivered{Member: "bob", Seqs: []int64{1}}}},
	{Seq: 6, At: 600, Actor: team.User, Events: []team.Event{&team.TaskCompleted{Task: "1", By: "ann"}}},
}

func TestSelect(t *testing.T) {
	for name, c := range map[string]struct {
		filter Filter
		want   map[int64]int // events by the seq of their records
	}{
		"all":                {Filter{}, map[int64]int{1: 2, 2: 1, 3: 1, 4: 1, 5: 2, 6: 1}},
		"since":              {Filter{Since: 400}, map[int64]int{4: 1, 5: 2, 6: 1}},
		"the last":           {Filter{Last: 2}, map[int64]int{5: 2, 6: 1}},
		"more than there is": {Filter{Last: 9, Since: 600}, map[int64]int{6: 1}},
		"ann's":              {Filter{Members: []string{"ann"}}, map[int64]int{1: 1, 2: 1, 3: 1, 4: 1, 6: 1}},
		"bob's":              {Filter{Members: []string{"bob"}}, map[int64]int{1: 1, 4: 1, 5: 1}},
		"the actor's":        {Filter{Members: []string{"eve"}}, map[int64]int{4: 1}},
		"of two":             {Filter{Members: []string{"eve", "bob"}, Last: 1}, map[int64]int{5: 1}},
		"nobody's":           {Filter{Members: []string{"an"}}, map[int64]int{}},
		"a kind":             {Filter{Kinds: []string{"task_claimed"}}, map[int64]int{3: 1}},
		"a word":             {Filter{Kinds: []string{"message"}}, map[int64]int{4: 1, 5: 1}},
		"a plural":           {Filter{Kinds: []string{"tasks"}}, map[int64]int{2: 1, 3: 1, 5: 1, 6: 1}},
		"the last tasks of ann": {Filter{Kinds: []string{"task"}, Members: []string{"ann"}, Last: 2},
			map[int64]int{3: 1, 6: 1}},
	} {
		if err := c.filter.Check(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		got := map[int64]int{}
		for r, err := range c.filter.Select(records(nil)) {
			if err != nil {
				t.Fatal(err)
			}
			got[r.Seq] = len(r.Events)
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: it is %v, not %v", name, got, c.want)
		}
	}
	if len(past[0].Events) != 2 {
		t.Error("a record of the source was changed")
	}
}

// TestWhoseTaskWasReleased checks that a release concerns the member that had the task, also if the
// filter leaves out the record in which it got the task.
func TestWhoseTaskWasReleased(t *testing.T) {
	bob := "bob"
	source := func(yield func(*team.Record, error) bool) {
		for i, e := range []team.Event{&team.TaskCreated{Task: team.Task{ID: "1"}},
			&team.TaskClaimed{Task: "1", Member: "ann"}, &team.TaskReleased{Task: "1"},
			&team.TaskUpdated{Task: "1", Owner: &bob}, &team.TaskDeleted{Task: "1"}} {
			if !yield(&team.Record{Seq: int64(i + 1), At: team.Time(i + 1), Actor: team.User, Events: []team.Event{e}},
				nil) {
				return
			}
		}
	}
	for member, want := range map[string][]int64{"ann": {3}, "bob": {4, 5}} {
		var got []int64
		for r := range (Filter{Members: []string{member}, Since: 3}).Select(source) {
			got = append(got, r.Seq)
		}
		if !slices.Equal(got, want) {
			t.Errorf("what concerns %s is in %v, not in %v", member, got, want)
		}
	}
}

// TestPlans checks that plans are found with their answers, also after they were answered.
func TestPlans(t *testing.T) {
	source := func(yield func(*team.Record, error) bool) {
		for i, e := range []team.Event{&team.PlanSubmitted{Member: "ann", Request: "p1", Plan: "read"},
			&team.PlanAnswered{Member: "ann", Request: "p1", Feedback: "more", By: "lead"},
			&team.PlanSubmitted{Member: "ann", Request: "p2", Plan: "read more"},
			&team.PlanSubmitted{Member: "bob", Request: "p3", Plan: "write"},
			&team.PlanAnswered{Member: "ann", Request: "p2", Approved: true, By: team.User},
			&team.PlanSubmitted{Member: "bob", Request: "p4", Plan: "write all"}} {
			if !yield(&team.Record{Seq: int64(i + 1), At: team.Time(i + 1), Events: []team.Event{e}}, nil) {
				return
			}
		}
	}
	got, err := Plans(source)
	want := []Plan{
		{Member: "ann", State: "rejected", Request: "p1", Plan: "read", Feedback: "more", AskedAt: 1, AnsweredAt: 2,
			AnsweredBy: "lead"},
		{Member: "ann", State: "approved", Request: "p2", Plan: "read more", AskedAt: 3, AnsweredAt: 5,
			AnsweredBy: team.User},
		{Member: "bob", State: "unanswered", Request: "p3", Plan: "write", AskedAt: 4},
		{Member: "bob", State: "submitted", Request: "p4", Plan: "write all", AskedAt: 6},
	}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("the plans are %+v, %v", got, err)
	}
}

func TestSelectEndsWithAnError(t *testing.T) {
	damaged := errors.New("damaged")
	for _, f := range []Filter{{}, {Last: 3}} {
		var got error
		for _, err := range f.Select(records(damaged)) {
			got = err
		}
		if !errors.Is(got, damaged) {
			t.Errorf("%+v ended with %v", f, got)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, wrong := range []Filter{{Kinds: []string{"tas"}}, {Kinds: []string{"task", "task_"}}, {Kinds: []string{""}},
		{Last: -1}} {
		if err := wrong.Check(); team.CodeOf(err) != team.Invalid {
			t.Errorf("%+v: %v", wrong, err)
		}
	}
	for _, kind := range team.Kinds() {
		if err := (Filter{Kinds: []string{kind}}).Check(); err != nil {
			t.Error(err)
		}
	}
}

func records(end error) iter.Seq2[*team.Record, error] {
	return func(yield func(*team.Record, error) bool) {
		for _, r := range past {
			if !yield(r, nil) {
				return
			}
		}
		if end != nil {
			yield(nil, end)
		}
	}
}
