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

// tokenVariable is the environment variable that marks a child and everything that it starts.
const tokenVariable = "CADRE_PROC"

// Unmarked returns env without the mark of a child, for a process that is to outlive its starter.
func Unmarked(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, tokenVariable+"=") })
}

// DefaultDrain is the default of Cmd.Drain.
const DefaultDrain = time.Second

// Cmd describes a program to start. Only Args is required.
type Cmd struct {
	Args []string // the program and its arguments; a name without a slash is looked up in PATH
	Dir  string   // working directory; empty means the host's
	Env  []string // "name=value", later ones win; nil means the host's environment

	// Input is the child's standard input, followed by end of file. With neither Input nor
	// StdinPipe, the child reads end of file at once.
	Input     []byte
	StdinPipe bool // provide Child.Stdin instead

	// Stdout and Stderr receive the child's output. nil discards it. The child inherits an *os.File
	// directly. Both may be the same writer.
	Stdout     io.Writer
	Stderr     io.Writer
	StdoutPipe bool // provide Child.Stdout instead of writing to Stdout

	// Drain limits the wait for output after the child's group has ended, in case an escaped
	// process holds the pipe open. 0 means DefaultDrain.
	Drain time.Duration

	// Linger is how long background processes may continue after the child has exited. 0 ends them
	// at once.
	Linger time.Duration

	Member string // the member and the task that it runs for; may be empty
	Task   string
	// Trusted marks a command that the user chose, such as a trusted hook or a check: everything
	// below it acts as the user. The mark is in the child's record; see [Record].
	Trusted bool
	// Terminal is set for a child that is a tmux server: the path of the socket that connects a
	// person to its terminal. It is in the child's record.
	Terminal string
	// Check marks a trusted command that may run code written by members, such as a check before
	// consolidation.
	Check bool
}

// Validate checks the command without starting anything.
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

// gateScript waits for one line on descriptor 3. End of file means that the host died before the
// child was recorded. The name after -c makes error messages of exec readable.
const gateScript = `read -r go <&3 || exit 125; exec 3<&-; exec "$@"`

// fork starts the command up to the gate. The caller's program does not run before Child.open.
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

// Find returns the absolute path of a program. A name without a slash is looked up in PATH.
func Find(program string) (string, error) {
	path, err := exec.LookPath(program)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// plumbing collects both ends of the pipes to a child while they are created.
type plumbing struct{ childs, ours []*os.File }

// connect sets the three standard files. All of them are real files, so that os/exec starts no
// copying goroutines: its Wait would hang on a pipe that a grandchild holds open.
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

// output connects one of the child's outputs to the caller's writer.
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

// feed writes the whole input and closes the pipe. A child need not read all of it: drain closes
// the pipe when the child ends.
func (c *Child) feed() {
	io.Copy(c.stdin, bytes.NewReader(c.cmd.Input))
	c.stdin.Close()
}
