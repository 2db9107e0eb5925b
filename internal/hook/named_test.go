package hook

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// TestNamed checks that every file of the project that a command names is found, whatever the
// command does with it.
func TestNamed(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"x", "a.sh", "scripts/b", "scripts/lib/deep.sh", "with space/c.py", "data.txt",
		"Makefile.ci", "list", ".hidden"} {
		write(t, filepath.Join(dir, name), "")
	}
	outside := write(t, filepath.Join(t.TempDir(), "x.sh"), "")
	if err := os.Symlink(outside, filepath.Join(dir, "linked")); err != nil {
		t.Fatal(err)
	}
	for command, want := range map[string]string{
		"make test":                             "",
		"./a.sh":                                "a.sh",
		"x":                                     "x",
		"sh x":                                  "x",
		"sh ./x":                                "x",
		"/bin/sh x":                             "x",
		"setsid sh ./x":                         "x",
		"setsid -f sh ./x &":                    "x",
		"bash -o pipefail ./x":                  "x",
		"bash -o pipefail -c './x'":             "x",
		"bash --rcfile a.sh x":                  "a.sh x",
		"bash --rcfile=a.sh -i":                 "a.sh",
		"sh -c 'sh x'":                          "x",
		`sh -c "sh -c 'sh \"x\"'"`:              "x",
		"make -f x":                             "x",
		"make -fMakefile.ci all":                "Makefile.ci",
		"make --file=Makefile.ci":               "Makefile.ci",
		"xargs -a x sh":                         "x",
		"xargs -a list -n1 sh < data.txt":       "data.txt list",
		"sh < x":                                "x",
		"sh <x":                                 "x",
		"sh 0<x":                                "x",
		"cat x | sh":                            "x",
		"cat < a.sh | sh -s":                    "a.sh",
		". ./x":                                 "x",
		"source x":                              "x",
		". x":                                   "x",
		"eval ./x":                              "x",
		"eval 'sh x'":                           "x",
		`eval "$(cat x)"`:                       "x",
		"sh <<EOF\n./x\nEOF":                    "x",
		"sh <<< ./x":                            "x",
		"sh <(cat x)":                           "x",
		"tee >(sh x)":                           "x",
		"env -i X=1 ./x":                        "x",
		"env -S 'sh x'":                         "x",
		"exec ./x":                              "x",
		"nohup ./x &":                           "x",
		"timeout 60 nice -n 5 ./x":              "x",
		"stdbuf -oL ./x":                        "x",
		"time ./x":                              "x",
		"! ./x":                                 "x",
		"sudo -u nobody ./x":                    "x",
		"find . -name x -exec sh {} ;":          "x",
		"find . -exec sh ./a.sh {} +":           "a.sh",
		"cd scripts && sh b":                    "scripts/b",
		"cd scripts/lib && ./deep.sh":           "scripts/lib/deep.sh",
		"make -C scripts -f b":                  "scripts/b",
		"PATH=./scripts:$PATH b":                "scripts/b",
		"BASH_ENV=./x bash -c true":             "x",
		"ENV=x sh -i":                           "x",
		"F=./x; sh $F":                          "x",
		"for f in a.sh x; do sh $f; done":       "a.sh x",
		"for f in scripts/*; do sh $f; done":    "scripts/b",
		"sh scripts/?":                          "scripts/b",
		"sh {a.sh,x}":                           "a.sh x",
		"sh ./{x,a}.sh":                         "a.sh",
		"if ./a.sh; then exit 0; fi":            "a.sh",
		"f() { ./x; }; f":                       "x",
		"(./x)":                                 "x",
		"x=$(scripts/b)":                        "scripts/b",
		"echo `scripts/b`":                      "scripts/b",
		"true\nscripts/b":                       "scripts/b",
		"trap ./x EXIT":                         "x",
		"python3 -c \"exec(open('x').read())\"": "x",
		"python3 'with space/c.py'":             "with space/c.py",
		`with\ space/c.py`:                      "with space/c.py",
		`"$CLAUDE_PROJECT_DIR"/scripts/b x`:     "scripts/b x",
		`${CADRE_PROJECT_DIR}/scripts/b`:        "scripts/b",
		`"${CLAUDE_PROJECT_DIR}/with space/c.py"`:    "with space/c.py",
		`cd "$CLAUDE_PROJECT_DIR" && ./"a"'.sh'`:     "a.sh",
		`./a\.sh`:                                    "a.sh",
		`sh "$(git rev-parse --show-toplevel)"/a.sh`: "a.sh",
		"dd if=x | sh":                               "x",
		"curl -d @data.txt localhost":                "data.txt",
		"sed -n -f a.sh data.txt":                    "a.sh data.txt",
		"awk -f x data.txt":                          "data.txt x",
		"node -r ./a.sh -e 1":                        "a.sh",
		"sh .hidden":                                 ".hidden",
		"./linked":                                   "linked",
		filepath.Join(dir, "a.sh"):                   "a.sh",
		"../" + filepath.Base(dir) + "/a.sh":         "a.sh",
		outside:                                      "",
		"./no-such.sh":                               "",
		"sh ../nothing/../x":                         "",
		"a 'b":                                       "",
	} {
		r := namedBy(dir, command)
		if got := strings.Join(r.Files, " "); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

// TestReachInAFolderLikeAPattern checks that the name of the project's folder is not read as a
// pattern.
func TestReachInAFolderLikeAPattern(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a[b]*c")
	write(t, filepath.Join(dir, "hooks", "one.sh"), "")
	for _, command := range []string{"sh hooks/*.sh", "sh hooks/one.sh", `sh "$CLAUDE_PROJECT_DIR"/hooks/o*`,
		"cd hooks; sh one.?h"} {
		if got := namedBy(dir, command).Files; !slices.Equal(got, []string{"hooks/one.sh"}) {
			t.Errorf("%s: %q", command, got)
		}
	}
}

// TestNamedSaysWhatItCannotFollow checks that everything the search cannot follow is listed.
func TestNamedSaysWhatItCannotFollow(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "tests", "one"), "")
	for command, want := range map[string]Named{
		`make check && "$TOOL"/run $(pick)`: {Programs: []string{"make", "pick"},
			Unknown: []string{`"$TOOL"/run`, "$(pick)"}},
		"pytest tests":       {Programs: []string{"pytest"}, Folders: []string{"tests"}},
		"a 'b":               {Unknown: []string{"a 'b"}},
		"cd tests && sh one": {Programs: []string{"sh"}, Folders: []string{"tests"}},
		"echo done":          {},
	} {
		got := namedBy(dir, command)
		if !slices.Equal(got.Programs, want.Programs) || !slices.Equal(got.Unknown, want.Unknown) ||
			!slices.Equal(got.Folders, want.Folders) {
			t.Errorf("%s: %+v, want %+v", command, got, want)
		}
	}
	deep := "true"
	for range 12 {
		deep = "sh -c " + strings.ReplaceAll(strings.ReplaceAll("'"+deep+"'", "'", `'\''`), "\n", " ")
	}
	namedBy(dir, deep) // ends
}

// TestNamedSpecialFiles checks that special files are listed too, in any position, because the
// content of a pipe and the target of a link can change.
func TestNamedSpecialFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "hooks", "good.sh"), "")
	for _, name := range []string{"pipe", "hooks/pipe.sh"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{"dangling": "nowhere", "hooks/loop": "loop", "to-pipe": "pipe",
		"device": "/dev/null"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	const pipe, loose = " (a named pipe)", " (a link that leads to nothing)"
	for command, want := range map[string]string{
		"./pipe":                           "pipe" + pipe,
		"pipe":                             "pipe" + pipe,
		"sh pipe":                          "pipe" + pipe,
		"sh < ./pipe":                      "pipe" + pipe,
		"sh -c '. hooks/pipe.sh'":          "hooks/pipe.sh" + pipe,
		"cd hooks && sh pipe.sh":           "hooks/pipe.sh" + pipe,
		"sh to-pipe":                       "to-pipe" + pipe,
		`"$CLAUDE_PROJECT_DIR"/dangling`:   "dangling" + loose,
		"sh hooks/loop":                    "hooks/loop" + loose,
		"sh device":                        "device (a device)",
		"sh hooks/good.sh; cat /dev/stdin": "",
		"sh nowhere":                       "",
	} {
		if got := strings.Join(namedBy(dir, command).Special, ", "); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
}

// TestTrustEndsWithASpecialFile checks that a pipe in place of a trusted file needs trust again, as
// another file does.
func TestTrustEndsWithASpecialFile(t *testing.T) {
	dir := t.TempDir()
	config := &Config{Dir: dir, Hooks: []Hook{{Source: Project, Event: "TaskCompleted", Command: "sh late.sh || true"}}}
	digest := func() string {
		t.Helper()
		e, err := Examine(config)
		if err != nil {
			t.Fatal(err)
		}
		return e.Digest
	}
	seen := map[string]string{digest(): "nothing"}
	path := filepath.Join(dir, "late.sh")
	for name, put := range map[string]func() error{
		"a pipe": func() error { return syscall.Mkfifo(path, 0o700) },
		"a link": func() error { return os.Symlink("nowhere", path) },
		"a file": func() error { return os.WriteFile(path, nil, 0o700) },
	} {
		if err := put(); err != nil {
			t.Fatal(err)
		}
		if d := digest(); seen[d] != "" {
			t.Errorf("%s counts as %s", name, seen[d])
		} else {
			seen[d] = name
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

// FuzzNamed checks that the search ends for any command, and finds only files of the project.
func FuzzNamed(f *testing.F) {
	for _, seed := range []string{"sh x", "cd a; ./{x,y}*", "sh -c 'sh -c \"x\"'", "F=$F; $F", "<<E\nx\nE", "${x:-./x}",
		"`x`", "a=(x y)", "[[ x == y ]]", "$'\\x'"} {
		f.Add(seed)
	}
	dir := f.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "x"), nil, 0o600); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, command string) {
		for _, file := range namedBy(dir, command).Files {
			if file != "x" {
				t.Errorf("%q names %q", command, file)
			}
		}
	})
}
