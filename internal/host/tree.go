package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"cadre/internal/git/checkpoint"
	"cadre/internal/layout"
	"cadre/internal/render/excerpt"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// nesting reports whether teams in the team are at work.
func nesting(t team.Team) bool {
	return slices.ContainsFunc(t.Children, func(c team.Child) bool { return !c.Over })
}

// tree makes checkpoints of the teams in a team.
type tree struct {
	replica *replica.Replica
	folder  string
	ended   map[string]bool // ids of the teams that have ended, and have their last checkpoint
	records int64           // of the teams in the team, at the last look
}

// checkpoints makes a checkpoint of each team in the team, and returns those that the home has. A
// team that cannot be read does not keep its parent from having checkpoints. But where one of them
// continues elsewhere, the whole tree does.
func (n *tree) checkpoints(ctx context.Context, of team.Team) (all []checkpoint.Nested, err error) {
	home := layout.Of(n.folder)
	for _, c := range of.Children {
		folder := home.Has(c.Team)
		if folder == "" { // it is not made yet, or was removed
			continue
		}
		one := checkpoint.Nested{Team: c.Team, Name: c.Name}
		if !n.ended[c.Team] {
			over, err := checkpointIn(ctx, home, folder)
			switch {
			case ctx.Err() != nil:
				return nil, context.Cause(ctx)
			case errors.Is(err, checkpoint.ErrForked):
				return nil, fmt.Errorf("team %s in it: %w", c.Name, err)
			case err != nil:
				one.Why = excerpt.Line(err.Error(), mostWhy)
			case over && c.Over:
				if n.ended == nil {
					n.ended = map[string]bool{}
				}
				n.ended[c.Team] = true
			}
		}
		all = append(all, one)
	}
	return all, n.replica.Refresh(ctx)
}

// mostWhy bounds the reason why a team is not carried, in bytes.
const mostWhy = 300

// changed reports whether a team in the team that is at work changed since the last call.
func (n *tree) changed(ctx context.Context) bool {
	before := n.records
	n.records = recordsIn(ctx, layout.Of(n.folder), n.replica.Team())
	return n.records != before
}

// recordsIn returns the number of records of the teams in the team that are at work, however deep.
func recordsIn(ctx context.Context, home layout.Home, of team.Team) (records int64) {
	for _, c := range of.Children {
		folder := home.Has(c.Team)
		if c.Over || folder == "" {
			continue
		}
		look(ctx, home, folder, func(rep *replica.Replica) error { // one that cannot be read shows no change
			records += rep.Seq() + recordsIn(ctx, home, rep.Team())
			return nil
		})
	}
	return records
}

// look opens the team in that folder, and calls see with it.
func look(ctx context.Context, home layout.Home, folder string, see func(*replica.Replica) error) error {
	j, err := home.OpenFolder(folder, func(string) {})
	if err != nil {
		return err
	}
	rep, err := replica.Open(ctx, j, replica.Options{})
	if err != nil {
		return err
	}
	return errors.Join(see(rep), rep.Close())
}

// checkpointIn makes a checkpoint of the team in that folder, and reports whether it has ended. One
// that worked in a worktree which was removed has its last checkpoint.
func checkpointIn(ctx context.Context, home layout.Home, folder string) (over bool, err error) {
	err = look(ctx, home, folder, func(rep *replica.Replica) error {
		t := rep.Team()
		over = t.Ended()
		if _, err := os.Lstat(t.Dir); over && errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		made, err := Checkpoint(ctx, rep, folder)
		if err == nil && made.Commit == "" {
			err = errors.New(made.Notice)
		}
		return err
	})
	return over, err
}
