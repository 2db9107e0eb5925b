package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cadre/internal/sys/proc"
)

// Locate looks for a program, for a [Locator]: the named one, or else the agent's own. missing says
// what to do if the agent's own does not exist.
func Locate(named, own, missing string) error {
	if named != "" {
		if _, err := proc.Find(named); err != nil {
			return fmt.Errorf("the program cannot be started: %w", err)
		}
		return nil
	}
	if _, err := proc.Find(own); err != nil {
		return errors.New(missing)
	}
	return nil
}

// Look finds a program and asks it for its version, for a [Prober]. The result has can if it is
// found, and missing if it is not.
func Look(ctx context.Context, program string, can []string, missing string) Probe {
	path, err := proc.Find(program)
	if err != nil {
		return Probe{Missing: missing}
	}
	procs, err := proc.Open("")
	if err != nil {
		return Probe{Program: path, Missing: err.Error()}
	}
	defer procs.Close(context.WithoutCancel(ctx))
	var out, errs proc.Capture
	exit, err := procs.Run(ctx, proc.Cmd{Args: []string{path, "--version"}, Stdout: &out, Stderr: &errs}, proc.Ladder{})
	switch {
	case err != nil:
		return Probe{Program: path, Missing: "it does not report its version: " + err.Error()}
	case exit.Code != 0:
		return Probe{Program: path, Missing: exit.String() + ": " + strings.TrimSpace(errs.String()+out.String())}
	}
	version, _, _ := strings.Cut(strings.TrimSpace(out.String()), "\n")
	return Probe{Program: path, Version: version, Can: can}
}
