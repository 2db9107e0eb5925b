// Package run takes a team file, or a goal, to its end: it creates the team, or goes on with it, runs the sessions, leads where no agent does, and
// writes the report.
//
// # Authority
//
// The package is the lead of a team that was made from a file: it decides when such a team is at its end, and what its
// report holds. The rules of the team are the team package's, the sessions are coord's, the words of the report are report's.
//
// # States
//
//	no team, or a finished one ──create──▶ working ──nothing more can happen──▶ shutting down ──▶ report ──▶ complete
//	                                           ▲          └─ an agent leads ─▶ it is asked for its report ─┘
//	                                           └──── it begins new work instead ────┘
//	team of this very file ──────go on───▶ working ──deadline, budget, signal, failed tasks──▶ report ──▶ unfinished
//
// # Guarantees
//
//   - A team file is one team: the team, its members and its tasks appear together or not at all.
//   - Killed at any moment and run again, it goes on: what is recorded as completed is not done again, and what the killed
//     run left behind is ended before its tasks start anew.
//   - Of two that run the same file at once, one leads and the other is told.
//   - A report is written however the work ends, also early, and replaces the one before in one step. Only a kill, or a failure
//     of the run itself, writes none.
package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cadre/internal/agent"
	"cadre/internal/agentdef"
	"cadre/internal/coord"
	"cadre/internal/desk"
	"cadre/internal/home"
	"cadre/internal/proc"
	"cadre/internal/team"
	"cadre/internal/teamfile"
)

// Options say what to run and how.
type Options struct {
	Home   home.Home
	File   *teamfile.File
	Path   string                        // of the team file, absolute
	Dir    string                        // where the team works, absolute
	Report string                        // where the report goes; "" for what the file says, else <team>-report.md; relative to Dir
	Agent  func(name string) agent.Agent // by name
	Offers []string                      // see coord.Options
	Relay  []string
	Role   func(dir, role string) (agentdef.Definition, bool, error)
	Hooks  desk.Hooks // nil for none
	Env    []string   // added to the environment of sessions

	// Project brings projections up to date; nil for none.
	Project func(dir string) ProjectFunc
	// Began is told the team, and whether it existed before, when the work begins.
	Began func(t team.Team, again bool)
	// Saw is told every record from then on, for a new team from its creation, in order, from one goroutine. The state is the one
	// after some record at or past it.
	Saw func(r *team.Record, d *desk.Desk)
	// Log is told what is worth knowing and no event.
	Log func(string)
}

// ProjectFunc is [desk.Options].Project.
type ProjectFunc = func(ctx context.Context, j desk.Journal, s *team.State) error

// Result is how a run ended.
type Result struct {
	Team      team.Team
	Report    string // path of the report
	Completed int    // tasks
	Failed    int
	Open      int // tasks that are neither
	Why       string
	Seconds   float64
}

// Done reports whether everything that the file asks for is done.
func (r Result) Done() bool { return r.Why == "" }

// shutdownGrace is what a teammate has to finish when all work is done.
const shutdownGrace = 10 * time.Second

// Run runs the team file to its end. The end of ctx ends the run early, with its cause as the reason.
func Run(ctx context.Context, o Options) (Result, error) {
	began := time.Now()
	l, err := open(ctx, o)
	if err != nil {
		return Result{}, err
	}
	defer l.close()
	why, err := l.work(ctx)
	if err != nil {
		return Result{}, err
	}
	// What follows must not be cut short by what ended the work.
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	result, err := l.finish(closing, why)
	result.Seconds = time.Since(began).Seconds()
	return result, err
}

// lead is a run under way.
type lead struct {
	Options
	desk  *desk.Desk
	dir   string // the team's folder
	lock  *proc.Lock
	again bool
	seen  int64 // seq of the last record that Saw was told
}

// open takes the lead of the team, which it creates where there is none to go on with.
func open(ctx context.Context, o Options) (*lead, error) {
	if o.Log == nil {
		o.Log = func(string) {}
	}
	l := &lead{Options: o}
	name := o.File.Name
	if _, err := o.Home.Folder(name); team.CodeOf(err) == team.NotFound {
		if err := o.Home.Create(name, l.beginning()); err != nil && team.CodeOf(err) != team.Taken { // somebody was faster: go on with theirs
			return nil, err
		}
	} else if err != nil {
		return nil, err
	} else {
		l.again = true
	}
	if err := l.take(ctx); err != nil {
		return nil, err
	}
	t := l.desk.Team()
	switch {
	case t.CleanedUp, t.Status == team.TeamComplete, t.Status == team.TeamAborted:
		// It is at its end: its record is kept under its id, and the name begins anew.
		l.close()
		if t.CleanedUp {
			if err := coord.Settle(ctx, filepath.Join(l.dir, "hosts"), o.Log); err != nil {
				return nil, err
			}
			if err := o.Home.Remove(l.dir); err != nil {
				return nil, err
			}
		} else {
			if err := o.Home.Archive(name, t.ID); err != nil {
				return nil, err
			}
			o.Log(fmt.Sprintf("the run before is %s; its record is kept as %s", t.Status, t.ID))
		}
		return open(ctx, o)
	case t.Origin != o.Path:
		l.close()
		from := "a team of another origin"
		if t.Origin != "" {
			from = "made from " + t.Origin
		}
		return nil, &team.Error{Code: team.Taken, Text: fmt.Sprintf("there is a team named %s already, %s; give this one another name, or remove that one: cadre cleanup %s", name, from, name)}
	case t.OriginDigest != o.File.Digest():
		l.close()
		return nil, &team.Error{Code: team.NotReady, Text: fmt.Sprintf("%s was changed since the unfinished team %s was made from it; to begin anew: cadre cleanup %s --force, and run it again", o.Path, name, name)}
	case t.Dir != o.Dir:
		l.close()
		return nil, &team.Error{Code: team.NotReady, Text: fmt.Sprintf("the unfinished team %s works in %s, not in %s; finish it with --dir %s, or begin anew: cadre cleanup %s --force", name, t.Dir, o.Dir, t.Dir, name)}
	}
	return l, nil
}

// take opens the team and its lead lock.
func (l *lead) take(ctx context.Context) error {
	j, dir, err := l.Home.Open(l.File.Name, l.Log)
	if err != nil {
		return err
	}
	l.dir = dir
	l.lock, err = proc.NewLock(filepath.Join(dir, "lead.lock"))
	if err != nil {
		j.Close()
		if errors.Is(err, proc.ErrHeld) {
			return &team.Error{Code: team.NotReady, Text: fmt.Sprintf("team %s is being run already; to follow it: cadre log %s --follow", l.File.Name, l.File.Name)}
		}
		return err
	}
	options := desk.Options{Hooks: l.Hooks, Log: l.Log}
	if l.Project != nil {
		options.Project = l.Project(dir)
	}
	if l.desk, err = desk.Open(ctx, j, options); err != nil {
		l.lock.Unlock()
	}
	return err
}

func (l *lead) close() {
	if err := l.desk.Close(); err != nil {
		l.Log(err.Error())
	}
	l.lock.Unlock()
}

// beginning is the whole team file as commands.
func (l *lead) beginning() []team.Command {
	f, now := l.File, desk.Now()
	var commands []team.Command
	add := func(body team.Body) {
		commands = append(commands, team.Command{ID: desk.NewID(), Actor: team.User, At: now, Body: body})
	}
	add(&team.CreateTeam{TeamID: f.Name + "-" + strings.ToLower(desk.NewID()), Name: f.Name, Goal: f.Goal, Dir: l.Dir, Lead: f.Lead, Hooks: hooks(f.Hooks),
		LeadAgent: f.Leader.Agent, LeadModel: f.Leader.Model, LeadProgram: f.Leader.Command, LeadArgs: f.Leader.Args, LeadEnv: f.Leader.Env, LeadPrompt: f.Leader.Prompt,
		LeadRole: f.Leader.Role, Delegate: f.Delegate, HandoverAt: int64(f.Handover), PermissionMode: f.Permissions.Mode,
		Permissions: team.Permissions{Allow: f.Permissions.Allow, Policy: f.Permissions.Policy, Millis: f.Permissions.Timeout.Milliseconds()},
		Budget:      team.Budget{Tokens: f.Budget.Tokens, CostMicroUSD: int64(f.Budget.USD * 1e6), Millis: f.Budget.Time.Milliseconds()},
		Origin:      l.Path, OriginDigest: f.Digest()})
	for _, m := range f.Members {
		add(&team.SpawnMember{Name: m.Name, Agent: m.Agent, Model: m.Model, Role: m.Role, Prompt: m.Prompt, PlanApproval: m.PlanApproval, Program: m.Command,
			Args: m.Args, Env: m.Env, Isolation: m.Isolation})
	}
	ids := map[string]string{}
	for i, t := range f.Order() {
		ids[t.ID] = fmt.Sprint(i + 1)
		var before []string
		for _, id := range t.BlockedBy {
			before = append(before, ids[id])
		}
		add(&team.CreateTask{Subject: t.Subject, Description: t.Description, Owner: t.Owner, Role: t.Role, BlockedBy: before, Priority: t.Priority,
			Run: t.Run, TimeoutMS: t.Timeout.Milliseconds(), Retries: int64(t.Retries), Metadata: keyed(t.ID)})
	}
	return commands
}

// work runs the sessions until nothing more can happen. The reason says why the team is not done with its tasks; "" when it is.
func (l *lead) work(ctx context.Context) (why string, err error) {
	if l.Began != nil {
		l.Began(l.desk.Team(), l.again)
	}
	if l.again {
		l.seen = l.desk.Seq()
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if l.again {
		if err := l.retry(ctx); err != nil {
			return "", err
		}
	}
	hosts := filepath.Join(l.dir, "hosts")
	if err := coord.Clear(ctx, hosts, l.Log); err != nil {
		return "", err
	}
	id := strings.ToLower(desk.NewID())
	procs, err := coord.Enroll(hosts, id)
	if err != nil {
		return "", err
	}
	host := coord.New(coord.Options{Desk: l.desk, Agent: l.Agent, Offers: l.Offers, Relay: l.Relay, Role: l.Role, Hosts: hosts, Procs: procs, ID: id, Env: l.Env, Log: l.Log})
	hosting := make(chan error, 1)
	go func() { hosting <- host.Run(ctx) }()
	why, err = l.follow(ctx, hosting)
	cancel()
	return why, errors.Join(err, <-hosting)
}

// retry puts what an earlier run gave up back on the list, and puts a teammate beside each one that has ended since, to do its work.
func (l *lead) retry(ctx context.Context) error {
	var again, troubled []string
	var ended []team.Member
	l.desk.View(func(s *team.State) {
		for t := range s.Tasks() {
			if t.GivenUp() {
				again = append(again, t.ID)
			}
		}
		for _, m := range s.Members() {
			if m.Status.Running() && m.Setbacks > 0 {
				troubled = append(troubled, m.Name)
			}
		}
		if s.Count(team.Pending)+s.Count(team.InProgress) == 0 {
			return
		}
		for _, m := range s.Members() {
			if !m.Status.Running() && m.Agent != team.External && !replaced(s, m.Name) {
				ended = append(ended, m)
			}
		}
	})
	for _, name := range troubled {
		if err := l.do(ctx, team.User, &team.RetryMember{Member: name}); err != nil {
			return err
		}
	}
	for _, m := range ended {
		for n := 2; ; n++ {
			err := l.do(ctx, team.User, &team.SpawnMember{Name: successor(m.Name, n), Agent: m.Agent, Model: m.Model, Role: m.Role, Prompt: m.Prompt,
				PlanApproval: m.Plan.Required, Program: m.Program, Args: m.Args, Env: m.Env, Isolation: m.Isolation, Resume: m.Session})
			if err == nil {
				break
			}
			if team.CodeOf(err) != team.Taken {
				return err
			}
		}
	}
	for _, id := range again {
		if err := l.do(ctx, team.User, &team.ReleaseTask{Task: id, Reason: "the team file is run again"}); err != nil {
			return err
		}
	}
	return nil
}

// successor is the nth name of a teammate that goes on for another one.
func successor(name string, n int) string {
	suffix := fmt.Sprintf("-again-%d", n)
	return name[:min(len(name), 64-len(suffix))] + suffix
}

// replaced reports whether somebody goes on for the member already, or did.
func replaced(s *team.State, name string) bool {
	_, ok := s.Member(successor(name, 2))
	return ok
}

// follow shows what happens, leads where no agent does, and sees when the end has come.
func (l *lead) follow(ctx context.Context, hosting chan error) (why string, err error) {
	for {
		if err := l.show(ctx); err != nil {
			return l.stopped(ctx, err)
		}
		at := l.look()
		if end, why, err := l.next(ctx, at); end || err != nil {
			if err != nil {
				return l.stopped(ctx, err)
			}
			return why, nil
		}
		waiting, cancel := context.WithCancel(ctx)
		go func() {
			select {
			case err := <-hosting: // it never ends by itself without an error worth an end
				hosting <- err
				cancel()
			case <-waiting.Done():
			}
		}()
		err := l.desk.Wait(waiting, l.seen)
		hosted := ctx.Err() == nil && waiting.Err() != nil
		cancel()
		if hosted && !at.over {
			if at = l.look(); !at.over {
				return "", errors.New("the host ended")
			}
			continue
		}
		if err != nil {
			return l.stopped(ctx, err)
		}
	}
}

// next does what is to be done now, and says whether the end has come, and why.
func (l *lead) next(ctx context.Context, at situation) (end bool, why string, err error) {
	if !at.led {
		if err := l.readMail(ctx); err != nil {
			return false, "", err
		}
	}
	undone := ""
	if at.undone > 0 {
		undone = fmt.Sprintf("%s could not be done", count(at.undone, "task"))
	}
	switch {
	case at.over:
		return true, "the team was ended by somebody else", nil
	case at.exhausted != "":
		return !at.sessions, "the budget is spent: " + at.exhausted, nil
	case at.lost != "":
		return true, "the lead cannot go on: " + at.lost, nil
	case at.busy:
		return false, "", nil
	case at.led && at.said:
		if len(at.members) == 0 {
			return true, undone, nil
		}
		return false, "", l.dismiss(ctx, at.members)
	case at.led && len(at.isolated) > 0:
		return false, "", l.dismiss(ctx, at.isolated) // so that their work is merged before the lead reports
	case at.led:
		return false, "", l.do(ctx, team.User, &team.AskReport{})
	case at.undone > 0 || len(at.members) == 0:
		return true, undone, nil
	}
	return false, "", l.dismiss(ctx, at.members)
}

// show tells of what happened since it was called last.
func (l *lead) show(ctx context.Context) error {
	for r, err := range l.desk.Read(ctx, l.seen) {
		if err != nil {
			return err
		}
		// The journal may be ahead of the desk. What is seen is to be in the state: who then looks, and waits for more, misses nothing.
		if l.desk.Seq() < r.Seq {
			if err := l.desk.Refresh(ctx); err != nil {
				return err
			}
		}
		l.seen = r.Seq
		if l.Saw != nil {
			l.Saw(r, l.desk)
		}
	}
	return nil
}

// stopped tells the end of the run from a failure.
func (l *lead) stopped(ctx context.Context, err error) (string, error) {
	if ctx.Err() != nil {
		return context.Cause(ctx).Error(), nil
	}
	return "", err
}

// dismiss asks the teammates to end. A shell finishes what it is at; an agent with a model has nothing left to do, and would take a turn to say so.
func (l *lead) dismiss(ctx context.Context, members []string) error {
	for _, name := range members {
		grace := time.Duration(0)
		l.desk.View(func(s *team.State) {
			if m, _ := s.Member(name); m.Agent == team.Shell {
				grace = shutdownGrace
			}
		})
		err := l.do(ctx, l.desk.Team().Lead, &team.RequestShutdown{Member: name, Reason: "All tasks are done; thank you.", Deadline: desk.Now() + team.Time(grace.Milliseconds())})
		if code := team.CodeOf(err); err != nil && code != team.Conflict && code != team.Finished {
			return err
		}
	}
	return nil
}

// readMail takes the lead's mail: what it says is in the record, and in the report by way of the tasks.
func (l *lead) readMail(ctx context.Context) error {
	var through int64
	lead := l.desk.Team().Lead
	l.desk.View(func(s *team.State) {
		if mail := s.Inbox(lead); len(mail) > 0 {
			through = mail[len(mail)-1].Seq
		}
	})
	if through == 0 {
		return nil
	}
	if err := l.do(ctx, lead, &team.ReceiveMessages{}); err != nil {
		return err
	}
	return l.do(ctx, lead, &team.MarkRead{Through: through})
}

func (l *lead) do(ctx context.Context, actor string, body team.Body) error {
	_, err := l.desk.Do(ctx, team.Command{Actor: actor, Body: body})
	return err
}

// finish writes the report and ends the team if it is done.
func (l *lead) finish(ctx context.Context, why string) (Result, error) {
	if err := l.desk.Refresh(ctx); err != nil {
		return Result{}, err
	}
	path := l.reportPath()
	r := Result{Team: l.desk.Team(), Report: path, Why: why}
	l.desk.View(func(s *team.State) {
		for t := range s.Tasks() {
			switch {
			case t.Status == team.Completed:
				r.Completed++
			case t.GivenUp():
				r.Failed++
			default:
				r.Open++
			}
		}
	})
	if !r.Team.CleanedUp {
		if err := l.writeReport(ctx, path, why); err != nil {
			return r, fmt.Errorf("the report was not written: %w; run it again", err)
		}
	}
	if why == "" {
		if err := l.do(ctx, l.desk.Team().Lead, &team.SetStatus{Status: team.TeamComplete, Report: path}); err != nil {
			return r, err
		}
		r.Team = l.desk.Team()
	}
	if err := l.show(ctx); err != nil {
		l.Log(err.Error())
	}
	return r, nil
}

func (l *lead) reportPath() string {
	path := l.Report
	if path == "" {
		path = l.File.Report.File
	}
	if path == "" {
		path = l.File.Name + "-report.md"
	}
	if !filepath.IsAbs(path) {
		path = filepath.Join(l.Dir, path)
	}
	return path
}

func (l *lead) writeReport(ctx context.Context, path, why string) error {
	text, err := l.compose(ctx, why)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text)
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
