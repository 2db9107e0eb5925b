package simtest

import (
	"fmt"
	"slices"
	"time"

	"cadre/internal/team"
)

// session is the process of an agent: a model of one that turns prompts into tool calls and turns.
// Its context holds what it was told. So does its transcript, which survives when the session is
// killed.
type session struct {
	of      *process
	slot    *slot
	member  team.Member // as it was when the session was started
	context *transcript
	prompts []prompt
	news    bell
	end     bell
	works   bool             // a turn is running
	cut     bool             // that turn was interrupted, and ends at its next step
	tried   map[string]int64 // by task: the claim that a worker worked on
	last    int64            // the last message that came by a prompt
	behind  map[int64]bool   // messages that came behind the result of a tool
	failed  bool             // the last turn that ended had failed

	lastHeld int64 // the last message that had waited for a lead
}

// prompt is a text for the context.
type prompt struct {
	id    string
	opens bool // it contains the first prompt of a session
	mail  []team.Message
	tasks []team.Task
}

// transcript is what a session was told, as its agent keeps it.
type transcript struct {
	id   string
	on   *machine
	seqs []int64 // of the messages, in the order in which they came
}

// update is an update of the session for its slot.
type update struct {
	kind    updateKind
	session string
	prompt  string
	seqs    []int64 // messages that the transcript has
	text    string
	trouble string
	limit   time.Duration // after a rate limit: when the provider takes requests again; 0 if it does not say
	cut     bool          // the turn was interrupted
	tool    string
	answer  *answer
}

// byTool is the road of mail that follows the result of a tool.
const byTool = "tool"

type updateKind int

const (
	uStarted updateKind = iota
	uReceived
	uTurnStarted
	uToolFinished
	uTurnEnded
	uAsked
)

// answer is an answer that a session waits for.
type answer struct {
	given, allow bool
	bell         bell
}

// startSession starts the session of a slot. It continues the transcript of the last session if
// there is one.
func (w *world) startSession(s *slot, m team.Member) *session {
	a := &session{of: w.process(m.Name+"-session", s.host.of.on), slot: s, member: m, tried: map[string]int64{},
		behind: map[int64]bool{}}
	a.of.spawn("agent", a.run)
	return a
}

func (a *session) kill() {
	a.slot.service.end(errKilled)
	a.of.kill()
	a.end.ring()
}

func (a *session) emit(u update) {
	a.slot.service.emit(u)
}

func (a *session) run(t *thread) {
	w := a.of.w
	t.sleep(time.Duration(1+t.rng.IntN(30)) * time.Millisecond)
	old := w.transcripts[a.member.Session]
	if old != nil && old.on == a.of.on {
		a.context = &transcript{id: old.id, on: old.on, seqs: slices.Clone(old.seqs)}
	} else {
		a.context = &transcript{id: w.numbered("transcript of " + a.member.Name), on: a.of.on}
	}
	w.transcripts[a.context.id] = a.context
	w.judge.starts(a)
	a.emit(update{kind: uStarted, session: a.context.id, seqs: slices.Clone(a.context.seqs)})
	if a.slot.worker { // it looks for work by itself first
		a.works = true
		a.serve(t)
		t.step()
		a.ends(update{kind: uTurnEnded})
	}
	for {
		for len(a.prompts) == 0 {
			t.await(never, &a.news)
		}
		a.works = true
		a.turn(t)
	}
}

// ends ends the turn.
func (a *session) ends(u update) {
	if u.cut = a.cut; u.cut {
		u.trouble = ""
		a.of.w.logf("the turn of %s is cut short", a.member.Name)
	}
	a.failed = u.trouble != ""
	a.emit(u)
	a.works, a.cut = false, false
}

// told adds messages to the context.
func (a *session) told(mail []team.Message, road string) {
	for _, m := range mail {
		a.of.w.judge.reads(a, m, road)
		a.context.seqs = append(a.context.seqs, m.Seq)
	}
}

// next adds the next prompt to the context.
func (a *session) next(t *thread) prompt {
	p := a.prompts[0]
	a.prompts = a.prompts[1:]
	t.step()
	if p.opens && !slices.Contains(a.context.seqs, 0) {
		a.context.seqs = append(a.context.seqs, 0)
	}
	a.told(p.mail, "prompt")
	t.step()
	a.emit(update{kind: uReceived, prompt: p.id})
	return p
}

func (a *session) turn(t *thread) {
	p := a.next(t)
	a.emit(update{kind: uTurnStarted})
	t.sleep(time.Duration(1+t.rng.IntN(100)) * time.Millisecond)
	ok := a.of.w.calm
	if a.of.w.plan.Limits && !a.slot.worker && !a.cut && a.of.w.refuses(t) {
		wait := a.of.w.refused - a.of.w.now
		a.ends(update{kind: uTurnEnded, trouble: limited, limit: []time.Duration{0, wait, wait}[t.rng.IntN(3)]})
		return
	}
	trouble := ""
	if !ok && t.rng.IntN(20) == 0 {
		trouble = "overloaded"
	}
	if !a.cut {
		a.react(t, p.mail)
	}
	if trouble == "" && !a.slot.worker {
		a.work(t, p)
	}
	if a.slot.worker {
		a.serve(t)
	}
	// A prompt that arrives during the turn enters the context at the next tool boundary.
	for !a.cut && len(a.prompts) > 0 && t.rng.IntN(2) == 0 {
		q := a.next(t)
		a.react(t, q.mail)
		a.work(t, q)
	}
	text := ""
	if t.rng.IntN(2) == 0 {
		text = "I am done with it."
	}
	t.step()
	a.ends(update{kind: uTurnEnded, text: text, trouble: trouble})
}

// limited is the trouble of a turn that the provider refused.
const limited = "429: too many requests"

// refuses reports whether the provider refuses a request. All models share what it counts.
func (w *world) refuses(t *thread) bool {
	if w.now >= w.refused && !w.calm && t.rng.IntN(5) == 0 {
		w.refused = w.now + time.Duration(200+t.rng.IntN(3000))*time.Millisecond
	}
	return w.now < w.refused
}

// work does the tasks that the prompt named, as an agent does: not always well.
func (a *session) work(t *thread, p prompt) {
	for _, task := range p.tasks {
		if a.cut || a.plans(t) {
			return
		}
		t.sleep(time.Duration(5+t.rng.IntN(300)) * time.Millisecond)
		if t.rng.IntN(3) == 0 && !a.permitted(t) {
			continue
		}
		a.edit(t)
		if t.rng.IntN(8) == 0 || a.slot.zombie() && t.rng.IntN(2) == 0 {
			a.stuck(t)
		}
		for range t.rng.IntN(3) {
			t.sleep(time.Duration(5+t.rng.IntN(100)) * time.Millisecond)
			a.edit(t)
		}
		if a.chats(t) {
			a.call(t, &team.SendMessage{To: a.colleague(t), Body: "I am at task " + task.ID,
				Priority: []string{"", "urgent"}[t.rng.IntN(2)]})
		}
		if a.of.w.plan.Notes && !a.cut {
			a.call(t, &team.AppendNote{Key: []string{"plan", "decisions/api"}[t.rng.IntN(2)],
				Text: fmt.Sprintf("%s, at task %s: %d", a.slot.member, task.ID, a.of.w.now)})
		}
		if a.chats(t) {
			a.call(t, &team.CreateTask{Subject: "what task " + task.ID + " left", Retries: 1})
		}
		if a.cut {
			return
		}
		if a.of.w.plan.Claims && !a.of.w.calm && t.rng.IntN(4) == 0 {
			a.claimLate(time.Duration(t.rng.IntN(900)) * time.Millisecond)
		}
		switch luck := t.rng.IntN(12); {
		case a.of.w.calm || luck < 9:
			done := &team.CompleteTask{Task: task.ID, Result: []string{"", "found it"}[t.rng.IntN(2)]}
			if task.Check != nil || len(task.Schema) > 0 {
				a.completes(t, task, done.Result)
				continue
			}
			if task.Verifies != "" {
				done.Verdict, done.Result = team.Verdicts[min(1, t.rng.IntN(4)/3)], "I looked at it"
			}
			a.call(t, done)
		case luck == 9:
			a.call(t, &team.FailTask{Task: task.ID, Reason: "it does not work"})
		case luck == 10:
			a.call(t, &team.ReleaseTask{Task: task.ID, Reason: "not for me"})
		} // or it forgets
	}
}

// completes completes a task that demands something. An agent that is told what is wrong tries
// again, and gives up in the end.
func (a *session) completes(t *thread, task team.Task, otherwise string) {
	for range 1 + t.rng.IntN(4) {
		a.call(t, &team.CompleteTask{Task: task.ID, Result: resultFor(task, a.of.w.calm || t.rng.IntN(3) > 0, otherwise)})
		if a.cut || !slices.ContainsFunc(a.slot.held(), func(h team.Task) bool { return h.ID == task.ID }) {
			return
		}
		t.sleep(time.Duration(5+t.rng.IntN(100)) * time.Millisecond)
	}
}

// serve simulates an agent without a model: it takes the tasks for its member, one after the other.
func (a *session) serve(t *thread) {
	for task := a.take(t); task != nil; task = a.take(t) {
		a.tried[task.Task] = task.Fence
		t.sleep(time.Duration(5+t.rng.IntN(300)) * time.Millisecond)
		a.of.w.edited[a.member.Name]++
		switch luck := t.rng.IntN(8); {
		case a.of.w.calm || luck < 6:
			result := "exit 0"
			if is, _ := a.of.w.judge.truth.Task(task.Task); len(is.Schema) > 0 {
				result = resultFor(is, a.of.w.calm || t.rng.IntN(3) > 0, result)
			}
			a.call(t, &team.CompleteTask{Task: task.Task, Fence: task.Fence, Result: result})
		case luck == 6: // the host considers it lost, wrongly
			a.late([]team.Body{&team.CompleteTask{Task: task.Task, Fence: task.Fence, Result: "exit 0, late"},
				&team.ReleaseTask{Task: task.Task, Fence: task.Fence, Reason: "interrupted, late"}}[t.rng.IntN(2)],
				time.Duration(t.rng.IntN(900))*time.Millisecond)
			a.call(t, &team.ReleaseTask{Task: task.Task, Fence: task.Fence, Reason: "interrupted"})
		default:
			a.call(t, &team.FailTask{Task: task.Task, Fence: task.Fence, Reason: "exit 1"})
		}
		a.finish(t, task)
	}
}

// take takes the next task for a worker. It prefers a task that its member holds and that this
// session has not tried, then the next task of the list. It returns nil if there is none. The
// worker ends if it cannot get the list.
func (a *session) take(t *thread) (claimed *team.TaskClaimed) {
	if a.cut {
		return nil
	}
	a.slot.host.view(func(st *team.State) {
		for _, task := range st.Held(a.member.Name) {
			if a.tried[task.ID] != task.Fence && claimed == nil {
				claimed = &team.TaskClaimed{Task: task.ID, Member: a.member.Name, Fence: task.Fence}
			}
		}
	})
	if claimed != nil {
		return claimed
	}
	r, err := a.use(t, &team.ClaimTask{})
	if err != nil && team.CodeOf(err) == "" {
		a.kill()
		t.await(never)
	}
	if r == nil {
		return nil
	}
	for _, e := range r.Events {
		if e, ok := e.(*team.TaskClaimed); ok {
			return e
		}
	}
	return nil
}

// late calls a tool after a while, without waiting for the answer.
func (a *session) late(body team.Body, after time.Duration) {
	if a.slot.host.of.alive {
		a.slot.service.late(body, after)
	}
}

// claimLate makes a shell command of the session claim a task with the command line. The turn may
// be over by then.
func (a *session) claimLate(after time.Duration) {
	c := team.Command{Actor: a.member.Name, Incarnation: a.member.Incarnation, Body: &team.ClaimTask{}}
	if cli := a.of.w.cli; a.slot.host.of.alive && cli.of.alive && cli.replica != nil { // in a process of its own
		cli.of.spawn(a.member.Name+"/late", func(t *thread) {
			t.sleep(after)
			cli.do(t, c)
		})
	}
}

// finish releases a task whose end could not be recorded at once.
func (a *session) finish(t *thread, c *team.TaskClaimed) {
	for {
		mine := false
		a.slot.host.view(func(st *team.State) {
			task, _ := st.Task(c.Task)
			mine = task.Status == team.InProgress && task.Owner == a.member.Name && task.Fence == c.Fence
		})
		if !mine {
			return
		}
		t.sleep(200 * time.Millisecond)
		a.call(t, &team.FailTask{Task: c.Task, Fence: c.Fence, Reason: "not recorded"})
	}
}

// react responds to what the agent was told.
func (a *session) react(t *thread, mail []team.Message) {
	for _, m := range mail {
		switch m.Type {
		case team.TypeShutdownRequest:
			switch luck := t.rng.IntN(4); luck {
			case 0:
				a.call(t, &team.AnswerShutdown{Request: m.Ref, Approved: false, Reason: "not yet"})
			case 1: // no answer
			default:
				a.call(t, &team.AnswerShutdown{Request: m.Ref, Approved: true})
			}
		case team.TypePlanRequest:
			a.answerPlan(t, m)
		case team.TypePlanResponse:
			a.work(t, prompt{tasks: a.slot.held()})
		case team.TypePermissionRequest:
			if t.rng.IntN(3) > 0 {
				a.call(t, &team.AnswerPermission{Request: m.Ref, Allow: t.rng.IntN(2) == 0})
			}
		case team.TypeMessage, team.TypeBroadcast:
			if a.chats(t) && m.From != team.User && m.From != "" {
				a.call(t, &team.SendMessage{To: m.From, Body: fmt.Sprintf("as to #%d: yes", m.Seq)})
			}
		}
	}
}

func (a *session) answerPlan(t *thread, m team.Message) {
	switch {
	case a.of.w.calm || t.rng.IntN(3) == 0:
		a.call(t, &team.AnswerPlan{Request: m.Ref, Approved: true})
	case t.rng.IntN(2) == 0:
		a.call(t, &team.AnswerPlan{Request: m.Ref, Feedback: "smaller steps"})
	}
}

// plans reports whether the agent needs an approved plan first. If so, it has submitted one.
func (a *session) plans(t *thread) bool {
	writes := true
	a.slot.host.view(func(st *team.State) { writes = st.Writes(a.member.Name) })
	if writes {
		return false
	}
	var patience time.Duration
	a.slot.host.view(func(st *team.State) { p := st.Team().Permissions; patience = p.Patience() })
	if !a.of.w.calm && t.rng.IntN(6) == 0 { // it tries nevertheless
		a.edit(t)
	}
	a.call(t, &team.SubmitPlan{Plan: "first this, then that", Deadline: a.slot.host.of.clock().Add(patience)})
	return true
}

// edit changes a file if the gate allows it.
func (a *session) edit(t *thread) {
	t.step()
	if a.slot.service.spec.Gate("Edit", "{}") == nil {
		a.of.w.judge.edits(a)
		a.of.w.edited[a.member.Name]++
	}
}

// stuck simulates an agent that waits for an answer, and says so.
func (a *session) stuck(t *thread) {
	a.slot.service.act(t, &team.ReportStatus{Member: a.member.Name, Status: team.Blocked,
		Summary: "waits for an answer"})
	for patience := time.Duration(t.rng.IntN(1500)) * time.Millisecond; patience > 0 &&
		len(a.prompts) == 0; patience -= 300 * time.Millisecond {
		t.sleep(300 * time.Millisecond)
		if a.slot.zombie() && t.rng.IntN(60) > 0 { // there is no lead to answer
			patience += 300 * time.Millisecond
		}
	}
	a.emit(update{kind: uTurnStarted})
}

// permitted asks for permission to use a tool, and waits for the answer.
func (a *session) permitted(t *thread) bool {
	ask := &answer{}
	a.emit(update{kind: uAsked, tool: "Bash", answer: ask})
	for !ask.given {
		t.await(never, &ask.bell)
	}
	return ask.allow
}

// chats reports whether the agent says or plans something of its own. The number of times is
// limited.
func (a *session) chats(t *thread) bool {
	if a.of.w.calm || a.of.w.chat == 0 || t.rng.IntN(4) > 0 {
		return false
	}
	a.of.w.chat--
	return true
}

func (a *session) colleague(t *thread) (name string) {
	a.slot.host.view(func(st *team.State) {
		all := st.Recipients()
		name = all[t.rng.IntN(len(all))]
	})
	return name
}

// call uses a tool of the team. The host carries it out. The result is in the context before the
// host learns that.
func (a *session) call(t *thread, body team.Body) *team.Record {
	r, _ := a.use(t, body)
	return r
}

// use is call for an agent that handles errors.
func (a *session) use(t *thread, body team.Body) (*team.Record, error) {
	if !a.slot.host.of.alive {
		t.await(never) // no answer comes any more
	}
	record, mail, text, err := a.slot.service.act(t, body)
	if len(mail) > 0 {
		t.step()
		if a.of.w.plan.Slow {
			t.sleep(time.Duration(t.rng.IntN(60)) * time.Millisecond)
		}
		a.told(mail, byTool)
		t.step()
		a.emit(update{kind: uToolFinished, text: text})
		a.react(t, mail)
	}
	return record, err
}
