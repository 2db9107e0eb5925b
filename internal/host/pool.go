package host

import (
	"cmp"
	"os"
	"slices"
	"strings"

	"cadre/internal/agent"
	"cadre/internal/team"
)

// account lists the variables that say where the sessions of an agent send their requests, and with
// whose credentials. The first one that is set counts, as in the agent.
type account struct{ endpoint, credentials, homes []string }

var accounts = map[string]account{
	team.Claude: {[]string{"ANTHROPIC_BASE_URL"}, []string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX",
		"ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"}, []string{"CLAUDE_CONFIG_DIR"}},
	team.Codex: {[]string{"OPENAI_BASE_URL"}, []string{"CODEX_API_KEY", "OPENAI_API_KEY"}, []string{"CODEX_HOME"}},
	team.Gemini: {[]string{"GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL"}, []string{"GEMINI_API_KEY",
		"GOOGLE_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"}, []string{"GEMINI_CLI_HOME"}},
	team.OpenCode: {nil, []string{"OPENCODE_CONFIG_CONTENT"}, []string{"XDG_DATA_HOME"}},
}

// pool returns the pool of the member's sessions on this host: what the provider of its model
// counts together. That is the agent, the endpoint, the source of the credentials and the model.
// The label has no secret: at most the name of a variable, and whose it is where members set their
// own. It is "" for a member without a model.
func (h *Host) pool(m *team.Member, all []team.Member) string {
	if m.Agent == team.Shell || m.Agent == team.External {
		return ""
	}
	name := m.Agent
	if name == team.ClaudeTmux { // the same program with the same account
		name = team.Claude
	}
	parts := []string{name}
	if m.Program != "" {
		parts = append(parts, "program "+m.Program)
	}
	model := m.Model
	if model == "" && m.Role != "" && h.Role != nil {
		if role, ok, err := h.Role(h.Replica.Team().Dir, m.Role); err == nil && ok && role.Agent == m.Agent {
			model = role.Model
		}
	}
	if model != "" {
		parts = append(parts, "model "+model)
	}
	a, env := accounts[name], slices.Concat(os.Environ(), h.Env, m.Env)
	if at := firstSet(env, a.endpoint); at != "" {
		parts = append(parts, "at "+hostOf(agent.Variable(env, at)))
	}
	source := "login"
	if key := firstSet(env, a.credentials); key != "" {
		source = key + ownerOf(m, all, key)
	}
	for _, home := range append(slices.Clone(a.homes), "HOME") { // the login is in a file below it
		if source == "login" {
			source += ownerOf(m, all, home)
		}
	}
	label := strings.Join(append(parts, source), ", ")
	return strings.ToValidUTF8(label[:min(len(label), team.MaxSubject)], "")
}

// firstSet returns the first of the variables that is set; "" for none.
func firstSet(env, names []string) string {
	for _, name := range names {
		if agent.Variable(env, name) != "" {
			return name
		}
	}
	return ""
}

// hostOf returns the host of an address, without what may be a secret in it.
func hostOf(address string) string {
	_, rest, found := strings.Cut(address, "://")
	if !found {
		return "an address of its own"
	}
	if end := strings.IndexAny(rest, "/?#\\"); end >= 0 {
		rest = rest[:end]
	}
	return rest[strings.LastIndexByte(rest, '@')+1:]
}

// ownerOf tells apart members that set the variable to values of their own: it names the first
// member with the same value. A value is never part of it.
func ownerOf(m *team.Member, all []team.Member, variable string) string {
	own := agent.Variable(m.Env, variable)
	if own == "" || own == os.Getenv(variable) {
		return ""
	}
	first := m.Name
	if i := slices.IndexFunc(all, func(o team.Member) bool { return agent.Variable(o.Env, variable) == own }); i >= 0 {
		first = all[i].Name
	}
	return " of " + cmp.Or(first, m.Name)
}
