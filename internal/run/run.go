// Package run takes a team file, or a goal, to its end: it creates the team, or goes on with it,
// runs the sessions, leads where no agent does, and writes the report.
//
// # Authority
//
// The package is the lead of a team that was made from a file: it decides when such a team is at
// its end, and what its report holds. The rules of the team are the team package's, the sessions
// are package host's, the words of the report are package report's.
//
// # States
//
//	no team, or a finished one ──create──▶ working ──nothing more can happen──▶ shutting down ──▶ report ──▶ complete, or consolidating where checks or branches wait
//	                                           ▲          └─ an agent leads ─▶ it is asked for its report ─┘
//	                                           └──── it begins new work instead ────┘
//	team of this very file ──────go on───▶ working ──deadline, budget, signal, failed tasks──▶ report ──▶ unfinished
//
// # Guarantees
//
//   - A team file is one team: the team, its members and its tasks appear together or not at all.
//   - Killed at any moment and run again, it goes on: what is recorded as completed is not done
//     again, and what the killed run left behind is ended before its tasks start anew.
//   - Of two that run the same file at once, one leads and the other is told.
//   - A report is written however the work ends, also early, and replaces the one before in one
//     step. Only a kill, or a failure of the run itself, writes none.
package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"cadre/internal/agent"
	"cadre/internal/consolidate"
	"cadre/internal/engine"
	"cadre/internal/git/checkout"
	"cadre/internal/git/worktree"
	"cadre/internal/host"
	"cadre/internal/inspect"
	"cadre/internal/render/sanitize"
	"cadre/internal/replica"
	"cadre/internal/run/teamfile"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Options say what to run and how.
type Options struct {
	Engine *engine.Engine // opens the team, on the disk, and hosts it
	File   *teamfile.File
	// go on with the unfinished team of that name, whatever it was made from: of File only the name
	// and the report count
	Resume bool
	Path   string // of the team file, absolute
	Dir    string // where the team works, absolute
	// where the report goes; "" for what the file says, else <team>-report.md; relative to Dir
	Report string
	// permission mode in the place of the team file's, also for a team that was begun in another;
	// "" for that
	Mode   string
	Agent  func(name string) agent.Agent // by name; nil for those of the engine
	Offers []string                      // see [engine.HostOptions]
	Env    []string                      // added to the environment of sessions

	// Began is told the team, and whether it existed before, when the work begins.
	Began func(t team.Team, again bool)
	// Saw is told every record from then on, for a new team from its creation, in order, from one
	// goroutine. The state is the one after some record at or past it.
	Saw func(r *team.Record, rep *replica.Replica)
	// Said is told what agents say, from any goroutine; nil for the first line of each text to the
	// engine's Log.
	Said func(member, text string)
}

// Run runs the team file to its end. The end of ctx ends the run early, with its cause as the
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
	result.Seconds = time.Since(began).Seconds()
	return result, err
}

// attention is what waits for a person when this process has ended.
func (a *attempt) attention(ctx context.Context) (items []team.Item) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	outside, err := inspect.Look(ctx, a.team.Replica, a.team.Dir, time.Now())
	if err != nil {
		a.Engine.Note("what waits for you is not known: " + err.Error())
		return nil
	}
	outside.Led = false
	a.team.View(func(s *team.State) { items = s.Attention(replica.Now(), outside) })
	return items
}

// pending is what waits for the consolidation of the team.
func (a *attempt) pending(ctx context.Context) consolidate.Pending {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	p, err := consolidate.LookPending(ctx, a.team.Consolidation())
	if err != nil {
		p.Unknown = err.Error()
	}
	return p
}

// reopen makes a team active that is marked for its end and has open tasks, which nobody would
// begin.
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

// attempt is a run under way.
type attempt struct {
	Options
	team    *engine.Team
	release func() // lets go of the lead
	again   bool
}

// open takes the lead of the team, which it creates where there is none to go on with.
func open(ctx context.Context, o Options) (*attempt, error) {
	if o.Agent == nil {
		o.Agent = o.Engine.Agents.Agent
	}
	a := &attempt{Options: o}
	name, home := o.File.Name, o.Engine.Home
	if _, err := home.Folder(name); team.CodeOf(err) == team.NotFound && !o.Resume {
		commands, err := a.beginning(ctx)
		if err != nil {
			return nil, err
		}
		// somebody was faster: go on with theirs
		if err := home.Create(name, commands); err != nil && team.CodeOf(err) != team.Taken {
			return nil, err
		}
	} else if err != nil {
		return nil, err
	} else {
		a.again = true
	}
	if err := a.take(ctx); err != nil {
		return nil, err
	}
	t := a.team.Team()
	over := t.Ended()
	var gone error
	if !over && !o.Resume {
		gone = a.missing(ctx, t)
	}
	if gone == nil {
		if err := a.team.Runnable(ctx); err != nil {
			a.close()
			return nil, err
		}
	}
	switch {
	case o.Resume && over:
		a.close()
		return nil, &team.Error{Code: team.Finished, Text: fmt.Sprintf("team %s has ended meanwhile", name)}
	case t.Consolidation.Open():
		a.close()
		return nil, team.Refuse(team.NotReady, "team %s is being consolidated", name).With(
			team.Hint{Action: team.ActFinish, Team: name}, team.Hint{Action: team.ActRollBack, Team: name})
	case o.Resume:
		return a, nil
	case over:
		// It is at its end: its record is kept under its id, and the name begins anew.
		var members []team.Member
		a.team.View(func(s *team.State) { members = s.Members() })
		a.close()
		if t.CleanedUp {
			if err := a.team.Remove(ctx); err != nil {
				return nil, err
			}
		} else {
			if err := host.KeepWork(ctx, a.team.Dir, t.Dir, o.Engine.Note); err != nil {
				return nil, err
			}
			if err := merged(ctx, t, members); err != nil {
				return nil, err
			}
			if err := home.Archive(name, t.ID); err != nil {
				return nil, err
			}
			o.Engine.Note(fmt.Sprintf("the run before is %s; its record is kept as %s", t.Status, t.ID))
		}
		return open(ctx, o)
	case gone != nil:
		a.close()
		return nil, gone
	case t.Origin != o.Path:
		a.close()
		from := "a team of another origin"
		if t.Origin != "" {
			from = "made from " + t.Origin
		}
		return nil, team.Refuse(team.Taken, "there is a team named %s already, %s; give this one another name", name, from).
			With(team.Hint{Action: team.ActCleanUp, Team: name})
	case t.OriginDigest != o.File.Digest():
		a.close()
		return nil, team.Refuse(team.NotReady, "%s was changed since the unfinished team %s was made from it; to start over, "+
			"remove the team, and run it again", o.Path, name).With(team.Hint{Action: team.ActForceCleanUp, Team: name})
	case t.Dir != o.Dir:
		a.close()
		return nil, team.Refuse(team.NotReady, "the unfinished team %s works in %s, not in %s; finish it with --dir %s, or start "+
			"over", name, t.Dir, o.Dir, sanitize.Quote(t.Dir)).With(team.Hint{Action: team.ActForceCleanUp, Team: name})
	}
	if a.again {
		agree := func(ctx context.Context) error { return a.change(ctx, a.modes(o.Mode)) }
		if strings.HasPrefix(o.Path, team.GoalOrigin) {
			agree = a.agree
		}
		if err := agree(ctx); err != nil {
			a.close()
			return nil, err
		}
	}
	return a, nil
}

// merged refuses to start a team over whose members have left work that HEAD does not have: the new
// members would begin with that.
func merged(ctx context.Context, t team.Team, members []team.Member) error {
	procs, err := proc.Open("")
	if err != nil {
		return err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	for _, m := range members {
		if m.Isolation != team.Worktree {
			continue
		}
		branch := team.BranchOf(t.Name, m.Name)
		if ahead, err := worktree.Ahead(ctx, procs, t.Dir, branch); err != nil { // there is no repository any more
			return nil
		} else if ahead == "" {
			continue
		}
		refusal := team.Refuse(team.NotReady, "the team %s before this one is %s, and the work of %s is on the branch "+
			"%s, which is not merged. ", t.Name, t.Status, m.Name, branch)
		if t.Status != team.TeamComplete || t.Consolidation.Step == team.Done {
			refusal.Text += "Merge it: git merge " + branch + ". "
		} else {
			refusal.With(team.Hint{Action: team.ActConsolidate, Team: t.Name})
		}
		refusal.Text += "To do without it: git branch -D " + branch
		return refusal
	}
	return nil
}

// missing says why nobody can work in the directory of the unfinished team. That it was moved to
// where this run is to work is for a person to say: another copy of the project looks the same.
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
	refusal := team.Refuse(team.Invalid, "nobody can work for the unfinished team %s: %v", t.Name, err)
	if _, _, err := checkout.Moved(ctx, procs, t, a.Dir); err == nil {
		refusal.Text += fmt.Sprintf("\n%s may be that project.", a.Dir)
		return refusal.With(team.Hint{Action: team.ActMove, Team: t.Name, Dir: a.Dir})
	}
	return refusal.With(team.HintsOf(err)...)
}

// take opens the team and its lead lock.
func (a *attempt) take(ctx context.Context) error {
	var err error
	if a.team, err = a.Engine.Open(ctx, a.File.Name); err != nil {
		return err
	}
	if a.release, err = a.team.Claim(ctx); err != nil {
		return errors.Join(err, a.team.Close())
	}
	return nil
}

func (a *attempt) close() {
	if err := a.team.Close(); err != nil {
		a.Engine.Note(err.Error())
	}
	a.release()
}

// beginning is the whole team file as commands.
func (a *attempt) beginning(ctx context.Context) (commands []team.Command, err error) {
	if err := a.notInstalled(); err != nil {
		return nil, err
	}
	f, now := a.File, replica.Now()
	facts := make([]team.Fact, 0, len(f.Facts))
	for _, one := range f.Facts {
		facts = append(facts, team.Fact{Name: one.Name, Path: one.Path})
	}
	if facts, err = inspect.Recorded(ctx, a.Dir, facts); err != nil {
		return nil, err
	}
	add := func(body team.Body) {
		commands = append(commands, team.Command{ID: replica.NewID(), Actor: team.User, At: now, Body: body})
	}
	add(&team.CreateTeam{TeamID: f.Name + "-" + strings.ToLower(replica.NewID()), Name: f.Name, Goal: f.Goal,
		Dir: a.Dir, Lead: f.Lead, Hooks: Hooks(f.Hooks),
		LeadAgent: f.Leader.Agent, LeadModel: f.Leader.Model, LeadProgram: f.Leader.Command, LeadArgs: f.Leader.Args,
		LeadEnv: f.Leader.Env, LeadPrompt: f.Leader.Prompt,
		LeadRole: f.Leader.Role, Delegate: f.Delegate, HandoverAt: int64(f.Handover),
		MaxTeammates: int64(f.MaxTeammates), PermissionMode: cmp.Or(a.Mode, f.Permissions.Mode),
		Permissions: team.Permissions{Allow: f.Permissions.Allow, Policy: f.Permissions.Policy,
			Millis: f.Permissions.Timeout.Milliseconds()},
		Budget: team.Budget{Tokens: f.Budget.Tokens, CostMicroUSD: int64(f.Budget.USD * 1e6),
			Millis: f.Budget.Time.Milliseconds()},
		// of which it overwrites the report
		Timing: timing(f.Liveness), Facts: facts, Checks: checks(f.Checks), Clean: f.Clean, Changes: f.CheckChanges,
		Base:   consolidate.Look(ctx, a.Dir, a.Engine.Home.Root, a.Engine.Home.Claude, a.reportPath()),
		Origin: a.Path, OriginDigest: f.Digest()})
	for _, m := range f.Members {
		add(&team.SpawnMember{Name: m.Name, Agent: m.Agent, Model: m.Model, Role: m.Role, Prompt: m.Prompt,
			Mode: m.Mode, PlanApproval: m.PlanApproval, Program: m.Command,
			Args: m.Args, Env: m.Env, Isolation: m.Isolation})
	}
	for _, t := range Tasks(f) {
		add(t)
	}
	return commands, nil
}

// notInstalled refuses a team of which somebody could never work, because a program is not there.
func (a *attempt) notInstalled() error {
	var reasons []string
	who := map[string][]string{}
	for _, m := range append([]teamfile.Member{a.File.Leader}, a.File.Members...) {
		if m.Agent == "" || m.Agent == team.External {
			continue
		}
		if err := agent.Missing(a.Agent(m.Agent), m.Command); err != nil {
			reason := fmt.Sprintf("%s cannot work here: %v", m.Agent, err)
			if len(who[reason]) == 0 {
				reasons = append(reasons, reason)
			}
			who[reason] = append(who[reason], cmp.Or(m.Name, a.File.Lead))
		}
	}
	if len(reasons) == 0 {
		return nil
	}
	for i, reason := range reasons {
		reasons[i] = reason + " (" + strings.Join(who[reason], ", ") + ")"
	}
	return &team.Error{Code: team.Invalid, Text: "the team was not created: " + strings.Join(reasons, "; ")}
}

// timing is what the file says of liveness, for the core.
func timing(l teamfile.Liveness) team.Timing {
	return team.Timing{Beat: l.Beat.Milliseconds(), Offline: l.Offline.Milliseconds(),
		LeadLost: l.LeadLost.Milliseconds(), Zombie: l.Zombie.Milliseconds(),
		Blocked: l.Blocked.Milliseconds(), Undelivered: l.Undelivered.Milliseconds(), Stale: l.Stale.Milliseconds(),
		Checkpoint: l.Checkpoint.Milliseconds()}
}

// work runs the sessions and leads until nothing more can happen.
func (a *attempt) work(ctx context.Context, lead *Lead) (short, err error) {
	lead.Session = "run-" + strings.ToLower(replica.NewID())
	ctx, release, err := lead.Hold(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if a.Began != nil {
		a.Began(a.team.Team(), a.again)
	}
	if a.again {
		lead.Seen = a.team.Seq()
		if err := lead.Retry(ctx); err != nil {
			return nil, err
		}
	}
	h, err := a.team.Host(ctx, engine.HostOptions{Agent: a.Agent, Offers: a.Offers, Env: a.Env, Said: a.Said})
	if err != nil {
		return nil, err
	}
	short, err = lead.Work(ctx, h.Done())
	failure := h.End()
	// what came of the last sessions is on the list only now
	if err = errors.Join(err, failure); err == nil && short == nil {
		short = lead.Undone()
	}
	return short, err
}

// checkpoint keeps how the run ended.
func (a *attempt) checkpoint(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), finishTime)
	defer cancel()
	if _, err := host.Checkpoint(ctx, a.team.Replica, a.team.Dir); err != nil {
		a.Engine.Note(err.Error())
	}
}

func (a *attempt) reportPath() string {
	path := a.Report
	if path == "" {
		path = a.File.Report.File
	}
	if path == "" {
		path = a.File.Name + "-report.md"
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(a.Dir, path)
	}
	return path
}
