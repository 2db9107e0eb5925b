// Package teamfilestest replays recordings of the files of real Claude Code teams, for tests of
// packages that read such files.
//
// # Authority
//
// The package has every change of these files from before a team existed until it was removed, and
// makes the same changes again. It does not interpret the files; its users do.
package teamfilestest

import (
	"bytes"
	"embed"
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// Versions lists the versions of Claude Code with a recording, one for each inbox format.
var Versions = []string{"2.1.47", "2.1.329"}

//go:embed testdata
var testdata embed.FS

// Change is one change of a file or a folder.
type Change struct {
	T       int64  // milliseconds since the recording began
	Path    string // relative to Claude Code's folder, with slashes; a folder's path ends with one
	Content string // whole content of a file
	Removed bool
}

// Recording returns the changes of the files of one team.
func Recording(t testing.TB, version string) (all []Change) {
	t.Helper()
	data, err := testdata.ReadFile("testdata/claude-" + version + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var c Change
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		c.Path = strings.TrimPrefix(c.Path, "/.claude/")
		all = append(all, c)
	}
	return all
}

// Roster returns the name of the team whose config.json the change writes; "" for any other change.
func (c Change) Roster() string {
	if is, _ := path.Match("teams/*/config.json", c.Path); is && !c.Removed {
		return path.Base(path.Dir(c.Path))
	}
	return ""
}

// Ends reports whether the change removes the team's folder.
func (c Change) Ends() bool {
	is, _ := path.Match("teams/*/", c.Path)
	return is && c.Removed
}

// Play makes the change in the folder claude, in place, as Claude Code does.
func (c Change) Play(t testing.TB, claude string) {
	t.Helper()
	file := filepath.Join(claude, filepath.FromSlash(c.Path))
	var err error
	switch {
	case c.Removed:
		err = os.RemoveAll(file)
	case strings.HasSuffix(c.Path, "/"):
		err = os.MkdirAll(file, 0o700)
	default:
		if err = os.MkdirAll(filepath.Dir(file), 0o700); err == nil {
			err = os.WriteFile(file, []byte(c.Content), 0o600)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
}
