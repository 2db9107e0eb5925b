package host

import (
	"context"
	"os"
	"path/filepath"

	"cadre/internal/git/checkout"
	"cadre/internal/journal/store"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Machine is what a host uses besides its journal and its agents. The zero value is the computer
// that the program runs on, and the files in the team's folder. The simulation has machines of its
// own, on which everything can fail.
type Machine struct {
	Name    string          // "" for the computer's
	Shared  store.Team      // what the team's processes share; nil for what is in the team's folder
	Hosts   Registry        // nil for the hosts with a lease in Shared
	Beats   heartbeat.Store // nil for the heartbeats in Shared
	Saved   SavedStore      // nil for the saved work in Shared
	Project Project         // nil for git, in the team's directory
	Items   Items           // nil for the files and commands of this computer
}

// Registry finds the hosts of a team by their ids.
type Registry interface {
	// Alive reports whether the host is running.
	Alive(ctx context.Context, id string) bool
	// Clear ends the processes that a dead host left on this machine. It does nothing to a running
	// host.
	Clear(ctx context.Context, id string) error
}

// SavedStore keeps the unfinished work of members without a lead, one state per member.
type SavedStore interface {
	// Read returns the saved work of the member, and whether there is any.
	Read(ctx context.Context, member string) (SavedWork, bool, error)
	// Write replaces the saved work of the member.
	Write(ctx context.Context, w SavedWork) error
	// Forget removes the work, if it is still the saved work of its member. Work that was saved
	// since stays.
	Forget(ctx context.Context, w SavedWork) error
}

// Project is the directory that a team works in, as a host sees it.
type Project interface {
	// Check says what is missing in the directory.
	Check(ctx context.Context, t team.Team) error
	// Records reports whether the work of tasks in dir can be recorded.
	Records(dir string) bool
	// Record fills in the commits of the task's starting point, for [team.WantBase], or of its
	// work, for [team.WantRecord].
	Record(ctx context.Context, kind team.WantKind, task team.Task, w *team.Work) error
	// Changes fills in what w.Member changed in dir.
	Changes(ctx context.Context, dir string, w *SavedWork) error
}

// fill replaces nil fields by the parts of this computer.
func (m Machine) fill(hosts string, log func(string)) Machine {
	teamDir := filepath.Dir(hosts)
	if m.Name == "" {
		m.Name, _ = os.Hostname() // only for people; the rest works without it
	}
	m.Shared = filestore.Or(m.Shared, teamDir)
	if m.Hosts == nil {
		m.Hosts = enrolled{m.Shared, hosts, log}
	}
	if m.Beats == nil {
		m.Beats = heartbeat.In(m.Shared)
	}
	if m.Saved == nil {
		m.Saved = savedIn{m.Shared}
	}
	return m
}

// enrolled finds the hosts that have a lease.
type enrolled struct {
	leases store.Leases
	dir    string
	log    func(string)
}

// Alive also returns true for a host on this machine that lost its lease and has not ended yet.
func (e enrolled) Alive(ctx context.Context, id string) bool {
	return e.leases.Held(ctx, store.Host(id)) || proc.HostAlive(filepath.Join(e.dir, id))
}

func (e enrolled) Clear(ctx context.Context, id string) error {
	return reap(ctx, filepath.Join(e.dir, id), e.log)
}

// missing says what members' sessions need and is missing.
func (h *Host) missing(ctx context.Context, t team.Team) error {
	if h.Machine.Project != nil {
		return h.Machine.Project.Check(ctx, t)
	}
	return checkout.Check(ctx, h.Procs, t)
}
