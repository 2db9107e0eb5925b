package teams_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/agent/agenttest"
	"cadre/pkg/teams"
)

// studio lets real agents talk to a scripted model. It returns the options of a manager, and the
// model.
func studio(t *testing.T, name string, script agenttest.Script) (teams.Options, *agenttest.Server) {
	t.Helper()
	p := agenttest.Installed(t, name)
	model := agenttest.NewServer(t, script)
	w := agenttest.NewWorld(t, model, p)
	agenttest.ClearEnvironment(t)
	t.Setenv("PATH", p.Dir()+":"+os.Getenv("PATH"))
	t.Cleanup(func() {
		if left := processes(w.Home); len(left) > 0 {
			t.Errorf("processes left: %v", left)
		}
		if t.Failed() {
			t.Logf("what the model was shown:\n%s", model.Story())
		}
	})
	return teams.Options{Home: filepath.Join(w.Home, ".cadre"), ClaudeHome: filepath.Join(w.Home, ".claude"),
		Dir: w.Dir, Env: w.Env, Helper: helper,
		Logger: logger(func(text string) { t.Log(text) })}, model
}

// processes returns the processes with that home, if the kernel shows their environments.
func processes(home string) (all []string) {
	entries, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range entries {
		if data, err := os.ReadFile(path); err == nil && strings.Contains("\x00"+string(data),
			"\x00HOME="+home+"\x00") {
			line, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
			all = append(all, strings.ReplaceAll(string(line), "\x00", " "))
		}
	}
	return all
}

// patient is limited for real programs, which take seconds to start.
func patient(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), 2*time.Minute, errors.New("the test takes too long"))
	t.Cleanup(cancel)
	return ctx
}

var self = regexp.MustCompile(`You are ([a-z0-9-]+), (?:the lead of a team|a teammate)`)

// who returns the member that a model plays, from its instructions.
func who(r *agenttest.Request) string {
	texts := []string{r.System}
	for _, m := range r.Messages {
		texts = append(texts, m.Text)
	}
	for _, text := range texts {
		if found := self.FindStringSubmatch(text); found != nil {
			return found[1]
		}
	}
	return ""
}

// TestClaudeLeads checks a program that gives Claude Code a goal. Claude leads and spawns a Claude
// teammate. The program is asked for a permission, and gets the report.
func TestClaudeLeads(t *testing.T) {
	o, model := studio(t, "claude", func(r *agenttest.Request) agenttest.Turn {
		use := func(tool string, input map[string]any) agenttest.Turn { return agenttest.Use(r.Tool(tool), input) }
		switch me := who(r); {
		case me == "boss" && strings.Contains(r.LastUser(), "the final report on the goal"):
			return agenttest.Say("# Ported\n\nThe parser is ported, says boss.")
		case me == "boss" && r.Calls(r.Tool("SpawnTeammate")) == 0:
			return use("SpawnTeammate", map[string]any{"name": "ann", "agent": "claude", "role": "porter",
				"prompt": "You work on the port."})
		case me == "boss" && r.Calls(r.Tool("TaskCreate")) == 0:
			return use("TaskCreate", map[string]any{"subject": "Port", "description": "the parser", "owner": "ann"})
		case me == "ann" && r.Has("Task 1 is yours now") && r.Calls("Bash") == 0:
			return agenttest.Use("Bash", map[string]any{"command": "touch ported", "description": "port"})
		case me == "ann" && r.Calls("Bash") > 0 && r.Calls(r.Tool("TaskUpdate")) == 0:
			return use("TaskUpdate", map[string]any{"taskId": "1", "status": "completed", "result": "ported by ann"})
		}
		return agenttest.Say("I wait.")
	})
	agents := filepath.Join(o.Dir, ".claude", "agents")
	ok(t, os.MkdirAll(agents, 0o700))
	ok(t, os.WriteFile(filepath.Join(agents, "porter.md"), []byte("---\nname: porter\ndescription: ports\n---\nYou "+
		"port with care.\n"), 0o600))
	m := manage(t, o)
	team, err := m.CreateTeam(patient(t), teams.TeamConfig{Name: "port", Goal: "Port the parser.",
		Lead: teams.MemberConfig{Name: "boss", Agent: teams.Claude}})
	ok(t, err)
	asked := questions(t, team)
	type end struct {
		r   teams.RunResult
		err error
	}
	ran := make(chan end, 1)
	go func() {
		r, err := team.Run(patient(t), teams.RunOptions{ReportFile: "REPORT.md"})
		ran <- end{r, err}
	}()
	var q teams.Question
	select {
	case q = <-asked:
	case e := <-ran:
		t.Fatalf("the run ended without a question: %+v", e)
	}
	if q.Member != "ann" || q.Tool != "Bash" || !strings.Contains(q.Input, "touch ported") {
		t.Errorf("the question is %+v", q)
	}
	if _, err := os.Stat(filepath.Join(o.Dir, "ported")); err == nil {
		t.Error("the command ran before it was allowed")
	}
	ok(t, team.Approve(patient(t), q, ""))
	e := <-ran
	ok(t, e.err)
	if _, err := os.Stat(filepath.Join(o.Dir, "ported")); err != nil {
		t.Error(err)
	}
	for _, part := range []string{"The parser is ported, says boss.", "ported by ann"} {
		if !strings.Contains(e.r.Report, part) {
			t.Errorf("the report lacks %q:\n%s", part, e.r.Report)
		}
	}
	if e.r.Completed != 1 || e.r.Team.Usage.InputTokens == 0 || e.r.Team.Status != teams.TeamStatusComplete {
		t.Errorf("the result is %+v", e.r)
	}
	model.WaitFor(t, "the role", func(r *agenttest.Request) bool {
		return who(r) == "ann" && strings.Contains(r.System, "You port with care.")
	})
	ok(t, m.Close())
}

// TestProgramLeadsClaude checks a program that leads Claude Code itself. It spawns, sends messages,
// changes the mode, and hands the work over to a fresh session.
func TestProgramLeadsClaude(t *testing.T) {
	var o teams.Options
	o, model := studio(t, "claude", func(r *agenttest.Request) agenttest.Turn {
		if strings.Contains(r.LastUser(), "write it down") && r.Calls("Write") == 0 {
			return agenttest.Use("Write", map[string]any{"file_path": filepath.Join(o.Dir, "written"),
				"content": "4711"})
		}
		return agenttest.Say("Understood, in request %d.", r.N)
	})
	o.ShutdownWithin = time.Second // this model does not agree
	m := manage(t, o)
	team, err := m.CreateTeam(patient(t), teams.TeamConfig{Name: "talk",
		Permissions: teams.PermissionRules{Policy: teams.PolicyDeny}})
	ok(t, err)
	ann, err := m.Team().Spawn(patient(t), teams.MemberConfig{Name: "ann", Agent: teams.Claude, Model: "claude-fake-1",
		Prompt: "Listen.", Env: []string{"GREETING=hello"}})
	ok(t, err)
	if ann.Session == "" || ann.PermissionMode != teams.ModeDefault {
		t.Errorf("ann is %+v", ann)
	}
	equal(t, "model", model.WaitFor(t, "the prompt", func(r *agenttest.Request) bool { return r.Has("Listen.") }).Model,
		"claude-fake-1")
	await(t, team.Mail(), teams.MessageIdle)

	ok(t, team.SetMode(patient(t), "ann", teams.ModeAcceptEdits))
	ok(t, send(patient(t), m, "", "ann", "the port is 4711; write it down"))
	await(t, team.Mail(), teams.MessageIdle)
	text, err := os.ReadFile(filepath.Join(o.Dir, "written"))
	ok(t, err)
	equal(t, "what was written without asking", string(text), "4711")

	ok(t, team.HandOver(patient(t), "ann", "it knows too much"))
	fresh := first(t, team, func(f teams.MemberStarted) bool { return f.Member == "ann" && f.Session != ann.Session })
	ok(t, send(patient(t), m, "", "ann", "what now?"))
	r := model.WaitFor(t, "the message in the fresh session", func(r *agenttest.Request) bool {
		return r.Has("what now?")
	})
	if !r.Has("it knows too much") || r.Calls("Write") != 0 {
		t.Errorf("session %s knows its beginning: %t, the calls of the earlier one: %d", fresh.Session,
			r.Has("the session knows too much"), r.Calls("Write"))
	}
	is, err := team.Member(patient(t), "ann")
	ok(t, err)
	equal(t, "mode of the fresh session", is.PermissionMode, teams.ModeAcceptEdits)
	ok(t, m.Team().Shutdown(patient(t), "ann"))
	ok(t, m.Cleanup(patient(t)))
}

// TestHelper checks that agents that reach their team through a helper run the program itself as
// the helper, also while they work.
func TestHelper(t *testing.T) {
	o, model := studio(t, "gemini", func(r *agenttest.Request) agenttest.Turn {
		switch {
		case r.Calls("run_shell_command") == 0:
			return agenttest.Use("run_shell_command", map[string]any{"command": "echo 1 >began; cat go; echo finished",
				"description": "wait"})
		case r.Has("the port is 4711") && r.Calls(r.Tool("SendMessage")) == 0:
			return agenttest.Use(r.Tool("SendMessage"), map[string]any{"to": "lead", "message": "I know the port."})
		}
		return agenttest.Say("I am done.")
	})
	began, goOn := filepath.Join(o.Dir, "began"), filepath.Join(o.Dir, "go")
	for _, pipe := range []string{began, goOn} {
		ok(t, syscall.Mkfifo(pipe, 0o600))
	}
	begun := make(chan error, 1)
	go func() {
		_, err := os.ReadFile(began)
		begun <- err
	}()
	m := manage(t, o)
	team, err := m.CreateTeam(patient(t), teams.TeamConfig{Name: "help",
		Lead: teams.MemberConfig{PermissionMode: teams.ModeBypass}})
	ok(t, err)
	_, err = m.Team().Spawn(patient(t), teams.MemberConfig{Name: "ann", Agent: teams.Gemini,
		Prompt: "Wait for the port."})
	ok(t, err)
	ok(t, next(t, begun))
	ok(t, send(patient(t), m, "", "ann", "the port is 4711"))
	ok(t, os.WriteFile(goOn, nil, 0o600)) // the tool waits for this file
	equal(t, "what the lead hears", await(t, team.Mail(), "message").Body, "I know the port.")
	then := model.WaitFor(t, "the result of the tool", func(r *agenttest.Request) bool {
		return strings.Contains(r.Results(), "finished")
	})
	if then.Count("the port is 4711") != 1 {
		t.Errorf("the next request has the message %d times", then.Count("the port is 4711"))
	}
	ok(t, team.Abort(patient(t), "enough"))
	ok(t, m.Cleanup(patient(t)))
}
