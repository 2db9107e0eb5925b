package host

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cadre/internal/liveness/detector"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/team"
)

// pulse tracks heartbeats: those that this host sends for its members, and those of all other
// members.
type pulse struct {
	count  int64
	next   time.Time
	all    []team.Member // at the last look
	others detector.Detector
}

func newPulse(o Options) *pulse {
	return &pulse{others: detector.Detector{Dir: filepath.Dir(o.Hosts), Shared: o.Machine.Shared,
		Beats: o.Machine.Beats, Alive: o.Machine.Hosts.Alive, Log: o.Log,
		Wall: func() time.Time { return time.UnixMilli(int64(o.Replica.Now())) }}}
}

// beat sends a heartbeat for each member with a session here, and reads those of the others, when
// they are due. It returns when to call it again.
func (h *Host) beat(ctx context.Context) time.Duration {
	p := h.pulse
	now := time.Now()
	if wait := p.next.Sub(now); wait > 0 {
		return wait
	}
	var (
		t     team.Team
		beats []heartbeat.Beat
	)
	p.count++
	h.Replica.View(func(s *team.State) {
		t, p.all = s.Team(), s.AppendMembers(p.all[:0])
		for name, slot := range h.inOrder() {
			if m, ok := s.Member(name); ok && m.Incarnation == slot.incarnation {
				beats = append(beats, h.sign(s, m))
			}
		}
	})
	every := t.Timing.OrDefaults().Beat
	if err := h.Machine.Beats.Write(ctx, beats...); err != nil {
		h.Log(fmt.Sprintf("not all heartbeats were written: %v", err))
	}
	p.next = now.Add(every)
	p.others.Look(ctx, t, p.all, func(member string) bool { return h.slots[member] != nil })
	return every
}

func (h *Host) sign(s *team.State, m team.Member) heartbeat.Beat {
	b := heartbeat.Beat{Member: m.Name, At: int64(h.Replica.Now()), Context: m.Context, Status: string(m.Status),
		MessageSeq: m.DeliveredSeq, CheckpointSeq: h.covered.Load(), Session: m.Session,
		Host: h.ID, Machine: h.Machine.Name, Pid: os.Getpid(), Count: h.pulse.count, Incarnation: m.Incarnation}
	if held := s.Held(m.Name); len(held) > 0 {
		b.Task = held[0].ID
	}
	if s.Zombie(m.Name) {
		b.Status = "zombie"
	}
	if t := s.Team(); m.Name == t.Lead {
		b.Session = t.LeadSession
	}
	return b
}

// teamDir returns the team's folder.
func (h *Host) teamDir() string { return filepath.Dir(h.Hosts) }
