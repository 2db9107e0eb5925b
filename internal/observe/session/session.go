// Package session makes a team of one of a session whose agent has no teams: Codex, and whatever
// speaks the Agent Client Protocol. It is then shown, journaled and served as an observed team of
// Claude Code is, with one member and no tasks.
//
// # Authority
//
// Like package observe it listens and decides nothing: it is a function of what the session did, in
// the order in which it did it. What the session is, which agent and by which protocol, it does not
// know: it is given updates, or a reader that makes them of the agent's own lines.
//
//	line ──▶ agent.Reader ──▶ agent.Update ──▶ team events ──▶ record, notices
//
// # What is said of the member
//
//	joined       with the first word of its session
//	active       a turn, and then a text or a tool of it, which is its summary: "Bash: go test ./..."
//	blocked      it waits for leave, or for its plan to be read; or its turn failed, with the words of the problem
//	idle         its turn ended, with the last that it said
//	stopped      its session ended
//	failed       so it did, and in the middle of a turn
//	usage        added up, and how full its context is
//
// # Guarantees
//
//   - What says nothing new makes no event. No line is fatal; one that may have said something and
//     cannot be read is a gap, and said.
//   - What an agent wrote is one short line of valid UTF-8 in a summary.
//   - What is known is saved between any two lines, and whoever reads it back goes on as if nothing
//     had happened: also with the next session of the agent, which is that of the same member.
//     Lines that are shown again count again: unlike Claude Code's they have no names.
package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"
	"unicode"
	"unicode/utf8"

	"cadre/internal/agent"
	"cadre/internal/observe"
	"cadre/internal/observe/present"
	"cadre/internal/observe/protocol"
	"cadre/internal/render/excerpt"
	"cadre/internal/team"
)

// Options say what is observed.
type Options struct {
	// Agent is its name, which becomes the member's and the team's.
	Agent string
	// Name is what the team is called in its records; "" for the agent's name.
	Name string
	// Reader makes updates of the agent's lines; nil for a session whose updates are given.
	Reader agent.Reader
	// MaxLine is the length in bytes from which a line is huge: it is counted and not read. 0 for
	// [protocol.MaxLine].
	MaxLine int
}

// Observer watches one session. It belongs to one goroutine.
type Observer struct {
	o       Options
	s       *team.State
	tools   map[string]string // what goes on, by its id
	turn    bool              // one goes on
	updates int64
	last    team.Time
	counts  observe.Counts
	events  []team.Event
}

// lead is who the member works for: a person or a program that is not observed.
const lead = "team-lead"

// New returns an observer that has seen nothing.
func New(o Options) *Observer {
	if o.Name == "" {
		o.Name = o.Agent
	}
	if o.MaxLine == 0 {
		o.MaxLine = protocol.MaxLine
	}
	return &Observer{o: o, tools: map[string]string{}}
}

// Team is the team of one, nil before the session said anything.
func (o *Observer) Team() *team.State { return o.s }

// Agents are the one member.
func (o *Observer) Agents() []string {
	if o.s == nil {
		return []string{}
	}
	return []string{o.o.Agent}
}

// Counts are those of the lines.
func (o *Observer) Counts() observe.Counts { return o.counts }

// Introduce is no news: all lines are those of the one member.
func (o *Observer) Introduce(source, ofTeam, member string) {}

// Resume is none either: nothing that is known here is true for a time only.
func (o *Observer) Resume(now team.Time) {}

// Line takes one line of the agent, at the time at which it came.
func (o *Observer) Line(source string, line []byte, now team.Time) (seen observe.Seen) {
	o.counts.Lines++
	line = bytes.TrimRight(line, "\r\n \t")
	switch {
	case len(line) == 0:
		return seen
	case line[0] != '{':
		o.counts.Garbage++
		seen.Warnings = []string{source + ": a line that is no JSON object"}
		return seen
	case len(line) >= o.o.MaxLine:
		o.counts.Huge++
		return o.Gap(source, fmt.Sprintf("a line of %d bytes or more is too long to be read", len(line)), now)
	case !json.Valid(line):
		o.counts.Truncated++
		return o.Gap(source, "a line was cut off", now)
	case !utf8.Valid(line):
		o.counts.InvalidUTF++
	}
	o.counts.Decoded++
	for _, u := range o.o.Reader.Line(line) {
		one := o.Update(u, now)
		seen.Records, seen.Notices = append(seen.Records, one.Records...), append(seen.Notices, one.Notices...)
	}
	return seen
}

// Gap says that something of the session was lost.
func (o *Observer) Gap(source, reason string, now team.Time) (seen observe.Seen) {
	o.counts.Gaps++
	seen.Warnings = []string{source + ": " + reason}
	if o.s != nil {
		o.events = append(o.events, &team.GapNoticed{Source: source, Reason: reason})
		o.commit(now, &seen)
	}
	return seen
}

// End says that a source has no more lines, because the program at its other end is gone. A session
// that waits for something to do stays as it is: somebody may go on with it.
func (o *Observer) End(source string, now team.Time) (seen observe.Seen) {
	switch {
	case o.s == nil || !o.member().Status.Running():
	case o.turn:
		return o.Update(agent.Ended{Err: errCut}, now)
	case o.member().Status == team.Active:
		return o.Update(agent.Ended{}, now)
	}
	return seen
}

// errCut is why a session failed that was interrupted, or killed: of most agents no line says so.
var errCut = errors.New("it ended in the middle of a turn")

// Update takes one thing that the session did.
func (o *Observer) Update(u agent.Update, now team.Time) (seen observe.Seen) {
	o.updates++
	started, begins := u.(agent.Started)
	switch _, ends := u.(agent.Ended); {
	case begins || o.s == nil:
		o.begin(started.Session)
	case !ends && !o.member().Status.Running():
		o.begin(o.member().Session)
	}
	o.reduce(u)
	o.commit(now, &seen)
	return seen
}

// begin has the member join, or come back.
func (o *Observer) begin(session string) {
	m := team.Member{Name: o.o.Agent, Agent: team.External, Role: o.o.Agent, Session: session, Status: team.Active,
		Incarnation: 1}
	if o.s == nil {
		o.s = &team.State{}
		sum := fnv.New32a()
		sum.Write([]byte(session))
		o.events = append(o.events,
			&team.TeamCreated{Team: team.Team{ID: fmt.Sprintf("%s-%08x", o.o.Name, sum.Sum32()), Name: o.o.Name,
				Observed: o.o.Agent, Session: true, Status: team.TeamPending},
				Lead: team.Member{Name: lead, Agent: team.External, Status: team.Active, Incarnation: 1}},
			&team.MemberSpawned{Member: m})
		return
	}
	switch have := o.member(); {
	case !have.Status.Running():
		o.events = append(o.events, &team.MemberReturned{Member: m})
	case session != "" && session != have.Session:
		o.events = append(o.events, &team.MemberDescribed{Member: m.Name, Session: session})
	}
}

// member is the one, as it is after what was recorded.
func (o *Observer) member() team.Member {
	m, _ := o.s.Member(o.o.Agent)
	return m
}

// reduce says as events what an update means for the member.
func (o *Observer) reduce(u agent.Update) {
	name := o.o.Agent
	switch u.(type) {
	case agent.TurnStarted, agent.Text, agent.ToolStarted, agent.PermissionAsked, agent.PlanProposed, agent.Retrying:
		o.turn = true
	case agent.Started, agent.TurnEnded, agent.Ended:
		o.turn = false
	}
	switch u := u.(type) {
	case agent.TurnStarted: // what was said before was not in this one
		o.becomes(team.Active, short(u.Summary))
	case agent.Text:
		o.is(team.Active, u.Text)
	case agent.ToolStarted:
		what := toolLine(u.Tool, u.Input)
		if len(o.tools) < maxTools {
			o.tools[u.ID] = what
		}
		o.is(team.Active, what)
	case agent.ToolFinished:
		what := o.tools[u.ID]
		delete(o.tools, u.ID)
		switch {
		case u.Failed:
			o.is(team.Active, "failed: "+what)
		case o.member().Status == team.Blocked:
			o.is(team.Active, what)
		}
	case agent.PermissionAsked:
		o.is(team.Blocked, "asks for leave: "+toolLine(u.Tool, u.Input))
	case agent.PlanProposed:
		o.is(team.Blocked, "lays a plan before its user: "+u.Plan)
	case agent.Retrying:
		o.is(team.Active, "tries again: "+u.Problem.Text)
	case agent.Used:
		if u.Usage != (team.Usage{}) || u.Context > 0 && int64(u.Context) != o.member().Context {
			o.events = append(o.events, &team.UsageReported{Member: name, Usage: u.Usage, Context: int64(u.Context)})
		}
	case agent.TurnEnded:
		clear(o.tools)
		switch {
		case u.Problem != nil:
			o.events = append(o.events, &team.MemberTroubled{Member: name, Trouble: string(u.Problem.Kind),
				Text: short(u.Problem.Text), Setbacks: o.member().Setbacks + 1})
		case u.GoesOn:
		case u.Interrupted:
			o.is(team.Idle, "interrupted")
		default:
			o.is(team.Idle, u.Text)
		}
	case agent.Ended:
		clear(o.tools)
		if u.Err != nil {
			o.events = append(o.events, &team.MemberFailed{Member: name, Reason: short(u.Err.Error())})
		} else {
			o.events = append(o.events, &team.MemberStopped{Member: name, Reason: "its session ended"})
		}
	}
}

// maxTools bounds how many tools are remembered that never end.
const maxTools = 256

// is says what the member is at; "" for what it was at.
func (o *Observer) is(status team.MemberStatus, doing string) {
	if doing = short(doing); doing == "" {
		doing = o.member().Summary
	}
	o.becomes(status, doing)
}

// becomes says how the member is and what it is at, unless that is known.
func (o *Observer) becomes(status team.MemberStatus, doing string) {
	m := o.member()
	if m.Name == "" { // it joins with this record, active
		m.Status = team.Active
	}
	if m.Status != status || m.Summary != doing {
		o.events = append(o.events, &team.MemberStatusChanged{Member: o.o.Agent, Status: status, Summary: doing})
	}
}

// commit makes a record of the events.
func (o *Observer) commit(now team.Time, seen *observe.Seen) {
	if len(o.events) == 0 {
		return
	}
	o.last = max(o.last, now)
	r := &team.Record{Seq: o.s.Seq() + 1, ID: fmt.Sprintf("observed-%d-%d", o.updates, o.counts.Gaps), Actor: o.o.Agent,
		At: o.last, Events: o.events}
	o.events = nil
	o.s.Apply(r)
	seen.Records = append(seen.Records, r)
	seen.Notices = append(seen.Notices, present.NoticesOf(o.s, r, o.member().Session)...)
}

// telling are the parts of a tool's input that say most of it, the first that is there.
var telling = []string{"command", "file_path", "path", "query", "pattern", "url", "description"}

// toolLine tells of a tool in a few words.
func toolLine(tool, input string) string {
	var in map[string]any
	json.Unmarshal([]byte(input), &in)
	for _, key := range telling {
		if text, ok := in[key].(string); ok && text != "" {
			return tool + ": " + text
		}
	}
	return tool
}

// longest is how many characters a summary has.
const longest = 120

// short is a text as one line that is not long, with nothing in it that a terminal would obey.
func short(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return excerpt.Characters(strings.Join(strings.Fields(text), " "), longest)
}
