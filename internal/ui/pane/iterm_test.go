package pane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// standIn is a program in the place of it2. It records what it is told, and keeps the panes in a
// file, one a line. It is no iTerm2: only the calls are tested here.
const standIn = `#!/bin/sh
printf '%s\n' "$*" >> "$IT2_DIR/told"
touch "$IT2_DIR/panes"
case "$2" in
split)
	last=; for word; do last=$word; done
	if [ "$last" = GONE ]; then exit 1; fi
	n=$(($(wc -l < "$IT2_DIR/panes") + 1))
	echo "pane-$n" >> "$IT2_DIR/panes"
	echo "Created new pane: pane-$n";;
list) cat "$IT2_DIR/panes";;
close) grep -v "^$5\$" "$IT2_DIR/panes" > "$IT2_DIR/left"; mv "$IT2_DIR/left" "$IT2_DIR/panes";;
esac
`

// TestITerm2 checks what it2 is told.
func TestITerm2(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "it2"), []byte(standIn), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("IT2_DIR", dir)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	ctx := t.Context()
	b := NewITerm2(func(string) string { return "w0t0p0:LEAD" }, []string{"CADRE_HOME=/a b"})
	command := func(name string) []string { return []string{"/bin/cadre", "attach", "it's", name} }
	for _, name := range []string{"ann", "bob"} {
		if err := b.Open(ctx, name, command(name)); err != nil {
			t.Fatal(err)
		}
	}
	if panes, err := b.Panes(ctx); err != nil || len(panes) != 2 || panes["bob"] != "pane-2" {
		t.Errorf("the panes are %v, %v", panes, err)
	}
	if err := b.Close(ctx, "bob"); err != nil {
		t.Error(err)
	}
	if panes, err := b.Panes(ctx); err != nil || len(panes) != 1 {
		t.Errorf("the panes are %v, %v", panes, err)
	}
	gone := NewITerm2(func(string) string { return "w0t0p0:GONE" }, nil)
	if err := gone.Open(ctx, "eve", command("eve")); err != nil {
		t.Errorf("the pane of cadre is closed: %v", err)
	}
	data, err := os.ReadFile(filepath.Join(dir, "told"))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(`session split -v -s LEAD
session send -s pane-1 ^U
session run -s pane-1 'exec' 'env' 'CADRE_HOME=/a b' '/bin/cadre' 'attach' 'it'\''s' 'ann'
session split -s pane-1
session send -s pane-2 ^U
session run -s pane-2 'exec' 'env' 'CADRE_HOME=/a b' '/bin/cadre' 'attach' 'it'\''s' 'bob'
session list
session close -f -s pane-2
session list
session split -v -s GONE
session split -v
session send -s pane-2 ^U
session run -s pane-2 'exec' 'env' '/bin/cadre' 'attach' 'it'\''s' 'eve'
`, "^U", "\x15")
	if string(data) != want {
		t.Errorf("it2 was told\n%s\nwant\n%s", data, want)
	}
}
