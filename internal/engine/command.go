package engine

import (
	"context"
	"errors"
	"os"

	"cadre/internal/sys/proc"
)

// RunForUser runs a command of cadre that the user typed into this process, and returns how it
// ended. Where this process also runs sessions, a record says that the command is the user's.
// Without the record it would count as a session's, and be refused.
func (e *Engine) RunForUser(ctx context.Context, cmd proc.Cmd) (exit proc.Exit, err error) {
	cmd.Trusted = true
	procs, err := proc.Open("")
	if list := e.Home.Running(); proc.Listed(list) {
		dir, failed := os.MkdirTemp("", "cadre-command-")
		if failed != nil {
			return exit, failed
		}
		defer os.RemoveAll(dir)
		procs, err = proc.OpenListed(dir, proc.Listing{Folder: list})
	}
	if err != nil {
		return exit, err
	}
	exit, err = procs.Run(ctx, cmd, proc.Ladder{})
	return exit, errors.Join(err, procs.Close(context.WithoutCancel(ctx)))
}
