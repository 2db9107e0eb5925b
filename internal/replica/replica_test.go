package replica_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"cadre/internal/journal"
	"cadre/internal/replica"
	"cadre/internal/team"
)

func TestACommandIsSeenByEveryReplica(t *testing.T) {
	p := newPlace(t)
	a, b := p.open(replica.Options{}), p.open(replica.Options{})
	before := b.Seq()
	r := do(t, a, "ann", &team.SendMessage{To: "bob", Body: "hello"})
	if r.Seq != before+1 || a.Seq() != r.Seq {
		t.Errorf("record %d after %d, and its replica is at %d", r.Seq, before, a.Seq())
	}
	if b.Seq() != before {
		t.Errorf("the other replica moved without being asked")
	}
	if err := b.Wait(within(t), before); err != nil {
		t.Fatal(err)
	}
	if mail := inbox(b, "bob"); len(mail) != 1 || mail[0].Body != "hello" || mail[0].From != "ann" {
		t.Errorf("bob has %v", mail)
	}
	if name := b.Team().Name; name != "demo" {
		t.Errorf("the team is %q", name)
	}
}

// TestDecisionsAreMadeOnThePresent checks that a replica that is behind decides on the present
// state, not on the state that it knew.
func TestDecisionsAreMadeOnThePresent(t *testing.T) {
	p := newPlace(t, &team.CreateTask{Subject: "look"})
	a, b := p.open(replica.Options{}), p.open(replica.Options{})
	do(t, a, "ann", &team.ClaimTask{Task: "1"})
	_, err := b.Do(within(t), team.Command{Actor: "bob", Body: &team.ClaimTask{Task: "1"}})
	if team.CodeOf(err) != team.Conflict {
		t.Errorf("the second claim: %v", err)
	}
	if owner := task(b, "1").Owner; owner != "ann" {
		t.Errorf("after its refusal the replica says that %q has the task", owner)
	}
}

func TestACommandHappensOnce(t *testing.T) {
	p := newPlace(t)
	a, b := p.open(replica.Options{}), p.open(replica.Options{})
	c := team.Command{ID: replica.NewID(), Actor: "ann", Body: &team.SendMessage{To: "bob", Body: "hello"}}
	first, err := a.Do(within(t), c)
	if err != nil || first.Repeated {
		t.Fatalf("%v, repeated: %t", err, first.Repeated)
	}
	for _, rep := range []*replica.Replica{a, b} {
		again, err := rep.Do(within(t), c)
		if err != nil || !again.Repeated || again.Record.Seq != first.Record.Seq || again.Record.ID != c.ID {
			t.Errorf("again: %+v, %v", again, err)
		}
	}
	if mail := inbox(b, "bob"); len(mail) != 1 {
		t.Errorf("bob has %d messages", len(mail))
	}
}

func TestNothingToChange(t *testing.T) {
	rep := newPlace(t).open(replica.Options{})
	before := rep.Seq()
	if r := do(t, rep, team.User, &team.SetDelegate{On: false}); r != nil || rep.Seq() != before {
		t.Errorf("a command that changes nothing became record %+v", r)
	}
}

// TestManyAtOnce checks that one replica serves many goroutines, which send and read while others
// write too. Nothing is lost, and no incomplete write counts as damage.
func TestManyAtOnce(t *testing.T) {
	const writers, each = 6, 60
	p := newPlace(t)
	shared, other := p.open(replica.Options{}), p.open(replica.Options{})
	writing, stop := context.WithCancel(within(t))
	var looking, sending sync.WaitGroup
	for range 3 {
		looking.Go(func() {
			for seq := int64(0); ; {
				for r, err := range shared.Read(writing, seq) {
					if err != nil {
						if writing.Err() == nil {
							t.Error(err)
						}
						return
					}
					if r.Seq != seq+1 {
						t.Errorf("record %d after %d", r.Seq, seq)
						return
					}
					seq = r.Seq
				}
				if shared.Wait(writing, seq) != nil {
					return
				}
			}
		})
	}
	for w := range writers {
		rep := shared
		if w%3 == 0 {
			rep = other
		}
		sending.Go(func() {
			for i := range each {
				if _, err := rep.Do(writing, team.Command{Actor: "ann", Body: &team.SendMessage{To: "bob",
					Body: fmt.Sprintf("%d/%d", w, i)}}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	sending.Wait()
	stop()
	looking.Wait()
	if err := shared.Refresh(within(t)); err != nil {
		t.Fatal(err)
	}
	next := map[string]int{}
	for _, m := range inbox(shared, "bob") {
		writer, i, _ := strings.Cut(m.Body, "/")
		if i != fmt.Sprint(next[writer]) {
			t.Fatalf("writer %s: %s where %d is due", writer, i, next[writer])
		}
		next[writer]++
	}
	if n := len(inbox(shared, "bob")); n != writers*each {
		t.Errorf("%d messages of %d", n, writers*each)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	rep := newPlace(t).open(replica.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan error)
	go func() { waiting <- rep.Wait(ctx, rep.Seq()) }()
	cancel()
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
}

func TestWatchContinues(t *testing.T) {
	p := newPlace(t)
	watcher, writer := p.open(replica.Options{}), p.open(replica.Options{})
	seq := int64(0)
	for r, err := range watcher.Watch(within(t), 0) {
		if err != nil {
			t.Fatal(err)
		}
		if seq++; r.Seq != seq {
			t.Fatalf("record %d where %d is due", r.Seq, seq)
		}
		if seq == 10 {
			return
		}
		if seq >= 3 {
			do(t, writer, "ann", &team.SendMessage{To: "bob", Body: "more"})
		}
	}
}

// TestSnapshots checks that a snapshot saves reading. A damaged one only costs that saving.
func TestSnapshots(t *testing.T) {
	p := newPlace(t)
	rep := p.open(replica.Options{})
	long := strings.Repeat("x", 100_000)
	snapshot := filepath.Join(p.home.Root, "teams", "demo", "state.json")
	for range 200 {
		do(t, rep, "ann", &team.SendMessage{To: "bob", Body: long})
		do(t, rep, "bob", &team.ReceiveMessages{})
		if _, err := os.Stat(snapshot); err == nil {
			break
		}
	}
	content, err := os.ReadFile(snapshot)
	if err != nil {
		t.Fatalf("no snapshot was made: %v", err)
	}
	want, sent := rep.Seq(), rep.Team()
	if again := p.open(replica.Options{}); again.Seq() != want || again.Team().ID != sent.ID {
		t.Errorf("from the snapshot the team is at %d, not %d", again.Seq(), want)
	}
	content[len(content)/2] ^= 1
	if err := os.WriteFile(snapshot, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if again := p.open(replica.Options{}); again.Seq() != want {
		t.Errorf("past a damaged snapshot the team is at %d, not %d", again.Seq(), want)
	}
}

func TestProjections(t *testing.T) {
	p := newPlace(t)
	var seqs []int64
	rep := p.open(replica.Options{Project: func(_ context.Context, _ journal.Journal, s *team.State) error {
		seqs = append(seqs, s.Seq())
		return iotest.ErrTimeout // it is logged and fails nothing
	}})
	rep.Project(t.Context())
	do(t, rep, "ann", &team.SendMessage{To: "bob", Body: "x"})
	last := rep.Seq()
	if err := rep.Close(); err != nil {
		t.Error(err)
	}
	if len(seqs) != 2 || seqs[1] != last {
		t.Errorf("projected at %v, the last record is %d", seqs, last)
	}
}

func TestATeamThatIsGone(t *testing.T) {
	p := newPlace(t)
	rep := p.open(replica.Options{})
	if err := p.home.Remove(filepath.Join(p.home.Root, "teams", "demo"), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := rep.Do(within(t), team.Command{Actor: "ann", Body: &team.SendMessage{To: "bob",
		Body: "x"}}); !errors.Is(err, journal.ErrGone) {
		t.Errorf("a command: %v", err)
	}
	if err := rep.Wait(within(t), rep.Seq()); !errors.Is(err, journal.ErrGone) {
		t.Errorf("a wait: %v", err)
	}
}

// TestCancelledProjection checks that a projection that its caller cancelled is not reported, and
// one that failed is.
func TestCancelledProjection(t *testing.T) {
	var said []string
	failure := errors.New("the disk is full")
	rep := newPlace(t).open(replica.Options{Log: func(text string) { said = append(said, text) },
		Project: func(ctx context.Context, _ journal.Journal, _ *team.State) error {
			return cmp.Or(ctx.Err(), failure)
		}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	rep.Project(ctx)
	if len(said) > 0 {
		t.Errorf("it said %q", said)
	}
	rep.Project(t.Context())
	if len(said) != 1 || said[0] != failure.Error() {
		t.Errorf("of a failure it said %q", said)
	}
}
