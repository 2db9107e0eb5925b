package layout_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// createIn creates the team of that name in a directory, and returns its id.
func createIn(t *testing.T, h layout.Home, name, dir string, more ...team.Body) (id string) {
	t.Helper()
	id = name + "-" + strings.ToLower(replica.NewID())
	if err := createAs(h, name, id, dir, more...); err != nil {
		t.Fatal(err)
	}
	return id
}

func createAs(h layout.Home, name, id, dir string, more ...team.Body) error {
	var commands []team.Command
	for _, body := range append([]team.Body{&team.CreateTeam{TeamID: id, Name: name, Dir: dir}}, more...) {
		commands = append(commands, team.Command{ID: replica.NewID(), Actor: team.User, At: replica.Now(), Body: body})
	}
	return h.Create(name, commands)
}

// idAt returns the id of the team that the reference stands for.
func idAt(t *testing.T, h layout.Home, ref string) string {
	t.Helper()
	j, _, err := h.Open(ref, nil)
	if err != nil {
		t.Fatalf("%s from %q: %v", ref, h.Dir, err)
	}
	defer j.Close()
	return j.ID()
}

// TestNamesOfProjects checks that a name stands for the team of the project, elsewhere for the only
// one that has it, and an id stands for its team everywhere.
func TestNamesOfProjects(t *testing.T) {
	h := newHome(t)
	one, two, neither := t.TempDir(), t.TempDir(), t.TempDir()
	first := createIn(t, h, "release", one)
	for _, dir := range []string{one, two, neither, ""} {
		if id := idAt(t, h.In(dir), "release"); id != first {
			t.Errorf("the only team from %q: %s", dir, id)
		}
	}
	second := createIn(t, h, "release", two)
	createIn(t, h, "release-notes", one)
	for dir, want := range map[string]string{one: first, two: second} {
		if id := idAt(t, h.In(dir), "release"); id != want {
			t.Errorf("release from %s: %s, and not %s", dir, id, want)
		}
	}
	for _, id := range []string{first, second} {
		for _, dir := range []string{one, two, neither, ""} {
			if found := idAt(t, h.In(dir), id); found != id {
				t.Errorf("%s from %q: %s", id, dir, found)
			}
		}
	}
	_, err := h.In(neither).Folder("release")
	ambiguous, is := errors.AsType[*layout.AmbiguousError](err)
	if !is || team.CodeOf(err) != team.Invalid || len(ambiguous.Teams) != 2 {
		t.Fatalf("release from elsewhere: %v", err)
	}
	for _, part := range []string{"2 teams are named release", first + " in " + one, second + " in " + two} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q lacks %q", err, part)
		}
	}
	names, err := h.Names()
	want := []string{first, second, "release-notes"}
	slices.Sort(want)
	if err != nil || !slices.Equal(names, want) {
		t.Errorf("the names: %q, %v", names, err)
	}
	want = []string{"release", second, "release-notes"}
	slices.Sort(want)
	if names, err = h.In(one).Names(); err != nil || !slices.Equal(names, want) {
		t.Errorf("the names in the project of the first: %q, %v", names, err)
	}
}

// TestNamesAreTaken checks that a project has a name once, whatever state its team is in, and a
// home has an id once.
func TestNamesAreTaken(t *testing.T) {
	h := newHome(t)
	one, two := t.TempDir(), t.TempDir()
	first := createIn(t, h, "release", one)
	below := filepath.Join(two, "moved")
	if err := os.Mkdir(below, 0o700); err != nil {
		t.Fatal(err)
	}
	moved := createIn(t, h, "moved", below)
	if err := os.Remove(below); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct{ name, id, dir, says string }{
		"the project's own":  {"release", newID("release"), one, "a free name: release-2"},
		"the same id":        {"release", first, two, "in this home already, and works in " + one},
		"a lost directory":   {"moved", newID("moved"), two, "Its directory, " + below + ", does not exist"},
		"no id of ours":      {"release", "release-x", two, "a team named release exists already"},
		"an id for its name": {moved, newID(moved), two, "looks like the id of one"},
	} {
		if err := createAs(h, c.name, c.id, c.dir); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	record := team.AppendRecord(nil, &team.Record{ID: "c", Actor: "lead", At: 1, Events: []team.Event{
		&team.TeamCreated{Team: team.Team{ID: "release-1", Name: "release", Dir: two, Observed: "x"},
			Lead: team.Member{Name: "lead"}}}})
	if _, err := h.Found("release", newID("release"), [][]byte{record}); team.CodeOf(err) != team.Taken {
		t.Errorf("an observed team: %v", err)
	}
	done := createIn(t, h, "done", one, &team.SetStatus{Status: team.TeamAborted})
	createIn(t, h, "done", two)
	if id := idAt(t, h.In(one), "done"); id != done {
		t.Errorf("the finished team of the other project is %s", id)
	}
}

func newID(name string) string { return name + "-" + strings.ToLower(replica.NewID()) }

// TestOwn checks that what creates or removes a team never means another project's. A team whose
// directory was lost may be the project's, unless it is to be removed.
func TestOwn(t *testing.T) {
	h := newHome(t)
	one, two := t.TempDir(), t.TempDir()
	id := createIn(t, h, "release", one)
	for what, find := range map[string]func(layout.Home, string) (string, error){"Own": layout.Home.Own,
		"Sure": layout.Home.Sure} {
		if dir, err := find(h.In(one), "release"); err != nil || dir != filepath.Join(h.Root, "teams", "release") {
			t.Errorf("%s in the project: %s, %v", what, dir, err)
		}
		if dir, err := find(h.In(two), id); err != nil || dir != filepath.Join(h.Root, "teams", "release") {
			t.Errorf("%s by the id: %s, %v", what, dir, err)
		}
		_, err := find(h.In(two), "release")
		if _, is := errors.AsType[*layout.ElsewhereError](err); !is || team.CodeOf(err) != team.NotFound ||
			!strings.Contains(err.Error(), id+" in "+one) {
			t.Errorf("%s elsewhere: %v", what, err)
		}
	}
	if err := os.Remove(one); err != nil {
		t.Fatal(err)
	}
	if _, err := h.In(two).Own("release"); err != nil {
		t.Errorf("Own of a lost one: %v", err)
	}
	if _, err := h.In(two).Sure("release"); err != nil {
		t.Errorf("Sure of a lost one: %v", err)
	}
}

// only reaches the team in one folder.
type only string

func (o only) Create(string) error { return team.Refuse(team.Denied, "no") }
func (o only) Reach(folder string) error {
	if folder == string(o) {
		return nil
	}
	return team.Refuse(team.Denied, "no")
}

// TestScopeOfOneName checks that a session reaches its own team by the name and by the id, wherever
// it is, and never the other team of that name.
func TestScopeOfOneName(t *testing.T) {
	h := newHome(t)
	one, two := t.TempDir(), t.TempDir()
	ids := map[string]string{"release": createIn(t, h, "release", one)}
	second := createIn(t, h, "release", two)
	ids[second] = second
	for folder, id := range ids {
		for _, dir := range []string{one, two, t.TempDir(), ""} {
			in := h.In(dir)
			in.Scope = only(folder)
			for _, ref := range []string{"release", id} {
				if found := idAt(t, in, ref); found != id {
					t.Errorf("%s from %q in %s: %s", ref, dir, folder, found)
				}
			}
			for _, other := range ids {
				if _, err := in.Folder(other); other != id && team.CodeOf(err) != team.Denied {
					t.Errorf("the other team: %v", err)
				}
			}
		}
	}
}
