package run_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cadre/internal/run"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// words returns the lines of a file, sorted.
func (o office) words(name string) []string {
	all := strings.Fields(o.read(name))
	slices.Sort(all)
	return all
}

// TestChangedForEach runs a file again after its items changed. A group that has made its tasks
// keeps them, which the run says. Done again, it makes tasks for the items that the file has now.
func TestChangedForEach(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	o := newOffice(t)
	file := `
name: demo
members: [{name: ann, agent: shell}]
tasks:
  - {id: each, forEach: [%s], run: 'echo "$CADRE_ITEM" >>did; test "$CADRE_ITEM" != bad'}
  - {id: last, run: 'echo last >>did', blockedBy: [each]}
`
	if r := o.run(fmt.Sprintf(file, "a, bad")); r.Done() || r.Failed != 1 {
		t.Fatalf("it ended with %+v", r)
	}
	again := func(redo ...string) (r run.Result, said []string) {
		t.Helper()
		options := o.options(fmt.Sprintf(file, "a, b, c"))
		options.Redo = redo
		options.Changed = func(c run.Changes) error {
			for _, one := range c.All {
				said = append(said, strings.TrimSpace(one.Does+" "+one.Name+" "+one.Why))
			}
			return nil
		}
		r, err := run.Run(within(t), options)
		if err != nil {
			t.Fatal(err)
		}
		return r, said
	}
	if r, said := again(); r.Done() || !slices.Equal(said, []string{"keep each it has made its tasks"}) {
		t.Errorf("with other items, it ended with %+v; it said %q", r.Short, said)
	}
	if err := os.Remove(filepath.Join(o.dir, "did")); err != nil {
		t.Fatal(err)
	}
	if r, _ := again("each"); !r.Done() {
		t.Errorf("done again, it ended with %v", r.Short)
	}
	if did := o.words("did"); !slices.Equal(did, []string{"a", "b", "c", "last"}) {
		t.Errorf("done again, it did %q", did)
	}
}

// TestGlobWithoutGit makes tasks for the files of a directory that is no repository.
func TestGlobWithoutGit(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	for _, name := range []string{"src/a.txt", "src/deep/b c.txt", "src/$(touch x).txt", "src/d.md", "e.txt"} {
		path := filepath.Join(o.dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := o.run(`
name: demo
members: [{name: ann, agent: shell}]
tasks: [{id: each, forEach: {glob: 'src/**/*.txt'}, run: 'test -f "$CADRE_ITEM" && echo "$CADRE_ITEM" >>did'}]
`)
	lines := strings.Split(strings.TrimSpace(o.read("did")), "\n")
	slices.Sort(lines)
	if want := []string{"src/$(touch x).txt", "src/a.txt", "src/deep/b c.txt"}; !r.Done() || !slices.Equal(lines, want) {
		t.Errorf("it ended with %+v, for %q", r, lines)
	}
	if _, err := os.Stat(filepath.Join(o.dir, "x")); err == nil {
		t.Error("the name of a file was run")
	}
}

// TestLongestItem gives a command an item of the greatest size, whole. A longer one is refused.
func TestLongestItem(t *testing.T) {
	t.Parallel()
	o := newOffice(t)
	item := strings.Repeat("é", team.MaxItem/2-1) // with its quotation marks it has all bytes
	list := func(item string) string {
		return `
name: demo
members: [{name: ann, agent: shell}]
tasks: [{id: each, forEach: {run: cat items}, run: 'printf %s "$CADRE_ITEM" >did'}]
`
	}
	write := func(item string) {
		if err := os.WriteFile(filepath.Join(o.dir, "items"), []byte(item+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(item + "é")
	if r := o.run(list(item)); r.Done() || o.read("did") != "" {
		t.Errorf("an item that is too long: %+v, and it did %d bytes", r, len(o.read("did")))
	}
	write(item)
	options := o.options(list(item))
	options.Redo = []string{"each"}
	if r, err := run.Run(within(t), options); err != nil || !r.Done() || o.read("did") != item {
		t.Errorf("%+v, %v: the command has %d bytes of %d", r, err, len(o.read("did")), len(item))
	}
}

// TestWhereChecksRun runs checks where their members work: in a worktree, and there in the
// directory of the task. A check that takes longer than the task may is ended, with all that it
// started.
func TestWhereChecksRun(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	o := newOffice(t)
	for _, args := range [][]string{{"init", "-q"}, {"config", "user.email", "ada@example.com"},
		{"config", "user.name", "Ada"}, {"commit", "-q", "--allow-empty", "-m", "begin"}} {
		git := exec.Command("git", args...)
		git.Dir = o.dir
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	r := o.run(`
name: demo
members: [{name: ann, agent: shell, isolation: worktree}]
tasks:
  - {id: tree, run: 'mkdir -p sub && echo one >sub/here', check: 'test -f sub/here && git rev-parse --abbrev-ref HEAD'}
  - {id: below, run: 'cat here', dir: sub, blockedBy: [tree], check: 'test -f here && test "${PWD##*/}" = sub'}
  - {id: slow, run: 'echo quick', timeout: 1s, blockedBy: [below], check: 'echo begun; sleep 40; echo over'}
`)
	if r.Completed != 2 || r.Failed != 1 {
		t.Fatalf("it ended with %+v", r)
	}
	if _, err := os.Stat(filepath.Join(o.dir, "sub")); err == nil {
		t.Error("the work is in the team's directory")
	}
	report := o.read("demo-report.md")
	if !strings.Contains(report, "begun") || strings.Contains(report, "over\n") || !strings.Contains(report, "1 s") {
		t.Errorf("the report of the slow check is\n%s", report)
	}
}
