package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/engine/database"
	"cadre/internal/render/sanitize"
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
	c.AddCommand(a.storeInit(), a.storeMigrate(), a.storeMove())
	return c
}

func (a *app) storeInit() *cobra.Command {
	role := ""
	c := &cobra.Command{
		Use: "init", Short: "Make the tables, and grant a role what it needs", Args: exactly(0),
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
		Use: "migrate", Short: "Bring the tables of an older version to this one", Args: exactly(0),
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

// movedTeam is what cadre store move prints.
type movedTeam struct {
	engine.Relocated
	From string `json:"from"` // where the team was, and a released copy stays
	To   string `json:"to"`   // where it continues
}

func (a *app) storeMove() *cobra.Command {
	return &cobra.Command{
		Use: "move TEAM FROM TO", Short: "Move a team from files to a database, or back", Args: exactly(3),
		Long: `Move a team that does not run. FROM and TO are "files", for the teams in CADRE_HOME; "database", for the one of
--store or CADRE_STORE; or the address of a database. The copy at FROM is released first, and stays. The one at TO is
compared with it record by record, and continues the team. Where the command was killed, call it again.

The branches and worktrees of members are in your repository, and stay there.`,
		Example: "  cadre store move demo files database\n  cadre store move demo database files",
		RunE: func(c *cobra.Command, args []string) error {
			if !a.who.IsUser() {
				return team.Refuse(team.Denied, "only the user moves a team; this is %s", a.who)
			}
			from, fromCalled, err := a.placed(args[1])
			if err != nil {
				return err
			}
			to, toCalled, err := a.placed(args[2])
			if err != nil {
				return err
			}
			if fromCalled == toCalled {
				return usage{fmt.Errorf("FROM and TO are both %s", toCalled)}
			}
			moved, err := from.Relocate(c.Context(), args[0], to)
			if err != nil {
				return err
			}
			m := movedTeam{moved, fromCalled, toCalled}
			return a.print(m, func(w *sanitize.Writer) error {
				if m.Aside != "" {
					w.Printf("an older copy is kept in %s\n", m.Aside)
				}
				return w.Printf("team %s continues in %s; the copy in %s is released (%s compared)\n", args[0], m.To, m.From,
					team.Count(m.Records, "record"))
			})
		},
	}
}

// placed returns an engine for the teams in files, in the database of this command, or at an
// address, and what the place is called.
func (a *app) placed(where string) (e *engine.Engine, called string, err error) {
	e = a.engine()
	switch where {
	case "files":
		e.Home.Place = nil
		return e, "files", nil
	case "database":
		d, err := a.theDatabase()
		if err != nil {
			return nil, "", err
		}
		return e, d.Place.Called, nil
	}
	if !strings.Contains(where, "=") && !strings.Contains(where, "://") {
		return nil, "", usage{fmt.Errorf("%q is no place for teams; write files, database, or the address of a database",
			where)}
	}
	d, err := database.Open(where, a.note)
	if err != nil {
		return nil, "", err
	}
	a.others = append(a.others, d)
	e.Home.Place = d.Place
	return e, d.Place.Called, nil
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
