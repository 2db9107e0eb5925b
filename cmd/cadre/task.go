package main

import (
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/replica"
	"cadre/internal/team"
)

func (a *app) taskCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "task", Short: "The task list: add, list, show, update, claim, done, fail, release, rm, rollback",
		Args: subcommand,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.taskAdd(), a.taskList(), a.taskShow(), a.taskUpdate(), a.taskClaim(), a.taskDone(), a.taskFail(),
		a.taskRelease(), a.taskRemove(), a.taskRollBack())
	return c
}

// printTask prints the task as it is after a command.
func (a *app) printTask(rep *replica.Replica, id, format string, args ...any) error {
	var t team.Task
	rep.View(func(s *team.State) { t, _ = s.Task(id) })
	return a.print(t, said(format, args...))
}

func list(text string) []string {
	var ids []string
	for id := range strings.SplitSeq(text, ",") {
		if id = strings.TrimPrefix(strings.TrimSpace(id), "#"); id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

func (a *app) taskAdd() *cobra.Command {
	var body team.CreateTask
	var before, meta string
	var timeout time.Duration
	c := a.onTeam(1, &cobra.Command{
		Use: "add [TEAM] SUBJECT", Short: "Add a task",
	}, func(c *cobra.Command, name string, args []string) (err error) {
		body.Subject, body.BlockedBy, body.TimeoutMS = args[0], list(before), timeout.Milliseconds()
		if body.Metadata, err = metadata(meta); err != nil {
			return err
		}
		return a.act(c, name, &body, func(rep *replica.Replica, r *team.Record) error {
			a.winding(rep.Team())
			e, _ := find[*team.TaskCreated](r)
			rep.View(func(s *team.State) {
				if e.Task.Owner == "" && s.NeedsWorktree(e.Task.ID) {
					a.note(fmt.Sprintf("task %s builds on work on a branch: members with a worktree take it, and are "+
						"given that work", e.Task.ID))
				}
				if s.Awaits(e.Task.ID) {
					a.note(awaits(e.Task.ID, e.Task.Owner, name))
				}
			})
			return a.printTask(rep, e.Task.ID, "task %s: %s", e.Task.ID, e.Task.Subject)
		})
	})
	f := c.Flags()
	f.StringVar(&body.Run, "run", "", "command that a shell teammate runs for it")
	f.StringVar(&body.In, "in", "", "merged: the command runs in a worktree in which the work of all members is merged")
	f.StringVar(&before, "blocked-by", "", "ids of the tasks that come first, separated by commas")
	f.StringVar(&body.Priority, "priority", team.DefaultPriority, strings.Join(team.Priorities, ", "))
	f.StringVar(&body.Description, "description", "", "what is to be done")
	f.StringVar(&body.ActiveForm, "active-form", "", "the subject as something that is being done")
	f.StringVar(&body.Owner, "owner", "", "the member that it is for")
	f.StringVar(&body.Role, "role", "", "only members of this role take it")
	f.DurationVar(&timeout, "timeout", 0, "of its command")
	f.Int64Var(&body.Retries, "retries", 0, "how often it is tried again when it fails")
	f.StringVar(&meta, "metadata", "", "a JSON object of anything")
	actsAs(c)
	return c
}

// awaits says that a task is for somebody who is not on the team, so that a name that was mistyped
// is noticed.
func awaits(task, owner, team string) string {
	return fmt.Sprintf("nobody on the team is named %s: task %s waits until you spawn that member with: cadre "+
		"spawn %s %s", owner, task, team, owner)
}

func metadata(text string) (m map[string]json.RawMessage, err error) {
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return nil, usage{fmt.Errorf("--metadata is not a JSON object: %w", err)}
	}
	return m, nil
}

func (a *app) taskList() *cobra.Command {
	var status, owner string
	var claimable bool
	c := a.looking(0, &cobra.Command{
		Use: "list [TEAM]", Aliases: []string{"ls"}, Short: "List the tasks",
	}, func(c *cobra.Command, d opened, _ []string) (err error) {
		switch team.TaskStatus(status) {
		case "", team.Pending, team.InProgress, team.Completed:
		default:
			return usage{fmt.Errorf("%q is no status of a task; it is pending, in_progress or completed", status)}
		}
		d.View(func(s *team.State) {
			tasks := s.Tasks()
			switch {
			case claimable:
				tasks = slices.Values(s.Claimable(owner))
			case status != "" || owner != "":
				tasks = only(tasks, team.TaskStatus(status), owner)
			}
			err = a.printTasks(s, tasks)
		})
		return err
	})
	c.Flags().StringVar(&status, "status", "", "only those that are pending, in_progress or completed")
	c.Flags().StringVar(&owner, "owner", "", "only those of this member")
	c.Flags().BoolVar(&claimable, "claimable", false, "only those that could be claimed now, in the order of claim "+
		"--next; with --owner those that this member could claim")
	return c
}

// only are the tasks in that state and of that owner; "" stands for any.
func only(tasks iter.Seq[team.Task], status team.TaskStatus, owner string) iter.Seq[team.Task] {
	return func(yield func(team.Task) bool) {
		for t := range tasks {
			if (status == "" || t.Status == status) && (owner == "" || t.Owner == owner) && !yield(t) {
				return
			}
		}
	}
}

// printTasks prints a list that may be long, without holding it a second time.
func (a *app) printTasks(s *team.State, tasks iter.Seq[team.Task]) error {
	if a.json {
		out := a.out.JSON()
		if err := team.WriteTasks(out, tasks); err != nil {
			return err
		}
		_, err := out.Write([]byte("\n"))
		return err
	}
	all := s.Count(team.Pending) + s.Count(team.InProgress) + s.Count(team.Completed)
	row := []string{"ID", "STATUS", "OWNER", "PRIORITY"}
	bills := s.Team().Usage != (team.Usage{})
	if bills {
		row = append(row, "TOKENS", "COST")
	}
	row = append(row, "SUBJECT")
	t := render.NewTable(all+1, row...)
	empty := true
	for task := range tasks {
		empty = false
		row = append(row[:0], task.ID, render.TaskState(task), task.Owner, task.Priority)
		if bills {
			row = append(row, tokens(task.Usage), cost(task.Usage))
		}
		row = append(row, task.Subject)
		t.Row(row...)
	}
	if empty {
		return said("no tasks")(a.out.Writer)
	}
	return t.Write(a.out)
}

func describe(w *sanitize.Writer, name, folder string, t team.Task) error {
	w.Printf("task %s: %s\n\n", t.ID, t.Subject)
	var head render.Table
	row := func(what, value string) {
		if value != "" {
			head.Row("  "+what, value)
		}
	}
	row("status", render.TaskState(t))
	row("owner", t.Owner)
	row("role", t.Role)
	row("priority", t.Priority)
	row("blocked by", strings.Join(t.BlockedBy, ", "))
	row("blocks", strings.Join(t.Blocks, ", "))
	row("created by", t.CreatedBy)
	row("completed by", t.CompletedBy)
	if t.Attempts > 0 {
		row("attempts", fmt.Sprint(t.Attempts))
	}
	row("last failure", t.Failure)
	row("tokens", tokens(t.Usage))
	row("cost", cost(t.Usage))
	if t.CompletedAt > 0 && t.StartedAt > 0 {
		row("took", render.Span(time.Duration(t.CompletedAt-t.StartedAt)*time.Millisecond))
	}
	if err := head.Write(w); err != nil {
		return err
	}
	for _, part := range []struct{ name, text string }{{"description", t.Description}, {"command", t.Run},
		{"result", t.Result}} {
		if part.text != "" {
			w.Printf("\n%s:\n%s\n", part.name, sanitize.Block(part.text))
		}
	}
	return describeWork(w, name, folder, t)
}

func (a *app) taskUpdate() *cobra.Command {
	var subject, description, activeForm, owner, priority, run, meta string
	var addBlockedBy, removeBlockedBy, addBlocks, removeBlocks string
	c := a.onTeam(1, &cobra.Command{
		Use: "update [TEAM] ID", Short: "Change a task",
		Long: "Change what is named by a flag. --owner \"\" takes the owner away; a metadata value null deletes " +
			"its key.",
	}, func(c *cobra.Command, name string, args []string) (err error) {
		body := team.UpdateTask{Task: args[0], AddBlockedBy: list(addBlockedBy), RemoveBlockedBy: list(removeBlockedBy),
			AddBlocks: list(addBlocks), RemoveBlocks: list(removeBlocks)}
		for flag, to := range map[string]struct {
			field **string
			value *string
		}{"subject": {&body.Subject, &subject}, "description": {&body.Description, &description},
			"active-form": {&body.ActiveForm, &activeForm},
			"owner":       {&body.Owner, &owner}, "priority": {&body.Priority, &priority}, "run": {&body.Run, &run}} {
			if c.Flags().Changed(flag) {
				*to.field = to.value
			}
		}
		if body.Metadata, err = metadata(meta); err != nil {
			return err
		}
		return a.act(c, name, &body, func(rep *replica.Replica, _ *team.Record) error {
			rep.View(func(s *team.State) {
				if owner := body.Owner; owner != nil && s.Awaits(args[0]) {
					a.note(awaits(args[0], *owner, name))
				}
			})
			return a.printTask(rep, args[0], "task %s is changed", args[0])
		})
	})
	f := c.Flags()
	f.StringVar(&subject, "subject", "", "new subject")
	f.StringVar(&description, "description", "", "new description")
	f.StringVar(&activeForm, "active-form", "", "new active form")
	f.StringVar(&owner, "owner", "", "new owner")
	f.StringVar(&priority, "priority", "", strings.Join(team.Priorities, ", "))
	f.StringVar(&run, "run", "", "new command; it is tried as if it were the first")
	f.StringVar(&meta, "metadata", "", "a JSON object; null deletes a key")
	f.StringVar(&addBlockedBy, "add-blocked-by", "", "ids of tasks that it is to wait for")
	f.StringVar(&removeBlockedBy, "remove-blocked-by", "", "ids of tasks that it need not wait for")
	f.StringVar(&addBlocks, "add-blocks", "", "ids of tasks that are to wait for it")
	f.StringVar(&removeBlocks, "remove-blocks", "", "ids of tasks that need not wait for it")
	actsAs(c)
	return c
}

func (a *app) taskClaim() *cobra.Command {
	var next bool
	c := &cobra.Command{
		Use: "claim [TEAM] ID --as NAME", Short: "Claim a task for a member",
		Long: "Claim a task, or with --next the next one: the highest priority first, then the lowest id, without " +
			"those that are blocked or\nmeant for others. Of any number of claims for one task one wins; the others " +
			"end with status 1. The fence that is printed\nmay be given to done: it is then refused if the claim was " +
			"lost meanwhile.",
		RunE: func(c *cobra.Command, args []string) error {
			needed := 1
			if next {
				needed = 0
			}
			name, args, err := a.split(c, args, needed)
			if err != nil {
				return err
			}
			var body team.ClaimTask
			if !next {
				body.Task = args[0]
			}
			if a.actor == team.User {
				return usage{fmt.Errorf("say for whom, with --as NAME")}
			}
			return a.act(c, name, &body, func(rep *replica.Replica, r *team.Record) error {
				e, _ := find[*team.TaskClaimed](r)
				var subject string
				rep.View(func(s *team.State) { t, _ := s.Task(e.Task); subject = t.Subject })
				return a.printTask(rep, e.Task, "task %s is claimed by %s (fence %d): %s", e.Task, e.Member,
					e.Fence, subject)
			})
		},
	}
	c.Flags().String("as", "", "the member")
	c.Flags().BoolVar(&next, "next", false, "the next one of the list")
	return c
}

func (a *app) taskDone() *cobra.Command {
	var result string
	var fence int64
	c := a.onTeam(1, &cobra.Command{
		Use: "done [TEAM] ID --as NAME", Short: "Complete a task",
		Long: "Complete a task with its result. A member completes what it holds; without --as you complete it as " +
			"the one who leads.\nTaskCompleted hooks may reject it, with status 1 and their feedback.",
	}, func(c *cobra.Command, name string, args []string) (err error) {
		if result, err = text(c, result); err != nil {
			return err
		}
		return a.act(c, name, &team.CompleteTask{Task: args[0], Fence: fence, Result: result},
			func(rep *replica.Replica, r *team.Record) error {
				e, _ := find[*team.TaskCompleted](r)
				freed := ""
				if len(e.Unblocked) > 0 {
					freed = "; it frees task " + strings.Join(e.Unblocked, ", ")
				}
				return a.printTask(rep, args[0], "task %s is completed%s", args[0], freed)
			})
	})
	c.Flags().String("as", "", "the member that holds it")
	c.Flags().StringVar(&result, "result", "", "what came of it; - for standard input")
	c.Flags().Int64Var(&fence, "fence", 0, "the fence of the claim")
	return c
}

func (a *app) taskFail() *cobra.Command {
	var reason string
	var fence int64
	c := a.onTeam(1, &cobra.Command{
		Use: "fail [TEAM] ID --as NAME", Short: "End an attempt at a task without success",
	}, func(c *cobra.Command, name string, args []string) error {
		return a.act(c, name, &team.FailTask{Task: args[0], Fence: fence, Reason: reason},
			func(rep *replica.Replica, _ *team.Record) error {
				return a.printTask(rep, args[0], "task %s failed", args[0])
			})
	})
	c.Flags().String("as", "", "the member that holds it")
	c.Flags().StringVar(&reason, "reason", "", "why")
	c.Flags().Int64Var(&fence, "fence", 0, "the fence of the claim")
	return c
}

func (a *app) taskRelease() *cobra.Command {
	var reason string
	c := a.onTeam(1, &cobra.Command{
		Use: "release [TEAM] ID", Short: "Put a task back on the list",
		Long: "Put a task back on the list: one in progress, or one that failed as often as it was to be tried.",
	}, func(c *cobra.Command, name string, args []string) error {
		return a.act(c, name, &team.ReleaseTask{Task: args[0], Reason: reason},
			func(rep *replica.Replica, _ *team.Record) error {
				return a.printTask(rep, args[0], "task %s is back on the list", args[0])
			})
	})
	c.Flags().String("as", "", "the member that holds it; you by default")
	c.Flags().StringVar(&reason, "reason", "", "why")
	return c
}

func (a *app) taskRemove() *cobra.Command {
	c := a.onTeam(1, &cobra.Command{
		Use: "rm [TEAM] ID", Short: "Take a task off the list",
	}, func(c *cobra.Command, name string, args []string) error {
		return a.act(c, name, &team.DeleteTask{Task: args[0]}, func(rep *replica.Replica, _ *team.Record) error {
			return a.printTask(rep, args[0], "task %s is deleted", args[0])
		})
	})
	actsAs(c)
	return c
}
