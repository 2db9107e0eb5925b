package readonly

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// TestHarm checks that each of these commands looks harmless to a reader who takes words, globs or
// text for what they mostly mean. Each is refused, and the real shell and program then show that it
// does harm.
func TestHarm(t *testing.T) {
	for _, c := range []struct {
		name, command string
		shell         []string // instead of sh
		env           []string
		program       string // without which it cannot be shown
		links         []string
		files         map[string]string
		untried       bool // it does harm only on another system
	}{
		{name: "a script before -e", command: "sed '1e touch pwned' a.txt -e p", env: []string{"POSIXLY_CORRECT=1"}},
		{name: "a script that writes before -e", command: "sed 'w pwned' -e p a.txt",
			env: []string{"POSIXLY_CORRECT=1"}},
		{name: "a script before --expression", command: "sed 'w pwned' --expression=p a.txt",
			env: []string{"POSIXLY_CORRECT=1"}},
		{name: "an option that is a file", command: "uniq a.txt -c", env: []string{"POSIXLY_CORRECT=1"}},
		{name: "a long option that is a link", command: "cat a.txt --number", env: []string{"POSIXLY_CORRECT=1"},
			links: []string{"--number"}},
		{name: "the same without the variable", command: "sed '1e touch pwned' a.txt -e p", untried: true},
		{name: "tree's next words", command: "tree -Lo 1 pwned", program: "tree"},
		{name: "a glob as a script", command: "cd ./globs && sed *",
			files: map[string]string{"globs/1e touch pwned": "", "globs/x": "x\n"}},
		{name: "a glob in another order", command: "cd ./globs && sed *", untried: true,
			files: map[string]string{"globs/P": "", "globs/e touch pwned": ""}},
		{name: "a glob as an option's script", command: "cd ./globs && sed -e *",
			files: map[string]string{"globs/1e touch pwned": "", "globs/x": "x\n"}},
		{name: "a glob as a pattern", command: "cd ./globs && grep *", files: map[string]string{"globs/content": ""},
			links: []string{"globs/link"}},
		{name: "a pattern in another order", command: "cd ./globs && grep *", untried: true,
			files: map[string]string{"globs/content": ""}, links: []string{"globs/D"}},
		{name: "a glob as a folder", command: "cd ./globs && cd * && cat hidden.txt", untried: true,
			files: map[string]string{"globs/x/y": ""}},
		{name: "a match by bytes", command: "cd ./globs && cat ??", links: []string{"globs/é"}},
		{name: "a match in other letters", command: "cd ./globs && cat L*", shell: []string{"bash"},
			env: []string{"BASHOPTS=nocaseglob"}, links: []string{"globs/link"}},
		{name: "anything but", command: "cat li^x", shell: []string{"zsh", "-o", "extendedglob"}, program: "zsh"},
		{name: "any number of", command: "cat lin#k", shell: []string{"zsh", "-o", "extendedglob"}, program: "zsh"},
		{name: "a set of letters", command: "cat lin{k}", shell: []string{"zsh", "-o", "braceccl"}, program: "zsh"},
		{name: "a set of letters as a revision", command: "cat l@{k}", shell: []string{"zsh", "-o", "braceccl"},
			program: "zsh", links: []string{"l@k"}},
		{name: "quotes in quotes", command: "sed 's''|one''|x|;s|b|''w pwned' a.txt",
			shell: []string{"zsh", "-o", "rcquotes"}, program: "zsh"},
		{name: "all but", command: "cat li*~x", shell: []string{"zsh", "-o", "extendedglob"}, program: "zsh"},
		{name: "a folder in other letters", command: "cat FOLDER/h*", shell: []string{"zsh", "+o", "caseglob", "+o",
			"casepaths"}, program: "zsh"},
		{name: "a file in other letters", command: "cat f*/HIDDEN.txt", shell: []string{"zsh", "+o", "caseglob", "+o",
			"casepaths"}, program: "zsh"},
		{name: "tree's value", command: "tree --sort -o pwned", program: "tree", untried: true},
		{name: "an option that may have no value", command: "ls -w -L sub", untried: true},
		{name: "a quote in another locale", command: "echo 'あ' | cat", env: []string{"LC_ALL=ja_JP.SJIS"},
			untried: true},
		{name: "a quote in a locale by its language", command: "echo 'あ' | cat", env: []string{"LC_ALL=", "LANG=zh_CN"},
			untried: true},
		{name: "a mark in another locale", command: "sed 's|あ|A|;s|w pwned|x|' a.txt", untried: true},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			w := newFolders(t)
			w.write(t, w.project, c.files)
			for _, link := range c.links {
				if err := os.MkdirAll(filepath.Dir(filepath.Join(w.project, link)), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.Symlink(filepath.Join(w.outside, "hidden.txt"),
					filepath.Join(w.project, link)); err != nil {
					t.Fatal(err)
				}
			}
			s := w.scope()
			s.Env = append(s.Env, c.env...)
			if _, ok := s.Command(c.command); ok {
				t.Errorf("%q is accepted", c.command)
			}
			if c.untried || runtime.GOOS != "linux" {
				return
			}
			shell := c.shell
			if shell == nil {
				shell = []string{"sh"}
			}
			for _, program := range []string{shell[0], c.program} {
				if _, err := exec.LookPath(program); program != "" && err != nil {
					t.Skipf("it is refused; there is no %s to show why", program)
				}
			}
			cmd := exec.Command(shell[0], append(shell[1:], "-c", c.command)...)
			cmd.Dir, cmd.Env = w.project, s.Env
			out, _ := cmd.CombinedOutput()
			for _, made := range []string{"pwned", "globs/pwned", "-c"} {
				if _, err := os.Lstat(filepath.Join(w.project, made)); err == nil {
					return
				}
			}
			if !strings.Contains(string(out), secret) {
				t.Errorf("%q does no harm, so this shows nothing:\n%s", c.command, out)
			}
		})
	}
}

// TestBSDGrep checks that BSD's grep -r follows links, so no link below the folder may lead
// outside.
func TestBSDGrep(t *testing.T) {
	w := newWorld(t)
	w.write(t, w.project, map[string]string{"plain/x/y.txt": "two\n"})
	if err := os.Symlink("../sub/c.txt", filepath.Join(w.project, "plain", "inside")); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]bool{
		"grep -r two plain": true, "grep -rn two plain a.txt": true, "grep two a.txt": true, "grep -r two .": false,
		"grep -r two":              false,
		"grep --recursive two sub": false, "rg two": true, "grep -r two plain nothing": true,
		"grep -r two plain/..": false,
	} {
		if _, ok := w.scope().command(command, true); ok != want {
			t.Errorf("with BSD's programs, %q: %t", command, ok)
		}
		if _, ok := w.scope().command(command, false); !ok {
			t.Errorf("with GNU's programs, %q is refused", command)
		}
	}
}

// TestOptionsBehindOperands checks that words that are harmless both as options and as operands are
// accepted in any order.
func TestOptionsBehindOperands(t *testing.T) {
	w := newWorld(t)
	for _, command := range []string{"ls sub -la", "grep -n two * -i", "grep two a.txt -n", "head a.txt -n 5",
		"cat a.txt -n", "wc a.txt --lines", "rg two sub -n", "sort a.txt -u -k 1",
		"git log HEAD --oneline", "git show HEAD^", "git diff HEAD^ HEAD", "git show 'HEAD^{tree}'", "git log HEAD@{0}",
		"ls *.go", "cat 'é'", "echo *.go", "head -n 2 *.txt",
		"grep -rn two --include=*.md sub", "rg -g*.md two", "find s* -name x", "git ls-files *.go",
		"git diff -- *.go"} {
		s := w.scope()
		s.Dir = filepath.Join(w.project, "plain")
		w.write(t, s.Dir, map[string]string{"a.txt": "two\n", "b.go": "package b\n", "sub/c.txt": "x\n", "é": ""})
		if _, ok := s.Command(command); !ok {
			t.Errorf("%q is refused", command)
		}
	}
}
