package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/regularfile"
)

// folder keeps the last checkpoint in files, for a project without a repository. It replaces each
// file as a whole, and state.json last, because that says how much of the other files counts.
type folder struct{ dir string }

func (f *folder) place() string { return f.dir }

func (f *folder) load(context.Context) (*tip, error) {
	state, err := f.file(stateFile)
	if err != nil || state == nil {
		return nil, err
	}
	var tails [2][]byte
	for n := range logs {
		if tails[n], err = f.file(logs[n].file); err != nil {
			return nil, err
		}
	}
	i, failure := open(state, tails)
	if failure != nil {
		// The process that wrote the next checkpoint may have been killed after it turned the
		// newest part of a log into an older one.
		if again, err := f.moved(state, tails); err != nil {
			return nil, err
		} else if again == nil {
			return nil, &DamageError{f.dir, failure.Error()}
		} else {
			i = again
		}
	}
	return &tip{fmt.Sprint(i.doc.Sequence, i.doc.History, i.doc.TeamID), i}, nil
}

// moved returns the image with the parts that came after the known ones as its tails.
func (f *folder) moved(state []byte, tails [2][]byte) (*image, error) {
	for try := 1; try < 1<<len(logs); try++ {
		both := tails
		for n := range logs {
			if try>>n&1 == 0 {
				continue
			}
			parts, err := partsIn(state, n)
			if err != nil {
				return nil, nil
			}
			if both[n], err = f.file(partFile(n, parts+1)); err != nil {
				return nil, err
			}
		}
		if i, err := open(state, both); err == nil {
			return i, nil
		}
	}
	return nil, nil
}

// maxFile bounds what is read of a checkpoint's file, in bytes.
const maxFile = 1 << 30

func (f *folder) file(name string) ([]byte, error) {
	text, err := regularfile.Read(filepath.Join(f.dir, filepath.FromSlash(name)), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

func (f *folder) read(_ context.Context, _ *tip, files []string) ([][]byte, error) {
	texts := make([][]byte, len(files))
	for i, name := range files {
		var err error
		if texts[i], err = f.file(name); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

func (f *folder) save(ctx context.Context, on *tip, next *image, files map[string][]byte, fresh bool) (string, error) {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return "", err
	}
	lock, err := filelock.New(filepath.Join(f.dir, "lock"))
	if errors.Is(err, filelock.ErrHeld) {
		return "", errMoved
	} else if err != nil {
		return "", err
	}
	defer lock.Unlock()
	now, err := f.load(ctx)
	if err != nil {
		return "", err
	}
	if (now == nil) != (on == nil) || now != nil && now.id != on.id {
		return "", errMoved
	}
	if fresh && now != nil { // it belongs to another team
		for _, name := range []string{stateFile, logs[mailbox].stem, logs[tasks].stem, path.Dir(teamSheet)} {
			if err := os.RemoveAll(filepath.Join(f.dir, name)); err != nil {
				return "", err
			}
		}
	}
	for _, name := range order(files) {
		if err := f.put(name, files[name]); err != nil {
			return "", fmt.Errorf("%s: %w", f.dir, err)
		}
	}
	return fmt.Sprint(next.doc.Sequence, next.doc.History, next.doc.TeamID), f.sweep(next)
}

// sweep removes the sheets that are not part of the present checkpoint: old ones, and those that a
// killed process left.
func (f *folder) sweep(now *image) error {
	part := map[string]bool{}
	for _, s := range now.doc.Sheets {
		part[filepath.Join(f.dir, filepath.FromSlash(s.file()))] = true
	}
	return filepath.WalkDir(filepath.Join(f.dir, path.Dir(teamSheet)), func(path string, e fs.DirEntry,
		err error) error {
		if err == nil && !e.IsDir() && !part[path] {
			err = os.Remove(path)
		}
		return err
	})
}

// order returns an order in which the files can be replaced one by one: sheets and older parts
// before the newest part of their log, and state.json last.
func order(files map[string][]byte) []string {
	var parts, newest []string
	for name := range files {
		switch name {
		case stateFile:
		case logs[mailbox].file, logs[tasks].file:
			newest = append(newest, name)
		default:
			parts = append(parts, name)
		}
	}
	return append(append(parts, newest...), stateFile)
}

// put replaces one file.
func (f *folder) put(name string, text []byte) error {
	path := filepath.Join(f.dir, filepath.FromSlash(name))
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := atomicfile.Write(path, text); err != nil {
		return err
	}
	for len(dir) >= len(f.dir) { // any of them may be new
		dir = filepath.Dir(dir)
		if err := atomicfile.Folder(dir); err != nil {
			return err
		}
	}
	return nil
}
