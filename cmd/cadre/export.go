package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
	"cadre/internal/ui/web"
)

// exported is a file that a team was written to.
type exported struct {
	File string `json:"file"`           // its path
	Left int    `json:"left,omitempty"` // number of tasks whose changes have no room in it
}

func (a *app) exportCommand() *cobra.Command {
	var to string
	c := a.looking(0, &cobra.Command{
		Use: "export [TEAM]", Short: "Write a team to one HTML file that needs no server",
		Long: `Write a team with its whole history to one HTML file. It shows the board in any browser, without a
server and without a network: any moment of the history, the tasks with their changes, the messages and the costs.
Nothing can be changed from it. Sessions are not in the file.

Likely secrets are replaced, as in checkpoints. Look through the file all the same before you give it to others.`,
		Example: "  cadre export my-team -o my-team.html",
	}, func(c *cobra.Command, d *engine.Team, _ []string) error {
		is := exported{File: to}
		if is.File == "" {
			is.File = d.Team().Name + ".html"
		}
		var err error
		if is.Left, err = web.Export(c.Context(), is.File, d, version); err != nil {
			return err
		}
		if is.Left > 0 {
			a.note(fmt.Sprintf("the changes of %s have no room in the file", team.Count(is.Left, "task")))
		}
		return a.print(is, func(w *sanitize.Writer) error {
			return w.Printf("team %s is in %s\n", d.Team().Name, is.File)
		})
	})
	c.Flags().StringVarP(&to, "output", "o", "", "the file (default TEAM.html)")
	return c
}
