package inspect_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/host"
	"cadre/internal/inspect"
	"cadre/internal/journal"
	"cadre/internal/journal/memjournal"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/layout"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/liveness/leader"
	"cadre/internal/replica"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
	"cadre/internal/testkit/treetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// place is a team on disk, with a project.
type place struct {
	t       *testing.T
	project string
	dir     string // the team's
	replica *replica.Replica
}

const created = 1_800_000_000_000 // when the team was created

// at returns the time that long after the creation.
func at(d time.Duration) time.Time { return time.UnixMilli(created).Add(d) }

// newPlace returns a team with that history, one command a second. The user sends the commands, or
// the actor that a word before a command names.
func newPlace(t *testing.T, history ...any) *place {
	t.Helper()
	h := layout.Home{Root: t.TempDir()}
	p := &place{t: t, project: t.TempDir(), dir: filepath.Join(h.Root, "teams", "demo")}
	actor, commands := team.User, []team.Command{}
	for _, one := range append([]any{&team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: p.project}}, history...) {
		if name, ok := one.(string); ok {
			actor = name
			continue
		}
		c := team.Command{ID: replica.NewID(), Actor: actor, At: created + team.Time(len(commands))*1000,
			Body: one.(team.Body)}
		if strings.HasPrefix(actor, team.Host("")) {
			c.Lease = 1
		}
		commands = append(commands, c)
	}
	if err := h.Create("demo", commands); err != nil {
		t.Fatal(err)
	}
	j, _, err := h.Open("demo", nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.replica, err = replica.Open(t.Context(), j, replica.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.replica.Close() })
	return p
}

func (p *place) examine(after time.Duration) *inspect.Examination {
	p.t.Helper()
	found, err := (&inspect.Looker{Replica: p.replica, Dir: p.dir}).Examine(p.t.Context(), at(after))
	if err != nil {
		p.t.Fatal(err)
	}
	return found
}

func (p *place) beat(b heartbeat.Beat, after time.Duration) {
	p.t.Helper()
	b.At = at(after).UnixMilli()
	if err := heartbeat.In(filestore.Team(p.dir)).Write(p.t.Context(), b); err != nil {
		p.t.Fatal(err)
	}
}

// lives keeps a host with that id alive until ends is called, or the test ends.
func (p *place) lives(host string) (ends func()) {
	p.t.Helper()
	dir := filepath.Join(p.dir, "hosts", host)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		p.t.Fatal(err)
	}
	lock, err := filelock.New(filepath.Join(dir, proc.AliveFile))
	if err != nil {
		p.t.Fatal(err)
	}
	ends = sync.OnceFunc(func() { lock.Unlock() })
	p.t.Cleanup(ends)
	return ends
}

func (p *place) write(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.project, name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// TestRefusal: a team that cannot continue is refused, in the words of the protocol, with what to
// do instead.
func TestRefusal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		team team.Team
		code team.Code
		says string
		help team.Action
	}{
		{"active", team.Team{Status: team.TeamActive}, "", "", ""},
		{"consolidating", team.Team{Status: team.TeamConsolidating}, "", "", ""},
		{"complete", team.Team{Status: team.TeamComplete}, team.Finished, "team demo is complete", team.ActShowReview},
		{"aborted", team.Team{Status: team.TeamAborted}, team.Finished, "team demo is aborted", team.ActShowReview},
		{"cleaned up comes first", team.Team{Status: team.TeamAborted, CleanedUp: true}, team.Finished,
			"team demo was cleaned up, and something is left of it", team.ActCleanUp},
		{"pending", team.Team{Status: team.TeamPending}, team.Invalid,
			"team demo has not begun: it has no goal and no teammates", team.ActSpawn},
		{"pending, for a goal", team.Team{Status: team.TeamPending, Goal: "mend it"}, "", "", ""},
		{"pending, of a team file", team.Team{Status: team.TeamPending, Origin: "/team.yaml"}, "", "", ""},
	} {
		c.team.Name = "demo"
		err := inspect.Refusal(c.team)
		if team.CodeOf(err) != c.code || err != nil && err.Error() != c.says || err == nil && c.says != "" {
			t.Errorf("%s: %v (%s)", c.name, err, team.CodeOf(err))
		}
		if h := team.HintsOf(err); c.help == "" && len(h) > 0 ||
			c.help != "" && (len(h) != 1 || h[0].Action != c.help || h[0].Team != "demo") {
			t.Errorf("%s: it hints at %+v", c.name, h)
		}
	}
}

// TestLead: the lock of a running process says who leads, or else the last heartbeat.
func TestLead(t *testing.T) {
	t.Parallel()
	here, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		leads string
		does  func(p *place)
		after time.Duration
		want  inspect.Lead
		skew  string
	}{
		{name: "nobody", after: time.Hour, want: inspect.Lead{Stale: true}},
		{name: "one that is alive", leads: "s1", after: time.Hour, want: inspect.Lead{Session: "s1", Alive: true,
			LastSeen: created + 1000}, does: func(p *place) {
			lock, err := leader.Claim(t.Context(), filestore.Team(p.dir))
			if err != nil {
				p.t.Fatal(err)
			}
			p.t.Cleanup(func() { lock.Release() })
		}},
		{name: "one that sent no heartbeat since it took the lead", leads: "s1", after: 29 * time.Minute,
			want: inspect.Lead{Session: "s1", LastSeen: created + 1000}},
		{name: "the same, for too long", leads: "s1", after: 31 * time.Minute, want: inspect.Lead{Session: "s1",
			LastSeen: created + 1000, Stale: true}},
		{name: "one that died here", leads: "s1", after: 12 * time.Minute, want: inspect.Lead{Session: "s1",
			LastSeen: created + 600_000},
			does: func(p *place) {
				p.beat(heartbeat.Beat{Member: "lead", Session: "s1", Machine: here},
					10*time.Minute)
			}},
		{name: "one on another machine", leads: "s1", after: 12 * time.Minute, want: inspect.Lead{Session: "s1",
			LastSeen: created + 600_000, Machine: "elsewhere"},
			does: func(p *place) {
				p.beat(heartbeat.Beat{Member: "lead", Session: "s1", Machine: "elsewhere"}, 10*time.Minute)
			}},
		{name: "one on another machine, silent for too long", leads: "s1", after: 40 * time.Minute,
			want: inspect.Lead{Session: "s1", LastSeen: created + 600_000, Machine: "elsewhere", Stale: true},
			does: func(p *place) {
				p.beat(heartbeat.Beat{Member: "lead", Session: "s1", Machine: "elsewhere"}, 10*time.Minute)
			}},
		{name: "the sign of life of an earlier session", leads: "s2", after: 12 * time.Minute,
			want: inspect.Lead{Session: "s2", LastSeen: created + 1000},
			does: func(p *place) {
				p.beat(heartbeat.Beat{Member: "lead", Session: "s1", Machine: here},
					10*time.Minute)
			}},
		{name: "a wrong clock makes no heartbeat old", leads: "s1", after: 40 * time.Minute,
			want: inspect.Lead{Session: "s1", LastSeen: created + 3_600_000}, skew: "the last heartbeat of the " +
				"lead lies 20 min in the future",
			does: func(p *place) { p.beat(heartbeat.Beat{Member: "lead", Session: "s1", Machine: here}, time.Hour) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var history []any
			if c.leads != "" {
				history = append(history, &team.AttachLead{Session: c.leads})
			}
			p := newPlace(t, history...)
			if c.does != nil {
				c.does(p)
			}
			found := p.examine(c.after)
			if found.Lead != c.want {
				t.Errorf("the lead is %+v, not %+v", found.Lead, c.want)
			}
			if strings.Join(found.Skew, "") != c.skew {
				t.Errorf("the clocks disagree about %q", found.Skew)
			}
		})
	}
}

// TestLives: of each member it is known whether its session is alive, without trusting a wrong
// clock.
func TestLives(t *testing.T) {
	t.Parallel()
	const now = time.Hour
	p := newPlace(t,
		&team.SpawnMember{Name: "outside", Agent: team.External},
		&team.SpawnMember{Name: "resting", Agent: team.Shell},
		&team.SpawnMember{Name: "online", Agent: team.Shell},
		&team.SpawnMember{Name: "fresh", Agent: team.Shell},
		&team.SpawnMember{Name: "silent", Agent: team.Shell},
		&team.SpawnMember{Name: "almost", Agent: team.Shell},
		&team.SpawnMember{Name: "skewed", Agent: team.Shell},
		&team.SpawnMember{Name: "damaged", Agent: team.Shell},
		&team.SpawnMember{Name: "orphan", Agent: team.Shell},
		&team.SpawnMember{Name: "forgotten", Agent: team.Shell},
		&team.SpawnMember{Name: "moved", Agent: team.Shell},
		&team.SpawnMember{Name: "lost", Agent: team.Shell},
		&team.SpawnMember{Name: "ended", Agent: team.External},
		&team.CreateTask{Subject: "the first"}, &team.CreateTask{Subject: "the second"},
		"online", &team.ClaimTask{Task: "2"},
		team.User, &team.ReportStopped{Member: "ended", Reason: "it was done"},
		team.Host("living"), &team.AttachMember{Member: "online"}, &team.AttachMember{Member: "fresh"},
		&team.AttachMember{Member: "silent"}, &team.AttachMember{Member: "almost"},
		&team.AttachMember{Member: "skewed"}, &team.AttachMember{Member: "damaged"},
		&team.AttachMember{Member: "moved"},
		&team.ReportStarted{Member: "online", Session: "session-7"}, &team.ReportUsage{Member: "online", Context: 47},
		team.Host("dead"), &team.AttachMember{Member: "orphan"}, &team.AttachMember{Member: "forgotten"},
		&team.AttachMember{Member: "lost"},
	)
	p.lives("living")
	if err := os.MkdirAll(filepath.Join(p.dir, "hosts", "dead"), 0o700); err != nil {
		t.Fatal(err)
	}
	p.beat(heartbeat.Beat{Member: "online", Host: "living"}, now-time.Minute)
	p.beat(heartbeat.Beat{Member: "silent", Host: "living"}, now-10*time.Minute)
	p.beat(heartbeat.Beat{Member: "almost", Host: "living"}, now-9*time.Minute)
	p.beat(heartbeat.Beat{Member: "skewed", Host: "living"}, now+time.Minute)
	p.beat(heartbeat.Beat{Member: "damaged", Host: "living"}, now)
	if err := os.WriteFile(filepath.Join(p.dir, "heartbeats", "damaged.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	// its heartbeat is recent, but its host is known to have ended
	p.beat(heartbeat.Beat{Member: "orphan", Host: "dead"}, now)
	// the heartbeat is from its previous host, as for lost
	p.beat(heartbeat.Beat{Member: "moved", Host: "other"}, now-20*time.Minute)
	p.beat(heartbeat.Beat{Member: "lost", Host: "other"}, now)
	p.beat(heartbeat.Beat{Member: "stranger", Host: "dead"}, now) // of no member
	if err := os.WriteFile(filepath.Join(p.dir, "orphan_checkpoint.json"), []byte(`{"teammate_id":"orphan"}`),
		0o600); err != nil {
		t.Fatal(err)
	}
	if _, there, err := host.ReadSaved(context.Background(), filestore.Team(p.dir), "orphan"); !there || err != nil {
		t.Fatal(there, err)
	}

	found := p.examine(now)
	want := map[string]struct {
		life inspect.Life
		why  string
	}{
		"lead": {inspect.Outside, ""}, "outside": {inspect.Outside, ""}, "ended": {inspect.Ended, "it was done"},
		"resting": {inspect.Paused, "no process runs its session"},
		"online":  {inspect.Online, ""}, "almost": {inspect.Online, ""},
		"fresh":  {inspect.Online, "its host runs; it has sent no heartbeat yet"},
		"moved":  {inspect.Online, "its host runs; it has sent no heartbeat yet"},
		"silent": {inspect.Offline, "silent for 10 min"},
		"orphan": {inspect.Offline, "the host that ran its session has ended"}, "forgotten": {inspect.Offline,
			"the host that ran its session has ended"},
		"lost":    {inspect.Offline, "the host that ran its session has ended"},
		"skewed":  {inspect.Unknown, "its last heartbeat lies in the future: a clock is wrong"},
		"damaged": {inspect.Unknown, "its last heartbeat cannot be read"},
	}
	if len(found.Members) != len(want) {
		t.Errorf("there are %d members", len(found.Members))
	}
	for _, m := range found.Members {
		if w := want[m.Name]; m.Life != w.life || m.Why != w.why {
			t.Errorf("%s is %s, %q; want %s, %q", m.Name, m.Life, m.Why, w.life, w.why)
		}
		if (m.Status == "offline") != (m.Life == inspect.Offline) {
			t.Errorf("%s is %s, and its status is %s", m.Name, m.Life, m.Status)
		}
		if m.Saved != (m.Name == "orphan") || (m.Task == "2") != (m.Name == "online") {
			t.Errorf("%s saved its work: %t, and holds %q", m.Name, m.Saved, m.Task)
		}
		if m.Name == "online" && (m.Session != "session-7" || m.Context != 47 ||
			m.LastSeen != team.Time(at(now-time.Minute).UnixMilli()) || m.Status != "active") {
			t.Errorf("online is %+v", m)
		}
	}
	for life, n := range map[inspect.Life]int{inspect.Outside: 2, inspect.Ended: 1, inspect.Paused: 1,
		inspect.Online: 4, inspect.Offline: 4, inspect.Unknown: 2} {
		if got := found.Count(life); got != n {
			t.Errorf("%d are %s, not %d", got, life, n)
		}
	}
	if !slices.Equal(found.Skew, []string{"the last heartbeat of skewed lies 1 min in the future"}) {
		t.Errorf("the clocks disagree about %q", found.Skew)
	}
	if len(found.InProgress) != 1 || found.InProgress[0].Owner != "online" {
		t.Errorf("under way is %+v", found.InProgress)
	}
}

// TestZombies: while no session leads, every living member is a zombie, also one outside, and their
// messages are held.
func TestZombies(t *testing.T) {
	t.Parallel()
	p := newPlace(t, &team.AttachLead{Session: "s1"},
		&team.SpawnMember{Name: "ann", Agent: team.Shell}, &team.SpawnMember{Name: "bob", Agent: team.Shell},
		&team.SpawnMember{Name: "cy", Agent: team.External},
		team.Host("living"), &team.AttachMember{Member: "ann"}, &team.ReportStarted{Member: "ann",
			Session: "session-7"},
		team.Host("dead"), &team.AttachMember{Member: "bob"},
		team.Host("living"), &team.LoseLead{Session: "s1", Since: created + 1000, Seen: created - 600_000},
		"cy", &team.SendMessage{To: "ann", Body: "are you there?"},
	)
	p.lives("living")
	found := p.examine(time.Minute)
	for _, m := range found.Members {
		if (m.Status == "zombie") != (m.Name == "ann" || m.Name == "cy") {
			t.Errorf("%s is %s, %s", m.Name, m.Life, m.Status)
		}
	}
	if found.Held != 1 || found.Unread != 1 || found.Lead.Lost != created+8000 {
		t.Errorf("%d are held, %d not given; lost since %d", found.Held, found.Unread, found.Lead.Lost)
	}
}

// TestMail: the last ten messages are found, however much was recorded since.
func TestMail(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		sent, since  int // messages, and other records after them
		first, shown int64
	}{
		{"none", 0, 0, 0, 0}, {"none in a long history", 0, 700, 0, 0}, {"few", 3, 0, 1, 3}, {"ten", 10, 0, 1, 10},
		{"many", 25, 0, 16, 10},
		{"many, long ago", 25, 700, 16, 10}, {"few, very long ago", 4, 4500, 1, 4},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			history := []any{&team.SpawnMember{Name: "ann", Agent: team.External}}
			for i := range c.sent {
				history = append(history, &team.SendMessage{To: "ann", Body: fmt.Sprintf("words %d", i+1)})
			}
			for i := range c.since {
				history = append(history, &team.SetDelegate{On: i%2 == 0})
			}
			found := newPlace(t, history...).examine(2 * time.Hour)
			if int64(len(found.Mail)) != c.shown || found.Messages != int64(c.sent) || found.Unread != c.sent {
				t.Fatalf("%d messages of %d, %d not given: %v", len(found.Mail), found.Messages,
					found.Unread, found.Mail)
			}
			for i, m := range found.Mail {
				seq := c.first + int64(i)
				if m.Seq != seq || m.Body != fmt.Sprintf("words %d", seq) || m.SentAt != created+team.Time(seq+1)*1000 {
					t.Errorf("message %d is %+v", seq, m)
				}
			}
		})
	}
}

// counted is a journal that counts the records that are read.
type counted struct {
	journal.Journal
	read *atomic.Int64
}

func (c counted) Read(ctx context.Context, after int64) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		for r, err := range c.Journal.Read(ctx, after) {
			if c.read.Add(1); !yield(r, err) {
				return
			}
		}
	}
}

// TestMailCostsTheSameEver: how much is read for the last messages depends neither on how long ago
// they were sent, nor on how much was recorded between them.
func TestMailCostsTheSameEver(t *testing.T) {
	t.Parallel()
	var costs []int64
	for _, between := range []int{0, 100, 2000} {
		var read atomic.Int64
		rep, err := replica.Open(t.Context(), counted{memjournal.New("demo").Open(), &read}, replica.Options{})
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
		do(team.User, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: t.TempDir()})
		for i := range 12 {
			do(team.User, &team.SpawnMember{Name: fmt.Sprintf("m%d", i), Agent: team.External})
			do(team.User, &team.SendMessage{To: fmt.Sprintf("m%d", i), Body: fmt.Sprintf("for %d", i)})
		}
		do(team.User, &team.SendMessage{To: "m0", Body: "long ago"})
		for i := range between {
			do(team.User, &team.SetDelegate{On: i%2 == 0})
		}
		do(team.User, &team.SendMessage{To: "m1", Body: "now"})
		read.Store(0)
		found, err := (&inspect.Looker{Replica: rep, Dir: t.TempDir()}).Examine(t.Context(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		costs = append(costs, read.Load())
		if n := len(found.Mail); n != 10 || found.Mail[9].Body != "now" || found.Mail[8].Body != "long ago" ||
			found.Mail[0].Body != "for 4" {
			t.Errorf("shown are %d: %+v", n, found.Mail)
		}
	}
	if slices.Max(costs) > costs[0]+128 {
		t.Errorf("read are %d records", costs)
	}
}

// TestFacts: a fact is stale when its file has changed, disappeared, or appeared again.
func TestFacts(t *testing.T) {
	t.Parallel()
	sum := func(text string) string {
		hash := sha256.Sum256([]byte(text))
		return hex.EncodeToString(hash[:])
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.WriteFile(outside, []byte("outside"), 0o600); err != nil {
		t.Fatal(err)
	}
	facts := []team.Fact{{Name: "same", Path: "same", SHA256: sum("same")}, {Name: "changed", Path: "changed",
		SHA256: sum("before")}, {Name: "gone", Path: "gone", SHA256: sum("gone")},
		{Name: "none", Path: "none"}, {Name: "new", Path: "new"}, {Name: "outside", Path: outside,
			SHA256: sum("outside")}}
	p := newPlace(t, &team.RecordFacts{Facts: facts})
	for _, name := range []string{"same", "changed", "new"} {
		p.write(name, name)
	}
	found := p.examine(time.Hour)
	if stale := found.Stale(); !slices.Equal(stale, []string{"changed", "gone", "new"}) ||
		len(found.Facts) != len(facts) {
		t.Errorf("stale are %v, of %+v", stale, found.Facts)
	}
	if now := found.Facts[1].Now; now != sum("changed") {
		t.Errorf("what changed is %q now", now)
	}
	now, err := inspect.Facts(t.Context(), p.project, facts)
	if err != nil || now[1].SHA256 != sum("changed") || now[2].SHA256 != "" || facts[1].SHA256 != sum("before") {
		t.Errorf("%v: taken note of are %+v", err, now)
	}
	if _, err := inspect.Recorded(t.Context(), p.project, facts[:2]); err != nil {
		t.Error(err)
	}
	if _, err := inspect.Recorded(t.Context(), p.project, facts); team.CodeOf(err) != team.Invalid ||
		err.Error() != "gone cannot be a fact: there is no such file in "+p.project {
		t.Errorf("a fact that is nowhere: %v", err)
	}
}

// TestFactsThatCannotBeRead: a file that is not regular any more is a stale fact with a reason: a
// folder, a pipe without a writer, a link to a device that never ends. Nothing waits for it.
func TestFactsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	facts := []team.Fact{{Name: "folder", Path: "folder", SHA256: "1"}, {Name: "pipe", Path: "pipe", SHA256: "2"},
		{Name: "zeros", Path: "zeros", SHA256: "3"}, {Name: "locked", Path: "locked/in", SHA256: "4"}}
	p := newPlace(t, &team.RecordFacts{Facts: facts})
	in := func(name string) string { return filepath.Join(p.project, name) }
	err := errors.Join(os.Mkdir(in("folder"), 0o700), syscall.Mkfifo(in("pipe"), 0o600),
		os.Symlink("/dev/zero", in("zeros")), os.WriteFile(in("locked"), nil, 0o600))
	if err != nil {
		t.Fatal(err)
	}
	found := p.examine(time.Hour)
	if stale := found.Stale(); len(stale) != len(facts) {
		t.Errorf("stale are %v", stale)
	}
	for i, why := range []string{"not a regular file", "not a regular file", "not a regular file", "not a directory"} {
		if f := found.Facts[i]; !strings.Contains(f.Why, why) || f.State() != f.Why {
			t.Errorf("of %s it says %q", f.Name, f.Why)
		}
		if _, err := inspect.Facts(t.Context(), p.project, facts[i:i+1]); team.CodeOf(err) != team.Invalid ||
			!strings.Contains(err.Error(), facts[i].Name+" cannot be a fact") {
			t.Errorf("it is taken note of %s: %v", facts[i].Name, err)
		}
	}
}

// TestChecksumEndsWithItsContext: a caller can cancel the checksum of a large file.
func TestChecksumEndsWithItsContext(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Skip(err) // the disk does not support holes
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := inspect.Checksum(ctx, "/", path); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

// TestProgress: the remaining tasks are estimated to take as long as the finished ones did, shared
// among the members that can work.
func TestProgress(t *testing.T) {
	t.Parallel()
	history := []any{&team.SpawnMember{Name: "ann", Agent: team.External}, &team.SpawnMember{Name: "bob",
		Agent: team.External}, &team.SpawnMember{Name: "cy", Agent: team.External}}
	for i := range 7 {
		history = append(history, &team.CreateTask{Subject: fmt.Sprint("task ", i+1)})
	}
	if found := newPlace(t, history...).examine(time.Hour); found.Percent != 0 || found.Left.Std() != 0 {
		t.Errorf("nothing is done: %d %%, %s", found.Percent, found.Left.Std())
	}
	history = append(history, "bob", &team.ClaimTask{Task: "7"}, "ann")
	for i := range 3 { // each takes 1 s
		if found := newPlace(t, history...).examine(time.Hour); found.Left.Std() != 0 {
			t.Errorf("%s are left after %d", found.Left.Std(), i)
		}
		history = append(history, &team.ClaimTask{Task: fmt.Sprint(i + 1)}, &team.CompleteTask{Task: fmt.Sprint(i + 1)})
	}
	found := newPlace(t, history...).examine(time.Hour)
	if found.Percent != 42 || found.Left.Std() != 2*time.Second || found.Tasks["completed"] != 3 ||
		found.Tasks["in_progress"] != 1 || found.Tasks["pending"] != 3 {
		// four by three: two times 1 s
		t.Errorf("%d %% of %v, %s left", found.Percent, found.Tasks, found.Left.Std())
	}
	failed := append(slices.Clone(history), team.User, &team.DeleteTask{Task: "4"}, &team.DeleteTask{Task: "5"},
		&team.DeleteTask{Task: "6"}, "bob", &team.FailTask{Task: "7", Fence: 1, Reason: "broken"})
	if found := newPlace(t, failed...).examine(time.Hour); found.Tasks["pending"] != 1 ||
		found.Left.Std() != 0 {
		t.Errorf("of %v, no task can be done, and %s are left", found.Tasks, found.Left.Std())
	}
	found = newPlace(t, append(history, team.User, &team.ReportStopped{Member: "cy"},
		&team.ReportStopped{Member: "bob"})...).examine(time.Hour)
	if found.Left.Std() != 4*time.Second {
		t.Errorf("by one, %s are left", found.Left.Std())
	}
	history = append(history, team.User)
	if found := newPlace(t, append(history, &team.DeleteTask{Task: "6"})...).examine(
		time.Hour); found.Left.Std() != time.Second {
		t.Errorf("one less, and %s are left", found.Left.Std())
	}
	for i := range 4 {
		history = append(history, &team.DeleteTask{Task: fmt.Sprint(i + 4)})
	}
	if found := newPlace(t, history...).examine(time.Hour); found.Percent != 100 || found.Left.Std() != 0 {
		t.Errorf("everything is done: %d %%, %s", found.Percent, found.Left.Std())
	}
}

// TestCreatedInTheFuture: a clock that ran backwards is reported, and decides nothing.
func TestCreatedInTheFuture(t *testing.T) {
	t.Parallel()
	p := newPlace(t, &team.AttachLead{Session: "s1"})
	if found := p.examine(-time.Second); len(found.Skew) != 0 {
		t.Errorf("a second makes %q", found.Skew)
	}
	found := p.examine(-time.Hour)
	if len(found.Skew) != 2 || found.Skew[0] != "the team was created 1 h in the future" || found.Lead.Stale {
		t.Errorf("the clocks disagree about %q; the lead is %+v", found.Skew, found.Lead)
	}
}

// TestTouchesNothing: an examination changes neither the team nor the project.
func TestTouchesNothing(t *testing.T) {
	t.Parallel()
	p := newPlace(t, &team.AttachLead{Session: "s1"},
		&team.RecordFacts{Facts: []team.Fact{{Name: "go.mod", Path: "go.mod"}}},
		&team.SpawnMember{Name: "ann", Agent: team.Shell}, team.Host("dead"), &team.AttachMember{Member: "ann"})
	p.write("go.mod", "module demo")
	p.beat(heartbeat.Beat{Member: "ann", Host: "dead"}, 0)
	unchanged := treetest.Keep(t, p.dir, p.project)
	p.examine(time.Hour)
	unchanged("examining it")
}
