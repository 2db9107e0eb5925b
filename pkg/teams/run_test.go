package teams_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"cadre/internal/testkit/soak"
	"cadre/pkg/teams"
)

// everywhere runs a test with teams on disk and in memory.
func everywhere(t *testing.T, test func(t *testing.T, o teams.Options)) {
	t.Run("disk", func(t *testing.T) { test(t, folders(t)) })
	t.Run("memory", func(t *testing.T) { test(t, teams.Options{Memory: new(teams.Memory), Dir: t.TempDir()}) })
}

// shells returns a team of two shells with these tasks.
func shells(tasks ...teams.TaskConfig) teams.TeamConfig {
	return teams.TeamConfig{Name: "core", Goal: "work", Members: []teams.MemberConfig{{Name: "ann", Agent: teams.Shell},
		{Name: "bob", Agent: teams.Shell}}, Tasks: tasks}
}

func found(t testing.TB, m *teams.Manager, c teams.TeamConfig) *teams.Team {
	t.Helper()
	team, err := m.CreateTeam(limited(t), c)
	ok(t, err)
	return team
}

func TestRun(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	everywhere(t, func(t *testing.T, o teams.Options) {
		m := manage(t, o)
		team := found(t, m, shells(teams.TaskConfig{Subject: "one", Run: "echo first"},
			teams.TaskConfig{Subject: "two", Run: "echo second"},
			teams.TaskConfig{Subject: "both", Run: `cat "$CADRE_RESULTS"/*`, BlockedBy: []string{"1", "2"}}))
		r, err := team.Run(limited(t), teams.RunOptions{ReportFile: "reports/core.md", ReportTitle: "How it went"})
		ok(t, err)
		if r.Completed != 3 || r.Failed+r.Open != 0 || r.Team.Status != teams.TeamStatusComplete ||
			r.Team.Report != filepath.Join(o.Dir, "reports/core.md") {
			t.Errorf("the run ended with %+v", r)
		}
		text, err := os.ReadFile(r.Team.Report)
		ok(t, err)
		if string(text) != r.Report || !strings.Contains(r.Report, "first\nsecond") ||
			!strings.Contains(r.Report, "# How it went") {
			t.Errorf("the report is\n%s\nbut the file has\n%s", r.Report, text)
		}
		members, err := team.Members(limited(t))
		ok(t, err)
		for _, m := range members[1:] {
			equal(t, m.Name, m.Status, teams.StatusStopped)
		}
		_, err = team.Run(limited(t), teams.RunOptions{})
		want(t, err, teams.ErrFinished)
		ok(t, m.Cleanup(limited(t)))
	})
}

// TestRunAgain checks that failed tasks leave the team unfinished. After the cause is fixed, a
// retry continues where it stopped.
func TestRunAgain(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	everywhere(t, func(t *testing.T, o teams.Options) {
		m := manage(t, o)
		team := found(t, m, shells(teams.TaskConfig{Subject: "good", Run: "echo good >>ran"},
			teams.TaskConfig{Subject: "bad", Run: "echo bad >>ran; test -e mended"}))
		r, err := team.Run(limited(t), teams.RunOptions{})
		want(t, err, teams.ErrNotReady)
		if r.Completed != 1 || r.Failed != 1 || r.Team.Status != teams.TeamStatusActive ||
			!strings.Contains(r.Report, "exit status 1") {
			t.Errorf("the run stopped with %+v", r)
		}
		ok(t, m.Close())

		m = manage(t, o)
		team, err = m.OpenTeam(limited(t), "core")
		ok(t, err)
		ok(t, os.WriteFile(filepath.Join(o.Dir, "mended"), nil, 0o600))
		_, err = team.Run(limited(t), teams.RunOptions{})
		want(t, err, teams.ErrNotReady) // the task failed, and was not retried
		ok(t, team.Retry(limited(t)))
		r, err = team.Run(limited(t), teams.RunOptions{})
		ok(t, err)
		equal(t, "completed", r.Completed, 2)
		ran, err := os.ReadFile(filepath.Join(o.Dir, "ran"))
		ok(t, err)
		equal(t, "how often good ran", strings.Count(string(ran), "good"), 1)
		equal(t, "how often bad ran", strings.Count(string(ran), "bad"), 2)
	})
}

// TestRetryReplacesWhoEnded checks that a teammate with the same permissions replaces a member that
// ended.
func TestRetryReplacesWhoEnded(t *testing.T) {
	m := manage(t, teams.Options{})
	team := found(t, m, teams.TeamConfig{Name: "core", Tasks: []teams.TaskConfig{{Subject: "look", Run: "echo seen"}},
		Lead: teams.MemberConfig{PermissionMode: teams.ModeBypass}})
	_, err := m.Team().Spawn(limited(t), teams.MemberConfig{Name: "ann", Agent: teams.Shell, Role: "looker",
		PermissionMode: teams.ModePlan})
	ok(t, err)
	first(t, team, any1[teams.TaskCompleted])
	ok(t, m.Team().Shutdown(limited(t), "ann"))
	ok(t, team.Retry(limited(t))) // there is nothing left to do
	_, err = team.Member(limited(t), "ann-again-2")
	want(t, err, teams.ErrNotFound)
	add(t, team.Tasks(), "more")
	ok(t, team.Retry(limited(t)))
	again, err := team.Member(limited(t), "ann-again-2")
	ok(t, err)
	equal(t, "role and mode", again.Role+" "+string(again.PermissionMode), "looker plan")
}

// TestRetryAtTheLimit checks that a member that ended is not replaced if the team is at its limit
// of members.
func TestRetryAtTheLimit(t *testing.T) {
	m := manage(t, teams.Options{})
	team := found(t, m, teams.TeamConfig{Name: "core", MaxTeammates: 1,
		Tasks: []teams.TaskConfig{{Subject: "look", Run: "echo seen"}}})
	for _, name := range []string{"ann", "bob"} {
		_, err := m.Team().Spawn(limited(t), teams.MemberConfig{Name: name, Agent: teams.Shell})
		ok(t, err)
		if name == "ann" {
			first(t, team, any1[teams.TaskCompleted])
			ok(t, m.Team().Shutdown(limited(t), "ann"))
		}
	}
	_, err := team.Tasks().Create(limited(t), teams.TaskConfig{Subject: "more", Run: "sleep 60"})
	ok(t, err)
	ok(t, team.Retry(limited(t)))
	_, err = team.Member(limited(t), "ann-again-2")
	want(t, err, teams.ErrNotFound)
}

func TestRunIsCutShort(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	hanging := shells(teams.TaskConfig{Subject: "hang", Run: "sleep 1000"})
	claimed := func(t *testing.T, team *teams.Team) { first(t, team, any1[teams.TaskClaimed]) }
	for name, c := range map[string]struct {
		stop func(t *testing.T, m *teams.Manager, team *teams.Team, cancel context.CancelCauseFunc)
		why  error
	}{
		"ctx": {func(_ *testing.T, _ *teams.Manager, _ *teams.Team, cancel context.CancelCauseFunc) {
			cancel(os.ErrDeadlineExceeded)
		}, os.ErrDeadlineExceeded},
		"aborted": {func(t *testing.T, _ *teams.Manager, team *teams.Team, _ context.CancelCauseFunc) {
			ok(t, team.Abort(limited(t), "enough"))
		}, teams.ErrFinished},
		"closed": {func(t *testing.T, m *teams.Manager, _ *teams.Team, _ context.CancelCauseFunc) { ok(t, m.Close()) },
			teams.ErrFinished},
	} {
		t.Run(name, func(t *testing.T) {
			everywhere(t, func(t *testing.T, o teams.Options) {
				m := manage(t, o)
				team := found(t, m, hanging)
				ctx, cancel := context.WithCancelCause(limited(t))
				type end struct {
					r   teams.RunResult
					err error
				}
				ended := make(chan end, 1)
				go func() {
					r, err := team.Run(ctx, teams.RunOptions{})
					ended <- end{r, err}
				}()
				claimed(t, team)
				c.stop(t, m, team, cancel)
				e := next(t, ended)
				if !errors.Is(e.err, c.why) {
					t.Errorf("the run ended with %v", e.err)
				}
				// It may have ended while it took the lead, with nothing to report.
				led := e.r.Report != ""
				if name == "ctx" && led && (!strings.Contains(e.r.Report, "hang") || e.r.Open != 1) {
					t.Errorf("the result is %+v", e.r)
				}
			})
		})
	}
}

// TestWhoRuns checks that only one manager at a time runs a team, and that a teammate's manager
// cannot.
func TestWhoRuns(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	everywhere(t, func(t *testing.T, o teams.Options) {
		m := manage(t, o)
		team := found(t, m, shells(teams.TaskConfig{Subject: "wait", Run: "until test -e go; do sleep 0.01; done"}))
		other, err := manage(t, o).OpenTeam(limited(t), "core")
		ok(t, err)
		ran := make(chan error, 2)
		for _, one := range []*teams.Team{team, other} {
			go func() {
				_, err := one.Run(limited(t), teams.RunOptions{})
				ran <- err
			}()
		}
		want(t, next(t, ran), teams.ErrNotReady)
		o.As = "ann"
		anns, err := manage(t, o).OpenTeam(limited(t), "core")
		ok(t, err)
		_, err = anns.Run(limited(t), teams.RunOptions{})
		want(t, err, teams.ErrDenied)
		want(t, anns.Retry(limited(t)), teams.ErrDenied)
		ok(t, os.WriteFile(filepath.Join(o.Dir, "go"), nil, 0o600))
		ok(t, next(t, ran))
	})
}

// TestRunOnABudget checks that a spent budget ends the sessions, and that a new one lets the team
// continue.
func TestRunOnABudget(t *testing.T) {
	worker := teams.Worker{Task: func(ctx context.Context, slot *teams.Slot, job teams.Job) (string, error) {
		info, err := slot.Member(ctx)
		if err != nil || info.Usage.InputTokens > 0 {
			return "cheap", err
		}
		slot.Used(job.Task.ID, teams.Usage{InputTokens: 1000})
		<-ctx.Done()
		return "", ctx.Err()
	}}
	m := manage(t, teams.Options{Agents: map[string]teams.Agent{"worker": worker}})
	team := found(t, m, teams.TeamConfig{Name: "core", Budget: teams.Budget{Tokens: 500},
		Members: []teams.MemberConfig{{Name: "ann", Agent: "worker"}}, Tasks: []teams.TaskConfig{{Subject: "look"}}})
	r, err := team.Run(limited(t), teams.RunOptions{})
	want(t, err, teams.ErrBudgetExhausted)
	equal(t, "spent", r.Team.Exhausted, "tokens")
	ok(t, team.SetBudget(limited(t), teams.Budget{Tokens: 5000}))
	r, err = team.Run(limited(t), teams.RunOptions{})
	ok(t, err)
	equal(t, "tokens", r.Team.Usage.InputTokens, 1000)
}

// chief is a lead that is an agent of the program. When it is asked for its report, it first
// creates another task.
type chief struct{}

func (c chief) Start(_ context.Context, slot *teams.Slot) (teams.Session, error) {
	return &chiefSession{chief: c, slot: slot, over: make(chan struct{})}, nil
}

type chiefSession struct {
	chief
	slot  *teams.Slot
	mu    sync.Mutex
	asked int
	once  sync.Once
	over  chan struct{}
}

func (s *chiefSession) Deliver(ctx context.Context, mail []teams.Message) error {
	for _, m := range mail {
		if m.Type != teams.MessageSystem || m.Ref != teams.ReportRef {
			continue
		}
		s.mu.Lock()
		s.asked++
		first := s.asked == 1
		s.mu.Unlock()
		if first {
			if _, err := s.slot.Tasks().Create(ctx, teams.TaskConfig{Subject: "what was missing",
				Run: "echo found"}); err != nil {
				return err
			}
		} else if err := s.slot.GiveReport(ctx, "All is done, says "+s.slot.Name()); err != nil {
			return err
		}
	}
	return s.slot.Idle(ctx, "")
}

func (s *chiefSession) Wake(ctx context.Context) error { return s.slot.Idle(ctx, "") }
func (s *chiefSession) Stop(context.Context) error     { s.once.Do(func() { close(s.over) }); return nil }
func (s *chiefSession) Wait() error                    { <-s.over; return nil }

func TestRunLedByAnAgent(t *testing.T) {
	m := manage(t, teams.Options{Agents: map[string]teams.Agent{"chief": chief{}}, Logger: logger(func(text string) {
		if strings.HasPrefix(text, "refused") { // the end of the team is not an error of the host
			t.Error(text)
		}
	})})
	c := shells(teams.TaskConfig{Subject: "look", Run: "echo seen"})
	c.Lead = teams.MemberConfig{Name: "boss", Agent: "chief"}
	team := found(t, m, c)
	r, err := team.Run(limited(t), teams.RunOptions{})
	ok(t, err)
	if r.Completed != 2 || !strings.Contains(r.Report, "All is done, says boss") ||
		!strings.Contains(r.Report, "found") {
		t.Errorf("the run ended with %+v", r)
	}
	want(t, as(t, team, "ann").GiveReport(limited(t), "mine"), teams.ErrFinished)
	ok(t, m.Close())
}

// TestUserWhereAnAgentLeads checks that the manager acts as the user if an agent leads, and does
// not read the lead's mail.
func TestUserWhereAnAgentLeads(t *testing.T) {
	agent := newListener()
	m := manage(t, teams.Options{Agents: map[string]teams.Agent{"listener": agent}})
	team := found(t, m, teams.TeamConfig{Name: "core", Lead: teams.MemberConfig{Agent: "listener",
		PermissionMode: teams.ModePlan}, Members: []teams.MemberConfig{{Name: "ann", Agent: teams.External}}})
	next(t, agent.slots)
	ok(t, send(limited(t), m, "", "lead", "go on"))
	equal(t, "who says so", next(t, agent.mail).From, teams.User)
	_, err := team.Mail().Wait(limited(t))
	want(t, err, teams.ErrDenied)
	add(t, team.Tasks(), "look")
	_, err = team.Tasks().ClaimNext(limited(t))
	want(t, err, teams.ErrInvalid)
	ok(t, team.EnterDelegateMode(limited(t)))
	ok(t, team.SetMode(limited(t), "lead", teams.ModeDefault))
	ok(t, team.SetMode(limited(t), "ann", teams.ModeBypass)) // only the user can set this mode
	_, err = team.RequestShutdown(limited(t), teams.ShutdownRequest{Member: "ann"})
	ok(t, err)
	_, err = team.AwaitEnd(limited(t), "ann")
	ok(t, err)
	want(t, as(t, team, "lead").GiveReport(limited(t), "unasked"), teams.ErrConflict)
	want(t, team.HandOver(limited(t), "ann", ""), teams.ErrFinished)
}
