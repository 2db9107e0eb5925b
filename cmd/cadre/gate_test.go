package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"cadre/internal/access"
)

// TestEveryCommandIsInTheTable checks that internal/access says for every command who may call it.
// It walks the whole tree, with hidden commands and those that cobra adds.
func TestEveryCommandIsInTheTable(t *testing.T) {
	root := (&app{}).root(nil)
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	rows := access.Commands()
	row := func(name string) int {
		return slices.IndexFunc(rows, func(r access.Row) bool { return r.Name == name })
	}
	seen := map[string]bool{cobra.ShellCompRequestCmd: true} // cobra adds it when it is called
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		path := strings.TrimPrefix(strings.TrimPrefix(c.CommandPath(), "cadre"), " ")
		seen[path] = true
		i := row(path)
		if i < 0 {
			t.Errorf("cadre %s is not in the table of internal/access: say who may call it", path)
		} else {
			for _, f := range rows[i].Flags {
				if c.Flags().Lookup(f.Name) == nil {
					t.Errorf("the table has a rule for cadre %s --%s, but the flag does not exist", path, f.Name)
				}
			}
		}
		if c != root && (c.PersistentPreRun != nil || c.PersistentPreRunE != nil) {
			t.Errorf("cadre %s has its own PersistentPreRun, which replaces the gate", path)
		}
		for _, below := range c.Commands() {
			walk(below)
		}
	}
	walk(root)
	for _, r := range rows {
		if !seen[r.Name] {
			t.Errorf("the table has a row for %q, but the command does not exist", r.Name)
		}
	}
}
