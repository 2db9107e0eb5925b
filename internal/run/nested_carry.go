package run

import (
	"context"
	"fmt"
	"sync"
	"time"

	"cadre/internal/engine"
	"cadre/internal/team"
)

// carryAgain is how long a failed attempt to carry something between two teams waits for a change
// before it is made again.
const carryAgain = time.Second

// party is one of two nested teams, for who carries between them.
type party interface {
	View(look func(*team.State))
	Do(ctx context.Context, body team.Body) error
}

// parentParty is the parent team, for the session of the member that runs the child team.
type parentParty struct{ *child }

// View calls look with the state of the parent team.
func (p parentParty) View(look func(*team.State)) { p.of.View(look) }

// Do sends the command as the member.
func (p parentParty) Do(ctx context.Context, body team.Body) error {
	_, err := p.session.Team.Do(ctx, body)
	return err
}

// childParty is the child team, for its host.
type childParty struct{ *engine.Team }

// Do sends the command for the parent team.
func (p childParty) Do(ctx context.Context, body team.Body) error {
	_, err := p.Team.Do(ctx, team.Command{Actor: team.User, Body: body})
	return err
}

// bounds returns the command that limits the child team, created at that time, to what its parent
// allows.
func (c *child) bounds(created team.Time) (bounds *team.ConfineTeam) {
	c.of.View(func(s *team.State) { bounds, _ = s.Bounds(c.link.Team, created) })
	return bounds
}

// follow carries between the parent team and the child team until the returned function is called:
// mail of the two leads, and what the parent allows. The child begins with what is allowed now, and
// its lead waits for answers of the parent's.
func (c *child) follow(ctx context.Context, of *engine.Team, lead *Lead) (end func(), err error) {
	parent, its := parentParty{c}, childParty{of}
	created, id := of.Team().CreatedAt, c.link.Team
	down := func(ctx context.Context) error { return carryDown(ctx, parent, its, id, created) }
	up := func(ctx context.Context) error { return carryUp(ctx, parent, its, id) }
	if err := down(ctx); err != nil {
		return nil, err
	}
	looks := make(chan struct{}, 1)
	lead.Look, lead.Awaits = looks, func() bool { return awaits(parent, its, id) }
	ctx, cancel := context.WithCancel(ctx)
	var beside sync.WaitGroup
	beside.Go(func() {
		c.repeat(ctx, c.of, func(ctx context.Context) error {
			defer func() {
				select {
				case looks <- struct{}{}:
				default:
				}
			}()
			return down(ctx)
		})
	})
	beside.Go(func() { c.repeat(ctx, of, up) })
	return func() {
		cancel()
		beside.Wait()
	}, nil
}

// repeat carries after every record of the team, until ctx ends.
func (c *child) repeat(ctx context.Context, of *engine.Team, carry func(context.Context) error) {
	for ctx.Err() == nil {
		seq := of.Seq()
		waiting, done := ctx, context.CancelFunc(func() {})
		if err := carry(ctx); err != nil && ctx.Err() == nil {
			c.of.Engine().Note(fmt.Sprintf("team %s and its parent have not the same news yet: %v", c.link.Name, err))
			waiting, done = context.WithTimeout(ctx, carryAgain)
		}
		err := of.Wait(waiting, seq)
		done()
		if err != nil && waiting.Err() == nil {
			return
		}
	}
}

// carryDown limits the child team to what its parent allows now, and passes on the mail to its
// lead. It may be called again after any interruption: the child records the number of the last
// message with that message, and only then does the parent record it as delivered. What one of the
// teams refuses stays where it is.
func carryDown(ctx context.Context, parent, child party, id string, created team.Time) error {
	var bounds *team.ConfineTeam
	var known bool
	var mail []team.Message
	parent.View(func(s *team.State) {
		bounds, known = s.Bounds(id, created)
		mail = s.MailToChild(id)
	})
	if !known {
		return nil
	}
	if refused, err := do(ctx, child, bounds); refused || err != nil {
		return err
	}
	for _, m := range mail {
		if refused, err := do(ctx, child, &team.HearParent{Message: m}); refused || err != nil {
			return err
		}
		if refused, err := do(ctx, parent, &team.ReceiveMessages{Seqs: []int64{m.Seq}}); refused || err != nil {
			return err
		}
	}
	return nil
}

// awaits reports whether an answer to the child's lead is still to come: its question is on its
// way, or the agent that leads the parent is about to answer it. A person who leads may never
// answer.
func awaits(parent, child party, id string) (waits bool) {
	asked := false
	child.View(func(s *team.State) {
		waits, asked = len(s.MailToParent()) > 0, s.Team().Parent.Asked != 0
	})
	if waits || !asked {
		return waits
	}
	parent.View(func(s *team.State) {
		lead, _ := s.Member(s.Team().Lead)
		waits = len(s.MailToChild(id)) > 0 || lead.Agent != team.External && s.Busy(lead.Name)
	})
	return waits
}

// carryUp passes on the mail of the child team's lead. It may be called again after any
// interruption, as carryDown.
func carryUp(ctx context.Context, parent, child party, id string) error {
	var mail []team.Message
	child.View(func(s *team.State) { mail = s.MailToParent() })
	for _, m := range mail {
		if refused, err := do(ctx, parent, &team.HearChild{Team: id, Message: m}); refused || err != nil {
			return err
		}
		if refused, err := do(ctx, child, &team.PassedToParent{Through: m.Seq}); refused || err != nil {
			return err
		}
	}
	return nil
}

// do sends the command, and reports whether the team refused it.
func do(ctx context.Context, to party, body team.Body) (refused bool, err error) {
	err = to.Do(ctx, body)
	if team.CodeOf(err) != "" {
		return true, nil
	}
	return false, err
}

// lastWords passes on the mail that the lead of a child team wrote before its team ended.
func (c *child) lastWords(ctx context.Context, of team.Team) error {
	folder := c.of.Engine().Home.Has(of.ID)
	if len(of.Outbox) == 0 || folder == "" {
		return nil
	}
	t, err := c.of.Engine().OpenIn(ctx, of.Name, folder)
	if err != nil {
		return err
	}
	defer t.Close()
	return carryUp(ctx, parentParty{c}, childParty{t}, of.ID)
}
