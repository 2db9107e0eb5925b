package client

import (
	"context"
	"encoding/json"
	"iter"
	"time"

	"cadre/internal/inspect/history"
	core "cadre/internal/team"
	"cadre/pkg/teams"
)

// MessageFilter selects messages.
type MessageFilter struct {
	Member string              // only those to this member; they say when they were delivered and read
	From   string              // only those of this sender
	Types  []teams.MessageType // only those of one of these types
	Unread bool                // with Member, only those that are not marked as read
	Since  time.Time           // only those that were sent at this time or later
	After  int64               // only those with a higher Seq
}

// Messages yields the messages that there are, in pages that it asks the server for, and ends. An
// error is the last pair.
func (c *Client) Messages(ctx context.Context, name string, f MessageFilter) iter.Seq2[teams.Message, error] {
	return func(yield func(teams.Message, error) bool) {
		after := f.After
		for {
			r := team("GET", name, "messages").where("member", f.Member).where("from", f.From).number("after", after)
			for _, kind := range f.Types {
				r = r.where("type", string(kind))
			}
			if f.Unread {
				r = r.where("unread", "true")
			}
			if !f.Since.IsZero() {
				r = r.number("since", f.Since.UnixMilli())
			}
			page, err := list[teams.Message, history.MailboxMessage](ctx, c, r)
			if err != nil {
				yield(teams.Message{}, err)
				return
			}
			if len(page) == 0 {
				return
			}
			for _, m := range page {
				if !yield(m, nil) {
					return
				}
				after = max(after, m.Seq)
			}
		}
	}
}

// MessageSpec is a message to one member.
type MessageSpec struct {
	To       string                     `json:"to"`
	Body     string                     `json:"body"`
	Intent   teams.Intent               `json:"intent,omitempty"`
	Priority teams.MessagePriority      `json:"priority,omitempty"`
	Answers  int64                      `json:"answers,omitempty"` // Seq of the message to the lead that it answers
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
}

// BroadcastSpec is a message to all other members.
type BroadcastSpec struct {
	Body     string                     `json:"body"`
	Intent   teams.Intent               `json:"intent,omitempty"`
	Priority teams.MessagePriority      `json:"priority,omitempty"`
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
}

// SentMessage is a message that was sent.
type SentMessage struct {
	Message teams.Message
	Held    bool     // it waits until a session leads the team
	Resting []string // recipients that have no session until a session leads the team
}

// Send sends a message to a member. A member can do it.
func (c *Client) Send(ctx context.Context, name string, m MessageSpec) (SentMessage, error) {
	return c.sent(ctx, team("POST", name, "messages").with(m).by(c))
}

// Broadcast sends a message to all other members. A member can do it.
func (c *Client) Broadcast(ctx context.Context, name string, m BroadcastSpec) (SentMessage, error) {
	return c.sent(ctx, team("POST", name, "broadcasts").with(m).by(c))
}

func (c *Client) sent(ctx context.Context, r request) (SentMessage, error) {
	is, err := ask[struct {
		Message core.Message `json:"message"`
		Held    bool         `json:"held"`
		Resting []string     `json:"resting"`
	}](ctx, c, r)
	return SentMessage{of[teams.Message](is.Message), is.Held, is.Resting}, err
}

// InboxFilter selects messages of an inbox.
type InboxFilter struct {
	Again bool // also those that were delivered before and are not marked as read
}

func (f InboxFilter) of(r request) request {
	if f.Again {
		return r.where("again", "true")
	}
	return r
}

// PeekInbox returns the messages that were not delivered to a member yet, and leaves them so.
func (c *Client) PeekInbox(ctx context.Context, name, member string, f InboxFilter) ([]teams.Message, error) {
	return c.mail(ctx, f.of(team("GET", name, "members", member, "inbox")))
}

// Receive returns the messages that were not delivered to a member yet. They are delivered with
// that.
func (c *Client) Receive(ctx context.Context, name, member string, f InboxFilter) ([]teams.Message, error) {
	return c.mail(ctx, f.of(team("POST", name, "members", member, "inbox", "receive")))
}

// AwaitMessages is Receive that waits until there is a message, or until ctx ends.
func (c *Client) AwaitMessages(ctx context.Context, name, member string, f InboxFilter) ([]teams.Message, error) {
	return awaited(ctx, func(ctx context.Context) ([]teams.Message, error) {
		return c.mail(ctx, f.of(team("POST", name, "members", member, "inbox", "receive").number("wait", longest)))
	})
}

func (c *Client) mail(ctx context.Context, r request) ([]teams.Message, error) {
	return list[teams.Message, history.MailboxMessage](ctx, c, r)
}

// MarkRead marks the messages of a member as read, up to the one with that Seq, and returns up to
// where it has read them.
func (c *Client) MarkRead(ctx context.Context, name, member string, through int64) (int64, error) {
	is, err := ask[struct {
		Through int64 `json:"through"`
	}](ctx, c, team("POST", name, "members", member, "inbox", "read").with(map[string]int64{"through": through}))
	return is.Through, err
}

// Resend sends messages again that wait for a member: those with these Seq, or all that are late.
// It returns their Seq. A member can do it.
func (c *Client) Resend(ctx context.Context, name, member string, seqs ...int64) ([]int64, error) {
	body := map[string][]int64{}
	if len(seqs) > 0 {
		body["messages"] = seqs
	}
	is, err := ask[struct {
		Messages []int64 `json:"messages"`
	}](ctx, c, team("POST", name, "members", member, "inbox", "resend").with(body).by(c))
	return is.Messages, err
}
