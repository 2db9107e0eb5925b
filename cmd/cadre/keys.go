package main

import (
	"bytes"
	"os"

	"golang.org/x/sys/unix"
)

// typing is a terminal that passes on each key as it is typed, and does not show it. Ctrl-C still
// interrupts.
type typing struct {
	tty *os.File
	was unix.Termios // the terminal's settings to restore
	now unix.Termios
}

// openTyping changes the settings of the terminal. It returns nil if tty is no terminal, or if
// another process uses it.
func openTyping(tty *os.File) *typing {
	if !inForeground(tty) { // a change would stop the process
		return nil
	}
	was, err := unix.IoctlGetTermios(int(tty.Fd()), getTermios)
	if err != nil {
		return nil
	}
	t := &typing{tty, *was, *was}
	t.now.Lflag &^= unix.ICANON | unix.ECHO
	t.now.Cc[unix.VMIN], t.now.Cc[unix.VTIME] = 1, 0
	if t.begin() != nil {
		return nil
	}
	return t
}

// begin changes the settings of the terminal again, after end.
func (t *typing) begin() error { return unix.IoctlSetTermios(int(t.tty.Fd()), setTermios, &t.now) }

// end restores the terminal.
func (t *typing) end() { _ = unix.IoctlSetTermios(int(t.tty.Fd()), setTermios, &t.was) }

// keys reads the keys that are typed at the terminal while a screen is shown there.
type keys struct{ *typing }

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
	t := openTyping(tty)
	if t == nil {
		return nil
	}
	k := &keys{t}
	go k.read(quit)
	return k
}

// inForeground reports whether this process may use the terminal, as one of the shell's foreground
// job.
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
		// not an escape sequence of another key
		if typed := buffer[:n]; typed[0] != '\x1b' && bytes.ContainsAny(typed, "qQ") {
			quit()
			return
		}
	}
}

// close restores the terminal.
func (k *keys) close() { k.end() }
