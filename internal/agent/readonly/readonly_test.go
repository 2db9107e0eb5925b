package readonly

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// world is a project with links that lead outside, beside a folder that must not be read.
type world struct {
	project, outside, home string
	env                    []string
}

const (
	secret = "content-9c2f" // in files outside
	marker = "marker-f81a"  // a name outside
)

// newWorld returns a world whose project is a repository with a commit and a change.
func newWorld(t testing.TB) *world {
	t.Helper()
	w := newFolders(t)
	w.git(t, "init", "-q", "-b", "main")
	w.git(t, "add", "a.txt", "b.go", "sub/c.txt")
	w.git(t, "commit", "-q", "-m", "first")
	w.write(t, w.project, map[string]string{"a.txt": "one\ntwo\nthree\nfour\n"})
	return w
}

// newFolders returns a world whose project is no repository.
func newFolders(t testing.TB) *world {
	t.Helper()
	base, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{project: filepath.Join(base, "project"), outside: filepath.Join(base, "outside"),
		home: filepath.Join(base, "home")}
	w.write(t, w.outside, map[string]string{"hidden.txt": secret + "\n", marker: secret + "\n",
		"sub/deep.txt": secret + "\n"})
	w.write(t, w.home, map[string]string{".gitconfig": "[user]\n\tname = t\n\temail = t@t\n"})
	w.write(t, w.project, map[string]string{"a.txt": "one\ntwo\nthree\n", "b.go": "package b\n", "sub/c.txt": "see\n",
		"sub/d.go": "package d\n", "with space.txt": "x\n"})
	for name, to := range map[string]string{"link": filepath.Join(w.outside, "hidden.txt"), "folder": w.outside,
		"sub/up": "../../outside", "inner": "sub", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(w.project, name)); err != nil {
			t.Fatal(err)
		}
	}
	w.env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home, "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C"}
	return w
}

func (w *world) write(t testing.TB, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
}

func (w *world) git(t testing.TB, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env = w.project, w.env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func (w *world) scope() Scope { return Scope{Dir: w.project, Roots: []string{w.project}, Env: w.env} }

// TestReads checks that commands with which agents explore are accepted, and their output is the
// shell's.
func TestReads(t *testing.T) {
	w := newWorld(t)
	for _, command := range []string{
		"ls", "ls -la", "ls -la sub", "ls sub a.txt", "ls *.go", "ls sub/*.go", "ls -R .", "pwd", "echo hello",
		"echo 'a; rm b' \"c && d\"", "cat a.txt b.go", "cat 'with space.txt'",
		`cat with\ space.txt`, "cat -n a.txt", "cat ./sub/../a.txt", "cat inner/c.txt", "head -n 2 a.txt",
		"head -5 a.txt", "tail -n +2 a.txt", "wc -l *.txt", "grep -rn 'two' .",
		"grep -n two a.txt", "grep -rnE \"o(n|w)e$\" --include=*.txt .", "grep -e one -e two a.txt",
		"egrep -i ONE a.txt", "rg two", "rg -n --hidden -g '*.txt' two .", "rg --files",
		"rg -t go package sub", "find . -name '*.go'", `find . -type f -name \*.go -not -path './.git/*'`,
		`find . \( -name a -o -name b \) -print`, "find sub -maxdepth 1 -type f -newer a.txt",
		"find", "find . ! -name x", "sed -n '1,2p' a.txt", "sed -n 2p a.txt", "sed -n '/one/,/two/p' a.txt",
		"sed -n '$p' a.txt", "sed -ne 's/one/1/gp' a.txt", "sed 's|o|0|; 2d' a.txt",
		"sed -n '1~2p;3q' a.txt", "sort a.txt | uniq -c | sort -rn | head -3", "cut -d: -f1 a.txt",
		"cut -d ' ' -f 1,2 a.txt", "tr a-z A-Z < /dev/null", "cat a.txt | tr -d '\\n'", "stat a.txt",
		"stat -c '%s %n' a.txt", "file a.txt b.go", "tree -L 2", "tree -a sub", "nl a.txt", "basename sub/c.txt .txt",
		"dirname sub/c.txt", "true && ls || false; ls",
		"ls nothing 2>/dev/null", "ls > /dev/null 2>&1", "ls &>/dev/null", "cat a.txt 2>&1 | head", "ls\ncat a.txt",
		"! grep -q nothing a.txt",
		"cat does-not-exist", "cd ./sub && ls", "cd ./sub && cat c.txt", "cat {}", "cat folder/../project/a.txt",
		"ls s*/", "ls s*//c*", "ls HEAD~1", "grep 'foo#bar' a.txt",
		"git status", "git status -sb", "git status --porcelain=v2 --branch", "git log", "git log --oneline -5",
		"git log -n 3 --stat -- sub", "git log -p -1 a.txt",
		"git log --format='%h %s' --author t --since=2020-01-01", "git log --graph --all --decorate",
		"git log main..HEAD", "git log -S one -- a.txt", "git log --pretty=oneline",
		"git show", "git show HEAD:a.txt", "git show --stat HEAD", "git diff", "git diff HEAD -- a.txt",
		"git diff --stat", "git diff --cached --name-only", "git diff -U5 HEAD a.txt",
		"git branch", "git branch -a", "git branch -vv", "git branch --show-current", "git branch --list 'm*'",
		"git branch --contains HEAD", "git rev-parse HEAD",
		"git rev-parse --abbrev-ref HEAD", "git rev-parse --show-toplevel", "git ls-files",
		"git ls-files -o --exclude-standard", "git ls-files '*.go'", "git blame a.txt",
		"git blame -L 1,2 HEAD -- a.txt", "git --no-pager log -1", "git -C sub status", "git log -1 | cat",
		"cd ./sub && git status --short",
	} {
		if _, ok := w.scope().Command(command); !ok {
			t.Errorf("%q is refused", command)
		}
	}
	for _, command := range []string{"cat " + w.project + "/a.txt", "cd " + w.project + " && git status",
		"git -C " + w.project + " log -1", "ls " + w.project + "/*.go"} {
		if _, ok := w.scope().Command(command); !ok {
			t.Errorf("%q is refused", command)
		}
	}
}

// TestRefuses checks that a command that writes, runs something, leads outside, or is uncertain is
// refused.
func TestRefuses(t *testing.T) {
	w := newWorld(t)
	if err := syscall.Mkfifo(filepath.Join(w.project, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.write(t, w.project, map[string]string{"globs/-o": "", "globs/x": "", "--pre=x": "", "bin/ls": "#!/bin/sh\n"})
	for what, commands := range map[string][]string{
		"assignments": {"A=1 ls", "A=1", "PATH=. ls", "export A=1", "GIT_PAGER=x git log", "declare x", "local x",
			"readonly x"},
		"substitutions": {"cat $(touch x)", "cat `touch x`", "ls $HOME", "ls ${HOME}", "echo $((1+1))",
			"cat <(touch x)", "ls > >(touch x)", `echo "$(touch x)"`, "echo \"`touch x`\"", "echo $'a'", `echo $"a"`,
			"ls $1", "echo ${x:=y}"},
		"redirections": {"ls > x", "ls >> x", "ls >| x", "ls &> x", "ls 2> x", "ls <> x", "cat < a.txt", "cat <<E\nE",
			"cat <<< a", "ls > /dev/null2", "ls >& x", "ls > /dev/../x", "ls 3>/dev/null", "ls >&3",
			"ls > '/dev/null'x", "ls > /dev/tcp/h/1", "ls 2>&-"},
		"other shell": {"(ls)", "{ ls; }", "ls &", "if true; then ls; fi", "for x in a; do ls; done",
			"while true; do ls; done", "f() { ls; }; f", "coproc ls", "time ls", "[[ -e a.txt ]]", "((1))", "let x=1",
			"case a in a) ls;; esac", "ls # touch x", "", " ", "ls |", "ls 'a", "eval ls", "exec ls", ". ./x",
			"source x", "alias ls=x", "command ls", "builtin cd", "trap x EXIT", "set -x", "!!"},
		"other programs": {"touch x", "rm a.txt", "mv a b", "cp a b", "xargs ls", "ls | xargs rm", "env ls", "sh -c ls",
			"bash -c ls", "awk 1 a.txt", "perl -e 1", "python3 -c 1", "tee x", "ls | tee x", "dd", "make", "go list",
			"less a.txt", "vi", "nohup ls", "sudo ls", "./ls", "/bin/ls", "bin/ls", "\\ls", "'ls'", "l\"s\"",
			"ls\u00a0x", "curl x", "ssh x", "watch ls", "ln -s a b", "mkdir d", "truncate -s 0 a.txt",
			"yes", "printf x"},
		"find": {"find . -exec rm {} ;", `find . -exec rm {} \;`, "find . -exec rm {} +",
			"find . -execdir rm {} +", "find . -ok rm {} +", "find . -okdir rm {} +", "find . -delete",
			"find . -name x -delete", "find . -fprint x", "find . -fprint0 x", "find . -fprintf x %p", "find . -fls x",
			"find -L .", "find -H .", "find . -follow", "find . -files0-from a.txt", "find -f . -delete",
			"find . -newer ../outside/hidden.txt", "find ..", "find /", "find folder/", "find . -D exec",
			"find . -unknown", "find . -name"},
		"sed": {"sed -i s/a/b/ a.txt", "sed -n -i p a.txt", "sed -ni p a.txt", "sed --in-place p a.txt",
			"sed --in-p p a.txt", "sed -i.bak p a.txt", "sed -n 'w x' a.txt", "sed -n '1w x' a.txt",
			"sed 's/a/b/w x' a.txt", "sed 's/a/b/gw x' a.txt", "sed 's/a/b/e' a.txt", "sed 'e touch x' a.txt",
			"sed '1e touch x' a.txt", "sed -n '1r ../outside/hidden.txt' a.txt", "sed 'R x' a.txt", "sed 'W x' a.txt",
			"sed -f a.txt b.go", "sed --file=a.txt b.go", "sed -n 'p;w x' a.txt", "sed -n 'p\nw x' a.txt",
			"sed -n -e p -e 'w x' a.txt", "sed -n --expression='w x' a.txt", "sed 's/[/]w x;/' a.txt",
			"sed 's/[[:alpha:]/]w x/' a.txt", "sed -n p ../outside/hidden.txt", "sed -n '/[/]/w x;/p' a.txt",
			"sed 'a\\' a.txt", "sed 'c x' a.txt", "sed '{p;w x\n}' a.txt", "sed -E 's/(a)/b/;e' a.txt", "sed -s",
			"sed 's,a,b,w,' a.txt", "sed -n '1!w x' a.txt", "sed '1,/x/e ls' a.txt", "sed p 'link'"},
		"rg and grep": {"rg --pre ./x two", "rg --pre=./x two", "rg two --pre x", "rg -z two", "rg --search-zip two",
			"rg -L two", "rg --follow two", "rg -nL two", "rg --hostname-bin=x two",
			"rg --ignore-file ../outside/hidden.txt two", "rg -f ../outside/hidden.txt", "rg --file=a.txt", "rg two ..",
			"rg two /", "grep -R two .", "grep -rR two .", "grep --dereference-recursive two .",
			"grep -f ../outside/hidden.txt a.txt", "grep --file=x a.txt", "grep two ../outside/hidden.txt",
			"grep two link", "grep -r two folder/", "grep", "grep two a.txt -e ../outside/hidden.txt", "grep x *"},
		"other options": {"sort -o x a.txt", "sort a.txt -o x", "sort -ox a.txt", "sort -uo x a.txt",
			"sort --output=x a.txt", "sort --outp x a.txt", "sort --compress-program=x a.txt",
			"sort -T ../outside a.txt", "sort --files0-from=a.txt", "uniq a.txt x", "uniq -c a.txt x", "tree -o x",
			"tree -R -H . -L 1", "tree -l", "tree --fromfile a.txt", "file -C -m a.txt", "file -f a.txt",
			"file -p a.txt", "file -z a.txt", "file -m x a.txt", "tail -f a.txt", "tail -F a.txt",
			"tail --follow a.txt", "wc --files0-from=a.txt", "ls -L", "ls -H", "head -n 1 -- ../outside/hidden.txt",
			"cut -f1 ../outside/hidden.txt", "ls --hyperlink", "date -s x", "sort +1 a.txt"},
		"paths outside": {"cat ../outside/hidden.txt", "cat link", "cat folder/hidden.txt", "cat sub/up/hidden.txt",
			"ls folder", "ls folder/", "ls ..", "ls /", "ls ~", "ls ~/x", "ls ~root", "cat /etc/passwd",
			"cat sub/../../outside/hidden.txt", "cat inner/../../outside/hidden.txt", "cat inner/up/hidden.txt",
			"cat nothing/../a.txt", "cat loop", "cat pipe", "cat /dev/zero", "cat /proc/self/environ",
			"stat ../outside", "file link", "wc -l link", "ls fol*", "ls fold?r/", "cat fold*/hidden.txt",
			"ls */hidden.txt", "ls */.", "cat */./hidden.txt", "ls folder?/../x", "ls f*/", "ls f*//", "ls ./f*/.",
			"cat */up/hidden.txt", "cat sub/u*/hidden.txt", "cat {a.txt,link}", "cat {a,b}.txt", "cat [l]ink",
			"ls **/x", "cat ../project/../outside/hidden.txt", "cd .. && ls", "cd folder && ls", "cd ./folder && ls",
			"cd ./sub/up && ls", "cd - && ls", "cd && ls", "cd sub && ls", "cd ./sub/.. && ls", "cd ./sub; cat up/hidden.txt", "cd ./inner && cat ../../outside/hidden.txt", "cd /", "cat =ls", "cat a.txt=~/x", "head ^x"},
		"globs": {"cat globs/../globs/*", "cd ./globs && cat *", "cd ./globs && ls *", "cat -*", "rg two --*",
			"ls -la *(e:'touch x':)", "ls @(a|b)", "ls !(a)"},
		"git": {"git", "git commit -m x", "git add .", "git checkout main", "git reset", "git stash", "git fetch",
			"git push", "git pull", "git config user.name", "git -c core.pager=x log", "git -ccore.pager=x log",
			"git --config-env=core.pager=X log", "git --git-dir=../outside log", "git --git-dir ../outside log",
			"git --work-tree=.. status", "git --exec-path=. log", "git -p log", "git --paginate log", "git -C .. log",
			"git -C folder log", "git -C /dev/null status", "git log --output=x", "git log --output x",
			"git diff --output=x", "git show --outpu=x", "git log --ext-diff", "git log -p --ext-diff",
			"git diff --ext-diff", "git show --textconv",
			"git log --textconv", "git diff --text --textconv", "git blame --textconv a.txt",
			"git diff --no-index a.txt ../outside/hidden.txt", "git diff --no-index a.txt b.go",
			"git diff a.txt ../outside/hidden.txt", "git diff /dev/null " + w.outside + "/hidden.txt",
			"git diff a.txt link", "git diff -O../outside/hidden.txt", "git diff -O x", "git log --show-signature",
			"git log --format=%G?", "git log --format '%GG'", "git log --pretty=format:%GK", "git log '--format=%+G?'",
			"git log --format '%-GG'", "git show '--pretty=format:x% GK'", "git branch --sort=-Signature:key",
			"git log --remerge-diff", "git log --diff-merges=remerge", "git log --submodule=log -p",
			"git diff --submodule", "git branch x", "git branch -D main", "git branch -d main", "git branch -m a b",
			"git branch -c a", "git branch -f main HEAD", "git branch -u origin/main", "git branch --unset-upstream",
			"git branch --edit-description", "git branch -v x", "git branch -a x",
			"git branch -- x", "git branch --list -D main", "git branch --lis x", "git branch -l x",
			"git branch --set-upstream-to=x", "git branch --format='%(signature)'", "git branch --sort=signature",
			"git branch --track x", "git rev-parse --parseopt", "git rev-parse --git-path x",
			"git rev-parse --resolve-git-dir ../outside",
			"git blame --contents ../outside/hidden.txt a.txt", "git blame -S ../outside/hidden.txt a.txt",
			"git blame --ignore-revs-file=../outside/hidden.txt a.txt", "git ls-files -X ../outside/hidden.txt",
			"git ls-files --exclude-from=x", "git ls-files --with-tree=x", "git ls-files --recurse-submodules",
			"git status --no-such", "git st", "git grep -O x", "git difftool", "git bisect run x", "git log ../outside",
			"git log -- ../outside", "git help log", "git log --help", "git shell", "git log --stdin",
			"git -C sub -c a=b log", "git rev-parse --sq-quote x"},
	} {
		for _, command := range commands {
			if _, ok := w.scope().Command(command); ok {
				t.Errorf("%s: %q is accepted", what, command)
			}
		}
	}
}

// TestSurroundings: a command is refused if its folder, its programs or its environment is not
// known.
func TestSurroundings(t *testing.T) {
	w := newWorld(t)
	bin := filepath.Join(w.project, "bin")
	w.write(t, bin, map[string]string{"ls": "#!/bin/sh\ntouch x\n", "git": "#!/bin/sh\n"})
	for _, c := range []struct {
		name, command string
		change        func(*Scope)
	}{
		{"a program of the project", "ls", func(s *Scope) { s.Env = append(s.Env, "PATH="+bin+":/bin:/usr/bin") }},
		{"a path by a folder's name", "ls", func(s *Scope) { s.Env = append(s.Env, "PATH=bin:/bin") }},
		{"an empty path", "ls", func(s *Scope) { s.Env = append(s.Env, "PATH=/nowhere::/bin") }},
		{"rg's configuration", "rg x", func(s *Scope) { s.Env = append(s.Env, "RIPGREP_CONFIG_PATH=/x") }},
		{"grep's options", "grep x a.txt", func(s *Scope) { s.Env = append(s.Env, "GREP_OPTIONS=-R") }},
		{"git's pager", "git log", func(s *Scope) { s.Env = append(s.Env, "GIT_PAGER=touch x") }},
		{"the pager", "git log", func(s *Scope) { s.Env = append(s.Env, "PAGER=touch x") }},
		{"a pager that writes", "git log", func(s *Scope) { s.Env = append(s.Env, "PAGER=less -ox") }},
		{"git's external diff", "git diff", func(s *Scope) { s.Env = append(s.Env, "GIT_EXTERNAL_DIFF=x") }},
		{"a configuration by a folder's name", "git status",
			func(s *Scope) { s.Env = append(s.Env, "GIT_CONFIG_GLOBAL=x") }},
		{"a home by a folder's name", "git status", func(s *Scope) { s.Env = append(s.Env, "HOME=x") }},
		{"another repository", "git status", func(s *Scope) { s.Env = append(s.Env, "GIT_DIR="+w.outside) }},
		{"git's trace", "git status", func(s *Scope) { s.Env = append(s.Env, "GIT_TRACE="+w.project+"/x") }},
		{"configuration in variables", "git status", func(s *Scope) { s.Env = append(s.Env, "GIT_CONFIG_COUNT=1") }},
		{"code of the project", "ls", func(s *Scope) { s.Env = append(s.Env, "BASH_ENV="+w.project+"/x") }},
		{"code by a folder's name", "ls", func(s *Scope) { s.Env = append(s.Env, "ENV=x") }},
		{"a library of the project", "ls", func(s *Scope) {
			s.Env = append(s.Env, "LD_PRELOAD=/lib/x.so "+w.project+"/x.so")
		}},
		{"libraries of the folder", "ls", func(s *Scope) { s.Env = append(s.Env, "LD_LIBRARY_PATH=/opt/lib:") }},
		{"zsh's folder", "ls", func(s *Scope) { s.Env = append(s.Env, "ZDOTDIR="+w.project) }},
		{"a trace with a prompt", "ls", func(s *Scope) {
			s.Env = append(s.Env, "SHELLOPTS=braceexpand:xtrace",
				"PS4=$(touch x)")
		}},
		{"it runs outside", "ls", func(s *Scope) { s.Dir = w.outside }},
		{"it runs nowhere", "ls", func(s *Scope) { s.Dir = filepath.Join(w.project, "nowhere") }},
		{"it runs in a link outside", "ls", func(s *Scope) { s.Dir = filepath.Join(w.project, "folder") }},
		{"a relative folder", "ls", func(s *Scope) { s.Dir = "." }},
		{"no folders", "ls", func(s *Scope) { s.Roots = nil }},
		{"a folder that is not there", "ls", func(s *Scope) { s.Roots = []string{filepath.Join(w.project, "gone")} }},
		{"CDPATH", "cd " + w.project, func(s *Scope) { s.Env = append(s.Env, "CDPATH="+w.outside) }},
		{"a repository around the project", "git log", func(s *Scope) {
			s.Dir, s.Roots = filepath.Join(w.project, "sub"), []string{filepath.Join(w.project, "sub")}
		}},
		{"too long", "echo " + strings.Repeat("x", maxCommand), func(*Scope) {}},
		{"no text", "echo \xff", func(*Scope) {}},
		{"a zero", "echo \x00", func(*Scope) {}},
		{"a carriage return", "echo a\rb", func(*Scope) {}},
		{"right to left", "echo \u202e", func(*Scope) {}},
		{"many programs", strings.Repeat("ls;", maxCalls+1), func(*Scope) {}},
	} {
		s := w.scope()
		c.change(&s)
		if _, ok := s.Command(c.command); ok {
			t.Errorf("%s: %q is accepted", c.name, c.command)
		}
	}
	usual := w.scope()
	usual.Env = append(usual.Env, "BASH_ENV="+w.home+"/bash", "LD_LIBRARY_PATH=/usr/local/lib",
		"SHELLOPTS=braceexpand", "ENV=")
	if _, ok := usual.Command("ls"); !ok {
		t.Error("code of the user's is refused")
	}
	linked := filepath.Join(filepath.Dir(w.project), "linked")
	if err := os.Symlink(w.project, linked); err != nil {
		t.Fatal(err)
	}
	s := w.scope()
	s.Dir, s.Roots = linked, []string{linked}
	for _, command := range []string{"ls", "git status", "cat " + linked + "/a.txt", "cat " + w.project + "/a.txt"} {
		if _, ok := s.Command(command); !ok {
			t.Errorf("by a link to the project, %q is refused", command)
		}
	}
}

// TestCall checks that a call is read from its input, and input that changes how it runs is
// refused.
func TestCall(t *testing.T) {
	w := newWorld(t)
	for _, c := range []struct {
		tool, input string
		want        bool
	}{
		{"Bash", `{"command":"ls","description":"look","timeout":1000}`, true},
		{"Bash", `{"command":"ls","run_in_background":true}`, true},
		{"Bash", `{"command":"ls","dangerouslyDisableSandbox":true}`, false},
		{"Bash", `{"command":"ls","dangerouslyDisableSandbox":false}`, true},
		{"Bash", `{"command":"ls","shell":"fish"}`, false},
		{"Bash", `{"command":"cat c.txt","cwd":"` + w.project + `/sub"}`, true},
		{"Bash", `{"command":"cat up/hidden.txt","cwd":"` + w.project + `/sub"}`, false},
		{"Bash", `{"command":"ls","cwd":"` + w.outside + `"}`, false},
		{"Bash", `{"command":"ls","cwd":"sub"}`, true},
		{"Bash", `{"command":["ls"]}`, false},
		{"Bash", `{"cwd":1,"command":"ls"}`, false},
		{"Bash", `{}`, false},
		{"Bash", `[]`, false},
		{"Bash", ``, false},
		{"Write", `{"command":"ls"}`, false},
		{"Agent", `{"subagent_type":"Explore","description":"look","prompt":"around"}`, true},
		{"Task", `{"subagent_type":"Explore","prompt":"around","model":"haiku"}`, true},
		{"Agent", `{"subagent_type":"general-purpose","prompt":"around"}`, false},
		{"Agent", `{"subagent_type":"Explore","prompt":"x","isolation":"worktree"}`, false},
		{"Agent", `{"subagent_type":"Explore","prompt":"x","mode":"bypassPermissions"}`, false},
		{"Agent", `{"subagent_type":"Explore","prompt":"x","name":"eve"}`, false},
		{"Agent", `{"prompt":"x"}`, false},
	} {
		if _, ok := w.scope().Call(c.tool, c.input); ok != c.want {
			t.Errorf("%s %s: %t", c.tool, c.input, ok)
		}
	}
}

// TestConcerns checks that rules for commands and files may apply to more than they name, never to
// less.
func TestConcerns(t *testing.T) {
	w := newWorld(t)
	w.write(t, w.project, map[string]string{".env": "x", "secrets/key": "x"})
	if err := os.Symlink("a.txt", filepath.Join(w.project, "inside")); err != nil {
		t.Fatal(err)
	}
	w.env = append(w.env, "LC_ALL=C.UTF-8")
	for _, c := range []struct {
		rule, command string
		want          bool
	}{
		{"Bash", "ls", true}, {"Bash(*)", "ls", true}, {"Bash(ls:*)", "ls -la", true}, {"Bash(ls)", "ls", true},
		{"Bash(ls -l)", "ls -la", true}, {"Bash(rm:*)", "ls", false},
		{"Bash(git push:*)", "git log", false}, {"Bash(git log:*)", "git --no-pager log -1", true},
		{"Bash(git log:*)", "git -C sub log", true}, {"Bash(git:*)", "ls && git log", true},
		{"Bash(git *)", "git log", true}, {"Bash(gi*)", "git log", true}, {"Bash(* --force)", "ls", false},
		{"Bash(cat ./a.txt)", "cat a.txt", true}, {"Bash(cat:*)", "ls | cat", true},
		{"Bash(find . -name:*)", "find sub -name x", false}, {"Bash(git diff)", "git log", false},
		{"Edit", "ls", false}, {"WebFetch(domain:x)", "ls", false}, {"*", "ls", true},
		{"Read", "cat a.txt", true}, {"Read", "ls", false}, {"Read(.env)", "cat .env", true},
		{"Read(./.env)", "cat .env", true}, {"Read(.env)", "cat a.txt", false}, {"Read(.env)", "ls", false},
		{"Read(.env)", "rg x", true}, {"Read(.env)", "grep -r x sub", true}, {"Read(./.env)", "grep -r x sub", false},
		{"Read(./secrets/**)", "cat secrets/key", true},
		{"Read(./secrets/**)", "cat a.txt", false}, {"Read(secrets)", "cat secrets/key", true},
		{"Read(**/key)", "cat secrets/key", true}, {"Read(~/.ssh/**)", "rg x", false},
		{"Read(//etc/**)", "rg x", false}, {"Read(/" + w.project + "/secrets/**)", "cat secrets/key", true},
		{"Read(./secrets/**)", "git show", true}, {"Read(./secrets/**)", "git log --oneline", false},
		{"Read(./secrets/**)", "git log -p", true}, {"Read(*.txt)", "cat a.txt", true}, {"Grep", "rg x", true},
		{"Grep", "cat a.txt", false}, {"Glob", "find .", true},
		{"Read(./.env)", "git log -U3 -- .env", true}, {"Read(./.env)", "git log --unified=1", true},
		{"Read(./.env)", "git log --binary", true},
		{"Read(./.env)", "git log --patch-with-raw", true}, {"Read(./.env)", "git log --patch-with-stat", true},
		{"Read(./.env)", "git status -v", true},
		{"Read(./.env)", "git status --verbose", true}, {"Read(./.env)", "git status -sv", true},
		{"Read(./.env)", "git log -L 1,2:.env", true},
		{"Read(./.env)", "git log --cc", true}, {"Read(./.env)", "git log --word-diff", true},
		{"Read(./.env)", "git log -S x", true}, {"Read(./.env)", "git log -W", true},
		{"Read(./.env)", "git log --stat -M -5 --name-only --format=%h --all -z -- .env", false},
		{"Read(./.env)", "git status -sb", false}, {"Read(./.env)", "git branch -vv", false},
		{"Read(./.env)", "git status && cat a.txt", false}, {"Read(./.env)", "find . && cat a.txt", false},
		{"Read(./.env)", "git show HEAD && cat a.txt", true},
		{"Bash(*.env*)", "cat .env", true}, {"Bash(*secret*)", "cat a.txt secrets/key", true},
		{"Bash(c*env)", "cat .env", true}, {"Bash(git l*-p)", "git log -1 -p", true},
		{"Bash(cat*txt)", "cat a.txt", true}, {"Bash(c*t *.txt)", "cat -n a.txt", true},
		{"Bash(g*log:*)", "git -C sub log", true}, {"Bash(git p*)", "git log --pretty=oneline", false},
		{"Bash(rm*)", "ls", false}, {"Bash(*rm *)", "ls a.txt", false}, {"Bash(*)", "ls", true},
		{"Bash(*push*)", "git log", false}, {"Bash(cat *.md)", "cat a.txt", false},
		{"Read([!b]*.txt)", "cat a.txt", true}, {"Read([^b]*.txt)", "cat a.txt", true},
		{"Read([[:alpha:]].txt)", "cat a.txt", true}, {"Read(*.{txt,md})", "cat a.txt", true},
		{"Read(x[ab].txt)", "cat a.txt", false}, {"Read(a\\.txt)", "cat a.txt", true},
		{"Read(café.txt)", "cat 'café.txt'", true}, {"Read(café.txt)", "cat 'café.txt'", true},
		{"Read(./inside)", "cat inside", true}, {"Read(./a.txt)", "cat inside", true},
		{"LS", "ls -R", true}, {"Glob", "ls -R .", true}, {"LS", "ls", true}, {"Glob(**)", "ls *.go", true},
		{"Glob", "rg --files", true}, {"Glob", "git ls-files", true}, {"Glob", "echo *.go", true},
		{"LS", "tree", true}, {"Glob", "cat a.txt", false}, {"LS", "pwd", false}, {"Grep", "ls -R", false},
	} {
		found, ok := w.scope().Command(c.command)
		if !ok {
			t.Errorf("%q is refused", c.command)
		} else if got := found.Concerns(c.rule, w.home, w.project); got != c.want {
			t.Errorf("%s about %q: %t", c.rule, c.command, got)
		}
	}
	explore, _ := w.scope().Call("Agent", `{"subagent_type":"Explore"}`)
	for rule, want := range map[string]bool{"Agent": true, "Task": true, "Agent(Explore)": true, "Task(other)": false,
		"Bash": false} {
		if explore.Concerns(rule, w.home, w.project) != want {
			t.Errorf("%s about exploring: %t", rule, !want)
		}
	}
}
