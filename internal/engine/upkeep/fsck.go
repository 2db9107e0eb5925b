package upkeep

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"cadre/internal/claude/projection"
	"cadre/internal/git/checkpoint"
	"cadre/internal/host"
	"cadre/internal/journal"
	"cadre/internal/journal/filejournal"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Health says what state the files of a team are in, and what was repaired.
type Health struct {
	Team     string   `json:"team"`              // name of the team
	Healthy  bool     `json:"healthy"`           // nothing is damaged
	Segments int      `json:"segments"`          // number of files that hold the history
	Last     int64    `json:"last"`              // the history is complete up to this record
	Durable  int64    `json:"durable"`           // records up to this one were acknowledged
	Snapshot int64    `json:"snapshot"`          // last record in the snapshot; 0 for no snapshot
	Problems []string `json:"problems"`          // what is damaged
	Notes    []string `json:"notes"`             // notes about files that are not damaged
	Mended   bool     `json:"mended"`            // the damage was repaired
	Hole     string   `json:"hole,omitempty"`    // records that are missing, but whose effect is in the snapshot
	Lost     string   `json:"lost,omitempty"`    // records that are missing with their effect
	Aside    []string `json:"aside,omitempty"`   // damaged files that were set aside
	Rebuilt  int      `json:"rebuilt,omitempty"` // number of files in Claude Code's folders that were out of date
	// last record in the checkpoint of a damaged team, if the repository has one; 0 for none
	Checkpoint int64 `json:"checkpoint,omitempty"`
}

// Better reports whether the checkpoint has records that the damaged files do not have.
func (h Health) Better() bool { return !h.Healthy && h.Checkpoint > h.Last }

// SwappedError says that the files of a team belong to another team. Each file may be intact, but
// none can replace what is missing.
type SwappedError struct{ Team, Reason string }

func (e *SwappedError) Error() string {
	return e.Reason + ". Nothing was changed. Restore the team's own files, or restore " +
		"the team from its last checkpoint, which keeps the present files"
}

func (e *SwappedError) Unwrap() error {
	return team.Refuse(team.Finished, "%s", e.Error()).With(team.Hint{Action: team.ActContinueCopy, Team: e.Team})
}

// FileCheck checks the files of a home's teams, as fsck checks a disk.
type FileCheck struct {
	Home  layout.Home
	Log   func(string)
	Dir   string // where to look for checkpoints of a damaged team
	Force bool   // mend also if a checkpoint has more than can be mended
	// ReadOnly leaves the files in Claude Code's folders as they are.
	ReadOnly bool
}

// Check reads all files of a team: first the journal, and then the team from it, because intact
// files may still make no sense. For an intact team it updates the files in Claude Code's folders
// that differ, unless the check is read-only. It changes nothing of the team itself.
func (x FileCheck) Check(ctx context.Context, name string) (Health, error) {
	dir, err := x.Home.Folder(name)
	if err != nil {
		return Health{}, err
	}
	if _, placed := x.Home.Placed(dir); placed {
		return x.checkPlaced(ctx, name)
	}
	found, err := filejournal.Check(dir)
	if err != nil {
		return Health{}, err
	}
	if found.Swapped != "" {
		return Health{}, &SwappedError{name, found.Swapped}
	}
	h := Health{Team: name, Segments: found.Segments, Last: found.Last, Durable: found.Durable,
		Snapshot: found.Snapshot,
		Problems: []string{}, Notes: []string{}}
	for _, p := range found.Problems {
		h.Problems = append(h.Problems, p.String())
	}
	for _, p := range found.Torn {
		h.Notes = append(h.Notes, p.String()+"; it was never acknowledged, and the next writer cuts it away")
	}
	for _, hole := range found.Holes {
		h.Notes = append(h.Notes, fmt.Sprintf("the records %s were lost earlier; their effect is in the snapshot",
			hole))
	}
	if h.Healthy = len(h.Problems) == 0; h.Healthy {
		err = x.read(ctx, name, len(found.Holes) == 0, &h)
	} else {
		h.Checkpoint = x.checkpoint(ctx, name)
	}
	return h, err
}

// checkPlaced reads the whole history of a team in a place, which verifies it.
func (x FileCheck) checkPlaced(ctx context.Context, name string) (h Health, err error) {
	h = Health{Team: name, Problems: []string{}, Notes: []string{}}
	j, _, err := x.Home.Open(name, x.Log)
	if err != nil {
		return h, err
	}
	for r, err := range j.Read(ctx, 0) {
		if damage, is := errors.AsType[*journal.DamageError](err); is {
			h.Problems = append(h.Problems, damage.Error())
			break
		}
		if err != nil {
			return h, errors.Join(err, j.Close())
		}
		h.Last, h.Durable = r.Seq, r.Seq
	}
	s, err := j.Snapshot(ctx)
	h.Snapshot = s.Seq
	if err = errors.Join(err, j.Close()); err == nil && len(h.Problems) == 0 {
		h.Healthy = true
		err = x.read(ctx, name, true, &h)
	}
	return h, err
}

// checkpoint returns the last record in the checkpoints of the team, 0 for none.
func (x FileCheck) checkpoint(ctx context.Context, name string) (last int64) {
	procs, err := proc.Open("")
	if err != nil {
		return 0
	}
	defer procs.Close(context.WithoutCancel(ctx))
	found, err := checkpoint.List(ctx, procs, x.Dir)
	if err != nil { // no repository, or no git
		return 0
	}
	for _, one := range found {
		if one.Name == name && one.Team != "" {
			last = max(last, one.Seq)
		}
	}
	return last
}

// read reads the team from its journal. whole says that the journal has all records.
func (x FileCheck) read(ctx context.Context, name string, whole bool, h *Health) error {
	j, dir, err := x.Home.Open(name, x.Log)
	// each file is intact, but belongs to another team
	if damage, ok := errors.AsType[*journal.DamageError](err); ok {
		return &SwappedError{name, fmt.Sprintf("%s: %s", damage.Segment, damage.Reason)}
	}
	if err != nil {
		return err
	}
	rep, err := replica.Open(ctx, j, replica.Options{Log: x.Log})
	if err != nil {
		return err
	}
	defer rep.Close()
	if whole {
		x.compare(ctx, rep, h)
	}
	if t := rep.Team(); !x.ReadOnly && t.CheckOurs() == nil {
		shown := &projection.Projector{Claude: x.Home.Claude, Mark: filepath.Join(dir, projection.MarkFile),
			Beside: layout.Beside(dir), Log: x.Log}
		rep.View(func(s *team.State) { h.Rebuilt, err = shown.Repair(ctx, j, s) })
		if err != nil {
			h.Notes = append(h.Notes, err.Error())
		}
	}
	return nil
}

// compare builds the team from its whole history and compares it with the snapshot.
func (x FileCheck) compare(ctx context.Context, rep *replica.Replica, h *Health) {
	again := &team.State{}
	for r, err := range rep.Read(ctx, 0) {
		if err != nil {
			h.Healthy = false
			h.Problems = append(h.Problems, err.Error())
			return
		}
		if again.Apply(r); again.Seq() == rep.Seq() {
			break
		}
	}
	rep.View(func(s *team.State) {
		if string(team.AppendSnapshot(nil, s)) != string(team.AppendSnapshot(nil, again)) {
			h.Notes = append(h.Notes, "the snapshot differs from the history; delete state.json, and it is written "+
				"again")
		}
	})
}

// mendTime bounds the wait for the journal.
const mendTime = 30 * time.Second

// Mend repairs a damaged team with as little loss as possible, and says in h what is lost. It sets
// the damaged files aside.
func (x FileCheck) Mend(ctx context.Context, h *Health) error {
	dir, err := x.Home.Folder(h.Team)
	if err != nil {
		return err
	}
	if _, placed := x.Home.Placed(dir); placed {
		return team.Refuse(team.Invalid, "the history of team %s is damaged in %s; restore the database from a backup",
			h.Team, x.Home.Place.Called)
	}
	if host.Hosted(ctx, filestore.Team(dir)) {
		return team.Refuse(team.NotReady, "a running host has sessions of the team, and would lose the team; end the "+
			"host first, then mend")
	}
	if h.Better() && !x.Force {
		return team.Refuse(team.NotReady, "a checkpoint in git has the records up to %d, and the files only those up "+
			"to %d. Nothing was changed. Restore the team from the checkpoint, which keeps the damaged files aside, "+
			"or mend it without the checkpoint", h.Checkpoint, h.Last).
			With(team.Hint{Action: team.ActContinueCopy, Team: h.Team})
	}
	ctx, cancel := context.WithTimeout(ctx, mendTime)
	defer cancel()
	m, err := filejournal.Mend(ctx, dir)
	if err != nil {
		return err
	}
	h.Mended, h.Last, h.Aside = true, m.Last, m.Aside
	if m.Last == 0 {
		next := team.Hint{Action: team.ActShowTeams}
		if h.Checkpoint > 0 {
			next = team.Hint{Action: team.ActContinueCopy, Team: h.Team}
		}
		if dir, err = setAside(ctx, x.Home, h.Team, dir, x.Log); err != nil {
			return err
		}
		return team.Refuse(team.Finished, "nothing of the team could be read, so the team does not exist any more, "+
			"and its name is free; its files are kept in %s, which you may remove", dir).With(next)
	}
	if m.Hole != nil {
		h.Hole = m.Hole.String()
	}
	if m.Lost != nil {
		h.Lost = m.Lost.String()
	}
	return nil
}
