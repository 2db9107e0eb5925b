package claude

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/mcpserver"
	"cadre/internal/sys/proc"
)

// session is one running program. One goroutine, read, reads its lines and is the only one that
// sends updates.
type session struct {
	spec    agent.Spec
	id      string
	child   *proc.Child
	stderr  proc.Capture
	updates chan agent.Update
	tools   *mcpserver.Pipe

	ctx     context.Context // done when the program has ended
	end     context.CancelFunc
	serving sync.WaitGroup // requests of the program in progress

	listed chan struct{} // closed once the program has asked for the team's tools
	once   sync.Once

	plan, words string // the agent's last plan and text; owned by the reader

	writing sync.Mutex // held while a line is written

	mu       sync.Mutex
	working  bool                  // a turn is running
	stopping bool                  // the turn was asked to end
	given    map[string]string     // prompts that were written and not yet received: uuid → id
	waiting  map[string]chan error // requests of ours, by id
	open     map[string]bool       // requests of the program without an answer
	// the working directory of the program's shell when the gate was asked about a tool, by the
	// call's id
	dirs   map[string]string
	last   int // number of our last request
	access agent.Access
}

func newSession(spec agent.Spec, id string) *session {
	s := &session{spec: spec, id: id, updates: make(chan agent.Update, 64), given: map[string]string{},
		waiting: map[string]chan error{}, open: map[string]bool{}, dirs: map[string]string{},
		listed: make(chan struct{}), access: spec.Access}
	s.ctx, s.end = context.WithCancel(context.Background())
	return s
}

func (s *session) Updates() <-chan agent.Update { return s.updates }

// launch starts the program and its reader.
func (s *session) launch(args []string) error {
	child, err := s.spec.Procs.Start(proc.Cmd{Args: args, Dir: s.spec.Dir, Env: environment(s.spec), StdinPipe: true,
		StdoutPipe: true, Stderr: &s.stderr, Member: s.spec.Member})
	if err != nil {
		s.end()
		return &agent.Problem{Kind: agent.ProblemMissing, Text: err.Error()}
	}
	s.child = child
	if s.spec.Tools != nil {
		s.tools = mcpserver.NewPipe(s.spec.Tools, mcpserver.Options{Name: agent.ToolServerName})
	}
	go s.read()
	return nil
}

// begin waits until the program is ready. If it fails, no process is left.
func (s *session) begin(ctx context.Context, started agent.Started) error {
	err := s.request(ctx, map[string]any{"subtype": "initialize",
		"hooks": map[string]any{"PreToolUse": []any{
			map[string]any{"matcher": "", "hookCallbackIds": []string{gateHook}}}},
		"sdkMcpServers": []string{agent.ToolServerName}, "appendSystemPrompt": s.spec.Instructions})
	if err == nil {
		select { // otherwise the first turn may start without the team's tools
		case <-s.listed:
		case <-s.ctx.Done():
			err = errEnded
		case <-time.After(toolsTimeout):
		}
	}
	if err == nil {
		s.updates <- started
		return nil
	}
	s.stop()
	s.child.Stop(ctx, proc.Ladder{Stdin: time.Second, Term: time.Second})
	for range s.updates {
	}
	ended, exit := errors.Is(err, errEnded), proc.Exit{}
	if ended {
		exit, _ = s.child.Wait(ctx)
		err = errors.New("claude ended at its start: " + exit.String())
	}
	words := strings.TrimSpace(s.stderr.String())
	if words == "" {
		words = err.Error()
	}
	kind := agent.KindOf(0, words)
	if kind == agent.ProblemModel && ended {
		if exit.Signal != 0 { // it was killed
			return err
		}
		kind = agent.ProblemMissing // it does not work here
	}
	return &agent.Problem{Kind: kind, Text: agent.Tail(words)}
}

const gateHook = "gate"

// toolsTimeout bounds the wait for the program to ask for the team's tools. If it asks later, it
// gets them later.
const toolsTimeout = 10 * time.Second

func (s *session) stop() {
	s.mu.Lock()
	s.stopping = true
	s.mu.Unlock()
}

// read reads the program's lines until it ends.
func (s *session) read() {
	d := &decoder{}
	in := bufio.NewReaderSize(s.child.Stdout, 1<<16)
	for {
		data, err := in.ReadBytes('\n')
		if len(data) > 0 {
			for _, said := range d.decode(data) {
				s.take(said)
			}
		}
		if err != nil {
			break
		}
	}
	lost := agent.AwaitEnd(s.child, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.stopping
	})
	exit, err := s.child.Wait(context.Background())
	s.child.Stdout.Close()
	s.end()
	s.mu.Lock()
	for id, answer := range s.waiting {
		answer <- errEnded
		delete(s.waiting, id)
	}
	stopping := s.stopping
	s.mu.Unlock()
	if s.tools != nil {
		s.tools.Close()
	}
	s.serving.Wait()
	if stopping {
		err = nil
	} else if err == nil {
		err = agent.Died("claude", lost, exit, s.stderr.String())
	}
	s.updates <- agent.Ended{Err: err}
	close(s.updates)
}

// take handles one content of a line.
func (s *session) take(said any) {
	switch said := said.(type) {
	case working:
		s.mu.Lock()
		began := !s.working
		s.working = true
		s.mu.Unlock()
		if began {
			s.updates <- agent.TurnStarted{}
		}
	case receipt:
		s.mu.Lock()
		id, ok := s.given[said.uuid]
		delete(s.given, said.uuid)
		s.mu.Unlock()
		if ok {
			s.updates <- agent.Received{ID: id}
		}
	case asked:
		s.asked(said)
	case withdrawn:
		s.mu.Lock()
		delete(s.open, said.id)
		s.mu.Unlock()
	case answered:
		s.mu.Lock()
		answer := s.waiting[said.id]
		delete(s.waiting, said.id)
		s.mu.Unlock()
		if answer != nil {
			var err error
			if said.error != "" {
				err = errors.New(said.error)
			}
			answer <- err
		}
	case agent.Text:
		s.words = said.Text
		s.updates <- said
	case agent.ToolStarted:
		if said.Tool == exitPlan {
			s.plan = planIn(json.RawMessage(said.Input))
		}
		s.updates <- said
	case agent.TurnEnded:
		s.mu.Lock()
		s.working = false
		said.Continues = said.Interrupted && len(s.given) > 0 // a prompt that was not taken starts a turn
		clear(s.dirs)
		s.mu.Unlock()
		s.updates <- said
	case agent.Update:
		s.updates <- said
	}
}

// asked handles a request of the program.
func (s *session) asked(a asked) {
	s.mu.Lock()
	s.open[a.id] = true
	s.mu.Unlock()
	r := a.request
	switch r.Subtype {
	case "mcp_message":
		s.serving.Go(func() { s.answer(a.id, map[string]any{"mcp_response": s.serve(r.Message)}) })
	case "hook_callback":
		s.answer(a.id, s.gate(r.Input, r.ToolUseID))
	case "can_use_tool":
		s.permission(a.id, r)
	default:
		s.write(map[string]any{"type": "control_response", "response": map[string]any{"subtype": "error",
			"request_id": a.id, "error": "cadre does not know " + r.Subtype}})
	}
}

// serve answers a message to the server of the team's tools.
func (s *session) serve(message json.RawMessage) json.RawMessage {
	none := json.RawMessage(`{"jsonrpc":"2.0","id":0,"result":{}}`) // the program expects an answer to notifications too
	if s.tools == nil {
		return none
	}
	answer, err := s.tools.Handle(s.ctx, message)
	var asked struct{ Method string }
	if json.Unmarshal(message, &asked) == nil && asked.Method == "tools/list" {
		s.once.Do(func() { close(s.listed) })
	}
	if err != nil || answer == nil {
		return none
	}
	return answer
}

// gate handles the hook that the program calls before every tool.
func (s *session) gate(input json.RawMessage, id string) map[string]any {
	var call struct {
		Tool  string          `json:"tool_name"`
		Input json.RawMessage `json:"tool_input"`
		Dir   string          `json:"cwd"`
	}
	if json.Unmarshal(input, &call) != nil || s.spec.Gate == nil {
		return map[string]any{}
	}
	s.mu.Lock()
	s.dirs[id] = call.Dir
	s.mu.Unlock()
	decide := func(word, why string) map[string]any {
		return map[string]any{"hookSpecificOutput": map[string]any{"hookEventName": "PreToolUse",
			"permissionDecision": word, "permissionDecisionReason": why}}
	}
	name, in := toolName(call.Tool), s.inputOf(call.Tool, call.Input, id)
	switch err := s.spec.Gate(name, in); {
	case err != nil && !s.writesPlan(call.Input):
		return decide("deny", err.Error())
	case err == nil && s.spec.Reads != nil && s.spec.Reads(name,
		in): // its plan mode would not run an agent, nor most commands
		return decide("allow", "it only reads")
	}
	return map[string]any{}
}

// inputOf returns the input of a call. For a shell, it adds the working directory if that is not
// the session's folder: the shell stays where it changed to.
func (s *session) inputOf(tool string, input json.RawMessage, id string) string {
	s.mu.Lock()
	dir := s.dirs[id]
	s.mu.Unlock()
	fields := map[string]json.RawMessage{}
	if tool != "Bash" || dir == "" || dir == s.spec.Dir || json.Unmarshal(input, &fields) != nil {
		return string(input)
	}
	fields["cwd"], _ = json.Marshal(dir)
	text, err := json.Marshal(fields)
	if err != nil {
		return string(input)
	}
	return string(text)
}

// writesPlan reports whether a tool writes the program's own plan file, which is not part of the
// project.
func (s *session) writesPlan(input json.RawMessage) bool {
	var in struct {
		Path string `json:"file_path"`
	}
	if json.Unmarshal(input, &in) != nil || !filepath.IsAbs(in.Path) {
		return false
	}
	rest, err := filepath.Rel(filepath.Join(Folder(environment(s.spec)), "plans"), filepath.Clean(in.Path))
	return err == nil && filepath.IsLocal(rest) && rest != "."
}

const exitPlan = "ExitPlanMode"

func planIn(input json.RawMessage) string {
	var in struct {
		Plan string `json:"plan"`
	}
	json.Unmarshal(input, &in)
	return in.Plan
}

func (s *session) permission(id string, r request) {
	allow := func() { s.answer(id, map[string]any{"behavior": "allow", "updatedInput": r.Input}) }
	deny := func(why string) {
		if why == "" {
			why = "It was not allowed."
		}
		s.answer(id, map[string]any{"behavior": "deny", "message": why})
	}
	switch r.ToolName {
	case "AskUserQuestion":
		deny(agent.NoPerson)
	case "EnterPlanMode":
		allow()
	case exitPlan:
		// The plan is in the request if the model wrote it into its plan file, or in the call if
		// the model passed it there. Otherwise it is the model's last text.
		plan := planIn(r.Input)
		for _, other := range []string{s.plan, s.words} {
			if plan == "" {
				plan = other
			}
		}
		s.updates <- agent.PlanProposed{Plan: plan, Answer: func(approved bool, feedback string) {
			if !approved {
				deny("The plan is rejected. " + feedback)
				return
			}
			allow()
			s.mu.Lock()
			s.access.Writes = true
			wanted := s.access
			s.mu.Unlock()
			go func() {
				ctx, cancel := context.WithTimeout(s.ctx, startTimeout)
				defer cancel()
				s.SetAccess(ctx, wanted)
			}()
		}}
	default:
		s.updates <- agent.PermissionAsked{Tool: toolName(r.ToolName), Input: s.inputOf(r.ToolName, r.Input,
			r.ToolUseID), Ruled: r.Reason == "rule", Answer: func(allowed bool, reason string) {
			if allowed {
				allow()
			} else {
				deny(reason)
			}
		}}
	}
}

// answer answers a request of the program, unless it was withdrawn.
func (s *session) answer(id string, response any) {
	s.mu.Lock()
	open := s.open[id]
	delete(s.open, id)
	s.mu.Unlock()
	if open {
		s.write(map[string]any{"type": "control_response", "response": map[string]any{"subtype": "success",
			"request_id": id, "response": response}})
	}
}

// request sends a request to the program and waits for its answer.
func (s *session) request(ctx context.Context, body map[string]any) error {
	answer := make(chan error, 1)
	s.mu.Lock()
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		return errEnded
	}
	s.last++
	id := "cadre-" + strconv.Itoa(s.last)
	s.waiting[id] = answer
	s.mu.Unlock()
	if err := s.write(map[string]any{"type": "control_request", "request_id": id, "request": body}); err != nil {
		err = errors.Join(errEnded, err)
		s.mu.Lock()
		delete(s.waiting, id)
		s.mu.Unlock()
		return err
	}
	select {
	case err := <-answer:
		return err
	case <-ctx.Done():
		s.mu.Lock()
		delete(s.waiting, id)
		s.mu.Unlock()
		return fmt.Errorf("claude does not answer %v: %w", body["subtype"], ctx.Err())
	}
}

// write writes one line. The end of the program, or of its standard input, aborts a waiting write.
func (s *session) write(v any) error {
	line, err := json.Marshal(v)
	if err != nil {
		return err
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	_, err = s.child.Stdin.Write(append(line, '\n'))
	if errors.Is(err, io.ErrClosedPipe) {
		err = errEnded
	}
	return err
}

// Give writes a prompt. By itself, the program would finish a command before it takes an urgent
// prompt, so the turn is interrupted first. After that, the prompt cannot become part of the
// interrupted turn.
func (s *session) Give(ctx context.Context, p agent.Prompt) error {
	uuid := newUUID()
	line := map[string]any{"type": "user", "message": map[string]any{"role": "user", "content": p.Text},
		"parent_tool_use_id": nil, "session_id": s.id, "uuid": uuid}
	s.mu.Lock()
	if s.stopping || s.ctx.Err() != nil {
		s.mu.Unlock()
		return errEnded
	}
	interrupts := p.Urgent && s.working
	switch {
	case interrupts:
		line["priority"] = "now" // before other waiting prompts, and before what started at the interrupt
	case s.working:
		line["priority"] = "next"
	}
	s.given[uuid] = p.ID
	s.mu.Unlock()
	var err error
	if interrupts {
		err = s.Interrupt(ctx)
	}
	if err == nil {
		err = s.write(line)
	}
	if err != nil {
		s.mu.Lock()
		delete(s.given, uuid)
		s.mu.Unlock()
		return err
	}
	return nil
}

// SetAccess changes the program's mode. The program refuses to skip permissions unless it was
// started with that possibility.
func (s *session) SetAccess(ctx context.Context, a agent.Access) error {
	if mode(a) == bypass && s.spec.Access.Mode != bypass {
		return agent.ErrNewSession
	}
	s.mu.Lock()
	s.access = a
	s.mu.Unlock()
	return s.request(ctx, map[string]any{"subtype": "set_permission_mode", "mode": mode(a)})
}

func (s *session) Interrupt(ctx context.Context) error {
	return s.request(ctx, map[string]any{"subtype": "interrupt"})
}

func (s *session) Stop(ctx context.Context) error {
	s.stop()
	s.withdraw(ctx)
	s.mu.Lock()
	working := s.working
	s.mu.Unlock()
	if working {
		s.Interrupt(ctx) // otherwise the end of its input would wait for the turn
	}
	return s.child.Stop(ctx, proc.Ladder{Stdin: 5 * time.Second, Term: time.Second})
}

// withdraw takes back prompts that the program has not sent to its model yet. Otherwise they would
// become the next turn of an ending session.
func (s *session) withdraw(ctx context.Context) {
	s.mu.Lock()
	waiting := slices.Collect(maps.Keys(s.given))
	s.mu.Unlock()
	for _, uuid := range waiting {
		s.request(ctx, map[string]any{"subtype": "cancel_async_message", "message_uuid": uuid})
	}
}
