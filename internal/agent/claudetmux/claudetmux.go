// Package claudetmux is the driver for an interactive Claude Code. The program runs in a terminal
// of tmux, which a person can use. The driver talks to it as a teammate of one of Claude Code's own
// teams, with the driver as lead, through the files of that team alone.
//
// # A session
//
//	a team with one member ──▶ tmux ──▶ claude --agent-name … --team-name … ──▶ Started
//	Give      ──▶ its inbox, or between two tools  its transcript has the words  ──▶ Received, and what it says and does
//	Answer    ──▶ its inbox                        the lead's inbox: a question  ──▶ PermissionAsked, PlanProposed
//	Interrupt ──▶ Escape                                             it is idle  ──▶ TurnEnded
//	Stop      ──▶ the terminal is closed           the terminal closes           ──▶ Ended
//
// A session of a dead host continues at the end of its transcript. Its team is named after it, so
// that leftover files of that team are found and removed.
//
// The terminal has a tmux server of its own. It is a child like any other, so none of it outlives
// its host. The child's record has the socket, which cadre attach TEAM NAME uses to connect a
// person.
//
// # Differences from claude
//
//   - A working agent gets a prompt from a hook that runs after some of its tools. A long prompt,
//     or one that interrupts, follows the turn.
//   - Its tools are not checked before they run, unless it asks by itself. So the features that
//     need the team's rules, plan approval and delegate mode, are refused.
//   - Its permission mode is that of its start, until a person changes it at its terminal.
//   - Questions at its start, such as whether to trust a folder, wait for a person at its terminal.
//
// Source of the protocol: recorded from Claude Code 2.1.329.
package claudetmux

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/claude"
	"cadre/internal/claude/projection"
	"cadre/internal/claude/teamfiles"
	"cadre/internal/sys/proc"
)

// Agent starts sessions. The zero Agent is ready for use.
type Agent struct {
	Program string // "" for claude, from PATH
}

// replaced are tools of the program for which the team has its own.
var replaced = []string{"SendMessage", "ListAgents", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet"}

const (
	startTime = 20 * time.Second // for tmux to be ready
	fileTime  = 75 * time.Second // longer than it takes until an abandoned lock is stolen
	bypass    = "bypassPermissions"
	color     = "blue"
)

// Start starts a session.
func (a Agent) Start(ctx context.Context, spec agent.Spec, _ agent.Team) (agent.Session, error) {
	if spec.Program == "" {
		spec.Program = a.program()
	}
	for _, program := range []string{spec.Program, "tmux"} {
		if _, err := proc.Find(program); err != nil {
			return nil, &agent.Problem{Kind: agent.ProblemMissing, Text: err.Error()}
		}
	}
	env := environment(spec)
	h, started := &history{claude: claude.Folder(env), session: teamfiles.NewUUID()}, agent.Started{}
	if isID(spec.Resume) {
		if left, err := teamfiles.Open(h.claude, teamOf(spec.Resume)); err == nil { // left by a dead host
			left.Remove()
		}
		past := &history{claude: h.claude, session: spec.Resume}
		if seen, ok := past.past(spec.Carries); ok {
			h, started.Seen, started.Resumed = past, seen, true
		}
	}
	started.Session = h.session
	between, err := newBetween(spec.Scratch)
	if err != nil {
		return nil, err
	}
	name, prompt, mode := teamOf(h.session), "", spec.Access.Mode
	joined := time.Now().UnixMilli()
	t, err := teamfiles.Found(h.claude, projection.Config{Name: name, Description: "a session of " + spec.Member +
		" in team " + spec.Team + " of cadre", CreatedAt: joined,
		LeadAgentID: teamfiles.Lead + "@" + name, LeadSessionID: teamfiles.NewUUID(), Members: []teamfiles.Member{
			{AgentID: teamfiles.Lead + "@" + name, Name: teamfiles.Lead, AgentType: teamfiles.Lead, JoinedAt: joined,
				TmuxPaneID: "leader", Cwd: spec.Dir, Subscriptions: []string{}, BackendType: "in-process"},
			{AgentID: spec.Member + "@" + name, Name: spec.Member, AgentType: "general-purpose", Model: &spec.Model,
				Prompt: &prompt, Color: color, JoinedAt: joined, TmuxPaneID: "%0", Cwd: spec.Dir,
				Subscriptions: []string{}, BackendType: "tmux", Mode: mode}}})
	if err != nil {
		return nil, err
	}
	s := newSession(spec, t, started, h, between)
	if err := s.launch(ctx, env, commandLine(spec, name, started, between.settings())); err != nil {
		t.Remove()
		return nil, err
	}
	return s, nil
}

func (a Agent) program() string { return cmp.Or(a.Program, "claude") }

// Probe looks for the program.
func (a Agent) Probe(ctx context.Context) agent.Probe {
	if err := a.Locate(""); err != nil {
		return agent.Probe{Missing: err.Error()}
	}
	return agent.Look(ctx, a.program(), []string{"mail while it works", "permissions", "resumes",
		"a terminal for a person", "tokens"}, "not installed; install Claude Code, and log in once: claude auth login")
}

// commandLine returns the program and its arguments.
func commandLine(spec agent.Spec, team string, started agent.Started, settings string) []string {
	session := "--session-id"
	if started.Resumed {
		session = "--resume"
	}
	args := []string{spec.Program, "--agent-id", spec.Member + "@" + team, "--agent-name", spec.Member, "--team-name",
		team, "--agent-color", color, "--agent-type", "general-purpose",
		"--parent-session-id", started.Session, session, started.Session, "--settings", settings,
		"--append-system-prompt", spec.Instructions}
	switch spec.Access.Mode {
	case bypass:
		args = append(args, "--dangerously-skip-permissions")
	case "":
		args = append(args, "--permission-mode", "default")
	default:
		args = append(args, "--permission-mode", spec.Access.Mode)
	}
	if spec.Model != "" {
		args = append(args, "--model", spec.Model)
	}
	if len(spec.ToolServer) > 0 {
		servers, _ := json.Marshal(map[string]any{"mcpServers": map[string]any{agent.ToolServerName: map[string]any{
			"type": "stdio", "command": spec.ToolServer[0], "args": spec.ToolServer[1:]}}})
		args = append(args, "--mcp-config", string(servers))
	}
	args = append(args, "--disallowedTools", strings.Join(replaced, ","))
	args = append(args, "--allowedTools", strings.Join(append([]string{"mcp__" + agent.ToolServerName},
		spec.Access.Allow...), ","))
	return append(args, spec.Args...)
}

// environment returns the program's environment.
func environment(spec agent.Spec) []string {
	return append(append(os.Environ(), spec.Env...), "CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS=1", "CLAUDECODE=",
		"CLAUDE_CODE_TEAMMATE_COMMAND=", "TMUX=", "TERM=xterm-256color",
		// it would ask a person whether to continue a long session that is older
		"CLAUDE_CODE_RESUME_THRESHOLD_MINUTES=5000000")
}

// teamOf returns the name of a session's team.
func teamOf(session string) string { return "cadre-" + session[:8] }

// isID reports whether a word may be the id of a session.
func isID(s string) bool { return len(s) == 36 && strings.Trim(s, "0123456789abcdef-") == "" }

// launch opens the terminal and starts the program in it.
func (s *session) launch(ctx context.Context, env, args []string) error {
	socket, err := s.spec.Procs.Socket()
	if err != nil {
		return err
	}
	s.tmux, s.env = []string{"tmux", "-S", socket, "-f", os.DevNull, "-N"}, env
	child, err := s.spec.Procs.Start(proc.Cmd{Args: []string{"tmux", "-S", socket, "-f", os.DevNull, "-D"},
		Dir: s.spec.Dir, Env: env, Stdout: &s.words, Stderr: &s.words, Member: s.spec.Member,
		Terminal: socket})
	if err != nil {
		return &agent.Problem{Kind: agent.ProblemMissing, Text: err.Error()}
	}
	s.child = child
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		err := s.call(ctx, append([]string{"new-session", "-d", "-x", "200", "-y", "50", "-c", s.spec.Dir,
			"--"}, args...)...)
		if err == nil {
			err = s.call(ctx, "set-option", "-s", "exit-empty", "on") // the server ends with the program
			if err == nil {
				go s.run()
				return nil
			}
		}
		again := time.NewTimer(20 * time.Millisecond)
		select {
		case <-again.C:
			continue
		case <-child.Done():
			err = agent.Died("tmux", "", exitOf(child), s.words.String())
		case <-ctx.Done():
		}
		again.Stop()
		child.Stop(context.Background(), proc.Ladder{Term: time.Second})
		return fmt.Errorf("no terminal for %s: %w", s.spec.Member, err)
	}
}

func exitOf(child *proc.Child) proc.Exit {
	exit, _ := child.Wait(context.Background())
	return exit
}

// call runs a command of tmux.
func (s *session) call(ctx context.Context, args ...string) error {
	var words proc.Capture
	exit, err := s.spec.Procs.Run(ctx, proc.Cmd{Args: append(append([]string{}, s.tmux...), args...), Dir: s.spec.Dir,
		Env: s.env, Stdout: &words, Stderr: &words, Member: s.spec.Member}, proc.Ladder{})
	if err == nil && exit.Code != 0 {
		err = errors.New(strings.TrimSpace(words.String()))
	}
	return err
}

// Locate implements [agent.Locator].
func (a Agent) Locate(program string) error {
	if _, err := proc.Find("tmux"); err != nil {
		return errors.New("tmux is not installed, and claude-tmux runs in its terminals; install tmux")
	}
	return claude.Agent{Program: a.Program}.Locate(program)
}

// Remedy implements [agent.Remedier].
func (Agent) Remedy(kind agent.ProblemKind) string { return claude.Agent{}.Remedy(kind) }

// CheckLogin implements [agent.LoginChecker].
func (a Agent) CheckLogin(ctx context.Context, program, dir string, env []string) agent.Login {
	return claude.Agent{Program: a.Program}.CheckLogin(ctx, program, dir, env)
}
