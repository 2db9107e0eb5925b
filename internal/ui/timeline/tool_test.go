package timeline

import (
	"strings"
	"testing"

	"cadre/internal/team"
)

// TestToolsOfThePast: tools that ran before the records were read appear in frames, where the
// member worked, and cost a frame nothing that grows.
func TestToolsOfThePast(t *testing.T) {
	var line Timeline
	add := func(at team.Time, events ...team.Event) {
		line.Add(&team.Record{Seq: line.Through() + 1, At: at, Events: events})
	}
	add(0, &team.TeamCreated{Lead: team.Member{Name: "lead", Agent: team.Claude, Status: team.Active}})
	add(60_000, &team.MemberStatusChanged{Member: "lead", Status: team.Idle})
	add(80_000, &team.MemberStatusChanged{Member: "lead", Status: team.Active})
	add(100_000)
	for _, use := range []struct {
		at   team.Time
		runs bool
	}{{10_000, true}, {12_000, true}, {15_000, false}, {20_000, false}, {50_000, true}, {70_000, false},
		{90_000, true}} {
		line.Tool("lead", use.at, use.runs)
	}
	f := line.Frame(View{Columns: 10, Whole: true})
	if got, want := f.Rows[0].Text(true), "#=###=..#="; got != want {
		t.Errorf("the lane is %s, not %s", got, want)
	}
	for i := range 3 * mostUses {
		line.Tool("lead", 100_000+team.Time(2*i), i%2 == 1)
	}
	if n := len(line.named["lead"].uses); n > mostUses+1 {
		t.Errorf("%d uses are kept", n)
	}
	if text := line.Frame(View{Columns: 40, Whole: true}).Rows[0].Text(true); !strings.Contains(text, "=") {
		t.Errorf("the latest uses are gone: %s", text)
	}
}
