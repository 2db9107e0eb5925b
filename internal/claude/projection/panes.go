package projection

import (
	"encoding/json"
	"path/filepath"

	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/regularfile"
)

// panesFile is the name of the file, in a team's folder, that says in which panes members are
// shown. It is not history: a file that is missing or damaged means no panes.
const panesFile = "panes.json"

// maxPanes bounds the file.
const maxPanes = 1 << 20

// Pane is where a member is shown, in Claude Code's words.
type Pane struct {
	Backend string `json:"backend"` // tmux or iterm2
	ID      string `json:"id"`      // of the pane
}

// WritePanes records in which panes the members of the team in the folder dir are shown. The next
// projection has them.
func WritePanes(dir string, panes map[string]Pane) error {
	data, err := json.Marshal(panes)
	if err != nil {
		return err
	}
	return atomicfile.Replace(filepath.Join(dir, panesFile), append(data, '\n'), atomicfile.Passing{})
}

// readPanes reads the panes, and a checksum that changes with them; "" for no panes.
func readPanes(dir string) (panes map[string]Pane, sum string) {
	data, err := regularfile.Read(filepath.Join(dir, panesFile), maxPanes)
	if err != nil || json.Unmarshal(data, &panes) != nil || len(panes) == 0 {
		return nil, ""
	}
	return panes, checksum(string(data))
}
