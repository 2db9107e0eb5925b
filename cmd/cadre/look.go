package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/coord"
	"cadre/internal/desk"
	"cadre/internal/feed"
	"cadre/internal/leader"
	"cadre/internal/sanitize"
	"cadre/internal/show"
	"cadre/internal/team"
)

// overview is a team in a list, and the head of its status.
type overview struct {
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Status    team.TeamStatus `json:"status"`
	Goal      string          `json:"goal,omitempty"`
	Dir       string          `json:"dir"`
	Lead      string          `json:"lead"`
	Delegate  bool            `json:"delegate"`
	Observed  string          `json:"observed,omitempty"` // the name by which its own agents know it, where it is only observed
	Session   bool            `json:"session,omitempty"`  // what is observed is no team but one session, of the agent that Observed names
	Watched   bool            `json:"watched,omitempty"`  // a living process observes it
	Hosted    bool            `json:"hosted"`             // a living process runs its sessions
	Led       bool            `json:"led"`                // a living process leads it
	Dormant   bool            `json:"dormant"`            // nobody of it lives, and it is not at its end
	Tasks     map[string]int  `json:"tasks"`
	Teammates int             `json:"teammates"` // that have not ended
	Messages  int64           `json:"messages"`
	Usage     team.Usage      `json:"usage"`
	Exhausted string          `json:"exhausted,omitempty"`
	Report    string          `json:"report,omitempty"`
	Seq       int64           `json:"seq"`
	CreatedAt team.Time       `json:"createdAt"`
	UpdatedAt team.Time       `json:"updatedAt"`
}

func (a *app) summarize(s *team.State, dir string) overview {
	t := s.Team()
	o := overview{ID: t.ID, Name: t.Name, Status: t.Status, Goal: t.Goal, Dir: t.Dir, Lead: t.Lead, Delegate: t.Delegate, Usage: t.Usage, Exhausted: t.Exhausted,
		Report: t.Report, Seq: s.Seq(), Messages: s.MessageSeq(), CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt,
		Hosted: coord.Hosted(filepath.Join(dir, "hosts")),
		Tasks:  map[string]int{}}
	for _, status := range []team.TaskStatus{team.Pending, team.InProgress, team.Completed} {
		o.Tasks[string(status)] = s.Count(status)
	}
	for _, m := range s.Members() {
		if m.Name != t.Lead && m.Status.Running() {
			o.Teammates++
		}
	}
	o.Led = leader.Lives(dir)
	wants := t.LeadSession != "" && t.LeadSession != team.User || hasSessions(s.Members()) // somebody should live: a team of people alone needs no process
	o.Dormant = wants && !o.Hosted && !o.Led && !ended(t)
	o.Observed, o.Session, o.Watched = t.Observed, t.Session, t.Observed != "" && feed.Observes(a.home.Observation(t.Name))
	return o
}

// state is the status for people. What is dormant is gone on with by cadre resume, whatever it was at.
func (o overview) state() string {
	switch {
	case o.Dormant:
		return "dormant"
	case o.Observed != "" && o.Status != team.TeamComplete:
		return "observed"
	}
	return string(o.Status)
}

func (o overview) progress() string {
	all := 0
	for _, n := range o.Tasks {
		all += n
	}
	return fmt.Sprintf("%d of %d", o.Tasks["completed"], all)
}

func (a *app) lsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "ls", Short: "List the teams", Args: exactly(0),
		Long: "List the teams. One that is dormant is not at its end, and no process of it lives: cadre resume NAME goes on with it.",
		RunE: func(c *cobra.Command, _ []string) error {
			names, err := a.home.Names()
			if err != nil {
				return err
			}
			all := []overview{}
			var damaged error
			for _, name := range names {
				d, dir, err := a.open(c.Context(), name, false)
				if err != nil {
					a.note(name + ": " + err.Error())
					damaged = exit(status(err))
					continue
				}
				d.View(func(s *team.State) { all = append(all, a.summarize(s, dir)) })
				d.Close()
			}
			err = a.print(all, func(w *sanitize.Writer) error {
				if len(all) == 0 && damaged == nil {
					return said("There is no team. Create one: cadre create NAME, or run a team file: cadre run FILE")(w)
				}
				var t show.Table
				t.Row("NAME", "STATUS", "TASKS DONE", "TEAMMATES", "LAST CHANGE", "DIRECTORY")
				for _, o := range all {
					t.Row(o.Name, o.state(), o.progress(), fmt.Sprint(o.Teammates), show.Ago(desk.Now(), o.UpdatedAt), o.Dir)
				}
				return t.Write(w)
			})
			return errors.Join(err, damaged)
		},
	}
}

func (a *app) statusCommand() *cobra.Command {
	return a.looking(0, &cobra.Command{
		Use: "status [TEAM]", Short: "Show a team: its members, what they do, its tasks",
	}, func(c *cobra.Command, d opened, _ []string) error {
		var now standing
		d.View(func(s *team.State) {
			now.overview, now.Members, now.Permissions = a.summarize(s, d.dir), s.Members(), s.Permissions()
			now.works = show.WorksOn(s)
			for t := range s.Tasks() {
				if t.Usage != (team.Usage{}) {
					now.spent = append(now.spent, t)
				}
			}
		})
		if now.Permissions == nil {
			now.Permissions = []team.Permission{}
		}
		if len(now.spent) > 0 {
			now.TaskUsage = map[string]team.Usage{}
			for _, t := range now.spent {
				now.TaskUsage[t.ID] = t.Usage
			}
		}
		return a.print(now, now.write)
	})
}

// standing is what is shown of a team.
type standing struct {
	overview
	Members     []team.Member         `json:"members"`
	Permissions []team.Permission     `json:"permissions"`
	TaskUsage   map[string]team.Usage `json:"taskUsage,omitempty"` // of the tasks that used something, by id

	works map[string]string // what each member works on
	spent []team.Task       // those that used something
}

func (s standing) write(w *sanitize.Writer) error {
	s.writeHead(w)
	var t show.Table
	t.Row("MEMBER", "AGENT", "ROLE", "STATUS", "MAIL", "TOKENS", "COST", "CONTEXT", "WORKS ON")
	for _, m := range s.Members {
		t.Row(m.Name, m.Agent, m.Role, string(m.Status), fmt.Sprint(len(m.Inbox)), tokens(m.Usage), cost(m.Usage), percent(m.Context), s.works[m.Name])
	}
	if err := t.Write(w); err != nil {
		return err
	}
	if err := writeSpent(w, s.Name, s.spent); err != nil {
		return err
	}
	return writeWaiting(w, s.Name, s.Members, s.Permissions)
}

// writeHead writes what is to be said of the team as a whole.
func (s standing) writeHead(w *sanitize.Writer) {
	o := s.overview
	if o.Session {
		w.Printf("%s is a session of %s that is %s\n", o.Name, o.Observed, observedNow(o))
	} else {
		w.Printf("%s is %s: %s tasks done (%d in progress, %d pending)\n", o.Name, o.Status, o.progress(), o.Tasks["in_progress"], o.Tasks["pending"])
	}
	if o.Goal != "" {
		w.Printf("goal: %s\n", o.Goal)
	}
	w.Printf("%slast change %s", where(o.Dir), show.Ago(desk.Now(), o.UpdatedAt))
	if o.Usage.Tokens() > 0 {
		w.Printf(", %d tokens%s", o.Usage.Tokens(), prefix(", ", cost(o.Usage)))
	}
	if o.Exhausted != "" {
		w.Printf("; the budget is spent: %s; to give it more: cadre budget %s", o.Exhausted, o.Name)
	}
	switch {
	case o.Observed != "" && !o.Session:
		w.Printf("\nit is the team %s of somebody else, who is %s", o.Observed, observedNow(o))
	case o.Dormant:
		w.Printf("\nno process of it lives at the moment; to go on: cadre resume %s", o.Name)
	case !o.Hosted && o.Status == team.TeamActive && hasSessions(s.Members):
		w.Printf("\nno process runs its sessions at the moment; to go on: cadre run FILE, or cadre host %s", o.Name)
	}
	w.Printf("\n\n")
}

func where(dir string) string {
	if dir == "" {
		return ""
	}
	return "in " + dir + ", "
}

func observedNow(o overview) string {
	if o.Watched {
		return "observed"
	}
	how := "..."
	if o.Session {
		how = "--agent " + o.Observed + " ..."
	}
	return "not observed at the moment; to go on: cadre observe " + how + " --as-team " + o.Name
}

// writeWaiting lists what waits for an answer, and how to give it.
func writeWaiting(w *sanitize.Writer, name string, members []team.Member, permissions []team.Permission) error {
	for _, p := range permissions {
		if err := w.Printf("\n%s asks to use %s: %s\n  cadre permit %s %s, or with --deny\n", p.Member, p.Tool, p.Input, name, p.Request); err != nil {
			return err
		}
	}
	for _, m := range members {
		if m.Plan.State == "submitted" && m.Status.Running() {
			if err := w.Printf("\n%s waits for the approval of its plan\n  cadre plan %s %s\n", m.Name, name, m.Plan.Request); err != nil {
				return err
			}
		}
	}
	return nil
}

// mostSpent bounds how many tasks are listed with what they used.
const mostSpent = 20

// writeSpent lists what tasks used, the last ones where there are many.
func writeSpent(w *sanitize.Writer, name string, tasks []team.Task) error {
	if len(tasks) == 0 {
		return nil
	}
	more := len(tasks) - mostSpent
	w.Printf("\n")
	t := show.NewTable(min(len(tasks), mostSpent)+1, "TASK", "STATUS", "TOKENS", "COST", "SUBJECT")
	for _, task := range tasks[max(0, more):] {
		t.Row(task.ID, show.TaskState(task), tokens(task.Usage), cost(task.Usage), task.Subject)
	}
	if err := t.Write(w); err != nil || more <= 0 {
		return err
	}
	return w.Printf("and %d before them: cadre task list %s\n", more, name)
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

func hasSessions(members []team.Member) bool {
	for _, m := range members {
		if m.Agent != team.External && m.Status.Running() {
			return true
		}
	}
	return false
}

func (a *app) logCommand() *cobra.Command {
	var follow bool
	var after int64
	c := a.looking(0, &cobra.Command{
		Use: "log [TEAM]", Short: "Show what happened, all of it",
		Long: "Show the history of a team, the oldest first. With --follow it goes on with what happens until the team has ended or you\ninterrupt it. With --json it prints an array of records, or with --follow one record a line.",
	}, func(c *cobra.Command, d opened, _ []string) error {
		stays()
		ctx := c.Context()
		records, between := d.Read(ctx, after), ","
		if follow {
			records, between = d.Watch(ctx, after), ""
		}
		if a.json && !follow {
			a.out.Printf("[")
		}
		first := true
		for r, err := range records {
			if err != nil {
				if follow && ctx.Err() != nil {
					return nil
				}
				return err
			}
			if err := a.printRecord(r, first, between); err != nil {
				return err
			}
			first = false
			if follow && r.Seq == d.Seq() && ended(d.Team()) {
				break
			}
			if follow && r.Seq > d.Seq() {
				if d.Refresh(ctx); ended(d.Team()) && d.Seq() == r.Seq {
					break
				}
			}
		}
		if a.json && !follow {
			a.out.Printf("]\n")
		}
		return nil
	})
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on with what happens")
	c.Flags().Int64Var(&after, "after", 0, "begin after this seq")
	return c
}

func ended(t team.Team) bool {
	return t.CleanedUp || t.Status == team.TeamComplete || t.Status == team.TeamAborted
}

func (a *app) printRecord(r *team.Record, first bool, between string) error {
	if !a.json {
		return writeRecord(a.out.Writer, r)
	}
	if between == "" {
		return a.out.Value(r)
	}
	out, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if !first {
		out = append([]byte(between), out...)
	}
	_, err = a.out.JSON().Write(out)
	return err
}

// writeRecord writes a record for people: a line for each thing that happened.
func writeRecord(w *sanitize.Writer, r *team.Record) error {
	for _, line := range show.Lines(r) {
		if err := w.Printf("%6d  %s  %s\n", r.Seq, time.UnixMilli(int64(r.At)).Format("2006-01-02 15:04:05"), line); err != nil {
			return err
		}
	}
	return nil
}
