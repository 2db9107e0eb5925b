package team

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"time"
)

// readers are the tools, by Claude Code's names, that change nothing. A member may use them while
// its plan waits for approval.
var readers = []string{"Read", "Glob", "Grep", "LS", "NotebookRead", "WebFetch", "WebSearch", "TodoRead", "TodoWrite",
	"ToolSearch", "ExitPlanMode", "Skill",
	"ListMcpResourcesTool", "ReadMcpResourceTool"}

// TeamTools are the tools that the team gives its members.
var TeamTools = []string{"TaskCreate", "TaskUpdate", "TaskList", "TaskGet", "TaskClaim", "PathClaim", "PathRelease",
	"SendMessage", "Broadcast", "NoteWrite", "NoteRead", "NoteList", "ReadMessages", "SpawnTeammate",
	"ShutdownTeammate", "RespondToShutdown", "SubmitPlan", "RespondToPlan", "RespondToPermission", "ResendMessages",
	"TeamStatus", "CleanupTeam"}

// editors are the tools that only change files. The mode acceptEdits allows them.
var editors = []string{"Edit", "Write", "MultiEdit", "NotebookEdit"}

// Boundless reports whether an agent cannot be held to the team's rules, because not even its
// driver knows what the agent would do without asking. Features that need those rules, approval of
// plans and delegate mode, are refused for it.
func Boundless(agent string) bool { return strings.HasPrefix(agent, ACP) || agent == ClaudeTmux }

// Gate says whether the team's rules forbid the member a tool, even if it was allowed: delegate
// mode, or a plan that is not approved. Tools have Claude Code's names, and the team's tools their
// own. reads says that this call was found to read only, inside the project or the member's
// worktree.
func (s *State) Gate(member, tool string, reads bool) error {
	if err := s.AllowsTool(member, tool); err != nil {
		return err
	}
	if reads || s.Writes(member) || slices.Contains(readers, tool) || slices.Contains(TeamTools, tool) {
		return nil
	}
	m := s.member(member)
	if m == nil {
		return s.unknown(member)
	}
	if m.Plan.State == "submitted" {
		return refuse(Denied, "%s may change nothing before its plan is approved, and %s has not answered yet: end "+
			"the turn, and the answer comes as a message", member, s.team.Lead)
	}
	return refuse(Denied, "%s may change nothing before its plan is approved, and %s could: look around with tools "+
		"that only read, then submit a plan with SubmitPlan", member, brief(tool))
}

// Gated reports whether the team's rules restrict the member at present, whatever its permission
// mode. Then there are tools that [State.Gate] forbids it.
func (s *State) Gated(member string) bool {
	return s.team.Delegate && member == s.team.Lead || !s.Writes(member)
}

// ruling answers a request by the rules alone. Its outcome is "" where no rule answers.
func (d *decision) ruling(m *Member, tool, input string, reads bool) (outcome, reason string) {
	if err := d.Gate(m.Name, tool, reads); err != nil {
		return "denied", err.Error()
	}
	p, added := &d.team.Permissions, d.addedRule(m.Name, tool, input)
	switch {
	case slices.Contains(TeamTools, tool): // an agent that plans asks about these too
		return "allowed", "it is the team's own"
	case m.PermissionMode == "bypassPermissions":
		return "allowed", "permissions are skipped"
	case m.PermissionMode == "acceptEdits" && slices.Contains(editors, tool):
		return "allowed", "edits are accepted"
	case slices.ContainsFunc(p.Allow, func(rule string) bool { return ruleAllows(rule, tool, input, d.team.Dir) }):
		return "allowed", "a rule of the team allows it"
	case added != "":
		return "allowed", ruleReason(added)
	case reads:
		return "allowed", "it only reads"
	case m.PermissionMode == "dontAsk":
		return "denied", m.Name + " is in mode dontAsk"
	case p.Policy == "allow":
		return "allowed", "the policy of the team"
	case p.Policy == "deny":
		if m.Name == d.team.Lead {
			return "denied",
				"the policy of the team is to deny; if the work cannot be done without it, say so in your report"
		}
		return "denied", "the policy of the team is to deny; if the work cannot be done without it, tell " +
			d.team.Lead + " with a message"
	}
	return "", ""
}

// AsksUser reports whether the user answers a member's request that no rule answers. The lead
// answers it where an agent leads and the policy says so.
func (s *State) AsksUser(member string) bool {
	return member == s.team.Lead || s.lead().Agent == External || s.team.Permissions.Policy != "lead"
}

// Patience returns how long a request waits for its answer.
func (p *Permissions) Patience() time.Duration {
	if p.Timeout > 0 {
		return p.Timeout
	}
	return DefaultPatience
}

// check refuses invalid permissions.
func (p *Permissions) check() error {
	if p.Policy != "" {
		if err := oneOf("permission policy", p.Policy, PermissionPolicies); err != nil {
			return err
		}
	}
	if p.Timeout < 0 {
		return refuse(Invalid, "a permission request cannot wait for a negative time")
	}
	for _, rule := range p.Allow {
		if err := limit(text{"permission rule", rule, MaxSubject}); err != nil {
			return err
		}
		if tool, _, patterned := splitRule(rule); tool == "" || strings.ContainsAny(tool, " \t\n*?") &&
			!strings.HasPrefix(tool, "mcp__") || strings.Contains(rule, "(") && !patterned {
			return refuse(Invalid, "%q is not a permission rule; write it like Edit, Bash(go test:*), Read(docs/**) "+
				"or mcp__server__tool", brief(rule))
		}
	}
	return nil
}

// splitRule splits Tool(pattern) into its parts.
func splitRule(rule string) (tool, pattern string, patterned bool) {
	tool, rest, found := strings.Cut(rule, "(")
	if !found {
		return rule, "", false
	}
	pattern, patterned = strings.CutSuffix(rest, ")")
	return tool, pattern, patterned
}

// ruleAllows reports whether the rule, in Claude Code's syntax, allows the tool with that input.
func ruleAllows(rule, tool, input, dir string) bool {
	name, pattern, patterned := splitRule(rule)
	if server, isServer := strings.CutPrefix(name, "mcp__"); isServer && !patterned {
		server = strings.TrimSuffix(server, "__*")
		return name == tool || !strings.Contains(server, "__") && strings.HasPrefix(tool, "mcp__"+server+"__")
	}
	if name != tool && !(name == "Edit" && slices.Contains(editors, tool)) {
		return false
	}
	if !patterned || pattern == "*" {
		return true
	}
	given, err := inputOf(input)
	if err != nil {
		return false
	}
	if tool == "Bash" {
		return !given.asksMore() && commandMatches(pattern, given.Command)
	}
	if host, ok := strings.CutPrefix(pattern, "domain:"); ok {
		return tool == "WebFetch" && hostOf(given.URL) == host
	}
	file := given.file()
	return file != "" && pathMatches(pattern, file, dir)
}

// toolInput is what the rules look at in the input of a tool.
type toolInput struct {
	Command  string          `json:"command"`
	FilePath string          `json:"file_path"`
	Notebook string          `json:"notebook_path"`
	Path     string          `json:"path"`
	URL      string          `json:"url"`
	More     json.RawMessage `json:"additionalPermissions"`     // rights beyond a sandbox
	Kind     string          `json:"kind"`                      // of a command that is input for a running program
	Free     bool            `json:"dangerouslyDisableSandbox"` // of a command that runs outside the sandbox
}

func inputOf(input string) (in toolInput, err error) {
	return in, json.Unmarshal([]byte(input), &in)
}

// WrittenFiles returns the files that a tool writes, as its input names them; none for a tool that
// changes no file, or does not say which.
func WrittenFiles(tool, input string) (files []string) {
	if !slices.Contains(editors, tool) {
		return nil
	}
	var in struct {
		toolInput
		Files   []string `json:"files"`
		Changes []struct {
			Path string `json:"path"`
			Kind struct {
				To string `json:"move_path"`
			} `json:"kind"`
		} `json:"changes"`
	}
	_ = json.Unmarshal([]byte(input), &in) // other shapes name no file
	add := func(file string) {
		if file != "" && !slices.Contains(files, file) {
			files = append(files, file)
		}
	}
	add(in.file())
	for _, file := range in.Files {
		add(file)
	}
	for _, c := range in.Changes {
		add(c.Path)
		add(c.Kind.To)
	}
	return files
}

// InputWords returns what a person reads first of a tool's input, in one line: the command, the
// file or the URL. It returns the whole input of other tools, and of a request that asks for more
// than the command.
func InputWords(tool, input string) string {
	in, err := inputOf(input)
	words := ""
	switch {
	case err != nil || in.asksMore():
	case in.Command != "" && !strings.HasPrefix(tool, "mcp__"): // that server may take more than a command
		words = in.Command
	case tool == "Read" || slices.Contains(editors, tool):
		words = in.file()
	case tool == "WebFetch":
		words = in.URL
	}
	return strings.ReplaceAll(cmp.Or(strings.TrimSpace(words), input), "\n", "↵")
}

func (in *toolInput) file() string { return cmp.Or(in.FilePath, in.Notebook, in.Path) }

// asksMore reports whether the request asks for more than that the command runs.
func (in *toolInput) asksMore() bool { return len(in.More) > 0 || in.Kind != "" || in.Free }

// commandMatches reports whether the pattern allows a shell command. prefix:* allows the words of
// prefix and any words after them. Any other pattern is the command itself, where * stands for
// anything. A pattern with a * never allows a line of several commands.
func commandMatches(pattern, command string) bool {
	command = strings.TrimSpace(command)
	if command == pattern {
		return true
	}
	if command == "" || strings.ContainsAny(command, ";&|`$<>()\n\r\\") {
		return false
	}
	if prefix, ok := strings.CutSuffix(pattern, ":*"); ok {
		return command == prefix || strings.HasPrefix(command, prefix+" ")
	}
	parts := strings.Split(pattern, "*")
	if len(parts) == 1 || !strings.HasPrefix(command, parts[0]) {
		return false
	}
	command = command[len(parts[0]):]
	for _, part := range parts[1 : len(parts)-1] {
		i := strings.Index(command, part)
		if i < 0 {
			return false
		}
		command = command[i+len(part):]
	}
	return strings.HasSuffix(command, parts[len(parts)-1])
}

// pathMatches reports whether the pattern allows the file. The pattern is a path from the team's
// directory, or from the root if it begins with //. In it ** stands for any folders.
func pathMatches(pattern, file, dir string) bool {
	if !path.IsAbs(file) {
		file = path.Join(dir, file)
	}
	file = path.Clean(file)
	switch {
	case strings.HasPrefix(pattern, "//"):
		pattern = pattern[1:]
	default:
		pattern = path.Join(dir, pattern)
	}
	return segmentsMatch(strings.Split(path.Clean(pattern), "/"), strings.Split(file, "/"))
}

func segmentsMatch(pattern, file []string) bool {
	for i, p := range pattern {
		if p == "**" {
			for skip := i; skip <= len(file); skip++ {
				if segmentsMatch(pattern[i+1:], file[skip:]) {
					return true
				}
			}
			return false
		}
		if i >= len(file) {
			return false
		}
		if ok, err := path.Match(p, file[i]); err != nil || !ok {
			return false
		}
	}
	return len(pattern) == len(file)
}

func hostOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	end := strings.IndexAny(rest, "/?#:@")
	if end >= 0 {
		if rest[end] == '@' { // a user name before the host could pass for the host
			return ""
		}
		rest = rest[:end]
	}
	return rest
}
