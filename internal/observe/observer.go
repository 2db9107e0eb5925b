package observe

import (
	"bytes"
	"fmt"
	"unicode/utf8"

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

// leadName is what Claude Code calls the lead of each team.
const leadName = "team-lead"

// MaxLine is the length from which a line is huge.
const MaxLine = 10 << 20

// Observer watches one team at a time. It belongs to one goroutine.
type Observer struct {
	options Options

	s      *team.State // of the team, the last one if it is gone; nil while there was none
	epoch  epoch
	board  *board
	roster *roster
	mail   *mailbag

	correlation *correlation
	sessions    map[string]*session
	order       []string // of the sessions
	sides       map[string]*side
	sideOrder   []string
	tails       map[string]string // agent by the uuid of its last line
	sources     map[string]*source
	spent       map[string]*spent // by session
	held        []fact
	dropping    bool // there are too many of them
	unbilled    bool // a session has used more than was reported
	retry       bool // something is known now that may tell whose the held facts are
	lines       int64
	foreign     [1 << 10]uint64 // hashes of tool uses that are none of a team's, each at its place
	counts      Counts

	out    Seen
	events []team.Event // of the record that is being made
	placed int          // tasks that the state has, with those of these events
	mailed int64        // messages of these events
}

// Counts of what came and what became of it.
type Counts struct {
	Lines      int64 `json:"lines"`
	Decoded    int64 `json:"decoded"`    // lines that were worth it
	Garbage    int64 `json:"garbage"`    // lines that are no JSON object
	Truncated  int64 `json:"truncated"`  // lines that begin like one and end before its end
	Huge       int64 `json:"huge"`       // lines that are too long to be decoded
	InvalidUTF int64 `json:"invalidUtf"` // lines that are no valid UTF-8; they are read all the same
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

// Seen is what one line said. Nearly all lines say nothing of a team, and then it is zero.
type Seen struct {
	// TeamToolUse says that the line calls a tool of the team, or has the result of such a call:
	// the flag on the original message, which is passed on unchanged.
	TeamToolUse bool
	// Supplements are the messages beside the original one.
	Supplements []Supplement
	// Records are what the team's state and a journal take. One with seq 1 begins a new team.
	Records []*team.Record
	// Notices are the events for consumers that follow from the records.
	Notices []Notice
	// Warnings are for a log.
	Warnings []string
}

// New returns an observer that has seen nothing.
func New(options Options) *Observer {
	if options.Lead == "" {
		options.Lead = leadName
	}
	if options.TTL == 0 {
		options.TTL = TTL
	}
	if options.MaxLine == 0 {
		options.MaxLine = MaxLine
	}
	return &Observer{options: options, board: newBoard(), roster: newRoster(), mail: newMailbag(),
		correlation: newCorrelation(options.TTL),
		sessions:    map[string]*session{}, sides: map[string]*side{}, tails: map[string]string{},
		sources: map[string]*source{}, spent: map[string]*spent{}}
}

// Introduce says whose lines a source has, where the caller knows and the lines do not: the stream
// of a teammate with a process of its own, or a file beside which stands its name. A source without
// introduction is a lead's, or its lines say whose it is.
func (o *Observer) Introduce(name, ofTeam, member string) {
	src := o.source(name)
	src.Team, src.Member = ofTeam, member
	o.named(src.Agent, member)
}

func (o *Observer) source(name string) *source {
	src := o.sources[name]
	if src == nil {
		src = &source{}
		o.sources[name] = src
	}
	return src
}

// Line takes one line of a source, without or with its line break, at the time at which it came.
// The line is not kept and not changed; whoever relays it passes it on as it is, whatever is said
// here.
func (o *Observer) Line(name string, line []byte, now team.Time) Seen {
	o.out = Seen{}
	o.lines++
	o.counts.Lines++
	if n := o.correlation.expire(now); n > 0 {
		o.warn("waited for too long: %s", halves(n))
	}
	line = bytes.Trim(bytes.TrimPrefix(line, byteOrderMark), "\r\n \t")
	src := o.source(name)
	switch huge := len(line) >= o.options.MaxLine; {
	case len(line) == 0:
		return o.out
	case line[0] != '{':
		o.counts.Garbage++
		if o.worth(src, line) {
			o.gap(name, src, "a line lacks its beginning", now)
		} else {
			o.warn("%s: a line that is no JSON object", name)
		}
		return o.out
	case huge:
		o.counts.Huge++
		if o.worth(src, line) {
			o.gap(name, src, fmt.Sprintf("a line of %d bytes or more is too long to be read", len(line)), now)
		} else {
			o.warn("%s: a line of %d bytes or more", name, len(line))
		}
		return o.out
	case line[len(line)-1] != '}':
		o.counts.Truncated++
		if o.worth(src, line) {
			o.gap(name, src, "a line was cut off", now)
		} else {
			o.warn("%s: a line that was cut off", name)
		}
		return o.out
	case !o.worth(src, line):
		return o.out
	}
	o.counts.Decoded++
	if !utf8.Valid(line) {
		o.counts.InvalidUTF++
		o.warn("%s: a line that is no valid UTF-8", name)
	}
	if kind, _ := head(line); string(kind) == FileNoteType {
		o.takeNote(name, src, line, now)
		return o.out
	}
	m, err := decode(line)
	if err != nil {
		o.counts.Garbage++
		o.gap(name, src, "a line could not be read", now)
		return o.out
	}
	o.take(name, src, m, now)
	return o.out
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
func (o *Observer) Gap(name, reason string, now team.Time) Seen {
	o.out = Seen{}
	o.gap(name, o.source(name), reason, now)
	return o.out
}

func (o *Observer) gap(name string, src *source, reason string, now team.Time) {
	o.counts.Gaps++
	o.warn("%s: %s", name, reason)
	if o.here() {
		o.emit(&team.GapNoticed{Source: name, Reason: reason})
		o.commit(o.anID("gap"), "", src.stamp(0, now, o.lines))
	}
}

// Resume says that an observer which was read back goes on now. What waited for its other half then
// waits anew: in the time between nobody looked.
func (o *Observer) Resume(now team.Time) { o.correlation.resume(now) }

// Counts returns what came so far.
func (o *Observer) Counts() Counts {
	c := o.counts
	c.Pending, c.Held = int64(len(o.correlation.calls)), int64(len(o.held))
	c.Discarded, c.Orphaned = o.correlation.discarded, o.correlation.orphaned
	c.Duplicates += o.correlation.duplicates
	return c
}

// Team returns the state of the team, the last one if it is gone; nil while none has shown itself.
// It is changed by [Observer.Line] alone, which is to be waited for.
func (o *Observer) Team() *team.State { return o.s }

// State is the team as consumers see it, nil where there is none.
func (o *Observer) State() *TeamState { return StateOf(o.s) }

// Agents are the names of the teammates; without a team, those that the session itself gave at its
// start.
func (o *Observer) Agents() []string {
	names := []string{}
	switch {
	case o.here():
		for _, m := range o.s.Members() {
			if m.Name != o.lead() {
				names = append(names, m.Name)
			}
		}
	case o.s == nil && len(o.order) > 0:
		names = append(names, o.sessions[o.order[0]].Agents...)
	}
	return names
}

func (o *Observer) warn(format string, args ...any) {
	o.out.Warnings = append(o.out.Warnings, fmt.Sprintf(format, args...))
}

// here reports whether there is a team.
func (o *Observer) here() bool { return o.s != nil && o.s.Exists() || o.founding() }

// founding reports whether the events that are being gathered begin a team.
func (o *Observer) founding() bool {
	for _, e := range o.events {
		if _, ok := e.(*team.TeamCreated); ok {
			return true
		}
	}
	return false
}

// lead is the lead's name.
func (o *Observer) lead() string {
	if o.s != nil && o.s.Team().Lead != "" {
		return o.s.Team().Lead
	}
	return o.options.Lead
}

// called reports whether that is the team's name among its agents. The first that is heard is,
// where it was not known; "" says nothing against it.
func (o *Observer) called(name string) bool {
	if o.epoch.Name == "" {
		o.epoch.Name = name
	}
	return name == "" || name == o.epoch.Name
}

// stamp is when a line of the source was written: at its own time, or in a source whose lines have
// none, at that of its arrival. It never goes back.
func (src *source) stamp(at, now team.Time, seq int64) stamp {
	switch {
	case at != 0 && !src.Timed: // those before had none, and were given that of their arrival
		src.Timed, src.Last = true, stamp{}
	case at != 0:
	case src.Timed:
		at = src.Last.At
	default:
		at = now
	}
	src.Last = stamp{max(at, src.Last.At), seq}
	return src.Last
}

func (o *Observer) session(id string) *session {
	one := o.sessions[id]
	if one == nil {
		one = &session{Board: newBoard()}
		o.sessions[id] = one
		if o.order = append(o.order, id); len(o.order) > maxSessions {
			delete(o.sessions, o.order[0])
			o.order = o.order[1:]
		}
	}
	return one
}
