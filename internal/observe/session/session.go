// Package session makes a team of one member from a session whose agent has no teams: Codex, and
// agents that speak the Agent Client Protocol. It is shown, journaled and served like an observed
// Claude Code team, with one member and no tasks.
//
// # Authority
//
// Like package observe, it listens and decides nothing: it is a function of the session's actions,
// in their order. It does not know the agent or the protocol: its input is a stream of updates, or
// of the agent's own lines with a reader that makes updates from them.
//
//	line ──▶ agent.Reader ──▶ agent.Update ──▶ team events ──▶ record, notices
//
// # States of the member
//
//	joined       at the first output of its session
//	active       a turn is running; the summary is its last text or tool: "Bash: go test ./..."
//	blocked      it waits for a permission or for plan approval, or its turn failed with this problem
//	idle         its turn ended; the summary is its last text
//	stopped      its session ended
//	failed       its session ended in the middle of a turn
//	usage        added up, with the usage of its context
//
// # Guarantees
//
//   - An update without news produces no event. No line is fatal. A line that may have mattered and
//     cannot be read is reported as a gap.
//   - In a summary, the agent's text is one short line of valid UTF-8.
//   - The knowledge can be saved between any two lines, and a restored observer continues as if
//     nothing had happened. The agent's next session belongs to the same member. Repeated lines
//     count again, because unlike Claude Code's they have no ids.
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

// Options configures an observer.
type Options struct {
	// Agent is the agent's name, which becomes the name of the member and the team.
	Agent string
	// Name is the team's name in its records; "" for the agent's name.
	Name string
	// Reader makes updates from the agent's lines; nil if the caller provides the updates.
	Reader agent.Reader
	// MaxLine is the length in bytes from which a line counts as huge and is not read. 0 means
	// [protocol.MaxLine].
	MaxLine int
}

// Observer watches one session. It belongs to one goroutine.
type Observer struct {
	o       Options
	s       *team.State
	tools   map[string]string // running tools by id
	turn    bool              // a turn is running
	updates int64
	last    team.Time
	counts  observe.Counts
	events  []team.Event
}

// lead stands for the person or program that the member works for. It is not observed.
const lead = "team-lead"

// New returns an observer that has seen no lines.
func New(o Options) *Observer {
	if o.Name == "" {
		o.Name = o.Agent
	}
	if o.MaxLine == 0 {
		o.MaxLine = protocol.MaxLine
	}
	return &Observer{o: o, tools: map[string]string{}}
}

// Team returns the team of one, or nil before the first output of the session.
func (o *Observer) Team() *team.State { return o.s }

// Agents returns the name of the one member.
func (o *Observer) Agents() []string {
	if o.s == nil {
		return []string{}
	}
	return []string{o.o.Agent}
}

// Counts returns statistics about the lines.
func (o *Observer) Counts() observe.Counts { return o.counts }

// Introduce does nothing: all lines come from the one member.
func (o *Observer) Introduce(source, ofTeam, member string) {}

// Resume does nothing: no knowledge here expires.
func (o *Observer) Resume(now team.Time) {}

// Line processes one line of the agent at its arrival time.
func (o *Observer) Line(source string, line []byte, now team.Time) (seen observe.Seen) {
	o.counts.Lines++
	line = bytes.TrimRight(line, "\r\n \t")
	switch {
	case len(line) == 0:
		return seen
	case line[0] != '{':
		o.counts.Garbage++
		seen.Warnings = []string{source + ": a line that is not a JSON object"}
		return seen
	case len(line) >= o.o.MaxLine:
		o.counts.Huge++
		return o.Gap(source, fmt.Sprintf("a line of %d bytes or more is too long to be read", len(line)), now)
	case !json.Valid(line):
		o.counts.Truncated++
		return o.Gap(source, "a line is truncated", now)
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

// Gap records that part of the session was lost.
func (o *Observer) Gap(source, reason string, now team.Time) (seen observe.Seen) {
	o.counts.Gaps++
	seen.Warnings = []string{source + ": " + reason}
	if o.s != nil {
		o.events = append(o.events, &team.GapNoticed{Source: source, Reason: reason})
		o.commit(now, &seen)
	}
	return seen
}

// End records that a source has no more lines, because the program at its other end has exited. A
// session that waits for input keeps its status, because it may be continued.
func (o *Observer) End(source string, now team.Time) (seen observe.Seen) {
	switch {
	case o.s == nil || !o.member().Status.Running():
	case o.turn:
		return o.Update(agent.Ended{Err: errMidTurn}, now)
	case o.member().Status == team.Active:
		return o.Update(agent.Ended{}, now)
	}
	return seen
}

// errMidTurn is the reason for the failure of a session that was interrupted or killed. Most agents
// write no line about that.
var errMidTurn = errors.New("the session ended in the middle of a turn")

// Update processes one update of the session.
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

// begin adds the member or brings it back.
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

// member returns the member in the recorded state.
func (o *Observer) member() team.Member {
	m, _ := o.s.Member(o.o.Agent)
	return m
}

// reduce turns an update into events about the member.
func (o *Observer) reduce(u agent.Update) {
	name := o.o.Agent
	switch u.(type) {
	case agent.TurnStarted, agent.Text, agent.ToolStarted, agent.PermissionAsked, agent.PlanProposed, agent.Retrying:
		o.turn = true
	case agent.Started, agent.TurnEnded, agent.Ended:
		o.turn = false
	}
	switch u := u.(type) {
	case agent.TurnStarted: // an earlier summary belongs to another turn
		o.setStatus(team.Active, oneLine(u.Summary))
	case agent.Text:
		o.setActivity(team.Active, u.Text)
	case agent.ToolStarted:
		what := toolLine(u.Tool, u.Input)
		if len(o.tools) < maxTools {
			o.tools[u.ID] = what
		}
		o.setActivity(team.Active, what)
	case agent.ToolFinished:
		what := o.tools[u.ID]
		delete(o.tools, u.ID)
		switch {
		case u.Failed:
			o.setActivity(team.Active, "failed: "+what)
		case o.member().Status == team.Blocked:
			o.setActivity(team.Active, what)
		}
	case agent.PermissionAsked:
		o.setActivity(team.Blocked, "asks for permission: "+toolLine(u.Tool, u.Input))
	case agent.PlanProposed:
		o.setActivity(team.Blocked, "submitted a plan: "+u.Plan)
	case agent.Retrying:
		o.setActivity(team.Active, "retries: "+u.Problem.Text)
	case agent.Used:
		if u.Usage != (team.Usage{}) || u.Context > 0 && int64(u.Context) != o.member().Context {
			o.events = append(o.events, &team.UsageReported{Member: name, Usage: u.Usage, Context: int64(u.Context)})
		}
	case agent.TurnEnded:
		clear(o.tools)
		switch {
		case u.Problem != nil:
			o.events = append(o.events, &team.MemberTroubled{Member: name, Trouble: string(u.Problem.Kind),
				Text: oneLine(u.Problem.Text), Setbacks: o.member().Setbacks + 1})
		case u.Continues:
		case u.Interrupted:
			o.setActivity(team.Idle, "interrupted")
		default:
			o.setActivity(team.Idle, u.Text)
		}
	case agent.Ended:
		clear(o.tools)
		if u.Err != nil {
			o.events = append(o.events, &team.MemberFailed{Member: name, Reason: oneLine(u.Err.Error())})
		} else {
			o.events = append(o.events, &team.MemberStopped{Member: name, Reason: "its session ended"})
		}
	}
}

// maxTools limits the number of running tools to remember. Some never report their end.
const maxTools = 256

// setActivity sets the member's status and activity. doing may be "" to keep the last activity.
func (o *Observer) setActivity(status team.MemberStatus, doing string) {
	if doing = oneLine(doing); doing == "" {
		doing = o.member().Summary
	}
	o.setStatus(status, doing)
}

// setStatus sets the member's status and summary, if they changed.
func (o *Observer) setStatus(status team.MemberStatus, doing string) {
	m := o.member()
	if m.Name == "" { // it joins with this record, as active
		m.Status = team.Active
	}
	if m.Status != status || m.Summary != doing {
		o.events = append(o.events, &team.MemberStatusChanged{Member: o.o.Agent, Status: status, Summary: doing})
	}
}

// commit makes a record from the events.
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

// descriptiveFields lists the input fields that best describe a tool call, the best first.
var descriptiveFields = []string{"command", "file_path", "path", "query", "pattern", "url", "description"}

// toolLine describes a tool call in a few words.
func toolLine(tool, input string) string {
	var in map[string]any
	json.Unmarshal([]byte(input), &in)
	for _, key := range descriptiveFields {
		if text, ok := in[key].(string); ok && text != "" {
			return tool + ": " + text
		}
	}
	return tool
}

// maxSummary is the maximum length of a summary, in characters.
const maxSummary = 120

// oneLine returns text as one short line without terminal control characters.
func oneLine(text string) string {
	text = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsControl(r) || unicode.Is(unicode.Cf, r):
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
	return excerpt.Characters(strings.Join(strings.Fields(text), " "), maxSummary)
}
