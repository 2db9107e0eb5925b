package simtest

import (
	"slices"
	"strings"

	"cadre/internal/team"
)

// limits checks what follows a rate limit. All models of the simulation share one provider, one
// account and one model, whatever the core makes of it.
func (j *judge) limits(r *team.Record, e team.Event) {
	switch e := e.(type) {
	case *team.RateLimited:
		j.books.limited = max(j.books.limited, e.Until)
		if e.Ended && slices.ContainsFunc(r.Events, func(e team.Event) bool {
			_, released := e.(*team.TaskReleased)
			return released
		}) {
			j.fail(shared, "a task of %s is returned for a rate limit", e.By)
		}
	case *team.RateLimitLifted:
		j.books.limited = 0
	case *team.MemberTroubled:
		if e.Trouble == team.TroubleLimit {
			j.fail(shared, "a rate limit of %s is a setback", e.Member)
		}
	case *team.TaskClaimed:
		m, _ := j.truth.Member(e.Member)
		if strings.HasPrefix(r.Actor, team.Host("")) && m.Agent == team.Claude && m.Status != team.Active &&
			r.At < j.books.limited {
			j.fail(shared, "%s is given task %s at %d, and is rate limited until %d", e.Member, e.Task, r.At,
				j.books.limited)
		}
	}
}
