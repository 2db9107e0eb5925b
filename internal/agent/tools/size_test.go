package tools_test

import (
	"testing"

	"cadre/internal/team"
)

// TestSize limits how much of a context the tools take, in bytes of names, descriptions and
// schemas: they are part of every call of a model. With its briefing, which package prompts limits
// to 1,570, a lead has at most 13,730.
func TestSize(t *testing.T) {
	b := newBench(t, &team.SpawnMember{Name: "ann", Agent: "claude"})
	for member, most := range map[string]int{"lead": 12_160, "ann": 9_790} {
		n := 0
		for _, tool := range b.tools(member).List() {
			n += len(tool.Name) + len(tool.Description) + len(tool.Schema)
		}
		if n > most {
			t.Errorf("the tools of %s have %d bytes, more than %d", member, n, most)
		}
		t.Logf("the tools of %s have %d bytes", member, n)
	}
}
