package checkpoint

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"cadre/internal/render/excerpt"
	"cadre/internal/sys/crc32c"
	"cadre/internal/team"
)

// partSize is the size in bytes at which a log becomes an older part. It is small, because each
// checkpoint writes the newest part again.
const partSize = 32 << 10

// partsPerFolder bounds the listings that a new part changes.
const partsPerFolder = 100

// Bounds of what state.json shows of lists and texts that may be long.
const (
	lastCompleted = 20 // tasks
	glanceSize    = 80 // bytes of a text
)

// draft is the next checkpoint while it is made: first the log lines for the team's records, then
// the state.
type draft struct {
	base    int64 // position of the record before the journal's first one
	parts   [2]int
	tails   [2][]byte
	files   map[string][]byte
	touched map[string]bool // tasks that may have changed
	all     bool            // all tasks may have changed

	doc    document
	closed [][]byte // lines of completed and deleted tasks
	kept   team.Kept
	prev   *image
	team   team.Team
	news   news
	done   []team.Work // of tasks that may have changed
	works  []string    // those commits of done that the checkpoint carries
	readme readme
	record []byte // COMPLETED, redacted
}

// follow begins the checkpoint after prev, which is nil for the first one.
func follow(prev *image, base int64) *draft {
	d := &draft{base: base, files: map[string][]byte{}, touched: map[string]bool{}, all: prev == nil, prev: prev}
	if prev != nil {
		for n := range logs {
			d.parts[n], d.tails[n] = prev.doc.Logs[n].Parts, slices.Clip(prev.tails[n])
		}
	}
	return d
}

// read adds the records after seq after up to through, and returns the seq of the last one.
func (d *draft) read(ctx context.Context, source Source, after, through int64) (int64, error) {
	if after >= through {
		return after, nil
	}
	for r, err := range source.Read(ctx, after) {
		if err != nil {
			return after, err
		}
		d.add(r)
		if after = r.Seq; after == through {
			return after, nil
		}
	}
	return after, fmt.Errorf("the history ends at record %d of %d", after, through)
}

// add adds a record, in order.
func (d *draft) add(r *team.Record) {
	var of [2][]team.Event
	for _, e := range r.Events {
		d.news.add(e)
		switch e := e.(type) {
		case *team.MessageSent, *team.MessagesDelivered, *team.MessagesRead, *team.MessagesReturned:
			of[mailbox] = append(of[mailbox], e)
		default:
			if d.touch(e) {
				of[tasks] = append(of[tasks], e)
			}
		}
	}
	for n, events := range of {
		if len(events) == 0 {
			continue
		}
		// encoding/json would change the text from what it is in the journal.
		line, _ := team.Record{Seq: d.base + r.Seq, ID: r.ID, Actor: r.Actor, At: r.At, Events: events}.MarshalJSON()
		d.line(n, line)
	}
}

// touch records which tasks an event changes. It reports whether the event is about tasks.
func (d *draft) touch(e team.Event) bool {
	touch := func(ids ...string) {
		for _, id := range ids {
			d.touched[id] = true
		}
	}
	switch e := e.(type) {
	case *team.TaskCreated:
		touch(e.Task.ID)
		touch(e.Task.BlockedBy...)
	case *team.TaskExpanded:
		touch(e.Task)
		touch(e.Tasks...)
	case *team.TaskFolded:
		touch(e.Task)
	case *team.TaskUpdated:
		touch(e.Task)
		touch(slices.Concat(e.AddBlockedBy, e.RemoveBlockedBy, e.AddBlocks, e.RemoveBlocks)...)
	case *team.TaskRevised:
		touch(e.Task.ID)
	case *team.TaskClaimed:
		touch(e.Task)
	case *team.TaskRolledBack:
		touch(e.Task)
	case *team.TaskReleased:
		touch(e.Task)
	case *team.TaskFailed:
		touch(e.Task)
	case *team.TaskCompleted:
		touch(e.Task)
	case *team.TaskSkipped:
		touch(e.Task)
	case *team.TaskSubmitted:
		touch(e.Task)
		for _, id := range e.Tasks {
			touch(id)
		}
	case *team.TaskRejected:
		touch(e.Task)
	case *team.WordsRecorded:
		touch(e.Task)
	case *team.TaskDeleted:
		touch(e.Task)
	case *team.UsageReported:
		touch(e.Task)
		return false
	case *team.WorkRecorded:
		touch(e.Task)
		return false
	case *team.TeamRestored:
		d.all = true
		return false
	default:
		return false
	}
	return true
}

func (d *draft) line(log int, line []byte) {
	line = RedactJSON(line)
	if tail := d.tails[log]; len(tail) > 0 && len(tail)+len(line) >= partSize {
		d.parts[log]++
		d.files[partFile(log, d.parts[log])] = tail
		d.tails[log] = nil
	}
	d.tails[log] = append(append(d.tails[log], line...), '\n')
}

// see copies from the state what a checkpoint holds of it. The state includes the last added
// record. It is locked meanwhile, so finish does the rest.
func (d *draft) see(s *team.State, beside Beside) {
	t := s.Team()
	d.team, d.kept = t, team.Keep(s)
	d.closed, d.done, d.readme = nil, nil, readme{}
	d.doc = document{Version: version, TeamID: t.ID, TeamName: t.Name, Parent: t.Parent.Team, Sequence: s.Position(),
		History: t.Restored.ID,
		Created: t.CreatedAt, Updated: t.UpdatedAt,
		LeadSession: t.LeadSession, Status: t.Status, Teammates: []teammate{}, MailboxSeq: s.MessageSeq(),
		Facts: map[string]string{}, Released: t.Released != team.Released{}}
	if beside.Completed != nil {
		d.record = RedactJSON(beside.Completed)
		d.doc.Completed = fmt.Sprintf("%x", sha256.Sum256(d.record))
	}
	if d.prev != nil {
		d.doc.Before = d.prev.doc.Before
		if d.prev.doc.History != d.doc.History {
			d.doc.Before = append(slices.Clip(d.doc.Before), Ended{t.Restored.From, t.Restored.Seq})
		}
	} else if t.Restored.ID != "" {
		d.doc.Before = []Ended{{t.Restored.From, t.Restored.Seq}}
	}
	for _, f := range t.Facts {
		d.doc.Facts[f.Name] = f.SHA256
	}
	held := d.seeTasks(s)
	for i, m := range s.Members() {
		if m.Name == t.Lead {
			if d.doc.LeadSession == "" { // an agent leads, and none of its processes is known
				d.doc.LeadSession = m.Session
			}
			continue
		}
		d.doc.Teammates = append(d.doc.Teammates, teammate{m.Name, i - 1, m.Agent, m.Role, m.Role, m.Status,
			held[m.Name], m.Context, beside.Heartbeats[m.Name], m.DeliveredSeq, d.doc.Sequence})
	}
	d.doc.TeammateCount = len(d.doc.Teammates)
	d.readme.see(s, d.doc)
}

// carry adds the team's work in the repository.
func (d *draft) carry(w Work) {
	d.doc.Work, d.doc.Commit = w, w.Head
}

// commits returns the commits of the work, and of the checkpoints of the teams in the team.
func (doc *document) commits() []string {
	all := doc.Work.commits()
	for _, n := range doc.Nested {
		if n.Commit != "" {
			all = append(all, n.Commit)
		}
	}
	return all
}

// carried returns the commits that the last checkpoint does not carry.
func (d *draft) carried() []string {
	var had, all []string
	if d.prev != nil {
		had = d.prev.doc.commits()
	}
	for _, id := range slices.Concat(d.doc.commits(), d.works) {
		if !slices.Contains(had, id) && !slices.Contains(all, id) {
			all = append(all, id)
		}
	}
	return all
}

// seeTasks reads open tasks and tasks that may have changed. It returns the tasks in progress, by
// member.
func (d *draft) seeTasks(s *team.State) (held map[string]string) {
	q := queue{Pending: []string{}, InProgress: []claim{}, Completed: []string{}, Count: s.Count(team.Completed)}
	held = map[string]string{}
	for _, p := range d.kept.Tasks {
		task, _ := s.Task(strconv.FormatInt(p.N, 10))
		if task.Status == team.Pending {
			q.Pending = append(q.Pending, task.ID)
			continue
		}
		quantum := task.Role
		if owner, _ := s.Member(task.Owner); quantum == "" {
			quantum = owner.Role
		}
		held[task.Owner] = task.ID
		q.InProgress = append(q.InProgress, claim{task.ID, quantum, glance(task.Subject), task.Owner,
			append([]string{}, task.BlockedBy...), task.Status, task.CreatedAt, glance(task.Description)})
	}
	var completed []team.Task
	for _, id := range d.changed(s) {
		task, _ := s.Task(id)
		if w := task.Work; w != nil && w.Done && w.Commit != "" {
			d.done = append(d.done, *w)
		}
		switch task.Status {
		case team.Pending, team.InProgress:
			continue
		case team.Completed:
			completed = append(completed, task)
		}
		whole, _ := task.MarshalJSON()
		d.closed = append(d.closed, fmt.Appendf(nil, `{"seq":%d,"at":%d,"task":%s}`, d.doc.Sequence,
			d.doc.Updated, whole))
	}
	if d.prev != nil {
		for _, id := range d.prev.doc.Queue.Completed {
			if task, _ := s.Task(id); task.Status == team.Completed && !d.all && !d.touched[id] {
				completed = append(completed, task)
			}
		}
	}
	slices.SortFunc(completed, func(a, b team.Task) int {
		return cmp.Or(cmp.Compare(a.CompletedAt, b.CompletedAt), team.CompareIDs(a.ID, b.ID))
	})
	for _, task := range completed[max(0, len(completed)-lastCompleted):] {
		q.Completed = append(q.Completed, task.ID)
	}
	d.doc.Queue = q
	return held
}

// changed returns the ids of the tasks that may have changed, in order.
func (d *draft) changed(s *team.State) (ids []string) {
	if !d.all {
		return slices.SortedFunc(maps.Keys(d.touched), team.CompareIDs)
	}
	for id := 1; ; id++ {
		task, ok := s.Task(strconv.Itoa(id))
		if !ok {
			return ids
		}
		ids = append(ids, task.ID)
	}
}

// glance returns the beginning of a text, for people. The logs have the whole text.
func glance(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return excerpt.Bytes(text, glanceSize, excerpt.Mark)
}

// finish makes the image from what was added and seen. It also returns the files that differ from
// the last checkpoint.
func (d *draft) finish() (*image, map[string][]byte, error) {
	for _, line := range d.closed {
		d.line(tasks, line)
	}
	next := &image{doc: d.doc, tails: d.tails, from: map[string][32]byte{}}
	for n := range logs {
		next.doc.Logs[n] = logEnd{logs[n].file, d.parts[n], len(d.tails[n]), crc32c.Checksum(d.tails[n])}
		d.files[logs[n].file] = d.tails[n]
	}
	d.write(next)
	var state bytes.Buffer
	e := json.NewEncoder(&state)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(next.doc); err != nil {
		return nil, nil, err
	}
	d.files[stateFile] = RedactJSON(state.Bytes())
	d.files[readmeFile] = d.readme.text(next.doc)
	if d.record != nil && (d.prev == nil || d.prev.doc.Completed != d.doc.Completed) {
		d.files[completedFile] = d.record
	}
	next.message = d.news.message(next.doc)
	next.carried = d.carried()
	return next, d.files, nil
}
