// Package sessionlog logs what the session of a member shows, for people who watch it.
//
// # Authority
//
// It has authority over a team's folder of session logs and nothing else. A log is not history: it
// is in no journal, is not fsynced, and has bounded length. No decision depends on it.
//
// # Files
//
// A log is a series of segments, MEMBER.SEQ.jsonl, named after the number of their first entry:
//
//	ann.1.jsonl ──full──▶ ann.4711.jsonl ──full──▶ ann.9377.jsonl
//	 (removed)               complete                being written
//
// Each line is one [Entry]. The last two segments are kept. A line that a killed process left
// incomplete is skipped. MEMBER.running has the last part of the output of each tool that is
// running.
//
// # Guarantees
//
//   - A log takes at most two segments of [SegmentSize] each, and one entry more. The running
//     outputs are beside it, and bounded: no output of a tool pushes other entries out of the log.
//   - Any number of viewers in any process read at their own pace. A viewer that hangs does not
//     delay the others or the session.
//   - A viewer gets every entry that is still kept, in order. In place of entries that are not kept
//     any more, it gets one of kind [Lost] with their number.
package sessionlog

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"cadre/internal/render/excerpt"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// SegmentSize is the length in bytes at which a log begins a new segment.
const SegmentSize = 512 << 10

// Most bytes of a text in an entry, by its kind. The rest of the text is not kept.
const (
	mostText   = 32 << 10
	mostInput  = 4 << 10
	mostResult = 1 << 10
)

// Kind says what an entry shows.
type Kind string

// These are the kinds of entries, with the fields that they use.
const (
	Started Kind = "started" // the session runs; Text has the agent's own id of it
	Prompt  Kind = "prompt"  // the session was given Text
	Turn    Kind = "turn"    // the agent starts a turn; Text sums up the prompt
	Part    Kind = "part"    // the block of text that the agent writes continues with Text
	Text    Kind = "text"    // a whole block of text; it replaces the parts before it
	Tool    Kind = "tool"    // the agent uses Tool with the input Text; ID names the use
	// The running use ID printed Text, after Count bytes that are not kept. Only viewers get this
	// kind, with the number of the entry before it.
	Output Kind = "output"
	// The use ID ended. Text is the end of its output, after Count lines. Failed says how it went.
	Result    Kind = "result"
	Question  Kind = "question"   // the agent asks whether it may use Tool with the input Text; ID names the question
	Plan      Kind = "plan"       // the agent submits the plan Text; ID names it
	Answer    Kind = "answer"     // the question or plan ID was answered: Failed if it was refused, Text says why
	Usage     Kind = "usage"      // the agent added Usage, and Context percent of its context are full
	Compacted Kind = "compacted"  // the agent shortened its context
	Retry     Kind = "retry"      // the model cannot be reached for the reason Text; the agent tries again
	TurnEnded Kind = "turn_ended" // the agent waits; Failed and Text say why a turn failed, Interrupted if it was
	Ended     Kind = "ended"      // the session ended; Failed and Text say why, if it ended by itself
	Lost      Kind = "lost"       // the log no longer has Count entries; only viewers get this kind
)

// Entry is one thing that a session showed.
type Entry struct {
	// number of the entry; counts from 1 over all sessions of the member
	Seq  int64     `json:"seq"`
	At   team.Time `json:"at"`             // when it was shown
	Kind Kind      `json:"kind"`           // one of the kinds above, which says what the other fields mean
	ID   string    `json:"id,omitempty"`   // id of the tool use, question or plan
	Tool string    `json:"tool,omitempty"` // name of the tool
	Text string    `json:"text,omitempty"` // what was written, asked, answered or put out
	Cut  bool      `json:"cut,omitempty"`  // only the beginning of the text is kept, or the end of a result
	// the tool use, turn or session failed, or the question was refused
	Failed      bool        `json:"failed,omitempty"`
	Interrupted bool        `json:"interrupted,omitempty"` // the turn was interrupted
	Usage       *team.Usage `json:"usage,omitempty"`       // tokens and cost that were added
	Context     int         `json:"context,omitempty"`     // percent of the context that is full
	// how much before the entry or its text is not kept: entries, bytes of an output, or lines of a
	// result
	Count int64 `json:"count,omitempty"`
}

// limit cuts the entry's text to the most that its kind keeps. The Count of a result is the number
// of lines of the whole output before, if that is known, and of the lines that are cut off after.
func (e *Entry) limit() {
	most := mostText
	switch e.Kind {
	case Tool, Question:
		most = mostInput
	case Result:
		most = mostResult
	}
	switch {
	case len(e.Text) <= most:
	case e.Kind == Result: // what matters of an output is at its end
		whole := max(e.Count, linesOf(e.Text))
		e.Text, e.Cut = strings.ToValidUTF8(e.Text[len(e.Text)-most:], ""), true
		e.Count = max(0, whole-linesOf(e.Text))
		return
	default:
		e.Text, e.Cut = excerpt.Bytes(e.Text, most, ""), true
	}
	if e.Kind == Result {
		e.Count = max(0, e.Count-linesOf(e.Text))
	}
}

// Folder is a team's folder of session logs.
type Folder string

// Of returns the folder of session logs inside a team's folder.
func Of(teamDir string) Folder { return Folder(filepath.Join(teamDir, "sessions")) }

const suffix = ".jsonl"

// segment is one file of a log.
type segment struct {
	first int64 // number of its first entry
	path  string
}

// segments returns the segments of the member's log, the oldest first.
func (f Folder) segments(member string) (found []segment, err error) {
	files, err := os.ReadDir(string(f))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, file := range files {
		number, of := strings.CutPrefix(file.Name(), member+".")
		number, is := strings.CutSuffix(number, suffix)
		if first, err := strconv.ParseInt(number, 10, 64); of && is && err == nil {
			found = append(found, segment{first, filepath.Join(string(f), file.Name())})
		}
	}
	slices.SortFunc(found, func(a, b segment) int { return cmp.Compare(a.first, b.first) })
	return found, nil
}

// Log is a member's log, to write to. The process that runs the member's session writes it. Its
// methods may be called from any goroutine.
type Log struct {
	mu     sync.Mutex
	folder Folder
	member string
	file   *os.File
	size   int64
	next   int64
}

// Open opens the member's log to add to it. It creates the folder, but not the team's.
func (f Folder) Open(member string) (*Log, error) {
	if err := os.Mkdir(string(f), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	l := &Log{folder: f, member: member, next: 1}
	there, err := f.segments(member)
	if err != nil {
		return nil, err
	}
	if err := l.show(nil); err != nil { // no tool of the session before is running
		return nil, err
	}
	if len(there) == 0 {
		return l, l.begin()
	}
	last := there[len(there)-1]
	l.next = last.first
	data, err := regularfile.Read(last.path, 2*SegmentSize)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(data) {
		if e, ok := parse(line); ok {
			l.next = max(l.next, e.Seq+1)
		}
	}
	if l.file, err = regularfile.OpenFile(last.path, os.O_WRONLY|os.O_APPEND, 0); err != nil {
		return nil, err
	}
	l.size = int64(len(data))
	if len(data) > 0 && data[len(data)-1] != '\n' { // a killed process did not finish its line
		if err := l.write([]byte{'\n'}); err != nil {
			l.file.Close()
			return nil, err
		}
	}
	return l, nil
}

// parse reads a line of a log. Earlier versions wrote the time of an entry as "time".
func parse(line []byte) (Entry, bool) {
	var read struct {
		Entry
		Time team.Time `json:"time"`
	}
	ok := json.Unmarshal(line, &read) == nil && read.Seq > 0
	read.At = max(read.At, read.Time)
	return read.Entry, ok
}

// begin starts a segment, and removes all but the one before it.
func (l *Log) begin() error {
	path := filepath.Join(string(l.folder), fmt.Sprintf("%s.%d%s", l.member, l.next, suffix))
	file, err := regularfile.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if l.file != nil {
		l.file.Close()
	}
	l.file, l.size = file, 0
	there, err := l.folder.segments(l.member)
	for _, old := range there[:max(len(there)-2, 0)] {
		err = errors.Join(err, os.Remove(old.path))
	}
	return err
}

// Add numbers the entries and appends them. After an error, entries may be missing.
func (l *Log) Add(entries ...Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lines []byte
	for _, e := range entries {
		e.limit()
		e.Seq = l.next
		l.next++
		line, err := json.Marshal(e)
		if err != nil {
			return err
		}
		lines = append(append(lines, line...), '\n')
	}
	if err := l.write(lines); err != nil {
		return err
	}
	if l.size < SegmentSize {
		return nil
	}
	return l.begin()
}

func (l *Log) write(lines []byte) error {
	n, err := l.file.Write(lines)
	l.size += int64(n)
	return err
}

// Close closes the log. The log must not be used after that.
func (l *Log) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}
