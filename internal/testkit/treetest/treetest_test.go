package treetest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// told keeps what a check reports.
type told struct {
	testing.TB
	words []string
}

func (t *told) Helper() {}
func (t *told) Errorf(format string, args ...any) {
	t.words = append(t.words, format+" "+args[1].(string))
}

// TestKeep checks that each kind of change is reported, and nothing else.
func TestKeep(t *testing.T) {
	for name, change := range map[string]func(path string) error{
		"written": func(path string) error { return os.WriteFile(path, []byte("b"), 0o600) },
		"touched": func(path string) error { return os.Chtimes(path, time.Time{}, time.Unix(1, 0)) },
		"opened":  func(path string) error { return os.Chmod(path, 0o644) },
		"removed": os.Remove,
		"made":    func(path string) error { return os.WriteFile(path+"2", nil, 0o600) },
		"nothing": func(path string) error { _, err := os.ReadFile(path); return err },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "file")
			if err := os.WriteFile(path, []byte("a"), 0o600); err != nil {
				t.Fatal(err)
			}
			said := &told{TB: t}
			unchanged := Keep(said, dir)
			if err := change(path); err != nil {
				t.Fatal(err)
			}
			unchanged("it")
			if all := strings.Join(said.words, "\n"); strings.Contains(all, path) != (name != "nothing") {
				t.Errorf("the check reported %q", all)
			}
		})
	}
}
