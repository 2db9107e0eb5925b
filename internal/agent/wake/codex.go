package wake

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"cadre/internal/sys/lazyregexp"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/regularfile"
)

// Codex is the session of a Codex that runs this process as its server of tools. It is known once
// the session has called a tool.
type Codex struct {
	Home     string         // the folder with its sessions
	Dir      string         // the team's directory
	Children *proc.Register // starts its program

	mu     sync.Mutex
	thread string
	file   string // its session file
}

// threadID matches the id of a session, which becomes part of a command and a file name.
var threadID = lazyregexp.New(`^[0-9a-fA-F][0-9a-fA-F-]{7,63}$`)

// Stays reports whether the program keeps running after its turn, and reads its queue. codex exec
// ends, and older programs have no queue.
func (c *Codex) Stays(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, queueTime)
	defer cancel()
	if !slices.Contains(starter(), "app-server") {
		return false
	}
	said := &proc.Capture{Head: 1 << 16, Tail: 1 << 10}
	exit, err := c.Children.Run(ctx, proc.Cmd{Args: []string{"codex", "queue", "--help"}, Dir: c.Dir, Stdout: said,
		Stderr: said}, proc.Ladder{Term: -1})
	return err == nil && exit.Code == 0 && strings.Contains(said.String(), "--thread")
}

// Called records the session from the metadata that Codex sends with each call of a tool.
func (c *Codex) Called(beside map[string]any) {
	thread, _ := beside["sessionId"].(string) // the user's session, even if a thread of its own calls
	if !threadID().MatchString(thread) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if thread != c.thread {
		c.thread, c.file = thread, ""
	}
}

// maxTail is how much of the end of a session's file is read, in bytes. A turn that has written
// more than this has not ended.
const maxTail = 1 << 20

// Idle reports whether the session's last turn has ended. A turn that the user interrupted does not
// count: the user is there, and about to type.
func (c *Codex) Idle() bool {
	file := c.path()
	if file == "" {
		return false
	}
	f, err := regularfile.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return false
	}
	from := max(0, size-maxTail)
	tail := make([]byte, size-from)
	if n, err := f.ReadAt(tail, from); err != nil && !errors.Is(err, io.EOF) {
		return false
	} else {
		tail = tail[:n]
	}
	return ended(tail)
}

// ended reports whether the last turn in the lines has ended. An incomplete line is ignored.
func ended(lines []byte) bool {
	for len(lines) > 0 {
		at := bytes.LastIndexByte(bytes.TrimRight(lines, "\n"), '\n') + 1
		var line struct {
			Type    string
			Payload struct{ Type string }
		}
		if json.Unmarshal(lines[at:], &line) == nil && line.Type == "event_msg" {
			switch line.Payload.Type {
			case "task_complete":
				return true
			case "task_started", "turn_aborted":
				return false
			}
		}
		lines = lines[:at]
	}
	return false
}

// path returns the file in which Codex keeps the session, or "" before it exists.
func (c *Codex) path() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == "" && c.thread != "" {
		if found, _ := filepath.Glob(filepath.Join(c.Home, "sessions", "*", "*", "*",
			"rollout-*"+c.thread+".jsonl")); len(found) > 0 {
			c.file = found[len(found)-1]
		}
	}
	return c.file
}

// queueTime bounds how long Codex may take to queue a line.
const queueTime = 30 * time.Second

// Wake queues words for the session, which start a turn.
func (c *Codex) Wake(ctx context.Context, words string) error {
	c.mu.Lock()
	thread := c.thread
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, queueTime)
	defer cancel()
	said := &proc.Capture{Head: 1 << 10, Tail: 1 << 10}
	exit, err := c.Children.Run(ctx, proc.Cmd{Args: []string{"codex", "queue", "--thread", thread, "--message", words},
		Dir: c.Dir, Stdout: said, Stderr: said},
		proc.Ladder{Term: -1})
	switch {
	case errors.Is(err, proc.ErrLeft):
		return nil
	case err != nil:
		return fmt.Errorf("codex queue: %w", err)
	case exit.Code != 0 || exit.Signal != 0:
		return fmt.Errorf("codex queue ended with %v: %s", exit, strings.TrimSpace(said.String()))
	}
	return nil
}
