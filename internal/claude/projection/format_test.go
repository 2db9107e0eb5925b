package projection

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cadre/internal/team"
	"cadre/internal/testkit/golden"
)

// strict decodes a file, and rejects unknown fields.
func strict(t *testing.T, path string, into any) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return data
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		t.Fatalf("nothing matches %s: %v", pattern, err)
	}
	return found
}

// TestRealFiles checks that files written by Claude Code decode into our structs, and encode to the
// same bytes.
func TestRealFiles(t *testing.T) {
	for _, path := range glob(t, "testdata/claude-*/*/tasks/*.json") {
		var task Task
		if want := strict(t, path, &task); !strings.Contains(path, "2.1.47") { // that version adds the owner at the end
			if got, err := Encode(task); err != nil || string(got) != string(want) {
				t.Errorf("%s came out as %s, %v", path, got, err)
			}
		}
	}
	for _, path := range glob(t, "testdata/claude-*/*/config.json") {
		var config Config
		want := strict(t, path, &config)
		got, err := Encode(config)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(path, "2.1.47") && string(got) != string(want) || !sameJSON(t, got, want) {
			t.Errorf("%s came out as %s", path, got)
		}
	}
}

func sameJSON(t *testing.T, a, b []byte) bool {
	t.Helper()
	var x, y any
	if err := json.Unmarshal(a, &x); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(b, &y); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(x) == fmt.Sprint(y)
}

// TestOurFilesHaveTheRealFields checks that our files have the same structure as the real ones, and
// that no entry of the roster lacks a field.
func TestOurFilesHaveTheRealFields(t *testing.T) {
	p, h := newProjector(t), newHistory(t, "T1", 1_795_000_000_000)
	h.do(t, "lead", &team.SpawnMember{Name: "alice", Agent: team.Shell})
	h.do(t, "lead", &team.CreateTask{Subject: "a", Metadata: map[string]json.RawMessage{
		"k": json.RawMessage(`{"b":[1, 2]}`)}})
	project(t, p, h)

	var config Config
	ours := strict(t, filepath.Join(p.Claude, "teams/health/config.json"), &config)
	strict(t, filepath.Join(p.Claude, "tasks/health/1.json"), &Task{})
	real, err := os.ReadFile("testdata/claude-2.1.329/10-subagents/config.json")
	if err != nil {
		t.Fatal(err)
	}
	for i, who := range []string{"lead", "teammate"} {
		want, got := fields(t, real, i), fields(t, ours, i)
		if i == 1 {
			want = slices.Sorted(slices.Values(append(want, "mode")))
		}
		if !slices.Equal(got, want) {
			t.Errorf("the %s has %v, Claude Code's has %v", who, got, want)
		}
	}
	if uuid := regexp.MustCompile(
		`^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`); !uuid.MatchString(
		config.LeadSessionID) {
		t.Errorf("leadSessionId %q is no UUID", config.LeadSessionID)
	}
	if sessionID("T1") == sessionID("T2") || sessionID("T1") != config.LeadSessionID {
		t.Error("the session id does not follow the team's id")
	}
}

func fields(t *testing.T, config []byte, member int) []string {
	t.Helper()
	var c struct{ Members []map[string]any }
	if err := json.Unmarshal(config, &c); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(c.Members[member]))
}

// TestTranscript shows the files of a team from its beginning to its end.
func TestTranscript(t *testing.T) {
	p, h := newProjector(t), newHistory(t, "T1", 1_795_000_000_000)
	if err := os.Mkdir(p.Claude, 0o700); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	var before []string
	steps := []struct {
		say   string
		actor string
		body  team.Body
	}{
		{"a team is created", "", nil},
		{"alice joins", "lead", &team.SpawnMember{Name: "alice", Agent: team.Shell, Role: "auditor", Prompt: "look"}},
		{"bob joins, who needs approval", "lead", &team.SpawnMember{Name: "bob", Agent: "claude", Model: "opus",
			PlanApproval: true}},
		{"a task", "lead", &team.CreateTask{Subject: "Hot spots", Description: "a < b && c > d",
			ActiveForm: "Looking"}},
		{"a task with metadata that waits for it", "lead", &team.CreateTask{Subject: "Report", BlockedBy: []string{"1"},
			Metadata: map[string]json.RawMessage{"z": json.RawMessage("[1,2]"), "a": json.RawMessage(`"x"`)}}},
		{"a claim", "lead", &team.ClaimTask{Task: "1"}},
		{"it is done", "lead", &team.CompleteTask{Task: "1", Result: "none"}},
		{"a message changes no file", "lead", &team.SendMessage{To: "alice", Body: "hello"}},
		{"bob gets another mode", "@user", &team.SetMode{Member: "bob", Mode: "acceptEdits"}},
		{"the first task is deleted", "lead", &team.DeleteTask{Task: "1"}},
		{"alice is asked to stop, which changes nothing yet", "lead", &team.RequestShutdown{Member: "alice",
			Deadline: 1_795_000_900_000}},
		{"the team is aborted", "@user", &team.SetStatus{Status: team.TeamAborted}},
		{"it is cleaned up", "lead", &team.CleanUp{}},
	}
	for _, step := range steps {
		if step.body != nil {
			h.do(t, step.actor, step.body)
		}
		project(t, p, h)
		now := tree(t, p.Claude)
		fmt.Fprintf(&out, "=== %s\n", step.say)
		for _, file := range before {
			name, _, _ := strings.Cut(file, ": ")
			if !slices.ContainsFunc(now, func(s string) bool { return s == name || strings.HasPrefix(s, name+": ") }) {
				fmt.Fprintf(&out, "gone: %s\n", name)
			}
		}
		for _, file := range now {
			if !slices.Contains(before, file) {
				fmt.Fprintln(&out, file)
			}
		}
		before = now
	}
	golden.File(t, "testdata/transcript.txt", out.String())
}
