package run_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/run"
	"cadre/internal/run/teamfile"
	"cadre/internal/team"
)

// shelf is a place for team files and templates.
type shelf struct {
	t         *testing.T
	dir       string
	templates map[string]string
}

func newShelf(t *testing.T, files map[string]string) shelf {
	s := shelf{t, t.TempDir(), map[string]string{}}
	for name, text := range files {
		s.write(name, text)
	}
	return s
}

// write writes a team file, or a template if the name has no ending.
func (s shelf) write(name, text string) {
	s.t.Helper()
	if filepath.Ext(name) == "" {
		s.templates[name] = text
	} else if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s shelf) loader() run.Loader {
	return run.Loader{Dir: s.dir, Template: func(name, dir string) (run.Source, error) {
		text, is := s.templates[name]
		if !is || dir != s.dir {
			return run.Source{}, fmt.Errorf("unknown template %s in %s", name, dir)
		}
		return run.Source{Text: []byte(text), Called: name + ".yaml", Origin: "template:" + name}, nil
	}}
}

// load reads the file for a run, and also as cadre validate does.
func (s shelf) load(name string, set ...teamfile.Setting) (f *teamfile.File, forRun, toCheck error) {
	path := filepath.Join(s.dir, name)
	f, _, forRun = s.loader().File(path, set...)
	_, toCheck = s.loader().Check(path)
	return f, forRun, toCheck
}

// parent is a team file with a member that is a team.
func parent(depth int, member string) string {
	return fmt.Sprintf("name: up\nmaxDepth: %d\nmembers:\n  - {name: sub, agent: team, %s}\ntasks: [{id: a}]\n", depth, member)
}

// rounds is a team file with parameters.
const rounds = `name: inner
parameters:
  what: {help: what to do}
  rounds: {type: int, default: 2}
  files: {type: list, default: []}
members: [{name: w, agent: shell}]
tasks: [{id: a, run: 'echo "$CADRE_PARAM_WHAT"', subject: 'Do ${{ what }}'}]
`

// plain is the smallest team file.
const plain = "name: inner\nmembers: [{name: w, agent: shell}]\ntasks: [{id: a, run: 'true'}]\n"

// TestNestedMistakes: what would refuse a team in a team is found when the parent is read, however
// deep it is, at the member's place in the file that is read.
func TestNestedMistakes(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"inner.yaml": plain, "needs.yaml": rounds, "plain": plain, "needs": rounds,
		"broken.yaml": "name: inner\nmembers: [{name: w, agent: shell}]\ntasks: [{id: a, run: 'true', colour: red}]\n",
		"checked":     plain + "checks: ['true']\n", "commits": plain + "consolidate: true\n",
		"apart":       strings.Replace(plain, "agent: shell", "agent: shell, isolation: worktree", 1),
		"called":      strings.Replace(plain, "name: w", "name: parent", 1),
		"filed":       parent(1, "file: /etc/x.yaml"),
		"middle.yaml": parent(2, "file: inner.yaml"), "one.yaml": parent(1, "file: inner.yaml"),
		"lost.yaml":     parent(1, "file: nowhere.yaml"),
		"deep.yaml":     parent(2, "file: middle.yaml"),
		"goal.yaml":     parent(1, "goal: Build it"),
		"toogreat.yaml": parent(1, "file: deep.yaml"),
	}
	for _, c := range []struct{ member, want string }{
		{"file: nowhere.yaml", "up.yaml:4:36: the team of sub: the team file cannot be read: "},
		{"file: broken.yaml", "broken.yaml:3:30: unknown key \"colour\""},
		{"template: nothing", "up.yaml:4:40: the team of sub: unknown template nothing"},
		{"template: needs", "up.yaml:4:40: the template needs: the parameter what has no default, so it must be set: " +
			"what=TEXT (what to do); add it to set: of sub"},
		{"file: needs.yaml", "up.yaml:4:36: needs.yaml: the parameter what has no default"},
		{"file: needs.yaml, set: {what: x, rounds: many}", "up.yaml:4:71: rounds of needs.yaml: the value is a whole " +
			`number, not "many"`},
		{"template: needs, set: {what: x, round: 3}", "up.yaml:4:69: round of the template needs: there is no such " +
			`parameter; did you mean "rounds"?`},
		{"template: plain, set: {what: x}", "up.yaml:4:59: what of the template plain: this team file has no parameters"},
		{"template: needs, set: {what: [a, b]}", "what of the template needs: the value is given twice"},
		{"template: needs, set: {what: }", "the parameter what has no value here"},
		{"template: needs, set: [what]", "set is a mapping of the names of parameters to values"},
		{"template: needs, set: {what: x, what: y}", "up.yaml:4:62: the parameter \"what\" is here a second time"},
		{"goal: Build it, set: {what: x}", "a goal has no parameters"},
		{"template: checked", "checked.yaml:4:9: sub works in the directory of its team, which checks and commits the work " +
			"there, so it can have no checks; give sub isolation: worktree, or leave that out (the team of sub, %s:4:40)\n" +
			"    4 | checks: ['true']\n"},
		{"template: commits", "commits.yaml:4:14: sub works in the directory of its team, which checks and commits the work there, so it " +
			"can have no consolidate"},
		{"template: apart", "apart.yaml:2:46: sub works in the directory of its team, which checks and commits the work there, so it " +
			"can have no isolation"},
		{"template: called", `called.yaml:2:18: "parent" cannot be the name of a member of a team in a team`},
		{"file: broken.yaml}\n  - {name: other, agent: team, file: broken.yaml", "/broken.yaml:3:30: unknown key"},
		{"template: filed", "filed.yaml:4:36: a template takes no file:"},
		{"file: one.yaml", "has teams in it, and maxDepth of %s allows none there (NESTED_TEAMS_NOT_ALLOWED); raise it to 2"},
		{"file: goal.yaml", "has teams in it, and maxDepth of %s allows none there"},
		{"file: lost.yaml", "raise it to 2"},
	} {
		s := newShelf(t, files)
		s.write("up.yaml", parent(1, c.member))
		want := strings.ReplaceAll(c.want, "%s", filepath.Join(s.dir, "up.yaml"))
		_, forRun, toCheck := s.load("up.yaml")
		for _, err := range []error{forRun, toCheck} {
			if _, is := errors.AsType[teamfile.Errors](err); !is || strings.Count(err.Error(), want) != 1 {
				t.Errorf("%s: got %v, want %s", c.member, err, want)
			}
		}
	}
	for _, name := range []string{"checked", "commits", "apart"} {
		s := newShelf(t, files)
		s.write("up.yaml", parent(1, "isolation: worktree, template: "+name))
		if _, forRun, toCheck := s.load("up.yaml"); forRun != nil || toCheck != nil {
			t.Errorf("%s in a worktree: %v, %v", name, forRun, toCheck)
		}
	}
	for depth, c := range map[int]struct{ file, want string }{
		2: {"deep.yaml", "raise it to 3"}, // three teams below this one
		3: {"lost.yaml", "nowhere.yaml"},
	} {
		s := newShelf(t, files)
		s.write("up.yaml", parent(depth, "file: "+c.file))
		if _, err, _ := s.load("up.yaml"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %d deep: got %v, want %s", c.file, depth, err, c.want)
		}
	}
	s := newShelf(t, files)
	s.write("up.yaml", parent(3, "file: toogreat.yaml")) // maxDepth of the file between is too small
	if _, err, _ := s.load("up.yaml"); err == nil || !strings.Contains(err.Error(), "toogreat.yaml allows none there") {
		t.Errorf("a small maxDepth in between: %v", err)
	}
	s.write("up.yaml", parent(3, "file: deep.yaml"))
	if _, err, toCheck := s.load("up.yaml"); err != nil || toCheck != nil {
		t.Errorf("three deep: %v, %v", err, toCheck)
	}
	s.write("self", parent(3, "template: self"))
	s.write("up.yaml", parent(3, "template: self"))
	if _, err, _ := s.load("up.yaml"); err == nil || !strings.Contains(err.Error(), "does a team file contain itself?") {
		t.Errorf("a template in itself: %v", err)
	}
}

// TestNestedValues: the values of set reach the file of a child as those of --set do.
func TestNestedValues(t *testing.T) {
	t.Parallel()
	s := newShelf(t, map[string]string{"needs": rounds})
	s.write("up.yaml", "parameters: {topic: {}, list: {type: list, default: [a, '[b']}}\n"+
		parent(1, "template: needs, set: {what: 'the ${{ topic }}', rounds: 3, files: '${{ list }}'}"))
	f, err, toCheck := s.load("up.yaml", teamfile.Setting{Name: "topic", Text: "$(touch pwned)"})
	if toCheck != nil || f == nil {
		t.Fatalf("%v, %v", err, toCheck)
	}
	set := f.Members[0].Nested.Set
	child, err := s.loader().Of(run.Source{Text: []byte(rounds), Called: "needs.yaml"}, set...)
	if err != nil || child.Tasks[0].Subject != "Do the $(touch pwned)" ||
		child.Tasks[0].Run != `echo "$CADRE_PARAM_WHAT"` || strings.Join(child.Tasks[0].Env, "|") !=
		"CADRE_PARAM_WHAT=the $(touch pwned)|CADRE_PARAM_ROUNDS=3|CADRE_PARAM_FILES=a\n[b" {
		t.Errorf("%+v makes %+v, %v", set, child, err)
	}
	if f.Members[0].Nested.Digest != child.Digest() {
		t.Error("another text or another value of the template has the same digest")
	}
}

// TestNestedTextsAreInTheDigest: another text of a file or template, at any depth, is another team
// file, to which a person must agree.
func TestNestedTextsAreInTheDigest(t *testing.T) {
	t.Parallel()
	s := newShelf(t, map[string]string{"plain": plain, "middle": parent(1, "template: plain"),
		"middle.yaml": parent(1, "template: plain")})
	for _, member := range []string{"template: middle", "file: middle.yaml"} {
		s.write("up.yaml", parent(2, member))
		digest := func() string {
			t.Helper()
			f, err, _ := s.load("up.yaml")
			if err != nil {
				t.Fatal(err)
			}
			return f.Digest()
		}
		before := digest()
		s.write("plain", plain+"# more\n")
		if digest() == before {
			t.Errorf("%s: another text two teams below gives the same digest", member)
		}
		s.write("plain", plain)
		if digest() != before {
			t.Errorf("%s: the same texts give another digest", member)
		}
	}
}

// TestChildNames: the name of a child team has that of its member, however long its parent's is.
func TestChildNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", team.MaxName)
	for _, c := range []struct {
		parent, member string
		n              int
		want           string
	}{
		{"release", "docs", 1, "release-docs"},
		{"release", "docs", 12, "release-docs-12"},
		{long[:60], "docsone", 1, long[:56] + "-docsone"},
		{long[:60], "docstwo", 3, long[:54] + "-docstwo-3"},
		{long[:55] + "-abcd", "docsone", 1, long[:55] + "-docsone"},
		{"release", long, 1, long},
		{"release", long[:62], 1, "r-" + long[:62]},
		{"release", long[:61], 2, long[:61] + "-2"},
	} {
		got := run.ChildName(c.parent, c.member, c.n)
		if got != c.want || team.CheckName("team", got) != nil {
			t.Errorf("%s of %s: got %s, want %s (%v)", c.member, c.parent, got, c.want, team.CheckName("team", got))
		}
	}
}
