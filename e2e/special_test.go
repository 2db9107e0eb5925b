package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// TestSpecialFiles checks that no command waits for a pipe or reads a device to its end. A special
// file is refused with status 2 and its kind.
func TestSpecialFiles(t *testing.T) {
	t.Parallel()
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
		t.Errorf("the command took %s", took)
	}

	w.must("create", "demo")
	w.must("task", "add", "demo", "one")
	folder := filepath.Join(w.home, "teams", "demo")
	for name, status := range map[string]int{
		"journal/durable": 2, "journal/lock": 2, "journal/00000000000000000001.jsonl": 2, "state.json": 0,
		"heartbeats/ann.json": 0, "projected": 0,
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

	// A directory in a file's place is damage, and fsck --mend moves it away.
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

// TestPipesForGit checks a member that puts a pipe in the place of a file that git reads. Nothing
// waits for it. The run ends with its report, which names the file, what to do, and the next
// command. After that the work is committed.
func TestPipesForGit(t *testing.T) {
	t.Parallel()
	for file, last := range map[string]string{
		".gitignore":          "it is not known what would be committed: ",
		"deep/.gitattributes": "not committed yet: ", // git reads it when it adds the file beside it
	} {
		t.Run("in the shared directory "+filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.repository()
			w.write("team.yaml", fmt.Sprintf("name: demo\nmembers: [{name: ann, agent: shell}]\ntasks: [{id: one, "+
				"run: 'mkdir -p deep; echo a > deep/a.txt; mkfifo %s'}]\n", file))
			pipe := filepath.Join(w.dir, file)
			r := w.cadre("run", "team.yaml")
			for _, words := range []string{"1 of 1 task done", last, "cadre consolidate demo\n"} {
				if r.code != 0 || !strings.Contains(r.out, words) {
					t.Errorf("the run ended with %d, and does not print %q:\n%s", r.code, words, r.out)
				}
			}
			if !strings.Contains(r.err, pipe+" is a named pipe") {
				t.Errorf("the run does not name the pipe: %s", r.err)
			}
			if r := w.cadre("consolidate", "demo"); r.code != 2 || !strings.Contains(r.err, pipe+" is a named pipe") ||
				!strings.Contains(r.err, "remove it or move it elsewhere") {
				t.Errorf("the consolidation ended with %d: %s", r.code, r.err)
			}
			if err := os.Remove(pipe); err != nil {
				t.Fatal(err)
			}
			if out := w.must("consolidate", "demo"); !strings.Contains(out, "A deep/a.txt") {
				t.Errorf("the consolidation printed\n%s, want deep/a.txt added", out)
			}
		})
	}
	t.Run("in a worktree", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		w.repository()
		w.write("team.yaml", "name: demo\nmembers: [{name: ann, agent: shell, isolation: worktree}]\ntasks: [{id: "+
			"one, run: 'echo a > a.txt; mkfifo .gitignore'}]\n")
		pipe := filepath.Join(w.home, "teams", "demo", "worktrees", "ann", ".gitignore")
		w.refused(result{code: 1, err: w.cadre("run", "team.yaml").err}, 1, pipe+" is a named pipe",
			"task 2 waits for you", "cadre task show demo 2")
		if task := w.must("task", "show", "demo", "2"); !strings.Contains(task, pipe+" is a named pipe") ||
			strings.Contains(task, "context canceled") {
			t.Errorf("the task does not say what to do:\n%s", task)
		}
		if data, err := os.ReadFile(filepath.Join(w.dir, "demo-report.md")); err != nil || len(data) == 0 {
			t.Errorf("the report is %q, %v", data, err)
		}
		if err := os.Remove(pipe); err != nil {
			t.Fatal(err)
		}
		w.must("task", "done", "demo", "2")
		w.must("run", "team.yaml")
		if out := w.must("consolidate", "demo"); !strings.Contains(out, "A a.txt") {
			t.Errorf("the consolidation printed\n%s, want a.txt added", out)
		}
	})
}

// TestSpawnWithoutALog checks that a member that no host can run is not added. The files that a
// host needs exist before the member is recorded.
func TestSpawnWithoutALog(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	folder := filepath.Join(w.home, "teams", "demo")
	log := filepath.Join(folder, "host.log")
	before := w.must("log", "demo", "--json")
	for name, put := range map[string]func() error{
		"a directory":  func() error { return os.Mkdir(log, 0o700) },
		"a named pipe": func() error { return syscall.Mkfifo(log, 0o600) },
		"a device":     func() error { return os.Symlink("/dev/full", log) },
	} {
		if err := put(); err != nil {
			t.Fatal(err)
		}
		w.refused(w.cadre("spawn", "demo", "ann"), 2, "ann was not added", log+" is "+name)
		if err := os.Remove(log); err != nil {
			t.Fatal(err)
		}
	}
	hosts := filepath.Join(folder, "hosts")
	if err := errors.Join(os.RemoveAll(hosts), os.WriteFile(hosts, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	w.refused(w.cadre("spawn", "demo", "ann"), 2, "ann was not added", hosts)
	if err := os.Remove(hosts); err != nil {
		t.Fatal(err)
	}
	if after := w.must("log", "demo", "--json"); after != before {
		t.Errorf("the refused calls are in the history:\n%s", after)
	}
	w.must("spawn", "demo", "ann")
	w.must("shutdown", "demo", "ann")
}

// TestNotATeamsFolder checks that a special file in the place of a team's folder is named, with
// status 2. So are the variables that say where teams are.
func TestNotATeamsFolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	path := filepath.Join(w.home, "teams", "x")
	for name, put := range map[string]func() error{
		"a file":       func() error { return os.WriteFile(path, nil, 0o600) },
		"a named pipe": func() error { return syscall.Mkfifo(path, 0o600) },
	} {
		if err := put(); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"status", "x"}, {"fsck", "x"}, {"fsck", "x", "--mend"}, {"task", "list", "x"},
			{"resume", "x"}, {"create", "x"}, {"cleanup", "x", "--force"}} {
			w.refused(w.cadre(args...), 2, path+" is "+name+", and a team is a folder", "move it elsewhere")
		}
		if out := w.must("ls"); !strings.Contains(out, "demo") {
			t.Errorf("ls beside %s:\n%s", name, out)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(os.RemoveAll(w.home), os.Mkdir(w.home, 0o700), os.WriteFile(filepath.Join(w.home, "teams"),
		nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	w.refused(w.cadre("ls"), 2, filepath.Join(w.home, "teams"), "not a directory")

	env := w.env
	w.env = []string{"LC_ALL=C"}
	w.refused(w.cadre("ls"), 2, "Neither CADRE_HOME nor HOME is set. Set CADRE_HOME to the folder to use.")
	w.refused(w.with([]string{"CADRE_HOME=" + w.home}, "ls"), 2, "Neither CLAUDE_CONFIG_DIR nor HOME is set.")
	for _, args := range [][]string{{"version"}, {"--version"}} {
		if out := w.must(args...); !strings.HasPrefix(out, "cadre ") {
			t.Errorf("%q without folders prints %q", args, out)
		}
	}
	w.env = env
}

// TestTrustNamesPipes checks that a hook that is a pipe or a broken link is shown before it is
// trusted, because no file shows what it will do.
func TestTrustNamesPipes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.write(".claude/settings.json",
		`{"hooks": {"TaskCreated": [{"hooks": [{"type": "command", "command": "./pipe"}, {"type": "command", "command": "sh gone.sh"}]}]}}`)
	if err := errors.Join(syscall.Mkfifo(filepath.Join(w.dir, "pipe"), 0o700),
		os.Symlink("nowhere", filepath.Join(w.dir, "gone.sh"))); err != nil {
		t.Fatal(err)
	}
	w.refused(w.cadre("trust"), 2, "not covered: what comes from pipe (a named pipe)", "not covered: what comes from "+
		"gone.sh (a link that leads to nothing)", "cadre trust --yes")
	if out := w.must("trust", "--yes"); !strings.Contains(out, "what comes from pipe (a named pipe)") {
		t.Errorf("trust printed\n%s, want the named pipe named", out)
	}
}

// TestDamagedTeamFromGit checks that the last checkpoint replaces a damaged team. Its folder is
// moved away, so nothing is lost. An undamaged team is not replaced.
func TestDamagedTeamFromGit(t *testing.T) {
	t.Parallel()
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
		t.Fatalf("restore ended with %d: %s%s", r.code, r.out, r.err)
	}
	if list := w.must("task", "list", "demo"); !strings.Contains(list, "in the checkpoint") ||
		strings.Contains(list, "after it") {
		t.Errorf("restored is\n%s", list)
	}
	if kept, err := os.ReadFile(filepath.Join(aside, "journal", filepath.Base(segment))); err != nil ||
		string(kept) != string(broken) {
		t.Errorf("the damaged history is not as it was: %v", err)
	}
	w.must("task", "add", "demo", "it works again")
	w.must("fsck", "demo")
}

// TestAnotherTeamsFiles checks that files of another team are not believed, and that the error
// names the name that a command takes.
func TestAnotherTeamsFiles(t *testing.T) {
	t.Parallel()
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
	if list := w.must("task", "list", "demo"); strings.Contains(list, "of other") ||
		strings.Count(list, "of demo") != 40 {
		t.Errorf("the other team's snapshot is believed:\n%s", list)
	}
	segment := "journal/00000000000000000001.jsonl"
	was := copyOver(segment)
	w.refused(w.cadre("task", "list", "demo"), 2, "the segment belongs to journal", "cadre fsck demo")
	w.refused(w.cadre("fsck", "demo"), 2, "and the segments beside it to")
	w.refused(w.cadre("fsck", "demo", "--mend"), 2, "Restore the team's own files")
	marker := "journal/durable" // with it the journal is complete, and belongs to another team
	wasMarked := copyOver(marker)
	w.refused(w.cadre("task", "list", "demo"), 2, "it is the history of team other", "cadre fsck demo")
	w.refused(w.cadre("fsck", "demo"), 2, "it is the history of team other")
	w.refused(w.cadre("fsck", "demo", "--mend"), 2, "Restore the team's own files")
	if err := os.WriteFile(file("demo", marker), wasMarked, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file("demo", segment), was, 0o600); err != nil {
		t.Fatal(err)
	}
	w.must("task", "add", "demo", "it works again")
}

// TestAnotherHomesFiles checks that a team of the same name in another home is another team.
// Neither its journal nor any of its files is believed in place of the team's own. fsck changes
// nothing, and the way out that it names works.
func TestAnotherHomesFiles(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.repository()
	segment, marker := "journal/00000000000000000001.jsonl", "journal/durable"
	other := filepath.Join(w.root, "other")
	for _, home := range []string{w.home, other} {
		subject := "ours"
		if home == other {
			subject = "theirs"
		}
		for _, args := range [][]string{{"create", "demo"}, {"spawn", "demo", "ann", "--agent", "external"},
			{"task", "add", "demo", subject}} {
			if r := w.with([]string{"CADRE_HOME=" + home, "CLAUDE_CONFIG_DIR=" + home + "-claude"},
				args...); r.code != 0 {
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
		w.refused(w.cadre("task", "list", "demo"), 2, "the segment belongs to journal", "cadre fsck demo")
		for _, args := range [][]string{{"fsck", "demo"}, {"fsck", "demo", "--mend"}} {
			w.refused(w.cadre(args...), 2, "and the segments beside it to", "Nothing was changed",
				"cadre resume demo --from-git")
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

	// The restored history has another id than the one before, but belongs to the same team.
	data, err = os.ReadFile(filepath.Join(w.home, "teams", "demo", marker))
	if err != nil || !strings.Contains(string(data), "+") {
		t.Errorf("the marker of the restored team is %q, %v", data, err)
	}
}

// TestProjectionsComeBack checks that the next change repairs task files that were removed or
// added, and that fsck repairs changed ones.
func TestProjectionsComeBack(t *testing.T) {
	t.Parallel()
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
			t.Errorf("%s there are %d of %d task files: %v", when, len(files), want, err)
		}
		for _, path := range files {
			if data, err := os.ReadFile(path); err != nil || !strings.Contains(string(data), `"a task"`) {
				t.Errorf("%s %s has %s, %v", when, path, data, err)
			}
		}
	}
	changed := func() time.Time {
		t.Helper()
		info, err := os.Stat(tasks)
		if err != nil {
			t.Fatal(err)
		}
		return info.ModTime()
	}
	harm := func() {
		t.Helper()
		before, added := changed(), filepath.Join(tasks, "9.json")
		if err := os.Remove(filepath.Join(tasks, "2.json")); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the folder has another time, which some file systems count in steps", func() bool {
			if err := errors.Join(os.RemoveAll(added), os.WriteFile(added, []byte("{}"), 0o600)); err != nil {
				t.Fatal(err)
			}
			return changed() != before
		})
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
