package run

import (
	"context"
	"errors"

	"cadre/internal/consolidate"
	"cadre/internal/team"
)

// folder returns the folder of the child team.
func (c *child) folder() (string, error) {
	folder := c.of.Engine().Home.Has(c.link.Team)
	if folder == "" {
		return "", team.Refuse(team.NotFound, "team %s was removed", c.link.Name)
	}
	return folder, nil
}

// now returns the child team as it is.
func (c *child) now(ctx context.Context) (t team.Team, err error) {
	folder, err := c.folder()
	if err != nil {
		return t, err
	}
	of, err := c.of.Engine().LookIn(ctx, folder)
	if err != nil {
		return t, err
	}
	return of.Team(), of.Close()
}

// consolidate checks the work of a child team, and commits it to the branch of its member. The
// parent's consolidation merges that branch. It does nothing for a child in the directory of its
// parent, and for one that is complete because it has nothing to check or merge.
func (c *child) consolidate(ctx context.Context) (*consolidate.Record, error) {
	folder, err := c.folder()
	if err != nil {
		return nil, err
	}
	t, err := c.of.Engine().OpenIn(ctx, c.link.Name, folder)
	if err != nil {
		return nil, err
	}
	var record *consolidate.Record
	if of := t.Team(); of.Parent.Worktree && (of.Status == team.TeamConsolidating || t.Unsealed(ctx)) {
		record, err = t.ConsolidateChild(ctx, consolidate.Options{Actor: team.User})
	}
	return record, errors.Join(err, t.Close())
}
