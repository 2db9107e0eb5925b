package store

import (
	"context"
	"errors"
	"strings"

	"cadre/internal/journal"
)

// Teams is the list of the teams that live at one place: a home, a program's memory, a schema of a
// database. Its methods may be called from any goroutine.
//
//	         Create                Archive
//	nothing ────────▶ in use ──────────────▶ archived
//	                    │ Remove                │ Remove
//	                    └─────────▶ gone ◀──────┘
//
// An id stands for one team at the place. A name stands for one team in use of a project, so an
// archived team leaves its name to another one.
type Teams interface {
	// Create makes a team with the given first records of its history, all of them or none. It is
	// durable when Create returns. The error is [journal.ErrExists] if a team has the id, or a team
	// in use of the project has the name.
	Create(ctx context.Context, e Entry, records [][]byte) error
	// Open opens a team by its id, or returns [journal.ErrNotFound]. The journal must be closed.
	Open(ctx context.Context, id string) (Opened, error)
	// List returns the teams, sorted by their names and then by their ids.
	List(ctx context.Context) ([]Entry, error)
	// Archive takes a team out of use, for good. Its history can still be read. An open handle may
	// return [journal.ErrGone] from then on. Archive does nothing to an archived team, and returns
	// [journal.ErrNotFound] for an unknown id.
	Archive(ctx context.Context, id string) error
	// Remove removes a team with everything that its processes share. Open handles return
	// [journal.ErrGone] from then on. It returns [journal.ErrNotFound] for an unknown id.
	Remove(ctx context.Context, id string) error
	// Common returns what the processes of all teams share, such as the list of machines. It stays
	// when teams are removed.
	Common(ctx context.Context) (Team, error)
}

// Entry is a team in a list.
type Entry struct {
	ID       string
	Name     string
	Project  string // what the team works in; the list only compares it
	Archived bool   // false for [Teams.Create]
}

// Opened is an open team.
type Opened struct {
	Entry
	Journal journal.Journal
	Shared  Team
}

// CheckEntry refuses an entry that cannot be created.
func CheckEntry(e Entry) error {
	switch {
	case e.ID == "" || e.Name == "":
		return errors.New("a team needs a name and an id")
	case e.Archived:
		return errors.New("a team is created before it is archived")
	case strings.ContainsRune(e.ID+e.Name+e.Project, 0):
		return errors.New("the name, the id and the project of a team cannot contain a zero byte")
	}
	return nil
}
