package main

import (
	"fmt"
	"os"
	"regexp"
	"testing"

	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// TestProgressTimes checks that the times of a run's lines are in order, also where a line was held
// back.
func TestProgressTimes(t *testing.T) {
	p := &progress{}
	late := p.clock(2_000_000)
	if early := p.clock(1_000_000); early != late {
		t.Errorf("%s comes after %s", early, late)
	}
	if last := p.clock(3_000_000); last == late {
		t.Errorf("%s comes twice", last)
	}
}

// TestProgressHidden checks what stands in the terminal when the screen has closed: the last lines,
// and every note, in their order.
func TestProgressHidden(t *testing.T) {
	var shown shared
	a := &app{out: output{sanitize.NewWriter(&shown), os.Stdout}, err: output{sanitize.NewWriter(&shown), os.Stderr}}
	p := &progress{app: a, notes: make(chan string, 1)}
	p.printf("before")
	p.hide()
	p.note("a note")
	p.note("another note")
	for i := range mostKept + 3 {
		p.printf("line %d", i)
	}
	p.beside(func() { a.note("advice") })
	if got := shown.String(); got != "before\n" {
		t.Errorf("while the screen has the terminal it prints\n%s", got)
	}
	if got := <-p.notes; got != "a note" {
		t.Errorf("the screen gets %q", got)
	}
	p.reveal("cadre log demo")
	p.printf("after")
	want := "before\n… 3 lines before: cadre log demo\nnote: a note\nnote: another note\n"
	for i := 3; i < mostKept+3; i++ {
		want += fmt.Sprintf("line %d\n", i)
	}
	if got := shown.String(); got != want+"note: advice\nafter\n" {
		t.Errorf("it prints\n%s\nnot\n%s", got, want)
	}
}

// TestProgressStops checks that lines that were held back come before the line that says that the
// run is being stopped, and that a task that starts after it has none.
func TestProgressStops(t *testing.T) {
	var shown shared
	a := &app{out: output{sanitize.NewWriter(&shown), os.Stdout}, err: output{sanitize.NewWriter(&shown), os.Stderr}}
	p := &progress{app: a}
	var s team.State
	seq := int64(0)
	happens := func(events ...team.Event) {
		seq++
		r := &team.Record{Seq: seq, At: 1_700_000_000_000, Events: events}
		s.Apply(r)
		p.showing.Lock()
		defer p.showing.Unlock()
		p.show(p.digest.Add(r, &s, func(team.Event) bool { return false }))
	}
	happens(&team.TeamCreated{Team: team.Team{ID: "t", Name: "t", Lead: "lead"}, Lead: team.Member{Name: "lead"}})
	happens(&team.TaskCreated{Task: team.Task{ID: "1", Subject: "one"}}, &team.TaskCreated{Task: team.Task{ID: "2",
		Subject: "two"}})
	happens(&team.TaskClaimed{Task: "1", Member: "ann", Fence: 1})
	p.stops("stopping 1 member")
	happens(&team.TaskClaimed{Task: "2", Member: "ann", Fence: 1})
	happens(&team.TaskReleased{Task: "2", Reason: "paused"})
	p.clear()
	got := regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d  `).ReplaceAllString(shown.String(), "")
	if want := "· task 1  one\n· task 2  two\n▸ ann  one\nnote: stopping 1 member\n↺ two: paused\n"; got != want {
		t.Errorf("it prints\n%s\nnot\n%s", got, want)
	}
}
