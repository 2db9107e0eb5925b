package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"cadre/internal/engine"
	"cadre/internal/render/sanitize"
	"cadre/internal/run"
	"cadre/internal/team"
)

// demandsTyped are the flags that say what the completion of a task demands.
type demandsTyped struct {
	check, until, schema string
	rounds               int64
}

func demandFlags(f *pflag.FlagSet) *demandsTyped {
	d := &demandsTyped{}
	f.StringVar(&d.check, "check", "", "command that must pass before it is completed; its output goes back to the member")
	f.StringVar(&d.until, "until", "", "like --check: the task is tried again in the same attempt until the command "+
		"passes")
	f.Int64Var(&d.rounds, "rounds", team.DefaultRounds, "with --until, how often it is tried")
	f.StringVar(&d.schema, "result-schema", "", "file with a JSON Schema that its result must fit")
	return d
}

// set puts what was typed into the command.
func (d *demandsTyped) set(body *team.CreateTask, c *cobra.Command) error {
	given := c.Flags().Changed
	switch {
	case given("check") && given("until"):
		return usage{fmt.Errorf("a task has --check, for one try, or --until, for several")}
	case given("rounds") && !given("until"):
		return usage{fmt.Errorf("--rounds says how often --until is tried; add --until")}
	case given("rounds") && d.rounds < 1:
		return usage{fmt.Errorf("--rounds is a number from 1 to %d", team.MaxCheckRounds)}
	case given("check"):
		body.Check = &team.TaskCheck{Run: d.check}
	case given("until"):
		body.Check = &team.TaskCheck{Run: d.until, Rounds: d.rounds}
	}
	if d.schema == "" {
		return nil
	}
	var err error
	if body.Schema, err = run.LoadSchema(d.schema); err != nil {
		return usage{err}
	}
	return nil
}

// describeJudgement writes why the last result of a task was sent back, and what its verifiers
// said.
func describeJudgement(w *sanitize.Writer, d *engine.Team, t team.Task) error {
	if why, feedback := t.SentBack(); why != "" {
		w.Printf("\nsent back: %s\n%s\n", why, sanitize.Block(feedback))
	}
	var votes []team.Vote
	d.View(func(s *team.State) { votes = s.Votes(t.ID) })
	if len(votes) > 0 {
		w.Printf("\nverdicts:\n")
	}
	for _, v := range votes {
		w.Printf("  %s\n", v.Words)
		if v.Reason != "" {
			w.Printf("%s\n", sanitize.Block(v.Reason))
		}
	}
	return nil
}
