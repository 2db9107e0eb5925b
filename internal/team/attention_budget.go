package team

import (
	"fmt"
	"strconv"
)

// money adds the budgets of the team and of its members.
func (a *attention) money() {
	for _, u := range a.s.Spending(a.now) {
		i := Item{About: u.What, Hint: Hint{Action: ActRaiseBudget, Budget: u.What}}
		switch {
		case a.t.Exhausted == u.What:
			i.Kind = ItemBudget
			a.add(i, "The %s; no new work is started.", u.SpentOf(""))
		case a.t.Exhausted == "" && u.passed() > 0:
			i.Kind = ItemBudgetLow
			a.add(i, "%s", u.said("", u.Percent()))
		}
	}
	for i := range a.s.members {
		m := &a.s.members[i]
		if !m.Status.Running() {
			continue
		}
		for _, u := range m.Spending(a.now) {
			i := Item{Member: m.Name, About: u.What, Hint: Hint{Action: ActRaiseBudget, Member: m.Name, Budget: u.What}}
			switch {
			case m.Exhausted == u.What:
				i.Kind = ItemBudget
				waiting := ""
				if n := a.s.waitingFor(m.Name); n > 0 {
					waiting = fmt.Sprintf(" %s for it.", word(n, "1 task waits", strconv.Itoa(n)+" tasks wait"))
				}
				a.add(i, "The %s; it gets no new work.%s", u.SpentOf(m.Name), waiting)
			case m.Exhausted == "" && u.passed() > 0:
				i.Kind = ItemBudgetLow
				a.add(i, "%s", u.said(m.Name, u.Percent()))
			}
		}
	}
}

// waitingFor counts the tasks that only this member would start now.
func (s *State) waitingFor(member string) (n int) {
	for p := range s.ready {
		for i := range s.ready[p].all() {
			if s.tasks[i].Owner == member {
				n++
			}
		}
	}
	return n
}

// spent reports whether the member's own budget is recorded as spent.
func (s *State) spent(member string) bool {
	m := s.member(member)
	return m != nil && m.Status.Running() && m.Exhausted != ""
}
