package acp

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"cadre/internal/agent"
	"cadre/internal/team"
)

// decoder turns what an agent says of its session into updates. It knows what the stream said so
// far and nothing else, so that a recording gives the same updates every time.
type decoder struct {
	facts   facts
	tools   map[sdk.ToolCallId]*tool
	text    strings.Builder // that is being said
	message string          // the agent's own id of that, where it has one
	last    string          // the last whole text of the turn
	used    int             // tokens that the context held at its fullest
	cost    int64           // of the session, as far as it was said, in millionths of a US dollar
}

// tool is one that the agent uses.
type tool struct {
	Kind  sdk.ToolKind   `json:"kind"`
	Title string         `json:"title"`           // the first that it had
	Input map[string]any `json:"input,omitempty"` // as the agent gave it
	Files []string       `json:"files,omitempty"` // that it is about, by the agent's word
	Said  bool           `json:"said"`
}

func newDecoder(f facts) *decoder { return &decoder{facts: f, tools: map[sdk.ToolCallId]*tool{}} }

// begin begins a turn.
func (d *decoder) begin() {
	d.last, d.message = "", ""
	d.text.Reset()
	clear(d.tools)
}

// busy reports whether the agent uses a tool.
func (d *decoder) busy() bool { return len(d.tools) > 0 }

// decode takes one update.
func (d *decoder) decode(u sdk.SessionUpdate) (said []agent.Update, shows sign) {
	switch {
	case u.AgentMessageChunk != nil && u.AgentMessageChunk.Content.Text != nil:
		text := u.AgentMessageChunk.Content.Text.Text
		if noise := d.facts.noise; noise != "" && strings.HasPrefix(text, noise) {
			return nil, noSign
		}
		if message := value(u.AgentMessageChunk.MessageId); message != d.message {
			d.message, said = message, d.flush()
		}
		d.text.WriteString(text)
		return said, spoke
	case u.AgentThoughtChunk != nil:
		return nil, spoke
	case u.ToolCall != nil:
		t := u.ToolCall
		return append(d.flush(), d.tool(t.ToolCallId, tool{Kind: t.Kind, Title: t.Title, Input: input(t.RawInput),
			Files: filesOf(t.Locations, t.Content)}, t.Status, contentOf(t.Content, t.RawOutput))...), acted
	case u.ToolCallUpdate != nil:
		t := u.ToolCallUpdate
		return d.tool(t.ToolCallId, tool{Kind: value(t.Kind), Title: value(t.Title), Input: input(t.RawInput),
			Files: filesOf(t.Locations, t.Content)}, value(t.Status), contentOf(t.Content, t.RawOutput)), noSign
	case u.UsageUpdate != nil:
		return d.usage(*u.UsageUpdate), noSign
	}
	return nil, noSign
}

// usage is what the agent says of its context and of the cost of its session. A context that is
// half as full as it was has been shortened; an empty one belongs to an answer that failed.
func (d *decoder) usage(u sdk.SessionUsageUpdate) (said []agent.Update) {
	var now agent.Used
	if u.Cost != nil && u.Cost.Currency == "USD" {
		if cost := int64(math.Round(u.Cost.Amount * 1e6)); cost > d.cost {
			now.Usage.CostMicroUSD, d.cost = cost-d.cost, cost
		}
	}
	if u.Used > 0 && u.Size > 0 {
		if u.Used < d.used/2 {
			said = append(said, agent.Compacted{})
			d.used = 0
		}
		d.used = max(d.used, u.Used)
		now.Context = int(min(100, int64(u.Used)*100/int64(u.Size)))
	}
	if u.Used <= 0 && now.Usage.CostMicroUSD == 0 {
		return nil
	}
	return append(said, now)
}

// flush ends the text that was being said.
func (d *decoder) flush() []agent.Update {
	text := strings.TrimSpace(d.text.String())
	d.text.Reset()
	if text == "" {
		return nil
	}
	d.last = text
	return []agent.Update{agent.Text{Text: text}}
}

// tool takes what an update says of a tool. Some agents tell of a tool before they have its input.
func (d *decoder) tool(id sdk.ToolCallId, told tool, status sdk.ToolCallStatus, output string) (said []agent.Update) {
	t := d.tools[id]
	if t == nil {
		t = &tool{}
		d.tools[id] = t
	}
	t.Kind, t.Title = cmp.Or(told.Kind, t.Kind), cmp.Or(t.Title, told.Title)
	ends := status == sdk.ToolCallStatusCompleted || status == sdk.ToolCallStatusFailed
	if !t.Said {
		t.learn(told)
		if ends || t.whole(status) && status != "" {
			t.Said = true
			name, text := d.name(*t)
			said = append(said, agent.ToolStarted{ID: string(id), Tool: name, Input: text})
		}
	}
	if ends {
		delete(d.tools, id)
		said = append(said, agent.ToolFinished{ID: string(id), Failed: status == sdk.ToolCallStatusFailed,
			Output: output})
	}
	return said
}

// learn takes what is told of the tool's input, as far as that is told.
func (t *tool) learn(told tool) {
	if len(told.Input) > 0 {
		t.Input = told.Input
	}
	if len(told.Files) > 0 {
		t.Files = told.Files
	}
}

// whole reports whether what is known of the tool, in that state, is all that there is.
func (t *tool) whole(status sdk.ToolCallStatus) bool {
	if status == sdk.ToolCallStatusPending && len(t.Input)+len(t.Files) == 0 {
		return false
	}
	if t.Kind == sdk.ToolKindExecute {
		return t.Input["command"] != nil || t.Input["cmd"] != nil || !strings.Contains(" bash shell ", " "+t.Title+" ")
	}
	return t.Kind != "" || len(t.Input) > 0
}

// permission is what the agent asks leave for. Aside it asks about something else than the tool
// that it uses, such as a folder that is not the project's.
func (d *decoder) permission(r sdk.RequestPermissionRequest) (name, text string, aside bool) {
	about := tool{Kind: value(r.ToolCall.Kind), Title: value(r.ToolCall.Title)}
	if t := d.tools[r.ToolCall.ToolCallId]; t != nil {
		if (about.Kind == "" || about.Kind == sdk.ToolKindOther) && t.Kind != "" {
			aside = about.Title != t.Title
			about.Kind, about.Title = t.Kind, t.Title
		}
		about.Title = cmp.Or(about.Title, t.Title)
		about.learn(*t)
	}
	about.learn(tool{Input: input(r.ToolCall.RawInput), Files: filesOf(r.ToolCall.Locations, r.ToolCall.Content)})
	name, text = d.name(about)
	return name, text, aside
}

// input is what the agent gave to a tool.
func input(raw any) map[string]any {
	given, _ := raw.(map[string]any)
	return given
}

// filesOf are the files that a tool is about, in order.
func filesOf(where []sdk.ToolCallLocation, content []sdk.ToolCallContent) (files []string) {
	for _, l := range where {
		files = append(files, l.Path)
	}
	for _, c := range content {
		if c.Diff != nil {
			files = append(files, c.Diff.Path)
		}
	}
	slices.Sort(files)
	return slices.DeleteFunc(slices.Compact(files), func(file string) bool { return file == "" })
}

// kinds are the names that Claude Code has for kinds of tools.
var kinds = map[sdk.ToolKind]string{
	sdk.ToolKindExecute: "Bash", sdk.ToolKindEdit: "Edit", sdk.ToolKindDelete: "Edit", sdk.ToolKindMove: "Edit",
	sdk.ToolKindRead: "Read", sdk.ToolKindSearch: "Grep",
	sdk.ToolKindFetch: "WebFetch", sdk.ToolKindThink: "Task",
}

// name is a tool by the name that Claude Code has for its kind, or that of an MCP tool, and its
// input.
func (d *decoder) name(t tool) (string, string) {
	in := map[string]any{}
	maps.Copy(in, t.Input)
	name, title := kinds[t.Kind], t.Title
	switch name {
	case "Bash":
		rename(in, "command", "cmd")
		rename(in, "cwd", "workdir", "dir_path", "directory")
		if in["command"] == nil {
			in["command"] = title
		}
	case "Edit", "Read":
		t.nameFile(in)
	case "", "Task":
		// A title is the agent's own name of the tool only where the kind says nothing: that of a
		// command is what the model wrote.
		if known := d.facts.names[title]; known != "" {
			name = known
		} else if server, tool := d.facts.mcp(title); name == "" && server != "" {
			if name = "mcp__" + server + "__" + tool; server == agent.ToolServerName &&
				slices.Contains(team.TeamTools, tool) {
				name = tool
			}
		} else if name == "" {
			if name = title; slices.Contains(team.TeamTools, name) || slices.Contains(looks, name) {
				name = "tool " + title // whatever it is, it is not that
			}
		}
	}
	text, err := agent.JSON(in)
	if err != nil {
		return name, "{}"
	}
	return name, text
}

// nameFile puts the file that the tool is about where Claude Code's tools have theirs. A tool that
// is about several is about none of them alone: what is allowed for one file is not allowed for
// another beside it.
func (t *tool) nameFile(in map[string]any) {
	rename(in, "file_path", "filePath", "filepath", "path", "absolute_path")
	listed, _ := in["files"].([]any)
	several := len(t.Files) > 1 || len(listed) > 1 || t.Kind == sdk.ToolKindMove
	if len(t.Files) == 1 && in["file_path"] == nil {
		in["file_path"] = t.Files[0]
	} else if named, ok := in["file_path"].(string); ok && len(t.Files) == 1 {
		several = several || !same(named, t.Files[0])
	}
	if several {
		delete(in, "file_path")
		if len(listed) == 0 && len(t.Files) > 0 {
			in["files"] = t.Files
		}
	}
}

// same reports whether two paths may be of one file, of which one is told from the project's folder
// on.
func same(a, b string) bool {
	return a == b || strings.HasSuffix(a, "/"+b) || strings.HasSuffix(b, "/"+a)
}

func rename(in map[string]any, to string, from ...string) {
	for _, key := range from {
		if v, ok := in[key]; ok && in[to] == nil {
			in[to] = v
			delete(in, key)
		}
	}
}

// looks are the tools that change nothing: what the gate lets pass of them is asked of nobody.
var looks = []string{"Read", "Grep", "Glob", "LS", "TodoRead", "TodoWrite", "Skill"}

// contentOf is the text of a tool's result.
func contentOf(content []sdk.ToolCallContent, output any) string {
	var parts []string
	for _, c := range content {
		if c.Content != nil && c.Content.Content.Text != nil {
			parts = append(parts, c.Content.Content.Text.Text)
		}
	}
	if len(parts) == 0 && output != nil {
		switch o := output.(type) {
		case string:
			parts = append(parts, o)
		default:
			if text, err := agent.JSON(o); err == nil {
				parts = append(parts, text)
			}
		}
	}
	return strings.Join(parts, "\n")
}

// replayed is what an update of a session that is loaded says of what was told to the agent.
func replayed(u sdk.SessionUpdate) string {
	switch {
	case u.UserMessageChunk != nil && u.UserMessageChunk.Content.Text != nil:
		return u.UserMessageChunk.Content.Text.Text
	case u.ToolCall != nil:
		return contentOf(u.ToolCall.Content, u.ToolCall.RawOutput)
	case u.ToolCallUpdate != nil:
		return contentOf(u.ToolCallUpdate.Content, u.ToolCallUpdate.RawOutput)
	}
	return ""
}

// usageOf is what the answer to a prompt says of its cost.
func usageOf(r sdk.PromptResponse) (team.Usage, bool) {
	if u := r.Usage; u != nil {
		return team.Usage{InputTokens: int64(u.InputTokens), OutputTokens: int64(u.OutputTokens),
				CacheReadTokens: int64(value(u.CachedReadTokens)), CacheWriteTokens: int64(value(u.CachedWriteTokens))},
			true
	}
	var meta struct {
		Quota struct {
			Count struct {
				Input  int64 `json:"input_tokens"`
				Output int64 `json:"output_tokens"`
			} `json:"token_count"`
		} `json:"quota"`
	}
	text, err := json.Marshal(r.Meta)
	if err != nil || json.Unmarshal(text, &meta) != nil || meta.Quota.Count.Input+meta.Quota.Count.Output == 0 {
		return team.Usage{}, false
	}
	return team.Usage{InputTokens: meta.Quota.Count.Input, OutputTokens: meta.Quota.Count.Output}, true
}

func value[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
