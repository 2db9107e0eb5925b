package main

import (
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/layout"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/run"
	"cadre/internal/run/teamfile"
	"cadre/internal/team"
)

// failure describes in JSON why a command failed: one line on standard error.
type failure struct {
	Code    string   `json:"code"`            // one of the codes in docs/exit-statuses.md
	Message string   `json:"message"`         // what failed and why; the hints say what to type next
	Status  int      `json:"status"`          // the exit status of the command
	Hints   []remedy `json:"hints,omitempty"` // what would help
	// what is wrong with a team file or a file of tasks, one by one
	Mistakes []run.Mistake `json:"mistakes,omitempty"`
	// the note as it is, where it was changed meanwhile
	Note *team.Note `json:"note,omitempty"`
}

// failed is the line that an error is under --json.
type failed struct {
	Error failure `json:"error"`
}

// remedy is what to do about a failure.
type remedy struct {
	*team.Hint        // nil for a command that no action stands for
	Purpose    string `json:"purpose"` // what it is for, as in "resume the team"
	Command    string `json:"command"` // what to type, with words in capitals to fill in

	note string // what a person has to know before they type it
}

// Codes of failures that are not refusals of the core.
const (
	codeUsage   = "usage"   // the command line is wrong
	codeDamaged = "damaged" // files are damaged, or were written by a newer version
	codeFailed  = "failed"  // anything else, such as an error of the system
)

// failureOf describes an error that ends a command.
func failureOf(err error) failure {
	f := failure{Code: string(team.CodeOf(err)), Message: err.Error(), Status: status(err)}
	if f.Code == "" {
		f.Code = codeFailed
		if _, is := errors.AsType[usage](err); is {
			f.Code = codeUsage
		} else if damaged(err) {
			f.Code = codeDamaged
		}
	}
	f.Hints, f.Note = remedies(err), team.NoteOf(err)
	if _, wrong := errors.AsType[teamfile.Errors](err); wrong {
		f.Mistakes = run.Mistakes(err)
	}
	return f
}

// report prints the error that ends the command c with the status code, once. It prints JSON if the
// arguments ask for it, also if they could not be parsed completely.
func (a *app) report(c *cobra.Command, err error, code int, args []string) {
	if _, told := errors.AsType[exit](err); told {
		return
	}
	if ambiguous, is := errors.AsType[*layout.AmbiguousError](err); is {
		err = withWays(err, again(ambiguous, args)...)
	}
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	if a.json || slices.Contains(args, "--json") {
		f := failureOf(err)
		f.Status = code
		if len(f.Hints) == 0 {
			f.Hints = remedies(withWays(err, a.lastly(c, f.Code)...))
		}
		a.err.Value(failed{f})
		return
	}
	a.fail(err)
}

// again returns the command line with the id of each team that a name fits.
func again(e *layout.AmbiguousError, args []string) (ways []way) {
	for _, k := range e.Teams {
		if k.Team.ID == "" { // it cannot be read
			continue
		}
		words := []string{"cadre"}
		for _, arg := range args {
			if arg == e.Name {
				arg = k.Team.ID
			}
			words = append(words, sanitize.Quote(arg))
		}
		ways = append(ways, way{"use the one in " + k.Team.Dir, strings.Join(words, " ")})
	}
	return ways
}

// lastly returns what a program gets as a hint after an error without any. A text for people about
// a wrong command line or a wrong value says itself what to change, so that there it is the help of
// the command. Else it is the command that shows the state in which the team refused.
func (a *app) lastly(c *cobra.Command, code string) []way {
	switch code {
	case codeUsage, string(team.Invalid), string(team.TooLarge):
		return []way{helpOf(c)}
	case codeFailed, codeDamaged:
		return nil
	}
	if _, err := a.home.Folder(a.team); err != nil || a.team == "" {
		return []way{helpOf(c)}
	}
	return []way{{"look at the team", render.Typed("status", a.team)}}
}
