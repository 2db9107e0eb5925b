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

// Code classifies a refusal. It is an error itself, so that [errors.Is] can ask for it:
//
//	if errors.Is(err, teams.ErrConflict) { … }
type Code string

// Error returns the code as a word.
func (c Code) Error() string { return string(c) }

// The codes of an [Error].
const (
	// ErrInvalid: the request is wrong in any state.
	ErrInvalid Code = "invalid"
	// ErrNotFound: the team has no such member, task, message or request; or the team does not
	// exist.
	ErrNotFound Code = "not_found"
	// ErrNameTaken: the name of something new is in use. The text proposes a free one.
	ErrNameTaken Code = "taken"
	// ErrDenied: this actor may not do this, now or later.
	ErrDenied Code = "denied"
	// ErrConflict: another actor was faster. This actor no longer holds the claim or the request.
	ErrConflict Code = "conflict"
	// ErrNotReady: it is not possible in the present state, but may be later.
	ErrNotReady Code = "not_ready"
	// ErrNoTask: no task can be claimed, or nothing else matches the request.
	ErrNoTask Code = "nothing"
	// ErrTooLarge: it is over a limit.
	ErrTooLarge Code = "too_large"
	// ErrBudgetExhausted: the team's budget is spent.
	ErrBudgetExhausted Code = "exhausted"
	// ErrFinished: the team is complete, aborted or cleaned up, or the member has ended.
	ErrFinished Code = "finished"
	// ErrRejected: a hook rejected it. The text is the hook's feedback.
	ErrRejected Code = "rejected"
	// ErrSessionFailed: a session could not be started, or the lead's cannot continue.
	ErrSessionFailed Code = "broken"
	// ErrDamaged: the team's history cannot be read. The command cadre fsck says where, and repairs
	// it.
	ErrDamaged Code = "damaged"
	// ErrNewerVersion: it was written by a newer version of cadre.
	ErrNewerVersion Code = "newer"
	// ErrForked: the team has another history elsewhere. The user decides which one continues.
	ErrForked Code = "forked"
	// ErrMaxTeammates: the team has as many teammates as it may have, until one ends.
	ErrMaxTeammates Code = "MAX_TEAMMATES_REACHED"
	// ErrUncertain: it may have happened. The disk failed after the change was written and before
	// it was known to be durable.
	ErrUncertain Code = "uncertain"
)

// Error is a refusal. Its text says what failed and why, and its hints say what to do next.
type Error struct {
	Code Code
	Text string
	// Hints are the next steps, as data: the text names no command.
	Hints []Hint
	// Note is set with the code ErrConflict for an edit of a note that another one preceded: the
	// present note.
	Note *Note
	// Final is set with the code ErrRejected if the same thing was rejected so often in a row that
	// the lead was told. Trying again would be a loop.
	Final bool
	// Pause is set with the code ErrRejected: how long a program waits before it tries the same
	// thing again unchanged. It grows with each rejection in a row.
	Pause time.Duration

	cause error
}

// Error returns the text, without the hints.
func (e *Error) Error() string { return e.Text }

// Is reports whether target is the error's [Code].
func (e *Error) Is(target error) bool { return target == e.Code }

// Unwrap returns the cause of the refusal, which may be nil.
func (e *Error) Unwrap() error { return e.cause }

// AmbiguousError says that teams of several projects have the name, and that the manager works in
// none of these projects. A team's id identifies it. The error has the code [ErrInvalid].
type AmbiguousError struct {
	Name  string
	Teams []Candidate

	refusal error
}

// Candidate is one of the teams with an ambiguous name.
type Candidate struct {
	ID  string // "" where the team cannot be read
	Dir string // where it works; "" where the team cannot be read
}

// Error returns the text, with the ids and directories of the teams.
func (e *AmbiguousError) Error() string { return e.refusal.Error() }

// Unwrap returns the [*Error].
func (e *AmbiguousError) Unwrap() error { return e.refusal }

func refuse(code Code, text string) error { return &Error{Code: code, Text: text} }

// public converts an error of the packages below to its public form. It returns other errors
// unchanged.
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
	if now := team.NoteOf(err); now != nil {
		note := noteOf(*now)
		e.Note = &note
	}
	if r, ok := errors.AsType[*replica.Rejected](err); ok {
		e.Final, e.Pause = r.Final(), r.Pause()
	}
	return e
}

// codeOf returns the code of an error of the packages below; "" for an error without one. It is the
// only such table.
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
