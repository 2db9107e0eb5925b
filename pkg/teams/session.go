package teams

import (
	"context"
	"iter"
	"time"

	"cadre/internal/agent/sessionlog"
	"cadre/internal/engine"
)

// Shown is one entry of a session's output. The host of a team on disk keeps the last MiB of a
// member's sessions. It is not part of the history.
type Shown struct {
	// counts the entries of the member's sessions, from 1; a ShownOutput has that of the entry
	// before it
	Seq         int64
	At          time.Time
	Kind        ShownKind
	ID          string // of a tool use, or of a question or plan and its answer
	Tool        string
	Text        string
	Cut         bool // only the beginning of Text is kept; of a ShownResult, only the end
	Failed      bool
	Interrupted bool
	Usage       Usage
	Context     int   // percent of its context that is full
	Lost        int64 // how much before it is not kept: entries; bytes of a ShownOutput; lines of a ShownResult
}

// ShownKind is the kind of an entry.
type ShownKind string

// The kinds, with the fields that they use.
const (
	ShownStarted   = ShownKind(sessionlog.Started)   // the session runs; Text is the agent's own id of it
	ShownPrompt    = ShownKind(sessionlog.Prompt)    // the session was given Text
	ShownTurn      = ShownKind(sessionlog.Turn)      // the agent starts to work; Text is a summary
	ShownPart      = ShownKind(sessionlog.Part)      // Text continues the text that the agent writes
	ShownText      = ShownKind(sessionlog.Text)      // a complete text, which replaces its parts
	ShownTool      = ShownKind(sessionlog.Tool)      // the agent uses Tool with the input Text
	ShownOutput    = ShownKind(sessionlog.Output)    // the use ID, which is still running, has more output: Text
	ShownResult    = ShownKind(sessionlog.Result)    // the use ID ended with the output Text, or Failed
	ShownQuestion  = ShownKind(sessionlog.Question)  // the agent asks whether it may use Tool with the input Text
	ShownPlan      = ShownKind(sessionlog.Plan)      // the agent submits the plan Text
	ShownAnswer    = ShownKind(sessionlog.Answer)    // the answer to ID: with Failed it is no, and Text says why
	ShownUsage     = ShownKind(sessionlog.Usage)     // Usage was added, and Context percent of the context are full
	ShownCompacted = ShownKind(sessionlog.Compacted) // the agent shortened its context
	ShownRetry     = ShownKind(sessionlog.Retry)     // the agent retries after the trouble Text
	ShownTurnEnded = ShownKind(sessionlog.TurnEnded) // the agent waits; with Failed, Text says why the turn failed
	ShownEnded     = ShownKind(sessionlog.Ended)     // the session ended; with Failed, by itself, and Text says why
	ShownLost      = ShownKind(sessionlog.Lost)      // Lost entries are no longer kept
)

// Session yields the kept output of the member's sessions, and then new output as it appears. A
// slow consumer does not delay the session; if it falls behind, it gets a [ShownLost]. The sequence
// ends without an error once the member, the team or ctx has ended. The error is [ErrInvalid] for a
// member that runs its own session, and for a team in memory.
func (v *View) Session(ctx context.Context, member string) (iter.Seq2[Shown, error], error) {
	return v.session(ctx, member, engine.Follow)
}

// SessionSoFar yields the kept output of the member's sessions. It returns the errors of Session.
func (v *View) SessionSoFar(ctx context.Context, member string) (iter.Seq2[Shown, error], error) {
	return v.session(ctx, member, engine.SoFar)
}

func (v *View) session(ctx context.Context, member string, until engine.Until) (iter.Seq2[Shown, error], error) {
	entries, err := v.of.Session(ctx, member, until)
	if err != nil {
		return nil, public(err)
	}
	return func(yield func(Shown, error) bool) {
		for e, err := range entries {
			if !yield(shownOf(e), public(err)) {
				return
			}
		}
	}, nil
}

func shownOf(e sessionlog.Entry) Shown {
	s := Shown{Seq: e.Seq, At: clock(e.At), Kind: ShownKind(e.Kind), ID: e.ID, Tool: e.Tool, Text: e.Text, Cut: e.Cut,
		Failed: e.Failed, Interrupted: e.Interrupted, Context: e.Context, Lost: e.Count}
	if e.Usage != nil {
		s.Usage = Usage(*e.Usage)
	}
	return s
}
