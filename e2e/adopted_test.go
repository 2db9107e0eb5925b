package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cadre/internal/claude/teamfiles/teamfilestest"
	"cadre/internal/testkit/treetest"
)

// plays replays a recording of a real team's files into Claude Code's folder.
type plays struct {
	*world
	name    string
	changes []teamfilestest.Change
}

func (w *world) plays(version string) *plays {
	w.t.Helper()
	p := &plays{world: w, changes: teamfilestest.Recording(w.t, version)}
	for _, c := range p.changes {
		p.name = cmp.Or(p.name, c.Roster())
	}
	return p
}

// next makes the next change.
func (p *plays) next() {
	p.t.Helper()
	p.changes[0].Play(p.t, filepath.Join(p.root, "claude"))
	p.changes = p.changes[1:]
}

// until plays up to the first change that has the text, or to the end of the team.
func (p *plays) until(text string) {
	p.t.Helper()
	for !p.changes[0].Ends() {
		last := strings.Contains(p.changes[0].Content, text)
		if p.next(); last {
			return
		}
	}
}

// TestAdoptedTeamGoesOnAfterKill checks an observer of a real team's files that is killed again and
// again. In the end it knows what the files show, every message and request once, and that the team
// is over.
func TestAdoptedTeamGoesOnAfterKill(t *testing.T) {
	t.Parallel()
	for _, version := range teamfilestest.Versions {
		t.Run(version, func(t *testing.T) {
			w := newWorld(t)
			p := w.plays(version)
			p.until(`"leadSessionId"`)
			kills := 0
			for ; !p.changes[0].Ends(); kills++ {
				o := w.start("observe", "--claude-team", p.name)
				if kills%3 != 0 { // otherwise it is killed while it starts
					o.awaitOutput(func(said string) bool { return said != "" || o.over() })
				}
				for n := 1 + rand.IntN(20); n > 0 && !p.changes[0].Ends(); n-- {
					p.next()
				}
				if kills%2 != 0 {
					before := o.said()
					o.awaitOutput(func(said string) bool { return said != before || o.over() })
				}
				o.kill()
			}
			state := observedTeam[struct {
				Members []struct{ Name, Status string }
				Tasks   []struct{ ID, Subject, Status, Owner string }
			}](t, w.must("observe", "--claude-team", p.name, "--state"))
			var want []string
			files, err := filepath.Glob(filepath.Join(w.root, "claude/tasks", p.name, "*.json"))
			if err != nil || len(files) == 0 {
				t.Fatalf("got the task files %v (%v), want at least one", files, err)
			}
			slices.Sort(files)
			for _, file := range files {
				var task struct {
					ID, Subject, Status, Owner string
					Metadata                   map[string]any
				}
				data, err := os.ReadFile(file)
				if err == nil {
					err = json.Unmarshal(data, &task)
				}
				if err != nil {
					t.Fatal(err)
				}
				if task.Metadata["_internal"] != true {
					want = append(want, fmt.Sprint(task.ID, task.Subject, task.Status, task.Owner))
				}
			}
			var got []string
			for _, task := range state.Tasks {
				got = append(got, fmt.Sprint(task.ID, task.Subject, task.Status, task.Owner))
			}
			if !slices.Equal(got, want) {
				t.Errorf("the files have\n%s\nthe observer has\n%s", strings.Join(want, "\n"), strings.Join(got, "\n"))
			}
			p.next()
			over := w.cadre("observe", "--claude-team", p.name)
			if over.code != 0 || !strings.Contains(over.err, "has ended") {
				t.Errorf("when the team is gone, the observer ends with %d: %s%s", over.code, over.out, over.err)
			}
			w.must("fsck", p.name)
			once := map[string]int{}
			for _, e := range w.events(p.name) {
				for _, kind := range []string{"team_created", "team_cleaned_up", "message_sent", "shutdown_requested",
					"shutdown_answered", "plan_submitted"} {
					if strings.Contains(e, `"`+kind+`"`) {
						once[e]++
					}
				}
			}
			ended := false
			for what, n := range once {
				ended = ended || strings.Contains(what, "team_cleaned_up")
				if n > 1 {
					t.Errorf("recorded %d times: %s", n, what)
				}
			}
			if !ended {
				t.Error("the history lacks the end of the team")
			}
			t.Logf("%d kills, %d messages and requests", kills, len(once))
		})
	}
}

// TestAdoptedTeamIsNeverWritten checks that no command writes to an adopted team, not even a lock
// beside its files.
func TestAdoptedTeamIsNeverWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.plays("2.1.329")
	p.until("Hello alice from lead")
	claude := filepath.Join(w.root, "claude")
	unchanged := treetest.Keep(t, claude)
	o := w.start("observe", "--claude-team", p.name)
	o.awaits("team-lead → alice: Hello alice from lead")
	w.must("observe", "--claude-team", p.name, "--state") // another look, while an observer keeps it
	w.refused(w.cadre("observe", "--claude-team", p.name), 1, "is observed already")
	for _, args := range [][]string{{"status", p.name}, {"ls"}, {"log", p.name}, {"task", "list", p.name}} {
		w.must(args...)
	}
	w.refused(w.cadre("task", "claim", p.name, "1", "--as", "alice"), 2)
	w.refused(w.cadre("resume", p.name), 2)
	o.kill()
	w.must("observe", "--claude-team", p.name, "--state", "--as-team", p.name)
	w.must("cleanup", p.name, "--force")
	unchanged("adopting the team")
}
