package agent

import (
	"context"
	"path/filepath"
	"strings"
	"time"

	"cadre/internal/sys/proc"
)

// Remedy returns the advice for a problem of an agent; install and login say how to install it and
// how to log in. See [Remedier].
func Remedy(kind ProblemKind, install, login string) string {
	switch kind {
	case ProblemLogin:
		return "to log in with an account or key that may use the model: " + login
	case ProblemMissing:
		return install
	case ProblemLimit:
		return "if this lasts, look at the limits of your account, or use another model or agent"
	case ProblemModel:
		return "if this lasts, check the network and the status of the model's provider"
	}
	return ""
}

// Variable returns the value of a variable in an environment, the last one if there are several; ""
// if it is not set.
func Variable(env []string, name string) (value string) {
	for _, v := range env {
		if text, ok := strings.CutPrefix(v, name+"="); ok {
			value = text
		}
	}
	return value
}

// askTime bounds a command that checks for a login. Some take seconds to start.
const askTime = 20 * time.Second

// Ask runs a command in a directory and returns its output. ok is false if the command could not be
// run to its end.
func Ask(ctx context.Context, dir string, env []string, program string,
	args ...string) (out string, exit proc.Exit, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	path, err := proc.Find(program)
	if err != nil {
		return "", exit, false
	}
	procs, err := proc.Open("")
	if err != nil {
		return "", exit, false
	}
	defer procs.Close(context.WithoutCancel(ctx))
	var said proc.Capture
	exit, err = procs.Run(ctx, proc.Cmd{Args: append([]string{path}, args...), Dir: dir, Env: env, Stdout: &said,
		Stderr: &said}, proc.Ladder{})
	return said.String(), exit, err == nil
}

// Upward returns a folder ("" for the working directory) and the folders above it, up to the root.
// Agents look for settings there.
func Upward(dir string) (folders []string) {
	if full, err := filepath.Abs(dir); err == nil {
		dir = full
	}
	for {
		folders = append(folders, dir)
		if dir == filepath.Dir(dir) {
			return folders
		}
		dir = filepath.Dir(dir)
	}
}
