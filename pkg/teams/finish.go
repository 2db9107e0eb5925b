package teams

import (
	"context"
	"maps"
	"slices"
	"time"

	"cadre/internal/consolidate"
	"cadre/internal/engine/upkeep"
	"cadre/internal/inspect/catalog"
	"cadre/internal/team"
)

// Check is a command that must pass before the team's work is committed. /bin/sh runs it in the
// team's directory.
type Check struct {
	Name    string // unique in the team
	Command string
	Timeout time.Duration // in whole seconds; 0 for half an hour
}

func checksOf(all []Check) (checks []team.Check) {
	for _, c := range all {
		checks = append(checks, team.Check{Name: c.Name, Command: c.Command, Timeout: c.Timeout})
	}
	return checks
}

func commandsOf(all map[string]string) (commands []team.NamedCommand) {
	for _, name := range slices.Sorted(maps.Keys(all)) {
		commands = append(commands, team.NamedCommand{Name: name, Run: all[name]})
	}
	return commands
}

func publicChecks(all []team.Check) (checks []Check) {
	for _, c := range all {
		checks = append(checks, Check{Name: c.Name, Command: c.Command, Timeout: c.Timeout})
	}
	return checks
}

// CheckResult is the result of a check in the last consolidation.
type CheckResult string

// The results of a check.
const (
	CheckNotRun CheckResult = ""
	CheckPassed CheckResult = "passed"
	CheckFailed CheckResult = "failed"
)

// CheckState is a check of a team with its result in the last consolidation.
type CheckState struct {
	Check
	Result CheckResult
}

// Checks returns the checks of the team, in their order.
func (v *View) Checks(ctx context.Context) (all []CheckState, err error) {
	err = v.look(ctx, func(s *team.State) {
		t := s.Team()
		checks := publicChecks(t.Checks)
		for i, c := range catalog.Checks(&t) {
			all = append(all, CheckState{checks[i], CheckResult(c.Result)})
		}
	})
	return all, err
}

// ConsolidateOptions configure a consolidation. Paths are relative to the top of the work tree.
type ConsolidateOptions struct {
	Message          string   // first lines of the commit message; "" for a message made from the goal
	Include          []string // committed although the user had changes in them before the team started
	Only             []string // the only paths of the work tree to commit; nil for all
	NoCommit         bool     // complete the team without a commit; see [Team.TryChecks] for checks alone
	CleanCheckout    bool     // run the checks in a clean checkout of what is to be committed
	WithCheckChanges bool     // commit what the checks change, and run them again
	Without          []string // tasks whose work is missing; the team is completed without it
	// Restart abandons an interrupted consolidation, and starts another one with these options.
	// Without Restart, Consolidate continues the interrupted one with the options that it began
	// with.
	Restart bool
	// OnStaged is called once with the staged changes: each path, after git's letter for its
	// status.
	OnStaged func(changes []string)
	// OnCheck is called with the name of each check that starts.
	OnCheck func(name string)
}

// ConsolidatedRecord is the record of a consolidated team.
type ConsolidatedRecord struct {
	Team     string // its name
	ID       string
	At       time.Time
	By       string
	Seq      int64  // number of the record that completed the team
	Digest   string // SHA-256 of the history up to that record
	Commit   string // "" if nothing was to be committed
	Files    int    // that were committed
	Checks   []string
	Attempts int
}

func recordOf(r *consolidate.Record) *ConsolidatedRecord {
	c := &ConsolidatedRecord{Team: r.Name, ID: r.Team, At: clock(r.At), By: r.By, Seq: r.Seq, Digest: r.Journal,
		Commit: r.Commit, Files: int(r.Files), Attempts: int(r.Attempts)}
	for _, check := range r.Checks {
		c.Checks = append(c.Checks, check.Name)
	}
	return c
}

// Consolidate ends the team when all members are done, as cadre consolidate does. Members with
// their own worktrees end, their branches are merged, and the checks run. Then the team's work
// becomes one commit on the checked-out branch, and the team is complete. After a kill at any
// moment, the next call continues.
//
// Consolidate returns ErrNotReady, and commits nothing, while a member works or a branch conflicts.
// It does the same if a check fails, or if a file of the user is in the way. If this program leads,
// [Team.Run] leaves the team ready for this call.
func (t *Team) Consolidate(ctx context.Context, o ConsolidateOptions) (*ConsolidatedRecord, error) {
	if err := t.consolidates("Team.Consolidate"); err != nil {
		return nil, err
	}
	record, err := t.of.Consolidate(ctx, o.core())
	if err != nil {
		return nil, public(err)
	}
	t.of.Project(context.WithoutCancel(ctx))
	return recordOf(record), nil
}

func (o ConsolidateOptions) core() consolidate.Options {
	return consolidate.Options{Actor: team.User, Message: o.Message, Include: o.Include, Only: o.Only,
		NoCommit: o.NoCommit, Clean: o.CleanCheckout, Changes: o.WithCheckChanges, Without: o.Without,
		Restart: o.Restart, Staged: o.OnStaged, Checking: o.OnCheck}
}

// TryChecks runs the checks on the team's present work, as cadre consolidate --no-commit does. It
// commits nothing, and does not change the team. It returns the names of the checks that passed. It
// returns ErrNotReady while a member works, if a check fails or changes files that would be
// committed, and if a branch conflicts. In a repository, the checks run in a temporary checkout
// without ignored files. It uses the options Include, Only, CleanCheckout, WithCheckChanges,
// Without and OnCheck.
func (t *Team) TryChecks(ctx context.Context, o ConsolidateOptions) ([]string, error) {
	if err := t.consolidates("Team.TryChecks"); err != nil {
		return nil, err
	}
	trial, err := t.of.TryChecks(ctx, consolidate.Options{Actor: team.User, Include: o.Include, Only: o.Only,
		Clean: o.CleanCheckout, Changes: o.WithCheckChanges, Without: o.Without, Checking: o.OnCheck})
	if err != nil {
		return nil, public(err)
	}
	passed := []string{}
	for _, check := range trial.Checks {
		passed = append(passed, check.Name)
	}
	return passed, nil
}

// RollBackConsolidation abandons a consolidation that has started. Nothing is committed, the work
// tree is restored, and the team continues. It also lets a team continue that [Team.WindDown] has
// marked for its end.
func (t *Team) RollBackConsolidation(ctx context.Context, reason string) error {
	if err := t.consolidates("Team.RollBackConsolidation"); err != nil {
		return err
	}
	return public(t.of.RollBack(ctx, consolidate.Options{Actor: team.User}, reason))
}

// consolidates returns an error if this manager cannot consolidate the team.
func (t *Team) consolidates(entry string) error {
	if _, err := t.asUser(entry, "consolidate the team"); err != nil {
		return err
	}
	if !t.of.OnDisk() {
		return refuse(ErrNotReady, "a team in memory has no folder that a consolidation could work in")
	}
	return nil
}

// WindDown marks the team for its end. No new work starts. When all members are done, the team is
// ready for its consolidation. [Team.RollBackConsolidation] reverses that.
func (t *Team) WindDown(ctx context.Context) error {
	return t.setStatus(ctx, "Team.WindDown", team.TeamConsolidating, "", "")
}

// Checkpoint is a saved state of a team.
type Checkpoint struct {
	Records   int64  // number of records of the team that it covers
	Commit    string // "" outside a repository
	Place     string // the branch or the folder, for people
	Written   bool   // this call made it; otherwise the last checkpoint is up to date
	NotInRepo string // a sentence, if the checkpoint is not in a repository and so has no work
	// Left are the files of the team's directory that it leaves out, with the reason: git ignores
	// them, they are large, or they likely contain a secret.
	Left []string
}

// Checkpoint saves the team's present state and work on the branch cadre/TEAM of its repository. It
// does not touch the work tree, the index, HEAD or hooks. Hosts make checkpoints by themselves. The
// paths to include are relative to the top of the work tree. This and later checkpoints carry them,
// whatever they contain.
func (t *Team) Checkpoint(ctx context.Context, include ...string) (Checkpoint, error) {
	if _, err := t.asUser("Team.Checkpoint", "make a checkpoint"); err != nil {
		return Checkpoint{}, err
	}
	if !t.of.OnDisk() {
		return Checkpoint{}, refuse(ErrNotReady, "a team in memory has no checkpoints")
	}
	made, err := t.of.Checkpoint(ctx, include...)
	if err != nil {
		return Checkpoint{}, public(err)
	}
	c := Checkpoint{Records: made.Seq, Commit: made.Commit, Place: made.Place, Written: made.Written,
		NotInRepo: made.Notice}
	for _, left := range made.Left {
		c.Left = append(c.Left, left.String())
	}
	return c, nil
}

// SharedFact is a file that all members of a team rely on.
type SharedFact struct {
	Name string
	Path string // absolute, or from the team's directory
}

// RecordFacts records the present state of the team's shared facts and of those in add. A fact in
// add replaces a fact of the same name.
func (t *Team) RecordFacts(ctx context.Context, add ...SharedFact) error {
	user, err := t.asUser("Team.RecordFacts", "record facts")
	if err != nil {
		return err
	}
	var facts []team.Fact
	for _, f := range add {
		facts = append(facts, team.Fact{Name: f.Name, Path: f.Path})
	}
	return public(upkeep.RecordFacts(ctx, t.of.Upkeep(user.name), facts...))
}

// Reassignment describes how a task goes to another member.
type Reassignment struct {
	Task, To string
	Force    bool // also from a member that is alive and works on it
}

// Reassign gives a task to another member, with the changes that its owner made and its last words.
// It returns ErrNotReady unless the owner is known to be offline; see Reassignment.Force.
func (t *Team) Reassign(ctx context.Context, r Reassignment) (Task, error) {
	user, err := t.asUser("Team.Reassign", "reassign a task")
	if err != nil {
		return Task{}, err
	}
	if err := t.of.Refresh(ctx); err != nil {
		return Task{}, public(err)
	}
	task, err := t.of.Reassign(ctx, user.name, upkeep.Reassignment{Task: r.Task, To: r.To, Force: r.Force})
	if err != nil {
		return Task{}, public(err)
	}
	return taskOf(task), nil
}

// Resend sends messages again that are pending for a member: the late ones, or those with these
// Seq. They remain the same messages: a member that has one already does not see it twice. It
// returns the Seq of each.
func (t *Team) Resend(ctx context.Context, member string, seqs ...int64) ([]int64, error) {
	record, err := t.me.do(ctx, &team.ResendMessages{Member: member, Seqs: seqs})
	if err != nil {
		return nil, err
	}
	e, _ := team.EventIn[*team.MessagesResent](record)
	if e == nil {
		return nil, nil
	}
	return append([]int64(nil), e.Seqs...), nil
}
