package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

func (a *app) taskPaths() *cobra.Command {
	c := a.looking(0, &cobra.Command{
		Use: "paths [TEAM]", Short: "List the paths that belong to tasks in progress, and what waits for them",
		Long: "List the paths that belong to tasks in progress, and the tasks that wait for them.\n\nA task may name " +
			"the files that it changes: cadre task add --paths. While it is in progress, they belong to it. A task " +
			"of another\nmember that works in the same directory, and has a path in common, waits; so do later tasks " +
			"behind that one. A task of a member\nwith a worktree of its own waits for no path.\n\nA path is " +
			"relative to the project's directory. *, ? and [a-z] stand for characters of a name, ** for any folders. " +
			"A path without\nany of these covers everything below it, too.",
		Example: "  cadre task paths my-team\n  cadre task paths claim my-team lexer 'docs/lexer.md' --as ann",
	}, func(_ *cobra.Command, d *engine.Team, _ []string) error {
		tasks := []team.Task{}
		d.View(func(s *team.State) { tasks = append(tasks, s.WithPaths()...) })
		return a.print(tasks, func(w *sanitize.Writer) error {
			if len(tasks) == 0 {
				return w.Printf("no paths belong to a task\n")
			}
			t := render.Table{Texts: []string{"PATHS", "TASK"}, Spare: []string{"STATUS"}}
			t.Row("TASK", "STATUS", "OWNER", "PATHS")
			for _, one := range tasks {
				paths := one.Paths
				if one.Status == team.InProgress {
					paths = one.Holds
				}
				t.Row(one.Called(), render.TaskState(one), one.Owner, strings.Join(paths, ", "))
			}
			return t.Write(w)
		})
	})
	c.AddCommand(a.taskPathsClaim(), a.taskPathsRelease())
	return c
}

func (a *app) taskPathsClaim() *cobra.Command {
	c := a.onTeam(2, &cobra.Command{
		Use: "claim [TEAM] ID PATHS", Short: "Add paths to a task in progress",
		Long: "Add paths, separated by commas, to a task in progress. They belong to it until it ends. A path that " +
			"belongs to another task\nis refused with status 1, and the error names that task and its member.",
		Example: "  cadre task paths claim my-team lexer 'docs/lexer.md,src/tokens/**' --as ann",
	}, func(c *cobra.Command, name string, args []string) error {
		body := &team.ClaimPaths{Task: args[0], Paths: list(args[1])}
		return a.act(c, name, body, func(of *engine.Team, _ *team.Record) error {
			return a.printTask(of, args[0], hasPaths)
		})
	})
	c.Flags().String("as", "", "the member that holds the task")
	return c
}

func (a *app) taskPathsRelease() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use: "release [TEAM] ID PATHS", Short: "Give back paths of a task in progress",
		Long: "Give back paths, separated by commas, before the task ends, so that other members can have them. " +
			"--all gives back all of them.",
		Example: "  cadre task paths release my-team lexer docs/lexer.md --as ann",
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		needed := 2
		if all {
			needed = 1
		}
		name, rest, err := a.split(c, args, needed)
		if err == nil {
			body := &team.ReleasePaths{Task: rest[0]}
			if !all {
				if body.Paths = list(rest[1]); len(body.Paths) == 0 {
					return usage{errors.New("say which paths, or --all")}
				}
			}
			err = engine.InTermsOf(name, a.act(c, name, body, func(of *engine.Team, _ *team.Record) error {
				return a.printTask(of, rest[0], hasPaths)
			}))
		}
		return a.forgotten(c, args, needed, err)
	}
	c.Flags().BoolVar(&all, "all", false, "give back all paths of the task")
	c.Flags().String("as", "", "the member that holds the task")
	return c
}

// hasPaths says which paths belong to the task.
func hasPaths(t team.Task) string {
	if len(t.Holds) == 0 {
		return t.Called() + " has no paths"
	}
	return fmt.Sprintf("%s has %s", t.Called(), strings.Join(t.Holds, ", "))
}
