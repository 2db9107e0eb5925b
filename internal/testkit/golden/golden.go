// Package golden compares what a test makes with a file in the repository.
//
// # Authority
//
// It defines the flag -update, with which a test writes the file instead of comparing it. It
// reports a difference as the first lines that differ, with the command that writes the file again.
//
// # Guarantees
//
//   - Without -update, it writes nothing. A missing file is a difference.
//   - With -update, a file that is the same already keeps its time.
package golden

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files of the tests that run, instead of comparing them")

// folder is the folder of the package under test, in which go test starts it.
var folder, _ = os.Getwd()

// Updating reports whether the files are to be written. A test that compares more than one text
// with a file asks it.
func Updating() bool { return *update }

// File compares the text with the file, or writes the file with -update.
func File(t testing.TB, path, got string) {
	t.Helper()
	want, err := os.ReadFile(path)
	switch {
	case err == nil && string(want) == got:
	case *update:
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	case err != nil:
		t.Errorf("%v\nto write it: %s", err, again(t))
	default:
		t.Errorf("%s differs in %s\nto write it again: %s", path, difference(string(want), got), again(t))
	}
}

// Part compares the text with the part of the file between two marks, each of which occurs once, or
// writes that part with -update.
func Part(t testing.TB, path, begin, end, got string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, opened := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		t.Fatalf("%s has no part between %q and %q", path, begin, end)
	}
	File(t, path, before+begin+got+end+after)
}

// again returns the command that runs the test with -update.
func again(t testing.TB) string {
	name, _, _ := strings.Cut(t.Name(), "/")
	return fmt.Sprintf("go test %s -run '^%s$' -update", packageName(), name)
}

// packageName returns the name of the package under test for go test at the top of the module.
func packageName() string {
	for top := folder; filepath.Dir(top) != top; top = filepath.Dir(top) {
		if _, err := os.Stat(filepath.Join(top, "go.mod")); err != nil {
			continue
		}
		if rel, err := filepath.Rel(top, folder); err == nil {
			return "./" + filepath.ToSlash(rel)
		}
	}
	return "."
}

// A difference is shown with that many lines before it, and that many from it on.
const (
	linesBefore = 3
	linesAfter  = 10
)

// difference describes the first line that differs, with the lines around it.
func difference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	at := 0
	for at < len(w) && at < len(g) && w[at] == g[at] {
		at++
	}
	around := func(lines []string) string {
		return strings.Join(lines[max(0, min(at, len(lines))-linesBefore):min(len(lines), at+linesAfter)], "\n")
	}
	return fmt.Sprintf("line %d. It has\n%s\nand the test makes\n%s", at+1, around(w), around(g))
}
