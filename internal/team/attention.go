package team

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ItemKind says what sort of thing waits for a person.
type ItemKind string

// The kinds of items, in the order in which they are listed. First come those with a deadline, then
// those that block the whole team, then those that block a member or a task, then those that can
// wait.
const (
	ItemDamaged     ItemKind = "damaged"     // the team's files are damaged; its other items are unknown
	ItemPermission  ItemKind = "permission"  // a member asks to use a tool
	ItemPlan        ItemKind = "plan"        // a member's plan waits for approval
	ItemQuestion    ItemKind = "question"    // a member asks the person who leads
	ItemNested      ItemKind = "nested"      // a team in the team waits for a person, or has not ended with it
	ItemDirectory   ItemKind = "directory"   // the directory that the team works in is missing
	ItemElsewhere   ItemKind = "elsewhere"   // the team may be running on another machine
	ItemInterrupted ItemKind = "interrupted" // a consolidation was started, and no process runs it
	ItemDormant     ItemKind = "dormant"     // no process of the team is alive
	ItemUnhosted    ItemKind = "unhosted"    // no process runs the sessions of its members, or finds the items of tasks
	ItemLeadLost    ItemKind = "lead_lost"   // no session leads
	ItemLeadFailed  ItemKind = "lead_failed" // the lead cannot continue by itself
	ItemBudget      ItemKind = "budget"      // the budget is spent
	ItemRateLimit   ItemKind = "rate_limit"  // members wait for a rate limit that lasts
	ItemFailed      ItemKind = "failed"      // a member failed, and its work is open
	ItemOffline     ItemKind = "offline"     // a member sent no heartbeat for too long
	ItemMachine     ItemKind = "machine"     // a member waits for a machine that can run it
	ItemHeld        ItemKind = "held"        // a member was interrupted, and waits for a message
	ItemCheck       ItemKind = "check"       // the last consolidation ended with a failed check
	ItemConflict    ItemKind = "conflict"    // a branch does not merge, and must be merged by hand
	ItemTaskFailed  ItemKind = "task_failed" // a task is out of retries
	ItemTaskYours   ItemKind = "task_yours"  // a task is for the person who leads, or for an external member of a run
	ItemUnassigned  ItemKind = "unassigned"  // tasks are open that no member takes
	ItemHook        ItemKind = "hook"        // a hook keeps rejecting the same thing
	ItemConsolidate ItemKind = "consolidate" // the team winds down or is done, and waits to be consolidated
	ItemBudgetLow   ItemKind = "budget_low"  // half of a budget is spent, or more
	ItemLate        ItemKind = "late"        // messages have waited too long
	ItemFacts       ItemKind = "facts"       // files that all members rely on have changed
	ItemUntrusted   ItemKind = "untrusted"   // hooks of the project do not run, because the user has not trusted them
)

// ItemKinds are the kinds of items.
var ItemKinds = []ItemKind{ItemDamaged, ItemPermission, ItemPlan, ItemQuestion, ItemNested, ItemDirectory,
	ItemElsewhere, ItemInterrupted, ItemDormant, ItemUnhosted, ItemLeadLost, ItemLeadFailed, ItemBudget,
	ItemRateLimit, ItemFailed, ItemOffline, ItemMachine, ItemHeld, ItemCheck, ItemConflict, ItemTaskFailed,
	ItemTaskYours, ItemUnassigned, ItemHook, ItemConsolidate,
	ItemBudgetLow, ItemLate, ItemFacts, ItemUntrusted}

// ForUser is the value of [Item].WaitsFor where a person must act.
const ForUser = "user"

// Item is one thing that waits for a person, or for an agent that leads and can handle it.
type Item struct {
	Kind     ItemKind `json:"kind"`               // one of the kinds above
	WaitsFor string   `json:"waitsFor"`           // [ForUser], or the name of the lead
	Member   string   `json:"member,omitempty"`   // member that it concerns
	Task     string   `json:"task,omitempty"`     // id of the task that it concerns
	Request  string   `json:"request,omitempty"`  // id of the request or plan that waits for an answer
	About    string   `json:"about,omitempty"`    // name of the budget, check or hook that it concerns
	Since    Time     `json:"since,omitempty"`    // since when it waits; 0 if unknown
	Deadline Time     `json:"deadline,omitempty"` // when it is denied without an answer; 0 for never
	Text     string   `json:"text"`               // a sentence for people; it may quote what agents wrote
	Hint     Hint     `json:"hint"`               // what would help

	called string // what the task is called
}

// TaskCalled returns the [Task.Called] of the task that the item concerns.
func (i Item) TaskCalled() string { return i.called }

// Known returns the item of the team of that name, with ref for the team in its hint. A hint of a
// nested team may be about its parent, and stays.
func (i Item) Known(name, ref string) Item {
	if i.Hint.Team == name || i.Hint.Team == "" {
		i.Hint.Team = ref
	}
	return i
}

// Key tells items apart: it stays the same for as long as the same thing waits.
func (i Item) Key() string {
	return strings.Join([]string{string(i.Kind), i.Member, i.Task, i.Request, i.About}, "/")
}

// mostAlike limits the items about tasks of one kind; the last item stands for the rest.
const mostAlike = 20

// Attention returns what waits for a person, always in the same order: requests and plans, the team
// as a whole, work that is not committed, budgets, members, tasks, the rest. Front ends put what
// has a deadline first. One cause makes one item: members that are offline because the only host
// died are named by the item about the host. An item waits for the lead, not for the user, if the
// lead is an agent that is notified of it and can handle it. A team that is only observed has no
// items, because its agents are answered in their own program. Neither has a team that this machine
// released. The cost does not grow with the tasks that are done or in progress.
func (s *State) Attention(now Time, o *Outside) []Item {
	a := &attention{s: s, t: &s.team, o: o, now: now, lead: ForUser}
	// a released team needs attention on the machine that continues it
	if !s.Exists() || s.team.Observed != "" || s.team.Released != (Released{}) {
		return nil
	}
	if s.leadActs(o) {
		a.lead = s.team.Lead
	}
	if !s.over() {
		a.requests()
	}
	a.childTeams()
	a.whole()
	a.uncommitted()
	if !s.over() {
		a.money()
		a.limits()
		a.people()
		a.interrupted()
		a.work()
		a.rest()
		a.untrusted()
	}
	return a.items
}

// leadActs reports whether an agent leads that can handle items.
func (s *State) leadActs(o *Outside) bool {
	lead := s.lead()
	switch {
	case s.team.LeadLost != 0 || s.leadGone(o) || lead.Setbacks >= MaxSetbacks:
		return false
	case lead.Agent == External:
		return o != nil && o.LeadActs
	}
	return o == nil || o.Hosted
}

// attention builds a list of items.
type attention struct {
	s     *State
	t     *Team
	o     *Outside
	now   Time
	lead  string // who handles the items that are the lead's
	items []Item
}

// withParent are the kinds of what is done with a nested team by doing it with its parent.
var withParent = []ItemKind{ItemDirectory, ItemDormant, ItemUnhosted, ItemLeadLost, ItemInterrupted, ItemConsolidate}

func (a *attention) add(i Item, format string, args ...any) {
	if a.t.Parent.Team != "" && slices.Contains(withParent, i.Kind) {
		return
	}
	i.Text = fmt.Sprintf(format, args...)
	i.Hint, i.called = a.t.Aim(i.Hint), a.s.Called(i.Task)
	if i.WaitsFor == "" {
		i.WaitsFor = ForUser
	}
	a.items = append(a.items, i)
}

// requests adds the requests and plans that wait for an answer. A request is listed even if its
// member has no session any more.
func (a *attention) requests() {
	for _, p := range a.s.permissions {
		by := a.lead
		if a.s.AsksUser(p.Member) {
			by = ForUser
		}
		a.add(Item{Kind: ItemPermission, WaitsFor: by, Member: p.Member, Request: p.Request, Since: p.AskedAt,
			Deadline: p.Deadline,
			Hint:     Hint{Action: ActAnswerPermission, Request: p.Request}}, "%s asks to use %s: %s", p.Member,
			brief(p.Tool), clipTo(InputWords(p.Tool, p.Input), 200))
	}
	for i := range a.s.members {
		m := &a.s.members[i]
		if p := m.Plan; p.State == "submitted" && m.Status.Running() {
			a.add(Item{Kind: ItemPlan, WaitsFor: a.lead, Member: m.Name, Request: p.Request, Since: p.AskedAt,
				Deadline: p.Deadline,
				Hint:     Hint{Action: ActAnswerPlan, Request: p.Request}}, "%s submitted a plan and changes nothing "+
				"before it is approved.", m.Name)
		}
	}
	a.questions()
}

// An abort that no process is at work on counts as killed so long after the team's last record.
// Until then another process may be about to continue it.
const abortTime = 10 * time.Second

// childTeams adds what waits for the user in the teams in this one. The teams in an aborted team
// must have ended; a killed abort leaves them.
func (a *attention) childTeams() {
	if a.o == nil {
		return
	}
	killed := a.s.over() && a.t.Status == TeamAborted && !a.o.Aborting && a.now.Sub(a.t.UpdatedAt) > abortTime
	for _, c := range a.o.Children {
		switch {
		case killed && !c.Ended:
			a.add(Item{Kind: ItemNested, Member: c.Member, About: c.Name, Hint: Hint{Action: ActAbort}},
				"Team %s, which was in this one, has not ended.", c.Name)
		case !a.s.over() && c.Waits > 0:
			a.add(Item{Kind: ItemNested, Member: c.Member, Task: c.Task, About: c.Name,
				Hint: Hint{Action: ActShowWaiting, Name: c.Team}}, "In team %s, which does task %s, %s for you: %s", c.Name,
				a.s.Called(c.Task), word(c.Waits, "1 thing waits", strconv.Itoa(c.Waits)+" things wait"), c.First)
		}
	}
}

// whole adds what blocks the team as a whole.
func (a *attention) whole() {
	t, o, c := a.t, a.o, &a.t.Consolidation
	if a.s.Interrupted(o) {
		a.add(Item{Kind: ItemInterrupted, Since: c.BeganAt, Hint: Hint{Action: ActFinish}},
			"Consolidation %d, started by %s, was interrupted; no process continues it.", c.Attempt, person(c.By))
	}
	if a.s.over() {
		return
	}
	if o != nil && o.Directory != "" {
		a.add(Item{Kind: ItemDirectory, Hint: Hint{Action: ActMove}},
			"The directory %s cannot be used: %s.", t.Dir, o.Directory)
	}
	if o != nil && o.Elsewhere != "" && !o.Led && t.LeadLost == 0 {
		a.add(Item{Kind: ItemElsewhere, Since: o.Sights[t.Lead].Seen, Hint: Hint{Action: ActTakeOver}},
			"Session %s leads the team on the machine %s.", t.LeadSession, o.Elsewhere)
	}
	// it waits for its consolidation, which needs no session
	waits := t.Status == TeamConsolidating && a.s.Count(InProgress) == 0
	without := a.s.Unhosted(o)
	switch {
	case c.Open() || waits && !c.Open():
	case o != nil && o.Directory != "": // the command of its item continues the team, too
	case a.s.Dormant(o):
		if _, spent := a.spent(); spent { // the item about the budget is about the cause
			break
		}
		a.add(Item{Kind: ItemDormant, Since: a.lastSeen(), Hint: a.resume()},
			"No process of the team is running%s.", a.leftToDo())
	case len(without) > 0 && (o.Elsewhere == "" || o.Led):
		a.add(Item{Kind: ItemUnhosted, Since: a.lastSeen(), Hint: a.resume()},
			"No process runs the %s of %s.", word(len(without), "session", "sessions"), andMore(without))
	case len(a.s.Unfound(o)) > 0 && (o.Elsewhere == "" || o.Led):
		groups := a.s.Unfound(o)
		a.add(Item{Kind: ItemUnhosted, Hint: a.resume()},
			"No process finds the items of %s %s.", word(len(groups), "task", "tasks"), andMore(groups))
	}
	lead := a.s.lead()
	switch gone := a.s.leadGone(o); {
	case a.s.Dormant(o):
	case t.LeadLost != 0:
		a.add(Item{Kind: ItemLeadLost, Since: t.LeadLost, Hint: a.resume()},
			"No session leads: session %s is lost%s%s.", t.LeadSession, a.zombies(), a.held())
	case gone:
		a.add(Item{Kind: ItemLeadLost, Since: o.Sights[t.Lead].Seen, Hint: a.resume()},
			"No session leads: the process of session %s has ended.", t.LeadSession)
	case lead.Setbacks >= MaxSetbacks:
		a.add(Item{Kind: ItemLeadFailed, Member: lead.Name, Since: lead.Since, Hint: Hint{Action: ActResume}},
			"The lead cannot continue: %s", clipTo(lead.Summary, 200))
	}
}

// lastSeen returns the last heartbeat of any member.
func (a *attention) lastSeen() (last Time) {
	for _, sight := range a.o.Sights {
		last = max(last, sight.Seen)
	}
	return last
}

func (a *attention) leftToDo() string {
	open := a.s.Count(Pending) + a.s.Count(InProgress)
	if open == 0 && a.s.Count(Completed) > 0 {
		return "; all tasks are done, and nothing is consolidated"
	}
	if open == 0 {
		return ""
	}
	return fmt.Sprintf("; %s not done", isAre(open, "task"))
}

func (a *attention) zombies() string {
	var names []string
	for i := range a.s.members {
		if m := &a.s.members[i]; a.s.Standing(m.Name, a.o) == Zombie {
			names = append(names, m.Name)
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return "; " + names[0] + " finishes its task and takes no new one"
	}
	return "; " + andMore(names) + " finish their tasks and take no new ones"
}

func (a *attention) held() string {
	n := a.s.HeldMessages()
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("; %s until a session leads", word(n, "1 message waits", strconv.Itoa(n)+" messages wait"))
}

// people adds members that failed or are offline.
func (a *attention) people() {
	s := a.s
	open := s.Count(Pending)+s.Count(InProgress) > 0
	for i := range s.members {
		// the sender of the command that added a member waits for it to start
		if m := &s.members[i]; m.Status == Failed && (open || m.Session == "" && m.Agent != External) &&
			!a.replaced(m) {
			a.add(Item{Kind: ItemFailed, WaitsFor: a.lead, Member: m.Name, Since: m.Since,
				Hint: Hint{Action: ActSpawn, Member: m.Name, Name: a.free(m.Name), Agent: m.Agent}},
				"%s failed: %s", m.Name, clipTo(m.Summary, 200))
		}
	}
	if s.Dormant(a.o) {
		return
	}
	a.machines()
	for i := range s.members {
		m := &s.members[i]
		var seen Sight
		if a.o != nil {
			seen = a.o.Sights[m.Name]
		}
		hosted := m.Agent != External
		switch {
		case m.Name == a.t.Lead || s.Standing(m.Name, a.o) != Away:
			continue
		case hosted && a.o != nil && !a.o.Hosted: // the item about the host names it
			continue
		case hosted && seen.HostGone && m.Offline == 0: // another host is about to take it over
			continue
		}
		why := seen.Why
		if why == "" {
			why = "its heartbeats stopped"
		}
		item := Item{Kind: ItemOffline, WaitsFor: a.lead, Member: m.Name, Since: seen.Seen,
			Hint: Hint{Action: ActShowLog}}
		if m.Offline != 0 {
			item.Since = m.Offline
		}
		if !hosted {
			item.Hint = Hint{Action: ActRejoin, Member: m.Name}
		}
		holds := ""
		if held := s.holds(m.Name); len(held) > 0 {
			item.Task = held[0].ID
			item.Hint = held[0].Hint(a.t, ActReassign)
			item.Hint.Member = m.Name
			holds = "; it holds task " + held[0].Called()
		}
		a.add(item, "%s is offline: %s%s.", m.Name, why, holds)
	}
}

// replaced reports whether a member joined after this one failed: its spawn handled the failure.
func (a *attention) replaced(m *Member) bool {
	return slices.ContainsFunc(a.s.members, func(other Member) bool {
		return other.JoinedAt > m.Since &&
			other.Status != Failed
	})
}

// work adds what blocks tasks.
func (a *attention) work() {
	c := &a.t.Consolidation
	if a.t.Status == TeamActive && c.Step == Abandoned && c.Failed != "" {
		a.add(Item{Kind: ItemCheck, WaitsFor: a.lead, About: c.Failed, Since: c.EndedAt,
			Hint: a.consolidate()}, "The check %s failed, and nothing was committed.", brief(c.Failed))
	}
	for i := range a.s.members {
		m := &a.s.members[i]
		if t := a.s.task(m.Left.Task); t != nil && m.Left.Commit != "" && !m.Left.Out && t.Status.open() {
			a.add(Item{Kind: ItemConflict, WaitsFor: a.lead, Member: m.Name, Task: t.ID, About: m.Left.Branch,
				Since: t.CreatedAt, Hint: t.Hint(a.t, ActShowTask)},
				"The work of %s on the branch %s is to be merged by hand; task %s says how.", m.Name,
				m.Left.Branch, t.Called())
		}
	}
	n, all := 0, a.s.failed.count()
	for t := range a.s.OutOfRetries() {
		if n++; n == mostAlike && all > mostAlike {
			a.add(Item{Kind: ItemTaskFailed, WaitsFor: a.lead, Task: t.ID, Since: t.UpdatedAt,
				Hint: a.retry(&t)},
				"Task %s and %d more are out of retries.", t.Called(), all-n)
			break
		}
		times := ""
		if t.Failures > 1 {
			times = fmt.Sprintf(" %d times", t.Failures)
		}
		a.add(Item{Kind: ItemTaskFailed, WaitsFor: a.lead, Task: t.ID, Since: t.UpdatedAt,
			Hint: a.retry(&t)},
			"Task %s failed%s: %s", t.briefly(), times, clipTo(t.Failure, 200))
	}
	yours, theirs, others := a.s.untaken()
	for n, t := range yours {
		if a.lead != ForUser { // an agent does this work
			break
		}
		item := Item{Kind: ItemTaskYours, Task: t.ID, Since: t.UpdatedAt, Hint: t.Hint(a.t, ActCompleteTask)}
		item.Hint.Member = a.t.Lead
		if n+1 == mostAlike && len(yours) > mostAlike {
			a.add(item, "Task %s and %d more wait for you.", t.Called(), len(yours)-mostAlike)
			break
		}
		a.add(item, "Task %s waits for you: %s", t.Called(), brief(t.Subject))
	}
	a.outside(theirs)
	if len(others) > 0 && a.t.Status != TeamConsolidating {
		t := others[0]
		item := Item{Kind: ItemUnassigned, WaitsFor: a.lead, Task: t.ID, Since: t.UpdatedAt, Hint: a.taker(t)}
		if len(others) == 1 {
			a.add(item, "%s: %s", strings.TrimSuffix(a.s.standing(t), "."), brief(t.Subject))
		} else {
			a.add(item, "Task %s and %d more are open, and no member takes them.", t.Called(), len(others)-1)
		}
	}
}

// outside adds the tasks for external members of a run whose sessions cannot be seen: a person may
// not know that the run waits for them.
func (a *attention) outside(theirs []*Task) {
	if a.t.Origin == "" || a.s.lead().Agent != External || a.t.Status != TeamActive {
		return
	}
	theirs = slices.DeleteFunc(theirs, func(t *Task) bool {
		return a.o != nil && a.o.Sights[t.Owner].Life == LifeOnline
	})
	for n, t := range theirs {
		item := Item{Kind: ItemTaskYours, Member: t.Owner, Task: t.ID, Since: t.UpdatedAt,
			Hint: t.Hint(a.t, ActClaimTask)}
		item.Hint.Member = t.Owner
		if n+1 == mostAlike && len(theirs) > mostAlike {
			a.add(item, "Task %s waits for member %s, and %d more tasks wait for members.", t.Called(), t.Owner,
				len(theirs)-mostAlike)
			break
		}
		a.add(item, "Task %s waits for member %s: %s", t.Called(), t.Owner, brief(t.Subject))
	}
}

// rest adds what can wait.
func (a *attention) rest() {
	s := a.s
	for _, r := range s.rejections {
		if m := s.member(r.Member); m != nil && !m.Status.Running() {
			continue
		}
		item, about := Item{Kind: ItemHook, WaitsFor: a.lead, Member: r.Member, About: r.Key, Since: r.At,
			Hint: Hint{Action: ActShowLog}}, ""
		if r.Task != "" {
			if t := s.task(r.Task); t != nil {
				if !t.Status.open() {
					continue
				}
				item.Task, item.Hint = t.ID, t.Hint(a.t, ActShowTask)
			}
			about = " (task " + brief(s.Called(r.Task)) + ")"
		}
		a.add(item, "The hook %s rejected the same thing of %s %d times%s: %s", r.Hook, person(r.Member), MaxStrikes,
			about, clipTo(r.Feedback, 200))
	}
	switch open := s.Count(Pending); {
	case a.t.Status != TeamConsolidating || a.t.Consolidation.Open() || s.Count(InProgress) > 0:
	case open > 0:
		a.add(Item{Kind: ItemConsolidate, Hint: a.consolidate()}, "The team winds down and starts nothing new, and %s "+
			"open.", isAre(open, "task"))
	default:
		a.add(Item{Kind: ItemConsolidate, Hint: a.consolidate()}, "The work is done and waits to be checked and "+
			"committed%s.", a.branches())
	}
	if a.unattended() {
		a.add(Item{Kind: ItemConsolidate, Hint: a.consolidate()}, "All tasks are done, and no process runs "+
			"the team; its work waits to be checked and committed%s.", a.branches())
	}
	a.late()
	if a.o != nil && len(a.o.Stale) > 0 {
		a.add(Item{Kind: ItemFacts, Hint: Hint{Action: ActRecordFacts}}, "%s changed since the team took note "+
			"of %s: %s.",
			word(len(a.o.Stale), "A fact", "Facts"), word(len(a.o.Stale), "it", "them"),
			clipTo(strings.Join(a.o.Stale, ", "), 200))
	}
}

// uncommitted adds the files that a complete team left in the shared directory.
func (a *attention) uncommitted() {
	if a.o != nil && len(a.o.Uncommitted) > 0 && a.t.Status == TeamComplete && a.t.Consolidation.Step != Done {
		a.add(Item{Kind: ItemConsolidate, Hint: a.consolidate()}, "The work is done and waits to be checked and "+
			"committed: %s.", clipTo(andMore(a.o.Uncommitted), 300))
	}
}

// untrusted adds the hooks of the project that the user does not trust.
func (a *attention) untrusted() {
	if a.o != nil && len(a.o.Untrusted) > 0 {
		a.add(Item{Kind: ItemUntrusted, About: strings.Join(a.o.Untrusted, ","), Hint: Hint{Action: ActTrust,
			Dir: a.t.Dir}}, "The project's hooks do not run, because you do not trust them: %s.",
			strings.Join(a.o.Untrusted, ", "))
	}
}

// unattended reports whether all tasks of the team are done, and no process or session is there
// that could add a task or end the team. A team with such a session has items of its own for what
// blocks it.
func (a *attention) unattended() bool {
	s, o := a.s, a.o
	if o == nil || o.Hosted || o.Led || o.LeadActs || o.Consolidating || o.Elsewhere != "" || s.ledBySession() ||
		len(s.Unhosted(o)) > 0 {
		return false
	}
	if a.t.Status != TeamActive || s.Count(Completed) == 0 || s.Count(Pending)+s.Count(InProgress) > 0 {
		return false
	}
	if c := &a.t.Consolidation; c.Open() || c.Step == Abandoned && c.Failed != "" { // the check has an item
		return false
	}
	for _, sight := range o.Sights {
		if sight.Life == LifeOnline {
			return false
		}
	}
	return true
}

// branches names the branches with work that the consolidation will merge.
func (a *attention) branches() string {
	var names []string
	for _, m := range a.s.Unmerged() {
		names = append(names, m.Left.Branch)
	}
	return prefixed(": ", andMore(names))
}

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func isAre(n int, what string) string { return Count(n, what) + word(n, " is", " are") }

// andMore lists names in a sentence. It shortens a long list to the first ones.
func andMore(names []string) string {
	const most = 5
	if len(names) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
	}
	return strings.Join(names, ", ")
}
