package host_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agent/envelope"
	"cadre/internal/host"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// modelled starts a host for members that are told of their tasks, and gives the test each session
// as it starts.
func modelled(s *stage, change ...func(*host.Options)) <-chan *session {
	sessions := make(chan *session, 8)
	s.start("h1", model(func(m *session) error {
		m.started = make(chan agent.Started)
		m.end = make(chan error)
		sessions <- m
		m.updates <- <-m.started
		select {
		case <-m.stop:
			return nil
		case err := <-m.end:
			return err
		}
	}), append([]func(*host.Options){func(o *host.Options) { o.StopGrace = time.Second }}, change...)...)
	return sessions
}

func next(t *testing.T, sessions <-chan *session) *session {
	t.Helper()
	select {
	case m := <-sessions:
		return m
	case <-time.After(10 * time.Second):
		t.Fatal("no session was started within 10 s")
		return nil
	}
}

// given returns the next prompt, which the session acknowledges.
func (s *session) given(t *testing.T) agent.Prompt {
	t.Helper()
	p := s.peek(t)
	s.taken <- p.ID
	return p
}

// told takes prompts until one has these words.
func (s *session) told(t *testing.T, words string) {
	t.Helper()
	for !strings.Contains(s.given(t).Text, words) {
	}
}

func (s *session) peek(t *testing.T) agent.Prompt {
	t.Helper()
	select {
	case p := <-s.prompts:
		return p
	case <-time.After(10 * time.Second):
		t.Fatal("the session got no prompt within 10 s")
		return agent.Prompt{}
	}
}

// turn runs a turn: it takes a prompt, calls tools, and ends with the text.
func (s *session) turn(t *testing.T, text string, calls ...func()) agent.Prompt {
	t.Helper()
	p := s.given(t)
	s.updates <- agent.TurnStarted{}
	for _, call := range calls {
		call()
	}
	s.updates <- agent.TurnEnded{Text: text}
	return p
}

func (s *session) call(t *testing.T, tool, input string) string {
	t.Helper()
	text, failed := s.Tools.Call(t.Context(), tool, json.RawMessage(input))
	if failed {
		t.Errorf("%s failed: %s", tool, text)
	}
	return text
}

func mailOf(st *team.State, member, kind string) (bodies []string) {
	for _, m := range st.Inbox(member) {
		if m.Type == kind {
			bodies = append(bodies, m.Body)
		}
	}
	return bodies
}

func (s *stage) inbox(member, kind string) (bodies []string) {
	s.t.Helper()
	if err := s.Refresh(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.View(func(st *team.State) { bodies = mailOf(st, member, kind) })
	return bodies
}

// TestAModelWorks checks that a member is told of its task, does it, and goes idle. Its result is
// its report.
func TestAModelWorks(t *testing.T) {
	t.Parallel()
	s := newStage(t, &team.SpawnMember{Name: "ann", Agent: "scripted", Prompt: "You test."},
		&team.CreateTask{Subject: "Look", Description: "everywhere"})
	ann := next(t, modelled(s))
	ann.started <- agent.Started{Session: "s-1"}
	p := ann.turn(t, "Looked.", func() {
		ann.call(t, "TaskUpdate",
			`{"taskId":"1","status":"completed","result":"nothing there"}`)
	})
	for _, part := range []string{"You test.", "Task 1 is yours now: \"Look\"", "everywhere"} {
		if !strings.Contains(p.Text, part) {
			t.Errorf("it was not told %q:\n%s", part, p.Text)
		}
	}
	s.untilStatus("ann", team.Idle)
	if task := s.task("1"); task.Status != team.Completed || task.CompletedBy != "ann" {
		t.Errorf("the task is %+v", task)
	}
	if idle := s.inbox("lead", team.TypeIdle); len(idle) != 1 || strings.Contains(idle[0], "Looked.") {
		t.Errorf("the lead was told %q", idle)
	}
}

// now returns the member's present state.
func (s *stage) now(name string) team.Member {
	s.t.Helper()
	if err := s.Refresh(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	return s.member(name)
}

func (s *stage) task(id string) (task team.Task) {
	s.t.Helper()
	if err := s.Refresh(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	s.View(func(st *team.State) { task, _ = st.Task(id) })
	return task
}

// TestTheLastText checks that a turn that ends without a report sends its last text to the lead,
// once. A second idle report sends nothing.
func TestTheLastText(t *testing.T) {
	t.Parallel()
	s := newStage(t, &team.SpawnMember{Name: "ann", Agent: "scripted", Prompt: "Look."})
	ann := next(t, modelled(s))
	ann.started <- agent.Started{}
	ann.turn(t, "It is done, I think.")
	s.untilStatus("ann", team.Idle)
	if got := s.inbox("lead", team.TypeIdle); len(got) != 1 || got[0] != "It is done, I think." {
		t.Errorf("the lead was told %q", got)
	}
	s.do("lead", &team.SendMessage{To: "ann", Body: "Thanks."})
	ann.turn(t, "You are welcome.", func() { ann.call(t, "SendMessage", `{"to":"lead","message":"No trouble."}`) })
	s.until("ann is idle again", func(st *team.State) bool {
		m, _ := st.Member("ann")
		return m.Status == team.Idle && len(m.Inbox) == 0 && len(mailOf(st, "lead", team.TypeMessage)) == 1
	})
	for _, text := range s.inbox("lead", team.TypeIdle) {
		if strings.Contains(text, "welcome") {
			t.Error("the lead was told the last text of a turn that reported")
		}
	}
}

// TestReminder checks that a member which ends a turn while it holds a task is reminded of it, once
// per claim. If no agent leads, the task then fails.
func TestReminder(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("ann"), &team.CreateTask{Subject: "Look"})
	ann := next(t, modelled(s))
	ann.started <- agent.Started{}
	ann.turn(t, "I looked.")
	if p := ann.turn(t, ""); !strings.Contains(p.Text, "Task 1 (Look) is still yours") {
		t.Errorf("it was told %q", p.Text)
	}
	s.untilStatus("ann", team.Idle)
	if task := s.task("1"); !task.OutOfRetries() {
		t.Errorf("the task is %+v", task)
	}
	if got := s.inbox("lead", team.TypeIdle); len(got) != 1 || got[0] != "I looked." {
		t.Errorf("the lead was told %q", got)
	}
}

// TestReceipts checks that a message is delivered when the session says that it has it. The next
// session gets the messages that an ended session did not confirm, unless the transcript has them.
func TestReceipts(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	s := newStage(t, spawn("ann"))
	sessions := modelled(s)
	ann := next(t, sessions)
	ann.started <- agent.Started{Session: "s-1"}
	s.untilStatus("ann", team.Idle)
	s.do("lead", &team.SendMessage{To: "ann", Body: "one"})
	first := ann.peek(t)
	s.do(team.User, &team.SendMessage{To: "ann", Body: "two", Priority: "urgent"})
	second := ann.peek(t)
	if strings.Contains(second.Text, "one") || !second.Urgent || first.Urgent {
		t.Errorf("after\n%s\nit was given\n%s", first.Text, second.Text)
	}
	if m := s.now("ann"); len(m.Inbox) != 2 {
		t.Errorf("waiting are %v", m.Inbox)
	}
	ann.end <- errors.New("killed")

	again := next(t, sessions)
	if again.Resume != "s-1" || again.Incarnation != 2 {
		t.Errorf("it continues with %q as session %d", again.Resume, again.Incarnation)
	}
	again.started <- agent.Started{Session: "s-1", Resumed: true, Seen: []int64{2}}
	p := again.given(t)
	if got := envelope.Carries("demo-1", "ann", p.Text); len(got) != 1 || got[0] != 3 {
		t.Errorf("it was given %v:\n%s", got, p.Text)
	}
	s.until("both are delivered", func(st *team.State) bool { return len(st.Inbox("ann")) == 0 })
}

// TestMailWithATool checks that the result of a tool carries the mail, which is not given a second
// time.
func TestMailWithATool(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	s := newStage(t, &team.SpawnMember{Name: "ann", Agent: "scripted", Prompt: "Look."})
	sessions := modelled(s)
	ann := next(t, sessions)
	ann.started <- agent.Started{Session: "s-1"}
	ann.given(t)
	ann.updates <- agent.TurnStarted{}
	s.do("lead", &team.Broadcast{Body: "one"})
	<-ann.prompts // the host was faster; this session never handles it
	s.do(team.User, &team.SendMessage{To: "ann", Body: "two"})
	<-ann.prompts
	if text := ann.call(t, "TaskList", `{}`); strings.Contains(text, "one") {
		t.Errorf("given twice:\n%s", text)
	}
	ann.end <- errors.New("killed")

	again := next(t, sessions)
	again.started <- agent.Started{Session: "s-1", Resumed: true, Seen: []int64{0}}
	p := again.peek(t) // it comes with the mail that did not arrive
	if got := envelope.Carries("demo-1", "ann", p.Text); !slices.Equal(got, []int64{0, 1, 2}) ||
		!strings.Contains(p.Text, "Continue where you stopped") || len(p.Mail) != 2 {
		t.Errorf("it begins with the messages %v:\n%s", got, p.Text)
	}
	again.updates <- agent.TurnStarted{}
	s.until("it works", func(st *team.State) bool { m, _ := st.Member("ann"); return m.Status == team.Active })
	if m := s.now("ann"); len(m.Inbox) != 2 {
		t.Errorf("waiting are %v", m.Inbox)
	}
}

// TestReceiptOfATool checks that mail with a tool's result is delivered when the stream shows the
// result.
func TestReceiptOfATool(t *testing.T) {
	t.Parallel()
	s := newStage(t, &team.SpawnMember{Name: "ann", Agent: "scripted", Prompt: "Look."}, &team.SpawnMember{Name: "eve",
		Agent: team.External})
	ann := next(t, modelled(s))
	s.do("eve", &team.SendMessage{To: "ann", Body: "before she starts"})
	ann.started <- agent.Started{}
	var text string
	for text == "" || !strings.Contains(text, "before she starts") {
		p := ann.peek(t) // the opening, with the mail
		text += p.Text
	}
	ann.updates <- agent.ToolFinished{ID: "t", Output: envelope.Batch("demo-1", "ann",
		[]team.Message{{Seq: 1, From: "eve"}})}
	ann.updates <- agent.TurnStarted{}
	s.until("it works", func(st *team.State) bool { m, _ := st.Member("ann"); return m.Status == team.Active })
	if m := s.now("ann"); len(m.Inbox) != 1 {
		t.Error("a result that quotes a message which went another way counts as its receipt")
	}
}

// TestTrouble checks that the lead gets troubles in the agent's words, the task returns to the
// queue, and the member is tried again.
func TestTrouble(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	s := newStage(t, spawn("ann"), &team.CreateTask{Subject: "Look"})
	ann := next(t, modelled(s))
	ann.started <- agent.Started{}
	ann.given(t)
	ann.updates <- agent.TurnStarted{}
	ann.updates <- agent.TurnEnded{Problem: &agent.Problem{Kind: agent.ProblemModel, Text: "500: the house is on fire"}}
	s.untilStatus("ann", team.Blocked)
	if task := s.task("1"); task.Status != team.Pending {
		t.Errorf("the task is %s", task.Status)
	}
	if got := s.inbox("lead", team.TypeSystem); len(got) != 1 ||
		!strings.Contains(got[0], "500: the house is on fire") {
		t.Errorf("the lead was told %q", got)
	}
	p := ann.turn(t, "", func() { ann.call(t, "TaskUpdate", `{"taskId":"1","status":"completed","result":"seen"}`) })
	if !strings.Contains(p.Text, "Continue where you stopped") || !strings.Contains(p.Text, "Task 1 is yours now") {
		t.Errorf("it was told %q", p.Text)
	}
	s.untilStatus("ann", team.Idle)
	if m := s.now("ann"); m.Setbacks != 0 {
		t.Errorf("there are still %d setbacks", m.Setbacks)
	}
	s.do("lead", &team.SendMessage{To: "ann", Body: "go on"})
	ann.given(t)
	ann.updates <- agent.TurnEnded{Problem: &agent.Problem{Kind: agent.ProblemLogin, Text: "401: log in first"}}
	s.untilStatus("ann", team.Failed)
	if m := s.now("ann"); m.Summary != "401: log in first" {
		t.Errorf("it failed with %q", m.Summary)
	}
}

// TestCutOff checks that a session that was interrupted in the middle of a turn continues with its
// history, its task and a note.
func TestCutOff(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	s := newStage(t, &team.SpawnMember{Name: "ann", Agent: "scripted", Prompt: "You test."},
		&team.CreateTask{Subject: "Look"})
	sessions := modelled(s)
	ann := next(t, sessions)
	ann.started <- agent.Started{Session: "s-1"}
	ann.given(t)
	ann.updates <- agent.TurnStarted{}
	ann.end <- errors.New("signal: killed")
	again := next(t, sessions)
	again.started <- agent.Started{Session: "s-1", Resumed: true, Seen: []int64{0}}
	p := again.given(t)
	if strings.Contains(p.Text, "You test.") || !strings.Contains(p.Text, "signal: killed") ||
		!strings.Contains(p.Text, "Task 1 is yours now") {
		t.Errorf("it was told %q", p.Text)
	}
	if task := s.task("1"); task.Owner != "ann" || task.Status != team.InProgress || task.Attempts != 2 {
		t.Errorf("the task is %+v", task)
	}
	if got := s.inbox("lead", team.TypeSystem); len(got) != 1 || !strings.Contains(got[0], "signal: killed") {
		t.Errorf("the lead was told %q", got)
	}
}

// TestPlans checks that a plan that the agent submits to its lead waits for the answer, and gets
// it.
func TestPlans(t *testing.T) {
	t.Parallel()
	s := newStage(t, &team.SpawnMember{Name: "ann", Agent: "scripted", Prompt: "Look.", PlanApproval: true})
	ann := next(t, modelled(s))
	if ann.Access.Writes || ann.Gate("Edit", "{}") == nil || ann.Gate("Read", "{}") != nil {
		t.Error("the session could write before its plan was approved")
	}
	ann.started <- agent.Started{}
	ann.given(t)
	ann.updates <- agent.TurnStarted{}
	answers := make(chan string, 1)
	propose := func(plan string) {
		ann.updates <- agent.PlanProposed{Plan: plan, Answer: func(approved bool, feedback string) {
			if approved {
				feedback = "approved"
			}
			answers <- feedback
		}}
	}
	propose("first")
	s.until("it is submitted", func(st *team.State) bool {
		m,
			_ := st.Member("ann")
		return m.Plan.State == "submitted"
	})
	s.do("lead", &team.AnswerPlan{Request: "plan-1@ann", Feedback: "think of the tests"})
	if got := <-answers; got != "think of the tests" {
		t.Errorf("it was told %q", got)
	}
	if ann.Gate("Bash", "{}") == nil {
		t.Error("the session could write after its plan was rejected")
	}
	propose("second")
	s.until("it is submitted again", func(st *team.State) bool {
		m,
			_ := st.Member("ann")
		return m.Plan.State == "submitted"
	})
	s.do("lead", &team.AnswerPlan{Request: "plan-2@ann", Approved: true})
	if got := <-answers; got != "approved" {
		t.Errorf("it was told %q", got)
	}
	if err := ann.Gate("Edit", "{}"); err != nil {
		t.Error(err)
	}
	s.until("it has no message of what it knows", func(st *team.State) bool { return len(st.Inbox("ann")) == 0 })
}

// TestHandover checks that a session whose context is nearly full is replaced by a fresh one, with
// a note.
func TestHandover(t *testing.T) {
	t.Parallel()
	s := newStage(t, spawn("ann"), &team.CreateTask{Subject: "Look"})
	sessions := modelled(s)
	ann := next(t, sessions)
	ann.started <- agent.Started{Session: "s-1"}
	ann.turn(t, "Half of it is done.", func() {
		ann.updates <- agent.Used{Usage: team.Usage{InputTokens: 10}, Context: 91}
	})
	again := next(t, sessions)
	if again.Resume != "" || again.Incarnation != 2 {
		t.Errorf("it continues with %q as session %d", again.Resume, again.Incarnation)
	}
	again.started <- agent.Started{Session: "s-2"}
	p := again.given(t)
	for _, part := range []string{"You continue for an earlier session", "Half of it is done.", "Task 1 is yours now"} {
		if !strings.Contains(p.Text, part) {
			t.Errorf("it was not told %q:\n%s", part, p.Text)
		}
	}
	if m := s.now("ann"); m.Context != 0 || m.Usage.InputTokens != 10 {
		t.Errorf("ann is %+v, want no context and 10 input tokens", m)
	}
}

// TestPromptTooLong checks that a prompt that is too long is given to a fresh session, with its
// mail and what was said before it.
func TestPromptTooLong(t *testing.T) {
	t.Parallel()
	s := newStage(t, &team.SpawnMember{Name: "ann", Agent: "scripted"}, &team.SpawnMember{Name: "eve",
		Agent: team.External}, &team.CreateTask{Subject: "Look"})
	sessions := modelled(s)
	ann := next(t, sessions)
	ann.started <- agent.Started{Session: "s-1"}
	ann.given(t)
	ann.updates <- agent.TurnStarted{}
	ann.updates <- agent.TurnEnded{Text: "I have looked at half of it."}
	ann.given(t) // the reminder of the task that it holds
	s.do("eve", &team.SendMessage{To: "ann", Body: "the port is 4711"})
	ann.given(t)
	s.until("it has the mail", func(st *team.State) bool { return len(st.Inbox("ann")) == 0 })
	ann.updates <- agent.TurnStarted{}
	ann.updates <- agent.TurnEnded{Problem: &agent.Problem{Kind: agent.ProblemContext, Text: "prompt is too long"}}
	again := next(t, sessions)
	if again.Resume != "" || again.Incarnation != 2 {
		t.Errorf("it continues with %q as session %d", again.Resume, again.Incarnation)
	}
	again.started <- agent.Started{Session: "s-2"}
	p := again.given(t)
	for _, part := range []string{"Why it was ended:\n> prompt is too long", "It was at task 1",
		"> I have looked at half of it.", "the port is 4711", "Task 1 is yours now"} {
		if strings.Count(p.Text, part) != 1 {
			t.Errorf("it was not told %q, once:\n%s", part, p.Text)
		}
	}
	if got := s.inbox("lead", team.TypeSystem); len(got) != 1 || !strings.Contains(got[0], "prompt is too long") {
		t.Errorf("the lead was told %q", got)
	}
}

// TestTheReport checks that a lead is asked for its report, and its answer is the report. New work
// withdraws the question.
func TestTheReport(t *testing.T) {
	t.Parallel()
	s := ledStage(t)
	sessions := modelled(s)
	lead := next(t, sessions)
	lead.started <- agent.Started{Session: "s-1"}
	if p := lead.turn(t, "There is nothing to do."); !strings.Contains(p.Text, "find the bug") {
		t.Errorf("the lead was told %q", p.Text)
	}
	s.untilStatus("lead", team.Idle)
	s.do(team.User, &team.AskReport{})
	lead.turn(t, "Wait, one more.", func() { lead.call(t, "TaskCreate", `{"subject":"More","description":"x"}`) })
	s.until("the question is taken back", func(st *team.State) bool {
		return !st.Team().ReportAsked &&
			st.Count(team.Pending) == 1
	})
	s.untilStatus("lead", team.Idle)
	s.View(func(st *team.State) {
		if words := st.Team().LastWords; words != "" {
			t.Errorf("it said %q", words)
		}
	})
	s.do(team.User, &team.AskReport{})
	s.do(team.User, &team.AskReport{}) // it is asked once
	lead.turn(t, "# Report\n\nFound it.")
	s.until("it reported", func(st *team.State) bool { return st.Team().LastWords == "# Report\n\nFound it." })
}

// TestIdleNoticesCostNothing checks that idle notices start no turn of a lead; they come with the
// next message that does.
func TestIdleNoticesCostNothing(t *testing.T) {
	t.Parallel()
	s := ledStage(t)
	lead := next(t, modelled(s))
	lead.started <- agent.Started{}
	lead.turn(t, "")
	s.untilStatus("lead", team.Idle)
	s.do(team.User, &team.SpawnMember{Name: "eve", Agent: team.External})
	for range 10 {
		s.do("eve", &team.ReportStatus{Member: "eve", Status: team.Active})
		s.do("eve", &team.ReportStatus{Member: "eve", Status: team.Idle})
	}
	s.do("eve", &team.SendMessage{To: "lead", Body: "now"})
	p := lead.given(t)
	if got := envelope.Carries("demo-1", "lead", p.Text); len(got) != 11 || !strings.Contains(p.Text, "now") {
		t.Errorf("the lead was given %v", got)
	}
	select {
	case p := <-lead.prompts:
		t.Errorf("and then %q", p.Text)
	default:
	}
}

func ledStage(t *testing.T) *stage {
	t.Helper()
	return newStageOf(t, &team.CreateTeam{TeamID: "demo-1", Name: "demo", Goal: "find the bug", Dir: t.TempDir(),
		LeadAgent: "scripted"})
}

// TestMailIsGivenOnce checks that mail that comes while an earlier receipt is being recorded is
// given, and the earlier mail is not given again.
func TestMailIsGivenOnce(t *testing.T) {
	t.Parallel()
	s := newStage(t, &team.SpawnMember{Name: "ann", Agent: "scripted", Prompt: "Listen."})
	ann := next(t, modelled(s))
	ann.started <- agent.Started{Session: "s-1"}
	ann.given(t)
	ann.updates <- agent.TurnStarted{}
	const messages = 300
	go func() {
		for range messages {
			if _, err := s.Do(t.Context(), team.Command{Actor: "lead", Body: &team.SendMessage{To: "ann",
				Body: "listen"}}); err != nil {
				t.Error(err)
			}
		}
	}()
	given := map[int64]int{}
	for len(given) < messages {
		for _, m := range ann.given(t).Mail {
			given[m.Seq]++
		}
	}
	for seq, n := range given {
		if n != 1 {
			t.Errorf("message %d was given %d times", seq, n)
		}
	}
}
