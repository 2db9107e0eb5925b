package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// terminals reports whether the tests can open a terminal.
const terminals = true

// runOnTerminal runs the command on a terminal of its own, with typed as its input. It copies the
// output to out.
func runOnTerminal(t *testing.T, cmd *exec.Cmd, out io.Writer, typed string) error {
	t.Helper()
	ours, theirs := openTerminal(t)
	defer ours.Close()
	cmd.Stdin, cmd.Stdout, cmd.Stderr = theirs, theirs, theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		theirs.Close()
		return err
	}
	theirs.Close()
	if _, err := io.WriteString(ours, typed); err != nil {
		t.Error(err)
	}
	copied := make(chan error, 1)
	go func() {
		_, err := io.Copy(out, ours)
		copied <- err
	}()
	err := cmd.Wait()
	// EIO means that the other side is closed.
	if failed := <-copied; failed != nil && !errors.Is(failed, syscall.EIO) {
		t.Errorf("reading the terminal: %v", failed)
	}
	return err
}

// openTerminal returns both sides of a new terminal of 80 columns.
func openTerminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("needs a terminal: ", err)
	}
	fd := int(ours.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 40, Col: 80})
	}
	if err == nil {
		theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		ours.Close()
		t.Fatal(err)
	}
	return ours, theirs
}
