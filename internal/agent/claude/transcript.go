package claude

import (
	"bufio"
	"encoding/json"
	"path/filepath"
	"slices"

	"cadre/internal/agent"
	"cadre/internal/sys/regularfile"
)

// transcript returns the file with the history of the session to resume. It returns "" if that file
// is empty or does not exist.
func transcript(spec agent.Spec) string {
	if spec.Resume == "" || filepath.Base(spec.Resume) != spec.Resume {
		return ""
	}
	found, _ := filepath.Glob(filepath.Join(globless(Folder(environment(spec))), "projects", "*",
		globless(spec.Resume)+".jsonl"))
	for _, path := range found {
		if entries(path, func(*entry) bool { return true }) {
			return path
		}
	}
	return ""
}

// globless escapes a path for [filepath.Glob].
func globless(path string) string {
	var out []byte
	for i := range len(path) {
		if c := path[i]; c == '*' || c == '?' || c == '[' || c == '\\' {
			out = append(out, '\\')
		}
		out = append(out, path[i])
	}
	return string(out)
}

// entry is one line of a transcript, as far as it shows what the agent was told.
type entry struct {
	Type       string  `json:"type"`
	Message    message `json:"message"`
	Attachment struct {
		Type   string          `json:"type"`
		Prompt json.RawMessage `json:"prompt"` // a text, or blocks: of a line that came while a turn ran
	} `json:"attachment"`
}

// told returns the texts that the agent got, from its user and its tools.
func (e *entry) told() (texts []string) {
	switch {
	case e.Type == "user":
		for _, b := range Blocks(e.Message.Content) {
			if b.Type == "tool_result" {
				texts = append(texts, TextOf(b.Content))
			} else {
				texts = append(texts, b.Text)
			}
		}
	case e.Type == "attachment" && e.Attachment.Type == "queued_command":
		texts = append(texts, TextOf(e.Attachment.Prompt))
	}
	return texts
}

// entries calls see with each entry that has something, until see returns true. It reports whether
// that happened. An incomplete line is skipped: the program was killed while it wrote the line.
func entries(path string, see func(*entry) bool) bool {
	f, err := regularfile.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	r := bufio.NewReader(f)
	for {
		data, err := r.ReadBytes('\n')
		var e entry
		if json.Unmarshal(data, &e) == nil && len(e.told()) > 0 && see(&e) {
			return true
		}
		if err != nil {
			return false
		}
	}
}

// seen returns the messages in the transcript.
func seen(path string, carries func(string) []int64) (seqs []int64) {
	if carries == nil {
		return nil
	}
	entries(path, func(e *entry) bool {
		for _, text := range e.told() {
			seqs = append(seqs, carries(text)...)
		}
		return false
	})
	slices.Sort(seqs)
	return slices.Compact(seqs)
}
