package team

import (
	"reflect"
	"strings"
	"testing"
)

// doer returns a function that sends commands to a team.
func doer(t *testing.T, s *State) func(actor string, body Body) error {
	n := 0
	return func(actor string, body Body) error {
		t.Helper()
		n++
		d, err := Decide(s, Command{ID: "move " + string(rune('a'+n)), Actor: actor,
			At: s.team.UpdatedAt + 1, Body: body})
		if err == nil && d.Record != nil {
			s.Apply(d.Record)
		}
		return err
	}
}

// TestReleased checks that a team that this machine released does not change here any more, until
// it is taken back.
func TestReleased(t *testing.T) {
	s, _ := founded(t)
	do := doer(t, s)
	if err := do("lead", &ReleaseTeam{}); CodeOf(err) != Denied {
		t.Errorf("by the lead: %v", err)
	}
	if err := do(User, &AttachLead{Session: "run-1"}); err != nil {
		t.Fatal(err)
	}
	if err := do(User, &ReleaseTeam{}); CodeOf(err) != NotReady || !strings.Contains(err.Error(), "run-1") {
		t.Errorf("of a team that is led: %v", err)
	}
	if err := do(User, &AttachLead{Session: User, TakeOver: true}); err != nil {
		t.Fatal(err)
	}
	if err := do(User, &ReleaseTeam{Machine: "laptop"}); err != nil {
		t.Fatal(err)
	}
	if r := s.Team().Released; r.Machine != "laptop" || r.At == 0 {
		t.Errorf("got %+v, want a release by laptop, with its time", r)
	}
	for _, m := range s.Members() {
		if m.Host != "" {
			t.Errorf("%s still has a host", m.Name)
		}
	}
	if wants, next := s.Wants(s.team.UpdatedAt + 1<<40); wants != nil || next != 0 {
		t.Errorf("it wants %v", wants)
	}
	for _, body := range []Body{&CreateTask{Subject: "x"}, &ClaimTask{Task: "1", Member: "ann"},
		&SendMessage{To: "ann", Body: "x"}, &AttachLead{Session: "run-2"}, &SpawnMember{Name: "new", Agent: External},
		&AttachMember{Member: "ann"}, &Consolidate{}, &SetStatus{Status: TeamAborted}, &ReportFound{}} {
		err := do(User, body)
		if want := []Hint{s.team.hint(ActPull), s.team.hint(ActTakeBack)}; CodeOf(err) != Denied ||
			!reflect.DeepEqual(HintsOf(err), want) {
			t.Errorf("%T: got %v with the hints %v, want Denied with %v", body, err, HintsOf(err), want)
		}
	}
	if err := do("ann", &TakeBackTeam{}); CodeOf(err) != Denied {
		t.Errorf("taken back by a member: %v", err)
	}
	if err := do(User, &TakeBackTeam{}); err != nil {
		t.Fatal(err)
	}
	if err := do(User, &CreateTask{Subject: "x"}); err != nil || s.Team().Released != (Released{}) {
		t.Errorf("taken back: %v, %+v", err, s.Team().Released)
	}
	if err := do(User, &ReleaseTeam{}); err != nil {
		t.Fatal(err)
	}
	if err := do(User, &CleanUp{Force: true}); err != nil {
		t.Errorf("a copy that is of no use cannot be removed: %v", err)
	}
}

// TestMissingWork checks that a team whose completed tasks lack work cannot be completed, unless
// each of these tasks is named.
func TestMissingWork(t *testing.T) {
	s, _ := founded(t)
	do := doer(t, s)
	for _, id := range []string{"1", "2", "3"} {
		if s.task(id) == nil {
			if err := do(User, &CreateTask{Subject: "more"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range s.tasks {
		id := s.tasks[i].ID
		if s.tasks[i].Status == Completed {
			continue
		}
		if err := do(User, &ClaimTask{Task: id, Member: "ann"}); err != nil {
			t.Fatal(err)
		}
		if err := do(User, &CompleteTask{Task: id, Member: "ann"}); err != nil {
			t.Fatal(err)
		}
	}
	data, closed := parted(s)
	kept, err := data.State(s.Seq(), closed)
	if err != nil {
		t.Fatal(err)
	}
	missing := []Missing{{Task: "1", What: "commit abc is not here", Commit: "abc", Branch: "cadre/x@ann"},
		{Task: "2", What: "a.txt is another one here", Path: "a.txt", Object: "def"}, {Task: "2", What: "b.txt too",
			Path: "b.txt"}}
	base := Base{Top: "/there", Commit: "c"}
	d, err := Decide(&State{}, Command{ID: "restore", Actor: User, At: s.team.UpdatedAt + 1,
		Body: &RestoreTeam{From: kept, Dir: "/there", Base: &base, Missing: missing}})
	if err != nil {
		t.Fatal(err)
	}
	*s = State{}
	s.Apply(recoded(t, d.Record))
	if !reflect.DeepEqual(s.Missing(), missing) || s.Team().Base.Top != "/there" {
		t.Errorf("it misses %+v, in %+v", s.Missing(), s.Team().Base)
	}
	for _, m := range s.Members()[1:] {
		if err := do(User, &ReportStopped{Member: m.Name}); err != nil && CodeOf(err) != Finished {
			t.Fatal(err)
		}
	}
	says := "task 1: commit abc is not here; task 2: a.txt is another one here; task 2: b.txt too"
	for _, body := range []Body{&Consolidate{NoCommit: true}, &Consolidate{},
		&Consolidate{NoCommit: true, Without: []string{"3"}}, &SetStatus{Status: TeamComplete}} {
		err := do(User, body)
		want := []Hint{s.team.hint(ActResume), {Action: ActGoWithout, Team: s.team.Name, Tasks: []string{"1", "2"}}}
		if CodeOf(err) != NotReady || !strings.Contains(err.Error(), says) || !reflect.DeepEqual(HintsOf(err), want) {
			t.Errorf("%T: got %v with the hints %v, want %q with %v", body, err, HintsOf(err), says, want)
		}
	}
	if err := do(User, &Consolidate{NoCommit: true, Without: []string{"99"}}); CodeOf(err) != NotFound {
		t.Errorf("without a task that does not exist: %v", err)
	}
	if err := do("ann", &ReportFound{Tasks: []string{"1"}}); CodeOf(err) == "" {
		t.Error("a member could report that missing work was found; want a refusal")
	}
	if err := do(User, &ReportFound{Tasks: []string{"1", "3"}}); err != nil || len(s.Missing()) != 2 {
		t.Errorf("got %v, and still missing %+v; want 2 missing", err, s.Missing())
	}
	if err := do(User, &Consolidate{NoCommit: true}); CodeOf(err) != NotReady ||
		strings.Contains(err.Error(), "task 1") {
		t.Error(err)
	}
	if err := do(User, &Consolidate{NoCommit: true, Without: []string{"2"}}); err != nil ||
		len(s.Team().Consolidation.Without) != 1 {
		t.Errorf("got %v and the consolidation %+v, want one without task 2", err, s.Team().Consolidation)
	}
}
