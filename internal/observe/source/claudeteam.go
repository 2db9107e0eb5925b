package source

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"cadre/internal/claude/projection"
	"cadre/internal/claude/teamfiles"
	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// ClaudeTeam is a feed of the files of a Claude Code team: its roster, its tasks and its inboxes.
// It only reads them.
type ClaudeTeam struct {
	Claude string // Claude Code's folder
	Name   string // the team's name
	Follow bool   // continue with later changes until the team is removed
}

// Run implements [Feed]. If there is no such team, the error has the code not found. A listener
// that knows the team is notified that it was removed.
func (f *ClaudeTeam) Run(ctx context.Context, to Listener) error {
	source := "the files of " + f.Name
	t, err := teamfiles.Open(f.Claude, f.Name)
	if err != nil {
		if team.CodeOf(err) == team.NotFound {
			to.Line(source, f.line(protocol.FileNote{Gone: true}), Place{})
		}
		return err
	}
	var s noteWriter
	for at, change := range t.Follow(ctx) {
		if ctx.Err() != nil {
			return nil
		}
		if damaged, ok := change.(*teamfiles.Damaged); ok {
			to.Gap(source, damaged.Err.Error())
			// Without its roster there is nothing to observe, and the file may stay damaged.
			if len(s.roster.Members) == 0 && !f.Follow {
				return damaged.Err
			}
			continue
		}
		note, news := s.note(at, change)
		if !news {
			continue
		}
		to.Line(source, f.line(note), Place{})
		if note.Whole != nil && !f.Follow {
			return nil
		}
	}
	return nil
}

// noteWriter turns the changes from a follower into notes, in order.
type noteWriter struct {
	n      int64 // number of changes so far
	roster projection.Config
}

// note returns the note for a change, and whether it has news.
func (s *noteWriter) note(at time.Time, change teamfiles.Change) (note protocol.FileNote, news bool) {
	s.n++
	note = protocol.FileNote{At: team.Time(at.UnixMilli()), N: s.n}
	if s.applyRoster(change) {
		note.Config = encoded(s.roster)
		return note, true
	}
	switch c := change.(type) {
	case *teamfiles.TaskAdded:
		note.Task = encoded(c.Task)
	case *teamfiles.TaskChanged:
		note.Task = encoded(c.Task)
	case *teamfiles.TaskRemoved:
		note.Removed = c.Task.ID
	case *teamfiles.Sent:
		note.To, note.Key, note.Entry = c.To, c.Entry.Key(), encoded(c.Entry)
	case *teamfiles.Delivered:
		note.To, note.Key, note.Entry, note.Taken = c.To, c.Entry.Key(), encoded(c.Entry), true
	case *teamfiles.Whole:
		note.Whole = wholeOf(c)
	case *teamfiles.TeamGone:
		note.Gone = true
	default: // including tasks that were swept away: they were not deleted
		return note, false
	}
	return note, true
}

// applyRoster applies a change to the roster, and reports whether it was new.
func (s *noteWriter) applyRoster(change teamfiles.Change) bool {
	switch c := change.(type) {
	case *teamfiles.TeamSeen:
		s.roster = c.Config
		s.roster.Members = slices.Clone(c.Config.Members)
	case *teamfiles.MemberJoined:
		if s.roster.Member(c.Member.Name) != nil { // already reported with the team
			return false
		}
		s.roster.Members = append(s.roster.Members, c.Member)
	case *teamfiles.MemberChanged:
		if m := s.roster.Member(c.Member.Name); m != nil {
			*m = c.Member
		}
	case *teamfiles.MemberLeft:
		s.roster.Members = slices.DeleteFunc(s.roster.Members, func(m projection.Member) bool {
			return m.Name == c.Member.Name
		})
	default:
		return false
	}
	return true
}

func wholeOf(c *teamfiles.Whole) *protocol.Whole {
	w := &protocol.Whole{Tasks: c.Tasks, Waiting: map[string][]uint64{}}
	for name, entries := range c.Waiting {
		marks := []uint64{}
		for _, e := range entries {
			marks = append(marks, protocol.Mark(e.From, name, e.Text))
		}
		w.Waiting[name] = marks
	}
	return w
}

// line encodes a note as a line.
func (f *ClaudeTeam) line(n protocol.FileNote) []byte {
	n.Type, n.Team = protocol.FileNoteType, f.Name
	return encoded(n)
}

// encoded marshals v, which was decoded from JSON and therefore always marshals.
func encoded(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}
