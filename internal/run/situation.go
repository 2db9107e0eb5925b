package run

import (
	"fmt"
	"strings"

	"cadre/internal/team"
)

// situation has the facts from which the lead decides what is due.
type situation struct {
	over      bool
	exhausted string      // which budget the team has spent, in words
	led       bool        // an agent leads
	lost      string      // why that agent cannot continue
	said      bool        // it gave its report
	winding   bool        // it winds down: no task is started any more
	busy      bool        // a task is in progress, or can be claimed
	sessions  bool        // a session of ours is still running
	undone    int         // number of tasks
	failed    []string    // why teammates without a replacement could not do them, in words
	yours     []string    // undone tasks that wait for the person who leads, in words
	help      []team.Hint // for those, and for the teammates
	members   []string    // teammates of ours that are still running
	isolated  []string    // those of them in worktrees
}

func (l *Lead) look() (at situation) {
	held := false // a member was interrupted and waits for a message
	awaits := l.Awaits != nil && l.Awaits()
	l.Team.View(func(s *team.State) {
		t := s.Team()
		at.over = !s.Exists() || t.Status == team.TeamComplete || t.Status == team.TeamAborted
		at.exhausted = spentOf(s.Spending(l.Team.Now()), t.Exhausted, "")
		at.undone = s.Count(team.Pending) + s.Count(team.InProgress)
		at.said = t.LastWords != ""
		at.winding = t.Status == team.TeamConsolidating && !t.Consolidation.Open()
		at.busy = s.Expanding() && !at.winding || awaits
		for _, m := range s.Members() {
			at.troubled(s, m, l.Team.Now())
			if !m.Status.Running() {
				continue
			}
			if m.Name == t.Lead {
				if at.led = m.Agent != team.External; !at.led {
					yours, help := waiting(s)
					at.yours, at.help = yours, append(help, at.help...)
				} else {
					at.sessions = at.sessions || m.Host != ""
					at.busy = at.busy || s.Busy(m.Name) || begins(s, m)
					if m.Setbacks >= team.MaxSetbacks {
						at.lost = m.Summary
					}
				}
				continue
			}
			if s.HasWork(m.Name) {
				at.busy = true
			}
			if m.Agent == team.External {
				at.busy = at.busy || len(s.Held(m.Name)) > 0
				continue
			}
			if m.Host != "" || t.Exhausted == "" {
				at.sessions = true
			}
			at.members = append(at.members, m.Name)
			if m.Isolation != "" {
				at.isolated = append(at.isolated, m.Name)
			}
			at.busy = at.busy || s.Busy(m.Name)
			held = held || m.Interrupt != 0 && !at.winding
		}
		if !at.led && (s.Count(team.InProgress) > 0 || held && at.undone > 0) {
			at.busy = true
		}
	})
	return at
}

// troubled adds why the member, which has no replacement, does not do the remaining tasks.
func (at *situation) troubled(s *team.State, m team.Member, now team.Time) {
	if at.undone == 0 || !m.Status.Running() && (m.Dropped || replaced(s, m.Name)) {
		return
	}
	if m.Status == team.Failed {
		at.failed = append(at.failed, m.Name+" failed: "+m.Summary)
	}
	if spent := m.BudgetSpent(now); spent != "" {
		at.failed = append(at.failed, spentOf(m.Spending(now), spent, m.Name))
		at.help = append(at.help, team.Hint{Action: team.ActRaiseBudget, Team: s.Team().Name, Member: m.Name,
			Budget: spent})
	}
}

// spentOf says that one of the budgets is spent, as [team.State.Attention] does; "" for what "".
// The member is "" for the team's budgets.
func spentOf(all []team.Spent, what, member string) string {
	for _, u := range all {
		if u.What == what {
			return "the " + u.SpentOf(member)
		}
	}
	return ""
}

// waiting returns the tasks that only the lead can do.
func waiting(s *team.State) (words []string, help []team.Hint) {
	t := s.Team()
	for task := range s.Tasks() {
		if task.Owner == t.Lead && task.Status != team.Completed && task.Status != team.Deleted &&
			len(task.Blocked()) == 0 {
			words = append(words, fmt.Sprintf("task %s waits for you: %s", task.Called(), task.Subject))
			h := task.Hint(&t, team.ActCompleteTask)
			if s.AsksToMerge(task.ID) { // the task itself says how
				h.Action = team.ActShowTask
			}
			help = append(help, h)
		}
	}
	return words, help
}

// undoneWords says which work is left; "" for none.
func (at situation) undoneWords() string {
	words := at.yours
	n := at.undone - len(at.yours)
	switch {
	case n > 0 && at.winding:
		words = append([]string{"the team winds down, and " + team.Count(n, "task") + " stayed open"}, words...)
	case n > 0:
		words = append([]string{team.Count(n, "task") + " could not be done"}, words...)
	}
	if len(words) > 0 {
		const most = 3
		for i, why := range at.failed {
			if i == most {
				words = append(words, fmt.Sprintf("%d more failed", len(at.failed)-most))
				break
			}
			words = append(words, why)
		}
	}
	return strings.Join(words, "; ")
}

// begins reports whether the idle lead is about to get a task, such as a merge. It is asked for its
// report after that.
func begins(s *team.State, lead team.Member) bool {
	return lead.Setbacks < team.MaxSetbacks && s.AllowsTool(lead.Name, "TaskClaim") == nil && s.HasWork(lead.Name)
}
