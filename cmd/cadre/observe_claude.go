package main

import (
	"context"
	"fmt"
	"os"

	"cadre/internal/claude/teamfiles"
	"cadre/internal/observe/source"
	"cadre/internal/observe/store"
	"cadre/internal/render"
	"cadre/internal/team"
)

// claudeFeed returns the feed of the files of a Claude Code team. If that team does not exist any
// more and was observed before, it has ended.
func (o *observation) claudeFeed() (source.Feed, error) {
	t, err := teamfiles.Open(o.home.Claude, o.claudeTeam)
	switch _, kept := os.Stat(o.home.Observation(o.asTeam)); {
	case team.CodeOf(err) == team.NotFound && o.asTeam != "" && kept == nil:
	case err != nil:
		return nil, err
	default:
		if c, err := t.Config(context.Background()); err == nil && c.Cadre != nil {
			return nil, withWays(usage{fmt.Errorf("team %s is one of cadre's, which Claude Code's folder only shows",
				o.claudeTeam)}, way{"see it", render.Typed("status", o.claudeTeam)})
		}
	}
	return &source.ClaudeTeam{Claude: o.home.Claude, Name: o.claudeTeam, Follow: o.follow}, nil
}

// ended returns the result of the watch. A Claude Code team that was deleted in the meantime has
// ended.
func (o *observation) ended(w *store.Watch, err error) error {
	known := false
	w.View(func(seen store.Observer) { known = seen.Team() != nil })
	if o.claudeTeam == "" || team.CodeOf(err) != team.NotFound || !known {
		return err
	}
	o.note(fmt.Sprintf("the Claude Code team %s has ended", o.claudeTeam))
	return nil
}
