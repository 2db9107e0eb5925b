package main

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/engine/machines"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
)

func (a *app) hostsCommand() *cobra.Command {
	drain := ""
	c := &cobra.Command{
		Use: "hosts", Short: "List the machines that run members by their labels", Args: exactly(0),
		Long: `List the machines that share a database, with the members that they run. A member of a team names the labels
of its machine with runsOn, and cadre host --label makes this computer such a machine.

--drain has a machine give its members to others, each at the end of its turn, take no more, and end. A machine that
does not run any more leaves the list.`,
		Example: "  cadre hosts\n  cadre hosts --drain builder-2",
		RunE: func(c *cobra.Command, _ []string) error {
			if drain == "" {
				return a.listMachines(c)
			}
			runs, err := machines.Drain(c.Context(), a.home, drain)
			if err != nil {
				return err
			}
			words := "gives its members to others, and ends then"
			if !runs {
				words = "does not run, and is off the list"
			}
			return a.print(drained{drain, runs}, said("the machine %s %s", drain, words))
		},
	}
	c.Flags().StringVar(&drain, "drain", "", "the `machine` that gives its members to others, and ends")
	return c
}

// drained is what cadre hosts --drain prints.
type drained struct {
	Machine string `json:"machine"` // name of the machine
	Runs    bool   `json:"runs"`    // it runs, and gives its members to others; else it is off the list
}

// listMachines prints the machines.
func (a *app) listMachines(c *cobra.Command) error {
	all, err := machines.List(c.Context(), a.home)
	if err != nil {
		return err
	}
	return a.print(all, func(w *sanitize.Writer) error {
		if len(all) == 0 {
			w.Printf("There is no machine. On each one: cadre host --label LABEL\n")
			return nil
		}
		t := render.NewTable(len(all)+1, "MACHINE", "STATE", "LABELS", "SLOTS", "LOAD", "VERSION", "SEEN", "MEMBERS")
		for _, m := range all {
			state, load := "running", fmt.Sprintf("%.1f", m.Load)
			switch {
			case !m.Running:
				state, load = "gone", ""
			case m.Drained:
				state = "drained"
			}
			var runs []string
			for _, r := range m.Runs {
				runs = append(runs, r.Team+"/"+r.Member)
			}
			t.Row(m.Name, state, strings.Join(m.Labels, ", "), fmt.Sprintf("%d of %d", len(m.Runs), m.Slots), load,
				m.Version, render.Ago(now(), m.Seen), strings.Join(runs, ", "))
		}
		t.Texts, t.Spare = []string{"MEMBERS"}, []string{"VERSION", "LOAD", "SEEN"}
		return t.Write(w)
	})
}

// machine makes this process the host of a machine.
func (a *app) machine(c *cobra.Command, o machines.Options) error {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return err
	}
	ctx := a.pausesUnread(c.Context())
	o.Engine, o.Dir, o.Version, o.Hurry, o.Kill = a.engine(), dir, version, a.haste.hurry, a.haste.kill
	o.Ready = func(m machines.Machine) {
		a.note(fmt.Sprintf("machine %s runs members with %s from %s, %d at a time; end it with Ctrl-C, or drain it: %s",
			m.Name, labels(m.Labels), m.Dir, m.Slots, render.Typed("hosts", "--drain", m.Name)))
	}
	err = machines.Serve(ctx, o)
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

func labels(all []string) string {
	if len(all) == 1 {
		return "the label " + all[0]
	}
	return "the labels " + strings.Join(all, ", ")
}
