package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"cadre/internal/consolidate"
	"cadre/internal/git"
	"cadre/internal/git/worktree"
	"cadre/internal/host"
	"cadre/internal/render/sanitize"
	"cadre/internal/sys/paths"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// checkTime bounds the check of a task without a timeout.
const checkTime = time.Hour

// checkTask runs the check of a task where the member works; see [replica.Checker]. It has the
// variables of the task that its command has. It acts as the user, as the checks before a commit
// do, and may give no power away, because it may run what members wrote.
func (t *Team) checkTask(ctx context.Context, of team.Team, task team.Task, member string) (string, error) {
	var m team.Member
	t.View(func(s *team.State) {
		if m, _ = s.Member(member); m.Name == "" {
			m, _ = s.Member(task.Owner)
		}
	})
	children := t.procs.Load()
	if children == nil {
		var err error
		if children, err = proc.Open(""); err != nil {
			return "", err
		}
		defer children.Close(context.WithoutCancel(ctx))
	}
	dir, leave, err := t.checkPlace(ctx, children, of, task, m)
	if err != nil {
		return "", err
	}
	defer leave()
	limit := checkTime
	if task.Timeout > 0 {
		limit = task.Timeout
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out := proc.Capture{Head: team.MaxOutput / 4, Tail: team.MaxOutput / 2}
	exit, err := children.Run(limited, proc.Cmd{Args: []string{"/bin/sh", "-c", task.Check.Run}, Dir: dir,
		Env: t.checkEnv(of, task, m), Stdout: &out, Stderr: &out, Member: m.Name, Task: task.ID, Trusted: true,
		Check: true}, proc.Ladder{})
	how := ""
	switch {
	case ctx.Err() != nil:
		return "", fmt.Errorf("the check of task %s was interrupted: %w", task.Called(), context.Cause(ctx))
	case limited.Err() != nil:
		how = fmt.Sprintf("It took longer than %s.", team.Span(limit))
	case err != nil && !errors.Is(err, proc.ErrLeft):
		return "", err
	case exit.Code != 0:
		how = strings.ToUpper(exit.String()[:1]) + exit.String()[1:] + "."
	}
	if how == "" {
		return "", nil
	}
	printed := strings.TrimSpace(sanitize.Strip(out.String()))
	if printed == "" {
		printed = "It printed nothing."
	}
	command, _, more := strings.Cut(strings.TrimSpace(task.Check.Run), "\n")
	if more {
		command += " …"
	}
	return fmt.Sprintf("$ %s\n%s\n%s", command, printed, how), nil
}

// checkPlace returns the directory in which the check of a task runs, and locks it until leave is
// called.
func (t *Team) checkPlace(ctx context.Context, procs *proc.Register, of team.Team, task team.Task, m team.Member) (
	dir string, leave func(), err error) {
	dir, leave = of.Dir, func() {}
	switch {
	case task.In == team.InMerged:
		var members []string
		t.View(func(s *team.State) {
			for _, b := range s.BuildsOn(task.ID) {
				members = append(members, b.CompletedBy)
			}
		})
		merged, release, err := consolidate.Hold(ctx, t.Consolidation(), slices.Concat([]string{}, members))
		if err != nil {
			return "", nil, err
		}
		if leave = release; merged.Dir != "" {
			dir = merged.Dir
		}
	case m.Isolation == team.Worktree:
		place := host.Place(of, t.Dir, m.Name)
		if _, err := os.Stat(place.Dir); err != nil {
			return "", nil, team.Refuse(team.NotReady, "the check of task %s cannot run: the worktree of %s is not on this "+
				"machine", task.Called(), m.Name).With(team.Hint{Action: team.ActResume, Team: of.Name})
		}
		if dir, err = worktree.Work(ctx, procs, place); err != nil {
			return "", nil, err
		}
	}
	if task.Dir == "" {
		return dir, leave, nil
	}
	below, err := paths.Below(dir, task.Dir)
	if err != nil {
		leave()
		return "", nil, team.Refuse(team.NotReady, "the check of task %s cannot run: %v", task.Called(), err)
	}
	return below, leave, nil
}

// checkEnv returns the environment of the check of a task.
func (t *Team) checkEnv(of team.Team, task team.Task, m team.Member) []string {
	env := slices.Concat(git.Local(os.Environ()), m.Env, task.Env, []string{"CADRE_TEAM=" + of.Name,
		"CADRE_TEAM_ID=" + of.ID, "CADRE_EVENT_MEMBER=" + m.Name})
	t.View(func(s *team.State) { env = append(env, s.TaskVariables(task)...) })
	return env
}
