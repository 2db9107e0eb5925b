package agenttest

import (
	"bufio"
	"bytes"
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Print is a run of a program without a driver, for a recording of its output.
type Print struct {
	Name   string
	Script Script
	Runs   [][]string // the arguments of each run
	Until  string     // interrupt the last run when it has printed this, as a terminal does; "" to let it end by itself
}

// RecordPrints plays the prints with the real program. It stores the cleaned output in testdata.
// drop lists JSON keys that no test needs.
func RecordPrints(t *testing.T, name string, drop []string, prints ...Print) {
	p := Installed(t, name)
	for _, print := range prints {
		t.Run("record "+p.Name+" "+print.Name, func(t *testing.T) {
			s := NewServer(t, print.Script)
			w := NewWorld(t, s, p)
			var said []byte
			for i, args := range print.Runs {
				until := ""
				if i == len(print.Runs)-1 {
					until = print.Until
				}
				said = append(said, printed(t, w, p, until, args...)...)
			}
			keep(t, filepath.Join("testdata", p.Name+"-"+p.Version, print.Name+".jsonl"), newCleaner(w, s, drop),
				bytes.Split(bytes.TrimSpace(said), []byte("\n")))
		})
	}
}

// printed runs the program to its end and returns its standard output. A failure of the program is
// part of the recording.
func printed(t *testing.T, w World, p Program, until string, args ...string) []byte {
	ctx, cancel := context.WithTimeout(t.Context(), 3*patience) // some programs retry for a while
	defer cancel()
	c := exec.CommandContext(ctx, p.Path, args...)
	var words bytes.Buffer
	c.Dir, c.Env, c.Stderr = w.Dir, w.Env, &words
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = time.Second
	stream, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	var out []byte
	for lines := bufio.NewReader(stream); err == nil; {
		var line []byte
		line, err = lines.ReadBytes('\n')
		if out = append(out, line...); until != "" && bytes.Contains(line, []byte(until)) {
			syscall.Kill(-c.Process.Pid, syscall.SIGINT)
		}
	}
	err = c.Wait()
	if ctx.Err() != nil {
		t.Fatalf("%s %s does not end:\n%s\n%s", p.Name, strings.Join(args, " "), out, &words)
	}
	t.Logf("%s %s: %v\n%s", p.Name, strings.Join(args, " "), err, &words)
	return out
}
