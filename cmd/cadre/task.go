package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cadre/internal/engine"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

func (a *app) taskCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "task", SuggestFor: []string{"tasks"}, Short: "Add, list, show, change and claim tasks",
		Long: "Add, list, show, change and claim tasks. ID is the name of a task or its number. Where a name is a " +
			"number, too, '#2' is\nthe task with the number 2. Quote it: a shell takes #2 for a comment.",
		Example: "  cadre task show my-team lint-billing\n  cadre task show my-team '#2'",
		Args:    subcommand,
		RunE:    a.choice,
	}
	var below []string
	if len(a.typed) > 0 && a.typed[0] == c.Name() {
		below = a.typed[1:]
	}
	for _, one := range mentioned(taskCommands, below) {
		c.AddCommand(one.build(a))
	}
	return c
}

var taskCommands = []entry{
	{"add", "", (*app).taskAdd}, {"list", "", (*app).taskList}, {"show", "", (*app).taskShow},
	{"update", "", (*app).taskUpdate}, {"claim", "", (*app).taskClaim}, {"done", "", (*app).taskDone},
	{"fail", "", (*app).taskFail}, {"release", "", (*app).taskRelease}, {"rm", "", (*app).taskRemove},
	{"paths", "", (*app).taskPaths}, {"rollback", "", (*app).taskRollBack},
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

// only returns a list of one text; none for "".
func only(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// awaits says that a task is for a name that no member has, so that a typo is noticed.
func awaits(s *team.State, task, name string) string {
	t, _ := s.Task(task)
	agent := ""
	if t.Run == "" { // a shell, which is what is spawned by default, could not do it
		agent = " --agent AGENT"
	}
	return fmt.Sprintf("no member of the team is named %s: task %s waits until you spawn that member with: cadre "+
		"spawn %s %s%s", t.Owner, t.Called(), name, t.Owner, agent)
}

func (a *app) taskList() *cobra.Command {
	var want wanted
	var claimable, all bool
	c := a.looking(0, &cobra.Command{
		Use: "list [TEAM]", Aliases: []string{"ls"}, Short: "List the tasks",
		Long: "List the tasks. The tasks that a group made are folded under it, unless the list is narrowed; --all and " +
			"--json show them.",
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
			folds := !a.json && !all && !claimable && want == wanted{}
			switch {
			case claimable:
				claimant := want.owner
				want.owner = "" // their owners and roles
				tasks = want.only(slices.Values(s.Claimable(claimant)))
			default:
				tasks = want.only(tasks)
			}
			err = a.printTasks(s, tasks, folds)
		})
		return err
	})
	c.Flags().StringVar(&want.status, "status", "", "only those that are "+strings.Join(team.TaskStates, ", "))
	c.Flags().StringVar(&want.owner, "owner", "", "only those of this member")
	c.Flags().StringVar(&want.role, "role", "", "only those for this role")
	c.Flags().StringVar(&want.priority, "priority", "",
		"only those of this priority: "+strings.Join(team.Priorities, ", "))
	c.Flags().BoolVar(&all, "all", false, "also the tasks that groups made")
	c.Flags().BoolVar(&claimable, "claimable", false, "only those that could be claimed now, in the order of claim "+
		"--next; with --owner those that this member could claim")
	return c
}

// owns refuses an owner that is not a member and has no task. A task may be for a future member.
func owns(s *team.State, name string) error {
	_, err := s.Named(name)
	for t := range s.Tasks() {
		if err == nil || t.Worker() == name {
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
		return usage{fmt.Errorf("%q is not a priority; use one of: %s", w.priority,
			strings.Join(team.Priorities, ", "))}
	}
	return nil
}

// only returns the selected tasks.
func (w wanted) only(tasks iter.Seq[team.Task]) iter.Seq[team.Task] {
	fits := func(want, is string) bool { return want == "" || want == is }
	return func(yield func(team.Task) bool) {
		for t := range tasks {
			if fits(w.status, t.State()) && fits(w.owner, t.Worker()) && fits(w.role, t.Role) &&
				fits(w.priority, t.Priority) &&
				!yield(t) {
				return
			}
		}
	}
}

// printTasks prints a list that may be long, without holding it a second time. If folds is set, the
// table has no rows for the tasks that groups made.
func (a *app) printTasks(s *team.State, tasks iter.Seq[team.Task], folds bool) error {
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
	empty, folded := true, 0
	for task := range tasks {
		empty = false
		if folds && s.Folded(task) {
			folded++
			continue
		}
		row = append(row[:0], task.Called(), render.TaskState(task), task.Worker(), task.Priority)
		if bills {
			row = append(row, tokens(task.Usage), cost(task.Usage))
		}
		subject := task.Subject
		if subject == task.Name {
			subject = "" // the first column has it
		}
		if task.Group() {
			subject = strings.TrimSuffix(strings.TrimPrefix(s.Progress(task.ID)+": "+subject, ": "), ": ")
		}
		row = append(row, subject)
		t.Row(row...)
	}
	if empty {
		return said("no tasks")(a.out.Writer)
	}
	if err := t.Write(a.out); err != nil || folded == 0 {
		return err
	}
	return a.out.Printf("%s\n", render.Faint.On(team.Count(folded, "task")+" of groups: --all shows them"))
}

// describe writes all that a person may want to know of a task.
func describe(ctx context.Context, w *sanitize.Writer, d *engine.Team, t team.Task) error {
	w.Printf("task %s\n\n", titled(t))
	if err := describeHead(w, d, t); err != nil {
		return err
	}
	sum := t.Summary()
	did := "result"
	switch {
	case sum.Words:
		did = "last words, without a result"
	case t.Submission != nil:
		did = "result that is being verified"
	case sum.Did == "": // of a failed attempt
		sum.Did = t.Result
	}
	for _, part := range []struct{ name, text string }{{"description", t.Description}, {"command", t.Run},
		{"schema of the result", string(t.Schema)}, {did, sum.Did}} {
		if part.text != "" {
			w.Printf("\n%s:\n%s\n", part.name, sanitize.Block(part.text))
		}
	}
	if err := describeJudgement(w, d, t); err != nil {
		return err
	}
	return describeWork(ctx, w, d, t)
}

// describeHead writes the short fields of a task.
func describeHead(w *sanitize.Writer, d *engine.Team, t team.Task) error {
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
		row("blocked by", strings.Join(s.CalledAll(s.Before(t)), ", "))
		row("for each", t.ForEach.Words())
		row("its tasks", s.Progress(t.ID))
		if t.Of != "" {
			row("made by", s.Called(t.Of))
			row("item", team.ItemLine(t.Item))
		}
		row("blocks", strings.Join(s.CalledAll(t.Blocks), ", "))
	})
	row("paths", strings.Join(t.Paths, ", "))
	if !slices.Equal(t.Holds, t.Paths) {
		row("has now", strings.Join(t.Holds, ", "))
	}
	row("waits for", t.WaitsForPath())
	row("runs in", t.In)
	row("directory", t.Dir)
	d.View(func(s *team.State) {
		for _, f := range render.Demands(s, t) {
			row(f.Label, f.Value)
		}
	})
	row("environment", strings.Join(t.Env, " "))
	if t.Timeout > 0 {
		row("timeout", team.Span(t.Timeout))
	}
	if t.Retries > 0 {
		row("retries", fmt.Sprint(t.Retries))
	}
	row("metadata", metadataWords(t.Metadata))
	row("created by", t.CreatedBy)
	row("completed by", t.CompletedBy)
	if t.Attempts > 0 {
		row("attempts", fmt.Sprint(t.Attempts))
	}
	row("last failure", t.Failure)
	row("failed by", t.FailedBy)
	row("tokens", tokens(t.Usage))
	row("cost", cost(t.Usage))
	if t.CompletedAt > 0 && t.StartedAt > 0 {
		row("took", team.Span(t.CompletedAt.Sub(t.StartedAt)))
	}
	return head.Write(w)
}

func (a *app) taskUpdate() *cobra.Command {
	var subject, description, activeForm, owner, priority, run, paths string
	var meta []string
	var addBlockedBy, removeBlockedBy, addBlocks, removeBlocks string
	c := a.onTeam(1, &cobra.Command{
		Use: "update [TEAM] ID", Short: "Change a task",
		Long: "Change the fields that flags name. --owner \"\" removes the owner, and --paths \"\" all paths; a " +
			"metadata value null deletes its\nkey.",
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
		if c.Flags().Changed("paths") {
			all := list(paths)
			body.Paths = &all
		}
		if body.Metadata, err = metadataOf(meta); err != nil {
			return err
		}
		changed := false
		c.Flags().Visit(func(f *pflag.Flag) {
			changed = changed || f.Name != "as" && c.InheritedFlags().Lookup(f.Name) == nil
		})
		if !changed {
			return usage{errors.New("say what to change: each flag but --as names a field")}
		}
		return a.act(c, name, &body, func(of *engine.Team, _ *team.Record) error {
			of.View(func(s *team.State) {
				if t, err := s.Find(args[0]); err == nil && body.Owner != nil && s.Awaits(t.ID) {
					a.note(awaits(s, t.ID, name))
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
	f.StringVar(&paths, "paths", "", "all files that it changes, separated by commas")
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
		Use: "claim [TEAM] ID --as NAME | claim [TEAM] --next --as NAME", Short: "Claim a task for a member",
		Long: "Claim a task for a member. With --next it is the next task: the highest priority first, then the " +
			"lowest number. Tasks that\nare blocked or meant for others are skipped. If several members claim one " +
			"task, one gets it, and the other commands end with\nstatus 1. --next --wait waits for a task.\n\nThe " +
			"number called fence identifies the claim. Pass it to cadre task done --fence: done is then refused if " +
			"the claim was lost\nmeanwhile.",
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
		Long: "Return a task to the queue: one in progress, or a failed one. If its command runs, that is ended. An agent " +
			"is told to\nstop; until it reads that, another member may do the task too.",
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
		Long: "Delete a task. If its command runs, that is ended.",
	}, func(c *cobra.Command, name string, args []string) error {
		return a.act(c, name, &team.DeleteTask{Task: args[0]}, func(of *engine.Team, r *team.Record) error {
			e, _ := team.EventIn[*team.TaskDeleted](r)
			words := "is deleted"
			if len(e.Unblocked) > 0 {
				of.View(func(s *team.State) { words += "; it frees task " + strings.Join(s.CalledAll(e.Unblocked), ", ") })
			}
			return a.printTask(of, "#"+e.Task, is(words))
		})
	})
	actsAs(c)
	return c
}
