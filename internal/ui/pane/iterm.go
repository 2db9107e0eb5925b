package pane

import (
	"context"
	"fmt"
	"strings"
)

// iterm shows panes of iTerm2 through its command line it2. It makes the same calls as Claude Code
// 2.1.329. iTerm2 cannot mark a pane, so the panes of an earlier process are not found again.
type iterm struct {
	run   func(ctx context.Context, args ...string) (string, error)
	lead  string            // the session in which cadre runs
	last  string            // the pane that was opened last
	panes map[string]string // by member
	env   []string
}

// NewITerm2 returns panes of this process's iTerm2 window. env is added to the environment of
// programs in panes.
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

// Panes returns the panes that iTerm2 still has.
func (i *iterm) Panes(ctx context.Context) (map[string]string, error) {
	there := map[string]string{}
	if len(i.panes) == 0 {
		return there, nil
	}
	list, err := i.run(ctx, "session", "list")
	if err != nil {
		return nil, errGone
	}
	for member, id := range i.panes {
		if strings.Contains(list, id) {
			there[member] = id
		} else {
			delete(i.panes, member)
		}
	}
	return there, nil
}

// created is the beginning of the line in which it2 names a new pane.
const created = "Created new pane: "

func (i *iterm) Open(ctx context.Context, member string, command []string) error {
	args := []string{"session", "split"}
	if i.last == "" {
		args = append(args, "-v")
	}
	from := i.last
	if from == "" {
		from = i.lead
	}
	text, err := "", error(nil)
	if from != "" {
		text, err = i.run(ctx, append(args, "-s", from)...)
	}
	if from == "" || err != nil { // that pane may be closed
		text, err = i.run(ctx, args...)
	}
	if err != nil {
		return err
	}
	id := ""
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), created); ok {
			id = strings.TrimSpace(rest)
		}
	}
	if id == "" {
		return fmt.Errorf("it2 session split did not name the new pane")
	}
	i.last, i.panes[member] = id, id
	var words []string
	for _, word := range append(append([]string{"exec", "env"}, i.env...), command...) {
		words = append(words, quote(word))
	}
	if _, err := i.run(ctx, "session", "send", "-s", id, "\x15"); err != nil { // empties the shell's line
		return err
	}
	_, err = i.run(ctx, "session", "run", "-s", id, strings.Join(words, " "))
	return err
}

// Title does nothing: it2 sets no titles.
func (i *iterm) Title(context.Context, Member) error { return nil }

func (i *iterm) Close(ctx context.Context, member string) error {
	id, there := i.panes[member]
	if !there {
		return nil
	}
	delete(i.panes, member)
	if i.last == id {
		i.last = ""
	}
	_, err := i.run(ctx, "session", "close", "-f", "-s", id)
	return err
}
