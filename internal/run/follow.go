package run

import (
	"context"
	"fmt"

	"cadre/internal/engine"
	"cadre/internal/host"
	"cadre/internal/inspect"
	"cadre/internal/run/teamfile"
	"cadre/internal/team"
)

// follow applies a changed team file, and the tasks to do again, to the unfinished team.
func (a *attempt) follow(ctx context.Context) error {
	ask := a.Changed
	if ask == nil {
		ask = func(c Changes) error {
			return team.Refuse(team.NotReady, "%s was changed since team %s was made from it, and this call does not "+
				"agree to the changes", c.Path, c.Team)
		}
	}
	c, err := Follow(ctx, a.team, a.File, a.Redo, ask)
	if err != nil || c.Asks() { // a person who was asked has seen the changes
		return err
	}
	for _, one := range c.All {
		switch {
		case one.Why == "":
		case one.Does == ChangeRedo && !one.Skipped():
			a.Engine.Note("task " + one.Name + " is done again; " + one.Why)
		default:
			a.Engine.Note("task " + one.Name + ": " + one.Why)
		}
	}
	return nil
}

// Follow applies a changed team file to the unfinished team that was made from it, in one record.
// It calls ask with the changes if a person must agree. If ask returns an error, Follow returns it
// and changes nothing. Changes that cannot be applied now are refused. It returns the applied
// changes.
func Follow(ctx context.Context, t *engine.Team, f *teamfile.File, redo []string,
	ask func(Changes) error) (c Changes, err error) {
	of := t.Team()
	if of.OriginDigest == f.Digest() && len(redo) == 0 {
		return c, nil
	}
	c, err = Differences(ctx, t, f, redo)
	if err != nil {
		return c, err
	}
	if err := c.Refused(); err != nil {
		return c, err
	}
	if f.Elsewhere() {
		if of.Remote = f.Remote; of.Remote != "" {
			if err := t.Engine().SendBase(ctx, of); err != nil {
				return c, err
			}
		}
	}
	if c.Asks() {
		if err := ask(c); err != nil {
			return c, err
		}
		if err := t.Refresh(ctx); err != nil { // the answer may have come late
			return c, err
		}
		now, err := Differences(ctx, t, f, redo)
		if err != nil {
			return c, err
		}
		if err := now.Refused(); err != nil {
			return c, err
		}
		if fmt.Sprint(now.All) != fmt.Sprint(c.All) {
			return c, team.Refuse(team.Conflict, "team %s changed while you were asked; run it again", of.Name)
		}
		c = now
	}
	_, err = t.Do(ctx, team.Command{Actor: team.User, Body: &team.Batch{Bodies: c.commands}})
	return c, err
}

// Differences compares the file with the team as [Compare] does, and with the directory of the
// team.
func Differences(ctx context.Context, t *engine.Team, f *teamfile.File, redo []string) (c Changes, err error) {
	facts, err := factsNow(ctx, t.Team().Dir, f)
	if err != nil {
		return c, err
	}
	hosted := host.Hosted(ctx, t.Shared())
	t.View(func(s *team.State) { c, err = Compare(s, f, facts, hosted, redo) })
	return c, err
}

// factsNow returns the facts of the file as they are in the directory.
func factsNow(ctx context.Context, dir string, f *teamfile.File) ([]team.Fact, error) {
	var facts []team.Fact
	for _, one := range f.Facts {
		facts = append(facts, team.Fact{Name: one.Name, Path: one.Path})
	}
	return inspect.Recorded(ctx, dir, facts)
}
