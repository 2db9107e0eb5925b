package protocol

import (
	"encoding/json"
	"strings"
)

// Mail is one message to an agent, as it appears in the agent's context.
type Mail struct{ From, Summary, Text string }

// MailOf returns the messages in a user line.
func MailOf(text string) []Mail {
	const open, shut = "<teammate-message ", "</teammate-message>"
	var messages []Mail
	for {
		_, rest, ok := strings.Cut(text, open)
		if !ok {
			return messages
		}
		tag, rest, ok := strings.Cut(rest, ">")
		if !ok {
			return messages
		}
		body, rest, ok := strings.Cut(rest, shut)
		if !ok {
			return messages
		}
		messages = append(messages, Mail{attribute(tag, "teammate_id"), attribute(tag, "summary"),
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

// Signal is a message written by a member's program, in JSON: one of the team's own messages.
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

// SignalOf decodes a message that is a signal.
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
