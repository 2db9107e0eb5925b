package host_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/agent"
	"cadre/internal/host"
	"cadre/internal/team"
)

// edit returns the input of a tool that writes the file.
func edit(file string) string { return fmt.Sprintf(`{"file_path":%q}`, file) }

// TestHostOfANestedTeam checks that the session that runs a nested team learns of the tools that
// members there use, and may refuse the files that they write. A tool ends with its session at the
// latest.
func TestHostOfANestedTeam(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("ann"))
	uses := make(chan string, 8)
	sessions := modelled(s, func(o *host.Options) {
		o.Outer.Gate = func(tool, input string) error {
			if strings.Contains(input, "theirs") {
				return errors.New("it belongs to bob")
			}
			return nil
		}
		o.Outer.Uses = func(n agent.Nested) {
			if n.At.IsZero() {
				t.Errorf("it is not said when %+v was", n)
			}
			uses <- fmt.Sprintf("%T %+v", n.Update, n.Update)
		}
	})
	ann := next(t, sessions)
	if ann.Gate("Edit", edit("theirs.go")) == nil || ann.Gate("Edit", edit("free.go")) != nil {
		t.Error("the session of the outer team was not asked about the file")
	}
	ann.started <- agent.Started{}
	ann.updates <- agent.TurnStarted{}
	ann.updates <- agent.ToolStarted{ID: "1", Tool: "Bash", Input: "make"}
	ann.updates <- agent.ToolFinished{ID: "1", Output: "long"}
	ann.updates <- agent.Nested{Update: agent.ToolStarted{ID: "w/1", Tool: "sh", Input: "date"}, At: time.Now()}
	ann.end <- errors.New("it crashed")
	var got []string
	for range 4 {
		got = append(got, <-uses)
	}
	want := []string{"agent.ToolStarted {ID:ann/1 Tool:Bash Input:make}",
		"agent.ToolFinished {ID:ann/1 Failed:false Output: Lines:0}", "agent.ToolStarted {ID:ann/w/1 Tool:sh Input:date}",
		"agent.ToolFinished {ID:ann/w/1 Failed:false Output: Lines:0}"}
	if !slices.Equal(got, want) {
		t.Errorf("the uses are %q, want %q", got, want)
	}
}

// TestWritesOfANestedTeam checks that a file of another member's task that a member of a nested
// team wrote was written by the member that is that team.
func TestWritesOfANestedTeam(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("sub"), &team.SpawnMember{Name: "bob", Agent: team.External},
		&team.CreateTask{Subject: "Port it", Paths: []string{"src"}})
	file := filepath.Join(s.Team().Dir, "src")
	s.do("bob", &team.ClaimTask{Task: "1"})
	sub := next(t, modelled(s))
	sub.started <- agent.Started{}
	sub.updates <- agent.TurnStarted{}
	sub.updates <- agent.Nested{Update: agent.ToolStarted{ID: "w/1", Tool: "Write", Input: edit(file)}, At: time.Now()}
	if err := os.WriteFile(file, []byte("stolen"), 0o600); err != nil {
		t.Fatal(err)
	}
	sub.updates <- agent.Nested{Update: agent.ToolFinished{ID: "w/1"}, At: time.Now()}
	sub.updates <- agent.TurnEnded{}
	s.until("bob is told who wrote it", func(st *team.State) bool {
		return slices.ContainsFunc(mailOf(st, "bob", team.TypeSystem), func(words string) bool {
			return strings.HasPrefix(words, `sub changed files that belong to task 1 of bob: "src".`)
		})
	})
}
