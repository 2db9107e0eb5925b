package consolidate

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"reflect"

	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// RecordFile is the name of the record of a team that was consolidated, in its folder.
const RecordFile = "COMPLETED"

// ErrDamaged is in the chain of what [Sealed] returns for a file that is no record.
var ErrDamaged = errors.New("damaged")

// Record is what is kept of a team that was consolidated. It is written once.
type Record struct {
	Team     string    `json:"team"`
	Name     string    `json:"name"`
	Goal     string    `json:"goal,omitempty"`
	Dir      string    `json:"dir"`
	At       team.Time `json:"at"`
	By       string    `json:"by"`
	Seq      int64     `json:"seq"`     // of the team's record that completed it
	Journal  string    `json:"journal"` // SHA-256 of the records up to that one, a line each as they are encoded
	Commit   string    `json:"commit,omitempty"`
	Parent   string    `json:"parent,omitempty"`
	Tree     string    `json:"tree,omitempty"`
	Files    int64     `json:"files"`
	Checks   []Checked `json:"checks"`
	Members  []Member  `json:"members"`
	Tasks    []Task    `json:"tasks"`
	Attempts int64     `json:"attempts"`
}

// Checked is a check that passed.
type Checked struct {
	Name    string `json:"name"`
	Command string `json:"command"`
	Millis  int64  `json:"millis"`
}

// Member is one who took part.
type Member struct {
	Name  string `json:"name"`
	Agent string `json:"agent"`
	Model string `json:"model,omitempty"`
	Role  string `json:"role,omitempty"`
}

// Task is one that was done.
type Task struct {
	ID      string `json:"id"`
	Subject string `json:"subject"`
	By      string `json:"by"`
}

// Journal is a team with its history: a replica.
type Journal interface {
	View(see func(*team.State))
	Read(ctx context.Context, after int64) iter.Seq2[*team.Record, error]
}

// seal writes the record of a team that was consolidated into its folder, unless it is there, and
// returns it.
func seal(ctx context.Context, j Journal, dir string) (*Record, error) {
	if r, err := Sealed(dir); r != nil || err != nil {
		return r, err
	}
	r, err := describe(ctx, j, 0)
	if err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return nil, err
	}
	making := filepath.Join(dir, "."+RecordFile)
	if err := os.Remove(making); err != nil && !errors.Is(err, fs.ErrNotExist) { // of one that was killed
		return nil, err
	}
	f, err := os.OpenFile(making, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o400)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	if err := os.Rename(making, filepath.Join(dir, RecordFile)); err != nil {
		return nil, err
	}
	return Sealed(dir)
}

// maxRecord is the most that is read of a record, in bytes.
const maxRecord = 64 << 20

// Sealed reads the record from the team's folder; nil where there is none.
func Sealed(dir string) (*Record, error) {
	data, err := regularfile.Read(filepath.Join(dir, RecordFile), maxRecord)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r := &Record{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s is %w: %w; it can be moved elsewhere, and the next consolidation writes it again "+
			"from the history", filepath.Join(dir, RecordFile), ErrDamaged, err)
	}
	return r, nil
}

// Holds reports whether the record is the one that is made of the history: neither of them was
// changed since.
func (r *Record) Holds(ctx context.Context, j Journal) (bool, error) {
	again, err := describe(ctx, j, r.Seq)
	if team.CodeOf(err) == team.NotReady {
		return false, nil
	}
	return reflect.DeepEqual(r, again), err
}

// describe reads the history up to the record that completed the team. Where that is not in it,
// because the team was restored from a checkpoint, it goes up to the one with that seq; 0 for all.
func describe(ctx context.Context, j Journal, until int64) (*Record, error) {
	var t team.Team
	r := &Record{Checks: []Checked{}, Members: []Member{}, Tasks: []Task{}}
	j.View(func(s *team.State) {
		t = s.Team()
		for _, m := range s.Members() {
			r.Members = append(r.Members, Member{m.Name, m.Agent, m.Model, m.Role})
		}
		for task := range s.Tasks() {
			if task.Status == team.Completed {
				r.Tasks = append(r.Tasks, Task{task.ID, task.Subject, task.CompletedBy})
			}
		}
	})
	c := t.Consolidation
	if c.Step != team.Done {
		return nil, notReady("team %s was not consolidated", t.Name)
	}
	r.Team, r.Name, r.Goal, r.Dir, r.By, r.At = t.ID, t.Name, t.Goal, t.Dir, c.By, c.EndedAt
	r.Commit, r.Parent, r.Tree, r.Files, r.Attempts = c.Commit, c.Parent, c.Tree, c.Files, c.Attempt
	took := map[string]int64{}
	sum, last := sha256.New(), int64(0)
	for one, err := range j.Read(ctx, 0) {
		if err != nil {
			return nil, err
		}
		sum.Write(append(team.AppendRecord(nil, one), '\n'))
		for _, e := range one.Events {
			switch e := e.(type) {
			case *team.CheckPassed:
				if e.Attempt == c.Attempt {
					took[e.Check] = e.Millis
				}
			case *team.TeamConsolidated:
				r.Seq = one.Seq
			}
		}
		if last = one.Seq; r.Seq != 0 || last == until {
			break
		}
	}
	if r.Seq == 0 {
		r.Seq = last
	}
	r.Journal = hex.EncodeToString(sum.Sum(nil))
	for _, check := range t.Checks {
		r.Checks = append(r.Checks, Checked{check.Name, check.Command, took[check.Name]})
	}
	return r, nil
}
