package source

import (
	"context"
	"os"
	"path/filepath"

	"cadre/internal/sys/fswatch"
	"cadre/internal/team"
)

// File is a feed of the lines of a file.
type File struct {
	Path string // also the name of the source
	// Follow waits for later lines, and for the file itself. Without it, reading stops at the end
	// of the file.
	Follow bool
	// Member is the member whose stream it is; "" for the lead's, or if the lines name their
	// writer.
	Member string
}

// Run implements [Feed].
func (f *File) Run(ctx context.Context, to Listener) error {
	if f.Member != "" {
		to.Introduce(f.Path, "", f.Member)
	}
	if info, err := os.Stat(f.Path); err == nil && info.IsDir() {
		return &team.Error{Code: team.Invalid, Text: f.Path + " is a directory, not a file of JSON lines"}
	} else if err == nil && !info.Mode().IsRegular() {
		return stream(ctx, f.Path, to)
	}
	t := &tail{path: f.Path}
	defer t.close()
	if !f.Follow {
		if err := t.open(to.Place(f.Path)); err != nil {
			return err
		}
		if err := t.read(to); err != nil {
			return err
		}
		t.end(t.deliverTo(to))
		return nil
	}
	folders := fswatch.New()
	defer folders.Close()
	for {
		// Watch before looking, so that a change after the look wakes.
		folders.Add(filepath.Dir(f.Path))
		if real, err := filepath.EvalSymlinks(f.Path); err == nil && filepath.Dir(real) != filepath.Dir(f.Path) {
			folders.Add(filepath.Dir(real))
		}
		if err := t.follow(to); err != nil {
			return err
		}
		if _, _, ok := folders.Wait(ctx, folders.Pace()); !ok {
			return nil
		}
	}
}

// stream reads a file that is not regular: a named pipe, a terminal.
func stream(ctx context.Context, path string, to Listener) error {
	opened := make(chan error, 1)
	var file *os.File
	go func() {
		var err error
		file, err = os.Open(path)
		opened <- err
	}()
	select {
	case err := <-opened:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return nil
	}
	defer file.Close()
	return (&Stream{Source: path, Reader: file}).Run(ctx, to)
}
