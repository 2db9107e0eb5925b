package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"cadre/internal/agent/drivers"
	"cadre/internal/desk"
	"cadre/internal/feed"
	"cadre/internal/observe"
	"cadre/internal/solo"
	"cadre/internal/team"
)

// single watches a session of an agent without teams, as a team of one. It is not kept.
type single struct {
	look func(*team.State, observe.Seen) error
	end  context.CancelCauseFunc

	mu  sync.Mutex
	one *solo.Observer
}

// runSingle observes the session that the arguments name.
func (o *observation) runSingle(ctx context.Context, args []string, terminal bool) error {
	read := drivers.Reader(o.agent)
	switch {
	case read == nil:
		return usage{fmt.Errorf("--agent %s: the sessions of %s, %s, %s and %sCOMMAND can be observed so; Claude Code's without --agent", o.agent, team.Codex, team.Gemini, team.OpenCode, team.ACP)}
	case o.asTeam != "", o.transcripts != "", len(o.members) > 0, len(args) != 1:
		return usage{errors.New("--agent is for one stream, a file or -, and what is seen of it is not kept: it goes without --as-team, --transcripts and --member")}
	}
	feeds, err := o.feeds(args)
	if err != nil {
		return err
	}
	name, _, _ := strings.Cut(o.agent, ":")
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	w := &single{look: o.look, end: end, one: solo.New(solo.Options{Agent: name, Read: read})}
	if terminal {
		o.board = openScreen(o.out.(*os.File), func(see func(*team.State)) {
			w.mu.Lock()
			defer w.mu.Unlock()
			see(w.one.Team())
		})
	}
	err = feeds[0].Run(ctx, w)
	if o.board != nil {
		o.board.close()
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if cause := context.Cause(ctx); err == nil && cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	if err != nil {
		return quiet(err)
	}
	return o.say(w.one.State(), w.one.Counts(), w.one.Team() == nil)
}

// Line implements [feed.Listener].
func (w *single) Line(_ string, line []byte, _ feed.Place) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.show(w.one.Line(line, desk.Now()))
}

// Gap implements [feed.Listener].
func (w *single) Gap(_, reason string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.show(w.one.Gap(reason, desk.Now()))
}

func (w *single) show(seen observe.Seen) {
	if len(seen.Records)+len(seen.Warnings) == 0 {
		return
	}
	if err := w.look(w.one.Team(), seen); err != nil {
		w.end(err)
	}
}

// Introduce, Place and Member implement [feed.Listener]: there is one member, and nothing is kept.
func (w *single) Introduce(_, _, _ string)    {}
func (w *single) Place(string) (p feed.Place) { return p }
func (w *single) Member(string) bool          { return false }
