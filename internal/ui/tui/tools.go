package tui

import (
	"context"
	"time"

	"cadre/internal/agent/sessionlog"
	"cadre/internal/engine"
	"cadre/internal/sys/sleep"
	"cadre/internal/team"
)

// toolsMsg carries the tools that members of the open team used.
type toolsMsg struct {
	ref  string
	uses []toolUse
}

// toolUse is the beginning or the end of the use of a tool.
type toolUse struct {
	member string
	at     team.Time
	begins bool
}

// These bound how session logs are read for the timeline: how often, and in steps of 64 KB. The
// tools of further members are not shown.
const (
	toolsEvery  = time.Second
	mostSteps   = 16
	mostReaders = 64
)

// toolLog reads a member's session log for the tools that the member uses.
type toolLog struct {
	viewer *sessionlog.Viewer
	open   map[string]bool // ids of uses that have not ended
}

// tools sends the uses of tools by members of the team, until ctx ends.
func (s *source) tools(ctx context.Context, ref string, t *engine.Team) {
	logs := map[string]*toolLog{}
	defer func() {
		for _, one := range logs {
			one.viewer.Close()
		}
	}()
	for {
		began := engine.Now()
		var names []string
		t.View(func(st *team.State) {
			for _, m := range st.Roster() {
				names = append(names, m.Name)
			}
		})
		for _, name := range names {
			if logs[name] != nil || len(logs) == mostReaders {
				continue
			}
			if v := t.SessionLog(name); v != nil {
				logs[name] = &toolLog{v, map[string]bool{}}
			}
		}
		msg := toolsMsg{ref: ref}
		for name, one := range logs {
			msg.uses = append(msg.uses, one.read(name)...)
		}
		if len(msg.uses) > 0 {
			s.send(msg)
		}
		if sleep.For(ctx, max(toolsEvery, 9*engine.Now().Sub(began))) != nil {
			return
		}
	}
}

// read returns the uses in the next steps of the log. For a log that cannot be read it returns
// none: the member's view shows the error.
func (l *toolLog) read(member string) (uses []toolUse) {
	for range mostSteps {
		entries, err := l.viewer.Read()
		if err != nil || len(entries) == 0 {
			return uses
		}
		for _, e := range entries {
			for range l.take(e) {
				uses = append(uses, toolUse{member, e.At, e.Kind == sessionlog.Tool})
			}
		}
	}
	return uses
}

// take returns how many uses begin or end with the entry. The end of a turn or of a session ends
// all uses.
func (l *toolLog) take(e sessionlog.Entry) int {
	switch e.Kind {
	case sessionlog.Tool:
		if !l.open[e.ID] {
			l.open[e.ID] = true
			return 1
		}
	case sessionlog.Result:
		if l.open[e.ID] {
			delete(l.open, e.ID)
			return 1
		}
	case sessionlog.TurnEnded, sessionlog.Ended, sessionlog.Started, sessionlog.Lost:
		n := len(l.open)
		clear(l.open)
		return n
	}
	return 0
}

// used stores uses of tools.
func (m *Model) used(msg toolsMsg) {
	if msg.ref != m.ref || m.past == nil {
		return
	}
	for _, one := range msg.uses {
		m.past.lanes.Tool(one.member, one.at, one.begins)
	}
}
