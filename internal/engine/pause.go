package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"cadre/internal/journal/store"
	"cadre/internal/sys/sleep"
	"cadre/internal/team"
)

// pauseLook is how often [Team.Pause] checks whether the hosts have ended.
const pauseLook = 20 * time.Millisecond

// Paused is how a team was paused.
type Paused struct {
	Team    team.Team `json:"team"`              // the team as it is now
	Members []string  `json:"members,omitempty"` // members whose sessions were ended
	Hosts   int       `json:"hosts"`             // number of hosts that ended; 0 if none was running
}

// Pause asks the running hosts of the team to end its sessions, and waits until they have ended. A
// process that also led the team has released the lead by then. The members are recorded as paused,
// and the team can be resumed. If ctx ends first, Pause refuses with NotReady; the hosts still end.
func (t *Team) Pause(ctx context.Context) (Paused, error) {
	if err := t.Refresh(ctx); err != nil {
		return Paused{}, err
	}
	of := t.Team()
	if of.Ended() {
		return Paused{}, team.Refuse(team.Finished, "team %s is %s, and has no sessions to pause", of.Name, of.Status).
			With(team.Hint{Action: team.ActShowReview, Team: t.Name})
	}
	if err := t.nestedIn(ctx, "paused", ""); err != nil {
		return Paused{}, err
	}
	if of.Remote != "" { // machines would take the members again
		if err := t.Shared().Put(ctx, store.PausedKey, nil); err != nil {
			return Paused{}, err
		}
	}
	asked, err := t.askPause(ctx)
	defer t.unaskPause(context.WithoutCancel(ctx), asked)
	if err != nil {
		return Paused{}, err
	}
	p := Paused{Hosts: len(asked)}
	t.View(func(s *team.State) {
		for _, m := range s.Members() {
			if m.Status.Running() &&
				slices.ContainsFunc(asked, func(h pausing) bool { return h.id == m.Host }) {
				p.Members = append(p.Members, m.Name)
			}
		}
	})
	for t.ending(ctx, asked) {
		if sleep.For(ctx, pauseLook) != nil {
			return p, team.Refuse(team.NotReady, "team %s is not paused yet: %s still has to end its sessions", of.Name,
				t.processes(ctx, asked)).With(team.Hint{Action: team.ActShowAlive, Team: t.Name})
		}
	}
	err = t.Refresh(ctx)
	p.Team = t.Team()
	return p, err
}

// unpause lets machines run the members again.
func (t *Team) unpause(ctx context.Context) error {
	if t.Team().Remote == "" {
		return nil
	}
	return t.Shared().Delete(ctx, store.PausedKey)
}

// Attended reports whether machines with labels may run the members of the team: it was not paused,
// and its run has not ended. A team that a person leads by commands needs no run.
func (t *Team) Attended(ctx context.Context) (bool, error) {
	if paused, err := t.Shared().Has(ctx, store.PausedKey); paused || err != nil {
		return false, err
	}
	return t.byHand() || t.Shared().Held(ctx, store.Lead) || t.Hosted(ctx), nil
}

// pausing is a host that was asked to pause.
type pausing struct {
	id     string
	holder store.Holder // its process; the zero Holder if unknown
}

// askPause asks each running host to pause. The request is a value and not a signal, which would
// end a whole program: a program may run hosts of other teams too.
func (t *Team) askPause(ctx context.Context) (asked []pausing, err error) {
	shared := t.Shared()
	held, err := shared.AllHeld(ctx, store.HostPrefix)
	if err != nil {
		return nil, err
	}
	for _, name := range held {
		h := pausing{id: strings.TrimPrefix(name, store.HostPrefix)}
		if h.holder, _, err = shared.Holder(ctx, name); err != nil {
			return asked, err
		}
		if err := shared.Replace(ctx, store.Value{Key: store.PauseKey(h.id)}); err != nil {
			return asked, fmt.Errorf("ask process %s to pause team %s: %w", h, t.Name, err)
		}
		asked = append(asked, h)
	}
	return asked, nil
}

// unaskPause removes the requests. A host that has not seen its request yet ends all the same: it
// reads the request, or has ended.
func (t *Team) unaskPause(ctx context.Context, asked []pausing) {
	for _, h := range asked {
		if t.running(ctx, h) {
			continue
		}
		if err := t.Shared().Delete(ctx, store.PauseKey(h.id)); err != nil {
			t.engine.Note(err.Error())
		}
	}
}

func (t *Team) running(ctx context.Context, h pausing) bool {
	return t.Shared().Held(ctx, store.Host(h.id))
}

// ending reports whether one of the hosts is running, or its process leads the team.
func (t *Team) ending(ctx context.Context, asked []pausing) bool {
	if slices.ContainsFunc(asked, func(h pausing) bool { return t.running(ctx, h) }) {
		return true
	}
	lead, led, _ := t.Shared().Holder(ctx, store.Lead)
	return led && slices.ContainsFunc(asked, func(h pausing) bool { return h.holder == lead })
}

// processes names the processes of the hosts.
func (t *Team) processes(ctx context.Context, of []pausing) string {
	var all []string
	for _, h := range of {
		if len(of) == 1 || t.running(ctx, h) {
			all = append(all, h.String())
		}
	}
	return "process " + strings.Join(all, ", ")
}

// String returns the process as a person finds it.
func (h pausing) String() string {
	if h.holder.Machine != "" {
		return fmt.Sprintf("%d on %s", h.holder.Pid, h.holder.Machine)
	}
	return fmt.Sprint(h.holder.Pid)
}
