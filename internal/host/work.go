package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cadre/internal/agent/prompts"
	"cadre/internal/git"
	"cadre/internal/git/worktree"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// ForgetLost makes git forget a worktree that was lost with the folder of its team, so that it can
// be made again. It returns what happened to the work, or "" if git has no such record.
func ForgetLost(ctx context.Context, procs *proc.Register, p worktree.Place) (words string, err error) {
	state, broken := worktree.Look(ctx, procs, p)
	if _, is := errors.AsType[*worktree.BrokenError](broken); !is || state == worktree.Whole {
		return "", nil
	}
	if _, err := os.Lstat(p.Dir); !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	saved, err := worktree.ForgetLost(ctx, procs, p)
	if err != nil {
		return "", err
	}
	words = fmt.Sprintf("the worktree %s was lost with the folder of its team, and is made again from the branch %s, "+
		"which has what was committed", p.Dir, p.Branch)
	if saved != "" {
		words += fmt.Sprintf(" and, as commit %.12s, what was staged", saved)
	}
	return words, nil
}

// workTime bounds the work for a member that has ended: a merge may wait for others, and a large
// repository takes time.
const workTime = 2 * time.Minute

const worktrees = "worktrees" // folder in the team's folder

// MergedDir returns the place of a team's merged worktree, in the team's folder.
func MergedDir(dir string) string { return filepath.Join(dir, "merged") }

// Place returns the worktree of a member that works in isolation. dir is the team's folder.
func Place(t team.Team, dir, member string) worktree.Place {
	return worktree.Place{Repo: t.Dir, Dir: filepath.Join(dir, worktrees, member),
		Branch: team.BranchOf(t.Name, member)}
}

// WorktreeHints returns what a person can do about an error of the worktree.
func WorktreeHints(t team.Team, p worktree.Place, err error) []team.Hint {
	broken, is := errors.AsType[*worktree.BrokenError](err)
	if !is {
		return nil
	}
	h := team.Hint{Team: t.Name, Dir: broken.Fix.Dir, Name: p.Dir}
	switch broken.Fix.Does {
	case worktree.RemoveRecord:
		h.Action = team.ActForgetWorktree
	case worktree.Reconnect:
		h.Action = team.ActRepairWorktree
	case worktree.Unlock:
		h.Action = team.ActUnlockWorktree
	case worktree.CheckOut:
		h.Action, h.Name = team.ActCheckOut, p.Branch
	case worktree.KeepCommit:
		h.Action, h.Name, h.From = team.ActKeepCommit, "", broken.Fix.ID
	case worktree.ListFiles:
		h.Action, h.Name, h.From = team.ActShowFile, "", broken.Fix.ID
	default:
		return nil
	}
	return []team.Hint{h}
}

func workOf(member, teamName string) string { return "Work of " + member + " in team " + teamName }

// leaveWork records the member's work in its worktree, and removes the worktree.
func (h *Host) leaveWork(m team.Member) {
	if m.Isolation != team.Worktree {
		return
	}
	h.settle(m.Name)
	if err := LeaveWork(context.Background(), h.Replica, h.Procs, filepath.Dir(h.Hosts), m.Name, h.Log); err != nil {
		h.Log(err.Error())
	}
}

// settle records what the member's completed tasks did, before its worktree is removed.
func (h *Host) settle(member string) {
	ctx, cancel := context.WithTimeout(context.Background(), workTime)
	defer cancel()
	if err := h.tracer.settle(ctx, member); err != nil {
		h.Log("the work of the tasks of " + member + " is not recorded: " + err.Error())
	}
}

// LeaveWork commits what a member whose session has ended left in its worktree, removes the
// worktree, and records the branch. The consolidation merges the branch. The lead is asked about
// unfinished work of a member that failed, and about work that the branch does not contain. If the
// worktree no longer exists, only the branch is examined. dir is the team's folder.
func LeaveWork(ctx context.Context, rep *replica.Replica, procs *proc.Register, dir, member string,
	log func(string)) error {
	ctx, cancel := context.WithTimeout(ctx, workTime)
	defer cancel()
	if err := RecordWork(ctx, rep, procs, dir, member, log); err != nil {
		return err
	}
	t := rep.Team()
	p := Place(t, dir, member)
	var m team.Member
	rep.View(func(s *team.State) { m, _ = s.Member(member) })
	defer func() {
		if err := publish(ctx, procs, t, member); err != nil {
			log(fmt.Sprintf("the work of %s is on this machine alone: %v", member, err))
		}
	}()
	record := func(body team.LeaveBranch) error {
		body.Member = member
		_, err := rep.Do(ctx, team.Command{Actor: team.User, Body: &body})
		if err != nil {
			return fmt.Errorf("not recorded that the work of %s is on %s: %w", member, p.Branch, err)
		}
		return nil
	}
	ask := prompts.Merge{Team: t.Name, Repo: t.Dir, Dir: p.Dir, Member: member, Branch: p.Branch}
	kept, err := worktree.Keep(ctx, procs, p, workOf(member, t.Name))
	if err != nil {
		log(fmt.Sprintf("the worktree of %s stays where it is: %v", member, err))
		tip, lost := worktree.Tip(ctx, procs, p.Repo, p.Branch)
		if tip == "" || lost != nil {
			return lost
		}
		ask.Trouble = fmt.Sprintf("cadre could not commit what %s left in %s: %v", member, p.Dir, err)
		return record(team.LeaveBranch{Commit: tip, Why: ask.String(), Once: true})
	}
	left := team.LeaveBranch{Commit: kept.Commit, Once: true}
	switch {
	case kept.Strayed != "":
		if left.Commit == "" { // HEAD has everything of the branch
			if left.Commit, err = worktree.Tip(ctx, procs, p.Repo, p.Branch); err != nil {
				return err
			}
		}
		ask.With = []prompts.Other{{Name: "the branch " + kept.Strayed, Ref: kept.Strayed}}
		left.Why = ask.String()
	case kept.Commit != "" && m.Status == team.Failed:
		ask.Trouble = member + " failed before it was done."
		left.Why = ask.String()
	}
	return record(left)
}

// Worktree reports whether the member has a worktree. dir is the team's folder.
func Worktree(dir, member string) bool {
	_, err := os.Stat(filepath.Join(dir, worktrees, member))
	return err == nil
}

// keepWork commits the work in a member's worktree to its branch, if the member ended without being
// asked to.
func (h *Host) keepWork(m team.Member) {
	if m.Isolation != team.Worktree {
		return
	}
	h.settle(m.Name)
	var over, running bool
	h.Replica.View(func(s *team.State) {
		over = ended(s)
		now, _ := s.Member(m.Name)
		running = now.Status.Running()
	})
	switch {
	case running:
	case !over:
		h.leaveWork(m)
	default: // recording is over
		ctx, cancel := context.WithTimeout(context.Background(), workTime)
		defer cancel()
		t := h.Replica.Team()
		p := Place(t, filepath.Dir(h.Hosts), m.Name)
		kept, err := worktree.Leave(ctx, h.Procs, p.Dir, p.Branch, workOf(m.Name, t.Name))
		if err != nil {
			h.Log("the worktree of " + m.Name + " stays where it is: " + err.Error())
		} else if kept != "" {
			h.Log("what " + m.Name + " did is on the branch " + kept)
		}
		if err := publish(ctx, h.Procs, t, m.Name); err != nil {
			h.Log("the work of " + m.Name + " is on this machine alone: " + err.Error())
		}
	}
}

func notKept(p worktree.Place, member string, err error) error {
	if locked := (*git.LockedError)(nil); errors.As(err, &locked) {
		return fmt.Errorf("the work of %s cannot be committed to its branch: %w", member, err)
	}
	return fmt.Errorf("the work of %s cannot be committed to its branch: %w; move %s elsewhere, or remove it, "+
		"and try again", member, err, p.Dir)
}

// isolates says why no member can have a worktree of its own.
func (h *Host) isolates(ctx context.Context) error {
	return worktree.Able(ctx, h.Procs, h.Replica.Team().Dir)
}

// Waiting returns the branches with work of members that is not in HEAD. It lists separately those
// that the lead decided to leave out.
func Waiting(ctx context.Context, rep *replica.Replica, procs *proc.Register) (all, out []team.Branch, err error) {
	t := rep.Team()
	var members []team.Member
	rep.View(func(s *team.State) { members = s.Members() })
	for _, m := range members {
		if m.Isolation != team.Worktree {
			continue
		}
		b := team.Branch{Member: m.Name, Name: team.BranchOf(t.Name, m.Name)}
		if b.Commit, err = worktree.Ahead(ctx, procs, t.Dir, b.Name); err != nil {
			return nil, nil, err
		}
		switch {
		case b.Commit == "":
		case m.Left.Out && m.Left.Commit == b.Commit:
			out = append(out, b)
		default:
			all = append(all, b)
		}
	}
	return all, out, nil
}

// KeepWork commits the work in the team's worktrees to the members' branches, and removes the
// merged worktree. It is for a team that no process runs any more, before its folder is removed.
// project is the directory that the team worked in, "" if unknown. A worktree whose repository
// cannot be reached stays, and is logged.
func KeepWork(ctx context.Context, dir, project string, log func(string)) error {
	entries, err := os.ReadDir(filepath.Join(dir, worktrees))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	procs, err := proc.Open("")
	if err != nil {
		return err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	if err := worktree.Hide(ctx, procs, project, MergedDir(dir)); err != nil {
		return err
	}
	name := layout.NameOf(filepath.Base(dir)) // a folder has the name of its team, or the id
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") { // its removal had started, and its content is kept
			continue
		}
		path := filepath.Join(dir, worktrees, e.Name())
		branch := team.BranchOf(name, e.Name())
		if p := (worktree.Place{Repo: project, Dir: path, Branch: branch}); project != "" {
			if state, err := worktree.Look(ctx, procs, p); err == nil && state == worktree.Moved {
				if err := worktree.Repair(ctx, procs, p); err != nil {
					log(err.Error())
				}
			}
		}
		kept, err := worktree.Leave(ctx, procs, path, branch, workOf(e.Name(), name))
		if broken := (*worktree.BrokenError)(nil); errors.As(err, &broken) {
			log(fmt.Sprintf("the work of %s cannot be committed to its branch: %v", e.Name(), err))
			continue
		}
		if err != nil {
			return notKept(worktree.Place{Dir: path}, e.Name(), err)
		}
		if kept != "" {
			log("what " + e.Name() + " did is on the branch " + kept)
		}
	}
	return nil
}
