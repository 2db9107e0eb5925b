package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/consolidate"
	"cadre/internal/engine/upkeep"
	"cadre/internal/inspect"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/replica"
	"cadre/internal/team"
)

func (a *app) reviewCommand() *cobra.Command {
	return a.looking(0, &cobra.Command{
		Use: "review [TEAM]", Short: "Read a team that has ended, and change nothing",
		Long: "Read what became of a team that is complete or was aborted: its members, tasks with their results, " +
			"the last messages, and where\nits report is. A team whose name was given to a new one is found under " +
			"its id. Nothing can be changed in it any more; its whole\nhistory is in cadre log.",
	}, func(c *cobra.Command, d opened, _ []string) error {
		if t := d.Team(); t.Status != team.TeamComplete && t.Status != team.TeamAborted {
			return &team.Error{Code: team.NotReady, Text: fmt.Sprintf("team %s is %s, not at its end; what it does "+
				"is in cadre status %s", d.name, t.Status, d.name)}
		}
		found, err := inspect.Examine(c.Context(), d.Replica, d.dir, time.Now())
		if err != nil {
			return err
		}
		var tasks []team.Task
		d.View(func(s *team.State) { tasks = slices.Collect(s.Tasks()) })
		value := struct {
			*inspect.Examination
			All    []team.Task         `json:"all"`
			Record *consolidate.Record `json:"record,omitempty"`
		}{Examination: found, All: tasks}
		if value.Record, err = consolidate.Sealed(d.dir); err != nil {
			return err
		}
		return a.print(value, func(w *sanitize.Writer) error {
			if err := writeReview(w, found, tasks); err != nil {
				return err
			}
			return a.writeRecord(c.Context(), w, d.Replica, d.dir)
		})
	})
}

func writeReview(w *sanitize.Writer, e *inspect.Examination, tasks []team.Task) error {
	if err := writeExamination(w, e); err != nil {
		return err
	}
	if e.Team.LastWords != "" {
		w.Printf("\n%s\n", sanitize.Block(e.Team.LastWords))
	}
	if len(tasks) > 0 {
		w.Printf("\n")
		table := render.NewTable(len(tasks)+1, "TASK", "STATUS", "BY", "SUBJECT", "RESULT")
		for _, t := range tasks {
			result := t.Result
			if t.GivenUp() {
				result = t.Failure
			}
			table.Row(t.ID, render.TaskState(t), t.CompletedBy, t.Subject, firstLine(result))
		}
		if err := table.Write(w); err != nil {
			return err
		}
	}
	if e.Team.Report != "" {
		w.Printf("\nreport: %s\n", e.Team.Report)
	}
	return nil
}

func (a *app) abortCommand() *cobra.Command {
	var reason string
	c := a.onTeam(0, &cobra.Command{
		Use: "abort [TEAM]", Short: "End a team at once, and keep its record",
		Long: "End every session of a team at once, and the team with them. Its record is kept: cadre review reads " +
			"it. It may be called again\nwhile something is still there.",
	}, func(c *cobra.Command, name string, _ []string) error {
		ctx, cancel := context.WithTimeoutCause(c.Context(), time.Minute,
			fmt.Errorf("not everybody has ended within a minute"))
		defer cancel()
		rep, dir, err := a.open(ctx, name, true)
		if err != nil {
			return err
		}
		defer rep.Close()
		err = upkeep.Abort(ctx, a.upkeep(rep, dir), reason)
		if lingers, ok := errors.AsType[*upkeep.LingeringError](err); ok {
			again := "; run cadre abort again"
			if strings.Contains(lingers.What, "consolidation") {
				again = ""
			}
			return team.Refuse(team.NotReady, "%s%s", lingers, again).With(team.HintsOf(lingers.Err)...)
		}
		if err != nil {
			return err
		}
		return a.print(rep.Team(), said("team %s is aborted; to read its record: cadre review %s", name, name))
	})
	c.Flags().StringVar(&reason, "reason", "", "why, for the record")
	return c
}

// windDown marks the team for its consolidation.
func (a *app) windDown(c *cobra.Command, args []string) error {
	name, _, err := a.split(c, args, 0)
	if err != nil {
		return err
	}
	return a.act(c, name, &team.SetStatus{Status: team.TeamConsolidating},
		func(rep *replica.Replica, _ *team.Record) error {
			return a.print(rep.Team(), said("team %s begins nothing new; when everybody is done: cadre consolidate %s",
				name, name))
		})
}

func (a *app) reassignCommand() *cobra.Command {
	var force bool
	c := a.onTeam(2, &cobra.Command{
		Use: "reassign [TEAM] TASK NAME", Short: "Give a task to another member, with what was done of it",
		Long: "Give a task to another member. What the present owner has changed where it works, and said last, goes " +
			"with it. A task that a\nliving member works on is taken from it only with --force.",
	}, func(c *cobra.Command, name string, args []string) error {
		return a.reassign(c.Context(), name, args[0], args[1], a.actor, force)
	})
	c.Flags().BoolVar(&force, "force", false, "also from a member that lives and works on it")
	actsAs(c)
	return c
}

func (a *app) reassign(ctx context.Context, name, task, to, actor string, force bool) error {
	ctx, cancel := context.WithTimeoutCause(ctx, lockWait, fmt.Errorf("team %s was busy for %s", name, lockWait))
	defer cancel()
	rep, dir, err := a.open(ctx, name, true)
	if err != nil {
		return err
	}
	defer rep.Close()
	var t team.Task
	var there bool
	rep.View(func(s *team.State) { t, there = s.Task(task) })
	if !there {
		return &team.Error{Code: team.NotFound, Text: fmt.Sprintf("no task %q in team %s; cadre task list %s shows "+
			"the tasks", task, name, name)}
	}
	t, err = upkeep.Reassign(ctx, a.upkeep(rep, dir), upkeep.Reassignment{Task: task, To: to, Force: force})
	if busy, ok := errors.AsType[*upkeep.BusyError](err); ok {
		return &team.Error{Code: team.NotReady, Text: fmt.Sprintf("%s%s; to take it from it: cadre reassign %s %s %s "+
			"--force", busy, perhaps(busy.Member), name, task, to)}
	}
	if err != nil {
		return err
	}
	what := ""
	if t.Saved != nil && t.Saved.Member != to {
		what = ", with what " + t.Saved.Member + " had done of it"
	}
	return a.print(t, said("task %s is %s's now%s", task, to, what))
}

// perhaps is why a member that is not known to be offline has to be reckoned with.
func perhaps(m inspect.Member) string {
	switch m.Life {
	case inspect.Outside:
		return ", and whether that session lives is not known"
	case inspect.Unknown:
		return ", and it is not known whether it lives: " + m.Why
	}
	return fmt.Sprintf(" and is %s", m.Life)
}

func (a *app) resendCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "resend TEAM NAME [SEQ...]", Short: "Send messages again that were not delivered", Args: atLeast(2),
		Long: "Send messages again that wait for a member: those that are late, or the ones named. They stay the " +
			"same messages: a member that has\none already does not see it twice.",
		RunE: func(c *cobra.Command, args []string) error {
			body := &team.ResendMessages{Member: args[1]}
			for _, arg := range args[2:] {
				seq, err := strconv.ParseInt(strings.TrimPrefix(arg, "#"), 10, 64)
				if err != nil {
					return usage{fmt.Errorf("%q is no number of a message", arg)}
				}
				body.Seqs = append(body.Seqs, seq)
			}
			return a.act(c, args[0], body, func(_ *replica.Replica, r *team.Record) error {
				e, _ := find[*team.MessagesResent](r)
				if e == nil {
					e = &team.MessagesResent{Member: args[1]}
				}
				return a.print(map[string]any{"member": e.Member, "seqs": e.Seqs},
					said("%s sent to %s again", plural(len(e.Seqs), "message"), e.Member))
			})
		},
	}
	actsAs(c)
	return c
}

func (a *app) factsCommand() *cobra.Command {
	var record bool
	var add []string
	c := a.onTeam(0, &cobra.Command{
		Use: "facts [TEAM]", Short: "Show the files that everybody relies on, and whether they changed",
		Long: "Show the files that the team named as shared facts, in its file or with --add, and whether they are " +
			"as they were when the team\nlast took note of them. With --record it takes note of them as they are now.",
	}, func(c *cobra.Command, name string, _ []string) error {
		ctx := c.Context()
		rep, dir, err := a.open(ctx, name, true)
		if err != nil {
			return err
		}
		defer rep.Close()
		var more []team.Fact
		for _, one := range add {
			f, err := factOf(one)
			if err != nil {
				return err
			}
			more = append(more, f)
		}
		if record || len(add) > 0 {
			if err := upkeep.RecordFacts(ctx, a.upkeep(rep, dir), more...); err != nil {
				return err
			}
		}
		found, err := inspect.Examine(ctx, rep, dir, time.Now())
		if err != nil {
			return err
		}
		return a.print(found.Facts, func(w *sanitize.Writer) error {
			if len(found.Facts) == 0 {
				return said("team %s relies on no files; to name one: cadre facts %s --add NAME=PATH", name, name)(w)
			}
			var table render.Table
			table.Row("FACT", "STATE", "PATH")
			for _, f := range found.Facts {
				table.Row(f.Name, f.State(), f.Path)
			}
			return table.Write(w)
		})
	})
	c.Flags().BoolVar(&record, "record", false, "take note of them as they are now")
	c.Flags().StringArrayVar(&add, "add", nil, "NAME=PATH, or PATH: one more, recorded as it is now; may be repeated")
	return c
}

// factsOf reads facts, and takes note of them as they are now.
func factsOf(ctx context.Context, dir string, args []string) (facts []team.Fact, err error) {
	for _, arg := range args {
		f, err := factOf(arg)
		if err != nil {
			return nil, err
		}
		facts = append(facts, f)
	}
	return inspect.Recorded(ctx, dir, facts)
}

// factOf reads NAME=PATH, or a path alone, which is its name too.
func factOf(arg string) (team.Fact, error) {
	name, path, named := strings.Cut(arg, "=")
	if !named {
		name, path = arg, arg
	}
	if strings.TrimSpace(name) == "" || strings.TrimSpace(path) == "" {
		return team.Fact{}, usage{fmt.Errorf("%q is no fact; it is like NAME=PATH", arg)}
	}
	if path = filepath.Clean(path); strings.HasPrefix(path, ".."+string(os.PathSeparator)) || path == ".." {
		return team.Fact{}, usage{fmt.Errorf("%s is outside of the team's directory; name it by its whole path", path)}
	}
	return team.Fact{Name: name, Path: path}, nil
}
