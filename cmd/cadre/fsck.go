package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"cadre/internal/engine/upkeep"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// verdict is the result of fsck, and of its repair with --mend.
type verdict struct{ upkeep.Health }

func (a *app) fsckCommand() *cobra.Command {
	var mend, force bool
	c := a.onTeam(0, &cobra.Command{
		Use: "fsck [TEAM]", Short: "Check a team's files, and mend them",
		Long: `Read all files of a team and report damage, with file and line. Nothing of the team is changed. With
--mend the team is made usable again with as little loss as possible. It reports exactly what is lost, and sets the
damaged files aside.

If the repository that you are in has a checkpoint with more records than the damaged files, restore it: cadre resume
TEAM --from-git. Then --mend needs --force.

Where a team is not damaged, its roster and tasks in Claude Code's folders are compared with it, and rewritten where
they differ.

Exit status 0: no damage, or mended. 2: damage.`,
	}, func(c *cobra.Command, name string, _ []string) error {
		x := upkeep.FileCheck{Home: a.home, Log: a.note, Dir: ".", Force: force}
		h, err := x.Check(c.Context(), name)
		if swapped, ok := errors.AsType[*upkeep.SwappedError](err); ok {
			return team.Refuse(team.Finished, "%s", swapped).With(team.Hint{Action: team.ActContinueCopy, Team: name})
		}
		if err != nil {
			return err
		}
		if !h.Healthy && mend {
			if err := x.Mend(c.Context(), &h); team.CodeOf(err) == team.NotReady && h.Better() {
				return withWays(err, way{"mend it all the same", render.Typed("fsck", name, "--mend", "--force")})
			} else if err != nil {
				return err
			}
		}
		v := verdict{h}
		if err := a.print(v, v.write); err != nil {
			return err
		}
		if !v.Healthy && !v.Mended {
			return exit(hopeless)
		}
		return nil
	})
	c.Flags().BoolVar(&mend, "mend", false, "make the team usable again; the damaged files are set aside")
	c.Flags().BoolVar(&force, "force", false, "with --mend, also if a checkpoint in git has more")
	return c
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
		w.Printf("mended: the team continues after record %d\n", v.Last)
		if v.Hole != "" {
			w.Printf("  the records %s are missing in the history; their effect is kept\n", v.Hole)
		}
		if v.Lost != "" {
			w.Printf("  LOST: the records %s and their effect\n", v.Lost)
		}
		for _, path := range v.Aside {
			w.Printf("  set aside: %s\n", path)
		}
	case v.Healthy:
		snapshot := "no snapshot yet"
		if v.Snapshot > 0 {
			snapshot = fmt.Sprintf("the snapshot at record %d", v.Snapshot)
		}
		w.Printf("%s is intact: %s, %s\n", v.Team, team.Count(v.Last, "record"), snapshot)
		if v.Rebuilt > 0 {
			w.Printf("brought up to date: %s in Claude Code's folders\n", team.Count(v.Rebuilt, "file"))
		}
	case v.Better():
		w.Printf("the history is intact up to record %d, and a checkpoint in git has all up to record %d; to restore "+
			"it: cadre resume %s --from-git\n", v.Last, v.Checkpoint, v.Team)
	default:
		w.Printf("the history is intact up to record %d; to mend the team: cadre fsck %s --mend\n", v.Last, v.Team)
	}
	return nil
}
