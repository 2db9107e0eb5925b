package inspect

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// Fact compares a file that all members rely on with its recorded state.
type Fact struct {
	team.Fact
	Now   string `json:"now"`           // SHA-256 of its content now, in hex; "" if it cannot be read
	Stale bool   `json:"stale"`         // the file has changed since it was recorded
	Why   string `json:"why,omitempty"` // why an existing file cannot be read
}

// State says in words how the file differs from its recorded state.
func (f Fact) State() string {
	switch {
	case f.Why != "":
		return f.Why
	case f.Stale && f.Now == "":
		return "gone"
	case f.Stale:
		return "changed"
	case f.Now == "":
		return "not there, as was noted"
	}
	return "as it was"
}

// reading is the state of a file when it was read.
type reading struct {
	info fs.FileInfo
	sum  string
}

// mostRead bounds how much of a fact is read for a list of what waits for a person, which has to be
// fast.
const mostRead = 64 << 20

// compare compares the file with its recorded state. A file that cannot be read is stale. The team
// can continue all the same. read caches files that were read, so that unchanged ones are not read
// again; nil for no cache.
func compare(ctx context.Context, dir string, f team.Fact, read map[string]reading) Fact {
	path := within(dir, f.Path)
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() && info.Size() > mostRead {
		return Fact{Fact: f, Now: f.SHA256, Why: fmt.Sprintf("not compared: it is %s, of at most %s",
			regularfile.Size(info.Size()), regularfile.Size(mostRead))}
	}
	if known, ok := read[path]; err == nil && ok && os.SameFile(known.info, info) && known.info.Size() == info.Size() &&
		known.info.ModTime().Equal(info.ModTime()) {
		return Fact{Fact: f, Now: known.sum, Stale: known.sum != f.SHA256}
	}
	sum, err := Checksum(ctx, dir, f.Path)
	if err == nil && read != nil && info != nil {
		read[path] = reading{info, sum}
	}
	if err != nil {
		return Fact{Fact: f, Stale: true, Why: err.Error()}
	}
	return Fact{Fact: f, Now: sum, Stale: sum != f.SHA256}
}

// Stale returns the names of the facts that changed.
func (e *Examination) Stale() (names []string) {
	for _, f := range e.Facts {
		if f.Stale {
			names = append(names, f.Name)
		}
	}
	return names
}

// errIrregular says that a fact is a folder, a pipe or a device, where reading may never end.
var errIrregular = errors.New("it is not a regular file")

func within(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}

// Checksum returns the SHA-256 of the file, in hex; "" if it does not exist. A relative path is
// below dir. It does not read files that are not regular.
func Checksum(ctx context.Context, dir, path string) (string, error) {
	path = within(dir, path)
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() { // opening a device may have an effect
		return "", &fs.PathError{Op: "read", Path: path, Err: errIrregular}
	}
	// do not wait for a pipe that has replaced the file meanwhile
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(err, &fs.PathError{Op: "read", Path: path, Err: errIrregular})
	}
	sum := sha256.New()
	if _, err := io.Copy(sum, until{ctx, f}); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// until reads until ctx ends.
type until struct {
	ctx context.Context
	r   io.Reader
}

func (u until) Read(p []byte) (int, error) {
	if err := u.ctx.Err(); err != nil {
		return 0, err
	}
	return u.r.Read(p)
}

// Recorded returns the facts with their present checksums. Every file must exist.
func Recorded(ctx context.Context, dir string, facts []team.Fact) ([]team.Fact, error) {
	now, err := Facts(ctx, dir, facts)
	for _, f := range now {
		if f.SHA256 == "" {
			return nil, &team.Error{Code: team.Invalid, Text: fmt.Sprintf("%s cannot be a fact: there is no such "+
				"file in %s", f.Path, dir)}
		}
	}
	return now, err
}

// Facts returns the facts with their present checksums, which are empty for files that do not
// exist. A file that cannot be read is an error.
func Facts(ctx context.Context, dir string, facts []team.Fact) ([]team.Fact, error) {
	now := slices.Clone(facts)
	for i := range now {
		sum, err := Checksum(ctx, dir, now[i].Path)
		switch {
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case err != nil:
			return nil, &team.Error{Code: team.Invalid, Text: fmt.Sprintf("%s cannot be a fact: %v", now[i].Name, err)}
		}
		now[i].SHA256 = sum
	}
	return now, nil
}
