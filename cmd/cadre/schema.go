package main

import (
	"github.com/spf13/cobra"

	"cadre/internal/observe/present"
)

func (a *app) schemaCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "schema", Short: "Print the JSON Schema of what a command prints: observe", Args: subcommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(&cobra.Command{
		Use: "observe", Short: "Print the JSON Schema of the lines of cadre observe", Args: cobra.NoArgs,
		Long: `Print the JSON Schema (draft 2020-12) of each line that cadre observe prints with --json, --messages and --live-state, and of what --state prints:

  cadre schema observe >observe.schema.json

Types of other languages can be made from it. docs/observe.md says what the lines mean.`,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.out.JSON().Write([]byte(present.Schema))
			return err
		},
	})
	return c
}
