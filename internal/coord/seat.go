package coord

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"cadre/internal/agent"
	"cadre/internal/desk"
	"cadre/internal/team"
)

// seat is one session that this host runs, from taking its lease to its last report.
type seat struct {
	host        *Host
	member      string
	incarnation int64
	lease       int64
	ctx         context.Context // ends when the seat is to be left
	leave       context.CancelFunc

	gifts chan team.Want // what it is to be given, the newest of each kind
	mu    sync.Mutex
	how   ending
	why   string
	grace time.Duration            // for the friendly part of ending the session
	given map[team.WantKind]string // key of the last want of each kind that was given; the host's alone

	again    atomic.Bool // what was to be delivered was not, and is to be given once more at the next look
	resigned bool        // it was the lead's and ended by itself; set before it is told of
}

// ending is what is reported of a session that is over.
type ending int

const (
	running     ending = iota
	stopReport         // it was to end: the member is stopped
	stopDetach         // it is not wanted here now: the member is to be started again some time
	stopQuietly        // it is not ours any more
)

func (h *Host) seat(m team.Member) {
	ctx, cancel := context.WithCancel(context.Background())
	s := &seat{host: h, member: m.Name, incarnation: m.Incarnation, lease: m.Lease, ctx: ctx, leave: cancel,
		gifts: make(chan team.Want, 8), given: map[team.WantKind]string{}}
	h.seats[m.Name] = s
	go s.run(m)
}

// stop asks the seat to end its session; the first reason counts.
func (s *seat) stop(how ending, why string, grace time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.how == running {
		s.how, s.why, s.grace = how, why, grace
		s.leave()
	}
}

// give passes on a want for the session that was not given yet. It does not wait: what does not fit is wanted again.
func (s *seat) give(w team.Want) {
	if s.again.Swap(false) {
		delete(s.given, team.WantDelivery)
	}
	if s.given[w.Kind] == w.Key {
		return
	}
	select {
	case s.gifts <- w:
		s.given[w.Kind] = w.Key
	default:
	}
}

func (s *seat) run(m team.Member) {
	defer func() {
		select {
		case s.host.ended <- s:
		case <-s.host.over:
		}
	}()
	defer s.leave()
	scratch := filepath.Join(s.host.Hosts, s.host.ID, "scratch-"+s.member)
	defer os.RemoveAll(scratch)

	failure := s.live(m, scratch)

	// From here on the session is over; what is reported must not be cut short by the end of the seat.
	ctx, cancel := context.WithTimeout(context.Background(), giveBack)
	defer cancel()
	s.mu.Lock()
	how, why := s.how, s.why
	s.mu.Unlock()
	var body team.Body
	switch how {
	case running:
		if failure == nil {
			failure = errors.New("its session ended by itself")
		}
		body = &team.ReportFailed{Member: s.member, Reason: failure.Error()}
		if s.member == s.host.Desk.Team().Lead {
			body = &team.DetachMember{Member: s.member, Reason: failure.Error()}
			s.resigned = true
		}
	case stopReport:
		body = &team.ReportStopped{Member: s.member, Reason: why}
	case stopDetach:
		body = &team.DetachMember{Member: s.member, Reason: why}
	default:
		return
	}
	if err := s.host.do(ctx, body, s.lease); err != nil {
		s.host.Log("not recorded that " + s.member + " ended: " + err.Error())
	}
}

// live starts the session and sees it through. It returns when no process of it is left, with the reason why it ended by itself.
func (s *seat) live(m team.Member, scratch string) error {
	a, ok := s.host.Agents[m.Agent]
	if !ok {
		return errors.New("this host knows no agent " + m.Agent)
	}
	t := s.host.Desk.Team()
	spec := agent.Spec{TeamID: t.ID, Team: t.Name, Member: m.Name, Incarnation: m.Incarnation, Lead: t.Lead, Role: m.Role, Prompt: m.Prompt, Model: m.Model,
		Resume: m.Session, Dir: t.Dir, Scratch: scratch, Env: s.host.Env, Procs: s.host.Procs}
	session, err := a.Start(s.ctx, spec, memberDesk{s})
	if err != nil {
		return err
	}
	givers, stopGiving := context.WithCancel(s.ctx)
	var giving sync.WaitGroup
	giving.Go(func() { s.deliver(givers, session) })
	stopped := make(chan struct{})
	finished := make(chan struct{})
	go func() { // ends the session when the seat is to be left
		defer close(stopped)
		select {
		case <-finished:
			return
		case <-s.ctx.Done():
		}
		s.mu.Lock()
		grace, cancel := context.WithTimeout(context.Background(), s.grace)
		s.mu.Unlock()
		defer cancel()
		if err := session.Stop(grace); err != nil {
			s.host.Log("ending the session of " + s.member + ": " + err.Error())
		}
	}()
	err = s.follow(session)
	close(finished)
	<-stopped
	stopGiving()
	giving.Wait()
	return err
}

// follow turns the session's updates into commands until the last one.
func (s *seat) follow(session agent.Session) error {
	ctx, stop := context.WithCancel(s.ctx) // a session that is over asks for nothing any more
	var asking sync.WaitGroup
	defer asking.Wait()
	defer stop()
	var end error
	for u := range session.Updates() {
		var body team.Body
		switch u := u.(type) {
		case agent.Started:
			body = &team.ReportStarted{Member: s.member, Session: u.Session}
		case agent.TurnStarted:
			body = &team.ReportStatus{Member: s.member, Status: team.Active, Summary: u.Summary}
		case agent.Used:
			body = &team.ReportUsage{Member: s.member, Task: u.Task, Usage: u.Usage}
		case agent.Text:
			s.host.Log(s.member + ": " + u.Text)
		case agent.TurnEnded:
			report := ""
			if !u.Reported {
				report = u.Text
			}
			body = &team.ReportStatus{Member: s.member, Status: team.Idle, Report: report}
		case agent.PermissionAsked:
			asking.Go(func() { s.ask(ctx, u) })
		case agent.Ended:
			end = u.Err
		}
		if body == nil || s.ctx.Err() != nil {
			continue
		}
		if err := s.report(body); err != nil && s.ctx.Err() == nil {
			s.host.Log("not recorded for " + s.member + ": " + err.Error())
		}
	}
	return end
}

// permissionPatience is how long a request waits for the lead or the user.
const permissionPatience = 5 * time.Minute

// ask puts the session's request before the team and gives it the answer, whichever way the request ends.
func (s *seat) ask(ctx context.Context, u agent.PermissionAsked) {
	allow, reason := false, "the session is ending"
	defer func() { u.Answer(allow, reason) }()
	seq := s.host.Desk.Seq()
	receipt, err := s.host.Desk.Do(ctx, team.Command{Actor: team.Host(s.host.ID), Lease: s.lease,
		Body: &team.RequestPermission{Member: s.member, Tool: u.Tool, Input: u.Input, Deadline: desk.Now() + team.Time(permissionPatience.Milliseconds())}})
	if err != nil {
		reason = err.Error()
		return
	}
	request := ""
	for r, err := range s.host.Desk.Watch(ctx, seq) {
		if err != nil {
			return
		}
		for _, e := range r.Events {
			switch e := e.(type) {
			case *team.PermissionRequested:
				if receipt.Record != nil && r.Seq == receipt.Record.Seq {
					request = e.Permission.Request
				}
			case *team.PermissionAnswered:
				if e.Request == request && request != "" {
					allow, reason = e.Outcome == "allowed", e.Reason
					return
				}
			}
		}
	}
}

// report records what the session did.
func (s *seat) report(body team.Body) error {
	_, err := s.host.Desk.Do(s.ctx, team.Command{Actor: team.Host(s.host.ID), Lease: s.lease, Body: body})
	switch team.CodeOf(err) {
	case team.Rejected:
		return nil // a hook wants the idle teammate to go on; its feedback comes as a message
	case team.Conflict, team.Finished, team.NotFound:
		s.stop(stopQuietly, "", s.host.StopGrace)
		return nil
	}
	return err
}

// deliver gives the session what it is wanted to have, one thing after the other.
func (s *seat) deliver(ctx context.Context, session agent.Session) {
	for {
		var w team.Want
		select {
		case w = <-s.gifts:
		case <-ctx.Done():
			return
		}
		if w.Kind == team.WantWork {
			if err := session.Wake(ctx); err != nil && ctx.Err() == nil {
				s.host.Log("waking " + s.member + ": " + err.Error())
			}
			continue
		}
		var mail []team.Message
		s.host.Desk.View(func(st *team.State) { mail = st.Inbox(s.member) })
		if len(mail) == 0 {
			continue
		}
		if err := session.Deliver(ctx, mail); err != nil {
			if ctx.Err() == nil {
				s.host.Log("delivering to " + s.member + ": " + err.Error())
				s.again.Store(true)
			}
			continue
		}
		seqs := make([]int64, len(mail))
		for i, msg := range mail {
			seqs[i] = msg.Seq
		}
		// The session has them now, also when it is just being ended.
		recording, cancel := context.WithTimeout(context.WithoutCancel(ctx), giveBack)
		if err := s.host.do(recording, &team.ReceiveMessages{Member: s.member, Seqs: seqs}, s.lease); err != nil {
			s.host.Log("not recorded that " + s.member + " has its mail: " + err.Error())
		}
		cancel()
	}
}

// memberDesk is the desk of a session: it acts as its member, in this incarnation.
type memberDesk struct{ seat *seat }

func (d memberDesk) Do(ctx context.Context, body team.Body) (*team.Record, error) {
	receipt, err := d.seat.host.Desk.Do(ctx, team.Command{ID: desk.NewID(), Actor: d.seat.member, Incarnation: d.seat.incarnation, Body: body})
	return receipt.Record, err
}

func (d memberDesk) View(see func(*team.State)) { d.seat.host.Desk.View(see) }
