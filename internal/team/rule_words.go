package team

import (
	"path"
	"slices"
	"strings"
)

// RuleFor returns the narrowest rule that allows the request. It refuses a request that no rule can
// cover.
func (s *State) RuleFor(p Permission) (string, error) {
	in, err := inputOf(p.Input)
	rule, file := p.Tool, in.file()
	switch {
	case p.Tool == "Bash" && (err != nil || strings.TrimSpace(in.Command) == ""):
		return "", refuse(Invalid, "the request names no command, so no rule can cover it; it can be allowed once")
	case p.Tool == "Bash":
		rule = "Bash(" + strings.TrimSpace(in.Command) + ")"
	case p.Tool == "WebFetch" && hostOf(in.URL) != "":
		rule = "WebFetch(domain:" + hostOf(in.URL) + ")"
	case file != "":
		rule = p.Tool + "(" + pathPattern(file, s.team.Dir) + ")"
	}
	if CheckRule(rule) != nil || !ruleAllows(rule, p.Tool, p.Input, s.team.Dir) {
		return "", refuse(Invalid, "no rule can cover this request: it has several lines, is very long, or asks for "+
			"more than its tool; it can be allowed once")
	}
	return rule, nil
}

// AllowedBy reports whether the rule covers the request. dir is the team's directory.
func (p *Permission) AllowedBy(rule, dir string) bool { return ruleAllows(rule, p.Tool, p.Input, dir) }

// pathPattern returns the pattern that stands for exactly this file.
func pathPattern(file, dir string) string {
	if !path.IsAbs(file) {
		file = path.Join(dir, file)
	}
	file = path.Clean(file)
	below, inside := strings.CutPrefix(file, strings.TrimSuffix(dir, "/")+"/")
	var b strings.Builder
	for _, r := range below {
		if strings.ContainsRune(`*?[\`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	if inside {
		return b.String()
	}
	return "/" + b.String()
}

// RuleMeaning says what a rule allows, for the person who is about to add it.
func RuleMeaning(rule string) string {
	tool, pattern, patterned := splitRule(rule)
	whole := !patterned || pattern == "*"
	server, one, _ := strings.Cut(strings.TrimPrefix(tool, "mcp__"), "__")
	switch {
	case strings.HasPrefix(tool, "mcp__") && (one == "" || one == "*"):
		return "every tool of the server " + server
	case strings.HasPrefix(tool, "mcp__"):
		return "the tool " + one + " of the server " + server + ", with any input"
	case tool == "Bash" && whole:
		return "any command"
	case tool == "Bash" && strings.HasSuffix(pattern, ":*"):
		return strings.TrimSuffix(pattern, ":*") + " with any words after it, as a single command"
	case tool == "Bash" && strings.Contains(pattern, "*"):
		return "single commands of the form " + pattern + ", where * stands for anything"
	case tool == "Bash":
		return "exactly the command " + pattern
	case whole && slices.Contains(editors, tool):
		return "changes to any file"
	case whole:
		return "any use of " + tool
	case strings.HasPrefix(pattern, "domain:"):
		return "any address at " + strings.TrimPrefix(pattern, "domain:")
	}
	place := pattern + " in the team's directory"
	if strings.HasPrefix(pattern, "//") {
		place = pattern[1:]
	}
	if slices.Contains(editors, tool) {
		return "changes to " + place
	}
	return tool + " of " + place
}

// otherTools are tools of agents, by Claude Code's names, that are neither the team's nor read or
// change files.
var otherTools = []string{"Bash", "BashOutput", "KillShell", "PowerShell", "Monitor", "LSP", "Task",
	"TaskOutput", "TaskStop",
	"Agent", "SlashCommand", "AskUserQuestion", "EnterPlanMode", "EnterWorktree", "ExitWorktree", "Workflow"}

// UnknownTool returns the tool of a permission rule that no agent is known to have, and the known
// tools. It returns "" for the tools of an MCP server, and for what is not a rule.
func UnknownTool(rule string) (tool string, known []string) {
	tool, _, _ = splitRule(rule)
	known = slices.Concat(otherTools, editors, readers, TeamTools)
	if CheckRule(rule) != nil || strings.HasPrefix(tool, "mcp__") || slices.Contains(known, tool) {
		return "", nil
	}
	return tool, known
}

// Unbounded says why a rule allows more than a person can foresee; "" for one that does not. Such a
// rule is added only when the user confirms it. It is "" for what is not a rule, too. dir is the
// team's directory.
func Unbounded(rule, dir string) string {
	if CheckRule(rule) != nil {
		return ""
	}
	tool, pattern, patterned := splitRule(rule)
	whole := !patterned || pattern == "*"
	server, one, _ := strings.Cut(strings.TrimPrefix(tool, "mcp__"), "__")
	switch {
	case strings.HasPrefix(tool, "mcp__") && (one == "" || one == "*"):
		return "it allows every tool of the server " + server + ", also those that the server gets later"
	case strings.HasPrefix(tool, "mcp__"):
		return ""
	case tool == "Bash" && whole:
		return "it allows any command"
	case tool == "Bash":
		return unboundedCommand(pattern)
	case whole && slices.Contains(editors, tool):
		return "it allows changes to any file of this machine"
	case whole && slices.Contains([]string{"Read", "Glob", "Grep", "LS", "NotebookRead"}, tool):
		return "it allows reading any file of this machine, keys and passwords too"
	case whole && tool == "WebFetch":
		return "it allows any address, and so lets anything be sent anywhere"
	case whole || strings.HasPrefix(pattern, "domain:"):
		return ""
	case strings.Contains(pattern, "*") && !within(pattern, dir):
		return "it reaches outside of the team's directory"
	}
	return ""
}

// within reports whether a pattern of a path stays in the directory.
func within(pattern, dir string) bool {
	if strings.HasPrefix(pattern, "//") {
		pattern = pattern[1:]
	} else {
		pattern = path.Join(dir, pattern)
	}
	fixed, _, _ := strings.Cut(path.Clean(pattern), "*")
	return strings.HasPrefix(fixed, strings.TrimSuffix(dir, "/")+"/")
}

// unboundedCommand is Unbounded for the pattern of a shell command.
func unboundedCommand(pattern string) string {
	prefix, open := strings.CutSuffix(pattern, ":*")
	if !open {
		if prefix, _, open = strings.Cut(pattern, "*"); !open {
			return "" // exactly this command
		}
		if !strings.ContainsRune(strings.TrimLeft(prefix, " "), ' ') {
			return "it allows any program whose name begins with \"" + prefix + "\""
		}
	}
	words := strings.Fields(prefix)
	for len(words) > 0 && strings.Contains(words[0], "=") { // variables before the program
		words = words[1:]
	}
	if len(words) == 0 {
		return "it allows any command"
	}
	program, named := path.Base(words[0]), false
	for _, w := range words[1:] {
		named = named || !strings.HasPrefix(w, "-")
	}
	plainly := strings.TrimRight(program, "0123456789.")
	switch plainly {
	case "sudo", "doas", "su", "env", "xargs", "nohup", "timeout", "nice", "time", "command", "exec", "eval",
		"ssh", "watch",
		"find", "parallel", "setsid", "strace":
		return program + " runs any other program"
	case "sh", "bash", "zsh", "dash", "ksh", "fish", "python", "node", "deno", "bun", "perl", "ruby", "php",
		"lua", "awk",
		"gawk", "osascript", "pwsh", "npx", "bunx", "uvx", "pipx":
		if !named {
			return program + " runs any code"
		}
	case "git", "go", "npm", "pnpm", "yarn", "cargo", "docker", "podman", "kubectl", "gh", "pip", "uv",
		"brew", "systemctl":
		if !named {
			return "it allows every command of " + program + ", also those that run other programs or change what " +
				"others see"
		}
		if program == "git" && slices.Contains([]string{"push", "reset", "clean", "config", "rebase", "filter-branch"},
			words[len(words)-1]) {
			return "git " + words[len(words)-1] + " with any words after it can lose work or change what others see"
		}
	case "rm", "rmdir", "dd", "shred", "truncate", "mv", "chmod", "chown", "kill", "killall", "pkill", "mkfs":
		return program + " with any words after it can destroy work"
	case "curl", "wget", "nc", "scp", "rsync", "sftp":
		return program + " with any words after it can send anything anywhere"
	}
	return ""
}
