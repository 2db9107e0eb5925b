package protocol

import (
	"encoding/json"
	"strings"
)

// Letter is one message to an agent, as it appears in the agent's context.
type Letter struct{ From, Summary, Text string }

// LettersOf returns the letters in a user line.
func LettersOf(text string) []Letter {
	const open, shut = "<teammate-message ", "</teammate-message>"
	var letters []Letter
	for {
		_, rest, ok := strings.Cut(text, open)
		if !ok {
			return letters
		}
		tag, rest, ok := strings.Cut(rest, ">")
		if !ok {
			return letters
		}
		body, rest, ok := strings.Cut(rest, shut)
		if !ok {
			return letters
		}
		letters = append(letters, Letter{attribute(tag, "teammate_id"), attribute(tag, "summary"),
			strings.Trim(body, "\n")})
		text = rest
	}
}

func attribute(tag, name string) string {
	_, rest, ok := strings.Cut(" "+tag, " "+name+`="`)
	if !ok {
		return ""
	}
	value, _, _ := strings.Cut(rest, `"`)
	return value
}

// Signal is a letter written by a member's program, in JSON: one of the team's own messages.
type Signal struct {
	Type      string `json:"type"`
	From      string `json:"from"`
	Timestamp string `json:"timestamp"`
	Request   string `json:"requestId"`
	Reason    string `json:"reason"`
	Idle      string `json:"idleReason"`
	Failure   string `json:"failureReason"`
	Message   string `json:"message"`
	Plan      string `json:"planContent"`
	Approved  bool   `json:"approved"`
	Feedback  string `json:"feedback"`
}

// SignalOf decodes a letter that is a signal.
func SignalOf(text string) (*Signal, bool) {
	var n Signal
	is := isObject([]byte(text)) && json.Unmarshal([]byte(text), &n) == nil && n.Type != ""
	return &n, is
}

// SignalWithHelp decodes a signal followed by a help text from the program.
func SignalWithHelp(text string) (*Signal, bool) {
	object, _, ok := strings.Cut(text, "}\n")
	if !ok || !strings.HasPrefix(text, `{"type":"`) {
		return nil, false
	}
	return SignalOf(object + "}")
}
