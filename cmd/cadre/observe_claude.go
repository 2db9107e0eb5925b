package main

import (
	"context"
	"fmt"
	"os"

	"cadre/internal/claude/teamfiles"
	"cadre/internal/observe/source"
	"cadre/internal/observe/store"
	"cadre/internal/team"
)

// claudeFeed is what the files of a team of Claude Code's show. One that is gone, and was observed
// before, is known to be over by that.
func (o *observation) claudeFeed() (source.Feed, error) {
	t, err := teamfiles.Open(o.home.Claude, o.claudeTeam)
	switch _, kept := os.Stat(o.home.Observation(o.asTeam)); {
	case team.CodeOf(err) == team.NotFound && o.asTeam != "" && kept == nil:
	case err != nil:
		return nil, err
	default:
		if c, err := t.Config(context.Background()); err == nil && c.Cadre != nil {
			return nil, usage{fmt.Errorf("team %s is one of cadre's, which Claude Code's folder only shows; see: "+
				"cadre status %s", o.claudeTeam, o.claudeTeam)}
		}
	}
	return &source.ClaudeTeam{Claude: o.home.Claude, Name: o.claudeTeam, Follow: o.follow}, nil
}

// ended is how the watch did. A team of Claude Code's that went while nobody looked is known to be
// over now.
func (o *observation) ended(w *store.Watch, err error) error {
	known := false
	w.View(func(seen store.Observer) { known = seen.Team() != nil })
	if o.claudeTeam == "" || team.CodeOf(err) != team.NotFound || !known {
		return err
	}
	o.note(fmt.Sprintf("team %s of Claude Code's is over", o.claudeTeam))
	return nil
}
