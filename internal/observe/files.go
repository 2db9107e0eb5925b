package observe

import (
	"encoding/json"
	"fmt"
	"slices"

	"cadre/internal/team"
)

// FileNote is one thing that the files of a team of Claude Code's show. Whoever follows them gives
// the notes, as JSON, among the lines: what the files show of a team is then brought together with
// what its agents say, replayed and kept like any line.
//
// A note has one of Config, Gone, Task, Removed, Entry and Whole.
type FileNote struct {
	Type string    `json:"type"` // [FileNoteType]; the first field, by which it is told from other lines
	Team string    `json:"team"`
	At   team.Time `json:"at"` // when the files were so
	// counts the notes of one follower: no two are alike, and one that comes again is known; 0 for
	// that the team is not there
	N int64 `json:"n"`

	Config  json.RawMessage `json:"config,omitempty"`  // config.json, whole
	Gone    bool            `json:"gone,omitempty"`    // config.json is not there any more
	Task    json.RawMessage `json:"task,omitempty"`    // a task's file, whole
	Removed string          `json:"removed,omitempty"` // the id of a task whose file is not there any more
	To      string          `json:"to,omitempty"`      // in whose inbox Entry is, or was
	Entry   json.RawMessage `json:"entry,omitempty"`
	Key     string          `json:"key,omitempty"`   // of the entry, by which it is known again
	Taken   bool            `json:"taken,omitempty"` // the entry was delivered
	Whole   *Whole          `json:"whole,omitempty"`
}

// FileNoteType is the type of a [FileNote].
const FileNoteType = "claude-team-files"

// Whole says that everything in the files was told at least once: what is known of the team and not
// in here went while nobody looked.
type Whole struct {
	// ids; nil where there is no folder of tasks, because Claude Code swept it away
	Tasks   []string            `json:"tasks"`
	Waiting map[string][]uint64 `json:"waiting"` // the [Mark] of each entry that waits, by inboxes that can be read
}

// configFile is what of config.json is of interest.
type configFile struct {
	CreatedAt   team.Time      `json:"createdAt"`
	Description string         `json:"description"`
	LeadID      string         `json:"leadAgentId"`
	LeadSession string         `json:"leadSessionId"`
	Members     []configMember `json:"members"`
}

type configMember struct {
	AgentID  string    `json:"agentId"`
	Name     string    `json:"name"`
	Type     string    `json:"agentType"`
	Model    string    `json:"model"`
	Prompt   string    `json:"prompt"`
	Color    string    `json:"color"`
	Planned  bool      `json:"planModeRequired"`
	JoinedAt team.Time `json:"joinedAt"`
	Dir      string    `json:"cwd"`
	Active   *bool     `json:"isActive"`
}

// taskFile is a task's file. Of a dependency the file of the task that waits is right.
type taskFile struct {
	ID          string                     `json:"id"`
	Subject     string                     `json:"subject"`
	Description string                     `json:"description"`
	ActiveForm  string                     `json:"activeForm"`
	Owner       string                     `json:"owner"`
	Status      string                     `json:"status"`
	BlockedBy   []string                   `json:"blockedBy"`
	Metadata    map[string]json.RawMessage `json:"metadata"`
}

// inboxEntry is an entry of an inbox.
type inboxEntry struct {
	From    string `json:"from"`
	Text    string `json:"text"`
	Summary string `json:"summary"`
}

// takeNote takes a note of the files.
func (o *Observer) takeNote(name string, src *source, line []byte, now team.Time) {
	var n FileNote
	if err := lenient(json.Unmarshal(line, &n)); err != nil || n.Team == "" {
		o.counts.Garbage++
		o.warn("%s: a note of files that could not be read", name)
		return
	}
	if h := hash(line); n.N > 0 && len(n.Entry) == 0 { // entries have keys
		if o.correlation.done.has(h) {
			o.counts.Duplicates++
			return
		}
		o.correlation.done.add(h)
	}
	at := src.stamp(n.At, now, o.lines)
	if len(n.Config) > 0 {
		o.takeConfig(&n, at)
	}
	if !o.here() || !o.called(n.Team) {
		return
	}
	switch {
	case n.Gone:
		o.ended(o.anID("files"), at, "its files are gone")
		return
	case len(n.Task) > 0:
		o.takeTask(n.Task, at)
	case n.Removed != "":
		if o.board.Tasks[n.Removed] != nil {
			o.board.exists(n.Removed, false, at)
		}
	case len(n.Entry) > 0 && n.Taken:
		o.takeDelivered(&n)
	case len(n.Entry) > 0:
		o.takeEntry(name, &n, at)
	case n.Whole != nil:
		o.takeWhole(n.Whole, at)
	}
	o.settle(o.anID("files"), o.lead(), at)
	o.again()
}

// takeConfig takes the roster. A teammate that is on it has been since it joined, and runs, if
// nobody heard of its end after that; one that was off it is back. What is there was made before it
// was read, whatever a clock said that was ahead.
func (o *Observer) takeConfig(n *FileNote, at stamp) {
	var c configFile
	if lenient(json.Unmarshal(n.Config, &c)) != nil {
		return
	}
	created := stamp{At: min(c.CreatedAt, at.At)}
	switch anew := o.madeAnew(n.Team, c.LeadSession, c.CreatedAt); {
	case !o.here() && !anew && !o.wanted(n.Team, created): // another one, or what is left of one that is over
		return
	case !o.here(), anew:
		for _, m := range c.Members {
			if m.AgentID == c.LeadID && m.Name != "" {
				o.options.Lead = m.Name
				if one := o.session(c.LeadSession); one.Dir == "" {
					one.Dir = m.Dir
				}
			}
		}
		o.found(n.Team, c.LeadSession, "", created, c.Description)
	case !o.called(n.Team):
		return
	case o.epoch.LeadSession == "" && c.LeadSession != "":
		o.led(c.LeadSession, "", created)
	}
	o.epoch.Created = c.CreatedAt
	listed := map[string]bool{}
	for _, m := range c.Members {
		listed[m.Name] = true
		if m.Name == o.lead() {
			continue
		}
		p := o.roster.at(m.Name)
		if p == nil {
			continue
		}
		joined := stamp{At: min(m.JoinedAt, at.At)}
		if p.Ended.V == left {
			joined = at
		}
		p.Joined.learn(true, joined)
		p.About.learn(about{AgentID: m.AgentID, Type: m.Type, Model: m.Model, Color: m.Color, Prompt: m.Prompt,
			Planned: m.Planned}, joined)
		p.Ended.learn("", joined)
		switch {
		case m.Active == nil:
			p.Doing.assume(active)
		case *m.Active:
			p.Doing.learn(active, at)
		default:
			p.Doing.learn(idle, at)
		}
	}
	for name, p := range o.roster.People {
		if !listed[name] && p.Joined.V && p.Ended.V != left && p.About.When.before(at) && p.Ended.When.before(at) {
			o.roster.at(name).Ended.learn(left, at)
		}
	}
	o.identify()
	o.retry = true
}

// takeTask takes a task as its file has it.
func (o *Observer) takeTask(data json.RawMessage, at stamp) {
	var t taskFile
	if lenient(json.Unmarshal(data, &t)) != nil {
		return
	}
	b := o.board
	e := b.exists(t.ID, true, at)
	if e == nil {
		o.warn("a task with the id %.40q", t.ID)
		return
	}
	e.Subject.learn(t.Subject, at)
	e.Description.learn(t.Description, at)
	e.ActiveForm.learn(t.ActiveForm, at)
	e.Owner.learn(t.Owner, at)
	switch team.TaskStatus(t.Status) {
	case team.Pending, team.InProgress, team.Completed:
		e.Status.learn(t.Status, at)
	}
	metadata := map[string]json.RawMessage{}
	for key := range e.Metadata {
		metadata[key] = json.RawMessage("null")
	}
	for key, v := range t.Metadata {
		metadata[key] = v
	}
	e.meta(metadata, at)
	for _, blocker := range t.BlockedBy {
		b.blocks(blocker, t.ID, true, at)
	}
	for blocker := range e.BlockedBy {
		if !slices.Contains(t.BlockedBy, blocker) {
			b.blocks(blocker, t.ID, false, at)
		}
	}
}

// takeEntry takes an entry that waits in an inbox.
func (o *Observer) takeEntry(name string, n *FileNote, at stamp) {
	var e inboxEntry
	if lenient(json.Unmarshal(n.Entry, &e)) != nil || e.From == "" {
		return
	}
	if !o.isNew("inbox", n) {
		return
	}
	if p := o.roster.People[n.To]; p != nil && p.About.V.Prompt == e.Text && e.From == o.lead() {
		return // its prompt, which the roster has
	}
	var word notice
	if isObject([]byte(e.Text)) && json.Unmarshal([]byte(e.Text), &word) == nil && word.Type != "" {
		o.notice(&word, e.From, n.To, at)
		return
	}
	if o.mail.received(name, e.From, n.To, e.Text) {
		o.post(&team.Message{From: e.From, To: n.To, Type: team.TypeMessage, Body: e.Text, Summary: e.Summary})
	}
}

// isNew reports whether that is said of an entry for the first time: whoever begins to follow tells
// of each one that is there.
func (o *Observer) isNew(what string, n *FileNote) bool {
	h := hash(fmt.Sprint(what, o.epoch.Before, " ", n.To, " ", n.Key)) // a team before may have had the like
	if o.correlation.done.has(h) {
		o.counts.Duplicates++
		return false
	}
	o.correlation.done.add(h)
	return true
}

// takeDelivered says delivered of a message that waited in an inbox.
func (o *Observer) takeDelivered(n *FileNote) {
	var e inboxEntry
	if lenient(json.Unmarshal(n.Entry, &e)) != nil || o.s == nil || !o.isNew("taken", n) {
		return
	}
	for _, m := range o.s.Inbox(n.To) {
		if m.From == e.From && m.Body == e.Text {
			o.emit(&team.MessagesDelivered{Member: n.To, Seqs: []int64{m.Seq}})
			return
		}
	}
}

// takeWhole finds out what went while nobody looked.
func (o *Observer) takeWhole(w *Whole, at stamp) {
	if w.Tasks != nil {
		there := make(map[string]bool, len(w.Tasks))
		for _, id := range w.Tasks {
			there[id] = true
		}
		for id, e := range o.board.Tasks {
			if e.There.V && !there[id] && e.There.When.before(at) {
				o.board.exists(id, false, at)
			}
		}
	}
	for _, name := range sortedKeys(w.Waiting) {
		waits := map[uint64]int{}
		for _, mark := range w.Waiting[name] {
			waits[mark]++
		}
		var taken []int64
		for _, m := range o.s.Inbox(name) {
			if mark := Mark(m.From, name, m.Body); waits[mark] > 0 {
				waits[mark]--
			} else {
				taken = append(taken, m.Seq)
			}
		}
		if len(taken) > 0 {
			o.emit(&team.MessagesDelivered{Member: name, Seqs: taken})
		}
	}
}
