package checkpoint

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/team"
)

// TestFormatOne checks that a checkpoint in the first format, as it was written then, is restored,
// and the next one follows it.
func TestFormatOne(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	project := l.repository("r")
	bundle, err := filepath.Abs(filepath.Join("testdata", "format1.bundle"))
	if err != nil {
		t.Fatal(err)
	}
	l.git(project, "fetch", "-q", bundle, "cadre/demo:cadre/demo")
	old := l.git(project, "rev-parse", "cadre/demo")
	s := l.store(project)
	r, err := s.Restore(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join("testdata", "format1.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if got := all(r.State) + "\n"; got != string(want) {
		t.Errorf("it is\n%s\nand was\n%s", got, want)
	}
	if r.Work.Machine != "" || len(r.Work.Branches) != 0 {
		t.Errorf("it carries %+v", r.Work)
	}
	d, err := team.Decide(&team.State{}, r.Command("restored", r.At+1, ""))
	if err != nil {
		t.Fatal(err)
	}
	w := &work{state: &team.State{}, records: []*team.Record{d.Record}, sent: 1000}
	w.state.Apply(d.Record)
	l.checkpoint(s, w)
	brings(t, l.store(project), w)
	if parent := l.git(project, "rev-parse", "cadre/demo^1"); parent != old {
		t.Errorf("it is on %s, not on %s", parent, old)
	}
}

// oldDocument and oldOpen read state.json as a cadre that knew only the format 1.0.
type oldDocument struct {
	Version       string            `json:"version"`
	TeamID        string            `json:"team_id"`
	TeamName      string            `json:"team_name"`
	Sequence      int64             `json:"checkpoint_sequence"`
	Created       team.Time         `json:"created_utc_ms"`
	Updated       team.Time         `json:"updated_utc_ms"`
	Status        team.TeamStatus   `json:"status"`
	TeammateCount int               `json:"teammate_count"`
	Teammates     []teammate        `json:"teammates"`
	Queue         queue             `json:"task_queue"`
	Facts         map[string]string `json:"facts_checksums"`
	Commit        string            `json:"git_commit_sha,omitempty"`
	Logs          [2]logEnd         `json:"logs"`
	Sheets        []sheet           `json:"restore_from"`
}

func oldOpen(state []byte) error {
	const version = "1.0"
	var doc oldDocument
	if err := json.Unmarshal(state, &doc); err != nil {
		return fmt.Errorf("%s cannot be read: %w", stateFile, err)
	}
	switch {
	case doc.Version == "":
		return fmt.Errorf("%s is not a file of cadre: it has no version", stateFile)
	case doc.Version != version:
		return fmt.Errorf("%s has the version %q, and this cadre knows %s; update cadre", stateFile,
			doc.Version, version)
	}
	return nil
}

// TestOlderReader checks that a cadre that knows only the first format says what to install.
func TestOlderReader(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	project := l.repository("r")
	l.checkpoint(l.store(project), newWork(t, "T1"))
	err := oldOpen([]byte(l.git(project, "show", "cadre/demo:.claude/teams/demo/state.json")))
	if want := `state.json has the version "2.0 (install cadre 2.0 or later)", and this cadre knows 1.0; update cadre`; err == nil || err.Error() != want {
		t.Errorf("%v, and not: %s", err, want)
	}
}

// TestNewerFormat checks that a checkpoint of a later cadre is refused, unless it only has more
// fields.
func TestNewerFormat(t *testing.T) {
	t.Parallel()
	for version, reads := range map[string]bool{"1.0": true, "2.0": true, "2.0 (install cadre 2.0 or later)": true,
		"2.7 (install cadre 2.5)": true, "1.1": false,
		"3.0 (install cadre 3.1 or later)": false, "2": false, "": false, "20.0": false} {
		if readable(version) != reads {
			t.Errorf("%q: %t", version, !reads)
		}
	}
	shelf := &memory{}
	s := &Store{team: "demo", shelf: shelf}
	if _, err := s.Write(t.Context(), newWork(t, "T1"), Beside{}); err != nil {
		t.Fatal(err)
	}
	shelf.files[stateFile] = []byte(strings.Replace(string(shelf.files[stateFile]), version,
		"3.0 (install cadre 3.1 or later)", 1))
	_, err := (&Store{team: "demo", shelf: &wrapped{shelf}}).Restore(t.Context())
	if damage := (*DamageError)(nil); !errors.As(err, &damage) || !strings.Contains(err.Error(),
		"install cadre 3.1 or later") {
		t.Error(err)
	}
}
