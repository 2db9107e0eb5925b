package hook

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/regularfile"
)

// Trust remembers which hooks of which projects a person has allowed to run, in a file of the user,
// as a digest for each project's folder.
//
// The digest covers the hooks of the project's two settings files for the events of this package
// (event, command and timeout, in order), and the content of every file of the project that these
// commands name, in any position: as the command, as an operand, in an option, as input, in a
// command within a command. It does not cover what such a file or a program calls or reads by
// itself, such as a makefile that is not named, what is in a folder that is named, what comes
// through a pipe that is named, and names that are known only when the command runs. [Examine]
// lists these, so that the person knows what they trust.
type Trust struct {
	File string // <cadre home>/trust.json
}

// Entry is one project that is trusted.
type Entry struct {
	Dir      string
	Digest   string
	Recorded time.Time
}

const trustVersion = 1

type trustFile struct {
	Version  int                     `json:"version"`
	Projects map[string]trustProject `json:"projects"`
}

type trustProject struct {
	Digest   string    `json:"digest"`
	Recorded time.Time `json:"recorded"`
}

// Trusted reports whether the project's hooks are, to the letter, those that were recorded. A
// project without hooks of its own needs no trust.
func (t Trust) Trusted(config *Config) (bool, error) {
	e, err := Examine(config)
	if err != nil {
		return false, err
	}
	if e.Digest == "" {
		return true, nil
	}
	file, err := t.read()
	if err != nil {
		return false, err
	}
	return file.Projects[config.Dir].Digest == e.Digest, nil
}

// Record trusts the project's hooks as they were when they were examined: what changed since then
// waits for trust again.
func (t Trust) Record(e Examined, now time.Time) error {
	return t.change(func(file *trustFile) {
		delete(file.Projects, e.Dir)
		if e.Digest != "" {
			file.Projects[e.Dir] = trustProject{Digest: e.Digest, Recorded: now.UTC().Truncate(time.Second)}
		}
	})
}

// Remove takes the trust in a project back. The project's folder may be gone.
func (t Trust) Remove(dir string) error {
	resolved, err := realDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		resolved, err = filepath.Abs(dir)
	}
	if err != nil {
		return fmt.Errorf("take trust back: %w", err)
	}
	return t.change(func(file *trustFile) { delete(file.Projects, resolved) })
}

// List returns the trusted projects by folder.
func (t Trust) List() ([]Entry, error) {
	file, err := t.read()
	if err != nil {
		return nil, err
	}
	var entries []Entry
	for _, dir := range slices.Sorted(maps.Keys(file.Projects)) {
		p := file.Projects[dir]
		entries = append(entries, Entry{Dir: dir, Digest: p.Digest, Recorded: p.Recorded})
	}
	return entries, nil
}

// Examined is what the hooks of a project are at a moment, and what trust in them is bound to.
type Examined struct {
	Dir    string
	Hooks  []ExaminedHook // those of the project's own settings files
	Digest string         // "" for a project without hooks of its own
}

// ExaminedHook is one hook, and what its command names.
type ExaminedHook struct {
	Event   string `json:"event"`
	Command string `json:"command"`
	Reach
}

// Examine looks at the hooks of the project's own settings files. See [Trust] for what the digest
// covers.
func Examine(config *Config) (Examined, error) {
	type covered struct {
		Source  Source
		Event   string
		Command string
		Timeout time.Duration
		Scripts map[string]string
	}
	e := Examined{Dir: config.Dir}
	var all []covered
	for _, h := range config.Hooks {
		if !h.Source.NeedsTrust() {
			continue
		}
		c := covered{h.Source, h.Event, h.Command, h.Timeout, map[string]string{}}
		reach := reachOf(config.Dir, h.Command)
		for _, file := range reach.Files {
			sum, err := hashFile(filepath.Join(config.Dir, file))
			if err != nil {
				return Examined{}, fmt.Errorf("trust of the hooks in %s: %w", config.Dir, err)
			}
			c.Scripts[file] = sum
		}
		for _, special := range reach.Special { // one that comes later waits for trust, as a file does
			c.Scripts[special] = "special"
		}
		all = append(all, c)
		e.Hooks = append(e.Hooks, ExaminedHook{h.Event, h.Command, reach})
	}
	if len(all) == 0 {
		return e, nil
	}
	data, err := json.Marshal(all) // keys of a map come sorted, so equal content gives equal bytes
	if err != nil {
		return Examined{}, err
	}
	sum := sha256.Sum256(data)
	e.Digest = "sha256:" + hex.EncodeToString(sum[:])
	return e, nil
}

func hashFile(path string) (string, error) {
	file, err := regularfile.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, file); err != nil {
		return "", err
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// maxTrust is the most that is read of the file of trusted projects, in bytes.
const maxTrust = 64 << 20

func (t Trust) read() (trustFile, error) {
	file := trustFile{Version: trustVersion, Projects: map[string]trustProject{}}
	data, err := regularfile.Read(t.File, maxTrust)
	if errors.Is(err, fs.ErrNotExist) {
		return file, nil
	}
	if err != nil {
		return file, fmt.Errorf("read trust: %w", err)
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return file, fmt.Errorf("read trust: %s: %w; delete it and run `cadre trust` again in the projects that "+
			"you trust", t.File, err)
	}
	if file.Version != trustVersion {
		return file, fmt.Errorf("read trust: %s has format version %d, and this cadre knows %d; use the cadre that "+
			"wrote it", t.File, file.Version, trustVersion)
	}
	if file.Projects == nil {
		file.Projects = map[string]trustProject{}
	}
	return file, nil
}

// change reads, changes and writes the file while no other process does. The old file or the new
// one is there whenever the machine stops.
func (t Trust) change(edit func(*trustFile)) error {
	dir := filepath.Dir(t.File)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("write trust: %w", err)
	}
	lock, err := t.lock()
	if err != nil {
		return fmt.Errorf("write trust: %w", err)
	}
	defer lock.Unlock()
	file, err := t.read()
	if err != nil {
		return err
	}
	edit(&file)
	data, err := json.MarshalIndent(file, "", "  ")
	if err != nil {
		return err
	}
	if err := atomicfile.Write(t.File, append(data, '\n')); err != nil {
		return fmt.Errorf("write trust: %w", err)
	}
	return nil
}

// lock waits for the moment that another process needs for its change.
func (t Trust) lock() (*filelock.Lock, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return filelock.Wait(ctx, t.File+".lock")
}
