package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"cadre/internal/inspect/catalog"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// overview is a team in a list, and the head of its status.
type overview struct{ catalog.Overview }

// state is the status for people: what is true of the team, not only what was recorded last.
func (o overview) state() string {
	switch {
	case o.Released != 0:
		return "released"
	case o.Interrupted:
		return "interrupted"
	case o.Dormant:
		return "dormant"
	case o.Observed != "" && o.Status != team.TeamComplete:
		return "observed"
	}
	return string(o.Status)
}

// teammates is how many there are, and how many of them are not as they should be.
func (o overview) teammates() string {
	return fmt.Sprint(o.Teammates) + prefix(", ", counted(o.Offline, "offline", o.Zombies, "without a lead"))
}

func (o overview) progress() string {
	all := 0
	for _, n := range o.Tasks {
		all += n
	}
	return fmt.Sprintf("%d of %d", o.Tasks["completed"], all)
}

func (a *app) lsCommand() *cobra.Command {
	var git bool
	c := &cobra.Command{
		Use: "ls", Short: "List the teams", Args: exactly(0),
		Long: `List the teams. WAITING is how many things wait for a person: cadre attention lists them. A team that is dormant is not at its end, and no
process of it is running; cadre resume NAME continues it. One that is interrupted was being consolidated; cadre consolidate NAME finishes that.

With --git the teams are listed of which the repository that you are in has checkpoints, on its own branches or on those that it has fetched: they
may come from another machine. cadre resume NAME --from-git continues one here.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if git {
				return a.listGit(c.Context())
			}
			found, err := a.engine().List(c.Context())
			if err != nil {
				return err
			}
			all := []overview{}
			var names []string
			var damaged error
			for _, one := range found {
				names = append(names, one.Name)
				if one.Overview.Name != "" {
					all = append(all, overview{one.Overview})
				}
				if one.Err != nil {
					a.note(one.Name + ": " + explain(one.Err))
					damaged = exit(status(one.Err))
				}
			}
			err = a.print(all, func(w *sanitize.Writer) error {
				if len(all) == 0 && damaged == nil {
					w.Printf("There is no team. Create one: cadre create NAME, or run a team file: cadre run FILE\n")
					return a.alsoInGit(c.Context(), w, names)
				}
				t := render.Table{Texts: []string{"DIRECTORY"}, Spare: []string{"LAST CHANGE", "TEAMMATES", "TASKS DONE"}}
				t.Row("NAME", "STATUS", "TASKS DONE", "TEAMMATES", "WAITING", "LAST CHANGE", "DIRECTORY")
				for _, o := range all {
					t.Row(o.Name, o.state(), o.progress(), o.teammates(), fmt.Sprint(len(o.Attention)),
						render.Ago(now(), o.UpdatedAt), o.Dir)
				}
				if err := t.Write(w); err != nil {
					return err
				}
				return a.alsoInGit(c.Context(), w, names)
			})
			return errors.Join(err, damaged)
		},
	}
	c.Flags().BoolVar(&git, "git", false, "list the teams that the repository has checkpoints of")
	return c
}
