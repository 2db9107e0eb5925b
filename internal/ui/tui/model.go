package tui

import (
	"cmp"
	"context"
	"slices"
	"time"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/engine"
	"cadre/internal/team"
)

// place is what the screen shows.
type place int

// The places. A key leads from each one back to the one before.
const (
	atTeams place = iota
	atTeam
	atMember
	atAttention
	atTask
)

// outside is what the model needs from outside. The model calls it only within commands, so Update
// stays pure. Any goroutine may call it.
type outside interface {
	// OpenTeam and OpenSession follow that team or session instead of the one before; "" for none.
	// Commands run concurrently: a call whose order is lower than that of an earlier call does
	// nothing.
	OpenTeam(order int, ref string)
	OpenSession(order int, ref, member string)
	// Reassign gives a task to another member, as the user. Without force it does not take the task
	// from a member that may work on it, and returns a [busyMsg].
	Reassign(ref, task, to string, force bool) tea.Msg
	// Answered returns who answered the request.
	Answered(ref, request string) tea.Msg
	// Command runs a command of cadre on the team, and returns an [outputMsg]. It ends the command
	// with ctx. Meanwhile it sends what the command prints as a [printingMsg] with the number, but
	// nothing for the number 0.
	Command(ctx context.Context, number int, ref string, args []string) tea.Msg
	// Moment returns the team as it was after the record seq, as a [momentMsg].
	Moment(ref string, seq int64) tea.Msg
	// Task returns a task as it was after the record seq, or as it is now for 0, as a [taskMsg].
	Task(ref, id string, seq int64) tea.Msg
	// Diff returns the changes of a task, as a [diffMsg].
	Diff(ref, task string) tea.Msg
	// Staging returns what a consolidation of the team with these options would do, as a
	// [stagingMsg].
	Staging(ref string, include, only []string) tea.Msg
	// Search returns the texts that match, as a [foundMsg] with the number. It ends the search
	// before.
	Search(number int, q engine.Search) tea.Msg
	// Act sends a command as the user. said is shown when it is done.
	Act(ref string, body team.Body, said string) tea.Msg
}

// Model is the whole state of the screen.
type Model struct {
	out    outside
	hosted string // the team that this process runs; "" for none
	alone  bool   // no shell could resume the process if it was suspended

	width, height int
	now           team.Time        // of the last tick
	clock         func() team.Time // the time between ticks

	place place
	back  []stop

	listed      bool // the teams were read
	everyTeam   []teamRow
	strangers   []teamRow         // the teams of Claude Code, also those that are observed
	own         []teamRow         // the teams of the home, as they were read
	names       map[string]string // of teams by ref; see namesOf
	teams       []teamRow         // the teams that are shown
	narrowTeams narrowing
	narrowTasks narrowing // of the open team
	unfolded    bool      // the list of its tasks shows those that groups made
	everyItem   []itemRow // in the order in which they were read
	items       []itemRow // in the order in which they are shown
	first       string    // the team whose items come first; "" for none

	order   int    // counts the requests to open something
	ref     string // the open team; "" for none
	team    *teamView
	feed    []feedLine
	tab     tab
	scroll  int // of the messages, in lines from the end
	trouble string
	past    *recalled        // the history of the open team; nil before it was read
	travel  travel           // where the person is in the history
	looked  map[string]int64 // the last record of each team that the screen showed

	member  string // the open member; "" for none
	session session
	typing  bool              // letters go to the line to the open member
	drafts  map[string]*field // the lines typed to members, by team and name

	chosen     chosen
	mine       string    // the request that was answered here last
	handled    string    // the item that was handled here last
	moved      bool      // the next item was selected, in the last second or two, when that one was settled
	heldUntil  team.Time // until then an answer may be the repetition of a held key that was refused
	detail     int       // the first line that is shown of the selected item
	detailPage int       // how many lines of it were shown
	plan       laidOut

	shown taskView // the open task

	notice     notice
	ask        *question
	input      *prompting
	running    []*running // commands of the palette that have not ended, the last one at the end
	commands   int        // counts them
	typedLines []string   // lines of the palette, the last one at the end
	refused    *prompting // a line that was refused, and waits until the keys are free
	overlay    *pager
	menu       *menu
	menuFor    string      // the team whose menu opens when it has been read; "" for none
	searches   int         // counts the searches
	searching  int         // the number of the search whose answer is shown; 0 for none
	sought     string      // the line of the last search
	seeks      int64       // the record to show among the messages, once they are read; 0 for none
	late       []outputMsg // what commands printed while the person typed
	stirred    bool        // a key was pressed since a command began, or in the last second or two

	clickable []spot // in the last frame
	mouseOff  bool   // the mouse is left to the terminal
}

// stop is a place that a key leads back to, and the team that was open there.
type stop struct {
	place place
	ref   string
}

// chosen is the selection in each list, by an id that survives a change of the list.
type chosen struct{ team, member, task, item string }

// yesOrNo returns a question that calls do if the answer is yes.
func yesOrNo(text string, do func(*Model) tea.Cmd) *question {
	return &question{text: text, options: []option{{[]string{"y", "Y"}, "yes", do}}}
}

// notice is a line that says what a key did, or why it did nothing.
type notice struct {
	text string
	look style
}

// question is asked before the screen does something.
type question struct {
	text    string
	options []option
	line    *prompting // the line that the question is about, which comes back after a no; nil for none
	no      string     // what any other key means; "" for no
	leaves  bool       // it asks what happens to the team on quitting
	cancels *running   // the command that it asks whether to end; nil for none
}

// option is an answer to a question.
type option struct {
	names []string // the keys that choose it; the first one is shown
	label string
	do    func(*Model) tea.Cmd
}

// These messages come from outside.
type (
	clockMsg team.Time
	teamsMsg struct {
		teams []teamRow
		items []itemRow
		err   error
	}
	teamMsg struct {
		ref   string
		view  *teamView
		feed  []feedLine // new lines
		fresh bool       // feed has all lines, from the beginning
		steps []string   // the steps of a consolidation
		err   error
	}
	actedMsg struct {
		said  string
		err   string
		draft *unsent    // a message that was refused
		line  *prompting // the line that was refused
	}
)

// newModel returns a model that shows the team ref, or the list of teams for "".
func newModel(out outside, ref string, clock func() team.Time) *Model {
	m := &Model{out: out, now: clock(), clock: clock, looked: map[string]int64{}}
	if ref != "" {
		m.place, m.back, m.ref = atTeam, []stop{{atTeams, ""}}, ref
	}
	return m
}

// Init opens the team that the program was started with.
func (m *Model) Init() tea.Cmd { return tea.Batch(m.open(m.ref), tick()) }

// tick sends the time once a second, to update durations on the screen.
func tick() tea.Cmd {
	return tea.Every(time.Second, func(at time.Time) tea.Msg { return clockMsg(at.UnixMilli()) })
}

// open makes the team the open one.
func (m *Model) open(ref string) tea.Cmd {
	if ref != m.ref {
		m.ref, m.team, m.feed, m.trouble, m.member = ref, nil, nil, "", ""
		m.chosen.member, m.chosen.task, m.scroll, m.tab = "", "", 0, 0
		m.past, m.travel, m.narrowTasks, m.shown = nil, travel{}, narrowing{}, taskView{}
		m.unfolded, m.seeks = false, 0
		m.sortItems() // without those of the past
	}
	m.order++
	out, order := m.out, m.order
	return func() tea.Msg {
		out.OpenTeam(order, ref)
		return nil
	}
}

// act sends a command to the open team.
func (m *Model) act(ref string, body team.Body, said string) tea.Cmd {
	if m.away() {
		m.notice = notice{inPast, waits}
		return nil
	}
	out := m.out
	return func() tea.Msg { return out.Act(ref, body, said) }
}

// Update handles a message.
func (m *Model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.width, m.height = msg.Width, msg.Height
		m.overlay.resized(m.width)
		if m.overlay != nil && m.overlay.stage != nil {
			m.stageText()
		}
	case clockMsg:
		m.now = max(m.now, team.Time(msg))
		m.catchUp()
		return m, tea.Batch(tick(), m.readDiff())
	case teamsMsg:
		before, was := m.item()
		at := m.itemIndex()
		m.list(msg)
		return m, tea.Batch(m.settled(before, was), m.nextItem(at))
	case strangersMsg:
		m.strangers = msg
		m.sortTeams()
		m.applyTeams()
	case teamMsg:
		m.see(msg)
		return m, m.readTask()
	case toolsMsg:
		m.used(msg)
	case diffMsg:
		m.readsDiff(msg)
	case taskMsg:
		m.readsTask(msg)
	case recordsMsg:
		m.recalls(msg)
	case momentMsg:
		m.arrives(msg)
		return m, m.readTask()
	case actedMsg:
		m.acted(msg)
	case busyMsg:
		m.takes(msg)
	case noteMsg:
		m.notice = notice{oneLine(string(msg)), waits}
	case sessionMsg:
		if msg.ref == m.ref && msg.member == m.member {
			m.session.add(msg)
		}
	case stagingMsg:
		m.stages(msg)
	case outputMsg:
		m.printed(msg)
	case printingMsg:
		m.prints(msg)
	case completionMsg:
		m.completed(msg)
	case foundMsg:
		m.found(msg)
	case tea.PasteMsg:
		if f := m.typed(); f != nil {
			f.insert(msg.Content)
		}
	case tea.KeyPressMsg:
		return m, m.press(msg)
	case tea.MouseWheelMsg:
		return m, m.wheel(msg.Button)
	case tea.MouseClickMsg:
		return m, m.click(msg)
	}
	return m, nil
}

// list stores a new list of teams.
func (m *Model) list(msg teamsMsg) {
	if msg.err != nil {
		m.notice = notice{oneLine(msg.err.Error()), alarm}
		return
	}
	m.listed, m.own, m.everyItem = true, msg.teams, msg.items
	m.names = namesOf(msg.teams)
	m.sortTeams()
	m.sortItems()
	m.applyTeams()
}

// sortTeams lists all teams by section.
func (m *Model) sortTeams() {
	m.everyTeam = m.withStrangers(slices.Clone(m.own))
	slices.SortStableFunc(m.everyTeam, func(a, b teamRow) int { return int(a.section - b.section) })
}

// see stores a new state of the open team.
func (m *Model) see(msg teamMsg) {
	if msg.ref != m.ref {
		return // the team was closed meanwhile
	}
	if msg.err != nil {
		m.trouble = oneLine(msg.err.Error())
		if m.menuFor == msg.ref {
			m.menuFor, m.notice = "", notice{m.trouble, alarm}
		}
		return
	}
	m.steps(msg)
	view, feed := &m.team, &m.feed
	if m.away() {
		view, feed = &m.travel.live, &m.travel.liveLog
	}
	m.trouble, *view = "", msg.view
	m.applyTasks(msg.view)
	if msg.fresh {
		*feed = nil
	}
	if m.scroll > 0 && !m.away() { // the lines that a person reads stay where they are
		m.scroll += len(msg.feed)
	}
	m.opensMenu()
	m.closesLine()
	*feed = append(*feed, msg.feed...)
	if over := len(*feed) - mostFeed; over > 0 {
		*feed = slices.Clone((*feed)[over:])
	}
	m.seek()
}

func (m *Model) acted(msg actedMsg) {
	m.notice = notice{msg.said, good}
	if msg.err != "" {
		m.notice = notice{msg.err, alarm}
	}
	if msg.line != nil {
		m.returns(msg.line)
	}
	if back := msg.draft; back != nil {
		if line := m.draftTo(back.key); line.empty() {
			line.set(back.text)
		}
	}
}

// enter goes to a place. A key leads back.
func (m *Model) enter(p place) {
	if m.place == p {
		return
	}
	m.back = append(m.back, stop{m.place, m.ref})
	m.place, m.notice = p, notice{}
}

// leave goes back to the place before.
func (m *Model) leave() tea.Cmd {
	if len(m.back) == 0 {
		return nil
	}
	last := m.back[len(m.back)-1]
	m.back, m.notice = m.back[:len(m.back)-1], notice{}
	var cmds []tea.Cmd
	if m.place == atMember && last.place != atMember {
		cmds = append(cmds, m.closeMember())
	}
	m.place = last.place
	if last.ref != m.ref {
		cmds = append(cmds, m.open(last.ref))
	}
	cmds = append(cmds, m.readTask())
	return tea.Batch(cmds...)
}

// teamName returns what a person calls the team: its name, or its name in commands if another team
// has the same one.
func (m *Model) teamName(ref string) string { return cmp.Or(m.names[ref], oneLine(ref)) }

// namesOf returns the name of each team whose name is unique, by its name in commands.
func namesOf(teams []teamRow) map[string]string {
	count, names := map[string]int{}, map[string]string{}
	for _, one := range teams {
		count[one.name]++
	}
	for _, one := range teams {
		if count[one.name] == 1 {
			names[one.ref] = one.name
		}
	}
	return names
}
