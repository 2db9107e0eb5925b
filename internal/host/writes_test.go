package host

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"cadre/internal/team"
)

// TestJudge checks who is said to have changed a file.
func TestJudge(t *testing.T) {
	start := time.UnixMilli(1_000_000)
	at := func(second int) time.Time { return start.Add(time.Duration(second) * time.Second) }
	command := func(from, to int, input string) act {
		a := act{tool: "Bash", input: input, from: at(from), reads: func() bool { return input == "ls" }}
		if to > 0 {
			a.to = at(to)
		}
		return a
	}
	edit := func(from, to int, file string) act {
		return act{tool: "Edit", input: file, files: []string{file}, from: at(from), to: at(to)}
	}
	now := at(100)
	for name, c := range map[string]struct {
		from, to     int // when the file changed
		mine, theirs []act
		unknown      bool // what the holder did
		want         blame
	}{
		"nothing ran":             {10, 10, []act{command(1, 5, "make")}, nil, false, innocent},
		"only this command ran":   {10, 10, []act{command(9, 11, "make")}, nil, false, likely},
		"it still runs":           {10, 10, []act{command(9, 0, "make")}, nil, false, likely},
		"it only reads":           {10, 10, []act{command(9, 11, "ls")}, nil, false, innocent},
		"an edit of this file":    {10, 10, []act{edit(9, 11, "src/a.go")}, nil, false, guilty},
		"an edit of another file": {10, 10, []act{edit(9, 11, "src/b.go")}, nil, false, innocent},
		"the holder edited it": {10, 10, []act{command(9, 11, "make")}, []act{edit(9, 11, "src/a.go")},
			false, innocent},
		"the holder ran a command too": {10, 10, []act{command(9, 11, "make")}, []act{command(1, 20, "make")},
			false, unsure},
		"the holder's command only reads": {10, 10, []act{command(9, 11, "make")}, []act{command(1, 20, "ls")},
			false, likely},
		"this command names it": {10, 10, []act{command(9, 11, "echo >src/a.go")},
			[]act{command(1, 20, "make")}, false, likely},
		"the holder's command names it": {10, 10, []act{command(9, 11, "make")},
			[]act{command(1, 20, "gofmt -w a.go")}, false, innocent},
		"both name it": {10, 10, []act{command(9, 11, "cat a.go")},
			[]act{command(1, 20, "gofmt -w a.go")}, false, unsure},
		"the holder runs in another process": {10, 10, []act{command(9, 11, "make")}, nil, true, unsure},
		"an edit while the holder ran one": {10, 10, []act{edit(9, 11, "src/a.go")}, []act{command(1, 20, "make")},
			false, guilty},
		"gone between two looks":           {10, 30, []act{command(15, 16, "rm -r src")}, nil, false, likely},
		"gone, and the command ran before": {10, 30, []act{command(1, 2, "rm -r src")}, nil, false, innocent},
		"gone while the holder ran something": {10, 30, []act{command(15, 16, "make clean")},
			[]act{command(20, 21, "make")}, false, unsure},
	} {
		if got := judge(changed{"src/a.go", at(c.from), at(c.to)}, c.mine, c.theirs, !c.unknown, now); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// TestSettled checks that a file has one culprit, or none that is sure.
func TestSettled(t *testing.T) {
	for _, c := range []struct{ of, want map[string]blame }{
		{map[string]blame{"ann": likely}, map[string]blame{"ann": guilty}},
		{map[string]blame{"ann": likely, "eve": innocent}, map[string]blame{"ann": guilty, "eve": innocent}},
		{map[string]blame{"ann": likely, "eve": likely}, map[string]blame{"ann": unsure, "eve": unsure}},
		{map[string]blame{"ann": likely, "eve": unsure}, map[string]blame{"ann": unsure, "eve": unsure}},
		{map[string]blame{"ann": guilty, "eve": likely}, map[string]blame{"ann": guilty, "eve": innocent}},
		{map[string]blame{"ann": guilty, "eve": unsure}, map[string]blame{"ann": guilty, "eve": innocent}},
		{map[string]blame{"ann": unsure}, map[string]blame{"ann": unsure}},
		{map[string]blame{"ann": guilty, "eve": guilty, "dan": likely}, map[string]blame{"ann": unsure, "eve": unsure,
			"dan": unsure}},
	} {
		if got := settled(c.of); !maps.Equal(got, c.want) {
			t.Errorf("%v is settled as %v, want %v", c.of, got, c.want)
		}
	}
}

// TestChangedFiles checks that changed, new, moved and deleted files of a task are found once, and
// no others.
func TestChangedFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"src/a.go", "src/b.go", "src/c.go", "other/x", "src/.git/index", "docs/d.md"} {
		write(name, "1")
	}
	ctx := context.Background()
	task := team.Task{ID: "1", Fence: 1, Holds: []string{"src/*.go", "docs"},
		StartedAt: team.Time(time.Now().Add(time.Hour).UnixMilli())}
	w := &writes{}
	w.watch(ctx, dir, task)
	found := func(want ...string) {
		t.Helper()
		var got []string
		for _, c := range w.since(ctx, dir, task) {
			got = append(got, c.file)
		}
		if !slices.Equal(got, want) {
			t.Errorf("found %v, want %v", got, want)
		}
	}
	found()
	write("src/a.go", "2")
	write("docs/new/e.md", "2")
	write("other/x", "2")
	write("src/.git/index", "2")
	if err := os.Remove(filepath.Join(dir, "src/b.go")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(dir, "other/x"), filepath.Join(dir, "src/c.go")); err != nil {
		t.Fatal(err)
	}
	found("docs/new/e.md", "src/a.go", "src/b.go", "src/c.go")
	found()
	begun, over := w.news(nil)
	if len(begun) != 0 || len(over) != 1 {
		t.Errorf("%v begun and %v over", begun, over)
	}
	w.forget(task)
	write("src/a.go", "3")
	found()
}

// TestInProject checks that a file is found by each of its names: relative, absolute, and through
// links.
func TestInProject(t *testing.T) {
	outer := t.TempDir()
	dir := filepath.Join(outer, "project")
	for _, err := range []error{os.MkdirAll(filepath.Join(dir, "src"), 0o755),
		os.Symlink(dir, filepath.Join(outer, "link")),
		os.Symlink("src", filepath.Join(dir, "s")), os.WriteFile(filepath.Join(dir, "src", "a"), nil, 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for file, want := range map[string]string{"src/a": "src/a", filepath.Join(dir, "src/new/b"): "src/new/b",
		filepath.Join(outer, "link/src/a"): "src/a", "s/a": "src/a", "s/new": "src/new", "src/../src/a": "src/a"} {
		if got := inProject(dir, file); !slices.Contains(got, want) {
			t.Errorf("%s is %v, want %s", file, got, want)
		}
	}
	for _, file := range []string{"/etc/passwd", "../other", dir} {
		if got := inProject(dir, file); len(got) > 0 && got[0] != "." {
			t.Errorf("%s is %v in the project", file, got)
		}
	}
}
