package tui

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"cadre/internal/inspect/attention"
	"cadre/internal/inspect/catalog"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
	"cadre/internal/ui/graph"
)

// teamRow is a team in the list. Its texts are sanitized.
type teamRow struct {
	ref     string // the name of the team in commands
	id      string
	name    string
	project string
	state   string
	section attention.Section
	works   bool // it has not ended, and a process of it is alive
	done    int
	tasks   int
	members int      // members that have not ended
	roster  []string // members that have not ended, or whose items wait
	needs   int      // how many items wait for the user
	usage   team.Usage
	updated team.Time
	goal    string

	observed string // the name that its own agents have for an observed team
	stranger string // the name of a team that Claude Code runs and cadre does not observe; "" for others
}

// rowOf returns the row of a team.
func rowOf(e attention.Found) teamRow {
	o := &e.Overview
	row := teamRow{roster: rosterOf(e), ref: e.Folder, id: o.ID, name: sanitize.Line(cmp.Or(o.Name, e.Folder)),
		project: sanitize.Line(o.Project),
		state:   e.State(), members: o.Teammates, done: o.Tasks["completed"], usage: o.Usage, updated: o.UpdatedAt,
		goal: render.Clean(o.Goal), section: e.Section(), needs: e.Needs(),
		works: o.ID != "" && !e.Over() && !o.Dormant}
	if !o.Session {
		row.observed = sanitize.Line(o.Observed)
	}
	for _, n := range o.Tasks {
		row.tasks += n
	}
	return row
}

// itemRow is an item that waits. Its texts are sanitized.
type itemRow struct {
	team.Item
	ref  string // the team
	text string
}

func itemsOf(e attention.Found) (rows []itemRow) {
	for _, i := range e.Items {
		i = i.Known(e.Team.Name, e.Folder)
		rows = append(rows, itemRow{Item: i, ref: e.Folder, text: render.Clean(i.Text)})
	}
	return rows
}

// memberRow is a member of the open team. Its texts are sanitized.
type memberRow struct {
	name     string
	lead     bool
	you      bool // it is the user, who leads without a session
	agent    string
	role     string
	model    string
	mode     string
	state    string    // its status, or what outside observation says
	since    team.Time // since when it does what it does now: it has that status, and works on its task
	works    string
	child    string // id of the team that works for it; "" for none
	waits    string // what it waits for an answer to; "" for nothing
	usage    team.Usage
	context  int64 // percent
	mail     int
	running  bool
	unhosted bool   // no process runs its session
	turn     bool   // it is in a turn
	ending   string // the question whether to end the command that it runs; "" if it runs none
	after    string // what it does once it is interrupted
	held     bool   // it was interrupted, and waits
	limited  bool   // it waits for a rate limit
	holds    bool   // it has a task in progress
	color    int    // of its name: an SGR code
	task     string // the task that it holds or did last, by its name in commands; "" for none
	spending spending
}

// taskRow is a task of the open team. Its texts are sanitized.
type taskRow struct {
	id           string
	called       string
	state        string
	status       team.TaskStatus
	owner        string
	attempts     int64
	subject      string
	why          string // why its last attempt failed
	output       string // last lines of the output of a failed task
	outOfRetries bool
	made         bool   // a group made it
	progress     string // of a group: how many of its tasks are done; "" for other tasks
	usage        team.Usage
}

// teamView is a copy of what is shown of the open team. It does not share memory with the team's
// state.
type teamView struct {
	ref, name, goal, state string
	seq                    int64
	at                     team.Time // of its last change
	lead                   string
	delegate, ended        bool
	dormant                bool // no process of it is alive
	observed               bool // it is only observed: its own agents decide what happens in it
	done, all              int
	usage                  team.Usage
	members                []memberRow
	everyTask              []taskRow
	tasks                  []taskRow // the tasks that are shown
	moreTasks, moreMade    int       // tasks that are not in everyTask; those that groups made
	graph                  graph.Picked
	lastTasks              map[string]string // see [lastTasks]
	requests               map[string]string
	asked                  map[string]asked // open permission requests
	dir                    string
	id                     string // names the team from any directory
	spending               spending
	rules                  []team.Rule
	notes                  []team.Note // the state's own, which never change
}

// mostTasks bounds the tasks of a view separately for each state: in progress, out of retries,
// pending and completed.
const mostTasks = 400

// viewOf copies from a team's state what the screen shows. outside may be nil.
func viewOf(ref string, s *team.State, outside *team.Outside) *teamView {
	return viewAfter(nil, ref, s, outside)
}

// viewAfter is viewOf, given the view before; nil for none. It takes what it has of the tasks, if
// nothing was recorded since: processes are looked at more often than records come.
func viewAfter(before *teamView, ref string, s *team.State, outside *team.Outside) *teamView {
	t := s.Team()
	v := &teamView{ref: ref, name: sanitize.Line(t.Name), goal: render.Clean(t.Goal), state: stateOf(s, outside),
		seq: s.Seq(), at: t.UpdatedAt, lead: t.Lead, delegate: t.Delegate,
		ended: t.Ended() || t.CleanedUp, dormant: s.Dormant(outside), done: s.Count(team.Completed), usage: t.Usage,
		requests: map[string]string{},
		asked:    askedOf(s), dir: t.Dir, id: t.ID, rules: s.Rules(), notes: s.Notes(),
		spending: spending{t.Budget, t.Usage, t.CreatedAt, t.Exhausted}}
	v.observed = t.Observed != ""
	v.all = v.done + s.Count(team.Pending) + s.Count(team.InProgress)
	if before != nil && before.id == v.id && before.seq == v.seq {
		v.everyTask, v.graph, v.lastTasks = before.everyTask, before.graph, before.lastTasks
		v.moreTasks, v.moreMade = before.moreTasks, before.moreMade
	} else {
		v.everyTask, v.moreTasks, v.moreMade = taskRows(s)
		v.graph, v.lastTasks = graph.Pick(s.Tasks(), 0), lastTasks(s)
	}
	v.tasks = v.everyTask
	works, holds, children := render.WorksOn(s), map[string]bool{}, atWork(t.Children)
	began := map[string]team.Time{} // the last task of each member
	for t := range s.Underway() {
		holds[t.Owner] = true
		began[t.Owner] = max(began[t.Owner], t.StartedAt)
	}
	for i, m := range s.Roster() {
		v.members = append(v.members, memberRow{name: m.Name, lead: m.Name == t.Lead,
			you: m.Name == t.Lead && s.LedByUser(), agent: sanitize.Line(m.Agent),
			role: sanitize.Line(m.Role), model: sanitize.Line(m.Model), mode: m.PermissionMode,
			state: string(s.Standing(m.Name, outside)), since: m.Since,
			works: render.Clean(through(children[m.Name]) + works[m.Name]), child: children[m.Name].Team,
			usage: m.Usage, context: m.Context, mail: len(m.Inbox), running: m.Status.Running(),
			turn: m.Status == team.Active, ending: sanitize.Line(s.EndOfCommand(m.Name)), after: m.AfterInterrupt(),
			held: m.Interrupt != 0, limited: s.WaitsForLimit(m.Name) != nil, holds: holds[m.Name],
			color: colorOf(m.Color, i), task: v.lastTasks[m.Name], spending: spending{m.Budget, m.Charged(), m.BudgetSince(), m.Exhausted}})
		if m.Status == team.Active {
			v.members[i].since = max(m.Since, began[m.Name])
		}
		if one := &v.members[i]; one.you {
			one.state, one.since, one.works = render.You, 0, strings.TrimSuffix(one.works, render.You)
		}
		if v.ended && m.Status.Running() { // only the lead is left, and it is idle
			v.members[i].state, v.members[i].works, v.members[i].running = string(t.Status), "", false
		}
		if m.Plan.State == "submitted" {
			v.requests[m.Plan.Request] = sanitize.Lines(m.Plan.Text)
			v.members[i].waits = "plan submitted"
		}
	}
	v.unhost(s, outside)
	for _, p := range s.Permissions() {
		v.requests[p.Request] = sanitize.Line(p.Tool) + "\n" + inputOf(p.Input)
		for i := range v.members {
			if one := &v.members[i]; one.name == p.Member {
				one.waits = "asks for " + sanitize.Line(p.Tool)
			}
		}
	}
	slices.SortStableFunc(v.members, func(a, b memberRow) int { return a.rank() - b.rank() })
	return v
}

// atWork returns the child team that works for each member.
func atWork(all []team.Child) map[string]team.Child {
	of := map[string]team.Child{}
	for _, c := range all {
		if !c.Over {
			of[c.Member] = c
		}
	}
	return of
}

// through names the team that does the work of the member; "" for none.
func through(c team.Child) string {
	if c.Team == "" {
		return ""
	}
	return "team " + c.Name + " works: "
}

// lastTasks returns, for each member, the task that it works on, or else the last one that it
// completed.
func lastTasks(s *team.State) map[string]string {
	last := map[string]string{}
	for t := range s.Tasks() {
		if by := cmp.Or(t.CompletedBy, t.Owner); t.Status == team.Completed && by != "" {
			last[by] = t.Ref()
		}
	}
	for t := range s.Underway() {
		last[t.Owner] = t.Ref()
	}
	return last
}

// rank sorts the lead first, and members that have ended last.
func (m memberRow) rank() int {
	switch {
	case m.lead:
		return 0
	case m.running:
		return 1
	}
	return 2
}

// unhost marks the members whose sessions no process runs. Their turns ended with the process.
func (v *teamView) unhost(s *team.State, outside *team.Outside) {
	unhosted := s.Unhosted(outside)
	for i := range v.members {
		one := &v.members[i]
		gone := outside != nil && outside.Sights[one.name].HostGone && one.running
		if gone || slices.Contains(unhosted, one.name) {
			one.unhosted, one.turn, one.ending = true, false, ""
		}
	}
}

// taskRows returns the tasks in this order: in progress, failed, open, and completed, the newest
// first. It also returns how many are left out, and how many of those that groups made.
func taskRows(s *team.State) (rows []taskRow, more, moreMade int) {
	var parts [4][]taskRow
	var kept [4][2]int // rows of each part: those that no group made, and the others
	left := [2]int{}
	for t := range s.Tasks() {
		part := slices.Index([]bool{t.Status == team.InProgress, t.OutOfRetries(), t.Status == team.Pending,
			t.Status == team.Completed}, true)
		if part < 0 {
			continue
		}
		made := 0
		if s.Folded(t) {
			made = 1
		}
		n := &kept[part][made]
		switch {
		case *n == mostTasks && part == 3: // the newest ones stay
			drop := mostTasks / 4
			parts[3] = slices.DeleteFunc(parts[3], func(r taskRow) bool {
				old := r.made == (made == 1) && drop > 0
				if old {
					drop--
				}
				return old
			})
			*n, left[made] = *n-mostTasks/4, left[made]+mostTasks/4
		case *n == mostTasks:
			left[made]++
			continue
		}
		*n++
		parts[part] = append(parts[part], taskRowOf(s, &t))
	}
	slices.Reverse(parts[3])
	return slices.Concat(parts[:]...), left[0], left[1]
}

func taskRowOf(s *team.State, t *team.Task) taskRow {
	row := taskRow{id: t.ID, called: sanitize.Line(t.Called()), state: render.TaskState(*t), status: t.Status,
		owner: t.Worker(), attempts: t.Attempts, subject: render.Clean(t.Subject), why: render.Clean(t.Failure),
		outOfRetries: t.OutOfRetries(), made: s.Folded(*t), usage: t.Usage}
	if t.OutOfRetries() {
		row.output = lastLines(t.Result, mostOfFailure)
	}
	if t.Group() {
		row.progress = s.Progress(t.ID)
	}
	return row
}

// mostOfFailure is how many lines of a failed task's output are shown where the task waits for the
// user.
const mostOfFailure = 8

// lastLines returns the last lines of a text.
func lastLines(text string, most int) string {
	lines := strings.Split(strings.TrimRight(sanitize.Lines(text), " \t\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-most):], "\n")
}

// stateOf returns the state of the team in words. It does not know whether a process observes it.
func stateOf(s *team.State, outside *team.Outside) string {
	t := s.Team()
	o := catalog.Overview{Status: t.Status, Observed: t.Observed, Watched: true, Released: t.Released.At,
		Dormant: outside != nil && s.Dormant(outside), Interrupted: outside != nil && s.Interrupted(outside)}
	if t.Status == team.TeamConsolidating && !t.Consolidation.Open() {
		o.Winding = "winding_down"
		if s.ReadyToConsolidate() {
			o.Winding = "ready"
		}
	}
	if t.CleanedUp {
		return "removed"
	}
	return o.State()
}

// inputOf returns the whole input of a tool, as lines that can be read: first the command or the
// file, then an edit as the lines that it removes and adds, then the rest.
func inputOf(input string) string {
	fields, is := fieldsOf(input)
	if !is {
		return strings.TrimSpace(sanitize.Lines(indented(input)))
	}
	var out []string
	add := func(key, mark string) {
		var text string
		if json.Unmarshal(fields[key], &text) != nil || text == "" {
			return
		}
		delete(fields, key)
		for line := range strings.Lines(sanitize.Lines(text)) {
			out = append(out, mark+strings.TrimSuffix(line, "\n"))
		}
	}
	for _, key := range []string{"command", "file_path", "notebook_path", "url"} {
		add(key, "")
	}
	add("old_string", "- ")
	for _, key := range []string{"new_string", "new_source", "content"} {
		add(key, "+ ")
	}
	var rest strings.Builder
	e := json.NewEncoder(&rest)
	e.SetEscapeHTML(false)
	if len(fields) > 0 && e.Encode(fields) == nil {
		out = append(out, strings.TrimSpace(sanitize.Lines(indented(rest.String()))))
	}
	return strings.Join(out, "\n")
}

// fieldsOf returns the fields of a JSON object. It refuses one that names a field twice: the whole
// text is shown unchanged.
func fieldsOf(input string) (fields map[string]json.RawMessage, is bool) {
	d := json.NewDecoder(strings.NewReader(input))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, false
	}
	fields = map[string]json.RawMessage{}
	for d.More() {
		key, err := d.Token()
		name, named := key.(string)
		var value json.RawMessage
		if err != nil || !named || d.Decode(&value) != nil || fields[name] != nil {
			return nil, false
		}
		fields[name] = value
	}
	_, err := d.Token()
	return fields, err == nil && !d.More()
}

// tokens returns how many tokens were used; "" for none.
func tokens(u team.Usage) string {
	switch n := u.Tokens(); {
	case n == 0:
		return ""
	case n < 10_000:
		return fmt.Sprint(n)
	case n < 10_000_000:
		return fmt.Sprintf("%dk", n/1000)
	default:
		return fmt.Sprintf("%dM", n/1_000_000)
	}
}

// cost returns the spent amount; "" for nothing.
func cost(u team.Usage) string {
	if u.CostMicroUSD == 0 {
		return ""
	}
	return fmt.Sprintf("$%.2f", float64(u.CostMicroUSD)/1e6)
}
