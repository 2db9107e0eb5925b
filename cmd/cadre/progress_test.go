package main

import (
	"fmt"
	"os"
	"testing"

	"cadre/internal/render/sanitize"
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

// TestProgressHidden checks what stands in the terminal when the screen has closed: the last lines, and
// every note, in their order.
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
