package host_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/consolidate"
	"cadre/internal/host"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// write puts files below dir.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// dirty returns a repository with uncommitted work of a person, and what a team records of it when
// it is created.
func dirty(t *testing.T) (dir string, base team.Base) {
	t.Helper()
	p := newProject(t)
	write(t, p.dir, map[string]string{".env": "FOO=supersecretvalue\n", "theirs.txt": "the person's\n"})
	base = consolidate.Look(t.Context(), p.dir)
	if len(base.Dirty) != 2 {
		t.Fatalf("got the base %+v, want 2 uncommitted files", base)
	}
	return p.dir, base
}

// held returns the team's task 1, claimed by ann.
func held(t *testing.T, s *stage) team.Task {
	t.Helper()
	s.do("ann", &team.ClaimTask{Task: "1"})
	return task(s)
}

func task(s *stage) (one team.Task) {
	s.View(func(st *team.State) { one, _ = st.Task("1") })
	return one
}

// TestWorkIsKeptFromOutside checks that work that another member will continue comes with the task,
// even if its owner saved nothing. The owner's host was killed, or the owner is alive and does not
// know.
func TestWorkIsKeptFromOutside(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	dir, base := dirty(t)
	s := newStageOf(t, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: dir, Base: base},
		&team.SpawnMember{Name: "ann", Agent: team.External}, &team.CreateTask{Subject: "one"})
	owned := held(t, s)
	write(t, dir, map[string]string{"half.txt": "half of it\n", "theirs.txt": "the person's\nand ann's\n",
		"data.csv": strings.Repeat("1,2\n", 20<<10), "huge.csv": strings.Repeat("1,2\n", 1<<19)})
	teamDir := filepath.Dir(s.hosts)
	if err := host.KeepDone(t.Context(), s.Replica, teamDir, filestore.Team(teamDir), owned); err != nil {
		t.Fatal(err)
	}
	saved := task(s).Saved
	if saved == nil || saved.Member != "ann" || !strings.Contains(saved.Diff, "+half of it") ||
		!strings.Contains(saved.Diff, "+and ann's") || len(saved.Diff) > team.MaxDiff {
		t.Fatalf("saved %+v, want the changes of ann and of the task in one patch", saved)
	}
	if strings.Contains(saved.Diff, "supersecret") || strings.Contains(saved.Note, ".env") {
		t.Errorf("the person's file is kept with the task: %s\n%s", saved.Diff, saved.Note)
	}
	whole := filepath.Join(teamDir, "saved", "1-ann.patch")
	if !strings.Contains(saved.Note, "leaves out data.csv; the whole patch is in "+whole) ||
		!strings.Contains(saved.Note, "huge.csv (2 MiB)") {
		t.Errorf("what is not in the patch: %q", saved.Note)
	}
	clean := t.TempDir()
	for _, args := range [][]string{{"clone", "-q", dir, clean},
		{"-C", clean, "apply", "--exclude=theirs.txt", whole}} {
		if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	if data, err := os.ReadFile(filepath.Join(clean, "data.csv")); err != nil || len(data) != 4*20<<10 {
		t.Errorf("the whole patch brings %d bytes of the data, %v", len(data), err)
	}
}

// TestUnknownBaseIsNotTold checks that if the earlier content is unknown, nothing of a shared
// folder is reported.
func TestUnknownBaseIsNotTold(t *testing.T) {
	t.Parallel()
	dir, _ := dirty(t)
	s := newStageOf(t, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: dir,
		Base: team.Base{Unknown: "too many files"}}, &team.SpawnMember{Name: "ann", Agent: team.External},
		&team.CreateTask{Subject: "one"})
	if err := host.KeepDone(t.Context(), s.Replica, filepath.Dir(s.hosts), s.shared(), held(t, s)); err != nil {
		t.Fatal(err)
	}
	if saved := task(s).Saved; saved == nil || saved.Diff != "" || !strings.Contains(saved.Note, "too many files") {
		t.Errorf("saved %+v, want no patch, because there are too many files", saved)
	}
}

// TestSavedWorkOutlivesAConflict checks that saved work on a task that another member works on by
// now is not lost.
func TestSavedWorkOutlivesAConflict(t *testing.T) {
	t.Parallel()
	s := newStageOf(t, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: t.TempDir()},
		&team.SpawnMember{Name: "ann", Agent: team.External}, &team.SpawnMember{Name: "bob", Agent: team.External},
		&team.CreateTask{Subject: "one"})
	teamDir := filepath.Dir(s.hosts)
	keep := func() (there bool) {
		t.Helper()
		if err := host.KeepSaved(context.Background(), s.Replica, filestore.Team(teamDir), "ann"); err != nil {
			t.Fatal(err)
		}
		_, there, err := host.ReadSaved(context.Background(), filestore.Team(teamDir), "ann")
		if err != nil {
			t.Fatal(err)
		}
		return there
	}
	write(t, teamDir,
		map[string]string{"ann_checkpoint.json": `{"teammate_id":"ann","task_claimed":"1","last_output":"half"}`})
	s.do("bob", &team.ClaimTask{Task: "1"})
	if !keep() {
		t.Error("the saved patch is gone while bob works on the task")
	}
	s.do("bob", &team.ReleaseTask{Task: "1"})
	if keep() || task(s).Saved == nil || task(s).Saved.Output != "half" {
		t.Errorf("it was not kept with the task: %+v", task(s))
	}
	write(t, teamDir,
		map[string]string{"ann_checkpoint.json": `{"teammate_id":"ann","task_claimed":"1","last_output":"more"}`})
	s.do("bob", &team.ClaimTask{Task: "1"})
	s.do("bob", &team.CompleteTask{Task: "1"})
	if keep() {
		t.Error("the saved patch still exists after the task was completed")
	}
}
