package simtest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"cadre/internal/journal/memjournal"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// unrest lists what keeps the team from being at rest. It is empty when all is done.
func (j *judge) unrest() (why []string) {
	add := func(format string, args ...any) { why = append(why, fmt.Sprintf(format, args...)) }
	s, w := j.truth, j.w
	if !s.Exists() {
		return []string{"there is no team"}
	}
	if s.Team().Status == team.TeamAborted {
		return j.unrestOfTheEnd()
	}
	if s.Team().Status == team.TeamConsolidating {
		add("the team is brought to its end")
	}
	if t := s.Team(); t.LeadLost != 0 {
		add("no session leads since %d", t.LeadLost)
	} else if w.plan.Led && t.LeadSession == "" {
		add("no session leads yet")
	}
	for _, l := range w.leads {
		switch leads := l.session == s.Team().LeadSession; {
		case !l.of.alive && leads:
			add("session %s leads, and is dead", l.session)
		case l.of.alive && l.holds && !leads:
			add("session %s thinks that it leads", l.session)
		}
	}
	for t := range s.Tasks() {
		if t.Status != team.Completed {
			add("task %s is %s, owned by %q, blocked by %v, out of retries: %t", t.ID, t.Status, t.Owner,
				t.Blocked(), t.OutOfRetries())
		}
	}
	for _, t := range s.Unrecorded() {
		add("the work of task %s is not recorded", t.ID)
	}
	for _, p := range s.Permissions() {
		add("the request %s waits", p.Request)
	}
	for _, m := range s.Members() {
		if m.Status.Running() {
			why = append(why, j.unrestOf(m)...)
		}
	}
	for _, h := range w.hosts {
		if !h.of.alive || h.replica == nil || h.replica.Seq() != s.Seq() {
			add("%s has not seen everything", h.id())
			continue
		}
		for _, slot := range h.slots {
			if m, _ := s.Member(slot.member); m.Host != h.id() || m.Incarnation != slot.incarnation ||
				!m.Status.Running() {
				add("a session of %s runs on %s, which nothing wants", slot.member, h.id())
			}
		}
	}
	for request, of := range j.open {
		add("the request %s of %s never ended", request, of)
	}
	slices.Sort(why)
	return why
}

// unrestOf lists what keeps a running member from being at rest.
func (j *judge) unrestOf(m team.Member) (why []string) {
	add := func(format string, args ...any) { why = append(why, fmt.Sprintf(format, args...)) }
	if j.truth.Wakes(m.Name) {
		add("%s has %d messages", m.Name, len(m.Inbox))
	}
	if m.Shutdown.Request != "" {
		add("%s was to shut down (%s)", m.Name, m.Shutdown.Request)
	}
	if m.Plan.State == "submitted" {
		add("the plan %s of %s waits", m.Plan.Request, m.Name)
	}
	if m.Interrupt != 0 {
		add("%s was interrupted, and waits for a message", m.Name)
	}
	if m.Handover != "" {
		add("%s is to be handed over", m.Name)
	}
	if m.Agent == team.External {
		return why
	}
	if m.Status != team.Idle {
		add("%s is %s (%d setbacks)", m.Name, m.Status, m.Setbacks)
	}
	var h *host
	if i := slices.IndexFunc(j.w.hosts, func(h *host) bool { return h.of.alive && h.id() == m.Host }); i >= 0 {
		h = j.w.hosts[i]
	}
	switch {
	case h == nil:
		add("%s is on the host %q, which is dead", m.Name, m.Host)
	case h.slot(m.Name) == nil || h.slot(m.Name).incarnation != m.Incarnation || h.slot(m.Name).session == nil ||
		!h.slot(m.Name).session.of.alive:
		add("%s has no session on %s", m.Name, m.Host)
	case h.slot(m.Name).session.works:
		add("%s works", m.Name)
	}
	return why
}

// unrestOfTheEnd lists what is left of a team that has ended.
func (j *judge) unrestOfTheEnd() (why []string) {
	for _, h := range j.w.hosts {
		if !h.retired && (!h.of.alive || h.replica == nil || h.replica.Seq() != j.truth.Seq()) {
			why = append(why, h.id()+" has not seen that the team has ended")
			continue
		}
		for _, s := range h.slots {
			why = append(why, fmt.Sprintf("a session of %s runs on %s, and the team has ended", s.member, h.id()))
		}
	}
	for _, l := range j.w.leads {
		if l.of.alive && l.holds {
			why = append(why, fmt.Sprintf("session %s leads, and the team has ended", l.session))
		}
	}
	slices.Sort(why)
	return why
}

// punctual checks that nothing outlives its deadline, once all clocks are right and every host had
// time to come back.
func (j *judge) punctual() {
	j.alone()
	if j.truth.Team().Status == team.TeamAborted {
		return
	}
	if j.w.now < j.w.plan.Calm+slack {
		return
	}
	now := epoch + team.Time((j.w.now-slack)/time.Millisecond)
	for _, p := range j.truth.Permissions() {
		if p.Deadline < now {
			j.fail(asked, "the request %s still waits after its deadline", p.Request)
		}
	}
	for _, m := range j.truth.Members() {
		if !m.Status.Running() {
			continue
		}
		if m.Shutdown.Request != "" && m.Shutdown.Deadline < now {
			j.fail(gone, "%s still runs after its deadline (%s)", m.Name, m.Shutdown.Request)
		}
		if m.Plan.State == "submitted" && m.Plan.Deadline != 0 && m.Plan.Deadline < now {
			j.fail(asked, "the plan %s of %s still waits after its deadline", m.Plan.Request, m.Name)
		}
	}
}

// slack is the tolerated delay of a deadline: hosts start again and have to check.
const slack = 15 * time.Second

// atRest checks what is left once all is quiet.
func (j *judge) atRest() {
	for key, l := range j.mail {
		if m, _ := j.truth.Member(key.member); !l.delivered && !l.returned && !slices.Contains(m.Inbox, key.seq) {
			j.fail(notLost, "#%d waits for %s, but is in no inbox", key.seq, key.member)
		}
	}
	// A replica that loads the team from its history must see the same team as the running ones.
	ctx := context.Background()
	rep, err := replica.Open(ctx, memjournal.New("demo", j.w.disk.lines...).Open(), replica.Options{})
	if err != nil {
		j.fail(readable, "%v", err)
		return
	}
	defer rep.Close()
	var want []byte
	rep.View(func(s *team.State) { want = team.AppendSnapshot(nil, s) })
	same := func(who string, s *team.State) {
		if got := team.AppendSnapshot(nil, s); !bytes.Equal(got, want) {
			j.fail(agreed, "%s sees\n%s\nbut the history says\n%s", who, got, want)
		}
	}
	for _, h := range j.w.hosts {
		if !h.retired {
			h.view(func(s *team.State) { same(h.id(), s) })
		}
	}
}
