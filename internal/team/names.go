package team

import (
	"slices"
	"strings"
)

// ValidName reports whether a team or a member may have this name: a letter or digit, then up to 63
// letters, digits, _ or -.
func ValidName(name string) bool {
	if len(name) == 0 || len(name) > MaxName || name[0] == '_' || name[0] == '-' {
		return false
	}
	for i := range len(name) {
		b := name[i]
		if !(b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '-') {
			return false
		}
	}
	return true
}

// CheckName is the error for a name that is not a [ValidName]. what is team, member or lead.
func CheckName(what, name string) error {
	if !ValidName(name) {
		return refuse(Invalid, "%q cannot be the name of a %s: a name is a letter or digit and then up to 63 "+
			"letters, digits, _ or -", brief(name), what)
	}
	return nil
}

// Names that claim an authority which no member has: whoever reads its mail, a model above all, would take
// it for somebody else's. Names of agents, such as claude or codex, claim none.
var (
	// outsiders are the person, the programs around a team, and those who make models.
	outsiders = []string{"user", "human", "person", "system", "assistant", "cadre", "anthropic", "openai", "google", "deepmind"}
	// authorities are names that the lead alone may have.
	authorities = []string{"lead", "leader", "teamlead", "teamleader", "admin", "administrator", "root", "superuser", "owner", "operator"}
)

// CheckNewMember is the error for a name that a new member cannot take: one that is not a [ValidName], or
// that claims authority, also in other letters that look like it. Members that are there keep theirs.
func CheckNewMember(name, lead string) error {
	if err := CheckName("member", name); err != nil {
		return err
	}
	look := looks(name)
	plain := strings.TrimRight(name, "0123456789") // lead-2 claims what lead claims
	for _, claimed := range slices.Concat(outsiders, authorities) {
		if like := looks(claimed); look == like || looks(plain) == like {
			return refuse(Invalid, "%q cannot be the name of a member: its messages would seem to come from the %s; "+
				"choose a name that says what it does, such as reviewer", name, claimed)
		}
	}
	if look == looks(lead) && !strings.EqualFold(name, lead) {
		return refuse(Invalid, "%q cannot be the name of a member: it looks like that of the lead, %s; "+
			"choose a name that says what it does, such as reviewer", name, lead)
	}
	return nil
}

// checkNewLead is the error for a name that the lead of a new team cannot take.
func checkNewLead(name string) error {
	if err := CheckName("lead", name); err != nil {
		return err
	}
	for _, claimed := range outsiders {
		if looks(name) == looks(claimed) {
			return refuse(Invalid, "%q cannot be the name of a lead: its messages would seem to come from the %s; "+
				"leave the name out to call it %s, or choose another", name, claimed, DefaultLead)
		}
	}
	return nil
}

// confusable replaces what looks alike, or is read alike, by one of it. Names have ASCII letters only.
var confusable = strings.NewReplacer("-", "", "_", "", "0", "o", "1", "l", "i", "l", "3", "e", "4", "a", "5", "s", "7", "t",
	"rn", "m", "vv", "w", "cl", "d")

// looks is what remains of a name when letters that look alike are the same: two names with the same looks
// may be taken for each other.
func looks(name string) string { return confusable.Replace(strings.ToLower(name)) }
