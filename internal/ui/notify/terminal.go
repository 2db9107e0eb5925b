package notify

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"cadre/internal/render/sanitize"
	"cadre/internal/sys/proc"
	"cadre/internal/ui/settings"
)

// Terminal is the terminal in which a process runs.
type Terminal struct {
	Out    io.Writer
	Getenv func(string) string
	Device int64 // its device number

	mu sync.Mutex
}

// tmuxTime bounds one call of tmux.
const tmuxTime = 2 * time.Second

// OpenTerminal returns the terminal of this process; nil if it has none. The caller must close it.
func OpenTerminal() *Terminal {
	file, err := os.OpenFile("/dev/tty", os.O_WRONLY|syscall.O_NOCTTY, 0)
	if err != nil {
		return nil
	}
	return &Terminal{Out: file, Getenv: os.Getenv, Device: proc.Terminal()}
}

// Close closes the terminal. It may be called on nil.
func (t *Terminal) Close() {
	if t == nil {
		return
	}
	if file, ok := t.Out.(io.Closer); ok {
		file.Close()
	}
}

func (t *Terminal) write(text string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := io.WriteString(t.Out, text)
	return err
}

// Bell rings the terminal's bell. It also rings in a window of tmux that is not shown.
func (t *Terminal) Bell(context.Context, Fact) error { return t.write("\a") }

// Desktop asks the terminal for a desktop notification. Inside tmux this needs the option
// allow-passthrough, and a visible window.
func (t *Terminal) Desktop(ctx context.Context, how settings.Desktop, f Fact) error {
	text, err := t.sequence(how, f)
	if err != nil {
		return err
	}
	if t.Getenv("TMUX") == "" {
		return t.write(text)
	}
	if err := t.passes(ctx); err != nil {
		return err
	}
	return t.write("\x1bPtmux;" + strings.ReplaceAll(text, "\x1b", "\x1b\x1b") + "\x1b\\")
}

// passes returns an error if this is a tmux that drops unknown sequences.
func (t *Terminal) passes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, tmuxTime)
	defer cancel()
	procs, err := proc.Open("")
	if err != nil {
		return err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	var value proc.Capture
	exit, err := procs.Run(ctx, proc.Cmd{Args: []string{"tmux", "show-options", "-Apv", "-t", t.Getenv("TMUX_PANE"),
		"allow-passthrough"}, Stdout: &value}, proc.Ladder{Term: -1})
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return fmt.Errorf("tmux did not answer within %s", seconds(tmuxTime))
	case err == nil && exit.Code != 0:
		err = fmt.Errorf("tmux ended with %s", exit)
	}
	if err != nil {
		return fmt.Errorf("cannot ask tmux for allow-passthrough: %w", err)
	}
	if got := strings.TrimSpace(value.String()); got != "on" && got != "all" {
		return errors.New("tmux does not pass the notification on; allow it with: tmux set -g allow-passthrough on")
	}
	return nil
}

// sequence returns the escape sequence. It removes terminal control characters from the text.
func (t *Terminal) sequence(how settings.Desktop, f Fact) (string, error) {
	if how == settings.AutoDesktop {
		how = t.usual()
	}
	title, body := sanitize.Line(f.Title()), sanitize.Line(f.Text)
	if f.Do != "" {
		body += " (" + sanitize.Line(f.Do) + ")"
	}
	const end = "\x1b\\"
	switch how {
	case settings.OSC9:
		return "\x1b]9;" + title + ": " + body + end, nil
	case settings.OSC777:
		return "\x1b]777;notify;" + strings.ReplaceAll(title, ";", ",") + ";" + body + end, nil
	case settings.OSC99:
		return "\x1b]99;i=cadre:d=0;" + title + end + "\x1b]99;i=cadre:p=body;" + body + end, nil
	}
	return "", errors.New("it is not known which sequence this terminal takes; set notify.desktop to osc9, osc777 or " +
		"osc99")
}

// usual returns the sequence for the terminal's name; "" for an unknown terminal.
func (t *Terminal) usual() settings.Desktop {
	switch t.Getenv("TERM_PROGRAM") {
	case "iTerm.app", "WezTerm", "ghostty":
		return settings.OSC9
	}
	switch term := t.Getenv("TERM"); {
	case t.Getenv("KITTY_WINDOW_ID") != "" || term == "xterm-kitty":
		return settings.OSC99
	case t.Getenv("LC_TERMINAL") == "iTerm2", t.Getenv("WT_SESSION") != "", term == "xterm-ghostty":
		return settings.OSC9
	case strings.HasPrefix(term, "foot"), strings.HasPrefix(term, "rxvt-unicode"):
		return settings.OSC777
	}
	return ""
}
