package builtin_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"cadre/internal/render/report"
	"cadre/internal/run/teamfile"
	"cadre/internal/testkit/golden"
	"cadre/internal/testkit/soak"
)

// fake joins the parts of something that must look like a secret in a repository of the test, but
// not in this one.
func fake(parts ...string) string { return strings.Join(parts, "") }

// planted makes a repository with something for every task to find, and as much that it must not
// find.
func planted(t *testing.T) *repo {
	r := newRepo(t)
	r.write("go.mod", "module example\n\ngo 1.26\n")
	r.write("Makefile", "VERSION := 1\n.PHONY: build test\nbuild:\n\tgo build ./...\ntest: build\n\tgo test "+
		"./...\nrelease-all:\n\ttrue\n")
	r.write("package.json",
		`{"name": "x", "scripts": {"build": "vite \"build\"", "test": "vitest", "lint:fix": "eslint"}, "dependencies": {"test-not": "1"}}`)
	r.write("pnpm-lock.yaml", "lock\n")
	r.write("web/package.json", "{}")
	r.write(".github/workflows/ci.yml", "jobs:\n  a:\n    steps:\n      - run: make test\n      - run: git checkout "+
		"main\n      - run: |\n          make release\n")
	r.write("vendor/dep/dep.go", "// TODO: not ours\n")
	r.write("logo.png", "\x89PNG\x00\x01TODO\x00"+strings.Repeat("\xff\x00", 600_000))
	r.write("core/engine.go", "package core\n")
	r.write("core/stable.go", "package core\n")
	r.commit("Ada Lovelace", 0)

	for i := range 9 {
		r.write("core/engine.go", fmt.Sprintf("package core\n\n// TODO(ada): make it faster\nconst N = %d\n", i))
		r.write("pnpm-lock.yaml", fmt.Sprintf("lock %d\n", i))
		r.commit([]string{"Ada Lovelace", "Grace | Hopper", "Ada Lovelace"}[i%3], 20)
	}
	for i := range 20 { // a robot's changes do not make a hot spot
		r.write("web/package.json", fmt.Sprintf("{\"v\": %d}\n", i))
		r.commit("updates[bot]", 0)
	}
	for i := range 3 {
		r.write("old/gone.go", fmt.Sprintf("package old // %d\n", i))
		r.commit("Ada Lovelace", 0)
	}
	if err := os.RemoveAll(filepath.Join(r.dir, "old")); err != nil {
		t.Fatal(err)
	}

	r.write("a | pipe `tick`.txt", "FIXME: pipes | and `ticks` in a table\n")
	r.write("dir with space/naïve ünïcode.go", "package x // XXX: "+strings.Repeat("ü", 100)+"\n")
	r.write("new\nline.txt", "first\nHACK around a newline in a name\n")
	r.write("notes_test.go", "context.TODO()\nvar TODOs = \"TODO\"\n// MASTODON\n")
	r.write("merge.go", "package x\n<<<<<<< HEAD\nvar a = 1\n=======\nvar a = 2\n>>>>>>> branch\n")
	r.write("heading.rst", "Title\n=======\n")
	r.write("README.md", strings.Join([]string{
		"# The Engine", "", "Usage & more", "------------", "",
		"Good: [doc](docs/guide.md), [anchor](docs/guide.md#second-part), [here](#the-engine), " +
			"[setext](#usage--more), [dir](core),",
		"[space](dir%20with%20space/na%C3%AFve%20%C3%BCn%C3%AFcode.go), [angle](<dir with space/naïve ünïcode.go>), " +
			"[line](core/engine.go#L3),",
		"[web](https://example.org/x), [mail](mailto:a@example.org), [root](/site/page), [page](docs/guide), " +
			"`[code](nowhere)`, [up](../../issues).",
		"Bad: [file](docs/missing.md), [anchor](docs/guide.md#third-part), ![image](img/none.png \"title\"), " +
			"[self](#nothing-here).",
		"```sh", "[in a fence](nowhere.md)", "# not a heading", "```", "<!-- [in a comment](nowhere.md)", "-->",
		"[good ref]: docs/guide.md 'Guide'", "[bad ref]: <docs/no ref.md>", "[^1]: a note",
		"[ref to a fence](#not-a-heading)", "",
	}, "\n"))
	r.write("docs/guide.md", "# Guide\r\n\r\n## Second *part*\r\n\r\n## Twice\r\n\r\n## "+
		"Twice\r\n\r\n[back](../README.md) [twice](#twice-1) [lost](README.md)\r\n")

	r.write("deploy/key.pem", fake("-----BEGIN RSA ", "PRIVATE KEY-----\nabc\n"))
	r.write("deploy/config.py", strings.Join([]string{
		"aws = '" + fake("AKIA", "QX3ZT7LMNB2VC5RD") + "'",
		"example = '" + fake("AKIA", "IOSFODNN7EXAMPLE") + "'",
		"github = " + fake("ghp_", strings.Repeat("a1B2", 9)),
		"slack = " + fake("xoxb-", "123456789012-abcdef"),
		"google = " + fake("AIza", strings.Repeat("Sy0_-", 7)),
		fake("pass", "word = \"tr0ub4dor&3\""),
		fake("DB_PASS", "WORD: 'correct-h0rse!'"),
		fake("api", "_key = \"your-api-key-here1\""),
		fake("pass", "word = \"${DB_PASSWORD1}\""),
		fake("pass", "word = \"changeme123\""),
		fake("pass", "word = \"********\""),
		fake("sec", "ret: \"Geheimnis\""),
		"",
	}, "\n"))
	r.write("deploy/.env", "A=b\n")
	r.write("deploy/.env.example", "A=\n")
	r.write("testdata/fixture.yaml", fake("tok", "en: x\npass", "word: \"s3cr3t-0f-a-test\"\n"))
	r.commit("Ada Lovelace", 5)
	return r
}

var secretParts = []string{"QX3ZT7", "a1B2", "123456789012", "Sy0_", "tr0ub4dor", "correct-h0rse", "s3cr3t-0f"}

// TestHealthFindsWhatIsPlanted compares the results of the tasks in the planted repository with
// testdata/health. They must be the same with every shell and every awk of this machine.
func TestHealthFindsWhatIsPlanted(t *testing.T) {
	soak.Long(t)
	f, r := load(t, "health.yaml"), planted(t)
	results := runAll(t, f, r.dir)
	for id, text := range results {
		golden.File(t, "testdata/health/"+id+".md", text)
		for _, part := range secretParts {
			if strings.Contains(text, part) {
				t.Errorf("%s prints a secret: %s", id, part)
			}
		}
		if !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' }) {
			t.Errorf("%s prints what is not text: %q", id, text)
		}
	}
	golden.File(t, "testdata/health/REPORT.md", lead(t, f, results))
	for _, awk := range []string{"mawk", "gawk", "original-awk", "busybox"} {
		path, err := exec.LookPath(awk)
		if err != nil {
			continue
		}
		t.Run("with "+awk, func(t *testing.T) {
			bin := t.TempDir()
			if err := os.Symlink(path, filepath.Join(bin, "awk")); err != nil {
				t.Fatal(err)
			}
			for id, text := range runAll(t, f, r.dir, "PATH="+bin+":"+os.Getenv("PATH")) {
				if text != results[id] {
					t.Errorf("%s differs:\n%s", id, text)
				}
			}
		})
	}
}

// lead writes the report that a lead would.
func lead(t *testing.T, f *teamfile.File, results map[string]string) string {
	t.Helper()
	r := report.Report{Title: f.Report.Title, Goal: f.Goal, Team: f.Name, Lead: f.Lead, Sections: f.Report.Sections}
	for _, m := range f.Members {
		r.Members = append(r.Members, report.Member{Name: m.Name, Agent: m.Agent, Role: m.Role})
	}
	for _, task := range f.Tasks {
		r.Tasks = append(r.Tasks, report.Task{ID: task.ID, Subject: task.Subject, Outcome: report.Done,
			Result: results[task.ID]})
	}
	var b strings.Builder
	if err := report.Markdown(&b, r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestHealthOfOddRepositories(t *testing.T) {
	soak.Long(t)
	f, full := load(t, "health.yaml"), planted(t)
	all := func(want string) map[string]string {
		m := map[string]string{}
		for _, task := range f.Tasks {
			m[task.ID] = want
		}
		return m
	}
	with := func(m map[string]string, more ...string) map[string]string {
		for i := 0; i < len(more); i += 2 {
			m[more[i]] = more[i+1]
		}
		return m
	}
	for _, c := range []struct {
		name string
		dir  func(t *testing.T) string
		want map[string]string // what each result starts with
	}{
		{"no repository", func(t *testing.T) string { return t.TempDir() },
			with(all("failed: fatal: not a git repository"), "summary", "Nothing to sum up")},
		{"no commits", func(t *testing.T) string { return newRepo(t).dir },
			with(all("Nothing found"), "summary",
				"**Nothing is urgent; 1 thing to mend**, 5 of 6 checks found nothing.")},
		{"files but no commits", func(t *testing.T) string {
			r := newRepo(t)
			r.write("a.txt", "TODO: commit\n")
			r.git(r.dir, "add", "-A")
			return r.dir
		}, with(all("Nothing found"), "leftovers", "**1 note** in 1 file (1 TODO).", "summary", "**")},
		{"an empty commit", func(t *testing.T) string {
			r := newRepo(t)
			r.commit("Ada", 0)
			return r.dir
		}, with(all("Nothing found"), "links", "Nothing found: the repository has no Markdown.", "summary", "**")},
		{"a shallow clone", func(t *testing.T) string {
			clone := filepath.Join(t.TempDir(), "clone")
			full.git("", "clone", "-q", "--depth", "1", "file://"+full.dir, clone)
			return clone
		}, map[string]string{"hotspots": "Nothing found: no file changed more than once. This is a shallow clone",
			"sizes":     "**`logo.png` is the largest**",
			"leftovers": "**Conflict marks in 1 file**", "links": "**", "secrets": "**8 likely",
			"build": "**Build with", "summary": "**2 things cannot wait**"}},
		{"a folder of a repository", func(t *testing.T) string { return filepath.Join(full.dir, "core") },
			map[string]string{"hotspots": "**`engine.go` changes most**: 10 of", "sizes": "**`engine.go` is the " +
				"largest** of 2 files", "leftovers": "**1 note**",
				"links": "Nothing found: the repository has no Markdown", "secrets": "Nothing found",
				"build": "Nothing found", "summary": "**"}},
		{"a submodule and a symbolic link", func(t *testing.T) string {
			r := newRepo(t)
			r.git(r.dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", full.dir, "sub")
			if err := os.Symlink("sub/docs", filepath.Join(r.dir, "docs")); err != nil {
				t.Fatal(err)
			}
			r.write("README.md", "[in](sub/README.md) [through](docs/guide.md) [module](sub) [none](subs/x)\n")
			r.commit("Ada", 0)
			return r.dir
		}, map[string]string{"hotspots": "Nothing found", "sizes": "**`.gitmodules` is the largest** of 3 files",
			"leftovers": "Nothing found",
			"links":     "**1 of 4 relative links is broken**", "secrets": "Nothing found", "build": "Nothing found",
			"summary": "**"}},
		{"a branch without changes to existing files", func(t *testing.T) string {
			r := newRepo(t)
			r.write("gone.md", "[x](y.md)")
			r.commit("Ada", 0)
			r.git(r.dir, "rm", "-q", "gone.md")
			r.commit("Ada", 1)
			return r.dir
		}, with(all("Nothing found"), "summary", "**")},
	} {
		t.Run(c.name, func(t *testing.T) {
			results := runAll(t, f, c.dir(t))
			for id, want := range c.want {
				if !strings.HasPrefix(results[id], want) {
					t.Errorf("%s: got:\n%s\nwant it to start with %q", id, results[id], want)
				}
			}
			if len(c.want) != len(f.Tasks) {
				t.Errorf("%d of %d tasks are looked at", len(c.want), len(f.Tasks))
			}
		})
	}
}

// TestSummaryOutsideOfATeam checks that the summary says what it lacks when a person runs it
// without a team.
func TestSummaryOutsideOfATeam(t *testing.T) {
	for _, task := range load(t, "health.yaml").Tasks {
		if task.ID != "summary" {
			continue
		}
		cmd := exec.Command("/bin/sh", "-c", task.Run)
		cmd.Env = append(os.Environ(), "CADRE_RESULTS=")
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), "CADRE_RESULTS is no folder") {
			t.Errorf("%v: %s", err, out)
		}
	}
}

// TestHealthIsQuiet checks that the tasks do not take the rules of scanners for secrets, words in a
// text for notes, or test data for documents.
func TestHealthIsQuiet(t *testing.T) {
	r := newRepo(t)
	r.write("rules/gitleaks.toml", fake("keys = ['AI", "zaSy0_", strings.Repeat("a", 34), "']\n"))
	r.write("check.sh", "grep -E 'TODO|FIXME' \"$@\" # find notes such as TODO and FIXME.\n")
	r.write("guide.md", "It finds notes such as TODO, FIXME and HACK.\n")
	r.write("testdata/hostile.md", "[x](nowhere.md)\n\n# TODO: broken on purpose\n")
	r.commit("Ada Lovelace", 0)
	results := runAll(t, load(t, "health.yaml"), r.dir)
	for _, id := range []string{"leftovers", "links", "secrets"} {
		if text := results[id]; !strings.HasPrefix(text, "Nothing found") {
			t.Errorf("%s finds\n%s", id, text)
		}
	}
}
