// Package run runs a team file, or a goal, to its end: it creates or continues the team, runs the
// sessions, leads if no agent does, and writes the report.
//
// # Authority
//
// The package leads a team that was made from a file. It decides when such a team has ended, and
// what its report contains. Package team has the rules of the team, package host the sessions, and
// package report the words of the report.
//
// # States
//
//	no team, or a finished one ──create──▶ working ──nothing more can happen──▶ shutting down ──▶ report ──▶ complete, or consolidating where checks or branches wait
//	                                           ▲          └─ an agent leads ─▶ it is asked for its report ─┘
//	                                           └──── it begins new work instead ────┘
//	team of this very file ───continue──▶ working ──deadline, budget, signal, failed tasks──▶ report ──▶ unfinished
//
// # Guarantees
//
//   - A team file makes one team: the team, its members and its tasks are created together or not
//     at all.
//   - A run that is killed at any moment continues when it is started again. Tasks that are
//     recorded as completed are not repeated. Processes that the killed run left are ended before
//     its tasks start again.
//   - When two processes run the same file at once, one leads and the other gets an error.
//   - A report is written however the work ends, even early, and replaces the last one in one step.
//     Only a kill, or a failure of the run itself, leaves no report.
package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"cadre/internal/agent"
	"cadre/internal/consolidate"
	"cadre/internal/engine"
	"cadre/internal/git/checkout"
	"cadre/internal/git/project"
	"cadre/internal/host"
	"cadre/internal/journal/store"
	"cadre/internal/replica"
	"cadre/internal/run/teamfile"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Options say what to run, and how.
type Options struct {
	Engine *engine.Engine // opens the team, on disk, and hosts it
	File   *teamfile.File
	// continue the unfinished team of that name, whatever it was made from. Only the name and the
	// report of File then count
	Resume bool
	Folder string // with Resume, the team's folder; "" for the team of that name
	Path   string // of the team file, absolute
	Dir    string // the team's directory, absolute
	// path of the report, relative to Dir; "" for the one in the file, else <team>-report.md
	Report string
	// permission mode that replaces the team file's, even for a team that started with another; ""
	// for the file's
	Mode string
	// Redo names completed tasks of the unfinished team that are done again.
	Redo []string
	// Changed is called when the team file differs from what the unfinished team was made from. The
	// changes are applied if it returns nil; otherwise Run returns its error. nil refuses changes.
	Changed func(Changes) error
	// StartOver lets a complete team start over although its work in the shared directory is not
	// committed. After that cadre cannot tell whose those files are. It also lets a new team begin
	// although the repository has checkpoints of an unfinished one of its name.
	StartOver bool

	Agent func(name string) agent.Agent // by name; nil for the engine's agents
	Env   []string                      // added to the environment of sessions

	// Hurry and Kill shorten the end of a run whose ctx has ended. Once Hurry is closed a session
	// has a second, and work that only informs is skipped. Once Kill is closed a session has no
	// time. nil for never.
	Hurry, Kill <-chan struct{}
	nested      *child // the task that the team is for; nil for a team by itself

	// Pause is called when another process asks to pause the team: see [engine.Team.Pause]. It ends
	// ctx. nil pauses the team's host, and the run ends early.
	Pause func()

	// Began is called when the work begins, with the team and whether it existed before.
	Began func(t team.Team, again bool)
	// Saw is called with every later record, for a new team with every record, in order, from one
	// goroutine. The state is that of this record or a later one.
	Saw func(r *team.Record, t *engine.Team)
	// Said gets what agents say, from any goroutine. If it is nil, the engine's Log gets the first
	// line of each text.
	Said func(member, text string)
}

// Run runs the team file to its end. If ctx ends, the run ends early, with the cause of ctx as the
// reason.
func Run(ctx context.Context, o Options) (Result, error) {
	began := time.Now()
	a, err := open(ctx, o)
	if err != nil {
		return Result{}, err
	}
	defer a.close()
	if err := a.reopen(ctx); err != nil {
		return Result{}, err
	}
	l := &Lead{Team: a.team, Agent: a.Agent, Title: o.File.Report.Title, Sections: o.File.Report.Sections,
		LeftOut: o.File.LeftOut(), Commits: o.nested != nil && o.File.Consolidate,
		Report: a.reportPath(), TakesMail: true, Saw: o.Saw, Log: a.Engine.Note}
	short, err := a.work(ctx, l)
	if err != nil {
		return Result{}, err
	}
	result, err := l.Finish(ctx, short)
	if err == nil {
		a.checkpoint(ctx)
		result.Pending = a.pending(ctx)
		result.Attention = a.attention(ctx)
	}
	result.Took = time.Since(began)
	return result, err
}

// Again returns the options for running a resumed team.
// templates are those of the members that are teams.
func Again(e *engine.Engine, t *engine.Team, templates Template) Options {
	of := t.Team()
	o := Options{Engine: e, Dir: of.Dir, Resume: true, Folder: t.Dir, File: &teamfile.File{Name: t.Name}}
	f, path, err := Loader{Template: templates, Dir: of.Dir}.File(of.Origin, SettingsOf(of)...)
	switch {
	case err != nil || path != of.Origin:
	case f.Digest() == of.OriginDigest:
		o.File = f // it says where the report is written, and what it contains
	case f.Name == of.Name:
		// the user has not agreed to its other changes yet
		o.File.Report = f.Report
	}
	return o
}

// SettingsOf returns the values of the parameters of its team file that the team was made with.
func SettingsOf(t team.Team) (set []teamfile.Setting) {
	json.Unmarshal(t.Metadata[team.ParametersKey], &set) // a program may keep something else there
	return set
}

// Consolidates reports whether a run that was killed had begun to consolidate the team of the file.
func (o Options) Consolidates(ctx context.Context) bool {
	of, err := o.Engine.In(o.Dir).Glance(ctx, o.File.Name)
	return err == nil && of.Consolidation.Open() && of.Origin == o.Path && of.OriginDigest == o.File.Digest() &&
		of.Dir == o.Dir // the run reports what is wrong
}

// attention returns what waits for a person when this process has ended.
func (a *attempt) attention(ctx context.Context) (items []team.Item) {
	ctx, cancel := a.after(ctx)
	defer cancel()
	outside, err := a.team.Looker().Look(ctx, time.Now())
	if err != nil && ctx.Err() != nil && a.hurried() {
		return nil
	} else if err != nil {
		a.Engine.Note("cannot tell what waits for you: " + err.Error())
		return nil
	}
	outside.Led = false
	a.team.View(func(s *team.State) { items = s.Attention(replica.Now(), outside) })
	return items
}

// pending describes what the consolidation of the team would do.
func (a *attempt) pending(ctx context.Context) consolidate.Pending {
	ctx, cancel := a.after(ctx)
	defer cancel()
	p, err := consolidate.LookPending(ctx, a.team.Consolidation())
	if err != nil {
		p.Unknown = err.Error()
	}
	return p
}

// reopen makes a team active again that winds down but has open tasks, because no member would
// start them.
func (a *attempt) reopen(ctx context.Context) error {
	t, open := a.team.Team(), 0
	a.team.View(func(s *team.State) { open = s.Count(team.Pending) + s.Count(team.InProgress) })
	if t.Status != team.TeamConsolidating || t.Consolidation.Open() || open == 0 {
		return nil
	}
	_, err := a.team.Do(ctx, team.Command{Actor: team.User, Body: &team.SetStatus{Status: team.TeamActive,
		Reason: "there are open tasks"}})
	return err
}

// attempt is a run in progress.
type attempt struct {
	Options
	team  *engine.Team
	lease store.Lease // of the lead
	again bool
}

// open takes the lead of the unfinished team. It creates a missing team, and starts over
// if it has ended.
func open(ctx context.Context, o Options) (*attempt, error) {
	if o.Agent == nil {
		o.Agent = o.Engine.Agents.Agent
	}
	if !o.Resume {
		o.Engine = o.Engine.In(o.Dir)
	}
	a := &attempt{Options: o}
	if err := a.placeForReport(); err != nil {
		return nil, err
	}
	if err := a.ensure(ctx); err != nil {
		return nil, err
	}
	if err := a.take(ctx); err != nil {
		return nil, err
	}
	ended, err := a.examine(ctx)
	if err == nil && !ended {
		return a, nil
	}
	t := a.team.Team()
	var members []team.Member
	a.team.View(func(s *team.State) { members = s.Members() })
	if err == nil {
		err = a.uncommitted(ctx, a.team)
	}
	if err == nil { // the earlier team stays where it is if the new one could not work
		err = a.able(ctx)
	}
	a.close()
	if err != nil {
		return nil, err
	}
	if err := a.archive(ctx, t, members); err != nil {
		return nil, err
	}
	return open(ctx, o)
}

// ensure creates the team if it does not exist.
func (a *attempt) ensure(ctx context.Context) error {
	_, err := a.folder()
	if err == nil && a.nested != nil && !a.Resume { // it is another team's: this one was not made yet
		return team.Refuse(team.Taken, "a team named %s exists already", a.File.Name)
	}
	if err == nil {
		a.again = true
		return nil
	}
	if team.CodeOf(err) != team.NotFound || a.Resume {
		return err
	}
	name := a.File.Name
	if len(a.Redo) > 0 {
		return nothingToRedo(name)
	}
	if err := a.unfinishedInGit(ctx); err != nil {
		return err
	}
	a.Engine.TellElsewhere(err, a.Path)
	commands, err := a.beginning(ctx)
	if err != nil {
		return err
	}
	err = a.Engine.Home.Create(name, commands)
	if team.CodeOf(err) == team.Taken && a.nested == nil { // another process was faster: continue its team
		return nil
	}
	return err
}

// examine decides whether the run can continue the team whose lead it has, and adapts the team to
// the run. It reports whether the run must start over, because the team has ended.
func (a *attempt) examine(ctx context.Context) (ended bool, err error) {
	t := a.team.Team()
	over := t.Ended()
	var gone error
	if !over && !a.Resume {
		gone = a.missing(ctx, t)
	}
	if gone == nil {
		if err := a.team.Runnable(ctx); err != nil {
			return false, err
		}
	}
	switch {
	case a.Resume && over:
		return false, &team.Error{Code: team.Finished, Text: fmt.Sprintf("team %s has ended meanwhile", a.File.Name)}
	case t.Consolidation.Open():
		return false, consolidating(t)
	case a.Resume:
		return false, nil
	case over && !a.again: // another process has ended the new team already
		return false, nil
	case over && len(a.Redo) > 0:
		return false, nothingToRedo(a.File.Name)
	case over && t.CheckHere() != nil: // it may be at work where it was moved to
		return false, t.CheckHere()
	case over:
		return true, nil
	case gone != nil:
		return false, gone
	}
	if err := a.unlike(t); err != nil {
		return false, err
	}
	return false, a.adapt(ctx, t)
}

// adapt applies what the run changes in an unfinished team: its file, or the options of its goal.
func (a *attempt) adapt(ctx context.Context, t team.Team) error {
	switch {
	case !a.again && t.OriginDigest == a.File.Digest():
		return nil
	case strings.HasPrefix(a.Path, team.GoalOrigin):
		return a.agree(ctx)
	}
	if err := a.follow(ctx); err != nil {
		return err
	}
	return a.change(ctx, a.modes(a.Mode))
}

// archive archives the record of a team that has ended under its id, so that its name is free. The
// team is closed.
func (a *attempt) archive(ctx context.Context, t team.Team, members []team.Member) error {
	if t.CleanedUp {
		return a.team.Remove(ctx)
	}
	if err := host.KeepWork(ctx, a.team.Dir, t.Dir, a.Engine.Note); err != nil {
		return err
	}
	if err := merged(ctx, t, members); err != nil {
		return err
	}
	if err := a.team.ArchiveChildren(ctx); err != nil {
		return err
	}
	if err := a.team.PutInArchive(); err != nil {
		return err
	}
	a.Engine.Note(fmt.Sprintf("the earlier run is %s; its record is archived as %s", t.Status, t.ID))
	return nil
}

// consolidating refuses a team with an unfinished consolidation.
func consolidating(t team.Team) error {
	return team.Refuse(team.NotReady, "team %s is being consolidated", t.Name).With(
		team.Hint{Action: team.ActFinish, Team: t.Name}, team.Hint{Action: team.ActRollBack, Team: t.Name})
}

func nothingToRedo(name string) error {
	return team.Refuse(team.Invalid, "there is no unfinished team %s whose tasks could be done again; a new run does "+
		"all tasks", name)
}

// unlike refuses an unfinished team of that name that was made from another file or goal, or that
// works in another directory.
func (a *attempt) unlike(t team.Team) error {
	switch {
	case t.Origin != a.Path:
		from := "from another origin"
		if t.Origin != "" {
			from = "from " + t.Origin
		}
		text := fmt.Sprintf("a team named %s was made here %s; give this one another name", t.Name, from)
		if own := filepath.Dir(a.Path); filepath.IsAbs(own) && !project.Same(own, a.Dir) {
			text += ", or run it in its own directory, " + own
		}
		return team.Refuse(team.Taken, "%s", text).With(inTheWay(t)...)
	case t.OriginDigest != a.File.Digest() && strings.HasPrefix(a.Path, team.GoalOrigin):
		return team.Refuse(team.NotReady,
			"the unfinished team %s has another goal; give this one another name", t.Name).With(inTheWay(t)...)
	case t.Dir != a.Dir:
		return team.Refuse(team.NotReady,
			"the unfinished team %s works in %s, not in %s; finish it there, or start over", t.Name, t.Dir,
			a.Dir).With(inTheWay(t)...)
	}
	return nil
}

// inTheWay returns what to do with an unfinished team that another one cannot replace: continue it,
// or give it up.
func inTheWay(t team.Team) []team.Hint {
	return []team.Hint{{Action: team.ActResume, Team: t.Name}, {Action: team.ActForceCleanUp, Team: t.Name}}
}

// missing says why the directory of the unfinished team cannot be used. Only a person can say
// that the project was moved here: another copy of the project looks the same.
func (a *attempt) missing(ctx context.Context, t team.Team) error {
	procs, err := proc.Open("")
	if err != nil {
		return err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	err = checkout.Check(ctx, procs, t)
	if !checkout.IsMissing(err) {
		return err
	}
	refusal := team.Refuse(team.Invalid, "the unfinished team %s cannot continue: %v", t.Name, err)
	if _, _, err := checkout.Moved(ctx, procs, t, a.Dir); err == nil {
		refusal.Text += fmt.Sprintf("\n%s may be that project.", a.Dir)
		return refusal.With(team.Hint{Action: team.ActMove, Team: t.Name, Dir: a.Dir})
	}
	return refusal.With(team.HintsOf(err)...)
}

// take opens the team and takes the lock of its lead.
func (a *attempt) take(ctx context.Context) error {
	var err error
	folder, err := a.folder()
	if err != nil {
		return err
	}
	if a.team, err = a.Engine.OpenIn(ctx, a.File.Name, folder); err != nil {
		return err
	}
	if a.lease, err = a.team.Claim(ctx); err != nil {
		return errors.Join(err, a.team.Close())
	}
	return nil
}

// folder returns the folder of the team: of the project's, or of the one that is resumed.
func (a *attempt) folder() (string, error) {
	if a.Folder != "" {
		return a.Folder, nil
	}
	if a.Resume {
		return a.Engine.Home.Folder(a.File.Name)
	}
	return a.Engine.Home.Own(a.File.Name)
}

func (a *attempt) close() {
	if err := a.team.Close(); err != nil {
		a.Engine.Note(err.Error())
	}
	a.lease.Release()
}

// beginning returns the whole team file as commands.
func (a *attempt) beginning(ctx context.Context) (commands []team.Command, err error) {
	if err := a.able(ctx); err != nil {
		return nil, err
	}
	f := a.File
	facts := make([]team.Fact, 0, len(f.Facts))
	for _, one := range f.Facts {
		facts = append(facts, team.Fact{Name: one.Name, Path: one.Path})
	}
	add := func(body team.Body) { commands = append(commands, engine.Command(team.User, body)) }
	create := &team.CreateTeam{Name: f.Name, Goal: f.Goal, Dir: a.Dir, Lead: f.Lead, Hooks: Hooks(f.Hooks),
		LeadAgent: f.Leader.Agent, LeadModel: f.Leader.Model, LeadProgram: f.Leader.Command, LeadArgs: f.Leader.Args,
		LeadEnv: f.Leader.Env, LeadPrompt: f.Leader.Prompt,
		LeadRole: f.Leader.Role, Delegate: f.Delegate, HandoverAt: int64(f.Handover),
		MaxTeammates: int64(f.MaxTeammates), MaxParallel: int64(f.MaxParallel), MaxDepth: int64(f.MaxDepth),
		PermissionMode: cmp.Or(a.Mode, f.Permissions.Mode),
		Permissions: team.Permissions{Allow: f.Permissions.Allow, Policy: f.Permissions.Policy,
			Timeout: f.Permissions.Timeout},
		Budget: team.Budget(f.Budget),
		Timing: team.Timing(f.Liveness), Facts: facts, Checks: checks(f.Checks),
		Commands: namedCommands(f.Commands), Clean: f.Clean,
		Changes: f.CheckChanges, Remote: f.Remote,
		Origin: a.Path, OriginDigest: f.Digest(), FileDigests: TeamDigests(f),
		LeadDigests: MemberDigests(f.Leader), Metadata: f.Metadata}
	if err := a.Engine.Founding(ctx, create, a.reportPath()); err != nil { // the run overwrites the report
		return nil, err
	}
	if a.nested != nil {
		a.nested.found(create)
	}
	if f.Elsewhere() {
		of := team.Team{ID: create.TeamID, Name: f.Name, Dir: a.Dir, Remote: f.Remote, Base: create.Base}
		if err := a.Engine.SendBase(ctx, of); err != nil {
			return nil, err
		}
	}
	add(create)
	for _, m := range f.Members {
		add(spawn(m))
	}
	if a.nested != nil {
		add(a.nested.bounds(commands[0].At))
	}
	for _, t := range Tasks(f) {
		add(t)
	}
	return commands, nil
}

// spawn returns the command that adds the member of a team file.
func spawn(m teamfile.Member) *team.SpawnMember {
	return &team.SpawnMember{Name: m.Name, Agent: m.Agent, Model: m.Model, Role: m.Role, Prompt: m.Prompt,
		Mode: m.Mode, PlanApproval: m.PlanApproval, Program: m.Command, Args: m.Args, Env: m.Env,
		Isolation: m.Isolation, RunsOn: m.RunsOn, Budget: team.Budget(m.Budget), Nested: NestedOf(m), FileDigests: MemberDigests(m)}
}

// work runs the sessions and leads, until nothing more can happen. If another process ends the team
// in between, work returns that as the reason of a short run, not as an error.
func (a *attempt) work(ctx context.Context, lead *Lead) (short, err error) {
	short, err = a.lead(ctx, lead)
	if of := a.team.Team(); team.CodeOf(err) == team.Finished && ctx.Err() == nil && of.Ended() {
		return endedByAnother(), nil
	}
	return short, err
}

func (a *attempt) lead(ctx context.Context, lead *Lead) (short, err error) {
	lead.Lease = a.lease
	lead.Session = team.RunSession + strings.ToLower(replica.NewID())
	asked := ctx
	ctx, release, err := lead.Hold(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if a.nested != nil {
		end, err := a.nested.follow(ctx, a.team, lead)
		if err != nil {
			return nil, err
		}
		defer end()
	}
	if a.Began != nil {
		a.Began(a.team.Team(), a.again)
	}
	if a.again {
		lead.Seen = a.team.Seq()
		if err := lead.Retry(ctx); err != nil {
			return nil, err
		}
	}
	o := engine.HostOptions{Agent: a.Agent, Env: a.Env, Said: a.Said, Hurry: a.Hurry, Kill: a.Kill, Pause: a.Pause}
	if a.nested != nil {
		o.Outer = a.nested.outer
	}
	h, err := a.team.Host(ctx, o)
	if err != nil {
		return nil, err
	}
	short, err = lead.Work(ctx, h.Done())
	end := h.End
	if asked.Err() != nil {
		end = h.Pause
	}
	failure := end()
	// only now does the list show how the last sessions ended
	if err = errors.Join(err, failure); err == nil && short == nil {
		short = lead.Undone()
	}
	return short, err
}

// checkpoint makes a checkpoint of how the run ended.
func (a *attempt) checkpoint(ctx context.Context) {
	ctx, cancel := a.after(ctx)
	defer cancel()
	if a.Engine.Home.Place != nil {
		return // which keeps the team, and has backups
	}
	if _, err := host.Checkpoint(ctx, a.team.Replica, a.team.Dir); err != nil && !a.hurried() {
		a.Engine.Note(err.Error())
	}
}

// after returns the context for the steps after the work. It ends when their time is over.
func (a *attempt) after(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	go func() {
		select {
		case <-a.Hurry:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// hurried reports whether there is no time for work that only informs.
func (a *attempt) hurried() bool {
	select {
	case <-a.Hurry:
		return true
	default:
		return false
	}
}
