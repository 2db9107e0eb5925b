package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// renamed accepts the former name of a flag of the command. It sets the flag, and notes the new
// name on standard error.
func (a *app) renamed(c *cobra.Command, former, name string) {
	flag := c.Flags().Lookup(name)
	alias := c.Flags().VarPF(&formerFlag{Value: flag.Value, set: func(text string) error {
		a.note(fmt.Sprintf("--%s is called --%s now, and the former name will be removed in a later version",
			former, name))
		return c.Flags().Set(name, text)
	}}, former, "", "the former name of --"+name)
	alias.Hidden, alias.NoOptDefVal = true, flag.NoOptDefVal
}

// formerFlag sets another flag.
type formerFlag struct {
	pflag.Value
	set func(text string) error
}

func (f *formerFlag) Set(text string) error { return f.set(text) }
