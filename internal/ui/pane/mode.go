package pane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"

	"cadre/internal/sys/proc"
)

// Mode is where the members of a team are shown.
type Mode string

// The modes, with the names of Claude Code's setting teammateMode.
const (
	Auto      Mode = "auto"       // panes if the terminal has them
	InProcess Mode = "in-process" // no panes
	Tmux      Mode = "tmux"       // panes of tmux
	ITerm2    Mode = "iterm2"     // panes of iTerm2
)

// Modes returns all modes.
func Modes() []Mode { return []Mode{Auto, InProcess, Tmux, ITerm2} }

// Place describes where the process runs.
type Place struct {
	Terminal bool // standard output is a terminal
	Getenv   func(string) string
	Find     func(program string) error // nil if the program is in PATH
	Answers  func() error               // nil if the tmux of this window answers; without it, tmux does
}

// Attached reports whether this process has a terminal.
func Attached() bool {
	f, err := os.OpenFile("/dev/tty", os.O_WRONLY|syscall.O_NOCTTY, 0)
	if err == nil {
		f.Close()
	}
	return err == nil
}

// Answers returns an error if the tmux of this window does not answer.
func Answers() error {
	socket, _, _ := strings.Cut(os.Getenv("TMUX"), ",")
	_, err := call(context.Background(), socket, []string{"display-message", "-p", "-t", os.Getenv("TMUX_PANE"),
		"#{pane_id}"})
	return err
}

// Find returns an error if the program is not in PATH.
func Find(program string) error {
	_, err := proc.Find(program)
	return err
}

// Choice is the chosen mode, which is never [Auto].
type Choice struct {
	Mode Mode
	Note string // why it is not the mode of the flag or setting; "" if it is
}

// Choose returns the mode of the flag, or else of the setting; both may be empty. It returns an
// error for a flag that does not work here; its text continues the flag's name. It replaces a
// setting that does not work here, and adds a note on a terminal.
func Choose(flag, setting string, p Place) (Choice, error) {
	if flag != "" {
		mode, err := parse(flag)
		if err != nil {
			return Choice{}, err
		}
		if mode == Auto {
			return Choice{Mode: p.usual()}, nil
		}
		if why := p.refuses(mode); why != "" {
			return Choice{}, fmt.Errorf("%s: %s", mode, why)
		}
		return Choice{Mode: mode}, nil
	}
	if setting == "" {
		return Choice{Mode: p.usual()}, nil
	}
	mode, err := parse(setting)
	why := ""
	if err == nil && mode != Auto {
		why = p.refuses(mode)
	}
	switch {
	case err != nil:
		why = "teammateMode in settings.json " + err.Error()
	case mode == Auto:
		return Choice{Mode: p.usual()}, nil
	case why == "":
		return Choice{Mode: mode}, nil
	default:
		why = fmt.Sprintf("teammateMode is %s: %s", mode, why)
	}
	instead := Choice{Mode: p.usual()}
	if p.Terminal {
		instead.Note = fmt.Sprintf("%s. Used instead: %s", why, instead.Mode)
	}
	return instead, nil
}

func parse(text string) (Mode, error) {
	var names []string
	for _, m := range Modes() {
		if text == string(m) {
			return m, nil
		}
		names = append(names, string(m))
	}
	return "", fmt.Errorf("is %q; use %s", text, strings.Join(names, ", "))
}

// usual returns the mode that Auto means here.
func (p Place) usual() Mode {
	switch {
	case !p.Terminal:
	case p.Getenv("TMUX") != "":
		if p.refuses(Tmux) == "" {
			return Tmux
		}
	case p.refuses(ITerm2) == "":
		return ITerm2
	}
	return InProcess
}

// refuses returns why the mode does not work here; "" if it does.
func (p Place) refuses(mode Mode) string {
	switch mode {
	case Tmux:
		if p.Getenv("TMUX") != "" {
			if why := missing(p.Find("tmux"), "tmux is not in PATH"); why != "" || p.Answers == nil {
				return why
			}
			return missing(p.Answers(), "the tmux that $TMUX names does not answer")
		}
		if name := p.without(); name != "" {
			return name + " has no panes that cadre can open; run cadre inside tmux: tmux new-session"
		}
		return "this is not a window of tmux; start one with: tmux new-session"
	case ITerm2:
		if p.Getenv("ITERM_SESSION_ID") == "" {
			return "this is not a window of iTerm2"
		}
		return missing(p.Find("it2"), "it2 is not in PATH; install it with: pipx install it2, and allow iTerm2's "+
			"Python API")
	}
	return ""
}

func missing(err error, text string) string {
	if err == nil {
		return ""
	}
	return text
}

// without returns the name of a terminal whose panes programs cannot open; "" for any other.
func (p Place) without() string {
	switch {
	case p.Getenv("TERM_PROGRAM") == "vscode":
		return "The terminal of VS Code"
	case p.Getenv("WT_SESSION") != "":
		return "Windows Terminal"
	case p.Getenv("TERM_PROGRAM") == "ghostty":
		return "Ghostty"
	}
	return ""
}

// errGone reports that the terminal program has ended.
var errGone = errors.New("the program that shows the panes has ended")
