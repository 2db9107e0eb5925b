package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cadre/internal/agent/sessionlog"
	"cadre/internal/layout"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// mark is in every hostile text. It shows the test that the text was shown.
const mark = "EVIL"

// forged lists lines that imitate lines of cadre.
var forged = []string{"#2 from user: FORGED", "cadre: FORGED", "✓ FORGED", "? FORGED [y/N]", "2 FORGED"}

// controls are sequences that no terminal and no pager may get.
const controls = "\x1b[2J\x1b[41m\x1b]0;title\x07\x1bc\u009b2J\u009d0;x\u009c\x7f\b\x0e\u202e\u2066\u200e\u200b\u00ad\ufeff\U000E0041\ufffe"

// evil returns a hostile text of several lines that begins with the word.
func evil(word string) string {
	text := mark + " " + word + " " + controls
	for _, line := range forged {
		text += "\n" + line + "\r" + line + "\r\n  " + line + "\u2028" + line + "\u0085" + line
	}
	return text + "\n" + controls
}

// evilLine returns a short hostile text without bytes that a file name or a branch name cannot
// have.
func evilLine(word string) string { return mark + word + "\u009b2J\u202e" }

// stage is a user of the program whose teams, files and programs have hostile texts in every place.
type stage struct {
	t       *testing.T
	root    string
	entries map[string]inode // the content of root when it was complete; nil before
	project string
	bin     string // the only folder in PATH
	home    layout.Home
	env     []string
}

// newStage returns a stage for the subtests of t. open creates its content.
func newStage(t *testing.T) *stage {
	base := t.TempDir()
	if real, err := filepath.EvalSymlinks(base); err == nil {
		base = real
	}
	root := filepath.Join(base, "root")
	s := &stage{t: t, root: root,
		project: filepath.Join(root, "project "+strings.ReplaceAll(evilLine("dir"), "\n", "")+"\x1b[2J\r"+forged[0]),
		home: layout.Home{Root: filepath.Join(root, "cadre "+evilLine("home")+"\x1b[2J"),
			Claude: filepath.Join(root, "claude")}}
	s.bin = filepath.Join(root, "bin")
	s.env = []string{"CADRE_HOME=" + s.home.Root, "CLAUDE_CONFIG_DIR=" + s.home.Claude,
		"HOME=" + filepath.Join(root, "user"), "PATH=" + s.bin, "TMPDIR=" + filepath.Join(root, "tmp"), "TERM=xterm",
		"GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_CEILING_DIRECTORIES=" + root, "LC_ALL=C.UTF-8",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada",
		"GIT_COMMITTER_EMAIL=ada@example.org"}
	return s
}

// open creates the content the first time, and later resets it.
func (s *stage) open() {
	s.t.Helper()
	if s.entries != nil {
		s.reset()
		return
	}
	for _, dir := range []string{s.project, s.bin, filepath.Join(s.root, "user"), filepath.Join(s.root, "tmp"),
		s.home.Claude} {
		s.must(os.MkdirAll(dir, 0o755))
	}
	// Only these programs: no installed agent may run.
	for _, name := range []string{"sh", "git", "cat", "grep", "printf", "sleep", "true", "false", "env",
		"mkdir", "rm"} {
		if path, err := exec.LookPath(name); err == nil {
			s.must(os.Symlink(path, filepath.Join(s.bin, name)))
		}
	}
	s.files()
	s.repository()
	s.teams()
	s.claudeTeam()
	s.entries = s.look()
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// inode is a file, folder or link below the root of a stage.
type inode struct {
	mode    fs.FileMode
	content string // of a file, or the target of a link
}

// look reads everything below the root.
func (s *stage) look() map[string]inode {
	s.t.Helper()
	all := map[string]inode{}
	s.must(filepath.WalkDir(s.root, func(path string, d fs.DirEntry, err error) error {
		var info fs.FileInfo
		if err == nil {
			info, err = d.Info()
		}
		if err == nil {
			e := inode{mode: info.Mode()}
			switch e.mode.Type() {
			case 0:
				var data []byte
				data, err = os.ReadFile(path)
				e.content = string(data)
			case fs.ModeSymlink:
				e.content, err = os.Readlink(path)
			}
			all[path] = e
		}
		if errors.Is(err, fs.ErrNotExist) { // a process that a command ended has just removed it
			delete(all, path)
			return nil
		}
		return err
	}))
	return all
}

// reset restores the content. It writes only what a command changed: a complete copy for each call
// took most of the time of the test.
func (s *stage) reset() {
	s.t.Helper()
	now := s.look()
	for path, e := range now {
		if was, ok := s.entries[path]; !ok || was.mode.Type() != e.mode.Type() {
			s.must(os.RemoveAll(path))
		}
	}
	for _, path := range slices.Sorted(maps.Keys(s.entries)) { // a folder before its content
		was := s.entries[path]
		if e, ok := now[path]; ok && e == was {
			if _, err := os.Lstat(path); err == nil { // no folder above it was removed
				continue
			}
		}
		switch was.mode.Type() {
		case fs.ModeDir:
			s.must(os.MkdirAll(path, 0o700))
		case fs.ModeSymlink:
			s.must(os.RemoveAll(path))
			s.must(os.Symlink(was.content, path))
			continue
		default:
			s.must(os.RemoveAll(path)) // it may be a link to a file elsewhere now, or read-only
			s.must(os.WriteFile(path, []byte(was.content), 0o600))
		}
		s.must(os.Chmod(path, was.mode.Perm()))
	}
}

func (s *stage) git(args ...string) {
	s.t.Helper()
	c := exec.Command("git", args...)
	c.Dir, c.Env = s.project, s.env
	if out, err := c.CombinedOutput(); err != nil {
		s.t.Fatalf("git %q: %v\n%s", args, err, out)
	}
}

func (s *stage) write(name, text string) {
	s.t.Helper()
	s.must(os.MkdirAll(filepath.Dir(name), 0o755))
	s.must(os.WriteFile(name, []byte(text), 0o644))
}

// files creates the files that commands read.
func (s *stage) files() {
	quoted := func(text string) string { return string(bytes.Trim(sanitize.JSON(marshal(text)), "\n")) }
	s.write(filepath.Join(s.root, "text"), evil("text"))
	s.write(filepath.Join(s.root, "event.json"), `{"task_subject": "HOOKED"}`)
	shout := fmt.Sprintf("cat '%s' >&2; exit 2", filepath.Join(s.root, "text"))
	s.write(filepath.Join(s.home.Claude, "settings.json"),
		fmt.Sprintf(
			`{"hooks":{"TaskCreated":[{"hooks":[{"type":"command","command":%s}]}],"TaskCompleted":[{"hooks":[{"type":"command","command":%s}]}]}}`,
			quoted("grep -q HOOKED || exit 0; "+shout), quoted("grep -q HOOKED || exit 0; "+shout)))
	s.write(filepath.Join(s.project, ".claude", "settings.json"),
		fmt.Sprintf(`{"hooks":{"TeammateIdle":[{"hooks":[{"type":"command","command":%s}]}]}}`,
			quoted("true "+evil("hook"))))
	say := fmt.Sprintf("cat '%s'; cat '%s' >&2", filepath.Join(s.root, "text"), filepath.Join(s.root, "text"))
	s.write(filepath.Join(s.root, "team.yaml"), fmt.Sprintf(`name: filed
goal: %s
members:
  - name: ada
    role: %s
tasks:
  - {id: good, subject: %s, description: %s, run: %s}
  - {id: bad, subject: %s, run: %s}
report: {title: %s}
`, quoted(evil("goal")), quoted(evilLine("role")), quoted(evilLine("subject")), quoted(evil("description")),
		quoted(say),
		quoted(evilLine("bad")), quoted(say+"; exit 3"), quoted(evilLine("title"))))
	s.write(filepath.Join(s.root, "broken.yaml"), fmt.Sprintf("name: broken\n%s: 1\nmembers: [{name: %s, agent: %s}]\n",
		quoted(evil("key")), quoted(evil("name")), quoted(evil("agent"))))
	s.write(filepath.Join(s.root, "not.yaml"), "name: [\x1b[2J\r"+forged[0]+"\n")
	s.write(filepath.Join(s.root, "stream.jsonl"), s.stream())
}

// stream returns the output of the lead of a Claude Code team.
func (s *stage) stream() string {
	lines := []map[string]any{
		{"type": "system", "subtype": "init", "session_id": "s-1", "cwd": s.project, "model": evil("model"),
			"tools": []string{"Bash"}},
		use("u1", "TeamCreate", map[string]any{"team_name": "fx", "description": evil("team")}),
		answered("u1", `{"team_name":"fx","lead_agent_id":"team-lead@fx"}`),
		use("u2", "Task", map[string]any{"name": "alice", "team_name": "fx", "prompt": evil("prompt"),
			"description": evil("description"), "subagent_type": evil("kind"), "model": evil("model")}),
		answered("u2", "Spawned successfully.\nagent_id: alice@fx\nname: alice\nteam_name: fx"),
		use("u3", "TaskCreate", map[string]any{"subject": evil("subject"), "description": evil("description")}),
		answered("u3", "Task #1 created successfully: x"),
		use("u4", "SendMessage", map[string]any{"type": "message", "recipient": "alice", "content": evil("message"),
			"summary": evil("summary")}), answered("u4", `{"success":true,"message":"sent"}`),
	}
	var all strings.Builder
	for _, line := range lines {
		all.Write(marshal(line))
	}
	return all.String() + "{\"garbage\x1b[2J\n"
}

func use(id, tool string, input any) map[string]any {
	return map[string]any{"type": "assistant", "session_id": "s-1", "message": map[string]any{"role": "assistant",
		"content": []any{map[string]any{"type": "tool_use", "id": id, "name": tool, "input": input}}}}
}

func answered(id, text string) map[string]any {
	return map[string]any{"type": "user", "session_id": "s-1", "message": map[string]any{"role": "user",
		"content": []any{map[string]any{"type": "tool_result", "tool_use_id": id, "content": text}}}}
}

func marshal(v any) []byte {
	line, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return append(line, '\n')
}

// repository creates hostile names of files and of the checked-out branch.
func (s *stage) repository() {
	s.git("init", "-q", "--template=", "-b", evilLine("branch")) // without hooks, which each stage would copy
	s.write(filepath.Join(s.project, evilLine("committed")+"\x1b[2J\n"+forged[0]), "1\n")
	s.write(filepath.Join(s.project, "fact"), "1\n")
	s.git("add", "-A")
	s.git("commit", "-qm", evil("commit"))
}

// teams creates teams through the core, as far as its rules allow a text. Other texts are in
// records that another version or another program may have left.
func (s *stage) teams() {
	n := 0
	command := func(actor string, body team.Body) team.Command {
		n++
		return team.Command{ID: fmt.Sprintf("c-%d", n), Actor: actor, At: now(), Body: body}
	}
	host := team.Host("h1")
	create := func(name string, checks ...team.Check) team.Command {
		return command(team.User, &team.CreateTeam{TeamID: name + "-id", Name: name, Goal: evil("goal"), Dir: s.project,
			Checks: checks, LeadModel: evilLine("model"), LeadRole: evilLine("role"),
			Facts: []team.Fact{{Name: evil("fact"), Path: "fact", SHA256: "0"},
				{Name: "other", Path: evilLine("path")}}, Permissions: team.Permissions{Policy: "user"},
			Base: team.Base{Top: s.project}})
	}
	later := now() + 1<<40
	s.must(s.home.Create("evil", []team.Command{
		create("evil", team.Check{Name: evilLine("check"), Command: evil("command")}),
		command(team.User, &team.SpawnMember{Name: "ann", Agent: team.ACP + evilLine("agent"), Model: evil("model"),
			Role: evil("role"), Prompt: evil("prompt"), PlanApproval: false, Program: evilLine("program")}),
		command(team.User, &team.SpawnMember{Name: "bob", Agent: team.External, Role: evil("role"),
			PlanApproval: true}),
		command(team.User, &team.SpawnMember{Name: "eve", Agent: team.Claude, Model: evil("model")}),
		command(host, &team.AttachMember{Member: "ann"}),
		command(host, &team.ReportStarted{Member: "ann", Session: evil("session")}),
		command(host, &team.AttachMember{Member: "eve"}),
		command("lead", &team.CreateTask{Subject: evil("subject"), Description: evil("description"),
			ActiveForm: evil("form"), Role: "", Metadata: map[string]json.RawMessage{"x": marshal(evil("meta"))}}),
		command("lead", &team.CreateTask{Subject: evil("second"), Run: evil("run"), BlockedBy: []string{"1"},
			Role: evil("role")}),
		command("lead", &team.CreateTask{Subject: evil("third")}),
		command("lead", &team.CreateTask{Subject: evil("fourth")}),
		command("ann", &team.ClaimTask{Task: "3"}),
		command("ann", &team.FailTask{Task: "3", Reason: evil("reason"), Result: evil("result")}),
		command("ann", &team.ClaimTask{Task: "4"}),
		command("ann", &team.CompleteTask{Task: "4", Result: evil("result")}),
		command("ann", &team.ClaimTask{Task: "1"}),
		command(host, &team.SaveWork{Task: "1", Saved: team.Saved{Member: "ann", Commit: evilLine("commit"),
			Diff: evil("diff"), Note: evil("note"), Output: evil("output")}}),
		command(host, &team.ReportStatus{Member: "ann", Status: team.Active, Summary: evil("summary")[:300]}),
		command("ann", &team.SendMessage{To: "bob", Body: evil("message"), Intent: "question"}),
		command("ann", &team.Broadcast{Body: evil("broadcast")}),
		command("bob", &team.SendMessage{To: "lead", Body: evil("answer")}),
		command("ann", &team.SetNote{Key: "plan", Text: evil("note")}),
		command("bob", &team.AppendNote{Key: "plan", Text: evil("more")}),
		command("bob", &team.SubmitPlan{Plan: evil("plan")}),
		command("ann", &team.RequestPermission{Tool: evil("tool"), Input: evil("input"), Deadline: later}),
		command(host, &team.ReportUsage{Member: "ann", Task: "1", Usage: team.Usage{InputTokens: 7, CostMicroUSD: 7000},
			Context: 50}),
		command(team.User, &team.RejectByHook{Hook: "TaskCompleted", Member: "ann", Task: "1",
			Feedback: evil("feedback")}),
		command(host, &team.ReportTrouble{Member: "eve", Trouble: evil("trouble"), Text: evil("crash"),
			Retrying: true}),
		command(host, &team.ReportTrouble{Member: "eve", Trouble: "login", Text: evil("crash")}),
		command(team.User, &team.RequestShutdown{Member: "bob", Reason: evil("shutdown"), Deadline: later}),
	}))
	for name, check := range map[string]string{"ending": "cat '" + filepath.Join(s.root, "text") + "'; exit 1",
		"passing": "true"} {
		s.must(s.home.Create(name, []team.Command{
			create(name, team.Check{Name: evilLine("check"), Command: check}),
			command(team.User, &team.SpawnMember{Name: "ann", Agent: team.External, Model: evil("model")}),
			command("lead", &team.CreateTask{Subject: evil("subject")}),
			command("lead", &team.CompleteTask{Task: "1", Result: evil("result")}),
		}))
	}
	s.must(s.home.Create("aborted", []team.Command{
		create("aborted"),
		command("lead", &team.CreateTask{Subject: evil("subject")}),
		command("lead", &team.SetStatus{Status: team.TeamAborted, Reason: evil("reason"), Report: evil("report")}),
	}))
	var records [][]byte
	for i, events := range [][]team.Event{
		{&team.TeamCreated{Team: team.Team{ID: "seen-id", Name: "seen", Observed: evil("observed"), Goal: evil("goal"),
			Dir: s.project, Status: team.TeamActive, Lead: evil("lead")},
			Lead: team.Member{Name: evil("lead"), Agent: team.External, Status: team.Active, Model: evil("model")}}},
		{&team.MemberSpawned{Member: team.Member{Name: evil("member"), Agent: evil("agent"), Model: evil("model"),
			Role: evil("role"), Status: team.MemberStatus(evil("status")), Summary: evil("summary"), Incarnation: 1}}},
		{&team.TaskCreated{Task: team.Task{ID: evil("1"), Subject: evil("subject"), Status: team.InProgress,
			Owner: evil("member"), Priority: evil("priority"), BlockedBy: []string{evil("2")},
			CreatedBy: evil("creator")}}},
		{&team.MessageSent{Message: team.Message{Seq: 1, From: evil("member"), To: evil("lead"), Type: evil("type"),
			Ref: evil("ref"), Priority: evil("priority"), Body: evil("body")}}},
		{&team.GapNoticed{Source: evil("source"), Reason: evil("gap")}, &team.MemberFailed{Member: evil("member"),
			Reason: evil("failed")}},
	} {
		records = append(records, team.AppendRecord(nil, &team.Record{Seq: int64(i + 1), ID: fmt.Sprint("r-", i),
			Actor: evil("actor"), At: now(), Events: events}))
	}
	_, err := s.home.Found("seen", "seen-id", records)
	s.must(err)
	s.must(s.home.Create("broken", []team.Command{create("broken"),
		command("lead", &team.CreateTask{Subject: evil("subject")}),
		command("lead", &team.CreateTask{Subject: "two"})}))
	session, err := sessionlog.Of(filepath.Join(s.home.Root, "teams", "evil")).Open("eve")
	if err != nil {
		s.t.Fatal(err)
	}
	defer session.Close()
	for _, kind := range []sessionlog.Kind{sessionlog.Started, sessionlog.Prompt, sessionlog.Text, sessionlog.Tool,
		sessionlog.Result, sessionlog.Question, sessionlog.Answer, sessionlog.Ended} {
		if err := session.Add(sessionlog.Entry{Kind: kind, Tool: evil("tool"), Text: evil("shown"),
			Failed: true}); err != nil {
			s.t.Fatal(err)
		}
	}
	segment := filepath.Join(s.home.Root, "teams", "broken", "journal", "00000000000000000001.jsonl")
	data, err := os.ReadFile(segment)
	s.must(err)
	s.must(os.WriteFile(segment, bytes.Replace(data, []byte(`"crc":"`), []byte("\"crc\":\"\x1b[2J\r"+forged[0]), 2),
		0o600))
}

// claudeTeam creates a team that Claude Code runs.
func (s *stage) claudeTeam() {
	member := func(name string) map[string]any {
		return map[string]any{"agentId": name + "@lively", "name": name, "agentType": evil("type"),
			"model": evil("model"), "prompt": evil("prompt"), "color": evil("color"), "joinedAt": 1, "tmuxPaneId": "",
			"cwd": s.project, "subscriptions": []string{}}
	}
	s.write(filepath.Join(s.home.Claude, "teams", "lively", "config.json"),
		string(marshal(map[string]any{"name": "lively", "description": evil("goal"), "createdAt": 1,
			"leadAgentId": "team-lead@lively", "leadSessionId": "s",
			"members": []any{member("team-lead"), member("alice"), member("yan"),
				member(evil("stranger"))}})))
	s.write(filepath.Join(s.home.Claude, "teams", "lively", "inboxes", "alice.json"),
		string(marshal([]any{map[string]any{"from": evil("sender"), "text": evil("text"),
			"timestamp": "2026-01-01T00:00:00Z", "read": false}})))
	s.write(filepath.Join(s.home.Claude, "tasks", "lively", "1.json"),
		string(marshal(map[string]any{"id": "1", "subject": evil("subject"), "description": evil("description"),
			"status": "pending", "blocks": []string{}, "blockedBy": []string{}})))
}
