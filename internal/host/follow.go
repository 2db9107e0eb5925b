package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/envelope"
	"cadre/internal/render/excerpt"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// turn is what a slot knows of the current turn, and of the session's state that affects turns.
type turn struct {
	since    int64           // seq of the record at which the previous turn ended
	last     string          // the agent's last text
	task     string          // that the turn is for, even when it is completed; "" for none
	mail     []team.Message  // that it got since the last turn ended
	pending  string          // what it said at the end of the turn before the reminder of its task
	reminded map[string]bool // claims that it was reminded of
	working  bool            // the session was given a task, and no turn has ended since
	ended    bool            // no turn runs, and nothing that starts one was given since
	runs     bool            // its agent has said that the turn started, and not that it ended
	cut      bool            // an interrupt came before the turn started
	closes   bool            // the end of the turn is being recorded
	knows    map[string]bool // claims that it was told of, or that existed when a turn ended
	retries  bool            // its agent retries its model
	asked    bool            // the lead was asked for its report
	proposal string          // request of the last plan that the session proposed itself
	restate  bool            // the context was shortened
	renew    string          // why a new session continues after this turn; "" for none
	shows    bool            // its agent shows results of tools, and so whether mail behind them arrived
	opening  string          // the text that the session starts with
	openedBy string          // id of the prompt that carries or carried the opening; "" for none
}

func (s *slot) asked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.turn.asked = true
}

// restates reports whether the next prompt must repeat what a shortened context may have lost.
func (s *slot) restates() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.turn.restate
}

func (s *slot) update(change func(*turn)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.turn)
}

// follow turns the session's updates into commands, until the last update.
func (s *slot) follow(session agent.Session, started chan<- agent.Started) error {
	ctx, stop := context.WithCancel(s.ctx) // a session that has ended asks for nothing
	var asking sync.WaitGroup
	defer asking.Wait()
	defer stop()
	var end error
	for u := range session.Updates() {
		var body team.Body
		switch u := u.(type) {
		case agent.Started:
			s.begin(u)
			select {
			case started <- u:
			default:
			}
		case agent.Received:
			s.arrived(s.post.arrived(u.ID))
		case agent.NotTaken:
			s.notTaken(u.ID)
		case agent.TurnStarted:
			s.startTurn(session)
			body = &team.ReportStatus{Member: s.member, Status: team.Active, Summary: s.occupation(u.Summary)}
		case agent.Used:
			s.used(u)
		case agent.Text:
			s.answers()
			s.update(func(t *turn) { t.last = u.Text })
			s.host.Said(s.member, u.Text)
		case agent.ToolStarted:
			s.answers()
			s.uses(u)
		case agent.ToolFinished:
			s.finished(u)
		case agent.Nested:
			s.usesWithin(u)
		case agent.Compacted:
			s.update(func(t *turn) { t.restate = true })
		case agent.Retrying:
			s.retrying(u.Problem)
		case agent.TurnEnded:
			s.host.writes.answered(s.member)
			s.host.findWrites(s.ctx)
			s.endTurn(u)
		case agent.PermissionAsked:
			asking.Go(func() { s.ask(ctx, u) })
		case agent.PlanProposed:
			asking.Go(func() { s.propose(ctx, u) })
		case agent.Ended:
			end = u.Err
		}
		if body == nil || s.ctx.Err() != nil {
			continue
		}
		s.record(body)
	}
	s.usesNone(time.Now())
	return end
}

// finished notes the end of a tool's use, and which mail its result carried.
func (s *slot) finished(u agent.ToolFinished) {
	s.usedUntil(u.ID, time.Now())
	if carried := envelope.Carries(s.teamID, s.member, u.Output); len(carried) > 0 {
		s.update(func(t *turn) { t.shows = true })
		s.arrived(s.post.arrived(byTool, carried...))
	}
}

// used records what the session used, also when it ends in the middle of a turn. It records nothing
// once this host no longer has the member.
func (s *slot) used(u agent.Used) {
	task := u.Task
	if task == "" {
		task = s.works()
	}
	if s.ending() != stopQuietly {
		s.recordAtLast(&team.ReportUsage{Member: s.member, Task: task, Usage: u.Usage,
			Context: int64(min(max(u.Context, 0), 100))})
	}
}

// startTurn notes that a turn started. If an interrupt came before, when the session had no turn to
// end, it holds for this turn: the member had its task already, and no prompt.
func (s *slot) startTurn(session agent.Session) {
	cut := false
	s.update(func(t *turn) { t.ended, t.runs, cut, t.cut = false, true, t.cut, false })
	if !cut {
		return
	}
	s.host.Replica.View(func(st *team.State) {
		m, _ := st.Member(s.member) // an idle member got a message since, which starts the turn
		cut = m.Incarnation == s.incarnation && m.Interrupt != 0 && m.Status == team.Active
	})
	if cut {
		s.interrupting.Go(func() { s.endTurnOf(session) })
	}
}

// occupation returns what the member is doing, in its agent's words, or else its task.
func (s *slot) occupation(summary string) string {
	if held := s.held(); summary == "" && len(held) > 0 {
		summary = "task " + held[0].Called() + ": " + held[0].Subject
	}
	return summary[:min(len(summary), team.MaxSubject)]
}

// held returns the tasks that the member has in progress.
func (s *slot) held() (tasks []team.Task) {
	s.host.Replica.View(func(st *team.State) { tasks = st.Held(s.member) })
	return tasks
}

// works records which task the turn is for, and returns it: the task that the member holds, or else
// the last one that it held. Usage may be reported after the task is done.
func (s *slot) works() (task string) {
	held := s.held()
	s.update(func(t *turn) {
		if len(held) > 0 {
			t.task = held[0].ID
		}
		task = t.task
	})
	return task
}

// begin records that the session is running, and which mail its history has already.
func (s *slot) begin(u agent.Started) {
	s.record(&team.ReportStarted{Member: s.member, Session: u.Session})
	var there []team.Message
	s.host.Replica.View(func(st *team.State) {
		for _, m := range st.Inbox(s.member) {
			if slices.Contains(u.Seen, m.Seq) {
				there = append(there, m)
			}
		}
	})
	s.arrived(there)
}

// record sends a report to the team.
func (s *slot) record(body team.Body) {
	if err := s.report(body); err != nil {
		s.unrecorded(err)
	}
}

// unrecorded ends a session after a report that could not be recorded: its state would no longer be
// known. The next session looks into its transcript.
func (s *slot) unrecorded(err error) {
	if s.ctx.Err() == nil {
		s.host.Log("not recorded for " + s.member + ": " + err.Error())
		s.stop(stopDetach, "its work could not be recorded: "+err.Error(), s.host.StopGrace)
	}
}

// report records an action of the session.
func (s *slot) report(body team.Body) error {
	if status, ok := body.(*team.ReportStatus); ok && status.Status == team.Idle {
		s.backOff()
	}
	_, err := s.host.send(s.ctx, team.Command{Actor: team.Host(s.host.ID), Lease: s.lease, Body: inWords(body)})
	switch team.CodeOf(err) {
	case team.Rejected: // a hook makes the idle teammate continue; its feedback comes as a message
		if r, ok := errors.AsType[*replica.Rejected](err); ok {
			s.mu.Lock()
			s.calm = time.After(r.Pause())
			s.mu.Unlock()
		}
		return nil
	case team.Conflict, team.Finished, team.NotFound:
		s.stop(stopQuietly, "", s.host.StopGrace)
		return nil
	}
	return err
}

// backOff waits after a hook rejected that the member goes idle. Otherwise a session that cannot
// use the feedback would ask again at once.
func (s *slot) backOff() {
	s.mu.Lock()
	calm := s.calm
	s.calm = nil
	s.mu.Unlock()
	if calm == nil {
		return
	}
	select {
	case <-calm:
	case <-s.ctx.Done():
	}
}

// endTurn records the end of a turn. After that a new session may replace this one.
func (s *slot) endTurn(u agent.TurnEnded) {
	full := false
	defer func() {
		seq, renew := s.host.Replica.Seq(), ""
		s.update(func(t *turn) {
			t.since, t.retries, t.task, t.closes = seq, false, "", false
			if t.ended {
				renew = t.renew
			}
		})
		if renew != "" && !full {
			s.stop(stopDetach, renew, s.host.StopGrace)
		}
	}()
	if s.told { // it is reminded of them below
		s.know(s.held()...)
	}
	s.settleMail(u)
	if !s.told {
		s.wantSoon(team.WantWork) // a claim that was refused now may be accepted the next time
		s.record(&team.ReportStatus{Member: s.member, Status: team.Idle})
		s.remind()
		return
	}
	if u.Problem != nil {
		s.trouble(*u.Problem)
		return
	}
	if u.Continues {
		return
	}
	renews := false
	full = s.nearlyFull()
	text := strings.TrimSpace(u.Text)
	s.update(func(t *turn) {
		if renews = t.renew != ""; text != "" {
			t.last = u.Text
		}
		if !u.Interrupted {
			t.mail = nil
		}
	})
	why := s.handsOver(full)
	replaced := why != "" || renews // the next session continues the tasks that it holds
	if !replaced && !u.Interrupted && s.remindHeld(text) {
		return
	}
	s.giveReport(text)
	if !u.Interrupted && !replaced {
		s.failHeldTasks()
	}
	s.record(s.rests(text))
	if !renews {
		s.remind()
	}
	if why != "" {
		s.record(&team.HandOver{Member: s.member, Reason: why})
	}
}

// handsOver returns why a fresh session is to replace this one, whose turn has ended; "" for none.
func (s *slot) handsOver(full bool) string {
	switch r := s.host.Runner; {
	case full:
		return "its context is nearly full"
	case r != nil && r.Drained():
		return r.away()
	}
	return ""
}

// rests returns the report that the member is idle, after a turn with that last text.
func (s *slot) rests(text string) *team.ReportStatus {
	rests := &team.ReportStatus{Member: s.member, Status: team.Idle, Report: clip(s.takeReport(text)),
		Words: clip(text)}
	s.update(func(t *turn) { rests.Task = t.task })
	return rests
}

// takeReport returns the last text of a teammate that has not reported, of this turn or an earlier
// one.
func (s *slot) takeReport(text string) (report string) {
	if s.member != s.lead && !s.reported() {
		if report = text; report == "" {
			s.update(func(t *turn) { report = t.pending })
		}
	}
	s.update(func(t *turn) { t.pending = "" })
	return report
}

// settleMail records that the turn has ended, and which messages arrived with it.
func (s *slot) settleMail(u agent.TurnEnded) {
	shows, good := false, u.Problem == nil && !u.Interrupted
	s.update(func(t *turn) { // before others learn that it is idle
		t.working, shows, t.ended, t.closes = false, t.shows, !u.Continues, true
		t.runs, t.cut = false, false
	})
	if good {
		s.answers()
	}
	s.post.settle(!good && !shows)
	if good && !shows {
		s.arrived(s.post.arrived(byTool)) // the agent continued after the result that had them
	} else {
		s.post.back(byTool) // its result was lost, shortened, or for a subagent
	}
}

// nearlyFull reports whether the context is so full that a fresh session should replace this one.
func (s *slot) nearlyFull() (full bool) {
	s.host.Replica.View(func(st *team.State) {
		m, _ := st.Member(s.member)
		full = m.Context >= cmp.Or(st.Team().HandoverAt, team.DefaultHandoverAt) && m.Shutdown.Request == ""
	})
	return full
}

// retrying reports a trouble that the agent handles itself, once per turn. If it retries without
// success for minutes, its session ends.
func (s *slot) retrying(p agent.Problem) {
	if s.limited(p, true) {
		return
	}
	told := false
	s.update(func(t *turn) { told, t.retries = t.retries, true })
	hopeless := team.Hopeless(string(p.Kind))
	if !told || hopeless {
		s.record(&team.ReportTrouble{Member: s.member, Trouble: string(p.Kind), Text: s.wordsOf(p), Retrying: true})
	}
	if hopeless {
		s.mu.Lock()
		s.problem = p
		s.mu.Unlock()
		s.stop(stopHopeless, p.Text, s.host.StopGrace)
	}
}

// wordsOf describes a problem for people: the agent's own words, and what to do.
func (s *slot) wordsOf(p agent.Problem) string {
	const most = team.MaxSubject / 2 // leave room for the remedy
	words := excerpt.Bytes(p.Text, most, " …")
	if a, ok := s.agent.(agent.Remedier); ok {
		if remedy := a.Remedy(p.Kind); remedy != "" {
			words = strings.TrimRight(words, " .;\n") + "; " + remedy
		}
	}
	return words
}

// trouble records a turn that failed. A full context is not a failure: a fresh session continues.
func (s *slot) trouble(p agent.Problem) {
	if p.Kind == agent.ProblemContext {
		s.stop(stopFull, excerpt.FirstLine(p.Text), s.host.StopGrace)
		return
	}
	if s.limited(p, false) {
		return
	}
	s.keepLast(s.ctx) // its tasks return to the queue
	s.record(&team.ReportTrouble{Member: s.member, Trouble: string(p.Kind), Text: s.wordsOf(p)})
}

// remindHeld reminds a session that ended its turn of the task that it holds, once per claim. It
// reports whether it did.
func (s *slot) remindHeld(text string) bool {
	var held []team.Task
	s.host.Replica.View(func(st *team.State) {
		m, _ := st.Member(s.member)
		if m.Shutdown.Request == "" && m.Plan.State != "submitted" && !st.Wakes(s.member) {
			held = st.Held(s.member)
		}
	})
	for _, t := range held {
		claim := claimOf(t)
		first := false
		s.update(func(turn *turn) {
			if turn.reminded == nil {
				turn.reminded = map[string]bool{}
			}
			if first = !turn.reminded[claim]; first {
				turn.reminded[claim] = true
				if text != "" {
					turn.pending = text
				}
			}
		})
		if !first {
			continue
		}
		select {
		case s.gifts <- team.Want{Kind: wantReminder, Request: t.ID}:
			return true
		default:
		}
	}
	return false
}

// remind tells an idle session about a task that its member holds and that it does not know of.
// Another member claimed it for this one, or a call of the session was carried out after its turn
// had ended. Without a reminder the task would wait forever.
func (s *slot) remind() {
	var rests bool
	if s.update(func(t *turn) { rests = t.ended }); !rests || s.post.awaits() {
		return
	}
	var held []team.Task
	s.host.Replica.View(func(st *team.State) {
		if m, _ := st.Member(s.member); m.Incarnation == s.incarnation && m.RetryAt == 0 && m.Limited == 0 &&
			m.Shutdown.Request == "" && st.MayStart(s.member, s.host.Replica.Now()) && m.Plan.State != "submitted" {
			held = st.Held(s.member)
		}
	})
	for _, t := range held {
		if !s.knew(t) {
			select {
			case s.gifts <- team.Want{Kind: wantTask, Request: t.ID}:
				s.know(t)
			default: // it has enough to continue with
			}
			return
		}
	}
}

func claimOf(t team.Task) string { return fmt.Sprintf("%s/%d", t.ID, t.Fence) }

// know records claims that the session knows of.
func (s *slot) know(tasks ...team.Task) {
	s.update(func(turn *turn) {
		if turn.knows == nil {
			turn.knows = map[string]bool{}
		}
		for _, t := range tasks {
			turn.knows[claimOf(t)] = true
		}
	})
}

func (s *slot) knew(t team.Task) (knows bool) {
	s.update(func(turn *turn) { knows = turn.knows[claimOf(t)] })
	return knows
}

// failHeldTasks fails the tasks that the member still holds after a reminder, if the member waits
// for nothing and no agent leads that could handle them. Otherwise they would stay in progress
// forever.
func (s *slot) failHeldTasks() {
	var held []team.Task
	s.host.Replica.View(func(st *team.State) {
		lead, _ := st.Member(s.lead)
		m, _ := st.Member(s.member)
		if lead.Agent == team.External && m.Plan.State != "submitted" && m.Shutdown.Request == "" &&
			!st.Wakes(s.member) {
			held = st.Held(s.member)
		}
	})
	for _, t := range held {
		s.record(&team.FailTask{Task: t.ID, Member: s.member, Fence: t.Fence, Reason: "its turn ended, after a " +
			"reminder too, and the task was not completed"})
	}
}

// giveReport records the lead's report, if it was asked for one and began nothing new.
func (s *slot) giveReport(text string) {
	asked := false
	s.update(func(t *turn) { asked, t.asked = t.asked, false })
	if !asked || s.member != s.lead {
		return
	}
	var wanted bool
	s.host.Replica.View(func(st *team.State) { wanted = st.Team().ReportAsked })
	if wanted {
		s.record(&team.GiveReport{Text: clip(text)})
	}
}

// reported says whether the member itself reported to the lead in this turn: with a message, a
// broadcast, a plan, or the result of a task.
func (s *slot) reported() bool {
	s.mu.Lock()
	since := s.turn.since
	s.mu.Unlock()
	for r, err := range s.host.Replica.Read(s.ctx, since) {
		if err != nil {
			return false
		}
		for _, e := range r.Events {
			switch e := e.(type) {
			case *team.MessageSent:
				if e.Message.From == s.member && (e.Message.To == s.lead ||
					slices.Contains(e.Message.Recipients, s.lead)) {
					return true
				}
			case *team.TaskCompleted:
				if e.By == s.member && e.Result != "" {
					return true
				}
			case *team.TaskSubmitted:
				if e.By == s.member && e.Result != "" {
					return true
				}
			}
		}
	}
	return false
}

func clip(s string) string { return strings.ToValidUTF8(excerpt.Bytes(s, team.MaxText, ""), "") }

// inbox returns the mail for the session. The answer to a plan that it proposed itself is not part
// of that.
func (s *slot) inbox() (mail []team.Message) {
	s.mu.Lock()
	proposal := s.turn.proposal
	s.mu.Unlock()
	s.host.Replica.View(func(st *team.State) {
		// otherwise the mail is for the session that replaced this one
		if m, _ := st.Member(s.member); m.Incarnation == s.incarnation {
			mail = st.Inbox(s.member)
		}
	})
	return slices.DeleteFunc(mail, func(m team.Message) bool {
		return m.Type == team.TypePlanResponse && m.Ref == proposal && proposal != ""
	})
}
