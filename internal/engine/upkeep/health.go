package upkeep

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"cadre/internal/claude/projection"
	"cadre/internal/host"
	"cadre/internal/journal"
	"cadre/internal/journal/filejournal"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// Health is what the files of a team were found to be, and what was mended.
type Health struct {
	Team     string   `json:"team"`
	Healthy  bool     `json:"healthy"`
	Segments int      `json:"segments"`
	Last     int64    `json:"last"`     // the history is whole up to this record
	Durable  int64    `json:"durable"`  // and was acknowledged up to this one
	Snapshot int64    `json:"snapshot"` // 0 for none
	Problems []string `json:"problems"`
	Notes    []string `json:"notes"`
	Mended   bool     `json:"mended"`
	Hole     string   `json:"hole,omitempty"` // records that are gone, their effect is not
	Lost     string   `json:"lost,omitempty"` // records whose effect is gone
	Aside    []string `json:"aside,omitempty"`
	Rebuilt  int      `json:"rebuilt,omitempty"` // files of Claude Code's folders that did not show the team as it is
}

// SwappedError says that the files of a team are another's: each may be whole, and none can stand
// for what is missing.
type SwappedError struct{ Team, Reason string }

func (e *SwappedError) Error() string {
	return e.Reason + ". There is nothing to mend, and nothing was changed. Put the team's own files back, or restore " +
		"the team from its last checkpoint, which keeps the present files"
}

func (e *SwappedError) Unwrap() error {
	return team.Refuse(team.Finished, "%s", e.Error()).With(team.Hint{Action: team.ActContinueCopy, Team: e.Team})
}

// Examiner examines the files of teams of a home.
type Examiner struct {
	Home    layout.Home
	Log     func(string)
	Explain func(error) string // puts an error into a problem or a note
}

// Check reads everything of a team: the journal, and then the team from it, because what the files
// say may be whole and still make no sense. Of a team that is whole, what Claude Code's folders show
// is written again where it differs; nothing of the team itself is changed.
func (x Examiner) Check(ctx context.Context, name string) (Health, error) {
	dir, err := x.Home.Folder(name)
	if err != nil {
		return Health{}, err
	}
	found, err := filejournal.Check(dir)
	if err != nil {
		return Health{}, err
	}
	if found.Swapped != "" {
		return Health{}, &SwappedError{name, found.Swapped}
	}
	h := Health{Team: name, Segments: found.Segments, Last: found.Last, Durable: found.Durable, Snapshot: found.Snapshot,
		Problems: []string{}, Notes: []string{}}
	for _, p := range found.Problems {
		h.Problems = append(h.Problems, p.String())
	}
	for _, p := range found.Torn {
		h.Notes = append(h.Notes, p.String()+"; it was never acknowledged, and the next writer cuts it away")
	}
	for _, hole := range found.Holes {
		h.Notes = append(h.Notes, fmt.Sprintf("the records %s were lost earlier; their effect is in the snapshot", hole))
	}
	if h.Healthy = len(h.Problems) == 0; h.Healthy {
		err = x.read(ctx, name, len(found.Holes) == 0, &h)
	}
	return h, err
}

// read reads the team from its journal. whole says that the journal has all records.
func (x Examiner) read(ctx context.Context, name string, whole bool, h *Health) error {
	j, dir, err := x.Home.Open(name, x.Log)
	// each file is whole, and they are another team's
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
	if t := rep.Team(); t.CheckOurs() == nil {
		shown := &projection.Projector{Claude: x.Home.Claude, Mark: filepath.Join(dir, projection.MarkFile), Log: x.Log}
		rep.View(func(s *team.State) { h.Rebuilt, err = shown.Repair(ctx, j, s) })
		if err != nil {
			h.Notes = append(h.Notes, x.Explain(err))
		}
	}
	return nil
}

// compare builds the team from its whole history and holds the snapshot against it.
func (x Examiner) compare(ctx context.Context, rep *replica.Replica, h *Health) {
	again := &team.State{}
	for r, err := range rep.Read(ctx, 0) {
		if err != nil {
			h.Healthy = false
			h.Problems = append(h.Problems, x.Explain(err))
			return
		}
		if again.Apply(r); again.Seq() == rep.Seq() {
			break
		}
	}
	rep.View(func(s *team.State) {
		if string(team.AppendSnapshot(nil, s)) != string(team.AppendSnapshot(nil, again)) {
			h.Notes = append(h.Notes, "the snapshot differs from what the history says; delete state.json, and it is "+
				"made anew")
		}
	})
}

// mendTime bounds how long the journal is waited for.
const mendTime = 30 * time.Second

// Mend makes a team that was found damaged usable again, with as little loss as possible, and says
// in h what is lost. The damaged files are set aside.
func (x Examiner) Mend(ctx context.Context, h *Health) error {
	dir, err := x.Home.Folder(h.Team)
	if err != nil {
		return err
	}
	if host.Hosted(filepath.Join(dir, "hosts")) {
		return team.Refuse(team.NotReady, "a host still runs sessions of the team, and would lose it; end it first, "+
			"then mend")
	}
	ctx, cancel := context.WithTimeout(ctx, mendTime)
	defer cancel()
	m, err := filejournal.Mend(ctx, dir)
	if err != nil {
		return err
	}
	h.Mended, h.Last, h.Aside = true, m.Last, m.Aside
	if m.Last == 0 {
		return team.Refuse(team.Finished, "nothing of the team could be read, so there is no team any more; what there "+
			"was is set aside in %s, which may be removed", dir)
	}
	if m.Hole != nil {
		h.Hole = m.Hole.String()
	}
	if m.Lost != nil {
		h.Lost = m.Lost.String()
	}
	return nil
}
