package host

import (
	"context"
	"fmt"
	"slices"
	"time"

	"cadre/internal/agent"
	"cadre/internal/team"
)

// Outer is the session that runs a nested team, for the host of that team. What the members of the
// team write is what the session's member writes. Its functions may be called from any goroutine.
type Outer struct {
	// Gate returns an error if the rules of the team around forbid the session the tool. It is
	// called for tools that write files.
	Gate func(tool, input string) error
	// Uses gets the uses of tools, except those that write only in a worktree of the nested team.
	Uses func(agent.Nested)
}

// fill returns the Outer with all its functions.
func (o Outer) fill() Outer {
	if o.Gate == nil {
		o.Gate = func(string, string) error { return nil }
	}
	if o.Uses == nil {
		o.Uses = func(agent.Nested) {}
	}
	return o
}

// mayWrite refuses a tool that writes a file of another member's task.
func (s *slot) mayWrite(tool, input string) (err error) {
	s.host.writes.asked(s.member, tool, time.Now())
	files := team.WrittenFiles(tool, input)
	if len(files) == 0 {
		return nil
	}
	var dir string
	held, outside := false, false
	s.host.Replica.View(func(st *team.State) { dir, held = st.Team().Dir, st.PathsHeld() })
	for _, file := range files {
		if s.own(file) {
			continue
		}
		if outside = true; !held {
			continue
		}
		for _, name := range inProject(dir, file) {
			s.host.Replica.View(func(st *team.State) { err = st.MayWrite(s.member, name) })
			if err != nil {
				s.host.writes.answered(s.member)
				return err
			}
		}
	}
	if outside {
		return s.host.Outer.Gate(tool, input)
	}
	return nil
}

// own reports whether the file is in the member's own worktree.
func (s *slot) own(file string) bool {
	return s.dir != s.host.Replica.Team().Dir && len(inProject(s.dir, file)) > 0
}

// uses remembers a tool that the session begins to use.
func (s *slot) uses(u agent.ToolStarted) {
	s.usesSince(u, s.host.writes.begins(s.member, u.Tool, time.Now()))
}

// usesSince remembers a tool that the session has used since that time.
func (s *slot) usesSince(u agent.ToolStarted, from time.Time) {
	if s.host.Machine.Project != nil { // the project is no directory
		return
	}
	a := act{tool: u.Tool, input: u.Input, from: from, reads: func() bool {
		return slices.Contains(team.TeamTools, u.Tool) || s.reads(u.Tool, u.Input)
	}}
	if files := team.WrittenFiles(u.Tool, u.Input); len(files) > 0 {
		dir := s.host.Replica.Team().Dir
		a.files, a.within = []string{}, true
		for _, file := range files {
			if !s.own(file) {
				a.files, a.within = append(a.files, inProject(dir, file)...), false
			}
		}
	}
	s.host.writes.began(s.member, u.ID, a)
	if !a.within {
		u.ID = s.member + "/" + u.ID
		s.host.Outer.Uses(agent.Nested{Update: u, At: from})
	}
}

// usedUntil remembers that the session does not use the tool any more.
func (s *slot) usedUntil(id string, at time.Time) {
	if within, known := s.host.writes.ended(s.member, id, at); known && !within {
		s.host.Outer.Uses(agent.Nested{Update: agent.ToolFinished{ID: s.member + "/" + id}, At: at})
	}
}

// usesWithin remembers the use of a tool in the team that the session runs.
func (s *slot) usesWithin(n agent.Nested) {
	switch u := n.Update.(type) {
	case agent.ToolStarted:
		s.usesSince(u, n.At)
	case agent.ToolFinished:
		s.usedUntil(u.ID, n.At)
	}
}

// usesNone remembers that the session has ended, with the tools that it used.
func (s *slot) usesNone(at time.Time) {
	for _, id := range s.host.writes.uses(s.member) {
		s.usedUntil(id, at)
	}
}

// holders returns the tasks whose paths are kept from other members, and the project's directory.
// It returns no tasks where the project is no directory.
func (h *Host) holders() (held []team.Task, dir string) {
	if h.Machine.Project == nil {
		h.Replica.View(func(st *team.State) { held, dir = st.PathHolders(), st.Team().Dir })
	}
	return held, dir
}

// watchPaths looks at the files of tasks that have begun, and once more at those of tasks that are
// over.
func (h *Host) watchPaths(ctx context.Context) {
	held, dir := h.holders()
	begun, over := h.writes.news(held)
	if len(begun)+len(over) == 0 {
		return
	}
	if !h.writes.looking.TryLock() { // a look takes long in a large project
		h.writes.missed.Store(true)
		return
	}
	h.writes.checking.Go(func() {
		defer h.looked()
		for _, t := range over {
			h.checkWrites(ctx, dir, t)
			h.writes.forget(t)
		}
		for _, t := range begun {
			h.writes.watch(ctx, dir, t)
		}
	})
}

// findWrites reports which files of tasks in progress members changed to which they do not belong.
func (h *Host) findWrites(ctx context.Context) {
	held, dir := h.holders()
	if len(held) == 0 {
		return
	}
	h.writes.looking.Lock()
	defer h.looked()
	for _, t := range held {
		h.checkWrites(ctx, dir, t)
	}
}

// looked ends a look at files.
func (h *Host) looked() {
	h.writes.looking.Unlock()
	if h.writes.missed.Swap(false) {
		h.lookSoon()
	}
}

// mostReported bounds how many files a report names.
const mostReported = 100

// runs reports whether this host runs the member's session, so that it sees what tools it uses.
func (h *Host) runs(member string) (here bool) {
	h.Replica.View(func(st *team.State) {
		m, _ := st.Member(member)
		here = m.Host == h.ID
	})
	return here
}

func (h *Host) external(member string) (is bool) {
	h.Replica.View(func(st *team.State) {
		m, _ := st.Member(member)
		is = m.Agent == team.External
	})
	return is
}

// checkWrites reports which files of the task changed since the last look, and which members of
// this host changed them, other than its holder.
func (h *Host) checkWrites(ctx context.Context, dir string, t team.Task) {
	files, now := h.writes.since(ctx, dir, t), time.Now()
	theirs, _ := h.writes.of(t.Owner)
	known := h.runs(t.Owner)
	outside := h.external(t.Owner)
	doers := slices.DeleteFunc(h.writes.doers(), func(member string) bool { return member == t.Owner })
	found := map[string]map[blame][]string{}
	for _, c := range files {
		blames := map[string]blame{}
		for _, member := range doers {
			mine, _ := h.writes.of(member)
			blames[member] = judge(c, mine, theirs, known, now)
			if outside && blames[member] == unsure { // its own work, most likely: nobody sees its tools
				blames[member] = innocent
			}
		}
		for member, b := range settled(blames) {
			if found[member] == nil {
				found[member] = map[blame][]string{}
			}
			found[member][b] = append(found[member][b], c.file)
		}
	}
	for _, member := range doers {
		for _, b := range []blame{guilty, unsure} {
			if len(found[member][b]) == 0 {
				continue
			}
			body := &team.ReportWrites{Member: member, Task: t.ID, Holder: t.Owner, Files: found[member][b],
				Unsure: b == unsure}
			if n := len(body.Files); n > mostReported {
				body.Files, body.More = body.Files[:mostReported], int64(n-mostReported)
			}
			if err := h.do(ctx, body, 0); err != nil {
				h.Log(fmt.Sprintf("not recorded that %s changed files of task %s: %v", member, t.Called(), err))
			}
		}
	}
}
