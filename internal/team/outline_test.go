package team

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestOutline plays a history, and from any record on also as an outline that was read from the
// snapshot there. The outline shows the same notes, and decides each command about notes as the
// state does, with the same refusals.
func TestOutline(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s, _ := foundedBy(t, rapid.SampledFrom([]string{External, "claude"}).Draw(t, "lead"))
		if rapid.IntRange(0, 3).Draw(t, "ready") == 0 {
			finishWork(t, s)
		}
		from, steps := rapid.IntRange(0, 60).Draw(t, "from"), rapid.IntRange(20, 150).Draw(t, "steps")
		var o *Outline
		for n := 1; n <= steps; n++ {
			if n >= from && o == nil {
				o = outlined(t, s)
			}
			c := drawCommand(t, s, n)
			if n%3 == 0 {
				c.Body = drawNote(t, s)
			}
			d, err := Decide(s, c)
			if o != nil {
				compareOutline(t, o, s, c, d, err)
			}
			if d.Record == nil {
				continue
			}
			s.Apply(d.Record)
			if o != nil {
				o.Apply(recoded(t, d.Record))
			}
		}
	})
}

// drawNote draws a command about notes.
func drawNote(t *rapid.T, s *State) Body {
	key, text := noteKey.Draw(t, "key"), rapid.SampledFrom([]string{"x", "y\nz", "", "bad\xff"}).Draw(t, "text")
	switch rapid.IntRange(0, 3).Draw(t, "note") {
	case 0:
		return &AppendNote{Key: key, Text: text}
	case 1:
		return &DeleteNote{Key: key, IfSeq: drawIfSeq(t, s)}
	}
	return &SetNote{Key: key, Text: text, IfSeq: drawIfSeq(t, s)}
}

// outlined returns the outline of the state as read from its snapshot.
func outlined(t fataler, s *State) *Outline {
	data := string(AppendSnapshot(nil, s))
	o, err := DecodeOutline(s.Seq(), data)
	if err != nil {
		t.Fatalf("the outline of %s: %v", data, err)
	}
	if len(s.tasks) > 0 && len(o.s.tasks) != 0 {
		t.Fatalf("the outline was read with its %d tasks", len(o.s.tasks))
	}
	return o
}

func compareOutline(t fataler, o *Outline, s *State, c Command, d Decision, err error) {
	switch c.Body.(type) {
	case *SetNote, *AppendNote, *DeleteNote:
		got, refusal := o.Decide(c)
		if !reflect.DeepEqual(got, d) || !reflect.DeepEqual(refusal, err) {
			t.Fatalf("%T %+v: the outline decides %+v, %v, and the state %+v, %v", c.Body, c.Body, got.Record, refusal,
				d.Record, err)
		}
	default:
		if got, refusal := o.Decide(c); got.Record != nil || CodeOf(refusal) != Invalid {
			t.Fatalf("the outline decided %T", c.Body)
		}
	}
	want := s.Team()
	want.ReportAsked, want.LastWords = false, ""
	if got := o.Team(); o.Seq() != s.Seq() || !reflect.DeepEqual(got, want) ||
		!reflect.DeepEqual(o.Notes(), s.Notes()) {
		t.Fatalf("the outline shows %+v, %+v, and the state %+v, %+v", got, o.Notes(), want, s.Notes())
	}
	for _, now := range []Time{c.At, c.At + 1000, c.At + 1_000_000} {
		if bodies, _ := s.Overdue(now); o.Overdue(now) != (len(bodies) > 0) {
			t.Fatalf("at %v the outline has commands that are overdue: %v; the state has %+v", now, o.Overdue(now),
				bodies)
		}
	}
}

// TestOutlineOfAnotherOrder reads outlines of snapshots that are not as this version writes them.
func TestOutlineOfAnotherOrder(t *testing.T) {
	t.Parallel()
	s, _ := founded(t)
	for _, b := range []Body{&SetNote{Key: "plan", Text: "first"}, &CreateTask{Subject: "parse"}} {
		d, err := Decide(s, Command{ID: fmt.Sprintf("%T", b), Actor: User, At: 5, Body: b})
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(d.Record)
	}
	data := string(AppendSnapshot(nil, s))
	if _, rest, found := strings.Cut(data, tasksBegin); !found || strings.Contains(rest, `"plan"`) {
		t.Fatalf("the tasks are not the last of %s", data)
	}
	for name, changed := range map[string]string{
		"an unknown field": strings.Replace(data, `"messageSeq"`, `"later":1,"messageSeq"`, 1),
		"another order":    `{"noteSeq":1,` + strings.Replace(data[1:], `"noteSeq":1,`, "", 1),
		"bad UTF-8":        strings.Replace(data, "first", "fir\xffst", 1),
	} {
		o, err := DecodeOutline(s.Seq(), changed)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if n, _ := o.Note("plan"); !strings.HasPrefix(n.Text, "fir") || n.Seq != 1 {
			t.Errorf("%s: the note is %+v", name, n)
		}
	}
	for name, bad := range map[string]string{"a torn one": data[:len(data)/2], "none": "x",
		"no lead": strings.Replace(data, `"members":[{`, `"members":[],"were":[{`, 1)} {
		if _, err := DecodeOutline(s.Seq(), bad); err == nil {
			t.Errorf("%s was read", name)
		}
	}
}
