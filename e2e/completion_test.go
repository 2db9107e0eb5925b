package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// bashCompletion lists the places of package bash-completion. The script for bash uses it if it is
// loaded, and works without it.
var bashCompletion = []string{"/usr/share/bash-completion/bash_completion",
	"/opt/homebrew/etc/profile.d/bash_completion.sh", "/usr/local/etc/profile.d/bash_completion.sh"}

// TestCompletion presses Tab in real shells, in a terminal.
func TestCompletion(t *testing.T) {
	for shell, c := range map[string]struct {
		command []string
		setUp   []string
	}{
		"bash": {[]string{"bash", "--norc", "--noprofile", "-i"}, []string{"source <(cadre completion bash)"}},
		"bash with its package": {[]string{"bash", "--norc", "--noprofile", "-i"},
			[]string{". COMPLETION", "source <(cadre completion bash)"}},
		"zsh": {[]string{"zsh", "-f", "-i"}, []string{"autoload -U compinit; compinit -D -u",
			"source <(cadre completion zsh)"}},
		"fish": {[]string{"fish", "--no-config", "-i"}, []string{"cadre completion fish | source"}},
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			if _, err := exec.LookPath(c.command[0]); err != nil {
				t.Skip(shell + " is not installed")
			}
			w := newWorld(t)
			library := ""
			for _, path := range bashCompletion {
				if _, err := os.Stat(path); err == nil {
					library = path
				}
			}
			if shell == "bash with its package" && library == "" {
				t.Skip("package bash-completion is not installed")
			}
			w.env = append(w.env, "PATH="+filepath.Dir(cadre)+":"+os.Getenv("PATH"), "PS1=> ", "TERM=xterm-256color")
			w.must("create", "quartz")
			w.must("spawn", "quartz", "annette", "--agent", "external")
			w.must("task", "add", "quartz", "Polish the stone")
			w.write("granite.yaml", "name: granite\n")
			w.write("granite.txt", "")
			p := w.terminal(c.command...)
			for _, line := range c.setUp {
				p.enter(strings.ReplaceAll(line, "COMPLETION", library))
			}
			p.enter("echo READY | tr A-Z a-z")
			p.shows("ready")
			file := "gran"
			if shell == "fish" { // for fish, cobra's script offers all files
				file = "granite.y"
			}
			for _, one := range []struct{ typed, becomes string }{
				{"cadre stat", "cadre status"},
				{"cadre status qua", "cadre status quartz"},
				{"cadre shutdown quartz ann", "cadre shutdown quartz annette"},
				{"cadre inbox ann", "cadre inbox annette"}, // TEAM is left out
				{"cadre send quartz --to=ann", "cadre send quartz --to=annette"},
				{"cadre send quartz --to ann", "cadre send quartz --to annette"},
				{"cadre mode quartz annette acc", "cadre mode quartz annette acceptEdits"},
				{"cadre spawn quartz bob --agent gem", "cadre spawn quartz bob --agent gemini"},
				{"cadre run --template heal", "cadre run --template health"},
				{"cadre run " + file, "cadre run granite.yaml"},
			} {
				p.do("send-keys", "-l", one.typed)
				p.do("send-keys", "Tab")
				p.shows(one.becomes)
				p.do("send-keys", "C-u") // clears the line
			}
			// The completion shows the subject of a task beside its number.
			p.do("send-keys", "-l", "cadre task show quartz ")
			p.do("send-keys", "Tab", "Tab")
			p.wait("the task is not offered", func() bool {
				screen := p.screen()
				return strings.Contains(screen, "cadre task show quartz 1") ||
					strings.Contains(screen, "Polish the stone")
			})
		})
	}
}
