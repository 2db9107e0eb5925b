package render

import (
	"fmt"
	"strings"
	"testing"

	"cadre/internal/team"
)

// TestFolder: records with only marks become one line, in the place of the last of them. A record
// with anything else ends the line.
func TestFolder(t *testing.T) {
	var f Folder
	var got strings.Builder
	print := func(entries []Entry) {
		for _, e := range entries {
			fmt.Fprintf(&got, "%d %d %s\n", e.Seq, e.At, e.Text)
		}
	}
	for i, events := range [][]team.Event{
		{&team.MemberStarted{Member: "ann"}},
		{&team.MessagesDelivered{Member: "ann", Seqs: []int64{1}}},
		{&team.MessagesRead{Member: "ann", Through: 1}},
		{&team.MessagesDelivered{Member: "bob", Seqs: []int64{2, 3}},
			&team.MessagesDelivered{Member: "ann", Seqs: []int64{3}}},
		{&team.MessagesRead{Member: "ann", Through: 3}},
		{&team.MessagesDelivered{Member: "ann", Seqs: []int64{4}}, &team.MemberOffline{Member: "bob", Reason: "away"}},
		{&team.MessagesRead{Member: "ann", Through: 4}},
		{&team.TasksSkipped{}}, // it has no line, but ends the one before
		{&team.MessagesRead{Member: "bob", Through: 4}},
	} {
		print(f.Add(&team.Record{Seq: int64(i + 1), At: team.Time(10 * (i + 1)), Events: events}))
	}
	print(f.Rest())
	print(f.Rest())
	const want = `1 10 ann started
5 50 ann received 2 messages and has read up to #3; bob received 2 messages
6 60 ann received message #4
6 60 bob OFFLINE: away
7 70 ann has read up to #4
9 90 bob has read up to #4
`
	if got.String() != want {
		t.Errorf("it is\n%s\nnot\n%s", got.String(), want)
	}
}
