package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/team"
)

func (a *app) taskDone() *cobra.Command {
	var result string
	var fence int64
	var accept, reject bool
	c := a.onTeam(1, &cobra.Command{
		Use: "done [TEAM] ID [--as NAME]", Short: "Complete a task", SuggestFor: []string{"complete", "finish"},
		Long: "Complete a task with its result. A member completes a task that it claimed. Without --as you complete " +
			"it as the user.\nThe result must fit the schema of the task, its check must pass, and TaskCompleted hooks may " +
			"reject it. Then the status\nis 1, and the feedback says what to correct.\n\nA task with a verification is " +
			"submitted to those who verify it. A task that verifies another one is completed with " +
			"--accept or\n--reject, and the reason as its result.",
		Example: "  cadre task done my-team 3 --as ann --result 'The parser reads comments'\n" +
			"  cadre task done my-team 4 --as bob --reject --result 'A comment at the end of a file is lost'",
	}, func(c *cobra.Command, name string, args []string) (err error) {
		if result, err = text(c, result); err != nil {
			return err
		}
		body := &team.CompleteTask{Task: args[0], Fence: fence, Result: result}
		switch {
		case accept && reject:
			return usage{fmt.Errorf("a verdict is --accept or --reject, not both")}
		case accept:
			body.Verdict = team.VerdictAccepted
		case reject:
			body.Verdict = team.VerdictRejected
		}
		return a.act(c, name, body, func(of *engine.Team, r *team.Record) (err error) {
			var words string
			of.View(func(s *team.State) { words = came(s, r) })
			return a.printTask(of, args[0], is(words))
		})
	})
	c.Flags().String("as", "", "the member that holds it")
	c.Flags().StringVar(&result, "result", "", "its result; - for standard input")
	c.Flags().BoolVar(&accept, "accept", false, "accept the task that this one verifies")
	c.Flags().BoolVar(&reject, "reject", false, "give the task that this one verifies back to its member")
	c.Flags().Int64Var(&fence, "fence", 0, "the fence of the claim")
	return c
}

// came says what became of a task, and of one that it verifies, with a completion.
func came(s *team.State, r *team.Record) string {
	words := "is completed"
	verdict := false
	for _, e := range r.Events {
		switch e := e.(type) {
		case *team.TaskSubmitted:
			return "is done, and is verified with task " + strings.Join(s.CalledAll(e.Tasks), ", ")
		case *team.TaskCompleted:
			if verdict {
				words += "; task " + s.Called(e.Task) + " is completed"
			}
			if e.Verdict != "" {
				verdict, words = true, "is completed ("+e.Verdict+")"
			}
			if len(e.Unblocked) > 0 {
				words += "; it frees task " + strings.Join(s.CalledAll(e.Unblocked), ", ")
			}
			if s.AsksToMerge(e.Task) {
				words += "; if the branch is not merged, the consolidation asks again"
			}
		case *team.TaskRejected:
			words += "; task " + s.Called(e.Task) + " is given back"
		case *team.TaskFailed:
			words += " and has failed"
		}
	}
	return words
}
