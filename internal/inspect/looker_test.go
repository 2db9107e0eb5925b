package inspect_test

import (
	"testing"
	"time"

	"cadre/internal/inspect"
	"cadre/internal/team"
)

// TestRecordedEnd: the end of a session that was just recorded makes earlier findings void, also
// when its host still runs for a moment after it.
func TestRecordedEnd(t *testing.T) {
	t.Parallel()
	for _, lingers := range []bool{false, true} {
		p := newPlace(t, &team.SpawnMember{Name: "ann", Agent: team.Shell},
			team.Host("living"), &team.AttachMember{Member: "ann"}, &team.ReportStarted{Member: "ann", Session: "s"})
		ends := p.lives("living")
		looker := &inspect.Looker{Replica: p.replica, Dir: p.dir}
		now := at(time.Hour)
		look := func() *team.Outside {
			t.Helper()
			found, err := looker.Look(t.Context(), now)
			if err != nil {
				t.Fatal(err)
			}
			return found
		}
		if !look().Hosted {
			t.Fatal("no host was found")
		}
		if due := looker.Due(now); due != inspect.MaxAge {
			t.Errorf("findings count for %s", due)
		}
		if _, err := p.replica.Do(t.Context(), team.Command{Actor: team.Host("living"), Lease: 1,
			Body: &team.DetachMember{Member: "ann", Reason: team.RunEndedReason}}); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Millisecond)
		if lingers {
			if !look().Hosted {
				t.Fatal("the host was not found")
			}
			if due := looker.Due(now); due > inspect.MaxAge/10 {
				t.Errorf("findings from when the host was ending count for %s", due)
			}
			now = now.Add(inspect.MaxAge / 10)
		}
		ends()
		if look().Hosted {
			t.Errorf("lingers %t: the host is shown as running after its recorded end", lingers)
		}
		if due := looker.Due(now); due != inspect.MaxAge {
			t.Errorf("lingers %t: later findings count for %s", lingers, due)
		}
	}
}
