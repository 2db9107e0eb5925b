package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"cadre/internal/agent/drivers"
)

// agents are those that this program runs, with itself as their helper.
func agents() drivers.Set { return drivers.Set{Helper: []string{self()}} }

func self() string {
	path, err := os.Executable()
	if err != nil {
		return os.Args[0]
	}
	return path
}

func knownAgent(name string) error {
	if drivers.Known(name) {
		return nil
	}
	return usage{fmt.Errorf("no agent named %q; there are: %s", name, strings.Join(drivers.Words(), ", "))}
}

// firstInstalled is the first agent that can lead.
func firstInstalled(ctx context.Context) (string, error) {
	for _, name := range drivers.Models {
		if p := drivers.Probe(ctx, name); p.Program != "" && p.Missing == "" {
			return name, nil
		}
	}
	return "", usage{fmt.Errorf("no coding agent is installed that could lead: install Claude Code (claude), Codex " +
		"(codex), Gemini CLI (gemini) or opencode, and see cadre doctor; " +
		"a team that needs none: cadre run examples/hello.yaml")}
}
