package teams

import (
	"context"
	"fmt"
	"os"
	"slices"
	"sync"

	"cadre/internal/agent/drivers"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// The built-in agents. Shell and External need nothing; the others are programs that must be
// installed and logged in.
const (
	External = team.External // no session: a person or a program acts as the member
	Shell    = team.Shell    // runs the commands of tasks, see TaskConfig.Run
	Claude   = team.Claude   // Claude Code
	Codex    = team.Codex
	Gemini   = team.Gemini // Gemini CLI
	OpenCode = team.OpenCode
	// ClaudeTmux is Claude Code in its own tmux terminal, which a person can attach to.
	ClaudeTmux = team.ClaudeTmux
	// ACP, followed by a command line, is any program that speaks the Agent Client Protocol: ACP +
	// "my-agent --acp". Quotes keep words together.
	ACP = team.ACP
	// NestedTeam is a team of its own for each of its tasks; see TeamConfig.MaxDepth.
	NestedTeam = team.NestedTeam
)

// InstalledAgent is a coding agent that is installed.
type InstalledAgent struct {
	Agent   string // its name in MemberConfig.Agent
	Path    string
	Version string   // as the agent writes it
	Can     []string // what it can do in a team, in one or two words each
}

// Installed returns which of Claude, Codex, Gemini and OpenCode are installed, in the order in
// which cadre run chooses a lead. It starts each of them to read its version, which can take some
// seconds. An agent that does not answer within 20 s counts as not installed. Installed does not
// check whether an agent is logged in.
func Installed(ctx context.Context) []InstalledAgent {
	found := make([]InstalledAgent, len(drivers.Models))
	var asking sync.WaitGroup
	for i, name := range drivers.Models {
		asking.Go(func() {
			if p := drivers.Probe(ctx, name); p.Program != "" && p.Missing == "" {
				found[i] = InstalledAgent{Agent: name, Path: p.Program, Version: p.Version, Can: p.Can}
			}
		})
	}
	asking.Wait()
	return slices.DeleteFunc(found, func(p InstalledAgent) bool { return p.Agent == "" })
}

// helperWord is the argument that tells a program that it runs as a helper.
const helperWord = "cadre-helper"

// Helper makes the calling program its own helper (see [Options]). It returns the command line for
// Options.Helper. If an agent started the process with that command line, Helper does what the
// agent wants, and ends the process instead of returning. Call it first in main, before the program
// reads its arguments:
//
//	func main() {
//		helper := teams.Helper()
//		…
//		m, err := teams.New(teams.Options{Helper: helper})
func Helper() []string {
	if len(os.Args) > 1 && os.Args[1] == helperWord {
		if err := drivers.Serve(context.Background(), os.Args[2:], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	self, err := os.Executable()
	if err != nil {
		self = os.Args[0]
	}
	return []string{self, helperWord}
}

// usualHelper returns the program cadre, if it is installed.
func usualHelper() []string {
	path, err := proc.Find("cadre")
	if err != nil {
		return nil
	}
	return []string{path}
}
