package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"cadre/internal/journal"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// TestLogBreaks: the array of a history that cannot be read to its end is whole, and ends with the
// error.
func TestLogBreaks(t *testing.T) {
	for _, records := range []int{0, 1, 3} {
		var out strings.Builder
		a := newApp()
		a.json, a.out = true, output{sanitize.NewWriter(&out), nil}
		l := &logging{app: a}
		l.out.Printf("[")
		for n := range records {
			if err := l.record(&team.Record{Seq: int64(n + 1), ID: "c", At: 1}); err != nil {
				t.Fatal(err)
			}
		}
		cause := &journal.DamageError{}
		if err := l.breaks(cause); !errors.Is(err, cause) {
			t.Errorf("the error is %v", err)
		}
		l.out.Close()
		var all []struct {
			Seq   int64
			Error *failure
		}
		if err := json.Unmarshal([]byte(out.String()), &all); err != nil {
			t.Fatalf("%v: %s", err, out.String())
		}
		if len(all) != records+1 || all[records].Error == nil || all[records].Error.Code != codeDamaged {
			t.Errorf("%d records end as %s", records, out.String())
		}
	}
}
