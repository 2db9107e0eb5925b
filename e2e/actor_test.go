package e2e

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func init() { helpers["actor"] = play }

// actor is an agent without a model, in a process of its own. It speaks the Agent Client Protocol
// and keeps the history of its sessions in a folder, from which it can resume them. It tells a
// colleague of each task, and completes the task. It is faster than any real agent, so tests can
// kill it often.
type actor struct {
	dir        string
	colleagues []string
	out        *json.Encoder
	session    string
	tools      *actorTools
	calls      int
}

// play runs the actor. Its arguments are the folder of its histories and the names of its
// colleagues.
func play(args []string) error {
	if len(args) < 2 {
		return errors.New("an actor needs a folder and colleagues")
	}
	a := &actor{dir: args[0], colleagues: args[1:], out: json.NewEncoder(os.Stdout)}
	a.out.SetEscapeHTML(false)
	if err := os.MkdirAll(a.dir, 0o700); err != nil {
		return err
	}
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 16<<20)
	for in.Scan() {
		var request struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				SessionID  string `json:"sessionId"`
				McpServers []struct {
					Command string
					Args    []string
				} `json:"mcpServers"`
				Prompt []struct{ Text string } `json:"prompt"`
			} `json:"params"`
		}
		if err := json.Unmarshal(in.Bytes(), &request); err != nil {
			return err
		}
		if len(request.ID) == 0 { // a cancellation: its turns are short
			continue
		}
		answer := map[string]any{"jsonrpc": "2.0", "id": request.ID}
		var err error
		p := request.Params
		switch request.Method {
		case "initialize":
			answer["result"] = map[string]any{"protocolVersion": 1, "agentCapabilities": map[string]any{
				"loadSession": true}}
		case "session/new", "session/load":
			if len(p.McpServers) != 1 {
				return errors.New("an actor needs the tools of its team")
			}
			if a.tools, err = startTools(p.McpServers[0].Command, p.McpServers[0].Args); err != nil {
				return err
			}
			if a.session = p.SessionID; request.Method == "session/load" {
				err = a.replay()
			} else {
				a.session = rand.Text()
				err = a.keep("user", "")
			}
			answer["result"] = map[string]any{"sessionId": a.session}
		case "session/prompt":
			var text []string
			for _, part := range p.Prompt {
				text = append(text, part.Text)
			}
			err = a.turn(strings.Join(text, "\n"))
			answer["result"] = map[string]any{"stopReason": "end_turn"}
		default:
			answer["error"] = map[string]any{"code": -32601, "message": "no such method"}
		}
		if err != nil {
			return err
		}
		if err := a.out.Encode(answer); err != nil {
			return err
		}
	}
	return in.Err()
}

// heard is one entry in the history of a session: a message and its sender, or a tool result.
type heard struct{ By, Text string }

func (a *actor) keep(by, text string) error {
	f, err := os.OpenFile(filepath.Join(a.dir, a.session+".jsonl"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	line, err := json.Marshal(heard{by, text})
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}

// histories returns everything that sessions with that folder have heard.
func histories(dir string) (all []heard, err error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		return nil, err
	}
	for _, path := range files {
		more, err := history(path)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

func history(path string) (all []heard, err error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		var h heard
		if err := json.Unmarshal([]byte(line), &h); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		all = append(all, h)
	}
	return all, nil
}

func (a *actor) replay() error {
	all, err := history(filepath.Join(a.dir, a.session+".jsonl"))
	if err != nil {
		return err
	}
	for _, h := range all {
		update := chunk("user_message_chunk", h.Text)
		if h.By == "tool" {
			update = a.used("tool", h.Text)
		}
		if err := a.say(update); err != nil {
			return err
		}
	}
	return nil
}

func chunk(kind, text string) map[string]any {
	return map[string]any{"sessionUpdate": kind, "content": map[string]any{"type": "text", "text": text}}
}

func (a *actor) used(tool, output string) map[string]any {
	a.calls++
	return map[string]any{"sessionUpdate": "tool_call", "toolCallId": fmt.Sprint("call-", a.calls),
		"title": "cadre_" + tool, "kind": "other", "status": "completed",
		"rawInput": map[string]any{"n": a.calls}, "content": []any{map[string]any{"type": "content",
			"content": map[string]any{"type": "text", "text": output}}}}
}

func (a *actor) say(update map[string]any) error {
	return a.out.Encode(map[string]any{"jsonrpc": "2.0", "method": "session/update",
		"params": map[string]any{"sessionId": a.session, "update": update}})
}

func (a *actor) turn(text string) error {
	if err := a.keep("user", text); err != nil {
		return err
	}
	if err := a.say(chunk("agent_message_chunk", "I see.")); err != nil {
		return err
	}
	found := yours.FindAllStringSubmatch(text, -1)
	if found == nil {
		return a.obey(text)
	}
	task := found[len(found)-1][1]
	time.Sleep(20 * time.Millisecond) // the simulated work
	to := a.colleagues[len(text)%len(a.colleagues)]
	if err := a.use("SendMessage", map[string]any{"to": to, "message": "word of task " + task + " " +
		rand.Text()}); err != nil {
		return err
	}
	return a.use("TaskUpdate", map[string]any{"taskId": task, "status": "completed", "result": "done"})
}

func (a *actor) use(tool string, input map[string]any) error {
	output, err := a.tools.call(tool, input)
	if err == nil {
		err = a.keep("tool", output)
	}
	if err == nil {
		err = a.say(a.used(tool, output))
	}
	return err
}

// actorTools are the team's tools, as a program that an agent starts uses them.
type actorTools struct {
	stdin io.Writer
	out   *bufio.Scanner
	last  int
}

func startTools(command string, args []string) (*actorTools, error) {
	c := exec.Command(command, args...)
	c.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, helperMode+"=") })
	stdin, err := c.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := c.Start(); err != nil {
		return nil, err
	}
	t := &actorTools{stdin: stdin, out: bufio.NewScanner(stdout)}
	t.out.Buffer(nil, 16<<20)
	_, err = t.ask("initialize", map[string]any{"protocolVersion": "2025-06-18", "capabilities": map[string]any{},
		"clientInfo": map[string]any{"name": "actor", "version": "1"}})
	if err == nil {
		_, err = stdin.Write([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n"))
	}
	return t, err
}

func (t *actorTools) ask(method string, params any) (json.RawMessage, error) {
	t.last++
	line, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": t.last, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	if _, err := t.stdin.Write(append(line, '\n')); err != nil {
		return nil, err
	}
	for t.out.Scan() {
		var answer struct {
			ID     int
			Result json.RawMessage
			Error  json.RawMessage
		}
		if err := json.Unmarshal(t.out.Bytes(), &answer); err != nil || answer.ID != t.last {
			continue
		}
		if answer.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, answer.Error)
		}
		return answer.Result, nil
	}
	return nil, fmt.Errorf("%s got no answer: %w", method, errors.Join(t.out.Err(), io.ErrUnexpectedEOF))
}

func (t *actorTools) call(tool string, input map[string]any) (text string, err error) {
	raw, err := t.ask("tools/call", map[string]any{"name": tool, "arguments": input})
	if err != nil {
		return "", err
	}
	var result struct{ Content []struct{ Text string } }
	err = json.Unmarshal(raw, &result)
	for _, c := range result.Content {
		text += c.Text
	}
	return text, err
}
