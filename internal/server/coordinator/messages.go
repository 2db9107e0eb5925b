package coordinator

import (
	"cadre/internal/engine"
	"cadre/internal/inspect/history"
	"cadre/internal/team"
)

// mostMessages bounds the messages of one answer, as in the HTTP API.
const mostMessages = 1000

func (q *call) sendMessage() (answer, error) {
	p := q.payload.(*TeamSendMessage)
	if err := q.checkMetadata(p.Metadata); err != nil {
		return answer{}, err
	}
	t, err := q.team(p.TeamID)
	if err != nil {
		return answer{}, err
	}
	to, err := q.member(t, p.ToID)
	if err != nil {
		return answer{}, err
	}
	metadata := p.Metadata
	if p.Type != "" && p.Type != "direct" {
		metadata = with(metadata, messageExtra{p.Type})
	}
	return q.post(t, p.FromID, &team.SendMessage{To: to, Priority: p.Priority, Body: p.Content, Metadata: metadata})
}

func (q *call) broadcast() (answer, error) {
	p := q.payload.(*TeamBroadcast)
	t, err := q.team(p.TeamID)
	if err != nil {
		return answer{}, err
	}
	return q.post(t, p.FromID, &team.Broadcast{Priority: p.Priority, Body: p.Content})
}

// post sends a message.
func (q *call) post(t *engine.Team, from string, body team.Body) (answer, error) {
	actor, err := q.actor(t, "fromId", from)
	if err != nil {
		return answer{}, err
	}
	r, err := q.do(t, actor, body)
	if err != nil {
		return answer{}, err
	}
	sent, ok := team.EventIn[*team.MessageSent](r)
	if !ok {
		return answer{}, repeats()
	}
	return after(t, r, func(s *team.State) (any, []event) {
		of := s.Team()
		return one(teamMessage, MessagePayload{messageOf(&of, &sent.Message, r.At)})
	}), nil
}

func (q *call) listMessages() (answer, error) {
	p := q.payload.(*TeamListMessages)
	t, err := q.look(p.TeamID)
	if err != nil {
		return answer{}, err
	}
	name, actor, err := q.memberAndCaller(t, p.MemberID)
	if err != nil {
		return answer{}, err
	}
	messages, seq, err := t.MailOf(q.ctx, actor, name, history.MailFilter{Unread: p.Unread, Last: mostMessages})
	if err != nil {
		return answer{}, err
	}
	of := t.Team()
	all := MessagesPayload{MemberID: name, TeamID: idOf(&of), Messages: []TeamMessage{}}
	a := answer{team: all.TeamID, seq: seq}
	for _, l := range messages {
		m := mailOf(&of, &l)
		all.Messages = append(all.Messages, m)
		a.events = append(a.events, event{teamMessage, MessagePayload{m}})
	}
	a.reply = all
	return a, nil
}
