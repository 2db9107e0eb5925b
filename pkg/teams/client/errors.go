package client

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	core "cadre/internal/team"
	"cadre/pkg/teams"
)

// ProblemError is an answer of the server to a request that failed for another reason than a
// refusal with one of the codes of package teams.
type ProblemError struct {
	Status int    // the HTTP status
	Code   string // usage, gone, ahead or failed; "" for an answer that is not the server's own
	Text   string // what failed, and why
	Hints  []teams.Hint
	// Seq is the first record that is still there, with the code gone: the records after the cursor
	// are lost. With the code ahead it is the last record that there is.
	Seq int64
}

// Error returns the text.
func (e *ProblemError) Error() string { return e.Text }

// CheckError says that a check failed. It has the code [teams.ErrNotReady].
type CheckError struct {
	Output string // the end of what the check printed

	refusal error
}

// Error returns the text of the refusal, without the output.
func (e *CheckError) Error() string { return e.refusal.Error() }

// Unwrap returns the [*teams.Error].
func (e *CheckError) Unwrap() error { return e.refusal }

// codes are the codes of refusals.
var codes = []teams.Code{teams.ErrInvalid, teams.ErrNotFound, teams.ErrNameTaken, teams.ErrDenied, teams.ErrConflict,
	teams.ErrNotReady, teams.ErrNoTask, teams.ErrTooLarge, teams.ErrBudgetExhausted, teams.ErrFinished,
	teams.ErrRejected, teams.ErrSessionFailed, teams.ErrDamaged, teams.ErrNewerVersion, teams.ErrForked,
	teams.ErrMaxTeammates, teams.ErrUncertain}

// problemOf returns the error that a problem describes.
func problemOf(data []byte, status int) error {
	var p struct {
		Status int         `json:"status"`
		Detail string      `json:"detail"`
		Code   string      `json:"code"`
		Hints  []core.Hint `json:"hints"`
		Seq    int64       `json:"seq"`
		Output string      `json:"output"`
		Note   *core.Note  `json:"note"`
	}
	if err := json.Unmarshal(data, &p); err != nil || p.Detail == "" {
		return &ProblemError{Status: status, Text: fmt.Sprintf("the server answers %d %s", status,
			http.StatusText(status))}
	}
	hints := each[teams.Hint](p.Hints)
	if slices.Contains(codes, teams.Code(p.Code)) {
		refusal := &teams.Error{Code: teams.Code(p.Code), Text: p.Detail, Hints: hints}
		if p.Note != nil {
			now := of[teams.Note](*p.Note)
			refusal.Note = &now
		}
		if p.Output != "" {
			return &CheckError{p.Output, refusal}
		}
		return refusal
	}
	return &ProblemError{p.Status, p.Code, p.Detail, hints, p.Seq}
}
