package observe

import (
	"bytes"
	"encoding/json"
	"os"
	"path"
	"slices"
	"strings"
	"testing"

	"cadre/internal/team"
)

// filesOfRun are the notes that the files of a recorded team make, of every change of them until they go, by a follower that is written here anew.
func filesOfRun(t testing.TB, version string) (notes [][]byte) {
	t.Helper()
	data, err := os.ReadFile("../claudefs/native/testdata/claude-" + version + ".jsonl")
	if err != nil {
		t.Fatal(err)
	}
	type obj = map[string]any
	var name string
	var began team.Time
	waiting := map[string][]obj{}
	for line := range bytes.Lines(data) {
		var c struct {
			T             team.Time
			Path, Content string
			Removed       bool
		}
		if err := json.Unmarshal(line, &c); err != nil {
			t.Fatal(err)
		}
		dir, file := path.Split(strings.TrimPrefix(c.Path, "/.claude/"))
		say := func(note obj) {
			note["team"], note["at"], note["n"] = name, began+c.T, len(notes)
			rest, err := json.Marshal(note)
			if err != nil {
				t.Fatal(err)
			}
			notes = append(notes, append([]byte(`{"type":"`+FileNoteType+`",`), rest[1:]...))
		}
		var content any
		if !strings.HasSuffix(file, ".json") || !c.Removed && json.Unmarshal([]byte(c.Content), &content) != nil {
			continue
		}
		switch base := strings.TrimSuffix(file, ".json"); {
		case file == "config.json" && c.Removed:
			return notes
		case file == "config.json":
			if name == "" {
				name = path.Base(dir)
				began = team.Time(content.(obj)["createdAt"].(float64)) - c.T
			}
			say(obj{"config": content})
		case strings.HasPrefix(dir, "tasks/") && c.Removed:
			say(obj{"removed": base})
		case strings.HasPrefix(dir, "tasks/"):
			say(obj{"task": content})
		case strings.HasSuffix(dir, "/inboxes/"):
			same := func(e obj) func(obj) bool {
				return func(o obj) bool { return o["timestamp"] == e["timestamp"] && o["text"] == e["text"] }
			}
			var now []obj
			entries, _ := content.([]any)
			for _, entry := range entries {
				if e := entry.(obj); e["read"] != true {
					now = append(now, e)
					if !slices.ContainsFunc(waiting[base], same(e)) {
						say(obj{"to": base, "key": e["timestamp"].(string) + e["text"].(string), "entry": e})
					}
				}
			}
			for _, e := range waiting[base] {
				if !slices.ContainsFunc(now, same(e)) {
					say(obj{"to": base, "entry": e, "taken": true})
				}
			}
			waiting[base] = now
		}
	}
	return notes
}
