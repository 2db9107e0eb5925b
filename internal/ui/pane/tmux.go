package pane

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"cadre/internal/sys/proc"
)

// tmux shows panes in windows of the tmux session in which cadre runs.
//
// Each window of cadre has the option @cadre-team with the team's id. Each pane of cadre has
// @cadre-member with the team's id and the member's name, and @cadre-title with the text of its
// border.
type tmux struct {
	run  func(ctx context.Context, args ...string) (string, error)
	pane string // in which cadre runs
	id   string // of the team
	name string // of the team
	env  []string
}

// NewTmux returns panes of the team in this process's tmux. env is added to the environment of
// programs in panes.
func NewTmux(getenv func(string) string, teamID, teamName string, env []string) Backend {
	socket, _, _ := strings.Cut(getenv("TMUX"), ",")
	return &tmux{pane: getenv("TMUX_PANE"), id: teamID, name: teamName, env: env,
		run: func(ctx context.Context, args ...string) (string, error) { return call(ctx, socket, args) }}
}

// keepOutput bounds how much output is read.
const keepOutput = 256 << 10

// callTime bounds one call of a terminal program. A busy machine takes seconds for one, and a new
// pane takes several calls.
const callTime = 10 * time.Second

// output runs a terminal program once, for at most callTime. It returns its standard output. If the
// program failed, the error contains its error output.
func output(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, callTime)
	defer cancel()
	procs, err := proc.Open("")
	if err != nil {
		return "", err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	out, said := &proc.Capture{Head: keepOutput}, &proc.Capture{Head: 400}
	exit, err := procs.Run(ctx, proc.Cmd{Args: args, Stdout: out, Stderr: said}, proc.Ladder{Term: -1})
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return "", errors.New("it did not answer in time")
	}
	if err != nil && !errors.Is(err, proc.ErrLeft) {
		return "", err
	}
	if exit.Code != 0 {
		return "", errors.New(strings.TrimSpace(said.String()))
	}
	return strings.TrimRight(out.String(), "\n"), nil
}

// call runs one command in the tmux at the socket.
func call(ctx context.Context, socket string, args []string) (string, error) {
	out, err := output(ctx, append([]string{"tmux", "-S", socket}, args...)...)
	for _, gone := range []string{"no server running", "error connecting", "server exited"} {
		if err != nil && strings.Contains(err.Error(), gone) {
			return "", errGone
		}
	}
	if err != nil {
		return "", fmt.Errorf("tmux %s: %w", args[0], err)
	}
	return out, nil
}

func (t *tmux) mark(member string) string { return t.id + " " + member }

// own is a pane of the team.
type own struct{ pane, window, member string }

// list returns the panes of the team, and a window of the team with room for another pane; "" for
// none.
func (t *tmux) list(ctx context.Context) (all []own, room string, err error) {
	text, err := t.run(ctx, "list-panes", "-a", "-F", "#{window_id} #{window_panes} #{window_width} "+
		"#{window_height} .#{@cadre-team} #{pane_id} #{pane_dead} #{@cadre-member}")
	if err != nil {
		return nil, "", err
	}
	for line := range strings.Lines(text) {
		parts := strings.Fields(line)
		if len(parts) < 7 {
			continue
		}
		var n [3]int
		for i := range n {
			n[i], _ = strconv.Atoi(parts[i+1])
		}
		if room == "" && parts[4] == "."+t.id && n[0] < most(n[1], n[2]) {
			room = parts[0]
		}
		if len(parts) == 9 && parts[6] != "1" && parts[7] == t.id {
			all = append(all, own{parts[5], parts[0], parts[8]})
		}
	}
	return all, room, nil
}

func (t *tmux) Panes(ctx context.Context) (map[string]string, error) {
	all, _, err := t.list(ctx)
	if err != nil {
		return nil, err
	}
	panes := make(map[string]string, len(all))
	for _, p := range all {
		panes[p.member] = p.pane
	}
	return panes, nil
}

// most returns how many readable panes fit into a window of that size.
func most(width, height int) int {
	switch {
	case width >= 160 && height >= 45:
		return 6
	case width >= 70 && height >= 20:
		return 4
	}
	return 2
}

func (t *tmux) Open(ctx context.Context, member string, command []string) error {
	all, window, err := t.list(ctx)
	if err != nil {
		return err
	}
	args := []string{"-d", "-P", "-F", "#{pane_id} #{window_id}"}
	for _, v := range t.env {
		args = append(args, "-e", v)
	}
	if window != "" {
		last := window
		for _, p := range all { // panes stand in the order in which members joined
			if p.window == window {
				last = p.pane
			}
		}
		args = append([]string{"split-window", "-t", last}, args...)
	} else {
		session, err := t.run(ctx, "display-message", "-p", "-t", t.pane, "#{session_id}")
		if err != nil {
			return err
		}
		args = append([]string{"new-window", "-n", "cadre " + t.name, "-t", session + ":"}, args...)
	}
	text, err := t.run(ctx, append(append(args, "--"), command...)...)
	if err != nil {
		return err
	}
	pane, in, _ := strings.Cut(text, " ")
	// These may fail: the pane of a viewer that ended at once is gone.
	_, err = t.run(ctx, "set-option", "-p", "-t", pane, "@cadre-member", t.mark(member), ";",
		"set-option", "-w", "-t", in, "@cadre-team", t.id, ";",
		"set-option", "-w", "-t", in, "remain-on-exit", "off", ";",
		"set-option", "-w", "-t", in, "allow-rename", "off", ";",
		"set-option", "-w", "-t", in, "automatic-rename", "off", ";",
		"set-option", "-w", "-t", in, "pane-border-status", "top", ";",
		"set-option", "-w", "-t", in, "pane-border-format", " #{@cadre-title} ", ";",
		"select-layout", "-t", in, "tiled")
	if err != nil && !errors.Is(err, errGone) && ctx.Err() == nil {
		return nil
	}
	return err
}

// colors maps the colors of members to those of tmux.
var colors = map[string]string{"blue": "blue", "green": "green", "yellow": "yellow", "purple": "magenta",
	"orange": "colour208", "pink": "colour205", "cyan": "cyan", "red": "red"}

func (t *tmux) Title(ctx context.Context, m Member) error {
	_, err := t.title(ctx, m)
	return err
}

// title sets the title of the member's pane, and reports whether the pane exists.
func (t *tmux) title(ctx context.Context, m Member) (there bool, err error) {
	color := colors[m.Color]
	if color == "" {
		color = "default"
	}
	return t.with(ctx, m.Name, func(p own) []string {
		return []string{"set-option", "-p", "-t", p.pane, "@cadre-title",
			"#[fg=" + color + ",bold]" + m.Name + "#[default] " + m.State}
	})
}

// Border shows a member in the border of its tmux pane, for the viewer in that pane. It reports
// whether the pane already has the member's mark.
func Border(ctx context.Context, getenv func(string) string, teamID string, m Member) (bool, error) {
	t := NewTmux(getenv, teamID, "", nil).(*tmux)
	return t.title(ctx, m)
}

func (t *tmux) Close(ctx context.Context, member string) error {
	// The other panes take its room. The window closes with its last pane.
	_, err := t.with(ctx, member, func(p own) []string { return []string{"kill-pane", "-t", p.pane} },
		func(p own) []string { return []string{";", "select-layout", "-t", p.window, "tiled"} })
	return err
}

// with runs a command on the member's pane, if the pane still has the member's mark, and then the
// other commands in any case. It reports whether there is such a pane.
func (t *tmux) with(ctx context.Context, member string, command func(own) []string,
	then ...func(own) []string) (there bool, err error) {
	all, _, err := t.list(ctx)
	if err != nil {
		return false, err
	}
	for _, p := range all {
		if p.member != member {
			continue
		}
		var words []string
		for _, word := range command(p) {
			words = append(words, quote(word))
		}
		args := []string{"if-shell", "-F", "-t", p.pane, "#{==:#{@cadre-member}," + t.mark(member) + "}",
			strings.Join(words, " ")}
		for _, next := range then {
			args = append(args, next(p)...)
		}
		_, err := t.run(ctx, args...)
		if err != nil && !errors.Is(err, errGone) && ctx.Err() == nil {
			return false, nil // the pane was closed meanwhile
		}
		return err == nil, err
	}
	return false, nil
}

// quote quotes a word for tmux's own parser.
func quote(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }
