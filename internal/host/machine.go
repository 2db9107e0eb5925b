package host

import (
	"context"
	"os"
	"path/filepath"

	"cadre/internal/git/checkout"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Machine is what a host touches besides its journal and its agents. The zero value is the computer
// that the program runs on, and the files in the team's folder; the simulation has machines of its
// own, on which everything can go wrong.
type Machine struct {
	Name    string          // "" for the computer's
	Hosts   Registry        // nil for the hosts that are enrolled in the team's folder
	Beats   heartbeat.Store // nil for the folder heartbeats of the team's
	Saved   SavedStore      // nil for files in the team's folder
	Project Project         // nil for git, in the directory that the team works in
}

// Registry knows the hosts of a team by their ids.
type Registry interface {
	// Lives reports whether the host lives.
	Lives(id string) bool
	// Clear ends what a dead host left running. It does nothing to one that lives.
	Clear(ctx context.Context, id string) error
}

// SavedStore keeps what members without a lead have done of their tasks, one state for each member.
type SavedStore interface {
	// Read returns what was saved for the member, and whether there is anything.
	Read(member string) (SavedWork, bool, error)
	// Write puts the work in the place of what was saved for its member before.
	Write(w SavedWork) error
	// Forget removes the work, if it still is what is saved for its member. What was saved since
	// stays.
	Forget(w SavedWork) error
}

// Project is the directory that a team works in, as far as a host looks at it.
type Project interface {
	// Check says what is missing of it.
	Check(ctx context.Context, t team.Team) error
	// Records reports whether what tasks do in dir can be recorded.
	Records(dir string) bool
	// Record fills in the commits of what the task starts from, for [team.WantBase], or of what it
	// did, for [team.WantRecord].
	Record(ctx context.Context, kind team.WantKind, task team.Task, w *team.Work) error
	// Changes fills in what w.Member has changed in dir.
	Changes(ctx context.Context, dir string, w *SavedWork) error
}

// fill puts what is on this computer in the place of what is nil.
func (m Machine) fill(hosts string, log func(string)) Machine {
	teamDir := filepath.Dir(hosts)
	if m.Name == "" {
		m.Name, _ = os.Hostname() // for people; without it the rest still tells
	}
	if m.Hosts == nil {
		m.Hosts = enrolled{hosts, log}
	}
	if m.Beats == nil {
		m.Beats = heartbeat.Of(teamDir)
	}
	if m.Saved == nil {
		m.Saved = savedFolder(teamDir)
	}
	return m
}

// enrolled are the hosts with a folder in dir.
type enrolled struct {
	dir string
	log func(string)
}

func (e enrolled) Lives(id string) bool { return proc.Lives(filepath.Join(e.dir, id)) }

func (e enrolled) Clear(ctx context.Context, id string) error {
	return bury(ctx, filepath.Join(e.dir, id), e.log)
}

// missing says what the session of a member cannot do without.
func (h *Host) missing(ctx context.Context, t team.Team) error {
	if h.Machine.Project != nil {
		return h.Machine.Project.Check(ctx, t)
	}
	return checkout.Check(ctx, h.Procs, t)
}
