package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Nothing waits for a pipe or reads a device to its end: a file that is none is refused, with status 2 and what it is.
func TestSpecialFiles(t *testing.T) {
	w := newWorld(t)
	pipe := filepath.Join(w.dir, "team.yaml")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	w.refused(w.cadre("run", pipe), 2, "is a named pipe, not a regular file")
	w.refused(w.cadre("run", "/dev/zero"), 2, "is a device, not a regular file")
	huge := filepath.Join(w.dir, "huge.yaml")
	if err := errors.Join(os.WriteFile(huge, nil, 0o600), os.Truncate(huge, 1<<40)); err != nil {
		t.Fatal(err)
	}
	w.refused(w.cadre("run", huge), 2, "is larger than 16 MiB")
	if took := time.Since(began); took > time.Minute {
		t.Errorf("it took %s", took)
	}

	w.must("create", "demo")
	w.must("task", "add", "demo", "one")
	folder := filepath.Join(w.home, "teams", "demo")
	for name, status := range map[string]int{
		"journal/durable": 2, "journal/lock": 2, "journal/00000000000000000001.jsonl": 2, "state.json": 0, "heartbeats/ann.json": 0, "projected": 0,
	} {
		path := filepath.Join(folder, name)
		aside := filepath.Join(w.dir, "aside")
		if err := os.Rename(path, aside); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), syscall.Mkfifo(path, 0o600)); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"status", "demo"}, {"probe", "demo"}, {"task", "list", "demo"}} {
			if r := w.cadre(args...); r.code != status {
				t.Errorf("with a pipe as %s, %q ended with %d: %s", name, args, r.code, r.err)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(aside, path); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
	}
	w.must("task", "add", "demo", "two")

	// A directory in a file's place is damage, and mending sets it aside.
	for _, name := range []string{"journal/durable", "state.json"} {
		path := filepath.Join(folder, name)
		if err := errors.Join(os.RemoveAll(path), os.Mkdir(path, 0o700)); err != nil {
			t.Fatal(err)
		}
		w.refused(w.cadre("status", "demo"), 2, name, "a directory", "cadre fsck demo")
		if r := w.cadre("fsck", "demo"); r.code != 2 {
			t.Errorf("fsck ended with %d: %s", r.code, r.out)
		}
		w.must("fsck", "demo", "--mend")
		w.must("task", "add", "demo", "after "+name)
	}
}

// A damaged team is replaced by its last checkpoint, and nothing of it is lost: its folder is kept aside. A whole one is not replaced.
func TestDamagedTeamFromGit(t *testing.T) {
	w := newWorld(t)
	w.repository()
	w.must("create", "demo")
	w.must("spawn", "demo", "ann", "--agent", "external")
	w.must("task", "add", "demo", "in the checkpoint")
	w.must("checkpoint", "demo")
	w.must("task", "add", "demo", "after it")
	w.refused(w.cadre("resume", "demo", "--from-git"), 2, "cadre resume demo")
	segment := filepath.Join(w.home, "teams", "demo", "journal", "00000000000000000001.jsonl")
	data, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	broken := []byte(strings.Replace(string(data), "after it", "AFTER it", 1))
	if err := os.WriteFile(segment, broken, 0o600); err != nil {
		t.Fatal(err)
	}
	w.refused(w.cadre("resume", "demo"), 2, "cadre fsck demo")
	r := w.cadre("resume", "demo", "--from-git")
	aside := filepath.Join(w.home, "damaged", "demo-1")
	if r.code != 0 || !strings.Contains(r.err, aside) {
		t.Fatalf("it ended with %d: %s%s", r.code, r.out, r.err)
	}
	if list := w.must("task", "list", "demo"); !strings.Contains(list, "in the checkpoint") || strings.Contains(list, "after it") {
		t.Errorf("restored is\n%s", list)
	}
	if kept, err := os.ReadFile(filepath.Join(aside, "journal", filepath.Base(segment))); err != nil || string(kept) != string(broken) {
		t.Errorf("the damaged history is not as it was: %v", err)
	}
	w.must("task", "add", "demo", "it works again")
	w.must("fsck", "demo")
}

// What belongs to another team is not believed, and what names it is the name that a command takes.
func TestAnotherTeamsFiles(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"demo", "other"} {
		w.must("create", name)
		for range 40 {
			w.must("task", "add", name, "a task of "+name, "--description", strings.Repeat("x", 4000))
		}
	}
	file := func(team, name string) string { return filepath.Join(w.home, "teams", team, name) }
	copyOver := func(name string) (was []byte) {
		t.Helper()
		was, err := os.ReadFile(file("demo", name))
		theirs, err2 := os.ReadFile(file("other", name))
		if err := errors.Join(err, err2, os.WriteFile(file("demo", name), theirs, 0o600)); err != nil {
			t.Fatal(err)
		}
		return was
	}
	copyOver("state.json")
	if list := w.must("task", "list", "demo"); strings.Contains(list, "of other") || strings.Count(list, "of demo") != 40 {
		t.Errorf("the other team's snapshot is believed:\n%s", list)
	}
	segment := "journal/00000000000000000001.jsonl"
	was := copyOver(segment)
	w.refused(w.cadre("task", "list", "demo"), 2, "it is a segment of the journal", "cadre fsck demo")
	w.refused(w.cadre("fsck", "demo"), 2, "the segments beside it are of")
	w.refused(w.cadre("fsck", "demo", "--mend"), 2, "Put the team's own files back")
	marker := "journal/durable" // with it the journal is whole, and another team's
	wasMarked := copyOver(marker)
	w.refused(w.cadre("task", "list", "demo"), 2, "it is the history of team other", "cadre fsck demo")
	w.refused(w.cadre("fsck", "demo"), 2, "it is the history of team other")
	w.refused(w.cadre("fsck", "demo", "--mend"), 2, "Put the team's own files back")
	if err := os.WriteFile(file("demo", marker), wasMarked, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file("demo", segment), was, 0o600); err != nil {
		t.Fatal(err)
	}
	w.must("task", "add", "demo", "it works again")
}

// A team of the same name in another home is another team: neither its journal nor one file of it is believed in the place of
// ours, fsck changes nothing, and the way out that it names works.
func TestAnotherHomesFiles(t *testing.T) {
	w := newWorld(t)
	w.repository()
	segment, marker := "journal/00000000000000000001.jsonl", "journal/durable"
	other := filepath.Join(w.root, "other")
	for _, home := range []string{w.home, other} {
		subject := "ours"
		if home == other {
			subject = "theirs"
		}
		for _, args := range [][]string{{"create", "demo"}, {"spawn", "demo", "ann", "--agent", "external"}, {"task", "add", "demo", subject}} {
			if r := w.with([]string{"CADRE_HOME=" + home, "CLAUDE_CONFIG_DIR=" + home + "-claude"}, args...); r.code != 0 {
				t.Fatalf("%q: %s", args, r.err)
			}
		}
	}
	w.must("checkpoint", "demo")
	at := func(home, name string) string { return filepath.Join(home, "teams", "demo", name) }
	for _, files := range [][]string{{segment}, {marker}} {
		was := map[string][]byte{}
		for _, name := range files {
			ours, err := os.ReadFile(at(w.home, name))
			theirs, err2 := os.ReadFile(at(other, name))
			if err := errors.Join(err, err2, os.WriteFile(at(w.home, name), theirs, 0o600)); err != nil {
				t.Fatal(err)
			}
			was[name] = ours
		}
		w.refused(w.cadre("task", "list", "demo"), 2, "it is a segment of the journal", "cadre fsck demo")
		for _, args := range [][]string{{"fsck", "demo"}, {"fsck", "demo", "--mend"}} {
			w.refused(w.cadre(args...), 2, "the segments beside it are of", "nothing was changed", "cadre resume demo --from-git")
		}
		for name, data := range was {
			if err := os.WriteFile(at(w.home, name), data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if list := w.must("task", "list", "demo"); !strings.Contains(list, "ours") {
			t.Errorf("with its own files again, the team has\n%s", list)
		}
	}
	data, err := os.ReadFile(at(other, segment))
	if err := errors.Join(err, os.WriteFile(at(w.home, segment), data, 0o600)); err != nil {
		t.Fatal(err)
	}
	w.must("resume", "demo", "--from-git")
	if list := w.must("task", "list", "demo"); !strings.Contains(list, "ours") || strings.Contains(list, "theirs") {
		t.Errorf("restored is\n%s", list)
	}

	// The restored history is another one than the one before it, of the same team.
	data, err = os.ReadFile(filepath.Join(w.home, "teams", "demo", marker))
	if err != nil || !strings.Contains(string(data), "+") {
		t.Errorf("the marker of the restored team is %q, %v", data, err)
	}
}

// Task files that somebody removed or added are put right by the next change, and altered ones by fsck.
func TestProjectionsComeBack(t *testing.T) {
	w := newWorld(t)
	w.must("create", "demo")
	for range 3 {
		w.must("task", "add", "demo", "a task")
	}
	tasks := filepath.Join(w.root, "claude", "tasks", "demo")
	whole := func(when string, want int) {
		t.Helper()
		files, err := filepath.Glob(filepath.Join(tasks, "*.json"))
		if err != nil || len(files) != want {
			t.Errorf("%s there are %d task files of %d: %v", when, len(files), want, err)
		}
		for _, path := range files {
			if data, err := os.ReadFile(path); err != nil || !strings.Contains(string(data), `"a task"`) {
				t.Errorf("%s %s has %s, %v", when, path, data, err)
			}
		}
	}
	harm := func() {
		t.Helper()
		if err := errors.Join(os.Remove(filepath.Join(tasks, "2.json")), os.WriteFile(filepath.Join(tasks, "9.json"), []byte("{}"), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	harm()
	w.must("task", "add", "demo", "a task")
	whole("after the next change", 4)
	harm()
	if err := os.WriteFile(filepath.Join(tasks, "1.json"), []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := w.must("fsck", "demo"); !strings.Contains(out, "3 files in Claude Code's folders") {
		t.Errorf("fsck does not say what it wrote:\n%s", out)
	}
	whole("after fsck", 4)
}
