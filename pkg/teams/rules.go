package teams

import (
	"context"
	"time"

	"cadre/internal/team"
)

// PermissionRule lets members use a tool without asking.
type PermissionRule struct {
	Rule   string // as Claude Code writes it: Bash(go test:*), Edit(docs/**), mcp__server__tool
	Member string // the only member for which it holds; "" for all
	// Unbounded allows a rule without limits, such as Bash or Edit. Without it, AddRule returns
	// ErrDenied for such a rule, and says why.
	Unbounded bool
	// who added the rule; zero for a rule that the team was created with, and for AddRule
	By string
	At time.Time
}

// AddRule adds a permission rule to the team, as the user. It allows open requests that the rule
// covers. Delegate mode and plan approval still hold. Adding a rule that the team already has is
// not an error.
func (t *Team) AddRule(ctx context.Context, r PermissionRule) error {
	user, err := t.asUser("Team.AddRule", "add permission rules")
	if err == nil {
		_, err = user.do(ctx, &team.AddRule{Rule: r.Rule, Member: r.Member, Unbounded: r.Unbounded})
	}
	return err
}

// RemoveRule removes a rule that AddRule, cadre permission or the screen added, for the same
// member. Running sessions lose the rule, too. It returns ErrConflict for a rule that the team was
// created with.
func (t *Team) RemoveRule(ctx context.Context, r PermissionRule) error {
	user, err := t.asUser("Team.RemoveRule", "remove permission rules")
	if err == nil {
		_, err = user.do(ctx, &team.RemoveRule{Rule: r.Rule, Member: r.Member})
	}
	return err
}

// Rules returns the permission rules of the team: first those that it was created with, then those
// that were added, the oldest first.
func (v *View) Rules(ctx context.Context) (rules []PermissionRule, err error) {
	err = v.look(ctx, func(s *team.State) {
		for _, r := range s.Rules() {
			rules = append(rules, PermissionRule{Rule: r.Rule, Member: r.Member, By: r.By,
				At: clock(r.At)})
		}
	})
	return rules, err
}

// RuleFor returns the narrowest rule that covers an open request, for the member that asks. It
// returns ErrInvalid for a request that no rule can cover.
func (v *View) RuleFor(ctx context.Context, request string) (r PermissionRule, err error) {
	var refused error
	if err := v.look(ctx, func(s *team.State) {
		var p team.Permission
		if p, refused = s.Pending(request); refused == nil {
			r.Member = p.Member
			r.Rule, refused = s.RuleFor(p)
		}
	}); err != nil {
		return r, err
	}
	return r, public(refused)
}
