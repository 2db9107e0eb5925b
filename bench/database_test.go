package bench

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"cadre/internal/engine/database"
	"cadre/internal/layout"
	"cadre/internal/testkit/postgrestest"
)

// inDatabase returns a home whose teams live in a new database with tables, and the address.
func inDatabase(b *testing.B) (layout.Home, string) {
	b.Helper()
	server := postgrestest.Start(b, postgrestest.Options{})
	dsn, schema := server.Schema(b)
	dsn += " search_path=" + schema
	d, err := database.Open(dsn, nil)
	if err != nil {
		b.Fatal(err)
	}
	if _, _, err := d.Init(b.Context(), ""); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(d.Place.Close)
	return layout.Home{Root: b.TempDir(), Claude: b.TempDir(), Place: d.Place}, dsn
}

// selectOne builds the program that connects and asks for 1.
func selectOne(b *testing.B) string {
	b.Helper()
	path := filepath.Join(b.TempDir(), "selectone")
	build := exec.Command("go", "build", "-o", path, "./selectone")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return path
}

// BenchmarkDatabase times commands on a team of 1,000 tasks in a database, from fork to exit. It
// alternates with a program that connects and asks for 1. The limit for the ratio of medians is 3.
func BenchmarkDatabase(b *testing.B) {
	cadre, _ := programs(b)
	one := selectOne(b)
	h, dsn := inDatabase(b)
	if err := Build(h, "small", 1_000, 10_000); err != nil {
		b.Fatal(err)
	}
	b.Setenv(database.Variable, dsn)
	once := timed(b, h)
	once(cadre, "send", "small", "--to", "m1", "the first writer saves the snapshot and the projections")
	for _, run := range []struct {
		name string
		args []string
	}{
		{"ls", []string{"ls"}},
		{"list", []string{"task", "list", "small", "--status", "completed"}},
		{"send", []string{"send", "small", "--from", "m2", "--to", "m1", "a message"}},
		{"claim", []string{"task", "claim", "small", "--next", "--as", "m1"}},
	} {
		b.Run(run.name, func(b *testing.B) {
			var ours, theirs []time.Duration
			for range max(b.N, 100) {
				theirs = append(theirs, once(one, dsn))
				ours = append(ours, once(cadre, run.args...))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(median(ours))/float64(median(theirs)), "times-select-1")
			b.ReportMetric(float64(median(ours).Microseconds())/1000, "ms")
		})
	}
}

// BenchmarkTakeover kills a process that runs a team in a database, and measures when another
// machine has continued the team. The limit is the time of a lease, 15 seconds, and two seconds.
func BenchmarkTakeover(b *testing.B) {
	cadre, _ := programs(b)
	_, dsn := inDatabase(b)
	project := b.TempDir()
	file := "name: rel\nmembers: [{name: w, agent: shell}]\ntasks: [{id: a, run: 'touch begun; until test -e go; do " +
		"sleep 0.01; done', retries: 9}]\n"
	if err := os.WriteFile(filepath.Join(project, "rel.yaml"), []byte(file), 0o600); err != nil {
		b.Fatal(err)
	}
	run := func() *exec.Cmd {
		home := b.TempDir()
		c := exec.Command(cadre, "run", "rel.yaml", "--plain")
		c.Dir = project
		c.Env = append(os.Environ(), "CADRE_HOME="+home, "HOME="+home, "CLAUDE_CONFIG_DIR="+home, database.Variable+"="+dsn)
		return c
	}
	begun := filepath.Join(project, "begun")
	await := func() {
		for {
			if _, err := os.Stat(begun); err == nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
	}
	first := run()
	if err := first.Start(); err != nil {
		b.Fatal(err)
	}
	await()
	os.Remove(begun)
	first.Process.Kill()
	killed := time.Now()
	first.Wait()
	var out strings.Builder
	var ended sync.WaitGroup
	ended.Go(func() {
		for {
			next := run()
			said, err := next.CombinedOutput()
			out.Write(said)
			if err == nil || next.ProcessState.ExitCode() != 1 {
				return
			}
			time.Sleep(50 * time.Millisecond)
		}
	})
	await()
	took := time.Since(killed)
	if err := os.WriteFile(filepath.Join(project, "go"), nil, 0o600); err != nil {
		b.Fatal(err)
	}
	ended.Wait()
	if !strings.Contains(out.String(), "1 of 1 task done") {
		b.Fatal(out.String())
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(took.Seconds(), "s")
}
