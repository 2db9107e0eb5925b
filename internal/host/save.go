package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"cadre/internal/git/worktree"
	"cadre/internal/journal/store"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// SavedWork is the content of the file <member>_checkpoint.json in the team's folder: the
// unfinished work of a teammate without a lead.
type SavedWork struct {
	Member    string    `json:"teammate_id"`
	Task      string    `json:"task_claimed,omitempty"`
	At        team.Time `json:"timestamp_utc_ms"`
	LastGood  string    `json:"last_good_state,omitempty"` // the last commit before the edits
	FileEdits string    `json:"file_edits,omitempty"`      // a patch, shortened
	Files     []string  `json:"files,omitempty"`           // files in the whole patch
	Patch     string    `json:"patch,omitempty"`           // where the whole patch is, if it is longer
	Cut       []string  `json:"cut,omitempty"`             // files that are only there
	Left      []string  `json:"left,omitempty"`            // files that are in neither, and why
	Output    string    `json:"last_output,omitempty"`
}

// Saved returns the part that is kept with the task.
func (w SavedWork) Saved() team.Saved {
	var note []string
	if w.Patch != "" {
		note = append(note, fmt.Sprintf("The patch above leaves out %s; the whole patch is in %s.",
			few(w.Cut), w.Patch))
	}
	if len(w.Left) > 0 {
		note = append(note, "In no patch is "+few(w.Left)+".")
	}
	return team.Saved{Member: w.Member, Commit: w.LastGood, Diff: w.FileEdits, Note: strings.Join(note, "\n"),
		Output: w.Output, At: w.At}
}

// few names the first of many files.
func few(files []string) string {
	const most = 20
	if len(files) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(files[:most], ", "), len(files)-most)
	}
	return strings.Join(files, ", ")
}

const savedSuffix = "_checkpoint.json"

// ReadSaved returns the saved work of the member, and whether there is any.
func ReadSaved(ctx context.Context, shared store.Values, member string) (SavedWork, bool, error) {
	return savedIn{shared}.Read(ctx, member)
}

// savedIn is the saved work among the values of a team.
type savedIn struct{ values store.Values }

func (s savedIn) Read(ctx context.Context, member string) (SavedWork, bool, error) {
	data, err := s.values.Get(ctx, member+savedSuffix)
	if errors.Is(err, fs.ErrNotExist) {
		return SavedWork{}, false, nil
	}
	var w SavedWork
	if err == nil {
		err = json.Unmarshal(data, &w)
	}
	return w, err == nil, err
}

func (s savedIn) Forget(ctx context.Context, w SavedWork) error {
	now, there, err := s.Read(ctx, w.Member)
	if err != nil || !there || !bytes.Equal(now.encode(), w.encode()) {
		return err
	}
	return s.values.Delete(ctx, w.Member+savedSuffix)
}

func (w SavedWork) encode() []byte {
	data, err := json.MarshalIndent(w, "", "  ")
	if err != nil {
		panic(err) // it contains only texts and a number
	}
	return append(data, '\n')
}

func (s savedIn) Write(ctx context.Context, w SavedWork) error {
	return s.values.Put(ctx, w.Member+savedSuffix, w.encode())
}

// PatchKey returns the key of a patch that is too long for the history: of what the member changed
// for that task, "" for none.
func PatchKey(task, member string) string {
	if task != "" {
		member = task + "-" + member
	}
	return PatchFolder + "/" + member + ".patch"
}

// PatchFolder is the folder of the keys of patches.
const PatchFolder = "saved"

// SavedWorkKeys returns the keys under which the saved work of the members may be.
func SavedWorkKeys(rep *replica.Replica) (keys []string) {
	rep.View(func(s *team.State) {
		for _, m := range s.Members() {
			keys = append(keys, m.Name+savedSuffix)
		}
	})
	return keys
}

// edits collects changes in dir that may be the member's. Files that are as they were when the team
// was created are the person's. In a worktree of its own every change is the member's.
func (w *SavedWork) edits(ctx context.Context, procs *proc.Register, base team.Base, values store.Values,
	dir string, own bool) error {
	before := map[string]string{}
	if !own {
		if base.Unknown != "" {
			w.Left = []string{"the changes in " + dir + " (the state before the team is unknown: " +
				base.Unknown + ")"}
			return nil
		}
		for _, f := range base.Dirty {
			before[filepath.Join(base.Top, filepath.FromSlash(f.Path))] = f.SHA256
		}
	}
	most := int64(digested)
	e, err := worktree.Diff(ctx, procs, dir, func(path string) bool {
		was, known := before[path]
		if !known {
			return false
		}
		now, err := worktree.Digest(ctx, procs, path, &most)
		return err != nil || now == was
	})
	w.LastGood, w.Files, w.Left = e.Commit, e.Files, e.Left
	if err != nil {
		return err
	}
	if w.FileEdits, w.Cut = e.Brief(team.MaxDiff); len(w.Cut) == 0 {
		return nil
	}
	key := PatchKey(w.Task, w.Member)
	if err := values.Put(ctx, key, e.Patch); err != nil {
		return err
	}
	w.Patch = filestore.Where(values, key)
	return nil
}

// digested bounds how many bytes are read to recognize the person's files.
const digested = 256 << 20

// save writes a file with the member's unfinished work. If the file has work on another task, that
// is kept with its task first. An earlier session may have saved it, on a host that died, or this
// session before it got its present task.
func (s *slot) save(ctx context.Context) (SavedWork, error) {
	s.savedFile.Lock()
	defer s.savedFile.Unlock()
	w := SavedWork{Member: s.member, At: s.host.Replica.Now()}
	s.update(func(t *turn) { w.Output = t.last })
	if held := s.held(); len(held) > 0 {
		w.Task = held[0].ID
	}
	t := s.host.Replica.Team()
	if err := s.changes(ctx, t, &w); err != nil {
		if ctx.Err() != nil {
			return w, err
		}
		s.host.Log("the changes of " + s.member + " cannot be determined: " + err.Error())
	}
	before, there, err := s.host.Machine.Saved.Read(ctx, s.member)
	if err != nil {
		s.host.Log("what was saved before for " + s.member + " cannot be read and is skipped: " + err.Error())
	} else if there && before.Task != w.Task {
		if _, err := before.record(ctx, s.host.sends(s.lease), s.host.Replica); err != nil {
			return w, err
		}
		if !s.leased() {
			return w, errors.New("another host has taken the member over")
		}
	}
	return w, s.host.Machine.Saved.Write(ctx, w)
}

// changes collects the member's changes where it works.
func (s *slot) changes(ctx context.Context, t team.Team, w *SavedWork) error {
	if p := s.host.Machine.Project; p != nil {
		return p.Changes(ctx, s.dir, w)
	}
	return w.edits(ctx, s.host.Procs, t.Base, s.host.Machine.Shared, s.dir, s.dir != t.Dir)
}

// KeepSaved keeps a member's saved work with its task. It is for a process that is not a host,
// where no host is running to do so.
func KeepSaved(ctx context.Context, rep *replica.Replica, shared store.Values, member string) error {
	return KeepSavedIn(ctx, savedIn{shared}, rep, member)
}

// KeepSavedIn does the same as KeepSaved, with work from that store.
func KeepSavedIn(ctx context.Context, saved SavedStore, rep *replica.Replica, member string) error {
	w, there, err := saved.Read(ctx, member)
	if err != nil || !there {
		return err
	}
	return w.keep(ctx, byUser(rep), rep, saved)
}

// KeepDone saves the unfinished work of a task's owner with the task: the changes where it works,
// and its last words. It is for a process that is not a host, before the task is taken from an
// owner that may be dead, or may not know about it.
func KeepDone(ctx context.Context, rep *replica.Replica, teamDir string, shared store.Values, task team.Task) error {
	m := team.Member{}
	rep.View(func(s *team.State) { m, _ = s.Member(task.Owner) })
	t := rep.Team()
	w := SavedWork{Member: m.Name, Task: task.ID, At: replica.Now(), Output: m.Summary}
	if before, there, err := ReadSaved(ctx, shared, m.Name); err == nil && there && before.Task == task.ID {
		w.Output = before.Output
	}
	procs, err := proc.Open("")
	if err != nil {
		return err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	dir, own := t.Dir, false
	if m.Isolation == team.Worktree {
		dir, own = filepath.Join(teamDir, worktrees, m.Name), true
	}
	if err := w.edits(ctx, procs, t.Base, shared, dir, own); err != nil {
		return fmt.Errorf("the unfinished work of %s on task %s cannot be determined: %w", m.Name, task.Called(), err)
	}
	return w.keep(ctx, byUser(rep), rep, savedIn{shared})
}

// keep records the work and removes its file. A file that has been replaced by other work stays.
func (w SavedWork) keep(ctx context.Context, do sender, rep *replica.Replica, saved SavedStore) error {
	if done, err := w.record(ctx, do, rep); err != nil || !done {
		return err
	}
	return saved.Forget(ctx, w)
}

// sender sends a command as some actor.
type sender func(context.Context, team.Body) error

func byUser(rep *replica.Replica) sender {
	return func(ctx context.Context, body team.Body) error {
		_, err := rep.Do(ctx, team.Command{Actor: team.User, Body: body})
		return err
	}
}

// sends returns a sender that acts under a lease of the host; 0 for any.
func (h *Host) sends(lease int64) sender {
	return func(ctx context.Context, body team.Body) error {
		_, err := h.send(ctx, team.Command{Actor: team.Host(h.ID), Lease: lease, Body: body})
		return err
	}
}

// leased reports whether this host still has the member.
func (s *slot) leased() (leased bool) {
	s.host.Replica.View(func(st *team.State) {
		m, _ := st.Member(s.member)
		leased = m.Host == s.host.ID && m.Lease == s.lease
	})
	return leased
}

// record records the work with its task. It reports whether the work is not needed any more:
// another member may hold the task by now, and may return it to the queue.
func (w SavedWork) record(ctx context.Context, do sender, rep *replica.Replica) (done bool, err error) {
	if w.Task == "" {
		return true, nil
	}
	err = do(ctx, &team.SaveWork{Task: w.Task, Saved: w.Saved()})
	switch team.CodeOf(err) {
	case team.Conflict:
		var t team.Task
		rep.View(func(s *team.State) { t, _ = s.Task(w.Task) })
		return t.Status == team.Completed, nil
	case team.NotFound:
		return true, nil
	}
	return err == nil, err
}

// saveAlone saves the member's work at intervals while no session leads. Once one does, the work is
// kept with the task.
func (s *slot) saveAlone(ctx context.Context) {
	for ctx.Err() == nil {
		var alone bool
		var every time.Duration
		s.host.Replica.View(func(st *team.State) {
			alone = st.Zombie(s.member)
			every = checkpoints(st.Team())
		})
		if !alone {
			s.saveAndKeep(ctx)
			return
		}
		if _, err := s.save(ctx); err != nil && ctx.Err() == nil {
			s.host.Log("the work of " + s.member + " was not saved: " + err.Error())
		}
		s.whileAlone(ctx, every)
	}
}

// saveAndKeep saves the member's work and keeps it with its tasks. It reports whether nothing is
// left to keep. Only one goroutine does so at a time: otherwise older work could be recorded after
// newer work, and replace it.
func (s *slot) saveAndKeep(ctx context.Context) bool {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	w, err := s.save(ctx)
	if err != nil {
		if ctx.Err() == nil {
			s.host.Log("the work of " + s.member + " was not saved: " + err.Error())
		}
		return false
	}
	return s.keep(ctx, w)
}

// whileAlone waits that long, or until a session leads.
func (s *slot) whileAlone(ctx context.Context, long time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	for {
		var alone bool
		seq := s.host.Replica.Seq()
		s.host.Replica.View(func(st *team.State) { alone = st.Zombie(s.member) })
		if !alone || s.host.Replica.Wait(ctx, seq) != nil {
			return
		}
	}
}

// keep records the saved work with the tasks that the member holds, and reports whether all of them
// have it. A host that lost the member leaves the file to the host that took it over.
func (s *slot) keep(ctx context.Context, w SavedWork) bool {
	kept := true
	for _, t := range s.held() {
		err := s.host.do(ctx, &team.SaveWork{Task: t.ID, Saved: w.Saved()}, s.lease)
		var holds bool
		s.host.Replica.View(func(st *team.State) {
			now, _ := st.Task(t.ID)
			holds = now.Status == team.InProgress && now.Owner == s.member
		})
		if err != nil {
			s.host.Log("not kept with task " + t.ID + ": " + err.Error())
		}
		if err != nil && holds || !s.leased() {
			kept = false
		}
	}
	if kept {
		s.savedFile.Lock()
		defer s.savedFile.Unlock()
		if err := s.host.Machine.Saved.Forget(ctx, w); err != nil {
			s.host.Log(err.Error())
		}
	}
	return kept
}

// lastSave keeps the session's saved work after it has ended. It reports whether nothing is left to
// keep.
func (s *slot) lastSave(how ending, why string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), giveBack)
	defer cancel()
	switch how {
	case stopRest:
		return s.requeueTasks(ctx, why)
	case stopQuietly:
		return true
	}
	return s.keepLast(ctx)
}

// keepLast keeps the saved work, because the tasks return to the queue. It reports whether nothing
// is left to keep.
func (s *slot) keepLast(ctx context.Context) bool {
	if _, there, err := s.host.Machine.Saved.Read(ctx, s.member); err != nil || !there {
		return true // an unreadable file is reported where it would be overwritten
	}
	return s.saveAndKeep(ctx)
}

// requeueTasks returns the tasks that the member holds to the queue, with its work. It reports
// whether that is recorded. A task whose work could not be kept stays with the member: another
// owner would start without that work.
func (s *slot) requeueTasks(ctx context.Context, reason string) bool {
	s.keeping.Lock()
	defer s.keeping.Unlock()
	w, err := s.save(ctx)
	if err != nil {
		s.host.Log("the work of " + s.member + " was not saved: " + err.Error())
	}
	held := s.held()
	if !s.keep(ctx, w) {
		return false
	}
	done := true
	for _, t := range held {
		if err := s.host.do(ctx, &team.ReleaseTask{Task: t.ID, Member: s.member, Fence: t.Fence, Reason: reason},
			s.lease); err != nil {
			s.host.Log("task " + t.ID + " was not returned to the queue: " + err.Error())
			done = false
		}
	}
	return done
}

// keepSaved keeps the work that an earlier session of the member saved, on this host or on one that
// died.
func (h *Host) keepSaved(ctx context.Context, member string, as sender) error {
	w, there, err := h.Machine.Saved.Read(ctx, member)
	if err != nil {
		h.Log("what was saved for " + member + " cannot be read and is skipped: " + err.Error())
	}
	if err != nil || !there {
		return nil
	}
	return w.keep(ctx, as, h.Replica, h.Machine.Saved)
}
