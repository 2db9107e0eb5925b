package golden

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// seen is a test that records its failures instead of failing.
type seen struct {
	testing.TB
	failures []string
}

func (s *seen) Helper() {}

func (s *seen) Errorf(format string, args ...any) {
	s.failures = append(s.failures, fmt.Sprintf(format, args...))
}

// compare returns the failures of File, with or without -update.
func compare(t *testing.T, writes bool, path, got string) []string {
	t.Helper()
	*update = writes
	defer func() { *update = false }()
	s := &seen{TB: t}
	File(s, path, got)
	return s.failures
}

func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "file.txt")
	has := func(want string) {
		t.Helper()
		if text, err := os.ReadFile(path); err != nil || string(text) != want {
			t.Fatalf("the file has %q: %v", text, err)
		}
	}
	const again = "go test ./internal/testkit/golden -run '^TestFile$' -update"
	if said := compare(t, false, path, "a\n"); len(said) != 1 || !strings.HasSuffix(said[0], again) {
		t.Errorf("a missing file: %q", said)
	}
	if said := compare(t, true, path, "a\nb\nc\n"); said != nil {
		t.Errorf("a new file: %q", said)
	}
	has("a\nb\nc\n")
	if said := compare(t, false, path, "a\nb\nc\n"); said != nil {
		t.Errorf("the same text: %q", said)
	}
	said := compare(t, false, path, "a\nB\nc\n")
	if len(said) != 1 || !strings.Contains(said[0], "line 2. It has\na\nb\nc\n") ||
		!strings.Contains(said[0], "makes\na\nB\nc\n") || !strings.HasSuffix(said[0], again) {
		t.Errorf("another text: %q", said)
	}
	if said := compare(t, false, path, "a\n"); len(said) != 1 || !strings.Contains(said[0], "line 2") {
		t.Errorf("a shorter text: %q", said)
	}
	has("a\nb\nc\n")
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	if err := os.Chtimes(path, old, old); err != nil {
		t.Fatal(err)
	}
	compare(t, true, path, "a\nb\nc\n")
	if info, err := os.Stat(path); err != nil || !info.ModTime().Equal(old) {
		t.Errorf("the same text was written again: %v, %v", info.ModTime(), err)
	}
}

func TestPart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(path, []byte("head\n<!-- a -->\nold\n<!-- b -->\ntail\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &seen{TB: t}
	if Part(s, path, "<!-- a -->\n", "<!-- b -->", "new\n"); len(s.failures) != 1 {
		t.Errorf("another part: %q", s.failures)
	}
	*update = true
	defer func() { *update = false }()
	Part(t, path, "<!-- a -->\n", "<!-- b -->", "new\n")
	if text, err := os.ReadFile(path); err != nil || string(text) != "head\n<!-- a -->\nnew\n<!-- b -->\ntail\n" {
		t.Errorf("the page is %q: %v", text, err)
	}
}
