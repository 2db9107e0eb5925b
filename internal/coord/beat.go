package coord

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"cadre/internal/heartbeat"
	"cadre/internal/team"
)

// pulse is what a host knows of signs of life: those that it gives for its members, and those of who leads.
type pulse struct {
	beats   heartbeat.Folder
	machine string
	count   int64
	next    time.Time
	lead    heartbeat.Watch
	skewed  bool // a warning was given
}

func newPulse(teamDir string) *pulse {
	machine, _ := os.Hostname() // for people; without it the rest still tells
	return &pulse{beats: heartbeat.Of(teamDir), machine: machine}
}

// beat gives a sign of life for each member that has a session here, and looks for one of the lead, each time that it is due. It returns when to
// call it again.
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
	h.Desk.View(func(s *team.State) {
		t = s.Team()
		for name, seat := range h.seats {
			if m, ok := s.Member(name); ok && m.Incarnation == seat.incarnation {
				beats = append(beats, h.sign(s, m, now))
			}
		}
	})
	every := time.Duration(t.Timing.OrDefaults().Beat) * time.Millisecond
	for _, b := range beats {
		if err := p.beats.Write(b); err != nil {
			h.Log(fmt.Sprintf("no sign of life for %s: %v", b.Member, err))
		}
	}
	p.next = now.Add(every)
	p.lead.Every = every
	h.lookForLead(ctx, t, now)
	return every
}

func (h *Host) sign(s *team.State, m team.Member, now time.Time) heartbeat.Beat {
	b := heartbeat.Beat{Member: m.Name, At: now.UnixMilli(), Context: m.Context, Status: string(m.Status), MessageSeq: m.DeliveredSeq, CheckpointSeq: h.covered.Load(), Session: m.Session,
		Host: h.ID, Machine: h.pulse.machine, Pid: os.Getpid(), Count: h.pulse.count, Incarnation: m.Incarnation}
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

// lookForLead records that the lead is lost when it has been silent for too long.
func (h *Host) lookForLead(ctx context.Context, t team.Team, now time.Time) {
	if t.LeadSession == "" || t.LeadSession == team.User || t.LeadLost != 0 || h.seats[t.Lead] != nil {
		return
	}
	b, there, err := h.pulse.beats.Of(t.Lead)
	if err != nil {
		h.Log("no look at the lead: " + err.Error())
		return
	}
	if !there || b.Session != t.LeadSession {
		b = heartbeat.Beat{Member: t.Lead, At: int64(t.LeadSince)} // it took the lead, and was not heard of since
	}
	silent, skewed := h.pulse.lead.Look(now, b, true)
	if skewed != h.pulse.skewed {
		if h.pulse.skewed = skewed; skewed {
			h.Log(fmt.Sprintf("clock skew: the last sign of life of %s is of %s, and here it is %s; times are not trusted until that ends", t.Lead,
				time.UnixMilli(b.At).UTC().Format(time.RFC3339), now.UTC().Format(time.RFC3339)))
		}
	}
	if silent < time.Duration(t.Timing.OrDefaults().LeadLost)*time.Millisecond {
		return
	}
	if err := h.do(ctx, &team.LoseLead{Session: t.LeadSession, Since: t.LeadSince, Seen: team.Time(now.Add(-silent).UnixMilli())}, 0); err != nil {
		h.Log("not recorded that the lead is lost: " + err.Error())
	}
}

// teamDir is the folder of the team.
func (h *Host) teamDir() string { return filepath.Dir(h.Hosts) }
