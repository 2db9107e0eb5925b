// Package filter is the language in which a person narrows a list of teams, members or tasks.
//
// It has no authority, and knows no terminal.
//
// # The language
//
//	lint           a word in the subject, the name or the team
//	"unit tests"   the same with spaces
//	m:ann          the member, or the one that works on the task; also member: and owner:
//	s:blocked      the state; also status: and state:
//	t:core         the team; also team:
//	#12  #lint     the task with that number or name
//	-s:completed   anything but that
//
// Terms are separated by spaces, and an item must pass all of them. Several of one key are
// alternatives: s:failed s:blocked selects both. A value selects what begins with it, whatever the
// case; in quotes it is the whole name: m:"ann" does not select anna.
//
// The board has the language a second time in JavaScript, because an exported file has no server
// that could be asked. testdata/cases.json holds both to the same answers and the same words for
// mistakes.
package filter

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cadre/internal/team"
)

// Item is what a filter tests.
type Item struct {
	Team    string
	Members []string // the member itself, the one that worked on a task last, or the members of a team
	States  []string
	Number  string // of a task
	Name    string // of a task
	Words   []string
}

// Task returns the item for a task of a team.
func Task(of string, t team.Task) Item {
	i := Item{Team: of, Number: t.ID, Name: t.Name, Words: []string{t.Subject, t.Name, of}}
	i.States = []string{t.State(), string(t.Status)}
	if worker := t.Worker(); worker != "" {
		i.Members = []string{worker}
	}
	return i
}

// Member returns the item for a member of a team. phase is its state in words.
func Member(of string, m team.Member, phase team.Phase) Item {
	return Item{Team: of, Members: []string{m.Name}, States: []string{string(phase), string(m.Status)},
		Words: []string{m.Name, m.Role, m.Agent, m.Summary, of}}
}

// Team returns the item for a team and its members. state is its state in words.
func Team(of team.Team, state string, members []string) Item {
	return Item{Team: of.Name, Members: members, States: []string{state, string(of.Status)},
		Words: []string{of.Name, of.Goal, of.Dir}}
}

// key is the field that a term tests.
type key string

const (
	word   key = ""
	member key = "m"
	state  key = "s"
	inTeam key = "t"
	number key = "#"
)

var (
	keys = map[string]key{"m": member, "member": member, "owner": member, "s": state, "status": state, "state": state,
		"t": inTeam, "team": inTeam}
	means = map[key]string{member: "a member", state: "a state", inTeam: "a team"}
	// shown are the keys that completion offers, the most used one first.
	shown = []key{member, state, inTeam}
)

// found are the states of teams that lists show beside those that are recorded; see
// catalog.Overview.State.
var found = []string{"damaged", "dormant", "interrupted", "not observed now", "observed", "ready to be consolidated",
	"released", "winding down"}

// States are the states of tasks, members and teams, sorted.
func States() []string {
	all := append([]string{"failed", "blocked", "skipped", "verifying", string(team.Zombie),
		string(team.Paused)}, found...)
	for _, s := range []team.TaskStatus{team.Pending, team.InProgress, team.Completed} {
		all = append(all, string(s))
	}
	for _, m := range team.MemberMoves() {
		all = append(all, string(m.To))
	}
	for _, m := range team.TeamMoves {
		all = append(all, string(m.To))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// term is one condition.
type term struct {
	key   key
	value string // in lower case
	whole bool   // it was quoted
	not   bool
}

// Filter selects items. The zero Filter selects all of them.
type Filter struct{ terms []term }

// Empty reports whether the filter selects everything.
func (f Filter) Empty() bool { return len(f.terms) == 0 }

// Error is a mistake in a filter.
type Error struct {
	At   int // where the term begins, in bytes
	Text string
}

func (e *Error) Error() string { return e.Text }

// token is one term as written.
type token struct {
	at, end  int
	not      bool
	hash     bool
	key      string // before the colon; "" for none
	keyed    bool   // there is a colon
	value    string
	quoted   bool
	unclosed bool
}

// tokens splits the text at spaces outside of quotes.
func tokens(text string) (all []token) {
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		if unicode.IsSpace(r) {
			i += size
			continue
		}
		var t token
		t, i = next(text, i)
		all = append(all, t)
	}
	return all
}

// next reads the term that begins at i, and returns the index behind it.
func next(text string, i int) (token, int) {
	t := token{at: i}
	if text[i] == '-' {
		t.not = true
		i++
	}
	if i < len(text) && text[i] == '#' {
		t.hash = true
		i++
	}
	var value strings.Builder
	open := false
	for i < len(text) {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '"':
			open, t.quoted = !open, true
		case !open && unicode.IsSpace(r):
			t.end, t.value = i, value.String()
			return t, i
		case r == ':' && !open && !t.quoted && !t.keyed && !t.hash:
			t.key, t.keyed = value.String(), true
			value.Reset()
		default:
			value.WriteString(text[i : i+size])
		}
		i += size
	}
	t.end, t.value, t.unclosed = i, value.String(), open
	return t, i
}

// Parse parses a filter. Its error is an [*Error].
func Parse(text string) (f Filter, err error) {
	for _, t := range tokens(text) {
		one, wrong := t.term()
		if wrong != "" {
			return Filter{}, &Error{t.at, wrong}
		}
		f.terms = append(f.terms, one)
	}
	return f, nil
}

// term returns the condition, or a description of the mistake in it.
func (t token) term() (term, string) {
	one := term{value: strings.ToLower(t.value), whole: t.quoted, not: t.not}
	switch {
	case t.unclosed:
		return one, `a quotation mark is missing: write "` + t.value + `"`
	case t.hash && t.value == "":
		return one, "# needs a number or a name after it, such as #12"
	case t.hash:
		one.key = number
		return one, ""
	case !t.keyed && t.value == "" && t.not:
		return one, "- needs a term after it, such as -s:completed"
	case !t.keyed && t.value == "":
		return one, "the quotation marks are empty"
	case !t.keyed:
		return one, ""
	}
	k, is := keys[strings.ToLower(t.key)]
	switch {
	case !is:
		return one, fmt.Sprintf(`%q is not a key; the keys are m: (a member), s: (a state) and t: (a team). `+
			`To look for the text, quote it: "%s:%s"`, t.key, t.key, t.value)
	case t.value == "":
		return one, fmt.Sprintf("%s: needs %s after it, such as %s", t.key, means[k],
			map[key]string{member: "m:ann", state: "s:blocked", inTeam: "t:core"}[k])
	case k == state && !slices.ContainsFunc(States(), func(s string) bool { return one.selects(s) }):
		return one, fmt.Sprintf("no state begins with %q; the states are %s", t.value, strings.Join(States(), ", "))
	}
	one.key = k
	return one, ""
}

// selects reports whether the term's value selects the name.
func (t term) selects(name string) bool {
	name = strings.ToLower(name)
	return name == t.value || !t.whole && strings.HasPrefix(name, t.value)
}

// Match reports whether the filter selects the item.
func (f Filter) Match(i Item) bool {
	var wanted, found [4]bool // by key, for keys whose terms are alternatives
	for _, t := range f.terms {
		is := t.is(i)
		switch at := slices.Index([]key{member, state, inTeam, number}, t.key); {
		case t.not && is, !t.not && at < 0 && !is:
			return false
		case !t.not && at >= 0:
			wanted[at] = true
			found[at] = found[at] || is
		}
	}
	return wanted == found
}

func (t term) is(i Item) bool {
	switch t.key {
	case member:
		return slices.ContainsFunc(i.Members, t.selects)
	case state:
		return slices.ContainsFunc(i.States, t.selects)
	case inTeam:
		return t.selects(i.Team)
	case number:
		return i.Number != "" && strings.EqualFold(i.Number, t.value) ||
			i.Name != "" && strings.EqualFold(i.Name, t.value)
	}
	return slices.ContainsFunc(i.Words, func(text string) bool {
		return strings.Contains(strings.ToLower(text), t.value)
	})
}

// Known holds the names that completion offers.
type Known struct{ Members, Teams, Tasks []string }

// Complete returns the candidates for the term at the cursor, which counts bytes. Each one replaces
// text[from:cursor].
func Complete(text string, cursor int, known Known) (from int, terms []string) {
	cursor = max(0, min(cursor, len(text)))
	t := token{at: cursor}
	for _, one := range tokens(text[:cursor]) {
		if one.end == cursor {
			t = one
		}
	}
	begin := ""
	if t.not {
		begin = "-"
	}
	offer := func(prefix string, values []string) {
		for _, v := range values {
			if strings.HasPrefix(strings.ToLower(v), strings.ToLower(t.value)) && (v != t.value || t.unclosed) {
				terms = append(terms, begin+prefix+quoted(v))
			}
		}
	}
	switch k := keys[strings.ToLower(t.key)]; {
	case t.hash:
		offer("#", known.Tasks)
	case t.keyed && k == member:
		offer(t.key+":", known.Members)
	case t.keyed && k == state:
		offer(t.key+":", States())
	case t.keyed && k == inTeam:
		offer(t.key+":", known.Teams)
	case !t.keyed && !t.quoted:
		for _, k := range shown {
			if strings.HasPrefix(string(k), strings.ToLower(t.value)) {
				terms = append(terms, begin+string(k)+":")
			}
		}
	}
	return t.at, terms
}

// quoted returns the value in the syntax of a filter.
func quoted(value string) string {
	if strings.ContainsFunc(value, unicode.IsSpace) {
		return `"` + strings.ReplaceAll(value, `"`, "") + `"`
	}
	return value
}
