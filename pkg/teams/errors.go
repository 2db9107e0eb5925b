package teams

import (
	"errors"
	"os"
	"time"

	"cadre/internal/journal"
	"cadre/internal/layout"
	"cadre/internal/observe"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// Code classifies a refusal. It is an error itself, to be asked for with [errors.Is]:
//
//	if errors.Is(err, teams.ErrConflict) { … }
type Code string

// Error is the code as a word.
func (c Code) Error() string { return string(c) }

// The codes of an [Error].
const (
	// ErrInvalid: it makes no sense in any state.
	ErrInvalid Code = "invalid"
	// ErrNotFound: the team has no such member, task, message or request; or there is no team.
	ErrNotFound Code = "not_found"
	// ErrNameTaken: the name of something new is in use. The text proposes a free one.
	ErrNameTaken Code = "taken"
	// ErrDenied: this actor may not do this, now or later.
	ErrDenied Code = "denied"
	// ErrConflict: somebody else was faster. The claim or request is not the actor's any more.
	ErrConflict Code = "conflict"
	// ErrNotReady: it is refused in the present state, and possible in a later one.
	ErrNotReady Code = "not_ready"
	// ErrNoTask: there is no task to claim, or nothing else of what was asked for.
	ErrNoTask Code = "nothing"
	// ErrTooLarge: it is over a limit.
	ErrTooLarge Code = "too_large"
	// ErrBudgetExhausted: the team's budget is spent.
	ErrBudgetExhausted Code = "exhausted"
	// ErrFinished: the team is complete, aborted or cleaned up, or the member has ended.
	ErrFinished Code = "finished"
	// ErrRejected: a hook rejected it. The text is the feedback.
	ErrRejected Code = "rejected"
	// ErrSessionFailed: a session could not be started, or the lead's cannot continue.
	ErrSessionFailed Code = "broken"
	// ErrDamaged: the team's history cannot be read. The command cadre fsck says where, and mends
	// it.
	ErrDamaged Code = "damaged"
	// ErrNewerVersion: it was written by a newer version of cadre.
	ErrNewerVersion Code = "newer"
	// ErrForked: the team has another history elsewhere. Which one continues is for the user to
	// say.
	ErrForked Code = "forked"
	// ErrMaxTeammates: the team has as many teammates as it may have, until one ends.
	ErrMaxTeammates Code = "MAX_TEAMMATES_REACHED"
	// ErrUncertain: it may have happened. The disk failed after the change was written and before
	// it was known to be durable.
	ErrUncertain Code = "uncertain"
)

// Error is a refusal. Its text says what is wrong and why, and its hints say what to do next.
type Error struct {
	Code Code
	Text string
	// Hints say what would help, as data: the text names no command.
	Hints []Hint
	// Final is set with the code ErrRejected when the same thing was rejected so often in a row
	// that the lead was told: to try again is a loop.
	Final bool
	// Pause is set with the code ErrRejected: how long to wait before the same thing is tried again
	// by a program that changes nothing in between. It grows with each rejection in a row.
	Pause time.Duration

	cause error
}

// Error is the sentence, without the hints.
func (e *Error) Error() string { return e.Text }

// Is reports whether target is the error's [Code].
func (e *Error) Is(target error) bool { return target == e.Code }

// Unwrap returns what the refusal was made from, which may be nil.
func (e *Error) Unwrap() error { return e.cause }

// AmbiguousError says that a name stands for teams of several projects, and that the manager works in
// none of them. The id of a team stands for that team alone. The error has the code [ErrInvalid].
type AmbiguousError struct {
	Name  string
	Teams []Candidate

	refusal error
}

// Candidate is a team that a name may stand for.
type Candidate struct {
	ID  string // "" where the team cannot be read
	Dir string // where it works; "" where the team cannot be read
}

// Error is the sentence, with the ids and directories of the teams.
func (e *AmbiguousError) Error() string { return e.refusal.Error() }

// Unwrap returns the [*Error].
func (e *AmbiguousError) Unwrap() error { return e.refusal }

func refuse(code Code, text string) error { return &Error{Code: code, Text: text} }

// public gives an error of the packages below its public form. Errors that are no refusals stay as
// they are.
func public(err error) error {
	if _, done := errors.AsType[*Error](err); err == nil || done {
		return err
	}
	if errors.Is(err, journal.ErrGone) || errors.Is(err, os.ErrClosed) {
		return &Error{Code: ErrFinished, Text: "the manager has released this team: it was closed, or the team was " +
			"cleaned up", cause: err}
	}
	code := codeOf(err)
	if code == "" {
		return err
	}
	if ambiguous, is := errors.AsType[*layout.AmbiguousError](err); is {
		a := &AmbiguousError{Name: ambiguous.Name, refusal: &Error{Code: code, Text: err.Error(), cause: err}}
		for _, k := range ambiguous.Teams {
			a.Teams = append(a.Teams, Candidate{ID: k.Team.ID, Dir: k.Team.Dir})
		}
		return a
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
		return ErrDamaged
	}
	for _, known := range []struct {
		err  error
		code Code
	}{{journal.ErrNewer, ErrNewerVersion}, {team.ErrNewer, ErrNewerVersion},
		{observe.ErrNewer, ErrNewerVersion}, {observe.ErrOther, ErrInvalid},
		{journal.ErrUncertain, ErrUncertain}} {
		if errors.Is(err, known.err) {
			return known.code
		}
	}
	return Code(team.CodeOf(err))
}
