package feed

import (
	"context"
	"os"
	"path/filepath"

	"cadre/internal/team"
	"cadre/internal/watch"
)

// File is a feed of the lines of a file.
type File struct {
	Path   string
	Source string // "" for the path
	// Follow waits for what is written to it later, and for the file itself; without it, the file ends at its end.
	Follow bool
	// Team and Member say whose stream it is, where it is not the lead's; "" where its lines say it.
	Team, Member string
}

// Run implements [Feed].
func (f *File) Run(ctx context.Context, to Listener) error {
	source := f.Source
	if source == "" {
		source = f.Path
	}
	if f.Member != "" {
		to.Introduce(source, f.Team, f.Member)
	}
	if info, err := os.Stat(f.Path); err == nil && info.IsDir() {
		return &team.Error{Code: team.Invalid, Text: f.Path + " is a folder, and no file of lines"}
	} else if err == nil && !info.Mode().IsRegular() {
		return stream(ctx, f.Path, source, to)
	}
	t := &tail{path: f.Path, source: source}
	defer t.close()
	if !f.Follow {
		if err := t.open(to.Place(source)); err != nil {
			return err
		}
		if err := t.read(to); err != nil {
			return err
		}
		t.end(to)
		return nil
	}
	folders := watch.New()
	defer folders.Close()
	for {
		// The watch first: what changes after the look wakes.
		folders.Add(filepath.Dir(f.Path))
		if real, err := filepath.EvalSymlinks(f.Path); err == nil && filepath.Dir(real) != filepath.Dir(f.Path) {
			folders.Add(filepath.Dir(real))
		}
		if _, err := t.follow(to); err != nil {
			return err
		}
		if _, _, ok := folders.Wait(ctx, folders.Pace()); !ok {
			return nil
		}
	}
}

// stream reads what is no regular file: a pipe with a name, a terminal.
func stream(ctx context.Context, path, source string, to Listener) error {
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
	return (&Stream{Source: source, Reader: file}).Run(ctx, to)
}
