package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/checkpoint"
	"cadre/internal/coord"
	"cadre/internal/desk"
	"cadre/internal/proc"
	"cadre/internal/show"
	"cadre/internal/team"
)

// checkpointTime bounds a checkpoint that is asked for by hand.
const checkpointTime = time.Minute

func (a *app) checkpointCommand() *cobra.Command {
	return &cobra.Command{
		Use: "checkpoint [TEAM]", Short: "Keep what the team is now on a branch of its repository", Args: positional(0),
		Long: "Make a checkpoint of the team now: a commit on the branch cadre/TEAM of the repository that it works in, which touches neither the\nwork tree nor the index, HEAD or any hook. Outside a repository it is kept beside the team. Hosts make checkpoints by themselves; a team\nwhose folder was lost comes back from the last one: cadre resume TEAM --from-git.",
		RunE: func(c *cobra.Command, args []string) error {
			ctx, cancel := context.WithTimeoutCause(c.Context(), checkpointTime, fmt.Errorf("the checkpoint was not made within %s", checkpointTime))
			defer cancel()
			name, _, err := a.split(ctx, args, 0)
			if err != nil {
				return err
			}
			d, dir, err := a.open(ctx, name, false)
			if err != nil {
				return err
			}
			defer d.Close()
			made, notice, err := coord.Checkpoint(ctx, d, dir)
			if err != nil {
				return err
			}
			if notice != "" {
				a.note(notice)
			}
			value := map[string]any{"team": made.Team, "seq": made.Seq, "at": made.At, "commit": made.Commit, "place": made.Place, "written": made.Written}
			return a.print(value, func(w io.Writer) error {
				if !made.Written {
					return said("the last checkpoint has everything: %s, %d records%s", made.Place, made.Seq, prefix(", commit ", made.Commit))(w)
				}
				return said("checkpoint of %d records on %s%s", made.Seq, made.Place, prefix(", commit ", made.Commit))(w)
			})
		},
	}
}

// restore founds a team whose folder was lost anew, from its last checkpoint.
func (a *app) restore(ctx context.Context, name, dir string) error {
	if err := team.CheckName("team", name); err != nil {
		return err
	}
	if folder, err := a.home.Folder(name); err == nil {
		return &team.Error{Code: team.Taken, Text: fmt.Sprintf("team %s is there, in %s, and newer than any checkpoint; go on with it: cadre resume %s", name, folder, name)}
	} else if team.CodeOf(err) != team.NotFound {
		return err
	}
	project, err := workDir(dir)
	if err != nil {
		return err
	}
	procs, err := proc.Open("")
	if err != nil {
		return err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	store, err := checkpoint.Open(ctx, procs, project, name, filepath.Join(a.home.Root, "teams", name))
	if err != nil {
		return err
	}
	if store.Notice() != "" {
		return usage{fmt.Errorf("%s is in no git repository, so there are no checkpoints of team %s to restore it from; --dir names the repository", project, name)}
	}
	found, err := store.Restore(ctx)
	if damage := (*checkpoint.DamageError)(nil); errors.Is(err, checkpoint.ErrNone) || errors.As(err, &damage) {
		return usage{err}
	}
	if err != nil {
		return err
	}
	where := ""
	if _, err := os.Stat(found.State.Team().Dir); err != nil { // it worked in another clone, or on another machine
		where = project
	}
	if err := a.home.Create(name, []team.Command{found.Command(desk.NewID(), desk.Now(), where)}); err != nil {
		return err
	}
	for _, lost := range found.Redacted {
		a.note(lost)
	}
	d, folder, err := a.open(ctx, name, true)
	if err != nil {
		return err
	}
	defer d.Close()
	if _, _, err := coord.Checkpoint(ctx, d, folder); err != nil { // so that the history that was lost cannot go on beside this one
		return err
	}
	if a.json {
		return nil
	}
	return said("team %s is restored from %s: %d records, made %s", name, found.Place, found.Seq, show.Ago(desk.Now(), found.At))(a.out)
}
