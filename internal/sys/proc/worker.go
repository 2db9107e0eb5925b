package proc

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"

	"golang.org/x/sys/unix"
)

// workerVariable is the environment variable that tells a worker the descriptor of its socket.
const workerVariable = "CADRE_WORKER"

// The messages of a worker to the process in front of it.
const (
	saysScreen = 's' // the terminal shows a screen
	saysLines  = 'l' // the terminal shows lines again
	saysLeft   = 'b' // the worker continues in the background
	saysText   = 't' // a text follows, after its length in one byte
)

// Ended says how a worker ended.
type Ended struct {
	Status int            // exit status; 128 and the signal if a signal ended it
	Signal syscall.Signal // the signal that ended it; 0 for none
	Left   bool           // it continues in the background
	Screen bool           // it ended while the terminal showed a screen, and did not restore the terminal
	Told   string         // what it told last; see [Worker.Tell]
}

// RunWorker starts the program as a worker, in the process group and at the terminal of this
// process, with the standard streams. It waits until the worker ends or leaves for the background,
// and passes on the signals that this process gets. The terminal's own signals reach both
// processes; see [Worker.Signals].
//
// A shell waits for the process that it started. So a command that may continue in the background
// runs in a worker: the process in front can end while the worker, and its sessions, continue
// undisturbed.
func RunWorker(args, env []string, standard [3]*os.File) (Ended, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return Ended{}, fmt.Errorf("start the worker: %w", err)
	}
	unix.CloseOnExec(pair[0])
	unix.CloseOnExec(pair[1])
	ours, theirs := os.NewFile(uintptr(pair[0]), "worker"), os.NewFile(uintptr(pair[1]), "worker")
	defer ours.Close()
	c := exec.Command(args[0], args[1:]...)
	c.Stdin, c.Stdout, c.Stderr = standard[0], standard[1], standard[2]
	c.ExtraFiles = []*os.File{theirs} // descriptor 3
	c.Env = append(slices.Clone(env), workerVariable+"=3")
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	err = c.Start()
	theirs.Close()
	if err != nil {
		return Ended{}, fmt.Errorf("start the worker: %w", err)
	}
	var said heard
	left, heard, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(heard)
		said.all(ours, left)
	}()
	go func() {
		_ = c.Wait()
		close(ended)
	}()
	for {
		select {
		case s := <-signals:
			_, _ = ours.Write([]byte{byte(s.(syscall.Signal))}) // fails only if the worker has ended
		case <-left:
			return Ended{Left: true}, nil
		case <-ended:
			<-heard
			end := Ended{Status: c.ProcessState.ExitCode(), Screen: said.screen, Told: said.text}
			if how := c.ProcessState.Sys().(syscall.WaitStatus); how.Signaled() {
				end.Signal, end.Status = how.Signal(), 128+int(how.Signal())
			}
			return end, nil
		}
	}
}

// heard is what a worker said.
type heard struct {
	screen bool
	text   string
}

// all hears everything until the worker ends. It closes left and returns if the worker leaves.
func (h *heard) all(from io.Reader, left chan<- struct{}) {
	r := bufio.NewReader(from)
	for {
		said, err := r.ReadByte()
		if err != nil {
			return
		}
		switch said {
		case saysLeft:
			close(left)
			return
		case saysText:
			size, _ := r.ReadByte()
			text := make([]byte, size)
			if _, err := io.ReadFull(r, text); err != nil { // it was killed meanwhile
				return
			}
			h.text = string(text)
		default:
			h.screen = said == saysScreen
		}
	}
}

// Worker is the side of a process that [RunWorker] started.
type Worker struct {
	front *os.File
	left  atomic.Bool
}

// OpenWorker returns this process as a worker; nil if [RunWorker] did not start it. It removes the
// variable, so that a child of this process does not count as a worker.
func OpenWorker() *Worker {
	fd, err := strconv.Atoi(os.Getenv(workerVariable))
	if err != nil {
		return nil
	}
	os.Unsetenv(workerVariable)
	if kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || kind != unix.SOCK_STREAM {
		return nil
	}
	unix.CloseOnExec(fd)
	return &Worker{front: os.NewFile(uintptr(fd), "front")}
}

// Signals calls got with each signal that the process in front got, until that ends or the worker
// leaves it. Ctrl-C reaches both processes, so the caller must not count such a signal twice. If
// the process in front was killed, got is called with SIGHUP.
func (w *Worker) Signals(got func(os.Signal)) {
	var s [1]byte
	for {
		n, err := w.front.Read(s[:])
		switch {
		case w.left.Load():
			return
		case n == 0 || err != nil:
			got(syscall.SIGHUP)
			return
		}
		got(syscall.Signal(s[0]))
	}
}

// Shows tells the process in front whether the terminal shows a screen, which it restores if the
// worker cannot.
func (w *Worker) Shows(screen bool) {
	said := []byte{saysLines}
	if screen {
		said[0] = saysScreen
	}
	_, _ = w.front.Write(said)
}

// Tell gives the process in front a text of at most 255 bytes, which it has if the worker is
// killed.
func (w *Worker) Tell(text string) {
	text = text[:min(len(text), 255)]
	_, _ = w.front.Write(append([]byte{saysText, byte(len(text))}, text...))
}

// Leave continues in the background: in a session of its own, without the terminal, with output as
// standard output and standard error. The process in front then ends with status 0.
func (w *Worker) Leave(output *os.File) error {
	nothing, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	defer nothing.Close()
	if _, err := unix.Setsid(); err != nil {
		return fmt.Errorf("leave the terminal: %w", err)
	}
	w.left.Store(true)
	for fd, file := range []*os.File{nothing, output, output} {
		if err := unix.Dup2(int(file.Fd()), fd); err != nil {
			return fmt.Errorf("leave the terminal: %w", err)
		}
	}
	_, _ = w.front.Write([]byte{saysLeft}) // it may have been killed meanwhile
	return nil
}
