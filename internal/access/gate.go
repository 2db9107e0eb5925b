package access

import (
	"slices"
	"strings"
)

// Rule says who may call something.
type Rule int

// The rules, from the most open one to the strictest.
const (
	// Anyone may call it: it touches no team, or it is a helper that cadre itself starts in
	// sessions.
	Anyone Rule = iota + 1
	// Reads a team: the user any one, a session its own.
	Reads
	// Acts in a team: the user in any one, a session in its own as itself. The core decides what
	// that member may do.
	Acts
	// User alone. Ask is what a session is told to do instead.
	User
)

func (r Rule) String() string {
	return [...]string{"none", "anyone", "reads", "acts", "user"}[r]
}

// Row is one entry of the table.
type Row struct {
	Name    string // of a command, without cadre: task add. Of an entry of pkg/teams: New, Manager.CreateTeam
	Rule    Rule
	Because string // why a session is refused; needed with User
	Flags   []Flag // those that change the rule when they are given; the strictest counts, but Anyone counts before all
}

// Flag is a flag of a command, or a field of what an entry takes, with a rule of its own.
type Flag struct {
	Name    string
	Rule    Rule
	Because string
}

// Command is the gate of the command line: path is the command's without cadre, and given reports
// whether a flag was.
func (c Caller) Command(path string, given func(flag string) bool) error {
	if c.check {
		return passCheck(commands, inChecks, "cadre ", "--", path, given)
	}
	return c.pass(commands, "cadre ", "--", path, given)
}

// Entry is the gate of the library: name is the entry's, and given reports whether a field of what
// it takes was set; nil for none.
func (c Caller) Entry(name string, given func(field string) bool) error {
	if c.check {
		return passCheck(entries, entriesInChecks, "", "", name, given)
	}
	return c.pass(entries, "", "", name, given)
}

// RuleOf is the rule of a command with the flags that were given.
func RuleOf(path string, given func(flag string) bool) Rule {
	row, flag := find(commands, path, given)
	if flag != nil {
		return flag.Rule
	}
	return row.Rule
}

// Commands and Entries are the table, for tests that hold the front ends to it.
func Commands() []Row { return slices.Clone(commands) }
func Entries() []Row  { return slices.Clone(entries) }

// find returns the row of that name, and its flag whose rule counts instead of the row's.
func find(table []Row, name string, given func(string) bool) (row Row, counts *Flag) {
	i := slices.IndexFunc(table, func(r Row) bool { return r.Name == name })
	if i < 0 { // a test keeps the tables whole; what is in none is for the user
		return Row{Name: name, Rule: User, Because: "nobody said who may call it"}, nil
	}
	row = table[i]
	rule := row.Rule
	for k := range row.Flags {
		f := &row.Flags[k]
		if given == nil || !given(f.Name) {
			continue
		}
		if f.Rule == Anyone {
			return row, f
		}
		if f.Rule > rule {
			rule, counts = f.Rule, f
		}
	}
	return row, counts
}

func (c Caller) pass(table []Row, prefix, dash, name string, given func(string) bool) error {
	if !c.session {
		return nil
	}
	row, flag := find(table, name, given)
	rule, because := row.Rule, row.Because
	what := strings.TrimSpace(prefix + name)
	if flag != nil {
		rule, because = flag.Rule, flag.Because
		what += " " + dash + flag.Name
	}
	switch {
	case rule == Anyone:
		return nil
	case rule == User && c.unknown != "":
		return deny("%s is for the user: %s. It is not known who calls: %s.", what, because, c.unknown)
	case rule == User:
		return deny("%s is for the user: %s. This is %s; ask the user for it, or the lead with a message.",
			what, because, c)
	case c.team == "" && c.unknown == "":
		return deny("%s is for members of a team of cadre's, and this is %s.", what, c)
	case c.unknown != "" && (rule == Acts || c.team == "" || c.member != ""):
		return deny("%s is refused, because it is not known who calls: %s.", what, c.unknown)
	}
	return nil
}
