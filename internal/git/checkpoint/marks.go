package checkpoint

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cadre/internal/team"
)

// withoutMarks makes sure that no redacted command runs: with [Mark] in place of a secret, the
// command would do something else. It records what the user must know about that.
func (r *Restored) withoutMarks(k *team.Kept) error {
	for i := range k.Members {
		if err := edit(&k.Members[i], "a member", r.member); err != nil {
			return err
		}
	}
	k.Tasks = slices.Clone(k.Tasks)
	for i := range k.Tasks {
		if err := edit(&k.Tasks[i].JSON, "a task", r.task); err != nil {
			return err
		}
	}
	return edit(&k.Team, "the team", func(whole fields) error {
		var of fields
		if err := whole.get("team", &of); err != nil {
			return err
		}
		if err := r.team(of); err != nil {
			return err
		}
		whole.set("team", of)
		return nil
	})
}

// member removes redacted variables from a member's environment. The environment of the person who
// restores the team then supplies them.
func (r *Restored) member(m fields) error {
	var name string
	var env, args []string
	if err := m.all(map[string]any{"name": &name, "env": &env, "args": &args}); err != nil {
		return err
	}
	whole := env[:0:0]
	for _, v := range env {
		if !strings.Contains(v, Mark) {
			whole = append(whole, v)
			continue
		}
		variable, _, _ := strings.Cut(v, "=")
		r.miss("%s of %s was redacted; set it in the environment that the team is resumed from", variable, name)
	}
	for _, arg := range args {
		if strings.Contains(arg, Mark) {
			r.miss("an argument of %s was redacted: %s", name, arg)
		}
	}
	if len(whole) != len(env) {
		m.set("env", whole)
	}
	return nil
}

// task stops a task whose command was redacted: it counts as failed after its last retry. If it was
// in progress, that progress is lost.
func (r *Restored) task(t fields) error {
	var id, name, run string
	var retries int64
	var assigned bool
	if err := t.all(map[string]any{"id": &id, "name": &name, "run": &run, "retries": &retries,
		"assigned": &assigned}); err != nil ||
		!strings.Contains(run, Mark) {
		return err
	}
	t.set("status", team.Pending)
	delete(t, "startedAt")
	if !assigned {
		delete(t, "owner")
	}
	t.set("failures", retries+1)
	t.set("failure", "its command was redacted in the checkpoint, and has to be set again")
	r.miss("the command of task %s was redacted, so it is held back: %s", id, run)
	r.Redacted[len(r.Redacted)-1].Hints = []team.Hint{{Action: team.ActSetCommand, Task: id, TaskName: name}}
	return nil
}

// team removes hooks whose commands were redacted, and records which checks must be given again.
func (r *Restored) team(t fields) error {
	var checks []struct{ Name, Command string }
	var hooks []fields
	if err := t.all(map[string]any{"checks": &checks, "hooks": &hooks}); err != nil {
		return err
	}
	for _, c := range checks {
		if strings.Contains(c.Command, Mark) {
			r.Checks = append(r.Checks, c.Name)
		}
	}
	whole := hooks[:0:0]
	for _, h := range hooks {
		var event, command string
		if err := h.all(map[string]any{"event": &event, "command": &command}); err != nil {
			return err
		}
		if strings.Contains(command, Mark) {
			r.miss("a hook of the team for %s was redacted, and is left out: %s", event, command)
		} else {
			whole = append(whole, h)
		}
	}
	if len(whole) != len(hooks) {
		t.set("hooks", whole)
	}
	return nil
}

func (r *Restored) miss(format string, args ...any) {
	r.Redacted = append(r.Redacted, team.Advice{Text: fmt.Sprintf(format, args...)})
}

// fields are the fields of a JSON object.
type fields map[string]json.RawMessage

// edit changes an object that contains marks.
func edit(text *string, what string, change func(fields) error) error {
	if !strings.Contains(*text, Mark) {
		return nil
	}
	var of fields
	err := json.Unmarshal([]byte(*text), &of)
	if err == nil {
		err = change(of)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	changed, err := json.Marshal(of)
	*text = string(changed)
	return err
}

func (f fields) get(key string, to any) error {
	if f[key] == nil {
		return nil
	}
	if err := json.Unmarshal(f[key], to); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

func (f fields) all(to map[string]any) error {
	for key, to := range to {
		if err := f.get(key, to); err != nil {
			return err
		}
	}
	return nil
}

func (f fields) set(key string, v any) { f[key], _ = json.Marshal(v) }
