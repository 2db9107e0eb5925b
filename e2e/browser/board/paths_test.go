package board

import (
	"testing"

	"cadre/internal/team"
)

// TestPaths shows for which path a task waits, and follows it live: when the path is given back, the task can
// be done.
func TestPaths(t *testing.T) {
	s := newStory(t, "paths", "Port the parser")
	s.do(team.User, &team.SpawnMember{Name: "ann", Agent: team.External})
	s.do(team.User, &team.SpawnMember{Name: "bob", Agent: team.External})
	s.do(team.User, &team.CreateTask{Name: "lexer", Subject: "Port the lexer", Paths: []string{"src/lexer/**", "docs"}})
	s.do(team.User, &team.CreateTask{Name: "rename", Subject: "Rename everywhere", Paths: []string{"src"}})
	s.do("ann", &team.ClaimTask{Task: "1"})
	w := serve(t, s)
	b := browse(t, 1300, 900)
	b.login(w, "#team=paths")
	b.shows("after lexer for src")
	b.login(w, "#team=paths&task=2")
	b.shows("Waits for src, which belongs to")
	b.login(w, "#team=paths&task=1")
	b.shows("src/lexer, docs")
	w.cadre("task", "paths", "release", "paths", "lexer", "--all", "--as", "ann")
	b.until(`!document.body.innerText.includes("after lexer for src")`)
	w.cadre("task", "claim", "paths", "rename", "--as", "bob")
	b.shows("bob")
}
