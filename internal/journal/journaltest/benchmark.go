package journaltest

import (
	"context"
	"fmt"
	"testing"
)

// Benchmark measures the operations of a journal in a way that is comparable between
// implementations: appends and reads at the end, with and without a long history.
func Benchmark(b *testing.B, open Open) {
	for _, history := range []int64{0, 10_000} {
		b.Run(fmt.Sprintf("history=%d", history), func(b *testing.B) {
			j := open(b)()
			defer j.Close()
			ctx := context.Background()
			seq := int64(0)
			for seq < history {
				var err error
				if seq, err = Add(ctx, j, seq, benchRecord); err != nil {
					b.Fatal(err)
				}
			}
			b.Run("append", func(b *testing.B) {
				for b.Loop() {
					var err error
					if seq, err = Add(ctx, j, seq, benchRecord); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run("append and read", func(b *testing.B) {
				for b.Loop() {
					last := seq
					var err error
					if seq, err = Add(ctx, j, seq, benchRecord); err != nil {
						b.Fatal(err)
					}
					if got := All(b, j, last); len(got) != 1 {
						b.Fatalf("%d records", len(got))
					}
				}
			})
			b.Run("nothing new", func(b *testing.B) {
				for b.Loop() {
					for _, err := range j.Read(ctx, seq) {
						b.Fatal("a record", err)
					}
				}
			})
		})
	}
}

// benchRecord is about as long as a typical event.
const benchRecord = `{"id":"01J8Z6W7Q2K9V3N5B4M1","actor":"researcher","at":1767225600000,"kind":"message_sent","message":{"from":"researcher","to":"lead","intent":"info","text":"The parser keeps its position in the token, so the error can name line and column; I will move it into the scanner and add a test."}}`
