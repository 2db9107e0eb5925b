package simtest

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"cadre/internal/agent"
	realhost "cadre/internal/host"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// host is one run of the program that hosts sessions: a process in which a [realhost.Host] runs.
type host struct {
	office
	place    int
	slots    []*slot
	unlocked time.Duration // until then others find its lock free, although it is alive
	taken    string        // the last host that it found dead
	retired  bool          // it ended with its team
	pause    func()        // asks it to end its sessions in order; nil before it runs
	again    time.Duration // how long it stays away after its pause; 0 for a host that was not paused
}

// slot is a session that a host runs, as the world sees it.
type slot struct {
	host               *host
	member             string
	incarnation, lease int64
	worker             bool // its agent takes tasks from the list by itself
	session            *session
	service            *service
}

// folder is the folder of hosts that the real host gets. It does not exist.
const folder = "/nowhere/cadre/teams/demo/hosts"

// boot starts the host of a place.
func (w *world) boot(place int) {
	on := w.machines[place%len(w.machines)]
	h := &host{office: office{of: w.process("h"+string(rune('1'+place)), on)}, place: place}
	w.hosts[place], w.booted = h, w.now
	w.logf("%s starts on %s", h.of.name, on.name)
	ctx, stop := context.WithCancelCause(context.Background())
	h.of.stop, h.pause = func() { stop(nil) }, func() { stop(realhost.ErrPaused) }
	w.start(func() { h.live(ctx) })
}

// crash kills the host of a place. A little later its watchdog ends its sessions, and another host
// starts.
func (w *world) crash(place int, again time.Duration) {
	h := w.hosts[place]
	if !h.of.alive {
		return
	}
	w.logf("%s is killed", h.of.name)
	w.gone(h, again)
}

func (w *world) gone(h *host, again time.Duration) {
	h.of.kill()
	w.at(w.now+time.Duration(w.rng(h.of.name+" leash").IntN(200))*time.Millisecond, func() { h.endSessions() })
	w.at(w.now+again, func() {
		if w.hosts[h.place] == h {
			w.boot(h.place)
		}
	})
}

// pauseFor asks the host to end its sessions in order. It starts again that long after its end.
func (h *host) pauseFor(away time.Duration) {
	if h.of.alive && !h.retired && h.again == 0 {
		h.again = away
		h.of.w.later(h.pause)
	}
}

func (h *host) endSessions() {
	for _, s := range h.slots {
		if s.session != nil {
			s.session.kill()
		}
	}
}

// held reports whether the host of that id appears to be alive. It returns the host if it is known.
func (w *world) held(id string) (*host, bool) {
	h := w.hostNamed(id)
	return h, h != nil && h.of.alive && h.unlocked <= w.now
}

func (w *world) hostNamed(id string) *host {
	for _, h := range w.hosts {
		if h.of.name == id {
			return h
		}
	}
	return nil
}

func (h *host) id() string { return h.of.name }

// live runs the real host of a place, in goroutines of its process.
func (h *host) live(ctx context.Context) {
	w := h.of.w
	rep, err := h.openLive(ctx)
	if err != nil {
		return
	}
	procs, err := proc.Open("") // the host starts no child processes
	if err != nil {
		panic(err)
	}
	defer procs.Close(context.Background())
	real := realhost.New(realhost.Options{Replica: rep, ID: h.id(), Hosts: folder, Procs: procs, Log: h.of.says,
		Said: func(string, string) {}, StopGrace: 200 * time.Millisecond,
		Agent: func(name string) agent.Agent {
			switch name {
			case team.Claude:
				return model{h}
			case team.Shell:
				return worker{model{h}}
			}
			return nil
		},
		Machine: realhost.Machine{Name: h.of.on.name, Hosts: registry{h}, Beats: signs{h.of}, Saved: saved{h.of},
			Project: project{h.of}, Items: h.items}})
	err = real.Run(ctx)
	h.of.ask("end", func(*thread) {
		switch {
		case err == nil && h.again > 0:
			w.logf("%s is paused", h.id())
			w.judge.pausedInOrder(h)
			w.gone(h, h.again)
			return
		case err == nil: // the team has ended
			h.retired = true
			return
		}
		w.logf("%s gives up: %v", h.id(), err)
		w.gone(h, time.Duration(200+w.rng(h.id()+" again").IntN(2000))*time.Millisecond)
	})
}

// items runs the command that prints the items of a group.
func (h *host) items(_ context.Context, _ team.Team, task team.Task) (items []json.RawMessage, failure, output string,
	err error) {
	err = h.of.ask("items of "+task.ID, func(t *thread) {
		t.sleep(time.Duration(1+t.rng.IntN(400)) * time.Millisecond)
		if !h.of.w.calm && t.rng.IntN(5) == 0 {
			failure, output = "exit 1", "nothing to list"
			return
		}
		for _, item := range printed(task.ID) {
			items = append(items, team.TextItem(item))
		}
	})
	return items, failure, output, err
}

func (h *host) slot(member string) *slot {
	for _, s := range h.slots {
		if s.member == member {
			return s
		}
	}
	return nil
}

// zombie reports whether the member has no lead, as far as its host knows.
func (s *slot) zombie() (alone bool) {
	s.host.view(func(st *team.State) { alone = st.Zombie(s.member) })
	return alone
}

// held returns the tasks that the member has in progress, as far as its host knows.
func (s *slot) held() (tasks []team.Task) {
	s.host.view(func(st *team.State) { tasks = st.Held(s.member) })
	return tasks
}

// leftOn returns the slot of the member on the host with that process, or nil.
func (w *world) leftOn(p *process, member string) *slot {
	i := slices.IndexFunc(w.hosts, func(h *host) bool { return h.of == p })
	if i < 0 {
		return nil
	}
	return w.hosts[i].slot(member)
}
