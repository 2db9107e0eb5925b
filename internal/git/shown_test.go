package git_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestShown checks that a command which only shows the work tree runs no program that the settings
// of the repository or of the user name, and that the other settings count.
func TestShown(t *testing.T) {
	l := newLab(t)
	l.text("branch", "first")
	l.write("a.txt", "one\n")
	l.write("b.txt", "one\n")
	l.text("add", "--all")
	l.text("commit", "-q", "-m", "second")
	l.write(".git/evil", "#!/bin/sh\necho \"$0 $*\" >>'"+filepath.Join(l.Dir, ".git", "ran")+"'\ncat\n")
	evil := filepath.Join(l.Dir, ".git", "evil")
	global := filepath.Join(t.TempDir(), "config")
	t.Setenv("GIT_CONFIG_GLOBAL", global)
	for name, value := range map[string]string{"filter.ev.clean": evil, "filter.ev.smudge": evil,
		"filter.ev.required": "true",
		"diff.ev.textconv":   evil, "diff.ev.command": evil, "diff.external": evil, "merge.ev.driver": evil,
		"core.pager": evil, "log.showSignature": "true", "gpg.program": evil, "extensions.partialClone": "ev",
		"remote.ev.promisor": "true", "remote.ev.url": "ext::" + evil, "protocol.ext.allow": "always",
		"core.excludesFile": filepath.Join(l.Dir, ".git", "ignored")} {
		l.text("config", name, value)
	}
	l.text("config", "--global", "filter.too.clean", evil)
	l.write(".git/ignored", "*.log\n")
	l.write(".gitattributes", "*.txt filter=ev diff=ev merge=ev\n*.bin filter=too\n")
	l.write("a.txt", "two\n")
	l.write("c.bin", "three\n")
	l.write("d.log", "four\n")
	shown, done, err := l.Shown(l.ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer done()
	shown = shown.With("GIT_INDEX_FILE=" + filepath.Join(t.TempDir(), "index"))
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"read-tree", "HEAD"}, ""},
		{[]string{"add", "--all"}, ""},
		{[]string{"status", "--porcelain"}, "A  .gitattributes\nM  a.txt\nA  c.bin"},
		{[]string{"diff", "--cached", "--", "a.txt"}, "+two"},
		{[]string{"diff", "first"}, "+three"},
		{[]string{"show", "HEAD"}, "+one"},
		{[]string{"log", "-p", "--format=%s", "main"}, "second"},
		{[]string{"cat-file", "--filters", "HEAD:a.txt"}, "one"},
		{[]string{"merge-tree", "--write-tree", "first", "main"}, ""},
	} {
		if out, err := shown.Text(l.ctx, c.args...); err != nil || !strings.Contains(out, c.want) {
			t.Errorf("git %v says %s, %v", c.args, out, err)
		}
	}
	if out, err := shown.Text(l.ctx, "cat-file", "-p", strings.Repeat("1", 40)); err == nil {
		t.Errorf("a missing object is %s", out)
	}
	if ran, err := os.ReadFile(filepath.Join(l.Dir, ".git", "ran")); err == nil {
		t.Errorf("it ran\n%s", ran)
	}
	if l.text("diff"); !l.exists(".git/ran") {
		t.Error("the settings run nothing for an ordinary command either")
	}
}
