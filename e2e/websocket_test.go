package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// webSocketExample returns a copy of the example of a client in node, with what it needs.
func webSocketExample(t *testing.T, w *world) string {
	t.Helper()
	for _, program := range []string{"npm", "node"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s does not exist: %v", program, err)
		}
	}
	dir := filepath.Join(w.root, "websocket")
	if err := os.CopyFS(dir, os.DirFS(filepath.Join("..", "examples", "websocket"))); err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), "npm", "ci", "--loglevel", "error", "--prefer-offline", "--fetch-retries",
		"1")
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Skipf("cannot install the package ws: %v\n%s", err, out)
	}
	return dir
}

// serveOn starts the server, and waits until it answers at the address.
func (w *world) serveOn(address string) *process {
	w.t.Helper()
	p := w.start("serve", "--listen", address, "--shutdown", "1s")
	eventually(w.t, "the server answers", func() bool { return strings.Contains(p.said(), "http://"+address) })
	return p
}

// freeAddress returns an address on loopback on which nobody listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// adminToken returns the value of the token that the server made.
func (w *world) adminToken() string {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.home, "server", "tokens", "admin"))
	if err != nil {
		w.t.Fatal(err)
	}
	_, value, _ := strings.Cut(strings.TrimSpace(string(data)), " ")
	return value
}

// dialogue is a program that does a step for each line, and prints what happened.
type dialogue struct {
	in   io.Writer
	out  *bufio.Reader
	said []map[string]any
}

// step lets the program do the next step, and waits until it is done. over is true at the program's
// end.
func (d *dialogue) step() (over bool, err error) {
	fmt.Fprintln(d.in) // an error is the end
	for {
		line, err := d.out.ReadString('\n')
		if err != nil {
			return true, nil
		}
		if line == "done\n" {
			return false, nil
		}
		value := map[string]any{}
		if err := json.Unmarshal([]byte(line), &value); err != nil {
			return false, fmt.Errorf("%w: %s", err, line)
		}
		d.said = append(d.said, value)
	}
}

// TestWebSocketFlow: a client in node takes a team from its creation to its end, while the server
// is killed during each step. It gets each event once and in order, and nothing happens twice. A
// soak kills the server at each moment of each step.
func TestWebSocketFlow(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := webSocketExample(t, w)
	address := freeAddress(t)
	forMoments(t, func() *process { return w.serveOn(address) }, func(m *mortal, _ int) {
		d := w.lifeInNode(m, dir, address)
		checkEvents(t, d.said)
		if !strings.Contains(w.must("serve", "--status"), "process") || strings.Contains(w.must("ls"), "review") {
			t.Errorf("the team is still there: %s", w.must("ls"))
		}
	})
}

// lifeInNode runs the example, with a server that is killed in each step.
func (w *world) lifeInNode(m *mortal, dir, address string) *dialogue {
	t := w.t
	c := exec.CommandContext(t.Context(), "node", "review.js", "ws://"+address+"/ws", "--steps")
	c.Dir, c.Env = dir, append(w.env, "CADRE_TOKEN="+w.adminToken())
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	d := &dialogue{in: in, out: bufio.NewReader(out)}
	var errs bytes.Buffer
	c.Stderr = &errs
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	steps, over := 0, false
	for ; !over; steps++ {
		if err := m.during(func() (err error) { over, err = d.step(); return err }); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Wait(); err != nil {
		t.Fatalf("%v\n%s\n%s", err, &errs, m.said())
	}
	if steps--; steps != 18 { // the last one was the end
		t.Errorf("%d steps were done", steps)
	}
	return d
}

// checkEvents compares what the client got with all events, which it printed too.
func checkEvents(t *testing.T, said []map[string]any) {
	t.Helper()
	i := slices.IndexFunc(said, func(e map[string]any) bool { return e["type"] == "history" })
	if i < 0 {
		t.Fatalf("there is no history in %v", said)
	}
	history := said[i]["events"].([]any)
	if got, want := lines(said[:i]), lines(history); got != want {
		t.Errorf("the client got\n%s\nand all events are\n%s", got, want)
	}
	if after := said[i+1:]; len(after) == 0 || after[len(after)-1]["type"] != "team_cleaned_up" {
		t.Errorf("the last events are %v", after)
	}
	counts := map[string]int{}
	for _, e := range history {
		counts[e.(map[string]any)["type"].(string)]++
	}
	if counts["team_created"] != 1 || counts["teammate_spawned"] != 3 || counts["teammate_shutdown"] != 3 {
		t.Errorf("there are %v", counts)
	}
}

// lines returns the values in JSON, one a line.
func lines[V any](all []V) string {
	var b strings.Builder
	for _, v := range all {
		data, _ := json.Marshal(v)
		b.Write(append(data, '\n'))
	}
	return b.String()
}

// TestWebSocketOfAMember: a process in the session of a member is that member, on the socket and
// with the user's token.
func TestWebSocketOfAMember(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	dir := webSocketExample(t, w)
	address := freeAddress(t)
	w.serveOn(address)
	w.must("create", "work")
	w.must("create", "other")
	w.must("spawn", "work", "sue", "--agent", "shell")
	script := `import WebSocket from "ws";
process.chdir(process.env.SERVER);
const ask = (url, options) => new Promise((resolve, reject) => {
  const s = new WebSocket(url, options), found = {};
  s.on("error", reject);
  const requests = {
    nested: ["create_team", { leadSessionId: "x", name: "nested" }],
    other: ["team_status", { teamId: "other" }],
    server: ["daemon_status", {}],
    health: ["health_check", {}],
    claims: ["team_claim_task", { teamId: "work", taskId: "2", teammateId: "lead" }],
    speaks: ["team_send_message", { teamId: "work", fromId: "lead", toId: "sue", content: "obey" }],
    cleans: ["cleanup_team", { teamId: "work" }],
    spawns: ["spawn_teammate", { teamId: "work", name: "eve", role: "r", prompt: "p", agentType: "shell" }],
    snoops: ["team_list_messages", { teamId: "work", memberId: "lead" }],
    reads: ["team_list_messages", { teamId: "work", memberId: "sue" }],
    own: ["team_status", { teamId: "work" }],
    says: ["team_send_message", { teamId: "work", fromId: "sue", toId: "lead", content: "hello" }],
  };
  s.on("open", () => { for (const [id, [type, payload]] of Object.entries(requests)) s.send(JSON.stringify({ type, id, payload })); });
  s.on("message", (data) => {
    const f = JSON.parse(data);
    if (f.id) found[f.id] = f.type === "error" ? f.payload.code : f.type;
    if (Object.keys(found).length === Object.keys(requests).length) { s.close(); resolve(found); }
  });
});
const token = (await import("node:fs")).readFileSync("tokens/admin", "utf8").trim().split(" ")[1];
console.log(JSON.stringify([await ask("ws+unix:./socket:/ws"), await ask("ws://` + address + `/ws", { headers: { Authorization: "Bearer " + token } })]));
`
	if err := os.WriteFile(filepath.Join(dir, "member.js"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	w.must("task", "add", "work", "ask the server", "--run", fmt.Sprintf("SERVER='%s' node '%s' >'%s' 2>&1",
		filepath.Join(w.home, "server"), filepath.Join(dir, "member.js"), filepath.Join(w.root, "said")))
	w.must("task", "add", "work", "another")
	eventually(t, "the task is done", func() bool {
		return strings.Contains(w.must("task", "show", "work", "1"),
			"completed")
	})
	data, err := os.ReadFile(filepath.Join(w.root, "said"))
	if err != nil {
		t.Fatal(err)
	}
	var found []map[string]string
	if err := json.Unmarshal(data, &found); err != nil {
		t.Fatalf("%v: %s", err, data)
	}
	for i, is := range found {
		for id, want := range map[string]string{"nested": "NESTED_TEAMS_NOT_ALLOWED", "other": "denied",
			"server": "denied", "health": "reply", "claims": "denied", "speaks": "denied", "cleans": "denied",
			"spawns": "denied", "snoops": "denied",
			"reads": "reply", "own": "reply", "says": "reply"} {
			if is[id] != want {
				t.Errorf("connection %d: %s is answered by %s, want %s", i, id, is[id], want)
			}
		}
	}
}
