package proc

import (
	"fmt"
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
)

// Ended says how a worker ended.
type Ended struct {
	Status int  // exit status; 128 and the signal if a signal ended it
	Left   bool // it continues in the background
	Screen bool // it ended while the terminal showed a screen, and could not restore it
}

// RunWorker starts the program as a worker, in the process group and at the terminal of this process,
// with the standard streams, and waits until it ends or leaves for the background. It passes on signals that this process gets.
// The terminal's own signals reach both processes; see [Worker.Signals].
//
// A shell waits for the process that it started. So a command that may continue in the background runs
// in a worker: the process in front can end while the worker, and its sessions, continue undisturbed.
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
	var screen atomic.Bool
	left, heard, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(heard)
		var said [1]byte
		for {
			if n, err := ours.Read(said[:]); n == 0 || err != nil {
				return
			}
			switch said[0] {
			case saysLeft:
				close(left)
				return
			default:
				screen.Store(said[0] == saysScreen)
			}
		}
	}()
	go func() {
		_ = c.Wait()
		close(ended)
	}()
	for {
		select {
		case s := <-signals:
			_, _ = ours.Write([]byte{byte(s.(syscall.Signal))}) // a worker that has ended needs none
		case <-left:
			return Ended{Left: true}, nil
		case <-ended:
			<-heard
			status := c.ProcessState.ExitCode()
			if how := c.ProcessState.Sys().(syscall.WaitStatus); how.Signaled() {
				status = 128 + int(how.Signal())
			}
			return Ended{Status: status, Screen: screen.Load()}, nil
		}
	}
}

// Worker is the side of a process that [RunWorker] started.
type Worker struct {
	front *os.File
	left  atomic.Bool
}

// OpenWorker returns the worker that this process is; nil if [RunWorker] did not start it. A child
// of this process must not count as a worker.
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
// leaves it. Ctrl-C reaches both processes, so the caller must not count such a signal twice. If the
// process in front was killed, got is called with SIGHUP.
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
