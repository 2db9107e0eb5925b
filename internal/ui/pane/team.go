package pane

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"cadre/internal/engine"
	"cadre/internal/layout"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// Shown shows the members of a team in panes until Stop is called.
type Shown struct {
	end   context.CancelFunc
	ended chan struct{}
}

// Show shows the members of the team in panes of the mode, which must not be [InProcess]. viewer is
// the command line of cadre. It calls note with where the members are, and when the terminal
// program has ended. The caller must stop it.
func Show(ctx context.Context, e *engine.Engine, id string, mode Mode, viewer []string, note func(string)) *Shown {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Shown{end: cancel, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		of, err := e.Open(ctx, id)
		if err != nil {
			note("members are not shown in panes: " + err.Error())
			return
		}
		defer of.Close()
		k := kept{of: of, mode: mode, viewer: viewer, note: note, backend: backendOf(of, e.Home, mode)}
		err = k.keep(ctx)
		switch {
		case errors.Is(err, filelock.ErrHeld): // cadre panes shows them already
		case err != nil:
			note(err.Error() + "; the members continue, and cadre attach shows each")
		}
	}()
	return s
}

// Stop stops showing members. Panes stay open as long as their viewers run. Stop may be called on
// nil.
func (s *Shown) Stop() {
	if s == nil {
		return
	}
	s.end()
	<-s.ended
}

// Start opens a pane for each member that has none, also where the person closed it, and starts a
// process in the background that keeps the panes: viewer with "panes", see [KeepOpen]. It returns
// what to tell the person. It refuses a team that has ended.
func Start(ctx context.Context, of *engine.Team, home layout.Home, mode Mode, viewer []string) (string, error) {
	t, n := of.Team(), 0
	if t.Ended() {
		return "", team.Refuse(team.Finished, "team %s is %s, and has no sessions to show", t.Name, t.Status).
			With(team.Hint{Action: team.ActShowReview, Team: of.Name})
	}
	if mode == Tmux { // panes of iTerm2 are known only to the process that opened them
		k := keeper{opened: map[string]bool{}, titles: map[string]Member{}, Options: Options{
			Backend: backendOf(of, home, mode),
			Members: func() (members []Member) {
				of.View(func(s *team.State) { members = withSessions(s) })
				return members
			},
			Command: func(member string) []string { return command(viewer, t.ID, member) },
			Changed: func(panes map[string]string) { n = len(panes) }}}
		if err := k.step(ctx); err != nil {
			return "", err
		}
	}
	log, err := regularfile.OpenFile(filepath.Join(of.Dir, "panes.log"), os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return "", err
	}
	defer log.Close()
	args := append(viewer[:len(viewer):len(viewer)], "panes", t.ID, "--keep", "--teammate-mode", string(mode))
	if err := proc.DetachTrusted(home.Running(), args, home.ForOurs(os.Environ()), log); err != nil {
		return "", err
	}
	at := where(mode, t.Name)
	if mode == Tmux && n == 0 {
		return "no member has a session yet; each gets a pane in " + at + " when it has one", nil
	}
	return "members are shown in " + at, nil
}

// Close closes the panes of the team, and returns how many there were.
func Close(ctx context.Context, of *engine.Team, home layout.Home, mode Mode) (n int, err error) {
	backend := backendOf(of, home, mode)
	panes, err := backend.Panes(ctx)
	for member := range panes {
		if err == nil {
			err = backend.Close(ctx, member)
		}
	}
	return len(panes), err
}

// KeepOpen keeps a pane open for each member. It returns when the team or ctx ends, when the person
// has closed all panes, or when the terminal program ends. It returns [filelock.ErrHeld] if another
// process keeps the panes.
func KeepOpen(ctx context.Context, of *engine.Team, home layout.Home, mode Mode, viewer []string,
	note func(string)) error {
	k := kept{of: of, mode: mode, viewer: viewer, note: note, backend: backendOf(of, home, mode), aside: true}
	err := k.keep(ctx)
	if errors.Is(err, ErrClosed) || Gone(err) {
		return nil
	}
	return err
}

func backendOf(of *engine.Team, home layout.Home, mode Mode) Backend {
	t := of.Team()
	env := []string{"CADRE_HOME=" + home.Root, "CLAUDE_CONFIG_DIR=" + home.Claude}
	if mode == ITerm2 {
		return NewITerm2(os.Getenv, env)
	}
	return NewTmux(os.Getenv, t.ID, t.Name, env)
}

// command returns the command that runs in a pane.
func command(viewer []string, id, member string) []string {
	return append(viewer[:len(viewer):len(viewer)], "attach", id, member, "--pane")
}

// closedPace is the time between two checks whether the person has closed all panes.
const closedPace = 5 * time.Second

// kept holds the panes of a team that one process keeps.
type kept struct {
	of      *engine.Team
	mode    Mode
	viewer  []string
	note    func(string)
	backend Backend
	aside   bool // the process does nothing else: it ends with the team, or with the last pane
}

func (k kept) keep(ctx context.Context) error {
	lock, err := filelock.New(filepath.Join(k.of.Dir, "panes.lock"))
	if err != nil {
		return err
	}
	defer lock.Unlock()
	ctx, end := context.WithCancel(ctx)
	defer end()
	of, t, said := k.of, k.of.Team(), false
	record := func(panes map[string]string) {
		if len(panes) > 0 && !said {
			said = true
			k.note("members are shown in " + where(k.mode, t.Name))
		}
		if err := of.RecordPanes(ctx, string(k.mode), panes); err != nil && ctx.Err() == nil {
			k.note(err.Error())
		}
	}
	seq, over := int64(0), false
	err = Keep(ctx, Options{Backend: k.backend, Changed: record, UntilClosed: k.aside,
		Members: func() (members []Member) {
			of.View(func(s *team.State) {
				now := s.Team()
				seq, members, over = s.Seq(), withSessions(s), now.Ended()
			})
			return members
		},
		Wait: func(ctx context.Context) error {
			if !k.aside {
				return of.Wait(ctx, seq)
			}
			if over {
				return context.Canceled
			}
			some, cancel := context.WithTimeout(ctx, closedPace)
			defer cancel()
			if err := of.Wait(some, seq); err != nil && some.Err() == nil {
				return err
			}
			return ctx.Err()
		},
		Command: func(member string) []string { return command(k.viewer, t.ID, member) }})
	if err != nil {
		record(nil)
	}
	return err
}

// where returns a phrase that says where the members are shown.
func where(mode Mode, name string) string {
	if mode == ITerm2 {
		return "panes of iTerm2"
	}
	return "windows of tmux named cadre " + name
}

// withSessions returns the members whose sessions cadre runs.
func withSessions(s *team.State) (members []Member) {
	for _, m := range s.Members() {
		if m.Agent != team.External && m.Status.Running() {
			members = append(members, Of(s, m.Name))
		}
	}
	return members
}

// Of returns the member as its pane shows it.
func Of(s *team.State, name string) Member {
	one := Member{Name: name, State: string(s.Phase(name))}
	for i, m := range s.Members() {
		if m.Name != name {
			continue
		}
		one.Own = m.Agent == team.ClaudeTmux
		if one.Color = m.Color; one.Color == "" && i > 0 {
			one.Color = engine.Color(i)
		}
	}
	return one
}
