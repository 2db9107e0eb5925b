package main

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"cadre/internal/inspect/catalog"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
)

// overview is a team in a list, or the head of its status.
type overview struct{ catalog.Overview }

// teammates returns how many teammates there are, and how many are offline or zombies.
func (o overview) teammates() string {
	if o.Teammates == 0 {
		return ""
	}
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
	var git, all bool
	c := &cobra.Command{
		Use: "ls", Short: "List the teams", Args: exactly(0),
		Long: `List the teams, those of your current project first. WAITING is the number of items that wait for a person:
cadre attention lists them. A dormant team has not ended, and none of its processes is running: cadre resume NAME continues
it. An interrupted one was being consolidated: cadre consolidate NAME finishes that.

A name is unique in a project, which is a git repository with all of its work trees. In the project it stands for the
project's team; where several teams of other projects have it, give the id.

--all lists archived runs, too, by their ids. A finished run is archived when its team file is run again. cadre status
ID, cadre log ID and cadre review ID show one, and cadre cleanup ID removes it.

--git lists the teams that the repository you are in has checkpoints of, on its own branches or on fetched ones. They
may come from another machine. cadre resume NAME --from-git continues one here.`,
		Example: "  cadre ls --all",
		RunE: func(c *cobra.Command, _ []string) error {
			if git {
				return a.listGit(c.Context())
			}
			found, err := a.engine().List(c.Context(), all)
			if err != nil {
				return err
			}
			listed := []overview{}
			var here []string // ids, and the names that are taken in this project
			var damaged error
			for _, one := range found {
				switch o := one.Overview; {
				case o.ID == "": // it cannot be read
					here = append(here, one.Name)
				case o.Here && !o.Archived:
					here = append(here, o.ID, o.Name)
				case !o.Archived:
					here = append(here, o.ID)
				}
				if one.Overview.Name != "" {
					listed = append(listed, overview{one.Overview})
				}
				switch {
				case one.Err == nil:
				case a.json && damaged == nil: // which the command reports when it ends
					damaged = fmt.Errorf("%s: %w", one.Name, one.Err)
				default:
					a.fail(fmt.Errorf("%s: %w", one.Name, one.Err))
					damaged = cmp.Or(damaged, error(exit(status(one.Err))))
				}
			}
			err = a.print(listed, func(w *sanitize.Writer) error {
				if len(listed) == 0 && damaged == nil {
					w.Printf("There is no team. Create one: cadre create NAME, or run a team file: cadre run FILE\n")
					return a.alsoInGit(c.Context(), w, here)
				}
				if err := writeGroups(w, listed); err != nil {
					return err
				}
				return a.alsoInGit(c.Context(), w, here)
			})
			return errors.Join(err, damaged)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "list archived runs, too")
	c.Flags().BoolVar(&git, "git", false, "list the teams that the repository has checkpoints of")
	return c
}

// writeGroups writes the teams as tables: those of this project, those of other projects, and the
// archive. A single group of teams has no heading.
func writeGroups(w *sanitize.Writer, listed []overview) error {
	groups := [3][]overview{}
	for _, o := range listed {
		switch {
		case o.Archived:
			groups[2] = append(groups[2], o)
		case o.Here:
			groups[0] = append(groups[0], o)
		default:
			groups[1] = append(groups[1], o)
		}
	}
	table := func(head string) *render.Table {
		t := &render.Table{Texts: []string{"DIRECTORY"}, Spare: []string{"LAST CHANGE", "TEAMMATES", "TASKS DONE"},
			Numbers: []string{"WAITING"}}
		t.Row(head, "STATUS", "TASKS DONE", "TEAMMATES", "WAITING", "LAST CHANGE", "DIRECTORY")
		return t
	}
	row := func(t *render.Table, name string, o overview) {
		done, waiting := "", ""
		if o.Tasks["pending"]+o.Tasks["in_progress"]+o.Tasks["completed"] > 0 {
			done = o.progress()
		}
		if len(o.Attention) > 0 {
			waiting = fmt.Sprint(len(o.Attention))
		}
		t.Row(name, o.State(), done, o.teammates(), waiting, render.Ago(now(), o.UpdatedAt), o.Dir)
	}
	live, archive := table("NAME"), table("ID")
	for i, heading := range []string{"This project", "Other projects"} {
		if len(groups[i]) == 0 {
			continue
		}
		if len(groups[i]) < len(listed) {
			live.Group(heading)
		}
		for _, o := range groups[i] {
			row(live, o.Name, o)
		}
	}
	if len(groups[2]) < len(listed) {
		live.Compact()
		if err := live.Write(w); err != nil || len(groups[2]) == 0 {
			return err
		}
		w.Printf("\n")
	}
	archive.Group("Archive")
	for _, o := range groups[2] {
		row(archive, o.ID, o)
	}
	archive.Compact()
	return archive.Write(w)
}
