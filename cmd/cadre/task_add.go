package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cadre/internal/engine"
	"cadre/internal/render/sanitize"
	"cadre/internal/run"
	"cadre/internal/team"
)

func (a *app) taskAdd() *cobra.Command {
	var one taskTyped
	var file string
	c := a.saying(&cobra.Command{
		Use: "add [TEAM] SUBJECT", Short: "Add a task, or with --file several",
		Long: "Add a task. With --file, add the tasks of a file, or of standard input for -, all of them or none: a " +
			"YAML list of tasks\nwith the keys that they have in a team file, or a JSON object a line. id: is the " +
			"name of a task, and may be left out;\nblockedBy: names tasks of the file or of the team.",
		Example: "  cadre task add my-team 'Lint the billing service' --name lint-billing --run 'make lint'\n" +
			"  cadre task add my-team --file tasks.yaml",
	}, func(c *cobra.Command, name, subject string) error {
		body, err := one.command(c, subject)
		if err != nil {
			return err
		}
		return a.act(c, name, body, func(of *engine.Team, r *team.Record) error {
			a.winding(of.Team())
			e, _ := team.EventIn[*team.TaskCreated](r)
			of.View(func(s *team.State) {
				if e.Task.Owner == "" && s.NeedsWorktree(e.Task.ID) {
					a.note(fmt.Sprintf("task %s builds on work on a branch: members with a worktree take it, and are "+
						"given that work", s.Called(e.Task.ID)))
				}
				if s.Awaits(e.Task.ID) {
					a.note(awaits(s, e.Task.ID, name))
				}
			})
			return a.printTask(of, "#"+e.Task.ID, titled)
		})
	})
	one.flags(c)
	var describes []string // the flags of a single task
	c.Flags().VisitAll(func(f *pflag.Flag) { describes = append(describes, f.Name) })
	c.Flags().StringVar(&file, "file", "", "add the tasks of this file instead; - for standard input")
	actsAs(c)
	single := c.RunE
	several := a.onTeam(0, &cobra.Command{Use: c.Use}, func(c *cobra.Command, name string, _ []string) error {
		return a.addTasks(c, name, file)
	}).RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if !c.Flags().Changed("file") {
			return single(c, args)
		}
		for _, other := range describes {
			if c.Flags().Changed(other) {
				return usage{fmt.Errorf("with --file the tasks themselves say what --%s would", other)}
			}
		}
		return several(c, args)
	}
	return c
}

// taskTyped has what flags say of a new task.
type taskTyped struct {
	body                team.CreateTask
	before, paths, glob string
	items, meta         []string
	timeout             time.Duration
	demands             *demandsTyped
	verify              team.Verify
}

// flags adds the flags that describe a task.
func (t *taskTyped) flags(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&t.body.Name, "name", "", "its name; by default its number")
	f.StringVar(&t.body.Run, "run", "", "command that a shell teammate runs for it")
	f.StringArrayVar(&t.items, "for-each", nil, "make one task for this item, which its command has as $CADRE_ITEM; may "+
		"be repeated")
	f.StringVar(&t.glob, "for-each-glob", "", "make one task for each file of this pattern, such as 'src/**/*.go'")
	f.StringVar(&t.body.In, "in", "", "merged: the command runs in a worktree in which the work of all members is merged")
	f.StringVar(&t.body.Dir, "dir", "", "directory in which the command runs, below the one that its member works in")
	f.StringArrayVar(&t.body.Env, "env", nil, "NAME=VALUE, added to the environment of the command; may be repeated")
	f.StringVar(&t.paths, "paths", "", "the files that it changes, separated by commas: 'src/parser/**,docs/*.md'; "+
		"see cadre task paths")
	f.StringVar(&t.before, "blocked-by", "", "the tasks that it depends on, separated by commas")
	f.StringVar(&t.body.Priority, "priority", team.DefaultPriority, strings.Join(team.Priorities, ", "))
	f.StringVar(&t.body.Description, "description", "", "what to do")
	f.StringVar(&t.body.ActiveForm, "active-form", "", "the subject in the present continuous form: Fixing the parser")
	f.StringVar(&t.body.Owner, "owner", "", "the member that it is for")
	f.StringVar(&t.body.Role, "role", "", "only members of this role take it")
	f.DurationVar(&t.timeout, "timeout", 0, "how long one attempt of its command may take; 0 for 1h")
	f.Int64Var(&t.body.Retries, "retries", 0, "how often it is retried after a failure")
	metadataFlag(c, &t.meta, "what to keep with the task")
	f.StringVar(&t.verify.By, "verify", "", "the member or the role that verifies it before it counts as completed")
	f.Int64Var(&t.verify.Count, "verify-count", 0, "how many verify it; 1 by default")
	f.StringVar(&t.verify.Rule, "verify-rule", "", "all (by default) or majority: how many of them must accept it")
	f.Int64Var(&t.verify.Rounds, "verify-rounds", 0, "after so many rejections the attempt has failed; 3 by default")
	f.StringVar(&t.body.When, "when", "", "always: it also runs if a task that it depends on has failed; failed: only "+
		"then")
	t.demands = demandFlags(f)
}

// command returns the command that creates the task.
func (t *taskTyped) command(c *cobra.Command, subject string) (body *team.CreateTask, err error) {
	body = &t.body
	body.Subject, body.BlockedBy, body.Paths, body.Timeout = subject, list(t.before), list(t.paths), t.timeout
	if err := t.demands.set(body, c); err != nil {
		return nil, err
	}
	if len(t.items) > 0 || t.glob != "" {
		body.ForEach = &team.ForEach{Glob: t.glob}
		for _, text := range t.items {
			body.ForEach.Items = append(body.ForEach.Items, team.TextItem(text))
		}
	}
	if t.verify != (team.Verify{}) {
		body.Verify = &t.verify
	}
	body.Metadata, err = metadataOf(t.meta)
	return body, err
}

// addTasks adds the tasks of a file, or of standard input, in one record.
func (a *app) addTasks(c *cobra.Command, name, file string) error {
	tasks, err := run.LoadTasks(file, c.InOrStdin())
	if err != nil {
		return usage{err}
	}
	build := func(s *team.State) (team.Body, error) { return run.AddTasks(s, tasks) }
	return a.engine().ActOn(c.Context(), name, a.actor, build, func(of *engine.Team, r *team.Record) error {
		a.winding(of.Team())
		var added []team.Task
		of.View(func(s *team.State) {
			for _, e := range r.Events {
				if e, is := e.(*team.TaskCreated); is {
					t, _ := s.Task(e.Task.ID)
					added = append(added, t)
				}
			}
		})
		return a.print(added, func(w *sanitize.Writer) error {
			for _, t := range added {
				w.Printf("task %s\n", titled(t))
			}
			return w.Printf("%s added\n", team.Count(len(added), "task"))
		})
	})
}
