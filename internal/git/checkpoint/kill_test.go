package checkpoint

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"cadre/internal/sys/proc"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// writerDir is the variable that tells a copy of the test program for which project to write
// checkpoints until it is killed.
const writerDir = "CADRE_TEST_CHECKPOINTS_OF"

// writing returns the team at its step n, the same in every process.
func writing(n int) (*work, error) {
	w := &work{state: &team.State{}}
	if _, err := w.try(team.User, &team.CreateTeam{TeamID: "T1", Name: "demo", Dir: "/d"}); err != nil {
		return nil, err
	}
	if _, err := w.try("lead", &team.SpawnMember{Name: "ann", Agent: team.External}); err != nil {
		return nil, err
	}
	for w.state.Seq() < int64(n) {
		if _, err := w.try("lead", &team.SendMessage{To: "ann", Body: strings.Repeat(fmt.Sprint(w.sent, " "),
			800)}); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func write(dir string) int {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	procs, err := proc.Open("")
	if err != nil {
		return 1
	}
	s, err := Open(ctx, procs, dir, "demo", filepath.Join(dir, "own"))
	if err != nil {
		fmt.Println(err)
		return 1
	}
	from, err := strconv.Atoi(os.Getenv(writerDir + "_FROM"))
	for n := from; err == nil; n++ {
		var w *work
		if w, err = writing(n); err == nil {
			var c Checkpoint
			if c, err = s.Write(ctx, w, Beside{}); err == nil {
				fmt.Println(c.Seq)
			}
		}
	}
	fmt.Println(err)
	return 1
}

// TestKilled kills a process that writes one checkpoint after the other, at any moment. Every
// checkpoint that it reported is there, and what is there is complete.
func TestKilled(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it runs git many times; not with -short")
	}
	for name, make := range map[string]func(l *lab) string{
		"branch": func(l *lab) string { return l.repository("r") },
		"folder": func(l *lab) string {
			d := filepath.Join(l.dir, "plain")
			l.write(filepath.Join(d, "a.txt"), "")
			return d
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			project := make(l)
			random := rand.New(rand.NewPCG(1, 2))
			last := 2
			for round := range soak.Of(10, 100) {
				told := killed(t, project, last+1, random)
				r, err := l.storeBeside(project).Restore(t.Context())
				if err != nil {
					t.Fatalf("round %d, after checkpoint %d: %v", round, told, err)
				}
				if last = int(r.Seq); last < told {
					t.Fatalf("round %d: checkpoint %d was written, and %d is there", round, told, last)
				}
				w, err := writing(last)
				if err != nil {
					t.Fatal(err)
				}
				if got, want := all(r.State), w.all(); got != want {
					t.Fatalf("round %d: restored\n%s\nwant\n%s", round, got, want)
				}
			}
			if name == "branch" {
				if out, err := l.try(project, "fsck", "--strict", "--no-dangling"); err != nil {
					t.Errorf("%v: %s", err, out)
				}
			}
		})
	}
}

// TestCrashReports checks that the next checkpoint removes the report that git writes when its
// input ends because the host was killed, and no report of another program's import.
func TestCrashReports(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	project, w := l.repository("r"), newWork(t, "T1")
	for _, branch := range []string{"cadre/demo@_", "cadre/demo2@_", "main2"} {
		c := exec.Command("git", "-C", project, "fast-import", "--quiet", "--done")
		c.Stdin = strings.NewReader("feature done\ncommit refs/heads/" + branch + "\nmark :1\n")
		if out, err := c.CombinedOutput(); err == nil || !strings.Contains(string(out), "crash report") {
			t.Fatalf("%v: %s", err, out)
		}
	}
	reports := func() (branches []string) {
		t.Helper()
		paths, err := filepath.Glob(filepath.Join(project, ".git", "fast_import_crash_*"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, branch, _ := strings.Cut(string(text), "commit refs/heads/")
			branch, _, _ = strings.Cut(branch, "\n")
			branches = append(branches, branch)
		}
		slices.Sort(branches)
		return branches
	}
	if got := reports(); len(got) != 3 {
		t.Fatalf("there are the reports %q", got)
	}
	l.checkpoint(l.store(project), w)
	if got := reports(); !slices.Equal(got, []string{"cadre/demo2@_", "main2"}) {
		t.Errorf("left are the reports %q, want those of cadre/demo2@_ and main2", got)
	}
}

func (l *lab) storeBeside(project string) *Store {
	l.Helper()
	s, err := Open(l.Context(), l.procs, project, "demo", filepath.Join(project, "own"))
	if err != nil {
		l.Fatal(err)
	}
	return s
}

// killed starts the writer, kills it some time after a few checkpoints, and returns the last one
// that it reported.
func killed(t *testing.T, project string, from int, random *rand.Rand) int {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), writerDir+"="+project, writerDir+"_FROM="+strconv.Itoa(from))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	hung := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer hung.Stop()
	told, few := 0, 1+random.IntN(3)
	for lines := bufio.NewScanner(out); lines.Scan(); few-- {
		if told, err = strconv.Atoi(lines.Text()); err != nil {
			t.Fatal(lines.Text())
		}
		if few == 0 { // vary the moment of the kill
			time.AfterFunc(time.Duration(random.IntN(12_000))*time.Microsecond, func() { cmd.Process.Kill() })
		}
	}
	return told
}
