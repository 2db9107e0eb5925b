package team

import (
	"path"
	"slices"
	"strings"
)

// Check is a command that has to pass before the team's work is committed.
type Check struct {
	Name    string // unique in the team
	Command string // run by /bin/sh in the team's directory
	Seconds int64  // timeout; 0 for the default
}

// MaxChecks is how many checks a team may have.
const MaxChecks = 100

// MaxBase is how many files that were not committed a [Base] may list.
const MaxBase = 10_000

// MaxRounds is how often the checks of one consolidation run because they changed files that are
// committed with the work.
const MaxRounds = 3

// ByChecks is the name of a [Fact] about a file that checks made or changed. It is nobody's work,
// and not the person's.
const ByChecks = "checks"

// Base is what the project was when the team was created. It tells the team's work from what was
// there before.
type Base struct {
	Top     string // of the work tree; "" where there was no repository, or nobody looked
	Commit  string // that HEAD named; "" before the first one
	Dirty   []Fact // what differed from it, by its path from Top
	Unknown string // why nobody knows what differed
}

func (b *Base) none() bool { return b.Top == "" && b.Unknown == "" }

// Step is how far a consolidation has come.
type Step string

// The steps of a consolidation, in order, and its ends.
const (
	Began     Step = "began"
	Merged    Step = "merged"    // what members did in worktrees of their own is on their branches
	Staged    Step = "staged"    // the tree to be committed is made, and nothing refers to it
	Made      Step = "made"      // all checks passed; the commit is made, and HEAD may name it
	Done      Step = "done"      // HEAD named it, and the team is complete
	Abandoned Step = "abandoned" // nothing was committed
)

// Consolidation is the team's last step: its work is checked and committed. Of several attempts it
// is the last one.
type Consolidation struct {
	Attempt int64 // counts them
	Step    Step
	By      string
	Message string // of the commit; "" for one that is made from the tasks
	// paths from the top of the work tree that are committed although they were changed before the
	// team was there
	Include []string
	// paths from the top of the work tree that are committed, and nothing else of it; none for all
	// that is the team's
	Only     []string
	NoCommit bool     // the checks are all there is to it
	Ended    bool     // the team was complete before, without a record
	Clean    bool     // the checks run in a clean checkout of what is to be committed
	Changes  bool     // files that the checks change are committed, too, and the checks run again
	Rounds   int64    // how often that happened
	Without  []string // tasks whose missing work the team is completed without
	Members  []string // whose worktrees were brought home
	Parent   string   // that HEAD named when the tree was made
	Tree     string   // "" when there is nothing to commit
	// tree of what is the team's in the work tree, without what comes in from the branches; ""
	// where nothing does
	Before   string
	Branches []Branch // that come in with the commit
	Files    int64    // that differ between parent and tree
	Passed   []string // checks
	Failed   string   // the check that did not
	Commit   string
	Reason   string // why it was abandoned
	BeganAt  Time
	EndedAt  Time
}

// Branch is what a member did in a worktree of its own.
type Branch struct{ Member, Name, Commit string }

// Open reports whether the attempt has not come to an end.
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
		case strings.TrimSpace(c.Name) == "" || strings.TrimSpace(c.Command) == "" || c.Seconds < 0:
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
			return refuse(Invalid, "%q is no path in the work tree", brief(f.Path))
		}
	}
	return limit(text{"top of the work tree", b.Top, MaxSubject}, text{"commit", b.Commit, MaxSubject},
		text{"reason", b.Unknown, MaxSubject})
}

// below reports whether it is the plain path of a file below some folder.
func below(p string) bool {
	return p != "" && p != "." && path.Clean(p) == p && p[0] != '/' && p != ".." && !strings.HasPrefix(p, "../")
}

func (c *Check) fields(f *coder) {
	f.str("name", &c.Name)
	f.str("command", &c.Command)
	f.int("seconds", &c.Seconds)
}

func (b *Base) fields(c *coder) {
	c.str("top", &b.Top)
	c.str("commit", &b.Commit)
	if c.view { // thousands of paths are for nobody to read
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
	c.str("failed", &n.Failed)
	c.str("commit", &n.Commit)
	c.str("reason", &n.Reason)
	c.int("beganAt", (*int64)(&n.BeganAt))
	c.int("endedAt", (*int64)(&n.EndedAt))
}

// The events of a consolidation; each names the attempt that it belongs to.
type (
	// ConsolidationBegan says that the team's work is to be checked and committed.
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
	// WorktreesMerged says that the work of these members is out of their worktrees and on their
	// branches.
	WorktreesMerged struct {
		Attempt int64
		Members []string
	}
	// WorkStaged says which tree is to be committed on which commit, what of it comes from
	// branches, and how many files differ. From here on the work tree may hold the branches' part
	// of it.
	WorkStaged struct {
		Attempt      int64
		Parent, Tree string
		Before       string
		Branches     []Branch
		Files        int64
	}
	// CheckPassed and CheckFailed say how a check of the staged work ended.
	CheckPassed struct {
		Attempt int64
		Check   string
		Millis  int64
	}
	CheckFailed struct {
		Attempt int64
		Check   string
		Millis  int64
		Output  string
	}
	// CommitMade says which commit HEAD is to name.
	CommitMade struct {
		Attempt int64
		Commit  string
	}
	// TeamConsolidated says that HEAD named it.
	TeamConsolidated struct{ Attempt int64 }
	// ConsolidationAbandoned ends the attempt without a commit. Left is what is nobody's work, and
	// not to be committed by a later one.
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
	c.int("millis", &e.Millis)
}

func (e *CheckFailed) fields(c *coder) {
	c.int("attempt", &e.Attempt)
	c.str("check", &e.Check)
	c.int("millis", &e.Millis)
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
		Changes: e.Changes, BeganAt: r.At}
}

// attempt is the consolidation if it is that attempt, and open.
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
			s.begun() // what the lead said was not the end
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
	c.Step, c.Reason, c.EndedAt = Abandoned, e.Reason, r.At
	if len(e.Left) > 0 {
		s.team.Base.Dirty = overlaid(s.team.Base.Dirty, e.Left)
	}
}

// overlaid is a new list with the facts of both, those of the second where a path is in both.
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
