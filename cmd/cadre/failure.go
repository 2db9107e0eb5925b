package main

import (
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"cadre/internal/team"
)

// failure describes in JSON why a command failed: one line on standard error.
type failure struct {
	Code    string   `json:"code"`            // one of the codes in docs/exit-statuses.md
	Message string   `json:"message"`         // what failed and why; the hints say what to type next
	Status  int      `json:"status"`          // the exit status of the command
	Hints   []remedy `json:"hints,omitempty"` // what would help
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
	f.Hints = remedies(err)
	return f
}

// report prints the error that ends the command c with the status code, once. It prints JSON if the
// arguments ask for it, also if they could not be parsed completely. A text about a wrong command
// line says itself what to change; a program gets the help of the command as a hint.
func (a *app) report(c *cobra.Command, err error, code int, args []string) {
	if _, told := errors.AsType[exit](err); told {
		return
	}
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	if a.json || slices.Contains(args, "--json") {
		f := failureOf(err)
		f.Status = code
		if f.Code == codeUsage && len(f.Hints) == 0 {
			f.Hints = remedies(withWays(err, helpOf(c)))
		}
		a.err.Value(failed{f})
		return
	}
	a.fail(err)
}
