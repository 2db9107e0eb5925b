package pane

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// standIn is a program in the place of it2. It records what it is told, and keeps the panes in a
// file: a pane and its window in each line. It is no iTerm2: only the calls are tested here.
const standIn = `#!/bin/sh
printf '%s\n' "$*" >> "$IT2_DIR/told"
touch "$IT2_DIR/panes"
echo >> "$IT2_DIR/count"
n=$(($(wc -l < "$IT2_DIR/count")))
if [ "$1 $2" = "$IT2_FAILS" ]; then exit 1; fi
case "$1 $2" in
"window new")
	echo "pane-$n win-$n" >> "$IT2_DIR/panes"
	echo "Created new window: win-$n";;
"session split")
	for last; do :; done
	win=$(sed -n "s/^$last //p" "$IT2_DIR/panes")
	if [ -z "$win" ]; then exit 3; fi
	echo "pane-$n $win" >> "$IT2_DIR/panes"
	echo "Created new pane: pane-$n";;
"session list")
	sep="["
	while read -r pane win; do
		echo "$sep{\"id\": \"$pane\", \"name\": \"x\", \"cols\": $IT2_COLS, \"rows\": $IT2_ROWS, \"window_id\": \"$win\"}"
		sep=,
	done < "$IT2_DIR/panes"
	if [ "$sep" = "[" ]; then echo "["; fi
	echo "]";;
"session close")
	grep -v "^$5 " "$IT2_DIR/panes" > "$IT2_DIR/left"; mv "$IT2_DIR/left" "$IT2_DIR/panes";;
esac
`

// asITerm2 puts the stand-in into PATH, with windows of that size. windows returns how many panes
// each window has, and told what it2 was told.
func asITerm2(t *testing.T, cols, rows int) (b Backend, windows func() []int, told func() string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "it2"), []byte(standIn), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("IT2_DIR", dir)
	t.Setenv("IT2_COLS", fmt.Sprint(cols))
	t.Setenv("IT2_ROWS", fmt.Sprint(rows))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	read := func(name string) string {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	b = NewITerm2(func(string) string { return "w0t0p0:LEAD" }, []string{"CADRE_HOME=/a b"})
	return b, func() (panes []int) {
		var ids []string
		for line := range strings.Lines(read("panes")) {
			id := strings.Fields(line)[1]
			if i := slices.Index(ids, id); i >= 0 {
				panes[i]++
				continue
			}
			ids, panes = append(ids, id), append(panes, 1)
		}
		return panes
	}, func() string { return read("told") }
}

// TestITerm2 checks what it2 is told.
func TestITerm2(t *testing.T) {
	b, _, told := asITerm2(t, 80, 25)
	ctx := t.Context()
	command := func(name string) []string { return []string{"/bin/cadre", "attach", "it's", name} }
	for _, name := range []string{"ann", "bob"} {
		if err := b.Open(ctx, name, command(name)); err != nil {
			t.Fatal(err)
		}
	}
	panes, err := b.Panes(ctx)
	if err != nil || len(panes) != 2 {
		t.Errorf("the panes are %v, %v", panes, err)
	}
	if err := b.Close(ctx, "bob"); err != nil {
		t.Error(err)
	}
	if panes, err := b.Panes(ctx); err != nil || len(panes) != 1 {
		t.Errorf("the panes are %v, %v", panes, err)
	}
	want := strings.NewReplacer("^U", "\x15", "ANN", panes["ann"], "BOB", panes["bob"]).Replace(`session list --json
window new
session focus LEAD
session list --json
session send -s ANN ^U
session run -s ANN 'exec' 'env' 'CADRE_HOME=/a b' '/bin/cadre' 'attach' 'it'\''s' 'ann'
session list --json
session split -v -s ANN
session send -s BOB ^U
session run -s BOB 'exec' 'env' 'CADRE_HOME=/a b' '/bin/cadre' 'attach' 'it'\''s' 'bob'
session list --json
session close -f -s BOB
session list --json
`)
	if got := told(); got != want {
		t.Errorf("it2 was told\n%s\nwant\n%s", got, want)
	}
}

// TestITerm2StartFails: no pane stays open in which nothing runs, and a later one can be opened.
func TestITerm2StartFails(t *testing.T) {
	b, windows, _ := asITerm2(t, 80, 25)
	for _, call := range []string{"session send", "session run"} {
		t.Setenv("IT2_FAILS", call)
		err := b.Open(t.Context(), "ann", []string{"true"})
		if panes, listed := b.Panes(t.Context()); err == nil || listed != nil || len(panes) != 0 || len(windows()) != 0 {
			t.Errorf("%s fails: %v; the panes are %v, %v, in windows of %v", call, err, panes, listed, windows())
		}
	}
	t.Setenv("IT2_FAILS", "")
	if err := b.Open(t.Context(), "ann", []string{"true"}); err != nil || !slices.Equal(windows(), []int{1}) {
		t.Errorf("%v, in windows of %v", err, windows())
	}
}

// TestITerm2Layout: a window has as many panes as can be read in it, and further members get
// further windows. The place of a pane that is closed is used again.
func TestITerm2Layout(t *testing.T) {
	for _, c := range []struct {
		cols, rows, members int
		want                []int
	}{{60, 15, 4, []int{2, 2}}, {80, 25, 12, []int{4, 4, 4}}, {200, 50, 12, []int{6, 6}}} {
		if testing.Short() && c.members > 4 {
			continue
		}
		t.Run(fmt.Sprint(c.cols, "x", c.rows), func(t *testing.T) {
			b, windows, told := asITerm2(t, c.cols, c.rows)
			open := func(name string) {
				t.Helper()
				if err := b.Open(t.Context(), name, []string{"true"}); err != nil {
					t.Fatal(err)
				}
			}
			for i := range c.members {
				open(fmt.Sprint("m", i))
			}
			if got := windows(); !slices.Equal(got, c.want) {
				t.Errorf("the windows have %v panes; want %v", got, c.want)
			}
			if strings.Contains(told(), "-s LEAD") {
				t.Error("the pane of the person was split")
			}
			first, err := b.Panes(t.Context())
			if err != nil || len(first) != c.members {
				t.Fatal(first, err)
			}
			if err := b.Close(t.Context(), "m0"); err != nil {
				t.Fatal(err)
			}
			if _, err := it2(t.Context(), "session", "close", "-f", "-s",
				first["m1"]); err != nil { // as the person does
				t.Fatal(err)
			}
			open("late")
			open("later")
			all, err := b.Panes(t.Context())
			if n := len(c.want); err != nil || len(all) != c.members || len(windows()) != n || all["m1"] != "" {
				t.Errorf("%v, in windows of %v: %v", all, windows(), err)
			}
		})
	}
}
