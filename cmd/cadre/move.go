package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"cadre/internal/host"
	"cadre/internal/inspect"
	"cadre/internal/liveness/leader"
	"cadre/internal/replica"
	"cadre/internal/sys/filelock"
	"cadre/internal/team"
)

// move tells the team where its project is now. Nobody may work for it meanwhile.
func (a *app) move(ctx context.Context, rep *replica.Replica, dir, to string) error {
	t := rep.Team()
	lock, err := leader.Claim(dir)
	if errors.Is(err, filelock.ErrHeld) || err == nil && host.Hosted(filepath.Join(dir, "hosts")) {
		if err == nil {
			lock.Unlock()
		}
		return &team.Error{Code: team.NotReady, Text: fmt.Sprintf("processes of team %s still run in %s, which is to "+
			"be somewhere else. End them (cadre probe %s names them), and try again", t.Name, t.Dir, t.Name)}
	}
	if err != nil {
		return err
	}
	defer lock.Unlock()
	body, err := inspect.Move(ctx, rep, dir, to)
	if err != nil {
		return err
	}
	receipt, err := rep.Do(ctx, team.Command{Actor: team.User, Body: body})
	if err == nil && receipt.Record != nil {
		a.note(fmt.Sprintf("team %s works in %s now, and not in %s", t.Name, body.Dir, t.Dir))
	}
	return err
}

// inPlace refuses a team of which something is missing, before anything of it starts. Worktrees
// that have moved, or whose repository has, are joined with it again.
func (a *app) inPlace(ctx context.Context, found *inspect.Examination, dir string) error {
	if err := inspect.InPlace(found.Team, found.Place); err != nil {
		return err
	}
	whose, err := inspect.Rejoin(ctx, found.Team, found.Place, dir)
	for _, member := range whose {
		a.note(fmt.Sprintf("the worktree of %s is joined with the repository again", member))
	}
	if err == nil {
		found.Place = []inspect.Missing{}
	}
	return err
}
