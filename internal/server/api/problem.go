package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"cadre/internal/consolidate"
	"cadre/internal/engine"
	"cadre/internal/journal"
	"cadre/internal/team"
)

// Problem is the answer to a request that failed, in the form of RFC 9457.
type Problem struct {
	Type   string      `json:"type"`            // about:blank: the code says which problem it is
	Title  string      `json:"title"`           // the words of the HTTP status
	Status int         `json:"status"`          // the HTTP status
	Detail string      `json:"detail"`          // what failed, and why
	Code   string      `json:"code"`            // one of the codes in docs/exit-statuses.md, or of Codes
	Hints  []team.Hint `json:"hints,omitempty"` // what would help
	// for gone: the first record that is still there; for ahead: the last one
	Seq int64 `json:"seq,omitempty"`
	// for a check that failed: the end of what it printed
	Output string `json:"output,omitempty"`
	// for a conflict about a note: the note as it is
	Note *team.Note `json:"note,omitempty"`
}

// Codes of problems that are not refusals of the core.
const (
	codeUsage   = "usage"   // the request is not of the route's form
	codeDamaged = "damaged" // files of the team are damaged, or were written by a newer version
	codeFailed  = "failed"  // anything else, such as an error of the system
	codeGone    = "gone"    // the cursor is older than what is kept
	codeAhead   = "ahead"   // the cursor is later than the last record
)

// statuses maps the codes of refusals to the status of the answer.
var statuses = map[team.Code]int{
	team.Invalid:   http.StatusUnprocessableEntity,
	team.NotFound:  http.StatusNotFound,
	team.Taken:     http.StatusConflict,
	team.Denied:    http.StatusForbidden,
	team.Conflict:  http.StatusConflict,
	team.NotReady:  http.StatusConflict,
	team.Nothing:   http.StatusConflict,
	team.TooLarge:  http.StatusRequestEntityTooLarge,
	team.Exhausted: http.StatusConflict,
	team.Finished:  http.StatusConflict,
	team.Rejected:  http.StatusUnprocessableEntity,

	team.MaxTeammatesReached:   http.StatusConflict,
	team.NestedTeamsNotAllowed: http.StatusForbidden,
}

// usageError says that a request is not of the form of its route.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

// cursorError says that no records follow the cursor of a client.
type cursorError struct {
	error
	status int
	code   string
	seq    int64
}

// ProblemOf describes an error as the answer to a request.
func ProblemOf(err error) Problem {
	p := Problem{Type: "about:blank", Status: http.StatusInternalServerError, Detail: err.Error(), Code: codeFailed,
		Hints: engine.HintsOf(err), Note: team.NoteOf(err)}
	if code := team.CodeOf(err); code != "" {
		p.Code = string(code)
		if p.Status = statuses[code]; p.Status == 0 {
			p.Status = http.StatusConflict
		}
	} else if _, is := errors.AsType[usageError](err); is {
		p.Code, p.Status = codeUsage, http.StatusBadRequest
	} else if c, is := errors.AsType[cursorError](err); is {
		p.Code, p.Status, p.Seq = c.code, c.status, c.seq
	} else if _, is := errors.AsType[*journal.DamageError](err); is || errors.Is(err, journal.ErrNewer) {
		p.Code = codeDamaged
	} else if long, is := errors.AsType[*http.MaxBytesError](err); is {
		p.Code, p.Status = string(team.TooLarge), http.StatusRequestEntityTooLarge
		p.Detail = fmt.Sprintf("the body has more than %d bytes, which is the most", long.Limit)
	}
	if failed, is := errors.AsType[*consolidate.FailedCheck](err); is {
		p.Output = failed.Output
	}
	return p.With(p.Status)
}

// With returns the problem as one with that HTTP status.
func (p Problem) With(status int) Problem {
	p.Status, p.Title = status, http.StatusText(status)
	return p
}

// Refuse answers the request with the problem.
func Refuse(w http.ResponseWriter, _ *http.Request, p Problem) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(p.Status)
	json.NewEncoder(w).Encode(p)
}
