package leader_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"testing"
	"time"

	"cadre/internal/journal/store"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/layout"
	"cadre/internal/liveness/leader"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// silent is the session of a process that sends no heartbeats.
const silent = "silent"

// lead runs in the child process. It takes the lock and the lead, and reports that. It hands the
// lead to the user when its input ends or another session takes over.
func lead(root, session string) error {
	ctx := context.Background()
	j, dir, err := layout.Home{Root: root}.Open("demo", nil)
	if err != nil {
		return err
	}
	rep, err := replica.Open(ctx, j, replica.Options{})
	if err != nil {
		return err
	}
	defer rep.Close()
	lock, err := leader.Claim(ctx, filestore.Team(dir))
	if errors.Is(err, store.ErrHeld) {
		fmt.Println("held")
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	l, err := leader.Take(ctx, leader.Options{Replica: rep, Shared: filestore.Team(dir), Session: session,
		Beats: session != silent})
	if err != nil {
		return err
	}
	fmt.Println("leads")
	left := make(chan struct{})
	go func() {
		io.Copy(io.Discard, os.Stdin)
		close(left)
	}()
	select {
	case <-left:
	case <-l.Lost():
		fmt.Println(leader.ErrTakenOver)
	}
	l.Release(ctx)
	return nil
}

// process is a child process that leads or tries to.
type process struct {
	*exec.Cmd
	stdin io.Closer
	says  *bufio.Reader
}

func (p place) start(session string) *process {
	p.t.Helper()
	c := exec.Command(os.Args[0], session)
	c.Env = append(os.Environ(), leadMode+"="+p.home.Root, "GORACE=atexit_sleep_ms=0")
	c.Stderr = os.Stderr
	stdin, err := c.StdinPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	stdout, err := c.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		p.t.Fatal(err)
	}
	timer := time.AfterFunc(patience, func() { c.Process.Kill() }) // ends the read below
	p.t.Cleanup(func() { timer.Stop(); c.Process.Kill(); c.Wait() })
	return &process{c, stdin, bufio.NewReader(stdout)}
}

func (q *process) said(t *testing.T) string {
	t.Helper()
	line, err := q.says.ReadString('\n')
	if err != nil {
		t.Fatalf("it says %q: %v", line, err)
	}
	return line
}

// TestOneProcessLeads checks that exactly one of many processes leads while it is alive. When it is
// killed, the next one takes the lead at once and on record.
func TestOneProcessLeads(t *testing.T) {
	t.Parallel()
	p := newPlace(t, often)
	rep := p.replica()
	if p.shared().Held(t.Context(), store.Lead) {
		t.Error("a lead is alive before there is one")
	}
	last := ""
	for round := range 2 {
		var all []*process
		for i := range 4 {
			all = append(all, p.start(fmt.Sprintf("s%d%d", round, i)))
		}
		var leads *process
		for _, q := range all {
			switch said := q.said(t); said {
			case "leads\n":
				if leads != nil {
					t.Fatal("two processes lead")
				}
				leads = q
			case "held\n":
			default:
				t.Fatalf("it says %q", said)
			}
		}
		if leads == nil {
			t.Fatal("no process leads")
		}
		session := leads.Args[1]
		p.until(rep, "it is on record", func(now team.Team) bool { return now.LeadSession == session })
		if on := p.attached(rep); !p.shared().Held(t.Context(), store.Lead) || on[len(on)-1] != session+"<"+last {
			t.Errorf("it is alive: %t; recorded: %v", p.shared().Held(t.Context(), store.Lead), on)
		}
		if _, err := leader.Claim(t.Context(), p.shared()); !errors.Is(err, store.ErrHeld) {
			t.Errorf("the lock of a living process can be had: %v", err)
		}
		if err := leads.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		leads.Wait()
		if p.shared().Held(t.Context(), store.Lead) {
			t.Error("a killed lead is alive")
		}
		last = session
	}
	q := p.start("last")
	if said := q.said(t); said != "leads\n" {
		t.Fatalf("after the dead it says %q", said)
	}
	q.stdin.Close()
	if err := q.Wait(); err != nil {
		t.Fatal(err)
	}
	p.until(rep, "the user leads", func(now team.Team) bool { return now.LeadSession == team.User })
	if on := p.attached(rep); !slices.Equal(on[2:], []string{"last<" + last, team.User + "<"}) ||
		p.shared().Held(t.Context(), store.Lead) {
		t.Errorf("it is alive: %t; recorded: %v", p.shared().Held(t.Context(), store.Lead), on)
	}
}

// TestTakenFromARunningProcess checks that the user can take the lead from a running process, which
// is notified and releases the lock.
func TestTakenFromARunningProcess(t *testing.T) {
	t.Parallel()
	p := newPlace(t, often)
	rep := p.replica()
	q := p.start("old")
	if said := q.said(t); said != "leads\n" {
		t.Fatalf("it says %q", said)
	}
	if err := rep.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	l, err := leader.Take(t.Context(), leader.Options{Replica: rep, Shared: p.shared(), Session: "new",
		TakeOver: true, Beats: true})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if said := q.said(t); said != leader.ErrTakenOver.Error()+"\n" {
		t.Errorf("it says %q", said)
	}
	if err := q.Wait(); err != nil {
		t.Fatal(err)
	}
	lock, err := leader.Claim(t.Context(), p.shared())
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Release()
	if !p.shared().Held(t.Context(), store.Lead) {
		t.Error("who has the lock does not live")
	}
	if on := p.attached(rep); !slices.Equal(on, []string{"old<", "new<old"}) || rep.Team().LeadSession != "new" {
		t.Errorf("%s leads; recorded: %v", rep.Team().LeadSession, on)
	}
	// The old process may have been writing its last heartbeat.
	eventually(t, "the new lead gives heartbeats", func() bool {
		b, there := p.sign()
		return there &&
			b.Session == "new"
	})
}

// TestDiedBeforeItsFirstHeartbeat kills a process after it took the lead and before its first
// heartbeat. It must count as dead as well.
func TestDiedBeforeItsFirstHeartbeat(t *testing.T) {
	t.Parallel()
	p := newPlace(t, often)
	q := p.start(silent)
	if said := q.said(t); said != "leads\n" {
		t.Fatalf("it says %q", said)
	}
	if err := q.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	q.Wait()
	if said := p.start("next").said(t); said != "leads\n" {
		t.Errorf("after the dead it says %q", said)
	}
}
