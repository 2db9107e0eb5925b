package layout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"cadre/internal/journal"
	"cadre/internal/journal/relay"
	"cadre/internal/journal/store"
	"cadre/internal/team"
)

// TeamSocket is the name of the socket, in a host's folder, on which the host serves its team to
// processes that do not know the place.
const TeamSocket = "team.sock"

// ThroughHosts returns the home for a process that does not know the place of its team, such as a
// session of an agent. It reaches the team through a host of this machine that has it.
func (h Home) ThroughHosts() Home {
	known := hosted{h}
	h.Place = NewPlace("a database", func(string) string { return "" },
		func(context.Context) (store.Teams, func(), error) { return known, func() {}, nil })
	return h
}

// HasPlaced reports whether the home has a folder for the team of a place with that id.
func (h Home) HasPlaced(id string) bool {
	if _, is := nameOfID(id); !is {
		return false
	}
	is, err := isFolder(filepath.Join(h.Root, placedFolder, id))
	return is && err == nil
}

// hosted is the list of the teams of places of which this machine has folders.
type hosted struct{ home Home }

// List implements [store.Teams]. The project of a team is not known.
func (t hosted) List(context.Context) (all []store.Entry, err error) {
	for folder, archived := range map[string]bool{placedFolder: false, placedArchive: true} {
		ids, err := subfolders(filepath.Join(t.home.Root, folder))
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			if name, is := nameOfID(id); is {
				all = append(all, store.Entry{ID: id, Name: name, Archived: archived})
			}
		}
	}
	return all, nil
}

// Common implements [store.Teams].
func (t hosted) Common(context.Context) (store.Team, error) {
	return nil, team.Refuse(team.Denied, "a session cannot see the machines of a database")
}

// Open implements [store.Teams].
func (t hosted) Open(ctx context.Context, id string) (is store.Opened, err error) {
	folder := filepath.Join(t.home.Root, placedFolder, id)
	sockets, err := filepath.Glob(filepath.Join(folder, "hosts", "*", TeamSocket))
	if err != nil {
		return is, err
	}
	for _, socket := range sockets {
		var j *relay.Journal
		if j, err = relay.Open(ctx, socket); err == nil {
			is = store.Opened{Entry: store.Entry{ID: j.ID(), Name: NameOf(id)}, Journal: servedJournal{j}, Shared: j.Shared()}
			return is, nil
		}
		if refused := refusal(err); refused != nil {
			return is, refused
		}
	}
	if err == nil {
		err = errors.New("no host is running")
	}
	return is, team.Refuse(team.NotReady, "team %s lives in a database, and no host on this machine serves it now: %v", id,
		err)
}

func (hosted) unknown(what string) error {
	return fmt.Errorf("%s a team of a database without its address: %w", what, fs.ErrPermission)
}

// Create implements [store.Teams]. It refuses.
func (t hosted) Create(context.Context, store.Entry, [][]byte) error { return t.unknown("create") }

// Archive implements [store.Teams]. It refuses.
func (t hosted) Archive(context.Context, string) error { return t.unknown("archive") }

// Remove implements [store.Teams]. It refuses.
func (t hosted) Remove(context.Context, string) error { return t.unknown("remove") }

// servedJournal is a journal at a host, which refuses what its caller has no right to.
type servedJournal struct{ *relay.Journal }

// Append implements [journal.Journal].
func (j servedJournal) Append(ctx context.Context, after int64, catchUp func(journal.Record) error,
	decide func() ([]byte, error)) (int64, error) {
	seq, err := j.Journal.Append(ctx, after, catchUp, decide)
	if refused := refusal(err); refused != nil {
		err = refused
	}
	return seq, err
}

// refusal returns the refusal of a host as one of the team; nil for another error.
func refusal(err error) error {
	if r, is := errors.AsType[*relay.RefusedError](err); is {
		return &team.Error{Code: team.Code(r.Code), Text: r.Text}
	}
	return nil
}
