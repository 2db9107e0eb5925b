package engine

import (
	"context"
	"iter"
	"path/filepath"
	"sync"

	"cadre/internal/agent/sessionlog"
	"cadre/internal/team"
)

// Session returns what the sessions of the member show: first what is kept of it, then what comes.
// With follow it goes on until ctx ends, the member has ended or the team has; without, it ends with
// what is kept.
func (t *Team) Session(ctx context.Context, member string, follow bool) (iter.Seq2[sessionlog.Entry, error], error) {
	var m team.Member
	var err error
	if t.View(func(s *team.State) { m, err = s.Named(member) }); err != nil {
		return nil, err
	}
	if m.Agent == team.External {
		return nil, team.Refuse(team.Invalid, "%s runs its own session, and shows it at its own terminal", m.Name).
			With(team.Hint{Action: team.ActFollowLog, Team: t.Name})
	}
	return func(yield func(sessionlog.Entry, error) bool) {
		until, end := context.WithCancel(ctx)
		defer end()
		if follow {
			var watching sync.WaitGroup
			defer watching.Wait()
			defer end()
			watching.Go(func() {
				defer end()
				t.lasts(until, m.Name)
			})
		} else {
			end()
		}
		for e, err := range sessionlog.Of(filepath.Dir(t.Hosts())).Follow(until, m.Name) {
			if !yield(e, err) {
				return
			}
		}
	}, nil
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
