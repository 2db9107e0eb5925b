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
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// history is the transcript that the program writes of its session, line by line.
type history struct {
	claude, session string
	path            string // "" until there is one
	at              int64  // how far it was read
	last            string // text that the agent said
	spent           map[string]usage
}

type usage struct {
	Input      int64 `json:"input_tokens"`
	Output     int64 `json:"output_tokens"`
	CacheRead  int64 `json:"cache_read_input_tokens"`
	CacheWrite int64 `json:"cache_creation_input_tokens"`
}

// entry is one line, as far as it tells what was said and done.
type entry struct {
	Type    string `json:"type"`
	Side    bool   `json:"isSidechain"`
	Message struct {
		ID      string          `json:"id"`
		Content json.RawMessage `json:"content"`
		Usage   usage           `json:"usage"`
	} `json:"message"`
	Attachment struct {
		Type    string          `json:"type"`
		Prompt  json.RawMessage `json:"prompt"`
		Content json.RawMessage `json:"content"` // of a hook's: a list of texts
	} `json:"attachment"`
}

type block struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	IsError   bool            `json:"is_error"`
	Content   json.RawMessage `json:"content"`
}

// find looks for the file, once it is there.
func (h *history) find() bool {
	if h.path == "" {
		found, _ := fs.Glob(os.DirFS(h.claude), "projects/*/"+h.session+".jsonl") // the folder's own name is no pattern
		if len(found) == 0 {
			return false
		}
		h.path = filepath.Join(h.claude, filepath.FromSlash(found[0]))
	}
	return true
}

// past reads what there is of a session that is to be resumed, and returns the messages that it was
// told. ok is false where nothing was said to it.
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

// fresh are the lines that were written whole since the last look.
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
		if err != nil { // what is half written is read the next time
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
		h.spent = map[string]usage{}
	}
	h.spent[e.Message.ID] = e.Message.Usage // each line of a message has that of all of it so far
	for _, b := range blocksOf(e.Message.Content) {
		if b.Type == "text" && strings.TrimSpace(b.Text) != "" {
			h.last = b.Text
		}
	}
}

// used is what was used since it was asked last; nil for nothing.
func (h *history) used() *agent.Used {
	if len(h.spent) == 0 {
		return nil
	}
	var u team.Usage
	for _, one := range h.spent {
		u.InputTokens += one.Input
		u.OutputTokens += one.Output
		u.CacheReadTokens += one.CacheRead
		u.CacheWriteTokens += one.CacheWrite
	}
	clear(h.spent)
	return &agent.Used{Usage: u}
}

// blocksOf is a content that is a text or a list of blocks.
func blocksOf(raw json.RawMessage) (all []block) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []block{{Type: "text", Text: text}}
	}
	json.Unmarshal(raw, &all)
	return all
}

func textOf(raw json.RawMessage) string {
	var texts []string
	for _, b := range blocksOf(raw) {
		texts = append(texts, b.Text)
	}
	return strings.Join(texts, "\n")
}

// told is what was said to the agent there.
func (e *entry) told() (texts []string) {
	switch {
	case e.Type == "user":
		for _, b := range blocksOf(e.Message.Content) {
			if b.Type == "text" {
				texts = append(texts, b.Text)
			}
		}
	case e.Type == "attachment" && e.Attachment.Type == "queued_command":
		texts = append(texts, textOf(e.Attachment.Prompt))
	case e.Type == "attachment" && e.Attachment.Type == "hook_additional_context":
		json.Unmarshal(e.Attachment.Content, &texts)
	}
	return texts
}

// results are what its tools said.
func (e *entry) results() (texts []string) {
	if e.Type == "user" {
		for _, b := range blocksOf(e.Message.Content) {
			if b.Type == "tool_result" {
				texts = append(texts, textOf(b.Content))
			}
		}
	}
	return texts
}

// interrupted reports whether the entry says that somebody ended the turn.
func (e *entry) interrupted() bool {
	return slices.ContainsFunc(e.told(), func(text string) bool {
		return strings.HasPrefix(text,
			"[Request interrupted by user")
	})
}

// carries reports whether a text has a prompt in it.
func carries(text, prompt string) bool { return strings.Contains(text, strings.TrimSpace(prompt)) }

// says is what the agent said and did there.
func (e *entry) says() (all []agent.Update) {
	if e.Type != "assistant" && e.Type != "user" {
		return nil
	}
	for _, b := range blocksOf(e.Message.Content) {
		switch {
		case b.Type == "text" && e.Type == "assistant" && strings.TrimSpace(b.Text) != "":
			all = append(all, agent.Text{Text: b.Text})
		case b.Type == "tool_use":
			all = append(all, agent.ToolStarted{ID: b.ID, Tool: b.Name, Input: string(b.Input)})
		case b.Type == "tool_result":
			all = append(all, agent.ToolFinished{ID: b.ToolUseID, Failed: b.IsError, Output: textOf(b.Content)})
		}
	}
	return all
}
