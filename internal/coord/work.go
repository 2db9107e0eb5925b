package coord

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"cadre/internal/briefing"
	"cadre/internal/proc"
	"cadre/internal/team"
	"cadre/internal/worktree"
)

// workTime bounds what is done for the work of a member that has ended: a merge may wait for others, and for a large repository.
const workTime = 2 * time.Minute

const worktrees = "worktrees" // folder in a team's

// place is the worktree of a member that works in isolation.
func (h *Host) place(t team.Team, member string) worktree.Place {
	return worktree.Place{Repo: t.Dir, Dir: filepath.Join(filepath.Dir(h.Hosts), worktrees, member), Branch: briefing.Branch(t.Name, member)}
}

func workOf(member, teamName string) string { return "Work of " + member + " in team " + teamName }

// bringHome merges what the member did in its worktree into the team's directory, or leaves it on its branch and tells the lead of it with a task.
func (h *Host) bringHome(m team.Member) {
	if m.Isolation != team.Worktree {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), workTime)
	defer cancel()
	t := h.Desk.Team()
	p := h.place(t, m.Name)
	result, err := worktree.Finish(ctx, h.Procs, p, workOf(m.Name, t.Name))
	if err != nil {
		h.Log("the worktree of " + m.Name + " stays where it is: " + err.Error())
		result = worktree.Result{Left: err.Error()}
	}
	if result.Left != "" {
		h.toMerge(ctx, p, fmt.Sprintf("The work of %s is on the branch %s and could not be merged into %s:\n%s", m.Name, p.Branch, t.Dir, result.Left))
	}
}

// keepWork leaves what a member did in its worktree on its branch, if it has ended without being asked to. Half a work is not merged by itself.
func (h *Host) keepWork(m team.Member) {
	if m.Isolation != team.Worktree {
		return
	}
	var over, running bool
	h.Desk.View(func(s *team.State) {
		over = !s.Exists()
		now, _ := s.Member(m.Name)
		running = now.Status.Running()
	})
	if running {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), workTime)
	defer cancel()
	t := h.Desk.Team()
	p := h.place(t, m.Name)
	kept, err := worktree.Leave(ctx, h.Procs, p.Dir, p.Branch, workOf(m.Name, t.Name))
	switch {
	case err != nil:
		h.Log("the worktree of " + m.Name + " stays where it is: " + err.Error())
	case kept != "" && !over:
		h.toMerge(ctx, p, fmt.Sprintf("%s has ended before it was done. What it did is on the branch %s; it is not merged into %s.", m.Name, p.Branch, t.Dir))
	case kept != "":
		h.Log("what " + m.Name + " did is on the branch " + kept)
	}
}

// isolates says why no member can have a worktree of its own.
func (h *Host) isolates(ctx context.Context) error {
	return worktree.Able(ctx, h.Procs, h.Desk.Team().Dir)
}

// toMerge puts a branch that was left on the list, for the lead.
func (h *Host) toMerge(ctx context.Context, p worktree.Place, why string) {
	t := h.Desk.Team()
	_, err := h.Desk.Do(ctx, team.Command{Actor: team.User, Body: &team.CreateTask{Subject: "Merge the branch " + p.Branch, Owner: t.Lead, Priority: "high", Description: why}})
	if err != nil {
		h.Log("not on the task list, that " + p.Branch + " is to be merged: " + err.Error())
	}
}

// KeepWork leaves what members did in the worktrees of a team on their branches. It is for a team that nobody runs any more, before its folder goes away.
func KeepWork(ctx context.Context, dir string, log func(string)) error {
	entries, err := os.ReadDir(filepath.Join(dir, worktrees))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	procs, err := proc.Open("")
	if err != nil {
		return err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	for _, e := range entries {
		path := filepath.Join(dir, worktrees, e.Name())
		branch := briefing.Branch(filepath.Base(dir), e.Name())
		kept, err := worktree.Leave(ctx, procs, path, branch, workOf(e.Name(), filepath.Base(dir)))
		if err != nil {
			return fmt.Errorf("what %s did cannot be put on its branch: %w; move %s elsewhere, or remove it, and try again", e.Name(), err, path)
		}
		if kept != "" {
			log("what " + e.Name() + " did is on the branch " + kept)
		}
	}
	return nil
}
