package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/engine/transfer"
	"cadre/internal/git/checkpoint"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/run"
	"cadre/internal/team"
)

// checkpointTime bounds a checkpoint that is asked for by hand.
const checkpointTime = time.Minute

// checkpointed is a checkpoint that was made, or the last one where nothing was new.
type checkpointed struct {
	Team    string            `json:"team"`    // id of the team
	Seq     int64             `json:"seq"`     // number of records in the checkpoint
	At      team.Time         `json:"at"`      // when the last of these records was written
	Commit  string            `json:"commit"`  // id of the checkpoint's commit; "" outside a repository
	Place   string            `json:"place"`   // branch of the checkpoint; outside a repository a folder
	Written bool              `json:"written"` // the team had changed, so a new checkpoint was made
	Left    []checkpoint.Left `json:"left"`    // files that the checkpoint does not contain
}

func (a *app) checkpointCommand() *cobra.Command {
	var include []string
	c := a.looking(0, &cobra.Command{
		Use: "checkpoint [TEAM]", Short: "Save the team and its work on a branch of its repository",
		Long: `Make a checkpoint of the team now: a commit on the branch cadre/TEAM of its repository. The work tree,
the index, HEAD and hooks stay untouched. The branch contains the work: the branches of members, and the uncommitted
changes of the team in its directory. Outside a repository, the checkpoint is in the team's folder, without the work.

Ignored files, files over 5 MiB and files that likely contain a secret are left out and listed. --include PATH
includes them, in this and in later checkpoints.

A checkpoint carries the teams in the team: with their tasks, notes, mail and branches.

Hosts make checkpoints by themselves. If a team's folder is lost, the last checkpoint restores it: cadre resume TEAM
--from-git.`,
	}, func(c *cobra.Command, d *engine.Team, _ []string) error {
		ctx, cancel := context.WithTimeoutCause(c.Context(), checkpointTime,
			fmt.Errorf("the checkpoint was not made within %s", team.Span(checkpointTime)))
		defer cancel()
		paths, err := fromTop(d.Team(), include)
		if err != nil {
			return err
		}
		made, err := d.Checkpoint(ctx, paths...)
		if err != nil {
			return err
		}
		if made.Notice != "" {
			a.note(made.Notice)
		}
		a.noteLeft(made)
		a.noteNested(made)
		value := checkpointed{made.Team, made.Seq, made.At, made.Commit, made.Place, made.Written, leftOf(made)}
		return a.print(value, func(w *sanitize.Writer) error {
			if !made.Written {
				return said("the last checkpoint has everything: %s, %d records%s", made.Place, made.Seq,
					prefix(", commit ", made.Commit))(w)
			}
			return said("checkpoint of %d records on %s%s", made.Seq, made.Place, prefix(", commit ", made.Commit))(w)
		})
	})
	c.Flags().StringArrayVar(&include, "include", nil, "file or folder to include although it is ignored, "+
		"large, or likely contains a secret; may be repeated")
	return c
}

// noteLeft lists what a checkpoint leaves out. Ignored files get one line: usually there are many,
// and they are not work.
func (a *app) noteLeft(made checkpoint.Checkpoint) {
	if made.Unknown != "" {
		a.note("the checkpoint contains no files of the team's directory:  " + made.Unknown)
	}
	var ignored []checkpoint.Left
	for _, left := range made.Left {
		if left.Ignored {
			ignored = append(ignored, left)
			continue
		}
		a.note("not carried: " + left.String() + "; to carry it: --include " + left.Path)
	}
	switch { // ignored paths come last, so further paths are ignored ones, if there are any
	case len(ignored) > 0:
		a.note("not carried, because git ignores it: " + listed(ignored, made.More, func(l checkpoint.Left) string {
			return l.Path
		}))
	case made.More > 0:
		a.note(fmt.Sprintf("not carried: %s more", team.Count(made.More, "path")))
	}
}

// noteNested lists what a checkpoint lacks of the teams in the team.
func (a *app) noteNested(made checkpoint.Checkpoint) {
	for _, n := range made.Nested {
		switch {
		case n.Commit == "":
			a.note(fmt.Sprintf("not carried: team %s, which works in this team: %s", n.Name, n.Why))
		case n.Why != "":
			a.note(fmt.Sprintf("carried as it was before: team %s, which works in this team: %s", n.Name, n.Why))
		}
		for _, left := range n.Left {
			if !left.Ignored {
				a.note(fmt.Sprintf("not carried of team %s, which works in this team: %s", n.Name, left))
			}
		}
	}
}

// mostPaths is how many paths of a list are named.
const mostPaths = 10

// listed names the first paths of a list, and how many more there are. more counts paths without a
// name here.
func listed(all []checkpoint.Left, more int, name func(checkpoint.Left) string) string {
	var names []string
	for _, l := range all[:min(len(all), mostPaths)] {
		names = append(names, name(l))
	}
	more += len(all) - len(names)
	switch {
	case more > 0 && len(names) > 0:
		return fmt.Sprintf("%s and %d more", strings.Join(names, ", "), more)
	case more > 0:
		return team.Count(more, "path")
	}
	return strings.Join(names, ", ")
}

func leftOf(made checkpoint.Checkpoint) []checkpoint.Left {
	if made.Left == nil {
		return []checkpoint.Left{}
	}
	return made.Left
}

// restoring says from where to restore a team, and which checks to set again.
type restoring struct {
	dir    string // in the repository; "" for where the command was called
	at     string // ref of the checkpoint, where there are two histories
	checks []string
}

// restore restores a team with its work from its last checkpoint. The team's folder was lost.
func (a *app) restore(ctx context.Context, name string, how restoring) (*checkpoint.Restored, error) {
	project, err := workDir(cmp.Or(how.dir, "."))
	if err != nil {
		return nil, err
	}
	checks, err := run.ParseChecks(how.checks)
	if err != nil {
		return nil, err
	}
	found, err := a.engine().Restore(ctx, transfer.Options{Team: name, Dir: project, Named: how.dir != "", At: how.at,
		Checks: checks})
	if errors.Is(err, transfer.ErrNoRepository) {
		return nil, usage{fmt.Errorf("%s is in no git repository, so there are no checkpoints of team %s to restore "+
			"it from; --dir names the repository", project, name)}
	}
	if err != nil {
		return nil, a.moving(err, name, "cadre resume "+name)
	}
	a.home = a.home.In(found.Dir)
	a.noteArrived(name, found)
	if a.json {
		return found.Restored, nil
	}
	return found.Restored, said("team %s is restored from %s: %d records, made %s; it works in %s", name, found.Place,
		found.Seq, render.Ago(now(), found.At), found.Dir)(a.out.Writer)
}
