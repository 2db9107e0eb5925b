package render

import (
	"fmt"
	"strings"

	"cadre/internal/team"
)

// ofNested describes an event of teams in teams. is reports whether e is one.
func ofNested(e team.Event, called func(id string) string) (line string, is bool) {
	switch e := e.(type) {
	case *team.ChildBegan:
		return fmt.Sprintf("%s runs team %s for task %s", e.Child.Member, e.Child.Name, called(e.Child.Task)), true
	case *team.ChildReported:
		if e.Usage == (team.Usage{}) { // its lead wrote to the lead here
			return "", true
		}
		return fmt.Sprintf("team %s has used %d tokens so far", e.Team, e.Usage.Tokens()), true
	case *team.ChildEnded:
		return "team " + e.Team + " is not needed any more", true
	case *team.ParentHeard: // the message has a line of its own
		return "", true
	case *team.MailPassedOn:
		return fmt.Sprintf("the mail to the parent team, up to #%d, was passed on", e.Through), true
	case *team.TeamConfined:
		return confined(e), true
	}
	return "", false
}

// confined says what its parent leaves a nested team.
func confined(e *team.TeamConfined) string {
	var most []string
	if e.Mode != "" {
		most = append(most, "permission mode "+e.Mode)
	}
	if b := e.Budget; b.Tokens > 0 {
		most = append(most, fmt.Sprintf("%d tokens", b.Tokens))
	}
	if b := e.Budget; b.CostMicroUSD > 0 {
		most = append(most, team.Dollars(b.CostMicroUSD))
	}
	if b := e.Budget; b.Time > 0 {
		most = append(most, team.Span(b.Time))
	}
	return "the parent team allows " + word(len(most) == 0, "any budget", "at most "+strings.Join(most, ", ")) +
		prefixed("; rules that it does not allow: ", strings.Join(e.Dropped, ", "))
}
