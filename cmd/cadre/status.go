package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/consolidate"
	"cadre/internal/host"
	"cadre/internal/inspect"
	"cadre/internal/inspect/catalog"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/replica"
	"cadre/internal/team"
)

func (a *app) statusCommand() *cobra.Command {
	return a.looking(0, &cobra.Command{
		Use: "status [TEAM]", Short: "Show a team: its members, what they do, its tasks, what waits for you",
		Long: `Show a team as it is at this moment: how far it has come, what is used of its budget, its checks, what each member does, the tasks that are in progress and
those that come next, and what waits for you, with the command that helps. The last line is the next step. It changes nothing.`,
	}, func(c *cobra.Command, d opened, _ []string) error {
		outside, err := inspect.Look(c.Context(), d.Replica, d.dir, time.Now())
		if err != nil {
			return err
		}
		now := standing{called: d.name, now: replica.Now()}
		d.View(func(s *team.State) { now.take(s, overview{catalog.Summarize(a.home, s, outside)}, outside) })
		now.Attach = attachable(now.Members, d)
		now.waits = now.Status != team.TeamComplete || now.sealed || a.uncommitted(c.Context(), d)
		if a.out.terminal() {
			now.width, _ = a.out.size()
		}
		return a.print(now, now.write)
	})
}

// uncommitted reports whether a consolidation of the team would have something to check or to
// commit. It says so, too, where that cannot be found out.
func (a *app) uncommitted(ctx context.Context, d opened) bool {
	t := d.Team()
	if len(t.Checks) > 0 || t.Base.Unknown != "" {
		return true
	}
	p, err := consolidate.LookPending(ctx, consolidate.Options{Replica: d.Replica, Dir: d.dir,
		Except: []string{a.home.Root, a.home.Claude}})
	return err != nil || p.Unknown != "" || len(p.Branches) > 0 || len(p.Files) > 0
}

// Most tasks that status shows of a kind; the list of tasks has all of them.
const (
	mostUnderway = 10
	mostNext     = 5
	mostUsed     = 10
)

// standing is what is shown of a team.
type standing struct {
	overview
	Members []team.Member `json:"members"`
	// what each member does, by what was recorded and what was found
	Standings   map[string]team.Phase `json:"standings"`
	Permissions []team.Permission     `json:"permissions"`
	Budget      []team.Spent          `json:"budget"` // what is used of each that the team has
	// agents that do not say what they cost, where there is a budget of money
	Uncounted []string              `json:"uncounted,omitempty"`
	Checks    []checked             `json:"checks"`
	Ready     int                   `json:"ready"`               // tasks that somebody could claim
	Blocked   int                   `json:"blocked"`             // tasks that wait for others
	Underway  []team.Task           `json:"underway"`            // the first ones in progress
	Next      []team.Task           `json:"next"`                // the first ones that could be claimed
	TaskUsage map[string]team.Usage `json:"taskUsage,omitempty"` // of the tasks that used something, by id
	// the command that goes to a member's terminal, for each that has one
	Attach map[string]string `json:"attach,omitempty"`

	called string            // by which name
	now    team.Time         //
	width  int               // of the terminal; 0 for none
	works  map[string]string // what each member works on
	used   []team.Task       // the last ones that used something and are not in progress
	rules  team.Permissions
	sealed bool // it was consolidated
	waits  bool // there is something to consolidate, or nobody knows; only asked of a team that is complete
}

// checked is a check, and how it ended in the last consolidation: passed, failed, or "" where it
// has not run.
type checked struct {
	Name   string `json:"name"`
	Result string `json:"result,omitempty"`
}

// take takes what is shown from the state.
func (n *standing) take(s *team.State, o overview, outside *team.Outside) {
	n.overview, n.Members, n.Permissions, n.works = o, s.Roster(), s.Permissions(), render.WorksOn(s)
	n.Permissions = append([]team.Permission{}, n.Permissions...)
	n.Standings = map[string]team.Phase{}
	for _, m := range n.Members {
		n.Standings[m.Name] = s.Standing(m.Name, outside)
	}
	t := s.Team()
	n.rules, n.sealed = t.Permissions, t.Consolidation.Step == team.Done
	n.Budget = append([]team.Spent{}, s.Spending(n.now)...)
	n.Uncounted = s.Uncounted()
	n.Checks = []checked{}
	for _, c := range t.Checks {
		one := checked{Name: c.Name}
		switch last := &t.Consolidation; {
		case slices.Contains(last.Passed, c.Name):
			one.Result = "passed"
		case last.Failed == c.Name:
			one.Result = "failed"
		}
		n.Checks = append(n.Checks, one)
	}
	n.Underway, n.Next = []team.Task{}, []team.Task{}
	for task := range s.Underway() {
		if len(n.Underway) == mostUnderway {
			break
		}
		n.Underway = append(n.Underway, task)
	}
	var first []team.Task
	n.Ready, first = s.Ready(mostNext)
	n.Next = append(n.Next, first...)
	n.Blocked = s.Blocked()
	for task := range s.Used() {
		if n.TaskUsage == nil {
			n.TaskUsage = map[string]team.Usage{}
		}
		n.TaskUsage[task.ID] = task.Usage
		if task.Status == team.Completed || task.GivenUp() {
			n.used = append(n.used, task)
		}
	}
	n.used = n.used[max(0, len(n.used)-mostUsed):]
}

func (n *standing) write(w *sanitize.Writer) error {
	n.writeHead(w)
	if err := n.writeMembers(w); err != nil {
		return err
	}
	if err := n.writeTasks(w); err != nil {
		return err
	}
	if len(n.Attention) > 0 {
		w.Printf("\n%s:\n", waiting(len(n.Attention)))
	}
	if err := writeItems(w, n.called, n.Attention); err != nil {
		return err
	}
	return w.Printf("\n%s\n", n.next())
}

// waiting says how many things wait.
func waiting(n int) string {
	if n == 1 {
		return "1 thing waits"
	}
	return fmt.Sprintf("%d things wait", n)
}

// next is the next step: what waits for the user first, or what one does with such a team.
func (n *standing) next() string {
	for _, i := range n.Attention {
		if i.WaitsFor == team.ForUser {
			return "next: " + stepFor(n.called, i).String()
		}
	}
	switch all := n.Tasks["pending"] + n.Tasks["in_progress"] + n.Tasks["completed"]; {
	case n.Released != 0:
		return "next: cadre pull " + n.called
	case n.Observed != "" && n.Watched, n.Status == team.TeamConsolidating, n.Hosted && n.Tasks["in_progress"] > 0:
		return "nothing waits for you; to follow it: cadre log " + n.called + " --follow"
	case n.Observed != "":
		return "next: cadre observe " + n.observing()
	case n.Status == team.TeamComplete && !n.sealed && n.waits:
		return "the team was not consolidated; to check and commit what it did: cadre consolidate " + n.called
	case ended(team.Team{Status: n.Status}):
		return "next: cadre review " + n.called
	case all > 0 && n.Tasks["completed"] == all && !n.Led:
		return "all tasks are done; next: cadre consolidate " + n.called
	case n.Teammates == 0:
		return fmt.Sprintf("next: cadre spawn %s NAME", n.called)
	case all == 0:
		return fmt.Sprintf("next: cadre task add %s SUBJECT", n.called)
	}
	return "nothing waits for you; to follow it: cadre log " + n.called + " --follow"
}

// writeMembers writes the table of members. Columns in which nobody has anything are left out.
func (n *standing) writeMembers(w *sanitize.Writer) error {
	t := render.Table{Width: n.width}
	t.Row("MEMBER", "AGENT", "ROLE", "STATUS", "MODE", "MAIL", "TOKENS", "COST", "CONTEXT", "WORKS ON")
	for _, m := range n.Members {
		mail, mode := "", m.PermissionMode
		if len(m.Inbox) > 0 {
			mail = fmt.Sprint(len(m.Inbox))
		}
		if mode == "default" {
			mode = ""
		}
		t.Row(m.Name, m.Agent, m.Role, string(n.Standings[m.Name]), mode, mail, tokens(m.Usage), cost(m.Usage),
			percent(m.Context), n.works[m.Name])
	}
	t.Compact()
	if err := t.Write(w); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(n.Attach)) {
		w.Printf("%s is at a terminal; to go there: %s\n", name, n.Attach[name])
	}
	return nil
}

// attachable are the commands that go to the terminals of members.
func attachable(members []team.Member, d opened) map[string]string {
	var commands map[string]string
	for _, m := range members {
		if m.Agent != team.ClaudeTmux || host.Terminal(filepath.Join(d.dir, "hosts"), m.Name) == "" {
			continue
		}
		if commands == nil {
			commands = map[string]string{}
		}
		commands[m.Name] = fmt.Sprintf("cadre attach %s %s", d.name, m.Name)
	}
	return commands
}

// writeTasks writes the tasks in progress, those that come next, and the last that used something.
func (n *standing) writeTasks(w *sanitize.Writer) error {
	rows := slices.Concat(n.Underway, n.Next, n.used)
	if len(rows) == 0 {
		return nil
	}
	w.Printf("\n")
	t := render.Table{Width: n.width}
	t.Row("TASK", "STATUS", "OWNER", "TOKENS", "COST", "SUBJECT")
	for _, task := range rows {
		t.Row(task.ID, render.TaskState(task), cmp.Or(task.CompletedBy, task.Owner), tokens(task.Usage),
			cost(task.Usage), task.Subject)
	}
	t.Compact()
	if err := t.Write(w); err != nil {
		return err
	}
	left := counted(n.Tasks["in_progress"]-len(n.Underway), "in progress", n.Ready-len(n.Next), "ready", n.Blocked,
		"blocked", n.Tasks["completed"]-completed(n.used), "completed")
	if left == "" {
		return nil
	}
	return w.Printf("and %s: cadre task list %s\n", left, n.called)
}

func completed(tasks []team.Task) (n int) {
	for _, t := range tasks {
		if t.Status == team.Completed {
			n++
		}
	}
	return n
}

// writeHead writes what is to be said of the team as a whole.
func (n *standing) writeHead(w *sanitize.Writer) {
	o := n.overview
	if o.Session {
		w.Printf("%s is a session of %s that is %s\n", o.Name, o.Observed, n.observedNow())
	} else {
		w.Printf("%s is %s: %s tasks done%s\n", o.Name, o.state(), o.progress(), n.open())
	}
	if o.Goal != "" {
		w.Printf("goal: %s\n", o.Goal)
	}
	if o.Released != 0 {
		w.Printf("this machine let go of it %s, so that it continues elsewhere; to take it back: cadre resume %s "+
			"--take-back\n", render.Ago(n.now, o.Released), n.called)
	}
	w.Printf("%slast change %s", where(o.Dir), render.Ago(n.now, o.UpdatedAt))
	if o.Usage.Tokens() > 0 {
		w.Printf(", %d tokens%s", o.Usage.Tokens(), prefix(", ", cost(o.Usage)))
	}
	w.Printf("\n")
	if o.Observed != "" && !o.Session {
		w.Printf("it is the team %s of somebody else, who is %s\n", o.Observed, n.observedNow())
	}
	for _, line := range []string{n.budget(), n.checks(), n.modes()} {
		if line != "" {
			w.Printf("%s\n", line)
		}
	}
	w.Printf("\n")
}

// open says what the open tasks wait for.
func (n *standing) open() string {
	failed := n.Tasks["pending"] - n.Ready - n.Blocked
	return prefix(", ", counted(n.Tasks["in_progress"], "in progress", n.Ready, "ready", n.Blocked, "blocked", failed,
		"out of retries"))
}

// counted lists how many there are of each, without those of which there are none.
func counted(pairs ...any) string {
	var parts []string
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i] != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", pairs[i], pairs[i+1]))
		}
	}
	return strings.Join(parts, ", ")
}

func (n *standing) budget() string {
	var parts []string
	for _, b := range n.Budget {
		spent := ""
		if n.Exhausted == b.What {
			spent = ", spent"
		}
		parts = append(parts, fmt.Sprintf("%s (%d %%%s)", b, b.Percent(), spent))
	}
	words := prefix("budget: ", strings.Join(parts, ", "))
	if len(n.Uncounted) > 0 {
		words += "; " + uncounted(n.Uncounted)
	}
	return words
}

// uncounted says which agents no amount of money bounds.
func uncounted(agents []string) string {
	verb := "does"
	if len(agents) > 1 {
		verb = "do"
	}
	return fmt.Sprintf("%s %s not say what the model costs, so the budget in USD does not count it: one of tokens or "+
		"time does", strings.Join(agents, ", "), verb)
}

func (n *standing) checks() string {
	var parts []string
	for _, c := range n.Checks {
		parts = append(parts, c.Name+" "+cmp.Or(c.Result, "not run"))
	}
	return prefix("checks: ", strings.Join(parts, ", "))
}

// modes is what holds for everybody: delegate mode, and who is asked for permissions.
func (n *standing) modes() string {
	var parts []string
	if n.Delegate {
		parts = append(parts, "delegate mode is on")
	}
	if n.rules.Policy != "" {
		parts = append(parts, "permission policy "+n.rules.Policy)
	}
	if rules := len(n.rules.Allow); rules > 0 {
		parts = append(parts, plural(rules, "permission rule"))
	}
	return strings.Join(parts, ", ")
}

func where(dir string) string {
	if dir == "" {
		return ""
	}
	return "in " + dir + ", "
}

func (n *standing) observedNow() string {
	if n.Watched {
		return "observed"
	}
	return "not observed at the moment; to go on: cadre observe " + n.observing()
}

// observing is how to continue the observation, without the command.
func (n *standing) observing() string {
	how := "..."
	if n.Session {
		how = "--agent " + n.Observed + " ..."
	}
	return how + " --as-team " + n.Name
}

func tokens(u team.Usage) string {
	if u.Tokens() == 0 {
		return ""
	}
	return fmt.Sprint(u.Tokens())
}

func cost(u team.Usage) string {
	if u.CostMicroUSD == 0 {
		return ""
	}
	return fmt.Sprintf("$%.4f", float64(u.CostMicroUSD)/1e6)
}

func percent(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d%%", n)
}
