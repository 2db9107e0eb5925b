package main

import (
	"errors"

	"github.com/spf13/cobra"

	"cadre/internal/engine/database"
	"cadre/internal/team"
)

// prepared is what cadre store init and cadre store migrate print.
type prepared struct {
	Place   string `json:"place"`             // the database and the schema
	From    int    `json:"from"`              // version of the tables before; 0 for none
	To      int    `json:"to"`                // version of the tables now
	Granted string `json:"granted,omitempty"` // the role that got the rights to work with teams
}

func (a *app) storeCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "store", Short: "Prepare a database for teams that several machines share",
		Long: `Teams live in files, unless --store or CADRE_STORE is the address of a PostgreSQL database, such as
postgres://me@db.example/work?sslmode=verify-full. Then every machine with the address has the same teams. Passwords
come from ~/.pgpass or a service file. The schema is cadre, or the search_path of the address: one for each
organisation. What belongs to a machine, such as worktrees, stays in CADRE_HOME.`,
		Example: "  cadre store init --grant worker --store postgres://owner@localhost/work\n" +
			"  CADRE_STORE=postgres://worker@localhost/work cadre ls",
		Args: subcommand, RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.storeInit(), a.storeMigrate())
	return c
}

func (a *app) storeInit() *cobra.Command {
	role := ""
	c := &cobra.Command{
		Use: "init", Short: "Make the tables, and grant a role what it needs", Args: cobra.NoArgs,
		Long: `Make the schema and its tables, as a role that may create a schema in the database. Processes that work with
teams need less: with --grant, their role may read and write rows, and nothing else. Tables of an older version stay as
they are: cadre store migrate brings them to this one.`,
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := a.theDatabase()
			if err != nil {
				return err
			}
			from, to, err := d.Init(c.Context(), role)
			if err != nil {
				return err
			}
			p := prepared{a.home.Place.Called, from, to, role}
			text := "the tables are made in " + p.Place
			if from > 0 {
				text = "the tables are there already, in " + p.Place
			}
			if role != "" {
				text += "; the role " + role + " can work with teams"
			}
			return a.print(p, said("%s", text))
		},
	}
	c.Flags().StringVar(&role, "grant", "", "a role that processes connect as; it must exist")
	return c
}

func (a *app) storeMigrate() *cobra.Command {
	return &cobra.Command{
		Use: "migrate", Short: "Bring the tables of an older version to this one", Args: cobra.NoArgs,
		Long: `Bring the tables of an older version to this one, in one transaction. Processes of an older cadre that use the
database are refused from then on. End them first, or at least be ready to update them.`,
		RunE: func(c *cobra.Command, _ []string) error {
			d, err := a.theDatabase()
			if err != nil {
				return err
			}
			from, to, err := d.Migrate(c.Context())
			if err != nil {
				return err
			}
			p := prepared{Place: a.home.Place.Called, From: from, To: to}
			if from == to {
				return a.print(p, said("the tables in %s have version %d already", p.Place, to))
			}
			return a.print(p, said("the tables in %s are at version %d now; they were at %d", p.Place, to, from))
		},
	}
}

// theDatabase returns the database that the person named.
func (a *app) theDatabase() (*database.Database, error) {
	if a.database == nil {
		return nil, usage{errors.New("say which database: --store postgres://USER@HOST/DATABASE, or CADRE_STORE")}
	}
	if !a.who.IsUser() {
		return nil, team.Refuse(team.Denied, "only the user prepares a database; this is %s", a.who)
	}
	return a.database, nil
}
