package history

import (
	"encoding/json"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"testing"

	"cadre/internal/team"
)

func TestMail(t *testing.T) {
	sent := func(seq int64, to string, recipients ...string) team.Event {
		return &team.MessageSent{Message: team.Message{Seq: seq, From: "lead", To: to, Recipients: recipients,
			Type: team.TypeMessage, Priority: "normal", Body: fmt.Sprint("text ", seq)}}
	}
	messages, err := Mail(of(
		[]team.Event{&team.TeamRestored{Members: []team.Member{{Name: "ann", Inbox: []int64{3}, ReadSeq: 1}},
			Messages: []team.Message{{Seq: 1, To: "ann", SentAt: 1}, {Seq: 2, To: "ann", SentAt: 2},
				{Seq: 3, To: "*", Recipients: []string{"bob", "ann"}, SentAt: 3}}}},
		[]team.Event{sent(4, "ann"), sent(5, "bob"), sent(6, "*", "ann", "bob")},
		[]team.Event{&team.MessagesDelivered{Member: "ann", Seqs: []int64{3, 4}}},
		[]team.Event{&team.MessagesDelivered{Member: "bob", Seqs: []int64{5, 6}}},
		[]team.Event{&team.MessagesRead{Member: "ann", Through: 4}, &team.MessagesRead{Member: "bob", Through: 6}},
		[]team.Event{&team.MessagesResent{Member: "ann", Seqs: []int64{6}}},
		[]team.Event{&team.MessagesReturned{Member: "ann", Seqs: []int64{6}}},
	), "ann")
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, l := range messages {
		fmt.Fprintf(&got, "#%d sent %d delivered %d read %d returned %d\n", l.Seq, l.SentAt, l.DeliveredAt, l.ReadAt,
			l.ReturnedAt)
	}
	const want = `#1 sent 1 delivered 10 read 10 returned 0
#2 sent 2 delivered 10 read 50 returned 0
#3 sent 3 delivered 30 read 50 returned 0
#4 sent 20 delivered 30 read 50 returned 0
#6 sent 20 delivered 0 read 0 returned 70
`
	if got.String() != want {
		t.Errorf("it is\n%s\nnot\n%s", got.String(), want)
	}
	for name, c := range map[string]struct {
		filter MailFilter
		want   []int64
	}{
		"all": {MailFilter{}, []int64{1, 2, 3, 4, 6}}, "the last": {MailFilter{Last: 2}, []int64{4, 6}},
		"unread":  {MailFilter{Unread: true}, []int64{6}},
		"since":   {MailFilter{Since: 3, Last: 9}, []int64{3, 4, 6}},
		"a type":  {MailFilter{Types: []string{team.TypeMessage}}, []int64{4, 6}},
		"no type": {MailFilter{Types: []string{team.TypeIdle}}, nil},
	} {
		var seqs []int64
		for _, l := range c.filter.Select(messages) {
			seqs = append(seqs, l.Seq)
		}
		if !slices.Equal(seqs, c.want) {
			t.Errorf("%s: %v, not %v", name, seqs, c.want)
		}
	}
	for i, want := range map[int]string{3: `,"deliveredAt":30,"readAt":50}`, 4: `,"returnedAt":70}`} {
		out, err := json.Marshal(messages[i])
		if err != nil || !strings.HasSuffix(string(out), want) {
			t.Errorf("%s, %v", out, err)
		}
		back := MailboxMessage{Task: messages[i].Task}
		if err := json.Unmarshal(out, &back); err != nil || !reflect.DeepEqual(back, messages[i]) {
			t.Errorf("read %+v, %v; want %+v", back, err, messages[i])
		}
	}
	if out, _ := json.Marshal(MailboxMessage{Message: team.Message{Seq: 1}}); strings.Contains(string(out), "At") {
		t.Errorf("an unread message is %s", out)
	}
}

// of returns a history whose records have these events, at 10, 20, 30 …
func of(events ...[]team.Event) iter.Seq2[*team.Record, error] {
	return func(yield func(*team.Record, error) bool) {
		for i, e := range events {
			if !yield(&team.Record{Seq: int64(i + 1), At: team.Time(10 * (i + 1)), Events: e}, nil) {
				return
			}
		}
	}
}
