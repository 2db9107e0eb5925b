package replica_test

import (
	"errors"
	"fmt"
	"reflect"
	"testing"

	"cadre/internal/journal"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// TestHintsOf checks that a damaged journal can be repaired, which the journal itself does not say.
func TestHintsOf(t *testing.T) {
	damage := fmt.Errorf("open: %w", &journal.DamageError{Team: "demo", Segment: "1.jsonl", Reason: "torn"})
	mend := team.Hint{Action: team.ActMend, Team: "demo"}
	resume := team.Hint{Action: team.ActResume, Team: "demo"}
	refused := team.Hinted(errors.New("no"), resume)
	for _, c := range []struct {
		err  error
		want []team.Hint
	}{
		{nil, nil}, {errors.New("no"), nil}, {damage, []team.Hint{mend}}, {refused, []team.Hint{resume}},
		{errors.Join(damage, refused), []team.Hint{resume, mend}},
	} {
		if got := replica.HintsOf(c.err); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%v: %+v, want %+v", c.err, got, c.want)
		}
	}
}
