package engine

import (
	"errors"
	"slices"

	"cadre/internal/layout"
	"cadre/internal/team"
)

// ItemFor returns the item of a team with ref in its hint, if that is about the team and not about
// another one of its tree.
func ItemFor(ref string, i team.Item) team.Item { return i.Known(layout.NameOf(ref), ref) }

// InTermsOf has the hints of a refusal name the team by its id if the caller named it so. The name
// alone may stand for another team. Other references, and errors without hints, stay.
func InTermsOf(ref string, err error) error {
	refusal, is := errors.AsType[*team.Error](err)
	name := layout.NameOf(ref)
	if !is || name == ref {
		return err
	}
	refusal.Help = slices.Clone(refusal.Help)
	for i, hint := range refusal.Help {
		if hint.Team == name {
			refusal.Help[i].Team = ref
		}
	}
	return err
}
