package run

import (
	"context"
	"time"

	"cadre/internal/engine"
	"cadre/internal/inspect"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// Waiting finds out what newly waits for the user while this process runs a team. The zero Waiting
// is ready for use.
type Waiting struct {
	looker *inspect.Looker
	known  map[string]bool // keys of the items that were returned and still wait
	shown  map[string]bool // tasks that were returned by Outside, by id and status
}

// Fresh returns the items that began to wait for the user since the last call, after the record.
// While the team has later records it returns nothing. It leaves out what only follows from the end
// of a run.
func (w *Waiting) Fresh(ctx context.Context, r *team.Record, t *engine.Team) (fresh []team.Item) {
	if r.Seq < t.Seq() {
		return nil
	}
	if w.looker == nil {
		w.looker = t.Looker()
	}
	found, err := w.looker.Look(ctx, time.Now())
	if err != nil {
		return nil
	}
	outside := *found
	outside.Hosted, outside.Led = true, true // this process does both, whatever the examination found
	var items []team.Item
	var last bool
	t.View(func(s *team.State) { items, last = s.Attention(replica.Now(), &outside), ends(s) })
	waits := map[string]bool{}
	for _, i := range items {
		awaited := i.Kind == team.ItemTaskYours && i.Member != "" // Outside returns it
		if i.WaitsFor != team.ForUser || i.Kind == team.ItemConsolidate || awaited {
			continue
		}
		waits[i.Key()] = true
		said := last && i.Kind == team.ItemTaskFailed // the end of the run names what failed
		if !w.known[i.Key()] && !said {
			fresh = append(fresh, i)
		}
	}
	w.known = waits
	return fresh
}

// ends reports whether no task is left that a member could do, and no agent leads that could still
// hand out work. Then the run is about to end.
func ends(s *team.State) bool {
	for _, m := range s.Members() {
		leads := m.Name == s.Team().Lead && m.Agent != team.External
		if m.Status.Running() && (leads || s.HasWork(m.Name)) {
			return false
		}
	}
	return s.Count(team.InProgress) == 0 && !s.Expanding()
}

// Awaited is a task that waits for external members: people and programs that work elsewhere. A run
// that waits for nothing else looks as if it hung.
type Awaited struct {
	Task    team.Task
	Members []string // members that may do it; one if the task is claimed
}

// Outside returns the tasks that have started to wait for external members since the last call.
func (w *Waiting) Outside(s *team.State) (fresh []Awaited) {
	shown := map[string]bool{}
	for _, one := range awaited(s) {
		key := one.Task.ID + "/" + string(one.Task.Status)
		if shown[key] = true; !w.shown[key] {
			fresh = append(fresh, one)
		}
	}
	w.shown = shown
	return fresh
}

// awaited returns the tasks that external teammates work on, and those that can begin and that no
// other member takes.
func awaited(s *team.State) (all []Awaited) {
	lead := s.Team().Lead
	var outside []team.Member
	sessions := map[string]bool{} // roles of members with a session; "" for any
	for _, m := range s.Members() {
		switch {
		case !m.Status.Running() || m.Name == lead && m.Agent == team.External:
		case m.Agent == team.External:
			outside = append(outside, m)
		default:
			sessions[""], sessions[m.Role] = true, true
		}
	}
	if len(outside) == 0 {
		return nil
	}
	for t := range s.Tasks() {
		if t.Status == team.Completed || t.OutOfRetries() || len(t.Blocked()) > 0 {
			continue
		}
		var who []string
		for _, m := range outside {
			if t.Owner == m.Name || t.Owner == "" && !sessions[t.Role] && (t.Role == "" || t.Role == m.Role) {
				who = append(who, m.Name)
			}
		}
		if len(who) > 0 {
			all = append(all, Awaited{t, who})
		}
	}
	return all
}

// About reports whether one of the items is about the event.
func About(items []team.Item, e team.Event) bool {
	for _, i := range items {
		about := false
		switch e := e.(type) {
		case *team.PermissionRequested:
			about = i.Request == e.Permission.Request
		case *team.PlanSubmitted:
			about = i.Request == e.Request
		case *team.MemberTroubled:
			about = i.Kind == team.ItemLeadFailed && i.Member == e.Member
		case *team.BudgetExhausted:
			about = i.Kind == team.ItemBudget && i.Member == "" && i.About == e.What
		case *team.MemberBudgetExhausted:
			about = i.Kind == team.ItemBudget && i.Member == e.Member && i.About == e.What
		case *team.BudgetAlerted:
			about = i.Kind == team.ItemBudgetLow && i.Member == e.Member && i.About == e.What
		}
		if about {
			return true
		}
	}
	return false
}
