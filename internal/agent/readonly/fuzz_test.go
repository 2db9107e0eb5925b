package readonly

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cadre/internal/testkit/treetest"
)

// vocabulary is what the fuzzer builds commands from: words that are accepted, and words that must
// not be.
var vocabulary = []string{"ls", "cat", "head", "tail", "wc", "grep", "rg", "find", "sed", "sort", "uniq", "cut", "tr",
	"stat", "file", "tree", "nl", "echo", "pwd", "cd", "git", "touch", "canary", "xargs",
	"a.txt", "b.go", "sub", "sub/c.txt", "link", "folder", "folder/hidden.txt", "sub/up", "inner", "..",
	"../outside/hidden.txt", "../outside", ".", "/", "*", "*.go", "sub/*", "f*", "*/", "*/hidden.txt",
	"~", "-", "--", "|", "&&", "||", ";", "&", "\n", ">", ">>", "<", "2>&1", "2>/dev/null", ">/dev/null", "/dev/null",
	"(", ")", "{", "}", "$(canary)", "`canary`", "$HOME", "'", "\"", "\\", "!", "#",
	"-a", "-l", "-R", "-r", "-L", "-H", "-n", "-i", "-e", "-f", "-o", "-c", "-p", "-u", "-z", "-d", "-s", "-w", "-S",
	"-O", "-C", "-T", "-v", "-rn", "-n1", "-5", "1", "2", "x", "out", "one", "p", "'p'", "'1,2p'",
	"'w out'", "'1w out'", "'e canary'", "'s/o/p/'", "'s/o/canary/e'", "'s/o/0/w out'", "'r ../outside/hidden.txt'",
	"'p;p'", "'/[/]/w out;/p'", "-name", "'*.txt'", "-type", "-exec", "-execdir",
	"-delete", "-fprint", "-fls", "-ok", "-newer", "-follow", "-maxdepth", "-print", "canary {} ;", "'{}'", "';'", "+",
	"--pre", "--pre=canary", "--files", "--follow", "--hidden", "--output=out", "--output",
	"--compress-program=canary", "--files0-from=sub/list", "--in-place", "--file=../outside/hidden.txt", "--no-index",
	"--ext-diff", "--textconv", "--contents", "--stat", "--oneline", "--cached",
	"--list", "--all", "--format=%h", "--exec-path=.", "--git-dir=../outside", "-c core.fsmonitor=canary",
	"-c core.pager=canary", "status", "log", "show", "diff", "branch", "rev-parse", "ls-files", "blame",
	"commit", "add", "HEAD", "HEAD:a.txt", "main", "-t", "-k", "-k1", "-t:", "-D", "-b", "--recursive", "--dereference",
	"--exclude=x", "--include=*.txt", "-A1", "../project/a.txt", "sub/../a.txt",
	"sub/up/hidden.txt", "inner/../../outside/hidden.txt", "folder/..", "sub/list", "=ls", "{a.txt,link}", "[a-z]*",
	"?.txt", "-P", "-I",
	"cd ./globs", "globs/*", "FOLDER/h*", "f*/HIDDEN.txt", "li*~x", "''", "--sort", "??", "l^x", "HEAD^", "P",
	"'1e canary'", "'e canary'", "'é'", "-Lo", "--all", "--format=%-G?", "--format='% GK'", "--pretty=%+GG", "-e p",
	"-e 'w out'", "--expression=p", "LIN*"}

// FuzzWords builds commands from words: each byte is one, with a space before it unless it is odd
// in the upper half.
func FuzzWords(f *testing.F) {
	index := func(words string) (data []byte) {
		for _, w := range strings.Fields(words) {
			for i, v := range vocabulary {
				if v == w {
					data = append(data, byte(i>>8), byte(i))
				}
			}
		}
		return data
	}
	for _, words := range []string{"ls -l sub", "cat a.txt | head -n 1", "find . -name '*.txt' -print",
		"sed -n '1,2p' a.txt", "grep -rn one .", "rg one sub", "git log --oneline && git status", "git diff HEAD",
		"sort a.txt | uniq -c", "cd ./sub ; cat c.txt", "ls * 2>/dev/null", "stat a.txt", "tree sub", "wc -l *.go",
		"git show HEAD:a.txt", "cat a.txt a.txt", "find sub -name '*.txt' -delete", "sort -o out a.txt",
		"git branch --list main", "git blame a.txt", "ls sub -a", "grep -n one *", "git log HEAD^",
		"cd ./globs ; cat *", "sed -n p a.txt -e p", "uniq a.txt -c", "tail -n1 sub/c.txt || cut -d x a.txt"} {
		f.Add(index(words))
	}
	s := newSandbox(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		var b strings.Builder
		for i := 0; i+1 < len(data) && i < 40; i += 2 {
			if i > 0 && data[i]&0x80 == 0 {
				b.WriteByte(' ')
			}
			b.WriteString(vocabulary[(int(data[i]&0x7f)<<8|int(data[i+1]))%len(vocabulary)])
		}
		s.try(t, b.String())
	})
}

// FuzzText tries any text as a command.
func FuzzText(f *testing.F) {
	for _, command := range []string{"ls -la", "cat a.txt | grep -n 'o\\(n\\)e' | sort -u", `find . -name \*.txt`,
		"sed -n '/one/,$p' a.txt", "git log --format='%h %s' -n 3", "echo \"a\\\"b\" 'c d'", "ls *.go sub/?.txt",
		"cd ./sub && cat c.txt 2>/dev/null", "head -5 a.txt; tail -n +2 a.txt", "sed '1e canary' a.txt -e p",
		"sed 'w out' --expression=p a.txt",
		"uniq a.txt -c", "cd ./globs && sed *", "cd ./globs && grep *", "cd ./globs && cat ??", "cat L*", "cat li^x",
		"cat li*~x", "cat lin{k}", "sed 's''|one''|x|;s|b|''w out' a.txt", "tree -Lo 1 out",
		"cat f*/HIDDEN.txt", "cat FOLDER/h*", "@{", "^{", "git log @{u}", "git log --format=%-G?",
		"git show '--pretty=x% GK'", "git diff HEAD^ -- *.go", "git status; git diff", "rg -g '*.txt' -- one .",
		"cat 'with space.txt' with\\ space.txt"} {
		f.Add(command)
	}
	s := newSandbox(f)
	f.Fuzz(func(t *testing.T, command string) { s.try(t, command) })
}

// sandbox is a place in which accepted commands run, one at a time.
type sandbox struct {
	*world
	mu     sync.Mutex
	scope  Scope
	base   string
	wrap   []string // bubblewrap, where it works; without it writes elsewhere are not noticed
	shells [][]string
	ran    int
}

// environments are settings that a shell or a user's environment may have. An accepted command runs
// in each, with one shell after the other.
var environments = [][]string{nil, {"POSIXLY_CORRECT=1"}, {"LC_ALL=C.UTF-8"},
	{"LC_ALL=", "BASHOPTS=nocaseglob:dotglob:extglob:globstar"}, {"BASHOPTS=nullglob", "_POSIX2_VERSION=199209"}}

// newSandbox makes a world with only the programs of the table and one that must never run.
func newSandbox(f *testing.F) *sandbox {
	s := &sandbox{world: newWorld(f)}
	s.base = filepath.Dir(s.project)
	bin := filepath.Join(s.base, "bin")
	s.write(f, s.outside, map[string]string{"list": secret})
	s.write(f, s.project, map[string]string{"sub/list": "../outside/hidden.txt\x00", "globs/P": "",
		"globs/e canary": "", "globs/content": ""})
	for _, name := range []string{"D", "é"} {
		if err := os.Symlink("../../outside/hidden.txt", filepath.Join(s.project, "globs", name)); err != nil {
			f.Fatal(err)
		}
	}
	s.write(f, s.home,
		map[string]string{".gitconfig": "[user]\n\tname = t\n\temail = t@t\n[gpg]\n\tprogram = canary\n"})
	signed(f, s.world, filepath.Join(s.base, "sign", "x"))
	s.write(f, bin, map[string]string{"canary": "#!/bin/sh\necho > " + filepath.Join(s.outside, "ran") + "\n"})
	for name := range programs() {
		if path, err := exec.LookPath(name); err == nil {
			if path, err = filepath.Abs(path); err == nil {
				err = os.Symlink(path, filepath.Join(bin, name))
			}
			if err != nil {
				f.Fatal(err)
			}
		}
	}
	for _, shell := range [][]string{{"bash"}, {"dash"}, {"zsh"}, {"zsh", "-o", "extendedglob", "-o", "braceccl", "-o",
		"nullglob", "-o", "rcquotes", "+o", "caseglob", "+o", "casepaths"}, {"sh"}} {
		if path, err := exec.LookPath(shell[0]); err == nil {
			s.shells = append(s.shells, append([]string{path}, shell[1:]...))
		}
	}
	s.env = append(s.env, "PATH="+bin, "PAGER=cat")
	s.scope = Scope{Dir: s.project, Roots: []string{s.project}, Env: s.env}
	if path, err := exec.LookPath("bwrap"); err == nil {
		wrap := []string{path, "--ro-bind", "/", "/", "--dev", "/dev", "--bind", s.base, s.base, "--unshare-net",
			"--die-with-parent"}
		if exec.Command(wrap[0], append(wrap[1:], "true")...).Run() == nil {
			s.wrap = wrap
		}
	}
	f.Cleanup(func() { f.Logf("%d commands ran; bubblewrap: %t", s.ran, s.wrap != nil) })
	return s
}

// try runs an accepted command in every environment, and checks that it wrote nothing and saw
// nothing outside.
func (s *sandbox) try(t *testing.T, command string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, more := range environments {
		shell, env := s.shells[(len(command)+i)%len(s.shells)], append(slices.Clip(s.env), more...)
		s.scope.Env = env
		if _, ok := s.scope.Command(command); !ok {
			continue
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		args := slices.Concat(s.wrap, shell, []string{"-c", command})
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		cmd.Dir, cmd.Env = s.project, env
		forget := s.index(t)
		unchanged := treetest.Keep(t, s.base)
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		cmd.Run() // it may fail
		s.ran++
		forget()
		if ctx.Err() != nil && t.Context().Err() == nil {
			t.Errorf("%s: %q does not end", shell, command)
		}
		if text := out.String(); strings.Contains(text, secret) || strings.Contains(text, marker) ||
			strings.Contains(text, "Read-only file system") {
			t.Errorf("%s: %q saw or tried what is outside:\n%s", shell, command, text)
		}
		unchanged(fmt.Sprintf("%s: %q", shell, command))
	}
}

// index saves the index of the repository, which git may refresh, and returns a function that
// restores it.
func (s *sandbox) index(t *testing.T) (restore func()) {
	t.Helper()
	git := filepath.Join(s.project, ".git")
	file := filepath.Join(git, "index")
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var times [2]time.Time
	for i, path := range []string{file, git} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		times[i] = info.ModTime()
	}
	return func() {
		now, err := os.ReadFile(file)
		if err == nil && !bytes.Equal(now, data) {
			err = os.WriteFile(file, data, 0o600)
		}
		for i, path := range []string{file, git} {
			if err == nil {
				err = os.Chtimes(path, times[i], times[i])
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
