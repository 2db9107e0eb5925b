package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/inspect/catalog"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// overview is a team in a list, or the head of its status.
type overview struct {
	catalog.Overview
	called string // its name in commands, in a list
}

// teammates returns how many teammates there are, and how many are offline or zombies.
func (o overview) teammates() string {
	if o.Teammates == 0 {
		return ""
	}
	return fmt.Sprint(o.Teammates) + prefix(", ", counted(o.Offline, "offline", o.Zombies, "without a lead"))
}

// directory returns the directory, and why it cannot be used.
func (o overview) directory() string {
	if o.Unusable == "" {
		return o.Dir
	}
	return o.Dir + " (" + o.Unusable + ")"
}

func (o overview) counts() (done, all int) {
	for _, n := range o.Tasks {
		all += n
	}
	return o.Tasks["completed"], all
}

func (a *app) lsCommand() *cobra.Command {
	var git, all bool
	c := &cobra.Command{
		Use: "ls", SuggestFor: []string{"list", "teams"}, Short: "List the teams", Args: exactly(0),
		Long: `List the teams, those of your current project first. WAITING is the number of items that wait for a
person: cadre attention lists them. A dormant team has not ended, and none of its processes is running: cadre resume
NAME continues it. An interrupted one was being consolidated: cadre consolidate NAME finishes that.

A name is unique in a project, which is a git repository with all of its work trees. In the project it stands for the
project's team; where several teams of other projects have it, give the id.

A team in a team stands indented below the team that it is for.

--all lists archived runs, too, by their ids. A finished run is archived when its team file is run again. cadre status
ID, cadre log ID and cadre review ID show one, and cadre cleanup ID removes it.

--git lists the teams that the repository you are in has checkpoints of, on its own branches or on fetched ones. They
may come from another machine. cadre resume NAME --from-git continues one here.`,
		Example: "  cadre ls --all",
		RunE: func(c *cobra.Command, _ []string) error {
			if git {
				return a.listGit(c.Context())
			}
			return a.listTeams(c.Context(), all)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "list archived runs, too")
	c.Flags().BoolVar(&git, "git", false, "list the teams that the repository has checkpoints of")
	return c
}

// listTeams prints the teams, and what is wrong with those that cannot be read.
func (a *app) listTeams(ctx context.Context, all bool) error {
	found, err := a.engine().List(ctx, all)
	if err != nil {
		return err
	}
	listed := []overview{}
	var here []string // ids, and the names that are taken in this project
	var unread []string
	var damaged error
	for _, one := range found {
		switch o := one.Overview; {
		case o.ID == "": // it cannot be read
			here, unread = append(here, one.Name), append(unread, one.Name)
		case o.Here && !o.Archived:
			here = append(here, o.ID, o.Name)
		case !o.Archived:
			here = append(here, o.ID)
		}
		if one.Overview.Name != "" {
			listed = append(listed, overview{one.Overview, one.Name})
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
			return a.alsoInGit(ctx, w, here)
		}
		if err := writeGroups(w, listed, unread); err != nil {
			return err
		}
		if err := writeMoved(w, listed); err != nil {
			return err
		}
		return a.alsoInGit(ctx, w, here)
	})
	return errors.Join(err, damaged)
}

// writeMoved writes what to do about teams whose directories cannot be used.
func writeMoved(w *sanitize.Writer, listed []overview) error {
	for _, o := range listed {
		for _, i := range o.Attention {
			if i.Kind != team.ItemDirectory {
				continue
			}
			if err := writeItems(w, o.called, []team.Item{i}); err != nil {
				return err
			}
		}
	}
	return nil
}

// leveled is a team in a list of trees, with its level below the first team of its tree.
type leveled struct {
	overview
	level int
}

// nestedBelow returns the teams in their order, but each nested team below the team that it is for.
func nestedBelow(all []overview) (list []leveled) {
	here, below := map[string]bool{}, map[string][]overview{}
	for _, o := range all {
		here[o.ID] = true
	}
	var roots []overview
	for _, o := range all {
		if o.Parent != "" && here[o.Parent] && o.Parent != o.ID {
			below[o.Parent] = append(below[o.Parent], o)
		} else {
			roots = append(roots, o)
		}
	}
	var add func(o overview, level int)
	add = func(o overview, level int) {
		list = append(list, leveled{o, level})
		if level < team.MostDepth {
			for _, child := range below[o.ID] {
				add(child, level+1)
			}
		}
	}
	for _, o := range roots {
		add(o, 0)
	}
	return list
}

// damagedRows adds a row for each team that cannot be read.
func damagedRows(t *render.Table, unread []string) {
	if len(unread) > 0 {
		t.Group("Damaged")
	}
	for _, name := range unread {
		t.Row(name, "cannot be read", "", "", "", "", "")
	}
}

// writeGroups writes the teams as tables: those of this project, those of other projects, those
// that cannot be read, and the archive. A single group of teams has no heading.
func writeGroups(w *sanitize.Writer, listed []overview, unread []string) error {
	all := len(listed) + len(unread)
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
		if completed, all := o.counts(); all > 0 {
			done = fmt.Sprintf("%d of %d", completed, all)
		}
		if len(o.Attention) > 0 {
			waiting = fmt.Sprint(len(o.Attention))
		}
		t.Row(name, o.State(), done, o.teammates(), waiting, render.Ago(now(), o.UpdatedAt), o.directory())
	}
	live, archive := table("NAME"), table("ID")
	for i, heading := range []string{"This project", "Other projects"} {
		if len(groups[i]) == 0 {
			continue
		}
		if len(groups[i]) < all {
			live.Group(heading)
		}
		for _, o := range nestedBelow(groups[i]) {
			row(live, strings.Repeat("  ", o.level)+o.Name, o.overview)
		}
	}
	damagedRows(live, unread)
	if len(groups[2]) < all {
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
