package model

import (
	"bytes"
	"cmp"
	"fmt"
	"unicode/utf8"

	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// Options configures a watcher. The zero value suits nearly all uses.
type Options struct {
	// Lead is the lead's name until a stream names another; "" for team-lead, Claude Code's name
	// for it.
	Lead string
	// ID is the id of the team; "" for one made from its name and its lead's session. A second team
	// of the same observer gets an id of its own.
	ID string
	// Of is the name of the team to observe; "" for the one that began last.
	Of string
	// Name is the team's name in its records; "" for its own name.
	Name string
	// TTL is how long a result waits for its call, in milliseconds; 0 means [TTL]. A call waits for
	// [CallTTL].
	TTL team.Time
	// MaxLine is the length in bytes from which a line counts as huge and is not decoded. 0 means
	// [protocol.MaxLine].
	MaxLine int
}

// Recorded is called with each new record, the state after it, and the observed session.
type Recorded func(s *team.State, r *team.Record, session string)

// Report is the result of one line. Most lines do not concern a team; the report is zero then.
type Report struct {
	// TeamToolUse says that the line calls a tool of the team, or has the result of such a call.
	TeamToolUse bool
	// Uses are the calls of team tools, and their results, that became known with this line.
	Uses []protocol.ToolUse
	// Records are for the team's state and a journal. A record with seq 1 begins a new team.
	Records []*team.Record
	// Warnings are for a log.
	Warnings []string
}

// Counts are statistics about the input.
type Counts struct {
	Lines      int64 `json:"lines"`
	Decoded    int64 `json:"decoded"`    // lines that were worth decoding
	Garbage    int64 `json:"garbage"`    // lines that are not a JSON object
	Truncated  int64 `json:"truncated"`  // truncated JSON objects
	Huge       int64 `json:"huge"`       // lines that are too long to decode
	InvalidUTF int64 `json:"invalidUtf"` // lines of invalid UTF-8, which are decoded all the same
	Unknown    int64 `json:"unknown"`    // calls of unknown tools with names like team tools
	Invalid    int64 `json:"invalid"`    // calls of team tools without required input
	Failed     int64 `json:"failed"`     // failed calls of team tools
	Duplicates int64 `json:"duplicates"` // repeated calls and results
	Pending    int64 `json:"pending"`    // calls that wait for their result
	Discarded  int64 `json:"discarded"`  // calls whose result did not arrive in time
	Orphaned   int64 `json:"orphaned"`   // results whose call did not arrive in time
	Held       int64 `json:"held"`       // calls that wait for their author to be identified
	Dropped    int64 `json:"dropped"`    // held calls that were dropped for lack of room
	Gaps       int64 `json:"gaps"`
}

// Watcher reconstructs one team at a time from its input lines. It belongs to one goroutine.
type Watcher struct {
	maxLine     int
	team        *observedTeam
	speakers    *speakers
	filter      *protocol.Filter
	correlation *correlation
	held        []fact
	dropping    bool // held facts are being dropped
	counts      Counts
}

// New returns a watcher that has seen no lines.
func New(options Options, recorded Recorded) *Watcher {
	options.Lead = cmp.Or(options.Lead, protocol.LeadName)
	options.TTL = cmp.Or(options.TTL, TTL)
	options.MaxLine = cmp.Or(options.MaxLine, protocol.MaxLine)
	c := newCorrelation(options.TTL)
	who := newSpeakers(&c.done)
	return &Watcher{maxLine: options.MaxLine, team: newObservedTeam(options, who, recorded), speakers: who,
		correlation: c, filter: protocol.NewFilter(who.initialized)}
}

// Introduce tells who writes the lines of a source, if the lines do not say so. Such a source is
// the stream of a teammate with its own process, or a file with its name beside it. A source
// without introduction is a lead's, or its lines name their writer.
func (w *Watcher) Introduce(name, ofTeam, member string) {
	src := w.speakers.source(name)
	src.Team, src.Member = ofTeam, member
	w.named(src.Agent, member)
}

// named records the teammate of a nameless side.
func (w *Watcher) named(agent, member string) {
	if member != w.team.lead() {
		w.speakers.named(agent, member, w.team.roster)
	}
}

// report returns the result of the present line and resets it.
func (w *Watcher) report() Report {
	out := w.team.out
	w.team.out = Report{}
	return out
}

// Line processes one line of a source, with or without its line break, at its arrival time. It
// neither keeps nor changes the line. A relay passes the line on unchanged, whatever the result.
func (w *Watcher) Line(name string, line []byte, now team.Time) Report {
	w.team.lines++
	w.counts.Lines++
	if n := w.correlation.expire(now); n > 0 {
		w.team.warn("expired: %s", unmatchedWords(n))
	}
	line = bytes.Trim(bytes.TrimPrefix(line, byteOrderMark), "\r\n \t")
	src := w.speakers.source(name)
	switch broken, why := w.broken(line); {
	case len(line) == 0:
	case broken != nil:
		*broken++
		if w.filter.Worth(line, len(src.IdleCandidates) > 0) {
			w.gap(name, src, why.loss, now)
		} else {
			w.team.warn("%s: %s", name, why.harmless)
		}
	case w.filter.Worth(line, len(src.IdleCandidates) > 0):
		w.read(name, src, line, now)
	}
	return w.report()
}

// fault describes the defect of a line: loss is the reason of the gap if it may have concerned the
// team, and harmless the warning otherwise.
type fault struct{ loss, harmless string }

// broken returns the counter for a line that cannot be decoded, and the fault; nil if the line can
// be decoded.
func (w *Watcher) broken(line []byte) (*int64, fault) {
	switch huge := len(line) >= w.maxLine; {
	case len(line) == 0:
		return nil, fault{}
	case line[0] != '{':
		return &w.counts.Garbage, fault{"a line lacks its beginning", "a line that is not a JSON object"}
	case huge:
		what := fmt.Sprintf("a line of %d bytes or more", len(line))
		return &w.counts.Huge, fault{what + " is too long to be read", what}
	case line[len(line)-1] != '}':
		return &w.counts.Truncated, fault{"a line is truncated", "a truncated line"}
	}
	return nil, fault{}
}

// read decodes and processes a line.
func (w *Watcher) read(name string, src *source, line []byte, now team.Time) {
	w.counts.Decoded++
	if !utf8.Valid(line) {
		w.counts.InvalidUTF++
		w.team.warn("%s: a line that is not valid UTF-8", name)
	}
	if kind, _ := protocol.Head(line); string(kind) == protocol.FileNoteType {
		w.takeNote(name, src, line, now)
		return
	}
	m, err := protocol.Decode(line)
	if err != nil {
		w.counts.Garbage++
		w.gap(name, src, "a line cannot be decoded", now)
		return
	}
	w.take(name, src, m, now)
}

// byteOrderMark is the UTF-8 byte order mark, with which some writers begin a stream.
var byteOrderMark = []byte("\uFEFF")

func unmatchedWords(n int) string {
	if n == 1 {
		return "a call without a result, or a result without a call"
	}
	return fmt.Sprintf("%d calls without results, or results without calls", n)
}

// Gap records that part of a source was lost: a connection was down, a file was truncated. The
// knowledge about the team is kept.
func (w *Watcher) Gap(name, reason string, now team.Time) Report {
	w.gap(name, w.speakers.source(name), reason, now)
	return w.report()
}

func (w *Watcher) gap(name string, src *source, reason string, now team.Time) {
	w.counts.Gaps++
	w.team.warn("%s: %s", name, reason)
	if w.team.exists() {
		w.team.emit(&team.GapNoticed{Source: name, Reason: reason})
		w.team.commit(w.team.recordID("gap"), "", src.stamp(0, now, w.team.lines))
	}
}

// Resume says that a restored watcher continues now. The waiting time of calls and results starts
// again, because nothing was observed in between.
func (w *Watcher) Resume(now team.Time) { w.correlation.resume(now) }

// Counts returns the statistics so far.
func (w *Watcher) Counts() Counts {
	c := w.counts
	c.Pending, c.Held = int64(len(w.correlation.calls)), int64(len(w.held))
	c.Discarded, c.Orphaned = w.correlation.discarded, w.correlation.orphaned
	c.Duplicates += w.correlation.duplicates
	return c
}

// Team returns the state of the team, or of the last one if it was removed; nil before the first
// team. Only the methods that process lines change it.
func (w *Watcher) Team() *team.State { return w.team.state }

// Agents returns the names of the teammates. Without a team, it returns the agents that the session
// listed at its start.
func (w *Watcher) Agents() []string {
	names := []string{}
	switch {
	case w.team.exists():
		for _, m := range w.team.state.Members() {
			if m.Name != w.team.lead() {
				names = append(names, m.Name)
			}
		}
	case w.team.state == nil && len(w.speakers.order) > 0:
		names = append(names, w.speakers.sessions[w.speakers.order[0]].Agents...)
	}
	return names
}

// once records a hash and reports whether it was new. Repetitions are counted.
func (w *Watcher) once(h uint64) bool {
	if w.correlation.done.once(h) {
		return true
	}
	w.counts.Duplicates++
	return false
}
