package checkpoint

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"

	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// repositories has the kinds of repositories. Each function returns the directory that the team
// works in.
var repositories = map[string]func(l *lab) string{
	"plain":            func(l *lab) string { return l.repository("r") },
	"without a commit": func(l *lab) string { l.git(l.dir, "init", "-q", "r"); return filepath.Join(l.dir, "r") },
	"sha256":           func(l *lab) string { return l.repository("r", "--object-format=sha256") },
	"on another branch": func(l *lab) string {
		d := l.repository("r")
		l.git(d, "checkout", "-q", "-b",
			"topic")
		return d
	},
	"on no branch": func(l *lab) string {
		d := l.repository("r")
		l.git(d, "checkout", "-q",
			"--detach")
		return d
	},
	"bare": func(l *lab) string {
		l.git(l.dir, "clone", "-q", "--bare", l.repository("r"), "bare.git")
		return filepath.Join(l.dir, "bare.git")
	},
	"shallow": func(l *lab) string {
		d := l.repository("r")
		l.git(d, "commit", "-q", "--allow-empty", "-m", "second")
		l.git(l.dir, "clone", "-q", "--depth=1", "file://"+d, "shallow")
		return filepath.Join(l.dir, "shallow")
	},
	"linked worktree": func(l *lab) string {
		d := l.repository("r")
		l.git(d, "worktree", "add", "-q", "../linked")
		return filepath.Join(l.dir, "linked")
	},
	"subdirectory": func(l *lab) string {
		d := filepath.Join(l.repository("r"), "sub")
		l.write(filepath.Join(d, "b.txt"), "two\n")
		return d
	},
	"submodule": func(l *lab) string {
		part, whole := l.repository("part"), l.repository("whole")
		l.git(whole, "submodule", "--quiet", "add", part, "part")
		return filepath.Join(whole, "part")
	},
	"git dir elsewhere": func(l *lab) string {
		return l.repository("r", "--separate-git-dir="+filepath.Join(l.dir, "elsewhere"))
	},
}

// inNames are the digests in the names of sheets.
var inNames = regexp.MustCompile(`-[0-9a-f]{12}\b`)

// TestRepositories checks that in every kind of repository checkpoints appear on their branch, and
// that they change nothing else.
func TestRepositories(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	for name, make := range repositories {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			project := make(l)
			common := l.git(project, "rev-parse", "--path-format=absolute", "--git-common-dir")
			for _, hook := range []string{"pre-commit", "post-commit", "reference-transaction", "post-update",
				"pre-auto-gc"} {
				l.write(filepath.Join(common, "hooks", hook), "#!/bin/sh\necho ran >> '"+l.dir+"/hooked'\nexit 1\n")
				os.Chmod(filepath.Join(common, "hooks", hook), 0o700)
			}
			if l.git(project, "rev-parse", "--is-bare-repository") == "false" {
				l.write(filepath.Join(project, "staged.txt"), "staged\n")
				l.git(project, "add", "staged.txt")
				l.write(filepath.Join(project, "a.txt"), "changed\n")
			}
			mislead(t, l)
			before := outside(t, l)

			s, w := l.store(project), newWork(t, "T1")
			if s.Notice() != "" {
				t.Fatal(s.Notice())
			}
			if _, err := s.Restore(t.Context()); !errors.Is(err, ErrNone) {
				t.Fatalf("before the first: %v", err)
			}
			for n := range 4 {
				w.step(t)
				if n == 2 {
					s = l.store(project) // a new store has to find everything again
				}
				c := l.checkpoint(s, w)
				if !c.Written || c.Commit != l.git(project, "rev-parse", "cadre/demo") ||
					c.Seq != int64(len(w.records)) || c.Team != "T1" {
					t.Errorf("%+v", c)
				}
				if again := l.checkpoint(s, w); again.Written || again.Commit != c.Commit {
					t.Errorf("of the same again: %+v", again)
				}
				if latest, err := l.store(project).Restore(t.Context()); err != nil || latest.Commit != c.Commit ||
					latest.Seq != c.Seq {
					t.Errorf("latest: %+v, %v", latest, err)
				}
				brings(t, s, w)
			}
			if n := len(l.line(project)); n != 4 {
				t.Errorf("there are %d commits", n)
			}
			files := l.git(project, "ls-tree", "-r", "--name-only", "--full-tree", "cadre/demo")
			if got := inNames.ReplaceAllString(strings.ReplaceAll(files, ".claude/teams/demo/", ""),
				""); got != "mailbox.log\nrestore/base.json\nrestore/members.jsonl\nrestore/tasks/0000.jsonl\nrestore/team.json\nstate.json\ntasks.jsonl\nREADME.md" {
				t.Errorf("the tree has\n%s", files)
			}
			if who := l.git(project, "log", "-1", "--format=%an <%ae> %cn", "cadre/demo"); who != "Ann Example "+
				"<ann@example.org> Ann Example" {
				t.Errorf("it is by %s", who)
			}
			if out, err := l.try(project, "fsck", "--strict", "--no-dangling"); err != nil {
				t.Errorf("%v: %s", err, out)
			}
			if after := outside(t, l); after != before {
				t.Errorf("before:\n%s\nafter:\n%s", before, after)
			}
		})
	}
}

// line returns the line of checkpoints, the oldest first.
func (l *lab) line(project string) (commits []string) {
	l.Helper()
	for line := range strings.SplitSeq(l.git(project, "log", "--first-parent", "--reverse", "--format=%H %s",
		"cadre/demo"), "\n") {
		if commit, subject, _ := strings.Cut(line, " "); subject != "Checkpoints of team demo" {
			commits = append(commits, commit)
		}
	}
	return commits
}

// mislead sets variables that make git use another repository, index or commit.
func mislead(t *testing.T, l *lab) {
	other := l.repository("other")
	for name, value := range map[string]string{"GIT_DIR": filepath.Join(other, ".git"), "GIT_WORK_TREE": other,
		"GIT_INDEX_FILE":       filepath.Join(l.dir, "no-index"),
		"GIT_OBJECT_DIRECTORY": filepath.Join(l.dir, "no-objects"), "GIT_COMMON_DIR": filepath.Join(other, ".git"),
		"GIT_NAMESPACE": "space", "GIT_PREFIX": "x/",
		"GIT_AUTHOR_DATE": "2001-01-01T00:00:00Z", "GIT_QUARANTINE_PATH": "/nowhere"} {
		t.Setenv(name, value)
	}
}

// outside returns everything in the lab except what checkpoints write: objects, the branch and its
// log.
func outside(t *testing.T, l *lab) string {
	var b strings.Builder
	err := filepath.WalkDir(l.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := strings.TrimPrefix(path, l.dir)
		if e.IsDir() {
			if e.Name() == "objects" || strings.HasSuffix(name, "heads/cadre") {
				return fs.SkipDir
			}
			return nil
		}
		if e.Type()&fs.ModeSymlink != 0 {
			to, err := os.Readlink(path)
			fmt.Fprintf(&b, "%s -> %s\n", name, to)
			return err
		}
		text, err := os.ReadFile(path)
		fmt.Fprintf(&b, "%s: %x\n", name, text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestNobodyConfigured(t *testing.T) {
	l := newLab(t)
	project := l.repository("r")
	t.Setenv("GIT_CONFIG_GLOBAL", os.DevNull)
	l.checkpoint(l.store(project), newWork(t, "T1"))
	if who := l.git(project, "log", "-1", "--format=%an <%ae>", "cadre/demo"); who != "cadre <cadre@localhost>" {
		t.Errorf("it is by %s", who)
	}
}

// TestTwoHosts checks that stores that write at once lose no checkpoint, and none moves the branch
// back.
func TestTwoHosts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	l := newLab(t)
	project, w := l.repository("r"), newWork(t, "T1")
	const writers, rounds = 3, 8
	commits := make([][]string, writers)
	var group sync.WaitGroup
	for i := range writers {
		s := l.store(project)
		group.Go(func() {
			for range rounds {
				if _, err := w.try("lead", &team.CreateTask{Subject: "more"}); err != nil {
					t.Error(err)
				}
				c, err := s.Write(t.Context(), w, Beside{})
				if err != nil {
					t.Error(err)
				}
				if c.Written {
					commits[i] = append(commits[i], c.Commit)
				}
			}
		})
	}
	group.Wait()
	there := strings.Join(l.line(project), " ")
	last, unknown := 0, map[string]bool{}
	for _, hash := range l.line(project) {
		var seq int
		text := l.git(project, "log", "-1", "--format=%B", hash)
		if _, err := fmt.Sscanf(text[strings.Index(text, "\nCheckpoint "):], "\nCheckpoint %d",
			&seq); err != nil || seq <= last {
			t.Errorf("%q after %d: %v", text, last, err)
		}
		last, unknown[hash] = seq, true
	}
	for _, written := range commits {
		for _, c := range written {
			if delete(unknown, c); !strings.Contains(there, c) { // two stores may have made the same commit
				t.Errorf("commit %s is lost", c)
			}
		}
	}
	if len(unknown) != 0 {
		t.Errorf("no store has written %v", unknown)
	}
	brings(t, l.store(project), w)
}

// TestOlderState checks that an older state never replaces a newer one.
func TestOlderState(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	project, w := l.repository("r"), newWork(t, "T1")
	old := &work{state: &team.State{}, records: w.records[:len(w.records):len(w.records)]}
	for _, r := range old.records {
		old.state.Apply(r)
	}
	w.step(t)
	newest := l.checkpoint(l.store(project), w)
	if c := l.checkpoint(l.store(project), old); c.Written || c.Commit != newest.Commit || c.Seq != newest.Seq {
		t.Errorf("%+v over %+v", c, newest)
	}
	brings(t, l.store(project), w)
}

// TestBesideOtherCommands checks that people and programs use the repository while checkpoints are
// written, and neither hinders the other.
func TestBesideOtherCommands(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	l := newLab(t)
	project, w := l.repository("r"), newWork(t, "T1")
	done := make(chan struct{})
	var group sync.WaitGroup
	for _, commands := range [][][]string{
		{{"commit", "-q", "--allow-empty", "-m", "more"}, {"checkout", "-q", "-B", "topic"},
			{"checkout", "-q", "main"}},
		{{"pack-refs", "--all", "--prune"}, {"gc", "-q"}, {"maintenance", "run", "--quiet", "--task=loose-objects"}},
		{{"update-ref", "refs/heads/cadre/other", "main"}, {"update-ref", "-d", "refs/heads/cadre/other"},
			{"branch", "-f", "cadre/demo@bob", "main"}},
	} {
		group.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-done:
					if n < len(commands) {
						t.Errorf("git %v hardly ran", commands)
					}
					return
				default:
				}
				// These commands may meet each other's locks, but must never meet a lock of a
				// checkpoint.
				if out, err := l.try(project, commands[n%len(commands)]...); err != nil &&
					strings.Contains(out, "cadre/demo'") {
					t.Errorf("git %v: %v\n%s", commands[n%len(commands)], err, out)
				}
			}
		})
	}
	one, other := l.store(project), l.store(project)
	written := 0
	var commits []string
	rounds := 30
	if testing.Short() {
		rounds = 8
	}
	for n := range rounds {
		w.step(t)
		s := one
		if n%2 == 1 {
			s = other
		}
		if c := l.checkpoint(s, w); c.Written {
			written++
			commits = append(commits, fmt.Sprint(c.Seq, " ", c.Commit))
		}
	}
	close(done)
	group.Wait()
	if n := len(l.line(project)); n != written || written != rounds {
		t.Errorf("%d commits of %d; written:\n%s\nthere:\n%s", n, written, strings.Join(commits, "\n"),
			l.git(project, "log", "--reverse", "--format=%s %H %P", "cadre/demo"))
	}
	brings(t, l.store(project), w)
	if out, err := l.try(project, "fsck", "--strict", "--no-dangling"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestBranchIsMovedAndRemoved checks that a store can write again after what it knew of the branch
// was moved or removed.
func TestBranchIsMovedAndRemoved(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	project, w := l.repository("r"), newWork(t, "T1")
	s := l.store(project)
	first := l.checkpoint(s, w)
	w.step(t)
	l.checkpoint(s, w)
	l.git(project, "update-ref", "refs/heads/cadre/demo", first.Commit)
	w.step(t)
	l.checkpoint(s, w)
	brings(t, s, w)
	l.git(project, "branch", "-q", "-D", "cadre/demo")
	l.git(project, "reflog", "expire", "--expire=all", "--all")
	l.git(project, "gc", "-q", "--prune=now")
	w.step(t)
	l.checkpoint(s, w)
	brings(t, s, w)
	if n := len(l.line(project)); n != 1 {
		t.Errorf("%d commits", n)
	}
}

// TestBranchesInTheWay checks that a branch in the way is named, and never overwritten. The
// checkpoints are beside the team while it exists.
func TestBranchesInTheWay(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	for branch, says := range map[string]string{"cadre": "it is named cadre, ",
		"cadre/demo":     "not a checkpoint of cadre",
		"cadre/demo/bob": "it is named cadre/demo/bob, "} {
		l := newLab(t)
		project, w := l.repository("r"), newWork(t, "T1")
		l.git(project, "branch", branch)
		before := l.git(project, "rev-parse", branch)
		s := l.store(project)
		if branch != "cadre/demo" {
			want := team.Hint{Action: team.ActRenameBranch, Team: "demo", Name: branch, Dir: project}
			w.step(t)
			_, err := s.put(t.Context(), w, Beside{})
			if got := team.HintsOf(err); len(got) != 1 || !reflect.DeepEqual(got[0], want) {
				t.Errorf("%s: got %v with the hints %+v, want %+v", branch, err, got, want)
			}
		}
		for range 2 {
			w.step(t)
			if c := l.checkpoint(s, w); !strings.Contains(c.Notice, says) || c.Commit != "" ||
				c.Place != filepath.Join(l.dir, "own", "checkpoint") || !c.Written {
				t.Errorf("%s: %+v", branch, c)
			}
			brings(t, s.aside, w)
		}
		if after := l.git(project, "rev-parse", branch); after != before {
			t.Errorf("%s was moved", branch)
		}
		l.git(project, "branch", "-m", branch, "other")
		if c := l.checkpoint(s, w); c.Notice != "" || c.Commit == "" {
			t.Errorf("without %s: %+v", branch, c)
		}
		brings(t, s, w)
	}
}
