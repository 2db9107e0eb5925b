package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cadre/internal/agent/agenttest"
)

var toPermit = regexp.MustCompile(`RespondToPermission with requestId "([^"]+)"`)

// requested returns the permission request that a lead was told of, or "".
func requested(r *agenttest.Request) string {
	for _, m := range r.Messages {
		if found := toPermit.FindStringSubmatch(m.Text); found != nil {
			return found[1]
		}
		for _, result := range m.Results {
			if found := toPermit.FindStringSubmatch(result.Text); found != nil {
				return found[1]
			}
		}
	}
	return ""
}

// TestUrgentMail checks that urgent mail of an agent waits for the end of the running command.
// Urgent mail of the user interrupts the command. The turn continues with it at once, and the lead
// is not told that the member is idle.
func TestUrgentMail(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "codex", "gemini", "opencode"} {
		t.Run(name, func(t *testing.T) {
			sampled(t, name)
			t.Parallel()
			s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				id, calls := task(r)
				commands := len(calls) - called(calls, "TaskUpdate")
				switch {
				case id == "" || r.Has("drop everything"):
					return complete(r)
				case commands == 0:
					return shells[name]("touch building; until test -e go; do sleep 0.05; done; echo the build is done")
				case commands == 1:
					return shells[name]("touch sleeping; sleep 1000; touch slept")
				}
				return agenttest.Say("I go to sleep.")
			}, name)
			file := s.file("name: rush\npermissions: {mode: bypassPermissions}\nmembers: [{name: ann, agent: " + name +
				"}, {name: eve, agent: external}]\ntasks: [{id: one, owner: ann}]\n")
			p := s.start("run", file)
			s.waitFor("the build runs", func() bool { return has(s.dir, "building") })
			s.must("send", "rush", "--to", "ann", "--as", "eve", "--priority", "urgent", "the door is open")
			s.write("go", "")
			s.waitFor("the sleep has begun", func() bool { return has(s.dir, "sleeping") })
			s.must("send", "rush", "--to", "ann", "--priority", "urgent", "drop everything")
			if code := p.wait(); code != 0 {
				t.Fatalf("exit status %d\n%s\n%s", code, p.said(), s.model.Story())
			}
			requests := s.of("ann")
			last := requests[len(requests)-1]
			for _, words := range []string{"the build is done", "the door is open", "drop everything"} {
				// The call of the command contains these words too.
				if n := last.Count(words); n < 1 || n > 1 && words != "the build is done" {
					t.Errorf("at the end the model is shown %q %d times\n%s", words, n, s.model.Story())
				}
			}
			if told := s.must("log", "rush"); strings.Contains(told, "still holds task one") || has(s.dir, "slept") {
				t.Errorf("the log is\n%s", told)
			}
		})
	}
}

// TestALeadIsNotInterrupted checks that permission requests and urgent mail of agents reach a lead
// at its next tool boundary. They do not interrupt its build.
func TestALeadIsNotInterrupted(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "codex"} {
		t.Run(name, func(t *testing.T) {
			s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				calls := all(r)
				if who(r) == "lead" {
					switch {
					case reports(r):
						return agenttest.Say("Both are done.")
					case called(calls, "SpawnTeammate") == 0:
						return use(r, "SpawnTeammate", map[string]any{"name": "ann", "agent": "claude",
							"prompt": "You make a file."})
					case called(calls, "TaskCreate") == 0:
						return use(r, "TaskCreate", map[string]any{"subject": "Make it", "description": "the file",
							"owner": "ann"})
					case !r.Has("the build is done"):
						return shells[name]("touch building; until test -e go; do sleep 0.1; done; echo the " +
							"build is done")
					case called(calls, "RespondToPermission") == 0 && requested(r) != "":
						return use(r, "RespondToPermission", map[string]any{"requestId": requested(r), "allow": true})
					}
					return agenttest.Say("I wait.")
				}
				id, mine := task(r)
				switch {
				case id != "" && called(mine, "SendMessage") == 0:
					return use(r, "SendMessage", map[string]any{"to": "lead", "message": "The door is open!",
						"urgent": true})
				case id != "" && called(mine, "Bash") == 0:
					return agenttest.Use("Bash", map[string]any{"command": "touch made-by-ann",
						"description": "make it"})
				}
				return complete(r)
			}, "claude", name)
			p := s.start("run", "make a file", "--agent", name, "--name", "busy", "--policy", "lead")
			s.there("busy")
			asks := func(member string) (id string) {
				t.Helper()
				s.waitFor(member+" asks", func() bool {
					for _, p := range read[struct {
						Permissions []struct{ Request, Member string }
					}](s.world, "status", "busy").Permissions {
						if p.Member == member {
							id = p.Request
						}
					}
					return id != ""
				})
				return id
			}
			s.must("permit", "busy", asks("lead"))
			s.waitFor("the lead builds", func() bool { return has(s.dir, "building") })
			asks("ann")
			if err := os.WriteFile(filepath.Join(s.dir, "go"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if code := p.wait(); code != 0 {
				t.Fatalf("exit status %d\n%s", code, s.model.Story())
			}
			if !has(s.dir, "made-by-ann") {
				t.Errorf("the request was not allowed\n%s", s.model.Story())
			}
			boundary := s.model.WaitFor(t, "the end of the build", func(r *agenttest.Request) bool {
				return who(r) == "lead" && strings.Contains(r.Results(), "the build is done")
			})
			if since := boundary.SinceAnswer(); !strings.Contains(since, "The door is open!") ||
				requested(boundary) == "" {
				t.Errorf("behind its build the lead is told\n%s", since)
			}
		})
	}
}
