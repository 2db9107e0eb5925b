// Package access determines who runs this process, and who may call which command.
//
// # Authority
//
// The package has the only table of commands and library entries with their permitted callers. Both
// front ends, cmd/cadre and pkg/teams, check every call against it. The core decides what an actor
// may do in a team. This package decides only which actor a process may be, and in which team.
//
// # Callers
//
//	a process ──below a running host of this home?
//	              │ yes: the host's records tell (proc.Ancestry)
//	              │   ├─ child of a member's session or task    that member, in that team
//	              │   ├─ trusted child: hook, check             the user
//	              │   ├─ of the host's own program              as its environment says
//	              │   └─ left behind by some session            unknown: it may read that team,
//	              │                                             and has no actor
//	              │ not known: a host runs in a namespace
//	              │ that this process cannot see
//	              │   └─ any such process                       unknown, as if left behind
//	              │ no
//	              └─▶ its environment: the member that CADRE_TEAM and CADRE_MEMBER_NAME name
//	                  together, in the home that CADRE_SESSION_HOME names, else the user
//
// If the host has records, they decide, and the environment cannot contradict them. If no host is
// found, the environment can only restrict: a process with both variables has the rights of that
// member instead of those of the user. In a hook they name the member that the event is about, not
// the actor.
//
// # Guarantees
//
//   - A process in a member's session acts as that member in that team, whatever it does to its
//     environment, its session and its parents. This holds while the host is running, or the guard
//     or server above it, on a system with subreapers. docs/rough_edges.md lists the gaps.
//   - Other homes are not restricted: a test, or a member that tries cadre out, has its own teams
//     there.
//   - A refusal is a [team.Error] with the code denied. It says whose session this is, why the call
//     is refused, and what to do.
package access

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cadre/internal/agent"
	"cadre/internal/layout"
	"cadre/internal/sys/paths"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Caller is the person, member or program that runs this process, for one home. The zero Caller is
// the user.
type Caller struct {
	session bool
	check   bool   // it runs in a check of a consolidation, and acts as the user except for calls that give power away
	team    string // folder of the team of this home that the session belongs to; "" for none
	member  string // "" where the member is not known
	unknown string // why it is not known who acts: a sentence without its full stop
}

// Who determines who runs this process.
func Who(h layout.Home) (Caller, error) {
	origin, below, err := proc.Ancestry(h.Running())
	if err != nil {
		return Caller{}, fmt.Errorf("cannot determine whose session this is: %w", err)
	}
	getenv := os.Getenv
	if session := os.Getenv(agent.HomeVariable); session != "" && !sameFolder(session, h.Root) {
		getenv = func(string) string { return "" } // it names a member of a team in another home
	}
	c := who(origin, below, getenv)
	if c.session && !below && c.team != "" {
		c.team = folderOf(h, c.team, getenv(agent.TeamIDVariable))
	}
	return c, nil
}

// Peer determines who runs another process, such as the one at the other end of a socket. Its
// environment does not count. The error is [os.ErrNotExist] if the process has ended.
func Peer(h layout.Home, pid int) (Caller, error) {
	origin, below, err := proc.AncestryOf(h.Running(), pid)
	if err != nil {
		return Caller{}, fmt.Errorf("cannot determine whose session process %d is: %w", pid, err)
	}
	if origin.Own { // a child of a host's own program, which acts as the user
		below = false
	}
	return who(origin, below, func(string) string { return "" }), nil
}

// folderOf returns the name of the folder of the team that the environment names. It is the name
// itself for a team that does not exist.
func folderOf(h layout.Home, name, id string) string {
	for _, ref := range []string{id, name} {
		if !strings.HasPrefix(ref, name) {
			continue // a variable of another session
		}
		if dir, err := h.Folder(ref); err == nil {
			return filepath.Base(dir)
		}
		if h.HasPlaced(ref) {
			return ref
		}
	}
	return name
}

// sameFolder reports whether two paths lead to the same folder, which need not exist.
func sameFolder(a, b string) bool { return filepath.Clean(a) == filepath.Clean(b) || paths.Same(a, b) }

func who(origin proc.Origin, below bool, getenv func(string) string) Caller {
	record := origin.Record
	switch {
	case origin.Hidden:
		c := Caller{session: true, unknown: fmt.Sprintf("a host of this home runs, process %d in its own PID "+
			"namespace, and this process cannot see it, "+
			"so it may be a session of that host; run the command where the host runs, or end the host first",
			origin.Host)}
		if len(origin.Teams) == 1 {
			c.team = origin.Teams[0]
		}
		return c
	case !below || origin.Own:
		return claimed(getenv)
	case !origin.Left && record != nil && record.Trusted:
		return Caller{check: record.Check}
	}
	c := Caller{session: true}
	if len(origin.Teams) == 1 {
		c.team = origin.Teams[0]
	}
	if record != nil && !record.Trusted {
		c.member = record.Member
	}
	switch {
	case c.member == "" && origin.Left:
		c.unknown = "it is " + c.String() +
			", left behind by a process that has ended; run it as long as that process waits for it"
		return c
	case c.member == "":
		c.unknown = "it is " + c.String() + ", but its member is not known"
		return c
	}
	if name := getenv(agent.MemberVariable); name != "" && name != c.member && getenv(agent.HookVariable) == "" {
		c.unknown = fmt.Sprintf("it is %s, and %s says %q; unset %s", c, agent.MemberVariable, name,
			agent.MemberVariable)
	}
	return c
}

// claimed returns the caller that the environment names.
func claimed(getenv func(string) string) Caller {
	name, of := getenv(agent.MemberVariable), getenv(agent.TeamVariable)
	if name == "" || getenv(agent.HookVariable) != "" {
		return Caller{}
	}
	c := Caller{session: true}
	switch {
	case of == "":
		c.unknown = fmt.Sprintf("%s is %q and %s is not set; set both to act as that member, or unset %s",
			agent.MemberVariable, name, agent.TeamVariable, agent.MemberVariable)
	case !team.ValidName(name) || !team.ValidName(of):
		c.unknown = fmt.Sprintf("%s is %q and %s is %q, and a name is one of a-z, A-Z and 0-9, and then up to 63 of "+
			"these, _ or -; correct them, or unset both",
			agent.MemberVariable, name, agent.TeamVariable, of)
	default:
		c.team, c.member = of, name
	}
	return c
}

// Unnamed returns an environment that names no member, for a host: a host is not a member.
func Unnamed(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{agent.TeamVariable, agent.MemberVariable, agent.HomeVariable,
			agent.HookVariable}, name)
	})
}

// IsUser reports whether the caller is the person who owns the home, or a program that the person
// runs.
func (c Caller) IsUser() bool { return !c.session }

// Team returns a reference to the team in whose session the process runs. It is "" for the user,
// and for a session of a team outside this home.
func (c Caller) Team() string { return c.team }

// Member returns the member in whose session the process runs. It is "" for the user, and for an
// unknown member.
func (c Caller) Member() string {
	if c.unknown != "" {
		return ""
	}
	return c.member
}

// String names the caller within a sentence.
func (c Caller) String() string {
	switch {
	case !c.session:
		return "the user"
	case c.member != "" && c.team != "":
		return fmt.Sprintf("the session of %s in team %s", c.member, c.team)
	case c.member != "":
		return fmt.Sprintf("the session of %s in a team of Claude Code's", c.member)
	case c.team != "":
		return "a session of team " + c.team
	}
	return "a session of a team"
}

// Actor returns who acts in a team: the named member, the session's member, or the user. flag is
// the flag that named the member.
func (c Caller) Actor(flag, named string) (string, error) {
	switch {
	case !c.session && named != "":
		return named, nil
	case !c.session:
		return team.User, nil
	case c.unknown != "":
		return "", deny("cadre cannot tell who acts: %s.", c.unknown)
	case named != "" && named != c.member:
		return "", deny("This is the session of %s, which acts as itself; leave %s %s away, or ask for it with a "+
			"message.", c.member, flag, named)
	}
	return c.member, nil
}

// Reach refuses every team but the caller's own, for a session. It is part of [layout.Scope].
func (c Caller) Reach(name string) error {
	switch {
	case !c.session || name == c.team && c.team != "":
		return nil
	case c.team == "" && c.unknown != "":
		return deny("Team %s is not open to this process: %s.", name, c.unknown)
	case c.team == "":
		return deny("Team %s is not open to this process: it is %s.", name, c)
	}
	return deny("Team %s is not the team of this session: this is %s, which reads and changes its own team alone. "+
		"Ask the user, or the lead with a message.", name, c)
}

// Create refuses to let a session create a team. It is part of [layout.Scope].
func (c Caller) Create(name string) error {
	if !c.session {
		return nil
	}
	return deny("Team %s was not created: this is %s, and no member creates a team. Ask the user, or the lead with a "+
		"message.", name, c)
}

// Scoped returns the home, restricted to what the caller may reach. A session whose team lives in a
// place reaches it through its host, and so does a hook.
func (c Caller) Scoped(h layout.Home) layout.Home {
	if h.Scope = nil; c.session {
		h.Scope = c
	}
	id := c.team
	if !c.session { // a hook or a check of a team, or the user
		id = os.Getenv(agent.TeamIDVariable)
	}
	if h.Place == nil && h.HasPlaced(id) {
		h = h.ThroughHosts()
	}
	return h
}

// Spawns refuses an agent that a session may not choose for a teammate: an agent with a command of
// its own would run outside its permissions. offers are the agents that the lead's tools offer.
func (c Caller) Spawns(kind string, offers []string) error {
	if !c.session || kind == team.External || kind == team.Shell || slices.Contains(offers, kind) {
		return nil
	}
	return deny("%s cannot spawn a teammate of the agent %q; the agents that a lead may spawn here: %s.",
		c.capitalized(), kind,
		strings.Join(append(slices.Clone(offers), team.Shell, team.External), ", "))
}

func (c Caller) capitalized() string {
	s := c.String()
	return strings.ToUpper(s[:1]) + s[1:]
}

func deny(format string, args ...any) error {
	return &team.Error{Code: team.Denied, Text: fmt.Sprintf(format, args...)}
}
