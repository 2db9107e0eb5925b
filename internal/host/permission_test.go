package host_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"cadre/internal/agent"
	"cadre/internal/host"
	"cadre/internal/journal/memjournal"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// asker is an agent whose sessions ask for one permission at their start and report the answer.
type asker struct{ answers chan string }

func (a asker) Start(context.Context, agent.Spec, agent.Team) (agent.Session, error) {
	s := &askerSession{updates: make(chan agent.Update), stop: make(chan struct{})}
	go func() {
		defer close(s.updates)
		s.updates <- agent.Started{}
		s.updates <- agent.PermissionAsked{Tool: "Bash", Input: `{"command":"make"}`,
			Answer: func(allow bool, reason string) {
				if allow {
					a.answers <- "allowed"
				} else {
					a.answers <- "denied: " + reason
				}
			}}
		<-s.stop
		s.updates <- agent.Ended{}
	}()
	return s, nil
}

type askerSession struct {
	updates chan agent.Update
	stop    chan struct{}
}

func (s *askerSession) Give(context.Context, agent.Prompt) error      { return nil }
func (s *askerSession) SetAccess(context.Context, agent.Access) error { return nil }
func (s *askerSession) Interrupt(context.Context) error               { return nil }
func (s *askerSession) Stop(context.Context) error                    { close(s.stop); return nil }
func (s *askerSession) Updates() <-chan agent.Update                  { return s.updates }

func TestPermissionOfASession(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		answer team.Body // nil ends the host instead
		want   string
	}{
		{"allowed", &team.AnswerPermission{Request: "permission-1@ann", Allow: true}, "allowed"},
		{"denied", &team.AnswerPermission{Request: "permission-1@ann", Reason: "not now"}, "denied: not now"},
		{"allowed by a rule", &team.AddRule{Rule: "Bash(make)", Member: "ann"}, "allowed"},
		{"the host ends", nil, "denied: the session is ending"},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			rep, err := replica.Open(ctx, memjournal.New("team").Open(), replica.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer rep.Close()
			do := func(body team.Body) {
				t.Helper()
				if _, err := rep.Do(ctx, team.Command{Actor: team.User, Body: body}); err != nil {
					t.Fatal(err)
				}
			}
			do(&team.CreateTeam{TeamID: "t-1", Name: "t", Dir: "/"})
			do(&team.SpawnMember{Name: "ann", Agent: "asker"})

			hosts := filepath.Join(t.TempDir(), "hosts")
			procs, _, err := host.Enroll(t.Context(), filestore.Team(filepath.Dir(hosts)), hosts, "h1")
			if err != nil {
				t.Fatal(err)
			}
			agent := asker{answers: make(chan string, 1)}
			hosting, end := context.WithCancel(ctx)
			ended := make(chan error, 1)
			go func() {
				ended <- host.New(host.Options{Replica: rep, Agent: agents("asker", agent), Hosts: hosts, Procs: procs,
					ID: "h1"}).Run(hosting)
			}()
			for asked := false; !asked; {
				seq := rep.Seq()
				rep.View(func(s *team.State) { asked = len(s.Permissions()) > 0 })
				if !asked {
					if err := rep.Wait(ctx, seq); err != nil {
						t.Fatal(err)
					}
				}
			}
			if test.answer != nil {
				do(test.answer)
			} else {
				end()
			}
			select {
			case got := <-agent.answers:
				if got != test.want {
					t.Errorf("the session was told %q, not %q", got, test.want)
				}
			case <-ctx.Done():
				t.Error("the session got no answer")
			}
			end()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			rep.View(func(s *team.State) {
				if open := s.Permissions(); len(open) > 0 {
					t.Errorf("still open: %v", open)
				}
			})
		})
	}
}

// agents returns a function that knows one agent.
func agents(name string, a agent.Agent) func(string) agent.Agent {
	return func(asked string) agent.Agent {
		if asked != name {
			return nil
		}
		return a
	}
}
