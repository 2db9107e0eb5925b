package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cadre/internal/engine"
	"cadre/internal/server/api"
	"cadre/internal/team"
)

// TestCursor checks where a client continues, and what it is told of a cursor in the future.
func TestCursor(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	of := l.create(members("ann", "bob")...)
	last := of.Seq()
	for _, path := range []string{"/events?after=", "/records?after=", "/since?after=", "?seq="} {
		if p := l.refused(409, "ahead", "GET", fmt.Sprint(demo, path, last+1), nil); p.Seq != last {
			t.Errorf("%s: the last record is %d, not %d", path, last, p.Seq)
		}
	}
	l.refused(409, "ahead", "GET", demo+"/events?after=1", nil, "Last-Event-ID", fmt.Sprint(last+1))

	s := l.stream(demo+"/events?after=1", "Last-Event-ID", "2") // the later one, of a client that comes back
	if e := s.next(); e.id != "3" {
		t.Errorf("%+v", e)
	}
	act(t, of, team.User, &team.CreateTask{Subject: "one"})
	var record struct{ Seq int64 }
	if e := s.next(); json.Unmarshal([]byte(e.data), &record) != nil || record.Seq != last+1 ||
		e.id != fmt.Sprint(last+1) {
		t.Errorf("%+v", e)
	}

	// a state of the past is the one that the records make, and is not sent again
	early := l.send("GET", demo+"?seq=2", nil)
	var is struct {
		Seq, Last int64
		Members   []raw
		Now       raw
	}
	if err := json.Unmarshal(early.body, &is); err != nil || is.Seq != 2 || is.Last != last+1 ||
		len(is.Members) != 2 || is.Now != nil {
		t.Errorf("%s, %v", early.body, err)
	}
	past := early.header.Get("ETag")
	id := of.Team().ID
	if past != fmt.Sprintf(`W/"2-%s"`, id) {
		t.Errorf("the ETag is %s", past)
	}
	first := l.send("GET", demo, nil)
	present := first.header.Get("ETag")
	looked := regexp.MustCompile(`"lookedAt":\d+`).FindString(string(first.body))
	for ctx := within(t); looked == "" || strings.Contains(string(l.send("GET", demo, nil).body), looked); {
		if looked == "" || ctx.Err() != nil {
			t.Fatalf("the team is not looked at again: %s", first.body)
		}
	}
	if is := l.send("GET", demo, nil, "If-None-Match", present); is.status != 304 {
		t.Errorf("the present, of which nothing changed: %d", is.status)
	}
	for _, one := range []struct {
		path, has string
		status    int
	}{
		{"?seq=2", past, 304}, {"?seq=2", `"2-` + id + `"`, 304}, {"?seq=2", "*", 304},
		{"?seq=2", `"1",  ` + past + ` , "x,y"`, 304}, {"?seq=2", `"2"`, 200}, {"?seq=2", `"2-demo-other"`, 200},
		{"?seq=2", `"x,\"2-` + id + `",""`, 200}, {"?seq=2", `"1"`, 200}, {"?seq=2", "2-" + id, 200},
		{"?seq=2", `"1" "2-` + id + `"`, 200},
		{"?seq=2", `"2-` + id, 200}, {"?seq=2", present, 200}, {"?seq=3", past, 200},
		{fmt.Sprint("?seq=", of.Seq()), present, 200}, // the present also has what no record says
		{"", fmt.Sprintf(`"%d"`, of.Seq()), 200}, {"", past, 200}, {"", "*", 304},
	} {
		if is := l.send("GET", demo+one.path, nil, "If-None-Match", one.has); is.status != one.status {
			t.Errorf("%s, If-None-Match %s: %d", one.path, one.has, is.status)
		}
	}
	for range 2 { // a client that reads the present again and again gets it when it differs
		act(t, of, team.User, &team.CreateTask{Subject: "one more"})
		if is := l.send("GET", demo, nil, "If-None-Match", present); is.status != 200 {
			t.Errorf("the present after another record: %d", is.status)
		}
	}
}

// TestLost checks what a client is told of records that are lost, and where it can continue.
func TestLost(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	of := l.create(members("ann")...)
	for i := range 30 {
		act(t, of, team.User, &team.CreateTask{Subject: fmt.Sprint("task ", i)})
		if of.Seq() == 20 {
			saveSnapshot(l, of)
		}
	}
	last := of.Seq()
	damage(t, of.Dir, 10)
	if err := of.Close(); err != nil {
		t.Log(err)
	}

	for _, seq := range []int{1, 9, 20, int(last)} {
		if is := l.send("GET", fmt.Sprint(demo, "?seq=", seq), nil); is.status != 200 {
			t.Errorf("record %d: %s", seq, is.body)
		}
	}
	for _, path := range []string{"?seq=10", "?seq=19", "/events?after=9", "/records?after=9", "/events?after=15"} {
		if p := l.refused(410, "gone", "GET", demo+path, nil); p.Seq != 20 {
			t.Errorf("%s: it continues after %d", path, p.Seq)
		}
	}
	s := l.stream(demo + "/events?after=0")
	for seq := 1; seq <= 9; seq++ {
		if e := s.next(); e.id != fmt.Sprint(seq) {
			t.Fatalf("%+v", e)
		}
	}
	var p api.Problem
	if e := s.next(); e.kind != "problem" || json.Unmarshal([]byte(e.data), &p) != nil || p.Code != "gone" ||
		p.Seq != 20 {
		t.Errorf("%+v", e)
	}
	if e, err := s.read(); err == nil {
		t.Errorf("the stream continues with %+v", e)
	}
	s = l.stream(fmt.Sprint(demo, "/events?after=", p.Seq))
	if e := s.next(); e.id != "21" {
		t.Errorf("%+v", e)
	}
	if some := ask[[]raw](l.client, "GET", demo+"/records", nil); len(some) != 9 {
		t.Errorf("%d records", len(some))
	}
}

// saveSnapshot writes a snapshot of the team as it is now.
func saveSnapshot(l *lab, of *engine.Team) {
	l.t.Helper()
	j, err := l.Home.OpenFolder(of.Dir, l.Log)
	if err != nil {
		l.t.Fatal(err)
	}
	defer j.Close()
	err = j.SaveSnapshot(within(l.t), func() (seq int64, data []byte) {
		of.View(func(s *team.State) { seq, data = s.Seq(), team.AppendSnapshot(nil, s) })
		return seq, data
	})
	if err != nil {
		l.t.Fatal(err)
	}
}

// damage changes a byte within the record seq.
func damage(t testing.TB, dir string, seq int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "journal", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		mark := fmt.Appendf(nil, `{"seq":%d,`, seq)
		if i := bytes.Index(data, mark); i >= 0 {
			data[i+len(mark)+40] ^= 1
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			return
		}
	}
	t.Fatalf("no file of %s has the record %d", strings.Join(files, ", "), seq)
}
