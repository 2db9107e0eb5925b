package team

import "testing"

// TestNoMailIsLateForAShell checks that the lead is notified of mail that an agent has not received,
// and not of mail to a shell member, which reads none.
func TestNoMailIsLateForAShell(t *testing.T) {
	for agent, want := range map[string]int{Claude: 1, Shell: 0} {
		s := &State{}
		for i, body := range []Body{&CreateTeam{TeamID: "t", Name: "demo", Dir: "/d"},
			&SpawnMember{Name: "ann", Agent: agent}, &SendMessage{To: "ann", Body: "hello"}} {
			d, err := Decide(s, Command{ID: string(rune('a' + i)), Actor: User, At: 1000, Body: body})
			if err != nil {
				t.Fatal(err)
			}
			s.Apply(d.Record)
		}
		hour := Time(3_600_000)
		if late, _ := s.late(s.member("ann"), hour); len(late) != want {
			t.Errorf("%d messages are late for %s, want %d", len(late), agent, want)
		}
	}
}
