package tui

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"

	"cadre/internal/render"
	"cadre/internal/team"
)

// Linear prints what the screen shows as a sequence of lines, for a screen reader: first the
// current state, then the changes. It does not move the cursor. It returns when the team has ended,
// or with the cause of ctx.
func Linear(ctx context.Context, o Options, print func(line string)) error {
	inner, end := context.WithCancel(ctx)
	l := &linear{print: print, team: o.Team, end: end, waiting: map[string]bool{},
		rows: map[string]string{}}
	s := &source{engine: o.Engine, first: o.Team, ctx: inner, send: l.take}
	s.running.Go(s.teams)
	if o.Team != "" {
		s.OpenTeam(1, o.Team)
	}
	<-inner.Done()
	s.running.Wait()
	if l.over {
		return nil
	}
	return context.Cause(ctx)
}

// linear turns messages into lines.
type linear struct {
	print func(string)
	team  string // the team to follow; "" for all
	end   func()

	mu      sync.Mutex
	stays   bool              // it was printed that changes follow
	waiting map[string]bool   // the items that were printed
	rows    map[string]string // what was printed of each team
	seq     int64             // the last record that was printed
	trouble string
	began   bool
	over    bool
}

// take prints what is new in the message.
func (l *linear) take(msg tea.Msg) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch msg := msg.(type) {
	case teamsMsg:
		l.list(msg)
	case teamMsg:
		l.see(msg)
	}
}

// continues prints once how to end it, and how to answer what waits.
func (l *linear) continues() {
	if l.stays {
		return
	}
	l.stays = true
	l.print("Changes follow as they come. Ctrl-C ends this, and the teams continue.")
	l.print(`A line that begins with "needs you" ends with the command that answers it: type that in another terminal. ` +
		"cadre attention lists all that waits.")
}

// list prints the teams that changed, and the items that are new.
func (l *linear) list(msg teamsMsg) {
	if msg.err != nil {
		l.print("the teams cannot be read: " + oneLine(msg.err.Error()))
		return
	}
	if l.team == "" {
		if len(msg.teams) == 0 && !l.stays {
			l.print("There is no team yet. Start one in another terminal: cadre run FILE, or cadre create NAME")
		}
		for _, one := range msg.teams {
			text := fmt.Sprintf("%s is %s: %s", one.name, one.state, team.TasksDone(one.done, one.tasks))
			if l.rows[one.ref] != text {
				l.rows[one.ref] = text
				l.print(text)
			}
		}
	}
	names, now := namesOf(msg.teams), map[string]bool{}
	for _, one := range msg.items {
		if l.team != "" && one.ref != l.team || one.WaitsFor != team.ForUser {
			continue
		}
		if now[one.id()] = true; !l.waiting[one.id()] {
			text := "needs you"
			if l.team == "" {
				text += ", " + cmp.Or(names[one.ref], one.ref)
			}
			text += ": " + one.text
			if !strings.ContainsRune(".?!", rune(text[len(text)-1])) {
				text += "."
			}
			l.print(text + " Type: " + oneLine(render.CommandFor(one.Hint).String()))
		}
	}
	if l.waiting = now; l.team == "" {
		l.continues()
	}
}

// see prints the state of the team once, and later each event.
func (l *linear) see(msg teamMsg) {
	if msg.err != nil {
		if text := oneLine(msg.err.Error()); text != l.trouble {
			l.trouble = text
			l.print("this team cannot be read: " + text)
		}
		return
	}
	v, seen := msg.view, l.began
	if l.trouble = ""; !l.began {
		l.began = true
		l.print(fmt.Sprintf("%s is %s: %s", v.name, v.state, team.TasksDone(v.done, v.all)))
		for _, one := range v.members {
			text := one.name + " is " + one.state
			switch {
			case one.holds:
				text += ", works on " + one.works
			case one.works != "":
				text += ": " + one.works
			}
			if one.waits != "" {
				text += "; waits for an answer: " + one.waits
			}
			l.print(text)
		}
		l.seq = v.seq
	}
	for _, one := range msg.feed {
		if one.seq > l.seq {
			l.print(render.Clock(one.at) + " " + one.text)
		}
	}
	if l.seq = max(l.seq, v.seq); !v.ended {
		l.continues()
		return
	}
	if seen {
		l.print(fmt.Sprintf("%s is %s", v.name, v.state))
	}
	l.over = true
	l.end()
}
