package teams

import (
	"context"
	"time"

	"cadre/internal/consolidate"
	"cadre/internal/engine/upkeep"
	"cadre/internal/inspect/catalog"
	"cadre/internal/team"
)

// Check is a command that has to pass before the team's work is committed. /bin/sh runs it in the
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

func publicChecks(all []team.Check) (checks []Check) {
	for _, c := range all {
		checks = append(checks, Check{Name: c.Name, Command: c.Command, Timeout: c.Timeout})
	}
	return checks
}

// CheckResult is how a check ended in the last consolidation.
type CheckResult string

// The results of a check.
const (
	CheckNotRun CheckResult = ""
	CheckPassed CheckResult = "passed"
	CheckFailed CheckResult = "failed"
)

// CheckState is a check of a team, and how it ended in the last consolidation.
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

// ConsolidateOptions say how a team is consolidated. Paths are from the top of the work tree.
type ConsolidateOptions struct {
	Message          string   // first lines of the commit's message; "" for one made from the goal
	Include          []string // committed although the person had changes there before the team
	Only             []string // committed, and nothing else of the work tree
	NoCommit         bool     // complete the team without a commit; see [Team.TryChecks] for checks alone
	CleanCheckout    bool     // run the checks in a clean checkout of what is to be committed
	WithCheckChanges bool     // commit what the checks change, and run them again
	Without          []string // tasks whose missing work the team is completed without
	// Restart gives up a consolidation that was begun, and begins another one with these options.
	// Without it such a one is continued, with its own options.
	Restart bool
	// OnStaged is told what the commit is of, once: each path behind the letter that git has for
	// what became of it.
	OnStaged func(changes []string)
	// OnCheck is told the name of each check that begins.
	OnCheck func(name string)
}

// ConsolidatedRecord is what is kept of a team that was consolidated.
type ConsolidatedRecord struct {
	Team     string // its name
	ID       string
	At       time.Time
	By       string
	Seq      int64  // of the record that completed the team
	Digest   string // SHA-256 of the history up to that
	Commit   string // "" where nothing was to be committed
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

// Consolidate brings the team to its end when everybody is done, as cadre consolidate does: members
// with worktrees of their own end, their branches are merged, the checks run, and what the team did
// becomes one commit on what is checked out. Then the team is complete. Killed at any moment, the
// next call continues.
//
// It is refused with ErrNotReady while somebody works, while a branch conflicts, where a check
// fails and where a file of the person's is in the way, and nothing is committed then. [Team.Run]
// with a program that leads ends with a team that waits for this.
func (t *Team) Consolidate(ctx context.Context, o ConsolidateOptions) (*ConsolidatedRecord, error) {
	if err := t.consolidates("Team.Consolidate"); err != nil {
		return nil, err
	}
	record, err := t.of.Consolidate(ctx, consolidate.Options{Actor: team.User, Message: o.Message, Include: o.Include,
		Only: o.Only, NoCommit: o.NoCommit, Clean: o.CleanCheckout, Changes: o.WithCheckChanges, Without: o.Without,
		Restart: o.Restart, Staged: o.OnStaged, Checking: o.OnCheck})
	if err != nil {
		return nil, public(err)
	}
	t.of.Project(context.WithoutCancel(ctx))
	return recordOf(record), nil
}

// TryChecks runs the checks of the team on its present work, as cadre consolidate --no-commit does.
// It commits nothing, and the team stays as it is. It returns the names of the checks that passed.
// It is refused with ErrNotReady while somebody works, and where a check fails, a check changes files
// that would be committed, or a branch conflicts. In a repository, the checks run in a temporary
// checkout without ignored files. It uses the options Include, Only, CleanCheckout, WithCheckChanges,
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

// RollBackConsolidation gives up a consolidation that is under way: nothing is committed, the work
// tree is as it was, and the team continues. So does one that [Team.WindDown] marked for its end.
func (t *Team) RollBackConsolidation(ctx context.Context, reason string) error {
	if err := t.consolidates("Team.RollBackConsolidation"); err != nil {
		return err
	}
	return public(t.of.RollBack(ctx, consolidate.Options{Actor: team.User}, reason))
}

// consolidates refuses an entry to a manager that cannot consolidate the team.
func (t *Team) consolidates(entry string) error {
	if _, err := t.asUser(entry, "consolidate the team"); err != nil {
		return err
	}
	if !t.of.OnDisk() {
		return refuse(ErrNotReady, "a team in memory has no folder that a consolidation could work in")
	}
	return nil
}

// WindDown marks the team for its end: nothing new begins, and when everybody is done it is to be
// consolidated. [Team.RollBackConsolidation] takes that back.
func (t *Team) WindDown(ctx context.Context) error {
	return t.setStatus(ctx, "Team.WindDown", team.TeamConsolidating, "", "")
}

// Checkpoint is a state of a team that was kept.
type Checkpoint struct {
	Records   int64  // of the team, that it covers
	Commit    string // "" outside a repository
	Place     string // the branch or the folder, for people
	Written   bool   // by this call; else the last one has everything
	NotInRepo string // a sentence where the checkpoint is in no repository, and so without the work
	// Left are the files of the team's directory that it does not carry, with the reason: git
	// ignores them, they are large, or they likely hold a secret.
	Left []string
}

// Checkpoint keeps what the team is now on the branch cadre/TEAM of the repository that it works
// in, with its work. Work tree, index, HEAD and hooks are not touched. Hosts make checkpoints by
// themselves. The paths, from the top of the work tree, are carried from now on whatever is in
// them.
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

// SharedFact is a file that everybody in a team relies on.
type SharedFact struct {
	Name string
	Path string // absolute, or from the team's directory
}

// RecordFacts has the team take note of the files that everybody relies on as they are now: of
// those that it has, and of the ones that are given, which replace others of the same name.
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

// Reassignment says which task goes to whom.
type Reassignment struct {
	Task, To string
	Force    bool // also from a member that is alive and works on it
}

// Reassign gives a task to another member, with what its owner has changed where it works and said
// last. It is refused with ErrNotReady where the owner is not known to be offline.
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

// Resend sends messages again that wait for a member: those that are late, or the ones named by
// their Seq. They stay the same messages: a member that has one already does not see it twice. It
// returns the Seq of each.
func (t *Team) Resend(ctx context.Context, member string, seqs ...int64) ([]int64, error) {
	record, err := t.me.do(ctx, &team.ResendMessages{Member: member, Seqs: seqs})
	if err != nil {
		return nil, err
	}
	e, _ := found[*team.MessagesResent](record)
	if e == nil {
		return nil, nil
	}
	return append([]int64(nil), e.Seqs...), nil
}
