package run

import (
	"cmp"
	"errors"
	"path/filepath"
	"slices"
	"strings"

	"cadre/internal/run/teamfile"
	"cadre/internal/team"
)

// Source is the text of a template.
type Source struct {
	Text   []byte
	Called string // name of the file in messages
	Origin string // of a team that is made from it
}

// Template returns the template of that name for a team in dir, which may be one of the project
// there.
type Template func(name, dir string) (Source, error)

// Loader reads team files and templates, with those that the members which are teams name, down to
// the deepest one. A file that it returns can be made: it has the digests of all of them.
type Loader struct {
	Template Template         // finds the templates of members; nil leaves them unread
	Dir      string           // directory of the team
	Inner    *teamfile.Inside // the member whose team it is; nil for a team by itself
}

// maxNested bounds how many files and templates a tree of teams is made from.
const maxNested = 1000

// File reads a team file, with values for its parameters. It also returns the file's path, which is
// the same however the file is named.
func (l Loader) File(name string, set ...teamfile.Setting) (*teamfile.File, string, error) {
	return (&tree{Loader: l}).file(name, teamfile.Options{Set: set, Inner: l.Inner})
}

// Check reads a team file whose parameters may have no values yet.
func (l Loader) Check(name string) (*teamfile.File, error) {
	f, _, err := (&tree{Loader: l}).file(name, teamfile.Options{Unset: true})
	return f, err
}

// Of reads a template, with values for its parameters.
func (l Loader) Of(s Source, set ...teamfile.Setting) (*teamfile.File, error) {
	return (&tree{Loader: l}).source(s, teamfile.Options{Set: set, Inner: l.Inner})
}

// CheckOf reads a template whose parameters may have no values yet.
func (l Loader) CheckOf(s Source) (*teamfile.File, error) {
	return (&tree{Loader: l}).source(s, teamfile.Options{Unset: true})
}

// tree is the reading of one file or template with all below it.
type tree struct {
	Loader
	read int // so many files and templates of members
}

// room says how much deeper teams may be nested, and which file allows no more.
type room struct {
	left int
	most int // maxDepth of that file
	by   string
}

func (t *tree) file(name string, o teamfile.Options) (*teamfile.File, string, error) {
	f, path, err := readFile(name, o)
	if err != nil {
		return nil, "", err
	}
	return f, path, t.nest(f, path, room{f.MaxDepth, f.MaxDepth, name})
}

func (t *tree) source(s Source, o teamfile.Options) (*teamfile.File, error) {
	f, err := readSource(s, o)
	if err != nil {
		return nil, err
	}
	return f, t.nest(f, "", room{f.MaxDepth, f.MaxDepth, s.Called})
}

// readFile reads one team file, and returns its path.
func readFile(name string, o teamfile.Options) (*teamfile.File, string, error) {
	data, err := read(name)
	if err != nil {
		return nil, "", err
	}
	o.Agents = knownAgents()
	f, err := teamfile.Read(data, name, o)
	if err != nil {
		return nil, "", err
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, "", err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return f, path, nil
}

func readSource(s Source, o teamfile.Options) (*teamfile.File, error) {
	o.Agents, o.Template = knownAgents(), true
	return teamfile.Read(s.Text, s.Called, o)
}

// nest reads what the members of the file that are teams are made from, and notes the digests. Its
// error has every mistake once, also those of a file that several members name.
func (t *tree) nest(f *teamfile.File, path string, in room) error {
	var all teamfile.Errors
	for i := range f.Members {
		n := &f.Members[i].Nested
		if n.File == "" && (n.Template == "" || t.Template == nil) {
			continue
		}
		if i > 0 && n.Beside(f.Members[i-1].Nested) {
			*n = f.Members[i-1].Nested
			continue
		}
		for _, wrong := range t.child(&f.Members[i], path, in) {
			if !slices.ContainsFunc(all, wrong.Repeats) {
				all = append(all, wrong)
			}
		}
	}
	if len(all) > 0 {
		return all
	}
	return nil
}

// child reads what the teams of one member are made from.
func (t *tree) child(m *teamfile.Member, path string, in room) teamfile.Errors {
	member, n := m.Name, &m.Nested
	key, called := "file", n.File
	if n.File == "" {
		key, called = "template", "the template "+n.Template
	}
	wrong := func(format string, args ...any) teamfile.Errors {
		return teamfile.Errors{n.Mistake(key, "the team of "+member+": "+format, args...)}
	}
	if t.read++; t.read > maxNested {
		return wrong("more than %d files and templates would make the teams in this team; name fewer", maxNested)
	}
	f, there, err := t.open(n, path, inside(m.Name, m.Isolation))
	if err != nil {
		return misplaced(n, key, member, called, err)
	}
	below := room{in.left - 1, in.most, in.by}
	if f.MaxDepth < below.left {
		below = room{f.MaxDepth, f.MaxDepth, there}
	}
	switch {
	case !nests(f):
	case below.left > 0:
		if err := t.nest(f, there, below); err != nil {
			return misplaced(n, key, member, called, err)
		}
	case in.most == team.MostDepth:
		return wrong("%s has teams in it, and teams can be nested at most %d deep (%s); does a team file contain itself?",
			called, team.MostDepth, team.NestedTeamsNotAllowed)
	default:
		return wrong("%s has teams in it, and maxDepth of %s allows none there (%s); raise it to %d", called, in.by,
			team.NestedTeamsNotAllowed, in.most+1)
	}
	n.Path, n.Digest, n.Of = there, f.Digest(), f
	if n.File == "" {
		n.Path = ""
	}
	return nil
}

// open reads the file or the template of a member. A path is relative to the folder of the file
// that names it.
func (t *tree) open(n *teamfile.Nested, path string, in *teamfile.Inside) (f *teamfile.File, there string,
	err error) {
	o := teamfile.Options{Set: n.Set, Unknown: n.Unknown, Inner: in}
	if n.File == "" {
		s, err := t.Template(n.Template, t.Dir)
		if err != nil {
			return nil, "", err
		}
		f, err = readSource(s, o)
		return f, s.Called, err
	}
	inner := n.File
	if !filepath.IsAbs(inner) {
		inner = filepath.Join(filepath.Dir(path), inner)
	}
	return readFile(inner, o)
}

// inside returns for which member a file is read.
func inside(member, isolation string) *teamfile.Inside {
	return &teamfile.Inside{Member: member, Worktree: isolation == team.Worktree}
}

// mostInner bounds how many mistakes are told of the file or template of a member.
const mostInner = 20

// misplaced returns the mistakes of what a member names: those in a value for a parameter at that
// value, others in that file or template, with the member that names it, and all without a place at
// the name.
func misplaced(n *teamfile.Nested, key, member, called string, err error) (all teamfile.Errors) {
	found, is := errors.AsType[teamfile.Errors](err)
	if !is {
		e := n.Mistake(key, "the team of %s: %v", member, err)
		e.Cause = err
		return teamfile.Errors{e}
	}
	var inner teamfile.Errors
	for _, e := range found {
		switch {
		case e.Setting != "" && e.Line == 0:
			all = append(all, n.Mistake("set."+e.Setting, "%s of %s: %s", e.Setting, called, e.Message))
		case e.Setting != "":
			all = append(all, n.Mistake("set", "%s: %s; add it to set: of %s", called,
				strings.Replace(e.Message, "so a run must set it", "so it must be set", 1), member))
		case e.Line == 0:
			one := n.Mistake(key, "the team of %s: %s", member, e.Message)
			one.Cause = e.Cause
			all = append(all, one)
		default:
			inner = append(inner, e.In(n.Mistake(key, "the team of %s", member)))
		}
	}
	slices.SortStableFunc(all, func(a, b *teamfile.Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	if more := len(inner) - mostInner; more > 0 {
		inner = append(inner[:mostInner], n.Mistake(key, "the team of %s: %s has %s", member, called,
			team.Count(more, "more mistake")))
	}
	return append(all, inner...)
}
