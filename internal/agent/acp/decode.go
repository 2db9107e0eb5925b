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

// decoder turns the agent's updates into ours. It depends only on the stream so far, so a recording
// gives the same updates every time.
type decoder struct {
	facts   facts
	tools   map[sdk.ToolCallId]*tool
	text    strings.Builder // text in progress
	message string          // the agent's own id of that text, if it has one
	last    string          // the last whole text of the turn
	used    int             // highest number of tokens in the context
	cost    int64           // reported cost of the session, in millionths of a US dollar
}

// tool is a tool in use.
type tool struct {
	Kind  sdk.ToolKind   `json:"kind"`
	Title string         `json:"title"`           // its first title
	Input map[string]any `json:"input,omitempty"` // as the agent gave it
	Files []string       `json:"files,omitempty"` // the files that it is about, as reported by the agent
	Said  bool           `json:"said"`
	// how many bytes of its output were reported while it runs, and the last ones of them
	Shown int    `json:"shown,omitempty"`
	Last  string `json:"last,omitempty"`
}

func newDecoder(f facts) *decoder { return &decoder{facts: f, tools: map[sdk.ToolCallId]*tool{}} }

// begin starts a turn.
func (d *decoder) begin() {
	d.last, d.message = "", ""
	d.text.Reset()
	clear(d.tools)
}

// busy reports whether the agent is using a tool.
func (d *decoder) busy() bool { return len(d.tools) > 0 }

// decode handles one update.
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
		return append(said, agent.TextPart{Text: text}), spoke
	case u.AgentThoughtChunk != nil:
		return nil, spoke
	case u.ToolCall != nil:
		t := u.ToolCall
		return append(d.flush(), d.tool(t.ToolCallId, tool{Kind: t.Kind, Title: t.Title, Input: input(t.RawInput),
			Files: filesOf(t.Locations, t.Content)}, t.Status, contentOf(t.Content, t.RawOutput))...), acted
	case u.ToolCallUpdate != nil:
		t := u.ToolCallUpdate
		said = d.tool(t.ToolCallId, tool{Kind: value(t.Kind), Title: value(t.Title), Input: input(t.RawInput),
			Files: filesOf(t.Locations, t.Content)}, value(t.Status), contentOf(t.Content, t.RawOutput))
		return append(said, d.running(t.ToolCallId, contentOf(t.Content, nil))...), noSign
	case u.UsageUpdate != nil:
		return d.usage(*u.UsageUpdate), noSign
	}
	return nil, noSign
}

// usage handles a report of the context and of the session's cost. A context that is half as full
// as before has been shortened; an empty one belongs to an answer that failed.
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

// flush ends the text in progress.
func (d *decoder) flush() []agent.Update {
	text := strings.TrimSpace(d.text.String())
	d.text.Reset()
	if text == "" {
		return nil
	}
	d.last = text
	return []agent.Update{agent.Text{Text: text}}
}

// tool handles an update of a tool. Some agents report a tool before they have its input.
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

// running handles the output of a command that is running. Each update has the output so far, or
// the end of it.
func (d *decoder) running(id sdk.ToolCallId, output string) []agent.Update {
	t := d.tools[id]
	if t == nil || !t.Said || t.Kind != sdk.ToolKindExecute {
		return nil
	}
	more := output
	if len(output) >= t.Shown && strings.HasSuffix(output[:t.Shown], t.Last) {
		more = output[t.Shown:]
	} else if at := strings.LastIndex(output, t.Last); at >= 0 {
		more = output[at+len(t.Last):]
	}
	if more == "" {
		return nil
	}
	t.Shown, t.Last = len(output), output[max(0, len(output)-mostLast):]
	return []agent.Update{agent.ToolOutput{ID: string(id), Text: more}}
}

// mostLast is how many bytes of a reported output are kept, to find it again in the next update.
const mostLast = 256

// learn adds what an update says about the tool's input.
func (t *tool) learn(told tool) {
	if len(told.Input) > 0 {
		t.Input = told.Input
	}
	if len(told.Files) > 0 {
		t.Files = told.Files
	}
}

// whole reports whether the tool's description is complete, given its state.
func (t *tool) whole(status sdk.ToolCallStatus) bool {
	if status == sdk.ToolCallStatusPending && len(t.Input)+len(t.Files) == 0 {
		return false
	}
	if t.Kind == sdk.ToolKindExecute {
		return t.Input["command"] != nil || t.Input["cmd"] != nil || !strings.Contains(" bash shell ", " "+t.Title+" ")
	}
	return t.Kind != "" || len(t.Input) > 0
}

// permission returns the tool for which the agent asks permission, and its input. aside reports
// that the question is not about the tool in use but, for example, about a folder outside the
// project.
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

// input returns the input of a tool.
func input(raw any) map[string]any {
	given, _ := raw.(map[string]any)
	return given
}

// filesOf returns the files that a tool is about, in order.
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

// kinds maps kinds of tools to Claude Code's names.
var kinds = map[sdk.ToolKind]string{
	sdk.ToolKindExecute: "Bash", sdk.ToolKindEdit: "Edit", sdk.ToolKindDelete: "Edit", sdk.ToolKindMove: "Edit",
	sdk.ToolKindRead: "Read", sdk.ToolKindSearch: "Grep",
	sdk.ToolKindFetch: "WebFetch", sdk.ToolKindThink: "Task",
}

// name returns Claude Code's name for the tool's kind, or the name of an MCP tool, and the tool's
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
		// The title is the agent's own name of the tool only if the kind says nothing. The title of
		// a command is text from the model.
		if known := d.facts.names[title]; known != "" {
			name = known
		} else if server, tool := d.facts.mcp(title); name == "" && server != "" {
			if name = "mcp__" + server + "__" + tool; server == agent.ToolServerName &&
				slices.Contains(team.TeamTools, tool) {
				name = tool
			}
		} else if name == "" {
			if name = title; slices.Contains(team.TeamTools, name) || slices.Contains(looks, name) {
				name = "tool " + title // any name that is not the title
			}
		}
	}
	text, err := agent.JSON(in)
	if err != nil {
		return name, "{}"
	}
	return name, text
}

// nameFile puts the tool's file where Claude Code's tools have theirs. If a tool is about several
// files, it names none of them, because a permission for one file is not a permission for the
// others.
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

// same reports whether two paths may mean the same file; one of them may be relative to the
// project's folder.
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

// looks are the tools that change nothing. If the gate allows them, they need no permission.
var looks = []string{"Read", "Grep", "Glob", "LS", "TodoRead", "TodoWrite", "Skill"}

// contentOf returns the text of a tool's result.
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

// replayed returns the prompt in an update of a session that is being loaded.
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

// usageOf returns the usage in the answer to a prompt.
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
