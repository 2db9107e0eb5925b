package proc

import (
	"os"
	"path/filepath"
	"testing"
)

// TestEarlier holds the order of start times, which are compared as texts.
func TestEarlier(t *testing.T) {
	for _, c := range []struct {
		p, q string
		want bool
	}{
		{"boot:99", "boot:100", true}, {"boot:100", "boot:99", false}, {"boot:100", "boot:101", true},
		{"boot:101", "boot:100", false}, {"boot:100", "boot:100", false},
	} {
		if earlier(process{start: c.p}, process{start: c.q}) != c.want {
			t.Errorf("%s before %s: %t", c.p, c.q, !c.want)
		}
	}
	first, err := lookup(1)
	if err != nil {
		t.Fatal(err)
	}
	r := open(t, "")
	c := start(t, r, Cmd{Args: []string{"sleep", "1000"}})
	child, err := lookup(c.Pid())
	if err != nil {
		t.Fatal(err)
	}
	here, err := lookup(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if !earlier(first, child) || earlier(child, here) {
		t.Errorf("in this order: %q, %q, %q", first.start, here.start, child.start)
	}
}

// TestVariableDuringExec checks that the environment of a process is found also while the process
// becomes another program. The kernel shows none for a moment then.
func TestVariableDuringExec(t *testing.T) {
	again := filepath.Join(t.TempDir(), "again")
	if err := os.WriteFile(again, []byte("#!/bin/sh\nexec \"$0\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	r := open(t, "")
	c := start(t, r, Cmd{Args: []string{again}})
	missed := 0
	for range 5000 {
		if !hasVariable(c.Pid(), tokenVariable+"="+c.token) {
			missed++
		}
	}
	if missed > 0 {
		t.Errorf("the variable was not found %d times", missed)
	}
}
