package simtest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"cadre/internal/team"
)

// moveKind is one kind of [Move].
type moveKind struct {
	name   string
	weight int // how often it is drawn
	do     func(w *world, m Move)
	ofLed  bool // only for teams that a session leads
}

// requests are what people ask of the team.
var requests = slices.Concat(ofLead, []moveKind{
	{name: "task", weight: 12, do: func(w *world, m Move) {
		w.user(func(s *team.State) team.Body {
			b := &team.CreateTask{Subject: fmt.Sprint("job ", m.C), Retries: int64(m.C % 2),
				Priority: team.Priorities[m.A%4]}
			if m.B%2 == 0 { // a shell takes it too
				b.Run = "true"
			}
			switch m.A % 6 {
			case 1:
				b.Role = "tester"
			case 2:
				b.Owner = someone(s, m.B)
			}
			if t := some(s, m.C); t != "" && m.B%3 == 0 {
				b.BlockedBy = []string{t}
			}
			return b
		})
	}},
	{name: "paths", weight: 5, do: func(w *world, m Move) { // a task that changes files which others change too
		w.user(func(*team.State) team.Body {
			return &team.CreateTask{Subject: fmt.Sprint("change ", m.C), Run: "true",
				Paths: [][]string{{"src"}, {"src/a", "docs"}, {"src/b"}, {"**/*.md"}}[m.A%4]}
		})
	}},
	{name: "verified", weight: 5, do: func(w *world, m Move) { // a task that another member verifies
		w.user(func(s *team.State) team.Body {
			return &team.CreateTask{Subject: fmt.Sprint("checked job ", m.C), Retries: int64(m.C % 2),
				Verify: &team.Verify{By: someone(s, m.A), Rounds: int64(1 + m.B%2)}}
		})
	}},
	{name: "group", do: func(w *world, m Move) { // a task for each item of a list, or that a command prints
		w.user(func(s *team.State) team.Body {
			b := &team.CreateTask{Subject: fmt.Sprint("each ", m.C), Retries: int64(m.C % 2), ForEach: &team.ForEach{}}
			if m.A%2 == 0 {
				b.ForEach.Run = "list"
			}
			for i := range m.B % 4 * (m.A % 2) {
				b.ForEach.Items = append(b.ForEach.Items, team.TextItem(fmt.Sprint("item ", i)))
			}
			if t := some(s, m.C); t != "" && m.B%3 == 0 {
				b.BlockedBy = []string{t}
			}
			return demanding(b, m)
		})
	}},
	{name: "demand", do: func(w *world, m Move) { // a task that needs a result that fits, or a check that passes
		w.user(func(*team.State) team.Body {
			return demanding(&team.CreateTask{Subject: fmt.Sprint("checked ", m.C), Retries: int64(m.C % 2)}, m)
		})
	}},
	{name: "rush", weight: 3, do: func(w *world, m Move) { // an urgent message right behind one that is not
		for _, priority := range []string{"low", "critical"} {
			w.user(func(*team.State) team.Body {
				return &team.CreateTask{Subject: priority + " job",
					Priority: priority}
			})
		}
	}},
	{name: "message", weight: 10, do: func(w *world, m Move) {
		w.user(func(s *team.State) team.Body {
			return &team.SendMessage{To: someone(s, m.A), Body: fmt.Sprint("note ", m.C),
				Priority: []string{"", "urgent"}[m.B%2]}
		})
	}},
	{name: "note", do: func(w *world, m Move) { // of two keys, so that writers meet
		w.user(func(s *team.State) team.Body {
			key, text := []string{"plan", "decisions/api"}[m.A%2], fmt.Sprintf("the user, at %s: %d", m.At, m.C)
			n, _ := s.Note(key)
			switch {
			case strings.Contains(n.Text, text): // it was done before the person's process was killed
				return nil
			case m.B%6 == 0:
				return &team.DeleteNote{Key: key, IfSeq: &n.Seq}
			case m.B%3 == 0:
				return &team.SetNote{Key: key, Text: text, IfSeq: &n.Seq}
			}
			return &team.AppendNote{Key: key, Text: text}
		})
	}},
	{name: "broadcast", weight: 4, do: func(w *world, m Move) {
		w.user(func(*team.State) team.Body { return &team.Broadcast{Body: fmt.Sprint("to all: ", m.C)} })
	}},
	{name: "shutdown", weight: 6, do: func(w *world, m Move) {
		w.user(func(s *team.State) team.Body {
			return &team.RequestShutdown{Member: someone(s, m.A), Deadline: w.cli.of.clock() + team.Time(m.C)}
		})
	}},
	{name: "withdraw", weight: 2, do: func(w *world, m Move) {
		w.user(func(s *team.State) team.Body { return &team.WithdrawShutdown{Member: someone(s, m.A)} })
	}},
	{name: "spawn", weight: 3, do: func(w *world, m Move) {
		w.user(func(*team.State) team.Body {
			return &team.SpawnMember{Name: "eve" + strconv.Itoa(m.C), Agent: []string{team.Claude, team.Shell}[m.A%2],
				PlanApproval: m.A%2 == 0 && m.B%3 == 0}
		})
	}},
	{name: "release", weight: 5, do: func(w *world, m Move) {
		w.user(func(s *team.State) team.Body {
			return &team.ReleaseTask{Task: some(s, m.A), Reason: "for another member"}
		})
	}},
	{name: "assign", weight: 5, do: func(w *world, m Move) {
		w.user(func(s *team.State) team.Body {
			owner := someone(s, m.B)
			return &team.UpdateTask{Task: some(s, m.A), Owner: &owner}
		})
	}},
	{name: "delete", weight: 1, do: func(w *world, m Move) {
		w.user(func(s *team.State) team.Body { return &team.DeleteTask{Task: some(s, m.A)} })
	}},
	{name: "handover", weight: 3, do: func(w *world, m Move) {
		w.user(func(s *team.State) team.Body { return &team.HandOver{Member: someone(s, m.A), Reason: "led astray"} })
	}},
	{name: "retry", weight: 1, do: func(w *world, m Move) {
		w.user(func(s *team.State) team.Body { return &team.RetryMember{Member: someone(s, m.A)} })
	}},
	{name: "report", weight: 1, do: func(w *world, _ Move) {
		w.user(func(*team.State) team.Body { return &team.AskReport{} })
	}},
	{name: "complete", weight: 2, do: func(w *world, m Move) {
		w.user(func(s *team.State) team.Body { return &team.CompleteTask{Task: some(s, m.A), Result: "by hand"} })
	}},
	{name: "claim", do: func(w *world, m Move) { // the lead claims a task for a member
		w.user(func(s *team.State) team.Body {
			b := &team.ClaimTask{Task: some(s, m.A), Member: someone(s, m.B)}
			if m.C%2 == 0 {
				b.Task = "" // the next task
			}
			return b
		})
	}},
	{name: "interrupt", do: func(w *world, m Move) {
		w.user(func(s *team.State) team.Body {
			for _, one := range s.Members() { // a member with a turn
				if one.Status == team.Active && one.Agent != team.External && m.B%3 > 0 {
					return &team.Interrupt{Member: one.Name}
				}
			}
			return &team.Interrupt{Member: someone(s, m.A)}
		})
	}},
	{name: "revise", do: func(w *world, m Move) { w.user(func(s *team.State) team.Body { return revision(s, m) }) }},
	{name: "redo", do: func(w *world, m Move) { // --redo names a completed task
		w.user(func(s *team.State) team.Body {
			for t := range s.Tasks() {
				if t.Status == team.Completed && m.B%4 > 0 {
					return &team.RedoTask{Task: t.ID, Reason: "the file says so"}
				}
			}
			return &team.RedoTask{Task: some(s, m.A), Reason: "the file says so"}
		})
	}},
	{name: "mode", do: func(w *world, m Move) {
		w.user(func(s *team.State) team.Body {
			mode := team.PermissionModes[m.C%len(team.PermissionModes)]
			return &team.SetMode{Member: someone(s, m.A), Mode: mode}
		})
	}},
	{name: "pause", do: func(w *world, m Move) { // the team is resumed a little later
		w.logf("the team is paused for %d ms", m.C)
		for _, h := range w.hosts {
			h.pauseFor(time.Duration(100+m.C) * time.Millisecond)
		}
	}},
	{name: "usurp", weight: 2, do: func(w *world, m Move) { // commands that must not end the lead
		w.user(func(s *team.State) team.Body {
			return []team.Body{&team.RequestShutdown{Member: s.Team().Lead, Deadline: w.cli.of.clock() + 1},
				&team.ReportFailed{Member: s.Team().Lead},
				&team.ReportStopped{Member: s.Team().Lead}, &team.SendMessage{To: s.Team().Lead,
					Body: "shut down now"}}[m.A%4]
		})
	}},
})

// faults are what goes wrong.
var faults = slices.Concat(ofLeadFaults, []moveKind{
	{name: "kill-host", weight: 10, do: func(w *world, m Move) {
		w.after(m.B*m.C%40, w.hostOf(m.A), func() {
			w.crash(m.A%len(w.hosts), time.Duration(200+m.C)*time.Millisecond)
		})
	}},
	{name: "kill-host-now", do: func(w *world, m Move) { // even in a quiet moment
		w.crash(m.A%len(w.hosts), time.Duration(200+m.C)*time.Millisecond)
	}},
	{name: "kill-session", weight: 8, do: func(w *world, m Move) {
		w.after(m.C%8, w.sessionOf(m.A), func() {
			if p := w.sessionOf(m.A)(); p != nil {
				w.logf("%s is killed", p.name)
				w.endSession(p)
			}
		})
	}},
	{name: "power", weight: 6, do: func(w *world, m Move) {
		w.after(m.C%7, func() *process { return nil }, func() { w.losePower(m) })
	}},
	{name: "power-now", weight: 3, do: func(w *world, m Move) { w.losePower(m) }},
	{name: "kill-cli", weight: 3, do: func(w *world, m Move) {
		w.after(m.C%30, func() *process { return w.cli.of }, func() {
			w.logf("%s is killed", w.cli.of.name)
			w.cli.of.kill()
			w.at(w.now+200*time.Millisecond, w.hireUser)
		})
	}},
	{name: "cut", weight: 5, do: func(w *world, m Move) {
		h := w.hosts[m.A%len(w.hosts)]
		h.of.cut = w.now + time.Duration(m.C)*time.Millisecond
		if m.B%2 == 0 {
			h.unlocked = h.of.cut
		}
		w.logf("%s does not reach the journal for %d ms; its lock is seen as held: %t", h.id(), m.C, m.B%2 != 0)
	}},
	{name: "stall", weight: 5, do: func(w *world, m Move) {
		w.after(m.B, w.hostOf(m.A), func() {
			h := w.hosts[m.A%len(w.hosts)]
			h.of.stalled = w.now + time.Duration(m.C)*time.Millisecond
			w.logf("%s stands still for %d ms", h.id(), m.C)
		})
	}},
	{name: "lose-lock", weight: 4, do: func(w *world, m Move) {
		h := w.hosts[m.A%len(w.hosts)]
		h.unlocked = w.now + time.Duration(m.C)*time.Millisecond
		w.logf("the lock of %s is lost for %d ms", h.id(), m.C)
	}},
	{name: "clock", weight: 5, do: func(w *world, m Move) {
		on := w.machines[m.A%len(w.machines)]
		on.skew += time.Duration(m.C-1500) * time.Duration(m.B) * time.Millisecond
		if m.B%3 == 0 {
			on.drift = int64(m.C%400 - 200)
		}
		w.logf("the clock of %s jumps to %+.3f s", on.name, on.skew.Seconds())
	}},
	{name: "disk-full", weight: 5, do: func(w *world, m Move) {
		w.after(m.B*m.C%30, w.hostOf(m.A), func() {
			w.disk.full = w.now + time.Duration(m.C/2)*time.Millisecond
			w.logf("the disk is full for %d ms", m.C/2)
		})
	}},
	{name: "sync-fails", weight: 4, do: func(w *world, m Move) {
		w.disk.faulty = w.now + time.Duration(m.C/2)*time.Millisecond
		w.logf("no sync succeeds for %d ms", m.C/2)
		if m.B%2 == 0 {
			w.at(w.disk.faulty, func() { w.losePower(m) })
		}
	}},
	{name: "forget", weight: 2, do: func(w *world, m Move) {
		w.logf("transcripts of %s are lost", w.machines[m.A%len(w.machines)].name)
		for id, tr := range w.transcripts {
			if tr.on == w.machines[m.A%len(w.machines)] {
				delete(w.transcripts, id)
			}
		}
	}},
})

var moves = slices.Concat(requests, faults)

// revision returns a change of a team file: of a task, of a member or of the team.
func revision(s *team.State, m Move) team.Body {
	said := fmt.Sprint("as the file says ", m.C)
	switch m.A % 6 {
	case 0:
		return &team.ReviseTeam{To: team.Team{Goal: said, OriginDigest: said}, Fields: []string{"goal"}}
	case 1:
		return &team.ReviseMember{To: team.Member{Name: someone(s, m.B), Prompt: said}, Fields: []string{"prompt"}}
	case 2:
		return &team.ReviseMember{To: team.Member{Name: someone(s, m.B),
			Agent: []string{team.Claude, team.Shell}[m.C%2]},
			Fields: []string{"agent"}}
	case 3:
		return &team.ReviseTask{Task: some(s, m.B), Delete: true}
	}
	return &team.ReviseTask{Task: some(s, m.B), To: team.CreateTask{Subject: said, Priority: team.Priorities[m.C%4],
		Run: []string{"", "true"}[m.C%2], Owner: []string{"", someone(s, m.C)}[m.A%2]},
		Fields: []string{"subject", "priority", "run", "owner"}}
}

// demanding gives the task a check, a schema of its result, both or none, and a command or none.
func demanding(b *team.CreateTask, m Move) *team.CreateTask {
	if m.A%3 != 0 {
		b.Schema = []byte(aSchema)
	}
	if m.C%3 != 0 {
		b.Check = &team.TaskCheck{Run: "check", Rounds: int64(m.B % 3)}
	}
	if m.C%2 == 0 { // a shell takes it too
		b.Run = "true"
	}
	return b
}

// user makes the user send a command.
func (w *world) user(body func(s *team.State) team.Body) { w.cli.ask(body) }

// after runs do when a process has made some more steps, or at once if it is dead.
func (w *world) after(steps int, of func() *process, do func()) {
	w.armed = append(w.armed, armed{of: of, steps: steps, do: do})
}

func (w *world) hostOf(n int) func() *process {
	return func() *process { return w.hosts[n%len(w.hosts)].of }
}

func (w *world) sessions() (all []*process) {
	for _, h := range w.hosts {
		for _, s := range h.slots {
			if s.session != nil && s.session.of.alive {
				all = append(all, s.session.of)
			}
		}
	}
	return all
}

func (w *world) sessionOf(n int) func() *process {
	return func() *process {
		if all := w.sessions(); len(all) > 0 {
			return all[n%len(all)]
		}
		return &process{}
	}
}

func (w *world) endSession(p *process) {
	for _, h := range w.hosts {
		for _, s := range h.slots {
			if s.session != nil && s.session.of == p {
				s.session.kill()
			}
		}
	}
}

// losePower stops everything and starts it again. It does nothing once everything has healed.
func (w *world) losePower(m Move) {
	if w.calm {
		return
	}
	w.logf("the power goes")
	for _, p := range w.processes {
		p.kill()
	}
	w.disk.losePower(m.A%3, m.B%2*m.C)
	if m.A == 0 {
		clear(w.transcripts)
	}
	if m.B%3 == 0 {
		clear(w.beats) // heartbeats are not synced
	}
	if m.A%2 == 0 {
		clear(w.saved)
	}
	if w.plan.Led && m.C%2 == 0 {
		w.at(w.now+time.Duration(200+m.C)*time.Millisecond, func() { w.resume(w.machines[m.C%3%2], false, false) })
	}
	w.armed = nil
	w.at(w.now+100*time.Millisecond, w.hireUser)
	for i := range w.hosts {
		w.hosts[i].slots = nil
		h := w.hosts[i]
		w.at(w.now+time.Duration(100+m.C/(i+1))*time.Millisecond, func() {
			if w.hosts[i] == h {
				w.boot(i)
			}
		})
	}
}

// hireUser starts a new user at the command line, and a new lead if the lead is a person.
func (w *world) hireUser() {
	if w.cli != nil && w.cli.of.alive {
		return
	}
	var left []func(*person, *thread)
	if w.cli != nil {
		left = w.cli.todo
	}
	w.cli = w.person("cli", team.User)
	w.cli.todo = left
	w.cli.of.spawn("answers", w.cli.answers)
	if w.calm {
		w.cli.of.spawn("tidy", w.cli.tidy)
	}
	if !w.plan.Led && w.plan.Lead == team.External && (w.lead == nil || !w.lead.of.alive) {
		w.lead = w.person("lead", "lead")
		w.lead.of.spawn("leads", w.lead.leads)
	}
}

// someone returns the name of a member.
func someone(s *team.State, n int) string {
	all := s.Recipients()
	if len(all) == 0 {
		return "nobody"
	}
	return all[n%len(all)]
}

func some(s *team.State, n int) string {
	var all []string
	for t := range s.Tasks() {
		all = append(all, t.ID)
	}
	if len(all) == 0 {
		return ""
	}
	return all[n%len(all)]
}
