package model

import (
	"cmp"
	"slices"

	"cadre/internal/observe/protocol"
	"cadre/internal/team"
)

// fact processes something that happened: a call with its result.
//
// A fact of the session itself belongs to its team if the session leads one, and otherwise to its
// own list. A teammate's fact belongs to its team. If the teammate is still unidentified, or its
// team unseen, the fact is held back.
func (w *Watcher) fact(f fact) {
	if f.Mail != nil {
		w.messages(f.Mail)
		return
	}
	by := &f.Call.By
	out := protocol.OutcomeOf(f.Call.Tool, &f.Result.Result, w.team.isMember)
	own := w.identifyAuthor(&f, out)
	switch {
	case by.Agent != "" && by.Member == "":
		w.hold(f)
		return
	case by.Member != "" && w.team.mustWait(*by, f.Result.At, f.Call.Source):
		w.hold(f)
		return
	case by.Member != "" && !w.team.joins(*by, f.Result.At, f.Call.Source):
		return
	}
	if by.Agent != "" {
		w.reveal(&f)
	}
	if own != nil {
		w.team.board.join(own)
		w.speakers.session(by.Session).Board = newBoard()
	}
	if w.team.remembers(f.Call.ID) { // it was journaled; the saved data is older than the journal
		w.counts.Duplicates++
		return
	}
	if !out.OK {
		w.counts.Failed++
		if f.Call.Tool == "TaskList" && !f.Result.IsError {
			w.team.warn("%s: a list of tasks in an unknown format", f.Call.Source)
		}
		if f.Call.Tool != "TaskGet" { // a failed TaskGet says that the task does not exist
			return
		}
	}
	w.apply(&f, out)
}

// identifyAuthor identifies the author of a fact by its outcome. If a session turns out to be a
// teammate's, identifyAuthor returns the session's list of tasks.
func (w *Watcher) identifyAuthor(f *fact, out *protocol.Outcome) (own *board) {
	by := &f.Call.By
	if by.Agent != "" && by.Member == "" {
		w.named(by.Agent, out.Routing.Sender) // a teammate signs its messages
		by.Member = w.speakers.sideMember(by.Agent)
	}
	if who, of := out.Signed(f.Call.Tool); by.Agent == "" && by.Member == "" && by.Session != "" && who != "" &&
		who != w.team.lead() && !w.team.leads(by.Session, f.Call.Source) {
		one := w.speakers.session(by.Session)
		one.Team, one.Member, own = of, who, one.Board
		by.Team, by.Member = of, who
	}
	return own
}

// apply applies a fact to the knowledge about the team, or to its session's own list.
func (w *Watcher) apply(f *fact, out *protocol.Outcome) {
	by := &f.Call.By
	b := w.speakers.session(by.Session).Board
	inTeam := by.Member != "" || w.team.leads(by.Session, f.Call.Source) && !w.team.precedes(f.Result.At)
	if inTeam {
		b = w.team.board
	}
	actor := cmp.Or(by.Member, w.team.lead())
	switch f.Call.Tool {
	case "TeamCreate":
		w.team.created(f, out)
	case "TeamDelete":
		if inTeam {
			w.team.deleted(f, out)
		}
	case "Task", "Agent":
		w.spawned(f, out)
	case "TaskCreate":
		if !b.created(f, out, actor) {
			w.team.warn("a task with the invalid id %.40q", out.Task.ID)
		}
	case "TaskUpdate":
		if who, status := b.updated(f, out, actor); inTeam {
			w.progressed(f, who, status)
		}
	case "TaskList":
		b.listed(out.Tasks, f.asked())
	case "TaskGet":
		b.shown(f, out, w.team.roster)
	case "SendMessage":
		if inTeam && w.team.exists() {
			w.team.sent(f, out, actor)
		}
	case "ExitPlanMode":
		if inTeam && out.Awaiting && by.Member != "" {
			w.team.planned(by.Member, out.PlanID, out.Plan, f.Result.At)
		}
	}
	w.team.recordChanges(f.Call.ID, actor, f.Result.At)
}

// asked returns the time of the call. A result may describe the state at that time, so anything
// that was learnt since then is newer.
func (f *fact) asked() stamp {
	if f.Result.At.before(f.Call.At) {
		return f.Result.At
	}
	return f.Call.At
}

// spawned processes the spawn of a teammate or a subagent.
func (w *Watcher) spawned(f *fact, out *protocol.Outcome) {
	var in protocol.SpawnInput
	if protocol.ReadJSON(f.Call.Input, &in) != nil {
		return
	}
	if one := w.speakers.session(f.Call.By.Session); out.Status != protocol.Spawned {
		if in.Name != "" && !slices.Contains(one.Background, in.Name) && len(one.Background) < maxBackground {
			one.Background = append(one.Background, in.Name)
		}
		return // a subagent
	}
	w.reveal(f)
	w.team.spawned(f, &in, out)
}

// progressed processes a TaskUpdate that set the status of a member's task; "" for none.
func (w *Watcher) progressed(f *fact, who string, status team.TaskStatus) {
	p := w.team.roster.People[who]
	switch {
	case p == nil || !p.Joined.V:
	case status == team.InProgress:
		w.team.roster.at(who).Doing.learn(active, f.Result.At)
	case status == team.Completed:
		if src := w.speakers.sources[f.Call.Source]; src != nil && p.Began.before(f.Call.At) {
			src.addIdleCandidate(idleCandidate{Member: who, After: f.Call.ModelMsg, When: f.Result.At})
		}
	}
}
