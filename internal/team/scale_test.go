package team

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// busy is a state on which commands are decided and applied one after the other.
type busy struct {
	*testing.T
	*State
}

func newBusy(t *testing.T) *busy {
	b := &busy{t, &State{}}
	b.do(User, &CreateTeam{TeamID: "t", Name: "demo", Dir: "/d"})
	b.do("lead", &SpawnMember{Name: "ann", Agent: External})
	return b
}

func (b *busy) do(actor string, body Body) *Record {
	b.Helper()
	d, err := Decide(b.State, Command{ID: fmt.Sprint("busy-", b.Seq()), Actor: actor, Body: body})
	if err != nil {
		b.Fatal(err)
	}
	b.Apply(d.Record)
	return d.Record
}

func TestManyMessagesOneAtATime(t *testing.T) {
	b := newBusy(t)
	const n = 16_000
	for range n {
		b.do("lead", &SendMessage{To: "ann", Body: "hello"})
	}
	b.State = reopened(t, b.State)
	for want := int64(1); want <= n; want++ {
		delivered := b.do("ann", &ReceiveMessages{Max: 1}).Events[0].(*MessagesDelivered)
		if !slices.Equal(delivered.Seqs, []int64{want}) {
			t.Fatalf("delivered %v and not %d", delivered.Seqs, want)
		}
	}
	if len(b.Inbox("ann")) != 0 || len(b.messages) != 0 {
		t.Errorf("%d messages are left", len(b.messages))
	}
}

func TestReturnedMailFitsIntoOneMessage(t *testing.T) {
	b := newBusy(t)
	for range 2000 {
		b.do("lead", &SendMessage{To: "ann", Body: strings.Repeat("é", 3000)})
	}
	r := b.do(User, &ReportFailed{Member: "ann"})
	last := r.Events[len(r.Events)-1].(*MessageSent).Message
	if last.To != "lead" || len(last.Body) > MaxText || !strings.HasSuffix(last.Body, " more") {
		t.Errorf("%d bytes were returned to %s, ending with %q", len(last.Body), last.To, last.Body[len(last.Body)-20:])
	}
}

func TestBroadcastToAHundred(t *testing.T) {
	b := newBusy(t)
	for i := range 98 {
		b.do(User, &SpawnMember{Name: fmt.Sprint("m", i), Agent: External})
	}
	for range 1000 {
		b.do("m0", &Broadcast{Body: "news"})
	}
	for _, m := range b.Members() {
		if want := 1000; m.Name != "m0" && len(m.Inbox) != want {
			t.Errorf("%s has %d messages of %d", m.Name, len(m.Inbox), want)
		}
		if m.Name != "m0" {
			b.do(User, &ReceiveMessages{Member: m.Name})
		}
	}
	if len(b.messages) != 0 {
		t.Errorf("%d messages are kept", len(b.messages))
	}
}

func TestLongChainAndWideFan(t *testing.T) {
	b := newBusy(t)
	const n = 10_000
	var all []string
	for i := 1; i <= n; i++ {
		task := &CreateTask{Subject: "link"}
		if i > 1 {
			task.BlockedBy = []string{strconv.Itoa(i - 1)}
		}
		b.do("lead", task)
		all = append(all, strconv.Itoa(i))
	}
	_, err := Decide(b.State, Command{ID: "cycle", Actor: "lead",
		Body: &UpdateTask{Task: "1", AddBlockedBy: []string{strconv.Itoa(n)}}})
	want := "these tasks would wait for each other in a cycle: 1 → 10000 → 9999 → 9998 → 9997 → 9996 → 9995 → 9994 → " +
		"9993 → 9992 → (9981 more) → 10 → 9 → 8 → 7 → 6 → 5 → 4 → 3 → 2 → 1"
	if err == nil || err.Error() != want {
		t.Errorf("the error is %v", err)
	}
	b.do("lead", &CreateTask{Subject: "last", BlockedBy: all})
	b.do("lead", &CreateTask{Subject: "early"})
	b.do("lead", &UpdateTask{Task: strconv.Itoa(n + 2), AddBlocks: []string{"1"}})
	b.State = reopened(t, b.State)
	b.do("ann", &ClaimTask{})
	b.do("ann", &CompleteTask{Task: strconv.Itoa(n + 2)})
	for i := 1; i <= n+1; i++ {
		if claimed := b.do("ann", &ClaimTask{}).Events[0].(*TaskClaimed); claimed.Task != strconv.Itoa(i) {
			t.Fatalf("claimed %s and not %d", claimed.Task, i)
		}
		b.do("ann", &CompleteTask{Task: strconv.Itoa(i)})
	}
}

func TestCommandsAreRememberedUpToALimit(t *testing.T) {
	b := newBusy(t)
	var ids []string
	for range Remembered + 100 {
		ids = append(ids, fmt.Sprint("busy-", b.Seq()))
		b.do("lead", &SendMessage{To: "ann", Body: "x"})
		if len(ids) == 10 || len(ids) == 200 { // with and without the index
			b.State = reopened(t, b.State)
		}
	}
	for _, s := range []*State{b.State, reopened(t, b.State)} {
		for i, id := range ids {
			want := int64(0)
			if i >= 100 {
				want = int64(i + 3) // two records founded the team
			}
			if got := s.recent.seq(id); got != want {
				t.Fatalf("command %d is remembered as record %d and not %d", i, got, want)
			}
		}
	}
}

// TestReadersShareAState runs under the race detector: any number of goroutines may read and decide
// while no record is applied.
func TestReadersShareAState(t *testing.T) {
	s := fullState()
	var readers sync.WaitGroup
	for i := range 4 {
		readers.Go(func() {
			for j := range 50 {
				Decide(s, Command{ID: fmt.Sprint(i, j), Actor: User, Body: &CreateTask{Subject: "x",
					BlockedBy: []string{"1"}}})
				s.Wants(Time(j))
				AppendSnapshot(nil, s)
				s.Claimable("")
			}
		})
	}
	readers.Wait()
}

// TestWhatReadersHoldStays checks that a value that was read from a state does not change under its
// reader, who may be another goroutine.
func TestWhatReadersHoldStays(t *testing.T) {
	b := newBusy(t)
	for i := range 4 {
		b.do("lead", &CreateTask{Subject: fmt.Sprint(i), Metadata: map[string]json.RawMessage{"a": json.RawMessage("1"),
			"b": json.RawMessage("2")}})
	}
	b.do("lead", &UpdateTask{Task: "1", AddBlockedBy: []string{"2", "3", "4"}})
	for range 3 {
		b.do("lead", &SendMessage{To: "ann", Body: "x"})
	}
	held, members := slices.Collect(b.Tasks()), b.Members()
	before := fmt.Sprintf("%+v %+v", held, members)
	var readers sync.WaitGroup
	readers.Go(func() {
		for range 100 {
			_ = fmt.Sprintf("%+v %+v", held, members)
		}
	})
	b.do("lead", &UpdateTask{Task: "1", RemoveBlockedBy: []string{"2"}, Metadata: map[string]json.RawMessage{
		"a": json.RawMessage("null"), "c": json.RawMessage("3")}})
	b.do("lead", &UpdateTask{Task: "2", AddBlocks: []string{"1"}})
	b.do("ann", &ReceiveMessages{Seqs: []int64{2}})
	b.do("lead", &SendMessage{To: "ann", Body: "y"})
	b.do("ann", &ReceiveMessages{Max: 1})
	readers.Wait()
	if after := fmt.Sprintf("%+v %+v", held, members); after != before {
		t.Errorf("what was held changed from\n%s\nto\n%s", before, after)
	}
}

func TestWriteTasksWritesWhatMarshalDoes(t *testing.T) {
	b := newBusy(t)
	for i := range 4 {
		want, err := json.Marshal(append([]Task{}, slices.Collect(b.Tasks())...))
		var got strings.Builder
		if err := errors.Join(err, WriteTasks(&got, b.Tasks())); err != nil || got.String() != string(want) {
			t.Errorf("%d tasks are written as\n%s\nand by encoding/json as\n%s, %v", i, &got, want, err)
		}
		b.do("lead", &CreateTask{Subject: "ä \"x\"", BlockedBy: slices.Collect(func(yield func(string) bool) {
			if i > 0 {
				yield("1")
			}
		})})
	}
}

func TestDecideLeavesTheCommandAlone(t *testing.T) {
	b := newBusy(t)
	b.do("lead", &CreateTask{Subject: "x"})
	subject := "bad \xff"
	update := &UpdateTask{Task: "1", Subject: &subject, Metadata: map[string]json.RawMessage{
		"bad \xff": json.RawMessage("1")}}
	b.do("lead", update)
	if subject != "bad \xff" || update.Subject != &subject || len(update.Metadata) != 1 {
		t.Errorf("the command is now %+v", update)
	}
	task, _ := b.Task("1")
	if task.Subject != "bad \uFFFD" || string(task.Metadata["bad \uFFFD"]) != "1" {
		t.Errorf("the task is %+v", task)
	}
	for _, c := range []Command{{Actor: User, Body: &CleanUp{}}, {ID: "x", Actor: User},
		{ID: strings.Repeat("x", MaxID+1), Actor: User, Body: &CleanUp{}}} {
		if _, err := Decide(b.State, c); CodeOf(err) == "" {
			t.Errorf("%+v was accepted", c)
		}
	}
}

func TestSkippedRecordPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a record after a gap was applied; want a panic")
		}
	}()
	new(State).Apply(&Record{Seq: 2})
}
