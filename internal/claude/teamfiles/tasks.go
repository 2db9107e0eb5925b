package teamfiles

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cadre/internal/claude/projection"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// Task is the content of a task's file, and Member an entry of the roster.
type (
	Task   = projection.Task
	Member = projection.Member
)

// ErrChanged reports that a task differs from the caller's copy. The caller must read it again.
var ErrChanged = errors.New("the task was changed meanwhile")

func (t *Team) task(id string) string { return filepath.Join(t.tasks, id+".json") }

// number returns the number of a task's id, or 0 if the id is invalid.
func number(id string) int {
	n, err := strconv.Atoi(id)
	if err != nil || n < 1 || strconv.Itoa(n) != id {
		return 0
	}
	return n
}

// Tasks returns all tasks, by id. If the error is a [DamagedError], or several joined ones, only
// the tasks that it names are missing.
func (t *Team) Tasks(ctx context.Context) ([]Task, error) {
	ids, err := t.ids()
	if err != nil {
		return nil, err
	}
	tasks := make([]Task, 0, len(ids))
	var damage []error
	for _, id := range ids {
		var task Task
		err := read(ctx, t.task(id), &task)
		switch {
		case errors.Is(err, fs.ErrNotExist): // deleted just now
		case err != nil:
			damage = append(damage, err)
		default:
			task.ID = id
			tasks = append(tasks, task)
		}
	}
	return tasks, errors.Join(damage...)
}

// Task reads one task.
func (t *Team) Task(ctx context.Context, id string) (task Task, err error) {
	if number(id) == 0 {
		return task, t.noTask(id)
	}
	err = read(ctx, t.task(id), &task)
	if errors.Is(err, fs.ErrNotExist) {
		err = t.noTask(id)
	}
	return task, err
}

// ids returns the ids of the tasks that have a file, in order.
func (t *Team) ids() ([]string, error) {
	entries, err := os.ReadDir(t.tasks)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // the folder was swept away, or does not exist yet
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), ".json"); ok && number(id) > 0 {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, byNumber)
	return ids, nil
}

func byNumber(a, b string) int { return number(a) - number(b) }

// highest returns the highest id ever assigned.
func (t *Team) highest() (int, error) {
	ids, err := t.ids()
	if err != nil {
		return 0, err
	}
	most := 0
	if len(ids) > 0 {
		most = number(ids[len(ids)-1])
	}
	data, err := readFile(filepath.Join(t.tasks, ".highwatermark"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	return max(most, number(strings.TrimSpace(string(data)))), nil
}

// CreateTask adds a task with a new id, which it returns. Use [Team.Block] to add its blockers.
func (t *Team) CreateTask(ctx context.Context, task Task) (id string, err error) {
	if err := os.MkdirAll(t.tasks, 0o700); err != nil {
		return "", err
	}
	gate := filepath.Join(t.tasks, ".lock")
	if f, err := regularfile.OpenFile(gate, os.O_CREATE|os.O_RDONLY, 0o600); err != nil {
		return "", err
	} else {
		f.Close()
	}
	lock, err := lockFile(ctx, gate)
	if err != nil {
		return "", err
	}
	defer lock.unlock()
	most, err := t.highest()
	if err != nil {
		return "", err
	}
	task.ID = strconv.Itoa(most + 1)
	// The lists must not be null.
	task.Blocks, task.BlockedBy = append([]string{}, task.Blocks...), append([]string{}, task.BlockedBy...)
	data, err := projection.Encode(task)
	if err != nil {
		return "", err
	}
	if err := lock.checkHeld(); err != nil {
		return "", err
	}
	return task.ID, replace(t.task(task.ID), data)
}

// ChangeTask changes a task under its lock. If change returns an error, the task is not changed.
func (t *Team) ChangeTask(ctx context.Context, id string, change func(*Task) error) error {
	if number(id) == 0 {
		return t.noTask(id)
	}
	o := &object{}
	err := edit(ctx, t.task(id), o, func(there bool) (bool, error) {
		if !there {
			return false, t.noTask(id)
		}
		var before, after Task
		if err := errors.Join(o.decode(&before), o.decode(&after)); err != nil {
			return false, &DamagedError{t.task(id), err}
		}
		if before.Status == "" {
			return false, &DamagedError{t.task(id), errNoStatus}
		}
		if err := change(&after); err != nil {
			return false, err
		}
		return true, o.change(before, after)
	})
	if errors.Is(err, fs.ErrNotExist) { // even the folder for the lock does not exist
		return t.noTask(id)
	}
	return err
}

func (t *Team) noTask(id string) error {
	return &team.Error{Code: team.NotFound, Text: "team " + t.Name + " has no task " + strconv.Quote(id)}
}

// Block makes one task wait for another, in the files of both.
func (t *Team) Block(ctx context.Context, blocker, blocked string) error {
	err := t.ChangeTask(ctx, blocker, func(task *Task) error { task.Blocks = with(task.Blocks, blocked); return nil })
	if err != nil {
		return err
	}
	return t.ChangeTask(ctx, blocked, func(task *Task) error {
		task.BlockedBy = with(task.BlockedBy,
			blocker)
		return nil
	})
}

// Unblock removes a dependency, in the files of both tasks.
func (t *Team) Unblock(ctx context.Context, blocker, blocked string) error {
	err := t.ChangeTask(ctx, blocker, func(task *Task) error {
		task.Blocks = without(task.Blocks,
			blocked)
		return nil
	})
	if err != nil {
		return err
	}
	return t.ChangeTask(ctx, blocked, func(task *Task) error {
		task.BlockedBy = without(task.BlockedBy,
			blocker)
		return nil
	})
}

func with(ids []string, id string) []string {
	if slices.Contains(ids, id) {
		return ids
	}
	return append(slices.Clone(ids), id)
}

func without(ids []string, id string) []string {
	return slices.DeleteFunc(append([]string{}, ids...), func(one string) bool { return one == id })
}

// DeleteTask removes a task and the references to it in other tasks. Its id is not used again.
func (t *Team) DeleteTask(ctx context.Context, id string) error {
	if number(id) == 0 {
		return t.noTask(id)
	}
	if err := t.removeTask(ctx, id); err != nil {
		return err
	}
	others, err := t.Tasks(ctx)
	for _, other := range others {
		if !slices.Contains(other.Blocks, id) && !slices.Contains(other.BlockedBy, id) {
			continue
		}
		err = errors.Join(err, t.ChangeTask(ctx, other.ID, func(task *Task) error {
			task.Blocks, task.BlockedBy = without(task.Blocks, id), without(task.BlockedBy, id)
			return nil
		}))
	}
	return err
}

func (t *Team) removeTask(ctx context.Context, id string) error {
	lock, err := lockFile(ctx, t.task(id))
	if errors.Is(err, fs.ErrNotExist) {
		return t.noTask(id)
	}
	if err != nil {
		return err
	}
	defer lock.unlock()
	ids, err := lockFile(ctx, filepath.Join(t.tasks, ".lock")) // so that the recorded highest id stays correct
	if err != nil {
		return err
	}
	defer ids.unlock()
	most, err := t.highest()
	if err != nil {
		return err
	}
	if _, err := os.Stat(t.task(id)); errors.Is(err, fs.ErrNotExist) {
		return t.noTask(id)
	}
	if err := errors.Join(lock.checkHeld(), ids.checkHeld()); err != nil {
		return err
	}
	// Record the id first: a process that dies in between has not deleted the task, and nothing is
	// lost.
	if err := replace(filepath.Join(t.tasks, ".highwatermark"), strconv.AppendInt(nil, int64(most), 10)); err != nil {
		return err
	}
	return os.Remove(t.task(id))
}
