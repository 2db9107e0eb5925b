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
	"reflect"
	"time"

	"cadre/internal/journal/store"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/team"
)

// RecordFile is the key of the record of a consolidated team, and its name in the team's folder.
const RecordFile = store.CompletedKey

// ErrDamaged is wrapped by the error of [Sealed] for a file that is not a record.
var ErrDamaged = errors.New("damaged")

// Record describes a consolidated team. It is written once.
type Record struct {
	Team     string    `json:"team"`             // id of the team
	Name     string    `json:"name"`             // name of the team
	Goal     string    `json:"goal,omitempty"`   // what the team was to do
	Dir      string    `json:"dir"`              // absolute path of the directory in which it worked
	At       team.Time `json:"at"`               // when the team was completed
	By       string    `json:"by"`               // who consolidated it: a member, or @user
	Seq      int64     `json:"seq"`              // number of the record in the history that completed the team
	Journal  string    `json:"journal"`          // SHA-256 of the history up to that record, one encoded record a line
	Commit   string    `json:"commit,omitempty"` // id of the commit; "" if nothing was committed
	Parent   string    `json:"parent,omitempty"` // commit that HEAD pointed at before
	Tree     string    `json:"tree,omitempty"`   // id of the committed tree in git
	Files    int64     `json:"files"`            // number of files that the commit changes
	Checks   []Checked `json:"checks"`           // the checks that passed
	Members  []Member  `json:"members"`          // the lead and the teammates
	Tasks    []Task    `json:"tasks"`            // the completed tasks
	Attempts int64     `json:"attempts"`         // number of attempts at the consolidation
}

// Checked is a check that passed.
type Checked struct {
	Name    string        `json:"name"`    // name of the check
	Command string        `json:"command"` // command that was run by /bin/sh
	Took    team.Duration `json:"millis"`  // how long it ran
}

// Member took part in the team.
type Member struct {
	Name  string `json:"name"`            // name of the member
	Agent string `json:"agent"`           // agent that ran its sessions: claude, codex, shell, external, …
	Model string `json:"model,omitempty"` // model that it was told to use; "" for the agent's own
	Role  string `json:"role,omitempty"`  // its role; "" for none
}

// Task is a completed task.
type Task struct {
	ID      string `json:"id"`             // number of the task
	Name    string `json:"name,omitempty"` // its name; "" for a task without one
	Subject string `json:"subject"`        // its title
	By      string `json:"by"`             // who completed it
}

// Journal is a team with its history: a replica.
type Journal interface {
	View(see func(*team.State))
	Read(ctx context.Context, after int64) iter.Seq2[*team.Record, error]
}

// seal writes the record of a consolidated team, unless there is one, and returns it.
func seal(ctx context.Context, j Journal, values store.Values) (*Record, error) {
	if r, err := Sealed(ctx, values); r != nil || err != nil {
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
	if data, err = values.PutOnce(ctx, RecordFile, append(data, '\n')); err != nil {
		return nil, err
	}
	return decode(data, filestore.Where(values, RecordFile))
}

// SealRestored writes the record of a team that was consolidated before it was restored. It does
// nothing for any other team. The record of the lost folder does not match, because it has the
// checksum of the lost history.
func SealRestored(ctx context.Context, j Journal, values store.Values) error {
	var t team.Team
	j.View(func(s *team.State) { t = s.Team() })
	if t.Status != team.TeamComplete || t.Consolidation.Step != team.Done {
		return nil
	}
	_, err := seal(ctx, j, values)
	return err
}

// Sealed returns the record of the team, or nil.
func Sealed(ctx context.Context, values store.Values) (*Record, error) {
	data, err := values.Get(ctx, RecordFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decode(data, filestore.Where(values, RecordFile))
}

func decode(data []byte, where string) (*Record, error) {
	r := &Record{}
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s is %w: %w; it can be moved elsewhere, and the next consolidation writes it again "+
			"from the history", where, ErrDamaged, err)
	}
	return r, nil
}

// Holds reports whether the record matches the history: neither was changed since.
func (r *Record) Holds(ctx context.Context, j Journal) (bool, error) {
	again, err := describe(ctx, j, r.Seq)
	if team.CodeOf(err) == team.NotReady {
		return false, nil
	}
	return reflect.DeepEqual(r, again), err
}

// describe reads the history up to the record that completed the team. After a restore from a
// checkpoint, that record may be missing. Then describe reads up to the record until, or all
// records if until is 0.
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
				r.Tasks = append(r.Tasks, Task{task.ID, task.Name, task.Subject, task.CompletedBy})
			}
		}
	})
	c := t.Consolidation
	if c.Step != team.Done {
		return nil, notReady("team %s was not consolidated", t.Name)
	}
	r.Team, r.Name, r.Goal, r.Dir, r.By, r.At = t.ID, t.Name, t.Goal, t.Dir, c.By, c.EndedAt
	r.Commit, r.Parent, r.Tree, r.Files, r.Attempts = c.Commit, c.Parent, c.Tree, c.Files, c.Attempt
	took := map[string]time.Duration{}
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
					took[e.Check] = e.Took
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
		r.Checks = append(r.Checks, Checked{check.Name, check.Command, team.Duration(took[check.Name])})
	}
	return r, nil
}
