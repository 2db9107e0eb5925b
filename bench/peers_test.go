package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cadre/internal/layout"
)

// BenchmarkPeers times whole commands, and alternates with the same operations in beads. Beads is a
// task list for agents that keeps its issues in an embedded Dolt database. BD is the path of its
// program; make bench-peers builds it. The ratio of medians says how much longer beads takes.
func BenchmarkPeers(b *testing.B) {
	bd := os.Getenv("BD")
	if bd == "" {
		b.Skip("BD does not name the beads program; run: make bench-peers")
	}
	const tasks = 1_000
	cadre, _ := programs(b)
	h := layout.Home{Root: b.TempDir(), Claude: b.TempDir()}
	if err := Build(h, "small", tasks, tasks); err != nil {
		b.Fatal(err)
	}
	ours := timed(b, h)
	ours(cadre, "send", "small", "--to", "m1", "the first writer saves the snapshot and the projections")
	theirs := beads(b, bd, tasks)
	for _, run := range []struct {
		name         string
		ours, theirs []string
	}{
		{"add", []string{"task", "add", "small", "one more"}, []string{"create", "one more"}},
		{"claim", []string{"task", "claim", "small", "--next", "--as", "m1"}, []string{"ready", "--claim"}},
		{"list", []string{"task", "list", "small", "--json"}, []string{"list", "--limit", "0", "--json"}},
		{"status", []string{"status", "small"}, []string{"status"}},
	} {
		b.Run(run.name, func(b *testing.B) {
			var a, z []time.Duration
			for range max(b.N, 10) {
				z = append(z, theirs(run.theirs...))
				a = append(a, ours(cadre, run.ours...))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(median(z))/float64(median(a)), "times-cadre")
			b.ReportMetric(float64(median(a).Microseconds())/1000, "cadre-ms")
			b.ReportMetric(float64(median(z).Microseconds())/1000, "beads-ms")
		})
	}
}

// beads creates a repository with that many issues. It returns a function that times a command on
// it.
func beads(b *testing.B, bd string, issues int) func(args ...string) time.Duration {
	b.Helper()
	dir, home := b.TempDir(), b.TempDir()
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "BD_NON_INTERACTIVE=1", "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=bench", "GIT_AUTHOR_EMAIL=bench@localhost", "GIT_COMMITTER_NAME=bench",
		"GIT_COMMITTER_EMAIL=bench@localhost"}
	run := func(program string, args ...string) time.Duration {
		b.Helper()
		c := exec.Command(program, args...)
		c.Dir, c.Env = dir, env
		var stderr strings.Builder
		c.Stderr = &stderr
		began := time.Now()
		if err := c.Run(); err != nil {
			b.Fatalf("%s %v: %v\n%s", filepath.Base(program), args, err, &stderr)
		}
		return time.Since(began)
	}
	run("git", "init", "-q")
	run(bd, "init", "--quiet", "--prefix", "p")
	var lines strings.Builder
	for n := range issues {
		line, err := json.Marshal(map[string]any{"title": fmt.Sprintf("task %d", n), "issue_type": "task",
			"status":      "open",
			"description": strings.Repeat("what is to be done. ", 5)})
		if err != nil {
			b.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	file := filepath.Join(home, "issues.jsonl")
	if err := os.WriteFile(file, []byte(lines.String()), 0o600); err != nil {
		b.Fatal(err)
	}
	run(bd, "import", file)
	return func(args ...string) time.Duration { b.Helper(); return run(bd, args...) }
}
