package inspect

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"cadre/internal/git/checkout"
	"cadre/internal/git/worktree"
	"cadre/internal/host"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Missing is something that a team needs and that is not in its place.
type Missing struct {
	What   string      `json:"what"`             // directory, repository or worktree
	Member string      `json:"member,omitempty"` // whose worktree it is
	Path   string      `json:"path"`             // where it should be
	Why    string      `json:"why"`              // what is wrong
	Try    string      `json:"try,omitempty"`    // what to do, for people
	Help   []team.Hint `json:"hints,omitempty"`  // further actions that would help
	// it was found in its new place, and is linked again when the team is resumed
	Moved bool `json:"moved,omitempty"`
}

func (m Missing) String() string {
	whose := ""
	if m.Member != "" {
		whose = "the worktree of " + m.Member + ": "
	}
	return strings.TrimRight(whose+m.Path+" "+m.Why+". "+m.Try, " ")
}

// worktreeMissing is the value of [Missing].What for a worktree; those of a directory are
// elsewhere.
const worktreeMissing = "worktree"

// Place checks that the directory, the repository and the worktrees of the team are where they
// were. dir is the team's folder. It runs git a few times, and once more per worktree;
// [checkout.Glance] sees less and runs nothing.
func Place(ctx context.Context, t team.Team, members []team.Member, dir string) ([]Missing, error) {
	procs, err := proc.Open("")
	if err != nil {
		return nil, err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	if err := checkout.Check(ctx, procs, t); err != nil {
		missing, ok := errors.AsType[*checkout.MissingError](err)
		if !ok {
			return nil, err
		}
		return []Missing{{What: missing.What, Path: missing.Path, Why: missing.Why, Try: missing.Try,
			Help: missing.Help}}, nil
	}
	return worktrees(ctx, procs, t, members, dir)
}

// worktrees returns missing worktrees of members that will continue in them.
func worktrees(ctx context.Context, procs *proc.Register, t team.Team, members []team.Member,
	dir string) (all []Missing, err error) {
	for _, m := range members {
		if m.Isolation != team.Worktree || len(m.RunsOn) > 0 || !m.Status.Running() && !host.Worktree(dir, m.Name) {
			continue
		}
		p := host.Place(t, dir, m.Name)
		state, err := worktree.Look(ctx, procs, p)
		broken, ok := errors.AsType[*worktree.BrokenError](err)
		switch {
		case ok && m.Status.Running():
			all = append(all, Missing{What: worktreeMissing, Member: m.Name, Path: broken.Dir, Why: broken.Why,
				Try: broken.Try, Help: host.WorktreeHints(t, p, broken)})
		case ok: // the member has ended: the step that merges its work reports this
		case err != nil:
			return nil, err
		case state == worktree.Moved:
			all = append(all, Missing{What: worktreeMissing, Member: m.Name, Path: p.Dir,
				Why: "has moved, or its repository has", Moved: true})
		}
	}
	return all, nil
}

// InPlace refuses a team if something is missing that only a person can bring back.
func InPlace(t team.Team, missing []Missing) error {
	var all []string
	var help []team.Hint
	for _, m := range missing {
		if !m.Moved {
			all, help = append(all, m.String()), append(help, m.Help...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return team.Refuse(team.Invalid, "team %s cannot be resumed: %s", t.Name, strings.Join(all, "\n")).With(help...)
}

// Rejoin links worktrees that have moved, or whose repository has moved, with the repository again,
// and returns their members. After a kill it can be called again.
func Rejoin(ctx context.Context, t team.Team, missing []Missing, dir string) (whose []string, err error) {
	procs, err := proc.Open("")
	if err != nil {
		return nil, err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	for _, m := range missing {
		if !m.Moved {
			continue
		}
		p := host.Place(t, dir, m.Member)
		if err := worktree.Repair(ctx, procs, p); err != nil {
			refused := team.Refuse(team.Invalid, "the worktree of %s cannot be joined with its repository again: %v",
				m.Member, err)
			return whose, refused.With(host.WorktreeHints(t, p, err)...)
		}
		whose = append(whose, m.Member)
	}
	return whose, nil
}

// Move returns the command that records the new place of a team's project. It refuses a directory
// that is not the team's project, a project that has not moved, and a worktree that belongs to
// neither place. It also refuses if the work of a completed task is missing there: then the
// directory is another copy of the project.
func Move(ctx context.Context, rep *replica.Replica, dir, to string) (*team.MoveTeam, error) {
	var members []team.Member
	commits := map[string][]string{} // of completed tasks: what the tasks are called
	rep.View(func(s *team.State) {
		members = s.Members()
		for task := range s.Tasks() {
			if w := task.Work; task.Status == team.Completed && w != nil && w.Commit != "" {
				commits[w.Commit] = append(commits[w.Commit], task.Called())
			}
		}
	})
	t := rep.Team()
	procs, err := proc.Open("")
	if err != nil {
		return nil, err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	body := &team.MoveTeam{}
	if body.Dir, body.Top, err = checkout.Moved(ctx, procs, t, to); err != nil {
		return nil, err
	}
	t.Dir, t.Base.Top = body.Dir, body.Top
	if t.Base.Top == "" {
		return body, nil
	}
	missing, err := worktrees(ctx, procs, t, members, dir)
	if err == nil {
		err = InPlace(t, missing)
	}
	if err != nil {
		return nil, err
	}
	lacking, err := checkout.Lacking(ctx, procs, t.Dir, slices.Sorted(maps.Keys(commits)))
	if err == nil && len(lacking) > 0 {
		var tasks []string
		for _, commit := range lacking {
			tasks = append(tasks, commits[commit]...)
		}
		slices.SortFunc(tasks, team.CompareIDs)
		err = team.Refuse(team.Invalid, "%s is not the repository that team %s has worked in, but a copy of it: it "+
			"lacks the work of task %s. Name the directory that was moved", t.Base.Top, t.Name,
			strings.Join(tasks, ", ")).With(team.Hint{Action: team.ActContinueCopy, Team: t.Name})
	}
	return body, err
}
