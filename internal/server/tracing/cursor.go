package tracing

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"cadre/internal/agent/traceparent"
	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/regularfile"
)

// cursor is the last record up to which all ended spans of a team were sent.
type cursor struct {
	History string `json:"history,omitempty"` // the restored history whose records are counted; "" for the first
	Seq     int64  `json:"seq"`
}

// cursors is the folder with the cursors of all teams.
type cursors string

// maxCursor bounds the size of a cursor's file.
const maxCursor = 4 << 10

// path returns the file of the team's cursor. Its name is a hash, because an id may be any text.
func (c cursors) path(team string) string {
	return filepath.Join(string(c), traceparent.Team(team).String()+".json")
}

// read returns the cursor of the team. A team without a cursor has the zero cursor. If a cursor
// cannot be read, that is an error, and all spans may be sent again.
func (c cursors) read(team string) (at cursor, err error) {
	data, err := regularfile.Read(c.path(team), maxCursor)
	if errors.Is(err, fs.ErrNotExist) {
		return cursor{}, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &at)
	}
	if err != nil {
		return cursor{}, errors.Join(err, errors.New("the spans of this team are sent again, with the same ids"))
	}
	return at, nil
}

// write replaces the cursor of the team, durably.
func (c cursors) write(team string, at cursor) error {
	if err := os.MkdirAll(string(c), 0o700); err != nil {
		return err
	}
	return atomicfile.Write(c.path(team), encode(at))
}

// remove removes the cursor of a team that was removed.
func (c cursors) remove(team string) error {
	if err := os.Remove(c.path(team)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
