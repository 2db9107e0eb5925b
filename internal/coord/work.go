package coord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"cadre/internal/briefing"
	"cadre/internal/desk"
	"cadre/internal/git"
	"cadre/internal/proc"
	"cadre/internal/team"
	"cadre/internal/worktree"
)

// workTime bounds what is done for the work of a member that has ended: a merge may wait for others, and for a large repository.
const workTime = 2 * time.Minute

const worktrees = "worktrees" // folder in a team's

// place is the worktree of a member that works in isolation.
func (h *Host) place(t team.Team, member string) worktree.Place {
	return place(t, filepath.Dir(h.Hosts), member)
}

func place(t team.Team, dir, member string) worktree.Place {
	return worktree.Place{Repo: t.Dir, Dir: filepath.Join(dir, worktrees, member), Branch: briefing.Branch(t.Name, member)}
}

func workOf(member, teamName string) string { return "Work of " + member + " in team " + teamName }

// bringHome merges what the member did in its worktree into the team's directory, or leaves it on its branch and tells the lead of it with a task.
func (h *Host) bringHome(m team.Member) {
	if m.Isolation != team.Worktree {
		return
	}
	err := BringHome(context.Background(), h.Desk, h.Procs, filepath.Dir(h.Hosts), m.Name, h.Log)
	if locked := (*git.LockedError)(nil); errors.As(err, &locked) { // nobody is there to be told but the lead
		t := h.Desk.Team()
		err = toMerge(context.Background(), h.Desk, h.Procs, h.place(t, m.Name), notMerged(t, h.place(t, m.Name), m.Name, err.Error()))
	}
	if err != nil {
		h.Log(err.Error())
	}
}

// BringHome does so for a member whose session is over, of the team whose folder dir is. Where there is no worktree it does nothing. While the team is
// consolidated, or is to be next, nothing is merged by itself: the work is left on the branch, for the consolidation. That of a member that
// failed is half a work: it is left on its branch, for the lead. A [git.LockedError] is the caller's to tell: nothing is wrong with the work.
func BringHome(ctx context.Context, d *desk.Desk, procs *proc.Register, dir, member string, log func(string)) error {
	ctx, cancel := context.WithTimeout(ctx, workTime)
	defer cancel()
	t := d.Team()
	p := place(t, dir, member)
	var failed, checked bool
	d.View(func(s *team.State) {
		m, _ := s.Member(member)
		failed, checked = m.Status == team.Failed, consolidates(s)
	})
	if failed {
		kept, err := worktree.Leave(ctx, procs, p.Dir, p.Branch, workOf(member, t.Name))
		if err != nil {
			return notKept(p, member, err)
		}
		if kept == "" {
			return nil
		}
		return toMerge(ctx, d, procs, p, notDone(t, p, member))
	}
	finish := worktree.Finish
	if checked { // it comes in with the one commit of the team, after the checks
		finish = worktree.Keep
	}
	result, err := finish(ctx, procs, p, workOf(member, t.Name))
	if locked := (*git.LockedError)(nil); errors.As(err, &locked) {
		return err
	}
	if err != nil {
		log("the worktree of " + member + " stays where it is: " + err.Error())
		result = worktree.Result{Left: err.Error()}
	}
	if result.Left == "" {
		return nil
	}
	return toMerge(ctx, d, procs, p, notMerged(t, p, member, result.Left))
}

// consolidates reports whether the team is consolidated, or is to be next: it is marked for that, or it was run from a file with checks and all of its tasks are done. A
// lead that is an agent looks at the work before it reports, and so it is merged for that.
func consolidates(s *team.State) bool {
	t := s.Team()
	lead, _ := s.Member(t.Lead)
	runs := t.Origin != "" && len(t.Checks) > 0 && lead.Agent == team.External
	return t.Status == team.TeamConsolidating || runs && s.Count(team.Pending)+s.Count(team.InProgress) == 0
}

func notMerged(t team.Team, p worktree.Place, member, why string) string {
	return fmt.Sprintf("The work of %s is on the branch %s and could not be merged into %s:\n%s", member, p.Branch, t.Dir, why)
}

func notDone(t team.Team, p worktree.Place, member string) string {
	return fmt.Sprintf("%s has ended before it was done. What it did is on the branch %s; it is not merged into %s.", member, p.Branch, t.Dir)
}

// Worktree reports whether the member of the team whose folder dir is has a worktree.
func Worktree(dir, member string) bool {
	_, err := os.Stat(filepath.Join(dir, worktrees, member))
	return err == nil
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
		if err := toMerge(ctx, h.Desk, h.Procs, p, notDone(t, p, m.Name)); err != nil {
			h.Log(err.Error())
		}
	case kept != "":
		h.Log("what " + m.Name + " did is on the branch " + kept)
	}
}

func notKept(p worktree.Place, member string, err error) error {
	if locked := (*git.LockedError)(nil); errors.As(err, &locked) {
		return fmt.Errorf("what %s did cannot be put on its branch: %w", member, err)
	}
	return fmt.Errorf("what %s did cannot be put on its branch: %w; move %s elsewhere, or remove it, and try again", member, err, p.Dir)
}

// isolates says why no member can have a worktree of its own.
func (h *Host) isolates(ctx context.Context) error {
	return worktree.Able(ctx, h.Procs, h.Desk.Team().Dir)
}

// toMerge puts a branch that was left on the list, for the lead.
func toMerge(ctx context.Context, d *desk.Desk, procs *proc.Register, p worktree.Place, why string) error {
	t := d.Team()
	subject, listed := mergeSubject(p.Branch), false
	d.View(func(s *team.State) {
		for task := range s.Tasks() { // by one that was killed then
			listed = listed || task.Subject == subject && (task.Status == team.Pending || task.Status == team.InProgress)
		}
	})
	if listed {
		return nil
	}
	body := &team.CreateTask{Subject: subject, Owner: t.Lead, Priority: "high", Description: why}
	if tip, err := worktree.Tip(ctx, procs, p.Repo, p.Branch); tip != "" && err == nil {
		body.Metadata = map[string]json.RawMessage{mergeKey: json.RawMessage(strconv.Quote(tip))}
	}
	_, err := d.Do(ctx, team.Command{Actor: team.User, Body: body})
	if err != nil {
		return fmt.Errorf("not on the task list, that %s is to be merged: %w", p.Branch, err)
	}
	return nil
}

// mergeKey is the metadata of a task to merge a branch that names the commit which it was at then.
const mergeKey = "commit"

func mergeSubject(branch string) string { return "Merge the branch " + branch }

// ToMerge puts the branch of a member on the list, for the lead, who is told why it was not merged.
func ToMerge(ctx context.Context, d *desk.Desk, procs *proc.Register, dir, member, why string) error {
	t := d.Team()
	p := place(t, dir, member)
	return toMerge(ctx, d, procs, p, notMerged(t, p, member, why))
}

// Waiting returns the branches with work of members that is not in HEAD, but for those which the lead was told to merge as they are.
func Waiting(ctx context.Context, d *desk.Desk, procs *proc.Register) (all []team.Branch, err error) {
	t := d.Team()
	var members []team.Member
	told := map[string]bool{}
	d.View(func(s *team.State) {
		members = s.Members()
		for task := range s.Tasks() {
			var commit string
			json.Unmarshal(task.Metadata[mergeKey], &commit) // a task of an older cadre has none, and is of any commit
			told[task.Subject+" "+commit] = true
		}
	})
	for _, m := range members {
		if m.Isolation != team.Worktree {
			continue
		}
		b := team.Branch{Member: m.Name, Name: briefing.Branch(t.Name, m.Name)}
		if b.Commit, err = worktree.Ahead(ctx, procs, t.Dir, b.Name); err != nil {
			return nil, err
		}
		if subject := mergeSubject(b.Name) + " "; b.Commit != "" && !told[subject] && !told[subject+b.Commit] {
			all = append(all, b)
		}
	}
	return all, nil
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
		if strings.HasPrefix(e.Name(), ".") { // it was being removed, and what was in it is kept
			continue
		}
		path := filepath.Join(dir, worktrees, e.Name())
		branch := briefing.Branch(filepath.Base(dir), e.Name())
		kept, err := worktree.Leave(ctx, procs, path, branch, workOf(e.Name(), filepath.Base(dir)))
		if err != nil {
			return notKept(worktree.Place{Dir: path}, e.Name(), err)
		}
		if kept != "" {
			log("what " + e.Name() + " did is on the branch " + kept)
		}
	}
	return nil
}
