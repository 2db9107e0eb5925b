package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/envelope"
	"cadre/internal/agent/prompts"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// opening is the id of a session's first prompt.
const opening = "opening"

// wantReminder reminds the session of the task Request, which it still holds. The slot itself
// creates it.
const wantReminder team.WantKind = "reminder"

// wantTask tells the session of the task Request, which its member holds and it does not know of.
// The slot itself creates it.
const wantTask team.WantKind = "task"

// deliver gives the session what is wanted for it, one item after the other.
func (s *slot) deliver(ctx context.Context, session agent.Session, now agent.Access, started <-chan agent.Started) {
	select {
	case start := <-started:
		if s.told {
			s.open(ctx, session, start)
		}
	case <-ctx.Done():
		return
	}
	has := granted{now: now}
	for n := 1; ; n++ {
		var w team.Want
		select {
		case w = <-s.gifts:
		case <-ctx.Done():
		}
		if ctx.Err() != nil { // select picks either when both are ready
			return
		}
		id := fmt.Sprintf("%s-%d", w.Kind, n)
		switch w.Kind {
		case team.WantDelivery:
			s.deliverMail(ctx, session, id, w)
		case team.WantAccess:
			s.grant(ctx, session, &has)
		case team.WantWork:
			if s.renews() {
				continue // the next session takes it
			}
			if s.told {
				if !s.working() {
					s.deliverWork(ctx, session, id, "")
				}
				s.wantAgain(w.Kind) // it may have taken another task than the wanted one
			} else {
				s.hand(ctx, session, agent.Prompt{ID: id}, w.Kind)
			}
		case team.WantRetry:
			s.deliverWork(ctx, session, id, s.retry(w.Reason))
		case team.WantSave:
			s.saving.Go(func() { s.saveAlone(ctx) })
		case team.WantYield:
			if !s.requeueTasks(ctx, w.Reason) {
				s.wantSoon(w.Kind)
			}
		case wantTask:
			s.deliverTask(ctx, session, id, w.Request)
		case wantReminder:
			var text string
			s.host.Replica.View(func(st *team.State) {
				task, _ := st.Task(w.Request)
				text = prompts.Reminder(st, task)
			})
			if !s.hand(ctx, session, agent.Prompt{ID: id, Text: text}, w.Kind) {
				s.record(&team.ReportStatus{Member: s.member, Status: team.Idle})
			}
		}
	}
}

// granted is the access that a session has.
type granted struct {
	now     agent.Access
	refused *agent.Access // access that it could not be given; nil if it has the wanted one
}

// grant gives the session the access that is wanted now.
func (s *slot) grant(ctx context.Context, session agent.Session, has *granted) {
	var wanted agent.Access
	s.host.Replica.View(func(st *team.State) { wanted = s.access(st) })
	if has.refused != nil && same(wanted, *has.refused) { // an earlier want saw the same state
		return
	}
	has.refused = nil
	if !same(wanted, has.now) {
		err := session.SetAccess(ctx, wanted)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil && !errors.Is(err, errors.ErrUnsupported):
			has.refused = &wanted
			s.renewFor(wanted.Mode, err)
			return
		}
		has.now = wanted
	}
	s.update(func(t *turn) { t.renew = "" })
}

// renewFor replaces this session by a new one as soon as no turn runs. The present session cannot
// get that permission mode, and trying again would not help.
func (s *slot) renewFor(mode string, err error) {
	var rests bool
	why := fmt.Sprintf("its permission mode is now %s, and that takes a new session", mode)
	if !errors.Is(err, agent.ErrNewSession) {
		why = fmt.Sprintf("its permission mode could not be changed to %s: %v", mode, err)
	}
	s.update(func(t *turn) { t.renew, rests = why, t.ended && !t.closes })
	when := "when its turn has ended"
	if rests {
		when = "now"
	}
	s.host.Log(fmt.Sprintf("%s: %s. The new session continues with its history %s.", s.member, why, when))
	if rests {
		s.stop(stopDetach, why, s.host.StopGrace)
	}
}

// same reports whether the two give a session the same access. It ignores the rules, which never
// change while a session runs.
func same(a, b agent.Access) bool {
	return a.Mode == b.Mode && a.Writes == b.Writes && a.Gated == b.Gated
}

// renews reports whether a new session is about to replace this one.
func (s *slot) renews() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn.renew != ""
}

// deliverTask tells the session of a task that its member holds. A worker finds its tasks by
// itself.
func (s *slot) deliverTask(ctx context.Context, session agent.Session, id, task string) {
	var t team.Task
	p := agent.Prompt{ID: id}
	s.host.Replica.View(func(st *team.State) {
		if t, _ = st.Task(task); s.told {
			p.Text = prompts.Work(st, task)
		}
	})
	if t.Status != team.InProgress || t.Owner != s.member {
		return
	}
	if !s.hand(ctx, session, p, wantTask) {
		// the host's next look reminds it again
		s.update(func(turn *turn) { turn.ended = true; delete(turn.knows, claimOf(t)) })
	}
}

// hand gives the session a prompt, with the mail that waits for it. Mail that the session does not
// take stays wanted.
func (s *slot) hand(ctx context.Context, session agent.Session, p agent.Prompt, kind team.WantKind) bool {
	restates := p.Text != "" && s.restates()
	if p.Text != "" && p.Mail == nil { // the waiting mail comes in the same prompt
		mail, err := s.take(ctx, p.ID)
		if err != nil {
			s.unrecorded(err)
			return false
		}
		if len(mail) > 0 {
			p.Mail, p.Text = mail, p.Text+"\n\n"+envelope.Batch(s.teamID, s.member, mail)
			if slices.ContainsFunc(mail, asksReport) {
				s.asked()
			}
		}
	}
	if p.Text != "" {
		if first := s.unopened(p.ID); first != "" {
			p.Text = first + "\n\n" + p.Text
		}
	}
	if restates {
		s.host.Replica.View(func(st *team.State) { p.Text = prompts.Restate(st, s.member) + "\n\n" + p.Text })
	}
	s.post.handed(p.ID)
	s.update(func(t *turn) { t.ended = false })
	err := session.Give(ctx, p)
	if err == nil {
		if restates {
			s.update(func(t *turn) { t.restate = false })
		}
		return true
	}
	s.notTaken(p.ID)
	if ctx.Err() == nil {
		s.host.Log("giving " + s.member + " its " + string(kind) + ": " + err.Error())
		s.wantSoon(kind)
	}
	return false
}

// wantAgain makes the host's next look give the wants of that kind again.
func (s *slot) wantAgain(kind team.WantKind) {
	select {
	case s.again <- kind:
	default:
	}
}

// wantSoon is wantAgain, and makes the host look after a moment, even if the team does not change.
func (s *slot) wantSoon(kind team.WantKind) {
	s.wantAgain(kind)
	time.AfterFunc(lookPause, s.host.lookSoon)
}

// notTaken drops a prompt that, as the session says, will not arrive. Its mail is delivered again.
// The opening text comes before the next prompt. Tasks that it announced return to the queue with
// the turn that failed, and are announced again.
func (s *slot) notTaken(id string) {
	if s.post.back(id) {
		s.wantSoon(team.WantDelivery)
	}
	s.update(func(t *turn) {
		if id == t.openedBy {
			t.openedBy = ""
		}
	})
}

// unopened returns the opening text if it has not arrived. From now on the prompt with that id
// carries it.
func (s *slot) unopened(id string) (text string) {
	s.update(func(t *turn) {
		if t.opening != "" && t.openedBy == "" {
			text, t.openedBy = t.opening, id
		}
	})
	return text
}

// working reports whether the session works on a task that it was told of, even if it has not
// reported to be active yet. It gets no other task meanwhile.
func (s *slot) working() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn.working
}

// open gives the session its first prompt. A session without one is idle.
func (s *slot) open(ctx context.Context, session agent.Session, start agent.Started) {
	var text string
	var starts bool
	merged := MergedDir(filepath.Dir(s.host.Hosts))
	if _, err := os.Stat(merged); err != nil {
		merged = ""
	}
	s.host.Replica.View(func(st *team.State) {
		text, starts = prompts.Opening(st, s.member, start.Resumed, slices.Contains(start.Seen, 0))
		if t := st.Team(); s.member == t.Lead && t.ReportAsked && t.LastWords == "" &&
			!slices.ContainsFunc(st.Inbox(s.member), asksReport) {
			text, starts = strings.TrimSpace(text+"\n\n"+prompts.AskReport(merged)), true
			s.asked()
		}
	})
	if text != "" {
		text = envelope.Mark(s.teamID, s.member) + "\n" + text
	}
	s.update(func(t *turn) { t.opening, t.openedBy = text, opening })
	if !starts { // it comes before the next prompt
		s.update(func(t *turn) { t.openedBy = "" })
		text = ""
	}
	if !s.deliverWork(ctx, session, opening, text) {
		s.update(func(t *turn) { t.ended = true })
		s.record(&team.ReportStatus{Member: s.member, Status: team.Idle})
	}
}

// deliverWork claims the next task for the member and tells it, after any other waiting news. It
// reports whether it sent anything.
func (s *slot) deliverWork(ctx context.Context, session agent.Session, id, text string) bool {
	var rested bool
	s.update(func(t *turn) { rested, t.ended = t.ended, false }) // it is told of the task that is claimed here
	task, fence := s.claim(ctx)
	claimed := task != ""
	if claimed {
		s.know(team.Task{ID: task, Fence: fence})
		var work string
		s.host.Replica.View(func(st *team.State) {
			// It may have been completed, deleted or released since. Then there is nothing to say.
			if t, _ := st.Task(task); t.Status == team.InProgress && t.Owner == s.member && t.Fence == fence {
				work = prompts.Work(st, task)
			}
		})
		if work == "" {
			task = ""
		} else {
			s.post.take(s.assignments(task), id) // the task itself says the same
			text = strings.TrimSpace(text + "\n\n" + work)
		}
	}
	if text == "" {
		s.update(func(t *turn) { t.ended = t.ended || rested })
		if claimed && rested { // the claim made it active
			s.record(&team.ReportStatus{Member: s.member, Status: team.Idle})
		}
		s.remind() // the session may have claimed the task itself in the meantime
		return false
	}
	s.update(func(t *turn) { t.working = task != "" })
	if s.hand(ctx, session, agent.Prompt{ID: id, Text: text}, team.WantWork) {
		return true
	}
	s.update(func(t *turn) { t.working = false })
	if task != "" && ctx.Err() == nil {
		if err := s.host.do(ctx, &team.ReleaseTask{Task: task, Member: s.member, Fence: fence,
			Reason: "it could not be given to " + s.member}, s.lease); err != nil {
			s.unrecorded(err)
		}
		s.record(&team.ReportStatus{Member: s.member, Status: team.Idle})
	}
	return true
}

// assignments returns the notices in the inbox that assign this task to the member.
func (s *slot) assignments(task string) []team.Message {
	return slices.DeleteFunc(s.inbox(), func(m team.Message) bool {
		return m.Type != team.TypeTaskAssignment ||
			m.Ref != task
	})
}

// claim takes the next task for the member; "" when no task can be claimed now.
func (s *slot) claim(ctx context.Context) (task string, fence int64) {
	receipt, err := s.takeTask(ctx, &team.ClaimTask{Member: s.member}, func(body team.Body) (replica.Receipt, error) {
		return s.host.send(ctx, team.Command{Actor: team.Host(s.host.ID), Lease: s.lease, Body: body})
	})
	if err != nil {
		if team.CodeOf(err) == "" {
			s.unrecorded(err)
		}
		return "", 0
	}
	s.host.tracer.follow(ctx, receipt.Record.Events)
	claimed, ok := team.EventIn[*team.TaskClaimed](receipt.Record)
	if !ok {
		return "", 0
	}
	s.works()
	return claimed.Task, claimed.Fence
}

// deliverMail gives the session the mail that is not on its way already.
func (s *slot) deliverMail(ctx context.Context, session agent.Session, id string, w team.Want) {
	mail, err := s.take(ctx, id)
	if err != nil {
		s.unrecorded(err)
		return
	}
	loud := func(m team.Message) bool { return !m.Quiet }
	if !slices.ContainsFunc(mail, loud) { // the rest came with a tool's result meanwhile
		s.post.back(id)
		return
	}
	if slices.ContainsFunc(mail, asksReport) {
		s.asked()
	}
	s.hand(ctx, session, agent.Prompt{ID: id, Text: envelope.Batch(s.teamID, s.member, mail), Mail: mail,
		Urgent: slices.ContainsFunc(mail, interrupts)}, w.Kind)
}

// interrupts reports whether a message interrupts the session's turn. Only a person's urgent
// message does. Urgent messages of agents, and requests of the team, wait for the next tool
// boundary. They are frequent, and each interruption would cost the work of a turn.
func interrupts(m team.Message) bool {
	return m.Priority == "urgent" && m.From == team.User && (m.Type == team.TypeMessage || m.Type == team.TypeBroadcast)
}

func asksReport(m team.Message) bool { return m.Type == team.TypeSystem && m.Ref == team.ReportRef }

// take takes the mail that is neither in the session nor on its way, once it is durable. Otherwise,
// after a power loss, a message in a transcript could be taken for another one that got its number.
func (s *slot) take(ctx context.Context, carrier string) ([]team.Message, error) {
	mail := s.inbox()
	if len(mail) == 0 {
		return nil, nil
	}
	if err := s.host.Replica.Sync(ctx); err != nil {
		return nil, err
	}
	return s.post.take(mail, carrier), nil
}

// arrived records that these messages were delivered to the session.
func (s *slot) arrived(mail []team.Message) {
	if len(mail) == 0 {
		return
	}
	var seqs []int64
	for _, m := range mail {
		seqs = append(seqs, m.Seq)
	}
	s.update(func(t *turn) { t.mail = append(t.mail, mail...) })
	s.recordAtLast(&team.ReceiveMessages{Member: s.member, Seqs: seqs})
}

// recordAtLast records a fact even while the session is being ended.
func (s *slot) recordAtLast(body team.Body) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(s.ctx), giveBack)
	defer cancel()
	if err := s.host.do(ctx, body, s.lease); err != nil {
		s.unrecorded(err)
	}
}
