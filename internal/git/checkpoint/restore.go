package checkpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"cadre/internal/team"
)

// shown is how many of the last messages a restored team shows. Its own journal has none of them.
const shown = 50

// Restored is a team as a checkpoint holds it.
type Restored struct {
	Checkpoint
	State    *team.State
	Work     Work           // the work that it carries
	Before   []Ended        // histories that this one continues, the oldest first
	Messages []team.Message // the last of the mailbox, the oldest first
	Redacted []team.Advice  // what was redacted and is now missing
	Checks   []string       // names of the checks that must be given again, because they were redacted
}

// Command returns the command that creates the team, as the start of a new journal. dir is where it
// works from now on, "" for its former directory, and checks replace the redacted ones. A
// checkpoint must follow, so that the lost history cannot continue beside this one.
func (r *Restored) Command(id string, at team.Time, dir string, checks ...team.Check) team.Command {
	return team.Command{ID: id, Actor: team.User, At: at, Body: &team.RestoreTeam{From: r.State, Dir: dir,
		Checks: checks}}
}

// Restore reads the newest complete checkpoint in the repository: on the team's branch, and on the
// remotes' branches as of the last fetch. The error is a [*DamageError] for a damaged checkpoint or
// one of another team, [ErrNone] if there is none, and a [*ForkError] for two histories.
func (s *Store) Restore(ctx context.Context) (*Restored, error) {
	if _, ok := s.shelf.(*branch); !ok {
		at, err := s.shelf.load(ctx)
		if err != nil {
			return nil, err
		}
		return s.restore(ctx, at)
	}
	found, err := s.Found(ctx)
	if err != nil {
		return nil, err
	}
	newest, err := s.Newest(ctx, found)
	if err != nil {
		return nil, err
	}
	return s.RestoreAt(ctx, newest.Commit)
}

// RestoreAt reads the checkpoint at that commit.
func (s *Store) RestoreAt(ctx context.Context, commit string) (*Restored, error) {
	b, ok := s.shelf.(*branch)
	if !ok {
		return nil, s.none()
	}
	at, err := b.loadAt(ctx, commit)
	if err != nil {
		return nil, err
	}
	return s.restore(ctx, at)
}

func (s *Store) restore(ctx context.Context, at *tip) (*Restored, error) {
	if at == nil {
		return nil, s.none()
	}
	r := &Restored{Checkpoint: s.describe(at), Work: at.image.doc.Work, Before: at.image.doc.Before}
	closed, err := s.replay(ctx, at, r)
	if err != nil {
		return nil, err
	}
	if err := s.decode(ctx, at, closed, r); err != nil {
		return nil, err
	}
	if t := r.State.Team(); t.ID != at.image.doc.TeamID || t.Restored.ID != at.image.doc.History {
		return nil, s.damaged("%s names the team %s and holds the team %s", stateFile, at.image.doc.TeamID, t.ID)
	} else if t.Name != s.team {
		return nil, s.damaged("it is of a team named %s", t.Name)
	}
	for _, lost := range r.Redacted {
		for i := range lost.Hints {
			lost.Hints[i].Team = s.team
		}
	}
	return r, nil
}

func (s *Store) damaged(format string, args ...any) error {
	return &DamageError{s.shelf.place(), fmt.Sprintf(format, args...)}
}

// enough bounds how many older parts of the mailbox are read for the last messages.
const enough = 4

// replay reads the logs of a checkpoint: the last messages, and the closed tasks, each as one JSON
// object.
func (s *Store) replay(ctx context.Context, at *tip, r *Restored) (closed []string, err error) {
	for n := range logs {
		var parts []string
		for i := range at.image.doc.Logs[n].Parts {
			parts = append(parts, partFile(n, i+1))
		}
		if n == mailbox {
			parts = parts[max(0, len(parts)-enough):]
		}
		texts, err := s.shelf.read(ctx, at, parts)
		if err != nil {
			return nil, err
		}
		for i, name := range append(parts, logs[n].file) {
			text := at.image.tails[n]
			if i < len(parts) {
				text = texts[i]
				if text == nil {
					return nil, s.damaged("%s is missing", name)
				}
			}
			found, err := lines(text, at.image.doc.Sequence)
			if err != nil {
				return nil, s.damaged("%s, %v", name, err)
			}
			for _, l := range found {
				if l.Task != nil {
					closed = append(closed, string(l.Task))
				}
				r.Messages = append(r.Messages, l.sent()...)
			}
		}
	}
	r.Messages = slices.Clone(r.Messages[max(0, len(r.Messages)-shown):])
	return closed, nil
}

// decode reads the state of a checkpoint.
func (s *Store) decode(ctx context.Context, at *tip, closed []string, r *Restored) error {
	sheets := at.image.doc.Sheets
	files := make([]string, len(sheets))
	for i := range sheets {
		files[i] = sheets[i].file()
	}
	texts, err := s.shelf.read(ctx, at, files)
	if err != nil {
		return err
	}
	k, err := kept(sheets, texts)
	if err == nil {
		err = r.from(k, at.image.doc.Sequence, closed)
	}
	if err != nil {
		return &DamageError{s.shelf.place(), err.Error()}
	}
	return nil
}

func (r *Restored) from(k team.Kept, position int64, closed []string) error {
	var base struct {
		Team struct{ Restored struct{ Seq int64 } }
	}
	if err := json.Unmarshal([]byte(k.Team), &base); err != nil {
		return fmt.Errorf("the team: %w", err)
	}
	if base.Team.Restored.Seq < 0 || base.Team.Restored.Seq >= position {
		return fmt.Errorf("it covers %d records, and the team was restored after %d", position, base.Team.Restored.Seq)
	}
	if err := r.withoutMarks(&k); err != nil {
		return err
	}
	var err error
	r.State, err = k.State(position-base.Team.Restored.Seq, closed)
	return err
}

// line is a line of a log: the part of a record about messages or tasks, or a closed task.
type line struct {
	Seq    int64           `json:"seq"`
	Task   json.RawMessage `json:"task"`
	record *team.Record
}

func lines(text []byte, last int64) ([]line, error) {
	if len(text) > 0 && text[len(text)-1] != '\n' {
		return nil, fmt.Errorf("line %d: it has no end", bytes.Count(text, []byte("\n"))+1)
	}
	var found []line
	before := int64(0)
	for raw := range bytes.Lines(text) {
		l, err := parse(string(raw))
		if err == nil && (l.Seq < before || l.Seq > last) {
			err = fmt.Errorf("record %d comes after %d, and the checkpoint ends at %d", l.Seq, before, last)
		}
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", len(found)+1, err)
		}
		before = l.Seq
		found = append(found, l)
	}
	return found, nil
}

func parse(raw string) (line, error) {
	var l line
	if err := json.Unmarshal([]byte(raw), &l); err != nil {
		return l, err
	}
	if l.Task != nil {
		return l, nil
	}
	var err error
	l.record, err = team.DecodeRecord(l.Seq, raw)
	return l, err
}

// sent returns the messages that were sent with a record.
func (l *line) sent() []team.Message {
	if l.record == nil {
		return nil
	}
	var sent []team.Message
	for _, e := range l.record.Events {
		if e, ok := e.(*team.MessageSent); ok {
			e.Message.SentAt = l.record.At
			sent = append(sent, e.Message)
		}
	}
	return sent
}
