package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestJSONEverywhere makes the calls of [TestHostile] with --json, and wrong ones. Standard output
// has nothing but what docs/json.md describes. A call that fails says why in one JSON object: the
// last line on standard error, the last element of a log that breaks off, or the verdict that it
// printed.
func TestJSONEverywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("-short makes each call once, without --json")
	}
	stages := make(chan *stage, 2)
	for range cap(stages) {
		stages <- newStage(t)
	}
	for path, calls := range drives {
		described := prints()[path] != nil
		if path == "" || strings.HasPrefix(path, "completion") || path == "help" || strings.HasPrefix(path, mark) {
			continue
		}
		t.Run("cadre "+path, func(t *testing.T) {
			t.Parallel()
			s := <-stages
			defer func() { stages <- s }()
			s.t = t
			s.open()
			shapes := newShapes(t)
			for _, d := range append(slices.Clone(calls), drive{args: []string{"--" + evil("flag")}},
				drive{args: []string{evil("a"), evil("b"), evil("c"), evil("d")}}) {
				if d.until != "" || d.protocol != "" || d.hosts {
					continue
				}
				s.reset()
				c := call{dir: s.project, env: s.env, args: strings.Fields(path)}
				for _, arg := range d.args {
					c.args = append(c.args, s.filled(arg))
				}
				if !slices.Contains(c.args, "--json") {
					c.args = append(c.args, "--json")
				}
				if d.stdin != "" {
					f, err := os.Open(filepath.Join(s.root, d.stdin))
					s.must(err)
					defer f.Close()
					c.stdin = f
				}
				p := c.run(t)
				if described && len(p.out) > 0 {
					shapes.check(path, string(p.out))
				}
				if described && p.code == 0 && len(p.out) == 0 {
					t.Errorf("%q prints nothing on standard output:\n%s", c.args, p.err)
				}
				if p.code != 0 {
					explained(t, c, p)
				}
			}
		})
	}
}

// verdicts are commands whose exit status is explained by what they print on standard output.
var verdicts = []string{"attention", "doctor", "fsck", "validate"}

// explained fails unless the output of a call that failed says why, in JSON.
func explained(t *testing.T, c call, p printed) {
	t.Helper()
	if len(p.out) > 0 && slices.Contains(verdicts, c.args[0]) {
		return
	}
	errs := strings.Split(strings.TrimRight(string(p.err), "\n"), "\n")
	var told struct{ Error failure }
	if err := json.Unmarshal([]byte(errs[len(errs)-1]), &told); err != nil {
		t.Errorf("%q fails with status %d, and the last line on standard error is not JSON: %v\n%s", c.args, p.code,
			err, p.err)
		return
	}
	if told.Error.Status != p.code || told.Error.Code == "" || told.Error.Message == "" {
		t.Errorf("%q fails with status %d and says %+v", c.args, p.code, told.Error)
	}
	if code := told.Error.Code; len(told.Error.Hints) == 0 && code != codeFailed && code != codeDamaged {
		t.Errorf("%q is refused without a hint: %+v", c.args, told.Error)
	}
	for _, hint := range told.Error.Hints {
		if hint.Command == "" || hint.Purpose == "" {
			t.Errorf("%q fails with a hint without a command or a purpose: %+v", c.args, hint)
		}
	}
}
