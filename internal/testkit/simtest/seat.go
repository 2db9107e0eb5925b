package simtest

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cadre/internal/team"
)

// seat is one session that a host runs, from taking its lease to its last report. It goes on like
// the seats of package host.
type seat struct {
	host               *host
	member, lead       string
	incarnation, lease int64
	worker             bool // its agent takes tasks from the list by itself
	session            *session
	service            *service // as a real host has it; nil for a played one

	gifts   []team.Want
	given   map[team.WantKind]string
	way     map[int64]string // messages by what carries them into the context, or here
	unclear map[int64]bool   // the tool that carries it may be one of this turn, or of the next
	handed  map[string]bool  // prompts that are not in the context yet, so far as it has heard
	nudged  map[string]bool
	working bool            // it was told of a task, and no turn ended since
	ended   bool            // no turn runs, and nothing was given since that begins one
	knows   map[string]bool // claims that it was told of, or that were there when a turn ended
	asked   bool            // the lead was asked for its report
	prompts int

	updates []update
	news    bell // an update, a gift, or the end
	how     ending
	why     string
	asking  []*thread
	saving  []*thread

	savedFile bool // a thread is about to write what is saved
	fileFree  bell
	keeping   bool // a thread saves and keeps
	keepFree  bell
}

type ending int

const (
	runs        ending = iota
	stopReport         // it was to end: the member is stopped
	stopDetach         // it is not wanted here now
	stopFresh          // a fresh session is to go on for it
	stopRest           // it waits for a lead: its tasks go back on the list
	stopQuietly        // it is not ours any more
	ended              // by itself
)

const (
	byTool                  = "tool"
	here                    = "here"
	wantNudge team.WantKind = "nudge"
	wantTask  team.WantKind = "task"
)

func (h *host) sit(m team.Member) {
	s := &seat{host: h, member: m.Name, incarnation: m.Incarnation, lease: m.Lease, worker: m.Agent == team.Shell,
		given: map[team.WantKind]string{}, way: map[int64]string{}, unclear: map[int64]bool{},
		handed: map[string]bool{}, nudged: map[string]bool{}, knows: map[string]bool{}}
	h.view(func(st *team.State) { s.lead = st.Team().Lead })
	h.seats = append(h.seats, s)
	h.nextBeat = 0 // the first sign of life at once
	h.of.spawn(m.Name, func(t *thread) { s.run(t, m) })
}

// stop asks the seat to end its session; the first reason counts.
func (s *seat) stop(how ending, why string) {
	if s.how == runs {
		s.how, s.why = how, why
		s.news.ring()
	}
}

func (s *seat) give(w team.Want) {
	if s.given[w.Kind] != w.Key {
		s.given[w.Kind] = w.Key
		if strings.Contains(w.Key, "/again-") && s.host.of.w.bug("again-anew") {
			clear(s.way)
		}
		s.gifts = append(s.gifts, w)
		s.news.ring()
	}
}

func (s *seat) run(t *thread, m team.Member) {
	t.step()
	s.session = s.host.of.w.startSession(s, m)
	giver := s.host.of.spawn(s.member+"/give", s.deliver)
	s.follow(t)
	giver.end()
	for _, a := range slices.Concat(s.asking, s.saving) {
		a.end()
	}
	t.step()
	if s.how == stopReport || s.how == stopDetach || s.how == stopFresh || s.how == stopRest {
		t.step() // the friendly part of the end
	}
	s.session.kill()
	t.step()
	kept := true
	if s.how == stopRest {
		kept = s.putDown(t, s.why)
	} else if s.how != stopQuietly {
		kept = s.keepLast(t)
	}
	if body := s.epitaph(); body != nil && kept {
		if err := s.host.report(t, body, s.lease); err != nil {
			s.host.of.w.logf("not recorded that %s ended: %v", s.member, err)
		}
	}
	s.host.vacate(s)
}

// epitaph is what is reported of the session that is over; nil for nothing.
func (s *seat) epitaph() team.Body {
	switch s.how {
	case stopReport:
		return &team.ReportStopped{Member: s.member, Reason: s.why}
	case stopDetach, stopRest:
		return &team.DetachMember{Member: s.member, Reason: s.why}
	case stopFresh:
		return &team.DetachMember{Member: s.member, Reason: s.why, Fresh: true, Note: "Go on."}
	case stopQuietly:
		return nil
	}
	if s.worker && s.member != s.lead {
		return &team.ReportFailed{Member: s.member, Reason: s.why}
	}
	return &team.ReportTrouble{Member: s.member, Trouble: "crash", Text: s.why, Gone: true}
}

// unrecorded ends a session of which something could not be recorded: nobody could tell any more
// what it has and what it did. The next one looks into its transcript.
func (s *seat) unrecorded(err error) {
	if !s.host.of.w.bug("report-dropped") {
		s.stop(stopDetach, "not recorded: "+err.Error())
	}
}

// record sends a report of the session.
func (s *seat) record(t *thread, body team.Body) {
	_, err := s.host.do(t, team.Command{Actor: team.Host(s.host.id()), Lease: s.lease, Body: body})
	switch team.CodeOf(err) {
	case team.Conflict, team.Finished, team.NotFound:
		s.stop(stopQuietly, "")
	case "":
		if err != nil {
			s.unrecorded(err)
		}
	}
}

// follow turns the session's updates into commands until the session, or the seat, is over.
func (s *seat) follow(t *thread) {
	for s.how == runs {
		if len(s.updates) == 0 {
			if s.session.of.alive {
				t.await(never, &s.news, &s.session.end)
			} else {
				s.stop(ended, "its session ended by itself")
			}
			continue
		}
		u := s.updates[0]
		s.updates = s.updates[1:]
		switch u.kind {
		case uStarted:
			s.begin(t, u)
		case uReceived:
			delete(s.handed, u.prompt)
			s.received(t, s.carried(u.prompt))
		case uTurnStarted:
			s.ended = false
			s.record(t, &team.ReportStatus{Member: s.member, Status: team.Active})
		case uBlocked:
			s.record(t, &team.ReportStatus{Member: s.member, Status: team.Blocked, Summary: "waits for an answer"})
		case uToolFinished:
			s.received(t, s.carried(byTool, u.seqs...))
		case uTurnEnded:
			s.endTurn(t, u)
		case uAsked:
			s.asking = append(s.asking, s.host.of.spawn(s.member+"/ask", func(t *thread) { s.ask(t, u) }))
		}
	}
}

// begin records that the session runs, and which mail is in its history already.
func (s *seat) begin(t *thread, u update) {
	s.record(t, &team.ReportStarted{Member: s.member, Session: u.session})
	var there []int64
	if !s.host.of.w.bug("receipts-ignored") {
		for _, m := range s.inbox() {
			if slices.Contains(u.seqs, m.Seq) {
				there = append(there, m.Seq)
			}
		}
	}
	s.received(t, there)
	s.gifts = append([]team.Want{{Kind: "opening"}}, s.gifts...)
	s.news.ring()
}

// received records that the session has these messages.
func (s *seat) received(t *thread, seqs []int64) {
	if len(seqs) == 0 {
		return
	}
	_, err := s.host.do(t, team.Command{Actor: team.Host(s.host.id()), Lease: s.lease,
		Body: &team.ReceiveMessages{Member: s.member, Seqs: seqs}})
	if err != nil && team.CodeOf(err) == "" {
		s.unrecorded(err)
	}
}

// carried returns what that carrier had; with only, no more than these.
func (s *seat) carried(carrier string, only ...int64) []int64 {
	var seqs []int64
	for seq, by := range s.way {
		if by == carrier && (len(only) == 0 && !s.unclear[seq] || slices.Contains(only, seq)) {
			seqs = append(seqs, seq)
			s.way[seq] = here
			if s.host.of.w.bug("arrival-forgotten") {
				delete(s.way, seq)
			}
		}
	}
	slices.Sort(seqs)
	return seqs
}

// back takes back what that carrier had.
func (s *seat) back(carrier string) {
	maps.DeleteFunc(s.way, func(_ int64, by string) bool { return by == carrier })
}

// take takes the mail that is neither in the session nor on its way, once it is durable. It is on
// its way from now on.
func (s *seat) take(carrier string) (mail []team.Message) {
	mail = s.inbox()
	if len(mail) == 0 {
		return nil
	}
	if !s.host.of.w.bug("unsynced-given") {
		if err := s.host.replica.Sync(forever); err != nil {
			s.unrecorded(err)
			return nil
		}
	}
	return slices.DeleteFunc(mail, func(m team.Message) bool {
		if s.way[m.Seq] != "" && !s.host.of.w.bug("way-forgotten") {
			return true
		}
		s.way[m.Seq] = carrier
		s.unclear[m.Seq] = carrier == byTool && len(s.handed) > 0 && !s.host.of.w.bug("turns-mixed")
		return false
	})
}

func (s *seat) inbox() (mail []team.Message) {
	s.host.view(func(st *team.State) {
		if m, _ := st.Member(s.member); m.Incarnation == s.incarnation || s.host.of.w.bug("replaced-reads") {
			mail = st.Inbox(s.member)
		}
		if s.host.of.w.bug("held-given") && st.Team().LeadLost != 0 {
			m, _ := st.Member(s.member)
			mail = s.host.of.w.judge.letters(m)
		}
	})
	if s.host.of.w.bug("clock-order") {
		slices.SortStableFunc(mail, func(a, b team.Message) int { return int(a.SentAt - b.SentAt) })
	}
	return mail
}

func (s *seat) held() (tasks []team.Task) {
	s.host.view(func(st *team.State) { tasks = st.Held(s.member) })
	return tasks
}

// deliver gives the session what it is wanted to have, one thing after the other.
func (s *seat) deliver(t *thread) {
	for begun := false; ; {
		i := slices.IndexFunc(s.gifts, func(w team.Want) bool { return begun || w.Kind == "opening" })
		if i < 0 {
			t.await(never, &s.news)
			continue
		}
		w := s.gifts[i]
		s.gifts = slices.Delete(s.gifts, i, i+1)
		begun = true
		s.prompts++
		s.hand(t, w, fmt.Sprintf("%s-%d", w.Kind, s.prompts))
	}
}

// hand gives the session one thing.
func (s *seat) hand(t *thread, w team.Want, id string) {
	p := prompt{id: id, kind: w.Kind}
	switch w.Kind {
	case team.WantDelivery:
		mail := s.take(id)
		if !slices.ContainsFunc(mail, func(m team.Message) bool { return !m.Quiet }) {
			s.back(id) // the rest came with the result of a tool meanwhile
			return
		}
		p.mail = mail
		s.asked = s.asked || slices.ContainsFunc(mail, func(m team.Message) bool { return m.Ref == team.ReportRef })
	case team.WantAccess:
		return // the gate is asked before every tool
	case team.WantSave:
		s.saving = append(s.saving, s.host.of.spawn(s.member+"/save", s.saveAlone))
		return
	case team.WantYield:
		if !s.host.of.w.bug("never-yields") && !s.putDown(t, w.Reason) && !s.host.of.w.bug("yields-once") {
			s.wantSoon(w.Kind)
		}
		return
	case "opening":
		if s.worker {
			s.ended = true
			s.record(t, &team.ReportStatus{Member: s.member, Status: team.Idle})
			s.remind()
			return
		}
		p.tasks = s.held()
		s.claim(t, &p)
		if len(p.tasks) == 0 {
			s.ended = true
			s.record(t, &team.ReportStatus{Member: s.member, Status: team.Idle})
			return
		}
	case team.WantWork, team.WantRetry:
		if s.worker {
			break
		}
		if w.Kind == team.WantWork && !s.host.of.w.bug("work-once") {
			delete(s.given, w.Kind) // it may take another task than the one that was wanted
			if s.working {
				return
			}
		}
		p.tasks = s.held()
		rested := s.ended
		s.ended = false // what is claimed here it is told of
		claimed := s.claim(t, &p)
		if len(p.tasks) == 0 && w.Kind == team.WantWork {
			s.ended = s.ended || rested
			if claimed && rested { // the claim made it active
				s.record(t, &team.ReportStatus{Member: s.member, Status: team.Idle})
			}
			if !s.host.of.w.bug("claimed-meanwhile") {
				s.remind()
			}
			return
		}
		s.working = true
	case wantNudge, wantTask:
		if p.tasks = s.held(); len(p.tasks) == 0 && w.Kind == wantTask {
			return
		}
	}
	t.step()
	s.handed[id], s.ended = true, false
	s.session.prompts = append(s.session.prompts, p)
	s.session.news.ring()
	if s.host.of.w.bug("given-is-received") && len(p.mail) > 0 {
		s.received(t, s.carried(id))
	}
}

// claim takes the next task of the list for the member, and reports whether there was one. It may
// be gone again.
func (s *seat) claim(t *thread, p *prompt) (claimed bool) {
	r, err := s.host.do(t, team.Command{Actor: team.Host(s.host.id()), Lease: s.lease,
		Body: &team.ClaimTask{Member: s.member}})
	if err != nil && team.CodeOf(err) == "" {
		s.unrecorded(err)
	}
	if err == nil && r.Record != nil {
		s.host.followTrace(t, r.Record)
		p.tasks = s.held()
		s.know(p.tasks)
		return true
	}
	return false
}

// endTurn records what came of a turn.
func (s *seat) endTurn(t *thread, u update) {
	s.working = false
	if !s.worker {
		s.know(s.held())
	}
	s.ended = true
	if len(s.handed) == 0 { // else the session may be in its next turn, whose tools carry mail too
		clear(s.unclear)
	}
	s.received(t, s.carried(byTool))
	switch {
	case s.worker:
		if !s.host.of.w.bug("worker-once") {
			delete(s.given, team.WantWork) // what it was not allowed to begin then, it may be the next time
		}
		s.record(t, &team.ReportStatus{Member: s.member, Status: team.Idle})
		s.remind()
		return
	case u.trouble != "":
		s.keepLast(t)
		s.record(t, &team.ReportTrouble{Member: s.member, Trouble: "model", Text: u.trouble})
		return
	}
	var idle []team.Task
	s.host.view(func(st *team.State) {
		m, _ := st.Member(s.member)
		if m.Shutdown.Request == "" && m.Plan.State != "submitted" && !st.Wakes(s.member) {
			idle = st.Held(s.member)
		}
	})
	for _, task := range idle {
		if claim := claimed(task); !s.nudged[claim] {
			s.nudged[claim] = true
			s.gifts = append(s.gifts, team.Want{Kind: wantNudge})
			s.news.ring()
			return
		}
	}
	if s.asked && s.member == s.lead {
		s.asked = false
		s.record(t, &team.GiveReport{Text: "all is done"})
	}
	external := false
	s.host.view(func(st *team.State) { m, _ := st.Member(s.lead); external = m.Agent == team.External })
	for _, task := range idle {
		if external {
			s.record(t, &team.FailTask{Task: task.ID, Member: s.member, Fence: task.Fence,
				Reason: "it was not completed"})
		}
	}
	s.record(t, &team.ReportStatus{Member: s.member, Status: team.Idle, Report: u.text})
	s.remind()
}

// remind has a session that rests told of a task that its member holds and that it does not know
// of.
func (s *seat) remind() {
	if !s.ended || len(s.handed) > 0 || s.host.of.w.bug("late-claim") {
		return
	}
	var held []team.Task
	s.host.view(func(st *team.State) {
		if m, _ := st.Member(s.member); m.Incarnation == s.incarnation && m.RetryAt == 0 && m.Shutdown.Request == "" &&
			m.Plan.State != "submitted" {
			held = st.Held(s.member)
		}
	})
	for _, task := range held {
		if !s.knows[claimed(task)] {
			s.gifts = append(s.gifts, team.Want{Kind: wantTask})
			s.know(held)
			s.news.ring()
			return
		}
	}
}

func claimed(task team.Task) string { return fmt.Sprintf("%s/%d", task.ID, task.Fence) }

func (s *seat) know(tasks []team.Task) {
	for _, task := range tasks {
		s.knows[claimed(task)] = true
	}
}

// wantSoon has what is wanted of that kind given once more, after a moment.
func (s *seat) wantSoon(kind team.WantKind) {
	w := s.host.of.w
	w.at(w.now+lookPause, func() {
		delete(s.given, kind)
		s.host.bell.ring()
	})
}

// lookPause keeps what is refused again and again from making a host busy.
const lookPause = time.Second

// ask puts the session's request before the team and gives it the answer, whichever way the request
// ends.
func (s *seat) ask(t *thread, u update) {
	answer := func(allow bool) { u.answer.given, u.answer.allow = true, allow; u.answer.bell.ring() }
	var patience team.Time
	s.host.view(func(st *team.State) { p := st.Team().Permissions; patience = p.Patience() })
	r, err := s.host.do(t, team.Command{Actor: team.Host(s.host.id()), Lease: s.lease,
		Body: &team.RequestPermission{Member: s.member, Tool: u.tool, Input: "{}",
			Deadline: s.host.of.clock() + patience}})
	if err != nil || r.Record == nil {
		answer(false)
		return
	}
	request := ""
	for _, e := range r.Record.Events {
		if e, ok := e.(*team.PermissionRequested); ok {
			request = e.Permission.Request
		}
	}
	for r, err := range s.host.replica.Watch(forever, r.Record.Seq-1) {
		if err != nil {
			answer(false)
			return
		}
		for _, e := range r.Events {
			if e, ok := e.(*team.PermissionAnswered); ok && e.Request == request {
				answer(e.Outcome == "allowed")
				return
			}
		}
	}
}

// act carries a tool of the session out, in the name of its member, and returns the mail that
// stands behind the result.
func (s *seat) act(t *thread, body team.Body) (*team.Record, []team.Message, error) {
	if s.how != runs {
		return nil, nil, errors.New("the session is ending")
	}
	r, err := s.host.do(t, team.Command{Actor: s.member, Incarnation: s.incarnation, Body: body})
	if err == nil {
		s.host.followTrace(t, r.Record)
	}
	var mail []team.Message
	if !s.worker && s.how == runs {
		mail = s.take(byTool)
	}
	return r.Record, mail, err
}
