package journaltest

import (
	"context"
	"fmt"
	"testing"

	"cadre/internal/journal"
)

// Add appends one record for a caller that knows the journal up to seq after, and returns the
// record's seq.
func Add(ctx context.Context, j journal.Journal, after int64, data string) (int64, error) {
	return j.Append(ctx, after, func(journal.Record) error { return nil },
		func() ([]byte, error) { return []byte(data), nil })
}

// All reads the records after seq after. It fails the test if their order has a gap.
func All(t testing.TB, j journal.Journal, after int64) []string {
	t.Helper()
	var all []string
	for r, err := range j.Read(context.Background(), after) {
		if err != nil {
			t.Fatalf("read after %d: %v", after, err)
		}
		if want := after + int64(len(all)) + 1; r.Seq != want {
			t.Fatalf("read after %d: got seq %d, want %d", after, r.Seq, want)
		}
		all = append(all, string(r.Data))
	}
	return all
}

// fill appends the records 1 to n, each with its seq as data.
func fill(t testing.TB, j journal.Journal, n int64) {
	t.Helper()
	for seq := int64(1); seq <= n; seq++ {
		got, err := Add(t.Context(), j, seq-1, fmt.Sprint(seq))
		if err != nil || got != seq {
			t.Fatalf("append: got seq %d, %v, want %d", got, err, seq)
		}
	}
}
