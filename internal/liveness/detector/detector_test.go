package detector_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/journal/memjournal"
	"cadre/internal/journal/store"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/liveness/detector"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/replica"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	every   = 30 * time.Second
	patient = 10 * time.Minute // until a member is offline
)

// post is a detector for a team with a lead, a hosted member and an external member. The test
// controls its clock.
type post struct {
	t *testing.T
	*replica.Replica
	dir   string
	began time.Time
	at    time.Duration
	look  detector.Detector
	count int64
}

func newPost(t *testing.T) *post { return newPostOf(t, team.Timing{}) }

func newPostOf(t *testing.T, timing team.Timing) *post {
	p := &post{t: t, dir: t.TempDir(), began: time.Now()}
	var err error
	p.Replica, err = replica.Open(t.Context(), memjournal.New("demo").Open(),
		replica.Options{Now: func() team.Time { return team.Time(p.began.Add(p.at).UnixMilli()) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	for _, body := range []team.Body{&team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: "/w", Timing: timing},
		&team.SpawnMember{Name: "ann", Agent: "claude"}, &team.SpawnMember{Name: "bob", Agent: team.External}} {
		p.do(team.User, body)
	}
	p.do(team.Host("h1"), &team.AttachMember{Member: "ann"})
	p.do(team.Host("h1"), &team.ReportStarted{Member: "ann", Session: "s"})
	p.look = detector.Detector{Dir: p.dir, Log: func(what string) { t.Log(what) }, Now: p.now,
		Do: func(ctx context.Context, body team.Body) error {
			_, err := p.Do(ctx, team.Command{Actor: team.Host("h2"), Body: body})
			return err
		}}
	return p
}

func (p *post) now() time.Time { return p.began.Add(p.at) }

func (p *post) do(actor string, body team.Body) {
	p.t.Helper()
	if _, err := p.Do(p.t.Context(), team.Command{Actor: actor, Body: body}); err != nil {
		p.t.Fatal(err)
	}
}

func (p *post) beats(member, host, machine string) {
	p.t.Helper()
	p.count++
	b := heartbeat.Beat{Member: member, At: p.began.Add(p.at).UnixMilli(), Host: host, Machine: machine, Count: p.count}
	if err := heartbeat.In(filestore.Team(p.dir)).Write(p.t.Context(), b); err != nil {
		p.t.Fatal(err)
	}
}

// looks advances the clock and calls Look at every heartbeat interval. Before each look it calls
// meanwhile.
func (p *post) looks(long time.Duration, meanwhile func()) {
	for end := p.at + long; p.at < end; {
		p.at += every
		if meanwhile != nil {
			meanwhile()
		}
		var members []team.Member
		p.View(func(s *team.State) { members = s.Members() })
		p.look.Look(p.t.Context(), p.Team(), members, func(string) bool { return false })
	}
}

// holds takes the lock and returns the function that releases it.
func (p *post) holds(path string) (free func()) {
	p.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		p.t.Fatal(err)
	}
	lock, err := filelock.New(path)
	if err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { lock.Unlock() })
	return func() { lock.Unlock() }
}

func (p *post) hosts(host string) (dies func()) {
	return p.holds(filepath.Join(p.dir, "hosts", host, proc.AliveFile))
}

// told returns the lead's messages, one per line.
func (p *post) told() string {
	var lines []string
	p.View(func(s *team.State) {
		for _, m := range s.Inbox(team.DefaultLead) {
			lines = append(lines, m.Body)
		}
	})
	return strings.Join(lines, "\n")
}

func (p *post) want(told ...string) {
	p.t.Helper()
	if got := p.told(); got != strings.Join(told, "\n") {
		p.t.Errorf("at %v the lead got\n%s", p.at, got)
	}
}

const (
	annSilent = "ann is offline: it sent no heartbeat for 10 min."
	annBack   = "ann is online again."
)

// TestSilence checks that the lead is notified once when a member goes silent, and without a turn
// when it is back.
func TestSilence(t *testing.T) {
	p := newPost(t)
	p.hosts("h1")
	p.looks(time.Hour, func() { p.beats("ann", "h1", "elsewhere") })
	p.want()
	p.looks(patient-every, nil)
	p.want()
	p.looks(2*patient, nil)
	p.want(annSilent)
	p.looks(time.Hour, func() { p.beats("ann", "h1", "elsewhere") })
	p.want(annSilent, annBack)
	p.looks(2*patient, nil)
	p.want(annSilent, annBack, annSilent)
}

// slow is a store whose reads take a while, as if the reader's process were suspended.
type slow struct {
	heartbeat.Beats
	read func()
}

func (s slow) Of(ctx context.Context, member string) (heartbeat.Beat, bool, error) {
	s.read()
	return s.Beats.Of(ctx, member)
}

// TestHeldUpInALook suspends the process between the start of a look and the read of the heartbeat.
// The heartbeat must not count as older for that.
func TestHeldUpInALook(t *testing.T) {
	const offline = every + every/2
	p := newPostOf(t, team.Timing{Offline: offline})
	p.hosts("h1")
	beats := func() { p.beats("ann", "h1", "elsewhere") }
	p.looks(time.Minute, beats)
	stood := false
	p.look.Beats = slow{heartbeat.In(filestore.Team(p.dir)), func() {
		if !stood {
			stood = true
			p.at += offline + time.Second
			beats()
		}
	}}
	p.looks(every, nil)
	p.looks(every, nil)
	if !stood {
		t.Fatal("no look was taken")
	}
	p.want("")
}

// TestOldHeartbeatIsNoNewOne checks that an old heartbeat does not bring a member back online,
// even if a wrong clock makes it seem recent.
func TestOldHeartbeatIsNoNewOne(t *testing.T) {
	p := newPost(t)
	p.hosts("h1")
	p.looks(time.Minute, func() { p.beats("ann", "h1", "elsewhere") })
	p.looks(patient, nil)
	p.want(annSilent)
	fresh := detector.Detector{Dir: p.dir, Log: p.look.Log, Do: p.look.Do, Now: p.now}
	p.look, p.at = fresh, p.at-patient // another process, whose clock is behind
	p.looks(2*time.Minute, nil)
	p.want(annSilent)
}

// TestHostThatIsGone checks that a dead host is reported at the second look. At the first, another
// host may be about to take over.
func TestHostThatIsGone(t *testing.T) {
	p := newPost(t)
	dies := p.hosts("h1")
	p.looks(time.Minute, func() { p.beats("ann", "h1", "elsewhere") })
	dies()
	p.looks(every, nil)
	p.want()
	p.looks(every, nil)
	p.want("ann is offline: the host that ran its session has ended.")
	p.hosts("h2")
	p.do(team.Host("h2"), &team.AttachMember{Member: "ann", From: "h1"})
	p.do(team.Host("h2"), &team.AttachMember{Member: "ann"})
	p.looks(2*patient, func() { p.beats("ann", "h2", "elsewhere") })
	p.want("ann is offline: the host that ran its session has ended.")
	for _, m := range members(p) {
		if m.Offline != 0 {
			t.Errorf("%s is offline", m.Name)
		}
	}
}

func members(p *post) (all []team.Member) {
	p.View(func(s *team.State) { all = s.Members() })
	return all
}

// TestSessionOutside checks that a dead external session is detected if it ran on this machine, but
// not if it never sent a heartbeat or left in good order.
func TestSessionOutside(t *testing.T) {
	p := newPost(t)
	p.hosts("h1")
	ann := func() { p.beats("ann", "h1", "elsewhere") }
	p.looks(time.Hour, ann)
	p.want()
	here, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	ends := p.holds(filestore.Team(p.dir).LeasePath(store.Presence("bob")))
	p.looks(time.Hour, func() { ann(); p.beats("bob", "", here) })
	p.want()
	ends()
	p.looks(2*every, ann)
	p.want("bob is offline: its session has ended.")
	p.holds(filestore.Team(p.dir).LeasePath(store.Presence("bob")))
	p.looks(2*every, func() { ann(); p.beats("bob", "", here) })
	p.want("bob is offline: its session has ended.", "bob is online again.")
	if err := heartbeat.In(filestore.Team(p.dir)).Forget(t.Context(), "bob"); err != nil {
		t.Fatal(err)
	}
	p.looks(time.Hour, ann)
	p.want("bob is offline: its session has ended.", "bob is online again.")
}

// TestLeadThatIsSilent checks that a silent lead is recorded as lost, and that it gets no messages
// about other members meanwhile. The next lead gets them.
func TestLeadThatIsSilent(t *testing.T) {
	p := newPost(t)
	p.hosts("h1")
	p.do(team.User, &team.AttachLead{Session: "L1"})
	p.looks(time.Hour, nil)
	if p.Team().LeadLost == 0 {
		t.Fatal("the lead is not lost")
	}
	p.beats("ann", "h1", "elsewhere")
	p.looks(2*patient, nil)
	p.want()
	p.do(team.User, &team.AttachLead{Session: team.User, From: "L1", Seen: 1, Since: p.Team().LeadSince})
	p.looks(every, nil)
	if got := p.told(); strings.Count(got, "ann is offline") != 1 {
		t.Error(got)
	}
}

// TestEndedTeam checks that the detector reports nothing about a team that has ended.
func TestEndedTeam(t *testing.T) {
	p := newPost(t)
	p.do(team.User, &team.SetStatus{Status: team.TeamAborted})
	p.look.Do = func(_ context.Context, body team.Body) error { return fmt.Errorf("it is reported: %T", body) }
	p.look.Log = func(what string) { t.Error(what) }
	p.looks(time.Hour, nil)
}

// TestOverdueWithoutAHost checks that external sessions handle overdue work in a team without a
// host: they mark messages that wait too long, and expire unanswered requests.
func TestOverdueWithoutAHost(t *testing.T) {
	rep, err := replica.Open(t.Context(), memjournal.New("demo").Open(), replica.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer rep.Close()
	do := func(actor string, body team.Body) {
		t.Helper()
		if _, err := rep.Do(t.Context(), team.Command{Actor: actor, Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	do(team.User, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: "/w",
		Timing: team.Timing{Beat: 5 * time.Millisecond, Undelivered: 20 * time.Millisecond}})
	do(team.User, &team.SpawnMember{Name: "bob", Agent: team.External})
	do(team.User, &team.AttachLead{Session: "mcp-1"})
	do(team.User, &team.SendMessage{To: "bob", Body: "are you there?"})
	do("bob", &team.RequestPermission{Tool: "Bash", Deadline: replica.Now() + 30})
	seq := rep.Seq()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	kept := make(chan struct{})
	go func() {
		defer close(kept)
		detector.Keep(ctx, detector.Options{Replica: rep, Dir: t.TempDir(), Member: team.DefaultLead,
			Log: func(what string) { t.Log(what) }})
	}()
	for late, open := 0, 1; late == 0 || open > 0; {
		if err := rep.Wait(ctx, seq); err != nil {
			t.Fatalf("%d messages are late, %d requests open: %v", late, open, err)
		}
		rep.View(func(s *team.State) {
			bob, _ := s.Member("bob")
			late, open, seq = len(bob.Late), len(s.Permissions()), s.Seq()
		})
	}
	cancel()
	<-kept
}
