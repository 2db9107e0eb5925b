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
	Path string // the source, too
	// Follow waits for what is written to it later, and for the file itself; without it, the file
	// ends at its end.
	Follow bool
	// Member says whose stream it is, where it is not the lead's; "" where its lines say it.
	Member string
}

// Run implements [Feed].
func (f *File) Run(ctx context.Context, to Listener) error {
	if f.Member != "" {
		to.Introduce(f.Path, "", f.Member)
	}
	if info, err := os.Stat(f.Path); err == nil && info.IsDir() {
		return &team.Error{Code: team.Invalid, Text: f.Path + " is a folder, and no file of lines"}
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
		t.end(t.giveTo(to))
		return nil
	}
	folders := fswatch.New()
	defer folders.Close()
	for {
		// The watch first: what changes after the look wakes.
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

// stream reads what is no regular file: a pipe with a name, a terminal.
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
