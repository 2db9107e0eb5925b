package access

import (
	"slices"
	"strings"
)

// Rule says who may call something.
type Rule int

// The rules, from the most open one to the strictest.
const (
	// Anyone may call it: it does not touch a team, or it is a helper that cadre itself starts in
	// sessions.
	Anyone Rule = iota + 1
	// Reads a team. The user may read any team, a session its own.
	Reads
	// Acts in a team. The user may act in any team, a session in its own as its member. The core
	// decides what that member may do.
	Acts
	// User means the user alone. Ask says what a session should do instead.
	User
)

func (r Rule) String() string {
	return [...]string{"none", "anyone", "reads", "acts", "user"}[r]
}

// Row is one entry of the table.
type Row struct {
	Name    string // of a command, without cadre: task add; of an entry of pkg/teams: New, Manager.CreateTeam
	Rule    Rule
	Because string // why a session is refused; required with User
	Flags   []Flag // flags that change the rule when given; the strictest one counts, but Anyone wins over all
}

// Flag is a flag of a command, or a field of an entry's argument, with a rule of its own.
type Flag struct {
	Name    string
	Rule    Rule
	Because string
}

// Command is the gate of the command line. path is the command without cadre, and given reports
// whether a flag was given.
func (c Caller) Command(path string, given func(flag string) bool) error {
	if c.check {
		return passCheck(commands, inChecks, "cadre ", "--", path, given)
	}
	return c.pass(commands, "cadre ", "--", path, given)
}

// Entry is the gate of the library. name is the entry's name, and given reports whether a field of
// its argument was set; nil for no fields.
func (c Caller) Entry(name string, given func(field string) bool) error {
	if c.check {
		return passCheck(entries, entriesInChecks, "", "", name, given)
	}
	return c.pass(entries, "", "", name, given)
}

// RuleOf returns the rule of a command with the given flags.
func RuleOf(path string, given func(flag string) bool) Rule {
	row, flag := find(commands, path, given)
	if flag != nil {
		return flag.Rule
	}
	return row.Rule
}

// Changes reports whether the words of a command line, without cadre, may change a team or run
// something. Words that are not a command change nothing, so it returns false for them.
func Changes(words []string) bool {
	for n := len(words); n > 0; n-- {
		path := strings.Join(words[:n], " ")
		if !slices.ContainsFunc(commands, func(r Row) bool { return r.Name == path }) {
			continue
		}
		return RuleOf(path, func(flag string) bool {
			return slices.ContainsFunc(words[n:], func(w string) bool {
				name, _, _ := strings.Cut(w, "=")
				return name == "--"+flag
			})
		}) > Reads
	}
	return false
}

// Commands and Entries return the tables, for tests that compare the front ends with them.
func Commands() []Row { return slices.Clone(commands) }
func Entries() []Row  { return slices.Clone(entries) }

// find returns the row of that name, and the flag whose rule replaces the row's.
func find(table []Row, name string, given func(string) bool) (row Row, counts *Flag) {
	i := slices.IndexFunc(table, func(r Row) bool { return r.Name == name })
	if i < 0 { // a test checks that the tables are complete; a missing row is for the user
		return Row{Name: name, Rule: User, Because: "the table does not say who may call it"}, nil
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
