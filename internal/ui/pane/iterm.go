package pane

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// iterm shows panes in windows of iTerm2, through its command line it2. iTerm2 cannot mark a pane,
// so the panes of an earlier process are not found again.
type iterm struct {
	run     func(ctx context.Context, args ...string) (string, error)
	lead    string // the session in which cadre runs; "" if it is not known
	windows []*itermWindow
	panes   map[string]string // by member
	env     []string
}

// itermWindow is a window of cadre. Its panes stand in two columns.
type itermWindow struct {
	id    string
	most  int      // how many panes fit
	panes []string // from the first one to the last one
}

// itermSession is a session of iTerm2: what one pane shows.
type itermSession struct {
	ID     string `json:"id"`
	Window string `json:"window_id"`
	Cols   int    `json:"cols"`
	Rows   int    `json:"rows"`
}

// NewITerm2 returns panes of this process's iTerm2. env is added to the environment of programs in
// panes.
func NewITerm2(getenv func(string) string, env []string) Backend {
	_, lead, _ := strings.Cut(getenv("ITERM_SESSION_ID"), ":")
	return &iterm{lead: lead, panes: map[string]string{}, env: env, run: it2}
}

// it2 runs one command of it2.
func it2(ctx context.Context, args ...string) (string, error) {
	out, err := output(ctx, append([]string{"it2"}, args...)...)
	if err != nil {
		return "", fmt.Errorf("it2 %s: %w", strings.Join(args[:min(2, len(args))], " "), err)
	}
	return out, nil
}

// sessions lists the sessions of iTerm2, and forgets panes that are closed.
func (i *iterm) sessions(ctx context.Context) (all []itermSession, err error) {
	text, err := i.run(ctx, "session", "list", "--json")
	if err != nil {
		return nil, errGone
	}
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		return nil, fmt.Errorf("read the answer of it2 session list: %w", err)
	}
	gone := func(id string) bool {
		return !slices.ContainsFunc(all, func(s itermSession) bool { return s.ID == id })
	}
	for _, w := range i.windows {
		w.panes = slices.DeleteFunc(w.panes, gone)
	}
	i.windows = slices.DeleteFunc(i.windows, func(w *itermWindow) bool { return len(w.panes) == 0 })
	for member, id := range i.panes {
		if gone(id) {
			delete(i.panes, member)
		}
	}
	return all, nil
}

// Panes returns the panes that iTerm2 still has.
func (i *iterm) Panes(ctx context.Context) (map[string]string, error) {
	there := map[string]string{}
	if len(i.panes) == 0 {
		return there, nil
	}
	if _, err := i.sessions(ctx); err != nil {
		return nil, err
	}
	for member, id := range i.panes {
		there[member] = id
	}
	return there, nil
}

// Open opens a pane in a window that has room, else in a new window. It closes a pane in which the
// command could not be started.
func (i *iterm) Open(ctx context.Context, member string, command []string) error {
	if _, err := i.sessions(ctx); err != nil {
		return err
	}
	id := ""
	var err error
	if n := slices.IndexFunc(i.windows, func(w *itermWindow) bool { return len(w.panes) < w.most }); n >= 0 {
		id, err = i.split(ctx, i.windows[n])
	} else {
		id, err = i.window(ctx)
	}
	if err != nil {
		return err
	}
	i.panes[member] = id
	if err := i.start(ctx, id, command); err != nil {
		_ = i.Close(context.WithoutCancel(ctx), member) // it fails where iTerm2 has ended
		return err
	}
	return nil
}

// start runs the command in a pane, in the place of its shell.
func (i *iterm) start(ctx context.Context, id string, command []string) error {
	var words []string
	for _, word := range append(append([]string{"exec", "env"}, i.env...), command...) {
		words = append(words, quote(word))
	}
	if _, err := i.run(ctx, "session", "send", "-s", id, "\x15"); err != nil { // empties the shell's line
		return err
	}
	_, err := i.run(ctx, "session", "run", "-s", id, strings.Join(words, " "))
	return err
}

// window opens a window, and returns its pane. The person's window keeps the focus.
func (i *iterm) window(ctx context.Context) (string, error) {
	text, err := i.run(ctx, "window", "new")
	if err != nil {
		return "", err
	}
	if i.lead != "" { // if that fails, the new window stays in front
		_, _ = i.run(ctx, "session", "focus", i.lead)
	}
	id := named(text, "Created new window: ")
	if id == "" {
		return "", fmt.Errorf("it2 window new did not name the new window")
	}
	all, err := i.sessions(ctx)
	if err != nil {
		return "", err
	}
	for _, s := range all {
		if s.Window == id {
			i.windows = append(i.windows, &itermWindow{id, most(s.Cols, s.Rows), []string{s.ID}})
			return s.ID, nil
		}
	}
	return "", fmt.Errorf("it2 session list does not have the new window %s", id)
}

// split adds a pane to a window, and returns it.
func (i *iterm) split(ctx context.Context, w *itermWindow) (string, error) {
	args, from := []string{"session", "split"}, w.panes[0]
	if n := len(w.panes); n == 1 { // the second column
		args = append(args, "-v")
	} else { // it halves the first pane of a column
		from = w.panes[n%2]
	}
	text, err := i.run(ctx, append(args, "-s", from)...)
	if err != nil {
		return "", err
	}
	id := named(text, "Created new pane: ")
	if id == "" {
		return "", fmt.Errorf("it2 session split did not name the new pane")
	}
	w.panes = append(w.panes, id)
	return id, nil
}

// named returns what a line of the text says after prefix; "" if no line begins with it.
func named(text, prefix string) (id string) {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), prefix); ok {
			id = strings.TrimSpace(rest)
		}
	}
	return id
}

// Title does nothing: the viewer in a pane sets the title of its session.
func (i *iterm) Title(context.Context, Member) error { return nil }

func (i *iterm) Close(ctx context.Context, member string) error {
	id, there := i.panes[member]
	if !there {
		return nil
	}
	delete(i.panes, member)
	for _, w := range i.windows {
		w.panes = slices.DeleteFunc(w.panes, func(pane string) bool { return pane == id })
	}
	i.windows = slices.DeleteFunc(i.windows, func(w *itermWindow) bool { return len(w.panes) == 0 })
	_, err := i.run(ctx, "session", "close", "-f", "-s", id)
	return err
}
