package host

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"cadre/internal/agent"
	"cadre/internal/git"
	"cadre/internal/render/excerpt"
	"cadre/internal/sys/paths"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

const (
	// expandTime bounds the command that prints items, if its task sets no limit.
	expandTime = time.Hour
	// mostPrinted bounds what such a command prints, in bytes. A thousand long items fit.
	mostPrinted = 16 << 20
)

// Items lists the files, or runs the command, that a group takes its items from. If that fails,
// failure says why, and output is what the command printed. It returns an error only when ctx ends.
type Items func(ctx context.Context, t team.Team, task team.Task) (items []json.RawMessage, failure, output string,
	err error)

// expander finds the items of groups, each once at a time. Nothing is recorded before a command has
// ended. A command that is ended with its host runs again on the next one.
type expander struct {
	under sync.WaitGroup
	ctx   context.Context // ends the commands; set by [Host.Run]

	mu      sync.Mutex
	running map[string]bool // by the keys of wants
}

// expand fulfils the want for a group: at once if the team's rules know the items, else beside the
// loop, until ctx ends.
func (h *Host) expand(ctx context.Context, w team.Want) error {
	var task team.Task
	var t team.Team
	h.Replica.View(func(s *team.State) { task, _ = s.Task(w.Task); t = s.Team() })
	if !task.Group() {
		return nil
	}
	body := &team.ExpandTask{Task: task.ID, Fence: task.Fence}
	if task.Expanded || !task.ForEach.Outside() {
		return h.do(ctx, body, 0)
	}
	e := &h.expander
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running[w.Key] {
		return nil
	}
	if e.running == nil {
		e.running = map[string]bool{}
	}
	e.running[w.Key] = true
	ctx = e.ctx
	e.under.Go(func() {
		defer func() {
			e.mu.Lock()
			delete(e.running, w.Key)
			e.mu.Unlock()
		}()
		var err error
		body.Items, body.Failure, body.Output, err = h.Machine.Items(ctx, t, task)
		if err == nil && ctx.Err() == nil && !h.waits(task.ID) { // it waits now where the lead must merge first
			err = h.do(ctx, body, 0)
		}
		if err != nil && ctx.Err() == nil {
			h.Log(fmt.Sprintf("the items of task %s cannot be recorded: %v", task.Called(), err))
			time.AfterFunc(refusedPause, h.lookSoon)
		}
	})
	return nil
}

// items finds the items of a group on this computer.
func (h *Host) items(ctx context.Context, t team.Team, task team.Task) ([]json.RawMessage, string, string, error) {
	dir, leave, why, err := h.itemsPlace(ctx, t, task)
	defer leave()
	if why != "" || err != nil {
		return nil, why, "", err
	}
	if task.ForEach.Glob != "" {
		return globItems(ctx, h.Procs, dir, task.ForEach.Glob)
	}
	return h.printedItems(ctx, t, task, dir)
}

// itemsPlace returns the directory in which the items of a group are found, and locks it until
// leave is called. If the group builds on work on branches, it is the merged worktree, which has
// that work. why names an obstacle that the lead must remove.
func (h *Host) itemsPlace(ctx context.Context, t team.Team, task team.Task) (dir string, leave func(), why string,
	err error) {
	var builds []team.Task
	h.Replica.View(func(s *team.State) { builds = s.BuildsOn(task.ID) })
	if len(builds) == 0 && task.In != team.InMerged {
		return t.Dir, func() {}, "", nil
	}
	return h.holdMerged(ctx, task, builds)
}

// globItems returns the files below dir that the pattern covers, sorted by their paths with
// slashes. In a git repository, it leaves out those that git ignores.
func globItems(ctx context.Context, procs *proc.Register, dir, pattern string) (items []json.RawMessage, failure,
	output string, err error) {
	files, err := git.Runner{Procs: procs, Dir: dir}.Files(ctx)
	switch {
	case ctx.Err() != nil:
		return nil, "", "", ctx.Err()
	case err != nil:
		return nil, "the files for its pattern cannot be listed: " + err.Error(), "", nil
	}
	slices.Sort(files)
	for _, file := range slices.Compact(files) {
		if !team.Covers(pattern, file) {
			continue
		}
		if !utf8.ValidString(file) {
			return nil, fmt.Sprintf("the path %q is not UTF-8, and cannot be an item", file), "", nil
		}
		items = append(items, team.TextItem(file))
	}
	return items, "", "", nil
}

// printedItems runs the command of the group below dir and reads its output.
func (h *Host) printedItems(ctx context.Context, t team.Team, task team.Task, dir string) ([]json.RawMessage, string,
	string, error) {
	if task.Dir != "" {
		below, err := paths.Below(dir, task.Dir)
		if err != nil {
			return nil, err.Error(), "", nil
		}
		dir = below
	}
	limit := cmp.Or(max(0, task.Timeout), expandTime)
	running, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("timed out after %s", team.Span(limit)))
	defer cancel()
	printed := &proc.Capture{Head: mostPrinted}
	said := &proc.Capture{}
	env := slices.Concat(os.Environ(), h.Env, task.Env, []string{agent.TeamVariable + "=" + t.Name,
		agent.TeamIDVariable + "=" + t.ID, agent.MemberVariable + "=", agent.HookVariable + "=",
		"CADRE_TASK_ID=" + task.ID, "CADRE_TASK_NAME=" + task.Name})
	child, err := h.Procs.Start(proc.Cmd{Args: []string{"/bin/sh", "-c", task.ForEach.Run}, Dir: dir, Env: env,
		Stdout: printed, Stderr: said, Task: task.ID})
	var exit proc.Exit
	if err == nil {
		if exit, err = child.Wait(running); running.Err() != nil && err != nil {
			err = errors.Join(context.Cause(running), child.Stop(context.WithoutCancel(ctx), proc.Ladder{}))
		}
	}
	if ctx.Err() != nil {
		return nil, "", "", ctx.Err()
	}
	failure := ""
	switch {
	case err != nil:
		failure = "the command for its items: " + firstOf(running, err)
	case exit.Code != 0:
		failure = "the command for its items failed: " + exit.String()
		if words := excerpt.FirstLine(strings.TrimSpace(said.String())); words != "" {
			failure += ": " + words
		}
	case printed.Total() > mostPrinted:
		failure = fmt.Sprintf("the command for its items printed %d bytes, of at most %d", printed.Total(), mostPrinted)
	default:
		items, err := readItems(printed.String())
		if err == nil {
			return items, "", "", nil
		}
		failure = err.Error()
	}
	return nil, failure, excerpt.Bytes(said.String()+printed.String(), 2*proc.DefaultKeep,
		"\n[the rest is left out]"), nil
}

// firstOf returns the words of the cause for which running ended, else those of err.
func firstOf(running context.Context, err error) string {
	if cause := context.Cause(running); cause != nil {
		return cause.Error()
	}
	return err.Error()
}

// readItems reads what a command printed: a JSON list, if it begins with [, else lines. Blank lines
// are left out.
func readItems(printed string) (items []json.RawMessage, err error) {
	if strings.HasPrefix(strings.TrimSpace(printed), "[") {
		if err := json.Unmarshal([]byte(printed), &items); err != nil {
			return nil, fmt.Errorf("the output of the command for its items begins with [ and is not a JSON list: %w; "+
				"lines must not begin with it", err)
		}
		return items, nil
	}
	for line := range strings.Lines(printed) {
		if line = strings.TrimRight(line, "\r\n"); strings.TrimSpace(line) == "" {
			continue
		}
		items = append(items, team.TextItem(line))
	}
	return items, nil
}
