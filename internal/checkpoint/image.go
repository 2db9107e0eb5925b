package checkpoint

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"

	"cadre/internal/team"
)

// version of the format. A checkpoint of another major version is refused.
const version = "1.0"

// partSize is how long a log grows before it becomes an older part, in bytes: small, because each checkpoint writes the newest part anew.
const partSize = 32 << 10

// partsPerFolder bounds the listings that a new part changes.
const partsPerFolder = 100

// Beside is what a checkpoint tells of a team that is not in its state.
type Beside struct {
	Heartbeats map[string]team.Time // when each member was last heard of
	Commit     string               // the project's, last known to be good
}

// document is state.json. Its head is for people and programs; restoring needs no more of it than the sequence and the logs.
type document struct {
	Version       string            `json:"version"`
	TeamID        string            `json:"team_id"`
	TeamName      string            `json:"team_name"`
	Sequence      int64             `json:"checkpoint_sequence"` // records of the team that it covers
	History       string            `json:"history,omitempty"`   // of a team that was restored: which of its histories
	Created       team.Time         `json:"created_utc_ms"`
	Updated       team.Time         `json:"updated_utc_ms"`
	LeadSession   string            `json:"lead_session_id"`
	Status        team.TeamStatus   `json:"status"`
	TeammateCount int               `json:"teammate_count"`
	Teammates     []teammate        `json:"teammates"`
	Queue         queue             `json:"task_queue"`
	MailboxSeq    int64             `json:"mailbox_seq"`
	Facts         map[string]string `json:"facts_checksums"`
	Commit        string            `json:"git_commit_sha,omitempty"`
	Logs          [2]logEnd         `json:"logs"`
	Digest        string            `json:"digest"` // SHA-256 of what follows
	Restore       json.RawMessage   `json:"restore,omitempty"`
}

type teammate struct {
	ID             string            `json:"id"`
	Index          int               `json:"index"`
	Agent          string            `json:"agent"`
	Role           string            `json:"role"`
	Status         team.MemberStatus `json:"status"`
	Task           string            `json:"task_claimed"`
	Context        int64             `json:"context_usage_percent"`
	Heartbeat      team.Time         `json:"heartbeat_utc_ms"`
	LastMessage    int64             `json:"last_message_seq"`
	LastCheckpoint int64             `json:"last_checkpoint_seq"`
}

type queue struct {
	Pending    []string `json:"pending"`
	InProgress []claim  `json:"in_progress"`
	Completed  []string `json:"completed"`
}

type claim struct {
	ID           string          `json:"id"`
	Subject      string          `json:"subject"`
	Assignee     string          `json:"assigned_to"`
	Dependencies []string        `json:"dependencies"`
	Status       team.TaskStatus `json:"status"`
	Created      team.Time       `json:"created_utc_ms"`
}

// logEnd is how far a log belongs to a checkpoint.
type logEnd struct {
	Name  string `json:"name"`
	Parts int    `json:"parts"` // older ones
	Bytes int    `json:"bytes"` // of the newest
	CRC   uint32 `json:"crc"`   // Castagnoli's, of these
}

// The logs, in the order in which a document has them.
const (
	mailbox = iota
	tasks
)

var logs = [2]struct{ file, stem, ending string }{{"mailbox.log", "mailbox", ".log"}, {"tasks.jsonl", "tasks", ".jsonl"}}

const stateFile = "state.json"

// partFile is the name of the older part n, from 1, of a log.
func partFile(log, n int) string {
	return fmt.Sprintf("%s/%04d/%04d%s", logs[log].stem, (n-1)/partsPerFolder, n, logs[log].ending)
}

// image is a checkpoint, as far as the next one needs it.
type image struct {
	doc   document
	tails [2][]byte // the newest part of each log
}

// partsIn is how many older parts a state.json knows of a log.
func partsIn(state []byte, log int) (int, error) {
	var doc document
	err := json.Unmarshal(state, &doc)
	return doc.Logs[log].Parts, err
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// open reads the image from the files of a checkpoint. The tails may be longer than they were then.
func open(state []byte, tails [2][]byte) (*image, error) {
	i := &image{tails: tails}
	if err := json.Unmarshal(state, &i.doc); err != nil {
		return nil, fmt.Errorf("%s cannot be read: %w", stateFile, err)
	}
	switch {
	case i.doc.Version == "":
		return nil, fmt.Errorf("%s is none of cadre's: it has no version", stateFile)
	case i.doc.Version != version:
		return nil, fmt.Errorf("%s has the version %q, and this cadre knows %s; update cadre", stateFile, i.doc.Version, version)
	case i.doc.TeamID == "" || i.doc.Sequence <= 0:
		return nil, fmt.Errorf("%s names no team and no record", stateFile)
	}
	sum := sha256.Sum256(i.doc.Restore)
	if hex.EncodeToString(sum[:]) != i.doc.Digest {
		return nil, fmt.Errorf("%s was damaged or changed by hand: its digest is not that of what it holds", stateFile)
	}
	for n := range logs {
		end := i.doc.Logs[n]
		if len(tails[n]) < end.Bytes || end.Bytes < 0 || end.Parts < 0 {
			return nil, fmt.Errorf("%s has %d bytes and should have %d", logs[n].file, len(tails[n]), end.Bytes)
		}
		i.tails[n] = tails[n][:end.Bytes:end.Bytes]
		if crc32.Checksum(i.tails[n], castagnoli) != end.CRC {
			return nil, fmt.Errorf("%s was damaged or changed by hand: its checksum is not the one in %s", logs[n].file, stateFile)
		}
	}
	return i, nil
}

// draft is the next checkpoint while it is made: what a team's records add to the logs, and then the state.
type draft struct {
	base    int64 // position before the first record of the journal
	parts   [2]int
	tails   [2][]byte
	files   map[string][]byte
	touched map[string]bool // tasks that may have changed
	all     bool            // all may have

	doc     document
	closed  [][]byte // lines of tasks that are completed or deleted
	restore []byte
}

// follow begins the checkpoint after prev, nil for the first one.
func follow(prev *image, base int64) *draft {
	d := &draft{base: base, files: map[string][]byte{}, touched: map[string]bool{}, all: prev == nil}
	if prev != nil {
		for n := range logs {
			d.parts[n], d.tails[n] = prev.doc.Logs[n].Parts, slices.Clip(prev.tails[n])
		}
	}
	return d
}

// add takes a record, in order.
func (d *draft) add(r *team.Record) {
	var of [2][]team.Event
	for _, e := range r.Events {
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
		// Called by encoding/json it would not be the text that it is in the journal.
		line, _ := team.Record{Seq: d.base + r.Seq, ID: r.ID, Actor: r.Actor, At: r.At, Events: events}.MarshalJSON()
		d.line(n, line)
	}
}

// touch notes which tasks an event changes, and reports whether it is about tasks.
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
	case *team.TaskUpdated:
		touch(e.Task)
		touch(slices.Concat(e.AddBlockedBy, e.RemoveBlockedBy, e.AddBlocks, e.RemoveBlocks)...)
	case *team.TaskClaimed:
		touch(e.Task)
	case *team.TaskReleased:
		touch(e.Task)
	case *team.TaskFailed:
		touch(e.Task)
	case *team.TaskCompleted:
		touch(e.Task)
	case *team.TaskDeleted:
		touch(e.Task)
	case *team.UsageReported:
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
	line = redactJSON(line)
	if tail := d.tails[log]; len(tail) > 0 && len(tail)+len(line) >= partSize {
		d.parts[log]++
		d.files[partFile(log, d.parts[log])] = tail
		d.tails[log] = nil
	}
	d.tails[log] = append(append(d.tails[log], line...), '\n')
}

// see takes what a checkpoint tells of the state after the last record that was added. While it looks nobody can change the state, so the rest is left to finish.
func (d *draft) see(s *team.State, beside Beside) {
	t := s.Team()
	doc := document{Version: version, TeamID: t.ID, TeamName: t.Name, Sequence: s.Position(), History: t.Restored.ID, Created: t.CreatedAt, Updated: t.UpdatedAt,
		LeadSession: t.LeadSession, Status: t.Status, Teammates: []teammate{}, MailboxSeq: s.MessageSeq(), Facts: map[string]string{}, Commit: beside.Commit,
		Queue: queue{Pending: []string{}, InProgress: []claim{}, Completed: []string{}}}
	for _, f := range t.Facts {
		doc.Facts[f.Name] = f.SHA256
	}
	held := map[string]string{}
	for id := 1; ; id++ {
		task, ok := s.Task(strconv.Itoa(id))
		if !ok {
			break
		}
		switch task.Status {
		case team.InProgress:
			held[task.Owner] = task.ID
			doc.Queue.InProgress = append(doc.Queue.InProgress, claim{task.ID, task.Subject, task.Owner, append([]string{}, task.BlockedBy...), task.Status, task.CreatedAt})
			continue
		case team.Pending:
			doc.Queue.Pending = append(doc.Queue.Pending, task.ID)
			continue
		case team.Completed:
			doc.Queue.Completed = append(doc.Queue.Completed, task.ID)
		}
		if d.all || d.touched[task.ID] {
			whole, _ := task.MarshalJSON()
			d.closed = append(d.closed, fmt.Appendf(nil, `{"seq":%d,"at":%d,"task":%s}`, doc.Sequence, t.UpdatedAt, whole))
		}
	}
	for i, m := range s.Members() {
		if m.Name == t.Lead {
			if doc.LeadSession == "" { // an agent of which no process is known that leads
				doc.LeadSession = m.Session
			}
			continue
		}
		doc.Teammates = append(doc.Teammates, teammate{m.Name, i - 1, m.Agent, m.Role, m.Status, held[m.Name], m.Context, beside.Heartbeats[m.Name], m.DeliveredSeq, doc.Sequence})
	}
	doc.TeammateCount = len(doc.Teammates)
	d.doc, d.restore = doc, team.AppendCheckpoint(nil, s)
}

// finish makes the image of what was added and seen. With it come the files that differ from those of the checkpoint before.
func (d *draft) finish() (*image, map[string][]byte, error) {
	for _, line := range d.closed {
		d.line(tasks, line)
	}
	doc := d.doc
	for n := range logs {
		doc.Logs[n] = logEnd{logs[n].file, d.parts[n], len(d.tails[n]), crc32.Checksum(d.tails[n], castagnoli)}
		d.files[logs[n].file] = d.tails[n]
	}
	restore := redactJSON(d.restore)
	sum := sha256.Sum256(restore)
	doc.Digest = hex.EncodeToString(sum[:])
	var state bytes.Buffer
	e := json.NewEncoder(&state)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(doc); err != nil {
		return nil, nil, err
	}
	// The encoder would write what is to be restored with other bytes than those of the digest.
	head := bytes.TrimSuffix(redactJSON(state.Bytes()), []byte("\n}\n"))
	d.files[stateFile] = slices.Concat(head, []byte(",\n \"restore\": "), restore, []byte("\n}\n"))
	return &image{doc, d.tails}, d.files, nil
}
