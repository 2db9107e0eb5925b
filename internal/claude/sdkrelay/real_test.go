package sdkrelay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cadre/internal/agent/agenttest"
	"cadre/internal/observe"
	"cadre/internal/observe/present"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// road is the network between the program and the relay, which can be interrupted.
type road struct {
	net.Listener
	to func() string

	mu    sync.Mutex
	cut   bool
	conns []net.Conn
	all   sync.WaitGroup
}

func newRoad(t *testing.T) *road {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &road{Listener: l}
	t.Cleanup(func() { l.Close(); r.down(); r.all.Wait() })
	return r
}

// open allows connections.
func (r *road) open(to func() string) {
	r.to = to
	r.all.Go(func() {
		for {
			conn, err := r.Accept()
			if err != nil {
				return
			}
			r.carry(conn)
		}
	})
}

func (r *road) carry(conn net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cut {
		conn.Close()
		return
	}
	far, err := net.Dial("tcp", r.to())
	if err != nil {
		conn.Close()
		return
	}
	r.conns = append(r.conns, conn, far)
	r.all.Go(func() { io.Copy(conn, far); conn.Close() })
	r.all.Go(func() { io.Copy(far, conn); far.Close() })
}

// down drops all connections at once, without a close, and refuses new ones.
func (r *road) down() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = true
	for _, conn := range r.conns {
		conn.(*net.TCPConn).SetLinger(0)
		conn.Close()
	}
	r.conns = nil
}

func (r *road) up() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = false
}

// consumer uses the program like a person: it sends messages and allows tools.
type consumer struct {
	s     *scene
	allow func(line string) // called before it allows a tool
	heard chan string       // lines with results of turns
	all   []string
}

// use reads the program's output to the end.
func (c *consumer) use() {
	defer close(c.heard)
	for {
		line, err := c.s.out.ReadString('\n')
		if err != nil {
			return
		}
		c.all = append(c.all, line)
		var l struct {
			Type, Subtype string
			RequestID     string `json:"request_id"`
			Request       struct {
				Subtype string
				Input   json.RawMessage
			}
		}
		if json.Unmarshal([]byte(line), &l) != nil {
			continue
		}
		switch {
		case l.Type == "result":
			c.heard <- line
		case l.Type == "control_request" && l.Request.Subtype == "can_use_tool":
			if c.allow != nil {
				c.allow(line)
			}
			fmt.Fprintf(c.s.in,
				`{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":{"behavior":"allow","updatedInput":%s}}}`+"\n", l.RequestID, l.Request.Input)
		}
	}
}

func (c *consumer) ask(n int, prompt string) {
	c.s.say(
		fmt.Sprintf(
			`{"type":"user","message":{"role":"user","content":%q},"parent_tool_use_id":null,"session_id":"","uuid":"00000000-0000-4000-8000-%012d"}`+"\n", prompt, n))
}

// await waits for the end of a turn with these last words.
func (c *consumer) await(words string) {
	c.s.t.Helper()
	for {
		select {
		case line, ok := <-c.heard:
			if !ok {
				c.s.t.Fatalf("the program ended before it said %q", words)
			}
			if strings.Contains(line, words) {
				return
			}
		case <-c.s.ctx.Done():
			c.s.t.Fatalf("the program never said %q", words)
		}
	}
}

// TestClaude relays Claude Code 2.1.47 with a team, and drops the network twice. The first time the
// program waits for a permission, and nothing is lost. The second time it creates a task. That
// event is lost, the loss is noticed, and the task appears with the program's next list.
func TestClaude(t *testing.T) {
	program := agenttest.Installed(t, "claude@2.1.47")
	network := newRoad(t)
	model := agenttest.NewServer(t, func(r *agenttest.Request) agenttest.Turn {
		use := func(tool string, calls int, input map[string]any, then agenttest.Turn) agenttest.Turn {
			if r.Calls(tool) >= calls {
				return then
			}
			return agenttest.Use(tool, input)
		}
		switch {
		case r.Has("you are to be alice"):
			return agenttest.Say("I wait.")
		case r.Has("list them"):
			return use("TaskList", 1, nil, agenttest.Say("They are listed."))
		case r.Has("make one more"):
			if r.Calls("TaskCreate") == 2 {
				turn := agenttest.Use("TaskCreate", map[string]any{"subject": "C", "description": "made in the dark"})
				turn.Wait = func(context.Context) { network.down() }
				return turn
			}
			return agenttest.Say("It is made.")
		case r.Has("use the shell"):
			return use("Bash", 1, map[string]any{"command": "echo hello > by-shell", "description": "greet"},
				agenttest.Say("It was used."))
		}
		return use("TeamCreate", 1, map[string]any{"team_name": "builders"},
			use("TaskCreate", 1, map[string]any{"subject": "A", "description": "the first"},
				use("TaskCreate", 2, map[string]any{"subject": "B", "description": "the second"},
					use("Task", 1, map[string]any{"description": "spawn", "subagent_type": "general-purpose",
						"team_name": "builders", "name": "alice", "prompt": "you are to be alice"},
						agenttest.Say("We are ready.")))))
	})
	world := agenttest.NewWorld(t, model, program)
	o := observe.New(observe.Options{})
	var notices []string
	var tasksAtLoss []int
	now := func() team.Time { return team.Time(time.Now().UnixMilli()) }
	take := func(seen observe.Seen) {
		for _, n := range seen.Notices {
			notices = append(notices, n.Type)
		}
	}
	var lost = make(chan string, 10)
	port := network.Addr().(*net.TCPAddr).Port
	s := play(t, Options{
		// The program connects through the road, with the path of our address.
		Command: []string{"/bin/sh", "-c", fmt.Sprintf(`exec %s --sdk-url "ws://127.0.0.1:%d/${1##*/}"`, program.Path,
			port), "sh", URLWord},
		Dir: world.Dir, Env: append(world.Env, "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS=1",
			"CLAUDE_CODE_ENABLE_TASKS=1"),
		Ladder: proc.Ladder{Term: 5 * time.Second}, Quiet: time.Second,
		See: func(line []byte) { take(o.Line("sdk-url", line, now())) },
		Lost: func(reason string) {
			tasksAtLoss = append(tasksAtLoss, len(o.State().Tasks))
			take(o.Gap("sdk-url", reason, now()))
			lost <- reason
		},
	})
	network.open(func() string { return s.r.listener.Addr().String() })
	again := func() bool { return len(s.notes(&s.words)) > 0 }
	c := &consumer{s: s, heard: make(chan string, 100), allow: func(string) {
		network.down()
		network.up()
		s.await("it is connected again", again)
	}}
	using := make(chan struct{})
	go func() { defer close(using); c.use() }()

	s.say(`{"type":"control_request","request_id":"init-1","request":{"subtype":"initialize"}}` + "\n")
	c.ask(1, "begin a team")
	c.await("We are ready.")
	c.ask(2, "use the shell")
	c.await("It was used.")
	if text, err := os.ReadFile(filepath.Join(world.Dir, "by-shell")); err != nil || string(text) != "hello\n" {
		t.Errorf("%q, %v", text, err)
	}
	if len(lost) > 0 {
		t.Errorf("nothing was lost while it waited for a permission: %s", <-lost)
	}
	c.ask(3, "make one more")
	model.WaitFor(t, "the third task", func(r *agenttest.Request) bool { return r.Calls("TaskCreate") == 3 })
	network.up()
	select {
	case <-lost:
	case <-s.ctx.Done():
		t.Fatal("the loss is not noticed")
	}
	c.ask(4, "list them")
	c.await("They are listed.")
	s.in.Close()
	exit, err := s.end()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("the program: %v", exit)
	s.pipes[3].Close()
	<-using

	state := o.State()
	if state == nil {
		t.Fatal("no team is observed")
	}
	var tasks []string
	for _, task := range state.Tasks {
		tasks = append(tasks, task.Subject)
	}
	if state.Name != "builders" || state.Role != present.RoleLead || !slices.Equal(tasks, []string{"A", "B", "C"}) ||
		len(state.Members) != 1 || state.Members[0].Name != "alice" {
		t.Errorf("observed is %+v", state)
	}
	if !slices.Equal(tasksAtLoss, []int{2}) {
		t.Errorf("tasks when a loss was noticed: %v", tasksAtLoss)
	}
	count := func(kind string) (n int) {
		for _, one := range notices {
			if one == kind {
				n++
			}
		}
		return n
	}
	if count(present.Created) != 1 || count(present.TaskCreated) != 3 || count(present.MemberJoined) != 1 ||
		count(present.Gap) != 1 {
		t.Errorf("notices: %q", notices)
	}
	last := model.Requests()[len(model.Requests())-1]
	for _, prompt := range []string{"begin a team", "use the shell", "make one more", "list them"} {
		if n := last.Count(prompt); n != 1 {
			t.Errorf("the model was told %d times to %s", n, prompt)
		}
	}
}

// TestClaudeRefuses checks the error for versions that accept only Anthropic's addresses.
func TestClaudeRefuses(t *testing.T) {
	for _, name := range []string{"claude", "claude@2.1.197", "claude@2.1.177"} {
		t.Run(name, func(t *testing.T) {
			program := agenttest.Installed(t, name)
			world := agenttest.NewWorld(t, agenttest.NewServer(t, agenttest.Sequence(agenttest.Say("ok"))), program)
			s := play(t, Options{Command: []string{program.Path}, Dir: world.Dir, Env: world.Env})
			_, err := s.end()
			var refused *RefusedError
			if !errors.As(err, &refused) || !strings.Contains(err.Error(), "2.1.47 accepts any") {
				t.Errorf("%v", err)
			}
		})
	}
}
