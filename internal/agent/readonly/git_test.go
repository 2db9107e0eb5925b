package readonly

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cadre/internal/testkit/treetest"
)

// TestRepositoriesThatRunPrograms checks that each of these repositories makes the real git run a
// program, and is refused.
func TestRepositoriesThatRunPrograms(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	for _, c := range []struct {
		name, command string
		// of the repository; RUN stands for a program that leaves a file, and prints its arguments
		config   string
		files    map[string]string
		prepare  func(t testing.TB, w *world, run string)
		terminal bool // git does that only at a terminal, which is not tried
	}{
		{name: "fsmonitor", command: "git status", config: "[core]\n\tfsmonitor = RUN\n"},
		{name: "fsmonitor behind a section", command: "git diff", config: "[core] fsmonitor = RUN\n"},
		{name: "fsmonitor in other letters", command: "git ls-files", config: "[CORE]\n\tFsMonitor = RUN\n"},
		{name: "fsmonitor in quotes", command: "git status", config: "[core]\n\tfsmonitor = \"R\"\"UN\" # a comment\n"},
		{name: "fsmonitor over two lines", command: "git status", config: "[core]\n\tfsmonitor = \\\nRUN\n"},
		{name: "a comment that seems to continue", command: "git status", config: "[core]\n\tbare = false # " +
			"\\\n\tfsmonitor = RUN\n"},
		{name: "textconv", command: "git show", config: "[diff \"x\"]\n\ttextconv = RUN\n",
			files: map[string]string{".gitattributes": "*.txt diff=x\n"}},
		{name: "textconv of a log", command: "git log -p", config: "[diff \"x\"]\n\ttextconv = RUN\n",
			files: map[string]string{".gitattributes": "*.txt diff=x\n"}},
		{name: "textconv of blame", command: "git blame a.txt", config: "[diff \"x\"]\n\ttextconv = RUN\n",
			files: map[string]string{".gitattributes": "*.txt diff=x\n"}},
		{name: "external diff", command: "git diff", config: "[diff]\n\texternal = RUN\n"},
		{name: "external diff of some files", command: "git diff", config: "[diff \"x\"]\n\tcommand = RUN\n",
			files: map[string]string{".gitattributes": "*.txt diff=x\n"}},
		{name: "a filter", command: "git diff", config: "[filter \"x\"]\n\tclean = RUN\n",
			files: map[string]string{".gitattributes": "*.txt filter=x\n"}},
		{name: "a filter that stays", command: "git status", config: "[filter \"x\"]\n\tprocess = RUN\n",
			files: map[string]string{".gitattributes": "*.txt filter=x\n"}},
		{name: "an include", command: "git status", config: "[include]\n\tpath = ../more\n",
			files: map[string]string{"more": "[core]\n\tfsmonitor = RUN\n"}},
		{name: "an include with a condition", command: "git status",
			config: "[includeIf \"gitdir:**\"]\n\tpath = ../more\n",
			files:  map[string]string{"more": "[core]\n\tfsmonitor = RUN\n"}},
		{name: "a worktree's configuration", command: "git status", config: "[extensions]\n\tworktreeConfig = true\n",
			files: map[string]string{".git/config.worktree": "[core]\n\tfsmonitor = RUN\n"}},
		{name: "a hook", command: "git status", files: map[string]string{
			".git/hooks/post-index-change": "#!/bin/sh\nexec RUN\n"}},
		{name: "a hook elsewhere", command: "git status", config: "[core]\n\thooksPath = hooks\n",
			files: map[string]string{"hooks/post-index-change": "#!/bin/sh\nexec RUN\n"}},
		{name: "signatures", command: "git log", config: "[log]\n\tshowSignature = true\n[gpg]\n\tprogram = RUN\n",
			prepare: signed},
		{name: "signatures in a format", command: "git log", config: "[format]\n\tpretty = " +
			"%G?\n[gpg]\n\tprogram = RUN\n", prepare: signed},
		{name: "signatures behind a space", command: "git log", config: "[format]\n\tpretty = \"format:% " +
			"GK\"\n[gpg]\n\tprogram = RUN\n", prepare: signed},
		{name: "signatures behind a plus", command: "git show", config: "[format]\n\tpretty = " +
			"%+GG\n[gpg]\n\tprogram = RUN\n", prepare: signed},
		{name: "signatures in a named format", command: "git log --pretty=mine", config: "[pretty]\n\tmine = " +
			"%-G?\n[gpg]\n\tprogram = RUN\n", prepare: signed},
		// only newer versions of git know it
		{name: "signatures in an order", command: "git branch", config: "[branch]\n\tsort = signature\n",
			terminal: true},
		{name: "a promise of objects", command: "git log -p", config: "[remote \"origin\"]\n\turl = " +
			"ext::RUN\n\tpromisor = true\n[protocol]\n\tallow = always\n[extensions]\n\tpartialClone = origin\n",
			prepare: promised},
		{name: "a submodule's", command: "git status", prepare: submodule},
		{name: "a submodule's, of diff", command: "git diff", prepare: submodule},
		{name: "a bare repository among the files", command: "git -C bare/inner status", terminal: true,
			prepare: func(t testing.TB, w *world, run string) {
				w.git(t, "init", "-q", "--bare", "bare")
				w.write(t, w.project, map[string]string{"bare/inner/x": ""})
			}},
		{name: "a pager", command: "git log", config: "[core]\n\tpager = RUN\n", terminal: true},
		{name: "a command's pager", command: "git log", config: "[pager]\n\tlog = RUN\n", terminal: true},
		// git ignores it
		{name: "an alias", command: "git status", config: "[alias]\n\tstatus = !RUN\n", terminal: true},
		{name: "another worktree", command: "git status", config: "[core]\n\tworktree = ../../outside\n",
			terminal: true},
		{name: "objects from elsewhere", command: "git log",
			files: map[string]string{".git/objects/info/alternates": "/elsewhere\n"}, terminal: true},
		{name: "an unknown setting", command: "git status", config: "[new]\n\tthing = RUN\n", terminal: true},
		{name: "damage", command: "git status", config: "[core\n", terminal: true},
		{name: "the user's fsmonitor", command: "git status",
			files: map[string]string{"../home/.gitconfig": "[core]\n\tfsmonitor = RUN\n"}},
		{name: "what the user includes", command: "git status",
			files: map[string]string{"../home/.gitconfig": "[includeIf \"gitdir:/\"]\n\tpath = ~/more\n",
				"../home/more": "[core]\n\tfsmonitor = RUN\n"}},
		{name: "the user's filter", command: "git diff",
			files: map[string]string{"../home/.config/git/config": "[filter \"x\"]\n\tclean = RUN\n",
				"sub/.gitattributes": "*.txt filter=x\n", "sub/c.txt": "changed\n"}},
		{name: "the user's diff", command: "git diff",
			files: map[string]string{"../home/.gitconfig": "[diff]\n\texternal = RUN\n"}},
		{name: "the user's pager", command: "git log",
			files: map[string]string{"../home/.gitconfig": "[core]\n\tpager = RUN\n"}, terminal: true},
		{name: "the user's trace", command: "git log",
			files: map[string]string{"../home/.gitconfig": "[trace2]\n\tnormalTarget = /x\n"}, terminal: true},
	} {
		t.Run(strings.ReplaceAll(c.name, " ", "_"), func(t *testing.T) {
			w := newWorld(t)
			ran := filepath.Join(filepath.Dir(w.project), "ran")
			run := filepath.Join(filepath.Dir(w.project), "run")
			w.write(t, filepath.Dir(run), map[string]string{"run": "#!/bin/sh\necho >> " + ran + "\nfor last; do :; " +
				"done\n[ -f \"$last\" ] && cat \"$last\"\n"})
			if found, ok := w.scope().Command(c.command); c.prepare == nil && !ok {
				t.Fatalf("%q is refused before anything is wrong: %v", c.command, found)
			}
			name := strings.NewReplacer("RUN", run, "\"R\"\"UN\"", `"`+run[:3]+`""`+run[3:]+`"`)
			if c.prepare != nil {
				c.prepare(t, w, run)
			}
			config := filepath.Join(w.project, ".git", "config")
			before, err := os.ReadFile(config)
			if err != nil {
				t.Fatal(err)
			}
			w.write(t, filepath.Dir(config), map[string]string{"config": string(before) + name.Replace(c.config)})
			for file, text := range c.files {
				w.write(t, w.project, map[string]string{file: name.Replace(text)})
			}
			if _, ok := w.scope().Command(c.command); ok {
				t.Errorf("%q is accepted", c.command)
			}
			if c.terminal {
				return
			}
			// git has to look at a touched file. A hook of the index runs where git may write the
			// index.
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			cmd := exec.CommandContext(ctx, "sh", "-c", "touch a.txt b.go sub/c.txt && "+c.command+"; true")
			cmd.Dir, cmd.Env = w.project, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + w.home,
				"GIT_CONFIG_NOSYSTEM=1"}
			out, err := cmd.CombinedOutput()
			if _, statErr := os.Stat(ran); statErr != nil {
				t.Errorf("git ran nothing, so this shows nothing: %v\n%s", err, out)
			}
		})
	}
}

// signed makes a signed commit.
func signed(t testing.TB, w *world, run string) {
	w.write(t, filepath.Dir(run), map[string]string{"sign": "#!/bin/sh\ncat > /dev/null\n" +
		"echo '[GNUPG:] SIG_CREATED ' >&2\nprintf -- '-----BEGIN PGP SIGNATURE-----\\nx\\n-----END PGP SIGNATURE-----\\n'\n"})
	w.git(t, "-c", "gpg.program="+filepath.Join(filepath.Dir(run), "sign"),
		"commit", "-q", "-S", "--allow-empty", "-m", "signed")
}

// promised removes an object that a remote has promised.
func promised(t testing.TB, w *world, _ string) {
	objects, err := filepath.Glob(filepath.Join(w.project, ".git", "objects", "??", "*"))
	if err != nil || len(objects) == 0 {
		t.Fatal(objects, err)
	}
	out, err := exec.Command("git", "-C", w.project, "rev-parse", "HEAD:b.go").Output()
	if err != nil {
		t.Fatal(err)
	}
	id := strings.TrimSpace(string(out))
	if err := os.Remove(filepath.Join(w.project, ".git", "objects", id[:2], id[2:])); err != nil {
		t.Fatal(err)
	}
}

// submodule makes a submodule whose own configuration runs a program.
func submodule(t testing.TB, w *world, run string) {
	w.git(t, "init", "-q", "module")
	w.git(t, "-C", "module", "commit", "-q", "--allow-empty", "-m", "first")
	w.git(t, "-c", "advice.addEmbeddedRepo=false", "add", "module")
	w.git(t, "-C", "module", "config", "core.fsmonitor", run)
}

// TestHarmlessRepositories checks that settings that run nothing do not cause a refusal.
func TestHarmlessRepositories(t *testing.T) {
	w := newWorld(t)
	for _, set := range [][]string{{"remote.origin.url", "git@example.com:x/y.git"},
		{"remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"}, {"branch.main.remote", "origin"},
		{"branch.main.vscode-merge-base", "origin/main"}, {"user.email", "x@y"}, {"core.fsmonitor", "false"},
		{"core.hooksPath", ".husky/_"}, {"core.pager", "less -FRX"}, {"pager.log", "false"},
		{"diff.algorithm", "histogram"}, {"core.sshCommand", "ssh -i x"}, {"credential.helper", "store"},
		{"pull.rebase", "true"}, {"core.editor", "vi"}} {
		w.git(t, "config", set[0], set[1])
	}
	w.write(t, w.home, map[string]string{".gitconfig": "[alias]\n\tst = status\n\tx = \"!f() { \\\n\t\tls; }; " +
		"f\"\n[core]\n\tpager = delta\n[delta]\n\tnavigate = true\n[include]\n\tpath = ~/missing\n" +
		"[filter \"lfs\"]\n\tclean = git-lfs clean -- %f\n\tprocess = git-lfs filter-process\n\trequired = " +
		"true\n[diff \"x\"]\n\txfuncname = \"^x\"\n[merge]\n\ttool = vimdiff\n"})
	for _, command := range []string{"git status", "git diff", "git ls-files", "git --no-pager log", "git branch",
		"git blame a.txt"} {
		s := w.scope()
		s.Env = append(s.Env, "GIT_PAGER=cat")
		if _, ok := s.Command(command); !ok {
			t.Errorf("%q is refused", command)
		}
	}
	if _, ok := w.scope().Command("git log"); ok {
		t.Error("git log is accepted, with a pager that is unknown")
	}
}

// TestIndexIsRefreshed checks that git refreshes only its index and, with the variable that
// sessions have, only in git diff.
func TestIndexIsRefreshed(t *testing.T) {
	for _, c := range []struct {
		command, locks string
		want           bool
	}{{"git status", "1", true}, {"git status", "0", false}, {"git log --stat", "1", false},
		{"git ls-files -m", "1", false}, {"git blame a.txt", "1", false}, {"git diff", "1", true},
		{"git diff", "0", true}} {
		w := newWorld(t)
		s := w.scope()
		s.Env = append(s.Env, "GIT_OPTIONAL_LOCKS="+c.locks)
		if _, ok := s.Command(c.command); !ok {
			t.Fatalf("%q is refused", c.command)
		}
		old := time.Now().Add(-time.Hour)
		if err := os.Chtimes(filepath.Join(w.project, "b.go"), old, old); err != nil {
			t.Fatal(err)
		}
		git := filepath.Join(w.project, ".git")
		index := filepath.Join(git, "index")
		before, err := os.ReadFile(index)
		if err != nil {
			t.Fatal(err)
		}
		aside := filepath.Join(filepath.Dir(w.project), "index")
		if err := os.Rename(index, aside); err != nil {
			t.Fatal(err)
		}
		unchanged := treetest.Keep(t, w.project)
		info, err := os.Stat(git)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(aside, index); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("sh", "-c", c.command)
		cmd.Dir, cmd.Env = w.project, s.Env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		after, err := os.ReadFile(index)
		if err != nil {
			t.Fatal(err)
		}
		if got := !bytes.Equal(before, after); got != c.want {
			t.Errorf("%s with GIT_OPTIONAL_LOCKS=%s refreshes the index: %t", c.command, c.locks, got)
		}
		if err := os.Remove(index); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(git, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
		unchanged(c.command)
	}
}

// TestWorktrees checks that a linked worktree has its own folder, which is accepted only if it
// names the worktree too.
func TestWorktrees(t *testing.T) {
	w := newWorld(t)
	linked := filepath.Join(filepath.Dir(w.project), "linked")
	w.git(t, "worktree", "add", "-q", linked, "-b", "other")
	s := Scope{Dir: linked, Roots: []string{linked}, Env: w.env}
	for _, command := range []string{"git status", "git log", "git diff", "cat a.txt", "git -C . show"} {
		if _, ok := s.Command(command); !ok {
			t.Errorf("in a worktree %q is refused", command)
		}
	}
	if _, ok := s.Command("cat " + w.project + "/a.txt"); ok {
		t.Error("the project is not among the folders, and is read")
	}
	forged := filepath.Join(w.project, "forged")
	w.write(t, forged, map[string]string{
		".git": "gitdir: " + filepath.Join(w.project, ".git", "worktrees", "linked") + "\n"})
	s = Scope{Dir: forged, Roots: []string{forged}, Env: w.env}
	if _, ok := s.Command("git log"); ok {
		t.Error("a folder that says that it is a worktree is believed")
	}
	for name, text := range map[string]string{"nothing": "gitdir: /nowhere\n", "two": "gitdir: a\nb\n", "text": "x"} {
		w.write(t, forged, map[string]string{".git": text})
		if _, ok := s.Command("git log"); ok {
			t.Errorf("%s: it is believed", name)
		}
	}
	w.git(t, "config", "core.fsmonitor", "/bin/true")
	s = Scope{Dir: linked, Roots: []string{linked}, Env: w.env}
	if _, ok := s.Command("git status"); ok {
		t.Error("the settings of the repository do not count in its worktree")
	}
}

// TestIndex checks that each version of the index is read, and a damaged one is refused.
func TestIndex(t *testing.T) {
	for _, version := range []string{"2", "3", "4"} {
		t.Run(version, func(t *testing.T) {
			w := newWorld(t)
			for _, name := range []string{"a/very/long/path/to/a/file.txt", "a/very/long/path/to/b.txt", "z"} {
				w.write(t, w.project, map[string]string{name: name})
			}
			w.git(t, "update-index", "--index-version", version)
			w.git(t, "add", "a", "z")
			if version == "3" {
				w.git(t, "add", "-N", "b.go", "sub/d.go") // it needs further flags
			}
			if _, ok := w.scope().Command("git status"); !ok {
				t.Error("git status is refused")
			}
			submodule(t, w, "/bin/true")
			if _, ok := w.scope().Command("git status"); ok {
				t.Error("a submodule is not seen")
			}
			index := filepath.Join(w.project, ".git", "index")
			data, err := os.ReadFile(index)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(filepath.Join(w.project, "module")); err != nil {
				t.Fatal(err)
			}
			for _, cut := range []int{1, 8, 30, 100, len(data) / 2} {
				if err := os.WriteFile(index, data[:cut], 0o600); err != nil {
					t.Fatal(err)
				}
				if _, ok := w.scope().Command("git status"); ok {
					t.Errorf("an index of %d bytes of %d is accepted", cut, len(data))
				}
			}
		})
	}
}
