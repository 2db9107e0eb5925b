package team

import "testing"

func TestCount(t *testing.T) {
	for n, want := range map[int64]string{0: "0 files", 1: "1 file", 2: "2 files", 1_000_000: "1000000 files"} {
		if got := Count(n, "file"); got != want {
			t.Errorf("Count(%d) is %q instead of %q", n, got, want)
		}
	}
}
