package coord

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"cadre/internal/desk"
	"cadre/internal/team"
	"cadre/internal/worktree"
)

// SavedWork is the file <member>_checkpoint.json in the team's folder: what a teammate without a lead has done of its task.
type SavedWork struct {
	Member    string    `json:"teammate_id"`
	Task      string    `json:"task_claimed,omitempty"`
	At        team.Time `json:"timestamp_utc_ms"`
	LastGood  string    `json:"last_good_state,omitempty"` // the commit below the edits
	FileEdits string    `json:"file_edits,omitempty"`      // as a patch
	Files     []string  `json:"files,omitempty"`           // that it changes
	Output    string    `json:"last_output,omitempty"`
}

// Saved is what is kept of it with the task.
func (w SavedWork) Saved() team.Saved {
	return team.Saved{Member: w.Member, Commit: w.LastGood, Diff: w.FileEdits, Output: w.Output, At: w.At}
}

const savedSuffix = "_checkpoint.json"

// ReadSaved returns what was saved for the member in the team's folder, and whether there is anything.
func ReadSaved(teamDir, member string) (SavedWork, bool, error) {
	data, err := os.ReadFile(filepath.Join(teamDir, member+savedSuffix))
	if errors.Is(err, fs.ErrNotExist) {
		return SavedWork{}, false, nil
	}
	var w SavedWork
	if err == nil {
		err = json.Unmarshal(data, &w)
	}
	return w, err == nil, err
}

// ForgetSaved removes what was saved for the member: it is in the history now.
func ForgetSaved(teamDir, member string) error {
	if err := os.Remove(filepath.Join(teamDir, member+savedSuffix)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// write puts the file in its place, whole or not at all, also when the machine dies.
func (w SavedWork) write(teamDir string) error {
	data, err := json.MarshalIndent(w, "", "  ")
	if err != nil {
		return err
	}
	path := filepath.Join(teamDir, w.Member+savedSuffix)
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(path+".new"))
	}
	return os.Rename(path+".new", path)
}

// save writes down what the member has done of its task.
func (s *seat) save(ctx context.Context) (SavedWork, error) {
	s.savedFile.Lock()
	defer s.savedFile.Unlock()
	w := SavedWork{Member: s.member, At: desk.Now()}
	s.update(func(t *turn) { w.Output = t.last })
	if held := s.held(); len(held) > 0 {
		w.Task = held[0].ID
	}
	var err error
	if w.LastGood, w.FileEdits, err = worktree.Diff(ctx, s.host.Procs, s.dir); err != nil {
		if ctx.Err() != nil {
			return w, err
		}
		s.host.Log("the changes of " + s.member + " cannot be told: " + err.Error())
	}
	w.Files, _ = worktree.Changed(ctx, s.host.Procs, s.dir) // for people; the patch says it too
	return w, w.write(s.host.teamDir())
}

// saveAlone saves the member's work again and again for as long as there is no lead. When there is one, it is kept with the task.
func (s *seat) saveAlone(ctx context.Context) {
	for ctx.Err() == nil {
		var alone bool
		var every time.Duration
		s.host.Desk.View(func(st *team.State) {
			alone = st.Zombie(s.member)
			every = time.Duration(st.Team().Timing.OrDefaults().Beat) * time.Millisecond
		})
		w, err := s.save(ctx)
		if err != nil && ctx.Err() == nil {
			s.host.Log("the work of " + s.member + " was not saved: " + err.Error())
		}
		if !alone {
			if err == nil {
				s.keep(ctx, w)
			}
			return
		}
		s.whileAlone(ctx, every)
	}
}

// whileAlone waits for so long, or until there is a lead.
func (s *seat) whileAlone(ctx context.Context, long time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	for {
		var alone bool
		seq := s.host.Desk.Seq()
		s.host.Desk.View(func(st *team.State) { alone = st.Zombie(s.member) })
		if !alone || s.host.Desk.Wait(ctx, seq) != nil {
			return
		}
	}
}

// keep records the saved work with the tasks that the member holds.
func (s *seat) keep(ctx context.Context, w SavedWork) {
	failed := false
	for _, t := range s.held() {
		if err := s.host.do(ctx, &team.SaveWork{Task: t.ID, Saved: w.Saved()}, s.lease); err != nil {
			s.host.Log("not kept with task " + t.ID + ": " + err.Error())
			failed = true
		}
	}
	if !failed {
		if err := ForgetSaved(s.host.teamDir(), s.member); err != nil {
			s.host.Log(err.Error())
		}
	}
}

// putDown gives the tasks that the member holds back to the list, with its work.
func (s *seat) putDown(ctx context.Context, reason string) {
	w, err := s.save(ctx)
	if err != nil {
		s.host.Log("the work of " + s.member + " was not saved: " + err.Error())
	}
	held := s.held()
	s.keep(ctx, w)
	for _, t := range held {
		if err := s.host.do(ctx, &team.ReleaseTask{Task: t.ID, Member: s.member, Fence: t.Fence, Reason: reason}, s.lease); err != nil {
			s.host.Log("task " + t.ID + " was not given back: " + err.Error())
		}
	}
}
