package team

import "slices"

// HookOff is a hook that the user switched off for the team. Event, Source and Command describe the
// hook for people: its file may have changed since.
type HookOff struct {
	ID      string // id of the hook
	Event   string // TeammateIdle, TaskCreated or TaskCompleted
	Source  string // where it was set up: user, project, local, team or program
	Command string // command of the hook
	By      string // who switched it off
	At      Time   // when it was switched off
}

func (h *HookOff) fields(c *coder) {
	c.str("id", &h.ID)
	c.str("event", &h.Event)
	c.str("source", &h.Source)
	c.str("command", &h.Command)
	c.str("by", &h.By)
	c.int("at", (*int64)(&h.At))
}

// HookIsOff reports whether the hook with that id is switched off.
func (t *Team) HookIsOff(id string) bool { return t.hookOff(id) >= 0 }

func (t *Team) hookOff(id string) int {
	return slices.IndexFunc(t.HooksOff, func(h HookOff) bool { return h.ID == id })
}

// HookSwitched switches a hook off for the team, or on again.
type HookSwitched struct {
	ID, Event, Source, Command string
	Off                        bool
}

// Kind returns the event's name in the journal.
func (*HookSwitched) Kind() string { return "hook_switched" }

func (e *HookSwitched) fields(c *coder) {
	c.str("id", &e.ID)
	c.str("event", &e.Event)
	c.str("source", &e.Source)
	c.str("command", &e.Command)
	c.bool("off", &e.Off)
}

func (e *HookSwitched) apply(s *State, r *Record) {
	// a new list, because readers may hold the old one
	off := slices.DeleteFunc(slices.Clone(s.team.HooksOff), func(h HookOff) bool { return h.ID == e.ID })
	if e.Off {
		off = append(off, HookOff{ID: e.ID, Event: e.Event, Source: e.Source, Command: e.Command,
			By: r.Actor, At: r.At})
	}
	if s.team.HooksOff = off; len(off) == 0 {
		s.team.HooksOff = nil
	}
}

// SwitchHook switches a hook off for the team, or on again. A hook that is as asked stays as it is.
type SwitchHook struct {
	ID      string
	Event   string // TeammateIdle, TaskCreated or TaskCompleted
	Source  string // where the hook comes from
	Command string // for people; a long one is cut
	Off     bool
}

func (b *SwitchHook) decide(d *decision) error {
	if d.Actor != User {
		return refuse(Denied, "only the user switches hooks on and off")
	}
	if b.ID == "" {
		return refuse(Invalid, "say which hook")
	}
	if err := oneOf("hook", b.Event, hookEvents); err != nil {
		return err
	}
	if err := limit(text{"id of the hook", b.ID, MaxID}, text{"source of the hook", b.Source, MaxSubject}); err != nil {
		return err
	}
	if d.team.HookIsOff(b.ID) == b.Off {
		return nil
	}
	d.emit(&HookSwitched{ID: b.ID, Event: b.Event, Source: b.Source,
		Command: clipTo(b.Command, MaxSubject), Off: b.Off})
	return nil
}
