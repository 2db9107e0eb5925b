package feed

import (
	"context"
	"encoding/json"
	"slices"

	"cadre/internal/claudefs"
	"cadre/internal/claudefs/native"
	"cadre/internal/observe"
	"cadre/internal/team"
)

// ClaudeTeam is a feed of what the files of a team of Claude Code's show: its roster, its tasks and its inboxes. They are only read.
type ClaudeTeam struct {
	Claude string // Claude Code's folder
	Name   string // the team's
	Follow bool   // go on with what changes later, until the team is gone
}

// Run implements [Feed]. The error has the code not found where there is no such team, and who knew one is told that it is gone.
func (f *ClaudeTeam) Run(ctx context.Context, to Listener) error {
	source := "the files of " + f.Name
	t, err := native.Open(f.Claude, f.Name)
	if err != nil {
		if team.CodeOf(err) == team.NotFound {
			to.Line(source, f.line(observe.FileNote{Gone: true}), Place{})
		}
		return err
	}
	var roster claudefs.Config
	var n int64
	for at, change := range t.Follow(ctx) {
		if ctx.Err() != nil {
			return nil
		}
		n++
		note := observe.FileNote{At: team.Time(at.UnixMilli()), N: n}
		switch c := change.(type) {
		case *native.TeamSeen:
			roster = c.Config
			note.Config = encoded(roster)
		case *native.MemberJoined:
			if place(roster, c.Member.Name) >= 0 { // it was told with the team
				continue
			}
			roster.Members = append(slices.Clone(roster.Members), c.Member)
			note.Config = encoded(roster)
		case *native.MemberChanged:
			roster.Members = slices.Clone(roster.Members)
			if i := place(roster, c.Member.Name); i >= 0 {
				roster.Members[i] = c.Member
			}
			note.Config = encoded(roster)
		case *native.MemberLeft:
			roster.Members = slices.DeleteFunc(slices.Clone(roster.Members), func(m claudefs.Member) bool { return m.Name == c.Member.Name })
			note.Config = encoded(roster)
		case *native.TaskAdded:
			note.Task = encoded(c.Task)
		case *native.TaskChanged:
			note.Task = encoded(c.Task)
		case *native.TaskRemoved:
			note.Removed = c.Task.ID
		case *native.Sent:
			note.To, note.Key, note.Entry = c.To, c.Entry.Key(), encoded(c.Entry)
		case *native.Delivered:
			note.To, note.Key, note.Entry, note.Taken = c.To, c.Entry.Key(), encoded(c.Entry), true
		case *native.Whole:
			note.Whole = &observe.Whole{Tasks: c.Tasks, Waiting: map[string][]uint64{}}
			for name, entries := range c.Waiting {
				marks := []uint64{}
				for _, e := range entries {
					marks = append(marks, observe.Mark(e.From, name, e.Text))
				}
				note.Whole.Waiting[name] = marks
			}
		case *native.TeamGone:
			note.Gone = true
		case *native.Damaged:
			to.Gap(source, c.Err.Error())
			if len(roster.Members) == 0 && !f.Follow { // without its roster there is nothing to see, and it may never be mended
				return c.Err
			}
			continue
		case *native.TasksSwept: // nobody deleted them
			continue
		}
		to.Line(source, f.line(note), Place{})
		if note.Whole != nil && !f.Follow {
			return nil
		}
	}
	return nil
}

// line is the note as a line.
func (f *ClaudeTeam) line(n observe.FileNote) []byte {
	n.Type, n.Team = observe.FileNoteType, f.Name
	return encoded(n)
}

// encoded is v as JSON, which was read from JSON.
func encoded(v any) json.RawMessage {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// place is where somebody stands on the roster; -1 for nowhere.
func place(c claudefs.Config, name string) int {
	return slices.IndexFunc(c.Members, func(m claudefs.Member) bool { return m.Name == name })
}
