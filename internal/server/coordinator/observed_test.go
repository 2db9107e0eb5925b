package coordinator_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"cadre/internal/observe"
	"cadre/internal/observe/present"
	"cadre/internal/observe/store"
	"cadre/internal/team"
)

// TestObserved: a subscription to an observed team has the events and the state that an observer
// shows.
func TestObserved(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	data, err := os.ReadFile(filepath.Join("..", "..", "observe", "testdata", "claude", "2.1.177", "stream.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	book, err := store.OpenBook(context.Background(), l.engine.Home, "watched", func(text string) { t.Log(text) })
	if err != nil {
		t.Fatal(err)
	}
	o := observe.New(observe.Options{Name: "watched"})
	var want []present.Notice
	whole := []byte("null")
	for i, line := range bytes.SplitAfter(data, []byte("\n")) {
		seen := o.Line("s", line, team.Time(1_795_219_500_000+i))
		if o.State() == nil && len(seen.Records) > 0 && len(want) > 0 {
			break // its end, which removes the team that is to be followed
		}
		if err := book.Add(o.Team(), seen.Records); err != nil {
			t.Fatal(err)
		}
		want = append(want, seen.Notices...)
		if state, err := json.Marshal(present.SessionOf(o)); err == nil {
			whole = state
		}
	}
	if err := book.Close(); err != nil {
		t.Fatal(err)
	}
	if len(want) < 10 {
		t.Fatalf("the recording has %d events", len(want))
	}
	c := l.dial()
	c.must("subscribe", fields{"teamId": "watched", "after": 0})
	c.must("team_status", fields{"teamId": "watched"}) // comes after all events
	var client any = map[string]any{"agents": []any{}}
	n := 0
	for _, f := range c.events {
		if f.Type == present.SessionPatch {
			var line struct {
				Patch []struct {
					Op, Path string
					Value    any
				}
			}
			if err := json.Unmarshal(f.Payload, &line); err != nil {
				t.Fatal(err)
			}
			for _, p := range line.Patch {
				client = patched(t, client, strings.Split(p.Path, "/")[1:], p.Op, p.Value)
			}
			continue
		}
		got := map[string]any{}
		json.Unmarshal(f.Payload, &got)
		is := map[string]any{}
		text, _ := json.Marshal(want[min(n, len(want)-1)])
		json.Unmarshal(text, &is)
		delete(got, "sessionId") // an observer may learn of it a line later
		delete(is, "sessionId")
		if n++; n > len(want) || !reflect.DeepEqual(got, is) || f.Type != is["type"] {
			t.Fatalf("event %d is\n%s\nwant\n%s", n, f, text)
		}
	}
	if n != len(want) {
		t.Errorf("%d events came, want %d", n, len(want))
	}
	var end any
	json.Unmarshal(whole, &end)
	if !reflect.DeepEqual(client, end) {
		t.Errorf("the patches give\n%v\nwant\n%v", client, end)
	}
	second := l.dial()
	second.must("subscribe", fields{"teamId": "watched"})
	var update present.StateLine
	if err := json.Unmarshal(second.event(present.SessionUpdate).Payload, &update); err != nil {
		t.Fatal(err)
	}
	if text, _ := json.Marshal(update.Session); !bytes.Equal(text, whole) {
		t.Errorf("the present state is\n%s\nwant\n%s", text, whole)
	}
	c.refused("denied", "team_create_task", fields{"teamId": "watched", "createdBy": "team-lead", "title": "x",
		"description": ""})
}

// patched applies one operation of a JSON Patch.
func patched(t *testing.T, to any, path []string, op string, value any) any {
	t.Helper()
	switch to := to.(type) {
	case map[string]any:
		switch {
		case len(path) > 1:
			to[path[0]] = patched(t, to[path[0]], path[1:], op, value)
		case op == "remove":
			delete(to, path[0])
		default:
			to[path[0]] = value
		}
		return to
	case []any:
		i := len(to)
		if path[0] != "-" {
			var err error
			if i, err = strconv.Atoi(path[0]); err != nil {
				t.Fatal(err)
			}
		}
		switch {
		case len(path) > 1:
			to[i] = patched(t, to[i], path[1:], op, value)
		case op == "remove":
			return append(to[:i:i], to[i+1:]...)
		case op == "add":
			return append(to[:i:i], append([]any{value}, to[i:]...)...)
		default:
			to[i] = value
		}
		return to
	}
	t.Fatalf("%s %v of %v", op, path, to)
	return nil
}
