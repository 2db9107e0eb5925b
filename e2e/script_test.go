package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts runs the scripts, which show every command with its output. They add these commands
// to testscript:
//
//	cadre ARGS          call the program, which must end with status 0
//	refused N ARGS      call the program, which must end with status N, print nothing, and say why on standard error
//	unfinished ARGS     call the program, which must end with status 1 after it printed how far it came
//	json FILE           compare the output, a JSON value, with the file: "*" stands for anything but nothing
//	as TEAM MEMBER      continue in a teammate's session; as - leaves it
//	wait-done TEAM N    wait until N tasks of the team are completed
func TestScripts(t *testing.T) {
	dir, files := "testdata/script", []string(nil)
	if testing.Short() {
		dir = ""
		for _, name := range []string{"limit", "task"} {
			files = append(files, "testdata/script/"+name+".txtar")
		}
	}
	testscript.Run(t, testscript.Params{
		Dir:                 dir,
		Files:               files,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Deadline:            time.Now().Add(15 * time.Minute), // for all of them, beside the other tests
		Setup: func(env *testscript.Env) error {
			env.Vars = append(env.Vars, environment(env.WorkDir)...)
			recordings, err := filepath.Abs("../internal/observe/testdata/claude")
			if err != nil {
				return err
			}
			env.Vars = append(env.Vars, "ROOT="+env.WorkDir, "RECORDINGS="+recordings)
			env.Vars = append(env.Vars, "PATH="+filepath.Dir(cadre)+":"+os.Getenv("PATH"))
			env.Cd = filepath.Join(env.WorkDir, "project")
			env.Defer(func() { endTeams(env.WorkDir) })
			return errors.Join(os.MkdirAll(env.Cd, 0o755), os.MkdirAll(filepath.Join(env.WorkDir, "user"), 0o755))
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"cadre": scriptCadre, "refused": scriptRefused, "unfinished": scriptUnfinished, "json": scriptJSON,
			"as": scriptAs, "wait-done": scriptWaitDone,
		},
	})
}

// endTeams ends the hosts that a script left in the background.
func endTeams(root string) {
	teams, _ := filepath.Glob(filepath.Join(root, "cadre", "teams", "[a-zA-Z0-9]*"))
	for _, team := range teams {
		cleanup := func(ref string) string {
			c := exec.Command(cadre, "cleanup", ref, "--force")
			c.Env = append(os.Environ(), environment(root)...)
			out, _ := c.CombinedOutput()
			return string(out)
		}
		name := filepath.Base(team)
		if id := idOf(name, cleanup(name)); id != "" {
			cleanup(id)
		}
	}
}

// idOf returns the id of the team of that name, from the refusal of a cleanup outside the team's
// project; "" for any other text.
func idOf(name, refusal string) string {
	return regexp.MustCompile(regexp.QuoteMeta(name) + "-[a-z2-7]{26}").FindString(refusal)
}

func scriptCadre(ts *testscript.TestScript, neg bool, args []string) {
	if neg {
		ts.Fatalf("use refused, with the status")
	}
	ts.Check(ts.Exec(cadre, args...))
}

func scriptRefused(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	ended(ts, want, args[1:])
	if ts.ReadFile("stdout") != "" {
		ts.Fatalf("a refused command printed something")
	}
	why := "cadre: "
	if slices.Contains(args, "--json") { // behind the output for people
		why = `{"error":{"code":"`
	}
	if !strings.Contains("\n"+ts.ReadFile("stderr"), "\n"+why) {
		ts.Fatalf("the error does not say why")
	}
}

func scriptUnfinished(ts *testscript.TestScript, _ bool, args []string) { ended(ts, 1, args) }

func ended(ts *testscript.TestScript, status int, args []string) {
	err := ts.Exec(cadre, args...)
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != status {
		ts.Fatalf("the command ended with %v, want status %d", err, status)
	}
}

func scriptAs(ts *testscript.TestScript, _ bool, args []string) {
	if args[0] == "-" {
		args = []string{"", ""}
	}
	ts.Setenv("CADRE_TEAM", args[0])
	ts.Setenv("CADRE_MEMBER_NAME", args[1])
}

func scriptJSON(ts *testscript.TestScript, neg bool, args []string) {
	var got, want any
	if err := json.Unmarshal([]byte(ts.ReadFile("stdout")), &got); err != nil {
		ts.Fatalf("the output is not one JSON value: %v", err)
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &want))
	if diff := compare(want, got, "."); diff != "" {
		ts.Fatalf("%s", diff)
	}
}

// compare returns where two JSON values differ.
func compare(want, got any, at string) string {
	switch w := want.(type) {
	case map[string]any:
		g, ok := got.(map[string]any)
		if !ok {
			return fmt.Sprintf("%s is %v, not an object", at, got)
		}
		for key := range g {
			if _, ok := w[key]; !ok {
				return fmt.Sprintf("%s has %s: %v", at, key, g[key])
			}
		}
		for key, value := range w {
			if _, ok := g[key]; !ok {
				return fmt.Sprintf("%s has no %s", at, key)
			}
			if diff := compare(value, g[key], strings.TrimSuffix(at, ".")+"."+key); diff != "" {
				return diff
			}
		}
		return ""
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return fmt.Sprintf("%s is %v, not an array of %d", at, got, len(w))
		}
		for i := range w {
			if diff := compare(w[i], g[i], fmt.Sprintf("%s[%d]", at, i)); diff != "" {
				return diff
			}
		}
		return ""
	}
	if want == "*" && got != nil || reflect.DeepEqual(want, got) {
		return ""
	}
	return fmt.Sprintf("%s is %v, not %v", at, got, want)
}

func scriptWaitDone(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[1])
	ts.Check(err)
	for began := time.Now(); ; pause(began) {
		ts.Check(ts.Exec(cadre, "task", "list", args[0], "--status", "completed", "--json"))
		var tasks []any
		ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &tasks))
		if len(tasks) >= want {
			return
		}
		if time.Since(began) > patience {
			ts.Fatalf("only %d tasks of team %s are completed", len(tasks), args[0])
		}
	}
}
