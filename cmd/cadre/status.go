package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/inspect/catalog"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

func (a *app) statusCommand() *cobra.Command {
	var watch bool
	c := a.looking(0, &cobra.Command{
		Use: "status [TEAM]", Short: "Show a team: members, tasks, what waits",
		Long: `Show a team as it is now: progress, budget, checks, what each member does, and which tasks are in
progress, failed or next. Then come the items that wait for you, each with the command that settles it. The last line
is the next step. Nothing is changed.

With --watch the team is shown again at each change, until the team has ended or you interrupt the command. With
--json each status is one line.`,
	}, func(c *cobra.Command, d *engine.Team, _ []string) error {
		if watch {
			stays()
			return a.watchStatus(a.whileRead(c.Context()), d)
		}
		shown, err := a.standing(c.Context(), d)
		if err != nil {
			return err
		}
		return a.print(shown, shown.write)
	})
	c.Flags().BoolVarP(&watch, "watch", "w", false, "show the team again at each change")
	return c
}

// standing returns the present state of the team, as cadre status prints it.
func (a *app) standing(ctx context.Context, d *engine.Team) (*standing, error) {
	found, err := d.Standing(ctx)
	if err != nil {
		return nil, err
	}
	shown := &standing{Standing: found, called: d.Name,
		step: found.Step(func() bool { return d.Pending(ctx) })}
	if t := d.Team(); t.Parent.Team != "" {
		shown.top = t.Outermost()
	}
	for _, m := range shown.Members {
		if _, err := d.Terminal(m.Name); err == nil {
			if shown.Attach == nil {
				shown.Attach = map[string]string{}
			}
			shown.Attach[m.Name] = fmt.Sprintf("cadre attach %s %s", d.Name, m.Name)
		}
	}
	d.View(func(s *team.State) { shown.works = render.WorksOn(s) })
	return shown, nil
}

// A watched status is shown again after a change, at most twice a second. It is also shown from
// time to time without a change, because the history does not record whether a member is alive.
const (
	watchPause = 500 * time.Millisecond
	watchEvery = 5 * time.Second
)

// watchStatus shows the team at each change until it has ended. On a terminal each status replaces
// the last one, and lines below the screen are left out. The last status stays.
func (a *app) watchStatus(ctx context.Context, d *engine.Team) error {
	drawn := !a.json && a.out.terminal()
	var last []byte
	var before string
	stays := func(*sanitize.Writer) error { return nil }
	if drawn {
		a.out.Draw(sanitize.OpenPage)
		defer func() {
			a.out.Draw(sanitize.ClosePage)
			stays(a.out.Writer)
		}()
	}
	for {
		seq := d.Seq()
		shown, err := a.standing(ctx, d)
		if err != nil {
			return stopped(ctx, err)
		}
		var page bytes.Buffer
		w := sanitize.NewWriter(&page)
		w.Columns, w.Colors = a.out.Columns, a.out.Colors
		if a.json {
			err = w.Value(shown)
		} else {
			err = shown.write(w)
		}
		if err != nil {
			return err
		}
		is := shown.moved()
		if drawn && !bytes.Equal(page.Bytes(), last) || is != before {
			if drawn {
				a.drawPage(page.Bytes())
			} else {
				if last != nil && !a.json {
					a.out.Printf("\n")
				}
				a.out.Write(page.Bytes())
			}
			last, before, stays = page.Bytes(), is, shown.write
		}
		if shown.Status == team.TeamComplete || shown.Status == team.TeamAborted {
			return nil
		}
		select {
		case <-time.After(watchPause):
		case <-ctx.Done():
			return nil
		}
		waiting, cancel := context.WithTimeout(ctx, watchEvery)
		err = d.Await(waiting, seq)
		if err == nil || waiting.Err() != nil { // nothing changed for a while
			err = d.Refresh(ctx)
		}
		cancel()
		if err != nil { // the team was removed, for example
			return stopped(ctx, err)
		}
	}
}

// moved returns a text that differs between two statuses if an event happened between them. The
// age of the last change and the use of a time budget do not count.
func (n *standing) moved() string {
	still := *n
	still.LookedAt = 0
	still.Budget = slices.DeleteFunc(slices.Clone(n.Budget), func(b team.Spent) bool { return b.What == "time" })
	still.Attention = slices.Clone(n.Attention)
	for i, item := range still.Attention {
		still.Attention[i] = team.Item{About: item.Key(), WaitsFor: item.WaitsFor} // its sentence may count seconds
	}
	text, err := json.Marshal(&still)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%s %d %v", text, n.step, n.works)
}

// stopped returns err, or nil if the person interrupted.
func stopped(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// drawPage replaces the content of the screen.
func (a *app) drawPage(text []byte) {
	width, height := a.out.size()
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) > height {
		lines = append(lines[:height-1], fmt.Sprintf("… and %d lines more", len(lines)-height+1))
	}
	var parts []any
	next := sanitize.TopOfPage
	for _, line := range lines {
		parts = append(parts, next)
		room := width
		for _, part := range sanitize.Parts(line) {
			if text, is := part.(string); is {
				part = render.Cut(text, room)
				room = max(0, room-render.Width(text))
			}
			parts = append(parts, part)
		}
		next = sanitize.NextLine
	}
	if len(lines) < height {
		parts = append(parts, sanitize.RestOff)
	}
	a.out.Draw(parts...)
}

// standing is what is shown of a team.
type standing struct {
	catalog.Standing
	// the command that goes to a member's terminal, for each that has one
	Attach map[string]string `json:"attach,omitempty"`

	called string            // its name
	top    string            // name of the team that contains it and all others of its tree; "" for none
	step   catalog.Step      // the next step
	works  map[string]string // the tasks of each member
}

func (n *standing) write(w *sanitize.Writer) error {
	n.writeHead(w)
	if err := n.writeMembers(w); err != nil {
		return err
	}
	n.writeLimits(w)
	if err := n.writeTasks(w); err != nil {
		return err
	}
	if len(n.Attention) > 0 {
		w.Printf("\n%s:\n", render.Strong.On(waiting(len(n.Attention))))
	}
	if err := writeItems(w, n.called, n.Attention); err != nil {
		return err
	}
	return w.Printf("\n%s\n", sanitize.Hanging{Text: n.next(), Indent: 4})
}

// waiting says how many items wait.
func waiting(n int) string {
	if n == 1 {
		return "1 thing waits"
	}
	return fmt.Sprintf("%d things wait", n)
}

// next returns the next step: the first item that waits for the user, or what fits the team's
// state.
func (n *standing) next() string {
	switch n.step {
	case catalog.Answer:
		for _, i := range n.Attention {
			if i.WaitsFor == team.ForUser {
				return "next: " + stepFor(n.called, i).String()
			}
		}
	case catalog.Pull:
		if n.MovedTo != "" {
			return "what continues is in " + n.MovedTo
		}
		return "next: cadre pull " + n.called
	case catalog.Observe:
		return "next: cadre observe " + n.observing()
	case catalog.Seal, catalog.Bring:
		if n.top != "" {
			return n.withParent()
		}
	}
	switch n.step {
	case catalog.Seal:
		return "not consolidated; to check and commit the team's work: cadre consolidate " + n.called
	case catalog.Review:
		return "next: cadre review " + n.called
	case catalog.Bring:
		return "all tasks are done; next: cadre consolidate " + n.called
	case catalog.Staff:
		return fmt.Sprintf("next: cadre spawn %s NAME", n.called)
	case catalog.Plan:
		return fmt.Sprintf("next: cadre task add %s SUBJECT", n.called)
	}
	return "nothing waits for you; to follow it: cadre log " + n.called + " --follow"
}

// withParent says where the work of a nested team, which is done, is checked and committed.
func (n *standing) withParent() string {
	return fmt.Sprintf("all tasks are done; team %s checks and commits the work: %s", n.top,
		render.Typed("status", n.top))
}

// writeMembers writes the table of members, without empty columns.
func (n *standing) writeMembers(w *sanitize.Writer) error {
	t := render.Table{Texts: []string{"NOTE"}, Spare: []string{"COST", "TOKENS", "CONTEXT", "MODE", "AGENT", "ROLE",
		"MAIL"}, Numbers: []string{"MAIL", "TOKENS", "COST", "CONTEXT"}}
	t.Row("MEMBER", "AGENT", "ROLE", "STATUS", "MODE", "MAIL", "TOKENS", "COST", "CONTEXT", "NOTE")
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
		n.addChildren(&t, m.Name)
	}
	t.Compact()
	if err := t.Write(w); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(n.Attach)) {
		w.Printf("%s has a terminal; to attach: %s\n", name, n.Attach[name])
	}
	return nil
}

// addChildren adds a row for each team that works for the member, and for the teams in it.
func (n *standing) addChildren(t *render.Table, member string) {
	shown := 0 // the level down to which rows are shown now
	for _, c := range n.ChildTeams {
		switch works := !c.Over && (c.Level > 1 || c.Member == member); {
		case c.Level > shown+1: // it is in a team that is not shown
		case !works:
			shown = c.Level - 1
		default:
			shown = c.Level
			t.Row(strings.Repeat("  ", c.Level)+c.Name, "", "", string(c.Status), "", "", "", "", "",
				fmt.Sprintf("task %s; %s", c.Task, team.TasksDone(c.Completed, c.Tasks)))
		}
	}
}

// writeLimits writes the rate limits for which members wait.
func (n *standing) writeLimits(w *sanitize.Writer) {
	for _, l := range n.RateLimits {
		w.Printf("rate limit of %s until %s; waits for it: %s; to try again now: %s\n", l.Pool,
			render.When(now(), l.Until), strings.Join(l.Members, ", "), render.Typed("lift", n.called, l.Members[0]))
	}
}

// writeTasks writes the tasks in progress, the failed ones, the next ones, and the last completed
// ones with usage.
func (n *standing) writeTasks(w *sanitize.Writer) error {
	rows := slices.Concat(n.Underway, n.Failures, n.Next, n.Used)
	if len(rows) == 0 {
		return nil
	}
	w.Printf("\n")
	t := render.Table{Texts: []string{"SUBJECT", "STATUS"}, Spare: []string{"COST", "TOKENS", "OWNER"},
		Numbers: []string{"TOKENS", "COST"}}
	t.Row("TASK", "STATUS", "OWNER", "TOKENS", "COST", "SUBJECT")
	for _, task := range rows {
		t.Row(task.Called(), render.TaskState(task), task.Worker(), tokens(task.Usage),
			cost(task.Usage), task.Subject)
	}
	t.Compact()
	if err := t.Write(w); err != nil {
		return err
	}
	left := counted(n.Tasks["in_progress"]-len(n.Underway), "in progress", n.Failed-len(n.Failures), "failed",
		n.Ready-len(n.Next), "ready", n.Blocked, "blocked", n.Tasks["completed"]-len(n.Used), "completed")
	if left == "" {
		return nil
	}
	return w.Printf("and %s: cadre task list %s\n", left, n.called)
}

// writeHead writes the part about the team as a whole.
func (n *standing) writeHead(w *sanitize.Writer) {
	o := overview{Overview: n.Overview}
	if o.Session {
		w.Printf("%s is a session of %s that is %s\n", o.Name, o.Observed, n.observedNow())
	} else {
		state := o.State()
		w.Printf("%s is %s: %s\n", render.Strong.On(o.Name), render.StateTone(state).On(state), sanitize.Hanging{
			Text: team.TasksDone(o.counts()) + n.open(), At: render.Width(o.Name + " is " + state + ": "), Indent: 2})
	}
	if o.Goal != "" {
		w.Printf("goal: %s\n", sanitize.Hanging{Text: o.Goal, At: len("goal: "), Indent: len("goal: ")})
	}
	if o.MovedTo != "" {
		w.Printf("moved to %s %s, and continues there; where that was in vain: cadre resume %s --take-back\n", o.MovedTo,
			render.Ago(now(), o.Released), n.called)
	} else if o.Released != 0 {
		w.Printf("released by this machine %s, so that another one can continue it; to continue it here: cadre "+
			"resume %s --take-back\n", render.Ago(now(), o.Released), n.called)
	}
	w.Printf("%slast change %s", where(o.directory()), render.Ago(now(), o.UpdatedAt))
	if o.Usage.Tokens() > 0 {
		w.Printf(", %d tokens%s", o.Usage.Tokens(), prefix(", ", cost(o.Usage)))
	}
	w.Printf("\n")
	if o.Observed != "" && !o.Session {
		w.Printf("it is the team %s of another program, %s\n", o.Observed, n.observedNow())
	}
	for _, line := range []string{n.budget(), n.checks(), n.modes()} {
		if line != "" {
			w.Printf("%s\n", sanitize.Hanging{Text: line, Indent: 4})
		}
	}
	w.Printf("\n")
}

// open says what the open tasks wait for.
func (n *standing) open() string {
	return prefix(", ", counted(n.Tasks["in_progress"], "in progress", n.Failed, "failed", n.Ready, "ready", n.Blocked,
		"blocked"))
}

// counted lists the numbers that are not zero, with their names.
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

// uncounted says which agents a budget in dollars does not limit.
func uncounted(agents []string) string {
	verb := "does"
	if len(agents) > 1 {
		verb = "do"
	}
	return fmt.Sprintf("%s %s not say what the model costs, so the budget in USD does not count it: one of tokens or "+
		"time does", strings.Join(agents, ", "), verb)
}

// checks names the checks, with the result of each in the last consolidation.
func (n *standing) checks() string {
	var parts []string
	ran := false
	for _, c := range n.Checks {
		parts = append(parts, c.Name+" "+cmp.Or(c.Result, "not run"))
		ran = ran || c.Result != ""
	}
	words := prefix("checks: ", strings.Join(parts, ", "))
	if words != "" && !ran {
		words += "; cadre consolidate runs them before the commit"
	}
	return words
}

// modes returns what holds for all members: delegate mode, and who is asked for permissions.
func (n *standing) modes() string {
	var parts []string
	if n.Delegate {
		parts = append(parts, "delegate mode is on")
	}
	if n.Rules.Policy != "" {
		parts = append(parts, "permission policy "+n.Rules.Policy)
	}
	if rules := len(n.Rules.Allow) + len(n.Added); rules > 0 {
		parts = append(parts, team.Count(rules, "permission rule"))
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
	return "not observed now; to continue: cadre observe " + n.observing()
}

// observing returns the arguments that continue the observation.
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
