package host_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cadre/internal/agent"
	"cadre/internal/host"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/liveness/leader"
	"cadre/internal/replica"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// quick is a timing that a test need not wait for.
var quick = team.Timing{Beat: 20 * time.Millisecond, Offline: 400 * time.Millisecond, LeadLost: 200 * time.Millisecond,
	Zombie: 10 * time.Minute, Blocked: 300 * time.Millisecond, Undelivered: 300 * time.Millisecond,
	Stale: 400 * time.Millisecond, Checkpoint: 20 * time.Millisecond}

// newTimedStage returns a team with that timing, in a repository with one commit, led by the
// session L1.
func newTimedStage(t *testing.T, timing team.Timing, bodies ...team.Body) (*stage, string) {
	t.Helper()
	dir := t.TempDir()
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=x", "-c", "user.email=x@localhost", "commit",
		"-q", "--allow-empty", "-m", "first"}} {
		if out, err := exec.Command("git", append([]string{"-C", dir}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	return newStageOf(t, append([]team.Body{&team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: dir, Timing: timing},
		&team.AttachLead{Session: "L1"}}, bodies...)...), dir
}

// working is a session that claims a task, unless it holds one, and works on it until it must end.
func working(started chan<- struct{}) scripted {
	return func(s *session) error {
		s.updates <- agent.Started{Session: "session of " + s.Member}
		s.updates <- agent.TurnStarted{}
		s.Do(context.Background(), &team.ClaimTask{Member: s.Member}) // refused if it holds one
		s.updates <- agent.Text{Text: "half of it is done"}
		started <- struct{}{}
		<-s.stop
		return nil
	}
}

// TestWorkIsSavedWithoutALead checks that a teammate whose lead is lost saves its work at
// intervals. When a session leads again, the work is kept with the task.
func TestWorkIsSavedWithoutALead(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	s, dir := newTimedStage(t, quick, spawn("ann"), &team.CreateTask{Subject: "one"})
	s.claimed()
	if err := os.WriteFile(filepath.Join(dir, "new.txt"), []byte("a new line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{}, 1)
	s.start("h1", working(started))
	<-started
	s.until("the lead is lost", func(st *team.State) bool { return st.Team().LeadLost != 0 })
	teamDir := filepath.Dir(s.hosts)
	saved := func() (w host.SavedWork, there bool) {
		w, there, err := host.ReadSaved(context.Background(), filestore.Team(teamDir), "ann")
		if err != nil {
			t.Fatal(err)
		}
		return w, there
	}
	// the first save may be of an earlier state
	eventually(t, "work is saved", func() bool { w, _ := saved(); return len(w.Files) > 0 && w.Output != "" })
	w, _ := saved()
	if w.Task != "1" || w.Member != "ann" || !strings.Contains(w.FileEdits, "+a new line") ||
		w.Output != "half of it is done" || len(w.LastGood) < 40 || len(w.Files) != 1 {
		t.Errorf("saved %+v, want ann's edits of task 1, its output and one file", w)
	}
	eventually(t, "it is saved again", func() bool { again, _ := saved(); return again.At > w.At })
	b, there, err := heartbeat.In(filestore.Team(teamDir)).Of(t.Context(), "ann")
	if err != nil || !there || b.Task != "1" {
		t.Errorf("its sign of life is %+v, %v, %v", b, there, err)
	}
	eventually(t, "its signs of life say what it is", func() bool {
		b, _, _ := heartbeat.In(filestore.Team(teamDir)).Of(t.Context(), "ann")
		return b.Status == "zombie"
	})
	// the user is never lost
	s.do(team.User, &team.AttachLead{Session: team.User, From: "L1", Seen: 1, Since: s.Team().LeadSince})
	s.until("the work is in the history", func(st *team.State) bool {
		task, _ := st.Task("1")
		return task.Status == team.InProgress && task.Saved != nil && strings.Contains(task.Saved.Diff,
			"+a new line") && task.Saved.Output == "half of it is done"
	})
	eventually(t, "the file is gone", func() bool { _, there := saved(); return !there })
}

// TestZombieRests checks that after a while without a lead the member's task returns to the queue,
// and its session ends until a session leads again.
func TestZombieRests(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	timing := quick
	timing.Zombie = 200 * time.Millisecond
	s, dir := newTimedStage(t, timing, spawn("ann"), &team.CreateTask{Subject: "one"})
	s.claimed()
	if err := os.WriteFile(filepath.Join(dir, "new.txt"), []byte("a new line\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	started := make(chan struct{}, 4)
	s.start("h1", working(started))
	<-started
	s.until("ann rests", func(st *team.State) bool {
		ann, _ := st.Member("ann")
		task, _ := st.Task("1")
		return ann.Host == "" && ann.Status == team.Spawning && task.Status == team.Pending && task.Owner == "" &&
			task.Saved != nil && strings.Contains(task.Saved.Diff, "+a new line")
	})
	eventually(t, "it gives no signs of life", func() bool {
		beats, err := heartbeat.In(s.shared()).All(t.Context())
		return err == nil && len(beats) == 0
	})
	// the user is never lost
	s.do(team.User, &team.AttachLead{Session: team.User, From: "L1", Seen: 1, Since: s.Team().LeadSince})
	<-started
	s.until("ann continues", func(st *team.State) bool { return len(st.Held("ann")) == 1 })
}

// claimed gives task 1 to ann before a host starts. A host loses the silent lead soon after its
// start, and a member without a lead claims nothing.
func (s *stage) claimed() {
	s.t.Helper()
	s.do(team.User, &team.ClaimTask{Task: "1", Member: "ann"})
}

// TestBlockedZombieYields checks that a teammate returns its task if it waits for an answer that
// cannot come.
func TestBlockedZombieYields(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	s, _ := newTimedStage(t, quick, spawn("ann"), &team.CreateTask{Subject: "one"})
	s.claimed()
	s.start("h1", scripted(func(a *session) error {
		a.updates <- agent.Started{Session: "s"}
		if _, err := a.Do(context.Background(), &team.ReportStatus{Member: a.Member, Status: team.Blocked,
			Summary: "waits for an answer"}); err != nil {
			t.Error(err)
		}
		<-a.stop
		return nil
	}))
	s.until("the task is back", func(st *team.State) bool {
		task, _ := st.Task("1")
		return st.Team().LeadLost != 0 && task.Status == team.Pending && task.Owner == "" && task.Attempts == 1
	})
}

// TestLeadLives checks that a lead that sends heartbeats is never lost. When it ends it is.
func TestLeadLives(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	timing := quick
	timing.LeadLost = time.Second // a busy machine may keep a process from its heartbeats for a while
	s, _ := newTimedStage(t, timing, spawn("ann"))
	teamDir := filepath.Dir(s.hosts)
	rep := s.open()
	lead, err := leader.Take(t.Context(), leader.Options{Replica: rep, Shared: s.shared(), Session: "L1", Beats: true,
		Log: func(text string) { t.Log(text) }})
	if err != nil {
		t.Fatal(err)
	}
	s.start("h1", scripted(obedient))
	for range 60 { // longer than the silence that makes a lead lost
		b, _, err := heartbeat.In(filestore.Team(teamDir)).Of(t.Context(), "lead")
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the next sign of life", func() bool {
			next, _,
				_ := heartbeat.In(filestore.Team(teamDir)).Of(t.Context(), "lead")
			return next.Count > b.Count
		})
	}
	if s.Team().LeadLost != 0 {
		t.Error("the lead is recorded as lost while its process is alive")
	}
	// A loss that was recorded by mistake, or while the machine slept, is taken back.
	// On a busy machine it may come back by itself meanwhile, with a later Since.
	eventually(t, "the loss is recorded", func() bool {
		if err := s.Refresh(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err := s.Do(t.Context(), team.Command{Actor: team.Host("h9"), Body: &team.LoseLead{Session: "L1",
			Since: s.Team().LeadSince, Seen: replica.Now() - 10000}})
		return err == nil
	})
	s.until("the lead is back", func(st *team.State) bool {
		return st.Team().LeadLost == 0 &&
			st.Team().LeadSession == "L1"
	})
	lead.Close()
	s.until("the lead is lost", func(st *team.State) bool { return st.Team().LeadLost != 0 })
}

func TestLeadIsTakenOver(t *testing.T) {
	t.Parallel()
	s, _ := newTimedStage(t, team.Timing{Beat: 20 * time.Millisecond, LeadLost: time.Minute, Stale: time.Hour},
		spawn("ann"))
	teamDir := filepath.Dir(s.hosts)
	take := func(session string, over bool) (*leader.Lead, error) {
		return leader.Take(t.Context(), leader.Options{Replica: s.open(), Shared: s.shared(), Session: session, Beats: true,
			TakeOver: over, Log: func(text string) { t.Log(text) }})
	}
	old, err := take("L1", false)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close()
	// A lead on another machine, known only by its heartbeats.
	other := heartbeat.Beat{Member: "lead", Session: "L1", Machine: "elsewhere", At: time.Now().UnixMilli(),
		Count: 1 << 40}
	old.Close()
	if err := heartbeat.In(filestore.Team(teamDir)).Write(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if _, err := take("L2", false); team.CodeOf(err) != team.Conflict {
		t.Errorf("a living lead was replaced: %v", err)
	}
	other.At = time.Now().Add(time.Hour).UnixMilli()
	if err := heartbeat.In(filestore.Team(teamDir)).Write(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	if _, err := take("L2", false); team.CodeOf(err) != team.Conflict {
		t.Errorf("a clock that is wrong decided: %v", err)
	}
	fresh, err := take("L2", true)
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	newest, err := take("L3", true)
	if err != nil {
		t.Fatal(err)
	}
	defer newest.Close()
	select {
	case <-fresh.Lost():
	case <-time.After(20 * time.Second):
		t.Fatal("the former lead did not notice within 20 s that another session leads")
	}
	eventually(t, "the new lead's signs of life are there", func() bool {
		b, _, _ := heartbeat.In(filestore.Team(teamDir)).Of(t.Context(), "lead")
		return b.Session == "L3"
	})
	fresh.Release(t.Context()) // it does not have the lead any more
	if err := s.Refresh(t.Context()); err != nil || s.Team().LeadSession != "L3" {
		t.Errorf("who was taken over gave the lead away when it ended: %q leads, %v", s.Team().LeadSession, err)
	}
	newest.Close()
	// On the same machine its process is known to have ended.
	next, err := take("L4", false)
	if err != nil {
		t.Fatal(err)
	}
	next.Close()
}

func TestLateMessagesAreTold(t *testing.T) {
	t.Parallel()
	s, _ := newTimedStage(t, quick, &team.AttachLead{Session: "L1"}, &team.SpawnMember{Name: "bob",
		Agent: team.External}, spawn("ann"))
	lead, err := leader.Take(t.Context(), leader.Options{Replica: s.open(), Shared: s.shared(),
		Session: "L1", Beats: true})
	if err != nil {
		t.Fatal(err)
	}
	defer lead.Close()
	s.do("lead", &team.SendMessage{To: "bob", Body: "are you there?"})
	s.start("h1", scripted(obedient))
	s.until("the lead is told", func(st *team.State) bool {
		bob, _ := st.Member("bob")
		mail := st.Inbox("lead")
		return len(bob.Late) == 1 && len(mail) > 0 && strings.Contains(mail[len(mail)-1].Body, "Not delivered to bob")
	})
}

// eventually waits until the condition holds, for things that no journal records.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for !holds() {
		select {
		case <-deadline:
			t.Fatalf("still not: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}
