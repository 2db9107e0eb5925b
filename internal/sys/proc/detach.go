package proc

import (
	"os"
	"os/exec"
	"syscall"
)

// Detach starts a program in a session of its own, so that it outlives this process and its
// terminal. It is not a host's child: it does not end with its starter. Its output goes to output.
func Detach(args, env []string, output *os.File) error {
	c := exec.Command(args[0], args[1:]...)
	c.Env, c.Stdout, c.Stderr = Unmarked(env), output, output
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return err
	}
	return c.Process.Release()
}
