package host

import (
	"context"
	"fmt"
	"slices"
	"time"

	"cadre/internal/agent"
	"cadre/internal/team"
)

// mayWrite refuses a tool that writes a file of another member's task.
func (s *slot) mayWrite(tool, input string) (err error) {
	s.host.writes.asked(s.member, tool, time.Now())
	files := team.WrittenFiles(tool, input)
	if len(files) == 0 {
		return nil
	}
	var dir string
	held := false
	s.host.Replica.View(func(st *team.State) { dir, held = st.Team().Dir, st.PathsHeld() })
	for _, file := range files {
		if !held || s.own(file) {
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
	return nil
}

// own reports whether the file is in the member's own worktree.
func (s *slot) own(file string) bool {
	return s.dir != s.host.Replica.Team().Dir && len(inProject(s.dir, file)) > 0
}

// uses remembers a tool that the session begins to use.
func (s *slot) uses(u agent.ToolStarted) {
	if s.host.Machine.Project != nil { // the project is no directory
		return
	}
	a := act{tool: u.Tool, input: u.Input, from: s.host.writes.begins(s.member, u.Tool, time.Now()),
		reads: func() bool {
			return slices.Contains(team.TeamTools, u.Tool) || s.reads(u.Tool, u.Input)
		}}
	if files := team.WrittenFiles(u.Tool, u.Input); len(files) > 0 {
		dir := s.host.Replica.Team().Dir
		a.files = []string{}
		for _, file := range files {
			if !s.own(file) {
				a.files = append(a.files, inProject(dir, file)...)
			}
		}
	}
	s.host.writes.began(s.member, u.ID, a)
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
