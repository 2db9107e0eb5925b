package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/render"
	"cadre/internal/render/excerpt"
	"cadre/internal/render/sanitize"
	"cadre/internal/run"
	"cadre/internal/team"
)

// validated is the result of the check of a team file.
type validated struct {
	File    string `json:"file"`           // path of the team file
	Valid   bool   `json:"valid"`          // the file has no mistake
	Team    string `json:"team,omitempty"` // name of the team
	Members int    `json:"members"`        // number of members, without the lead
	Tasks   int    `json:"tasks"`          // number of tasks
	// names of the parameters without a default, which a run has to set
	Required []string `json:"required,omitempty"`
	// the teams in the team, each followed by those in it
	ChildTeams []run.PreviewTeam `json:"childTeams,omitempty"`
	Errors     []run.Mistake     `json:"errors"` // the mistakes in the file
}

func (a *app) validateCommand() *cobra.Command {
	return &cobra.Command{
		Use: "validate FILE...", Short: "Check team files", Args: atLeast(1),
		Long: "Check team files and start nothing. Every mistake is shown with its line and column, also those in the " +
			"files and templates\nof members that are teams. Exit status 2 says that a file is not valid.",
		Example: "  cadre validate team.yaml",
		RunE: func(_ *cobra.Command, args []string) error {
			var all []validated
			var mistakes []error
			for _, name := range args {
				one, err := a.validate(name)
				if all = append(all, one); err != nil {
					mistakes = append(mistakes, err)
				}
			}
			if err := a.print(all, func(w *sanitize.Writer) error { return writeValidated(w, all) }); err != nil {
				return err
			}
			switch {
			case len(mistakes) == 0:
				return nil
			case a.json:
				return exit(hopeless) // the printed result says why
			}
			return usage{errors.Join(mistakes...)}
		},
	}
}

func (a *app) validate(name string) (validated, error) {
	one := validated{File: name, Errors: []run.Mistake{}}
	dir, err := workDir(".")
	if err != nil {
		return one, err
	}
	f, err := a.places(dir).Loader().Check(name)
	if err == nil {
		one.Valid, one.Team, one.Members, one.Tasks = true, f.Name, len(f.Members), len(f.Tasks)
		one.ChildTeams = run.TeamsIn(f)
		for _, p := range f.Parameters {
			if p.Required {
				one.Required = append(one.Required, p.Name)
			}
		}
		return one, nil
	}
	one.Errors = run.Mistakes(err)
	return one, a.aboutTemplate(err)
}

func writeValidated(w *sanitize.Writer, all []validated) error {
	for _, one := range all {
		if !one.Valid {
			continue // the error has the reason
		}
		needs := ""
		if len(one.Required) > 0 {
			needs = "; a run needs --set for " + strings.Join(one.Required, ", ")
		}
		if err := w.Printf("%s is valid: team %s, %s, %s%s\n", one.File, one.Team, team.Count(one.Members, "member"),
			team.Count(one.Tasks, "task"), needs); err != nil {
			return err
		}
		shown := one.ChildTeams[:min(len(one.ChildTeams), mostTeams)]
		for _, c := range shown {
			w.Printf("%s%s", strings.Repeat("  ", c.Level), doneBy(c))
			if c.Goal == "" {
				w.Printf(": %s, %s", team.Count(len(c.Members), "member"), team.Count(len(c.Tasks), "task"))
			}
			w.Printf("\n")
		}
		if more := len(one.ChildTeams) - len(shown); more > 0 {
			w.Printf("  and %s in the team\n", team.Count(more, "more team"))
		}
	}
	return nil
}

// preview prints what a run would do.
func (a *app) preview(ctx context.Context, o run.Options) error {
	p, err := run.Look(ctx, o)
	if err != nil {
		return err
	}
	if err := a.print(p, func(w *sanitize.Writer) error { return writePreview(w, p) }); err != nil {
		return err
	}
	if p.Refused != "" {
		return exit(status(p.Refusal)) // the printed result says why
	}
	return nil
}

func writePreview(w *sanitize.Writer, p run.Preview) error {
	switch p.Does {
	case "continue":
		completed := 0
		for _, t := range p.Tasks {
			if t.Status == string(team.Completed) {
				completed++
			}
		}
		others := some(p.Completed-completed, ", and %d done that are not in the file")
		w.Printf("team %s would continue in %s: %d of %s done%s\n", p.Team, p.Dir, completed,
			team.Count(len(p.Tasks), "task"), others)
		if len(p.Changes) > 0 {
			w.Printf("\nchanges:\n")
			if err := writeChanges(w, p.Changes); err != nil {
				return err
			}
		}
	case "start_over":
		w.Printf("team %s would start over in %s; the team before it would be archived\n", p.Team, p.Dir)
	default:
		w.Printf("team %s would be created in %s\n", p.Team, p.Dir)
	}
	if err := writeValues(w, p.Parameters); err != nil {
		return err
	}
	if err := writePlanned(w, 0, p.Lead, p.Members, slices.Concat(p.Tasks, p.ByHand)); err != nil {
		return err
	}
	writeMakes(w, p.Tasks)
	if err := writeChildTeams(w, p.ChildTeams); err != nil {
		return err
	}
	w.Printf("\n")
	if p.MaxParallel > 0 {
		w.Printf("turns: %d at a time\n", p.MaxParallel)
	}
	if len(p.Checks) > 0 {
		w.Printf("checks: %s\n", strings.Join(p.Checks, ", "))
	}
	w.Printf("report: %s\n", p.Report)
	for _, why := range p.Cannot {
		w.Printf("! %s\n", why)
	}
	if p.Refused != "" {
		w.Printf("a run would be refused: %s\n", explain(p.Refusal))
	}
	return w.Printf("%s\n", "nothing was started (--dry-run)")
}

// writeMakes says which tasks make others, and for which items.
func writeMakes(w *sanitize.Writer, planned []run.PreviewTask) {
	first := true
	for _, t := range planned {
		if t.ForEach == "" {
			continue
		}
		if first {
			w.Printf("\n")
			first = false
		}
		if t.ItemsKnown {
			w.Printf("task %s makes %s, for %s%s\n", t.Name, team.Count(len(t.Items), "task"), t.ForEach,
				prefix(": ", someFiles(t.Items)))
		} else {
			w.Printf("task %s makes a task for each item of %s; it is not known yet how many\n", t.Name, t.ForEach)
		}
	}
}

// writeValues prints the parameters of a team file with their values.
func writeValues(w *sanitize.Writer, all []run.PreviewParameter) error {
	if len(all) == 0 {
		return nil
	}
	w.Printf("\n")
	t := render.NewTable(len(all)+1, "PARAMETER", "VALUE", "NOTE")
	t.Texts, t.Spare = []string{"VALUE"}, []string{"NOTE"}
	for _, p := range all {
		note := ""
		if p.Default {
			note = "default"
		}
		t.Row(p.Name, p.Value, note)
	}
	return t.Write(w)
}

// These bound what a preview shows of the teams in a team. With --json there is all of it.
const (
	mostTeams = 20
	mostRows  = 20 // members, and tasks, of each
)

// doneBy says what the teams of a member are made from.
func doneBy(c run.PreviewTeam) string {
	of := c.Of[:min(len(c.Of), mostRows)]
	words := "each task of " + strings.Join(of, ", ")
	if more := len(c.Of) - len(of); more > 0 {
		words += fmt.Sprintf(" and %d more", more)
	}
	words += " is done by a team "
	switch {
	case c.File != "":
		return words + "from " + c.File
	case c.Template != "":
		return words + "from the template " + c.Template
	}
	return words + "that " + cmp.Or(c.Lead.Agent, "the first installed agent") + " leads to the goal " +
		team.Quoted(render.CutWords(excerpt.FirstLine(c.Goal), 60))
}

// writeChildTeams prints the teams in the team of a preview.
func writeChildTeams(w *sanitize.Writer, all []run.PreviewTeam) error {
	shown := all[:min(len(all), mostTeams)]
	for _, c := range shown {
		indent := strings.Repeat("  ", c.Level)
		w.Printf("\n%s%s\n", indent[2:], doneBy(c))
		if c.Goal != "" {
			continue
		}
		members, tasks := c.Members[:min(len(c.Members), mostRows)], c.Tasks[:min(len(c.Tasks), mostRows)]
		if err := writePlanned(w, c.Level, c.Lead, members, tasks); err != nil {
			return err
		}
		if more := len(c.Members) - len(members); more > 0 {
			w.Printf("%sand %s\n", indent, team.Count(more, "more member"))
		}
		if more := len(c.Tasks) - len(tasks); more > 0 {
			w.Printf("%sand %s\n", indent, team.Count(more, "more task"))
		}
	}
	if more := len(all) - len(shown); more > 0 {
		return w.Printf("\nand %s in the team\n", team.Count(more, "more team"))
	}
	return nil
}

// goesOn says with which status the run continues a task, and what it does about it.
func goesOn(t run.PreviewTask) string {
	switch {
	case t.State == "failed":
		return "will be tried again"
	case t.State == string(team.Completed) && t.Status == string(team.Pending):
		return "will be done again"
	case t.State == "skipped" && t.Status == string(team.Pending):
		return "runs if it still can"
	case t.State == "skipped":
		return t.State
	}
	return t.Status
}

// writePlanned prints the members and the tasks of a team at that level of a preview.
func writePlanned(w *sanitize.Writer, level int, lead run.PreviewMember, all []run.PreviewMember,
	planned []run.PreviewTask) error {
	table := func(rows int, head ...string) *render.Table {
		if level > 0 { // a column without a head indents the others
			head = append([]string{""}, head...)
		}
		return render.NewTable(rows+1, head...)
	}
	row := func(t *render.Table, cells ...string) {
		if level > 0 {
			cells = append([]string{strings.Repeat("  ", level-1)}, cells...)
		}
		t.Row(cells...)
	}
	w.Printf("\n")
	members := table(len(all)+1, "MEMBER", "AGENT", "ROLE", "ISOLATION", "RUNS ON")
	members.Spare = []string{"ROLE"}
	row(members, lead.Name, lead.Agent, "lead", "", "")
	for _, m := range all {
		row(members, m.Name, m.Agent, m.Role, m.Isolation, strings.Join(m.RunsOn, ", "))
	}
	members.Compact()
	if err := members.Write(w); err != nil || len(planned) == 0 {
		return err
	}
	w.Printf("\n")
	tasks := table(len(planned), "TASK", "STATUS", "FOR", "AFTER", "SUBJECT", "RUN")
	tasks.Texts, tasks.Spare = []string{"SUBJECT", "RUN", "AFTER"}, []string{"FOR", "STATUS"}
	for _, t := range planned {
		after := strings.Join(t.BlockedBy, ", ")
		if t.When == team.Always {
			after += " (always)"
		}
		whose := t.Owner
		if t.Role != "" {
			whose = "role " + t.Role
		}
		subject := t.Subject
		if subject == t.Name {
			subject = "" // the first column has it
		}
		row(tasks, t.Name, goesOn(t), whose, after, subject, t.Run)
	}
	tasks.Compact()
	return tasks.Write(w)
}
