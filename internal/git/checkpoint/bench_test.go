package checkpoint

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/git"
	"cadre/internal/team"
)

// BenchmarkCheckpoint measures a checkpoint after one more task, against git's own plumbing for the
// same bytes: the files that changed, the trees that they are in, a commit, and the branch. The
// ratio must be at most 3.
func BenchmarkCheckpoint(b *testing.B) {
	l := newLab(b)
	project, w := l.repository("r"), newWork(b, "T1")
	s := l.store(project)
	l.checkpoint(s, w)
	var ours, plumbing time.Duration
	parent := ""
	for b.Loop() {
		w.step(b)
		start := time.Now()
		c := l.checkpoint(s, w)
		ours += time.Since(start)
		files := map[string]string{}
		for _, name := range strings.Fields(l.git(project, "diff-tree", "-r", "--no-commit-id", "--name-only",
			"--diff-filter=d", c.Commit)) {
			// one more byte, because git would reuse an existing object
			files[name] = l.git(project, "cat-file", "blob", c.Commit+":"+name) + fmt.Sprint(len(w.records))
		}
		start = time.Now()
		parent = bare(b, project, files, parent)
		plumbing += time.Since(start)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(ours.Microseconds())/float64(b.N)/1000, "ms/checkpoint")
	b.ReportMetric(float64(plumbing.Microseconds())/float64(b.N)/1000, "ms/plumbing")
	b.ReportMetric(float64(ours)/float64(plumbing), "times-plumbing")
}

// BenchmarkCheckpointWithWork measures a checkpoint after one more task. Its member has changed
// three files in the shared directory of a project of a thousand files, and has committed one on
// its branch. The baseline is git's own plumbing for the same: finding the changes, an index of its
// own, a tree and a commit of them, and what BenchmarkCheckpoint counts, with both commits as
// parents. The ratio must be at most 3.
func BenchmarkCheckpointWithWork(b *testing.B) {
	l := newLab(b)
	project := l.repository("r")
	for n := range 1000 {
		l.write(filepath.Join(project, fmt.Sprintf("folder%d/file%d.txt", n%30, n)), fmt.Sprint("a line of ", n, "\n"))
	}
	l.git(project, "add", "-A")
	l.git(project, "commit", "-q", "-m", "more")
	w := workIn(b, project, l.looked(project))
	s := l.store(project)
	l.checkpoint(s, w)
	var ours, plumbing time.Duration
	parent, index := "", filepath.Join(l.dir, "index")
	run := func(args ...string) string {
		return plumb(b, project, "", []string{"GIT_INDEX_FILE=" + index, "GIT_OPTIONAL_LOCKS=0"}, args...)
	}
	run("read-tree", "HEAD")
	for n := 0; b.Loop(); n++ {
		w.step(b)
		member := func(of string) {
			for i := range 3 {
				l.write(filepath.Join(project, fmt.Sprintf("folder%d/file%d.txt", i, i)), fmt.Sprint(of, n, "\n"))
			}
			commit := l.git(project, "commit-tree", "-p", "HEAD", "-m", fmt.Sprint(of, n), "HEAD^{tree}")
			l.git(project, "update-ref", "refs/heads/cadre/demo@bob", commit)
		}
		member("ours ")
		start := time.Now()
		c := l.checkpoint(s, w)
		ours += time.Since(start)
		files := map[string]string{}
		for _, name := range strings.Fields(l.git(project, "diff-tree", "-r", "--no-commit-id", "--name-only",
			"--diff-filter=d", c.Commit+"^1", c.Commit)) {
			files[name] = l.git(project, "cat-file", "blob", c.Commit+":"+name) + fmt.Sprint(len(w.records))
		}
		member("plumbing ")
		start = time.Now()
		run("add", "-A")
		shared := run("commit-tree", run("write-tree"), "-p", "HEAD", "-m", "shared")
		parent = bare(b, project, files, parent, shared, run("rev-parse", "cadre/demo@bob"))
		plumbing += time.Since(start)
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(ours.Microseconds())/float64(b.N)/1000, "ms/checkpoint")
	b.ReportMetric(float64(plumbing.Microseconds())/float64(b.N)/1000, "ms/plumbing")
	b.ReportMetric(float64(ours)/float64(plumbing), "times-plumbing")
}

// plumb runs git as a script would, and returns its last output.
func plumb(b *testing.B, dir, input string, env []string, args ...string) string {
	cmd := exec.Command("git", append([]string{"-C", dir, "-c", "core.fsync=committed"}, args...)...)
	cmd.Env = append(git.Local(os.Environ()), env...)
	cmd.Stdin = strings.NewReader(input)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		b.Fatalf("git %v: %v\n%s", args, err, errs.String())
	}
	return strings.TrimSpace(string(out))
}

// bare commits the files with plumbing only and returns the commit.
func bare(b *testing.B, dir string, files map[string]string, parents ...string) string {
	git := func(input string, args ...string) string { return plumb(b, dir, input, nil, args...) }
	var treeOf func(files map[string]string) string
	treeOf = func(files map[string]string) string {
		var listing strings.Builder
		folders := map[string]map[string]string{}
		for _, name := range slices.Sorted(maps.Keys(files)) {
			if folder, rest, deep := strings.Cut(name, "/"); !deep {
				fmt.Fprintf(&listing, "100644 blob %s\t%s\n", git(files[name], "hash-object", "-w", "--stdin"), name)
			} else if folders[folder] == nil {
				folders[folder] = map[string]string{rest: files[name]}
			} else {
				folders[folder][rest] = files[name]
			}
		}
		for folder, files := range folders {
			fmt.Fprintf(&listing, "040000 tree %s\t%s\n", treeOf(files), folder)
		}
		return git(listing.String(), "mktree")
	}
	tree := treeOf(files)
	args := []string{"commit-tree", tree, "-m", "checkpoint"}
	for _, parent := range parents {
		if parent != "" {
			args = append(args, "-p", parent)
		}
	}
	commit := git("", args...)
	git("", "update-ref", "refs/heads/bare", commit, parents[0])
	return commit
}

// BenchmarkThousandth compares the checkpoints around the 1,000th with the first ones. Before each
// there is one more task from its creation to its end, and a message. The ratio must be about 1.
func BenchmarkThousandth(b *testing.B) {
	const some, total = 50, 1000
	for b.Loop() {
		l := newLab(b)
		project, w := l.repository("r"), newWork(b, "T1")
		s := l.store(project)
		var first, last time.Duration
		for n := range total {
			w.step(b)
			start := time.Now()
			l.checkpoint(s, w)
			if took := time.Since(start); n < some {
				first += took
			} else if n >= total-some {
				last += took
			}
		}
		b.ReportMetric(float64(first.Microseconds())/some/1000, "ms/first")
		b.ReportMetric(float64(last.Microseconds())/some/1000, "ms/1000th")
		b.ReportMetric(float64(last)/float64(first), "times-first")
	}
}

// BenchmarkRender measures the part without git: state.json and the logs of a team of 10,000 open
// tasks.
func BenchmarkRender(b *testing.B) {
	w := newWork(b, "T1")
	for n := range 10_000 {
		w.do(b, "lead", &team.CreateTask{Subject: fmt.Sprint("task ", n), Description: "what to do about the token " +
			"of the parser"})
	}
	s := &Store{team: "demo", shelf: &memory{}}
	for b.Loop() {
		w.do(b, "lead", &team.SendMessage{To: "ann", Body: "more"})
		if _, err := s.Write(b.Context(), w, Beside{}); err != nil {
			b.Fatal(err)
		}
	}
}
