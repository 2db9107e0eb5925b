package tui

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/inspect/history"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// taskView is the view of one task of the open team.
type taskView struct {
	id      string // "" for none
	detail  *taskDetail
	trouble string // why the task cannot be read
	top     int    // the first line that is shown

	description, plan, result laidOut
}

// taskDetail is a copy of what the state says about a task. Its texts are sanitized.
type taskDetail struct {
	id, called, subject string
	status              team.TaskStatus
	state               string
	owner               string
	held                bool // its owner works on it
	outOfRetries        bool
	facts               [][2]string // label and value
	description, run    string
	result              string
	words               bool   // result is what its member said last: the task has no result
	submitted           bool   // others verify the result
	sentBack            string // why the last result was sent back, with the feedback below; "" for not
	votes               []string
	made                []string // the tasks that it made, with the state and the owner of each
	work                []string // what was recorded or saved of its work
}

// taskMsg carries the task as it was after the record seq; 0 means the present.
type taskMsg struct {
	ref, id string
	seq     int64
	detail  *taskDetail
	err     string
}

// mostText bounds each text of a task on the screen, in bytes.
const mostText = 64 << 10

// longText sanitizes a text of an agent, and cuts it.
func longText(text string) string {
	if len(text) > mostText {
		text = strings.ToValidUTF8(text[:mostText], "") + "\n… The rest is in: cadre task show"
	}
	return strings.TrimSpace(sanitize.Lines(text))
}

// detailOf copies from the state what the screen shows of a task. It returns an error if the task
// did not exist then.
func detailOf(s *team.State, id string) (*taskDetail, error) {
	t, err := s.Find("#" + id)
	if err != nil {
		return nil, fmt.Errorf("task #%s does not exist at record %d", id, s.Seq())
	}
	d := &taskDetail{id: t.ID, called: sanitize.Line(t.Called()), subject: render.Clean(t.Subject), status: t.Status,
		state: render.TaskState(t), owner: t.Owner, held: t.Status == team.InProgress, outOfRetries: t.OutOfRetries(),
		description: longText(t.Description), run: longText(t.Run), result: longText(t.Result)}
	fact := func(word, text string) {
		if text != "" {
			d.facts = append(d.facts, [2]string{word, render.Clean(text)})
		}
	}
	others := func(ids []string) string { return withStates(s, ids) }
	if t.Name != "" {
		fact("number", "#"+t.ID)
	}
	fact("status", d.state)
	fact("owner", t.Owner)
	fact("role", t.Role)
	fact("priority", t.Priority)
	fact("blocked by", others(s.Before(t)))
	fact("for each", t.ForEach.Words())
	fact("its tasks", s.Progress(t.ID))
	if t.Of != "" {
		fact("made by", s.Called(t.Of))
		fact("item", team.ItemLine(t.Item))
	}
	fact("blocks", others(t.Blocks))
	fact("paths", strings.Join(t.Paths, ", "))
	if t.Status == team.InProgress && !slices.Equal(t.Paths, t.Holds) {
		fact("has now", cmp.Or(strings.Join(t.Holds, ", "), "none"))
	}
	fact("waits for", t.WaitsForPath())
	fact("created by", t.CreatedBy)
	fact("done by", t.CompletedBy)
	if t.CompletedAt > 0 && t.StartedAt > 0 {
		fact("took", team.Span(t.CompletedAt.Sub(t.StartedAt)))
	}
	if t.Retries > 0 {
		fact("retries", fmt.Sprintf("%d of %d used", min(t.Failures, t.Retries), t.Retries))
	}
	for _, f := range render.Demands(s, t) {
		fact(f.Label, f.Value)
	}
	fact("last failure", t.Failure)
	fact("failed by", t.FailedBy)
	fact("tokens", tokens(t.Usage))
	fact("cost", cost(t.Usage))
	d.judged(s, &t)
	d.made = madeBy(s, &t)
	d.work = workOf(&t)
	return d, nil
}

// judged copies what came of the task, and what others said of that.
func (d *taskDetail) judged(s *team.State, t *team.Task) {
	sum := t.Summary()
	if sum.Did != "" {
		d.result, d.words = longText(sum.Did), sum.Words
	}
	d.submitted = t.Submission != nil
	if why, feedback := t.SentBack(); why != "" {
		d.sentBack = longText(why + ":\n" + feedback)
	}
	for _, v := range s.Votes(t.ID) {
		text := v.Words
		if v.Reason != "" {
			text += ": " + v.Reason
		}
		d.votes = append(d.votes, longText(text))
	}
}

// madeBy lists the tasks that the group made. It returns none for another task.
func madeBy(s *team.State, group *team.Task) (lines []string) {
	if !group.Expanded {
		return nil
	}
	for _, id := range group.BlockedBy {
		one, is := s.Task(id)
		if !is || one.Of != group.ID {
			continue
		}
		if len(lines) == mostFiles {
			return append(lines, "… and more: press z in the list of tasks")
		}
		words := []string{one.Called(), render.TaskState(one), one.Worker(), team.ItemLine(one.Item)}
		words = slices.DeleteFunc(words, func(word string) bool { return word == "" })
		lines = append(lines, render.Clean(strings.Join(words, ", ")))
	}
	return lines
}

// withStates names tasks with the state of each.
func withStates(s *team.State, ids []string) string {
	var all []string
	for _, id := range ids {
		if other, err := s.Find("#" + id); err == nil {
			all = append(all, fmt.Sprintf("%s (%s)", other.Called(), render.TaskState(other)))
		}
	}
	return strings.Join(all, ", ")
}

// workOf returns the lines about the work of a task: what was committed, and what a member saved.
func workOf(t *team.Task) (lines []string) {
	if t.Work != nil {
		lines = append(lines, render.Clean(render.Work(*t.Work)))
		for _, file := range t.Work.Files[:min(len(t.Work.Files), mostFiles)] {
			lines = append(lines, "  "+sanitize.Line(file))
		}
		if more := len(t.Work.Files) - mostFiles; more > 0 {
			lines = append(lines, fmt.Sprintf("  and %d more", more))
		}
	}
	if t.Saved != nil {
		lines = append(lines, fmt.Sprintf("saved by %s at %s", sanitize.Line(t.Saved.Member),
			render.Clock(t.Saved.At)))
		if t.Saved.Note != "" {
			lines = append(lines, render.Clean(t.Saved.Note))
		}
	}
	return lines
}

// mostFiles bounds the files of a task that are listed.
const mostFiles = 50

// Task implements [outside].
func (s *source) Task(ref, id string, seq int64) tea.Msg {
	msg := taskMsg{ref: ref, id: id, seq: seq}
	t, done, err := s.reading(ref)
	if err == nil {
		defer done()
		if seq == 0 {
			t.View(func(st *team.State) { msg.detail, err = detailOf(st, id) })
		} else if st, past := t.Past().At(s.ctx, seq); past == nil {
			msg.detail, err = detailOf(st, id)
		} else {
			err = past
		}
	}
	if err != nil {
		msg.err = oneLine(explain(err))
	}
	return msg
}

// openTask opens the view of the task.
func (m *Model) openTask(id string) tea.Cmd {
	m.chosen.task, m.shown = id, taskView{id: id}
	if m.place != atTask {
		m.back, m.place, m.notice = append(m.back, stop{m.place, m.ref}), atTask, notice{}
	}
	return m.readTask()
}

// readTask requests the open task as it is at the moment that is shown.
func (m *Model) readTask() tea.Cmd {
	if m.place != atTask {
		return nil
	}
	out, ref, id, seq := m.out, m.ref, m.shown.id, m.travel.seq
	return func() tea.Msg { return out.Task(ref, id, seq) }
}

// readsTask stores the open task.
func (m *Model) readsTask(msg taskMsg) {
	if msg.ref == m.ref && msg.id == m.shown.id && msg.seq == m.travel.seq {
		m.shown.detail, m.shown.trouble = msg.detail, msg.err
	}
}

// nextTask opens another task of the list, by rows further.
func (m *Model) nextTask(by int) tea.Cmd {
	if m.team == nil || len(m.team.tasks) == 0 {
		return nil
	}
	return m.openTask(m.team.tasks[moved(m.taskIndex(), by, len(m.team.tasks))].id)
}

// taskTitle adds details of the open task to the title.
func (m *Model) taskTitle(add func(string, style)) {
	d := m.shown.detail
	if d == nil {
		add("task "+oneLine(m.called(m.shown.id)), strong)
		return
	}
	add("task "+d.called, strong)
	add(d.state, stateStyle(d.state))
	if d.owner != "" {
		add(oneLine(d.owner), m.memberStyle(d.owner))
	}
}

// taskBody shows all details of the open task.
func (m *Model) taskBody(width, height int) []string {
	switch {
	case m.shown.trouble != "":
		return wrapAll(m.shown.trouble, width, waits)
	case m.shown.detail == nil:
		return []string{"  " + faint.on("reading …")}
	}
	all := m.taskLines(width)
	const least = 4 // lines that can spare one to say that more follow
	if len(all) <= height || height < least {
		m.shown.top = max(0, min(m.shown.top, len(all)-height))
		return all[m.shown.top:]
	}
	m.shown.top = max(0, min(m.shown.top, len(all)-height+1))
	end := m.shown.top + height - 1
	return append(slices.Clone(all[m.shown.top:end]), hiddenRows(m.shown.top, len(all)-end))
}

func (m *Model) taskLines(width int) (out []string) {
	d := m.shown.detail
	out = wrapAll(d.subject, width, strong)
	label := 0
	for _, f := range d.facts {
		label = max(label, len(f[0]))
	}
	for _, f := range d.facts {
		look := plain
		switch f[0] {
		case "status":
			look = stateStyle(f[1])
		case "owner", "done by", "created by":
			look = m.memberStyle(f[1])
		case "last failure":
			look = alarm
		}
		word := f[0]
		for _, part := range wrap(f[1], max(8, width-label-6)) {
			out = append(out, "  "+faint.on(word)+strings.Repeat(" ", label-len(word)+gap)+look.on(part))
			word = ""
		}
	}
	section := func(head string, lines []string) {
		if len(lines) > 0 {
			out = append(out, "", " "+strong.on(head))
			for _, l := range lines {
				out = append(out, strings.TrimRight("  "+l, " "))
			}
		}
	}
	room := max(8, width-4)
	section("Description", m.shown.description.of(d.description, room))
	if d.run != "" {
		section("Command", plainText(d.run, room))
	}
	section("Its tasks", wrapEach(d.made, room))
	if d.sentBack != "" {
		section("Sent back", plainText(d.sentBack, room))
	}
	if m.past != nil {
		m.taskPast(d, room, section)
	}
	section("Verdicts", m.verdicts(d, room))
	head := "Result"
	switch {
	case d.submitted:
		head = "Result that is being verified"
	case d.words:
		head = "Last words, without a result"
	}
	section(head, m.shown.result.of(d.result, room))
	section("Work", wrapEach(d.work, room))
	return out
}

// wrapEach wraps each of the lines.
func wrapEach(lines []string, width int) (out []string) {
	for _, l := range lines {
		out = append(out, wrap(l, width)...)
	}
	return out
}

// verdicts shows what those who verify the task said, each beginning on a line of its own.
func (m *Model) verdicts(d *taskDetail, room int) (out []string) {
	for _, one := range d.votes {
		out = append(out, plainText(one, room)...)
	}
	return out
}

// taskPast shows the history of the task, up to the moment that is shown.
func (m *Model) taskPast(d *taskDetail, room int, section func(string, []string)) {
	seq := m.travel.seq
	attempts := m.past.tasks.Attempts(d.id, seq)
	planner := d.owner
	var lines, checks []string
	for i, a := range attempts {
		planner = a.Member
		lines = append(lines, m.attempt(i+1, a, room)...)
		for _, one := range a.Rejections {
			text := fmt.Sprintf("%s The hook %s rejected it: %s", render.Clock(one.At), one.Hook, one.Feedback)
			if one.Hook == "" {
				text = fmt.Sprintf("%s Sent back: %s", render.Clock(one.At), one.Feedback)
			}
			for _, part := range wrap(oneLine(text), room) {
				checks = append(checks, alarm.on(part))
			}
		}
	}
	if p, is := m.past.tasks.Plan(planner, seq); is && planner != "" {
		state := p.State
		if seq > 0 {
			state = "submitted at " + render.Clock(p.AskedAt)
		}
		section("Plan of "+oneLine(planner)+": "+state, m.shown.plan.of(longText(p.Plan), room))
	}
	if len(attempts) > 1 || len(attempts) == 1 && attempts[0].How != "completed" {
		section("Attempts", lines)
	}
	section("Checks", checks)
	var said []string
	for _, one := range m.past.tasks.Mentions(d.id, seq) {
		head := render.Clock(one.At) + " " + oneLine(one.From) + " → " + oneLine(one.To) + ": "
		for i, part := range wrap(head+oneLine(one.Text), room) {
			if i == 0 && strings.HasPrefix(part, head) {
				part = faint.on(head) + part[len(head):]
			}
			said = append(said, part)
		}
	}
	section("Messages", said)
}

// attempt describes one attempt: its owner, its time and its end.
func (m *Model) attempt(number int, a history.Attempt, room int) (out []string) {
	head := fmt.Sprintf("%d  ", number)
	text := fmt.Sprintf("%s, %s: still runs", oneLine(a.Member), render.Clock(a.Began))
	look := live
	if a.How != "" {
		text = fmt.Sprintf("%s, %s to %s: %s", oneLine(a.Member), render.Clock(a.Began), render.Clock(a.Ended), a.How)
		look = plain
		if a.How == "failed" {
			look = alarm
		}
	}
	if a.Reason != "" {
		text += ", " + oneLine(a.Reason)
	}
	for _, part := range wrap(text, room-len(head)) {
		out = append(out, faint.on(head)+look.on(part))
		head = strings.Repeat(" ", len(head))
	}
	return out
}

// These return why a key of the view does not apply.

// ofTask returns a condition that the open task must meet.
func ofTask(holds func(*taskDetail) bool, otherwise string) func(*Model) string {
	return func(m *Model) string {
		switch {
		case m.shown.detail == nil:
			return "The task has not been read yet."
		case closedTeam(m) != "":
			return closedTeam(m)
		case !holds(m.shown.detail):
			return otherwise
		}
		return ""
	}
}

func noOwner(m *Model) string {
	d := m.shown.detail
	if d == nil {
		return "The task has not been read yet."
	}
	if m.team == nil || !slices.ContainsFunc(m.team.members, func(r memberRow) bool { return r.name == d.owner }) {
		return "No member has task " + d.called + "."
	}
	return ""
}

// retryTask asks whether to return the failed task to the queue.
func (m *Model) retryTask() tea.Cmd {
	return m.returnTask("Return task %s to the queue, with its failures forgotten? [y/N]")
}

// releaseTask asks whether to take the task from its owner.
func (m *Model) releaseTask() tea.Cmd {
	return m.returnTask("Take task %s from " + oneLine(m.shown.detail.owner) + ", and return it to the queue? [y/N]")
}

func (m *Model) returnTask(asks string) tea.Cmd {
	d, ref := m.shown.detail, m.ref
	m.ask = yesOrNo(fmt.Sprintf(asks, d.called), func(m *Model) tea.Cmd {
		return m.act(ref, &team.ReleaseTask{Task: d.id}, "Task "+d.called+" is back in the queue.")
	})
	return nil
}

// reassignTask asks which member gets the task.
func (m *Model) reassignTask() tea.Cmd {
	d := m.shown.detail
	return m.asksWho(m.ref, d.id, d.called)
}

// asksWho asks which member gets the task. Tab completes the name of a member.
func (m *Model) asksWho(ref, task, called string) tea.Cmd {
	m.asks(" who gets task "+called+" ▸ ", plain, "", func(m *Model, text string, _ bool) tea.Cmd {
		out, to := m.out, strings.TrimSpace(text)
		if to == "" {
			m.notice = notice{"Nothing was changed: name a member.", waits}
			return nil
		}
		return func() tea.Msg { return out.Reassign(ref, task, to, false) }
	})
	m.input.complete = func(text string, cursor int) (int, []string) {
		var names []string
		if m.team != nil && m.team.ref == ref {
			for _, one := range m.team.members {
				if strings.HasPrefix(one.name, text[:cursor]) {
					names = append(names, one.name)
				}
			}
		}
		return 0, names
	}
	return nil
}

// busyMsg says that a task was not reassigned, because a member works on it.
type busyMsg struct {
	ref, task, to, why, owner string
	line                      *prompting // the line that named the member
}

// takes asks whether to take a task from the member that works on it.
func (m *Model) takes(msg busyMsg) {
	if m.input != nil || m.ask != nil || m.overlay != nil || m.menu != nil { // the next key is for something else
		m.notice = notice{msg.why + ". Reassign the task again to take it from " + msg.owner + ".", waits}
		m.refused = msg.line
		return
	}
	out := m.out
	m.ask = yesOrNo(fmt.Sprintf("%s. Take the task from %s, and give it to %s? [y/N]", msg.why, msg.owner,
		oneLine(msg.to)),
		func(*Model) tea.Cmd {
			return func() tea.Msg { return out.Reassign(msg.ref, msg.task, msg.to, true) }
		})
	m.ask.line = msg.line
}

// taskKeys returns the keys of the view of a task.
func taskKeys() []key {
	step := func(by int) func(*Model) tea.Cmd { return func(m *Model) tea.Cmd { return m.nextTask(by) } }
	return []key{
		{[]string{"enter", "v"}, inTask, "session", "view the session of the owner", noOwner, func(m *Model) tea.Cmd {
			return m.openMember(m.shown.detail.owner)
		}},
		{[]string{"d"}, inTask, "diff", "show what is changed for the task, in its owner's worktree as it is now",
			notInThePast,
			func(m *Model) tea.Cmd { return m.openDiff("#" + m.shown.id) }},
		{[]string{"r"}, inTask, "retry", "return the failed task to the queue", ofTask(func(d *taskDetail) bool {
			return d.outOfRetries
		}, "Only a task that is out of retries is tried again."), (*Model).retryTask},
		{[]string{"R"}, inTask, "reassign", "give the task to another member", ofTask(func(d *taskDetail) bool {
			return d.status != team.Completed && d.status != team.Deleted
		}, "The task is done."), (*Model).reassignTask},
		{[]string{"u"}, inTask, "release", "take the task from its owner, and return it to the queue",
			ofTask(func(d *taskDetail) bool { return d.held }, "No member works on the task."), (*Model).releaseTask},
		{[]string{"shift+up", "K"}, inTask, "", "open the task above", nil, step(-1)},
		{[]string{"shift+down", "J"}, inTask, "", "open the task below", nil, step(1)},
		{[]string{"ctrl+t", "t"}, inTask, "", "show the list of tasks", nil, (*Model).toTasks},
	}
}
