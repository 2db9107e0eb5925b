package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/layout"
	"cadre/internal/team"
)

// reading is a program that reads the files in its arguments, and does nothing with them.
const reading = `package main

import "os"

func main() {
	for _, path := range os.Args[1:] {
		if _, err := os.ReadFile(path); err != nil {
			panic(err)
		}
	}
}
`

// hello is the trivial program: it prints a line, as cadre version does.
const hello = `package main

import "fmt"

func main() { fmt.Println("hello, world") }
`

// compiled builds the program from the source text.
func compiled(b *testing.B, text string) string {
	dir := b.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	if err := os.WriteFile(source, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	c := exec.Command("go", "build", "-buildvcs=false", "-o", program, source)
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		b.Fatalf("go build: %v\n%s", err, out)
	}
	return program
}

// programs builds cadre, as the Makefile does, and a program that does nothing.
func programs(b *testing.B) (cadre, nothing string) {
	dir := b.TempDir()
	cadre, nothing = filepath.Join(dir, "cadre"), filepath.Join(dir, "nothing")
	source := filepath.Join(dir, "nothing.go")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() {}\n"), 0o600); err != nil {
		b.Fatal(err)
	}
	for _, build := range [][]string{{"-o", cadre, "cadre/cmd/cadre"}, {"-o", nothing, source}} {
		c := exec.Command("go", append([]string{"build"}, build...)...)
		c.Dir = ".." // the module of the program
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := c.CombinedOutput(); err != nil {
			b.Fatalf("go build: %v\n%s", err, out)
		}
	}
	return cadre, nothing
}

// BenchmarkCommand times whole commands on a team of 10,000 tasks and 100,000 records. It
// alternates with a program that does nothing, and with one that reads the same files: the snapshot
// and the last segment. The limit for the ratio of medians to the former is 20, and 12 for status.
func BenchmarkCommand(b *testing.B) {
	cadre, nothing := programs(b)
	h := layout.Home{Root: b.TempDir(), Claude: b.TempDir()}
	if err := Build(h, "big", 10_000, 100_000); err != nil {
		b.Fatal(err)
	}
	once := timed(b, h)
	once(cadre, "send", "big", "--to", "m1", "the first writer saves the snapshot and the projections")
	folder, raw := filepath.Join(h.Root, "teams", "big"), compiled(b, reading)
	segments, err := filepath.Glob(filepath.Join(folder, "journal", "*.jsonl"))
	if err != nil || len(segments) == 0 {
		b.Fatalf("there are no segments: %v", err)
	}
	files := []string{filepath.Join(folder, "state.json"), segments[len(segments)-1]}
	for _, args := range [][]string{
		{"task", "list", "big"},
		{"task", "list", "big", "--json"},
		{"task", "claim", "big", "--next", "--as", "m1"},
		{"send", "big", "--from", "m2", "--to", "m1", "a message"},
		{"status", "big"},
	} {
		name := args[0]
		if args[0] == "task" {
			name = fmt.Sprint(args[0], "-", args[1])
		}
		if slices.Contains(args, "--json") {
			name += "-json"
		}
		b.Run(name, func(b *testing.B) {
			var ours, theirs, read []time.Duration
			for range max(b.N, 40) {
				theirs = append(theirs, once(nothing))
				read = append(read, once(raw, files...))
				ours = append(ours, once(cadre, args...))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(median(ours))/float64(median(theirs)), "times-nothing")
			b.ReportMetric(float64(median(ours))/float64(median(read)), "times-reading")
		})
	}
}

// BenchmarkNote times the commands of notes on a team of 10,000 tasks and 500 notes of 1 MiB
// together. It alternates with a program that does nothing. The limit for the ratio of medians is
// 10.
func BenchmarkNote(b *testing.B) {
	cadre, nothing := programs(b)
	h := layout.Home{Root: b.TempDir(), Claude: b.TempDir()}
	if err := BuildNoted(h, "noted", 10_000, 0, team.MaxNotes); err != nil {
		b.Fatal(err)
	}
	once := timed(b, h)
	once(cadre, "send", "noted", "--to", "m1", "the first writer saves the snapshot and the projections")
	n := 0
	for _, run := range []struct {
		name string
		args func() []string
	}{
		{"set", func() []string {
			n++
			return []string{"note", "set", "noted", "decisions/007", fmt.Sprint("the ", n, "th decision"), "--as", "m1"}
		}},
		{"get", func() []string { return []string{"note", "get", "noted", "decisions/400"} }},
	} {
		b.Run(run.name, func(b *testing.B) {
			var ours, theirs []time.Duration
			for range max(b.N, 40) {
				theirs = append(theirs, once(nothing))
				ours = append(ours, once(cadre, run.args()...))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(median(ours))/float64(median(theirs)), "times-nothing")
		})
	}
}

// BenchmarkStart times commands that consist mostly of the start, from fork to exit. It alternates
// with a program that prints a line and one that does nothing. The limit for the ratio of medians
// to the former is 2 for version, and 5 for send and claim on a team of 1,000 tasks.
func BenchmarkStart(b *testing.B) {
	cadre, nothing := programs(b)
	trivial := compiled(b, hello)
	h := layout.Home{Root: b.TempDir(), Claude: b.TempDir()}
	if err := Build(h, "small", 1_000, 10_000); err != nil {
		b.Fatal(err)
	}
	once := timed(b, h)
	once(cadre, "send", "small", "--to", "m1", "the first writer saves the snapshot and the projections")
	for _, run := range []struct {
		name string
		args []string
	}{
		{"version", []string{"version"}},
		{"send", []string{"send", "small", "--from", "m2", "--to", "m1", "a message"}},
		{"claim", []string{"task", "claim", "small", "--next", "--as", "m1"}},
	} {
		b.Run(run.name, func(b *testing.B) {
			var ours, theirs, least []time.Duration
			for range max(b.N, 200) {
				least = append(least, once(nothing))
				theirs = append(theirs, once(trivial))
				ours = append(ours, once(cadre, run.args...))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(median(ours))/float64(median(theirs)), "times-trivial")
			b.ReportMetric(float64(median(ours))/float64(median(least)), "times-nothing")
			b.ReportMetric(float64(median(ours).Microseconds())/1000, "ms")
		})
	}
}

// timed returns a function that runs a program on the teams of the home, and returns its duration.
func timed(b *testing.B, h layout.Home) func(program string, args ...string) time.Duration {
	env := append(os.Environ(), "CADRE_HOME="+h.Root, "CLAUDE_CONFIG_DIR="+h.Claude, "HOME="+b.TempDir(), "CADRE_TEAM=",
		"CADRE_MEMBER_NAME=")
	return func(program string, args ...string) time.Duration {
		b.Helper()
		c := exec.Command(program, args...)
		c.Env = env
		var stderr strings.Builder
		c.Stderr = &stderr
		began := time.Now()
		if err := c.Run(); err != nil {
			b.Fatalf("%v: %v\n%s", args, err, &stderr)
		}
		return time.Since(began)
	}
}

func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}
