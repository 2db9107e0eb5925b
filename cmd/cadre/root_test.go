package main

import (
	"bytes"
	"testing"

	"github.com/spf13/cobra"
)

// TestACommandBuiltAloneIsTheSame compares the help of each command, and of those below it, where
// it was built alone with that of the whole command line.
func TestACommandBuiltAloneIsTheSame(t *testing.T) {
	help := func(c *cobra.Command) string {
		t.Helper()
		var b bytes.Buffer
		c.Root().SetOut(&b)
		if err := c.Help(); err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
	var same func(alone, among *cobra.Command)
	same = func(alone, among *cobra.Command) {
		if got, want := help(alone), help(among); got != want {
			t.Errorf("%s built alone:\n%s\namong all:\n%s", among.CommandPath(), got, want)
		}
		below := among.Commands()
		if len(alone.Commands()) != len(below) {
			t.Fatalf("%s has %d commands built alone, and %d among all", among.CommandPath(), len(alone.Commands()), len(below))
		}
		for i, c := range alone.Commands() {
			same(c, below[i])
		}
	}
	whole := newApp().root(nil)
	if got, want := len(whole.Commands()), len(commands); got != want {
		t.Errorf("there are %d commands, of %d in the table", got, want)
	}
	for _, e := range commands {
		t.Run(e.name, func(t *testing.T) {
			among, _, err := whole.Find([]string{e.name})
			if err != nil || among.Name() != e.name {
				t.Fatalf("the table names %s what is %s (%v)", e.name, among.Name(), err)
			}
			if len(among.Aliases) > 0 {
				t.Errorf("%s is not found by its aliases %q, which are not in the table", e.name, among.Aliases)
			}
			for _, args := range [][]string{{e.name}, {"--json", e.name, "--help"}} {
				root := newApp().root(args)
				if len(root.Commands()) != 1 {
					t.Fatalf("%q built %d commands", args, len(root.Commands()))
				}
				same(root.Commands()[0], among)
			}
		})
	}
}

// TestWhatNamesNoCommandHasAll checks that help, completion, suggestions and mistakes have the whole
// command line.
func TestWhatNamesNoCommandHasAll(t *testing.T) {
	for _, args := range [][]string{nil, {"--json"}, {"--help"}, {"help", "send"}, {"__complete", "send", ""}, {"sned"},
		{"completion", "bash"}, {"--version"}, {"--unknown", "send"}, {"--json=true", "send"}, {"", "send"}} {
		if got := len(newApp().root(args).Commands()); got != len(commands) {
			t.Errorf("%q built %d commands of %d", args, got, len(commands))
		}
	}
}
