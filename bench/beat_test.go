package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/journal/store/filestore"
	"cadre/internal/layout"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/replica"
	"cadre/internal/team"
)

const (
	beating  = 1000
	usual    = 30 * time.Second // between two heartbeats of a member
	often    = time.Second      // short, so that a benchmark sees several heartbeats
	twentyOf = 20               // heartbeats of each member
)

// BenchmarkBeats runs a host with 1,000 idle shell members that send 20 heartbeats each, one a
// second. It reports the processor time of one round as a percentage of one core over the usual 30
// s. The limit is 2 percent. The baseline, in the same run, is a process that writes as many files
// of the same size and renames them over the old ones.
func BenchmarkBeats(b *testing.B) {
	cadre, _ := programs(b)
	var ours, bare time.Duration
	for range b.N {
		h := layout.Home{Root: b.TempDir(), Claude: b.TempDir()}
		commands := []team.Command{{ID: replica.NewID(), Actor: team.User, At: replica.Now(),
			Body: &team.CreateTeam{TeamID: replica.NewID(), Name: "beating", Dir: "/",
				Timing: team.Timing{Beat: often}}}}
		for i := range beating {
			commands = append(commands, team.Command{ID: replica.NewID(), Actor: team.User, At: replica.Now(),
				Body: &team.SpawnMember{Name: fmt.Sprintf("m%d", i), Agent: team.Shell}})
		}
		if err := h.Create("beating", commands); err != nil {
			b.Fatal(err)
		}
		var stderr strings.Builder
		c := exec.Command(cadre, "host", "beating")
		c.Env = append(os.Environ(), "CADRE_HOME="+h.Root, "CLAUDE_CONFIG_DIR="+h.Claude, "HOME="+b.TempDir())
		c.Stderr = &stderr
		if err := c.Start(); err != nil {
			b.Fatal(err)
		}
		folder := heartbeat.In(filestore.Team(filepath.Join(h.Root, "teams", "beating")))
		settled(b, h)
		first := await(b, folder, count(b, folder)+2) // by then the host is at rest
		began := used(b, c.Process.Pid)
		await(b, folder, first+twentyOf)
		ours += used(b, c.Process.Pid) - began
		c.Process.Signal(syscall.SIGTERM)
		if err := c.Wait(); err != nil {
			b.Fatalf("%v\n%s", err, &stderr)
		}
		bare += files(b)
	}
	rounds := time.Duration(b.N * twentyOf)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(100*float64(ours/rounds)/float64(usual), "%-of-a-core")
	b.ReportMetric(float64(ours)/float64(bare), "times-files")
	b.Logf("%v of processor time for a round of %d, %v for bare files", ours/rounds, beating, bare/rounds)
}

// settled waits until every member is idle and only heartbeats remain.
func settled(b *testing.B, h layout.Home) {
	b.Helper()
	j, _, err := h.Open("beating", nil)
	if err != nil {
		b.Fatal(err)
	}
	rep, err := replica.Open(context.Background(), j, replica.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer rep.Close()
	ctx, cancel := context.WithTimeoutCause(context.Background(), 2*time.Minute,
		errors.New("the members do not become idle"))
	defer cancel()
	for {
		idle, seq := 0, int64(0)
		rep.View(func(s *team.State) {
			seq = s.Seq()
			for _, m := range s.Members() {
				if m.Status == team.Idle {
					idle++
				}
			}
		})
		if idle >= beating {
			return
		}
		if err := rep.Wait(ctx, seq); err != nil {
			b.Fatal(context.Cause(ctx))
		}
	}
}

// await waits until the host has sent that heartbeat. It returns the number of the last one sent.
func await(b *testing.B, f heartbeat.Beats, which int64) int64 {
	b.Helper()
	for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if n := count(b, f); n >= which {
			return n
		}
	}
	b.Fatal("the host sends no heartbeats")
	return 0
}

// count returns how many heartbeats the host has sent for one member.
func count(b *testing.B, f heartbeat.Beats) int64 {
	b.Helper()
	beat, there, err := f.Of(b.Context(), "m999")
	if err != nil {
		b.Fatal(err)
	}
	if !there {
		return 0
	}
	return beat.Count
}

// used returns the processor time that a running process has used.
func used(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Skip("it needs /proc: ", err)
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest) // the first of these is the third field of the line
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		b.Fatal(err)
	}
	return time.Duration(user+system) * time.Second / 100 // Linux counts in hundredths of a second
}

// files returns the processor time that bare files take for as many rounds of as many heartbeats.
func files(b *testing.B) time.Duration {
	b.Helper()
	dir := b.TempDir()
	line := []byte(fmt.Sprintf("%0250d\n", 0))
	began := own(b)
	for range twentyOf {
		for i := range beating {
			path := filepath.Join(dir, strconv.Itoa(i))
			if err := os.WriteFile(path+".new", line, 0o600); err != nil {
				b.Fatal(err)
			}
			if err := os.Rename(path+".new", path); err != nil {
				b.Fatal(err)
			}
		}
	}
	return own(b) - began
}

// own returns the processor time that this process has used.
func own(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
