package relay

import (
	"errors"
	"io/fs"
	"os"

	"cadre/internal/journal"
	"cadre/internal/journal/store"
)

// failure is an error on its way to the client.
type failure struct {
	Text   string               `json:"text"`
	Is     []string             `json:"is,omitempty"`     // names of errors that it is, from [known]
	Damage *journal.DamageError `json:"damage,omitempty"` // if it is one
	Refuse string               `json:"refuse,omitempty"` // code of a refusal
}

// named is an error that callers test for.
type named struct {
	name string
	err  error
}

// known returns the errors that callers test for. Errors of contexts are left out, because the
// server's context is not the client's. The list is made by a function, so that processes without a
// relay do not initialise it.
func known() []named {
	return []named{
		{"uncertain", journal.ErrUncertain}, {"lost", journal.ErrLost}, {"reopen", journal.ErrReopen},
		{"newer", journal.ErrNewer}, {"gone", journal.ErrGone}, {"not found", journal.ErrNotFound},
		{"held", store.ErrHeld}, {"not exist", fs.ErrNotExist}, {"closed", os.ErrClosed},
	}
}

func failureOf(err error) failure {
	f := failure{Text: err.Error()}
	for _, k := range known() {
		if errors.Is(err, k.err) {
			f.Is = append(f.Is, k.name)
		}
	}
	if damage, is := errors.AsType[*journal.DamageError](err); is {
		f.Damage = damage
	}
	if refused, is := errors.AsType[*RefusedError](err); is {
		f.Refuse = refused.Code
	}
	return f
}

// RefusedError says that a caller has no right to something. The code is for front ends.
type RefusedError struct{ Code, Text string }

func (e *RefusedError) Error() string { return e.Text }

// servedError is an error of the server, with the errors that it is.
type servedError struct {
	text string
	is   []error
}

func (e *servedError) Error() string   { return e.text }
func (e *servedError) Unwrap() []error { return e.is }

// err returns the error as a caller tests it.
func (f failure) err() error {
	e := &servedError{text: f.Text}
	for _, k := range known() {
		for _, name := range f.Is {
			if name == k.name {
				e.is = append(e.is, k.err)
			}
		}
	}
	if f.Damage != nil {
		e.is = append(e.is, f.Damage)
	}
	if f.Refuse != "" {
		e.is = append(e.is, &RefusedError{f.Refuse, f.Text})
	}
	return e
}
