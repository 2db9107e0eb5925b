package codex

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/readonly"
	"cadre/internal/team"
)

// These are the contents of a notification that are not an [agent.Update].
type (
	turnStarted struct{ id string }
	turnEnded   struct {
		id  string
		end agent.TurnEnded
	}
	// received has the client's id of a message that is in the thread.
	received struct{ client string }
	// planned is a plan of the agent.
	planned struct{ text string }
	// resolved reports that the program no longer waits for an answer to a request.
	resolved struct{ request string }
)

// These are the requests of the program.
type (
	// permission asks for permission to use a tool, by Claude Code's name for its kind. A
	// permission for a tool of an MCP server arrives as that server's elicitation.
	permission struct {
		tool, input string
		elicits     bool
	}
	// call is a call of one of the team's tools.
	call struct {
		tool  string
		input json.RawMessage
	}
	// questions are for the person at the program's terminal.
	questions struct{ ids []string }
	// elicitation is a question of an MCP server.
	elicitation struct{}
)

// item is a part of a thread.
type item struct {
	Type     string          `json:"type"`
	ID       string          `json:"id"`
	ClientID string          `json:"clientId"`
	Text     string          `json:"text"`
	Content  []textPart      `json:"content"`
	Command  string          `json:"command"`
	Output   string          `json:"aggregatedOutput"`
	ExitCode *int            `json:"exitCode"`
	Status   string          `json:"status"`
	Changes  json.RawMessage `json:"changes"`
	Server   string          `json:"server"`
	Tool     string          `json:"tool"`
	Args     json.RawMessage `json:"arguments"`
	Result   struct {
		Content []textPart `json:"content"`
	} `json:"result"`
	Error struct {
		Message string `json:"message"`
	} `json:"error"`
	ContentItems []textPart `json:"contentItems"`
	Success      *bool      `json:"success"`
	Completed    team.Time  `json:"completedAtMs"` // 0 while it runs
}

type textPart struct {
	Text string `json:"text"`
}

func join(parts []textPart) string {
	var all []string
	for _, p := range parts {
		if p.Text != "" {
			all = append(all, p.Text)
		}
	}
	return strings.Join(all, "\n")
}

type turnError struct {
	Message string          `json:"message"`
	Details string          `json:"additionalDetails"`
	Info    json.RawMessage `json:"codexErrorInfo"`
}

type turn struct {
	ID     string     `json:"id"`
	Status string     `json:"status"`
	Error  *turnError `json:"error"`
	Items  []item     `json:"items"`
}

type thread struct {
	ID    string `json:"id"`
	Turns []turn `json:"turns"`
}

// decoder turns the notifications of one thread into their contents, and reports each content once.
// On a new connection the program repeats some of it, and some of it is only in the thread's
// history.
type decoder struct {
	turn     string           // the last reported turn; "" before the first one
	turnOver bool             // its end was reported
	items    map[string]*seen // the reported state of that turn's items
	last     string           // the last text of that turn
	parts    string           // the method of the last part of a text; "" if no message is unfinished
	spent    breakdown        // the thread's tokens that were reported, or that belong to earlier sessions

	resets map[string]time.Time // by the name of the limit: when one that is used up ends

	context  int  // percent of the context that is full
	counting bool // a turn has started in this session, so the thread's usage counts from now on
}

// seen is the reported state of an item.
type seen struct {
	Started bool   `json:"begun"`
	Ended   bool   `json:"ended"`
	Edit    string `json:"edit,omitempty"` // its input, when it is an edit
}

// resume gives the decoder the thread's history before this session, which is not reported again.
func (d *decoder) resume(t *thread) {
	if n := len(t.Turns); n > 0 {
		d.turn, d.turnOver = t.Turns[n-1].ID, true
	}
}

// missed returns the updates of the time without a connection, from the history of the thread.
func (d *decoder) missed(t *thread) (said []any) {
	for _, now := range t.Turns[d.known(t):] {
		said = append(said, d.begin(now.ID)...)
		running := now.Status == "inProgress"
		for i := range now.Items {
			it := &now.Items[i]
			said = append(said, d.started(it)...)
			if !running || it.Completed != 0 {
				said = append(said, d.completed(it)...)
			}
		}
		if !running {
			said = append(said, d.end(&now)...)
		}
	}
	return said
}

// known returns how many turns of the thread were reported completely.
func (d *decoder) known(t *thread) int {
	for i, one := range t.Turns {
		switch {
		case one.ID != d.turn:
		case d.turnOver:
			return i + 1
		default:
			return i
		}
	}
	if d.turn == "" {
		return 0
	}
	return max(0, len(t.Turns)-1) // the thread was rolled back in the meantime
}

// decode returns the contents of a notification, in order; nothing for one that is not needed.
func (d *decoder) decode(method string, params json.RawMessage) []any {
	var p struct {
		Turn       turn `json:"turn"`
		Item       item `json:"item"`
		TokenUsage struct {
			Total  breakdown `json:"total"`
			Last   breakdown `json:"last"`
			Window int64     `json:"modelContextWindow"`
		} `json:"tokenUsage"`
		Error     turnError       `json:"error"`
		WillRetry bool            `json:"willRetry"`
		RequestID json.RawMessage `json:"requestId"`
		Delta     string          `json:"delta"`
		ItemID    string          `json:"itemId"`
		Limits    rateLimits      `json:"rateLimits"`
	}
	if agent.Parse(params, &p) != nil {
		return nil
	}
	switch method {
	case "turn/started":
		return d.begin(p.Turn.ID)
	case "turn/completed":
		return d.end(&p.Turn)
	case "item/started":
		if d.of(&p.Item).Ended { // another item with the same id, as some models produce
			delete(d.items, p.Item.ID)
		}
		return d.started(&p.Item)
	case "item/completed":
		return d.completed(&p.Item)
	case "item/agentMessage/delta", "item/plan/delta":
		if p.Delta != "" {
			return []any{agent.TextPart{Text: d.separator(method) + p.Delta}}
		}
	case "item/commandExecution/outputDelta":
		if s := d.items[p.ItemID]; s != nil && s.Started && !s.Ended && p.Delta != "" {
			return []any{agent.ToolOutput{ID: p.ItemID, Text: p.Delta}}
		}
	case "thread/tokenUsage/updated":
		return d.usage(p.TokenUsage.Total, p.TokenUsage.Last.Total, p.TokenUsage.Window)
	case "account/rateLimits/updated":
		d.limited(p.Limits)
	case "thread/compacted":
		return []any{agent.Compacted{}}
	case "serverRequest/resolved":
		return []any{resolved{string(p.RequestID)}}
	case "error":
		if p.WillRetry {
			problem := retryOf(p.Error)
			problem.Until = d.freeAt()
			return []any{agent.Retrying{Problem: problem}}
		}
	}
	return nil
}

func (d *decoder) begin(id string) []any {
	if id == "" || id == d.turn {
		return nil
	}
	d.turn, d.turnOver, d.items, d.last, d.parts, d.counting = id, false, map[string]*seen{}, "", "", true
	return []any{turnStarted{id}}
}

func (d *decoder) end(t *turn) []any {
	said := d.begin(t.ID)
	if d.turnOver || t.ID == "" {
		return nil
	}
	d.turnOver = true
	end := agent.TurnEnded{Text: d.last, Interrupted: t.Status == "interrupted"}
	if t.Status == "failed" {
		var e turnError
		if t.Error != nil {
			e = *t.Error
		}
		end.Problem = &agent.Problem{Kind: kindOf(e), Text: wordsOf(e), Until: d.freeAt()}
		end.Text = ""
	}
	return append(said, turnEnded{t.ID, end})
}

// separator returns what separates the next part of a text from the one before. A plan comes within
// a message, which is completed after it.
func (d *decoder) separator(method string) string {
	before := d.parts
	if d.parts = method; before != "" && before != method {
		return "\n"
	}
	return ""
}

// of returns the reported state of the item.
func (d *decoder) of(i *item) *seen {
	s := d.items[i.ID]
	if s == nil {
		s = &seen{}
		if d.items == nil {
			d.items = map[string]*seen{}
		}
		d.items[i.ID] = s
	}
	return s
}

func (d *decoder) started(i *item) []any {
	name, input := toolOf(i)
	s := d.of(i)
	if name == "" || s.Started {
		return nil
	}
	s.Started = true
	if i.Type == "fileChange" {
		s.Edit = input
	}
	return []any{agent.ToolStarted{ID: i.ID, Tool: name, Input: input}}
}

func (d *decoder) completed(i *item) []any {
	said := d.started(i)
	s := d.of(i)
	if s.Ended {
		return nil
	}
	s.Ended = true
	switch i.Type {
	case "userMessage":
		return []any{received{i.ClientID}}
	case "agentMessage":
		d.parts = ""
		if strings.TrimSpace(i.Text) == "" {
			return nil
		}
		d.last = i.Text
		return []any{agent.Text{Text: i.Text}}
	case "plan":
		return []any{planned{i.Text}}
	case "contextCompaction":
		return []any{agent.Compacted{}}
	}
	if name, _ := toolOf(i); name == "" {
		return nil
	}
	return append(said, agent.ToolFinished{ID: i.ID, Output: outputOf(i), Failed: i.failed()})
}

// failed reports whether the item is a tool that failed.
func (i *item) failed() bool {
	switch {
	case i.Status == "failed", i.Status == "declined", i.Status == "inProgress": // in a finished turn
		return true
	case i.ExitCode != nil:
		return *i.ExitCode != 0
	case i.Success != nil:
		return !*i.Success
	}
	return false
}

// rateLimits are the limits of the account, as far as the program knows them.
type rateLimits struct {
	Primary   *rateLimit `json:"primary"`
	Secondary *rateLimit `json:"secondary"`
}

type rateLimit struct {
	Used     float64 `json:"usedPercent"`
	ResetsAt int64   `json:"resetsAt"` // in seconds since 1970
}

// limited takes in when the limits end that are used up. A notification may have some of them only.
func (d *decoder) limited(l rateLimits) {
	for name, one := range map[string]*rateLimit{"primary": l.Primary, "secondary": l.Secondary} {
		if one == nil {
			continue
		}
		if delete(d.resets, name); one.Used >= 100 && one.ResetsAt > 0 {
			if d.resets == nil {
				d.resets = map[string]time.Time{}
			}
			d.resets[name] = time.Unix(one.ResetsAt, 0)
		}
	}
}

// freeAt returns when the last of the limits ends that are used up; zero for none.
func (d *decoder) freeAt() (last time.Time) {
	for _, at := range d.resets {
		if at.After(last) {
			last = at
		}
	}
	return last
}

type breakdown struct {
	Total      int64 `json:"totalTokens"`
	Input      int64 `json:"inputTokens"`
	Cached     int64 `json:"cachedInputTokens"`
	CacheWrite int64 `json:"cacheWriteInputTokens"`
	Output     int64 `json:"outputTokens"`
}

func (b breakdown) minus(o breakdown) breakdown {
	return breakdown{max(0, b.Total-o.Total), max(0, b.Input-o.Input), max(0, b.Cached-o.Cached),
		max(0, b.CacheWrite-o.CacheWrite), max(0, b.Output-o.Output)}
}

// usage returns what the thread has spent since the last report, from its own running total, and
// how full its context is. The program reports the total even if nothing was spent. The input
// includes tokens from the cache.
func (d *decoder) usage(total breakdown, full, window int64) []any {
	if total.Total < d.spent.Total {
		d.spent = breakdown{}
	}
	b, before := total.minus(d.spent), d.context
	d.spent = total
	if window > 0 {
		d.context = int(100 * max(0, min(1, float64(full)/float64(window))))
	}
	if !d.counting || b == (breakdown{}) && d.context == before {
		return nil
	}
	return []any{agent.Used{Context: d.context, Usage: team.Usage{InputTokens: max(0, b.Input-b.Cached-b.CacheWrite),
		CacheReadTokens: b.Cached, CacheWriteTokens: b.CacheWrite, OutputTokens: b.Output}}}
}

// toolOf returns Claude Code's name for the tool's kind, and the tool's input.
func toolOf(i *item) (name, input string) {
	switch i.Type {
	case "commandExecution":
		text, _ := agent.JSON(object{"command": i.Command})
		return "Bash", text
	case "fileChange":
		return "Edit", editOf(i.Changes)
	case "mcpToolCall":
		return "mcp__" + i.Server + "__" + i.Tool, string(i.Args)
	case "dynamicToolCall":
		return i.Tool, string(i.Args)
	}
	return "", ""
}

// editOf returns the input of a change with its file in file_path, as Claude Code's Edit has it. A
// change of several files has no file_path, because a permission for one file must not allow the
// others.
func editOf(changes json.RawMessage) string {
	var list []struct {
		Path string `json:"path"`
		Kind struct {
			To string `json:"move_path"`
		} `json:"kind"`
	}
	in := object{"changes": changes}
	if agent.Parse(changes, &list); len(list) == 1 && list[0].Kind.To == "" {
		in["file_path"] = list[0].Path
	}
	text, err := agent.JSON(in)
	if err != nil {
		return "{}"
	}
	return text
}

func outputOf(i *item) string {
	for _, text := range []string{i.Output, join(i.Result.Content), join(i.ContentItems), i.Error.Message} {
		if text != "" {
			return text
		}
	}
	return ""
}

// wordsOf returns the program's own words for an error.
func wordsOf(e turnError) string {
	switch {
	case e.Message == "" && e.Details == "":
		return "the turn failed"
	case strings.Contains(e.Message, e.Details):
		return e.Message
	}
	return e.Message + ": " + e.Details
}

// retryOf returns the problem for an error after which the program tries again. It moves the count
// of tries, which the program puts before the error, to the end.
func retryOf(e turnError) agent.Problem {
	p := agent.Problem{Kind: kindOf(e), Text: wordsOf(e)}
	count, rest, ok := strings.Cut(p.Text, ": ")
	if tries, counts := strings.CutPrefix(count, "Reconnecting... "); ok && counts {
		p.Text = rest
		if p.Kind != agent.ProblemLogin { // no retry helps after a failed login
			p.Text = strings.TrimRight(rest, ".") + "; it tries again (" + strings.Replace(tries, "/", " of ", 1) + ")"
		}
	}
	return p
}

// kindOf classifies an error by the program's word for it, or by the HTTP status, or by its text.
func kindOf(e turnError) agent.ProblemKind {
	word, status := "", 0
	if json.Unmarshal(e.Info, &word) != nil {
		var wrapped map[string]struct {
			Status int `json:"httpStatusCode"`
		}
		if json.Unmarshal(e.Info, &wrapped) == nil {
			for w, v := range wrapped {
				word, status = w, v.Status
			}
		}
	}
	switch word {
	case "contextWindowExceeded":
		return agent.ProblemContext
	case "unauthorized":
		return agent.ProblemLogin
	case "usageLimitExceeded", "rateLimitExceeded", "serverOverloaded":
		return agent.ProblemLimit
	}
	return agent.KindOf(status, wordsOf(e))
}

// requestParams are the parameters of all requests of the program that the driver answers.
type requestParams struct {
	Command   string          `json:"command"`
	Dir       string          `json:"cwd"`
	Kind      string          `json:"kind"`                  // "" and command for one that is to begin
	More      json.RawMessage `json:"additionalPermissions"` // beyond its sandbox
	Network   json.RawMessage `json:"networkApprovalContext"`
	Place     json.RawMessage `json:"environmentId"` // where it runs, if not here
	ItemID    string          `json:"itemId"`
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
	Reason    string          `json:"reason"`
	Questions []struct {
		ID string `json:"id"`
	} `json:"questions"`
	Server string `json:"serverName"`
	Meta   struct {
		Approval string          `json:"codex_approval_kind"`
		Tool     string          `json:"tool_name"`
		Params   json.RawMessage `json:"tool_params"`
	} `json:"_meta"`
}

// shell returns the request to run a command.
func (p *requestParams) shell() permission {
	in := object{"command": readonly.Unwrap(p.Command), "description": p.Reason}
	if p.Dir != "" {
		in["cwd"] = p.Dir
	}
	for name, more := range map[string]json.RawMessage{"additionalPermissions": p.More,
		"networkApprovalContext": p.Network, "environmentId": p.Place} {
		if text := string(more); text != "" && text != "null" && !(name == "environmentId" && text == `"local"`) {
			in[name] = more
		}
	}
	if p.Kind != "" && p.Kind != "command" { // input for a running program
		in["kind"] = p.Kind
	}
	text, _ := agent.JSON(in)
	return permission{tool: "Bash", input: text}
}

// request returns the content of a request of the program; nil for an unknown one.
func (d *decoder) request(method string, params json.RawMessage) any {
	var p requestParams
	agent.Parse(params, &p)
	switch method {
	case "item/commandExecution/requestApproval":
		return p.shell()
	case "item/fileChange/requestApproval":
		if s := d.items[p.ItemID]; s != nil && s.Edit != "" {
			return permission{tool: "Edit", input: s.Edit}
		}
		return permission{tool: "Edit", input: "{}"}
	case "item/tool/call":
		return call{p.Tool, p.Arguments}
	case "item/tool/requestUserInput":
		var ids []string
		for _, q := range p.Questions {
			ids = append(ids, q.ID)
		}
		return questions{ids}
	case "mcpServer/elicitation/request":
		if p.Meta.Approval != "mcp_tool_call" {
			return elicitation{}
		}
		input := string(p.Meta.Params)
		if input == "" {
			input = "{}"
		}
		return permission{tool: "mcp__" + p.Server + "__" + p.Meta.Tool, input: input, elicits: true}
	}
	return nil
}

// contextTexts returns the texts that the agent got in the thread, from its user and its tools.
func (t *thread) contextTexts() (texts []string) {
	for _, turn := range t.Turns {
		for i := range turn.Items {
			switch it := &turn.Items[i]; it.Type {
			case "userMessage":
				texts = append(texts, join(it.Content))
			case "dynamicToolCall", "mcpToolCall":
				texts = append(texts, outputOf(it))
			}
		}
	}
	return texts
}

// rpcError is an error answer of the program.
type rpcError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
}

func (e *rpcError) Error() string { return fmt.Sprintf("codex refused: %s", e.Message) }
