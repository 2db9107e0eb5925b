// Package machines runs members of many teams on the machines that share a database, by labels.
//
// # Authority
//
// A machine serves one project. For each unfinished team of the project that has members for its
// labels it runs a host, which runs those members alone. The package decides which machine takes a
// member, and keeps the list of machines. The rules of members are the core's, and their sessions
// are the host's.
//
// # Which machine takes a member
//
// Of the machines that run, have the labels and a free slot, and are not drained, the one that the
// member was on before takes it; else the one with the smallest part of its slots in use. Each
// machine looks for itself. If none has taken the member after [patience], any of them does. The
// lease of the member decides when two try.
//
// # Guarantees
//
//   - A machine has at most as many sessions as it has slots.
//   - Two machines that run have different names.
//   - A machine that ended, or was killed, is listed as gone; its members are taken by others.
package machines

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"cadre/internal/journal/store"
	"cadre/internal/layout"
	"cadre/internal/team"
)

// Machine is a machine in the list.
type Machine struct {
	Name    string    `json:"name"`              // its name
	Labels  []string  `json:"labels"`            // what members ask for with runsOn
	Slots   int       `json:"slots"`             // how many sessions it runs at most
	Project string    `json:"project"`           // the project whose teams it serves
	Dir     string    `json:"dir"`               // its clone of the project
	Version string    `json:"version"`           // version of cadre
	Pid     int       `json:"pid"`               // its process
	Load    float64   `json:"load"`              // programs that ran or waited in the last minute; 0 if unknown
	Runs    []Run     `json:"runs"`              // the members that it runs
	Since   team.Time `json:"since"`             // when it was started
	Seen    team.Time `json:"seenAt"`            // when it wrote this
	Drained bool      `json:"drained,omitempty"` // it gives its members to other machines, and takes none
	Running bool      `json:"running"`           // its process runs
}

// Run is a member on a machine.
type Run struct {
	Team   string            `json:"team"`   // name of the team
	ID     string            `json:"id"`     // id of the team
	Member string            `json:"member"` // name of the member
	Status team.MemberStatus `json:"status"` // status of the member
}

// fits reports whether the machine could take the member of a team of that project now.
func (m *Machine) fits(member *team.Member, project string) bool {
	return m.Running && !m.Drained && m.Project == project && len(m.Runs) < m.Slots && member.RunsWith(m.Labels)
}

// Names of what machines share. Each machine has a lease while it runs.
const folder = "machines"

func leaseOf(name string) string { return "machine-" + name }
func keyOf(name string) string   { return folder + "/" + name + ".json" }
func drainOf(name string) string { return folder + "/" + name + "/drain" }

// common returns what all machines share.
func common(ctx context.Context, home layout.Home) (store.Team, error) {
	if home.Place == nil {
		return nil, team.Refuse(team.Invalid, "machines share teams through a database; give its address with --store "+
			"or CADRE_STORE")
	}
	teams, err := home.Place.Teams(ctx)
	if err != nil {
		return nil, err
	}
	return teams.Common(ctx)
}

// List returns the machines, sorted by their names. One that ended without notice is in the list
// until another one of its name begins, or [Drain] is called.
func List(ctx context.Context, home layout.Home) ([]Machine, error) {
	shared, err := common(ctx, home)
	if err != nil {
		return nil, err
	}
	return list(ctx, shared)
}

func list(ctx context.Context, shared store.Team) ([]Machine, error) {
	values, err := shared.All(ctx, folder)
	if err != nil {
		return nil, err
	}
	held, err := shared.AllHeld(ctx, leaseOf(""))
	if err != nil {
		return nil, err
	}
	all := []Machine{}
	for _, v := range values {
		var m Machine
		if v.Err != nil || json.Unmarshal(v.Data, &m) != nil || keyOf(m.Name) != v.Key {
			continue // a newer cadre wrote it, or a request to drain
		}
		if m.Running = slices.Contains(held, leaseOf(m.Name)); !m.Running {
			m.Runs = []Run{} // others take them
		}
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b Machine) int { return cmp.Compare(a.Name, b.Name) })
	return all, nil
}

// Drain asks the machine of that name to give its members to others, each at the end of its turn,
// and to end. It forgets a machine that does not run.
func Drain(ctx context.Context, home layout.Home, name string) (runs bool, err error) {
	if err := team.CheckName("machine", name); err != nil {
		return false, err
	}
	shared, err := common(ctx, home)
	if err != nil {
		return false, err
	}
	switch _, err := shared.Get(ctx, keyOf(name)); {
	case errors.Is(err, fs.ErrNotExist):
		return false, team.Refuse(team.NotFound, "there is no machine %s", name).
			With(team.Hint{Action: team.ActShowHosts})
	case err != nil:
		return false, err
	}
	if !shared.Held(ctx, leaseOf(name)) {
		return false, shared.Delete(ctx, keyOf(name))
	}
	return true, shared.Put(ctx, drainOf(name), nil)
}

// take makes this process the machine of that name, and removes an earlier request to drain it. An
// earlier process that was killed has the lease for some more seconds. One that runs shows signs of
// life meanwhile. note gets why it takes long.
func take(ctx context.Context, shared store.Team, name string, note func(string)) (store.Lease, error) {
	lease, err := shared.Acquire(ctx, leaseOf(name))
	if errors.Is(err, store.ErrHeld) {
		note(fmt.Sprintf("a machine named %s ran until now; waiting for its end", name))
		lease, err = await(ctx, shared, name)
	}
	if err != nil {
		return nil, err
	}
	if err := shared.Delete(ctx, drainOf(name)); err != nil {
		return nil, errors.Join(err, lease.Release())
	}
	return lease, nil
}

// await takes the lease when it is free, unless the machine that has it shows a sign of life.
func await(ctx context.Context, shared store.Team, name string) (store.Lease, error) {
	last, err := sign(ctx, shared, name)
	for err == nil {
		wait, cancel := context.WithTimeout(ctx, beatPause+time.Second)
		lease, held := store.Wait(wait, shared, leaseOf(name))
		cancel()
		if !errors.Is(held, store.ErrHeld) || ctx.Err() != nil {
			return lease, held
		}
		now := last
		if now, err = sign(ctx, shared, name); err == nil && now != last {
			return nil, team.Refuse(team.Taken, "a machine named %s runs already; give this one another name", name).
				With(team.Hint{Action: team.ActShowHosts})
		}
	}
	return nil, err
}

// sign returns the last sign of life of the machine.
func sign(ctx context.Context, shared store.Team, name string) (team.Time, error) {
	var m Machine
	data, err := shared.Get(ctx, keyOf(name))
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	return m.Seen, err
}

// announce puts the machine on the list, as it is now.
func (m Machine) announce(ctx context.Context, shared store.Values) error {
	data, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("write the machine: %w", err)
	}
	return shared.Replace(ctx, store.Value{Key: keyOf(m.Name), Data: data})
}

// patience is how long a member waits for the machine that should rather take it.
const patience = 5 * time.Second
