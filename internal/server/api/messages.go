package api

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"

	"cadre/internal/engine"
	"cadre/internal/inspect/history"
	"cadre/internal/server/auth"
	"cadre/internal/team"
)

// MessageSpec is a message to one member.
type MessageSpec struct {
	To     string `json:"to"`               // name of the member
	Body   string `json:"body"`             // the text
	Intent string `json:"intent,omitempty"` // info, question, challenge or resolution
	// normal, or urgent: one of the user's interrupts the member
	Priority string                     `json:"priority,omitempty"`
	Answers  int64                      `json:"answers,omitempty"`  // number of the message to the lead that it answers
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"` // what its sender keeps with it
}

// BroadcastSpec is a message to all other members.
type BroadcastSpec struct {
	Body   string `json:"body"`             // the text
	Intent string `json:"intent,omitempty"` // info, question, challenge or resolution
	// normal, or urgent: one of the user's interrupts the members
	Priority string                     `json:"priority,omitempty"`
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"` // what its sender keeps with it
}

// SentMessage is a message that was sent.
type SentMessage struct {
	Message team.Message `json:"message"`           // the message
	Held    bool         `json:"held,omitempty"`    // it waits until a session leads the team
	Resting []string     `json:"resting,omitempty"` // recipients that have no session until a session leads the team
}

// Reading says up to where a member has read its mail.
type Reading struct {
	Through int64 `json:"through"` // number of the last message that it has read
}

// Choice names messages of a member.
type Choice struct {
	Messages []int64 `json:"messages,omitempty"` // their numbers; without them all that are late
}

// Resent are the messages that were sent again.
type Resent struct {
	Member   string  `json:"member"`   // whose messages they are
	Messages []int64 `json:"messages"` // their numbers
}

var messageRoutes = []Route{
	{Method: "GET", Path: "/v1/teams/{team}/messages", ID: "listMessages", Command: "log", Role: auth.Observe,
		About: "List messages of a team, at most 1000 at a time. With a member, those that were sent to it, with " +
			"when they were delivered and read.",
		Query: []Param{{"member", "string", "only messages to this member"},
			{"from", "string", "only messages of this sender"},
			{"type", "array", "only messages of this type; may be repeated"},
			{"unread", "boolean", "with member, only messages that are not marked as read"},
			{"since", "integer", "only messages that were sent at this time or later, in milliseconds since 1970"},
			{"after", "integer", "only messages with a higher number"},
			pageLimit},
		Answer: reflect.TypeFor[[]history.MailboxMessage](), handle: (*call).listMessages},
	{Method: "POST", Path: "/v1/teams/{team}/messages", ID: "sendMessage", Command: "send", Role: auth.Answer,
		About: "Send a message to a member.", Query: []Param{pageAs},
		Body: reflect.TypeFor[MessageSpec](), Answer: reflect.TypeFor[SentMessage](), handle: (*call).sendMessage},
	{Method: "POST", Path: "/v1/teams/{team}/broadcasts", ID: "broadcast", Command: "broadcast", Role: auth.Answer,
		About: "Send a message to all other members.", Query: []Param{pageAs},
		Body: reflect.TypeFor[BroadcastSpec](), Answer: reflect.TypeFor[SentMessage](), handle: (*call).broadcast},
	{Method: "GET", Path: "/v1/teams/{team}/members/{member}/inbox", ID: "peekInbox", Command: "inbox",
		Role: auth.Observe, About: "Show the messages that were not delivered to a member yet. Nothing is recorded.",
		Query: []Param{pageAgain, pageWait}, Answer: reflect.TypeFor[[]history.MailboxMessage](),
		handle: (*call).peekInbox},
	{Method: "POST", Path: "/v1/teams/{team}/members/{member}/inbox/receive", ID: "receiveMessages", Command: "inbox",
		Role: auth.Answer,
		About: "Take the messages that were not delivered to a member yet. They are delivered with that, and read " +
			"once they are marked as read.",
		Query: []Param{pageAgain, pageWait}, Answer: reflect.TypeFor[[]history.MailboxMessage](),
		handle: (*call).receiveMessages},
	{Method: "POST", Path: "/v1/teams/{team}/members/{member}/inbox/read", ID: "markRead", Command: "inbox",
		Role: auth.Answer, About: "Mark the messages of a member as read, up to one of them.",
		Body: reflect.TypeFor[Reading](), Answer: reflect.TypeFor[Reading](), handle: (*call).markRead},
	{Method: "POST", Path: "/v1/teams/{team}/members/{member}/inbox/resend", ID: "resendMessages", Command: "resend",
		Role: auth.Steer, About: "Send messages again that wait for a member.", Query: []Param{pageAs},
		Body: reflect.TypeFor[Choice](), Answer: reflect.TypeFor[Resent](), handle: (*call).resendMessages},
}

var pageAgain = Param{"again", "boolean", "also messages that were delivered before and are not marked as read"}

func (c *call) listMessages() (any, error) {
	query := c.URL.Query()
	filter := history.MailFilter{Types: query["type"], Unread: query.Get("unread") == "true"}
	if err := filter.Check(); err != nil {
		return nil, err
	}
	member := query.Get("member")
	if member == "" && filter.Unread {
		return nil, usageError{errors.New("unread=true needs member=: each recipient of a message reads it by itself")}
	}
	since, err := c.number("since", 0)
	if err != nil {
		return nil, err
	}
	after, err := c.number("after", 0)
	if err != nil {
		return nil, err
	}
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	filter.Since = team.Time(since)
	messages, err := c.messages(member, filter)
	if err != nil {
		return nil, err
	}
	from := query.Get("from")
	messages = slices.DeleteFunc(messages, func(l history.MailboxMessage) bool {
		return l.Seq <= after || !fits(from, l.From)
	})
	return messages[:min(len(messages), limit)], nil
}

// messages returns the mail of a member, or for "" all messages of the team.
func (c *call) messages(member string, filter history.MailFilter) ([]history.MailboxMessage, error) {
	if member != "" {
		actor, err := c.who.Actor("member=", "")
		if err != nil {
			return nil, err
		}
		return c.engine.MailOf(c.Context(), c.PathValue("team"), actor, member, filter)
	}
	t, err := c.look()
	if err != nil {
		return nil, err
	}
	messages, err := history.Messages(t.Read(c.Context(), 0))
	return filter.Select(messages), err
}

func (c *call) sendMessage() (any, error) {
	m := c.body.(*MessageSpec)
	if m.To == "" || m.To == "*" {
		return nil, team.Refuse(team.Invalid,
			"name the member that the message is to; a broadcast has a route of its own")
	}
	body := &team.SendMessage{To: m.To, Body: m.Body, Intent: m.Intent, Priority: m.Priority, Answers: m.Answers,
		Metadata: m.Metadata}
	return c.sent(body, func(e *team.MessageSent) bool { return e.Message.To == m.To && e.Message.Body == m.Body })
}

func (c *call) broadcast() (any, error) {
	m := c.body.(*BroadcastSpec)
	return c.sent(&team.Broadcast{Body: m.Body, Intent: m.Intent, Priority: m.Priority, Metadata: m.Metadata},
		func(e *team.MessageSent) bool { return e.Message.To == "*" && e.Message.Body == m.Body })
}

// sent sends the message, and returns it.
func (c *call) sent(body team.Body, fits func(*team.MessageSent) bool) (sent SentMessage, err error) {
	err = c.act(body, makes(fits), func(t *engine.Team, r *team.Record) error {
		e, err := event[*team.MessageSent](r)
		if err != nil {
			return err
		}
		sent.Message = e.Message
		sent.Message.SentAt = r.At
		t.View(func(s *team.State) {
			sent.Held = s.Holds(e.Message.Seq)
			for _, name := range append(slices.Clone(e.Message.Recipients), e.Message.To) {
				if s.Phase(name) == team.Paused {
					sent.Resting = append(sent.Resting, name)
				}
			}
		})
		return nil
	})
	return sent, err
}

func (c *call) peekInbox() (any, error) { return c.inbox(engine.Reading{Peek: true}) }

func (c *call) receiveMessages() (any, error) { return c.inbox(engine.Reading{Unread: true}) }

// inbox reads the mail of the member of the route.
func (c *call) inbox(r engine.Reading) (any, error) {
	wait, err := c.wait()
	if err != nil {
		return nil, err
	}
	if r.Actor, err = c.reader(); err != nil {
		return nil, err
	}
	r.Member, r.Again, r.Wait = c.PathValue("member"), c.URL.Query().Get("again") == "true", wait > 0
	t, err := c.look()
	if err != nil {
		return nil, err
	}
	if !r.Peek {
		before, err := c.earlier(t, makes(func(e *team.MessagesDelivered) bool { return e.Member == r.Member }))
		if err != nil {
			return nil, err
		}
		if before != nil {
			return c.delivered(t, r.Member, before)
		}
	}
	ctx := c.Context()
	if wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, wait, team.Refuse(team.Nothing, "no message came for %s within %s",
			r.Member, team.Span(wait)))
		defer cancel()
	}
	messages := []history.MailboxMessage{}
	err = c.engine.ReadMail(ctx, c.PathValue("team"), r, func(mail []history.MailboxMessage, _ int64) error {
		messages = append(messages, mail...)
		return nil
	})
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	if err == nil && !r.Peek {
		err = t.Refresh(ctx)
		t.View(func(s *team.State) { c.seq = s.Recorded(c.key()) })
	}
	return messages, err
}

// delivered returns the mail that a record delivered.
func (c *call) delivered(t *engine.Team, member string, r *team.Record) ([]history.MailboxMessage, error) {
	all, err := history.Mail(t.Read(c.Context(), 0), member)
	return slices.DeleteFunc(all, func(l history.MailboxMessage) bool {
		return !slices.ContainsFunc(r.Events, func(e team.Event) bool {
			d, is := e.(*team.MessagesDelivered)
			return is && d.Member == member && slices.Contains(d.Seqs, l.Seq)
		})
	}), err
}

// reader returns who reads the mail of the member of the route: the user, or that member.
func (c *call) reader() (string, error) { return c.who.Actor("member", "") }

func (c *call) markRead() (any, error) {
	through, name := c.body.(*Reading).Through, c.PathValue("member")
	actor, err := c.reader()
	if err != nil {
		return nil, err
	}
	is := Reading{}
	err = c.actAs(actor, func(s *team.State) (team.Body, error) {
		return &team.MarkRead{Member: name, Through: through}, nil
	}, makes(func(e *team.MessagesRead) bool { return e.Member == name }), func(t *engine.Team, _ *team.Record) error {
		m, err := memberOf(t, name)
		is.Through = m.ReadSeq
		return err
	})
	return is, err
}

func (c *call) resendMessages() (any, error) {
	again := Resent{Member: c.PathValue("member"), Messages: []int64{}}
	err := c.act(&team.ResendMessages{Member: again.Member, Seqs: c.body.(*Choice).Messages},
		makes(func(e *team.MessagesResent) bool { return e.Member == again.Member }),
		func(_ *engine.Team, r *team.Record) error {
			if e, is := team.EventIn[*team.MessagesResent](r); is {
				again.Messages = append(again.Messages, e.Seqs...)
			}
			return nil
		})
	return again, err
}
