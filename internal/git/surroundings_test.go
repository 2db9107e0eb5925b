package git_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestSurroundings checks that a command uses the given repository, whatever the caller's
// environment is, and that the user's own settings for git apply.
func TestSurroundings(t *testing.T) {
	other := newLab(t)
	l := newLab(t)
	for name, value := range map[string]string{"GIT_DIR": filepath.Join(other.Dir, ".git"), "GIT_WORK_TREE": other.Dir,
		"GIT_COMMON_DIR": filepath.Join(other.Dir, ".git"),
		"GIT_INDEX_FILE": filepath.Join(l.Dir, "no-index"), "GIT_OBJECT_DIRECTORY": filepath.Join(l.Dir, "no-objects"),
		"GIT_NAMESPACE": "space", "GIT_PREFIX": "x/",
		"GIT_QUARANTINE_PATH": "/nowhere", "GIT_AUTHOR_DATE": "2001-01-01T00:00:00Z",
		"GIT_COMMITTER_DATE": "2001-01-01T00:00:00Z"} {
		t.Setenv(name, value)
	}
	l.write("a.txt", "one\n")
	for _, args := range [][]string{{"add", "--all"}, {"commit", "-q", "-m", "second"}} {
		l.text(args...)
	}
	for whose, print := range map[string]func(...string) string{"ours": l.text, "the person's": l.persons} {
		if dir := print("rev-parse", "--show-toplevel"); dir != l.Dir {
			t.Errorf("%s is in %s", whose, dir)
		}
		if files := print("ls-files"); files != "a.txt" {
			t.Errorf("%s has %q", whose, files)
		}
		if date := print("log", "-1", "--format=%ad %cd", "--date=format:%Y"); strings.Contains(date, "2001") {
			t.Errorf("%s is of %s", whose, date)
		}
		if ident := print("var", "GIT_AUTHOR_IDENT"); strings.Contains(ident, " 978307200 ") {
			t.Errorf("%s would be of 2001: %s", whose, ident)
		}
	}
	t.Setenv("GIT_CONFIG_COUNT", "1")
	t.Setenv("GIT_CONFIG_KEY_0", "cadre.word")
	t.Setenv("GIT_CONFIG_VALUE_0", "the person's")
	t.Setenv("GIT_CEILING_DIRECTORIES", l.Dir)
	l.write("below/b.txt", "two\n")
	below := *l
	below.Dir = filepath.Join(l.Dir, "below")
	if _, err := below.Text(l.ctx, "rev-parse", "--show-toplevel"); err == nil {
		t.Error("it looks above the ceiling")
	}
	if word := l.text("config", "cadre.word"); word != "the person's" {
		t.Errorf("it is configured as %q", word)
	}
}

// TestQuiet checks that nothing of the repository runs by itself, that nothing is asked, and that
// the output does not depend on the user.
func TestQuiet(t *testing.T) {
	l := newLab(t)
	t.Setenv("LC_ALL", "de_DE.UTF-8")
	t.Setenv("LANGUAGE", "de")
	t.Setenv("GIT_EDITOR", "false")
	t.Setenv("GIT_EXTERNAL_DIFF", "false")
	t.Setenv("GIT_ICASE_PATHSPECS", "1")
	for _, hook := range []string{"pre-commit", "post-commit", "reference-transaction", "post-index-change"} {
		l.write(".git/hooks/"+hook, "#!/bin/sh\ntouch \"$(dirname \"$0\")/../ran\"\n")
	}
	l.write(".git/watcher", "#!/bin/sh\ntouch \"$(dirname \"$0\")/ran\"\nexit 1\n")
	for name, value := range map[string]string{"core.fsmonitor": filepath.Join(l.Dir, ".git", "watcher"),
		"commit.gpgSign": "true", "gpg.program": filepath.Join(l.Dir, ".git", "watcher"),
		"gc.autoPackLimit": "1", "gc.autoDetach": "false", "i18n.commitEncoding": "ISO-8859-1"} {
		l.text("config", name, value)
	}
	for _, name := range []string{"größe.txt", "other.txt"} { // each in a pack of its own
		l.write(name, name+"\n")
		l.text("add", name)
		l.text("repack", "-q", "-d")
	}
	packs, _ := filepath.Glob(filepath.Join(l.Dir, ".git", "objects", "pack", "*.pack"))
	l.text("commit", "-q", "-m", "Größe")
	l.text("commit", "-q", "--amend") // with the editor, which would refuse
	if now, _ := filepath.Glob(filepath.Join(l.Dir, ".git", "objects", "pack", "*.pack")); len(packs) < 2 ||
		!slices.Equal(now, packs) {
		t.Errorf("it was kept up: %v became %v", packs, now)
	}
	if files, patterns := l.text("ls-files"), l.text("ls-files", "*.txt"); files != "größe.txt\nother.txt" ||
		patterns != "" {
		t.Errorf("a pattern is a path, and a path is printed as it is: %s, %s", files, patterns)
	}
	index, err := os.ReadFile(filepath.Join(l.Dir, ".git", "index"))
	if err != nil {
		t.Fatal(err)
	}
	// git has to look into it
	if err := os.Chtimes(filepath.Join(l.Dir, "other.txt"), time.Time{}, time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	l.text("status", "--porcelain")
	if now, err := os.ReadFile(filepath.Join(l.Dir, ".git", "index")); err != nil || !bytes.Equal(now, index) {
		t.Errorf("who only looks writes the index: %v", err)
	}
	if l.exists(".git/ran") {
		t.Error("something of the repository ran")
	}
	if commit := l.text("cat-file", "commit", "HEAD"); strings.Contains(commit, "encoding ") ||
		strings.Contains(commit, "gpgsig") || !strings.HasSuffix(commit, "\n\nGröße") {
		t.Errorf("the commit is\n%s", commit)
	}
	if _, err := l.Text(l.ctx, "checkout", "nothing"); err == nil || !strings.Contains(err.Error(),
		"did not match any file") {
		t.Errorf("it says %v", err)
	}
}

// TestWhoCommits checks that the committer is the one that git knows, and otherwise cadre.
func TestWhoCommits(t *testing.T) {
	for name, c := range map[string]struct {
		env    map[string]string
		config bool
		want   string
		author string
	}{
		"the configured": {nil, true, "Ann Example <ann@example.org>, Ann Example <ann@example.org>",
			"Ann Example <ann@example.org>"},
		"nobody": {nil, false, "cadre <cadre@localhost>, cadre <cadre@localhost>",
			"cadre <cadre@localhost>"},
		"an author alone": {map[string]string{"GIT_AUTHOR_NAME": "Bob", "GIT_AUTHOR_EMAIL": "bob@example.org"},
			false, "Bob <bob@example.org>, cadre <cadre@localhost>", "Bob <bob@example.org>"},
		"a name without a mail": {map[string]string{"GIT_AUTHOR_NAME": "Bob"}, false, "cadre <cadre@localhost>, " +
			"cadre <cadre@localhost>", "cadre <cadre@localhost>"},
		"those of a moment": {map[string]string{"GIT_AUTHOR_NAME": "Bob", "GIT_AUTHOR_EMAIL": "bob@example.org",
			"GIT_COMMITTER_NAME": "Eve", "GIT_COMMITTER_EMAIL": "eve@example.org"}, true,
			"Bob <bob@example.org>, Eve <eve@example.org>", "Bob <bob@example.org>"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			if !c.config {
				l.text("config", "--remove-section", "user")
			}
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			if _, err := l.Committing(l.ctx).Text(l.ctx, "commit", "-q", "--allow-empty", "-m", "second"); err != nil {
				t.Fatal(err)
			}
			if who := l.text("log", "-1", "--format=%an <%ae>, %cn <%ce>"); who != c.want {
				t.Errorf("it is by %s", who)
			}
			if who := l.Author(l.ctx); who != c.author {
				t.Errorf("the author is %s", who)
			}
		})
	}
}

// TestDurable checks that what was written is on the disk when git has ended, so that it survives a
// loss of power.
func TestDurable(t *testing.T) {
	l := newLab(t)
	l.write("a.txt", "one\n")
	// an object, the index, a reference
	for _, args := range [][]string{{"hash-object", "-w", "a.txt"}, {"add", "a.txt"}, {"branch", "topic"}} {
		trace := filepath.Join(t.TempDir(), "trace")
		if _, err := l.With("GIT_TRACE2_EVENT="+trace).Text(l.ctx, args...); err != nil {
			t.Fatal(err)
		}
		said, err := os.ReadFile(trace)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(said), `"fsync/hardware-flush"`) {
			t.Errorf("what git %s writes is not synced", args[0])
		}
	}
}
