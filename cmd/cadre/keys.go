package main

import (
	"bytes"
	"os"

	"golang.org/x/sys/unix"
)

// keys reads the keys that are typed at the terminal while a screen is shown there. Ctrl-C still
// interrupts.
type keys struct {
	tty *os.File
	was *unix.Termios // the terminal's settings to restore
}

// openKeys calls quit when q is typed. stdin says that standard input has another reader; then the
// keys come from the session's terminal. It returns nil if there is no terminal, or another process
// uses it.
func openKeys(stdin bool, quit func()) *keys {
	tty := os.Stdin
	if stdin || !atTerminal() {
		var err error
		if tty, err = os.OpenFile("/dev/tty", os.O_RDWR, 0); err != nil {
			return nil
		}
	}
	fd := int(tty.Fd())
	if !inForeground(tty) { // a change would stop the process
		return nil
	}
	was, err := unix.IoctlGetTermios(fd, getTermios)
	if err != nil {
		return nil
	}
	by := *was
	by.Lflag &^= unix.ICANON | unix.ECHO
	by.Cc[unix.VMIN], by.Cc[unix.VTIME] = 1, 0
	if unix.IoctlSetTermios(fd, setTermios, &by) != nil {
		return nil
	}
	k := &keys{tty, was}
	go k.read(quit)
	return k
}

// inForeground reports whether this process may use the terminal, as one of the shell's foreground job.
func inForeground(tty *os.File) bool {
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// read ends with the process: a read of a terminal cannot be cancelled.
func (k *keys) read(quit func()) {
	buffer := make([]byte, 64)
	for {
		n, err := k.tty.Read(buffer)
		if err != nil {
			return
		}
		if typed := buffer[:n]; typed[0] != '\x1b' && bytes.ContainsAny(typed, "qQ") { // not an escape sequence of another key
			quit()
			return
		}
	}
}

// close restores the terminal.
func (k *keys) close() { _ = unix.IoctlSetTermios(int(k.tty.Fd()), setTermios, k.was) }
