package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/consolidate"
	"cadre/internal/engine"
	"cadre/internal/engine/upkeep"
	"cadre/internal/git/checkpoint"
	"cadre/internal/inspect"
	"cadre/internal/render"
	"cadre/internal/render/excerpt"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
	"cadre/internal/ui/pane"
)

func (a *app) resumeCommand() *cobra.Command {
	var fromGit bool
	var how resumption
	var from restoring
	c := &cobra.Command{
		Use: "resume [TEAM]", SuggestFor: []string{"continue"}, Short: "Continue a team that was paused or killed",
		Long: `Continue a team whose lead, teammates, host or machine died. The team is examined first, as cadre probe
does. Then a lead is started. Sessions that still run continue, and the others are resumed, each with the task that it
held.

A team of cadre run is run to its end, with the screen of cadre run, and tasks that are out of retries are tried
again. A team that you lead by commands gets a host in the background, and such tasks stay as they are: cadre task
release returns them to the queue. A live session of cadre mcp keeps the lead. An interrupted consolidation is finished.

The directory, the repository and the worktrees of the team must be where they were. If you moved the project, name
its new place with --dir:

  mv ~/old ~/new && cadre resume TEAM --dir ~/new

If the team's folder is lost or damaged, --from-git restores the team with its work from its last checkpoint.
Checkpoints are on the branch cadre/TEAM of the repository that you are in, or of a remote, as it was fetched last.
Missing work is listed before anything starts. A damaged folder is set aside.

If the repository shows that the team continued on another machine, it is not started, because two histories of one
team must not both run. --ours continues the history of this machine, --at the history of a branch, and cadre pull the
history of a remote. --take-back continues a team that this machine released.`,
		RunE: func(c *cobra.Command, args []string) error {
			if stands, err := a.inFront(c.Context()); stands {
				return err
			}
			if fromGit {
				if len(args) != 1 {
					return withWays(usage{errors.New("--from-git needs the name of the team")},
						way{"restore it", "cadre resume TEAM --from-git"})
				}
				var err error
				if how.restored, err = a.restore(c.Context(), args[0], from); err != nil {
					return err
				}
			}
			name, _, err := a.split(c, args, 0)
			if err != nil {
				return err
			}
			if c.Flags().Changed("dir") && !fromGit {
				if how.dir, err = workDir(from.dir); err != nil {
					return err
				}
			}
			if err = a.resume(c.Context(), name, how); err == nil || how.restored == nil {
				return err
			}
			if of, _ := a.engine().Glance(c.Context(), name); of.Status == team.TeamPending {
				a.note(explain(err)) // it is restored, and there is nothing to continue yet
				return nil
			}
			return err
		},
	}
	c.Flags().BoolVar(&fromGit, "from-git", false, "restore the team from its last checkpoint first, when "+
		"its folder is lost")
	c.Flags().StringVar(&from.dir, "dir", "", "the new place of a moved project; with --from-git, the repository "+
		"with the checkpoints, by default the one that you are in")
	c.Flags().StringArrayVar(&from.checks, "check", nil, "with --from-git, NAME: COMMAND for a check whose command "+
		"was redacted; may be repeated")
	c.Flags().StringVar(&from.at, "at", "", "with --from-git, the branch to continue from where there are two "+
		"histories: cadre/TEAM or REMOTE/cadre/TEAM")
	a.paneFlag(c)
	a.plainFlag(c)
	c.Flags().BoolVar(&how.takeOver, "take-over", false, "take the lead from another session, even if it is alive")
	c.Flags().BoolVar(&how.ours, "ours", false, "continue the history of this machine; the other one stays "+
		"reachable from the branch")
	c.Flags().BoolVar(&how.takeBack, "take-back", false, "continue a team that this machine released")
	return c
}

// resumption has the options for resuming a team.
type resumption struct {
	dir      string               // where its project is now; "" for where it was
	takeOver bool                 // even from a lead that is alive
	ours     bool                 // of two histories, continue the local one
	takeBack bool                 // even if this machine released the team
	restored *checkpoint.Restored // what was just restored; nil for nothing
}

// resume continues a team.
func (a *app) resume(ctx context.Context, name string, how resumption) error {
	if _, err := a.home.Folder(name); team.CodeOf(err) == team.NotFound {
		return a.notHere(ctx, name, err)
	}
	of, err := a.engine().Open(ctx, name)
	if err != nil {
		return err
	}
	closed := sync.OnceFunc(func() { of.Close() })
	defer closed()
	if done, err := a.ofEnded(ctx, of, name, how); done || err != nil {
		return err
	}
	found, err := a.prepare(ctx, of, name, how)
	if err != nil {
		return err
	}
	takeover := upkeep.LeaveIt
	if how.takeOver {
		takeover = upkeep.TakeIt
	}
	t := of.Team()
	choice, err := a.choosePanes(t.Dir, false)
	if err != nil {
		return err
	}
	continues, err := of.Continue(ctx, found, takeover)
	if err != nil {
		return ledError(err)
	}
	if continues == engine.Rehosted || continues == engine.LedByHand {
		a.hosted(ctx, of, choice)
	}
	switch {
	case continues == engine.Consolidates:
		closed()
		return a.consolidate(ctx, name, consolidate.Options{Actor: team.User})
	case continues != engine.NeedsRun && a.json:
		return nil
	case continues == engine.Rehosted:
		return said("session %s continues to lead team %s, and its teammates run again", t.LeadSession,
			name)(a.out.Writer)
	case continues == engine.LedByHand:
		return said("team %s continues; you lead it: cadre status %s", t.Name, name)(a.out.Writer)
	}
	o := a.again(of)
	closed()
	stays()
	return a.takeThrough(a.pausesUnread(ctx), o, o.File.Consolidate)
}

// ofEnded does what is left to do with a team that has ended: it says where its project is now,
// takes the team back, or does nothing to a team that was restored. It reports whether that was all
// that was asked.
func (a *app) ofEnded(ctx context.Context, of *engine.Team, name string, how resumption) (done bool, err error) {
	if how.dir != "" {
		if done, err = of.MoveComplete(ctx, how.dir); err != nil {
			return false, err
		}
	}
	if how.takeBack {
		back, err := of.TakeBackEnded(ctx)
		if err != nil {
			return false, err
		}
		done = done || back
	}
	t := of.Team()
	if how.restored != nil && t.Ended() {
		done = true
	}
	switch {
	case !done:
		return false, nil
	case t.Status != team.TeamComplete:
		return true, a.print(t, said("team %s is here again; it is %s", t.Name, t.Status))
	}
	return true, a.print(t, said("team %s is complete; to check and commit its work: cadre consolidate %s", t.Name,
		cmp.Or(t.Parent.Top, t.Parent.Name, name)))
}

// hosted tells a person whose team runs in the background again that it winds down, and shows its
// members in panes.
func (a *app) hosted(ctx context.Context, of *engine.Team, choice pane.Choice) {
	a.winding(of.Team())
	a.panesBeside(ctx, of, choice)
	if choice.Mode == pane.InProcess && choice.Note == "" && a.panesHere() {
		a.note("members are not shown in panes (in-process); to watch one: " + render.Typed("attach", of.Name, "NAME"))
	}
}

// prepare examines the team before it continues, and prints what was found.
func (a *app) prepare(ctx context.Context, of *engine.Team, name string, how resumption) (*inspect.Examination, error) {
	called := of.Team().Name
	found, err := of.Prepare(ctx, upkeep.Resumption{Dir: how.dir, Ours: how.ours,
		TakeBack: how.takeBack, Restored: how.restored != nil})
	if runs, ok := errors.AsType[*upkeep.StillRunningError](err); ok {
		return nil, team.Refuse(team.NotReady, "%s. End them, and try again", runs).
			With(team.Hint{Action: team.ActShowAlive, Team: name})
	}
	if err != nil {
		return nil, a.moving(err, called, "cadre resume "+name)
	}
	if restored := how.restored; restored != nil {
		all := slices.Concat(restored.Messages, found.Mail)
		found.Mail = all[max(0, len(all)-10):]
	}
	if of.Unsealed(ctx) { // only the missing record is printed
		return found, nil
	}
	return found, a.print(found, func(w *sanitize.Writer) error {
		return examined{w: w, e: found, name: name, now: now(), resumes: true}.write()
	})
}

// ledError adds what to type to the error for a lead that another process has.
func ledError(err error) error {
	if led, ok := errors.AsType[*upkeep.LedError](err); ok {
		return team.Refuse(team.NotReady, "%s", led).With(team.Hint{Action: team.ActFollowLog, Team: led.Team},
			team.Hint{Action: team.ActTakeOver, Team: led.Team})
	}
	if held, ok := errors.AsType[*upkeep.HeldError](err); ok {
		return team.Refuse(team.NotReady, "%s; end it, and try again", held).
			With(team.Hint{Action: team.ActShowAlive, Team: held.Team})
	}
	return err
}

func (a *app) probeCommand() *cobra.Command {
	return a.looking(0, &cobra.Command{
		Use: "probe [TEAM]", Short: "Show which members are alive (read-only)",
		Long: `Examine a team: who leads it, which members are alive, what is in progress, and what waits for you. Nothing is
changed.

LIFE says what is known of a member's session:

  online    it sends heartbeats
  offline   its heartbeats stopped, or its host has ended
  paused    no process runs it, so that it can be resumed later
  outside   another program runs it, and sends no heartbeats
  ended     the member has ended
  unknown   its last heartbeat cannot be read, or a clock is wrong`,
	}, func(c *cobra.Command, d *engine.Team, _ []string) error {
		found, err := d.Examine(c.Context())
		if err != nil {
			return err
		}
		return a.print(found, func(w *sanitize.Writer) error {
			if err := writeExamination(w, found, d.Name); err != nil || len(found.Attention) == 0 {
				return err
			}
			w.Printf("%s:\n", waiting(len(found.Attention)))
			return writeItems(w, d.Name, found.Attention)
		})
	})
}

// writeExamination writes what was found. name is what the person called the team.
func writeExamination(w *sanitize.Writer, e *inspect.Examination, name string) error {
	return examined{w: w, e: e, name: name, now: now()}.write()
}

// write writes what was found, in the order of the steps.
func (x examined) write() error {
	e, t := x.e, x.e.Team
	// those before the restoration are records of the team too
	x.line(true, "team %s (%s), %s, in %s", t.Name, t.ID, team.Count(t.Restored.Seq+e.Seq, "record"), t.Dir)
	x.status()
	if !x.over() {
		x.lead()
	}
	for _, s := range e.Skew {
		x.line(false, "clock skew: %s. Times are not trusted; order is by seq", s)
	}
	for _, m := range e.Place {
		x.line(false, "%s", render.Helped(m.String(), m.Help))
	}
	x.line(e.Count(inspect.Offline) == 0, "%s", lives(e))
	if err := x.members(); err != nil {
		return err
	}
	if !x.over() {
		x.facts()
	}
	x.mail()
	x.tasks()
	return nil
}

// examined writes an examination, part by part.
type examined struct {
	w       *sanitize.Writer
	e       *inspect.Examination
	name    string // of the team
	now     team.Time
	resumes bool // the team is about to continue
}

// line writes a line with a mark, which says whether all is well.
func (x *examined) line(good bool, format string, args ...any) {
	mark := "✓"
	if !good {
		mark = "!"
	}
	x.w.Printf("%s %s\n", mark, fmt.Sprintf(format, args...))
}

// over reports whether the team has ended.
func (x *examined) over() bool {
	s := x.e.Team.Status
	return s == team.TeamComplete || s == team.TeamAborted
}

func (x *examined) status() {
	t := x.e.Team
	switch t.Status {
	case team.TeamConsolidating:
		switch {
		case x.resumes && !t.Consolidation.Open():
			x.line(false, "it winds down")
		case !t.Consolidation.Open():
			x.line(false, "it winds down, and starts nothing new. To check and commit its work: cadre consolidate "+
				"%s. To continue it: cadre consolidate %s --rollback", x.name, x.name)
		default:
			x.line(false, "it is being consolidated. Wait for the end, or finish it: cadre consolidate %s", x.name)
			for _, what := range reached(t) {
				x.line(false, "%s", what)
			}
		}
	case team.TeamActive, team.TeamPending:
		if x.dormant() {
			x.line(true, "it is dormant")
			break
		}
		x.line(true, "it is %s", t.Status)
	default:
		x.line(t.Status == team.TeamComplete, "it is %s", t.Status)
	}
}

// dormant reports whether no process of the team was running when it was examined.
func (x *examined) dormant() bool {
	return slices.ContainsFunc(x.e.Attention, func(i team.Item) bool { return i.Kind == team.ItemDormant })
}

func (x *examined) lead() {
	switch l := x.e.Lead; {
	case l.Session == team.User:
		x.line(true, "you lead it")
	case l.Session == "" && !l.Alive:
		x.line(true, "no session leads it")
	case l.Alive:
		x.line(true, "session %s leads it and is alive", l.Session)
	case l.Taking:
		x.line(false, "session %s led it and has ended; another process is taking the lead", l.Session)
	case l.Machine != "" && !l.Stale:
		x.line(false, "session %s leads it on the machine %s; last seen %s", l.Session, l.Machine,
			render.Ago(x.now, l.LastSeen))
	case l.Lost != 0:
		x.line(false, "session %s led it and is lost since %s; last seen %s", l.Session, render.Ago(x.now, l.Lost),
			render.Ago(x.now, l.LastSeen))
	default:
		x.line(false, "session %s led it and has ended; last seen %s", l.Session, render.Ago(x.now, l.LastSeen))
	}
}

func (x *examined) members() error {
	table := render.Table{Texts: []string{"NOTE"}, Spare: []string{"CONTEXT", "AGENT", "LAST SEEN", "STATUS"},
		Numbers: []string{"CONTEXT"}}
	table.Row("", "MEMBER", "AGENT", "LIFE", "STATUS", "LAST SEEN", "TASK", "CONTEXT", "NOTE")
	called := map[string]string{}
	for _, t := range x.e.InProgress {
		called[t.ID] = t.Called()
	}
	for _, m := range x.e.Members {
		seen := ""
		if m.LastSeen > 0 {
			seen = render.Ago(x.now, m.LastSeen)
		}
		why := m.Why
		if m.Saved {
			why = strings.TrimPrefix(why+"; saved work waits", "; ")
		}
		table.Row("", m.Name, m.Agent, string(m.Life), string(m.Status), seen, cmp.Or(called[m.Task], m.Task),
			percent(m.Context), why)
	}
	table.Compact()
	return table.Write(x.w)
}

func (x *examined) facts() {
	if stale := x.e.Stale(); len(stale) > 0 {
		x.line(false, "shared facts changed: %s. Check the changes, then record them: cadre facts %s --record",
			strings.Join(stale, ", "), x.name)
	} else if len(x.e.Facts) > 0 {
		x.line(true, "facts: %d, unchanged", len(x.e.Facts))
	}
}

func (x *examined) mail() {
	x.line(x.e.Late == 0, "mailbox: %s, %d undelivered%s%s", team.Count(x.e.Messages, "message"), x.e.Unread,
		some(x.e.Held, ", %d held until there is a lead"), some(x.e.Late, ", %d late: cadre resend"))
	for _, m := range x.e.Mail {
		from, to := m.From, m.To
		if from == "" {
			from = "cadre"
		}
		if to == "*" {
			to = "all members"
		}
		x.w.Printf("    #%d %s %s → %s: %s\n", m.Seq, render.When(x.now, m.SentAt), from, to, firstLine(m.Body))
	}
}

// shortestEstimate is the shortest time for which an estimate helps.
const shortestEstimate = 5 * time.Second

func (x *examined) tasks() {
	all := x.e.Tasks["pending"] + x.e.Tasks["in_progress"] + x.e.Tasks["completed"]
	left := ""
	if estimate := time.Duration(x.e.Left); estimate >= shortestEstimate {
		left = ", about " + team.Span(estimate) + " left"
	}
	x.line(true, "%d of %s done (%d %%), %d in progress%s", x.e.Tasks["completed"], team.Count(all, "task"),
		x.e.Percent,
		x.e.Tasks["in_progress"], left)
	for _, task := range x.e.InProgress {
		x.w.Printf("    %s %s: %s\n", task.Called(), task.Owner, task.Subject)
	}
}

func lives(e *inspect.Examination) string {
	var parts []string
	for _, l := range []inspect.Life{inspect.Online, inspect.Offline, inspect.Paused, inspect.Unknown, inspect.Outside,
		inspect.Ended} {
		if n := e.Count(l); n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, l))
		}
	}
	return "members: " + strings.Join(parts, ", ")
}

func some(n int, format string) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(format, n)
}

func firstLine(text string) string {
	line := excerpt.FirstLine(text)
	if line != strings.TrimSpace(text) {
		line += " …"
	}
	return line
}
