package protocol

import (
	"bytes"
	"slices"
)

// Filter finds the lines that may concern a team: about ten of a thousand lines of an agent's
// stream. It looks at some bytes of a line and decodes no JSON, so skipping a line costs about as
// much as finding its end. If in doubt, it keeps a line.
type Filter struct {
	// initialized reports whether a session has already sent its init, which is repeated with every
	// turn.
	initialized func(session string) bool
	foreign     [1 << 10]uint64 // hashes of tool uses that do not belong to a team, indexed by hash
}

// NewFilter returns a filter that has seen no lines.
func NewFilter(initialized func(session string) bool) *Filter {
	return &Filter{initialized: initialized}
}

// Worth reports whether a line may concern a team. next says that the source's next message
// matters, whatever its content.
func (s *Filter) Worth(line []byte, next bool) bool {
	kind, rest := Head(line)
	switch string(kind) {
	case "": // the type is not the first field: a transcript, or another order
		some, worth := s.results(line)
		return worth || bytes.Contains(line[:min(len(line), 512)], isSidechain) || s.uses(line) || !some &&
			bytes.Contains(line, teammateMessage) ||
			bytes.Contains(line, totalCost) || bytes.Contains(line, turnDuration) ||
			bytes.Contains(line, taskNotification) || next ||
			bytes.Contains(line, initWord) && !s.repeats(line)
	case "assistant":
		return next || s.uses(rest)
	case "user":
		some, worth := s.results(rest)
		return worth || !some && bytes.Contains(rest, teammateMessage) // a line has either results or messages
	case "result", "cost-state", FileNoteType:
		return true
	case "system":
		sub := rest[:min(len(rest), 64)]
		return bytes.Contains(sub, taskNotification) || bytes.Contains(sub, turnDuration) ||
			bytes.Contains(sub, initWord) && !s.repeats(rest) || !bytes.Contains(sub, subtype)
	}
	return false
}

var (
	isSidechain      = []byte(`"isSidechain":true`)
	teammateMessage  = []byte(`-message teammate_id=`) // the bracket before it may be escaped
	totalCost        = []byte(`"total_cost_usd"`)
	turnDuration     = []byte(`"turn_duration"`)
	taskNotification = []byte(`"task_notification"`)
	initWord         = []byte(`"init"`)
	subtype          = []byte(`"subtype"`)
	sessionID        = []byte(`"session_id"`)
	toolUse          = []byte(`_use"`) // the search is for the rarest letter
	toolUseID        = []byte(`_use_id"`)
	quotedTool       = []byte(`"tool`)
)

// Head returns the type of a line that begins with its type, and the rest; kind is "" for any other
// line.
func Head(line []byte) (kind, rest []byte) {
	if len(line) < 2 {
		return nil, line
	}
	return member(line[1:], "type")
}

// member parses `"key":"value"` at the start of in, after an optional comma. If it is missing, or
// the value contains an escape, value is empty.
func member(in []byte, key string) (value, rest []byte) {
	p := in
	for len(p) > 0 && (p[0] == ',' || p[0] == ' ') {
		p = p[1:]
	}
	if len(p) < len(key)+4 || p[0] != '"' || string(p[1:len(key)+1]) != key || p[len(key)+1] != '"' {
		return nil, in
	}
	return text(p[len(key)+2:], in)
}

// text parses `:"value"` at the start of p.
func text(p, in []byte) (value, rest []byte) {
	for len(p) > 0 && (p[0] == ':' || p[0] == ' ') {
		p = p[1:]
	}
	if len(p) == 0 || p[0] != '"' {
		return nil, in
	}
	end := bytes.IndexByte(p[1:], '"')
	if end < 0 || bytes.IndexByte(p[1:end+1], '\\') >= 0 {
		return nil, in
	}
	return p[1 : end+1], p[end+2:]
}

// uses reports whether a line has a tool_use that may belong to a team. It records the others, so
// that their results are skipped as well.
func (s *Filter) uses(line []byte) bool {
	for {
		at := bytes.Index(line, toolUse)
		if at < 0 {
			return false
		}
		before, after := line[:at], line[at+len(toolUse):]
		if line = after; !bytes.HasSuffix(before, quotedTool) {
			continue
		}
		id, rest := member(after, "id")
		name, rest := member(rest, "name")
		if len(id) == 0 || len(name) == 0 || mayBeTeamTool(name) && !notTeamTools[string(name)] {
			return true
		}
		s.Ignore(Hash(id))
		line = rest
	}
}

// results reports whether a line has tool results, and whether one of them may belong to a team's
// call, which may still follow.
func (s *Filter) results(line []byte) (some, worth bool) {
	for {
		at := bytes.Index(line, toolUseID)
		if at < 0 {
			return some, false
		}
		before, after := line[:at], line[at+len(toolUseID):]
		if line = after; !bytes.HasSuffix(before, quotedTool) {
			continue
		}
		id, rest := text(after, nil)
		if len(id) == 0 || !s.Ignores(Hash(id)) {
			return true, true
		}
		some, line = true, rest
	}
}

// Ignore records that a tool use does not belong to a team, so that its result is skipped.
func (s *Filter) Ignore(h uint64) { s.foreign[h%uint64(len(s.foreign))] = h }

// Ignores reports whether the result of a tool use is skipped.
func (s *Filter) Ignores(h uint64) bool { return s.foreign[h%uint64(len(s.foreign))] == h }

// Ignored returns the hashes of the ignored tool uses.
func (s *Filter) Ignored() []uint64 {
	return slices.DeleteFunc(slices.Clone(s.foreign[:]), func(h uint64) bool { return h == 0 })
}

// repeats reports whether the init on the line is not the first of its session.
func (s *Filter) repeats(line []byte) bool {
	at := bytes.Index(line, sessionID)
	if at < 0 {
		return false
	}
	id, _ := text(line[at+len(sessionID):], nil)
	return s.initialized(string(id))
}
