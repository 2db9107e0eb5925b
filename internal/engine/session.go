package engine

import (
	"context"
	"iter"
	"path/filepath"
	"sync"

	"cadre/internal/agent/sessionlog"
	"cadre/internal/team"
)

// Until says how long to follow a session.
type Until int

// These are the ends of following a session.
const (
	SoFar  Until = iota // with what is kept
	Follow              // with the member, the team, or the context
)

// Session returns the entries that the sessions of the member showed, and then new ones as they
// come.
func (t *Team) Session(ctx context.Context, member string, until Until) (iter.Seq2[sessionlog.Entry, error], error) {
	var m team.Member
	var err error
	var you bool
	if t.View(func(s *team.State) {
		m, err = s.Named(member)
		you = s.LedByUser() && m.Name == s.Team().Lead
	}); err != nil {
		return nil, err
	}
	if you {
		return nil, team.Refuse(team.Invalid, "you lead this team: %s has no session to show", m.Name)
	}
	if m.Agent == team.External {
		return nil, team.Refuse(team.Invalid, "%s runs its own session, and shows it at its own terminal", m.Name).
			With(team.Hint{Action: team.ActFollowLog, Team: t.Name})
	}
	if !t.OnDisk() {
		return nil, team.Refuse(team.Invalid, "team %s is in memory, and keeps no log of its sessions", t.Name)
	}
	return func(yield func(sessionlog.Entry, error) bool) {
		following, end := context.WithCancel(ctx)
		defer end()
		if until == Follow {
			var watching sync.WaitGroup
			defer watching.Wait()
			defer end()
			watching.Go(func() {
				defer end()
				t.lasts(following, m.Name)
			})
		} else {
			end()
		}
		for e, err := range sessionlog.Of(filepath.Dir(t.Hosts())).Follow(following, m.Name) {
			if !yield(e, err) {
				return
			}
		}
	}, nil
}

// SessionLog returns a viewer of what the member's sessions show, for one goroutine that reads it
// at its own pace and closes it. It is nil for a member that runs its own session, and in memory.
func (t *Team) SessionLog(member string) *sessionlog.Viewer {
	var m team.Member
	var err error
	t.View(func(s *team.State) { m, err = s.Named(member) })
	if err != nil || m.Agent == team.External || !t.OnDisk() {
		return nil
	}
	return sessionlog.Of(filepath.Dir(t.Hosts())).View(m.Name)
}

// lasts returns when the member or the team has ended, or ctx has.
func (t *Team) lasts(ctx context.Context, member string) {
	for {
		t.Refresh(ctx)
		seq, ended := t.Seq(), true
		t.View(func(s *team.State) {
			m, err := s.Named(member)
			of := s.Team()
			ended = err != nil || !m.Status.Running() || of.Ended()
		})
		if ended || t.Wait(ctx, seq) != nil {
			return
		}
	}
}
