package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cadre/internal/agent/envelope"
	"cadre/internal/team"
)

const noMessages = "No new messages."

func (c *call) sendMessage(in *sendMessage) (string, error) {
	to := c.name(in.To.value())
	if to == "*" || strings.EqualFold(to, "all") {
		return "", mistake("Nothing was sent: use Broadcast to write to all other members.")
	}
	body := &team.SendMessage{To: to, Intent: in.Intent.s, Priority: urgency(in.Urgent),
		Body: worded(in.Summary, in.Message), Metadata: in.Metadata.m}
	if m, ok := c.waiting(func(m team.Message) bool {
		return m.Type == team.TypeMessage && m.To == to && alike(m, body.Intent, body.Priority, body.Body,
			body.Metadata)
	}); ok {
		return fmt.Sprintf("Message #%d to %s says the same and waits for delivery; it was not sent again.",
			m.Seq, m.To), nil
	}
	r, err := c.do(body)
	if err != nil {
		return "", err
	}
	e, _ := team.EventIn[*team.MessageSent](r)
	return fmt.Sprintf("Message #%d sent to %s.%s", e.Message.Seq, to, c.waitsForLead(e.Message.Seq)), nil
}

func (c *call) broadcast(in *broadcast) (string, error) {
	body := &team.Broadcast{Intent: in.Intent.s, Priority: urgency(in.Urgent),
		Body: worded(in.Summary, in.Message), Metadata: in.Metadata.m}
	if m, ok := c.waiting(func(m team.Message) bool {
		return m.Type == team.TypeBroadcast && alike(m, body.Intent, body.Priority, body.Body, body.Metadata)
	}); ok {
		return fmt.Sprintf("Message #%d to all members says the same and waits for delivery; it was not sent again.",
			m.Seq), nil
	}
	r, err := c.do(body)
	if err != nil {
		return "", err
	}
	e, _ := team.EventIn[*team.MessageSent](r)
	return fmt.Sprintf("Message #%d sent to %s.%s", e.Message.Seq, strings.Join(e.Message.Recipients, ", "),
		c.waitsForLead(e.Message.Seq)), nil
}

// waitsForLead says that a message waits until there is a lead; "" for other messages.
func (c *call) waitsForLead(seq int64) (words string) {
	c.view(func(s *team.State) {
		if s.Holds(seq) {
			words = " It is held until a session leads the team again."
		}
	})
	return words
}

func (c *call) resendMessages(in *resend) (string, error) {
	body := &team.ResendMessages{Member: c.name(in.Name.value())}
	for _, id := range in.IDs.all {
		seq, err := strconv.ParseInt(strings.TrimPrefix(id, "#"), 10, 64)
		if err != nil {
			return "", mistake("Nothing was sent: %s is not the number of a message.", quoted(id))
		}
		body.Seqs = append(body.Seqs, seq)
	}
	r, err := c.do(body)
	if err != nil {
		return "", err
	}
	e, _ := team.EventIn[*team.MessagesResent](r)
	return fmt.Sprintf("Sent to %s again: %s. You get a message if delivery takes long.", e.Member,
		messages(e.Seqs)), nil
}

// messages returns message numbers as our tools show them: message #1, #2.
func messages(seqs []int64) string {
	var ids []string
	for _, seq := range seqs {
		ids = append(ids, strconv.FormatInt(seq, 10))
	}
	return "message " + numbered(ids)
}

func urgency(urgent flag) string {
	if urgent.on {
		return "urgent"
	}
	return "normal"
}

// worded returns the message with its summary as the first line, unless it already begins with it.
func worded(summary text, message message) string {
	head, body := strings.TrimSpace(summary.value()), message.value()
	if head == "" || strings.TrimSpace(body) == "" || strings.HasPrefix(strings.TrimSpace(body), head) {
		return body
	}
	return head + "\n" + body
}

// waiting returns a message of the caller that was not delivered yet.
func (c *call) waiting(is func(team.Message) bool) (waits team.Message, ok bool) {
	c.view(func(s *team.State) {
		for _, name := range s.Recipients() {
			for _, m := range s.Inbox(name) {
				if m.From == c.me && is(m) {
					waits, ok = m, true
				}
			}
		}
	})
	return waits, ok
}

func alike(m team.Message, intent, priority, body string, metadata map[string]json.RawMessage) bool {
	equal := func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }
	return m.Intent == intent && m.Priority == priority && m.Body == body &&
		maps.EqualFunc(m.Metadata, metadata, equal)
}

// readMessages needs no result of its own if mail follows every result; otherwise it takes the
// messages itself.
func (c *call) readMessages(*nothing) (string, error) {
	if c.o.Mail != nil {
		return "Your new messages:", nil // Call corrects this if there are none
	}
	for {
		var mail []team.Message
		var seqs []int64
		var id string
		c.view(func(s *team.State) { id, mail = s.Team().ID, s.Inbox(c.me) })
		for _, m := range mail {
			seqs = append(seqs, m.Seq)
		}
		if len(mail) == 0 {
			return noMessages, nil
		}
		r, err := c.do(&team.ReceiveMessages{Seqs: seqs})
		if team.CodeOf(err) == team.Conflict && c.gone(seqs) { // another process delivered them in the meantime
			continue
		}
		if err != nil {
			return "", err
		}
		e, _ := team.EventIn[*team.MessagesDelivered](r)
		mail = slices.DeleteFunc(mail, func(m team.Message) bool { return e == nil || !slices.Contains(e.Seqs, m.Seq) })
		return envelope.Batch(id, c.me, mail), nil
	}
}

// gone reports whether one of the messages no longer waits.
func (c *call) gone(seqs []int64) (gone bool) {
	c.view(func(s *team.State) {
		m, _ := s.Member(c.me)
		gone = slices.ContainsFunc(seqs, func(seq int64) bool { return !slices.Contains(m.Inbox, seq) })
	})
	return gone
}
