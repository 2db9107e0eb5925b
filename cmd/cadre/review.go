package main

import (
	"cmp"
	"github.com/spf13/cobra"
	"strings"

	"cadre/internal/engine"
	"cadre/internal/inspect"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

func (a *app) reviewCommand() *cobra.Command {
	return a.looking(0, &cobra.Command{
		Use: "review [TEAM]", Short: "Read a team that has ended, and change nothing",
		Long: "Read what became of a team that is complete or was aborted: its members, tasks with their results, " +
			"the last messages, and where\nits report is. A team whose name was given to a new one is found under " +
			"its id. Nothing can be changed in it any more; its whole\nhistory is in cadre log.",
	}, func(c *cobra.Command, d *engine.Team, _ []string) error {
		r, err := d.Review(c.Context())
		if err != nil {
			return err
		}
		return a.print(r, func(w *sanitize.Writer) error {
			if err := writeReview(w, d.Name, r.Examination, r.All); err != nil || r.Record == nil {
				return err
			}
			return writeRecord(w, r.Record, r.Intact, d.Dir)
		})
	})
}

func writeReview(w *sanitize.Writer, name string, e *inspect.Examination, tasks []team.Task) error {
	if err := writeExamination(w, e, name); err != nil {
		return err
	}
	if e.Team.LastWords != "" {
		w.Printf("\n%s\n", sanitize.Block(e.Team.LastWords))
	}
	if len(tasks) > 0 {
		w.Printf("\n")
		table := render.NewTable(len(tasks)+1, "TASK", "STATUS", "BY", "SUBJECT", "RESULT")
		table.Texts, table.Spare = []string{"RESULT", "SUBJECT", "STATUS"}, []string{"BY"}
		for _, t := range tasks {
			result := t.Result
			if t.OutOfRetries() {
				result = t.Failure
			}
			table.Row(t.Called(), render.TaskState(t), cmp.Or(t.CompletedBy, t.FailedBy), t.Subject,
				unmarked(firstLine(result)))
		}
		if err := table.Write(w); err != nil {
			return err
		}
	}
	if e.Team.Report != "" {
		w.Printf("\nreport: %s\n", e.Team.Report)
	}
	return nil
}

// unmarked returns a line of Markdown without the marks that a terminal does not show.
func unmarked(line string) string {
	return strings.NewReplacer("**", "", "`", "").Replace(strings.TrimLeft(line, "# "))
}
