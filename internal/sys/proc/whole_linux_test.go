package proc

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestWhole checks that everything below a process with such a register is found to be: a child of
// a register without a folder by its record, and what is left of another host that was killed as
// left behind. Close ends the latter.
func TestWhole(t *testing.T) {
	root := t.TempDir()
	list := filepath.Join(root, "teams", ListFolder)
	whole, err := OpenWhole(filepath.Join(root, "server"), list)
	if err != nil {
		t.Fatal(err)
	}
	plain := open(t, "")
	for _, trusted := range []bool{false, true} {
		to := filepath.Join(t.TempDir(), "origin")
		c := start(t, plain, Cmd{Args: []string{"sh", "-c", "env -i setsid --wait " + whoami(list, to) + "; true"},
			Trusted: trusted, Stderr: os.Stderr})
		is := readOrigin(t, to)
		if _, err := c.Wait(within(t)); err != nil {
			t.Fatal(err)
		}
		if !is.Below || is.Own || is.Left || is.Record == nil || is.Record.Trusted != trusted || len(is.Teams) != 0 {
			t.Errorf("a child that is trusted: %t: %+v", trusted, is)
		}
	}

	to, pids := filepath.Join(root, "origin"), filepath.Join(root, "pid")
	// A zombie counts as dead: nobody may have reaped it yet.
	script := "host=$$; env -i setsid sh -c \"echo \\$\\$ >" + pids + "; while grep -q '^State:.[^Z]' " +
		"/proc/$host/status; do sleep 0.01; done; " +
		whoami(list, to) + "; sleep 600\" 2>/dev/null & kill -9 $$"
	if err := Detach([]string{"sh", "-c", script}, os.Environ(), os.Stderr); err != nil {
		t.Fatal(err)
	}
	if is := readOrigin(t, to); !is.Below || !is.Left || is.Record != nil || is.Host != os.Getpid() {
		t.Errorf("what a killed process left behind: %+v", is)
	}
	data, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(data)))
	if err != nil {
		t.Fatal(err)
	}
	if err := whole.Close(context.Background()); err != nil {
		t.Fatal(err)
	}
	if p, err := lookup(pid); err == nil && !p.zombie {
		t.Error("it outlives the register")
	}
	if recordsOf(plain) != "" {
		t.Error("the register still stands for the process")
	}
}
