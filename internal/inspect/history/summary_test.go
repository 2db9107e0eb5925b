package history

import (
	"errors"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cadre/internal/team"
	"cadre/internal/testkit/historytest"

	"pgregory.net/rapid"
)

// TestSummaryOfAll checks that the summary of a whole history says what the state says.
func TestSummaryOfAll(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := historytest.Play(historytest.Choices(150).Draw(t, "choices"))
		sum := Summary{Reader: "lead"}
		for _, r := range h.Records {
			sum.Add(r)
		}
		var completed, failed []string
		for task := range h.State.Tasks() {
			switch {
			case task.Status == team.Completed:
				completed = append(completed, task.ID)
			case task.Status == team.Pending && task.Failure != "":
				failed = append(failed, task.ID)
			}
		}
		gotFailed := make([]string, 0, len(sum.Failed))
		for _, f := range sum.Failed {
			gotFailed = append(gotFailed, f.Task)
		}
		same(t, "completed", sum.Completed, completed)
		same(t, "failed", gotFailed, failed)
		var waiting, gotWaiting, ended, gotEnded []string
		for _, item := range h.State.Attention(h.Now, nil) {
			switch item.Kind {
			case team.ItemPermission, team.ItemPlan:
				waiting = append(waiting, string(item.Kind)+item.Request)
			case team.ItemQuestion:
				waiting = append(waiting, string(item.Kind)+item.Member)
			}
		}
		for _, w := range sum.Waiting {
			about := w.Request
			if w.Kind == team.ItemQuestion {
				about = w.Member
			}
			gotWaiting = append(gotWaiting, string(w.Kind)+about)
		}
		same(t, "waiting", gotWaiting, waiting)
		for _, m := range h.State.Members() {
			if !m.Status.Running() {
				ended = append(ended, m.Name)
			}
		}
		for _, e := range sum.Ended {
			gotEnded = append(gotEnded, e.Member)
		}
		same(t, "ended", gotEnded, ended)
		if sum.Usage != h.State.Team().Usage || sum.To != h.State.Seq() || sum.From != 1 {
			t.Fatalf("%+v", sum)
		}
	})
}

func same(t *rapid.T, what string, got, want []string) {
	t.Helper()
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Fatalf("%s: %v, not %v", what, got, want)
	}
}

func TestSummaryLines(t *testing.T) {
	record := func(seq int64, events ...team.Event) *team.Record {
		return &team.Record{Seq: seq, At: team.Time(seq * 1000), Events: events}
	}
	sum := Summary{Reader: "lead"}
	for _, r := range []*team.Record{
		record(10, &team.PermissionRequested{Permission: team.Permission{Request: "p1", Member: "ann", Tool: "Bash"}}),
		record(11, &team.PermissionRequested{Permission: team.Permission{Request: "p2", Member: "bob", Tool: "Read"}},
			&team.PermissionAnswered{Request: "p2", Member: "bob", Outcome: "allowed"}),
		record(12, &team.PlanSubmitted{Member: "cy", Request: "pl1", Plan: "a\nb"}),
		record(13, &team.PlanAnswered{Member: "cy", Request: "pl1", Approved: true, By: "lead"}),
		record(14, &team.MessageSent{Message: team.Message{Seq: 4, From: "ann", To: "lead", Intent: "question",
			Body: "which one?\nthis or that"}}),
		record(15, &team.MessageSent{Message: team.Message{Seq: 5, From: "ann", To: "lead", Body: "done"}}),
		record(16, &team.TaskCompleted{Task: "1", By: "ann"}, &team.TaskFailed{Task: "2", By: "bob", Reason: "exit 1"}),
		record(17, &team.TaskFailed{Task: "3", By: "bob", Reason: "exit 2"}),
		record(18, &team.TaskCompleted{Task: "3", By: "bob"}),
		record(19, &team.MemberFailed{Member: "dan", Reason: "crash"}, &team.CheckFailed{Check: "test"}),
		record(20, &team.CommitMade{Commit: "0123456789abcdef"}, &team.TeamStatusChanged{Status: team.TeamComplete}),
	} {
		sum.Add(r)
	}
	want := []string{"ann asks to use Bash.", "ann asks: which one?", "Task lint failed: exit 1", "dan failed: crash",
		"2 tasks were completed: 1, 3.", "1 message came to you.", "1 request was answered.",
		"1 trouble or failed check had to be overcome.", "The work was committed as 0123456789ab.",
		"The team is complete."}
	got := sum.Lines(func(task string) string { return map[string]string{"2": "lint"}[task] + strings.Trim(task, "2") })
	if !reflect.DeepEqual(got, want) {
		t.Errorf("it is\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if (&Summary{}).Lines(nil) != nil {
		t.Error("nothing happened, but lines say so")
	}
}

func TestSumCountsGaps(t *testing.T) {
	gap, other := errors.New("gap"), errors.New("other")
	source := func(errs ...error) iter.Seq2[*team.Record, error] {
		return func(yield func(*team.Record, error) bool) {
			for _, err := range errs {
				if !yield(&team.Record{Seq: 1}, nil) || !yield(nil, err) {
					return
				}
			}
		}
	}
	is := func(err error) bool { return errors.Is(err, gap) }
	var sum Summary
	if err := sum.Sum(source(gap, gap), is); err != nil || sum.Gaps != 2 || len(sum.Lines(nil)) != 1 {
		t.Errorf("%v, %+v", err, sum)
	}
	if err := sum.Sum(source(other), is); !errors.Is(err, other) {
		t.Error(err)
	}
}

// TestMarks checks the jumps from mark to mark against a plain search.
func TestMarks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := historytest.Play(historytest.Choices(150).Draw(t, "choices"))
		var m Marks
		for _, r := range h.Records {
			m.Add(r)
			m.Add(r) // a second time changes nothing
		}
		if m.Through() != h.State.Seq() {
			t.Fatalf("through %d", m.Through())
		}
		failures := 0
		for _, r := range h.Records {
			for _, e := range r.Events {
				switch e.(type) {
				case *team.TaskFailed, *team.MemberFailed:
					failures++
				}
			}
		}
		for _, mark := range m.All() {
			if mark.Event == "task_failed" || mark.Event == "member_failed" {
				failures--
			}
		}
		if failures != 0 {
			t.Fatalf("%d failures have no mark", failures)
		}
		kinds := rapid.SampledFrom([][]MarkKind{nil, {MarkFailure}, {MarkWait, MarkCommit}}).Draw(t, "kinds")
		passes := func(mark Mark) bool { return kinds == nil || slices.Contains(kinds, mark.Kind) }
		for seq := range h.State.Seq() + 2 {
			var next, previous Mark
			for _, mark := range m.All() {
				if passes(mark) && mark.Seq < seq {
					previous = mark
				}
				if passes(mark) && mark.Seq > seq && next.Seq == 0 {
					next = mark
				}
			}
			if got, is := m.Next(seq, kinds...); got != next || is != (next.Seq != 0) {
				t.Fatalf("after %d: %+v, not %+v", seq, got, next)
			}
			if got, is := m.Previous(seq, kinds...); got != previous || is != (previous.Seq != 0) {
				t.Fatalf("before %d: %+v, not %+v", seq, got, previous)
			}
		}
	})
}

// TestMarksOfWaits checks that only what a person must answer is a wait.
func TestMarksOfWaits(t *testing.T) {
	for name, c := range map[string]struct {
		lead   string
		events []team.Event
		want   int
	}{
		"a request":               {team.External, []team.Event{&team.PermissionRequested{Permission: team.Permission{Request: "p"}}}, 1},
		"what the rules answer":   {team.External, []team.Event{&team.PermissionRequested{Permission: team.Permission{Request: "p"}}, &team.PermissionAnswered{Request: "p"}}, 0},
		"a question to a person":  {team.External, []team.Event{&team.MessageSent{Message: team.Message{From: "ann", To: "lead", Intent: "question"}}}, 1},
		"a question to an agent":  {team.Claude, []team.Event{&team.MessageSent{Message: team.Message{From: "ann", To: "lead", Intent: "question"}}}, 0},
		"a question to a member":  {team.External, []team.Event{&team.MessageSent{Message: team.Message{From: "ann", To: "bob", Intent: "question"}}}, 0},
		"a message to the person": {team.External, []team.Event{&team.MessageSent{Message: team.Message{From: "ann", To: "lead"}}}, 0},
	} {
		var m Marks
		m.Add(&team.Record{Seq: 1, Events: []team.Event{&team.TeamCreated{Lead: team.Member{Name: "lead",
			Agent: c.lead}}}})
		m.Add(&team.Record{Seq: 2, Events: c.events})
		if len(m.All()) != c.want {
			t.Errorf("%s: %+v", name, m.All())
		}
	}
}
