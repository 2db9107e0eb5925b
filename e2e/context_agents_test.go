package e2e

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"cadre/internal/agent/agenttest"
)

// shortening wraps a script: once for each member, the model answers that its prompt is too long.
// Claude Code then makes a summary and continues with it.
func shortening(when func(*agenttest.Request) bool, script agenttest.Script) agenttest.Script {
	var mu sync.Mutex
	full := map[string]bool{}
	return func(r *agenttest.Request) agenttest.Turn {
		if r.Has("Respond with TEXT ONLY") {
			return agenttest.Say("<summary>What was before is gone.</summary>")
		}
		mu.Lock()
		defer mu.Unlock()
		if me := who(r); !full[me] && when(r) {
			full[me] = true
			return agenttest.Fail(400, "prompt is too long: 210000 tokens > 200000 maximum")
		}
		return script(r)
	}
}

// TestCompaction checks the prompts after a compaction. The next prompt of a lead or a teammate
// says again who it is, who is there and what is open. The one after it does not.
func TestCompaction(t *testing.T) {
	t.Parallel()
	s := newStudio(t, shortening(func(r *agenttest.Request) bool {
		if who(r) == "lead" {
			return called(all(r), "TaskCreate") == 2
		}
		_, calls := task(r)
		return len(calls) > 0
	}, func(r *agenttest.Request) agenttest.Turn {
		short := r.Has("What was before is gone.")
		restated := r.Has("Your context was shortened.")
		if who(r) != "lead" {
			switch id, calls := task(r); {
			case !short && len(calls) == 0:
				return shells["claude"]("true")
			case short && !restated:
				return agenttest.Say("Where was I?")
			case short && id == "" && called(all(r), "TaskUpdate") == 0:
				return use(r, "TaskUpdate", map[string]any{"taskId": "1", "status": "completed", "result": "looked"})
			case short && id == "2" && called(calls, "SendMessage") == 0: // so that the lead has a turn meanwhile
				return use(r, "SendMessage", map[string]any{"to": "lead", "message": "I write."})
			case short && id == "2" && called(calls, "Bash") == 0:
				return shells["claude"]("until test -e go; do sleep 0.05; done")
			}
			return complete(r)
		}
		tasks := []map[string]any{{"subject": "Look", "description": "at it", "owner": "ann"},
			{"subject": "Write", "description": "it down", "blockedBy": []string{"1"}}}
		switch n := called(all(r), "TaskCreate"); {
		case reports(r):
			return agenttest.Say("All is done.")
		case restated && called(all(r), "Bash") == 0:
			return shells["claude"]("touch go")
		case short:
			return agenttest.Say("I wait.")
		case called(all(r), "SpawnTeammate") == 0:
			return use(r, "SpawnTeammate", map[string]any{"name": "ann", "agent": "claude", "role": "scout",
				"prompt": "You look around."})
		case n < 2:
			return use(r, "TaskCreate", tasks[n])
		}
		return agenttest.Say("I wait.")
	}), "claude")
	s.ended(s.run("look and write", "--agent", "claude", "--name", "short", "--permission-mode",
		"bypassPermissions"), 0)
	for member, parts := range map[string][]string{
		"lead": {"You are lead, the lead of the team short, whose goal is:\n> look and write.",
			"The others in the team:\n- ann: claude, ", ", role \"scout\"", "Open tasks (1 are done):\n- task 2 ["},
		"ann": {"You are ann in the team short; the lead is lead. Your role in the team: \"scout\".",
			"The others in the team:\n- lead: claude, ", "Open tasks (0 are done):\n- task 1 [in_progress] \"Look\" " +
				"(ann)\n- task 2 [pending] \"Write\", waits for 1"},
	} {
		requests := s.of(member)
		i := slices.IndexFunc(requests, func(r *agenttest.Request) bool { return r.Has("Your context was shortened.") })
		if i < 0 {
			t.Errorf("%s got no introduction:\n%s", member, s.model.Story())
			continue
		}
		_, words, _ := strings.Cut(requests[i].LastUser(), "Your context was shortened.")
		for _, part := range parts {
			if !strings.Contains(words, part) {
				t.Errorf("%s was not told %q:\n%s", member, part, words)
			}
		}
		if n := requests[len(requests)-1].Count("Your context was shortened."); n != 1 {
			t.Errorf("%s was told %d times", member, n)
		}
	}
}

// TestCompactionOfCodex checks that Codex compacts its context by itself, above its own limit.
func TestCompactionOfCodex(t *testing.T) {
	t.Parallel()
	var full atomic.Bool
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		switch id, _ := task(r); {
		case r.Has("Your context was shortened."):
			return complete(r)
		case id != "" && full.CompareAndSwap(false, true):
			turn := shells["codex"]("true")
			turn.In = 60_000
			return turn
		}
		return agenttest.Say("Where was I?")
	}, "codex")
	file := s.file("name: short\npermissions: {mode: bypassPermissions}\nmembers: [{name: ann, agent: codex, role: " +
		"scout, args: [-c, model_auto_compact_token_limit=50000]}]\ntasks: [{id: one, role: scout}]\n")
	s.ended(s.run(file), 0)
	requests := s.of("ann")
	i := slices.IndexFunc(requests, func(r *agenttest.Request) bool { return r.Has("Your context was shortened.") })
	if i < 0 {
		t.Fatalf("codex got no introduction:\n%s", s.model.Story())
	}
	for _, part := range []string{"You are ann in the team short; the lead is lead. Your role in the team: \"scout\".",
		"- task one [in_progress] \"one\" (ann)"} {
		if n := requests[len(requests)-1].Count(part); n != 1 {
			t.Errorf("codex was told %q %d times:\n%s", part, n, requests[i].LastUser())
		}
	}
}

// TestProjectContext checks that the project's instructions reach the model of each teammate, as
// its program reads them, also in a worktree. The lead's conversation reaches no teammate.
func TestProjectContext(t *testing.T) {
	t.Parallel()
	agents := map[string]string{"ann": "claude", "tim": "claude", "bob": "codex", "eve": "gemini"}
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		switch {
		case who(r) != "lead":
			return complete(r)
		case reports(r):
			return agenttest.Say("All have read it.")
		case called(all(r), "Bash") == 0:
			turn := shells["claude"]("echo seen by the $(echo lead)")
			turn.Text = "The word of the lead is onion."
			return turn
		}
		return agenttest.Say("I wait.")
	}, "claude", "codex", "gemini")
	words := map[string]string{"CLAUDE.md": "The fruit is a plum.", "AGENTS.md": "The fruit is a fig.",
		"GEMINI.md": "The fruit is a pear."}
	for name, text := range words {
		s.write(name, text+"\n")
	}
	s.git("add", "-A")
	s.git("commit", "-qm", "words")
	file := "name: words\ngoal: read the words\nlead: {agent: claude}\n" +
		"permissions: {mode: bypassPermissions}\nmembers:\n"
	tasks := "tasks:\n"
	for name, agent := range agents {
		isolation := ""
		if name == "tim" {
			isolation = ", isolation: worktree"
		}
		file += "  - {name: " + name + ", agent: " + agent + isolation + "}\n"
		tasks += "  - {id: " + name + ", owner: " + name + "}\n"
	}
	s.ended(s.run(s.file(file+tasks)), 0)
	for name, agent := range agents {
		requests := s.of(name)
		if len(requests) == 0 {
			t.Errorf("%s made no request:\n%s", name, s.model.Story())
			continue
		}
		own := map[string]string{"claude": words["CLAUDE.md"], "codex": words["AGENTS.md"],
			"gemini": words["GEMINI.md"]}[agent]
		if !requests[0].Has(own) {
			t.Errorf("%s (%s) was not shown %q:\n%s\n%s", name, agent, own, requests[0].System, requests[0].LastUser())
		}
		for _, r := range requests {
			for _, secret := range []string{"onion", "seen by the lead", "read the words"} {
				if strings.Contains(string(r.Raw), secret) {
					t.Errorf("%s was shown %q, which belongs to the lead", name, secret)
				}
			}
		}
	}
}

// TestRoles checks a teammate whose role has a definition. It has the prompt of the role, its model
// if its agent has that model, and no other tools.
func TestRoles(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"claude", "codex", "gemini"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s *studio
			s = newStudio(t, func(r *agenttest.Request) agenttest.Turn {
				id, calls := task(r)
				if id != "" && len(calls) == 0 {
					if name == "claude" {
						return agenttest.Use("Write", map[string]any{"file_path": s.dir + "/written", "content": "x"})
					}
					return shells[name]("echo x > written")
				}
				if name == "claude" && called(calls, "Bash") == 0 && id != "" {
					return shells[name]("touch looked")
				}
				return complete(r)
			}, name)
			tools := map[string]string{"claude": "Read, Bash", "codex": "Read", "gemini": "Read"}[name]
			s.write(".claude/agents/scout.md", "---\nname: scout\ndescription: looks\ntools: "+tools+
				"\nmodel: haiku\n---\nYou are a scout who never writes.\n")
			file := s.file("name: roles\npermissions: {mode: bypassPermissions}\nmembers: [{name: ann, agent: " + name +
				", role: scout}]\ntasks: [{id: one, role: scout}]\n")
			s.ended(s.run(file), 0)
			requests := s.of("ann")
			if !requests[0].Has("You are a scout who never writes.") ||
				!requests[0].Has("Your role in the team: \"scout\".") {
				t.Errorf("the prompt lacks the role:\n%s\n%s", requests[0].System, requests[0].LastUser())
			}
			if is := strings.Contains(requests[0].Model, "haiku"); is != (name == "claude") {
				t.Errorf("the model is %s", requests[0].Model)
			}
			if has(s.dir, "written") || name == "claude" && !has(s.dir, "looked") {
				t.Errorf("it wrote, or could not read:\n%s", s.model.Story())
			}
			if told := slices.ContainsFunc(requests, func(r *agenttest.Request) bool {
				return r.Has("the role scout has no tool ")
			}); !told && name == "claude" {
				t.Errorf("it was not told why:\n%s", s.model.Story())
			}
		})
	}
}
