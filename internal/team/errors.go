package team

import (
	"errors"
	"fmt"
)

// Code classifies a refusal, for programs. Each front end has one table that maps it to an exit
// status or an HTTP status.
type Code string

// The codes of an [Error].
const (
	Invalid   Code = "invalid"   // the command makes no sense in any state
	NotFound  Code = "not_found" // the team does not have the member, task, message or request that the command names
	Taken     Code = "taken"     // the new name is in use
	Denied    Code = "denied"    // this actor may not do this, now or later
	Conflict  Code = "conflict"  // another actor was faster: this one no longer has the claim, lease or request
	NotReady  Code = "not_ready" // refused in the present state, possible later
	Nothing   Code = "nothing"   // there is no task to claim
	TooLarge  Code = "too_large" // over a limit
	Exhausted Code = "exhausted" // the team's budget is spent
	Finished  Code = "finished"  // the team is complete, aborted or cleaned up
	Rejected  Code = "rejected"  // a hook rejected it

	// MaxTeammatesReached is the code of a team that has reached its limit of teammates. Other
	// systems of the field use this name.
	MaxTeammatesReached Code = "MAX_TEAMMATES_REACHED"
	// NestedTeamsNotAllowed is the code of a team that may have no teams in it, or no deeper ones.
	NestedTeamsNotAllowed Code = "NESTED_TEAMS_NOT_ALLOWED"
)

// Error is a refusal: nothing was changed. Its text says what is wrong, and its hints say what
// would help. The text names no command: each front end renders the hints in its own terms.
type Error struct {
	Code Code
	Text string
	Help []Hint
	Note *Note // the note as it is, where another actor was faster to change it; nil for other refusals
}

// Refuse returns a refusal with that text.
func Refuse(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Text: fmt.Sprintf(format, args...)}
}

// With adds hints to the error.
func (e *Error) With(hints ...Hint) *Error {
	e.Help = append(e.Help, hints...)
	return e
}

func (e *Error) Error() string { return e.Text }

// Hints returns the actions that would help.
func (e *Error) Hints() []Hint { return e.Help }

// NoteOf returns the note that the refusal in err's chain carries: the note as it is, where another
// actor was faster to change it. It returns nil for other errors.
func NoteOf(err error) *Note {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Note
	}
	return nil
}

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
