package simtest

import (
	"slices"
	"strings"
	"time"

	"cadre/internal/liveness/heartbeat"
	"cadre/internal/team"
)

// The promises about who leads, and about the work without a lead.
const (
	heard    = "no session is declared lost while its heartbeats arrive, whatever the clocks say"
	noticed  = "a lead that is gone is noticed"
	crown    = "the lead is taken only from a silent session, or when the user asks for it"
	nothing  = "a member without a lead, and a team that is winding down, starts no new task"
	held     = "messages wait while there is no lead, and are delivered afterwards, in order and once"
	rests    = "without a lead a session ends at its limit, and a blocked member returns its tasks"
	workKept = "the saved work of a task goes to the member that continues it"
	told     = "the lead is told once each time that messages are late"
	handedOn = "a reassigned task is not completed by its old owner"
)

// sight is the last heartbeat of the lead that a process saw.
type sight struct {
	beat heartbeat.Beat
	at   time.Duration // when the process saw it first
}

// heartbeatBook is what the judge knows of heartbeats.
type heartbeatBook struct {
	given  map[string]time.Duration // the last one, by the session that led
	seen   map[*process]sight
	losing map[string]int64 // by host: the last record that it knew when it found the lead lost
	taking map[string]look  // by the id of a command that takes the lead
}

// look is what a process knew when it decided who leads.
type look struct {
	by      *leading
	seq     int64         // of the last record that it knew
	silence time.Duration // for how long it had seen no new heartbeat
}

// leadBook is what the history says about the lead.
type leadBook struct {
	since  int64 // the record with which it took the lead, or came back
	lost   bool
	losses int
	late   map[mailKey]bool // messages that the lead was told are late
}

func (j *judge) lives(b heartbeat.Beat) { j.given[b.Session] = j.w.now }

func (j *judge) looks(p *process, b heartbeat.Beat) {
	if s, ok := j.heartbeatBook.seen[p]; !ok || s.beat != b {
		j.heartbeatBook.seen[p] = sight{b, j.w.now}
	}
}

// silence returns for how long no new heartbeat has arrived at the process.
func (j *judge) silence(p *process) time.Duration {
	s, ok := j.heartbeatBook.seen[p]
	if !ok {
		return 0
	}
	return j.w.now - s.at + grain // the most that the process can have measured
}

// loses checks a process that declares the lead lost.
func (j *judge) loses(p *process, at team.Team) {
	if silence, least := j.silence(p), 2*at.Timing.OrDefaults().Beat; silence < least {
		j.fail(heard, "%s declares session %s lost %s after a heartbeat of it", p.name, at.LeadSession, silence)
	}
}

// takes checks a process that decides to take the lead. The command may arrive much later.
func (j *judge) takes(id string, l *leading) {
	seq := int64(0)
	if l.replica != nil {
		seq = l.replica.Seq()
	}
	j.taking[id] = look{l, seq, j.silence(l.of)}
}

func (j *judge) leadLost(r *team.Record, e *team.LeadLost) {
	if known, ok := j.losing[strings.TrimPrefix(r.Actor, team.Host(""))]; ok && known < j.lead.since && !j.again {
		j.fail(heard, "%s declares session %s lost, because of what it saw before record %d", r.Actor,
			e.Session, j.lead.since)
	}
	j.lead.lost = true
	j.lead.losses++
}

func (j *judge) leadAttached(r *team.Record, e *team.LeadAttached) {
	defer func() { j.lead.since, j.lead.lost = r.Seq, false }()
	had := j.truth.Team().LeadSession
	in, ours := j.intentions[r.ID]
	b, ok := in.Body.(*team.AttachLead)
	if !ours || !ok || j.again || had == "" || had == team.User || had == e.Session || b.TakeOver ||
		j.truth.Team().LeadLost != 0 {
		return
	}
	i := slices.IndexFunc(j.w.leads, func(l *leading) bool { return l.session == had && l.of.alive })
	if i < 0 || strings.HasPrefix(r.ID, j.w.leads[i].of.name+"-") { // it is dead, or leaves by itself
		return
	}
	switch took, ok := j.taking[r.ID]; {
	case !ok:
		j.fail(crown, "%s took the lead from the running session %s", r.ID, had)
	case took.seq < j.lead.since:
		j.fail(crown, "%s took the lead from the running session %s for %s, because of what it saw before record %d",
			took.by.of.name, had, e.Session, j.lead.since)
	case took.silence < 2*j.w.plan.Timing.Beat:
		j.fail(crown, "%s took the lead from the running session %s for %s, %s after a heartbeat of it",
			took.by.of.name, had, e.Session, took.silence)
	}
}

// waits reports whether the message is held because there is no lead.
func (j *judge) waits(l *mailBook) bool { return j.lead.lost && l.held == j.lead.losses }

// waiting returns all messages that wait for the member, held or not.
func (j *judge) waiting(m team.Member) (all []team.Message) {
	for _, seq := range m.Inbox {
		if l := j.mail[mailKey{m.Name, seq}]; l != nil {
			all = append(all, l.message)
		}
	}
	return all
}

// lateness checks what the lead is told about messages that wait for a long time.
func (j *judge) lateness(r *team.Record) {
	marked, notice := false, false
	for _, e := range r.Events {
		switch e := e.(type) {
		case *team.MessagesLate:
			marked = true
			for _, seq := range e.Seqs {
				key := mailKey{e.Member, seq}
				if j.lead.late[key] {
					j.fail(told, "#%d for %s is late again, but was not sent again", seq, e.Member)
				}
				if l := j.mail[key]; l == nil || l.delivered || l.returned || j.waits(l) {
					j.fail(told, "#%d does not wait for %s, but is marked late", seq, e.Member)
				}
				j.lead.late[key] = true
			}
		case *team.MessagesResent:
			for _, seq := range e.Seqs {
				delete(j.lead.late, mailKey{e.Member, seq})
			}
			if len(r.Events) > 1 {
				j.fail(onceGiven, "messages for %s were sent again with other ids", e.Member)
			}
		case *team.MessageSent:
			notice = notice || e.Message.Type == team.TypeSystem && e.Message.From == "" &&
				strings.HasPrefix(e.Message.Body, "Not delivered to ")
		}
	}
	if _, resends := j.intentions[r.ID].Body.(*team.ResendMessages); resends {
		for _, e := range r.Events {
			if _, ok := e.(*team.MessagesResent); !ok {
				j.fail(onceGiven, "a message that is sent again became a %T", e)
			}
		}
	}
	if marked != notice {
		j.fail(told, "record %d marks messages as late: %t; it tells the lead: %t", r.Seq, marked, notice)
	}
}

// overwrites checks the replacement or removal of a file of saved work.
func (j *judge) overwrites(member string, old, by savedWork) {
	if old.Task == by.Task && old.Done <= by.Done {
		return
	}
	if t := j.tasks[old.Task]; t != nil && t.onlyFor == member && !j.isKept(member, old) {
		j.fail(workKept, "the work that %s saved of task %s (%d changes) is removed, but not kept", member,
			old.Task, old.Done)
	}
}

// newer checks that saved work that is kept with a task does not replace newer work.
func (j *judge) newer(e *team.WorkSaved) {
	t, _ := j.truth.Task(e.Task)
	if t.Saved == nil || t.Saved.Member != e.Saved.Member || t.Status == team.Completed {
		return
	}
	if had, has := changesOf(t.Saved.Diff), changesOf(e.Saved.Diff); has < had {
		j.fail(workKept, "task %s: work with %d changes of %s replaces work with %d", e.Task, has, e.Saved.Member, had)
	}
}

// outdated reports whether the slot has yet to learn that it lost its member or the task.
func (j *judge) outdated(s *slot, task string) bool {
	m, _ := j.truth.Member(s.member)
	t := j.tasks[task]
	return m.Lease != s.lease || t == nil || t.status != team.InProgress || t.holder != s.member
}

// begins checks that a member that continues a task gets the work that others saved of it.
func (j *judge) begins(id, member string) {
	t := j.tasks[id]
	for _, other := range sortedKeys(j.w.saved) {
		if f := j.w.saved[other]; f.Task == id && t.onlyFor == other && other != member &&
			!j.isKept(other, f) && !j.again {
			j.fail(workKept, "%s continues task %s, but the work that %s saved (%d changes) is not kept with it",
				member, id, other, f.Done)
		}
	}
	t.onlyFor, t.looked = member, 0
}

// isKept reports whether the task has the work that the member saved, or does not need it. It does
// not need work that arrived after the reassigning command had looked for it.
func (j *judge) isKept(member string, f savedWork) bool {
	if book := j.tasks[f.Task]; book != nil && book.looked != 0 && f.when > book.looked {
		return true
	}
	t, ok := j.truth.Task(f.Task)
	var done int
	if t.Saved != nil && t.Saved.Member == member {
		done = changesOf(t.Saved.Diff)
	}
	return !ok || f.Done == 0 || f.stale || t.Status == team.Completed || t.Status == team.Deleted || done >= f.Done ||
		j.truth.Team().Status == team.TeamAborted
}

// alone checks, once all clocks are right, that nothing is overdue in a team that has lost its
// lead, or should have noticed the loss.
func (j *judge) alone() {
	const slack = 4 * time.Second
	calm := j.w.plan.Calm
	t := j.truth.Team()
	timing := t.Timing.OrDefaults()
	overdue := func(due team.Time) bool {
		return j.w.now > max(calm, time.Duration(due-epoch)*time.Millisecond)+slack
	}
	if t.Status == team.TeamAborted || !j.w.plan.Led {
		return
	}
	if t.LeadLost == 0 {
		j.unheard(t, calm+slack)
	}
	for _, m := range j.truth.Members() {
		if !m.Status.Running() {
			continue
		}
		for _, msg := range j.truth.Inbox(m.Name) {
			due := max(msg.SentAt, msg.ResentAt, t.LeadSince).Add(timing.Undelivered)
			if t.LeadLost == 0 && m.Name != t.Lead && !msg.Quiet && overdue(due) && !slices.Contains(m.Late, msg.Seq) {
				j.fail(told, "#%d waits for %s, but the lead was not told of that", msg.Seq, m.Name)
			}
		}
		if t.LeadLost == 0 || m.Name == t.Lead || m.Shutdown.Request != "" {
			continue
		}
		if overdue(t.LeadLost.Add(timing.Zombie)) {
			for _, h := range j.w.hosts {
				if s := h.slot(m.Name); s != nil && s.incarnation == m.Incarnation && s.session != nil &&
					s.session.of.alive {
					j.fail(rests, "%s still runs, but there has been no lead since %d", m.Name, t.LeadLost)
				}
			}
		}
		if m.Status == team.Blocked && len(j.truth.Held(m.Name)) > 0 &&
			overdue(max(m.Since, t.LeadLost).Add(timing.Blocked)) {
			j.fail(rests, "%s has been blocked since %d without a lead, but keeps its task", m.Name, m.Since)
		}
	}
}

// unheard checks whether a host should have noticed that the lead is gone. The time counts from the
// start of the first host.
func (j *judge) unheard(t team.Team, after time.Duration) {
	if t.LeadSession == "" || t.LeadSession == team.User {
		return
	}
	timing := t.Timing.OrDefaults()
	if !slices.ContainsFunc(j.w.hosts, func(h *host) bool { return h.of.alive }) {
		return
	}
	last := max(after, j.w.booted, j.given[t.LeadSession], time.Duration(t.LeadSince-epoch)*time.Millisecond)
	if j.w.now > last+timing.LeadLost+3*timing.Beat+time.Second {
		j.fail(noticed, "session %s has sent no heartbeat since %s, but is not declared lost", t.LeadSession,
			j.given[t.LeadSession])
	}
}
