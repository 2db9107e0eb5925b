package archtest

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// chapter returns the part of docs/ARCHITECTURE.md below a heading.
func chapter(t *testing.T, heading string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "docs", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, below, found := strings.Cut(string(text), "\n## "+heading+"\n")
	if !found {
		t.Fatalf("docs/ARCHITECTURE.md has no heading %q", heading)
	}
	below, _, _ = strings.Cut(below, "\n## ")
	return below
}

// rows returns the cells of the table in a text, without its head.
func rows(text string) (all [][]string) {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "| ") && !strings.HasPrefix(line, "| ---") {
			cells := strings.Split(strings.Trim(line, "| \n"), " | ")
			all = append(all, cells)
		}
	}
	return all[1:]
}

var quoted = regexp.MustCompile("`([a-z0-9/]+)`")

// names returns what stands between backquotes in a text, if it may be the path of a package.
func names(text string) (all []string) {
	for _, m := range quoted.FindAllStringSubmatch(text, -1) {
		all = append(all, strings.TrimSuffix(m[1], "/"))
	}
	return all
}

// TestMapOfFloors checks that docs/ARCHITECTURE.md has the floors of the plan.
func TestMapOfFloors(t *testing.T) {
	var drawn []floor
	for _, row := range rows(chapter(t, "Floors")) {
		wings := slices.DeleteFunc(names(row[1]), func(name string) bool { return strings.Contains(name, "/") })
		drawn = append(drawn, floor{row[0], wings})
	}
	if !slices.EqualFunc(drawn, floors, func(a, b floor) bool {
		return a.name == b.name && slices.Equal(a.wings, b.wings)
	}) {
		t.Errorf("docs/ARCHITECTURE.md has the floors\n%v, and the plan has\n%v", drawn, floors)
	}
}

// TestMapOfRooms checks that the table of rooms in docs/ARCHITECTURE.md has each package of
// internal: in the first column, or in the row of a package above it. It has nothing else there,
// and the text below it names each package outside of internal but cmd/cadre, which stands on a
// floor.
func TestMapOfRooms(t *testing.T) {
	text := chapter(t, "Rooms")
	shown := map[string]bool{} // the paths that the table names
	for _, row := range rows(text) {
		of := names(row[0])
		for i, name := range of {
			if i > 0 { // the names after the first one are beside it, or in full
				name = path.Join(path.Dir(of[0]), path.Base(name))
			}
			if !slices.ContainsFunc(rooms, func(r room) bool { return covers(name, r.name) }) {
				t.Errorf("docs/ARCHITECTURE.md has a row for %s, and the plan has none", name)
			}
			shown[name] = true
			for _, inner := range names(row[1]) {
				shown[path.Join(name, inner)] = true
			}
		}
	}
	// A name in a row stands for a package at any depth below the one of the row.
	named := func(name string) bool {
		for above := path.Dir(name); above != "."; above = path.Dir(above) {
			if shown[path.Join(above, path.Base(name))] {
				return true
			}
		}
		return shown[name]
	}
	for _, r := range rooms {
		if !named(r.name) {
			t.Errorf("the plan has a row for %s, and docs/ARCHITECTURE.md does not name it among the rooms", r.name)
		}
	}
	beside := names(text)
	for _, p := range read(t) {
		if !strings.HasPrefix(p.path, "internal/") && !slices.Contains(beside, p.path) && p.path != "cmd/cadre" {
			t.Errorf("docs/ARCHITECTURE.md does not name %s among the rooms", p.path)
		}
	}
}

var sources = regexp.MustCompile("`([a-zA-Z0-9_/.*-]+\\.go)`")

// TestMapOfFiles checks that each Go file exists that docs/ARCHITECTURE.md or one of its pages
// names. A path begins at the top or at internal. A name alone is that of a file of any room.
func TestMapOfFiles(t *testing.T) {
	top := root(t)
	named := map[string]bool{}
	err := filepath.WalkDir(top, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() && strings.HasPrefix(entry.Name(), ".") && path != top {
			return filepath.SkipDir
		}
		if err == nil && strings.HasSuffix(path, ".go") {
			named[entry.Name()] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	exists := func(name string) bool {
		if !strings.Contains(name, "/") {
			for one := range named {
				if is, err := path.Match(name, one); is && err == nil {
					return true
				}
			}
			return false
		}
		for _, below := range []string{"", "internal"} {
			if found, err := filepath.Glob(filepath.Join(top, below, name)); err == nil && len(found) > 0 {
				return true
			}
		}
		return false
	}
	for _, planted := range []string{"team/nosuch.go", "nosuch_*.go"} {
		if exists(planted) {
			t.Errorf("%s is found", planted)
		}
	}
	pages, err := filepath.Glob(filepath.Join(top, "docs", "architecture", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, page := range append(pages, filepath.Join(top, "docs", "ARCHITECTURE.md")) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range sources.FindAllStringSubmatch(string(text), -1) {
			if checked++; !exists(m[1]) {
				t.Errorf("%s names %s, and there is no such file", filepath.Base(page), m[1])
			}
		}
	}
	if checked < 30 {
		t.Errorf("the pages name %d files", checked)
	}
}

var (
	testOf     = regexp.MustCompile("`([a-z0-9/]+)`: `(Test[A-Za-z0-9_]+)`")
	modeNumber = regexp.MustCompile(`^[1-3]\.[1-6]`)
	testName   = regexp.MustCompile(`(?m)^func (Test[A-Za-z0-9_]+)\(`)
)

// TestMapOfFailureModes checks that each failure mode has a row with a test that exists in the
// package of that row.
func TestMapOfFailureModes(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "docs", "architecture", "failure-modes.md"))
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]bool{}
	mode := ""
	for _, row := range rows(string(text)) {
		if m := modeNumber.FindString(row[0]); m != "" {
			mode = m
		}
		m := testOf.FindStringSubmatch(strings.Join(row, " | "))
		if m == nil || !hasTest(t, m[1], m[2]) {
			t.Errorf("the row of %s has no test that exists: %v", mode, row)
			continue
		}
		modes[mode] = true
	}
	if len(modes) != 14 {
		t.Errorf("%d modes have tests, want 14: %v", len(modes), modes)
	}
	if hasTest(t, "replica", "TestNoSuch") {
		t.Error("a test that does not exist is found")
	}
}

// hasTest tells whether the package at that path, from the top or from internal, has the test.
func hasTest(t *testing.T, dir, name string) bool {
	for _, below := range []string{"", "internal"} {
		files, _ := filepath.Glob(filepath.Join(root(t), below, dir, "*_test.go"))
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range testName.FindAllStringSubmatch(string(text), -1) {
				if m[1] == name {
					return true
				}
			}
		}
	}
	return false
}
