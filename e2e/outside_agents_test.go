package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cadre/internal/agent/agenttest"
)

// ofTeammates lists the tools of a teammate.
var ofTeammates = []string{"Broadcast", "NoteList", "NoteRead", "NoteWrite", "PathClaim", "PathRelease",
	"ReadMessages", "RespondToShutdown", "SendMessage", "SubmitPlan", "TaskClaim", "TaskCreate", "TaskGet", "TaskList",
	"TaskUpdate", "TeamSearch", "TeamStatus"}

// TestOutsideTeammate checks a person's own Claude Code as a teammate, with cadre mcp --as among
// its MCP servers. It gets the tools of a teammate, takes a task, reads its mail and completes the
// task.
func TestOutsideTeammate(t *testing.T) {
	t.Parallel()
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		calls := all(r)
		switch {
		case called(calls, "TaskClaim") == 0:
			return use(r, "TaskClaim", map[string]any{"next": true})
		case called(calls, "ReadMessages") == 0:
			return use(r, "ReadMessages", nil)
		case called(calls, "TaskUpdate") == 0:
			return use(r, "TaskUpdate", map[string]any{"taskId": "1", "status": "completed", "result": "looked"})
		case called(calls, "SendMessage") == 0:
			return use(r, "SendMessage", map[string]any{"to": "lead", "message": "I have looked."})
		}
		return agenttest.Say("That is all.")
	}, "claude")
	s.must("create", "out")
	s.must("spawn", "out", "eve", "--agent", "external")
	s.must("task", "add", "out", "Look")
	s.must("send", "out", "--to", "eve", "the port is 4711")
	servers := fmt.Sprintf(
		`{"mcpServers":{"cadre":{"type":"stdio","command":%q,"args":["mcp","--team","out","--as","eve"]}}}`, cadre)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, agenttest.Installed(t, "claude").Path, "-p", "--mcp-config", servers,
		"--allowedTools", "mcp__cadre", "--", "help the team")
	c.Dir, c.Env = s.dir, s.env
	if r := finish(t, c); r.code != 0 || !strings.Contains(r.out, "That is all.") {
		t.Fatalf("exit status %d\n%s%s\n%s", r.code, r.out, r.err, s.model.Story())
	}
	requests := s.model.Requests()
	var offered []string
	for _, name := range requests[0].Tools {
		if name, ok := strings.CutPrefix(name, "mcp__cadre__"); ok {
			offered = append(offered, name)
		}
	}
	if slices.Sort(offered); !slices.Equal(offered, ofTeammates) {
		t.Errorf("the offered tools are %v", offered)
	}
	if n := requests[len(requests)-1].Count("the port is 4711"); n != 1 {
		t.Errorf("it has its mail %d times:\n%s", n, s.model.Story())
	}
	if done := read[struct{ Status, CompletedBy, Result string }](s.world, "task", "show", "out",
		"1"); done.Status != "completed" || done.CompletedBy != "eve" || done.Result != "looked" {
		t.Errorf("the task is %+v", done)
	}
	if mail := s.must("inbox", "out", "lead"); strings.Count(mail, "I have looked.") != 1 {
		t.Errorf("the lead's mail is\n%s", mail)
	}
}

// TestOutsideProgram checks that any MCP client can be the teammate. It cannot use the lead's
// tools. No client can connect as a member that cadre runs, or as an unknown member.
func TestOutsideProgram(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "plain")
	w.must("spawn", "plain", "eve", "--agent", "external")
	w.must("spawn", "plain", "sh", "--agent", "shell")
	w.must("task", "add", "plain", "Look", "--owner", "eve")
	w.refused(w.cadre("mcp", "--team", "plain", "--as", "sh"), 2, "sh is a session of shell that cadre runs",
		"--agent external")
	w.refused(w.cadre("mcp", "--team", "plain", "--as", "zoe"), 2, `no member named "zoe"`)
	w.refused(w.cadre("mcp", "--team", "nowhere", "--as", "eve"), 2, "nowhere")
	eve := w.mcp("mcp", "--team", "plain", "--as", "eve")
	var list struct{ Tools []struct{ Name string } }
	eve.ask("tools/list", map[string]any{}, &list)
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	if slices.Sort(names); !slices.Equal(names, ofTeammates) {
		t.Errorf("the offered tools are %v", names)
	}
	w.must("send", "plain", "--to", "eve", "the port is 4711")
	for _, step := range []struct {
		tool   string
		input  map[string]any
		failed bool
		words  string
	}{
		{"TaskClaim", map[string]any{"next": true}, false, "the port is 4711"}, // mail comes with any call
		{"SpawnTeammate", map[string]any{"name": "tim", "prompt": "work"}, true, "SpawnTeammate is for the lead " +
			"alone. Ask lead for it with SendMessage."},
		{"CleanupTeam", map[string]any{"force": true}, true, "for the lead alone"},
		{"RespondToPermission", map[string]any{"requestId": "x", "allow": true}, true, "for the lead alone"},
		{"ReadMessages", nil, false, "No new messages."},
		{"TaskUpdate", map[string]any{"taskId": "1", "status": "completed", "result": "looked"}, false,
			"Task #1 completed"},
	} {
		if text, failed := eve.call(step.tool, step.input); failed != step.failed ||
			!strings.Contains(text, step.words) {
			t.Errorf("%s returns, failed %t: %s", step.tool, failed, text)
		}
	}
	eve.leave()
	if done := read[struct{ CompletedBy string }](w, "task", "show", "plain", "1"); done.CompletedBy != "eve" {
		t.Errorf("the task is %+v", done)
	}
}

// client is a program that speaks MCP with a cadre process.
type client struct {
	t     *testing.T
	stdin io.WriteCloser
	out   *bufio.Scanner
	wait  func() error
	kill  func() error
	last  int
}

// mcp starts the program and initializes the connection.
func (w *world) mcp(args ...string) *client {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 4*patience)
	w.t.Cleanup(cancel)
	c := exec.CommandContext(ctx, cadre, args...)
	c.Dir, c.Env = w.dir, w.env
	stdin, err := c.StdinPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		w.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		w.t.Fatal(err)
	}
	p := &client{t: w.t, stdin: stdin, out: bufio.NewScanner(stdout), wait: c.Wait, kill: c.Process.Kill}
	p.ask("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": filepath.Base(cadre), "version": "1"}}, nil)
	p.say(map[string]any{"jsonrpc": "2.0", "method": "notifications/initialized"})
	return p
}

func (p *client) say(message any) {
	p.t.Helper()
	line, err := json.Marshal(message)
	if err == nil {
		_, err = p.stdin.Write(append(line, '\n'))
	}
	if err != nil {
		p.t.Fatal(err)
	}
}

// ask makes a request and decodes its result.
func (p *client) ask(method string, params, result any) {
	p.t.Helper()
	p.last++
	p.say(map[string]any{"jsonrpc": "2.0", "id": p.last, "method": method, "params": params})
	for p.out.Scan() {
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  json.RawMessage
		}
		if err := json.Unmarshal(p.out.Bytes(), &answer); err != nil || answer.ID != p.last {
			continue // a notification
		}
		if answer.Error != nil {
			p.t.Fatalf("%s: %s", method, answer.Error)
		}
		if result != nil {
			if err := json.Unmarshal(answer.Result, result); err != nil {
				p.t.Fatal(err)
			}
		}
		return
	}
	p.t.Fatalf("%s got no answer: %v", method, p.out.Err())
}

func (p *client) call(tool string, input map[string]any) (text string, failed bool) {
	p.t.Helper()
	var result struct {
		Content []struct{ Text string }
		IsError bool
	}
	if input == nil {
		input = map[string]any{}
	}
	p.ask("tools/call", map[string]any{"name": tool, "arguments": input}, &result)
	for _, c := range result.Content {
		text += c.Text
	}
	return text, result.IsError
}

// leave closes the input, which ends the program.
func (p *client) leave() {
	p.t.Helper()
	p.stdin.Close()
	for p.out.Scan() {
	}
	if err := p.wait(); err != nil {
		p.t.Errorf("the program ended with %v", err)
	}
}

// TestPermissionAtTheTerminal checks that a run at a terminal asks the person for permissions, one
// after the other. y allows a request, and anything else denies it. Requests that are answered
// elsewhere are skipped.
func TestPermissionAtTheTerminal(t *testing.T) {
	t.Parallel()
	s := newStudio(t, func(r *agenttest.Request) agenttest.Turn {
		if id, calls := task(r); id != "" && len(calls) == 0 {
			return shells["claude"]("touch done-" + id)
		}
		return complete(r)
	}, "claude")
	file := s.file("name: ask\nmembers: [{name: ann, agent: claude}]\ntasks: [{id: a}, {id: b, blockedBy: [a]}, {id: " +
		"c, blockedBy: [b]}, {id: d, blockedBy: [c]}]\n")
	screen := s.terminal(cadre, "run", "--plain", "--teammate-mode", "in-process", file)
	question := func(id string) string {
		return `? ann asks to use Bash: {"command":"touch done-` + id + `","description":"wait"} [y/N]`
	}
	for i, answer := range []string{"y", "n", ""} {
		screen.shows(question("abc"[i : i+1]))
		screen.enter(answer)
	}
	screen.shows(question("d"))
	request := ""
	for _, p := range read[struct{ Permissions []struct{ Request string } }](s.world, "status", "ask").Permissions {
		request = p.Request
	}
	s.must("permit", "ask", request)
	screen.shows("? settled meanwhile")
	if code := screen.ended(); code != 0 {
		t.Errorf("exit status %d:\n%s\n%s", code, screen.screen(), s.model.Story())
	}
	for id, want := range map[string]bool{"a": true, "b": false, "c": false, "d": true} {
		if has(s.dir, "done-"+id) != want {
			t.Errorf("the command of task %s: done is %t", id, !want)
		}
	}
	denied := 0
	for _, r := range s.model.Requests() {
		if strings.Contains(r.Results(), "the user denied it") {
			denied++
		}
	}
	if denied != 2 {
		t.Errorf("the model was told of %d denials, want 2:\n%s", denied, s.model.Story())
	}
}
