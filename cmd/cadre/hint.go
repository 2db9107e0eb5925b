package main

import (
	"errors"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/render"
	"cadre/internal/team"
)

// way is a command line that would help after an error, and that stands for no action of the core.
type way struct{ purpose, line string }

// guided is an error of the command line, with what to type next.
type guided struct {
	error
	ways []way
}

func (g guided) Unwrap() error { return g.error }

// withWays adds ways to an error, the best first.
func withWays(err error, ways ...way) error {
	if len(ways) == 0 {
		return err
	}
	return guided{err, ways}
}

// seeHelp is the purpose of the command that shows how a command is called.
const seeHelp = "see how it is called"

// helpOf is the way to the help of a command.
func helpOf(c *cobra.Command) way { return way{seeHelp, c.CommandPath() + " --help"} }

// remedies returns what would help after the error: the hints of a refusal, and the ways of the
// command line.
func remedies(err error) []remedy {
	var all []remedy
	for _, h := range engine.HintsOf(err) {
		s := render.CommandFor(h)
		all = append(all, remedy{&h, h.Purpose(), s.Line, s.Note})
	}
	if g, is := errors.AsType[guided](err); is {
		for _, w := range g.ways {
			all = append(all, remedy{Purpose: w.purpose, Command: w.line})
		}
	}
	return all
}

// explain returns an error as text for a person: its sentence, the note that it is about as that
// is, and what to type next.
func explain(err error) string {
	return remedied(render.Sentence(err), remedies(err))
}

// remedied adds what to type next to a text that says what failed.
func remedied(text string, all []remedy) string {
	shown := make([]render.Remedy, len(all))
	for i, r := range all {
		shown[i] = render.Remedy{Purpose: r.Purpose, Command: render.Command{Line: r.Command, Note: r.note}}
		if r.Purpose == seeHelp {
			shown[i].Purpose = ""
		}
	}
	return render.Remedied(text, shown)
}

// advise prints a note for the person that is not a result, and what would change it.
func (a *app) advise(n team.Advice) { a.note(render.Helped(n.Text, n.Hints)) }

// fail prints an error that does not end the command.
func (a *app) fail(err error) { say(a.err.Writer, render.Alarm, errorPrefix, explain(err)) }
