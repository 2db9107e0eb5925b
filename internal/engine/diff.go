package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"cadre/internal/engine/upkeep"
	"cadre/internal/git/worktree"
	"cadre/internal/host"
	"cadre/internal/render/redact"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Changes is what was changed for a task, for a person who looks at it.
type Changes struct {
	Member string
	Task   string   // its id
	Dir    string   // the worktree that was compared as it is now; "" for recorded or saved work
	Patch  string   // likely secrets are replaced
	Left   []string // files that are not in the patch, some with the reason
}

// mostChanges bounds the patch of [Changes], in bytes.
const mostChanges = 512 << 10

// Changes returns the changes for the task: those in the worktree of its owner as it is now, else
// those that were recorded or saved. It refuses a task that has neither.
func (t *Team) Changes(ctx context.Context, ref string) (c Changes, err error) {
	var task team.Task
	var owner team.Member
	t.View(func(s *team.State) {
		task, err = s.Find(ref)
		owner, _ = s.Member(task.Owner)
	})
	if err != nil {
		return c, err
	}
	c = Changes{Task: task.ID, Member: task.Owner}
	e, dir, err := t.present(ctx, task, owner)
	if err != nil {
		return c, err
	}
	if c.Dir = dir; dir == "" {
		if e.Patch, err = upkeep.Patch(ctx, t.Upkeep(team.User), task); errors.Is(err, upkeep.ErrNoWork) {
			_, err = t.Patch(ctx, ref) // its refusal says where the owner works
		}
		if err != nil {
			return c, err
		}
	}
	text, cut := e.Brief(mostChanges)
	if c.Left = e.Left; len(cut) > 0 {
		const few = 20
		for _, path := range cut[:min(len(cut), few)] {
			c.Left = append(c.Left, path+" (binary, or too long)")
		}
		if more := len(cut) - few; more > 0 {
			c.Left = append(c.Left, fmt.Sprintf("and %d more", more))
		}
	}
	c.Patch = redact.Text(text)
	return c, nil
}

// present compares the worktree of the task's owner with the commit that the task started from. dir
// is "" if the task is not in progress, or its owner has no worktree: in a directory of several it
// is not known whose a change is.
func (t *Team) present(ctx context.Context, task team.Task, owner team.Member) (e worktree.Edits, dir string,
	err error) {
	if task.Status != team.InProgress || owner.Isolation != team.Worktree || !t.OnDisk() {
		return e, "", nil
	}
	place := host.Place(t.Team(), t.Dir, owner.Name)
	if _, err := os.Stat(place.Dir); err != nil {
		return e, "", nil // it is on another machine, or does not exist yet
	}
	since := "HEAD"
	if w := task.Work; w != nil && w.Base != "" && !strings.HasPrefix(w.Base, "-") {
		since = w.Base
	}
	procs, err := proc.Open("")
	if err != nil {
		return e, "", err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	e, err = worktree.DiffSince(ctx, procs, place.Dir, since)
	return e, place.Dir, err
}
