package coordinator

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"cadre/internal/engine"
	"cadre/internal/server/auth"
	"cadre/internal/team"
)

func (q *call) createTeam() (answer, error) {
	p := q.payload.(*CreateTeam)
	if err := q.checkMetadata(p.Metadata); err != nil {
		return answer{}, err
	}
	if p.LeadSessionID == "" {
		return answer{}, usage("leadSessionId must not be empty")
	}
	if err := team.CheckName("team", p.Name); err != nil {
		return answer{}, err
	}
	mode, most := p.TeammateMode, int64(team.DefaultMaxTeammates)
	if mode == "" {
		mode = modeAuto
	}
	if p.MaxTeammates != nil {
		most = *p.MaxTeammates
	}
	if most < 1 {
		return answer{}, usage("maxTeammates must be at least 1")
	}
	body := &team.CreateTeam{Name: p.Name, Dir: q.server.Dir, Lead: team.DefaultLead, Delegate: p.DelegateMode,
		MaxTeammates: most, Metadata: with(p.Metadata, teamExtra{p.LeadSessionID, mode})}
	q.server.creating.Lock() // so that a session cannot get two teams at once
	defer q.server.creating.Unlock()
	if known, err := q.created(p); known != nil || err != nil {
		return q.begun(known, err)
	}
	if err := q.free(p.LeadSessionID); err != nil {
		return answer{}, err
	}
	if err := q.engine.Founding(q.ctx, body); err != nil {
		return answer{}, err
	}
	command := engine.Command(team.User, body)
	id := command.ID
	command.ID = "" // the client's, if it chose a key
	q.engine.Stamp(&command)
	if command.ID == "" {
		command.ID = id
	}
	if err := q.engine.Create(p.Name, []team.Command{command}); err != nil {
		return answer{}, at(atCreate, err)
	}
	return q.begun(q.team(body.TeamID))
}

// created returns the team that the same request created before; nil for none.
func (q *call) created(p *CreateTeam) (*engine.Team, error) {
	if q.Key == "" {
		return nil, nil
	}
	t, err := q.look(p.Name)
	if err != nil {
		return nil, nil
	}
	known := false
	t.View(func(s *team.State) { known = s.Remembers(q.Key) })
	if !known {
		return nil, nil
	}
	return t, nil
}

// begun subscribes the client to the team that it created.
func (q *call) begun(t *engine.Team, err error) (answer, error) {
	if err != nil {
		return answer{}, err
	}
	a := after(t, nil, func(s *team.State) (any, []event) { return one(teamCreated, TeamPayload{teamOf(s)}) })
	if q.subscription(a.team) != nil {
		return a, nil
	}
	a.recorded = 1
	return a, q.follow(t, 0, 0)
}

// free refuses a session that leads a team already.
func (q *call) free(session string) error {
	open, err := q.engine.Unfinished(q.ctx)
	if err != nil {
		return err
	}
	for _, t := range open {
		if extraOf[teamExtra](t.Metadata).LeadSessionID == session {
			return protocolError{error: fmt.Errorf("session %s leads team %s already, and a session leads one team "+
				"at a time; clean that team up first", clip(session), t.Name), code: oneTeamPerSession}
		}
	}
	return nil
}

// checkMetadata refuses metadata with the key that is ours.
func (q *call) checkMetadata(m map[string]jsonValue) error {
	if _, there := m[metadataKey]; there {
		return usage("the metadata has the key %q, in which the server keeps what belongs to the protocol", metadataKey)
	}
	return nil
}

func (q *call) teamStatus() (answer, error) {
	t, err := q.look(q.payload.(*OneTeam).TeamID)
	if err != nil {
		return answer{}, err
	}
	return after(t, nil, func(s *team.State) (any, []event) {
		return one(teamStatusUpdate, TeamPayload{teamOf(s)})
	}), nil
}

func (q *call) cleanUp() (answer, error) {
	t, err := q.look(q.payload.(*OneTeam).TeamID)
	if err != nil {
		return answer{}, err
	}
	actor, err := q.caller()
	if err != nil {
		return answer{}, err
	}
	of := t.Team()
	if _, err := q.engine.RemoveTeam(q.ctx, idOf(&of), engine.Removal{Actor: actor}); err != nil {
		return answer{}, at(atCleanUp, err)
	}
	ref := TeamRef{idOf(&of)}
	a := answer{team: ref.TeamID, seq: forEver, reply: ref, events: []event{{teamCleanedUp, ref}}}
	a.recorded = forEver
	return a, nil
}

// spawning says which teammate a request asks for.
func (q *call) spawning(t *engine.Team, p *SpawnTeammate) (*team.SpawnMember, error) {
	agent := p.AgentType
	if agent == "" {
		first, err := q.engine.Leading(q.ctx, "")
		switch {
		case errors.Is(err, engine.ErrNoAgent):
			first = team.External
		case err != nil:
			return nil, err
		}
		agent = first
	}
	of := t.Team()
	if agent == team.Claude && extraOf[teamExtra](of.Metadata).TeammateMode == modeTmux {
		agent = team.ClaudeTmux
	}
	if err := engine.CheckAgent(agent); err != nil {
		return nil, err
	}
	if err := t.MaySpawn(q.who.Caller, agent); err != nil {
		return nil, err
	}
	if err := q.who.MayMode(t.SpawnMode("")); err != nil {
		return nil, err
	}
	if strings.HasPrefix(agent, team.ACP) {
		if err := q.who.Needs(auth.Admin, "an agent with a command"); err != nil {
			return nil, err
		}
	}
	return &team.SpawnMember{Name: p.Name, Agent: agent, Model: p.Model, Role: p.Role, Prompt: p.Prompt,
		PlanApproval: p.PlanApprovalRequired}, team.CheckNewMember(p.Name, of.Lead)
}

func (q *call) spawnTeammate() (answer, error) {
	p := q.payload.(*SpawnTeammate)
	t, err := q.team(p.TeamID)
	if err != nil {
		return answer{}, err
	}
	actor, err := q.caller()
	if err != nil {
		return answer{}, err
	}
	m, err := q.spawning(t, p)
	if err != nil {
		return answer{}, err
	}
	if m.Agent != team.External && q.server.Keeps != nil {
		release, err := q.server.Keeps.Reserve(q.ctx, t.Team(), m.Name)
		if err != nil {
			return answer{}, q.over(t, at(atSpawn, err))
		}
		defer release()
	}
	joined, before := false, t.Seq()
	err = t.Spawn(q.ctx, actor, m, func(team.Member) error {
		joined = true
		if m.Agent == team.External || q.server.Keeps == nil {
			return nil
		}
		return q.server.Keeps.Keep(t.Team())
	})
	if err != nil {
		err = q.over(t, at(atSpawn, err))
		if code := team.CodeOf(err); joined || code == "" || code == team.Invalid || code == team.NotReady {
			err = at(atSession, err)
		}
		return answer{}, err
	}
	var r *team.Record // stays nil if the request was repeated
	for record, err := range t.Read(q.ctx, before) {
		if err != nil {
			return answer{}, err
		}
		if e, is := team.EventIn[*team.MemberSpawned](record); is && e.Member.Name == m.Name {
			r = record
		}
	}
	return after(t, r, func(s *team.State) (any, []event) {
		return one(teammateSpawned, MemberPayload{memberIn(s, m.Name)})
	}), nil
}

func (q *call) shutDown() (answer, error) {
	p := q.payload.(*ShutdownTeammate)
	t, err := q.team(p.TeamID)
	if err != nil {
		return answer{}, err
	}
	name, actor, err := q.memberAndCaller(t, p.MemberID)
	if err != nil {
		return answer{}, err
	}
	before := t.Seq()
	body := &team.RequestShutdown{Member: name, Deadline: engine.Now().Add(q.server.Grace)}
	switch _, err := q.do(t, actor, body); {
	case team.CodeOf(err) == team.Conflict: // it was asked before: wait for that request
	case team.CodeOf(err) == team.Finished && active(t): // the teammate has ended
	case err != nil:
		return answer{}, err
	}
	q.opened = nil // it stays open until the teammate has ended
	q.beside(func() {
		defer t.Close()
		q.reply(q.frame, q.before, func() (answer, error) { return q.awaitEnd(t, actor, name, before) })
	})
	return answer{later: true}, nil
}

// awaitEnd waits until the teammate has ended or refused. A teammate that refuses continues.
func (q *call) awaitEnd(t *engine.Team, actor, name string, before int64) (answer, error) {
	of := t.Team()
	gone, refused := Departure{MemberID: name, TeamID: idOf(&of), Accepted: true}, false
	ctx, cancel := context.WithTimeoutCause(q.ctx, q.server.Grace+engine.BusyTime,
		fmt.Errorf("%s has not ended yet", name))
	defer cancel()
	_, err := t.AwaitEnd(ctx, name, before, func(_ team.Member, reason string) {
		refused, gone.Accepted, gone.Reason = true, false, reason
		q.engine.Stamp = stamp("", q.who.Via())
		if _, err := q.do(t, actor, &team.WithdrawShutdown{Member: name}); err != nil && team.CodeOf(err) == "" {
			q.server.note(err.Error())
		}
	})
	if errors.Is(err, engine.ErrWithdrawn) && !refused {
		return answer{}, team.Refuse(team.NotReady, "the request to %s was withdrawn, and it continues", name)
	}
	if err != nil && !errors.Is(err, engine.ErrWithdrawn) {
		return answer{}, err
	}
	ended := int64(0)
	for r, err := range t.Read(ctx, before) {
		if err != nil {
			return answer{}, err
		}
		for _, e := range r.Events {
			switch e := e.(type) {
			case *team.MemberStopped:
				if e.Member == name {
					ended = r.Seq
				}
			case *team.MemberFailed:
				if e.Member == name {
					ended = r.Seq
				}
			}
		}
	}
	if refused && len(q.ID) == 0 {
		return answer{}, team.Refuse(team.Rejected, "%s refuses to shut down, and continues: %s", name, gone.Reason)
	}
	a := after(t, nil, func(*team.State) (any, []event) {
		return gone, []event{{teammateShutdown, MemberRef{name, gone.TeamID}}}
	})
	a.recorded = ended
	return a, nil
}
