package model

import (
	"cmp"
	"slices"

	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// speaker is who wrote a line.
type speaker struct {
	Session string `json:"session,omitempty"`
	Agent   string `json:"agent,omitempty"`  // of a nameless side transcript
	Member  string `json:"member,omitempty"` // a teammate with a name; "" for the session itself
	Team    string `json:"team,omitempty"`   // the teammate's team, where the line says it
	Side    bool   `json:"side,omitempty"`   // it works within the session: that is its lead's
}

// source is one input: a stream or a file.
type source struct {
	Team   string `json:"team,omitempty"`   // what the caller said of it
	Member string `json:"member,omitempty"` //
	Last   stamp  `json:"last"`             // of its newest line
	Timed  bool   `json:"timed,omitempty"`  // its lines have times
	Agent  string `json:"agent,omitempty"`  // the nameless side whose transcript it is
	Arms   []arm  `json:"arms,omitempty"`
}

// arm is a member that completed a task and will be idle unless it takes another in its next
// message.
type arm struct {
	Member string `json:"member"`
	After  string `json:"after"`          // the message in which it did
	Next   string `json:"next,omitempty"` // the one after it, while that goes on
	When   stamp  `json:"when"`
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

// disarm says that a member has begun a task.
func (src *source) disarm(member string) {
	src.Arms = slices.DeleteFunc(src.Arms, func(a arm) bool { return a.Member == member })
}

// arm says that a member completed a task.
func (src *source) arm(one arm) {
	if !slices.ContainsFunc(src.Arms, func(a arm) bool { return a.Member == one.Member }) {
		src.Arms = append(src.Arms, one)
	}
}

// fire returns the members that completed a task and took no other, now that the message after it
// has ended: another has begun, or the turn is over ("").
func (src *source) fire(message string) (idle []arm) {
	var kept []arm
	for _, a := range src.Arms {
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
	src.Arms = kept
	return idle
}

// session is one session of Claude Code.
type session struct {
	// its own task list: a team's only when a team shows itself that has no list but this
	Board  *board   `json:"board"`
	Agents []string `json:"agents,omitempty"`
	Init   bool     `json:"init,omitempty"`
	Dir    string   `json:"dir,omitempty"`    // where it works
	Team   string   `json:"team,omitempty"`   // of the teammate whose session it is after all
	Member string   `json:"member,omitempty"` //

	// names of the agents that it has in the background, who are no teammates
	Background []string `json:"background,omitempty"`
}

// side is an in-process teammate, or a subagent, that writes a transcript of its own without its
// name. A teammate begins one for every prompt; they are a chain: the first line of each names the
// last of the one before.
type side struct {
	Member string `json:"member,omitempty"`
	Prompt string `json:"prompt,omitempty"` // the first words that it was given, which are those of its spawn
	After  string `json:"after,omitempty"`  // the agent whose chain it goes on with
	Last   string `json:"last,omitempty"`   // uuid of its last line
}

// fact is a call with its result; or letters, where they had to wait like one.
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
	maxHeld       = 4096 // facts of nameless sides, and of teammates of whose team nothing is known yet
)

// cast knows who writes the lines: the sources, the sessions, and the sides within them.
type cast struct {
	sessions  map[string]*session
	order     []string // of the sessions
	sides     map[string]*side
	sideOrder []string
	tails     map[string]string // agent by the uuid of its last line
	sources   map[string]*source
	seen      *seen // lines of sides, among others
	news      bool  // something is known now that may tell whose the held facts are
}

func newCast(seen *seen) *cast {
	return &cast{sessions: map[string]*session{}, sides: map[string]*side{}, tails: map[string]string{},
		sources: map[string]*source{}, seen: seen}
}

func (c *cast) source(name string) *source {
	src := c.sources[name]
	if src == nil {
		src = &source{}
		c.sources[name] = src
	}
	return src
}

// timed reports whether the lines of a source have times.
func (c *cast) timed(source string) bool {
	src := c.sources[source]
	return src != nil && src.Timed
}

func (c *cast) session(id string) *session {
	one := c.sessions[id]
	if one == nil {
		one = &session{Board: newBoard()}
		c.sessions[id] = one
		if c.order = append(c.order, id); len(c.order) > maxSessions {
			delete(c.sessions, c.order[0])
			c.order = c.order[1:]
		}
	}
	return one
}

// begun reports whether a session has given its init.
func (c *cast) begun(id string) bool {
	one := c.sessions[id]
	return one != nil && one.Init
}

// speakerOf finds out who wrote a line. The roster tells a teammate by the prompt that it was
// spawned with.
func (c *cast) speakerOf(src *source, m *protocol.Line, r *roster) speaker {
	s := speaker{Session: m.Session, Side: m.Side, Team: cmp.Or(m.Team, src.Team), Member: cmp.Or(m.Member, src.Member)}
	switch one := c.sessions[m.Session]; {
	case m.Member != "" && m.Session != "" && !m.Side:
		one = c.session(m.Session)
		one.Team, one.Member = m.Team, m.Member
	case s.Member == "" && one != nil && !m.Side: // not every line of a teammate's transcript has its name
		s.Team, s.Member = one.Team, one.Member
	}
	if s.Member == "" && m.Side && m.Agent != "" {
		s.Agent, src.Agent = m.Agent, m.Agent
		s.Member = c.sideOf(m, r).Member
	}
	return s
}

// sideOf takes note of a line of a side transcript.
func (c *cast) sideOf(m *protocol.Line, r *roster) *side {
	one := c.sides[m.Agent]
	if one == nil {
		if len(c.sides) >= maxSides {
			c.dropSide()
		}
		one = &side{After: c.tails[m.Parent]}
		c.sides[m.Agent] = one
		c.sideOrder = append(c.sideOrder, m.Agent)
		if letters := protocol.LettersOf(m.Text); one.After == "" && m.Type == "user" && len(letters) > 0 {
			one.Prompt = letters[0].Text
		}
		c.identify(r)
	}
	if m.UUID != "" && c.seen.once(protocol.Hash("side "+m.UUID)) { // an older line that comes again is not the last
		delete(c.tails, one.Last)
		one.Last = m.UUID
		c.tails[m.UUID] = m.Agent
	}
	return one
}

func (c *cast) dropSide() {
	oldest := c.sides[c.sideOrder[0]]
	delete(c.tails, oldest.Last)
	delete(c.sides, c.sideOrder[0])
	c.sideOrder = c.sideOrder[1:]
}

// sideMember is the teammate whose side that is; "" while that is not known.
func (c *cast) sideMember(agent string) string {
	if one := c.sides[agent]; one != nil {
		return one.Member
	}
	return ""
}

// named says who a side is, and whoever continues its chain.
func (c *cast) named(agent, member string, r *roster) {
	if one := c.sides[agent]; one != nil && one.Member == "" && member != "" {
		one.Member, c.news = member, true
		c.identify(r)
	}
}

// identify looks who the nameless sides are.
func (c *cast) identify(r *roster) {
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

// implicit is the name of the team that a session has without having made one, since the second age
// of the protocol.
func implicit(session string) string {
	if len(session) < 8 {
		return ""
	}
	return "session-" + session[:8]
}
