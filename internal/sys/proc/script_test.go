package proc

import (
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// TestScriptsInOtherShells runs both scripts in the shells that serve as /bin/sh on some system:
// dash and busybox on Linux, bash on Linux and macOS, ksh on others.
func TestScriptsInOtherShells(t *testing.T) {
	for _, shell := range [][]string{{"dash"}, {"bash", "--posix"}, {"busybox", "sh"}, {"ksh"}} {
		if _, err := exec.LookPath(shell[0]); err != nil {
			continue
		}
		t.Run(shell[0], func(t *testing.T) {
			t.Run("gate", func(t *testing.T) { gateIn(t, shell) })
			t.Run("watchdog", func(t *testing.T) { watchdogIn(t, shell) })
		})
	}
}

func gateIn(t *testing.T, shell []string) {
	for line, want := range map[string]string{"go\n": "[a b]\n", "": "", "g": ""} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		args := append(shell[1:len(shell):len(shell)], "-c", gateScript, "cadre", "/bin/sh", "-c",
			`echo "[$1]"`, "sh", "a b")
		cmd := exec.Command(shell[0], args...)
		cmd.ExtraFiles = []*os.File{r}
		io.WriteString(w, line)
		w.Close()
		out, _ := cmd.Output() // the status is 125 if the gate stayed closed
		r.Close()
		if string(out) != want {
			t.Errorf("after %q: got %q, want %q", line, out, want)
		}
	}
}

func watchdogIn(t *testing.T, shell []string) {
	group := func() *exec.Cmd {
		cmd := exec.Command("sleep", "1000")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	first, second, third := group(), group(), group()
	var lines strings.Builder
	for _, line := range []string{"+" + strconv.Itoa(first.Process.Pid), "+" + strconv.Itoa(second.Process.Pid),
		"+" + strconv.Itoa(third.Process.Pid), "-" + strconv.Itoa(second.Process.Pid)} {
		lines.WriteString(line + "\n")
	}
	args := append(shell[1:len(shell):len(shell)], "-c", watchdogScript, "cadre-watchdog")
	watchdog := exec.Command(shell[0], args...)
	watchdog.Env = []string{}
	watchdog.Stdin = strings.NewReader(lines.String())
	if out, err := watchdog.CombinedOutput(); err != nil || string(out) != "ready\n" {
		t.Errorf("got %q, %v", out, err)
	}
	first.Wait()
	third.Wait()
	if !runs(second.Process.Pid) {
		t.Error("a group that was taken off was killed")
	}
	second.Process.Kill()
	second.Wait()
}
