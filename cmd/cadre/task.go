package main

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/run"
	"cadre/internal/team"
)

func (a *app) taskCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "task", Short: "Add, list, show, change and claim tasks",
		Long: "Add, list, show, change and claim tasks. ID is the name of a task or its number. Where a name is a " +
			"number, too, '#2' is\nthe task with the number 2. Quote it: a shell takes #2 for a comment.",
		Example: "  cadre task show my-team lint-billing\n  cadre task show my-team '#2'",
		Args:    subcommand,
		RunE:    func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.taskAdd(), a.taskList(), a.taskShow(), a.taskUpdate(), a.taskClaim(), a.taskDone(), a.taskFail(),
		a.taskRelease(), a.taskRemove(), a.taskRollBack())
	return c
}

// printTask prints the state of a task after a command, and what happened to it.
func (a *app) printTask(of *engine.Team, ref string, became func(t team.Task) string) error {
	var t team.Task
	var err error
	if of.View(func(s *team.State) { t, err = s.Find(ref) }); err != nil {
		return err
	}
	return a.print(t, said("task %s", became(t)))
}

// titled returns the name of a task, and its subject if that differs.
func titled(t team.Task) string {
	if t.Subject == t.Name {
		return t.Name
	}
	return t.Called() + ": " + t.Subject
}

// is returns a function that says that the task is in that state.
func is(words string) func(t team.Task) string {
	return func(t team.Task) string { return t.Called() + " " + words }
}

func list(text string) []string {
	var ids []string
	for id := range strings.SplitSeq(text, ",") {
		if id = strings.TrimSpace(id); id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

func (a *app) taskAdd() *cobra.Command {
	var body team.CreateTask
	var before string
	var meta []string
	var timeout time.Duration
	var file string
	c := a.saying(&cobra.Command{
		Use: "add [TEAM] SUBJECT", Short: "Add a task, or with --file several",
		Long: "Add a task. With --file, add the tasks of a file, or of standard input for -, all of them or none: a " +
			"YAML list of tasks\nwith the keys that they have in a team file, or a JSON object a line. id: is the " +
			"name of a task, and may be left out;\nblockedBy: names tasks of the file or of the team.",
		Example: "  cadre task add my-team 'Lint the billing service' --name lint-billing --run 'make lint'\n" +
			"  cadre task add my-team --file tasks.yaml",
	}, func(c *cobra.Command, name, subject string) (err error) {
		body.Subject, body.BlockedBy, body.Timeout = subject, list(before), timeout
		if body.Metadata, err = metadataOf(meta); err != nil {
			return err
		}
		return a.act(c, name, &body, func(of *engine.Team, r *team.Record) error {
			a.winding(of.Team())
			e, _ := team.EventIn[*team.TaskCreated](r)
			of.View(func(s *team.State) {
				if e.Task.Owner == "" && s.NeedsWorktree(e.Task.ID) {
					a.note(fmt.Sprintf("task %s builds on work on a branch: members with a worktree take it, and are "+
						"given that work", e.Task.Called()))
				}
				if s.Awaits(e.Task.ID) {
					a.note(awaits(e.Task.Called(), e.Task.Owner, name))
				}
			})
			return a.printTask(of, "#"+e.Task.ID, titled)
		})
	})
	f := c.Flags()
	f.StringVar(&body.Name, "name", "", "its name; by default its number")
	f.StringVar(&file, "file", "", "add the tasks of this file instead; - for standard input")
	f.StringVar(&body.Run, "run", "", "command that a shell teammate runs for it")
	f.StringVar(&body.In, "in", "", "merged: the command runs in a worktree in which the work of all members is merged")
	f.StringVar(&body.Dir, "dir", "", "directory in which the command runs, below the one that its member works in")
	f.StringArrayVar(&body.Env, "env", nil, "NAME=VALUE, added to the environment of the command; may be repeated")
	f.StringVar(&before, "blocked-by", "", "the tasks that it depends on, separated by commas")
	f.StringVar(&body.Priority, "priority", team.DefaultPriority, strings.Join(team.Priorities, ", "))
	f.StringVar(&body.Description, "description", "", "what to do")
	f.StringVar(&body.ActiveForm, "active-form", "", "the subject in the present continuous form: Fixing the parser")
	f.StringVar(&body.Owner, "owner", "", "the member that it is for")
	f.StringVar(&body.Role, "role", "", "only members of this role take it")
	f.DurationVar(&timeout, "timeout", 0, "how long one attempt of its command may take; 0 for 1h")
	f.Int64Var(&body.Retries, "retries", 0, "how often it is retried after a failure")
	metadataFlag(c, &meta, "what to keep with the task")
	f.StringVar(&body.When, "when", "", "always: it also runs if a task that it depends on has failed")
	actsAs(c)
	one := c.RunE
	several := a.onTeam(0, &cobra.Command{Use: c.Use}, func(c *cobra.Command, name string, _ []string) error {
		return a.addTasks(c, name, file)
	}).RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if !c.Flags().Changed("file") {
			return one(c, args)
		}
		for _, other := range []string{"name", "run", "in", "dir", "env", "blocked-by", "priority", "description", "active-form",
			"owner",
			"role", "timeout", "retries", "metadata", "when"} {
			if c.Flags().Changed(other) {
				return usage{fmt.Errorf("with --file the tasks themselves say what --%s would", other)}
			}
		}
		return several(c, args)
	}
	return c
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

// awaits says that a task is for a name that no member has, so that a typo is noticed.
func awaits(task, owner, team string) string {
	return fmt.Sprintf("no member of the team is named %s: task %s waits until you spawn that member with: cadre "+
		"spawn %s %s", owner, task, team, owner)
}

func (a *app) taskList() *cobra.Command {
	var want wanted
	var claimable bool
	c := a.looking(0, &cobra.Command{
		Use: "list [TEAM]", Aliases: []string{"ls"}, Short: "List the tasks",
	}, func(c *cobra.Command, d *engine.Team, _ []string) (err error) {
		if err := want.check(); err != nil {
			return err
		}
		d.View(func(s *team.State) {
			if want.owner != "" {
				if err = owns(s, want.owner); err != nil {
					return
				}
			}
			tasks := s.Tasks()
			switch {
			case claimable:
				whom := want.owner
				want.owner = "" // their owners and roles
				tasks = want.only(slices.Values(s.Claimable(whom)))
			default:
				tasks = want.only(tasks)
			}
			err = a.printTasks(s, tasks)
		})
		return err
	})
	c.Flags().StringVar(&want.status, "status", "", "only those that are "+strings.Join(team.TaskStates, ", "))
	c.Flags().StringVar(&want.owner, "owner", "", "only those of this member")
	c.Flags().StringVar(&want.role, "role", "", "only those for this role")
	c.Flags().StringVar(&want.priority, "priority", "",
		"only those of this priority: "+strings.Join(team.Priorities, ", "))
	c.Flags().BoolVar(&claimable, "claimable", false, "only those that could be claimed now, in the order of claim "+
		"--next; with --owner those that this member could claim")
	return c
}

// owns refuses an owner that is not a member and has no task. A task may be for a future member.
func owns(s *team.State, name string) error {
	_, err := s.Named(name)
	for t := range s.Tasks() {
		if err == nil || t.Owner == name {
			return nil
		}
	}
	return err
}

// wanted selects tasks; "" selects all.
type wanted struct{ status, owner, role, priority string }

func (w wanted) check() error {
	if w.status != "" && !slices.Contains(team.TaskStates, w.status) {
		return usage{fmt.Errorf("%q is not a status of a task; use one of: %s", w.status,
			strings.Join(team.TaskStates, ", "))}
	}
	if w.priority != "" && !slices.Contains(team.Priorities, w.priority) {
		return usage{fmt.Errorf("%q is not a priority; use one of: %s", w.priority, strings.Join(team.Priorities, ", "))}
	}
	return nil
}

// only returns the selected tasks.
func (w wanted) only(tasks iter.Seq[team.Task]) iter.Seq[team.Task] {
	fits := func(want, is string) bool { return want == "" || want == is }
	return func(yield func(team.Task) bool) {
		for t := range tasks {
			if fits(w.status, t.State()) && fits(w.owner, t.Owner) && fits(w.role, t.Role) &&
				fits(w.priority, t.Priority) &&
				!yield(t) {
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
	row := []string{"TASK", "STATUS", "OWNER", "PRIORITY"}
	bills := s.Team().Usage != (team.Usage{})
	if bills {
		row = append(row, "TOKENS", "COST")
	}
	row = append(row, "SUBJECT")
	t := render.NewTable(all+1, row...)
	t.Texts, t.Spare = []string{"SUBJECT", "STATUS"}, []string{"PRIORITY", "COST", "TOKENS", "OWNER"}
	t.Numbers = []string{"TOKENS", "COST"}
	empty := true
	for task := range tasks {
		empty = false
		row = append(row[:0], task.Called(), render.TaskState(task), task.Owner, task.Priority)
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

func describe(w *sanitize.Writer, d *engine.Team, t team.Task) error {
	w.Printf("task %s\n\n", titled(t))
	head := render.NewList()
	row := func(what, value string) {
		if value != "" {
			head.Row("  "+what, value)
		}
	}
	if t.Name != "" {
		row("number", "#"+t.ID)
	}
	row("status", render.TaskState(t))
	row("owner", t.Owner)
	row("role", t.Role)
	row("priority", t.Priority)
	d.View(func(s *team.State) {
		row("blocked by", strings.Join(s.CalledAll(t.BlockedBy), ", "))
		row("blocks", strings.Join(s.CalledAll(t.Blocks), ", "))
	})
	row("created by", t.CreatedBy)
	row("completed by", t.CompletedBy)
	if t.Attempts > 0 {
		row("attempts", fmt.Sprint(t.Attempts))
	}
	row("last failure", t.Failure)
	row("tokens", tokens(t.Usage))
	row("cost", cost(t.Usage))
	if t.CompletedAt > 0 && t.StartedAt > 0 {
		row("took", team.Span(t.CompletedAt.Sub(t.StartedAt)))
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
	return describeWork(w, d, t)
}

func (a *app) taskUpdate() *cobra.Command {
	var subject, description, activeForm, owner, priority, run string
	var meta []string
	var addBlockedBy, removeBlockedBy, addBlocks, removeBlocks string
	c := a.onTeam(1, &cobra.Command{
		Use: "update [TEAM] ID", Short: "Change a task",
		Long: "Change the fields that flags name. --owner \"\" removes the owner; a metadata value null deletes " +
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
		if body.Metadata, err = metadataOf(meta); err != nil {
			return err
		}
		return a.act(c, name, &body, func(of *engine.Team, _ *team.Record) error {
			of.View(func(s *team.State) {
				if t, err := s.Find(args[0]); err == nil && body.Owner != nil && s.Awaits(t.ID) {
					a.note(awaits(t.Called(), *body.Owner, name))
				}
			})
			return a.printTask(of, args[0], is("is changed"))
		})
	})
	f := c.Flags()
	f.StringVar(&subject, "subject", "", "new subject")
	f.StringVar(&description, "description", "", "new description")
	f.StringVar(&activeForm, "active-form", "", "new active form")
	f.StringVar(&owner, "owner", "", "new owner")
	f.StringVar(&priority, "priority", "", strings.Join(team.Priorities, ", "))
	f.StringVar(&run, "run", "", "new command; it starts with all its retries")
	metadataFlag(c, &meta, "what to keep with the task (null deletes a key)")
	f.StringVar(&addBlockedBy, "add-blocked-by", "", "tasks that it depends on from now on")
	f.StringVar(&removeBlockedBy, "remove-blocked-by", "", "tasks that it no longer depends on")
	f.StringVar(&addBlocks, "add-blocks", "", "tasks that depend on it from now on")
	f.StringVar(&removeBlocks, "remove-blocks", "", "tasks that no longer depend on it")
	actsAs(c)
	return c
}

func (a *app) taskClaim() *cobra.Command {
	var next bool
	var wait waitFlags
	c := &cobra.Command{
		Use: "claim [TEAM] ID --as NAME", Short: "Claim a task for a member",
		Long: "Claim a task for a member. With --next it is the next task: the highest priority first, then the lowest " +
			"number. Tasks that\nare blocked or meant for others are skipped. If several members claim one task, one " +
			"gets it, and the other commands end with\nstatus 1. --next --wait waits for a task.\n\nThe number " +
			"called fence identifies the claim. Pass it to cadre task done --fence: done is then refused if the claim " +
			"was lost\nmeanwhile.",
		Example: "  cadre task claim my-team --next --wait --as ann",
		RunE: func(c *cobra.Command, args []string) error {
			needed := 1
			if next {
				needed = 0
			}
			name, rest, err := a.split(c, args, needed)
			if err == nil {
				err = a.claim(c, name, rest, wait)
			}
			return a.forgotten(c, args, needed, err)
		},
	}
	c.Flags().String("as", "", "the member")
	c.Flags().BoolVar(&next, "next", false, "the next task in the queue")
	wait.flags(c, "wait until there is a task for the member")
	return c
}

// claim claims the task that args name, or the next one.
func (a *app) claim(c *cobra.Command, name string, args []string, wait waitFlags) error {
	var body team.ClaimTask
	if len(args) > 0 {
		body.Task = args[0]
	}
	if a.actor == team.User {
		return usage{fmt.Errorf("name the member that claims, with --as NAME")}
	}
	if wait.on && body.Task != "" {
		return usage{fmt.Errorf("--wait needs --next")}
	}
	act := a.engine().Act
	if wait.on {
		act = a.engine().ActWhenReady
	}
	ctx, cancel, err := wait.begin(c.Context(), "there was no task for "+a.actor)
	if err != nil {
		return err
	}
	defer cancel()
	return wait.end(ctx, act(ctx, name, a.actor, &body, func(of *engine.Team, r *team.Record) error {
		e, _ := team.EventIn[*team.TaskClaimed](r)
		return a.printTask(of, "#"+e.Task, func(t team.Task) string {
			return fmt.Sprintf("%s is claimed by %s (fence %d): %s", t.Called(), e.Member, e.Fence, t.Subject)
		})
	}))
}

func (a *app) taskDone() *cobra.Command {
	var result string
	var fence int64
	c := a.onTeam(1, &cobra.Command{
		Use: "done [TEAM] ID [--as NAME]", Short: "Complete a task", SuggestFor: []string{"complete", "finish"},
		Long: "Complete a task with its result. A member completes a task that it claimed. Without --as you complete it " +
			"as the user.\nTaskCompleted hooks may reject it, with status 1 and their feedback.",
	}, func(c *cobra.Command, name string, args []string) (err error) {
		if result, err = text(c, result); err != nil {
			return err
		}
		return a.act(c, name, &team.CompleteTask{Task: args[0], Fence: fence, Result: result},
			func(of *engine.Team, r *team.Record) error {
				e, _ := team.EventIn[*team.TaskCompleted](r)
				freed := ""
				if len(e.Unblocked) > 0 {
					of.View(func(s *team.State) {
						freed = "; it frees task " +
							strings.Join(s.CalledAll(e.Unblocked), ", ")
					})
				}
				return a.printTask(of, args[0], is("is completed"+freed))
			})
	})
	c.Flags().String("as", "", "the member that holds it")
	c.Flags().StringVar(&result, "result", "", "its result; - for standard input")
	c.Flags().Int64Var(&fence, "fence", 0, "the fence of the claim")
	return c
}

func (a *app) taskFail() *cobra.Command {
	var reason string
	var fence int64
	c := a.onTeam(1, &cobra.Command{
		Use: "fail [TEAM] ID --as NAME", Short: "Record that an attempt at a task failed",
	}, func(c *cobra.Command, name string, args []string) error {
		return a.act(c, name, &team.FailTask{Task: args[0], Fence: fence, Reason: reason},
			func(of *engine.Team, _ *team.Record) error {
				return a.printTask(of, args[0], is("failed"))
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
		Use: "release [TEAM] ID", Short: "Return a task to the queue",
		Long: "Return a task to the queue: one in progress, or a failed one.",
	}, func(c *cobra.Command, name string, args []string) error {
		return a.act(c, name, &team.ReleaseTask{Task: args[0], Reason: reason},
			func(of *engine.Team, _ *team.Record) error {
				return a.printTask(of, args[0], is("is back in the queue"))
			})
	})
	c.Flags().String("as", "", "the member that holds it; you by default")
	c.Flags().StringVar(&reason, "reason", "", "why")
	return c
}

func (a *app) taskRemove() *cobra.Command {
	c := a.onTeam(1, &cobra.Command{
		Use: "rm [TEAM] ID", Short: "Delete a task",
	}, func(c *cobra.Command, name string, args []string) error {
		return a.act(c, name, &team.DeleteTask{Task: args[0]}, func(of *engine.Team, r *team.Record) error {
			e, _ := team.EventIn[*team.TaskDeleted](r)
			return a.printTask(of, "#"+e.Task, is("is deleted"))
		})
	})
	actsAs(c)
	return c
}
