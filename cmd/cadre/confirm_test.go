package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/testkit/soak"
)

// TestAsksBeforeTheEnd checks that a command that ends a team asks at a terminal, even where a
// script would not be asked. Only a yes runs it.
func TestAsksBeforeTheEnd(t *testing.T) {
	t.Parallel()
	if !terminals || testing.Short() {
		t.Skip("needs a terminal of its own, and takes seconds")
	}
	root := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root, "CADRE_HOME=" + filepath.Join(root, "home"),
		"CLAUDE_CONFIG_DIR=" + filepath.Join(root, "claude")}
	do := func(args ...string) printed { return call{args: args, dir: root, env: env}.run(t) }
	alive := func() bool {
		r := do("ls", "--json")
		return strings.Contains(string(r.out), `"status":"pending"`)
	}
	for _, one := range []struct {
		line, types string
		asks, ends  bool
	}{
		{"cleanup demo", "n\n", true, false},
		{"cleanup demo", "\n", true, false},
		{"cleanup demo --force", "no\n", true, false},
		{"cleanup demo", "y\n", true, true},
		{"cleanup demo --force", "yes\n", true, true},
		{"cleanup demo --yes", "", false, true},
		{"abort demo", "n\n", true, false},
		{"abort demo --reason enough", "n\n", true, false},
		{"abort demo --reason enough", "y\n", true, true},
		{"abort demo --yes", "", false, true},
	} {
		if !alive() {
			do("cleanup", "demo", "--force")
			if r := do("create", "demo"); r.code != done {
				t.Fatalf("create: %s", r.err)
			}
		}
		r := call{args: strings.Fields(one.line), dir: root, env: env, onTerm: true, types: one.types}.run(t)
		if asked := strings.Contains(string(r.out), "[y/N]"); asked != one.asks {
			t.Errorf("%s: asked: %v\n%s", one.line, asked, r.out)
		}
		if want := map[bool]int{true: done, false: tryAgain}[one.ends]; r.code != want || alive() == one.ends {
			t.Errorf("%s, %q: status %d, and the team exists: %v\n%s", one.line, one.types, r.code, alive(), r.out)
		}
	}
}

// TestAsksBeforeARollback checks that cadre task rollback asks at a terminal before it undoes work.
// Only a yes or --yes undoes it, and a script is not asked.
func TestAsksBeforeARollback(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	if !terminals {
		t.Skip("needs a terminal of its own")
	}
	root := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root, "CADRE_HOME=" + filepath.Join(root, "home"),
		"CLAUDE_CONFIG_DIR=" + filepath.Join(root, "claude")}
	dir := filepath.Join(root, "project")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("git", "-C", dir, "init", "-q").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if err := os.WriteFile(filepath.Join(dir, "team.yaml"), []byte("name: demo\nmembers: [{name: ann}]\n"+
		"tasks: [{id: one, run: 'echo one >one.txt'}]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	undone := func() bool {
		_, err := os.Stat(filepath.Join(dir, "one.txt"))
		return err != nil
	}
	for _, one := range []struct {
		line, types    string
		onTerm, undoes bool
	}{
		{"task rollback demo one", "n\n", true, false},
		{"task rollback demo one", "y\n", true, true},
		{"task rollback demo one --yes", "", true, true},
		{"task rollback demo one", "", false, true},
	} {
		if r := (call{args: []string{"run", "team.yaml"}, dir: dir, env: env}).run(t); undone() {
			t.Fatalf("run: %s", r.err)
		}
		r := call{args: strings.Fields(one.line), dir: dir, env: env, onTerm: one.onTerm, types: one.types}.run(t)
		asked := strings.Contains(string(r.out), "Undo the changes of task one to 1 file: one.txt") &&
			strings.Contains(string(r.out), "[y/N]")
		if asked != (one.types != "") || undone() != one.undoes {
			t.Errorf("%s, %q: status %d, asked: %v, undone: %v\n%s%s", one.line, one.types, r.code, asked, undone(), r.out,
				r.err)
		}
	}
}

// TestAsksNoScript checks that a command does not wait for an answer on the terminal of a script.
func TestAsksNoScript(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	if !terminals {
		t.Skip("needs a terminal of its own")
	}
	root := t.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root, "CADRE_HOME=" + filepath.Join(root, "home"),
		"CLAUDE_CONFIG_DIR=" + filepath.Join(root, "claude")}
	if r := (call{args: []string{"create", "demo"}, dir: root, env: env}).run(t); r.code != done {
		t.Fatalf("create: %s", r.err)
	}
	for variable, why := range map[string]string{"CI=true": "CI is set", "TERM=dumb": "TERM is dumb"} {
		r := call{args: []string{"cleanup", "demo"}, dir: root, env: append(env[:len(env):len(env)], variable),
			onTerm: true,
			types:  "y\n"}.run(t)
		if r.code != hopeless || !strings.Contains(string(r.out), needsConfirmation+", and "+why) {
			t.Errorf("%s: status %d\n%s", variable, r.code, r.out)
		}
	}
}

// TestAsksForAnotherProject checks that a team of another project is ended from here only with a
// question, which names that project. Other changes say on standard error which project they are
// in.
func TestAsksForAnotherProject(t *testing.T) {
	soak.Long(t)
	if !terminals {
		t.Skip("needs a terminal of its own")
	}
	root := t.TempDir()
	there, here := filepath.Join(root, "there"), filepath.Join(root, "here")
	for _, dir := range []string{there, here} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + root, "CADRE_HOME=" + filepath.Join(root, "home"),
		"CLAUDE_CONFIG_DIR=" + filepath.Join(root, "claude")}
	do := call{env: env}.lines(t)
	if r := do(there, "create", "demo"); r.code != done {
		t.Fatalf("create: %s", r.err)
	}
	tells := "team demo in " + there
	for _, line := range []string{"send demo --to lead hello", "task add demo more", "budget demo --tokens 5",
		"checkpoint demo"} {
		if r := do(here, strings.Fields(line)...); r.code != done || !strings.Contains(string(r.err), tells) {
			t.Errorf("%s: status %d, and it does not say where:\n%s", line, r.code, r.err)
		}
		if r := do(there, strings.Fields(line)...); strings.Contains(string(r.err), tells) {
			t.Errorf("%s says in the project itself where it is:\n%s", line, r.err)
		}
	}
	if r := do(here, "status", "demo"); strings.Contains(string(r.err), tells) {
		t.Errorf("a command that only reads says where the team is:\n%s", r.err)
	}
	for _, one := range []struct {
		line, types string
		asks        bool
		code        int
	}{
		{"abort demo --yes", "", false, hopeless},
		{"cleanup demo --yes", "", false, hopeless},
		{"cleanup demo", "n\n", true, tryAgain},
		{"abort demo --reason enough", "n\n", true, tryAgain},
		{"abort demo --reason enough", "y\n", true, done},
		{"cleanup demo --force", "y\n", true, done},
	} {
		r := call{args: strings.Fields(one.line), dir: here, env: env, onTerm: true, types: one.types}.run(t)
		if asked := strings.Contains(string(r.out), there+") now? [y/N]") ||
			strings.Contains(string(r.out), there+")? [y/N]"); asked != one.asks || r.code != one.code {
			t.Errorf("%s, %q: asked: %v, status %d\n%s", one.line, one.types, asked, r.code, r.out)
		}
	}
	if r := do(here, "ls", "--json"); strings.Contains(string(r.out), "demo") {
		t.Errorf("the team is there:\n%s", r.out)
	}
}
