package main

import (
	"bytes"
	"slices"
	"testing"

	"github.com/spf13/cobra"
)

// TestACommandBuiltAloneIsTheSame checks that a command that is built alone has the same help as in
// the whole command line. The same holds for its subcommands.
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
			t.Errorf("%s built alone:\n%s\nin the whole command line:\n%s", among.CommandPath(), got, want)
		}
		below := among.Commands()
		if len(alone.Commands()) != len(below) {
			t.Fatalf("%s has %d commands built alone, want %d", among.CommandPath(), len(alone.Commands()), len(below))
		}
		for i, c := range alone.Commands() {
			same(c, below[i])
		}
	}
	whole := newApp().root(nil)
	if got, want := len(whole.Commands()), len(commands); got != want {
		t.Errorf("got %d commands, want %d as in the table", got, want)
	}
	for _, e := range commands {
		t.Run(e.name, func(t *testing.T) {
			among, _, err := whole.Find([]string{e.name})
			if err != nil || among.Name() != e.name {
				t.Fatalf("the table names %s, but the command is %s (%v)", e.name, among.Name(), err)
			}
			if len(among.Aliases) > 0 {
				t.Errorf("%s has aliases %q that the table lacks", e.name, among.Aliases)
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

// TestWhatNamesNoCommandHasAll checks that help, completion, suggestions and mistakes build the
// whole command line.
func TestWhatNamesNoCommandHasAll(t *testing.T) {
	for _, args := range [][]string{nil, {"--json"}, {"--help"}, {"help", "send"}, {"__complete", "send", ""}, {"sned"},
		{"completion", "bash"}, {"--version"}, {"--unknown", "send"}, {"--json=true", "send"}, {"", "send"}} {
		want := len(commands)
		if slices.Contains(args, "completion") { // cobra's own command
			want++
		}
		if got := len(newApp().root(args).Commands()); got != want {
			t.Errorf("%q built %d of %d commands", args, got, want)
		}
	}
}
