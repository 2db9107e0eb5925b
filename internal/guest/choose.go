package guest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// ConfigFile is the name of a file in cadre's folder that maps teammates to agents. It belongs to
// the user, so a project cannot choose which programs run.
//
//	teammates:
//	  - name: build-*        # of the teammate; * matches any characters
//	    agent: shell         # claude, codex, gemini, opencode, acp:COMMAND, claude-tmux or shell
//	  - type: reviewer       # the kind of agent that the lead asked for
//	    agent: gemini
//	    model: gemini-2.5-pro
//	  - agent: codex         # all other teammates
//
// The first entry that matches applies. If none does, the teammate's name or kind, or its name up
// to a "-", selects the agent: codex, codex-2. Otherwise the agent is claude, with the model that
// the lead chose.
const ConfigFile = "claude-teammates.yaml"

// Choice is the agent that runs as a teammate.
type Choice struct {
	Agent   string
	Model   string   // "" for the agent's own
	Program string   // executable to use instead of the agent's own
	Args    []string // added to the agent's arguments
	Env     []string // NAME=value, added to the agent's environment
}

// rule is one entry of the configuration file.
type rule struct {
	Name    string            `yaml:"name"`
	Type    string            `yaml:"type"`
	Agent   string            `yaml:"agent"`
	Model   string            `yaml:"model"`
	Program string            `yaml:"program"`
	Args    []string          `yaml:"args"`
	Env     map[string]string `yaml:"env"`
}

// maxConfig bounds how much of the file is read.
const maxConfig = 1 << 20

// Choose selects the agent for a teammate. file is the path of the configuration, which may be
// missing. known reports whether an agent exists.
func Choose(file, name, kind string, known func(agent string) bool) (Choice, error) {
	rules, err := readRules(file, known)
	if err != nil {
		return Choice{}, err
	}
	for _, r := range rules {
		if !fits(r.Name, name) || !fits(r.Type, kind) {
			continue
		}
		c := Choice{Agent: r.Agent, Model: r.Model, Program: r.Program, Args: r.Args}
		for key, value := range r.Env {
			c.Env = append(c.Env, key+"="+value)
		}
		slices.Sort(c.Env)
		return c, nil
	}
	first, _, _ := strings.Cut(name, "-")
	for _, word := range []string{name, kind, first} {
		if known(word) && word != team.External && !strings.HasPrefix(word, team.ACP) {
			return Choice{Agent: word}, nil
		}
	}
	return Choice{Agent: team.Claude}, nil
}

func fits(pattern, word string) bool {
	if pattern == "" {
		return true
	}
	ok, _ := path.Match(pattern, word)
	return ok
}

func readRules(file string, known func(string) bool) ([]rule, error) {
	data, err := regularfile.Read(file, maxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var whole struct {
		Teammates []rule `yaml:"teammates"`
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	d.KnownFields(true)
	if err := d.Decode(&whole); errors.Is(err, io.EOF) { // the file is empty
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	for i, r := range whole.Teammates {
		wrong := ""
		_, name := path.Match(r.Name, "")
		_, kind := path.Match(r.Type, "")
		switch {
		case r.Agent == "":
			wrong = "it has no agent"
		case r.Agent == team.External || !known(r.Agent):
			wrong = fmt.Sprintf("unknown agent %q; use claude, codex, gemini, opencode, acp:COMMAND, "+
				"claude-tmux or shell", r.Agent)
		case name != nil || kind != nil:
			wrong = "name and type are words, in which * matches any characters"
		}
		if wrong != "" {
			return nil, fmt.Errorf("%s: teammate %d: %s", file, i+1, wrong)
		}
	}
	return whole.Teammates, nil
}
