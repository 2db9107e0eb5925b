package claudetmux

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"cadre/internal/agent"
	"cadre/internal/agent/claude"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// history is the transcript that the program writes of its session, line by line.
type history struct {
	claude, session string
	path            string // "" until it exists
	at              int64  // how far it has been read
	last            string // the agent's last text
	spent           map[string]claude.Usage
}

// entry is one line, as far as it has something that was said or done.
type entry struct {
	Type    string `json:"type"`
	Side    bool   `json:"isSidechain"`
	Message struct {
		ID      string          `json:"id"`
		Content json.RawMessage `json:"content"`
		Usage   claude.Usage    `json:"usage"`
	} `json:"message"`
	Attachment struct {
		Type    string          `json:"type"`
		Prompt  json.RawMessage `json:"prompt"`
		Content json.RawMessage `json:"content"` // from a hook: a list of texts
	} `json:"attachment"`
}

// find looks for the file.
func (h *history) find() bool {
	if h.path == "" {
		found, _ := fs.Glob(os.DirFS(h.claude), "projects/*/"+h.session+".jsonl") // the folder is not a pattern
		if len(found) == 0 {
			return false
		}
		h.path = filepath.Join(h.claude, filepath.FromSlash(found[0]))
	}
	return true
}

// past reads the transcript of a session to resume, and returns the messages that the agent has. ok
// is false if the agent was not told anything.
func (h *history) past(carries func(string) []int64) (seen []int64, ok bool) {
	for _, e := range h.fresh() {
		for _, text := range append(e.told(), e.results()...) {
			ok = true
			if carries != nil {
				seen = append(seen, carries(text)...)
			}
		}
	}
	h.last = ""
	clear(h.spent)
	slices.Sort(seen)
	return slices.Compact(seen), ok
}

// fresh returns the lines that were completed since the last call.
func (h *history) fresh() (all []entry) {
	if !h.find() {
		return nil
	}
	f, err := regularfile.Open(h.path)
	if err != nil {
		return nil
	}
	defer f.Close()
	if _, err := f.Seek(h.at, io.SeekStart); err != nil {
		return nil
	}
	r := bufio.NewReader(f)
	for {
		line, err := r.ReadBytes('\n')
		if err != nil { // a half-written line is read the next time
			return all
		}
		h.at += int64(len(line))
		var e entry
		if json.Unmarshal(bytes.TrimSpace(line), &e) != nil || e.Side {
			continue
		}
		h.note(&e)
		all = append(all, e)
	}
}

func (h *history) note(e *entry) {
	if e.Type != "assistant" {
		return
	}
	if h.spent == nil {
		h.spent = map[string]claude.Usage{}
	}
	h.spent[e.Message.ID] = e.Message.Usage // each line of a message has the message's usage so far
	for _, b := range claude.Blocks(e.Message.Content) {
		if b.Type == "text" && strings.TrimSpace(b.Text) != "" {
			h.last = b.Text
		}
	}
}

// used returns the usage since the last call; nil for none.
func (h *history) used() *agent.Used {
	if len(h.spent) == 0 {
		return nil
	}
	var u team.Usage
	for _, one := range h.spent {
		u = claude.Sum(u, one.Team())
	}
	clear(h.spent)
	return &agent.Used{Usage: u}
}

// told returns the texts that the agent got in the entry.
func (e *entry) told() (texts []string) {
	switch {
	case e.Type == "user":
		for _, b := range claude.Blocks(e.Message.Content) {
			if b.Type == "text" {
				texts = append(texts, b.Text)
			}
		}
	case e.Type == "attachment" && e.Attachment.Type == "queued_command":
		texts = append(texts, claude.TextOf(e.Attachment.Prompt))
	case e.Type == "attachment" && e.Attachment.Type == "hook_additional_context":
		json.Unmarshal(e.Attachment.Content, &texts)
	}
	return texts
}

// results returns the results of the agent's tools.
func (e *entry) results() (texts []string) {
	if e.Type == "user" {
		for _, b := range claude.Blocks(e.Message.Content) {
			if b.Type == "tool_result" {
				texts = append(texts, claude.TextOf(b.Content))
			}
		}
	}
	return texts
}

// interrupted reports whether the entry shows an interrupted turn.
func (e *entry) interrupted() bool {
	return slices.ContainsFunc(e.told(), func(text string) bool {
		return strings.HasPrefix(text,
			"[Request interrupted by user")
	})
}

// carries reports whether a text contains a prompt.
func carries(text, prompt string) bool { return strings.Contains(text, strings.TrimSpace(prompt)) }

// says returns the updates about what the agent said and did in the entry.
func (e *entry) says() (all []agent.Update) {
	if e.Type != "assistant" && e.Type != "user" {
		return nil
	}
	for _, b := range claude.Blocks(e.Message.Content) {
		switch {
		case b.Type == "text" && e.Type == "assistant" && strings.TrimSpace(b.Text) != "":
			all = append(all, agent.Text{Text: b.Text})
		case b.Type == "tool_use":
			all = append(all, agent.ToolStarted{ID: b.ID, Tool: b.Name, Input: string(b.Input)})
		case b.Type == "tool_result":
			all = append(all, agent.ToolFinished{ID: b.ToolUseID, Failed: b.IsError, Output: claude.TextOf(b.Content)})
		}
	}
	return all
}
