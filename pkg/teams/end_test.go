package teams_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"cadre/pkg/teams"
)

// ends maps each way in which a team can end to a function that ends it.
var ends = map[string]func(context.Context, *teams.Manager, *teams.Team) error{
	"complete": func(ctx context.Context, m *teams.Manager, team *teams.Team) error {
		return team.Complete(ctx, "")
	},
	"aborted": func(ctx context.Context, m *teams.Manager, team *teams.Team) error {
		return team.Abort(ctx, "enough")
	},
	"cleaned up": func(ctx context.Context, m *teams.Manager, team *teams.Team) error {
		if err := team.Abort(ctx, ""); err != nil {
			return err
		}
		return m.Cleanup(ctx)
	},
}

// TestWaitingEndsWithTheTeam checks that every wait for something in a team returns when the team
// ends.
func TestWaitingEndsWithTheTeam(t *testing.T) {
	waits := map[string]func(context.Context, *teams.Team) error{
		"Mailbox.Wait": func(ctx context.Context, team *teams.Team) error {
			_, err := team.Mail().Wait(ctx)
			return err
		},
		"Mailbox.All": func(ctx context.Context, team *teams.Team) error {
			for _, err := range team.Mail().All(ctx) {
				if err != nil {
					return err
				}
			}
			return errors.New("the wait ended without an error")
		},
		"Team.Events": func(ctx context.Context, team *teams.Team) error {
			var last teams.Fact
			for e, err := range team.EventsAfter(ctx, 0) {
				if err != nil {
					return err
				}
				last = e.Fact
			}
			switch last := last.(type) {
			case teams.TeamCleanedUp, teams.MemberStopped, teams.MemberFailed:
			case teams.TeamStatusChanged:
				if last.Status != "complete" && last.Status != "aborted" {
					return fmt.Errorf("the wait ended with %+v", last)
				}
			default:
				return fmt.Errorf("the wait ended with %T", last)
			}
			return teams.ErrFinished
		},
		"TaskList.WaitNext": func(ctx context.Context, team *teams.Team) error {
			_, err := team.Tasks().WaitNext(ctx)
			return err
		},
	}
	for how, end := range ends {
		t.Run(how, func(t *testing.T) {
			m := manage(t, teams.Options{})
			team := create(t, m, "core")
			results := map[string]chan error{}
			for name, wait := range waits {
				result := make(chan error, 1)
				results[name] = result
				go func() { result <- wait(limited(t), team) }()
			}
			ok(t, end(limited(t), m, team))
			for name, result := range results {
				if err := <-result; !errors.Is(err, teams.ErrFinished) {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

// TestWaitingEndsWithTheMember checks that a member that has ended gets no further mail, and that
// its program learns of the end.
func TestWaitingEndsWithTheMember(t *testing.T) {
	m := manage(t, teams.Options{ShutdownWithin: time.Millisecond})
	team := create(t, m, "core", "ann")
	result := make(chan error, 1)
	box := as(t, team, "ann").Mail()
	go func() {
		var last error
		for _, err := range box.All(limited(t)) {
			last = err
		}
		result <- last
	}()
	ok(t, m.Team().Shutdown(limited(t), "ann"))
	want(t, <-result, teams.ErrFinished)
}

// TestRejectionsPause checks that a worker or a shell pauses after a hook rejects a task or an idle
// notice, instead of retrying at once. A shell takes a rejected task for a failed one.
func TestRejectionsPause(t *testing.T) {
	const rejections = 3
	pauses := []time.Duration{100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond}
	worker := teams.Worker{Task: func(context.Context, *teams.Slot, teams.Job) (string, error) { return "", nil }}
	for _, agent := range []string{"worker", teams.Shell} {
		for _, event := range []teams.HookName{teams.HookTaskCompleted, teams.HookTeammateIdle} {
			if agent == teams.Shell && event == teams.HookTaskCompleted {
				continue
			}
			t.Run(agent+" "+string(event), func(t *testing.T) {
				t.Parallel()
				var mu sync.Mutex
				var asked []time.Time
				passed := make(chan struct{})
				reject := func(context.Context, teams.HookEvent) error {
					mu.Lock()
					defer mu.Unlock()
					if asked = append(asked, time.Now()); len(asked) <= rejections {
						return teams.Reject("not yet")
					}
					if len(asked) == rejections+1 {
						close(passed)
					}
					return nil
				}
				o := teams.Options{Agents: map[string]teams.Agent{"worker": worker}}
				o.Hooks = []teams.Hook{{Event: event, Ask: reject}}
				m := manage(t, o)
				team := create(t, m, "core")
				if event == teams.HookTaskCompleted {
					_, err := team.Tasks().Create(limited(t), teams.TaskConfig{Subject: "look", Run: "true"})
					ok(t, err)
				}
				_, err := m.Team().Spawn(limited(t), teams.MemberConfig{Name: "ann", Agent: agent})
				ok(t, err)
				select {
				case <-passed:
				case <-limited(t).Done():
					t.Fatal("the hook was not asked often enough")
				}
				mu.Lock()
				defer mu.Unlock()
				for i, pause := range pauses {
					if gap := asked[i+1].Sub(asked[i]); gap < pause {
						t.Errorf("after rejection %d the hook was asked again within %s", i+1, gap)
					}
				}
			})
		}
	}
}
