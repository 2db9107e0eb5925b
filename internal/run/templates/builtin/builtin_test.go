// Package builtin_test runs the commands of the team files as the shell agent would: each
// task's run with /bin/sh in a real repository, after its blockers, with their results at hand.
package builtin_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cadre/internal/run/teamfile"
	"cadre/internal/run/templates/builtin"
)

func load(t *testing.T, name string) *teamfile.File {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	f, err := teamfile.Parse(data, name, []teamfile.Agent{{Name: "shell", CommandsOnly: true}})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// runAll runs the tasks of a file in dir and returns their outputs by task id. A task that fails
// gives its error output instead, after "failed: ".
func runAll(t *testing.T, f *teamfile.File, dir string, env ...string) map[string]string {
	t.Helper()
	results := t.TempDir()
	out := map[string]string{}
	for _, task := range f.Order() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		cmd := exec.CommandContext(ctx, "/bin/sh", "-c", task.Run)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "CADRE_TEAM="+f.Name, "CADRE_TEAM_ID="+f.Name+"-1", "CADRE_TASK_ID="+task.ID,
			"CADRE_TASK_SUBJECT="+task.Subject, "CADRE_MEMBER_NAME="+f.Members[0].Name, "CADRE_RESULTS="+results,
			"GIT_CEILING_DIRECTORIES="+os.TempDir(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1")
		cmd.Env = append(cmd.Env, env...)
		var stderr strings.Builder
		cmd.Stderr = &stderr
		stdout, err := cmd.Output()
		if err != nil {
			out[task.ID] = "failed: " + stderr.String()
			continue
		}
		if stderr.Len() > 0 {
			t.Errorf("%s said on standard error: %s", task.ID, stderr.String())
		}
		out[task.ID] = string(stdout)
		if err := os.WriteFile(filepath.Join(results, task.ID+".md"), stdout, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// repo is a git repository that a test makes, with a clock and people of its own so that its
// history is always the same.
type repo struct {
	t   *testing.T
	dir string
	day time.Time
}

func newRepo(t *testing.T) *repo {
	t.Helper()
	r := &repo{t: t, dir: filepath.Join(t.TempDir(), "repo"), day: time.Date(2024, 1, 1, 12, 0, 0, 0, time.UTC)}
	r.git("", "init", "-q", r.dir)
	return r
}

func (r *repo) git(dir string, args ...string) {
	r.t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	stamp := r.day.Format(time.RFC3339)
	cmd.Env = append(os.Environ(), "GIT_AUTHOR_DATE="+stamp, "GIT_COMMITTER_DATE="+stamp,
		"GIT_AUTHOR_EMAIL=a@example.org",
		"GIT_COMMITTER_NAME=committer", "GIT_COMMITTER_EMAIL=c@example.org", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_CONFIG_NOSYSTEM=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func (r *repo) write(name, text string) {
	r.t.Helper()
	file := filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

// commit records everything as the author's, so many days after the commit before.
func (r *repo) commit(author string, days int) {
	r.t.Helper()
	r.day = r.day.AddDate(0, 0, days)
	r.git(r.dir, "add", "-A")
	r.git(r.dir, "-c", "user.name="+author, "-c", "user.email=a@example.org", "commit", "-q", "--allow-empty",
		"-m", "a change",
		"--author", author+" <a@example.org>")
}

// TestStart checks that the output of cadre init runs as it is.
func TestStart(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out := runAll(t, load(t, "start.yaml"), dir)["sum"]; out != "There are 2 lines in the listing.\n" {
		t.Errorf("the sum: %q", out)
	}
}

// TestAll checks that each file of the folder is an example in the program, with what it is for.
func TestAll(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := builtin.All()
	if len(all) != len(files) || len(all) < 3 {
		t.Fatalf("%d examples of %d files", len(all), len(files))
	}
	for i, one := range all {
		text, err := os.ReadFile(files[i])
		if err != nil || string(text) != string(one.Text) || one.Name+".yaml" != files[i] {
			t.Errorf("%s is not what is in %s (%v)", one.Name, files[i], err)
		}
		if len(one.Summary) < 10 || len(one.Summary) > 60 || strings.HasPrefix(one.Summary, "#") {
			t.Errorf("%s is for %q", one.Name, one.Summary)
		}
	}
}

func TestHello(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"one", "two"} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := load(t, "hello.yaml")
	got := runAll(t, f, dir)["greet"]
	if want := "**Hello, world!** Greetings from ada of team hello, in a directory with 2 entries.\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if len(f.Members) != 2 || len(f.Tasks) != 3 {
		t.Errorf("%d members, %d tasks", len(f.Members), len(f.Tasks))
	}
}
