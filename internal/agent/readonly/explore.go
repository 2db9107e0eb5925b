package readonly

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"cadre/internal/sys/regularfile"
)

// explore is the name of Claude Code's subagent that only explores.
const explore = "Explore"

// explores reports whether a call of Claude Code's Agent starts its subagent that only explores.
// Its tool calls are checked like those of the member itself. An option of the call could change
// that, and so could a definition of the same name.
func (s Scope) explores(fields map[string]json.RawMessage) bool {
	for name := range fields {
		if !slices.Contains([]string{"subagent_type", "description", "prompt", "model", "run_in_background"}, name) {
			return false
		}
	}
	var kind string
	if json.Unmarshal(fields["subagent_type"], &kind) != nil || kind != explore {
		return false
	}
	return !slices.ContainsFunc(s.claudeFolders(),
		func(folder string) bool { return definesExplore(filepath.Join(folder, "agents")) })
}

// maxDefinitions bounds the files of a folder of agent definitions.
const maxDefinitions = 1000

// definesExplore reports whether a file in or below a folder may define the subagent that explores.
// Claude Code reads the name, in any case, from the head of the file.
func definesExplore(folder string) bool {
	files := 0
	err := filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if files++; files > maxDefinitions {
			return fs.ErrInvalid
		}
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			if !e.IsDir() { // a link to a folder, or a broken one
				return fs.ErrInvalid
			}
			return nil
		}
		if strings.EqualFold(filepath.Ext(path), ".md") && mayDefine(path, explore) {
			return fs.ErrExist
		}
		return nil
	})
	return err != nil && !missing(err)
}

// mayDefine reports whether a file may define an agent of that name. A file that cannot be read
// may.
func mayDefine(file, name string) bool {
	if base := filepath.Base(file); strings.EqualFold(strings.TrimSuffix(base, filepath.Ext(base)), name) {
		return true
	}
	data, err := regularfile.Read(file, maxSettings)
	if err != nil {
		return true
	}
	text := strings.TrimSpace(strings.TrimPrefix(strings.ReplaceAll(string(data), "\r\n", "\n"), "\ufeff"))
	head, isHead := strings.CutPrefix(text, "---")
	if !isHead { // without a head it has no name
		return false
	}
	head, _, _ = strings.Cut(head, "\n---")
	var fields map[string]any
	if yaml.Unmarshal([]byte(head), &fields) != nil {
		return true
	}
	for key, value := range fields {
		if strings.EqualFold(strings.TrimSpace(key), "name") &&
			strings.EqualFold(strings.TrimSpace(fmt.Sprint(value)), name) {
			return true
		}
	}
	return false
}
