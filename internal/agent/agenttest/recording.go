package agenttest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cadre/internal/agent"
)

// Scene is an activity of a program, for a recording of its output.
type Scene struct {
	Name   string
	Access agent.Access
	Script Script
	Play   func(*Run)
}

// Tap makes a bench keep the output of the programs of its sessions. said returns the output so far
// as lines of JSON.
type Tap func(*Bench, Program) (said func() [][]byte)

// Tee is the tap for programs that speak on their standard output.
func Tee(b *Bench, p Program) func() [][]byte {
	kept := filepath.Join(b.T.TempDir(), "said")
	pipe(b, p, "tee -a "+kept)
	return func() [][]byte {
		said, err := os.ReadFile(kept)
		if err != nil {
			b.T.Fatal(err)
		}
		return bytes.Split(bytes.TrimSpace(said), []byte("\n"))
	}
}

// Noise makes the programs of a bench print meaningless lines before each line of their standard
// output.
func Noise(b *Bench, p Program) {
	var all strings.Builder
	for _, line := range garbage {
		fmt.Fprintf(&all, "printf '%%s\\n' '%s'; ", line)
	}
	pipe(b, p, "while IFS= read -r line; do "+all.String()+"printf '%s\\n' \"$line\"; done")
}

// garbage lists lines that are meaningless in all protocols.
var garbage = []string{"", "garbage", "{", "[1,2]", "null", `"text"`, `{"type":"later"}`, `{"type":["result"]}`,
	`{"method":5}`}

// pipe sends the output of the bench's programs through a command.
func pipe(b *Bench, p Program, command string) {
	b.T.Helper()
	b.Spec.Program = filepath.Join(b.T.TempDir(), p.Name)
	script := fmt.Sprintf("#!/bin/sh\n%s \"$@\" | %s\n", p.Path, command)
	if err := os.WriteFile(b.Spec.Program, []byte(script), 0o700); err != nil {
		b.T.Fatal(err)
	}
}

// Record plays the scenes with the real program and stores the cleaned output in testdata. drop
// lists JSON keys that no test needs.
func Record(t *testing.T, d Driver, tap Tap, drop []string, scenes ...Scene) {
	p := Installed(t, d.Program)
	for _, scene := range scenes {
		t.Run("record "+p.Name+" "+scene.Name, func(t *testing.T) {
			b, s := d.bench(t, p, scene.Script)
			b.Spec.Access = scene.Access
			said := tap(b, p)
			run := b.Start()
			scene.Play(run)
			run.End()
			keep(t, filepath.Join("testdata", p.Name+"-"+p.Version, scene.Name+".jsonl"),
				newCleaner(b.World, s, drop), said())
		})
	}
}

// keep writes a recording, cleaned up.
func keep(t *testing.T, file string, c *cleaner, said [][]byte) {
	var lines []byte
	for _, line := range said {
		lines = append(append(lines, c.line(line)...), '\n')
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, lines, 0o644); err != nil {
		t.Fatal(err)
	}
}

// Scenes returns the scenes that every driver can play.
func Scenes(d Driver) []Scene {
	all := agent.Access{Mode: "bypassPermissions", Writes: true}
	scenes := []Scene{
		{"turn", all, func(r *Request) Turn {
			switch {
			case r.Has("do two"):
				return Say("Again.")
			case r.Calls(r.Tool("TeamStatus")) > 0:
				return Say("It said so.")
			case strings.Contains(r.Results(), "from the shell"):
				return Use(r.Tool("TeamStatus"), map[string]any{"about": "us"})
			}
			return Turn{Text: "I look.", Calls: d.Shell("echo from the shell; exit 3").Calls}
		}, func(r *Run) {
			r.Turn("do one")
			r.Turn("do two")
		}},
		{"permission", agent.Access{Mode: "default", Writes: true},
			byPrompt(map[string][]Turn{"one": {d.Shell("touch allowed"), Say("Done.")}, "two": {d.Shell("touch denied"),
				Say("Not done.")}}), func(r *Run) {
				for i, prompt := range []string{"do one", "do two"} {
					r.Tell(prompt, prompt)
					Next[agent.PermissionAsked](r).Answer(i == 0, "not today")
					Next[agent.TurnEnded](r)
				}
			}},
		{"urgent", all, func(r *Request) Turn {
			if r.Has("stop that") {
				return Say("Stopped.")
			}
			return d.Shell("touch began; until test -e go; do sleep 0.05; done")
		}, func(r *Run) {
			r.Tell("p", "go on")
			r.WaitFile("began")
			mail := Mail("urgent", 3, "stop that")
			mail.Urgent = true
			r.Prompt(mail)
			r.Touch("go")
			for Next[agent.TurnEnded](r).Text != "Stopped." {
			}
		}},
	}
	for _, e := range []struct {
		name string
		turn Turn
	}{
		{"400", Fail(400, "prompt is too long: 300000 tokens > 200000 maximum")},
		{"401", Fail(401, "the key is unknown here")}, {"429", Fail(429, "slow down a little")},
		{"500", Fail(500, "the house is on fire")}, {"a cut stream", Turn{Text: "half of a word", Cut: true}},
	} {
		if !slices.Contains(d.Patient, e.name) {
			scenes = append(scenes, Scene{strings.ReplaceAll(e.name, " ", "-"), all,
				func(*Request) Turn { return e.turn }, func(r *Run) { r.Turn("try") }})
		}
	}
	if d.Plan != nil {
		scenes = append(scenes, Scene{"plan", agent.Access{Mode: "default"}, func(r *Request) Turn {
			switch {
			case r.Has("think of the tests"):
				return d.Plan("The second plan.")
			case r.Has("plan it"):
				return d.Plan("The first plan.")
			}
			return Say("I wait.")
		}, func(r *Run) {
			r.Tell("p", "plan it")
			Next[agent.PlanProposed](r).Answer(false, "think of the tests")
			Next[agent.PlanProposed](r)
		}})
	}
	return scenes
}

// Turn runs one turn of the session with a prompt.
func (r *Run) Turn(text string) {
	r.T.Helper()
	r.Tell(text, text)
	Next[agent.TurnEnded](r)
}

// Replay checks the decoder of a program against every recording in testdata. The expected result
// is in the file beside the recording: each decoded line under its input. compare compares a text
// with a golden file.
func Replay(t *testing.T, compare func(t testing.TB, path, got string),
	fresh func(program string) (decode func(line []byte) []any)) {
	recordings, err := filepath.Glob("testdata/*/*.jsonl")
	if err != nil || len(recordings) == 0 {
		t.Fatal("there are no recordings", err)
	}
	for _, recording := range recordings {
		t.Run(strings.TrimSuffix(recording, ".jsonl"), func(t *testing.T) {
			lines, err := os.ReadFile(recording)
			if err != nil {
				t.Fatal(err)
			}
			program, _, _ := strings.Cut(filepath.Base(filepath.Dir(recording)), "-")
			decode := fresh(program)
			var got strings.Builder
			for line := range bytes.Lines(lines) {
				got.WriteString(caption(line) + "\n")
				for _, said := range decode(line) {
					got.WriteString("    " + Words(said) + "\n")
				}
			}
			compare(t, strings.TrimSuffix(recording, ".jsonl")+".txt", got.String())
		})
	}
}

// caption returns the kind of a line, in any protocol.
func caption(line []byte) string {
	var l struct {
		Type, Subtype, Method string
		Error                 json.RawMessage
		Request               struct{ Subtype string }
		Item                  struct{ Type string }
		Params                struct {
			Item   struct{ Type string }
			Update struct{ SessionUpdate string }
		}
	}
	if json.Unmarshal(line, &l); l.Type+l.Method == "" {
		l.Type = "answer"
	}
	return strings.Join(strings.Fields(strings.Join([]string{l.Type, l.Subtype, l.Request.Subtype, l.Item.Type,
		l.Method, l.Params.Item.Type, l.Params.Update.SessionUpdate}, " ")), " ")
}

// Seeds seeds a fuzz test of a decoder with a line of each kind from the recordings, and with
// meaningless lines.
func Seeds(f *testing.F, more ...string) {
	recordings, _ := filepath.Glob("testdata/*/*.jsonl")
	kinds := map[string]bool{}
	for _, recording := range recordings {
		stream, err := os.ReadFile(recording)
		if err != nil {
			f.Fatal(err)
		}
		for line := range bytes.Lines(stream) {
			if kind := caption(line); !kinds[kind] {
				kinds[kind] = true
				f.Add(line)
			}
		}
	}
	for _, line := range append(more, garbage...) {
		f.Add([]byte(line))
	}
}

// Sound checks that decoded updates keep the contract of updates, whatever their input was.
func Sound(t *testing.T, all []any) {
	for _, said := range all {
		whole := true
		switch u := said.(type) {
		case agent.Text:
			whole = strings.TrimSpace(u.Text) != ""
		case agent.ToolStarted:
			whole = u.Input == "" || json.Valid([]byte(u.Input))
		case agent.PermissionAsked:
			whole = json.Valid([]byte(u.Input))
		case agent.Used:
			whole = 0 <= u.Context && u.Context <= 100
		case agent.Retrying:
			whole = u.Problem.Kind != "" && u.Problem.Text != ""
		case agent.TurnEnded:
			whole = u.Problem == nil || u.Problem.Kind != "" && u.Problem.Text != "" && u.Text == "" && !u.Interrupted
		}
		if !whole {
			t.Errorf("%s", Words(said))
		}
	}
}

// cleaner rewrites a line so that it is the same on every machine and at every time.
type cleaner struct {
	drop   map[string]bool
	names  map[string]string
	places *strings.Replacer
}

// newCleaner returns a cleaner for the output in the world. drop lists JSON keys that no test
// needs.
func newCleaner(w World, s *Server, drop []string) *cleaner {
	c := &cleaner{drop: map[string]bool{}, names: map[string]string{}, places: strings.NewReplacer(w.Home, "/home/ann",
		inName.ReplaceAllString(w.Home, "-"), "-home-ann", strings.TrimPrefix(s.URL, "http://"), "model")}
	for _, key := range drop {
		c.drop[key] = true
	}
	return c
}

var (
	// ids that belong to one session
	passing = regexp.MustCompile(
		`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|\b\d{13,}\b|\bses_[0-9A-Za-z]{26}\b`)
	moment = regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d[:-]\d\d[:-]\d\d(\.\d+)?Z?`)
	// characters that some programs replace when they make file names from paths
	inName = regexp.MustCompile(`[^a-zA-Z0-9]`)
	timing = regexp.MustCompile(`(?i)(ms|at|time|timestamp|pid|duration|revision)$`)
)

// longest limits the length of a stored text.
const longest = 300

func (c *cleaner) line(line []byte) []byte {
	var v any
	d := json.NewDecoder(bytes.NewReader(line))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return line
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	e.Encode(c.value("", v))
	return bytes.TrimSpace(out.Bytes())
}

func (c *cleaner) value(key string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			if v[key] = c.value(key, v[key]); c.drop[key] {
				delete(v, key)
			}
		}
	case []any:
		for i := range v {
			v[i] = c.value(key, v[i])
		}
	case json.Number:
		if timing.MatchString(key) {
			return 0
		}
	case string:
		v = moment.ReplaceAllString(c.places.Replace(v), "2026-01-01T00:00:00Z")
		v = passing.ReplaceAllStringFunc(v, func(name string) string {
			if c.names[name] == "" {
				c.names[name] = fmt.Sprintf("id-%d", len(c.names)+1)
			}
			return c.names[name]
		})
		if len(v) > longest {
			v = strings.ToValidUTF8(v[:longest], "") + "…"
		}
		return v
	}
	return v
}
