package tui

import (
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/inspect/attention"
	"cadre/internal/render"
	"cadre/internal/team"
)

// id returns a key for the item that is unique across teams.
func (i itemRow) id() string { return i.ref + "/" + i.Key() }

// openAttention shows what waits for the user, in all teams. The items of the open team come first.
func (m *Model) openAttention() tea.Cmd {
	if m.first = m.ref; m.place == atTeams {
		m.first = ""
	}
	m.sortItems()
	m.enter(atAttention)
	m.chosen.item, m.detail = "", 0
	return m.chooseItem(0)
}

// sortItems puts the items of the team in whose view the list was opened first, and in each part
// those with a deadline.
func (m *Model) sortItems() {
	m.items = slices.Clone(m.everyItem)
	if m.away() {
		m.items = slices.Clone(m.travel.items)
	}
	slices.SortStableFunc(m.items, func(a, b itemRow) int {
		switch {
		case (a.ref == m.first) == (b.ref == m.first):
			return attention.Sooner(a.Item, b.Item)
		case a.ref == m.first:
			return -1
		}
		return 1
	})
}

// ofTeam returns what was done in a team. In a list with items of several teams it names the team.
func (m *Model) ofTeam(ref, said string) string {
	if m.place == atAttention && slices.ContainsFunc(m.items, func(i itemRow) bool { return i.ref != ref }) {
		return m.teamName(ref) + ": " + said
	}
	return said
}

// chooseItem selects an item, and reads the team that it belongs to, which has the whole plan or
// question.
func (m *Model) chooseItem(index int) tea.Cmd {
	if len(m.items) == 0 {
		return nil
	}
	one := m.items[moved(index, 0, len(m.items))]
	if m.chosen.item != one.id() {
		m.chosen.item, m.detail = one.id(), 0
	}
	if one.ref == m.ref {
		return nil
	}
	return m.open(one.ref)
}

// itemIndex returns the index of the selected item; -1 if the item is gone. It selects no other
// item instead: a key that was meant for one item must not answer another one.
func (m *Model) itemIndex() int {
	return slices.IndexFunc(m.items, func(i itemRow) bool { return i.id() == m.chosen.item })
}

// nextItem selects the item that has taken the place of the one that was handled here. The answers
// wait then until a whole second without a key has passed, which takes two ticks: a key may still
// be meant for the item before.
func (m *Model) nextItem(at int) tea.Cmd {
	if m.place != atAttention || at < 0 || m.itemIndex() >= 0 || m.chosen.item != m.handled || len(m.items) == 0 {
		return nil
	}
	m.moved, m.stirred = true, true
	return m.chooseItem(at)
}

// heldFor is longer than the time after which a held key repeats. Terminals send repetitions as
// further keys.
const heldFor = 750 * time.Millisecond

// handles returns what a key does that handles the selected item.
func handles(do func(*Model) tea.Cmd) func(*Model) tea.Cmd {
	return func(m *Model) tea.Cmd {
		now := m.clock()
		if m.moved || now < m.heldUntil {
			m.moved, m.heldUntil = false, now.Add(heldFor)
			m.notice = notice{"This is the next item. Press the key again if it is meant for it.", waits}
			return nil
		}
		m.handled = m.chosen.item
		return do(m)
	}
}

// item returns the selected item.
func (m *Model) item() (itemRow, bool) {
	if i := m.itemIndex(); i >= 0 {
		return m.items[i], true
	}
	return itemRow{}, false
}

// attentionBody shows the list, and below it all details of the selected item.
func (m *Model) attentionBody(width, height int) []string {
	if len(m.items) == 0 {
		if m.away() {
			return []string{"", "  " + faint.on("Nothing waited for you at that time.")}
		}
		return []string{"", "  " + faint.on("Nothing waits for you.")}
	}
	t := table{columns: []column{{head: "TEAM", most: 16}, {head: "FOR", right: true}, {head: "WAITS", flex: true}},
		selected: m.itemIndex(), headless: true}
	for _, one := range m.items {
		look, text := plain, one.text
		if one.WaitsFor != team.ForUser {
			look, text = faint, text+" ("+one.WaitsFor+" handles it)"
		}
		t.rows = append(t.rows, []cell{{m.teamName(one.ref), faint}, {m.waiting(one), waits}, {text, look}})
	}
	room := min(len(t.rows), max(3, height/3))
	out := t.lines(width, room)
	out = append(out, hiddenRows(t.first, len(t.rows)-t.end)) // a blank line if all are shown
	m.spots(&t, 0, 0, width, onItem, func(row int) string { return m.items[row].id() })
	one, _ := m.item()
	whole := slices.ContainsFunc(out, func(row string) bool {
		return one.text != "" && strings.Contains(row, one.text)
	})
	text, room := m.itemText(width, whole), height-len(out)
	const least = 3 // rows that can spare one to say that more follows
	if m.detailPage = max(2, room); len(text) <= room || room < least {
		m.detail = max(0, min(m.detail, len(text)-room))
		return append(out, text[m.detail:]...)
	}
	m.detailPage = room - 1
	m.detail = max(0, min(m.detail, len(text)-m.detailPage))
	end := m.detail + m.detailPage
	return append(append(out, text[m.detail:end]...), hiddenRows(m.detail, len(text)-end))
}

// hiddenRows says how many rows are hidden above and below; "" for none.
func hiddenRows(above, below int) string {
	switch {
	case above > 0 && below > 0:
		return faint.on(fmt.Sprintf("  ↑ %d more above, ↓ %d more below", above, below))
	case below > 0:
		return faint.on(fmt.Sprintf("  ↓ %d more", below))
	case above > 0:
		return faint.on(fmt.Sprintf("  ↑ %d more", above))
	}
	return ""
}

// waiting returns how long an item has waited, or how long it may still wait.
func (m *Model) waiting(one itemRow) string {
	now := m.now
	if m.away() {
		now = m.team.at
	}
	if one.Deadline > now {
		return age(one.Deadline.Sub(now)) + " left"
	}
	return m.since(one.Since)
}

// itemText returns all details of the selected item. whole says that the list shows all of its
// sentence.
func (m *Model) itemText(width int, whole bool) (out []string) {
	one, is := m.item()
	if !is {
		return wrapAll("This item is settled, or does not wait any more. Select another one with ↑ and ↓.",
			width, waits)
	}
	out = wrapAll(one.text, width, strong)
	if m.team != nil && m.team.ref == one.ref && m.team.requests[one.Request] != "" {
		lines := plainText
		if one.Kind == team.ItemPlan {
			lines = m.plan.of
		}
		out = append(out, "")
		for _, part := range lines(m.team.requests[one.Request], width-5) {
			out = append(out, strings.TrimRight("  "+faint.on(bar)+" "+part, " "))
		}
	}
	if t, is := m.failedTask(one); is {
		words := team.Count(t.attempts, "attempt")
		if t.owner != "" {
			words = "owner " + oneLine(t.owner) + ", " + words
		}
		words += ". Enter opens the task, with its output."
		if whole { // the list has the sentence already
			out = []string{}
		} else {
			out = append(out, "")
		}
		out = append(out, wrapAll(words, width, faint)...)
		if t.output != "" {
			out = append(out, "")
		}
		for _, part := range plainText(t.output, width-5) {
			out = append(out, strings.TrimRight("  "+faint.on(bar)+" "+part, " "))
		}
	}
	if command := render.CommandFor(one.Hint).String(); command != "" && !m.away() {
		out = append(out, "", "  "+faint.on(render.Cut(oneLine(command), width-3)))
	}
	return out
}

// settled asks who settled the selected item, if it was not settled here.
func (m *Model) settled(before itemRow, was bool) tea.Cmd {
	if _, is := m.item(); is || !was || m.away() || before.Request == "" || m.place != atAttention ||
		before.Request == m.mine {
		return nil
	}
	out := m.out
	return func() tea.Msg { return out.Answered(before.ref, before.Request) }
}

// answered describes how a request was answered.
func answered(a team.Answer, now team.Time) string {
	who := map[string]string{"": "The rules of the team", team.User: "The user"}[a.By]
	if who == "" {
		who = oneLine(a.By)
	}
	if a.Outcome == "timed_out" {
		return "No answer to " + oneLine(a.Request) + " came in time."
	}
	return fmt.Sprintf("%s settled %s: %s, %s.", who, oneLine(a.Request), a.Outcome, render.Ago(now, a.At))
}

// These return why an answer does not apply.

func noItem(m *Model) string {
	if _, is := m.item(); !is {
		return "Select an item first."
	}
	return ""
}

// nowOnly returns a condition that holds in the present alone.
func nowOnly(when func(*Model) string) func(*Model) string {
	return func(m *Model) string {
		if m.away() {
			return inPast
		}
		return when(m)
	}
}

// only returns a condition that the selected item meets if it has one of the kinds.
func only(otherwise string, kinds ...team.ItemKind) func(*Model) string {
	return func(m *Model) string {
		if why := noItem(m); why != "" {
			return why
		}
		if one, _ := m.item(); !slices.Contains(kinds, one.Kind) {
			return otherwise
		}
		return ""
	}
}

func noPerson(m *Model) string {
	one, is := m.item()
	switch {
	case !is:
		return "Select an item first."
	case m.personOf(one) != "":
		return ""
	case one.Task != "":
		return "No member has the task. R gives it to one."
	}
	return "This item is about no member."
}

func (m *Model) sayYes() tea.Cmd {
	one, _ := m.item()
	m.mine = one.Request
	if one.Kind == team.ItemPlan {
		return m.act(one.ref, &team.AnswerPlan{Request: one.Request, Approved: true},
			m.ofTeam(one.ref, "The plan of "+one.Member+" is approved."))
	}
	return m.act(one.ref, &team.AnswerPermission{Request: one.Request, Allow: true},
		m.ofTeam(one.ref, one.Member+" may do it."))
}

func (m *Model) sayNo() tea.Cmd {
	one, _ := m.item()
	if one.Kind == team.ItemPlan {
		m.asks(" reject "+one.Member+" ▸ ", m.memberStyle(one.Member), "",
			func(m *Model, text string, _ bool) tea.Cmd {
				m.mine = one.Request
				return m.act(one.ref, &team.AnswerPlan{Request: one.Request, Feedback: text},
					m.ofTeam(one.ref, "The plan of "+one.Member+" is rejected."))
			})
		m.input.says = func(string) (string, style) { return "Say what the plan of " + one.Member + " lacks.", plain }
		return nil
	}
	m.asks(" deny "+one.Member+" ▸ ", m.memberStyle(one.Member), "",
		func(m *Model, text string, _ bool) tea.Cmd {
			m.mine = one.Request
			return m.act(one.ref, &team.AnswerPermission{Request: one.Request, Reason: text},
				m.ofTeam(one.ref, one.Member+" may not do it."))
		})
	m.input.says = func(string) (string, style) {
		return "Say why " + one.Member + " may not do it. The reason may be empty.", plain
	}
	return nil
}

func (m *Model) writeToItem() tea.Cmd {
	one, _ := m.item()
	one.Member = m.personOf(one)
	m.asks(" to "+one.Member+" ▸ ", m.memberStyle(one.Member), "", func(m *Model, text string, _ bool) tea.Cmd {
		if strings.TrimSpace(text) == "" {
			m.notice = notice{"Nothing was sent: the message is empty.", waits}
			return nil
		}
		send, out := &team.SendMessage{To: one.Member, Body: text, Answers: one.answers()}, m.out
		said := m.ofTeam(one.ref, one.Member+" has your answer.")
		if send.Answers == 0 {
			return m.act(one.ref, send, m.ofTeam(one.ref, "Sent to "+one.Member+"."))
		}
		return func() tea.Msg {
			msg := out.Act(one.ref, send, said)
			if acted, is := msg.(actedMsg); is && acted.err != "" {
				acted.err += " Your text is in the line to " + one.Member + "."
				acted.draft = &unsent{one.ref + "/" + one.Member, text}
				return acted
			}
			return msg
		}
	})
	return nil
}

// retry asks whether to return the task of the item to the queue, or has the rate-limited model of
// the item tried again now.
func (m *Model) retry() tea.Cmd {
	one, _ := m.item()
	if one.Kind == team.ItemRateLimit {
		return m.lift(one.ref, one.Hint.Member)
	}
	m.ask = yesOrNo(fmt.Sprintf("Return task %s to the queue, with its failures forgotten? [y/N]", one.taskCalled()),
		func(m *Model) tea.Cmd {
			return m.act(one.ref, &team.ReleaseTask{Task: one.Task},
				m.ofTeam(one.ref, "Task "+one.taskCalled()+" is back in the queue."))
		})
	return nil
}

// taskCalled is what people call the task of the item.
func (i itemRow) taskCalled() string { return oneLine(i.TaskCalled()) }

// reassign asks who gets the task of the item.
func (m *Model) reassign() tea.Cmd {
	one, _ := m.item()
	return m.asksWho(one.ref, one.Task, one.taskCalled())
}

func noTaskOfItem(m *Model) string {
	if one, is := m.item(); !is || one.Task == "" {
		return "This item is about no task."
	}
	return ""
}

// openItem shows the task that failed or that says what to do, the member that the item is about,
// or else its team.
func (m *Model) openItem() tea.Cmd {
	one, _ := m.item()
	cmd := m.open(one.ref)
	switch {
	case (one.Kind == team.ItemTaskFailed || one.Kind == team.ItemConflict) && one.Task != "":
		return tea.Batch(cmd, m.openTask(one.Task))
	case one.Member == "":
		m.enter(atTeam)
		return cmd
	}
	return tea.Batch(cmd, m.openMember(one.Member))
}

// failedTask returns the task of an item about a failed task, if its team has been read.
func (m *Model) failedTask(one itemRow) (taskRow, bool) {
	if one.Kind == team.ItemTaskFailed && m.team != nil && m.team.ref == one.ref {
		for _, t := range m.team.everyTask {
			if t.id == one.Task {
				return t, true
			}
		}
	}
	return taskRow{}, false
}

// personOf returns the member that the item is about, or the owner of its failed task.
func (m *Model) personOf(one itemRow) string {
	if t, is := m.failedTask(one); is && one.Member == "" {
		return t.owner
	}
	return one.Member
}

// attentionKeys returns the keys of the list of items that wait.
func attentionKeys() []key {
	requests := nowOnly(only("Only a request or a plan is answered with yes or no.", team.ItemPermission,
		team.ItemPlan))
	return []key{
		{[]string{"y"}, inAttention, "yes", "allow the tool once, or approve the plan", requests,
			handles((*Model).sayYes)},
		{[]string{"n"}, inAttention, "no", "deny the tool with a reason, or reject the plan with what it lacks",
			requests,
			handles((*Model).sayNo)},
		{[]string{"a"}, inAttention, "always", "allow the member the same always, by a rule", nowOnly(noRule),
			handles(func(m *Model) tea.Cmd { return m.always(false) })},
		{[]string{"A"}, inAttention, "", "allow all members the same always, by a rule", nowOnly(noRule),
			handles(func(m *Model) tea.Cmd { return m.always(true) })},
		{[]string{"m", "w"}, inAttention, "write", "send a message to the member: the answer to its question",
			nowOnly(noPerson),
			handles((*Model).writeToItem)},
		{[]string{"r"}, inAttention, "retry", "return the failed task to the queue, or try the rate-limited model now",
			nowOnly(only("Only a failed task and a rate-limited model are tried again.", team.ItemTaskFailed,
				team.ItemRateLimit)), handles((*Model).retry)},
		{[]string{"R"}, inAttention, "reassign", "give the task to another member", nowOnly(noTaskOfItem),
			handles((*Model).reassign)},
		{[]string{"c"}, inAttention, "command", "type the command that settles the item", nowOnly(noItem),
			handles(func(m *Model) tea.Cmd {
				one, _ := m.item()
				m.palette(strings.TrimPrefix(render.CommandFor(one.Hint).String(), "cadre "))
				return nil
			})},
		{[]string{"enter", "o"}, inAttention, "open", "show the member, the task or the team", noItem,
			(*Model).openItem},
		{[]string{"a", "A", "!"}, inTeams | inTeam | inMember | inTask, "waiting", "show what waits for you", nil,
			(*Model).openAttention},
	}
}
