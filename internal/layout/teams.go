package layout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"

	"cadre/internal/journal"
	"cadre/internal/journal/store"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/team"
)

// Teams is the list of the teams of a home. It implements [store.Teams]. The project of a team is
// the directory that it works in; two directories of one repository are the same project. Ids are
// those that the program makes.
type Teams struct{ home Home }

var _ store.Teams = Teams{}

// Teams returns the list of the teams of the home.
func (h Home) Teams() Teams { return Teams{h} }

// Create implements [store.Teams].
func (t Teams) Create(_ context.Context, e store.Entry, records [][]byte) error {
	if err := store.CheckEntry(e); err != nil {
		return err
	}
	if err := team.CheckName("team", e.Name); err != nil {
		return err
	}
	if t.home.InArchive(e.ID) != "" {
		return fmt.Errorf("create team %s: %w in the archive", e.ID, journal.ErrExists)
	}
	_, err := t.home.found(team.Team{ID: e.ID, Name: e.Name, Dir: e.Project}, records)
	if team.CodeOf(err) == team.Taken {
		return fmt.Errorf("%w: %w", journal.ErrExists, err)
	}
	return err
}

// folder returns the folder of the team with that id.
func (t Teams) folder(id string) (string, error) {
	folder := cmp.Or(t.home.Has(id), t.home.InArchive(id))
	if folder == "" {
		return "", fmt.Errorf("%w: team %s", journal.ErrNotFound, id)
	}
	return folder, nil
}

func (t Teams) entry(ctx context.Context, folder string) store.Entry {
	of := t.home.know(ctx, folder).Team
	return store.Entry{ID: of.ID, Name: of.Name, Project: of.Dir, Archived: t.home.Archived(folder)}
}

// Open implements [store.Teams].
func (t Teams) Open(ctx context.Context, id string) (store.Opened, error) {
	folder, err := t.folder(id)
	if err != nil {
		return store.Opened{}, err
	}
	j, err := t.home.OpenFolder(folder, nil)
	if err != nil {
		return store.Opened{}, err
	}
	shared, err := t.home.Shared(folder)
	if err != nil {
		return store.Opened{}, errors.Join(err, j.Close())
	}
	return store.Opened{Entry: t.entry(ctx, folder), Journal: j, Shared: shared}, nil
}

// List implements [store.Teams]. Of a team that cannot be read it has the name, and the id if that
// is known.
func (t Teams) List(ctx context.Context) (all []store.Entry, err error) {
	folders, err := t.home.Archive()
	if err != nil {
		return nil, err
	}
	used, err := t.home.inUse()
	if err != nil {
		return nil, err
	}
	folders = append(folders, in(t.home.teams(), used)...)
	for _, folder := range folders {
		all = append(all, t.entry(ctx, folder))
	}
	slices.SortFunc(all, func(a, b store.Entry) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// Archive implements [store.Teams].
func (t Teams) Archive(_ context.Context, id string) error {
	folder, err := t.folder(id)
	if err != nil || t.home.Archived(folder) {
		return err
	}
	_, err = t.home.PutInArchive(folder, id)
	return err
}

// Remove implements [store.Teams].
func (t Teams) Remove(_ context.Context, id string) error {
	folder, err := t.folder(id)
	if err != nil {
		return err
	}
	return t.home.Remove(folder, nil)
}

// commonFolder has what the processes of all teams of a home share.
const commonFolder = "common"

// Common implements [store.Teams].
func (t Teams) Common(context.Context) (store.Team, error) {
	folder := filepath.Join(t.home.Root, commonFolder)
	return filestore.Team(folder), makeFolder(folder)
}
