package simtest

import (
	"maps"
	"time"

	realhost "cadre/internal/host"
	"cadre/internal/team"
)

// ofLead are the requests for a team that a session leads and can lose.
var ofLead = []moveKind{
	{name: "resume", weight: 9, ofLed: true, do: func(w *world, m Move) {
		w.resume(w.machines[m.A%2], m.B%3 == 0,
			m.C%5 == 0)
	}},
	{name: "release-lead", weight: 2, ofLed: true, do: func(w *world, m Move) {
		if l := w.leader(); l != nil {
			l.of.spawn("release", func(t *thread) {
				if l.replica != nil {
					l.release(t)
				}
			})
		}
	}},
	{name: "resend", weight: 5, ofLed: true, do: func(w *world, m Move) {
		w.user(func(s *team.State) team.Body {
			b := &team.ResendMessages{Member: someone(s, m.A)}
			if member, _ := s.Member(b.Member); m.B%2 == 0 {
				b.Seqs = append([]int64{}, member.Inbox...)
			}
			return b
		})
	}},
	{name: "reassign", weight: 6, ofLed: true, do: func(w *world, m Move) {
		w.cli.todo = append(w.cli.todo, func(p *person, t *thread) { p.reassign(t, m) })
		w.cli.news.ring()
	}},
	{name: "wind-down", weight: 3, do: func(w *world, m Move) {
		if m.A%2 == 0 { // with a last task, which a member was told of and has not begun
			w.user(func(s *team.State) team.Body {
				b := &team.CreateTask{Subject: "too late", Run: "true"}
				for _, m := range s.Members() {
					if m.Agent == team.Shell && m.Status.Running() {
						b.Owner = m.Name
					}
				}
				return b
			})
		}
		w.user(func(*team.State) team.Body { return &team.SetStatus{Status: team.TeamConsolidating} })
		w.at(w.now+time.Duration(m.C)*time.Millisecond, func() {
			w.user(func(*team.State) team.Body { return &team.SetStatus{Status: team.TeamActive} })
		})
	}},
	{name: "abort", weight: 1, do: func(w *world, m Move) {
		if m.B%2 == 0 { // it leaves little trace
			w.user(func(*team.State) team.Body { return &team.SetStatus{Status: team.TeamAborted, Reason: "enough"} })
		}
	}},
}

// reassign gives a task of an offline member to another member, with its saved work.
func (p *person) reassign(t *thread, m Move) {
	if p.replica.Refresh(forever) != nil {
		return
	}
	w := p.of.w
	var task team.Task
	var to string
	gone := false
	p.view(func(s *team.State) {
		var owned []team.Task
		for one := range s.Tasks() {
			if one.Owner != "" && one.Status != team.Completed {
				owned = append(owned, one)
			}
		}
		if len(owned) > 0 {
			task = owned[m.A%len(owned)]
		}
		to = someone(s, m.B)
		owner, ok := s.Member(task.Owner)
		_, lives := w.held(owner.Host)
		gone = ok && !lives
	})
	if task.Owner == "" || task.Owner == to || !gone && m.C%2 == 0 { // otherwise by force
		return
	}
	looked := w.now
	if realhost.KeepSavedIn(forever, savedNow{t}, p.replica, task.Owner) != nil {
		return
	}
	w.logf("task %s is taken from %s, for %s", task.ID, task.Owner, to)
	id := p.newID()
	w.judge.reassigned[id] = looked
	p.insist(t, team.Command{ID: id, Actor: p.name, Body: &team.UpdateTask{Task: task.ID, Owner: &to}})
}

// ofLeadFaults are the faults of leads and heartbeats.
var ofLeadFaults = []moveKind{
	{name: "kill-lead", weight: 10, ofLed: true, do: func(w *world, m Move) {
		w.after(m.B*m.C%30, w.leaderOf(), func() {
			if l := w.leader(); l != nil {
				w.logf("%s is killed", l.of.name)
				l.of.kill()
			}
		})
	}},
	{name: "stall-lead", weight: 5, ofLed: true, do: func(w *world, m Move) {
		if l := w.leader(); l != nil {
			l.of.stalled = w.now + time.Duration(m.C)*time.Millisecond
			w.logf("%s stands still for %d ms", l.of.name, m.C)
		}
	}},
	{name: "cut-lead", weight: 4, ofLed: true, do: func(w *world, m Move) {
		if l := w.leader(); l != nil {
			l.of.cut = w.now + time.Duration(m.C)*time.Millisecond
			w.logf("%s does not reach the journal for %d ms", l.of.name, m.C)
		}
	}},
	{name: "mute", weight: 4, ofLed: true, do: func(w *world, m Move) {
		p := w.hosts[m.A%len(w.hosts)].of
		if l := w.leader(); l != nil && m.B%2 == 0 {
			p = l.of
		}
		p.mute = w.now + time.Duration(m.C)*time.Millisecond
		w.logf("signs of life of %s are not seen for %d ms", p.name, m.C)
	}},
	{name: "blind", weight: 4, ofLed: true, do: func(w *world, m Move) {
		p := w.hosts[m.A%len(w.hosts)].of
		p.blind, p.eyes = w.now+time.Duration(m.C)*time.Millisecond, maps.Clone(w.beats)
		w.logf("%s sees no new signs of life for %d ms", p.name, m.C)
	}},
}

func (w *world) leaderOf() func() *process {
	return func() *process {
		if l := w.leader(); l != nil {
			return l.of
		}
		return &process{}
	}
}
