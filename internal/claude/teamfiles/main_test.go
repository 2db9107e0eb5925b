package teamfiles

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/claude/projection"
	"cadre/internal/testkit/soak"
)

// asProcess makes the test binary a child process. Its value selects what the child does.
const asProcess = "CADRE_NATIVE_TEST"

var processes = map[string]func(t *Team, name string, count int) error{
	"send": func(t *Team, name string, count int) error {
		for n := range count {
			if err := t.Send(context.Background(), Lead,
				Entry{From: name, Text: fmt.Sprint(name, " ", n)}); err != nil {
				return err
			}
		}
		return nil
	},
	"take": func(t *Team, _ string, count int) error { // takes entries until it has had all of them
		for got := 0; got < count; {
			waiting, err := t.Waiting(context.Background(), Lead)
			if err != nil {
				return err
			}
			for _, e := range waiting {
				fmt.Println(e.Text)
				if err := t.MarkDelivered(context.Background(), Lead, e.Key()); err != nil {
					return err
				}
				got++
			}
		}
		return nil
	},
	"create": func(t *Team, name string, count int) error {
		for n := range count {
			id, err := t.CreateTask(context.Background(), Task{Subject: fmt.Sprint(name, " ", n), Status: "pending"})
			if err != nil {
				return err
			}
			fmt.Println(id)
		}
		return nil
	},
	"claim": func(t *Team, name string, count int) error {
		for n := range count {
			err := t.ChangeTask(context.Background(), strconv.Itoa(n+1), func(task *Task) error {
				if task.Owner != "" {
					return ErrChanged
				}
				task.Owner, task.Status = name, "in_progress"
				return nil
			})
			if err == nil {
				fmt.Println(n + 1)
			}
		}
		return nil
	},
	"hold": func(t *Team, _ string, _ int) error { // holds the lock of the lead's inbox for ever
		if _, err := lockFile(context.Background(), t.inbox(Lead)); err != nil {
			return err
		}
		fmt.Println("held")
		select {}
	},
}

func TestMain(m *testing.M) {
	if what := os.Getenv(asProcess); what != "" {
		count, _ := strconv.Atoi(os.Args[4])
		t, err := Open(os.Args[1], os.Args[2])
		if err == nil {
			err = processes[what](t, os.Args[3], count)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	soak.Beside(16)
	goleak.VerifyTestMain(m)
}

// process returns a command for a child that does what on the team in that folder.
func process(ctx context.Context, what, claude, name string, count int) *exec.Cmd {
	c := exec.CommandContext(ctx, os.Args[0], claude, "demo", name, strconv.Itoa(count))
	c.Env = append(os.Environ(), asProcess+"="+what)
	return c
}

// newTeam creates a team with these members besides the lead, and returns it with its Claude Code
// folder.
func newTeam(t testing.TB, members ...string) (*Team, string) {
	t.Helper()
	claude := filepath.Join(t.TempDir(), "claude")
	c := projection.Config{Name: "demo", CreatedAt: 1, LeadAgentID: Lead + "@demo", LeadSessionID: "s",
		Members: []Member{{AgentID: Lead + "@demo", Name: Lead, AgentType: Lead, Subscriptions: []string{}}}}
	for _, name := range members {
		c.Members = append(c.Members, Member{AgentID: name + "@demo", Name: name, AgentType: "general-purpose",
			Subscriptions: []string{}})
	}
	team, err := Found(claude, c)
	if err != nil {
		t.Fatal(err)
	}
	return team, claude
}

func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}
