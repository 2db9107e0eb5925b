package e2e

import (
	"slices"
	"strings"
	"testing"

	"cadre/internal/agent/agenttest"
)

// TestNotesOfAgents checks the notes of a team of Claude, Codex and Gemini. Claude writes a wrong
// interface down, Codex adds to it, and Gemini corrects it: its first edit rests on the version
// before the addition and is refused with the note as it is, so nothing that anybody wrote is lost.
func TestNotesOfAgents(t *testing.T) {
	t.Parallel()
	const key = "interfaces/parser"
	writes := map[string][]map[string]any{
		"ann": {{"key": key, "text": "parse(text) returns a list"}},
		"bob": {{"key": key, "text": "it fails with SyntaxError", "append": true}},
		"eve": {{"key": key, "text": "parse(text) returns a tree", "ifSeq": 1},
			{"key": key, "text": "parse(text) returns a tree\nit fails with SyntaxError", "ifSeq": 2}},
	}
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		id, calls := task(r)
		if id == "" {
			return agenttest.Say("I wait.")
		}
		if mine, n := writes[who(r)], called(calls, "NoteWrite"); n < len(mine) {
			return use(r, "NoteWrite", mine[n])
		}
		return complete(r)
	}, "claude", "codex", "gemini")
	file := s.file(`name: agree
permissions: {mode: bypassPermissions}
members: [{name: ann, agent: claude}, {name: bob, agent: codex}, {name: eve, agent: gemini}]
tasks:
- {id: write, owner: ann, description: write the interface down}
- {id: add, owner: bob, blockedBy: [write], description: say how it fails}
- {id: correct, owner: eve, blockedBy: [add], description: correct it}
`)
	if r := s.run(file); r.code != 0 {
		t.Fatalf("exit status %d\n%s%s\n%s", r.code, r.out, r.err, s.model.Story())
	}
	if text := s.must("note", "get", "agree", key, "--raw"); text != "parse(text) returns a tree\nit fails with SyntaxError\n" {
		t.Errorf("the note is %q", text)
	}
	var authors []string
	for _, c := range read[[]struct{ By, How string }](s.world, "note", "log", "agree", key) {
		authors = append(authors, c.By+" "+c.How)
	}
	if !slices.Equal(authors, []string{"ann set", "bob appended", "eve set"}) {
		t.Errorf("the changes are %v", authors)
	}
	sees := func(member string, texts ...string) {
		t.Helper()
		if !slices.ContainsFunc(s.model.Requests(), func(r *agenttest.Request) bool {
			return who(r) == member && slices.ContainsFunc(texts, r.Has)
		}) {
			t.Errorf("%s never saw %q\n%s", member, texts, s.model.Story())
		}
	}
	// with its task, or at its start if the note was there before
	sees("bob", "ann wrote the note "+key, "- "+key+" (ann): ")
	sees("eve", "bob wrote the note "+key, "- "+key+" (bob): ")
	sees("eve", "the note "+key+" was changed by bob: it is at change 2, and not at 1")
	sees("eve", "it fails with SyntaxError")
	for _, r := range s.model.Requests() {
		if strings.Contains(r.System, "NoteWrite") || r.Has("goes into the notes (NoteWrite)") {
			return
		}
	}
	t.Error("no session was told what belongs into notes")
}
