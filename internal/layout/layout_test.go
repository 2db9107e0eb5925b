package layout_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cadre/internal/journal"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

func newHome(t *testing.T) layout.Home {
	t.Helper()
	return layout.Home{Root: filepath.Join(t.TempDir(), "cadre"), Claude: filepath.Join(t.TempDir(), "claude")}
}

// beginning returns how a team of that name begins, with more commands after its creation.
func beginning(name string, more ...team.Body) layout.Beginning {
	b := layout.Beginning{Name: name}
	first := &team.CreateTeam{TeamID: name + "-" + strings.ToLower(replica.NewID()), Name: name, Dir: "/"}
	for _, body := range append([]team.Body{first}, more...) {
		b.Commands = append(b.Commands, team.Command{ID: replica.NewID(), Actor: team.User, At: replica.Now(), Body: body})
	}
	return b
}

func create(h layout.Home, name string, more ...team.Body) error {
	b := beginning(name, more...)
	return h.Create(b.Name, b.Commands)
}

func TestFind(t *testing.T) {
	user := t.TempDir()
	t.Setenv("HOME", user)
	t.Setenv("CADRE_HOME", "")
	t.Setenv("CLAUDE_CONFIG_DIR", "")
	want := layout.Home{Root: filepath.Join(user, ".cadre"), Claude: filepath.Join(user, ".claude")}
	if h, err := layout.Find(); err != nil || h != want {
		t.Errorf("%+v, %v", h, err)
	}
	t.Chdir(user)
	t.Setenv("CADRE_HOME", "ours")
	t.Setenv("CLAUDE_CONFIG_DIR", "/theirs")
	h, err := layout.Find()
	if err != nil || !filepath.IsAbs(h.Root) || filepath.Base(h.Root) != "ours" || h.Claude != "/theirs" {
		t.Errorf("%+v, %v", h, err)
	}
	t.Setenv("HOME", "")
	t.Setenv("CADRE_HOME", "")
	if _, err := layout.Find(); err == nil || !strings.Contains(err.Error(), "Set CADRE_HOME") {
		t.Errorf("without a home: %v", err)
	}
}

func TestATeamAppearsWholeOrNotAtAll(t *testing.T) {
	h := newHome(t)
	if names, err := h.Names(); err != nil || len(names) != 0 {
		t.Errorf("%v, %v", names, err)
	}
	err := create(h, "demo", &team.SpawnMember{Name: "ann", Agent: team.External}, &team.SpawnMember{Name: "ann",
		Agent: team.External})
	if team.CodeOf(err) != team.Taken {
		t.Errorf("a team with two members of one name: %v", err)
	}
	if left, err := os.ReadDir(h.Root); err == nil {
		t.Errorf("%v are left", left)
	}
	if err := create(h, "demo", &team.SpawnMember{Name: "ann", Agent: team.External}); err != nil {
		t.Fatal(err)
	}
	if err := create(h, "demo"); team.CodeOf(err) != team.Taken || !strings.Contains(err.Error(),
		"a free name: demo-2") {
		t.Errorf("the name again: %v", err)
	}
	if names, err := h.Names(); err != nil || !slices.Equal(names, []string{"demo"}) {
		t.Errorf("%v, %v", names, err)
	}
	if info, err := os.Stat(filepath.Join(h.Root, "teams", "demo")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("its folder: %v, %v", info.Mode(), err)
	}
}

// TestTeamsAppearTogether: where one of several teams cannot be made, none is.
func TestTeamsAppearTogether(t *testing.T) {
	h := newHome(t)
	if err := create(h, "taken"); err != nil {
		t.Fatal(err)
	}
	if err := h.CreateAll(beginning("inner"), beginning("taken")); team.CodeOf(err) != team.Taken {
		t.Errorf("with a name that is taken: %v", err)
	}
	if left, _ := os.ReadDir(filepath.Join(h.Root, "teams")); len(left) != 1 {
		t.Errorf("there are %v", left)
	}
	if err := h.CreateAll(beginning("inner"), beginning("outer")); err != nil {
		t.Fatal(err)
	}
	if names, err := h.Names(); err != nil || !slices.Equal(names, []string{"inner", "outer", "taken"}) {
		t.Errorf("%v, %v", names, err)
	}
}

func TestOfManyThatCreateOneWins(t *testing.T) {
	h := newHome(t)
	errs := make([]error, 16)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() {
			errs[i] = create(h, "demo", &team.SpawnMember{Name: fmt.Sprintf("m%d", i), Agent: team.External})
		})
	}
	all.Wait()
	won := 0
	for _, err := range errs {
		switch {
		case err == nil:
			won++
		case team.CodeOf(err) != team.Taken:
			t.Error(err)
		}
	}
	if won != 1 {
		t.Errorf("%d created it", won)
	}
	if left, _ := os.ReadDir(filepath.Join(h.Root, "teams")); len(left) != 1 {
		t.Errorf("there are %v", left)
	}
}

func TestNamesNeverBecomePaths(t *testing.T) {
	h := newHome(t)
	outside := filepath.Join(h.Root, "secret")
	if err := os.MkdirAll(outside, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", ".", "..", "../secret", "a/b", "/etc", ".hidden", "a\x00b", "a\nb",
		strings.Repeat("a", 65), "-a", "ä"} {
		if _, err := h.Folder(name); team.CodeOf(err) != team.Invalid {
			t.Errorf("the folder of %q: %v", name, err)
		}
		if _, _, err := h.Open(name, nil); team.CodeOf(err) != team.Invalid {
			t.Errorf("opening %q: %v", name, err)
		}
		if err := create(h, name); team.CodeOf(err) != team.Invalid {
			t.Errorf("creating %q: %v", name, err)
		}
	}
}

func TestWhatThereIsNot(t *testing.T) {
	h := newHome(t)
	_, err := h.Folder("demo")
	if help := team.HintsOf(err); team.CodeOf(err) != team.NotFound || len(help) != 1 ||
		help[0].Action != team.ActCreate || help[0].Team != "" { // the name may be a typo
		t.Errorf("without any team: %v, %+v", err, help)
	}
	for _, name := range []string{"two", "one"} {
		if err := create(h, name); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := h.Folder("demo"); team.CodeOf(err) != team.NotFound || !strings.Contains(err.Error(),
		"the teams are: one, two") {
		t.Errorf("among others: %v", err)
	}
	if err := os.Mkdir(filepath.Join(h.Root, "teams", "empty"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, _, err := h.Open("empty", nil); team.CodeOf(err) != team.NotFound || !strings.Contains(err.Error(),
		"holds no journal") {
		t.Errorf("an empty folder: %v", err)
	}
}

func TestArchive(t *testing.T) {
	h := newHome(t)
	if err := create(h, "demo"); err != nil {
		t.Fatal(err)
	}
	j, _, err := h.Open("demo", nil)
	if err != nil {
		t.Fatal(err)
	}
	id := j.ID()
	j.Close()
	if _, err := h.PutInArchive(filepath.Join(h.Root, "teams", "demo"), id); err != nil {
		t.Fatal(err)
	}
	if err := create(h, "demo"); err != nil {
		t.Errorf("the name is not free again: %v", err)
	}
	j, dir, err := h.Open(id, nil)
	if err != nil || filepath.Dir(dir) != filepath.Join(h.Root, "archive") {
		t.Fatalf("by its id it is at %s: %v", dir, err)
	}
	j.Close()
	if err := h.Remove(dir, nil); err != nil {
		t.Error(err)
	}
	if _, err := h.Folder(id); team.CodeOf(err) != team.NotFound {
		t.Errorf("it is still there: %v", err)
	}
}

// TestAnothersHistory checks that the history of another team in a team's folder is damage,
// whichever of the two has the longer name. The name of an observed team may differ from the one in
// its id.
func TestAnothersHistory(t *testing.T) {
	h := newHome(t)
	for _, name := range []string{"demo", "demo-two", "other"} {
		if err := create(h, name); err != nil {
			t.Fatal(err)
		}
	}
	for from, to := range map[string]string{"demo-two": "demo", "demo": "other"} {
		whole, err := os.ReadFile(filepath.Join(h.Root, "teams", from, "journal", "00000000000000000001.jsonl"))
		if err == nil {
			err = os.WriteFile(filepath.Join(h.Root, "teams", to, "journal",
				"00000000000000000001.jsonl"), whole, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = h.Open(to, nil)
		if damage := (*journal.DamageError)(nil); !errors.As(err, &damage) || damage.Team != to {
			t.Errorf("the history of %s in the folder of %s: %v", from, to, err)
		}
	}
	record := team.AppendRecord(nil, &team.Record{ID: "c", Actor: "lead", At: 1, Events: []team.Event{
		&team.TeamCreated{Team: team.Team{ID: "session-1-2", Name: "fx", Observed: "session-1"},
			Lead: team.Member{Name: "lead"}}}})
	if _, err := h.Found("fx", "session-1-2", [][]byte{record}); err != nil {
		t.Fatal(err)
	}
	j, _, err := h.Open("fx", nil)
	if err != nil {
		t.Fatal(err)
	}
	j.Close()
}

func TestArchiveUnderAPath(t *testing.T) {
	h := newHome(t)
	if err := create(h, "demo"); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"../demo-1", "/tmp/demo-1", "a/b", "..", ".", ".hidden", ""} {
		if _, err := h.PutInArchive("demo", id); err == nil || !strings.Contains(err.Error(),
			"cannot be the name of a folder") {
			t.Errorf("%q: %v", id, err)
		}
	}
	if _, _, err := h.Open("demo", nil); err != nil {
		t.Errorf("it is not where it was: %v", err)
	}
}

func TestRemove(t *testing.T) {
	h := newHome(t)
	teams := filepath.Join(h.Root, "teams")
	if err := h.Remove(filepath.Join(teams, "demo"), nil); err != nil {
		t.Errorf("without a home: %v", err)
	}
	if err := create(h, "demo"); err != nil {
		t.Fatal(err)
	}
	// These are left by killed calls, or are being created.
	for _, name := range []string{".gone-1/team/journal", ".new-old", ".new-young"} {
		if err := os.MkdirAll(filepath.Join(teams, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	yesterday := time.Now().Add(-24 * time.Hour)
	if err := os.Chtimes(filepath.Join(teams, ".new-old"), yesterday, yesterday); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := h.Remove(filepath.Join(teams, "demo"), nil); err != nil {
			t.Fatal(err)
		}
		if left, err := os.ReadDir(teams); err != nil || len(left) != 1 || left[0].Name() != ".new-young" {
			t.Errorf("there are %v, %v", left, err)
		}
	}
	if err := (layout.Home{Root: filepath.Join(h.Root, "nowhere")}).Sweep(); err != nil {
		t.Error(err)
	}
}

func TestAHomeThatIsAFile(t *testing.T) {
	h := newHome(t)
	if err := os.WriteFile(h.Root, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := create(h, "demo"); err == nil || team.CodeOf(err) != "" {
		t.Errorf("creating: %v", err)
	}
	if _, err := h.Folder("demo"); errors.Is(err, os.ErrNotExist) || err == nil {
		t.Errorf("looking: %v", err)
	}
}

// TestRemoveAsksWhileNobodyCreates checks that no process can take a team's name between the call
// of ready and the removal, which would then remove the other team. If ready fails, the folder
// stays.
func TestRemoveAsksWhileNobodyCreates(t *testing.T) {
	h := newHome(t)
	if err := create(h, "demo"); err != nil {
		t.Fatal(err)
	}
	dir, err := h.Folder("demo")
	if err != nil {
		t.Fatal(err)
	}
	if err := h.Remove(dir, func() (bool, error) { return false, nil }); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Folder("demo"); err != nil {
		t.Fatalf("it was removed without leave: %v", err)
	}
	created := make(chan error, 1)
	err = h.Remove(dir, func() (bool, error) {
		go func() { created <- create(h, "demo") }()
		select {
		case err := <-created:
			t.Errorf("a team could be created meanwhile: %v", err)
			created <- err
		case <-time.After(200 * time.Millisecond): // it waits
		}
		return true, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-created; err != nil {
		t.Fatal(err)
	}
	if _, err := h.Folder("demo"); err != nil {
		t.Errorf("the other one is gone too: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(h.Root, "teams", ".*")); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
