// Package wake knows the agents whose sessions a person starts: how long each waits for a tool, and
// how its session can be woken after its turn.
//
// # Which sessions are woken
//
//	Codex         cadre mcp queues a line for its session, which starts a turn
//	Claude Code   a hook in the user's settings waits for news at the end of a turn, and wakes the session
//	Gemini CLI    cannot be woken
//	opencode      cannot be woken
//
// # Guarantees
//
//   - The words that wake a session are cadre's own, and say only that there is news. The news
//     itself comes with the results of tools, as always, and counts as delivered there.
//   - A session is woken once for each message, in whatever order messages become news.
//   - A hook wakes only the session that runs it, and only for that session's memberships: those whose
//     server of tools the same program runs. A session that runs inside a tool call of another
//     session does not get the other's news.
package wake

import (
	"strings"
	"time"

	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Client is an agent's program, as a client of cadre mcp.
type Client struct {
	Agent   string        // "" if unknown
	Longest time.Duration // how long a call of a tool may take before the agent counts it as failed
}

// clients lists the known clients by the beginning of their names. Longest stays below each
// program's default limit for a tool: 60 s for Codex, 30 s for opencode, 10 min for Gemini CLI, and
// more than a day for Claude Code.
var clients = []struct {
	name string
	Client
}{
	{"claude-code", Client{team.Claude, 10 * time.Minute}},
	{"codex", Client{team.Codex, 50 * time.Second}},
	{"gemini-cli", Client{team.Gemini, 9 * time.Minute}},
	{"opencode", Client{team.OpenCode, 25 * time.Second}},
}

// Of returns the client that introduces itself by that name.
func Of(name string) Client {
	for _, c := range clients {
		if strings.HasPrefix(name, c.name) {
			return c.Client
		}
	}
	return Client{Longest: 25 * time.Second}
}

// starter returns the command line of the program that runs this process; nil if unknown.
func starter() []string {
	pid, ok := proc.Starter()
	if !ok {
		return nil
	}
	args, _ := proc.Arguments(pid)
	return args
}
