package teams

import (
	"errors"
	"os"
	"time"

	"cadre/internal/journal"
	"cadre/internal/observe"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// Code classifies a refusal. It is an error itself, to be asked for with [errors.Is]:
//
//	if errors.Is(err, teams.Conflict) { … }
type Code string

func (c Code) Error() string { return string(c) }

// The codes of an [Error].
const (
	Invalid   Code = "invalid"   // it makes no sense in any state
	NotFound  Code = "not_found" // the team has no such member, task, message or request; or there is no team
	Taken     Code = "taken"     // the name of something new is in use; the text proposes a free one
	Denied    Code = "denied"    // this actor may not do this, now or later
	Conflict  Code = "conflict"  // somebody else was faster: the claim or request is not the actor's any more
	NotReady  Code = "not_ready" // refused in the present state, possible in a later one
	Nothing   Code = "nothing"   // there is no task to claim
	TooLarge  Code = "too_large" // over a limit
	Exhausted Code = "exhausted" // the team's budget is spent
	Finished  Code = "finished"  // the team is complete, aborted or cleaned up, or the member has ended
	Rejected  Code = "rejected"  // a hook said no; the text is its feedback
	Broken    Code = "broken"    // a session could not be started, or the lead's cannot go on
	Damaged   Code = "damaged"   // the team's history cannot be read; cadre fsck looks at it and mends it
	Newer     Code = "newer"     // it was written by a newer version of cadre
	Forked    Code = "forked"    // the team has another history elsewhere; which one continues is for the user to say
	// MaxTeammatesReached is refused until a teammate ends: the team has as many as it may have.
	MaxTeammatesReached Code = "MAX_TEAMMATES_REACHED"
	// it may have happened: the disk failed after the change was written and before it was known to
	// be durable
	Uncertain Code = "uncertain"
)

// Error is a refusal. Its text says what is wrong and why, and its hints say what to do next.
type Error struct {
	Code Code
	Text string
	// Hints say what would help, as data: the text names no command.
	Hints []Hint
	// Final is set with the code Rejected when the same thing was rejected so often in a row that
	// the lead was told: to try again is a loop.
	Final bool
	// Pause is set with the code Rejected: how long to wait before the same thing is tried again by
	// a program that changes nothing in between. It grows with each rejection in a row.
	Pause time.Duration

	cause error
}

func (e *Error) Error() string { return e.Text }

// Is reports whether target is the error's [Code].
func (e *Error) Is(target error) bool { return target == e.Code }

// Unwrap returns what the refusal was made from, which may be nil.
func (e *Error) Unwrap() error { return e.cause }

func refuse(code Code, text string) error { return &Error{Code: code, Text: text} }

// public gives an error of the packages below its public form. Errors that are no refusals stay as
// they are.
func public(err error) error {
	if _, done := errors.AsType[*Error](err); err == nil || done {
		return err
	}
	if errors.Is(err, journal.ErrGone) || errors.Is(err, os.ErrClosed) {
		return &Error{Code: Finished, Text: "the manager has let go of this team: it was closed, or the team was " +
			"cleaned up", cause: err}
	}
	code := codeOf(err)
	if code == "" {
		return err
	}
	e := &Error{Code: code, Text: err.Error(), Hints: hintsOf(err), cause: err}
	if r, ok := errors.AsType[*replica.Rejected](err); ok {
		e.Final, e.Pause = r.Final(), r.Pause()
	}
	return e
}

// codeOf is the one table from the errors of the packages below to codes; "" for those that have
// none.
func codeOf(err error) Code {
	if _, damaged := errors.AsType[*journal.DamageError](err); damaged {
		return Damaged
	}
	for _, known := range []struct {
		err  error
		code Code
	}{{journal.ErrNewer, Newer}, {team.ErrNewer, Newer}, {observe.ErrNewer, Newer}, {observe.ErrOther, Invalid},
		{journal.ErrUncertain, Uncertain}} {
		if errors.Is(err, known.err) {
			return known.code
		}
	}
	return Code(team.CodeOf(err))
}
