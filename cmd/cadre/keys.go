package main

import (
	"bytes"
	"os"

	"golang.org/x/sys/unix"
)

// keys reads what is typed at the terminal while a screen is open there, key by key. An interrupt
// stays one.
type keys struct {
	tty *os.File
	was *unix.Termios // how the terminal is left
}

// openKeys calls quit when q is typed. stdin says that standard input is read by somebody else:
// then it is the terminal of the session. It returns nil where nobody can type: there is no
// terminal, or others have it.
func openKeys(stdin bool, quit func()) *keys {
	tty := os.Stdin
	if stdin || !atTerminal() {
		var err error
		if tty, err = os.OpenFile("/dev/tty", os.O_RDWR, 0); err != nil {
			return nil
		}
	}
	fd := int(tty.Fd())
	// In the background a change would stop the process.
	if group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP); err != nil || group != unix.Getpgrp() {
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

// read ends with the process: nothing calls a read of a terminal back.
func (k *keys) read(quit func()) {
	buffer := make([]byte, 64)
	for {
		n, err := k.tty.Read(buffer)
		if err != nil {
			return
		}
		if typed := buffer[:n]; typed[0] != '\x1b' && bytes.ContainsAny(typed, "qQ") { // no sequence of another key
			quit()
			return
		}
	}
}

// close leaves the terminal as it was.
func (k *keys) close() { _ = unix.IoctlSetTermios(int(k.tty.Fd()), setTermios, k.was) }
