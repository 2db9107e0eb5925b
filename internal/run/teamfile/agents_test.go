package teamfile_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"cadre/internal/run/teamfile"
)

// models are the agents of a program that runs some.
var models = []teamfile.Agent{{Name: "shell", CommandsOnly: true}, {Name: "external"}, {Name: "claude"},
	{Name: "codex"}, {Name: "acp:", Boundless: true}}

func TestAgents(t *testing.T) {
	f, err := teamfile.Parse([]byte(`
name: mixed
goal: port the parser
lead: {name: boss, agent: claude, model: opus, args: [--verbose], env: {A: b, C: 1}}
delegate: true
handover: 70
permissions: {mode: acceptEdits, allow: [Edit, "Bash(go test:*)"], policy: lead, timeout: 2m}
defaults: {agent: codex, model: small}
members:
  - {name: ann, planApproval: true, isolation: worktree}
  - {name: bob, agent: "acp:my-agent --acp", command: /bin/agent, model: large}
`), "mixed.yaml", models)
	if err != nil {
		t.Fatal(err)
	}
	if f.Lead != "boss" || !reflect.DeepEqual(f.Leader, teamfile.Member{Name: "boss", Agent: "claude", Model: "opus",
		Args: []string{"--verbose"}, Env: []string{"A=b", "C=1"}}) {
		t.Errorf("the lead is %+v", f.Leader)
	}
	if want := []teamfile.Member{
		{Name: "ann", Agent: "codex", Model: "small", PlanApproval: true, Isolation: "worktree"},
		{Name: "bob", Agent: "acp:my-agent --acp", Model: "large", Command: "/bin/agent"},
	}; !reflect.DeepEqual(f.Members, want) {
		t.Errorf("the members are %+v", f.Members)
	}
	if want := (teamfile.Permissions{Mode: "acceptEdits", Allow: []string{"Edit", "Bash(go test:*)"}, Policy: "lead",
		Timeout: 2 * time.Minute}); !reflect.DeepEqual(f.Permissions, want) {
		t.Errorf("permissions are %+v", f.Permissions)
	}
	if !f.Delegate || f.Handover != 70 || len(f.Tasks) != 0 {
		t.Errorf("%+v", f)
	}
}

// TestALeadWithTasks: a lead that is an agent may have tasks, and spawns the members that they
// need.
func TestALeadWithTasks(t *testing.T) {
	f, err := teamfile.Parse([]byte("name: a\nlead: {agent: claude}\ntasks: [{id: think, owner: lead}, {id: work, "+
		"role: tester}]"), "a.yaml", models)
	if err != nil {
		t.Fatal(err)
	}
	if f.Lead != "lead" || len(f.Members) != 0 || len(f.Tasks) != 2 {
		t.Errorf("%+v", f)
	}
}

// TestAnAgentThatNothingHolds: rules are refused for an agent that cannot be held to them.
func TestAnAgentThatNothingHolds(t *testing.T) {
	for text, want := range map[string]string{
		"name: a\nmembers: [{name: bob, agent: 'acp:x', planApproval: true}]\ntasks: [{id: one}]": "2:53: nothing " +
			"keeps acp:x from writing before its plan is approved",
		"name: a\ngoal: g\nlead: {agent: 'acp:x'}\ndelegate: true": "4:11: nothing " +
			"keeps acp:x from doing the work itself in delegate mode",
	} {
		if _, err := teamfile.Parse([]byte(text), "a.yaml", models); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s\nis refused with %v, not with %q", text, err, want)
		}
	}
}

// TestAnAgentThatOnlyFollows: an agent at a terminal of its own can be a member, but cannot lead.
func TestAnAgentThatOnlyFollows(t *testing.T) {
	agents := append(models, teamfile.Agent{Name: "claude-tmux", Boundless: true, FollowsOnly: true})
	f, err := teamfile.Parse([]byte("name: a\nmembers: [{name: bob, agent: claude-tmux}]\ntasks: [{id: one}]"),
		"a.yaml", agents)
	if err != nil || f.Members[0].Agent != "claude-tmux" {
		t.Errorf("a member is read as %+v, %v", f, err)
	}
	if _, err := teamfile.Parse([]byte("name: a\ngoal: g\nlead: {agent: claude-tmux}"), "a.yaml", agents); err == nil ||
		!strings.Contains(err.Error(), "3:15: claude-tmux cannot lead by itself") {
		t.Errorf("a lead is refused with %v", err)
	}
}

// TestUnknownAgent: the agents are named as a file names them.
func TestUnknownAgent(t *testing.T) {
	_, err := teamfile.Parse([]byte("name: a\nmembers: [{name: w, agent: clod}]\ntasks: [{id: b, run: x}]"), "a.yaml",
		models[2:])
	if err == nil || !strings.Contains(err.Error(), `agent "clod" is unknown`) ||
		!strings.Contains(err.Error(), "acp:COMMAND") {
		t.Error(err)
	}
}

// TestCycleOnOneLine: a line with several entries of a cycle is named once.
func TestCycleOnOneLine(t *testing.T) {
	_, err := teamfile.Parse([]byte("name: a\nmembers: [{name: w}]\ntasks:\n  [{id: a, run: x, blockedBy: [b]}, {id: "+
		"b, run: x, blockedBy: [a]}]"), "a.yaml", models)
	if err == nil || !strings.Contains(err.Error(), "a → b → a; remove one of the blockedBy entries on line 4\n") {
		t.Error(err)
	}
}
