package replica

import (
	"errors"

	"cadre/internal/journal"
	"cadre/internal/team"
)

// HintsOf returns what would help with an error of a team: the hints of its refusals, and the hint
// to repair a damaged journal. The journal cannot give that hint, because it knows no team.
func HintsOf(err error) []team.Hint {
	all := team.HintsOf(err)
	if damage, ok := errors.AsType[*journal.DamageError](err); ok {
		all = append(all, team.Hint{Action: team.ActMend, Team: damage.Team})
	}
	return all
}
