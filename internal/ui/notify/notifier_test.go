package notify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/inspect/attention"
	"cadre/internal/sys/filelock"
	"cadre/internal/team"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// recorder is a channel that records what it is given.
type recorder struct {
	mu   sync.Mutex
	got  []string
	ids  map[string]bool // all ids as they were sent
	fail error
	hang bool
}

func (r *recorder) channel() Channel {
	return Channel{Name: "recorder", Send: func(ctx context.Context, f Fact) error {
		if r.hang {
			<-ctx.Done()
			return ctx.Err()
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.fail == nil {
			if r.ids == nil {
				r.ids = map[string]bool{}
			}
			r.ids[f.ID] = true
			r.got = append(r.got, strings.TrimSuffix(f.ID, "/"+strconv.FormatInt(int64(f.Since), 10)))
		}
		return r.fail
	}}
}

// want checks what the channel was given since the last call.
func (r *recorder) want(t *testing.T, ids ...string) {
	t.Helper()
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.got, ids) {
		t.Errorf("sent %q, want %q", r.got, ids)
	}
	r.got = nil
}

// life is the life of one process that serves a channel.
type life struct {
	board *board
	end   func()
	mu    sync.Mutex
	log   []string
	at    []string // the ids of facts that the person looks at
}

// look lets the person look at what shows these facts, and at nothing else.
func (l *life) look(at ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.at = at
}

func (l *life) looks() func(Fact) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.at
	return func(f Fact) bool { return slices.Contains(at, f.ID) }
}

// begin starts a process that serves the channel.
func begin(t *testing.T, folder string, c Channel, written time.Time, watched ...string) *life {
	ctx, cancel := context.WithCancel(t.Context())
	l := &life{board: newBoard()}
	l.look(watched...)
	s := &server{Options: Options{Folder: folder, Written: written, Looks: l.looks, Log: func(line string) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.log = append(l.log, line)
	}}, channel: c, board: l.board}
	var serving sync.WaitGroup
	serving.Go(func() { s.serve(ctx) })
	l.end = func() { cancel(); serving.Wait() }
	t.Cleanup(l.end)
	return l
}

func fact(id string) Fact {
	return Fact{ID: id, Team: "demo", TeamID: "1", Kind: string(team.ItemPermission), Text: id,
		Since: team.Time(time.Now().UnixMilli())}
}

func facts(ids ...string) (all []Fact) {
	for _, id := range ids {
		all = append(all, fact(id))
	}
	return all
}

// TestOnce checks that a fact is sent once while it stands, across processes, and again when it
// stands again.
func TestOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder, r, old := t.TempDir(), &recorder{}, time.Now().Add(-time.Hour)
		one := begin(t, folder, r.channel(), old)
		one.board.put(facts("a"))
		r.want(t, "a")
		one.board.put(facts("a", "b"))
		r.want(t, "b")
		two := begin(t, folder, r.channel(), old) // waits for its turn
		two.board.put(facts("a", "b", "c"))
		time.Sleep(2 * tryLock)
		r.want(t)
		one.end()
		time.Sleep(2 * tryLock)
		r.want(t, "c")
		two.board.put(facts("b"))
		r.want(t)
		two.board.put(facts("a", "b"))
		r.want(t, "a")
		if len(r.ids) != 4 { // a, b, c, and a again
			t.Errorf("the ids %v do not tell the two times of a apart", slices.Collect(maps.Keys(r.ids)))
		}
	})
}

// TestEachTerminal checks that a fact is sent once to each terminal, however many processes it has,
// and once through a channel that needs none.
func TestEachTerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder := t.TempDir()
		at := map[int64]*recorder{1: {}, 2: {}, 0: {}}
		var lives []*life
		for _, terminal := range []int64{1, 2, 2, 0, 0} {
			c := at[terminal].channel()
			c.Fleeting, c.Terminal = terminal != 0, terminal
			l := begin(t, folder, c, time.Now().Add(-time.Minute))
			l.board.put(nil)
			synctest.Wait()
			lives = append(lives, l)
		}
		for _, l := range lives {
			l.board.put(facts("a"))
		}
		time.Sleep(time.Hour)
		for _, r := range at {
			r.want(t, "a")
		}
	})
}

// TestWhatStoodBefore checks that nothing is sent of what stood before the settings were written.
func TestWhatStoodBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		old, nobody := fact("old"), fact("since when nobody knows")
		old.Since, nobody.Since = team.Time(time.Now().Add(-time.Hour).UnixMilli()), 0
		l := begin(t, t.TempDir(), r.channel(), time.Now().Add(-time.Minute))
		l.board.put([]Fact{old, nobody, fact("new")})
		l.board.put([]Fact{old, nobody, fact("new")})
		r.want(t, "new")

		fleeting := r.channel()
		fleeting.Fleeting = true
		l = begin(t, t.TempDir(), fleeting, time.Time{})
		l.board.put(facts("stands"))
		r.want(t)
		l.board.put(facts("stands", "comes"))
		r.want(t, "comes")
	})
}

// TestFailures checks that a failure is reported once, that the fact is sent later, and that a
// channel that hangs is ended.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{fail: errors.New("no network")}
		l := begin(t, t.TempDir(), r.channel(), time.Now().Add(-time.Minute))
		l.board.put(facts("a"))
		time.Sleep(3 * retry)
		r.want(t)
		r.mu.Lock()
		r.fail = nil
		r.mu.Unlock()
		time.Sleep(4 * retry)
		r.want(t, "a")
		l.mu.Lock()
		if len(l.log) != 1 || !strings.Contains(l.log[0], "no network") {
			t.Errorf("the failure is reported as %q", l.log)
		}
		l.mu.Unlock()
		r.hang = true
		l.board.put(facts("a", "b"))
		time.Sleep(Deadline + time.Second)
		l.mu.Lock()
		defer l.mu.Unlock()
		if len(l.log) != 2 || !strings.Contains(l.log[1], "deadline exceeded") {
			t.Errorf("a channel that hangs is reported as %q", l.log)
		}
	})
}

// TestLasting checks that the end of a process is sent only if no other process takes its place.
func TestLasting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		dead := fact("dead")
		dead.Kind = string(team.ItemDormant)
		l := begin(t, t.TempDir(), r.channel(), time.Now().Add(-time.Minute))
		l.board.put(nil)
		for range 3 {
			l.board.put([]Fact{dead})
			time.Sleep(settle / 2)
			l.board.put(nil)
			time.Sleep(settle)
		}
		r.want(t)
		l.board.put([]Fact{dead})
		time.Sleep(settle)
		r.want(t, "dead")
	})
}

// TestMany checks that many facts of one team are one notification.
func TestMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		l := begin(t, t.TempDir(), r.channel(), time.Now().Add(-time.Minute))
		l.board.put(facts("a", "b", "c"))
		l.board.put(facts("a", "b", "c"))
		r.want(t, "a", "b", "c")
		l.board.put(facts("a", "b", "c", "d", "e", "f", "g"))
		r.want(t, "d")
		l.board.put(facts("a", "b", "c", "d", "e", "f", "g"))
		r.want(t)
	})
	f := digest(facts("d", "e", "f", "g"))
	if !strings.HasPrefix(f.Text, "4 things need you. The first: d") || f.Do != "cadre attention demo" ||
		f.Title() != "Team demo needs you" {
		t.Errorf("four facts are one as %+v", f)
	}
}

// TestLookedAt checks that nothing is sent of what the person looks at, and that what still waits
// is sent when they no longer look.
func TestLookedAt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		l := begin(t, t.TempDir(), r.channel(), time.Now().Add(-time.Minute), "a", "b", "c")
		end := fact("c")
		end.Kind = Complete
		l.board.put(append(facts("a", "b"), end))
		time.Sleep(time.Hour)
		r.want(t)
		l.board.put(append(facts("a", "b", "d"), end))
		r.want(t, "d")
		l.look() // they answer b
		time.Sleep(lookedAway - 2*glance)
		r.want(t)
		l.board.put(append(facts("a", "d"), end))
		r.want(t)
		time.Sleep(lookedAway + glance)
		r.want(t, "a")
		l.look("a")
		time.Sleep(time.Hour)
		l.look()
		time.Sleep(time.Hour)
		r.want(t)
	})
}

// TestGlance checks that a person who looks again in time is not notified.
func TestGlance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &recorder{}
		l := begin(t, t.TempDir(), r.channel(), time.Now().Add(-time.Minute), "a")
		l.board.put(facts("a"))
		time.Sleep(glance / 2) // between the checks
		for range 10 {
			time.Sleep(glance)
			l.look()
			time.Sleep(glance)
			l.look("a")
		}
		r.want(t)
	})
}

// TestLookedAtBefore checks that a process continues to wait for what the person looked at while
// another one served the channel, and sends it then.
func TestLookedAtBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		folder, r := t.TempDir(), &recorder{}
		l := begin(t, folder, r.channel(), time.Now().Add(-time.Minute), "a")
		l.board.put(facts("a"))
		synctest.Wait()
		l.board.end() // as at the end of a process
		r.want(t)
		l.end()
		l = begin(t, folder, r.channel(), time.Now().Add(-time.Minute))
		l.board.put(facts("a", "b"))
		time.Sleep(lookedAway / 2)
		r.want(t, "b")
		time.Sleep(lookedAway)
		r.want(t, "a")
	})
}

// TestDamagedFile checks that a file which cannot be read is reported, and nothing is sent.
func TestDamagedFile(t *testing.T) {
	folder, r := t.TempDir(), &recorder{}
	lock, err := filelock.New(filepath.Join(folder, "recorder.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Unlock()
	fmt.Fprint(lock.File(), "{")
	synctest.Test(t, func(t *testing.T) {
		l := begin(t, folder, r.channel(), time.Time{})
		l.board.put(facts("a"))
		r.want(t)
		if len(l.log) != 1 || !strings.Contains(l.log[0], "recorder.json is damaged") {
			t.Errorf("it is reported as %q", l.log)
		}
	})
}

// TestFacts checks which of what stands in a team is a fact, and what it says.
func TestFacts(t *testing.T) {
	got := ""
	for _, f := range Facts([]attention.Found{
		{Folder: "a", Team: team.Team{ID: "1", Name: "a", Status: team.TeamActive}, Items: []team.Item{
			{Kind: team.ItemPermission, WaitsFor: team.ForUser, Member: "ann", Request: "r1", Text: "ann asks\x1b[2J",
				Hint: team.Hint{Action: team.ActAnswerPermission, Request: "r1"}},
			{Kind: team.ItemPlan, WaitsFor: "lead", Member: "bob"},
			{Kind: team.ItemHeld, WaitsFor: team.ForUser, Member: "bob"},
			{Kind: team.ItemDormant, WaitsFor: team.ForUser, Text: "dead", Hint: team.Hint{Action: team.ActResume}}}},
		{Folder: "b", Paused: true, Team: team.Team{ID: "2", Name: "b", Status: team.TeamActive}, Items: []team.Item{
			{Kind: team.ItemDormant, WaitsFor: team.ForUser, Text: "paused"}}},
		{Folder: "c", Team: team.Team{ID: "3", Name: "c", Status: team.TeamComplete, Report: "c.md"}},
		{Folder: "d", Team: team.Team{ID: "4", Name: "d", Status: team.TeamAborted}},
		{Folder: "e", Team: team.Team{ID: "5", Name: "e", Status: team.TeamComplete, Observed: "x"}},
		{Folder: "g-x1", Team: team.Team{ID: "6", Name: "g", Status: team.TeamAborted}},
		{Folder: "h", Team: team.Team{ID: "7", Name: "h", Status: team.TeamAborted}},
		{Folder: "h-x2", Team: team.Team{ID: "8", Name: "h", Status: team.TeamAborted}},
		{Folder: "f", Items: []team.Item{{Kind: team.ItemDamaged, WaitsFor: team.ForUser, Text: "bad",
			Hint: team.Hint{Action: team.ActMend}}}},
	}) {
		got += fmt.Sprintf("%s | %s | %q | %s\n", f.ID, f.Title(), f.Text, f.Do)
	}
	const want = `1/permission/ann//r1/ | ann of team a needs you | "ann asks␛[2J" | cadre permit a r1
1/dormant//// | Team a needs you | "dead" | cadre resume a
3/end | Team c is done | "Team c is complete; its report is in c.md." | cadre log c
4/end | Team d was aborted | "Team d is aborted." | cadre log d
6/end | Team g was aborted | "Team g is aborted." | cadre log g-x1
7/end | Team h was aborted | "Team h is aborted." | cadre log h
8/end | Team h-x2 was aborted | "Team h is aborted." | cadre log h-x2
f/damaged//// | Team f needs you | "bad" | cadre fsck f
`
	if got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
