package bench

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// BenchmarkIdleHost runs a host with 100 idle shell members for some seconds, without notes and
// with as many as a team can have. It reports the processor time as a percentage of one core. It
// subtracts two runs of different length, so that the start does not count.
func BenchmarkIdleHost(b *testing.B) {
	cadre, _ := programs(b)
	b.Run("bare", func(b *testing.B) { idles(b, cadre, 0) })
	b.Run("noted", func(b *testing.B) { idles(b, cadre, team.MaxNotes) })
}

func idles(b *testing.B, cadre string, notes int) {
	used := func(stand time.Duration) time.Duration {
		h := layout.Home{Root: b.TempDir(), Claude: b.TempDir()}
		commands := []team.Command{{ID: replica.NewID(), Actor: team.User, At: replica.Now(),
			Body: &team.CreateTeam{TeamID: replica.NewID(), Name: "idle", Dir: "/"}}}
		for i := range 100 {
			commands = append(commands, team.Command{ID: replica.NewID(), Actor: team.User, At: replica.Now(),
				Body: &team.SpawnMember{Name: fmt.Sprintf("m%d", i), Agent: team.Shell}})
		}
		for i := range notes {
			commands = append(commands, team.Command{ID: replica.NewID(), Actor: team.User, At: replica.Now(),
				Body: note(i, notes)})
		}
		if err := h.Create("idle", commands); err != nil {
			b.Fatal(err)
		}
		var stderr strings.Builder
		c := exec.Command(cadre, "host", "idle")
		c.Env = append(os.Environ(), "CADRE_HOME="+h.Root, "CLAUDE_CONFIG_DIR="+h.Claude, "HOME="+b.TempDir())
		c.Stderr = &stderr
		if err := c.Start(); err != nil {
			b.Fatal(err)
		}
		time.Sleep(stand)
		c.Process.Signal(syscall.SIGTERM)
		if err := c.Wait(); err != nil {
			b.Fatalf("%v\n%s", err, &stderr)
		}
		return c.ProcessState.UserTime() + c.ProcessState.SystemTime()
	}
	const brief, long = 4 * time.Second, 14 * time.Second
	var share float64
	for range b.N {
		share += 100 * (used(long) - used(brief)).Seconds() / (long - brief).Seconds()
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(share/float64(b.N), "%-of-a-core")
}
