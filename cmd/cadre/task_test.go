package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/testkit/soak"
)

// TestTaskNamedLikeANumber checks that a task without a name is called #2 where another task is
// named 2, by each command, and that a person can type what is shown.
func TestTaskNamedLikeANumber(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	root := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root, "CADRE_HOME=" + filepath.Join(root, "home"),
		"GIT_CEILING_DIRECTORIES=" + root}
	run := call{env: env}.lines(t)
	for _, one := range []struct{ line, wants string }{
		{"create demo", ""},
		{"task add demo first --name 2", "task 2: first"},
		{"task add demo second --blocked-by #1", "task #2: second"},
		{"task add demo third --blocked-by #2", "task 3: third"},
		{"task list demo", "blocked by #2"},
		{"task show demo #1", "blocks      #2"},
		{"task done demo #1 --as lead", "it frees task #2"},
		{"spawn demo z --agent external", ""},
		{"task claim demo #2 --as z", "task #2 is claimed by z"},
		{"task fail demo #2 --as z --reason no", "task #2 failed"},
		{"status demo", "Task #2 (second) failed"},
		{"status demo", "cadre task release demo '#2'"},
		{"attention", "cadre task release demo '#2'"},
		{"inbox demo lead", "Task #2 (second) failed"},
		{"log demo", "z FAILED task #2: no"},
		{"log demo", "task #2: second (after 2)"},
		{"task done demo #2 --as z", "cadre task claim demo '#2' --as z"},
		{"task list demo", "\n#2 "},
		{"task rm demo #2", "task #2 is deleted"},
	} {
		r := run(root, strings.Fields(one.line)...)
		if out := string(r.out) + string(r.err); !strings.Contains(out, one.wants) {
			t.Errorf("cadre %s does not print %q:\n%s", one.line, one.wants, out)
		}
	}
}

// TestTaskShowsWhatItHas checks that the text of a task has each field that it was added with, as
// its JSON has.
func TestTaskShowsWhatItHas(t *testing.T) {
	root := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root, "CADRE_HOME=" + filepath.Join(root, "home"),
		"GIT_CEILING_DIRECTORIES=" + root}
	process := call{env: env}.lines(t)
	run := func(args ...string) string {
		t.Helper()
		r := process(root, args...)
		if r.code != done {
			t.Fatalf("cadre %q: %s", args, r.err)
		}
		return string(r.out)
	}
	run("create", "demo")
	run("task", "add", "demo", "build", "--run", "make", "--dir", "sub", "--env", "CGO_ENABLED=0", "--env",
		"GOOS=linux", "--metadata", "ticket=7", "--metadata", "by=two words", "--retries", "2", "--timeout", "90s")
	file := filepath.Join(root, "tasks.yaml")
	if err := os.WriteFile(file, []byte("- {id: sum, run: 'true', when: always, in: merged}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	run("task", "add", "demo", "--file", file)
	for ref, all := range map[string][]string{
		"1": {"directory    sub\n", "environment  CGO_ENABLED=0 GOOS=linux\n",
			`metadata     by="two words" ticket=7` + "\n",
			"retries      2\n", "timeout      1 min 30 s\n"},
		"sum": {"runs        also if a task that it depends on has failed\n", "runs in     merged\n"},
	} {
		shown := run("task", "show", "demo", ref)
		for _, want := range all {
			if !strings.Contains(shown, "\n  "+want) {
				t.Errorf("task %s has no line %q:\n%s", ref, want, shown)
			}
		}
	}
}

// TestAbortsTwice checks that a second call of cadre abort asks nothing.
func TestAbortsTwice(t *testing.T) {
	root := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root, "CADRE_HOME=" + filepath.Join(root, "home")}
	for _, line := range []string{"create demo", "task add demo one", "abort demo --yes", "abort demo"} {
		if r := (call{args: strings.Fields(line), dir: root, env: env}).run(t); r.code != done {
			t.Errorf("cadre %s: status %d, %s", line, r.code, r.err)
		}
	}
}

// TestTemplatesAreListed checks that --template alone is no mistake.
func TestTemplatesAreListed(t *testing.T) {
	for _, line := range []string{"run --template", "init --template"} {
		r := call{args: strings.Fields(line), dir: t.TempDir(), env: []string{"HOME=" + t.TempDir()}}.run(t)
		if r.code != done || len(r.err) > 0 || !strings.Contains(string(r.out), "\nhealth ") {
			t.Errorf("cadre %s: status %d, %s, %s", line, r.code, r.out, r.err)
		}
	}
}

// TestTaskListFolds: the list has one line for a group, with how many of its tasks are done and
// failed. --all, a narrowed list and --json have each of them.
func TestTaskListFolds(t *testing.T) {
	root := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root, "CADRE_HOME=" + filepath.Join(root, "home"),
		"GIT_CEILING_DIRECTORIES=" + root}
	process := call{env: env}.lines(t)
	run := func(args ...string) string {
		t.Helper()
		r := process(root, args...)
		if r.code != done {
			t.Fatalf("cadre %q: %s", args, r.err)
		}
		return string(r.out)
	}
	run("create", "demo")
	run("spawn", "demo", "z", "--agent", "external")
	file := filepath.Join(root, "tasks.yaml")
	if err := os.WriteFile(file, []byte("- {id: each, subject: Look at it, forEach: [a, b, c]}\n- {id: other}\n"),
		0o600); err != nil {
		t.Fatal(err)
	}
	run("task", "add", "demo", "--file", file)
	run("task", "claim", "demo", "each-1", "--as", "z")
	run("task", "done", "demo", "each-1", "--as", "z")
	run("task", "claim", "demo", "each-2", "--as", "z")
	run("task", "fail", "demo", "each-2", "--as", "z", "--reason", "no")
	list := run("task", "list", "demo")
	for _, want := range []string{"1 of 3 done, 1 failed: Look at it", "other", "3 tasks of groups: --all shows them"} {
		if !strings.Contains(list, want) {
			t.Errorf("the list does not say %q:\n%s", want, list)
		}
	}
	if strings.Contains(list, "each-") {
		t.Errorf("the list has the tasks of the group:\n%s", list)
	}
	for _, args := range [][]string{{"--all"}, {"--json"}, {"--all", "--json"}} {
		if all := run(append([]string{"task", "list", "demo"}, args...)...); strings.Count(all, "each-") < 3 ||
			strings.Contains(all, "--all shows") {
			t.Errorf("with %q the list is\n%s", args, all)
		}
	}
	if list := run("task", "list", "demo", "--status", "completed"); !strings.Contains(list, "each-1") ||
		strings.Contains(list, "--all shows") {
		t.Errorf("the narrowed list is\n%s", list)
	}
}
