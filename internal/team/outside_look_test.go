package team

import "testing"

// TestInterruptedNeedsALaterLook: a look at the processes from before the consolidation began does
// not say that no process runs it, and neither does one from before its end say that a step is
// missing.
func TestInterruptedNeedsALaterLook(t *testing.T) {
	s := &State{}
	s.Apply(&Record{Seq: 1, ID: "c", At: 1000, Events: []Event{
		&TeamCreated{Team: Team{ID: "t", Name: "here", Status: TeamActive},
			Lead: Member{Name: "boss", Agent: External}}}})
	s.team.Consolidation = Consolidation{Attempt: 1, Step: Began, BeganAt: 5000}
	for at, want := range map[Time]bool{4000: false, 5000: false, 5001: true} {
		if got := s.Interrupted(&Outside{At: at}); got != want {
			t.Errorf("a look at %d at a consolidation that began at 5000: interrupted is %v", at, got)
		}
	}
	s.team.Status = TeamComplete
	s.team.Consolidation.Step, s.team.Consolidation.EndedAt = Done, 9000
	for at, want := range map[Time]bool{8000: false, 9000: false, 9001: true} {
		if got := s.Interrupted(&Outside{At: at}); got != want {
			t.Errorf("a look at %d at a consolidation that ended at 9000: interrupted is %v", at, got)
		}
	}
}
