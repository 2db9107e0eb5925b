package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/inspect/catalog"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/replica"
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
			found, err := catalog.List(c.Context(), a.home, a.note)
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
				var t render.Table
				t.Row("NAME", "STATUS", "TASKS DONE", "TEAMMATES", "WAITING", "LAST CHANGE", "DIRECTORY")
				for _, o := range all {
					t.Row(o.Name, o.state(), o.progress(), o.teammates(), fmt.Sprint(len(o.Attention)),
						render.Ago(replica.Now(), o.UpdatedAt), o.Dir)
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

func (a *app) logCommand() *cobra.Command {
	var follow bool
	var after int64
	c := a.looking(0, &cobra.Command{
		Use: "log [TEAM]", Short: "Show what happened, all of it",
		Long: "Show the history of a team, the oldest first. With --follow it goes on with what happens until the " +
			"team has ended or you\ninterrupt it. With --json it prints an array of records, or with --follow one " +
			"record a line.",
	}, func(c *cobra.Command, d opened, _ []string) error {
		stays()
		ctx := c.Context()
		records, between := d.Read(ctx, after), ","
		if follow {
			records, between = d.Watch(ctx, after), ""
		}
		if a.json && !follow {
			a.out.Printf("[")
		}
		first := true
		for r, err := range records {
			if err != nil {
				if follow && ctx.Err() != nil {
					return nil
				}
				return err
			}
			if err := a.printRecord(r, first, between); err != nil {
				return err
			}
			first = false
			if follow && r.Seq == d.Seq() && ended(d.Team()) {
				break
			}
			if follow && r.Seq > d.Seq() {
				if d.Refresh(ctx); ended(d.Team()) && d.Seq() == r.Seq {
					break
				}
			}
		}
		if a.json && !follow {
			a.out.Printf("]\n")
		}
		return nil
	})
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what happens")
	c.Flags().Int64Var(&after, "after", 0, "begin after this seq")
	return c
}

func ended(t team.Team) bool { return t.Ended() }

func (a *app) printRecord(r *team.Record, first bool, between string) error {
	if !a.json {
		return writeRecord(a.out.Writer, r)
	}
	if between == "" {
		return a.out.Value(r)
	}
	out, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if !first {
		out = append([]byte(between), out...)
	}
	_, err = a.out.JSON().Write(out)
	return err
}

// writeRecord writes a record for people: a line for each thing that happened.
func writeRecord(w *sanitize.Writer, r *team.Record) error {
	for _, line := range render.Lines(r) {
		if err := w.Printf("%6d  %s  %s\n", r.Seq, time.UnixMilli(int64(r.At)).Format("2006-01-02 15:04:05"),
			line); err != nil {
			return err
		}
	}
	return nil
}
