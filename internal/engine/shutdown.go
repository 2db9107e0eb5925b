package engine

import (
	"context"
	"errors"
	"time"

	"cadre/internal/host"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// lookAgain is how often a wait for a member's end checks whether the member's host is running.
const lookAgain = time.Second

// ErrWithdrawn says that the shutdown request was withdrawn.
var ErrWithdrawn = errors.New("the request to shut down was withdrawn")

// AwaitEnd waits until the member, which was asked to shut down, has ended. AwaitEnd itself ends a
// member whose host is dead, and a member without a session at its deadline, because no host would.
// It calls refused once per refusal, with the reason found in the history after the record seq. It
// returns [ErrWithdrawn] if the request was withdrawn.
func (t *Team) AwaitEnd(ctx context.Context, name string, after int64,
	refused func(m team.Member, reason string)) (team.Member, error) {
	told := ""
	for {
		m, seq := t.member(name)
		switch {
		case !m.Status.Running():
			return m, nil
		case m.Shutdown.Request == "":
			return m, ErrWithdrawn
		case m.Shutdown.Answer == "rejected" && told != m.Shutdown.Request:
			told = m.Shutdown.Request
			reason, err := t.refusal(ctx, after, told)
			if err != nil {
				return m, err
			}
			refused(m, reason)
		}
		wait := lookAgain
		if t.hostless(ctx, m) {
			due, err := t.endHostless(ctx, m)
			if err != nil {
				return m, err
			}
			if due <= 0 {
				continue
			}
			wait = min(wait, due)
		}
		waiting, cancel := context.WithTimeout(ctx, wait)
		err := t.Wait(waiting, seq)
		cancel()
		if err != nil && ctx.Err() != nil {
			return m, team.Refuse(team.NotReady, "%v", context.Cause(ctx))
		}
		if err != nil && waiting.Err() == nil {
			return m, err
		}
	}
}

// hostless reports whether no running host would end the member.
func (t *Team) hostless(ctx context.Context, m team.Member) bool {
	return m.Agent == team.External || m.Host == "" || !t.Hosted(ctx) && !t.leased(ctx, m)
}

// endHostless ends a member without a host once that is due, and returns the time until then.
func (t *Team) endHostless(ctx context.Context, m team.Member) (due time.Duration, err error) {
	if m.Host != "" {
		if err := host.Clear(ctx, t.Hosts(), t.engine.Note); err != nil {
			return 0, err
		}
	}
	body := team.Body(&team.ReportStopped{Member: m.Name, Reason: team.NoHost})
	if m.Agent == team.External {
		due = m.Shutdown.Deadline.Sub(replica.Now())
		body = &team.ExpireShutdown{Member: m.Name}
	}
	if due > 0 {
		return due, nil
	}
	_, err = t.Do(ctx, team.Command{Actor: team.User, Body: body})
	if code := team.CodeOf(err); code == team.NotReady || code == team.Finished { // another process is ending it
		err = t.Refresh(ctx)
	}
	return 0, err
}

// refusal returns why a shutdown request was refused, from the records after seq after; "" if they
// do not say.
func (t *Team) refusal(ctx context.Context, after int64, request string) (reason string, err error) {
	for r, err := range t.Read(ctx, after) {
		if err != nil {
			return "", err
		}
		for _, e := range r.Events {
			if e, ok := e.(*team.ShutdownAnswered); ok && e.Request == request {
				reason = e.Reason
			}
		}
	}
	return reason, nil
}
