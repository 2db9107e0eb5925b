package render

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// TestEveryCommand checks that each action has a command line of its own. The command line's tests
// parse them all.
func TestEveryCommand(t *testing.T) {
	lines := map[string]team.Action{}
	for _, a := range team.Actions() {
		line := CommandFor(team.Hint{Action: a, Team: "demo", Task: "3", Request: "r1"}).Line
		other, taken := lines[line]
		if taken && !(a == team.ActFinish && other == team.ActConsolidate) {
			t.Errorf("%s and %s are the same: %s", a, other, line)
		}
		lines[line] = a
	}
}

// TestCommandIsQuoted checks that a shell reads the words of a hint as they are.
func TestCommandIsQuoted(t *testing.T) {
	for _, c := range []struct {
		hint team.Hint
		want []string
	}{
		{team.Hint{Action: team.ActMove, Team: "demo", Dir: "/a dir/it's"},
			[]string{"resume", "demo", "--dir", "/a dir/it's"}},
		{team.Hint{Action: team.ActIncludeFiles, Team: "demo", Paths: []string{"a;b", "$(c)"}},
			[]string{"consolidate", "demo", "--include", "a;b", "--include", "$(c)"}},
		{team.Hint{Action: team.ActSpawn, Team: "demo", Agent: "x; rm"},
			[]string{"spawn", "demo", "NAME", "--agent", "x; rm"}},
	} {
		line := CommandFor(c.hint).Line
		out, err := exec.CommandContext(t.Context(), "sh", "-c", `cadre() { printf '%s\n' "$@"; }; `+line).Output()
		if got := strings.TrimSuffix(string(out), "\n"); err != nil || got != strings.Join(c.want, "\n") {
			t.Errorf("%s: the shell reads %q, %v", line, got, err)
		}
	}
}

// TestExplain checks that a person is shown the note that another actor changed.
func TestExplain(t *testing.T) {
	note := &team.Note{Key: "api", Text: "GET /v2"}
	err := fmt.Errorf("write: %w", &team.Error{Code: team.Conflict, Text: "note api was changed", Note: note})
	want := "write: note api was changed. It is now:\nGET /v2\nTo look at the team: cadre status demo"
	if got := Explain(err, []team.Hint{{Action: team.ActShowTeam, Team: "demo"}}); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHelped(t *testing.T) {
	resume := team.Hint{Action: team.ActResume, Team: "demo"}
	for _, c := range []struct {
		text  string
		hints []team.Hint
		want  string
	}{
		{"no", nil, "no"},
		{"bob still runs", []team.Hint{{Action: team.ActShutDown, Team: "demo", Member: "bob"},
			{Action: team.ActForceCleanUp, Team: "demo"}}, "bob still runs. To shut down bob: cadre shutdown demo " +
			"bob; or to end and remove the whole team: cadre cleanup demo --force"},
		{"it is there.", []team.Hint{resume}, "it is there. To resume the team: cadre resume demo"},
		{"one\ntwo", []team.Hint{resume}, "one\ntwo\nTo resume the team: cadre resume demo"},
	} {
		if got := Helped(c.text, c.hints); got != c.want {
			t.Errorf("%q,\nwant %q", got, c.want)
		}
	}
	see := Remedied("it is wrong", []Remedy{{Command: Command{Line: "cadre task --help"}}})
	if want := "it is wrong; see: cadre task --help"; see != want {
		t.Errorf("%q,\nwant %q", see, want)
	}
}

// TestHintsForGit runs the command lines of hints that git carries out, and checks what they do in
// a repository with a difficult name.
func TestHintsForGit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "it's $(one)")
	run := func(line string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "sh", "-c", line)
		c.Dir = filepath.Dir(dir)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", line, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	const by = " -c user.name=a -c user.email=a@b "
	git := "git -C " + sanitize.Quote(dir)
	run("git init -q " + sanitize.Quote(dir))
	var commits []string
	for _, text := range []string{"one", "two"} {
		if err := os.WriteFile(filepath.Join(dir, "a b.txt"), []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		run(git + " add -A && " + git + by + "commit -qm " + text)
		commits = append(commits, run(git+" rev-parse HEAD"))
	}
	h := team.Hint{Team: "demo", Dir: dir, From: commits[1], To: commits[0], Paths: []string{"a b.txt"}}
	h.Action = team.ActShowFile
	if got := run(CommandFor(h).Line); got != "two" {
		t.Errorf("%s: got %q, want the file", CommandFor(h), got)
	}
	h.Paths = nil
	if got := run(CommandFor(h).Line); !strings.HasSuffix(got, "\ta b.txt") {
		t.Errorf("%s: got %q, want the files", CommandFor(h), got)
	}
	h.Action = team.ActRevertWork
	run(CommandFor(h).Line)
	if got := run("cat " + sanitize.Quote(dir) + "/*"); got != "one" {
		t.Errorf("%s: the file is %q, want it as it was", CommandFor(h), got)
	}
	h.Action = team.ActKeepCommit
	run(strings.Replace(CommandFor(h).Line, "NAME", "kept", 1))
	if got := run(git + " rev-parse kept"); got != commits[1] {
		t.Errorf("%s: the branch is at %s, want %s", CommandFor(h), got, commits[1])
	}

	other := filepath.Join(t.TempDir(), "other")
	run("git clone -q " + sanitize.Quote(dir) + " " + other)
	h = team.Hint{Action: team.ActAddRemote, Team: "demo", Dir: dir, Name: "origin"}
	run(strings.Replace(CommandFor(h).Line, "URL", other, 1))
	if got := run(git + " remote get-url origin"); got != other {
		t.Errorf("%s: the remote is %s, want %s", CommandFor(h), got, other)
	}
	h = team.Hint{Action: team.ActPushCommit, Team: "demo", Dir: dir, Name: "origin", From: commits[0]}
	run(strings.Replace(CommandFor(h).Line, "BRANCH", "cadre/demo", 1))
	if got := run("git -C " + other + " rev-parse cadre/demo"); got != commits[0] {
		t.Errorf("%s: the branch of the remote is at %s, want %s", CommandFor(h), got, commits[0])
	}
	h = team.Hint{Action: team.ActFetchBranch, Team: "demo", Dir: dir, Name: "cadre/demo"}
	run(strings.Replace(CommandFor(h).Line, "REPOSITORY", other, 1))
	h.Action = team.ActRenameBranch
	run(strings.Replace(CommandFor(h).Line, "NAME", "theirs", 1))
	if got := run(git + " rev-parse theirs"); got != commits[0] {
		t.Errorf("%s: the branch is at %s, want %s", CommandFor(h), got, commits[0])
	}
	h = team.Hint{Action: team.ActDeleteBranch, Team: "demo", Dir: dir, Name: "theirs"}
	run(CommandFor(h).Line)
	if got := run(git + " branch --list theirs"); got != "" {
		t.Errorf("%s: the branch is still there: %s", CommandFor(h), got)
	}
	worktreeHints(t, run, dir)
	git = "git -C " + sanitize.Quote(other)
	h = team.Hint{Action: team.ActMergeBranch, Team: "demo", Dir: other, Name: "side"}
	run(git + " config user.name a && " + git + " config user.email a@b && " + git + " checkout -qb side && echo > " +
		other + "/side && " + git + " add -A && " + git + " commit -qm side && " + git + " checkout -q - && " +
		git + " commit -q --allow-empty -m main")
	run(CommandFor(h).Line)
	merge := run(git + " rev-parse HEAD")
	h = team.Hint{Action: team.ActRevertCommit, Team: "demo", Dir: other, From: merge, To: merge}
	run("GIT_EDITOR=true " + CommandFor(h).Line)
	if got := run(git + " ls-files"); got != "a b.txt" {
		t.Errorf("%s: the files are %q, want those before the merge", CommandFor(h), got)
	}
	h.From, h.To = run(git+" rev-parse side"), ""
	run(git + " reset -q --hard side && GIT_EDITOR=true " + CommandFor(h).Line)
	if got := run(git + " ls-files"); got != "a b.txt" {
		t.Errorf("%s: the files are %q, want those before the commit", CommandFor(h), got)
	}
}

// worktreeHints checks the commands for worktrees in the repository dir.
func worktreeHints(t *testing.T, run func(string) string, dir string) {
	t.Helper()
	git := "git -C " + sanitize.Quote(dir)
	tree := filepath.Join(t.TempDir(), "a tree")
	run(git + " worktree add -q -b hers " + sanitize.Quote(tree))
	run(git + " worktree lock " + sanitize.Quote(tree))
	h := team.Hint{Action: team.ActUnlockWorktree, Team: "demo", Dir: dir, Name: tree}
	run(CommandFor(h).Line)
	there := "git -C " + sanitize.Quote(tree)
	run(there + " checkout -q --detach")
	run(CommandFor(team.Hint{Action: team.ActCheckOut, Team: "demo", Dir: tree, Name: "hers"}).Line)
	if got := run(there + " symbolic-ref --short HEAD"); got != "hers" {
		t.Errorf("the branch checked out is %s, want hers", got)
	}
	moved := tree + " moved"
	run("mv " + sanitize.Quote(tree) + " " + sanitize.Quote(moved))
	h.Action, h.Name = team.ActRepairWorktree, moved
	run(CommandFor(h).Line)
	run("rm -r " + sanitize.Quote(moved))
	h.Action = team.ActForgetWorktree
	run(CommandFor(h).Line)
	if got := run(git + " worktree list --porcelain"); strings.Contains(got, "a tree") {
		t.Errorf("the record is still there: %s", got)
	}
}
