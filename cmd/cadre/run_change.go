package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"cadre/internal/render/excerpt"
	"cadre/internal/render/sanitize"
	"cadre/internal/run"
	"cadre/internal/run/teamfile"
	"cadre/internal/team"
)

// changedFile is what differs between a team file and the team that was made from it.
type changedFile struct {
	Changes []run.Change `json:"changes"`
}

// changed returns a function that shows the changes of a team file to the person, and asks about
// them.
func (r *running) changed(ctx context.Context) func(run.Changes) error {
	return func(c run.Changes) error {
		switch {
		case r.json && r.yes:
			if err := r.out.Value(changedFile{c.All}); err != nil {
				return err
			}
		case !r.json:
			w := r.err
			if r.yes {
				w = r.out
			}
			if err := w.Printf("%s was changed since team %s was made from it:\n", c.Path, c.Team); err != nil {
				return err
			}
			if err := writeChanges(w.Writer, c.All); err != nil {
				return err
			}
		}
		switch {
		case r.yes:
			return nil
		case !r.asks():
			return withWays(usage{fmt.Errorf("%s was changed since team %s was made from it (%s)", c.Path, c.Team,
				team.Count(len(c.All), "change"))}, way{"see the changes", r.again(c.Path, "--dry-run")},
				way{"apply them", r.again(c.Path, "--yes")})
		}
		return r.confirm(ctx, "Apply these changes and run?")
	}
}

// again returns the command that runs the team file with that flag.
func (r *running) again(path, flag string) string {
	command := "cadre run " + sanitize.Quote(path)
	if name, is := strings.CutPrefix(path, run.TemplateOrigin); is {
		command = "cadre run --template " + name
	}
	for _, value := range r.set {
		command += " --set " + sanitize.Quote(value)
	}
	for _, name := range r.redo {
		command += " --redo " + sanitize.Quote(name)
	}
	return command + " " + flag
}

// unset adds to the error of a file or template at that path the command that sets the parameters
// without a value.
func (r *running) unset(err error, path string) error {
	mistakes, _ := errors.AsType[teamfile.Errors](err)
	var flags []string
	for _, e := range mistakes {
		if e.Setting != "" && e.Line > 0 { // where it is declared: it has no value that could be wrong
			flags = append(flags, "--set "+e.Setting+"=VALUE")
		}
	}
	if len(flags) == 0 {
		return err
	}
	return withWays(err, way{"set it", r.again(path, strings.Join(flags, " "))})
}

// changeMark returns the mark of a change.
func changeMark(does string) string {
	switch does {
	case run.ChangeAdd:
		return "+"
	case run.ChangeRemove:
		return "-"
	case run.ChangeKeep:
		return "="
	case run.ChangeRedo:
		return "↺"
	case run.ChangeRefuse:
		return "✗"
	}
	return "~"
}

// mostOfValue bounds how many characters of an old or new value are shown.
const mostOfValue = 60

func writeChanges(w *sanitize.Writer, all []run.Change) error {
	for _, one := range all {
		if one.What == "parameter" {
			from, to := valuesOf(one.Keys[0].From, one.Keys[0].To)
			if err := w.Printf("  ~ parameter %s: %s → %s\n", one.Name, from, to); err != nil {
				return err
			}
			continue
		}
		line := fmt.Sprintf("  %s %s %s: %s", changeMark(one.Does), one.What, one.Name, becomes(one))
		if one.Does == run.ChangeRefuse {
			line = "  ✗ " + one.Why
		}
		if err := w.Printf("%s\n", line); err != nil {
			return err
		}
		for _, k := range one.Keys {
			from, to := valuesOf(k.From, k.To)
			words := k.Key + ": " + from + " → " + to
			if k.Key == "env" && k.From == k.To { // only variables that parameters make are different
				words = "the values of its parameters"
			}
			if err := w.Printf("      %s\n", words); err != nil {
				return err
			}
		}
	}
	return nil
}

// becomes says what the run will do with what changed.
func becomes(one run.Change) string {
	switch one.Does {
	case run.ChangeAdd:
		return "will be added"
	case run.ChangeRemove:
		if one.What == "member" {
			return "will be asked to end, because the file no longer has it"
		}
		return "will be deleted, because the file no longer has it"
	case run.ChangeKeep:
		if len(one.Keys) == 0 {
			return one.Why
		}
		return one.Why + ", so it stays as it is; --redo " + sanitize.Quote(one.Name) + " does it again"
	case run.ChangeRedo:
		if one.Why == "" || one.Skipped() {
			return cmp.Or(one.Why, "will be done again")
		}
		return "will be done again; " + one.Why + " (--redo NAME does it again too)"
	}
	return "will be changed" + prefix("; ", one.Why)
}

// alikeShown is how many equal characters are shown before the first difference of two long values.
const alikeShown = 20

// valuesOf shortens the old and the new value of a key to one line each, so that the first
// difference is shown.
func valuesOf(from, to string) (string, string) {
	one := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	a, b := []rune(one(from)), []rune(one(to))
	cut := 0
	if len(a) > 0 && len(b) > 0 && max(len(a), len(b)) > mostOfValue {
		for cut < min(len(a), len(b)) && a[cut] == b[cut] {
			cut++
		}
		cut = max(0, cut-alikeShown)
	}
	short := func(text []rune) string {
		if len(text) == 0 {
			return "(left out)"
		}
		mark := ""
		if cut > 0 {
			mark = excerpt.Mark
		}
		return mark + excerpt.Characters(string(text[cut:]), mostOfValue)
	}
	if from != to && string(a) == string(b) {
		return short(a), short(b) + " (other line breaks or spaces)"
	}
	return short(a), short(b)
}
