package proc

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"time"
)

// tokenVariable marks the environment of a child and of all that it starts.
const tokenVariable = "CADRE_PROC"

// Unmarked is an environment without the mark of a child: for a process that is to outlive who
// started it.
func Unmarked(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, tokenVariable+"=") })
}

// DefaultDrain is how long the output of an ended child is waited for.
const DefaultDrain = time.Second

// Cmd says what to start. Only Args must be set.
type Cmd struct {
	Args []string // the program and its arguments; a name without a slash is looked up in PATH
	Dir  string   // working directory; empty means the host's
	Env  []string // "name=value", later ones win; nil means the host's environment

	// what the child reads, then end of file; with neither this nor StdinPipe it reads end of file
	// at once
	Input     []byte
	StdinPipe bool // give the caller Child.Stdin instead

	// nil means discard; an *os.File is handed to the child as it is; Stderr may be the same writer
	Stdout     io.Writer
	Stderr     io.Writer
	StdoutPipe bool // give the caller Child.Stdout instead of writing to Stdout

	// Drain bounds the wait for output after the child's group ended, in case a process that got
	// away holds the pipe open; 0 means DefaultDrain.
	Drain time.Duration

	// Linger is the time that processes in the background get to end by themselves after the child
	// exited; 0 ends them at once.
	Linger time.Duration

	Member string // in whose session it runs, and for which task; may be empty
	Task   string
	// Trusted marks a command that the user chose, such as a trusted hook or a check: what runs
	// below it acts as the user. The mark is in the child's record; see [Find].
	Trusted bool
	// Terminal is the path of the socket at which a child that is a tmux server takes people to its
	// terminal; empty for any other. It is in the child's record.
	Terminal string
	// Check marks a trusted command that may run what members wrote: a check of a consolidation.
	Check bool
}

// Validate reports what is wrong with the command before anything is started.
func (c *Cmd) Validate() error {
	switch {
	case len(c.Args) == 0 || c.Args[0] == "":
		return errors.New("start a child: Args is empty; it needs the program to run")
	case c.Input != nil && c.StdinPipe:
		return errors.New("start a child: Input and StdinPipe exclude each other")
	case c.Stdout != nil && c.StdoutPipe:
		return errors.New("start a child: Stdout and StdoutPipe exclude each other")
	case c.Drain < 0 || c.Linger < 0:
		return errors.New("start a child: Drain and Linger cannot be negative")
	}
	return nil
}

// gateScript waits for one line on descriptor 3. End of file there means that the host died before
// the child was recorded. The name after -c makes a message of exec readable.
const gateScript = `read -r go <&3 || exit 125; exec 3<&-; exec "$@"`

// fork starts the command up to the gate. Nothing that the caller asked for runs before Child.open.
func fork(cmd Cmd) (_ *Child, err error) {
	if err := cmd.Validate(); err != nil {
		return nil, err
	}
	program := cmd.Args[0]
	if !strings.ContainsRune(program, filepath.Separator) || filepath.IsAbs(program) {
		if program, err = Find(program); err != nil {
			return nil, fmt.Errorf("start a child: %w", err)
		}
	}
	if cmd.Drain == 0 {
		cmd.Drain = DefaultDrain
	}

	var p plumbing
	defer func() {
		closeAll(p.childs)
		if err != nil {
			closeAll(p.ours)
		}
	}()
	c := &Child{cmd: cmd, token: rand.Text(), started: time.Now(), killed: make(chan struct{}),
		done: make(chan struct{})}
	shell := exec.Command("/bin/sh", append([]string{"-c", gateScript, "cadre", program}, cmd.Args[1:]...)...)
	shell.Dir = cmd.Dir
	env := cmd.Env
	if env == nil {
		env = os.Environ()
	}
	shell.Env = append(env[:len(env):len(env)], tokenVariable+"="+c.token)
	shell.SysProcAttr = &syscall.SysProcAttr{Setsid: true}

	gate, open, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("start a child: %w", err)
	}
	p.childs, p.ours = append(p.childs, gate), append(p.ours, open)
	shell.ExtraFiles, c.gate = []*os.File{gate}, open
	if err := p.connect(shell, c); err != nil {
		return nil, fmt.Errorf("start a child: %w", err)
	}
	if err := shell.Start(); err != nil {
		return nil, fmt.Errorf("start a child: %w", err)
	}
	c.process, c.pid = shell.Process, shell.Process.Pid
	started.Store(c.pid, nil)
	return c, nil
}

// Find returns the absolute path of a program: one with a slash is taken as it is, another is
// looked up in PATH.
func Find(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// plumbing collects both ends of the pipes to a child while they are made.
type plumbing struct{ childs, ours []*os.File }

// connect sets the three standard files. All of them are real files, so that os/exec starts no
// copying of its own: its Wait would be the one to hang on a pipe that a grandchild holds.
func (p *plumbing) connect(shell *exec.Cmd, c *Child) error {
	if c.cmd.StdinPipe || c.cmd.Input != nil {
		r, w, err := os.Pipe()
		if err != nil {
			return err
		}
		p.childs, p.ours = append(p.childs, r), append(p.ours, w)
		shell.Stdin, c.stdin = r, w
		if c.cmd.StdinPipe {
			c.Stdin = w
		}
	}
	if c.cmd.StdoutPipe {
		s, w, err := p.stream(c)
		if err != nil {
			return err
		}
		shell.Stdout, c.Stdout = w, s
	} else if err := p.output(&shell.Stdout, c.cmd.Stdout, c); err != nil {
		return err
	}
	if c.cmd.Stdout != nil && same(c.cmd.Stdout, c.cmd.Stderr) {
		shell.Stderr = shell.Stdout
		return nil
	}
	return p.output(&shell.Stderr, c.cmd.Stderr, c)
}

// output connects one of the child's outputs to a writer of the caller.
func (p *plumbing) output(file *io.Writer, to io.Writer, c *Child) error {
	if to == nil {
		return nil
	}
	if f, ok := to.(*os.File); ok {
		*file = f
		return nil
	}
	s, w, err := p.stream(c)
	if err != nil {
		return err
	}
	*file = w
	c.copies = append(c.copies, func() { io.Copy(to, s); s.Close() })
	return nil
}

func (p *plumbing) stream(c *Child) (*stream, *os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	p.childs, p.ours = append(p.childs, w), append(p.ours, r)
	s := &stream{file: r, drain: c.cmd.Drain}
	c.streams = append(c.streams, s)
	return s, w, nil
}

func same(a, b io.Writer) bool {
	return b != nil && reflect.TypeOf(a).Comparable() && reflect.TypeOf(b).Comparable() && a == b
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// feed writes the whole input and closes the pipe. A child need not read it; the pipe is closed for
// it when it ends.
func (c *Child) feed() {
	io.Copy(c.stdin, bytes.NewReader(c.cmd.Input))
	c.stdin.Close()
}
