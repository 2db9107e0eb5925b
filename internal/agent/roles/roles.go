// Package roles reads agent definitions: Markdown files in .claude/agents that give a role its
// prompt, its tools and its model.
//
// # Authority
//
// The package decides how a definition is read. Its callers decide which member has which role, and
// how the definition is used.
//
// # Format
//
//	---
//	name: reviewer                     # else the name of the file
//	description: Reviews changes
//	tools: Read, Grep, Bash            # or a list; left out: all tools
//	disallowedTools: Write
//	model: sonnet                      # of Claude Code; inherit, or left out: the agent's own choice
//	---
//	You are a reviewer. …
//
// Source: Claude Code's documentation of subagents. Its other keys are ignored.
package roles

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// Definition is one role.
type Definition struct {
	Name        string
	Description string
	Prompt      string
	Agent       string   // the agent whose models and tools these are
	Model       string   // "" for the agent's own choice
	Tools       []string // nil for all
	Disallowed  []string
	Path        string
}

// maxFile bounds how much of a definition is read.
const maxFile = 1 << 20

// Find searches for the definition of a role in the project's .claude/agents, and then in Claude
// Code's own folder. It reports false, without an error, if the role has no definition.
func Find(claude, dir, role string) (Definition, bool, error) {
	folders := []string{filepath.Join(dir, ".claude", "agents")}
	if claude != "" {
		folders = append(folders, filepath.Join(claude, "agents"))
	}
	for _, folder := range folders {
		d, ok, err := findIn(folder, role)
		if ok || err != nil {
			return d, ok, err
		}
	}
	return Definition{}, false, nil
}

func findIn(folder, role string) (Definition, bool, error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return Definition{}, false, nil
	}
	if err != nil {
		return Definition{}, false, err
	}
	for _, e := range entries {
		if e.IsDir() || filepath.Ext(e.Name()) != ".md" {
			continue
		}
		path := filepath.Join(folder, e.Name())
		d, err := read(path)
		if d.Name == role {
			return d, err == nil, err
		}
	}
	return Definition{}, false, nil
}

// read reads a file. It sets the name even if the rest is wrong, so that the error reaches only
// callers that ask for this role.
func read(path string) (Definition, error) {
	d := Definition{Path: path, Name: strings.TrimSuffix(filepath.Base(path), ".md"), Agent: team.Claude}
	data, err := regularfile.Read(path, maxFile)
	if err != nil {
		return d, err
	}
	text := strings.ReplaceAll(string(data), "\r\n", "\n")
	head, body, ok := strings.Cut(strings.TrimPrefix(text, "---\n"), "\n---")
	if !ok || !strings.HasPrefix(text, "---\n") {
		d.Prompt = strings.TrimSpace(text)
		return d, nil
	}
	var front struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
		Tools       any    `yaml:"tools"`
		Disallowed  any    `yaml:"disallowedTools"`
		Model       string `yaml:"model"`
	}
	if err := yaml.Unmarshal([]byte(head), &front); err != nil {
		return d, fmt.Errorf("the front matter of %s cannot be read: %w", path, err)
	}
	if front.Name != "" {
		d.Name = front.Name
	}
	d.Description, d.Prompt = front.Description, strings.TrimSpace(strings.TrimPrefix(body, "\n"))
	if front.Model != "inherit" {
		d.Model = front.Model
	}
	if d.Tools, err = tools(front.Tools); err == nil {
		d.Disallowed, err = tools(front.Disallowed)
	}
	if err != nil {
		return d, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

// tools reads a list of names, or one text with commas.
func tools(value any) ([]string, error) {
	var names []string
	switch v := value.(type) {
	case nil:
		return nil, nil
	case string:
		names = strings.Split(v, ",")
	case []any:
		for _, one := range v {
			names = append(names, fmt.Sprint(one))
		}
	default:
		return nil, fmt.Errorf("tools is %v, not a list of names", v)
	}
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
	}
	return slices.DeleteFunc(names, func(n string) bool { return n == "" || n == "*" }), nil
}

// Allows returns an error if the role may not use the tool. The team's own tools are always
// allowed.
func (d Definition) Allows(tool string) error {
	lists := func(names []string) bool { // a name may be followed by a pattern for the input
		return slices.ContainsFunc(names, func(n string) bool {
			n, _, _ = strings.Cut(n, "(")
			return n == tool || strings.HasPrefix(n, "mcp__") && strings.HasPrefix(tool, strings.TrimSuffix(n, "*"))
		})
	}
	switch {
	case slices.Contains(team.TeamTools, tool):
		return nil
	case lists(d.Disallowed):
		return fmt.Errorf("the role %s has no tool %s: its definition disallows it", d.Name, tool)
	case len(d.Tools) > 0 && !lists(d.Tools):
		return fmt.Errorf("the role %s has no tool %s; its tools: %s", d.Name, tool, strings.Join(d.Tools, ", "))
	}
	return nil
}
