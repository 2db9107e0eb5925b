// Package wake knows the agents that a person starts, whose sessions are outside: how long each
// waits for a tool, and how its session is woken when its turn has ended.
//
// # Who is woken
//
//	Codex         cadre mcp puts a line into the queue of its session, which begins a turn
//	Claude Code   a hook of the user's settings waits for news when a turn ends, and wakes the session
//	Gemini CLI    nothing wakes it: it has no way
//	opencode      nothing wakes it: it has no way
//
// # Guarantees
//
//   - What wakes a session says that there is news, in words of cadre alone. The news itself comes
//     behind the results of tools, as it always does, and counts as delivered there.
//   - A session is woken once for each message, in whatever order messages become news.
//   - A hook wakes the session that runs it, and for nothing but the seats of that session: those
//     whose server of tools the same program runs. A session that was started in a tool of another
//     one takes nothing of that one's.
package wake

import (
	"strings"
	"time"

	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Client is an agent's program, as a client of cadre mcp.
type Client struct {
	Agent   string        // "" for one that is not known
	Longest time.Duration // that a call of a tool may take: after that the agent counts it as failed
}

// clients by how their names begin. Longest stays below what each program waits for a tool unless
// its user sets something else: 60 s Codex, 30 s opencode, 10 min Gemini CLI, and more than a day
// Claude Code.
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

// starter is the command line of the program that runs this process; nil where it cannot be told.
func starter() []string {
	pid, ok := proc.Starter()
	if !ok {
		return nil
	}
	args, _ := proc.Arguments(pid)
	return args
}
