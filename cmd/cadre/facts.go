package main

import (
	"github.com/spf13/cobra"

	"cadre/internal/engine/upkeep"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/run"
)

func (a *app) factsCommand() *cobra.Command {
	var record bool
	var add []string
	c := a.onTeam(0, &cobra.Command{
		Use: "facts [TEAM]", Short: "Show the files that all members rely on, and whether they changed",
		Long: "Show the files that the team named as shared facts, in its file or with --add, and whether they are " +
			"unchanged since the team\nlast recorded them. With --record, their present state is recorded.",
	}, func(c *cobra.Command, name string, _ []string) error {
		ctx := c.Context()
		of, err := a.engine().Open(ctx, name)
		if err != nil {
			return err
		}
		defer of.Close()
		more, err := run.ParseFacts(add)
		if err != nil {
			return err
		}
		if record || len(add) > 0 {
			if err := upkeep.RecordFacts(ctx, of.Upkeep(a.actor), more...); err != nil {
				return err
			}
		}
		found, err := of.Examine(ctx)
		if err != nil {
			return err
		}
		return a.print(found.Facts, func(w *sanitize.Writer) error {
			if len(found.Facts) == 0 {
				return said("team %s relies on no files; to name one: cadre facts %s --add NAME=PATH", name, name)(w)
			}
			table := render.Table{Texts: []string{"STATE"}}
			table.Row("FACT", "STATE", "PATH")
			for _, f := range found.Facts {
				table.Row(f.Name, f.State(), f.Path)
			}
			return table.Write(w)
		})
	})
	c.Flags().BoolVar(&record, "record", false, "record their present state")
	c.Flags().StringArrayVar(&add, "add", nil, "NAME=PATH, or PATH: another file to record; may be repeated")
	return c
}
