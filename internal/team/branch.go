package team

import (
	"encoding/json"
	"slices"
	"strings"
)

// Left is the work of a member on its branch that HEAD did not contain when it was last examined.
// Git keeps the commit With for as long as the branch that it was merged into.
type Left struct {
	Branch string // name of the branch
	Commit string // last commit on it
	Task   string // id of the task that asks the lead to merge the branch; "" if it waits for the consolidation
	With   string // commit of the changes in the team's directory that conflict with the branch; "" for none
	Out    bool   // the lead deleted that task: the branch is left out until it gets another commit
}

// BranchOf returns the branch of a member that works in a worktree. It does not lie below
// cadre/TEAM, because git allows no branch below another one.
func BranchOf(teamName, member string) string { return "cadre/" + teamName + "@" + member }

// Unmerged returns the members with recorded work on a branch that is not merged and not left out.
// Git may know better: the branch may have been merged since.
func (s *State) Unmerged() []Member {
	var all []Member
	for i := range s.members {
		if m := &s.members[i]; m.Left.Commit != "" && !m.Left.Out {
			all = append(all, *m)
		}
	}
	return all
}

// asks returns the member whose branch the task asks to merge, or nil.
func (s *State) asks(task string) *Member {
	for i := range s.members {
		if m := &s.members[i]; task != "" && m.Left.Task == task {
			return m
		}
	}
	return nil
}

// AsksToMerge reports whether the task asks the lead to merge the branch of a member.
func (s *State) AsksToMerge(task string) bool { return s.asks(task) != nil }

const mergeSubject = "Merge the branch "

// ThisTask stands in [LeaveBranch.Why] for the id of the task that asks, because that id is known
// only when the task is created. No text of a user or an agent contains it.
const ThisTask = "\x00"

// LeaveBranch records that a branch has work of a member that HEAD does not have. With Why the lead
// gets a task to merge it, unless one is open for the branch already. A Commit of "" says that
// nothing is left to merge.
type LeaveBranch struct {
	Member, Commit, With string
	Why                  string
	// Once prevents a second task for a commit that the lead was asked to merge before, whatever
	// became of the first task.
	Once bool
	// Blocks lists tasks that wait until the lead has merged the branch. They do not wait where no
	// such task is open.
	Blocks []string
}

func (b *LeaveBranch) decide(d *decision) error {
	if err := d.leads("record what is to be merged"); err != nil {
		return err
	}
	m, err := d.known(b.Member)
	if err != nil {
		return err
	}
	if m.Isolation != Worktree {
		return refuse(Invalid, "%s has no branch: it works in the directory of team %s", m.Name, d.team.Name)
	}
	if err := limit(text{"id of the commit", b.Commit, MaxSubject}, text{"id of the commit", b.With,
		MaxSubject}); err != nil {
		return err
	}
	old := m.Left
	if b.Commit == "" {
		if old.Commit != "" {
			d.emit(&BranchLeft{Member: m.Name, Branch: old.Branch})
		}
		return nil
	}
	open := func(task string) bool {
		t := d.task(task)
		return t != nil && t.Status.open()
	}
	left := &BranchLeft{Member: m.Name, Branch: BranchOf(d.team.Name, m.Name), Commit: b.Commit, Task: old.Task,
		With: old.With}
	if old.Commit != b.Commit && !open(old.Task) {
		left.Task = ""
	}
	if b.Why != "" && !open(left.Task) && !(b.Once && left.Task != "") {
		ask := &CreateTask{Subject: mergeSubject + left.Branch, Owner: d.team.Lead, Priority: "high",
			Description: strings.ReplaceAll(b.Why, ThisTask, d.nextTask())}
		left.Task, left.With = d.nextTask(), b.With
		if err := ask.decide(d); err != nil {
			return err
		}
	}
	if *left != (BranchLeft{Member: m.Name, Branch: old.Branch, Commit: old.Commit, Task: old.Task, With: old.With}) {
		d.emit(left)
	}
	if left.Task != "" {
		d.waitsFor(left.Task, b.Blocks)
	}
	return nil
}

// waitsFor makes the tasks wait for that one, unless it is done.
func (d *decision) waitsFor(task string, waiters []string) {
	if t := d.task(task); t != nil && !t.Status.open() { // a task that this command creates is open
		return
	}
	for _, id := range waiters {
		if w := d.task(id); w != nil && w.Status == Pending && w.Submission == nil && id != task &&
			!slices.Contains(w.BlockedBy, task) {
			d.emit(&TaskUpdated{Task: id, AddBlockedBy: []string{task}})
		}
	}
}

// BranchLeft records which work of the member is on its branch and in no commit of HEAD. If Commit
// is empty, HEAD has all of it. Task is the task that asks the lead to merge it.
type BranchLeft struct{ Member, Branch, Commit, Task, With string }

// Kind returns the event's name in the journal.
func (*BranchLeft) Kind() string { return "branch_left" }

func (e *BranchLeft) fields(c *coder) {
	c.str("member", &e.Member)
	c.str("branch", &e.Branch)
	c.str("commit", &e.Commit)
	c.str("task", &e.Task)
	c.str("with", &e.With)
}

func (e *BranchLeft) apply(s *State, _ *Record) {
	m := s.member(e.Member)
	if m == nil {
		return
	}
	out := m.Left.Out && m.Left.Commit == e.Commit && m.Left.Task == e.Task
	m.Left = Left{Branch: e.Branch, Commit: e.Commit, Task: e.Task, With: e.With, Out: out}
	if e.Commit == "" {
		m.Left = Left{}
	}
}

func (l *Left) fields(c *coder) {
	c.str("branch", &l.Branch)
	c.str("commit", &l.Commit)
	c.str("task", &l.Task)
	c.str("with", &l.With)
	c.bool("out", &l.Out)
}

// leftOut records that the lead or the user deleted the task that asked to merge a branch. A
// deletion by another member does not leave the branch out.
func (s *State) leftOut(task string, r *Record) {
	if m := s.asks(task); m != nil && (r.Actor == User || r.Actor == s.team.Lead) {
		m.Left.Out = true
	}
}

// broughtIn forgets the branches that a consolidation merged.
func (s *State) broughtIn(branches []Branch) {
	for _, b := range branches {
		if m := s.member(b.Member); m != nil && m.Left.Commit == b.Commit {
			m.Left = Left{}
		}
	}
}

// leftByTask reads the record of an older version of cadre: the user's own task for the lead, with
// the commit in its metadata. A task that a member created does not count, and later changes of its
// subject or metadata do not count.
func (s *State) leftByTask(t *Task, r *Record) {
	member, ok := strings.CutPrefix(t.Subject, mergeSubject+BranchOf(s.team.Name, ""))
	m := s.member(member)
	if !ok || m == nil || m.Isolation != Worktree || r.Actor != User || t.Owner != s.team.Lead {
		return
	}
	var commit string
	if json.Unmarshal(t.Metadata["commit"], &commit) == nil && commit != "" && len(commit) <= MaxSubject {
		m.Left = Left{Branch: BranchOf(s.team.Name, m.Name), Commit: commit, Task: t.ID}
	}
}
