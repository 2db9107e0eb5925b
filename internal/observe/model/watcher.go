package model

import (
	"bytes"
	"cmp"
	"fmt"
	"unicode/utf8"

	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// Options say how to observe. The zero value is what is wanted nearly always.
type Options struct {
	// Lead is the lead's name until a stream says another; "" for team-lead, as Claude Code calls
	// it.
	Lead string
	// ID is the id of the team, if it is to be a given one; "" for one made from its name and its
	// lead's session. A second team of one observer has its own.
	ID string
	// Of is the team that is observed, by its own name; "" for the one that began last.
	Of string
	// Name is what the team is called in its records, instead of by its own name; "" for that.
	Name string
	// TTL is how long a result waits for its call, in milliseconds; 0 for [TTL]. A call waits for
	// [CallTTL].
	TTL team.Time
	// MaxLine is the length in bytes from which a line is huge: it is counted and not decoded. 0
	// for [MaxLine].
	MaxLine int
}

// Recorded is called with each record that was made, the state after it, and the session that is
// observed.
type Recorded func(s *team.State, r *team.Record, session string)

// Report is what one line said. Nearly all lines say nothing of a team, and then it is zero.
type Report struct {
	// TeamToolUse says that the line calls a tool of the team, or has the result of such a call.
	TeamToolUse bool
	// Uses are the calls of the team's tools, and their results, that are known by this line.
	Uses []protocol.ToolUse
	// Records are what the team's state and a journal take. One with seq 1 begins a new team.
	Records []*team.Record
	// Warnings are for a log.
	Warnings []string
}

// Counts of what came and what became of it.
type Counts struct {
	Lines      int64 `json:"lines"`
	Decoded    int64 `json:"decoded"`    // lines that were worth it
	Garbage    int64 `json:"garbage"`    // lines that are not a JSON object
	Truncated  int64 `json:"truncated"`  // lines that begin like one and end before its end
	Huge       int64 `json:"huge"`       // lines that are too long to be decoded
	InvalidUTF int64 `json:"invalidUtf"` // lines that are not valid UTF-8; they are read all the same
	Unknown    int64 `json:"unknown"`    // calls of tools that look like a team's and are not known
	Invalid    int64 `json:"invalid"`    // calls of a team's tools without the input that they need
	Failed     int64 `json:"failed"`     // calls of a team's tools that failed
	Duplicates int64 `json:"duplicates"` // calls and results that came again
	Pending    int64 `json:"pending"`    // calls that wait for their result now
	Discarded  int64 `json:"discarded"`  // calls whose result did not come in time
	Orphaned   int64 `json:"orphaned"`   // results whose call did not come in time
	Held       int64 `json:"held"`       // calls that wait until it is known who made them
	Dropped    int64 `json:"dropped"`    // of those, how many had to make room
	Gaps       int64 `json:"gaps"`
}

// Watcher makes out one team at a time from the lines that it is given. It belongs to one
// goroutine.
type Watcher struct {
	maxLine     int
	team        *subject
	cast        *cast
	sieve       *protocol.Sieve
	correlation *correlation
	held        []fact
	dropping    bool // there are too many of them
	counts      Counts
}

// New returns a watcher that has seen nothing.
func New(options Options, recorded Recorded) *Watcher {
	options.Lead = cmp.Or(options.Lead, protocol.LeadName)
	options.TTL = cmp.Or(options.TTL, TTL)
	options.MaxLine = cmp.Or(options.MaxLine, protocol.MaxLine)
	c := newCorrelation(options.TTL)
	who := newCast(&c.done)
	return &Watcher{maxLine: options.MaxLine, team: newSubject(options, who, recorded), cast: who, correlation: c,
		sieve: protocol.NewSieve(who.begun)}
}

// Introduce says whose lines a source has, where the caller knows and the lines do not: the stream
// of a teammate with a process of its own, or a file beside which stands its name. A source without
// introduction is a lead's, or its lines say whose it is.
func (w *Watcher) Introduce(name, ofTeam, member string) {
	src := w.cast.source(name)
	src.Team, src.Member = ofTeam, member
	w.named(src.Agent, member)
}

// named says who a nameless side is.
func (w *Watcher) named(agent, member string) {
	if member != w.team.lead() {
		w.cast.named(agent, member, w.team.roster)
	}
}

// report returns what the line said that is being taken, and forgets it.
func (w *Watcher) report() Report {
	out := w.team.out
	w.team.out = Report{}
	return out
}

// Line takes one line of a source, without or with its line break, at the time at which it came.
// The line is not kept and not changed; whoever relays it passes it on as it is, whatever is said
// here.
func (w *Watcher) Line(name string, line []byte, now team.Time) Report {
	w.team.lines++
	w.counts.Lines++
	if n := w.correlation.expire(now); n > 0 {
		w.team.warn("waited for too long: %s", halves(n))
	}
	line = bytes.Trim(bytes.TrimPrefix(line, byteOrderMark), "\r\n \t")
	src := w.cast.source(name)
	switch broken, why := w.broken(line); {
	case len(line) == 0:
	case broken != nil:
		*broken++
		if w.sieve.Worth(line, len(src.Arms) > 0) {
			w.gap(name, src, why.loss, now)
		} else {
			w.team.warn("%s: %s", name, why.harmless)
		}
	case w.sieve.Worth(line, len(src.Arms) > 0):
		w.read(name, src, line, now)
	}
	return w.report()
}

// fault says what is wrong with a line: as the gap where it may have concerned the team, and as the
// warning where it did not.
type fault struct{ loss, harmless string }

// broken returns the count of lines like that one if it cannot be decoded, and why; nil if it can.
func (w *Watcher) broken(line []byte) (*int64, fault) {
	switch huge := len(line) >= w.maxLine; {
	case len(line) == 0:
		return nil, fault{}
	case line[0] != '{':
		return &w.counts.Garbage, fault{"a line lacks its beginning", "a line that is no JSON object"}
	case huge:
		what := fmt.Sprintf("a line of %d bytes or more", len(line))
		return &w.counts.Huge, fault{what + " is too long to be read", what}
	case line[len(line)-1] != '}':
		return &w.counts.Truncated, fault{"a line was cut off", "a line that was cut off"}
	}
	return nil, fault{}
}

// read decodes a line and takes what it says.
func (w *Watcher) read(name string, src *source, line []byte, now team.Time) {
	w.counts.Decoded++
	if !utf8.Valid(line) {
		w.counts.InvalidUTF++
		w.team.warn("%s: a line that is no valid UTF-8", name)
	}
	if kind, _ := protocol.Head(line); string(kind) == protocol.FileNoteType {
		w.takeNote(name, src, line, now)
		return
	}
	m, err := protocol.Decode(line)
	if err != nil {
		w.counts.Garbage++
		w.gap(name, src, "a line could not be read", now)
		return
	}
	w.take(name, src, m, now)
}

// byteOrderMark is what some writers begin a stream with.
var byteOrderMark = []byte("\uFEFF")

func halves(n int) string {
	if n == 1 {
		return "a call whose result did not come, or a result whose call did not"
	}
	return fmt.Sprintf("%d calls whose results did not come, or results whose calls did not", n)
}

// Gap says that something of a source was lost: a connection that was down, a file that was cut.
// What is known of the team stays.
func (w *Watcher) Gap(name, reason string, now team.Time) Report {
	w.gap(name, w.cast.source(name), reason, now)
	return w.report()
}

func (w *Watcher) gap(name string, src *source, reason string, now team.Time) {
	w.counts.Gaps++
	w.team.warn("%s: %s", name, reason)
	if w.team.here() {
		w.team.emit(&team.GapNoticed{Source: name, Reason: reason})
		w.team.commit(w.team.anID("gap"), "", src.stamp(0, now, w.team.lines))
	}
}

// Resume says that a watcher which was read back continues now. What waited for its other half then
// waits from now on: in the time between nobody looked.
func (w *Watcher) Resume(now team.Time) { w.correlation.resume(now) }

// Counts returns what came so far.
func (w *Watcher) Counts() Counts {
	c := w.counts
	c.Pending, c.Held = int64(len(w.correlation.calls)), int64(len(w.held))
	c.Discarded, c.Orphaned = w.correlation.discarded, w.correlation.orphaned
	c.Duplicates += w.correlation.duplicates
	return c
}

// Team returns the state of the team, the last one if it is gone; nil while none has shown itself.
// Only the methods that take lines change it.
func (w *Watcher) Team() *team.State { return w.team.state }

// Agents are the names of the teammates; without a team, those that the session itself gave at its
// start.
func (w *Watcher) Agents() []string {
	names := []string{}
	switch {
	case w.team.here():
		for _, m := range w.team.state.Members() {
			if m.Name != w.team.lead() {
				names = append(names, m.Name)
			}
		}
	case w.team.state == nil && len(w.cast.order) > 0:
		names = append(names, w.cast.sessions[w.cast.order[0]].Agents...)
	}
	return names
}

// once reports whether that is seen for the first time, and remembers it. What comes again is
// counted.
func (w *Watcher) once(h uint64) bool {
	if w.correlation.done.once(h) {
		return true
	}
	w.counts.Duplicates++
	return false
}
