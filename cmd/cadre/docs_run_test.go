package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/testkit/doctest"
	"cadre/internal/testkit/golden"
)

// guide is what a reader needs who follows a document command by command, from the first to the
// last. The keys of the steps are the commands as in the document. A second occurrence of a command
// has " (2)" behind it.
type guide struct {
	setup string // a shell script that runs before the first command
	steps map[string]needs
}

// needs is what one command needs in addition. Most need nothing.
type needs struct {
	notRun string // why the test does not run the command
	before string // a shell script that runs before the command, in its directory
	status int    // the expected exit status
	until  string // interrupt the command when it has printed this, because it does not end by itself
	in     string // from here on, run in this directory below the user's home
	home   string // from here on, use the teams of this folder below the user's home, as on another machine
}

// TestDocumentsRun runs the commands of every document in their order, each document in its own
// home. It compares their output with what the document shows.
func TestDocumentsRun(t *testing.T) {
	if testing.Short() {
		t.Skip("-short does not run the documents")
	}
	total := 0
	for name, text := range documents(t) {
		commands := doctest.Commands(text)
		total += len(commands)
		r, known := guides[name]
		if len(commands) == 0 {
			if known {
				t.Errorf("%s has no commands", name)
			}
			continue
		}
		if !known {
			t.Errorf("%s has commands; add to guides what a reader needs to run them", name)
			continue
		}
		for line := range r.steps {
			if !slices.Contains(numbered(commands), line) {
				t.Errorf("%s has no command %q", name, line)
			}
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			read := newReader(t)
			read.script(r.setup)
			for i := range commands {
				c := commands[i] // the document may have been read again
				printed, ran := read.follow(c.Line, r.steps[numbered(commands)[i]])
				if !ran || !c.Shows {
					continue
				}
				why := c.Differs(printed)
				if why != "" && golden.Updating() {
					text = doctest.Written(text, c, printed)
					commands = slices.Concat(commands[:i+1], doctest.Commands(text)[i+1:])
					if err := os.WriteFile(filepath.Join(top, name), []byte(text), 0o644); err != nil {
						t.Fatal(err)
					}
				} else if why != "" {
					t.Errorf("%s\nto show what it prints: go test ./cmd/cadre -run DocumentsRun -update", why)
				}
			}
		})
	}
	if total < 50 {
		t.Errorf("found only %d commands", total)
	}
}

// numbered returns the keys of the commands: their lines, with a number behind repeated ones.
func numbered(commands []doctest.Command) (keys []string) {
	times := map[string]int{}
	for _, c := range commands {
		key := c.Line
		if times[c.Line]++; times[c.Line] > 1 {
			key += fmt.Sprintf(" (%d)", times[c.Line])
		}
		keys = append(keys, key)
	}
	return keys
}

// reader is a person who follows a document.
type reader struct {
	t     *testing.T
	user  string // the home folder
	in    string // the directory of the next command, below user
	teams string // the folder of the teams, below user
	env   []string
}

func newReader(t *testing.T) *reader {
	root := t.TempDir()
	if real, err := filepath.EvalSymlinks(root); err == nil { // /var on macOS
		root = real
	}
	r := &reader{t: t, user: filepath.Join(root, "me"), in: "src/parser", teams: ".cadre"}
	bin := filepath.Join(root, "bin")
	for _, dir := range []string{bin, filepath.Join(r.user, r.in)} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	project, err := filepath.Abs(top)
	if err != nil {
		t.Fatal(err)
	}
	wrapper := fmt.Sprintf("#!/bin/sh\nexport %s=1\nexec '%s' \"$@\"\n", asProgram, self)
	if err := os.WriteFile(filepath.Join(bin, "cadre"), []byte(wrapper), 0o755); err != nil {
		t.Fatal(err)
	}
	r.env = []string{"HOME=" + r.user, "PATH=" + bin + ":/usr/local/bin:/usr/bin:/bin", "BIN=" + bin, "PROJECT=" +
		project,
		"TMPDIR=" + root, "LC_ALL=C.UTF-8", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_CEILING_DIRECTORIES=" + root, "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org"}
	t.Cleanup(func() {
		homes, _ := filepath.Glob(filepath.Join(r.user, "*", "teams", "[a-zA-Z0-9]*"))
		hidden, _ := filepath.Glob(filepath.Join(r.user, ".*", "teams", "[a-zA-Z0-9]*"))
		for _, team := range append(homes, hidden...) {
			r.teams, _ = filepath.Rel(r.user, filepath.Dir(filepath.Dir(team))) // both are absolute
			r.sh("cadre cleanup "+filepath.Base(team)+" --force", "")
		}
	})
	return r
}

// script runs what has to happen before a command.
func (r *reader) script(text string) {
	r.t.Helper()
	if text == "" {
		return
	}
	if out, errs, code := r.sh("set -e\n"+text, ""); code != 0 {
		r.t.Fatalf("exit status %d of\n%s\n%s%s", code, text, out, errs)
	}
}

// follow runs a command of the document. It returns the output, with paths as in the document.
func (r *reader) follow(line string, s needs) (printed string, ran bool) {
	r.t.Helper()
	if s.in != "" {
		r.in = s.in
	}
	if s.home != "" {
		r.teams = s.home
	}
	r.script(s.before)
	if s.notRun != "" {
		return "", false
	}
	out, errs, code := r.sh(line, s.until)
	if code != s.status && s.until == "" { // an interrupted command has another status
		r.t.Fatalf("%s\nends with status %d, want %d\n%s%s", line, code, s.status, out, errs)
	}
	if s.until != "" && !strings.Contains(out+errs, s.until) {
		r.t.Fatalf("%s\ndid not print %q, but\n%s%s", line, s.until, out, errs)
	}
	return strings.ReplaceAll(out+errs, r.user, "~"), true
}

// sh runs a shell script. It interrupts the script when it has printed the text until.
func (r *reader) sh(script, until string) (out, errs string, code int) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := exec.CommandContext(ctx, "/bin/sh", "-c", script)
	c.Dir = filepath.Join(r.user, r.in)
	c.Env = append(slices.Clone(r.env), "CADRE_HOME="+filepath.Join(r.user, r.teams))
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	signal := func(s syscall.Signal) { syscall.Kill(-c.Process.Pid, s) } // to all processes of a pipe
	c.Cancel = func() error { signal(syscall.SIGKILL); return nil }
	c.WaitDelay = 5 * time.Second
	stdout := &awaited{text: until, then: func() { signal(syscall.SIGINT) }}
	var stderr bytes.Buffer
	c.Stdout, c.Stderr = stdout, &stderr
	err := c.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && !ok || ctx.Err() != nil {
		r.t.Errorf("%s: %v %v", script, err, exit)
	}
	return string(stdout.kept), stderr.String(), c.ProcessState.ExitCode()
}
