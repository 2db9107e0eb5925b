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

// CheckName returns an error for a name that is not a [ValidName]. what is team, member or lead.
func CheckName(what, name string) error {
	if !ValidName(name) {
		return refuse(Invalid, "%q cannot be the name of a %s: a name is one of a-z, A-Z and 0-9, and then up to "+
			"63 of these, _ or -", brief(name), what)
	}
	return nil
}

// claim is a name that claims an authority which no member has. A reader would take its messages
// for messages of the sender from.
type claim struct{ name, from string }

// A reader, above all a model, would take the mail of a member with such a name for mail of another
// sender. Names of agents, such as claude or codex, claim nothing.
var (
	// outsiders are the person, the programs around a team, and the makers of models.
	outsiders = []claim{{"user", "the user"}, {"human", "a human"}, {"person", "a person"}, {"system", "the system"},
		{"assistant", "an assistant"},
		{"cadre", "cadre"}, {"anthropic", "Anthropic"}, {"openai", "OpenAI"}, {"google", "Google"},
		{"deepmind", "DeepMind"}}
	// authorities are names that only the lead may have.
	authorities = []claim{{"lead", "the lead"}, {"leader", "the lead"}, {"teamlead", "the lead"},
		{"teamleader", "the lead"}, {"admin", "an administrator"},
		{"administrator", "an administrator"}, {"root", "root"}, {"superuser", "root"}, {"owner", "the owner"},
		{"operator", "the operator"}}
)

// CheckNewMember returns an error for a name that a new member cannot have: one that is not a
// [ValidName], or that claims authority, also in look-alike letters. Existing members keep their
// names.
func CheckNewMember(name, lead string) error {
	if err := CheckName("member", name); err != nil {
		return err
	}
	for _, claimed := range slices.Concat(outsiders, authorities) {
		// lead-2 claims what lead claims
		if claims(name, claimed.name) || claims(strings.TrimRight(name, "0123456789"), claimed.name) {
			return refuse(Invalid, "%q cannot be the name of a member: its messages would seem to come from %s; "+
				"choose a name that says what it does, such as reviewer", name, claimed.from)
		}
	}
	if claims(name, lead) && !strings.EqualFold(name, lead) {
		return refuse(Invalid, "%q cannot be the name of a member: it looks like the lead's name, %s; "+
			"choose a name that says what it does, such as reviewer", name, lead)
	}
	return nil
}

// checkNewLead returns an error for a name that the lead of a new team cannot have.
func checkNewLead(name string) error {
	if err := CheckName("lead", name); err != nil {
		return err
	}
	for _, claimed := range outsiders {
		if claims(name, claimed.name) {
			return refuse(Invalid, "%q cannot be the name of a lead: its messages would seem to come from %s; "+
				"leave the name out to call it %s, or choose another", name, claimed.from, DefaultLead)
		}
	}
	return nil
}

// claims reports whether a name may be taken for another one, with or without articles. For example
// the-lead claims what lead claims, and an-admin what admin claims.
func claims(name, other string) bool {
	if looks(name) == looks(other) {
		return true
	}
	for look, like := looks(bare(name)), looks(bare(other)); ; {
		if look == like {
			return true
		}
		rest, found := strings.CutPrefix(look, "the") // thelead
		if !found {
			return false
		}
		look = rest
	}
}

// bare returns a name without its leading articles, each a word of its own. A name of articles
// alone stays as it is.
func bare(name string) string {
	rest := name
	for {
		end := strings.IndexAny(rest, "-_")
		if end < 0 || end == len(rest)-1 {
			return rest
		}
		switch looks(rest[:end]) {
		case "", "a", "an", "the":
			rest = rest[end+1:]
		default:
			return rest
		}
	}
}

// confusable replaces letters that look or read alike by one of them. Names have ASCII letters
// only.
var confusable = strings.NewReplacer("-", "", "_", "", "0", "o", "1", "l", "i", "l", "3", "e", "4", "a", "5",
	"s", "7", "t",
	"rn", "m", "vv", "w", "cl", "d")

// looks folds letters that look alike into one. Two names with the same looks may be taken for each
// other.
func looks(name string) string { return confusable.Replace(strings.ToLower(name)) }

// Named is [State.Member], and refuses a name that no member has.
func (s *State) Named(name string) (Member, error) {
	if m, known := s.Member(name); known {
		return m, nil
	}
	return Member{}, s.unknown(name)
}

func (s *State) unknown(name string) error {
	return s.noMember(name, s.memberNames())
}

func (s *State) noMember(name string, valid []string) error {
	meant := "; valid"
	if near := Nearest(name, valid); near != "" {
		meant = ", did you mean " + near + "? Valid"
	}
	return Refuse(NotFound, "no member named %q in team %s%s names: %s", brief(name), s.team.Name, meant, names(valid)).
		With(s.team.hint(ActShowTeam))
}

func (s *State) memberNames() []string {
	var all []string
	for i := range s.members {
		all = append(all, s.members[i].Name)
	}
	return all
}
