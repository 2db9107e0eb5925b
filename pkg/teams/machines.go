package teams

import (
	"context"
	"time"

	"cadre/internal/engine/machines"
)

// Machine is a machine that runs members of the teams in a database, by its labels.
type Machine struct {
	Name    string
	Labels  []string // what members ask for with [MemberConfig].RunsOn
	Slots   int      // how many sessions it runs at most
	Dir     string   // its clone of the project
	Version string   // of cadre
	Load    float64  // programs that ran or waited for a processor there, over the last minute; 0 if unknown
	Runs    []MachineRun
	Since   time.Time // when it was started
	Seen    time.Time // its last sign of life
	Drained bool      // it gives its members to other machines, and takes none
	Running bool      // false for one that was killed
}

// MachineRun is a member on a machine.
type MachineRun struct {
	Team   string
	TeamID string
	Member string
	Status MemberStatus
}

// Machines lists the machines of the manager's database, sorted by their names. It returns
// ErrInvalid for a manager without [Options].Store.
func (m *Manager) Machines(ctx context.Context) ([]Machine, error) {
	if err := m.pass("Manager.Machines"); err != nil {
		return nil, err
	}
	if err := m.onDisk("has no machines"); err != nil {
		return nil, err
	}
	all, err := machines.List(ctx, m.engine.Home)
	list := make([]Machine, 0, len(all))
	for _, one := range all {
		list = append(list, machineOf(one))
	}
	return list, public(err)
}

func machineOf(m machines.Machine) Machine {
	of := Machine{Name: m.Name, Labels: m.Labels, Slots: m.Slots, Dir: m.Dir, Version: m.Version, Load: m.Load,
		Since: clock(m.Since), Seen: clock(m.Seen), Drained: m.Drained, Running: m.Running}
	for _, r := range m.Runs {
		of.Runs = append(of.Runs, MachineRun{r.Team, r.ID, r.Member, MemberStatus(r.Status)})
	}
	return of
}

// DrainMachine has a machine give its members to others, each at the end of its turn, and end. It
// does not wait for that. It takes a machine that does not run from the list. It returns
// ErrNotFound for an unknown name.
func (m *Manager) DrainMachine(ctx context.Context, name string) error {
	if err := m.pass("Manager.DrainMachine"); err != nil {
		return err
	}
	if err := m.onDisk("has no machines"); err != nil {
		return err
	}
	_, err := machines.Drain(ctx, m.engine.Home, name)
	return public(err)
}

// MachineConfig says how a program serves as a machine.
type MachineConfig struct {
	Name   string   // "" for the computer's
	Labels []string // at least one
	Slots  int      // sessions at most; 0 for one for each processor
	Dir    string   // in the machine's clone of the project; "" for Options.Dir
	// Ready is called when the machine is on the list.
	Ready func(Machine)
}

// ServeMachine runs members of the teams of a project in the manager's database: those whose labels
// this machine has. It returns when ctx has ended, or the machine was drained, and no session of it
// is left; its members continue elsewhere. It returns ErrInvalid for a manager without
// [Options].Store, and ErrTaken while a machine of that name runs.
func (m *Manager) ServeMachine(ctx context.Context, c MachineConfig) error {
	if err := m.pass("Manager.ServeMachine"); err != nil {
		return err
	}
	if err := m.onDisk("has no machines"); err != nil {
		return err
	}
	dir, err := m.dir(c.Dir)
	if err != nil {
		return err
	}
	o := machines.Options{Engine: m.engine, Name: c.Name, Labels: c.Labels, Slots: c.Slots, Dir: dir, Version: "library"}
	if c.Ready != nil {
		o.Ready = func(of machines.Machine) { c.Ready(machineOf(of)) }
	}
	return public(machines.Serve(ctx, o))
}
