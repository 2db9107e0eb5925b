package observe

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

// speakerOf finds out who wrote a line.
func (o *Observer) speakerOf(src *source, m *message) speaker {
	s := speaker{Session: m.Session, Side: m.Side, Team: first(m.Team, src.Team), Member: first(m.Member, src.Member)}
	switch one := o.sessions[m.Session]; {
	case m.Member != "" && m.Session != "" && !m.Side:
		one = o.session(m.Session)
		one.Team, one.Member = m.Team, m.Member
	case s.Member == "" && one != nil && !m.Side: // not every line of a teammate's transcript has its name
		s.Team, s.Member = one.Team, one.Member
	}
	if s.Member == "" && m.Side && m.Agent != "" {
		s.Agent, src.Agent = m.Agent, m.Agent
		s.Member = o.sideOf(m).Member
	}
	if s.Member == o.lead() {
		s.Member = ""
	}
	return s
}

// sideOf takes note of a line of a side transcript.
func (o *Observer) sideOf(m *message) *side {
	one := o.sides[m.Agent]
	if one == nil {
		if len(o.sides) >= maxSides {
			o.dropSide()
		}
		one = &side{After: o.tails[m.Parent]}
		o.sides[m.Agent] = one
		o.sideOrder = append(o.sideOrder, m.Agent)
		if one.After == "" && m.Type == "user" {
			for _, l := range lettersOf(m.Text) {
				one.Prompt = l.Text
				break
			}
		}
		o.identify()
	}
	// an older line that comes again is not the last
	if h := hash("side " + m.UUID); m.UUID != "" && !o.correlation.done.has(h) {
		o.correlation.done.add(h)
		delete(o.tails, one.Last)
		one.Last = m.UUID
		o.tails[m.UUID] = m.Agent
	}
	return one
}

func (o *Observer) dropSide() {
	oldest := o.sides[o.sideOrder[0]]
	delete(o.tails, oldest.Last)
	delete(o.sides, o.sideOrder[0])
	o.sideOrder = o.sideOrder[1:]
}

// named says who a side is, and whoever goes on with its chain.
func (o *Observer) named(agent, member string) {
	if one := o.sides[agent]; one != nil && one.Member == "" && member != "" && member != o.lead() {
		one.Member, o.retry = member, true
		o.identify()
	}
}

// identify looks who the nameless sides are.
func (o *Observer) identify() {
	for again := true; again; {
		again = false
		for _, agent := range o.sideOrder {
			one := o.sides[agent]
			if one.Member != "" {
				continue
			}
			if before := o.sides[one.After]; before != nil {
				one.Member = before.Member
			}
			if one.Member == "" && one.Prompt != "" {
				one.Member = o.roster.promptedWith(one.Prompt)
			}
			if one.Member != "" {
				again, o.retry = true, true
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
