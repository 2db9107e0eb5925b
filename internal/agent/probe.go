package agent

import (
	"context"
	"strings"

	"cadre/internal/proc"
)

// Look finds a program and asks it for its version, for a [Prober]. Can and missing are what the answer says where it is found, and where not.
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
		return Probe{Program: path, Missing: "it does not say its version: " + err.Error()}
	case exit.Code != 0:
		return Probe{Program: path, Missing: exit.String() + ": " + strings.TrimSpace(errs.String()+out.String())}
	}
	version, _, _ := strings.Cut(strings.TrimSpace(out.String()), "\n")
	return Probe{Program: path, Version: version, Can: can}
}
