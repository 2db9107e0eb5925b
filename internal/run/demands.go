package run

import (
	"encoding/json"
	"fmt"

	"cadre/internal/run/teamfile"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// LoadSchema reads the JSON Schema of a result from a file.
func LoadSchema(file string) (json.RawMessage, error) {
	data, err := regularfile.Read(file, team.MaxSchema)
	if err != nil {
		return nil, fmt.Errorf("the schema of the result cannot be read: %w", err)
	}
	return data, nil
}

// checkOf returns the check of a task; nil for none.
func checkOf(t teamfile.Task) *team.TaskCheck {
	if t.Check == "" {
		return nil
	}
	return &team.TaskCheck{Run: t.Check, Rounds: int64(t.Rounds), Name: t.CheckName}
}

// namedCommands returns the named commands of the team.
func namedCommands(of []teamfile.Command) (all []team.NamedCommand) {
	for _, c := range of {
		all = append(all, team.NamedCommand(c))
	}
	return all
}

// demands adds what the completion of the task demands.
func (s *said) demands(t teamfile.Task) {
	s.add("result", schemaText(t.Result))
	if t.Rounds > 0 {
		s.add("until.run", t.Check)
		s.add("until.rounds", t.Rounds)
	} else {
		s.add("check", t.Check)
	}
}

// schemaText returns the schema in one spelling.
func schemaText(schema json.RawMessage) string {
	var v any
	if len(schema) == 0 || json.Unmarshal(schema, &v) != nil {
		return ""
	}
	data, err := json.Marshal(v)
	if err != nil {
		return string(schema)
	}
	return string(data)
}

// namedCommands adds the commands that tasks can name.
func (s *said) namedCommands(all []teamfile.Command) {
	for _, c := range all {
		s.add("commands."+c.Name, c.Run)
	}
}

// demandsOfState sets what the task demands, as a team file would have it.
func demandsOfState(f *teamfile.Task, t team.Task) {
	f.Result = t.Schema
	if t.Check != nil {
		f.Check, f.CheckName, f.Rounds = t.Check.Run, t.Check.Name, int(t.Check.Rounds)
	}
}
