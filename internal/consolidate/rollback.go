package consolidate

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"cadre/internal/git"
	"cadre/internal/git/worktree"
	"cadre/internal/host"
	"cadre/internal/journal/store"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/team"
)

// Undone reports what a rollback of a task did.
type Undone struct {
	Task string `json:"task"` // id of the task
	// commit on the branch that undoes the work; "" if the team's directory was changed
	Commit string   `json:"commit,omitempty"`
	Branch string   `json:"branch,omitempty"` // name of the member's branch; "" for the team's directory
	Files  []string `json:"files"`            // paths of the files that were restored
}

// RollBackTask undoes what a task saved or committed, and returns the task to the queue. In a
// worktree, the member's branch gets a commit that undoes it. In the team's directory, it restores
// each file that is still as the task left it. If a file was changed since, the rollback is refused
// and touches nothing. After a kill at any step, the next call finds each file in its old or its
// new state, and finishes.
//
// If other members worked in the same directory at the same time, the owner of the task's files is
// unknown, and the rollback is refused. With [Options.Only] it restores just these files: the
// caller says that they are the task's.
func RollBackTask(ctx context.Context, o Options, task, reason string) (_ Undone, err error) {
	w, ctx, done, err := prepare(ctx, o, false)
	if err != nil {
		return Undone{}, err
	}
	defer done(&err)
	if err := host.RecordWork(ctx, w.Replica, w.procs, w.Dir, "", w.Log); err != nil {
		return Undone{}, err
	}
	var t team.Task
	var all []team.Task
	w.Replica.View(func(s *team.State) {
		if err = s.RollsBack(task); err != nil {
			return
		}
		t, _ = s.Task(task)
		for one := range s.Tasks() {
			all = append(all, one)
		}
	})
	if err != nil {
		return Undone{}, err
	}
	u := Undone{Task: t.ID, Files: []string{}}
	switch {
	case w.repo.top == "":
		err = w.gone()
	case t.Status != team.Completed:
		err = w.undoSaved(ctx, t, &u)
	case t.Work.Commit == t.Work.Base: // it changed nothing, so it only returns to the queue
	case t.Work.Branch != "":
		err = w.undoOnBranch(ctx, t, all, &u)
	default:
		err = w.undoShared(ctx, t, all, &u)
	}
	if err != nil {
		return Undone{}, err
	}
	w.step("undone")
	return u, w.do(ctx, &team.RollBackTask{Task: t.ID, Fence: t.Fence, Commit: u.Commit, Reason: reason})
}

// undoes returns the changes from what the task left back to what it started from.
func (w *work) undoes(ctx context.Context, t team.Task) ([]git.Change, error) {
	changes, err := w.repo.Changes(ctx, "diff-tree", "-r", t.Work.Commit, t.Work.Base)
	if refused(err) {
		return nil, notReady("the work of task %s is not in this repository: %.12s..%.12s", t.Called(), t.Work.Base,
			t.Work.Commit)
	}
	if err != nil {
		return nil, err
	}
	if changes, err = w.named(t, changes); err != nil {
		return nil, err
	}
	for _, c := range changes {
		if c.Was == git.Submodule || c.Is == git.Submodule {
			var in obstacles
			in.add(c.Path, "a submodule, which cadre does not touch")
			return nil, w.conflict(t, in)
		}
	}
	return changes, nil
}

// named returns the changes in the files that the caller named, or all if it named none.
func (w *work) named(t team.Task, changes []git.Change) ([]git.Change, error) {
	return only(w, t, changes, func(c git.Change) string { return c.Path })
}

// only returns those of the task's changes whose path the caller named, or all if it named none.
func only[C any](w *work, t team.Task, changes []C, path func(C) string) ([]C, error) {
	if len(w.Only) == 0 {
		return changes, nil
	}
	in := func(c C, named string) bool { return path(c) == named || strings.HasPrefix(path(c), named+"/") }
	for _, named := range w.Only {
		if !slices.ContainsFunc(changes, func(c C) bool { return in(c, named) }) {
			var paths []string
			for _, c := range changes {
				paths = append(paths, path(c))
			}
			of := w.Replica.Team()
			return nil, team.Refuse(team.Invalid, "task %s did not change %s; it changed %s", t.Called(), named,
				names(paths)).With(t.Hint(&of, team.ActShowTask))
		}
	}
	return slices.DeleteFunc(slices.Clone(changes), func(c C) bool {
		return !slices.ContainsFunc(w.Only, func(named string) bool { return in(c, named) })
	}), nil
}

// undecided refuses a rollback of files that several tasks may have changed. by lists the paths for
// each reason.
func (w *work) undecided(t team.Task, by map[string][]string) error {
	var why, all []string
	for _, reason := range slices.Sorted(maps.Keys(by)) {
		why = append(why, reason)
		all = append(all, by[reason]...)
	}
	slices.Sort(all)
	all = slices.Compact(all)
	of := w.Replica.Team()
	hint, show := t.Hint(&of, team.ActRollBackTask), t.Hint(&of, team.ActShowTask) // only the caller can name the files
	return team.Refuse(team.Conflict, "task %s cannot be rolled back, and nothing was touched: %s, so cadre cannot "+
		"tell whose these files are: %s. Name those that are the task's", t.Called(), strings.Join(why, ", "),
		names(all)).
		With(hint, show)
}

// obstacles are the files that keep a task from being rolled back.
type obstacles struct {
	files []string    // each with the reason
	tasks []team.Task // the other tasks that changed them, or may have
	free  []string    // files of the task that are not in the way
}

func (o *obstacles) add(path, why string) { o.files = append(o.files, path+" ("+why+")") }

// mostFree bounds the files that the refusal of a rollback proposes to undo alone.
const mostFree = 5

// by adds a file that another task changed.
func (o *obstacles) by(path string, of other) {
	o.add(path, of.said)
	if !slices.ContainsFunc(o.tasks, func(t team.Task) bool { return t.ID == of.task.ID }) {
		o.tasks = append(o.tasks, of.task)
	}
}

// conflict refuses the rollback of a task. The other tasks have to be rolled back or released
// first.
func (w *work) conflict(t team.Task, o obstacles) error {
	of := w.Replica.Team()
	refusal := team.Refuse(team.Conflict, "task %s cannot be rolled back, and nothing was touched: %s", t.Called(),
		names(o.files))
	for _, other := range o.tasks {
		action := team.ActRollBackTask
		if other.Status == team.InProgress {
			action = team.ActRetryTask
		}
		refusal.With(other.Hint(&of, action))
	}
	if n := len(o.free); 0 < n && n <= mostFree {
		some := t.Hint(&of, team.ActRollBackTask)
		some.Paths = o.free
		refusal.With(some)
	}
	return refusal.With(t.Hint(&of, team.ActShowTask))
}

// undoShared restores files in the team's directory.
func (w *work) undoShared(ctx context.Context, t team.Task, all []team.Task, u *Undone) error {
	changes, err := w.undoes(ctx, t)
	if err != nil {
		return err
	}
	at, err := w.repo.whereabouts(ctx, w.scratch("land"), t.Work.Commit, t.Work.Base)
	if err != nil {
		return err
	}
	at = at.of(changes)
	var in obstacles
	dirty := map[string]bool{}
	for _, f := range w.Replica.Team().Base.Dirty {
		dirty[f.Path] = f.Name != team.ByChecks
	}
	head, err := w.repo.head(ctx)
	if err != nil {
		return err
	}
	committed := map[string]bool{}
	if head != "" { // a file that HEAD has as the task left it is committed
		if committed, err = w.asIn(ctx, head, t.Work.Commit, changes); err != nil {
			return err
		}
	}
	elsewhere := map[string]bool{}
	for _, c := range at.elsewhere {
		elsewhere[c.Path] = true
	}
	inHead := 0
	shared := map[string][]string{}
	for _, c := range changes {
		by := others(t, all, c.Path)
		switch {
		case committed[c.Path]:
			inHead++
		case dirty[c.Path]:
			in.add(c.Path, "had changes of yours before the team was created")
		case by.said != "" && !by.unclear:
			in.by(c.Path, by)
		case by.said != "" && len(w.Only) == 0:
			shared[by.said] = append(shared[by.said], c.Path)
		case elsewhere[c.Path]:
			in.add(c.Path, "changed since")
		default:
			in.free = append(in.free, c.Path)
		}
	}
	switch {
	case inHead > 0:
		return w.inHEAD(t, head)
	case len(in.files) > 0:
		return w.conflict(t, in)
	case len(shared) > 0:
		return w.undecided(t, shared)
	}
	u.Files = pathsOf(changes)
	return w.put(ctx, t.Work.Base, at.here)
}

// other is another task that changed a file of a task, or may have.
type other struct {
	task    team.Task
	said    string // how it stands in the way; "" for no such task
	unclear bool   // both tasks were done in one directory at the same time, so the file may be of either
}

// others returns another task that changed the same file as t.
func others(t team.Task, all []team.Task, path string) (found other) {
	for _, o := range all {
		if o.ID == t.ID || o.Work == nil || o.Work.Branch != t.Work.Branch || o.Work.Base == "" {
			continue
		}
		after := o.Work.Since >= t.Work.Since
		meanwhile := slices.Contains(t.Work.Others, o.Work.Member) ||
			o.Work.Member != t.Work.Member && o.CompletedAt > t.Work.Since
		if t.CompletedAt != 0 && o.Work.Since > t.CompletedAt { // o started after t had ended
			meanwhile = false
		}
		switch {
		case !after && !meanwhile:
		case o.Work.Done && slices.Contains(o.Work.Files, path) && meanwhile:
			found = other{o, fmt.Sprintf("%s worked on task %s in the same directory at the same time", o.Work.Member,
				o.Called()), true}
		case o.Work.Done && slices.Contains(o.Work.Files, path):
			return other{o, fmt.Sprintf("task %s of %s changed it later", o.Called(), o.Work.Member), false}
		case !o.Work.Done && o.Status == team.InProgress && meanwhile:
			return other{o, fmt.Sprintf("task %s of %s, which is in progress, may have changed it; release it first",
				o.Called(), o.Work.Member), false}
		}
	}
	return found
}

// asIn reports which of the changed paths are the same in both commits.
func (w *work) asIn(ctx context.Context, one, other string, changes []git.Change) (map[string]bool, error) {
	differ, err := w.repo.Changes(ctx, "diff-tree", "-r", one, other)
	if err != nil {
		return nil, err
	}
	same := map[string]bool{}
	for _, c := range changes {
		same[c.Path] = true
	}
	for _, c := range differ {
		delete(same, c.Path)
	}
	return same, nil
}

// inHEAD refuses to undo committed work. HEAD is the user's, and only a consolidation moves it.
func (w *work) inHEAD(t team.Task, head string) error {
	of := w.Replica.Team()
	hint := t.Hint(&of, team.ActRevertWork)
	hint.Dir, hint.From, hint.To = w.repo.top, t.Work.Commit, t.Work.Base
	return team.Refuse(team.Conflict, "the work of task %s is in HEAD (%.12s) already, which cadre does not change",
		t.Called(), head).With(hint)
}

// undoOnBranch adds a commit to the member's branch that undoes the task, and updates its worktree,
// if there is one.
func (w *work) undoOnBranch(ctx context.Context, t team.Task, all []team.Task, u *Undone) error {
	u.Branch = t.Work.Branch
	changes, err := w.undoes(ctx, t)
	if err != nil {
		return err
	}
	tip, err := worktree.Tip(ctx, w.procs, w.repo.top, t.Work.Branch)
	if err != nil {
		return err
	}
	head, err := w.repo.head(ctx)
	if err != nil {
		return err
	}
	if in, err := worktree.Follows(ctx, w.procs, w.repo.top, t.Work.Commit, "HEAD"); err != nil {
		return err
	} else if in {
		return w.inHEAD(t, head)
	}
	if tip == "" {
		return notReady("the branch %s of task %s does not exist any more", t.Work.Branch, t.Called())
	}
	for _, o := range all {
		if o.Status == team.InProgress && o.Owner == t.Work.Member {
			of := w.Replica.Team()
			return notReady("%s is working on task %s in the same worktree", o.Owner, o.Called()).
				With(o.Hint(&of, team.ActRetryTask))
		}
	}
	reverts, err := w.undoable(ctx, t, all, tip, changes)
	if err != nil {
		return err
	}
	u.Files, u.Commit = pathsOf(changes), tip
	place := host.Place(w.Replica.Team(), w.Dir, t.Work.Member)
	if _, err := os.Lstat(place.Dir); err == nil {
		return w.undoInWorktree(ctx, t, place, reverts, changes, u)
	}
	if !reverts {
		return nil
	}
	if u.Commit, err = w.reverting(ctx, w.repo, t, tip, changes); err != nil {
		return err
	}
	ref := "refs/heads/" + t.Work.Branch
	return w.repo.UpdateOwn(ctx, ref, ref, u.Commit, tip)
}

// undoable reports whether any of the changes still has to be undone at the tip of the branch. It
// returns an error if the same files were changed since.
func (w *work) undoable(ctx context.Context, t team.Task, all []team.Task, tip string, changes []git.Change) (
	reverts bool, err error) {
	left, err := w.asIn(ctx, tip, t.Work.Commit, changes)
	if err != nil {
		return false, err
	}
	undone, err := w.asIn(ctx, tip, t.Work.Base, changes)
	if err != nil {
		return false, err
	}
	var in obstacles
	for _, c := range changes {
		switch by := others(t, all, c.Path); {
		case undone[c.Path]: // undone by a killed call, or by the member
		case !left[c.Path] && by.said == "":
			in.add(c.Path, "changed since")
		case !left[c.Path]:
			in.by(c.Path, by)
		default:
			reverts = true
		}
	}
	if len(in.files) > 0 {
		return false, w.conflict(t, in)
	}
	return reverts, nil
}

// undoInWorktree undoes the changes in the member's worktree. If the checked-out branch has them,
// it undoes them there too; u.Commit is the branch's tip.
func (w *work) undoInWorktree(ctx context.Context, t team.Task, place worktree.Place, reverts bool,
	changes []git.Change, u *Undone) (err error) {
	tip := u.Commit
	own := *w
	if own.repo, err = open(ctx, w.procs, place.Dir); err != nil {
		return err
	}
	if on, err := own.repo.Text(ctx, "symbolic-ref", "--quiet", "HEAD"); err != nil ||
		on != "refs/heads/"+t.Work.Branch {
		return notReady("the worktree %s does not have the branch %s checked out", place.Dir, t.Work.Branch)
	}
	if err := own.repo.quiet(); err != nil {
		return err
	}
	at, err := own.repo.whereabouts(ctx, w.scratch("land"), t.Work.Commit, t.Work.Base)
	if err != nil {
		return err
	}
	at = at.of(changes)
	if len(at.elsewhere) > 0 {
		var in obstacles
		in.add(names(pathsOf(at.elsewhere)), "changed in the worktree of "+t.Work.Member+", and not committed")
		return w.conflict(t, in)
	}
	if err := own.put(ctx, t.Work.Base, at.here); err != nil {
		return err
	}
	w.step("files")
	if reverts {
		if u.Commit, err = w.reverting(ctx, own.repo, t, tip, changes); err != nil {
			return err
		}
		if err := own.repo.move(ctx, u.Commit, tip, "cadre: roll back task "+t.Called()); err != nil {
			return err
		}
		w.step("moved")
	}
	return own.repo.follow(ctx, w.Replica.Team().ID, changes)
}

// reverting makes a commit on top of the branch's tip, in which the files are as the task found
// them.
func (w *work) reverting(ctx context.Context, r *repository, t team.Task, tip string,
	changes []git.Change) (string, error) {
	index := w.scratch("revert")
	if err := forget(index); err != nil {
		return "", err
	}
	own := r.with(index)
	if _, err := own.Run(ctx, nil, "read-tree", tip); err != nil {
		return "", err
	}
	var entries strings.Builder
	for _, c := range changes {
		entries.WriteString(c.Entry())
	}
	if _, err := own.Run(ctx, []byte(entries.String()), "update-index", "-z", "--index-info"); err != nil {
		return "", err
	}
	tree, err := own.Text(ctx, "write-tree")
	if err != nil {
		return "", err
	}
	return r.commit(ctx, tree, fmt.Sprintf("Roll back task %s (%s, team %s)\n\nThis undoes %s..%s.\n", t.Called(),
		t.Work.Member, w.Replica.Team().Name, t.Work.Base, t.Work.Commit), tip)
}

// undoSaved takes the saved work of an uncompleted task out of the place where its member worked.
func (w *work) undoSaved(ctx context.Context, t team.Task, u *Undone) error {
	patch, err := Patch(ctx, filestore.Or(w.Shared, w.Dir), t)
	if err != nil {
		return err
	}
	if len(patch) == 0 {
		of := w.Replica.Team()
		return team.Refuse(team.Nothing, "no change was saved for task %s", t.Called()).
			With(t.Hint(&of, team.ActShowTask))
	}
	at := w.repo.Runner
	if at.Dir, err = w.savedIn(t.Saved.Member); err != nil {
		return err
	}
	patches, err := only(w, t, worktree.Patches(patch), func(p worktree.Patch) string { return p.Path })
	if err != nil {
		return err
	}
	var in obstacles
	var do [][]byte
	for _, one := range patches {
		applies := func(reverse ...string) (bool, error) {
			_, err := at.Run(ctx, one.Text, slices.Concat([]string{"apply", "--check"}, reverse)...)
			if refused(err) {
				return false, nil
			}
			return err == nil, err
		}
		back, err := applies("--reverse")
		if err != nil {
			return err
		}
		u.Files = append(u.Files, one.Path)
		if back {
			do = append(do, one.Text)
			continue
		}
		if again, err := applies(); err != nil {
			return err
		} else if !again { // it applies forwards, so it is undone already
			in.add(one.Path, "changed since")
		}
	}
	if len(in.files) > 0 {
		return w.conflict(t, in)
	}
	for _, one := range do {
		if _, err := at.Run(ctx, one, "apply", "--reverse", "--whitespace=nowarn"); err != nil {
			return err
		}
		w.step("file")
	}
	return nil
}

// savedIn returns the directory with the saved work of the member. It refuses a worktree that is
// gone, or in which the member works on another task.
func (w *work) savedIn(member string) (string, error) {
	t := w.Replica.Team()
	var m team.Member
	var of team.Task
	w.Replica.View(func(s *team.State) {
		m, _ = s.Member(member)
		for _, held := range s.Held(m.Name) {
			of = held
		}
	})
	if m.Isolation != team.Worktree {
		return t.Dir, nil
	}
	place := host.Place(t, w.Dir, m.Name)
	if _, err := os.Lstat(place.Dir); err != nil {
		return "", notReady("the worktree of %s does not exist any more; its work is on the branch %s, and the next "+
			"member does not start from it", m.Name, place.Branch)
	}
	if of.ID != "" {
		return "", notReady("%s is working on task %s in the same worktree; release that task first", m.Name,
			of.Called()).With(of.Hint(&t, team.ActRetryTask))
	}
	return place.Dir, nil
}

// Patch returns the whole patch that was saved for the task: from the values of the team, or from
// the task's record.
func Patch(ctx context.Context, values store.Values, t team.Task) ([]byte, error) {
	if t.Saved == nil {
		return nil, nil
	}
	for _, task := range []string{t.ID, ""} {
		key := host.PatchKey(task, t.Saved.Member)
		if !strings.Contains(t.Saved.Note, filestore.Where(values, key)) {
			continue
		}
		data, err := values.Get(ctx, key)
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return data, err
		}
	}
	return []byte(t.Saved.Diff), nil
}
