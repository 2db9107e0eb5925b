package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

func init() { helpers["claim"], helpers["send"] = claimAll, sendAll }

// attempt is one claim as its process saw it. All times are from the clock of the machine.
type attempt struct {
	Task     string
	Member   int
	Call, At int64
	Won      bool
}

// claimAll is one of many processes that claim all tasks. It claims by name in its own order, so
// that the processes collide. Then it claims the next task until none is left.
func claimAll(args []string) error {
	member, tasks := args[1], args[2]
	number, _ := strconv.Atoi(strings.TrimPrefix(member, "m"))
	n, _ := strconv.Atoi(tasks)
	rep, err := openDesk(args[0])
	if err != nil {
		return err
	}
	defer rep.Close()
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	claim := func(task string) (won bool, err error) {
		a := attempt{Task: task, Member: number, Call: time.Now().UnixNano()}
		r, err := rep.Do(context.Background(), team.Command{Actor: member, Body: &team.ClaimTask{Task: task}})
		a.At = time.Now().UnixNano()
		switch code := team.CodeOf(err); {
		case err == nil:
			a.Won = true
			a.Task = r.Record.Events[0].(*team.TaskClaimed).Task
		case code == team.Nothing:
			return false, nil
		case code != team.Conflict:
			return false, err
		}
		return a.Won, json.NewEncoder(out).Encode(a)
	}
	for i := range n / 20 {
		if _, err := claim(strconv.Itoa(1 + (i*7+number)%n)); err != nil {
			return err
		}
	}
	for {
		if won, err := claim(""); !won || err != nil {
			return err
		}
	}
}

func openDesk(root string) (*replica.Replica, error) {
	j, _, err := layout.Home{Root: root}.Open("demo", nil)
	if err != nil {
		return nil, err
	}
	return replica.Open(context.Background(), j, replica.Options{})
}

// TestManyProcessesClaimTasks checks that one of many processes wins each task, as if they had
// asked one after the other.
func TestManyProcessesClaimTasks(t *testing.T) {
	processes, tasks := 32, 1000
	if testing.Short() {
		processes, tasks = 8, 200
	}
	w := newWorld(t)
	w.create(processes, tasks)
	attempts := collect[attempt](t, w.helpers(processes, "claim", strconv.Itoa(tasks)))

	winners := map[string]int{}
	var history []porcupine.Operation
	for _, a := range attempts {
		if a.Won {
			winners[a.Task]++
		}
		history = append(history, porcupine.Operation{ClientId: a.Member, Input: a.Task, Output: a.Won, Call: a.Call,
			Return: a.At})
	}
	if len(winners) != tasks {
		t.Errorf("%d of %d tasks were claimed", len(winners), tasks)
	}
	for task, n := range winners {
		if n != 1 {
			t.Errorf("task %s was claimed %d times", task, n)
		}
	}
	t.Logf("%d attempts by %d processes", len(attempts), processes)
	if result := porcupine.CheckOperationsTimeout(claims, history, time.Minute); result != porcupine.Ok {
		t.Errorf("the claims are not linearizable: %v", result)
	}
	if counted := w.count("demo", "task_claimed"); len(counted) != tasks {
		t.Errorf("the history has %d claims", len(counted))
	}
}

// claims is the model: each task is independent. It is free first, and only the claim that takes it
// wins.
var claims = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byTask := map[string][]porcupine.Operation{}
		for _, op := range history {
			byTask[op.Input.(string)] = append(byTask[op.Input.(string)], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range byTask {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() any { return false },
	Step: func(taken, _, won any) (bool, any) { return won.(bool) == !taken.(bool), true },
}

// create creates the team demo with tasks and with members m0, m1, … that have no session.
func (w *world) create(members, tasks int) {
	w.t.Helper()
	now := replica.Now()
	var commands []team.Command
	add := func(body team.Body) {
		commands = append(commands, team.Command{ID: replica.NewID(), Actor: team.User, At: now, Body: body})
	}
	add(&team.CreateTeam{TeamID: "demo-" + strings.ToLower(replica.NewID()), Name: "demo", Dir: w.dir})
	for i := range members {
		add(&team.SpawnMember{Name: fmt.Sprintf("m%d", i), Agent: team.External})
	}
	for i := range tasks {
		add(&team.CreateTask{Subject: fmt.Sprintf("task number %d", i+1)})
	}
	if err := (layout.Home{Root: w.home}).Create("demo", commands); err != nil {
		w.t.Fatal(err)
	}
}

// helpers starts that many processes for the members m0, m1, …. It returns what they printed.
func (w *world) helpers(n int, mode string, args ...string) []string {
	w.t.Helper()
	out := make([]strings.Builder, n)
	running := make([]*exec.Cmd, n)
	for i := range n {
		c := exec.Command(os.Args[0], append([]string{w.home, fmt.Sprintf("m%d", i)}, args...)...)
		c.Env = append(w.env, helperMode+"="+mode)
		c.Stdout, c.Stderr = &out[i], os.Stderr
		if err := c.Start(); err != nil {
			w.t.Fatal(err)
		}
		running[i] = c
		w.t.Cleanup(func() { c.Process.Kill() })
	}
	var said []string
	for i, c := range running {
		if err := c.Wait(); err != nil {
			w.t.Errorf("process %d: %v", i, err)
		}
		said = append(said, out[i].String())
	}
	return said
}

func collect[T any](t *testing.T, outputs []string) (all []T) {
	t.Helper()
	for _, out := range outputs {
		for d := json.NewDecoder(strings.NewReader(out)); d.More(); {
			var one T
			if err := d.Decode(&one); err != nil {
				t.Fatal(err)
			}
			all = append(all, one)
		}
	}
	return all
}

// sendAll is one of many processes that send numbered messages to one member.
func sendAll(args []string) error {
	rep, err := openDesk(args[0])
	if err != nil {
		return err
	}
	defer rep.Close()
	n, _ := strconv.Atoi(args[2])
	for i := range n {
		if _, err := rep.Do(context.Background(), team.Command{Actor: args[1], Body: &team.SendMessage{To: "lead",
			Body: strconv.Itoa(i)}}); err != nil {
			return err
		}
	}
	return nil
}

// TestManyProcessesSendToOneInbox checks that the messages of many processes all arrive once, in
// order, and in the sending order of each sender.
func TestManyProcessesSendToOneInbox(t *testing.T) {
	processes, each := 16, 1000
	if testing.Short() {
		processes, each = 8, 100
	}
	w := newWorld(t)
	w.create(processes, 0)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		w.helpers(processes, "send", strconv.Itoa(each))
	}()

	var got []team.Message
	rep := w.replica("demo")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for len(got) < processes*each {
		mail, seq := receive(t, rep, "lead")
		if got = append(got, mail...); len(mail) > 0 {
			continue // more messages may have come with this command
		}
		if err := rep.Wait(ctx, seq); err != nil {
			t.Fatalf("after %d messages: %v", len(got), err)
		}
	}
	<-sent
	if late, _ := receive(t, rep, "lead"); len(late) > 0 {
		t.Errorf("%d messages more than were sent", len(late))
	}
	next := map[string]int{}
	for i, m := range got {
		if m.Seq != int64(i+1) {
			t.Fatalf("message %d arrived as number %d", m.Seq, i+1)
		}
		if m.Body != strconv.Itoa(next[m.From]) {
			t.Fatalf("got message from %s: %s, want %d", m.From, m.Body, next[m.From])
		}
		next[m.From]++
	}
}

// receive takes the member's mail as a program that uses the replica does. It returns the seq at
// which it looked.
func receive(t *testing.T, rep *replica.Replica, member string) (mail []team.Message, seq int64) {
	t.Helper()
	rep.View(func(s *team.State) { mail, seq = s.Inbox(member), s.Seq() })
	if len(mail) == 0 {
		return nil, seq
	}
	seqs := make([]int64, len(mail))
	for i, m := range mail {
		seqs[i] = m.Seq
	}
	if _, err := rep.Do(t.Context(), team.Command{Actor: member, Body: &team.ReceiveMessages{Seqs: seqs}}); err != nil {
		t.Fatal(err)
	}
	return mail, seq
}
