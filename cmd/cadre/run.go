package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/agent/drivers"
	"cadre/internal/consolidate"
	"cadre/internal/inspect"
	"cadre/internal/render"
	"cadre/internal/render/excerpt"
	"cadre/internal/render/sanitize"
	"cadre/internal/replica"
	"cadre/internal/run"
	"cadre/internal/run/teamfile"
	"cadre/internal/team"
)

func (a *app) runCommand() *cobra.Command {
	var dir, report string
	var timeout time.Duration
	var commits bool
	var g goal
	c := &cobra.Command{
		Use: "run FILE | run \"GOAL\"", Short: "Run a team file, or a goal, to its end", Args: exactly(1),
		Long: `Run a team file to its end: create the team, run its teammates, and write the lead's report.

With a goal instead of a file an agent leads: it plans tasks, spawns teammates, and answers with the report when all is done. Which agent,
and which model, is said with --agent and --model; without --agent it is the first one that is installed (cadre doctor).

Killed or interrupted, the same command goes on where it stopped: completed tasks are not done again, and failed ones are
tried anew. A team that is complete is put away under its id, and the file begins again.

What the team did is not committed by that, and what members did in worktrees is on their branches: the last line says so, and names
the command that checks it and brings it in (cadre consolidate TEAM). With --consolidate, or consolidate: true in the team file, the run does that itself.

Exit status 0: every task is completed, and with --consolidate the work is committed. 1: not so, for the reason that is printed; run it again.
2: it cannot work.
With --json every record is printed as it happens, one a line, and the result last.`,
		RunE: func(c *cobra.Command, args []string) error {
			stays()
			o := a.runOptions()
			o.Report = report
			var err error
			if o.Dir, err = workDir(dir); err != nil {
				return err
			}
			if g.mode, err = g.chosen(c); err != nil {
				return err
			}
			if isFile(args[0]) {
				if g.given(c) {
					return usage{errors.New("a team file says itself who leads and works; leave --agent, --members, " +
						"--model and the like out")}
				}
				o.File, o.Path, err = a.teamFile(args[0])
				o.Mode = g.mode
			} else {
				if looksLikeAPath(args[0]) {
					return usage{fmt.Errorf("%s is no team file: a team file is a file, by its usual name with .yaml "+
						"at its end, and a goal is a sentence; see: cadre run --help", args[0])}
				}
				o.File, err = a.goalFile(c.Context(), g, args[0], o.Dir)
				o.Path = team.GoalOrigin + o.Dir
			}
			if err != nil {
				return err
			}
			o.Offers = drivers.Offers(o.File.Leader.Agent)
			if report != "" {
				if o.Report, err = filepath.Abs(report); err != nil {
					return err
				}
			}
			ctx := c.Context()
			if timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeoutCause(ctx, timeout, fmt.Errorf("the time of %s is over", timeout))
				defer cancel()
			}
			return a.runAndConsolidate(ctx, o, commits || o.File.Consolidate)
		},
	}
	c.Flags().StringVar(&dir, "dir", ".", "directory that the team works in")
	c.Flags().StringVar(&report, "report", "", "where the report goes; by default where the file says, else "+
		"NAME-report.md in the directory")
	c.Flags().DurationVar(&timeout, "timeout", 0, "end the run after this time, for example 30m")
	c.Flags().BoolVar(&commits, "consolidate", false, "when all is done, check what the team did and commit it: "+
		"cadre consolidate")
	g.flags(c)
	return c
}

// runOptions are what every run has.
func (a *app) runOptions() run.Options {
	return run.Options{Engine: a.engine()}
}

// teamFile reads a team file, and returns its path as the same file has it however it is named.
func (a *app) teamFile(name string) (*teamfile.File, string, error) {
	f, path, err := run.LoadFile(name, drivers.Models)
	if err != nil {
		return nil, "", usage{err}
	}
	return f, path, nil
}

// result is what run prints last with --json.
type result struct {
	Team         team.Team   `json:"team"`
	Report       string      `json:"report"`
	Done         bool        `json:"done"`
	Reason       string      `json:"reason,omitempty"`
	Completed    int         `json:"completed"`
	Failed       int         `json:"failed"`
	Open         int         `json:"open"`
	Seconds      float64     `json:"seconds"`
	Unmerged     []string    `json:"unmerged,omitempty"`    // branches that wait for the consolidation
	Uncommitted  []string    `json:"uncommitted,omitempty"` // files of the team's that do
	Unknown      string      `json:"unknown,omitempty"`     // why nobody can tell which files do
	Attention    []team.Item `json:"attention,omitempty"`   // what waits for a person
	Consolidated *sealedTeam `json:"consolidated,omitempty"`
}

// run runs the team, and consolidates it then if its file says so.
func (a *app) run(ctx context.Context, o run.Options) error {
	return a.runAndConsolidate(ctx, o, o.File.Consolidate)
}

// runAndConsolidate runs the team, and consolidates it then if that is wanted and everything is
// done.
func (a *app) runAndConsolidate(ctx context.Context, o run.Options, commits bool) error {
	if commits && a.consolidates(ctx, o) { // a run before this one came as far as that
		return a.consolidate(ctx, o.File.Name, consolidate.Options{Actor: team.User})
	}
	p := &progress{app: a, live: !a.json && a.out.terminal()}
	asker := newAsker(a, p)
	o.Engine.Log, o.Began, o.Said = p.note, p.began, p.said
	o.Saw = func(r *team.Record, rep *replica.Replica) {
		p.saw(r, rep)
		asker.saw(ctx, r, rep)
	}
	r, err := run.Run(ctx, o)
	p.clear()
	if err != nil {
		return a.moving(err, o.File.Name, "cadre resume "+o.File.Name)
	}
	done := func() error {
		return a.out.Printf("%d of %d tasks done in %s; report: %s\n", r.Completed, r.Completed+r.Failed+r.Open,
			render.Span(time.Duration(r.Seconds*float64(time.Second))), r.Report)
	}
	var sealed sealedTeam
	var failure error
	if commits && r.Done() {
		if !a.json {
			done()
		}
		if sealed, failure = a.consolidated(ctx, r.Team.Name, consolidate.Options{Actor: team.User}); failure == nil {
			r.Pending = consolidate.Pending{}
		}
	}
	why := ""
	switch {
	case r.Short != nil:
		why = explain(r.Short)
	case failure != nil:
		why = explain(failure)
	}
	switch {
	case a.json:
		last := result{Team: r.Team, Report: r.Report, Done: r.Done() && failure == nil, Reason: why,
			Completed: r.Completed, Failed: r.Failed, Open: r.Open, Seconds: r.Seconds,
			Uncommitted: r.Pending.Files, Unknown: r.Pending.Unknown, Attention: r.Attention}
		for _, b := range r.Pending.Branches {
			last.Unmerged = append(last.Unmerged, b.Name)
		}
		if sealed.Record != nil {
			last.Consolidated, last.Team.Status = &sealed, team.TeamComplete
		}
		if err := a.out.Value(map[string]result{"result": last}); err != nil {
			return err
		}
	case sealed.Record != nil:
		if err := writeSealed(a.out.Writer, sealed.Record); err != nil {
			return err
		}
	case failure == nil:
		done()
		// the last line says more of that
		if err := writeItems(a.out.Writer, r.Team.Name, slices.DeleteFunc(r.Attention,
			func(i team.Item) bool { return i.Kind == team.ItemConsolidate })); err != nil {
			return err
		}
		if last := next(r); last != "" {
			a.out.Printf("%s\n", last)
		}
	}
	switch {
	case failure != nil:
		return failure
	case r.Done():
		return nil
	case team.CodeOf(r.Short) == team.Exhausted:
		return team.Refuse(team.Exhausted, "not finished: %v; with more, the same command goes on where this one stopped",
			r.Short).With(team.HintsOf(r.Short)...)
	}
	return team.Refuse(team.NotReady, "not finished: %v; the same command goes on where this one stopped", r.Short).
		With(team.HintsOf(r.Short)...)
}

// next is the last line of a run: what waits for the consolidation, and its command. It is "" where
// nothing does.
func next(r run.Result) string {
	var waits []string
	if len(r.Pending.Branches) > 0 {
		waits = append(waits, "work on "+render.Branches(r.Pending.Branches))
	}
	if n := len(r.Pending.Files); n > 0 {
		waits = append(waits, plural(n, "file"))
	}
	command := "cadre consolidate " + r.Team.Name
	switch {
	case !r.Done():
		return ""
	case r.Pending.Unknown != "":
		return fmt.Sprintf("what is to be committed is not known: %s; then: %s", r.Pending.Unknown, command)
	case len(waits) > 0:
		return fmt.Sprintf("not committed yet: %s; to check and commit it: %s", strings.Join(waits, ", "), command)
	case r.Team.Status == team.TeamConsolidating:
		return fmt.Sprintf("the checks have not run yet: %s", command)
	}
	return ""
}

// consolidates reports whether the team of the file is being consolidated already, by a run that
// was killed.
func (a *app) consolidates(ctx context.Context, o run.Options) bool {
	if _, err := a.home.Folder(o.File.Name); err != nil {
		return false
	}
	rep, _, err := a.open(ctx, o.File.Name, false)
	if err != nil {
		return false // the run says why
	}
	defer rep.Close()
	t := rep.Team()
	return t.Consolidation.Open() && t.Origin == o.Path && t.OriginDigest == o.File.Digest() && t.Dir == o.Dir
}

// progress shows a run: a line for each event that matters, and on a terminal a last line that says
// where the team stands.
type progress struct {
	app  *app
	live bool

	looker *inspect.Looker
	known  map[string]bool // keys of what waits for the user and was shown

	uncounted []string // agents that were said to tell no cost

	mu     sync.Mutex
	status string
	words  map[string]string // what each member said last, where all of it was shown
}

func (p *progress) began(t team.Team, again bool) {
	if p.app.json {
		return
	}
	what := "begins"
	if again {
		what = "goes on"
	}
	p.printf("team %s %s in %s", t.Name, what, t.Dir)
}

func (p *progress) saw(r *team.Record, rep *replica.Replica) {
	if p.app.json {
		p.warn(rep)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.app.printRecord(r, true, "")
		return
	}
	now := ""
	rep.View(func(s *team.State) {
		all := s.Count(team.Pending) + s.Count(team.InProgress) + s.Count(team.Completed)
		now = fmt.Sprintf("%d of %d tasks done, %d in progress", s.Count(team.Completed), all, s.Count(team.InProgress))
	})
	p.mu.Lock()
	p.status = now
	p.mu.Unlock()
	p.warn(rep)
	fresh := p.fresh(r, rep)
	for _, e := range r.Events {
		if line := headline(e, r, rep); line != "" && !saysMore(fresh, e) && !p.repeats(e) {
			p.printf("%s  %s", render.Clock(r.At), render.Clean(line))
		}
	}
	for _, i := range fresh {
		p.printf("%s  ! %s\n            %s", render.Clock(r.At), i.Text, stepFor(rep.Team().Name, i))
	}
}

// warn says which agents the budget does not bound, once for all that there are.
func (p *progress) warn(rep *replica.Replica) {
	var agents []string
	rep.View(func(s *team.State) { agents = s.Uncounted() })
	if len(agents) > 0 && !slices.Equal(agents, p.uncounted) {
		p.uncounted = agents
		p.note(uncounted(agents))
	}
}

// mostShown bounds what is shown of a text when an agent says it, in bytes.
const mostShown = 300

// said shows what an agent says.
func (p *progress) said(member, text string) {
	text = strings.TrimSpace(text)
	if p.app.json {
		line, _, _ := strings.Cut(text, "\n")
		p.note(member + ": " + line)
		return
	}
	whole := len(text) <= mostShown
	shown := excerpt.Bytes(text, mostShown, " …")
	p.printf("%s    %s: %s", render.Clock(replica.Now()), member, render.Clean(shown))
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.words == nil {
		p.words = map[string]string{}
	}
	if p.words[member] = text; !whole {
		delete(p.words, member)
	}
}

// repeats reports whether the event is a member's report at the end of its turn, which is what it
// was shown to say last.
func (p *progress) repeats(e team.Event) bool {
	sent, ok := e.(*team.MessageSent)
	if !ok || sent.Message.Type != team.TypeIdle {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	words, said := p.words[sent.Message.From]
	return said && words == strings.TrimSpace(sent.Message.Body)
}

// fresh returns what has come to wait for the user since the call before. This process runs the
// sessions and leads, so what is found outside is of that no news.
func (p *progress) fresh(r *team.Record, rep *replica.Replica) (fresh []team.Item) {
	if r.Seq < rep.Seq() {
		return nil // there are more records to come
	}
	if p.looker == nil {
		dir, err := p.app.home.Folder(rep.Team().Name)
		if err != nil {
			return nil
		}
		p.looker = &inspect.Looker{Replica: rep, Dir: dir}
	}
	found, err := p.looker.Look(context.Background(), time.Now())
	if err != nil {
		return nil
	}
	outside := *found
	outside.Hosted, outside.Led = true, true
	var items []team.Item
	rep.View(func(s *team.State) { items = s.Attention(replica.Now(), &outside) })
	waits := map[string]bool{}
	for _, i := range items {
		if i.WaitsFor != team.ForUser || i.Kind == team.ItemConsolidate { // the last line says more of that
			continue
		}
		if waits[i.Key()] = true; !p.known[i.Key()] {
			fresh = append(fresh, i)
		}
	}
	p.known = waits
	return fresh
}

// saysMore reports whether one of the items is what the event is about: then it is shown instead.
func saysMore(items []team.Item, e team.Event) bool {
	return slices.ContainsFunc(items, func(i team.Item) bool {
		switch e := e.(type) {
		case *team.PermissionRequested:
			return i.Request == e.Permission.Request
		case *team.PlanSubmitted:
			return i.Request == e.Request
		case *team.MemberTroubled:
			return i.Kind == team.ItemLeadFailed && i.Member == e.Member
		case *team.BudgetExhausted:
			return i.Kind == team.ItemBudget && i.About == e.What
		}
		return false
	})
}

// headline is what a person who watches a run wants to know; the log has the rest.
func headline(e team.Event, r *team.Record, rep *replica.Replica) string {
	task := func(id string) (t team.Task) {
		rep.View(func(s *team.State) { t, _ = s.Task(id) })
		return t
	}
	switch e := e.(type) {
	case *team.TaskClaimed:
		return fmt.Sprintf("▸ %s  %s", e.Member, task(e.Task).Subject)
	case *team.TaskCompleted:
		t := task(e.Task)
		return fmt.Sprintf("✓ %s  %s (%s)", e.By, t.Subject,
			render.Span(time.Duration(r.At-t.StartedAt)*time.Millisecond))
	case *team.TaskFailed:
		return fmt.Sprintf("✗ %s  %s: %s", e.By, task(e.Task).Subject, e.Reason)
	case *team.TaskRolledBack:
		return fmt.Sprintf("↺ %s: rolled back", task(e.Task).Subject)
	case *team.TaskReleased:
		return fmt.Sprintf("↺ %s: %s", task(e.Task).Subject, e.Reason)
	case *team.MemberSpawned:
		return fmt.Sprintf("+ %s (%s)", e.Member.Name, e.Member.Agent)
	case *team.TaskCreated:
		return fmt.Sprintf("· task %s  %s", e.Task.ID, e.Task.Subject)
	case *team.MessageSent:
		if e.Message.From == "" || e.Message.Type != team.TypeMessage && e.Message.Type != team.TypeBroadcast &&
			(e.Message.Type != team.TypeIdle || e.Message.Quiet) {
			return ""
		}
		return fmt.Sprintf("✉ %s → %s: %s", e.Message.From, e.Message.To, e.Message.Body)
	case *team.MemberStatusChanged:
		if e.Trouble != "" { // its agent tries again by itself, maybe for minutes
			return fmt.Sprintf("! %s has trouble: %s", e.Member, e.Summary)
		}
	case *team.ReportAsked, *team.MemberTroubled, *team.HandoverRequested:
		return "  " + render.Lines(&team.Record{At: r.At, Events: []team.Event{e}})[0]
	case *team.PermissionRequested:
		return permissionLine(e, r)
	case *team.PermissionAnswered:
		if e.Outcome == "timed_out" {
			return "! " + render.Lines(&team.Record{Events: []team.Event{e}})[0]
		}
	case *team.MemberFailed, *team.HookRejected, *team.BudgetExhausted, *team.PlanSubmitted:
		return "! " + render.Lines(&team.Record{Events: []team.Event{e}})[0]
	}
	return ""
}

// permissionLine tells of a request that waits, or that the rules have denied in the same record.
// One that they allow is no news.
func permissionLine(e *team.PermissionRequested, r *team.Record) string {
	p := e.Permission
	for _, other := range r.Events {
		if a, ok := other.(*team.PermissionAnswered); ok && a.Request == p.Request {
			if a.Outcome == "allowed" {
				return ""
			}
			return fmt.Sprintf("! %s may not use %s%s: %s", p.Member, p.Tool,
				prefix(": ", render.Input(p.Input)), a.Reason)
		}
	}
	return "! " + render.Lines(&team.Record{Events: []team.Event{e}})[0]
}

func (p *progress) note(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	p.app.note(text)
}

// printf prints a line, with arguments of anybody's.
func (p *progress) printf(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	p.app.out.Printf(format+"\n", args...)
	if p.live && p.status != "" {
		p.app.out.Printf("  %s", p.status)
	}
}

func (p *progress) clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	p.status = ""
}

// erase takes the last line back, where there is one.
func (p *progress) erase() {
	if p.live {
		p.app.out.Draw(sanitize.EraseLine)
	}
}
