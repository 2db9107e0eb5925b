package main

import (
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/team"
)

// lifted says that a rate limit was lifted.
type lifted struct {
	Member  string   `json:"member"`  // name of the member
	Pool    string   `json:"pool"`    // what the members share: agent, endpoint, source of the credentials, model
	Members []string `json:"members"` // the members that waited, and try again now
}

func (a *app) liftCommand() *cobra.Command {
	c := a.onTeam(1, &cobra.Command{
		Use: "lift [TEAM] NAME", Short: "Try the model of a rate-limited member again now",
		SuggestFor: []string{"limit", "unlimit", "retry"},
		Long: "Lift the rate limit that a member waits for. The members that share it try again at once, instead of at " +
			"the time that the\nprovider named. If the model still takes no requests, they wait again. cadre status lists " +
			"the rate limits.",
		Example: "  cadre lift my-team ann",
	}, func(c *cobra.Command, name string, args []string) error {
		return a.act(c, name, &team.LiftLimit{Member: args[0]}, func(of *engine.Team, r *team.Record) error {
			is := lifted{Member: args[0], Members: []string{}}
			if e, ok := team.EventIn[*team.RateLimitLifted](r); ok {
				is.Pool = e.Pool
			}
			of.View(func(s *team.State) {
				for _, m := range s.Members() {
					if m.Pool == is.Pool && m.Status.Running() {
						is.Members = append(is.Members, m.Name)
					}
				}
			})
			return a.print(is, said("the rate limit is lifted (%s); it is tried again now by %s", is.Pool,
				strings.Join(is.Members, ", ")))
		})
	})
	actsAs(c)
	return c
}
