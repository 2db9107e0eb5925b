package teams

import (
	"cadre/internal/team"
	"cadre/pkg/teams/internal/wire"
)

// Package client makes its values with these functions.
func init() {
	wire.Add(infoOf)
	wire.Add(memberOf)
	wire.Add(taskOf)
	wire.Add(noteOf)
	wire.Add(noteChangeOf)
	wire.Add(searchMatchOf)
	wire.Add(templateOf)
	wire.Add(messageOf)
	wire.Add(letterOf)
	wire.Add(permissionOf)
	wire.Add(hint)
	wire.Add(overviewOf)
	wire.Add(checkpointInfoOf)
	wire.Add(probeOf)
	wire.Add(factsOf)
	wire.Add(reviewOf)
	wire.Add(pausedOf)
	wire.Add(teamHookOf)
	wire.Add(trialOf)
	wire.Add(recordOf)
	wire.Add(shownOf)
	wire.Add(healthOf)
	wire.Add(func(r *team.Record) []Event { return eventsOf(r) })
	wire.Add(func(w wire.Items) []Attention { return attentionOf(w.Team, w.Items) })
}
