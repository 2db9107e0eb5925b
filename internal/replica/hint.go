package replica

import (
	"errors"

	"cadre/internal/journal"
	"cadre/internal/team"
)

// HintsOf returns the hints of an error: those of its refusals, and the hint to repair a damaged
// journal. The journal cannot give that hint, because it knows no team.
func HintsOf(err error) []team.Hint {
	all := team.HintsOf(err)
	if damage, ok := errors.AsType[*journal.DamageError](err); ok {
		all = append(all, team.Hint{Action: team.ActMend, Team: damage.Team})
	}
	return all
}
