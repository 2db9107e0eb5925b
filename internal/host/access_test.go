package host_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"cadre/internal/agent"
	"cadre/internal/agent/traceparent"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// TestModeThatTakesANewSession checks that a mode that a running session cannot get takes a new
// session, which continues with its history and its task when the turn has ended. It is requested
// once, however long the turn takes, and not at all if the mode is changed back in time.
func TestModeThatTakesANewSession(t *testing.T) {
	t.Parallel()
	for name, refusal := range map[string]error{"it takes a new session": agent.ErrNewSession,
		"it fails": errors.New("the program says no")} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, &team.SpawnMember{Name: "ann", Agent: "scripted"}, &team.CreateTask{Subject: "Look",
				Description: "everywhere"})
			sessions := modelled(s)
			ann := next(t, sessions)
			ann.refuses = refusal
			ann.started <- agent.Started{Session: "s-1"}
			ann.given(t)
			ann.updates <- agent.TurnStarted{}
			s.do(team.User, &team.SetMode{Member: "ann", Mode: "bypassPermissions"})
			if a := ann.allowed(t); a.Mode != "bypassPermissions" {
				t.Errorf("it was told of %+v", a)
			}
			for i := range 3 { // each makes the host look again
				words := fmt.Sprint("carry on ", i)
				s.do(team.User, &team.SendMessage{To: "ann", Body: words})
				ann.told(t, words)
			}
			select {
			case a := <-ann.may:
				t.Errorf("it was tried again: %+v", a)
			default:
			}
			select {
			case <-ann.stop:
				t.Error("ann's turn was interrupted; want it to end by itself")
			default:
			}
			ann.updates <- agent.TurnEnded{Text: "I looked at half of it."}
			again := next(t, sessions)
			if again.Resume != "s-1" || again.Access.Mode != "bypassPermissions" {
				t.Errorf("the new session resumes %q in mode %s", again.Resume, again.Access.Mode)
			}
			again.started <- agent.Started{Session: "s-1", Resumed: true, Seen: []int64{0}}
			p := again.turn(t, "Looked.", func() {
				again.call(t, "TaskUpdate", `{"taskId":"1","status":"completed","result":"nothing there"}`)
			})
			if !strings.Contains(p.Text, "Task 1 is yours now: \"Look\"") {
				t.Errorf("it was told %q", p.Text)
			}
			s.until("the task is done", func(st *team.State) bool { return st.Count(team.Completed) == 1 })
		})
	}
}

// TestModeAfterAFailedTurn checks that if the turn ends because the model cannot be reached, the
// new session tries again.
func TestModeAfterAFailedTurn(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	s := newStage(t, &team.SpawnMember{Name: "ann", Agent: "scripted"}, &team.CreateTask{Subject: "Look"})
	sessions := modelled(s)
	ann := next(t, sessions)
	ann.refuses = agent.ErrNewSession
	ann.started <- agent.Started{Session: "s-1"}
	ann.given(t)
	ann.updates <- agent.TurnStarted{}
	s.do(team.User, &team.SetMode{Member: "ann", Mode: "bypassPermissions"})
	ann.allowed(t)
	ann.told(t, "Your permission mode is now bypassPermissions")
	ann.updates <- agent.TurnEnded{Problem: &agent.Problem{Kind: agent.ProblemModel, Text: "overloaded"}}
	again := next(t, sessions)
	for r, err := range s.Watch(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if is[*team.MemberDetached](r) {
			t.Error("the session was detached before the result of its turn was recorded")
		}
		if is[*team.MemberTroubled](r) {
			break
		}
	}
	if again.Resume != "s-1" || again.Access.Mode != "bypassPermissions" {
		t.Errorf("the new session resumes %q in mode %s", again.Resume, again.Access.Mode)
	}
	again.started <- agent.Started{Session: "s-1", Resumed: true, Seen: []int64{0}}
	if p := again.turn(t, "Looked.", func() {
		again.call(t, "TaskUpdate", `{"taskId":"1","status":"completed","result":"nothing there"}`)
	}); !strings.Contains(p.Text, "Look") {
		t.Errorf("it was told %q", p.Text)
	}
	s.until("the task is done", func(st *team.State) bool { return st.Count(team.Completed) == 1 })
}

// TestModeChangedBack checks that an idle session is replaced at once. A session whose mode is
// changed back before its turn ends is not replaced.
func TestModeChangedBack(t *testing.T) {
	t.Parallel()
	s := newStage(t, &team.SpawnMember{Name: "ann", Agent: "scripted", Prompt: "You test."})
	sessions := modelled(s)
	ann := next(t, sessions)
	ann.refuses = agent.ErrNewSession
	ann.started <- agent.Started{Session: "s-1"}
	ann.given(t)
	ann.updates <- agent.TurnStarted{}
	s.do(team.User, &team.SetMode{Member: "ann", Mode: "bypassPermissions"})
	ann.allowed(t)
	s.do(team.User, &team.SetMode{Member: "ann", Mode: "default"})
	s.do(team.User, &team.SendMessage{To: "ann", Body: "carry on"})
	ann.told(t, "carry on") // given after the change of the mode
	ann.updates <- agent.TurnEnded{Text: "Yes."}
	s.untilStatus("ann", team.Idle)
	if m := s.member("ann"); m.Incarnation != 1 {
		t.Errorf("it was replaced: %+v", m)
	}
	s.do(team.User, &team.SetMode{Member: "ann", Mode: "bypassPermissions"})
	again := next(t, sessions)
	if again.Resume != "s-1" || again.Access.Mode != "bypassPermissions" {
		t.Errorf("the new session resumes %q in mode %s", again.Resume, again.Access.Mode)
	}
	again.started <- agent.Started{Session: "s-1", Resumed: true, Seen: []int64{0}}
}

// TestSessionsLookWithoutLocks checks that git takes no locks for commands of a session that only
// read, unless the user says otherwise.
func TestSessionsLookWithoutLocks(t *testing.T) {
	t.Parallel()
	s := newStage(t, &team.SpawnMember{Name: "ann", Agent: "scripted"}, &team.SpawnMember{Name: "bob",
		Agent: "scripted", Env: []string{"GIT_OPTIONAL_LOCKS=1"}})
	sessions := modelled(s)
	for range 2 {
		one := next(t, sessions)
		want := map[string]string{"ann": "0", "bob": "1"}[one.Member]
		if got := agent.Variable(one.Env, "GIT_OPTIONAL_LOCKS"); got != want {
			t.Errorf("in the session of %s it is %q", one.Member, got)
		}
		one.started <- agent.Started{Session: "s-" + one.Member}
	}
}

// TestSessionsKnowTheirTrace checks that the environment of each session names the span of that
// session, where the person asked for traces, and that a member's own environment cannot change it.
func TestSessionsKnowTheirTrace(t *testing.T) {
	for _, endpoint := range []string{"", "http://127.0.0.1:4318"} {
		t.Run("endpoint="+endpoint, func(t *testing.T) {
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
			s := newStage(t, &team.SpawnMember{Name: "ann", Agent: "scripted", Env: []string{"TRACEPARENT=hers"}})
			sessions := modelled(s)
			one := next(t, sessions)
			want := "hers"
			if endpoint != "" {
				want = "00-" + traceparent.Team(one.TeamID).String() + "-" +
					traceparent.Session(one.TeamID, "ann", one.Incarnation).String() + "-01"
			}
			if got := agent.Variable(one.Env, "TRACEPARENT"); got != want {
				t.Errorf("it is %q, want %q", got, want)
			}
			one.started <- agent.Started{Session: "s-1"}
		})
	}
}

// is reports whether the record has an event of that kind.
func is[E team.Event](r *team.Record) bool {
	return slices.ContainsFunc(r.Events, func(e team.Event) bool { _, ok := e.(E); return ok })
}
