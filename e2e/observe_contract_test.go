package e2e

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// contract returns the published schema as the program prints it, for its own lines or for a
// definition in it.
func contract(w *world, definition string) *jsonschema.Resolved {
	w.t.Helper()
	var doc map[string]any
	if err := json.Unmarshal([]byte(w.must("schema", "observe")), &doc); err != nil {
		w.t.Fatal(err)
	}
	if definition != "" {
		delete(doc, "oneOf")
		doc["$ref"] = "#/$defs/" + definition
	}
	for _, def := range doc["$defs"].(map[string]any) {
		if def := def.(map[string]any); def["properties"] != nil {
			def["additionalProperties"] = false
		}
	}
	data, err := json.Marshal(doc)
	if err != nil {
		w.t.Fatal(err)
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(data, &s); err != nil {
		w.t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return resolved
}

// observed returns the recordings of sessions, with the agent of each; "" means Claude Code.
func observed(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	root, err := filepath.Abs(filepath.Join("..", "internal"))
	if err != nil {
		t.Fatal(err)
	}
	for dir, agent := range map[string]string{"observe/testdata/claude": "", "agent/codex/testdata": "codex",
		"agent/acp/testdata": "acp", "agent/headless/testdata": "headless"} {
		err := filepath.WalkDir(filepath.Join(root, filepath.FromSlash(dir)), func(path string, e fs.DirEntry,
			err error) error {
			if err != nil || !strings.HasSuffix(path, ".jsonl") {
				return err
			}
			all[path] = agent
			for _, name := range []string{"codex", "gemini", "opencode"} {
				if agent != "" && strings.Contains(path, name) {
					all[path] = name
				}
			}
			if all[path] == "acp" || all[path] == "headless" {
				delete(all, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(all) < 15 {
		t.Fatalf("there are only these recordings: %v", all)
	}
	return all
}

// TestObserveContract checks that every line that the program prints for a recording matches its
// schema. Everything on standard output must be such a line.
func TestObserveContract(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	line, session := contract(w, ""), contract(w, "Session")
	lines := 0
	for path, agent := range observed(t) {
		args := []string{"observe", path}
		if agent != "" {
			args = append(args, "--agent", agent)
		}
		var state any
		if err := json.Unmarshal([]byte(w.must(append(args, "--state")...)), &state); err != nil {
			t.Fatal(err)
		}
		if err := session.Validate(state); err != nil {
			t.Errorf("%s: %v: %v", path, state, err)
		}
		for text := range strings.Lines(w.must(append(args, "--json", "--messages", "--live-state")...)) {
			var v any
			if err := errors.Join(json.Unmarshal([]byte(text), &v), line.Validate(v)); err != nil {
				t.Errorf("%s: %s: %v", path, text, err)
			}
			lines++
		}
	}
	t.Logf("%d lines", lines)
}

// keptBy returns the session that a program has which applies the lines of --live-state. It checks
// each line against the contract.
func keptBy(t *testing.T, line *jsonschema.Resolved, told string) (session any) {
	t.Helper()
	for text := range strings.Lines(told) {
		var v any
		if err := errors.Join(json.Unmarshal([]byte(text), &v), line.Validate(v)); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		switch v := v.(map[string]any); v["type"] {
		case "session:update":
			session = v["session"]
		case "session:patch":
			for _, op := range v["patch"].([]any) {
				op := op.(map[string]any)
				session = patched(session, strings.Split(op["path"].(string), "/")[1:], op)
			}
		}
	}
	return session
}

func patched(in any, path []string, op map[string]any) any {
	switch in := in.(type) {
	case map[string]any:
		switch {
		case len(path) > 1:
			in[path[0]] = patched(in[path[0]], path[1:], op)
		case op["op"] == "remove":
			delete(in, path[0])
		default:
			in[path[0]] = op["value"]
		}
		return in
	case []any:
		at, err := strconv.Atoi(path[0])
		if err != nil {
			at = len(in)
		}
		switch {
		case len(path) > 1:
			in[at] = patched(in[at], path[1:], op)
		case op["op"] == "remove":
			return slices.Delete(in, at, at+1)
		case op["op"] == "add":
			return slices.Insert(in, at, op["value"])
		default:
			in[at] = op["value"]
		}
		return in
	}
	panic("no such place")
}

// TestObserveTypeScript checks a TypeScript program whose types are made from the schema. It keeps
// a team from the output of cadre observe. For real streams that end at any line, it must have what
// --state prints there.
func TestObserveTypeScript(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it installs a compiler; not with -short")
	}
	for _, program := range []string{"npm", "node"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s does not exist: %v", program, err)
		}
	}
	w := newWorld(t)
	dir := filepath.Join(w.root, "observe-ts")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "examples", "observe-ts"))); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "observe.schema.json"), []byte(w.must("schema", "observe")),
		0o600); err != nil {
		t.Fatal(err)
	}
	run := func(in io.Reader, name string, args ...string) (string, error) {
		c := exec.CommandContext(t.Context(), name, args...)
		var out, errs bytes.Buffer
		c.Dir, c.Stdin, c.Stdout, c.Stderr = dir, in, &out, &errs
		if err := c.Run(); err != nil {
			return "", errors.Join(err, errors.New(errs.String()+out.String()))
		}
		return out.String(), nil
	}
	if _, err := run(nil, "npm", "ci", "--loglevel", "error", "--prefer-offline", "--fetch-retries", "1"); err != nil {
		t.Skipf("cannot install the TypeScript compiler: %v", err)
	}
	if _, err := run(nil, "npm", "run", "build"); err != nil {
		t.Fatalf("the program does not compile: %v", err)
	}

	for _, name := range []string{"2.1.47/stream.jsonl", "2.1.177/stream.jsonl", "2.1.329/tmux/transcript-lead.jsonl"} {
		lines := recording(t, name)
		for cut := 1; cut <= 6; cut++ {
			part := "part.jsonl"
			if err := os.WriteFile(filepath.Join(w.dir, part), bytes.Join(lines[:len(lines)*cut/6], nil),
				0o600); err != nil {
				t.Fatal(err)
			}
			told := w.must("observe", part, "--json", "--messages", "--live-state")
			out, err := run(strings.NewReader(told), "node", "dist/main.js", "--json")
			if err != nil {
				t.Fatal(err)
			}
			sessions := strings.Split(strings.TrimSpace(out), "\n")
			if patches := strings.Count(told, `"type":"session:`); len(sessions) != patches {
				t.Errorf("%d sessions of %d updates", len(sessions), patches)
			}
			var got, want any
			if err := errors.Join(json.Unmarshal([]byte(sessions[len(sessions)-1]), &got),
				json.Unmarshal([]byte(w.must("observe", part, "--state")), &want)); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s to line %d: the program has\n%v\nbut the state is\n%v", name, len(lines)*cut/6, got, want)
			}
		}
		words, err := run(strings.NewReader(w.must("observe", "part.jsonl", "--json", "--live-state")), "node",
			"dist/main.js")
		if err != nil || !strings.Contains(words, "alice joined\n") || !strings.Contains(words, "alice (active), ") {
			t.Errorf("got %v and %s, want that alice joined and is active", err, words)
		}
	}
}
