package claudetmux

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cadre/internal/agent"
	"cadre/internal/sys/atomicfile"
)

// between holds the prompts for a working agent between two of its tools. They are in a file that a
// hook of the program takes after some of its tools. The file is taken by renaming it, so either
// the hook has it or we do, and never both.
type between struct {
	path    string
	waiting []agent.Prompt // in the file, unless the hook took it
	since   time.Time      // when it was last written
}

const (
	// mostBetween bounds what a hook may print at once: of longer output, the program shows only
	// the beginning of a file.
	mostBetween = 8 << 10
	// patience is how long a prompt waits for a tool when none is running: the agent may have
	// finished, though that is not known yet.
	patience = 10 * time.Second
	// hookScript takes the file. It ignores the tools of a subagent, which has another context.
	hookScript = `grep -c '"agent_id":' >/dev/null || { mv -- $ $.taken && cat -- $.taken; } 2>/dev/null; exit 0`
)

func newBetween(scratch string) (*between, error) {
	return &between{path: filepath.Join(scratch, "mail.json")}, os.MkdirAll(scratch, 0o700)
}

// settings returns the settings that register the hook.
func (b *between) settings() string {
	quoted := "'" + strings.ReplaceAll(b.path, "'", `'\''`) + "'"
	hook := map[string]any{"type": "command", "command": strings.ReplaceAll(hookScript, "$", quoted)}
	data, _ := json.Marshal(map[string]any{"hooks": map[string]any{
		"PostToolBatch": []any{map[string]any{"hooks": []any{hook}}}}})
	return string(data)
}

// put adds a prompt to the file for the hook; false means that it has to go another way.
func (b *between) put(p agent.Prompt) bool {
	before := b.takeBack()
	if b.write(append(before, p)) {
		return true
	}
	b.write(before)
	return false
}

func (b *between) write(all []agent.Prompt) bool {
	if len(all) == 0 {
		return false
	}
	var texts []string
	for _, p := range all {
		texts = append(texts, p.Text)
	}
	text := strings.Join(texts, "\n\n")
	data, err := json.Marshal(map[string]any{"hookSpecificOutput": map[string]string{"hookEventName": "PostToolBatch",
		"additionalContext": text}})
	if len(text) > mostBetween || err != nil {
		return false
	}
	if atomicfile.Replace(b.path, data, atomicfile.Passing{}) != nil {
		return false
	}
	b.waiting, b.since = all, time.Now()
	return true
}

// takeBack returns the prompts that the hook has not taken. The hook does not get them any more.
func (b *between) takeBack() []agent.Prompt {
	all := b.waiting
	b.waiting = nil
	if len(all) == 0 || os.Rename(b.path, b.path+".back") != nil {
		return nil
	}
	return all
}

// overdue reports whether a prompt has waited for longer than patience.
func (b *between) overdue() bool { return len(b.waiting) > 0 && time.Since(b.since) > patience }
