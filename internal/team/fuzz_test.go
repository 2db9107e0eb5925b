package team

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func addGoldens(f *testing.F, pattern string) {
	paths, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(paths) == 0 {
		f.Fatalf("%d goldens: %v", len(paths), err)
	}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	f.Add(`{"events":[{"x":{"y":[1,{"z":null}]},"seqs":[1],"kind":"messages_returned"}]}`)
	f.Add(
		"{\"id\":\"\\ud83d\\ude00\\ud83d\xff\",\"events\":[{\"kind\":\"task_updated\",\"metadata\":{\"\xff\":1,\"\xfe\": [\n2 ]}}]}")
}

// FuzzDecodeRecord checks that reading never panics. A value that was read is written as one line
// of JSON, which reads the same again. Applying it to a state does not panic either.
func FuzzDecodeRecord(f *testing.F) {
	addGoldens(f, filepath.Join("events", "*.json"))
	f.Fuzz(func(t *testing.T, data string) {
		r, err := DecodeRecord(1, data)
		if err != nil {
			return
		}
		line := AppendRecord(nil, r)
		checkLine(t, line)
		again, err := DecodeRecord(1, string(line))
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if twice := AppendRecord(nil, again); string(twice) != string(line) {
			t.Errorf("written first\n%s\nthen\n%s", line, twice)
		}
		s, _ := founded(t)
		again.Seq = s.Seq() + 1
		s.Apply(again)
		s.Wants(1)
		reopened(t, s)
	})
}

func FuzzDecodeSnapshot(f *testing.F) {
	addGoldens(f, "snapshot.json")
	f.Fuzz(func(t *testing.T, data string) {
		s, err := DecodeSnapshot(7, data)
		if err != nil {
			return
		}
		line := AppendSnapshot(nil, s)
		checkLine(t, line)
		again, err := DecodeSnapshot(7, string(line))
		if err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if twice := AppendSnapshot(nil, again); string(twice) != string(line) {
			t.Errorf("written first\n%s\nthen\n%s", line, twice)
		}
		if o, err := DecodeOutline(7, string(line)); err != nil || !reflect.DeepEqual(o.Notes(), again.Notes()) {
			t.Errorf("the outline of\n%s\nhas the notes %v, %v", line, o.Notes(), err)
		}
		again.Wants(1)
		again.Claimable("")
		Decide(again, Command{ID: "x", Actor: User, Body: &CleanUp{Force: true}})
		Decide(again, Command{ID: "y", Actor: again.Team().Lead, Body: &ClaimTask{}})
	})
}

func checkLine(t *testing.T, line []byte) {
	t.Helper()
	if !json.Valid(line) || !utf8.Valid(line) || strings.ContainsAny(string(line), "\n\r") {
		t.Fatalf("not one line of JSON: %q", line)
	}
}

// FuzzText compares writing and reading texts with encoding/json.
func FuzzText(f *testing.F) {
	for _, s := range []string{"", "plain", "\"\\/\b\f\n\r\t\x00\x1f\x7f", "ä€😀", "\xff\xf0\x9f", "\u2028\ufffd",
		`\u0041`, `\ud83d\ude00 \ud83d \ude00 \ud83d\ud83d`, `\uD83D\u0041`, `\b\f\n\r\t\/\\\"`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		written := appendText(nil, s)
		var oracle string
		if err := json.Unmarshal(written, &oracle); err != nil {
			t.Fatalf("%q was written as %s: %v", s, written, err)
		}
		c := coder{mode: reading, in: string(written)}
		if got := c.text(); c.err != nil || c.pos != len(written) || got != oracle {
			t.Errorf("%s is read as %q and by encoding/json as %q: %v", written, got, oracle, c.err)
		}
		if utf8.ValidString(s) && oracle != s {
			t.Errorf("%q comes back as %q", s, oracle)
		}
		// Use s as the inside of a JSON text. We read the same as encoding/json, except that we
		// accept control characters and invalid UTF-8.
		quoted := `"` + s + `"`
		if utf8.ValidString(s) && json.Unmarshal([]byte(quoted), &oracle) == nil {
			c := coder{mode: reading, in: quoted}
			if got := c.text(); c.err != nil || got != oracle {
				t.Errorf("%s is read as %q and by encoding/json as %q: %v", quoted, got, oracle, c.err)
			}
		}
	})
}

// FuzzOracle compares a whole record with what encoding/json reads from it.
func FuzzOracle(f *testing.F) {
	f.Add("subject", "body\n", int64(-5), true)
	f.Add("", "\x00\"\\ä😀\xff", int64(1)<<62, false)
	f.Fuzz(func(t *testing.T, a, b string, n int64, on bool) {
		clean := func(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }
		r := &Record{Seq: 1, ID: clean(a), Actor: clean(b), At: Time(n), Events: []Event{
			&TaskCreated{Task: Task{ID: clean(b), Subject: clean(a), BlockedBy: []string{clean(a), clean(b)},
				Retries: n, Assigned: on}},
			&MessagesDelivered{Member: clean(a), Seqs: []int64{n, 0}},
		}}
		var got struct {
			ID     string `json:"id"`
			Actor  string `json:"actor"`
			At     int64  `json:"at"`
			Events []struct {
				Kind   string  `json:"kind"`
				Member string  `json:"member"`
				Seqs   []int64 `json:"seqs"`
				Task   struct {
					ID        string   `json:"id"`
					Subject   string   `json:"subject"`
					BlockedBy []string `json:"blockedBy"`
					Retries   int64    `json:"retries"`
					Assigned  bool     `json:"assigned"`
				} `json:"task"`
			} `json:"events"`
		}
		line := AppendRecord(nil, r)
		if err := json.Unmarshal(line, &got); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		task := got.Events[0].Task
		if got.ID != r.ID || got.Actor != r.Actor || got.At != n || task.ID != clean(b) || task.Subject != clean(a) ||
			task.Retries != n || task.Assigned != on ||
			!reflect.DeepEqual(task.BlockedBy, []string{clean(a), clean(b)}) || got.Events[1].Member != clean(a) ||
			!reflect.DeepEqual(got.Events[1].Seqs, []int64{n, 0}) {
			t.Errorf("encoding/json reads %+v from %s", got, line)
		}
	})
}
