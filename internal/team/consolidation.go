package team

import (
	"path"
	"slices"
	"strings"
	"time"
)

// Check is a command that has to pass before the team's work is committed.
type Check struct {
	Name    string        // name of the check, unique in the team
	Command string        // command for /bin/sh, run in the team's directory
	Timeout time.Duration // limit for one run; 0 for the default
}

// MaxChecks limits the checks of a team.
const MaxChecks = 100

// MaxBase limits the uncommitted files that a [Base] lists.
const MaxBase = 10_000

// MaxRounds limits how often the checks of one consolidation run. They run again when they changed
// files that are committed with the work.
const MaxRounds = 3

// ByChecks is the name of a [Fact] about a file that checks made or changed. Such a file is neither
// the team's work nor the person's.
const ByChecks = "checks"

// Base is the state of the project when the team was created. It separates the team's work from
// what was there before.
type Base struct {
	Top     string // top of the work tree; "" if there was no repository, or it was not examined
	Commit  string // commit that HEAD pointed at; "" before the first commit
	Dirty   []Fact // files that differed from it, by their paths from Top
	Unknown string // why it is unknown which files differed
}

func (b *Base) none() bool { return b.Top == "" && b.Unknown == "" }

// FinishedAt returns when the work of the team ended: it winds down or is complete, or was when a
// consolidation began that was abandoned before its checks ran, and no member runs but a lead that
// is a person. It is 0 while the team can still change files, and where that is not known. A file
// that changed later is not the team's.
func (s *State) FinishedAt() Time {
	at := s.team.EndingAt
	if c := &s.team.Consolidation; at == 0 && c.Step == Abandoned {
		at = c.FinishedAt
	}
	if at == 0 {
		return 0
	}
	for i := range s.members {
		m := &s.members[i]
		if m.Status.Running() && (i > 0 || m.Agent != External) {
			return 0
		}
		if i > 0 {
			at = max(at, m.Since)
		}
	}
	return at
}

// Consolidatable returns nil if the team can be consolidated now, and otherwise the refusal.
func (s *State) Consolidatable() error {
	d := &decision{State: s, Command: Command{Actor: User}}
	return (&Consolidate{NoCommit: true}).decide(d)
}

// ReadyToConsolidate reports whether the team winds down, no consolidation is open, and it can be
// consolidated.
func (s *State) ReadyToConsolidate() bool {
	return s.team.Status == TeamConsolidating && !s.team.Consolidation.Open() && s.Consolidatable() == nil
}

// Step is how far a consolidation has come.
type Step string

// The steps of a consolidation, in order, and its ends.
const (
	Began     Step = "began"
	Merged    Step = "merged"    // the work in members' worktrees is on their branches
	Staged    Step = "staged"    // the tree to commit exists, and nothing refers to it
	Made      Step = "made"      // all checks passed; the commit exists, and HEAD may point at it
	Done      Step = "done"      // HEAD pointed at the commit, and the team is complete
	Abandoned Step = "abandoned" // nothing was committed
)

// Consolidation is the team's last step: its work is checked and committed. The state keeps the
// last attempt.
type Consolidation struct {
	Attempt    int64    // number of the attempt, from 1
	Step       Step     // began, merged, staged, made, done or abandoned
	By         string   // who started it: a member, or @user
	Message    string   // commit message; "" for one that is made from the tasks
	Include    []string // paths that are committed although they were changed before the team was created
	Only       []string // the only paths that are committed; empty for all of the team's work
	NoCommit   bool     // only the checks run
	Ended      bool     // the team was complete before, without a consolidation
	Clean      bool     // the checks run in a clean checkout of the tree to commit
	Changes    bool     // files that the checks change are committed too, and the checks run again
	Rounds     int64    // number of times that the checks ran again
	Without    []string // ids of tasks with missing work that the team is completed without
	Members    []string // members whose worktrees were merged
	Parent     string   // commit that HEAD pointed at when the tree was made
	Tree       string   // id of the tree to commit; "" when there is nothing to commit
	Before     string   // tree with the team's work, but not the branches; "" if no branch is merged
	Branches   []Branch // merged by the commit
	Files      int64    // number of files that differ between Parent and Tree
	Passed     []string // names of the checks that passed
	Failed     string   // name of the check that failed
	Commit     string   // id of the commit
	Reason     string   // why it was abandoned
	FinishedAt Time     // when the team's work had ended, at the beginning of this attempt; 0 if unknown
	BeganAt    Time     // when this attempt started
	EndedAt    Time     // when this attempt ended; 0 while it runs
}

// Branch is the work of a member in a worktree of its own.
type Branch struct {
	Member string // whose work it has
	Name   string // name of the branch
	Commit string // last commit on it
}

// Open reports whether the attempt has not ended.
func (c *Consolidation) Open() bool {
	return c.Step != "" && c.Step != Done && c.Step != Abandoned
}

func checkChecks(checks []Check) error {
	if len(checks) > MaxChecks {
		return refuse(TooLarge, "there are %d checks, of at most %d", len(checks), MaxChecks)
	}
	var seen []string
	for _, c := range checks {
		switch {
		case strings.TrimSpace(c.Name) == "" || strings.TrimSpace(c.Command) == "" || c.Timeout < 0:
			return refuse(Invalid, "a check needs a name, a command, and a timeout that is not negative")
		case slices.Contains(seen, c.Name):
			return refuse(Invalid, "two checks are named %s", brief(c.Name))
		}
		if err := limit(text{"name of the check", c.Name, MaxSubject}, text{"command of the check", c.Command,
			MaxText}); err != nil {
			return err
		}
		seen = append(seen, c.Name)
	}
	return nil
}

func (b *Base) check() error {
	if len(b.Dirty) > MaxBase {
		return refuse(TooLarge, "%d files differ from the last commit, of at most %d", len(b.Dirty), MaxBase)
	}
	for _, f := range b.Dirty {
		if !below(f.Path) {
			return refuse(Invalid, "%q is not a path in the work tree", brief(f.Path))
		}
	}
	return limit(text{"top of the work tree", b.Top, MaxSubject}, text{"commit", b.Commit, MaxSubject},
		text{"reason", b.Unknown, MaxSubject})
}

// below reports whether p is a plain path of a file below a folder.
func below(p string) bool {
	return p != "" && p != "." && path.Clean(p) == p && p[0] != '/' && p != ".." && !strings.HasPrefix(p, "../")
}

func (c *Check) fields(f *coder) {
	f.str("name", &c.Name)
	f.str("command", &c.Command)
	f.duration("seconds", &c.Timeout, time.Second)
}

func (b *Base) fields(c *coder) {
	c.str("top", &b.Top)
	c.str("commit", &b.Commit)
	if c.view { // people do not read thousands of paths
		n := int64(len(b.Dirty))
		c.int("dirty", &n)
	} else {
		objects(c, "dirty", &b.Dirty)
	}
	c.str("unknown", &b.Unknown)
}

func (b *Branch) fields(c *coder) {
	c.str("member", &b.Member)
	c.str("name", &b.Name)
	c.str("commit", &b.Commit)
}

func (n *Consolidation) fields(c *coder) {
	c.int("attempt", &n.Attempt)
	c.str("step", (*string)(&n.Step))
	c.str("by", &n.By)
	c.str("message", &n.Message)
	c.strs("include", &n.Include)
	c.strs("only", &n.Only)
	c.bool("noCommit", &n.NoCommit)
	c.bool("ended", &n.Ended)
	c.strs("without", &n.Without)
	c.bool("clean", &n.Clean)
	c.bool("changes", &n.Changes)
	c.int("rounds", &n.Rounds)
	c.strs("members", &n.Members)
	c.str("parent", &n.Parent)
	c.str("tree", &n.Tree)
	c.str("before", &n.Before)
	objects(c, "branches", &n.Branches)
	c.int("files", &n.Files)
	c.strs("passed", &n.Passed)
	c.int("finishedAt", (*int64)(&n.FinishedAt))
	c.str("failed", &n.Failed)
	c.str("commit", &n.Commit)
	c.str("reason", &n.Reason)
	c.int("beganAt", (*int64)(&n.BeganAt))
	c.int("endedAt", (*int64)(&n.EndedAt))
}

// The events of a consolidation; each names its attempt.
type (
	// ConsolidationBegan starts an attempt to check and commit the team's work.
	ConsolidationBegan struct {
		Attempt  int64
		Message  string
		Include  []string
		Only     []string
		NoCommit bool
		Ended    bool
		Without  []string
		Clean    bool
		Changes  bool
	}
	// WorktreesMerged says that the work of these members is on their branches now.
	WorktreesMerged struct {
		Attempt int64
		Members []string
	}
	// WorkStaged says what the commit will have: Tree on Parent, with the work of Branches, and how
	// many files differ. From here on, the work tree may contain the changes of the branches.
	WorkStaged struct {
		Attempt      int64
		Parent, Tree string
		Before       string
		Branches     []Branch
		Files        int64
	}
	// CheckPassed says that a check of the staged work passed.
	CheckPassed struct {
		Attempt int64
		Check   string
		Took    time.Duration
	}
	// CheckFailed says that a check of the staged work failed, and has its output.
	CheckFailed struct {
		Attempt int64
		Check   string
		Took    time.Duration
		Output  string
	}
	// CommitMade names the commit that HEAD will point at.
	CommitMade struct {
		Attempt int64
		Commit  string
	}
	// TeamConsolidated says that HEAD has pointed at the commit.
	TeamConsolidated struct{ Attempt int64 }
	// ConsolidationAbandoned ends the attempt without a commit. Left lists the files that checks
	// made or changed, which a later attempt must not commit.
	ConsolidationAbandoned struct {
		Attempt int64
		Reason  string
		Left    []Fact
	}
)

func (e *ConsolidationBegan) fields(c *coder) {
	c.int("attempt", &e.Attempt)
	c.str("message", &e.Message)
	c.strs("include", &e.Include)
	c.strs("only", &e.Only)
	c.bool("noCommit", &e.NoCommit)
	c.bool("ended", &e.Ended)
	c.strs("without", &e.Without)
	c.bool("clean", &e.Clean)
	c.bool("changes", &e.Changes)
}

func (e *WorktreesMerged) fields(c *coder) {
	c.int("attempt", &e.Attempt)
	c.strs("members", &e.Members)
}

func (e *WorkStaged) fields(c *coder) {
	c.int("attempt", &e.Attempt)
	c.str("parent", &e.Parent)
	c.str("tree", &e.Tree)
	c.str("before", &e.Before)
	objects(c, "branches", &e.Branches)
	c.int("files", &e.Files)
}

func (e *CheckPassed) fields(c *coder) {
	c.int("attempt", &e.Attempt)
	c.str("check", &e.Check)
	c.duration("millis", &e.Took, time.Millisecond)
}

func (e *CheckFailed) fields(c *coder) {
	c.int("attempt", &e.Attempt)
	c.str("check", &e.Check)
	c.duration("millis", &e.Took, time.Millisecond)
	c.str("output", &e.Output)
}

func (e *CommitMade) fields(c *coder) {
	c.int("attempt", &e.Attempt)
	c.str("commit", &e.Commit)
}

func (e *TeamConsolidated) fields(c *coder) { c.int("attempt", &e.Attempt) }

func (e *ConsolidationAbandoned) fields(c *coder) {
	c.int("attempt", &e.Attempt)
	c.str("reason", &e.Reason)
	objects(c, "left", &e.Left)
}

func (e *ConsolidationBegan) apply(s *State, r *Record) {
	s.team.Consolidation = Consolidation{Attempt: e.Attempt, Step: Began, By: r.Actor, Message: e.Message,
		Include: e.Include, Only: e.Only, NoCommit: e.NoCommit, Ended: e.Ended, Without: e.Without, Clean: e.Clean,
		Changes: e.Changes, FinishedAt: s.FinishedAt(), BeganAt: r.At}
}

// attempt returns the consolidation if it has that number and is open, else nil.
func (s *State) attempt(n int64) *Consolidation {
	if c := &s.team.Consolidation; c.Attempt == n && c.Open() {
		return c
	}
	return nil
}

func (e *WorktreesMerged) apply(s *State, _ *Record) {
	if c := s.attempt(e.Attempt); c != nil {
		c.Step, c.Members = Merged, e.Members
	}
}

func (e *WorkStaged) apply(s *State, _ *Record) {
	if c := s.attempt(e.Attempt); c != nil {
		if c.Step == Staged {
			c.Rounds++
		}
		c.Step, c.Parent, c.Tree, c.Before, c.Branches, c.Files, c.Passed = Staged, e.Parent, e.Tree, e.Before,
			e.Branches, e.Files, nil
	}
}

func (e *CheckPassed) apply(s *State, _ *Record) {
	if c := s.attempt(e.Attempt); c != nil {
		c.Passed = append(slices.Clip(c.Passed), e.Check)
	}
}

func (e *CheckFailed) apply(s *State, _ *Record) {
	if c := s.attempt(e.Attempt); c != nil {
		if c.Failed = e.Check; !c.Ended {
			s.reopenReport() // the lead's report was not the last one
		}
	}
}

func (e *CommitMade) apply(s *State, _ *Record) {
	if c := s.attempt(e.Attempt); c != nil {
		c.Step, c.Commit = Made, e.Commit
	}
}

func (e *TeamConsolidated) apply(s *State, r *Record) {
	if c := s.attempt(e.Attempt); c != nil {
		c.Step, c.EndedAt = Done, r.At
		s.broughtIn(c.Branches)
	}
}

func (e *ConsolidationAbandoned) apply(s *State, r *Record) {
	c := s.attempt(e.Attempt)
	if c == nil {
		return
	}
	if c.Step == Staged || c.Step == Made { // the checks ran, and whoever repairs their cause works for the team
		c.FinishedAt = 0
	}
	c.Step, c.Reason, c.EndedAt = Abandoned, e.Reason, r.At
	if len(e.Left) > 0 {
		s.team.Base.Dirty = overlaid(s.team.Base.Dirty, e.Left)
	}
}

// overlaid returns a new list with the facts of both. Where a path is in both, the second list
// wins.
func overlaid(old, more []Fact) []Fact {
	known := make(map[string]bool, len(more))
	for _, f := range more {
		known[f.Path] = true
	}
	var all []Fact
	for _, f := range old {
		if !known[f.Path] {
			all = append(all, f)
		}
	}
	return append(all, more...)
}
