package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"cadre/internal/agent"
	"cadre/internal/agent/worker"
	"cadre/internal/engine"
	"cadre/internal/host"
	"cadre/internal/replica"
	"cadre/internal/run/teamfile"
	"cadre/internal/team"
)

// Nested returns the agent [team.NestedTeam] for the hosts of an engine; see [engine.Engine]. Each
// task of such a member is done by a child team, whose report is the result of the task. template
// finds templates; nil for none.
func Nested(template Template) func(of *engine.Team, o engine.HostOptions) agent.Agent {
	return func(of *engine.Team, o engine.HostOptions) agent.Agent { return nested{of, o, template} }
}

// nested is the agent of members that are teams.
type nested struct {
	of       *engine.Team // of the members
	host     engine.HostOptions
	template Template
}

// TakesTasks reports that a session takes tasks by itself.
func (nested) TakesTasks() {}

// Start starts a session.
func (n nested) Start(_ context.Context, spec agent.Spec, its agent.Team) (agent.Session, error) {
	if !n.of.OnDisk() {
		return nil, &agent.Problem{Kind: agent.ProblemMissing, Text: fmt.Sprintf("%s is a team, and a team in memory "+
			"has no teams in it; keep team %s on disk", spec.Member, spec.Team)}
	}
	return worker.Start(spec, its, worker.Work{Its: "its team",
		Do: func(ctx context.Context, s *worker.Session, task team.Task, feedback string) (string, string, error) {
			return (&child{nested: n, session: s, task: task, feedback: feedback}).do(ctx)
		}}), nil
}

// child is one attempt of a task by a child team.
type child struct {
	nested
	session  *worker.Session
	task     team.Task
	feedback string // why the report of an earlier child team was rejected; "" for none
	link     team.Child
	file     *teamfile.File // that the team is made from; nil if it was not read
	taken    []string       // names that other teams have
	outer    host.Outer     // the session, for the host of the child team
	merging  bool           // the child team's consolidation was interrupted
	moved    bool           // another member takes the task, and does it in a worktree of its own
}

// do runs the child team to its end, and returns its report.
func (c *child) do(ctx context.Context) (result, failure string, err error) {
	dir, leave, err := c.session.Spec.Where(ctx, c.task)
	if err != nil {
		return "", err.Error(), nil
	}
	defer leave()
	c.outer = host.Outer{Gate: c.session.Spec.Gate, Uses: func(u agent.Nested) { c.session.Say(ctx, u) }}
	o, found, err := c.options(ctx, dir)
	if err == nil && found != nil {
		return c.settled(ctx, *found)
	}
	if err != nil {
		return c.refused(ctx, err)
	}
	running, interrupt := context.WithCancelCause(ctx)
	defer interrupt(nil)
	c.session.Arm(interrupt)
	var beside sync.WaitGroup
	watching, stop := context.WithCancel(running)
	beside.Go(func() { c.watch(watching, interrupt) })
	e, err := Through(running, Steps{Interrupted: c.merging && o.Resume, Consolidate: c.consolidate,
		Work: func(ctx context.Context) (Result, error) { return c.run(ctx, o, dir) }})
	stop()
	beside.Wait()
	switch {
	case ctx.Err() != nil:
		return "", "", nil
	case err != nil:
		return c.refused(ctx, err)
	}
	return c.ended(ctx, running, e)
}

// ended returns the outcome of a child team whose run has ended. running is the context of that
// run.
func (c *child) ended(ctx, running context.Context, e Ended) (result, failure string, err error) {
	now, err := c.now(ctx)
	if err != nil {
		return c.refused(ctx, err)
	}
	if err := errors.Join(c.count(context.WithoutCancel(ctx), now),
		c.lastWords(context.WithoutCancel(ctx), now)); err != nil {
		return "", "", err
	}
	cause := context.Cause(running)
	switch {
	case errors.Is(cause, worker.ErrTaskLost):
		return "", worker.ErrTaskLost.Error(), c.of.EndChildren(ctx)
	case running.Err() != nil:
		return e.Text, cause.Error(), nil
	case now.Status == team.TeamAborted || now.CleanedUp:
		return c.aborted(ctx, now, e.Text)
	case e.Short != nil:
		return e.Text, fmt.Sprintf("team %s is not done: %v", now.Name, e.Short), nil
	case e.Failure != nil && team.CodeOf(e.Failure) == "":
		return "", "", e.Failure
	case e.Failure != nil:
		return e.Text, fmt.Sprintf("the work of team %s is not committed: %v", now.Name, e.Failure), nil
	}
	return c.report(ctx, now.Name)
}

// run makes or continues the child team, and runs it to its end. A name that another team took in
// the meantime is left to that team.
func (c *child) run(ctx context.Context, o Options, dir string) (r Result, err error) {
	const most = 100
	r, err = Run(ctx, o)
	for n := 1; team.CodeOf(err) == team.Taken && !o.Resume && n < most && ctx.Err() == nil; n++ {
		c.taken = append(c.taken, o.File.Name)
		if o, _, err = c.options(ctx, dir); err == nil {
			r, err = Run(ctx, o)
		}
	}
	return r, err
}

// refused turns a refusal into the failure of the task. Other errors end the session.
func (c *child) refused(ctx context.Context, err error) (result, failure string, _ error) {
	if ctx.Err() != nil {
		return "", "", nil
	}
	if team.CodeOf(err) == "" {
		return "", "", err
	}
	return "", err.Error(), nil
}

// aborted returns the failure of a task whose team was ended from outside. The next attempt begins
// with a new team.
func (c *child) aborted(ctx context.Context, of team.Team, text string) (result, failure string, err error) {
	if err := c.tell(ctx, &team.EndChild{Team: of.ID}); err != nil {
		return "", "", err
	}
	return text, fmt.Sprintf("team %s was aborted", of.Name), nil
}

// settled returns the outcome of a team that had ended before this session began.
func (c *child) settled(ctx context.Context, t team.Team) (result, failure string, err error) {
	if err := errors.Join(c.count(ctx, t), c.lastWords(ctx, t)); err != nil {
		return "", "", err
	}
	if t.Status == team.TeamAborted || t.CleanedUp {
		return c.aborted(ctx, t, "")
	}
	if _, err := c.consolidate(ctx); err != nil { // its work is committed, and only its record is missing
		c.of.Engine().Note("the record of team " + t.Name + " is not written: " + err.Error())
	}
	return c.report(ctx, t.Name)
}

// options returns the options of the run that makes or continues the child team, or the team if it
// has ended already.
func (c *child) options(ctx context.Context, dir string) (o Options, ended *team.Team, err error) {
	var m team.Member
	var again bool
	c.session.Team.View(func(s *team.State) {
		m, _ = s.Member(c.session.Spec.Member)
		c.link, again = s.ChildOf(c.task.ID)
	})
	if m.Nested == nil {
		return o, nil, team.Refuse(team.Invalid, "%s is a team, and nothing says what it is made from", m.Name)
	}
	e := c.of.Engine().In(dir)
	folder, digest := "", "" // of an unfinished child team: its folder, and the text that it was made from
	if again {
		folder = e.Home.Has(c.link.Team)
	}
	if folder != "" {
		found, err := c.now(ctx)
		if err != nil {
			return o, nil, err
		}
		if found.Ended() && c.feedback == "" {
			return o, &found, nil
		}
		if found.Ended() { // it was rejected: another team does better
			if err := c.tell(ctx, &team.EndChild{Team: c.link.Team}); err != nil {
				return o, nil, err
			}
			folder, again = "", false
		}
		digest, c.merging = found.OriginDigest, found.Consolidation.Open()
		// the worktree in which it worked is that of a member that has ended
		if c.moved = found.Parent.Worktree && c.link.Member != m.Name; c.moved {
			folder = ""
		}
	}
	f, path, err := c.source(ctx, e, m, folder == "")
	if err != nil && team.CodeOf(err) == "" { // a person mends the file or the template, and has it tried again
		err = team.Refuse(team.NotReady, "%v", err)
	}
	if err != nil {
		return o, nil, err
	}
	if folder != "" && m.Nested.Goal == "" && digest != f.Digest() { // the user agreed to another text
		if err := errors.Join(c.tell(ctx, &team.EndChild{Team: c.link.Team}), c.of.EndChildren(ctx)); err != nil {
			return o, nil, err
		}
		folder, again = "", false
	}
	c.file = f
	if err := c.begin(ctx, e, again, f.Leader.Agent); err != nil {
		return o, nil, err
	}
	f.Name, f.Goal = c.link.Name, c.goal(f.Goal)
	o = Options{Engine: e, File: f, Path: path, Dir: dir, Env: slices.Concat(c.host.Env, m.Env), Agent: c.host.Agent,
		Hurry: c.session.Hurry.Done(), Kill: c.host.Kill, nested: c,
		Resume: folder != "", Folder: folder,
		Saw:  func(_ *team.Record, t *engine.Team) { c.saw(ctx, t) },
		Said: func(member, text string) { c.session.Say(ctx, agent.Text{Text: member + ": " + text}) }}
	return o, nil, nil
}

// source returns the team file of the child team, which is the caller's to change, and its origin.
// made says that the team is about to be made.
func (c *child) source(ctx context.Context, e *engine.Engine, m team.Member, made bool) (*teamfile.File, string,
	error) {
	var f *teamfile.File
	var origin string
	set, err := teamfile.ParseSettings(m.Nested.Set)
	if err != nil {
		return nil, "", err
	}
	l := Loader{Template: c.template, Inner: inside(m.Name, m.Isolation)}
	if l.Dir, err = c.project(ctx); err != nil {
		return nil, "", err
	}
	switch n := m.Nested; {
	case n.File != "":
		f, origin, err = l.File(n.File, set...)
		if err == nil && f.Digest() != n.Digest {
			err = team.Refuse(team.Conflict, "%s was changed since team %s was made; run the team file of that team "+
				"again to agree to the change", n.File, c.session.Spec.Team)
		}
	case n.Template != "" && c.template == nil:
		err = team.Refuse(team.NotFound, "there is no template %s here", n.Template)
	case n.Template != "":
		f, origin, err = c.ofTemplate(l, n, set)
	default:
		origin = team.GoalOrigin + e.Home.Dir
		f, err = Goal{Text: n.Goal, Dir: e.Home.Dir, Name: c.link.Name, New: made, Agent: n.Leader,
			Model: m.Model}.File(ctx, e)
	}
	if err != nil {
		return nil, "", err
	}
	own := *f
	return &own, origin, nil
}

// project returns the directory of the team that is nested in no other. The templates of the
// project are there, and the user's trust in them is for there: a worktree has neither.
func (c *child) project(ctx context.Context) (string, error) {
	of, err := c.of.Engine().Outermost(ctx, c.of.Team())
	if err != nil {
		return "", fmt.Errorf("the templates of the project are not found: %w", err)
	}
	return of.Dir, nil
}

// ofTemplate reads the template of the member, which must have the text that it had when the parent
// was made.
func (c *child) ofTemplate(l Loader, n *team.Nested, set []teamfile.Setting) (*teamfile.File, string, error) {
	s, err := l.Template(n.Template, l.Dir)
	if err != nil {
		return nil, "", team.Refuse(team.NotFound, "the team of %s: %v", c.session.Spec.Member, err)
	}
	f, err := l.Of(s, set...)
	if err == nil && n.Digest != "" && f.Digest() != n.Digest {
		err = team.Refuse(team.Conflict, "the template %s was changed since team %s was made; run that team again to "+
			"agree to the change", n.Template, c.session.Spec.Team)
	}
	return f, s.Origin, err
}

// goal returns what the child team is to do: what its file or template says, and the task.
func (c *child) goal(own string) string {
	var b strings.Builder
	if own != "" {
		b.WriteString(strings.TrimSpace(own) + "\n\n")
	}
	fmt.Fprintf(&b, "This team does task %s of team %s: %s\n", c.task.Called(), c.session.Spec.Team, c.task.Subject)
	if c.task.Description != "" {
		b.WriteString("\n" + strings.TrimSpace(c.task.Description) + "\n")
	}
	if len(c.task.Item) > 0 {
		fmt.Fprintf(&b, "\nIts item: %s\n", c.task.Item)
	}
	c.session.Team.View(func(s *team.State) {
		for _, id := range c.task.BlockedBy {
			if t, ok := s.Task(id); ok && t.Result != "" {
				fmt.Fprintf(&b, "\nThe result of task %s:\n%s\n", t.Called(), strings.TrimSpace(t.Result))
			}
		}
	})
	if c.feedback != "" {
		fmt.Fprintf(&b, "\nAn earlier team did this task, and its report was rejected:\n%s\n", c.feedback)
	}
	text := b.String()
	return strings.ToValidUTF8(text[:min(len(text), team.MaxText)], "")
}

// begin records the link to the child team, before the team is made or continued.
func (c *child) begin(ctx context.Context, e *engine.Engine, again bool, lead string) error {
	body := &team.BeginChild{Task: c.task.ID, Team: c.link.Team, Name: c.link.Name, Lead: lead}
	if !again || c.moved || e.Home.Has(c.link.Team) == "" {
		if err := errors.Join(c.avoidLost(ctx, e, again), c.avoidBranches(ctx, e)); err != nil {
			return err
		}
		body.Name = c.name(e)
		body.Team = body.Name + "-" + strings.ToLower(replica.NewID())
		// It was about to be made. A team that was lost had messages and usage, which a new one of
		// its id would seem to repeat.
		if again && !c.moved && c.free(e, c.link.Name) && c.link.Heard == 0 && c.link.Usage == (team.Usage{}) {
			body.Name, body.Team = c.link.Name, c.link.Team
		} else if again {
			body.Instead = c.link.Team
		}
	}
	if _, err := c.session.Team.Do(ctx, body); err != nil {
		return err
	}
	c.session.Team.View(func(s *team.State) { c.link, _ = s.ChildOf(c.task.ID) })
	if c.moved {
		return c.of.EndChildren(ctx)
	}
	return nil
}

// avoidLost takes no name of a child team that the home does not have, but of which the repository
// has checkpoints: it did the work before this team was restored. A new team of its name would seem
// to be a second history of it.
func (c *child) avoidLost(ctx context.Context, e *engine.Engine, again bool) error {
	parent := c.of.Team()
	if !again && parent.Restored.ID == "" {
		return nil
	}
	found, err := e.Checkpoints(ctx, e.Home.Dir)
	if err != nil {
		return fmt.Errorf("it is not known which earlier teams the repository has: %w", err)
	}
	for _, one := range found {
		if one.Parent == parent.ID && !one.Here {
			c.taken = append(c.taken, one.Name)
		}
	}
	return nil
}

// avoidBranches takes no name of a team whose members have branches in the repository: the members
// of a new team of that name would continue them. A child team that was ended leaves such branches.
func (c *child) avoidBranches(ctx context.Context, e *engine.Engine) error {
	left, err := e.NamesOnBranches(ctx)
	if err != nil {
		return fmt.Errorf("it is not known which branches earlier teams left in the repository: %w", err)
	}
	c.taken = append(c.taken, left...)
	return nil
}

// name returns a free name for the child team.
func (c *child) name(e *engine.Engine) string {
	name := ChildName(c.session.Spec.Team, c.session.Spec.Member, 1)
	for n := 2; !c.free(e, name); n++ {
		name = ChildName(c.session.Spec.Team, c.session.Spec.Member, n)
	}
	return name
}

// ChildName returns the n-th name for the child team of a member. Where it is too long, the name of
// the parent is cut: those of the members tell the teams apart.
func ChildName(parent, member string, n int) string {
	end := "-" + member
	if n > 1 {
		end = team.Numbered(end, n)
	}
	if room := team.MaxName - len(end); room > 0 {
		return strings.TrimRight(parent[:min(len(parent), room)], "-") + end
	}
	return end[1:]
}

func (c *child) free(e *engine.Engine, name string) bool {
	_, err := e.Home.Own(name)
	return team.CodeOf(err) == team.NotFound && !slices.Contains(c.taken, name)
}

// found completes the command that creates the child team: it belongs to its parent, and may do at
// most what its member may.
func (c *child) found(create *team.CreateTeam) {
	c.of.View(func(s *team.State) {
		own := create.MaxDepth
		create.TeamID = c.link.Team
		create.Parent, create.Depth, create.MaxDepth = s.Nest(c.link.Member, c.link.Task)
		create.MaxDepth = min(create.MaxDepth, own)
		s.Confine(create)
	})
}

// saw follows a record of the child team.
func (c *child) saw(ctx context.Context, t *engine.Team) {
	if err := c.count(ctx, t.Team()); err != nil && ctx.Err() == nil {
		c.of.Engine().Note("the usage of team " + c.link.Name + " is not counted yet: " + err.Error())
	}
}

// count counts what the child team used as usage of its member.
func (c *child) count(ctx context.Context, of team.Team) error {
	if of.Usage == c.link.Usage {
		return nil
	}
	if err := c.tell(ctx, &team.ReportChild{Team: of.ID, Usage: of.Usage}); err != nil {
		return err
	}
	c.link.Usage = of.Usage
	return nil
}

// tell records something about the child team in its parent. A refusal is no error: the task or
// the session is not the member's any more.
func (c *child) tell(ctx context.Context, body team.Body) error {
	if _, err := c.session.Team.Do(ctx, body); err != nil && team.CodeOf(err) == "" {
		return err
	}
	return nil
}

// watch ends the run of the child team when its task is no longer the member's.
func (c *child) watch(ctx context.Context, end context.CancelCauseFunc) {
	for {
		seq, held := c.of.Seq(), false
		c.of.View(func(s *team.State) {
			t, _ := s.Task(c.task.ID)
			held = t.Status == team.InProgress && t.Fence == c.task.Fence
		})
		if !held {
			end(worker.ErrTaskLost)
			return
		}
		if c.of.Wait(ctx, seq) != nil {
			return
		}
	}
}

// report returns the result of a task whose team is done: the last words of its lead, else the
// results that its report would show. Where the task asks for a result of a certain form, it is the
// result of the team's last task.
func (c *child) report(ctx context.Context, name string) (result, failure string, err error) {
	e := c.of.Engine()
	folder := e.Home.Has(c.link.Team)
	if folder == "" {
		return "", fmt.Sprintf("team %s was removed", name), nil
	}
	of, err := e.LookIn(ctx, folder)
	if err != nil {
		return "", "", err
	}
	defer of.Close()
	if len(c.task.Schema) > 0 {
		of.View(func(s *team.State) {
			last := team.Time(-1)
			for t := range s.Tasks() {
				if t.Status == team.Completed && t.Result != "" && t.CompletedAt >= last {
					last, result = t.CompletedAt, t.Result
				}
			}
		})
		return result, "", nil
	}
	if result = of.Team().LastWords; result == "" {
		result, err = c.lead(ctx, of).results(ctx)
	}
	return strings.ToValidUTF8(result[:min(len(result), team.MaxText)], ""), "", err
}

// lead returns a lead that knows what the report of the child team has.
func (c *child) lead(ctx context.Context, of *engine.Team) *Lead {
	l := &Lead{Team: of}
	f := c.file
	if f == nil { // the team had ended before this session
		var m team.Member
		c.session.Team.View(func(s *team.State) { m, _ = s.Member(c.session.Spec.Member) })
		f, _, _ = c.source(ctx, c.of.Engine().In(of.Team().Dir), m, false) // its file may be another one now
	}
	if f != nil {
		l.Title, l.Sections, l.LeftOut = f.Report.Title, f.Report.Sections, f.LeftOut()
	}
	return l
}
