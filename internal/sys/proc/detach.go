package proc

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// Detach starts a program in a session of its own, so that it outlives this process and its
// terminal. It is not a host's child: it does not end with its starter. Its output goes to output.
func Detach(args, env []string, output *os.File) error {
	return detach(args, env, output, &syscall.SysProcAttr{Setsid: true})
}

// leaveVariable is the environment variable that tells a program to call setsid itself.
const leaveVariable = "CADRE_LEAVE"

// DetachOwn is [Detach] for a host that starts this program again. The program begins in the host's
// session, so that [Ancestry] takes it for the host's own. It must call [Leave] once it knows that.
func DetachOwn(args, env []string, output *os.File) error {
	return detach(args, append(env[:len(env):len(env)], leaveVariable+"=1"), output, nil)
}

// Leave begins a session of its own if [DetachOwn] started this process. Later calls do nothing.
func Leave() error {
	if os.Getenv(leaveVariable) == "" {
		return nil
	}
	os.Unsetenv(leaveVariable)
	if _, err := unix.Setsid(); err != nil {
		return fmt.Errorf("leave the session of the terminal: %w", err)
	}
	return nil
}

func detach(args, env []string, output *os.File, how *syscall.SysProcAttr) error {
	c := exec.Command(args[0], args[1:]...)
	c.Env, c.Stdout, c.Stderr, c.SysProcAttr = Unmarked(env), output, output, how
	if err := c.Start(); err != nil {
		return err
	}
	return c.Process.Release()
}
