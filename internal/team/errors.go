package team

import (
	"errors"
	"fmt"
)

// Code classifies a refusal, for programs. One table in each front end maps it to an exit status or
// an HTTP status.
type Code string

// The codes of an [Error].
const (
	Invalid   Code = "invalid"   // the command makes no sense in any state
	NotFound  Code = "not_found" // it names a member, task, message or request that the team does not have
	Taken     Code = "taken"     // it names something new by a name that is in use
	Denied    Code = "denied"    // this actor may not do this, now or later
	Conflict  Code = "conflict"  // somebody else was faster: the claim, lease or request is not the actor's any more
	NotReady  Code = "not_ready" // refused in the present state, possible in a later one
	Nothing   Code = "nothing"   // there is nothing to do: no task to claim
	TooLarge  Code = "too_large" // over a limit
	Exhausted Code = "exhausted" // the team's budget is spent
	Finished  Code = "finished"  // the team is complete, aborted or cleaned up
	Rejected  Code = "rejected"  // a hook said no

	// MaxTeammatesReached is the code of a team that has as many teammates as it may have. Other
	// systems of the field know it by this name.
	MaxTeammatesReached Code = "MAX_TEAMMATES_REACHED"
)

// Error is a refusal: nothing was changed. Its text says what is wrong, and its hints say what would
// help. The text names no command: a front end adds the hints in its own terms.
type Error struct {
	Code Code
	Text string
	Help []Hint
}

// Refuse returns a refusal with that text.
func Refuse(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Text: fmt.Sprintf(format, args...)}
}

// With adds hints.
func (e *Error) With(hints ...Hint) *Error {
	e.Help = append(e.Help, hints...)
	return e
}

func (e *Error) Error() string { return e.Text }

// Hints returns what would help.
func (e *Error) Hints() []Hint { return e.Help }

// CodeOf returns the code of the Error in err's chain, or "" where there is none.
func CodeOf(err error) Code {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Code
	}
	return ""
}

func refuse(code Code, format string, args ...any) error {
	return Refuse(code, format, args...)
}
