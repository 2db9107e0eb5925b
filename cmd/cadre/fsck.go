package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"cadre/internal/host"
	"cadre/internal/journal"
	"cadre/internal/journal/filejournal"
	"cadre/internal/render/sanitize"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// verdict is what fsck found, and with --mend did.
type verdict struct {
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

func (a *app) fsckCommand() *cobra.Command {
	var mend bool
	c := a.onTeam(0, &cobra.Command{
		Use: "fsck [TEAM]", Short: "Check a team's files, and mend them",
		Long: `Read everything of a team and say what is damaged, with file and line. With --mend the team is made usable again with as little
loss as possible, it is said exactly what is lost, and the damaged files are set aside. Without it nothing of the team is changed.

Of a team that is whole, the roster and the tasks that Claude Code's folders show are compared with the team, and written again
where they differ.

Exit status 0: all is well, or was mended. 2: there is damage.`,
	}, func(c *cobra.Command, name string, _ []string) error {
		ctx := c.Context()
		dir, err := a.home.Folder(name)
		if err != nil {
			return err
		}
		v, err := a.examine(ctx, name, dir)
		if err != nil {
			return err
		}
		if !v.Healthy && mend && host.Hosted(filepath.Join(dir, "hosts")) {
			return &team.Error{Code: team.NotReady, Text: "a host still runs sessions of the team, and would lose " +
				"it; end it first, then mend"}
		}
		if !v.Healthy && mend {
			if err := mendTeam(ctx, dir, &v); err != nil {
				return err
			}
		}
		if err := a.print(v, v.write); err != nil {
			return err
		}
		if !v.Healthy && !v.Mended {
			return exit(hopeless)
		}
		return nil
	})
	c.Flags().BoolVar(&mend, "mend", false, "make the team usable again; the damaged files are set aside")
	return c
}

// examine reads the journal, and then the team from it: what the files say may be whole and still
// make no sense.
func (a *app) examine(ctx context.Context, name, dir string) (verdict, error) {
	h, err := filejournal.Check(dir)
	if err != nil {
		return verdict{}, err
	}
	if h.Swapped != "" {
		return verdict{}, anothers(name, h.Swapped)
	}
	v := verdict{Team: name, Segments: h.Segments, Last: h.Last, Durable: h.Durable, Snapshot: h.Snapshot,
		Problems: []string{}, Notes: []string{}}
	for _, p := range h.Problems {
		v.Problems = append(v.Problems, p.String())
	}
	for _, p := range h.Torn {
		v.Notes = append(v.Notes, p.String()+"; it was never acknowledged, and the next writer cuts it away")
	}
	for _, hole := range h.Holes {
		v.Notes = append(v.Notes, fmt.Sprintf("the records %s were lost earlier; their effect is in the snapshot",
			hole))
	}
	if v.Healthy = len(v.Problems) == 0; v.Healthy {
		j, _, err := a.home.Open(name, a.note)
		// each file is whole, and they are another team's
		if damage, ok := errors.AsType[*journal.DamageError](err); ok {
			return v, anothers(name, fmt.Sprintf("%s: %s", damage.Segment, damage.Reason))
		}
		if err != nil {
			return v, err
		}
		rep, err := replica.Open(ctx, j, replica.Options{Log: a.note})
		if err != nil {
			return v, err
		}
		defer rep.Close()
		if len(h.Holes) == 0 {
			v.compare(ctx, rep)
		}
		if t := rep.Team(); t.CheckOurs() == nil {
			if v.Rebuilt, err = a.rebuild(ctx, rep, j, dir); err != nil {
				v.Notes = append(v.Notes, explain(err))
			}
		}
	}
	return v, nil
}

// anothers refuses to mend a team whose files are another's: each may be whole, and none can stand
// for what is missing.
func anothers(name, reason string) error {
	return &team.Error{Code: team.Finished, Text: fmt.Sprintf("%s. There is nothing to mend, and nothing was "+
		"changed. Put the team's own files back, or restore the team "+
		"from its last checkpoint, which keeps the present files: cadre resume %s --from-git", reason, name)}
}

// rebuild puts right what Claude Code's folders show of the team, and returns how many files it
// took.
func (a *app) rebuild(ctx context.Context, rep *replica.Replica, j journal.Journal, dir string) (files int, err error) {
	rep.View(func(s *team.State) { files, err = a.engine().Projector(dir).Repair(ctx, j, s) })
	return files, err
}

// compare builds the team from its whole history and holds the snapshot against it.
func (v *verdict) compare(ctx context.Context, rep *replica.Replica) {
	again := &team.State{}
	for r, err := range rep.Read(ctx, 0) {
		if err != nil {
			v.Healthy = false
			v.Problems = append(v.Problems, explain(err))
			return
		}
		if again.Apply(r); again.Seq() == rep.Seq() {
			break
		}
	}
	rep.View(func(s *team.State) {
		if string(team.AppendSnapshot(nil, s)) != string(team.AppendSnapshot(nil, again)) {
			v.Notes = append(v.Notes, "the snapshot differs from what the history says; delete state.json, and it is "+
				"made anew")
		}
	})
}

func mendTeam(ctx context.Context, dir string, v *verdict) error {
	ctx, cancel := context.WithTimeout(ctx, lockWait)
	defer cancel()
	m, err := filejournal.Mend(ctx, dir)
	if err != nil {
		return err
	}
	v.Mended, v.Last, v.Aside = true, m.Last, m.Aside
	if m.Last == 0 {
		return &team.Error{Code: team.Finished, Text: fmt.Sprintf("nothing of the team could be read, so there is no "+
			"team any more; what there was is set aside in %s, which may be removed", dir)}
	}
	if m.Hole != nil {
		v.Hole = m.Hole.String()
	}
	if m.Lost != nil {
		v.Lost = m.Lost.String()
	}
	return nil
}

func (v verdict) write(w *sanitize.Writer) error {
	for _, p := range v.Problems {
		w.Printf("damaged: %s\n", p)
	}
	for _, n := range v.Notes {
		w.Printf("note: %s\n", n)
	}
	switch {
	case v.Mended:
		w.Printf("mended: the team goes on after record %d\n", v.Last)
		if v.Hole != "" {
			w.Printf("  the records %s are gone from the history; what they did is kept\n", v.Hole)
		}
		if v.Lost != "" {
			w.Printf("  LOST: the records %s and what they did\n", v.Lost)
		}
		for _, path := range v.Aside {
			w.Printf("  set aside: %s\n", path)
		}
	case v.Healthy:
		w.Printf("%s is whole: %d records in %d segments, the snapshot at %d\n", v.Team, v.Last, v.Segments, v.Snapshot)
		if v.Rebuilt > 0 {
			w.Printf("%s in Claude Code's folders did not show the team as it is; written again\n",
				plural(v.Rebuilt, "file"))
		}
	default:
		w.Printf("the history is whole up to record %d; to mend the team: cadre fsck %s --mend\n", v.Last, v.Team)
	}
	return nil
}
