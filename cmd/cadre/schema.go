package main

import (
	"github.com/spf13/cobra"

	"cadre/internal/observe/present"
	"cadre/internal/run/teamfile"
)

func (a *app) schemaCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "schema", Short: "Print a JSON Schema: observe, teamfile", Args: subcommand,
		RunE: a.choice,
	}
	c.AddCommand(&cobra.Command{
		Use: "observe", Short: "Print the JSON Schema of the lines of cadre observe", Args: cobra.NoArgs,
		Long: `Print the JSON Schema (draft 2020-12) of each line that cadre observe prints with --json, --messages
and --live-state, and of what --state prints:

  cadre schema observe >observe.schema.json

Types of other languages can be made from it.`,
		RunE: a.schema(present.Schema),
	}, &cobra.Command{
		Use: "teamfile", Short: "Print the JSON Schema of team files, for editors", Args: cobra.NoArgs,
		Long: `Print the JSON Schema (draft 2020-12) of team files:

  cadre schema teamfile >team.schema.json

An editor with the YAML language server takes it from the first line of a team file:

  # yaml-language-server: $schema=team.schema.json

It describes every key.`,
		RunE: a.schema(teamfile.Schema),
	})
	return c
}

func (a *app) schema(text string) func(*cobra.Command, []string) error {
	return func(*cobra.Command, []string) error {
		_, err := a.out.JSON().Write([]byte(text))
		return err
	}
}
