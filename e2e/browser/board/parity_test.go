package board

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"cadre/internal/team"
)

// waiting is an item, as the command prints it.
type waiting struct {
	Team string
	team.Item
}

// needy is a team in which ten kinds of things wait for a person.
func needy(t testing.TB) *story {
	s := newStory(t, "needy", "Wait for a person in every way")
	s.do(team.User, &team.SetBudget{Budget: team.Budget{CostMicroUSD: 1_000_000}})
	s.join("ann", "claude", "", "", true)
	s.do(team.User, &team.SpawnMember{Name: "bob", Agent: "claude", Isolation: team.Worktree})
	s.join("cleo", "claude", "", "", false)
	s.join("max", "claude", "", "", false)
	for _, name := range []string{"broken", "reviewed", "yours"} {
		s.add(name, name, "")
	}
	s.add("think", "think", "thinker")
	s.do(team.User, &team.UpdateTask{Task: "3", Owner: new("lead")})
	s.works("cleo", "broken")
	s.uses("cleo", "broken", 1000, 100, 600_000, 10)
	s.do("cleo", &team.FailTask{Task: "1", Reason: "exit status 1"})
	s.works("cleo", "reviewed")
	for range team.MaxStrikes {
		s.do("cleo", &team.RejectByHook{Hook: "TaskCompleted", Member: "cleo", Task: "2", Feedback: "not reviewed"})
	}
	s.do("cleo", &team.SendMessage{To: "lead", Body: "Which one?", Intent: "question"})
	s.do(host, &team.RequestPermission{Member: "cleo", Tool: "Bash", Input: `{"command":"make clean"}`,
		Deadline: s.at + 7_200_000})
	s.do("ann", &team.SubmitPlan{Plan: "1. Look."})
	s.do(host, &team.ReportTrouble{Member: "max", Trouble: "login", Text: "Please run /login", Gone: true})
	s.do(team.User, &team.LeaveBranch{Member: "bob", Commit: "c1", Why: "It conflicts."})
	s.hosted = true
	return s
}

// TestWhatWaits checks that the page of all teams and the page of a team show the same items as the
// commands, in the same order, and lose each as soon as it is settled, on the page or elsewhere.
func TestWhatWaits(t *testing.T) {
	w := serve(t, needy(t), billing(t))
	all, one := browse(t, 1400, 900), browse(t, 360, 740)
	all.login(w, "")
	one.login(w, "#team=needy")
	agree := func() []waiting {
		t.Helper()
		all.lists(w, "")
		return one.lists(w, "needy")
	}
	var kinds []team.ItemKind
	for _, i := range agree() {
		kinds = append(kinds, i.Kind)
	}
	plot := []struct {
		kind team.ItemKind
		ends func()
	}{
		{team.ItemPermission, func() { one.press("Allow once") }},
		{team.ItemPlan, func() { one.press("Approve") }},
		{team.ItemTaskFailed, func() { one.press("Retry") }},
		{team.ItemQuestion, func() { w.cadre("inbox", "needy", "lead") }},
		{team.ItemConflict, func() { w.cadre("task", "done", "needy", "5") }},
		{team.ItemTaskYours, func() { w.cadre("task", "done", "needy", "yours") }},
		{team.ItemUnassigned, func() { w.cadre("task", "update", "needy", "think", "--owner", "cleo") }},
		{team.ItemHook, func() { w.cadre("task", "done", "needy", "reviewed", "--as", "cleo") }},
		{team.ItemFailed, func() { w.cadre("spawn", "needy", "eve", "--agent", "external") }},
		{team.ItemBudgetLow, func() { w.cadre("budget", "needy", "--unlimited") }},
	}
	for _, item := range plot {
		if !slices.Contains(kinds, item.kind) {
			t.Errorf("nothing of the kind %s waits: %v", item.kind, kinds)
			continue
		}
		item.ends()
		w.eventually("the item is settled: "+string(item.kind), func() bool {
			return !slices.ContainsFunc(w.waiting("needy"), func(i waiting) bool { return i.Kind == item.kind })
		})
		agree()
	}
	if left := agree(); len(left) != 0 {
		t.Errorf("still waiting: %+v", left)
	}
}

// waiting returns what waits in the team, or in all teams, as the command prints it.
func (w *world) waiting(name string) (list []waiting) {
	w.t.Helper()
	args := []string{"attention", "--json"}
	if name != "" {
		args = append(args, name)
	}
	if err := json.Unmarshal([]byte(w.cadre(args...)), &list); err != nil {
		w.t.Fatal(err)
	}
	return list
}

// lists waits until the page shows and counts the items of the command, and returns them.
func (b *tab) lists(w *world, name string) (list []waiting) {
	b.t.Helper()
	type row struct{ Kind, Text, Count string }
	var shown []row
	w.eventually("the page of team "+name+" shows what the command prints", func() bool {
		shown = js[[]row](b, `[...document.querySelectorAll("li.wait")].map(e => ({Kind: e.className.split(" ")[1],
			Text: e.querySelector(".text").innerText, Count: document.querySelector("#waits .n").innerText}))`)
		list = w.waiting(name)
		return slices.EqualFunc(shown, list, func(r row, i waiting) bool {
			words := func(text string) string { return strings.Join(strings.Fields(text), " ") }
			return r.Kind == string(i.Kind) && strings.HasSuffix(words(r.Text), words(i.Text)) &&
				(name != "" || strings.HasPrefix(r.Text, i.Team)) && r.Count == strconv.Itoa(len(list))
		})
	})
	return list
}
