package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"cadre/pkg/teams"
	teamclient "cadre/pkg/teams/client"
)

// TestServeClient: a program uses the Go client while the server is killed during each of its
// calls. Each call happens once. The sequence of events continues and yields each event once. A
// soak kills the server at each moment of each call.
func TestServeClient(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	forMoments(t, func() *process { return w.serve() }, func(m *mortal, _ int) { w.lifeByClient(m) })
}

// callsOf returns the calls of the life of team demo, from its creation to its end.
func callsOf(ctx context.Context, c *teamclient.Client) []func() error {
	ann := c.As("ann")
	var claim teams.Claim
	return []func() error{
		func() error { _, err := c.CreateTeam(ctx, teamclient.TeamSpec{Name: "demo"}); return err },
		func() error {
			_, err := c.Spawn(ctx, "demo", teamclient.MemberSpec{Name: "ann", Agent: teams.External})
			return err
		},
		func() error { _, err := c.AddTask(ctx, "demo", teamclient.TaskSpec{Subject: "look"}); return err },
		func() (err error) { claim, err = ann.WaitNext(ctx, "demo"); return err },
		func() error {
			_, err := ann.Send(ctx, "demo", teamclient.MessageSpec{To: "lead", Body: "I look at it."})
			return err
		},
		func() error { _, err := ann.CompleteTask(ctx, "demo", claim, "It is broken."); return err },
		func() error {
			_, err := c.AddRule(ctx, "demo", teams.PermissionRule{Rule: "Bash(go test:*)"})
			return err
		},
		func() error { _, err := c.SetDelegate(ctx, "demo", teamclient.Delegation{On: true}); return err },
		func() error { return c.CleanUpTeam(ctx, "demo", teams.RemoveOptions{Force: true}) },
	}
}

// changesOf follows team demo to its end, and returns what the calls changed. It closes last at the
// last change.
func changesOf(ctx context.Context, c *teamclient.Client, last chan<- struct{}) (facts []string, err error) {
	for e, err := range c.Events(ctx, "demo", 0) {
		if err != nil {
			return nil, err
		}
		switch fact := e.Fact.(type) {
		case teams.TeamCreated, teams.MemberSpawned, teams.TaskCreated, teams.TaskClaimed, teams.TaskCompleted,
			teams.RuleAdded:
			facts = append(facts, fmt.Sprintf("%T", fact))
		case teams.DelegateChanged:
			facts = append(facts, fmt.Sprintf("%T", fact))
			close(last)
		case teams.MessageSent:
			if fact.Message.From == "ann" && fact.Message.Type == teams.MessageDirect {
				facts = append(facts, fmt.Sprintf("%T", fact))
			}
		}
	}
	return facts, nil
}

// lifeByClient makes the calls, and follows the team meanwhile.
func (w *world) lifeByClient(m *mortal) {
	t := w.t
	ctx, cancel := context.WithTimeout(t.Context(), 4*patience)
	defer cancel()
	c, err := teamclient.Open(teamclient.Options{Home: w.home})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var facts []string
	last, followed := make(chan struct{}), make(chan error, 1)
	steps := callsOf(ctx, c)
	for i, step := range steps {
		if err := m.during(step); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if i == 0 {
			go func() {
				var err error
				facts, err = changesOf(ctx, c, last)
				followed <- err
			}()
		}
		if i == len(steps)-2 { // the last events must be read before the team is removed
			select {
			case <-last:
			case err := <-followed:
				t.Fatalf("the sequence ended: %v", err)
			}
		}
	}
	if err := <-followed; err != nil {
		t.Fatal(err)
	}
	want := []string{"teams.TeamCreated", "teams.MemberSpawned", "teams.TaskCreated", "teams.TaskClaimed",
		"teams.MessageSent", "teams.TaskCompleted", "teams.RuleAdded", "teams.DelegateChanged"}
	if !slices.Equal(facts, want) {
		t.Errorf("the client saw\n%v\nnot\n%v", facts, want)
	}
	if _, err := c.State(ctx, "demo"); !errors.Is(err, teams.ErrNotFound) {
		t.Errorf("after the cleanup: %v", err)
	}
}
