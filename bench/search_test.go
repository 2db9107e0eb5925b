package bench

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"cadre/internal/layout"
)

// lookup is a shell command that finds a word in files. Its output is a pipe: grep stops at the
// first match where it is the null device.
const lookup = `word=$1; shift; { LC_ALL=$0 grep -hi -- "$word" "$@" || true; } | tail -n 20`

// BenchmarkSearch times cadre search on a history of 200,000 records. It alternates with grep -i
// over the same files, in the C locale, in which it is fastest, and in UTF-8. The limit for the
// ratio of medians to grep in the locale of the user is 2.
func BenchmarkSearch(b *testing.B) {
	cadre, _ := programs(b)
	h := layout.Home{Root: b.TempDir(), Claude: b.TempDir()}
	if err := Build(h, "big", 10_000, 200_000); err != nil {
		b.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(h.Root, "teams", "big", "journal", "*.jsonl"))
	if err != nil || len(segments) == 0 {
		b.Fatalf("there are no segments: %v", err)
	}
	size := int64(0)
	for _, path := range segments {
		info, err := os.Stat(path)
		if err != nil {
			b.Fatal(err)
		}
		size += info.Size()
	}
	once := timed(b, h)
	once(cadre, "send", "big", "--to", "m1", "the first writer saves the snapshot and the projections")
	for _, search := range []struct{ name, word string }{
		{"rare", "module 9999 and"}, {"absent", "kelvinization"}, {"common", "parser"},
	} {
		b.Run(search.name, func(b *testing.B) {
			var ours, grep, utf8 []time.Duration
			for range max(b.N, 10) {
				grep = append(grep, once("sh", append([]string{"-c", lookup, "C", search.word}, segments...)...))
				utf8 = append(utf8, once("sh", append([]string{"-c", lookup, "C.UTF-8", search.word}, segments...)...))
				ours = append(ours, once(cadre, "search", search.word, "--team", "big"))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(median(ours))/float64(median(utf8)), "times-grep")
			b.ReportMetric(float64(median(ours))/float64(median(grep)), "times-grep-C")
			b.Logf("%s of history, %v", fmt.Sprint(size>>20, " MiB"), median(ours))
		})
	}
}
