package worktree_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cadre/internal/git/worktree"
	"cadre/internal/sys/proc"
	"cadre/internal/testkit/soak"
)

// others makes a branch of another member with these files, and returns its commit.
func (r *repository) others(branch string, files ...string) string {
	r.t.Helper()
	dir := filepath.Join(r.t.TempDir(), "tree")
	r.git("worktree", "add", "-q", "-b", branch, dir, "main")
	for _, name := range files {
		r.write(dir, name, branch+"\n")
	}
	r.git("-C", dir, "add", "-A")
	r.git("-C", dir, "commit", "-qm", "work on "+branch)
	commit := r.git("rev-parse", branch)
	r.git("worktree", "remove", "--force", dir)
	return commit
}

func (r *repository) merge(commits ...string) (at string, c worktree.Conflict) {
	r.t.Helper()
	before := r.checkedOut()
	at, c, err := worktree.Merge(r.ctx, r.procs, r.place, "Merge for ann", commits...)
	if err != nil {
		r.t.Fatal(err)
	}
	if after := r.checkedOut(); after != before {
		r.t.Errorf("what is checked out was\n%s\nand is\n%s", before, after)
	}
	return at, c
}

// TestMerge checks that the work that a task builds on is merged into the branch and the files of
// its member, who keeps uncommitted work. A conflict changes nothing.
func TestMerge(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	t.Parallel()
	r := newRepository(t)
	r.commit("a.txt", "one\n")
	dir := r.add()
	bob, eve, clash := r.others("bob", "bob.txt"), r.others("eve", "deep/eve.txt"), r.others("clash", "hers.txt")
	r.write(dir, "hers.txt", "hers, not committed\n")
	for range 2 { // the second time there is nothing to do
		if at, c := r.merge(bob, eve); at != "" || !c.None() {
			t.Fatalf("%s: %v", at, c)
		}
		if files := r.git("-C", dir, "ls-files"); files != "a.txt\nbob.txt\ndeep/eve.txt\nhers.txt" ||
			r.git("-C", dir, "status", "--porcelain") != "" {
			t.Errorf("there is\n%s", files)
		}
		if n := r.git("rev-list", "--count", "main.."+r.place.Branch); n != "5" {
			t.Errorf("on the branch are %s commits", n)
		}
	}
	before := r.git("rev-parse", r.place.Branch)
	if at, c := r.merge(clash); at != clash || strings.Join(c.Files, " ") != "hers.txt" {
		t.Errorf("%s: %v", at, c)
	}
	if r.git("rev-parse", r.place.Branch) != before || r.git("-C", dir, "status", "--porcelain") != "" {
		t.Error("a conflict changed something")
	}
	// it would lead git to the person's checkout
	r.write(dir, ".git", "gitdir: "+filepath.Join(r.place.Repo, ".git")+"\n")
	if at, c := r.merge(r.others("dan", "dan.txt")); at != "" || !c.None() {
		t.Errorf("%s: %v", at, c)
	}
}

// TestKilledMerge kills the update of the files at any moment. The next merge finishes it, and no
// half-written file counts as the member's.
func TestKilledMerge(t *testing.T) {
	if testing.Short() {
		t.Skip("many kills")
	}
	t.Parallel()
	r := newRepository(t)
	r.write(r.place.Repo, ".gitattributes", "*.slow filter=slow\n")
	r.git("config", "filter.slow.smudge", "sleep 0.02; cat")
	r.git("config", "filter.slow.clean", "cat")
	r.commit("a.txt", "one\n")
	halves := 0
	for i := range 8 {
		if !soak.Wanted() && i%2 == 1 {
			continue
		}
		dir := r.add()
		r.write(dir, "hers.txt", "hers\n")
		r.git("-C", dir, "add", "-A")
		r.git("-C", dir, "commit", "-qm", "hers")
		bob := r.others("bob", strings.Fields("1.slow 2.slow 3.slow 4.slow 5.slow 6.slow a.txt")...)
		next := r.git("-C", dir, "commit-tree", r.git("merge-tree", "--write-tree", r.place.Branch, bob), "-p",
			r.place.Branch, "-p", bob, "-m", "m")
		r.git("-C", dir, "update-ref", "refs/worktree/cadre-merge", next)
		c := exec.Command("git", "-C", dir, "reset", "-q", "--hard", next)
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() { c.Wait(); close(ended) }()
		if i > 0 { // the moment of the kill is what differs
			await(ended, filepath.Join(dir, fmt.Sprint(i, ".slow")))
		}
		syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
		<-ended
		if r.git("-C", dir, "status", "--porcelain") != "" {
			halves++
		}
		if at, c := r.merge(bob); at != "" || !c.None() {
			t.Fatalf("%s: %v", at, c)
		}
		if status := r.git("-C", dir, "status", "--porcelain"); status != "" {
			t.Errorf("left is\n%s", status)
		}
		// m, hers, work on bob
		if got := r.git("log", "--format=%s", "main.."+r.place.Branch); len(strings.Fields(got)) != 5 {
			t.Errorf("on the branch are\n%s", got)
		}
		if refs := r.git("-C", dir, "for-each-ref", "refs/worktree"); refs != "" {
			t.Errorf("left is %s", refs)
		}
		r.git("worktree", "remove", "--force", dir)
		r.git("branch", "-qD", r.place.Branch, "bob")
	}
	if halves == 0 {
		t.Error("no kill left a half")
	}
}

// await returns when the file is there, or the process has ended.
func await(ended <-chan struct{}, file string) {
	for {
		if _, err := os.Stat(file); err == nil {
			return
		}
		select {
		case <-ended:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// victim holds, for a copy of the test program, the arguments of a merge that is to be killed.
const victim = "CADRE_TEST_MERGE"

// fatalGit is git, but kills the victim before or after the command with that number.
const fatalGit = `#!/bin/sh
echo >> "$COUNT"
n=$(wc -l < "$COUNT" | tr -d ' ')
[ "$n" = "$AT" ] || exec %[1]q "$@"
[ "$WHEN" = before ] || %[1]q "$@"
kill -s KILL "$VICTIM"
`

func mergeUntilKilled(args string) int {
	parts := strings.Split(args, "\n")
	procs, err := proc.Open("")
	if err != nil {
		return 3
	}
	os.Setenv("VICTIM", strconv.Itoa(os.Getpid()))
	_, c, err := worktree.Merge(context.Background(), procs, worktree.Place{Repo: parts[0], Dir: parts[1],
		Branch: parts[2]}, "Merge for ann", parts[3:]...)
	if err != nil || !c.None() {
		return 4
	}
	return 0
}

// TestMergeKilledAtEachCommand kills a merge before or after each of its git commands. The next
// merge gives the usual result: each commit is merged once, the member's uncommitted work is a
// commit of its own, and no lock, reference or file is left.
func TestMergeKilledAtEachCommand(t *testing.T) {
	if testing.Short() {
		t.Skip("a process is killed many times")
	}
	t.Parallel()
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "git"), fmt.Appendf(nil, fatalGit, git), 0o700); err != nil {
		t.Fatal(err)
	}
	const groups = 4 // each takes its share of the commands
	every := soak.Of(4, 1)
	var kills atomic.Int32
	t.Run("each", func(t *testing.T) {
		for i := range 2 * groups {
			when, group := []string{"before", "after"}[i/groups], i%groups
			t.Run(fmt.Sprint(when, group), func(t *testing.T) {
				t.Parallel()
				r := newRepository(t)
				r.commit("a.txt", "one\n")
				bob, eve := r.others("bob", "bob.txt", "a.txt"), r.others("eve", "deep/eve.txt")
				for at := group*every + 1; r.killedMerge(bin, when, at, bob, eve); at += groups * every {
					kills.Add(1)
				}
			})
		}
	})
	if n := kills.Load(); n < int32(soak.Of(8, 20)) {
		t.Errorf("it was killed %d times", n)
	}
}

// killedMerge starts a process that merges the commits, kills it at that git command, and merges
// again. It reports whether the process was killed.
func (r *repository) killedMerge(bin, when string, at int, bob, eve string) (killed bool) {
	t := r.t
	t.Helper()
	dir := r.add()
	r.write(dir, "hers.txt", "hers, not committed\n")
	before := r.checkedOut()
	cmd := exec.CommandContext(r.ctx, os.Args[0])
	cmd.Env = append(os.Environ(), victim+"="+strings.Join([]string{r.place.Repo, dir, r.place.Branch, bob, eve}, "\n"),
		"PATH="+bin+":"+os.Getenv("PATH"),
		"COUNT="+filepath.Join(t.TempDir(), "count"), "AT="+strconv.Itoa(at), "WHEN="+when)
	err := cmd.Run()
	if killed = err != nil; killed && cmd.ProcessState.ExitCode() >= 0 {
		t.Fatalf("the victim ended by itself: %v", err)
	}
	if now := r.checkedOut(); now != before {
		t.Fatalf("killed %s command %d, what is checked out was\n%s\nand is\n%s", when, at, before, now)
	}
	if at, c := r.merge(bob, eve); at != "" || !c.None() {
		t.Fatalf("%s: %v", at, c)
	}
	files, status := r.git("-C", dir, "ls-files"), r.git("-C", dir, "status", "--porcelain")
	if subjects := r.git("log", "--first-parent", "--format=%s",
		"main.."+r.place.Branch); files != "a.txt\nbob.txt\ndeep/eve.txt\nhers.txt" || status != "" ||
		subjects != "Merge for ann\nMerge for ann\nMerge for ann" || r.git("show", r.place.Branch+":a.txt") != "bob" {
		t.Fatalf("killed %s command %d, there is\n%s\n%s\non the branch\n%s", when, at, files, status, subjects)
	}
	own := r.git("-C", dir, "rev-parse", "--absolute-git-dir")
	if locks, _ := filepath.Glob(filepath.Join(own, "*.lock")); len(locks) > 0 || r.git("-C", dir, "for-each-ref",
		"refs/worktree") != "" {
		t.Errorf("left: %v", locks)
	}
	r.git("worktree", "remove", "--force", dir)
	r.git("branch", "-qD", r.place.Branch)
	return killed
}
