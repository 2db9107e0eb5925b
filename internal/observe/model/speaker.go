package model

import (
	"cmp"
	"slices"

	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// speaker is the author of a line.
type speaker struct {
	Session string `json:"session,omitempty"`
	Agent   string `json:"agent,omitempty"`  // id of a nameless side transcript
	Member  string `json:"member,omitempty"` // name of the teammate; "" for the session itself
	Team    string `json:"team,omitempty"`   // the teammate's team, if the line names it
	Side    bool   `json:"side,omitempty"`   // it works within Session, which is its lead's
}

// source is one input: a stream or a file.
type source struct {
	Team           string          `json:"team,omitempty"`   // given by Introduce
	Member         string          `json:"member,omitempty"` // given by Introduce
	Last           stamp           `json:"last"`             // time of its newest line
	Timed          bool            `json:"timed,omitempty"`  // its lines have times
	Agent          string          `json:"agent,omitempty"`  // id of the nameless side whose transcript it is
	IdleCandidates []idleCandidate `json:"arms,omitempty"`
}

// idleCandidate is a member that completed a task. It becomes idle unless it starts another in its
// next message.
type idleCandidate struct {
	Member string `json:"member"`
	After  string `json:"after"`          // the message in which it completed the task
	Next   string `json:"next,omitempty"` // the next message, while that is incomplete
	When   stamp  `json:"when"`
}

// stamp returns the time of a line. If the source's lines have no times, it is the arrival time. It
// never goes backwards.
func (src *source) stamp(at, now team.Time, seq int64) stamp {
	switch {
	case at != 0 && !src.Timed: // earlier lines had no time and got their arrival time
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

// removeIdleCandidate records that a member has started a task.
func (src *source) removeIdleCandidate(member string) {
	src.IdleCandidates = slices.DeleteFunc(src.IdleCandidates, func(a idleCandidate) bool { return a.Member == member })
}

// addIdleCandidate records that a member has completed a task.
func (src *source) addIdleCandidate(one idleCandidate) {
	if !slices.ContainsFunc(src.IdleCandidates, func(a idleCandidate) bool { return a.Member == one.Member }) {
		src.IdleCandidates = append(src.IdleCandidates, one)
	}
}

// takeIdle returns the members that completed a task and started no other in the message after it.
// That message has ended: another one has begun, or the turn is over ("").
func (src *source) takeIdle(message string) (idle []idleCandidate) {
	var kept []idleCandidate
	for _, a := range src.IdleCandidates {
		switch {
		case message == a.After && message != "", message == a.Next && message != "":
			kept = append(kept, a)
		case a.Next == "" && message != "":
			a.Next = message
			kept = append(kept, a)
		default:
			idle = append(idle, a)
		}
	}
	src.IdleCandidates = kept
	return idle
}

// session is one Claude Code session.
type session struct {
	// Board is its own task list. It becomes a team's if a team appears that has no other list.
	Board  *board   `json:"board"`
	Agents []string `json:"agents,omitempty"`
	Init   bool     `json:"init,omitempty"`
	Dir    string   `json:"dir,omitempty"`    // its working directory
	Team   string   `json:"team,omitempty"`   // set if it turns out to be a teammate's session
	Member string   `json:"member,omitempty"` // set if it turns out to be a teammate's session

	// Background has the names of its background agents, which are not teammates.
	Background []string `json:"background,omitempty"`
}

// side is an in-process teammate or a subagent with a nameless transcript of its own. A teammate
// begins a new transcript for every prompt. The transcripts form a chain: the first line of each
// names the last line of the one before.
type side struct {
	Member string `json:"member,omitempty"`
	Prompt string `json:"prompt,omitempty"` // the first prompt, which equals the prompt of its spawn
	After  string `json:"after,omitempty"`  // the agent whose chain it continues
	Last   string `json:"last,omitempty"`   // uuid of its last line
}

// fact is a call with its result, or messages that had to wait like one.
type fact struct {
	Call   call      `json:"call"`
	Result result    `json:"result"`
	Mail   *mailLine `json:"mail,omitempty"`
}

func (f *fact) by() speaker {
	if f.Mail != nil {
		return f.Mail.By
	}
	return f.Call.By
}

func (f *fact) source() string {
	if f.Mail != nil {
		return f.Mail.Source
	}
	return f.Call.Source
}

const (
	maxSessions   = 256
	maxBackground = 256
	maxSides      = 1024
	maxHeld       = 4096 // facts of nameless sides, and of teammates whose team is unknown
)

// speakers knows who writes the lines: the sources, the sessions, and the sides within them.
type speakers struct {
	sessions  map[string]*session
	order     []string // order of the sessions
	sides     map[string]*side
	sideOrder []string
	tails     map[string]string // agent by the uuid of its last line
	sources   map[string]*source
	seen      *seen // lines of sides, among others
	news      bool  // there is news that may identify the authors of held facts
}

func newSpeakers(seen *seen) *speakers {
	return &speakers{sessions: map[string]*session{}, sides: map[string]*side{}, tails: map[string]string{},
		sources: map[string]*source{}, seen: seen}
}

func (c *speakers) source(name string) *source {
	src := c.sources[name]
	if src == nil {
		src = &source{}
		c.sources[name] = src
	}
	return src
}

// timed reports whether the lines of a source have times.
func (c *speakers) timed(source string) bool {
	src := c.sources[source]
	return src != nil && src.Timed
}

func (c *speakers) session(id string) *session {
	one := c.sessions[id]
	if one == nil {
		one = &session{Board: newBoard()}
		c.sessions[id] = one
		c.order = remember(c.sessions, c.order, id, maxSessions)
	}
	return one
}

// initialized reports whether a session has sent its init.
func (c *speakers) initialized(id string) bool {
	one := c.sessions[id]
	return one != nil && one.Init
}

// speakerOf returns the author of a line. A teammate may be identified by the prompt in the roster.
func (c *speakers) speakerOf(src *source, m *protocol.Line, r *roster) speaker {
	s := speaker{Session: m.Session, Side: m.Side, Team: cmp.Or(m.Team, src.Team), Member: cmp.Or(m.Member, src.Member)}
	switch one := c.sessions[m.Session]; {
	case m.Member != "" && m.Session != "" && !m.Side:
		one = c.session(m.Session)
		one.Team, one.Member = m.Team, m.Member
	case s.Member == "" && one != nil && !m.Side: // some lines of a teammate's transcript lack its name
		s.Team, s.Member = one.Team, one.Member
	}
	if s.Member == "" && m.Side && m.Agent != "" {
		s.Agent, src.Agent = m.Agent, m.Agent
		s.Member = c.sideOf(m, r).Member
	}
	return s
}

// sideOf records a line of a side transcript.
func (c *speakers) sideOf(m *protocol.Line, r *roster) *side {
	one := c.sides[m.Agent]
	if one == nil {
		if len(c.sides) >= maxSides {
			c.dropSide()
		}
		one = &side{After: c.tails[m.Parent]}
		c.sides[m.Agent] = one
		c.sideOrder = append(c.sideOrder, m.Agent)
		if messages := protocol.MailOf(m.Text); one.After == "" && m.Type == "user" && len(messages) > 0 {
			one.Prompt = messages[0].Text
		}
		c.identify(r)
	}
	if m.UUID != "" && c.seen.once(protocol.Hash("side "+m.UUID)) { // a repeated older line is not the last one
		delete(c.tails, one.Last)
		one.Last = m.UUID
		c.tails[m.UUID] = m.Agent
	}
	return one
}

func (c *speakers) dropSide() {
	oldest := c.sides[c.sideOrder[0]]
	delete(c.tails, oldest.Last)
	delete(c.sides, c.sideOrder[0])
	c.sideOrder = c.sideOrder[1:]
}

// sideMember returns the teammate that a side belongs to; "" if it is unknown.
func (c *speakers) sideMember(agent string) string {
	if one := c.sides[agent]; one != nil {
		return one.Member
	}
	return ""
}

// named records the teammate of a side and of the rest of its chain.
func (c *speakers) named(agent, member string, r *roster) {
	if one := c.sides[agent]; one != nil && one.Member == "" && member != "" {
		one.Member, c.news = member, true
		c.identify(r)
	}
}

// identify tries to identify the nameless sides.
func (c *speakers) identify(r *roster) {
	for again := true; again; {
		again = false
		for _, agent := range c.sideOrder {
			one := c.sides[agent]
			if one.Member != "" {
				continue
			}
			if before := c.sides[one.After]; before != nil {
				one.Member = before.Member
			}
			if one.Member == "" && one.Prompt != "" {
				one.Member = r.promptedWith(one.Prompt)
			}
			if one.Member != "" {
				again, c.news = true, true
			}
		}
	}
}

// implicitTeam returns the name of the team that a session has without creating one, since the
// second generation of the protocol.
func implicitTeam(session string) string {
	if len(session) < 8 {
		return ""
	}
	return "session-" + session[:8]
}
