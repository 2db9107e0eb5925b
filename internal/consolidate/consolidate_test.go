package consolidate

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cadre/internal/journal/store"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/journal/store/storetest"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// TestOneCommit checks that the team's work is one commit, and that the user's changes stay as they
// were, staged or not.
func TestOneCommit(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.write("notes.txt", "the person's, not known to git\n")
	l.write("b.txt", "the person's change\n")
	l.write("staged.txt", "the person's, staged\n")
	l.git("add", "staged.txt")
	l.write(".gitignore", "*.log\n")
	l.found(team.Check{Name: "build", Command: "test -f new.txt && ! test -e a.txt"},
		team.Check{Name: "index", Command: `GIT_INDEX_FILE="$CADRE_INDEX" git diff --cached --name-only HEAD`})
	l.write("new.txt", "the team's\n")
	l.write("dir/deep/ünïcode name.txt", "the team's\n")
	l.write("build.log", "ignored\n")
	l.remove("a.txt")
	parent, index := l.git("rev-parse", "HEAD"), l.git("ls-files", "--stage", "b.txt", "staged.txt", "notes.txt")

	r := l.run()
	l.want(l.committed(), "D:a.txt", `A:"dir/deep/\303\274n\303\257code`, `name.txt"`, "A:new.txt")
	if head := l.git("rev-parse", "HEAD"); r.Commit != head || r.Parent != parent || r.Files != 3 ||
		l.git("rev-parse", "HEAD^") != parent {
		t.Errorf("%+v at %s", r, head)
	}
	if branch := l.git("symbolic-ref", "HEAD"); branch != "refs/heads/main" {
		t.Errorf("HEAD is %s", branch)
	}
	if now := l.git("ls-files", "--stage", "b.txt", "staged.txt", "notes.txt"); now != index {
		t.Errorf("the user's index was\n%s\nand is\n%s", index, now)
	}
	if status := l.git("status", "--porcelain"); status != " M b.txt\nA  staged.txt\n?? .gitignore\n?? notes.txt" {
		t.Errorf("the status is\n%s", status)
	}
	message := l.git("log", "-1", "--format=%an <%ae>%n%B")
	for _, words := range []string{"Ann Example <ann@example.org>\nWork of team demo: Port the parser\n\nTasks:\n- 1 " +
		"port it (ann)\n\nMembers: lead (external), ann (external)\nChecks: build, index\n\nCadre-Team: " +
		"T1\nCadre-Consolidation: 1"} {
		if !strings.Contains(message, words) {
			t.Errorf("the message is\n%s", message)
		}
	}
	if s := l.replica.Team(); s.Status != team.TeamComplete || s.Consolidation.Step != team.Done {
		t.Errorf("the team is %+v", s)
	}
	l.tidy()
}

// TestRecord checks that the record is read-only and correct, and that it does not match another
// history.
func TestRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.found(team.Check{Name: "build", Command: "true"})
	l.write("new.txt", "the team's\n")
	r := l.run()
	path := filepath.Join(l.folder, RecordFile)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o400 {
		t.Fatalf("%v, %v", info, err)
	}
	if len(r.Tasks) != 1 || r.Tasks[0] != (Task{"1", "", "port it", "ann"}) || len(r.Members) != 2 ||
		len(r.Checks) != 1 ||
		r.Seq != l.replica.Seq() || r.By != team.User {
		t.Errorf("%+v", r)
	}
	if ok, err := r.Holds(l.ctx, l.replica); !ok || err != nil {
		t.Errorf("the record holds: %t, %v", ok, err)
	}
	for what, change := range map[string]func(r *Record){
		"history": func(r *Record) { r.Journal = strings.Repeat("0", 64) },
		"commit":  func(r *Record) { r.Commit = r.Parent },
		"task":    func(r *Record) { r.Tasks = []Task{{"1", "", "port it", "eve"}} },
		"check":   func(r *Record) { r.Checks = nil },
		"seq":     func(r *Record) { r.Seq-- },
	} {
		other := *r
		change(&other)
		if ok, _ := other.Holds(l.ctx, l.replica); ok {
			t.Errorf("a record of another %s holds", what)
		}
	}
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if again := l.run(); again.Commit != l.git("rev-parse", "HEAD") || l.commits() != 2 {
		t.Errorf("consolidated again: %+v, %d commits", again, l.commits())
	}
	if after, err := os.ReadFile(path); string(after) != string(before) || err != nil {
		t.Errorf("the record was\n%s\nand is\n%s, %v", before, after, err)
	}
}

func TestNothingToCommit(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	for name, change := range map[string]func(l *lab){
		"nothing was done": func(*lab) {},
		"the members committed it themselves": func(l *lab) {
			l.write("c.txt", "x")
			l.git("add",
				"-A")
			l.git("commit", "-qm", "mine")
		},
		"it was done and undone": func(l *lab) { l.write("a.txt", "two\n"); l.write("a.txt", "one\n") },
		"a repository within it": func(l *lab) { l.git("init", "-q", "inner"); l.write("inner/x", "y") },
		"the person's change, committed by it": func(l *lab) {
			l.write("mine.txt", "x")
			l.git("add",
				"-A")
			l.git("commit", "-qm", "mine")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.found(team.Check{Name: "build", Command: "true"})
			change(l)
			before := l.scene()
			if r := l.run(); r.Commit != "" || r.Files != 0 || len(r.Checks) != 1 {
				t.Errorf("%+v", r)
			}
			if after := l.scene(); after != before {
				t.Errorf("the scene was\n%s\nand is\n%s", before, after)
			}
			l.tidy()
		})
	}
}

// TestBothChanged checks that a file that was changed before the team and since is not committed
// unless it is included.
func TestBothChanged(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.write("a.txt", "the person's\n")
	l.write("dir/x.txt", "the person's\n")
	l.found()
	l.write("a.txt", "the person's, and the team's\n")
	l.write("dir/x.txt", "the person's, and the team's\n")
	l.write("new.txt", "the team's\n")
	before, seq := l.scene(), l.replica.Seq()
	if err := l.refused("a.txt, dir/x.txt", "include_files", "stash"); team.CodeOf(err) != team.NotReady {
		t.Error(err)
	}
	if l.scene() != before || l.replica.Seq() != seq {
		t.Error("something was changed by what was refused")
	}
	o := l.options()
	o.Include = []string{"nothing.txt"}
	if _, err := Run(l.ctx, o); team.CodeOf(err) != team.Invalid {
		t.Error(err)
	}
	o.Include = []string{"a.txt", "dir"}
	if _, err := Run(l.ctx, o); err != nil {
		t.Fatal(err)
	}
	l.want(l.committed(), "M:a.txt", "A:dir/x.txt", "A:new.txt")
}

// TestCommittedMeanwhile checks a file that the user changed before the team and committed before
// the team changed it. It is the team's now.
func TestCommittedMeanwhile(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.write(".gitattributes", "b.txt text eol=crlf\n")
	l.git("add", ".gitattributes")
	l.git("commit", "-qm", "attributes")
	l.write("a.txt", "the person's\n")
	l.write("b.txt", "the person's\r\n")
	link := filepath.Join(l.project, "link")
	if err := errors.Join(os.Symlink("a.txt", link), os.Chmod(filepath.Join(l.project, "a.txt"), 0o700)); err != nil {
		t.Fatal(err)
	}
	l.found()
	l.git("add", "-A")
	l.git("commit", "-qm", "the person's")
	l.write("a.txt", "the person's, and the team's\n")
	l.write("b.txt", "the person's, and the team's\r\n")
	l.remove("link")
	l.run()
	l.want(l.committed(), "M:a.txt", "M:b.txt", "D:link")
}

// TestFailedCheck checks that after a failed check everything is restored, the team continues, and
// its lead is told. Files that the check left are never committed.
func TestFailedCheck(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.write("mine.txt", "the person's\n")
	l.found(team.Check{Name: "build", Command: "true"}, team.Check{Name: "test", Command: "echo out > cover.out; " +
		"echo more >> mine.txt; echo FAIL: no; test -e fixed.txt"})
	l.write("new.txt", "the team's\n")
	head, index := l.git("rev-parse", "HEAD"), l.git("ls-files", "--stage")
	err := l.refused("the check test failed: exit status 1")
	var failed *FailedCheck
	if !errors.As(err, &failed) || failed.Output != "FAIL: no\n" || team.CodeOf(err) != team.NotReady {
		t.Errorf("%v: %+v", err, failed)
	}
	if l.git("rev-parse", "HEAD") != head || l.git("ls-files", "--stage") != index {
		t.Error("HEAD or the index changed")
	}
	if s := l.replica.Team(); s.Status != team.TeamActive || s.Consolidation.Step != team.Abandoned ||
		s.Consolidation.Failed != "test" {
		t.Errorf("%+v", s)
	}
	var mail []team.Message
	l.replica.View(func(s *team.State) { mail = s.Inbox("lead") })
	if len(mail) == 0 || !strings.Contains(mail[len(mail)-1].Body, "FAIL: no") {
		t.Errorf("the lead has %+v", mail)
	}
	l.tidy()
	l.write("fixed.txt", "")
	l.write("cover.out", "out\n") // as the check writes it
	if r := l.run(); r.Attempts != 2 {
		t.Errorf("%+v", r)
	}
	l.want(l.committed(), "A:fixed.txt", "A:new.txt")
}

func TestChecks(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	for name, c := range map[string]struct {
		command string
		says    string
	}{
		"is killed":              {"kill -9 $$", "signal"},
		"takes too long":         {"exec tail -f /dev/null", "took longer than 1 s"},
		"changes what is staged": {"echo more >> new.txt", "the checks changed new.txt"},
		"removes what is staged": {"rm new.txt", "the checks changed new.txt"},
		"commits": {"git -c core.hooksPath=/dev/null commit -q --allow-empty -m mine",
			"HEAD was moved"},
		"leaves a merge under way":  {"git rev-parse HEAD > .git/MERGE_HEAD", "a merge is in progress"},
		"gives the team more to do": {"printf x > more", "task 2 (more) is open"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.found(team.Check{Name: "test", Command: c.command, Timeout: time.Second})
			l.write("new.txt", "the team's\n")
			o := l.options()
			o.at = func(point string) {
				if _, err := os.Stat(filepath.Join(l.project, "more")); err == nil && point == "check" {
					l.do("lead", &team.CreateTask{Subject: "more"})
				}
			}
			_, err := Run(l.ctx, o)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("%v does not say %q", err, c.says)
			}
			if s := l.replica.Team(); s.Status != team.TeamActive || s.Consolidation.Commit != "" {
				t.Errorf("%+v", s)
			}
			l.tidy()
		})
	}
}

// TestNotReady checks that the members who still work or wait are named, and so is a git operation
// in progress.
func TestNotReady(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.found()
	l.do("lead", &team.CreateTask{Subject: "another"})
	l.refused("task 2 (another) is open")
	l.do("ann", &team.ClaimTask{Task: "2"})
	l.refused("ann works on task 2")
	l.do("ann", &team.CompleteTask{Task: "2"})
	l.git("checkout", "-q", "-b", "topic")
	l.write("a.txt", "topic\n")
	l.git("commit", "-qam", "topic")
	l.git("checkout", "-q", "main")
	l.write("a.txt", "main\n")
	l.git("commit", "-qam", "main")
	l.try("merge", "topic")
	l.refused("a merge is in progress")
	l.git("merge", "--abort")
	l.run()
}

// TestRepositories checks that checks run without a repository, and in one without a commit.
func TestRepositories(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Run("none", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		if err := os.RemoveAll(filepath.Join(l.project, ".git")); err != nil {
			t.Fatal(err)
		}
		l.found(team.Check{Name: "build", Command: "test -f a.txt"})
		if r := l.run(); r.Commit != "" || len(r.Checks) != 1 {
			t.Errorf("%+v", r)
		}
	})
	t.Run("none when it began", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		hidden := filepath.Join(l.folder, "git")
		if err := os.Rename(filepath.Join(l.project, ".git"), hidden); err != nil {
			t.Fatal(err)
		}
		l.found()
		if err := os.Rename(hidden, filepath.Join(l.project, ".git")); err != nil {
			t.Fatal(err)
		}
		l.refused("skip_commit")
		o := l.options()
		o.NoCommit = true
		if r, err := Run(l.ctx, o); err != nil || r.Commit != "" {
			t.Errorf("%+v, %v", r, err)
		}
	})
	t.Run("without a commit", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		l.git("update-ref", "-d", "HEAD")
		l.git("rm", "-q", "--cached", "-r", ".")
		l.remove("a.txt")
		l.found()
		l.write("new.txt", "the team's\n")
		if r := l.run(); r.Parent != "" || l.commits() != 1 {
			t.Errorf("%+v", r)
		}
		l.want(l.committed(), "A:new.txt")
	})
	t.Run("HEAD is detached", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		l.git("checkout", "-q", "--detach")
		l.found()
		l.write("new.txt", "the team's\n")
		if r := l.run(); r.Commit != l.git("rev-parse", "HEAD") || l.git("rev-parse", "main") != r.Parent {
			t.Errorf("%+v", r)
		}
	})
	t.Run("of SHA-256, without a commit", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		if err := os.RemoveAll(filepath.Join(l.project, ".git")); err != nil {
			t.Fatal(err)
		}
		l.git("init", "-q", "--object-format=sha256")
		l.found(team.Check{Name: "test", Command: "true"})
		l.write("new.txt", "the team's\n")
		if r := l.run(); len(r.Commit) != 64 || r.Commit != l.git("rev-parse", "HEAD") ||
			l.git("status", "--porcelain") != "?? a.txt\n?? b.txt" {
			t.Errorf("%+v", r)
		}
		l.want(l.committed(), "A:new.txt")
		l.git("fsck", "--strict")
	})
	t.Run("with others in it", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		module := func(name string) {
			l.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add", first, name)
		}
		module("old")
		module("dirty")
		l.git("commit", "-qm", "modules")
		l.found()
		module("new")
		l.git("-C", "old", "commit", "-q", "--allow-empty", "-m", "on")
		l.write("dirty/a.txt", "not committed in there\n")
		l.run()
		l.want(l.committed(), "M:.gitmodules", "A:new", "M:old")
		if status := l.git("status", "--porcelain"); status != " M dirty" {
			t.Errorf("the status is\n%s", status)
		}
	})
	t.Run("in a folder of it, and in a worktree", func(t *testing.T) {
		t.Parallel()
		l := newLab(t)
		l.git("worktree", "add", "-q", "-b", "side", "../side")
		top := l.project
		l.project = filepath.Join(filepath.Dir(top), "side")
		l.write("sub/x.txt", "\n")
		l.project = filepath.Join(l.project, "sub")
		l.found()
		l.write("../b.txt", "the team's\n")
		l.write("new.txt", "the team's\n")
		l.run()
		l.want(l.committed(), "M:b.txt", "A:sub/new.txt")
		if status := l.git("status", "--porcelain"); status != "?? x.txt" && status != "?? sub/x.txt" {
			t.Errorf("the status is\n%s", status)
		}
		l.project = top
		if l.git("status", "--porcelain") != "" || l.commits() != 1 {
			t.Error("the other work tree changed")
		}
	})
}

// TestKinds checks changes of kind: a file becomes a folder, a folder a file, a link, a program.
func TestKinds(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.write("dir/x.txt", "x\n")
	l.write("run.sh", "#!/bin/sh\n")
	l.git("add", "-A")
	l.git("commit", "-qm", "more")
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(l.project, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("nowhere", "mine")
	l.found()
	l.remove("dir/x.txt")
	l.remove("dir")
	l.write("dir", "a file now\n")
	l.remove("a.txt")
	l.write("a.txt/deep", "a folder now\n")
	link("elsewhere", "link")
	if err := os.Chmod(filepath.Join(l.project, "run.sh"), 0o755); err != nil {
		t.Fatal(err)
	}
	l.write("crlf.txt", "a\r\nb\r\n")
	l.git("config", "core.autocrlf", "input")
	l.run()
	l.want(l.committed(), "D:a.txt", "A:a.txt/deep", "A:crlf.txt", "A:dir", "D:dir/x.txt", "A:link", "M:run.sh")
	if status := l.git("status", "--porcelain"); status != "?? mine" {
		t.Errorf("the status is\n%s", status)
	}
	if text := l.git("cat-file", "-p", "HEAD:crlf.txt"); text != "a\nb" {
		t.Errorf("crlf.txt is %q", text)
	}
}

// TestHooks checks that no hook of the repository runs by itself. As a check, it sees exactly what
// will be committed.
func TestHooks(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	l := newLab(t)
	l.write("mine.txt", "the person's: FORBIDDEN\n")
	l.git("add", "mine.txt")
	hook := filepath.Join(l.project, ".git", "hooks", "pre-commit")
	l.write(".git/hooks/pre-commit", "#!/bin/sh\ngit diff --cached --name-only; ! git grep --cached -q FORBIDDEN\n")
	if err := os.Chmod(hook, 0o700); err != nil {
		t.Fatal(err)
	}
	l.found(team.Check{Name: "hook", Command: `GIT_INDEX_FILE="$CADRE_INDEX" git hook run pre-commit`})
	l.write("new.txt", "FORBIDDEN\n")
	err := l.refused("the check hook failed: exit status 1")
	if failed := (*FailedCheck)(nil); !errors.As(err, &failed) || failed.Output != "new.txt\n" {
		t.Errorf("the hook saw %+v", failed)
	}
	l.write("new.txt", "allowed\n")
	l.run()
	l.want(l.committed(), "A:new.txt")
	if status := l.git("status", "--porcelain"); status != "A  mine.txt" {
		t.Errorf("the status is\n%s", status)
	}
}

// TestCheckpoint checks that the team is saved on its branch before the first step, and again when
// it is complete. A failure of this is only logged.
func TestCheckpoint(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	state := func(l *lab) (status, text string) {
		var doc struct{ Status string }
		text = l.git("show", "cadre/demo:.claude/teams/demo/state.json")
		if err := json.Unmarshal([]byte(text), &doc); err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		return doc.Status, text
	}
	l := newLab(t)
	l.found()
	l.write("new.txt", "the team's\n")
	before, saved := l.git("rev-parse", "main"), ""
	o := l.options()
	o.at = func(point string) {
		switch point {
		case "checkpoint":
			if status, text := state(l); status != "consolidating" || l.git("rev-parse", "main") != before ||
				l.replica.Team().Consolidation.Step != team.Began {
				t.Errorf("the checkpoint has\n%s", text)
			}
			saved = l.git("rev-parse", "cadre/demo")
		case "head":
			if l.git("rev-parse", "main") == before || l.git("rev-parse", "cadre/demo") != saved {
				t.Error("no checkpoint was made before HEAD moved, or another one")
			}
		}
	}
	if _, err := Run(l.ctx, o); err != nil {
		t.Fatal(err)
	}
	// There is one checkpoint with the team's end, and a later one with its record.
	if status, text := state(l); saved == "" || status != "complete" || l.git("rev-parse", "cadre/demo~2") != saved {
		t.Errorf("at the end it is\n%s", text)
	}
	if kept := l.git("show", "cadre/demo:.claude/teams/demo/COMPLETED"); !strings.Contains(kept,
		l.git("rev-parse", "main")) {
		t.Errorf("the record in the last checkpoint is\n%s", kept)
	}

	l = newLab(t)
	l.found()
	l.write("new.txt", "the team's\n")
	l.git("branch", "cadre") // so cadre/demo cannot be created
	var said string
	o = l.options()
	o.Log = func(text string) { said += text }
	if _, err := Run(l.ctx, o); err != nil || strings.Count(said, "stay in") != 1 || !strings.Contains(said, "cadre") {
		t.Errorf("%v, %s", err, said)
	}
	l.want(l.committed(), "A:new.txt")

	l = newLab(t) // and it cannot be created beside the team either
	l.found()
	l.write("new.txt", "the team's\n")
	l.git("branch", "cadre")
	if err := os.WriteFile(filepath.Join(l.folder, "checkpoint"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	said = ""
	o.Replica, o.Dir = l.replica, l.folder
	if _, err := Run(l.ctx, o); err != nil || !strings.Contains(said, "no checkpoint of the consolidation: ") {
		t.Errorf("%v, %s", err, said)
	}
	l.want(l.committed(), "A:new.txt")
}

// TestLeaseLost checks that a consolidation which loses its lease, at any step, stops there. It
// commits nothing more and does not give the attempt up: the next process continues it.
func TestLeaseLost(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	for _, step := range []string{"began", string(team.Merged), string(team.Staged), string(team.Made)} {
		t.Run(step, func(t *testing.T) {
			t.Parallel()
			l := newLab(t)
			l.found(team.Check{Name: "build", Command: "true"})
			l.write("new.txt", "the team's\n")
			head := l.git("rev-parse", "HEAD")
			shared := &storetest.Losing{Team: filestore.Team(l.folder), Lasts: time.Hour}
			o, seq := l.options(), int64(0)
			o.Shared = shared
			o.at = func(at string) {
				if at == step {
					shared.Lose(store.Consolidation)
					seq = l.replica.Seq()
				}
			}
			_, err := Run(l.ctx, o)
			if team.CodeOf(err) != team.NotReady || !strings.Contains(err.Error(), "was stopped") {
				t.Errorf("it ended with %v", err)
			}
			if now := l.git("rev-parse", "HEAD"); now != head || l.replica.Seq() != seq || seq == 0 {
				t.Errorf("HEAD is %s, and was %s; the history has %d records, and had %d", now, head, l.replica.Seq(), seq)
			}
			l.run()
			l.want(l.committed(), "A:new.txt")
			l.tidy()
		})
	}
}

// TestUnknownBase checks that work that cannot be told from earlier changes is not committed.
func TestUnknownBase(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.write("bad\xff.txt", "x")
	l.found()
	if b := l.replica.Team().Base; !strings.Contains(b.Unknown, "UTF-8") {
		t.Errorf("%+v", b)
	}
	l.refused("UTF-8", "skip_commit")
}
