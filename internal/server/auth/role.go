package auth

import (
	"fmt"
	"strings"

	"cadre/internal/access"
	"cadre/internal/team"
)

// Role is what a token allows. Each role includes the ones before it.
type Role int

// The roles.
const (
	Observe Role = iota + 1 // read everything
	Answer                  // answer requests for permission and plans, and send messages
	Steer                   // add and change tasks and members
	Admin                   // what runs commands on this machine or lets members run them, ends teams or changes git
)

var roleNames = []string{"none", "observe", "answer", "steer", "admin"}

func (r Role) String() string { return roleNames[r] }

// Roles returns the names of the roles, the weakest first.
func Roles() []string { return roleNames[1:] }

// ParseRole returns the role of that name.
func ParseRole(name string) (Role, error) {
	for i, n := range roleNames[1:] {
		if n == name {
			return Role(i + 1), nil
		}
	}
	return 0, fmt.Errorf("%q is not a role; use one of: %s", name, strings.Join(Roles(), ", "))
}

// Principal is who sends a request.
type Principal struct {
	access.Caller        // the user, or the member in whose session the sender runs
	Role          Role   // what the user's token allows; for a member the table of callers decides
	Token         string // name of the token; "" for a process of the user on the unix socket
}

// Via says how the principal's commands came in, for the history; "" for the user and for members.
func (p Principal) Via() string {
	if p.Token == "" || !p.IsUser() {
		return ""
	}
	return "token " + p.Token
}

// MayMode refuses a mode in which a member asks nobody to a token that may not run commands. mode
// is the mode that the member is in afterwards, also if it inherits it.
func (p Principal) MayMode(mode string) error {
	if mode != "bypassPermissions" {
		return nil
	}
	return p.Needs(Admin, "the mode "+mode)
}

// Needs refuses a user whose token does not allow what needs the role.
func (p Principal) Needs(role Role, what string) error {
	if !p.IsUser() || p.Role >= role {
		return nil
	}
	return team.Refuse(team.Denied, "%s needs a token with the role %s, and the role of %q is %s", what, role, p.Token,
		p.Role)
}
