package team

import (
	"path"
	"strings"
)

// GoalOrigin begins the [Team].Origin of a team that was made from a goal. The directory of the
// goal follows.
const GoalOrigin = "goal:"

// MoveTeam records the new directory of a project that was moved as a whole. The sender has checked
// that it is the same project and that no member works in it.
type MoveTeam struct {
	Dir string // absolute
	Top string // of Dir's work tree; "" where the team never had a repository
}

func (b *MoveTeam) decide(d *decision) error {
	t := &d.team
	switch {
	case d.Actor != User:
		return refuse(Denied, "only the user says where the directory of team %s is now", t.Name)
	case !absolute(b.Dir):
		return refuse(Invalid, "the team's directory %q is not an absolute path", brief(b.Dir))
	case b.Top != "" && !absolute(b.Top):
		return refuse(Invalid, "the top of the work tree %q is not an absolute path", brief(b.Top))
	case (b.Top == "") != (t.Base.Top == ""):
		return refuse(Invalid, "a team that was created in a repository continues in one, and another team outside")
	}
	if err := limit(text{"directory", b.Dir, MaxSubject}, text{"top of the work tree", b.Top, MaxSubject}); err != nil {
		return err
	}
	if b.Dir == t.Dir && b.Top == t.Base.Top {
		return nil
	}
	e := &TeamMoved{Dir: b.Dir, Top: b.Top, From: t.Dir, Report: b.moved(t, t.Report)}
	if e.Origin = b.moved(t, t.Origin); t.Origin == GoalOrigin+t.Dir {
		e.Origin = GoalOrigin + b.Dir
	}
	for _, f := range t.Facts {
		f.Path = b.moved(t, f.Path)
		e.Facts = append(e.Facts, f)
	}
	if err := limit(text{"path of the team file", e.Origin, MaxSubject}, text{"path of the report", e.Report,
		MaxSubject}); err != nil {
		return err
	}
	if err := checkFacts(e.Facts); err != nil {
		return err
	}
	d.emit(e)
	for i := range d.members {
		if m := &d.members[i]; !m.runs() && m.Agent != External {
			d.hint(m.Name, "The project was moved from "+e.From+" to "+e.Dir+". Files that you know by their old "+
				"paths are there now.")
		}
	}
	return nil
}

// moved returns where a file that was at p is now. A file outside the project stays where it was.
func (b *MoveTeam) moved(t *Team, p string) string {
	return relocated(p, Moved{t.Base.Top, b.Top}, Moved{t.Dir, b.Dir})
}

// Moved says that the files of a folder are in another one now.
type Moved struct{ From, To string }

// relocated returns where a file that was at p is now. The first folder that it is in counts; a
// file in none of them stays where it was.
func relocated(p string, all ...Moved) string {
	for _, m := range all {
		if m.From == "" || m.To == "" || m.From == m.To {
			continue
		}
		if rest, ok := strings.CutPrefix(p, m.From); ok && (rest == "" || rest[0] == '/' || m.From == "/") {
			return path.Join(m.To, rest)
		}
	}
	return p
}

// absolute reports whether p is a plain absolute path.
func absolute(p string) bool { return strings.HasPrefix(p, "/") && path.Clean(p) == p }

// TeamMoved says that the project moved from From to Dir, and which paths of the team change with
// it.
type TeamMoved struct {
	Dir, Top, From string
	Origin, Report string
	Facts          []Fact
}

// Kind returns the event's name in the journal.
func (*TeamMoved) Kind() string { return "team_moved" }

func (e *TeamMoved) fields(c *coder) {
	c.str("dir", &e.Dir)
	c.str("top", &e.Top)
	c.str("from", &e.From)
	c.str("origin", &e.Origin)
	c.str("report", &e.Report)
	objects(c, "facts", &e.Facts)
}

func (e *TeamMoved) apply(s *State, _ *Record) {
	t := &s.team
	t.Dir, t.Base.Top, t.Origin, t.Report, t.Facts = e.Dir, e.Top, e.Origin, e.Report, e.Facts
}
