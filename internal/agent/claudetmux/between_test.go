package claudetmux

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"cadre/internal/agent"
)

// TestWhoTakes checks that a prompt is taken either by the hook or back, never by both, and that
// the tools of a subagent take nothing.
func TestWhoTakes(t *testing.T) {
	t.Parallel()
	b, err := newBetween(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	var settings struct {
		Hooks map[string][]struct{ Hooks []struct{ Command string } }
	}
	if err := json.Unmarshal([]byte(b.settings()), &settings); err != nil {
		t.Fatal(err)
	}
	hook := func(input string) string {
		t.Helper()
		c := exec.Command("sh", "-c", settings.Hooks["PostToolBatch"][0].Hooks[0].Command)
		c.Stdin = strings.NewReader(input)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatal(err)
		}
		return string(out)
	}
	const own, other = `{"tool_calls":[{"tool_response":"{\"agent_id\":\"x\"}"}]}`, `{"agent_id":"a1","tool_calls":[]}`
	if got := hook(own); got != "" {
		t.Errorf("of nothing it takes %s", got)
	}
	if !b.put(agent.Prompt{ID: "1", Text: "one"}) || !b.put(agent.Prompt{ID: "2", Text: "two"}) {
		t.Fatal("it takes nothing in")
	}
	if b.put(agent.Prompt{ID: "3", Text: strings.Repeat("x", mostBetween)}) {
		t.Error("it takes in what is too long")
	}
	if got := hook(other); got != "" {
		t.Errorf("a subagent's takes %s", got)
	}
	if got := hook(own); !strings.Contains(got, `"additionalContext":"one\n\ntwo"`) {
		t.Errorf("it takes %s", got)
	}
	if got := hook(own); got != "" {
		t.Errorf("it takes again %s", got)
	}
	if all := b.takeBack(); len(all) > 0 {
		t.Errorf("taken back is %v, which the hook took", all)
	}
	b.put(agent.Prompt{ID: "4", Text: "four"})
	if all := b.takeBack(); len(all) != 1 || all[0].ID != "4" {
		t.Errorf("taken back is %v", all)
	}
	if got := hook(own); got != "" {
		t.Errorf("it takes what was taken back: %s", got)
	}
}
