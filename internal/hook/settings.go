package hook

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"time"

	"cadre/internal/sys/paths"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// These are the events that a hook can handle.
const (
	TeammateIdle  = "TeammateIdle"
	TaskCreated   = "TaskCreated"
	TaskCompleted = "TaskCompleted"
)

// Events returns the names of the events.
func Events() []string { return []string{TeammateIdle, TaskCreated, TaskCompleted} }

// DefaultTimeout applies to a hook that sets no timeout; MaxTimeout is the longest that a hook can
// set.
const (
	DefaultTimeout = 60 * time.Second
	MaxTimeout     = 24 * time.Hour
)

// maxSettings bounds the size of a settings file. People write it by hand, and it has a few KiB.
const maxSettings = 4 << 20

// Source says where a hook comes from.
type Source string

// These are the sources, in the order in which their hooks run.
const (
	User    Source = "user"
	Project Source = "project"
	Local   Source = "local"
	Team    Source = "team"
)

// Program is the source of a function that a Go program added. Package hook does not run it.
const Program Source = "program"

// NeedsTrust reports whether a hook from s came with the repository rather than from the user.
func (s Source) NeedsTrust() bool { return s == Project || s == Local }

// Hook is one command for one event.
type Hook struct {
	Event   string
	Command string        // for /bin/sh -c
	Timeout time.Duration // 0 means DefaultTimeout
	Source  Source
	File    string // the settings file, or the team file; empty for none
	Line    int    // where the hook begins in the settings file; 0 if unknown
	Matcher string // as the file has it; it has no effect
	Off     bool   // switched off: it does not run
}

// Limit returns how long the command may run.
func (h *Hook) Limit() time.Duration { return cmp.Or(h.Timeout, DefaultTimeout) }

// Config holds all hooks of one project, in the order in which they run.
type Config struct {
	Dir   string // the project's folder: absolute, without symbolic links
	Hooks []Hook
	Notes []string // settings that have no effect, for the log
}

// Load reads the hooks for the project in dir. claudeRoot is the user's Claude Code folder, and
// team has the hooks of the team file. A missing file means no hooks. A file that cannot be used is
// an error: a [*SettingsError] if the position is known.
func Load(claudeRoot, dir string, team []Hook) (*Config, error) {
	dir, err := realDir(dir)
	if err != nil {
		return nil, fmt.Errorf("load hooks: %w", err)
	}
	config := &Config{Dir: dir}
	user := filepath.Join(claudeRoot, "settings.json")
	project := filepath.Join(dir, ".claude", "settings.json")
	if err := config.read(User, user); err != nil {
		return nil, err
	}
	if !paths.Same(user, project) { // in the home folder, the project's settings are the user's
		if err := config.read(Project, project); err != nil {
			return nil, err
		}
	}
	if err := config.read(Local, filepath.Join(dir, ".claude", "settings.local.json")); err != nil {
		return nil, err
	}
	for _, h := range team {
		h.Source = Team
		if err := h.validate(); err != nil {
			return nil, fmt.Errorf("hook of the team file: %w", err)
		}
		config.Hooks = append(config.Hooks, h)
	}
	return config, nil
}

func (h *Hook) validate() error {
	switch {
	case h.Event != TeammateIdle && h.Event != TaskCreated && h.Event != TaskCompleted:
		return fmt.Errorf("unknown event %q; the events are %v", h.Event, Events())
	case h.Command == "":
		return fmt.Errorf("%s: the command is empty", h.Event)
	case h.Timeout < 0 || h.Timeout > MaxTimeout:
		return fmt.Errorf("%s: a timeout of %s is not between 0 and %s", h.Event, h.Timeout, team.Span(MaxTimeout))
	}
	return nil
}

func (c *Config) read(source Source, path string) error {
	data, err := regularfile.Read(path, maxSettings)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("load hooks: %w", err)
	}
	doc, root, err := parse(path, data)
	if err != nil {
		return err
	}
	if root.object == nil {
		return doc.errorf(root.at, "the settings must be an object, not %s", root.kind())
	}
	hooks := root.object["hooks"]
	if hooks == nil {
		return nil
	}
	if hooks.object == nil {
		return doc.errorf(hooks.at, `"hooks" must be an object with the events as its keys, not %s`, hooks.kind())
	}
	for _, event := range Events() {
		if n := hooks.object[event]; n != nil {
			if err := c.event(doc, source, event, n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Config) event(doc *document, source Source, event string, groups *node) error {
	if groups.array == nil {
		return doc.errorf(groups.at, `%s must be an array of {"hooks": [...]}, not %s`, event, groups.kind())
	}
	for _, group := range groups.array {
		if group.object == nil {
			return doc.errorf(group.at, `an element of %s must be an object {"hooks": [...]}, not %s`,
				event, group.kind())
		}
		matcher := ""
		if m := group.object["matcher"]; m != nil && m.scalar != "" && m.scalar != "*" {
			matcher, _ = m.scalar.(string)
			c.notef(doc, m, "a matcher has no effect on %s: the hook runs every time", event)
		}
		hooks := group.object["hooks"]
		if hooks == nil {
			return doc.errorf(group.at, `an element of %s has no "hooks" array`, event)
		}
		if hooks.array == nil {
			return doc.errorf(hooks.at, `"hooks" of %s must be an array, not %s`, event, hooks.kind())
		}
		for _, n := range hooks.array {
			if err := c.command(doc, Hook{Event: event, Source: source, Matcher: matcher}, n); err != nil {
				return err
			}
		}
	}
	return nil
}

// command reads the rest of one hook and adds it.
func (c *Config) command(doc *document, h Hook, n *node) error {
	if n.object == nil {
		return doc.errorf(n.at, `a hook of %s must be an object {"type": "command", "command": "..."}, not %s`,
			h.Event, n.kind())
	}
	kind, ok := n.object["type"]
	if !ok {
		return doc.errorf(n.at, `a hook of %s has no "type"; set it to "command"`, h.Event)
	}
	if kind.scalar != "command" {
		if _, isString := kind.scalar.(string); !isString {
			return doc.errorf(kind.at, `the "type" of a hook must be a string, not %s`, kind.kind())
		}
		c.notef(doc, kind, "a hook of %s is skipped: its type is %q, and only commands run here", h.Event, kind.scalar)
		return nil
	}
	h.Timeout, h.File, h.Line = DefaultTimeout, doc.file, doc.line(n.at)
	command := n.object["command"]
	if command == nil {
		return doc.errorf(n.at, `a hook of %s has no "command"`, h.Event)
	}
	if h.Command, ok = command.scalar.(string); !ok || h.Command == "" {
		return doc.errorf(command.at, `the "command" of a hook must be a non-empty string`)
	}
	if timeout := n.object["timeout"]; timeout != nil {
		number, _ := timeout.scalar.(json.Number)
		seconds, err := number.Float64()
		if err != nil || !(seconds > 0 && seconds <= MaxTimeout.Seconds()) {
			return doc.errorf(timeout.at, `the "timeout" of a hook must be a number of seconds above 0, at most %.0f`,
				MaxTimeout.Seconds())
		}
		h.Timeout = time.Duration(seconds * float64(time.Second))
	}
	c.Hooks = append(c.Hooks, h)
	return nil
}

func (c *Config) notef(doc *document, n *node, format string, args ...any) {
	at := doc.errorf(n.at, format, args...).(*SettingsError)
	c.Notes = append(c.Notes, fmt.Sprintf("%s:%d:%d: %s", at.File, at.Line, at.Column, at.Reason))
}

// realDir returns dir as an absolute path without symbolic links. Trust is recorded under this
// path.
func realDir(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(dir)
}
