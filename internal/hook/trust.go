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

// Trust remembers which hooks of which projects a person has allowed to run. It keeps a digest for
// each project's folder, in a file of the user.
//
// The digest covers the hooks of the project's two settings files for the events of this package:
// event, command and timeout, in order. It also covers the content of every file of the project
// that these commands name, in any position: as the command, as an operand, in an option, as input,
// or in a command within a command.
//
// It does not cover:
//
//   - files that such a file or program calls or reads by itself, such as a makefile that the
//     command does not name;
//   - the content of a folder that is named;
//   - what comes through a pipe that is named;
//   - names that are known only when the command runs.
//
// [Examine] lists these, so that the person knows what they trust.
//
// The same file remembers files of the project that a person has allowed, such as its templates, by
// the digests that the caller gives them. Neither kind of trust depends on the other.
type Trust struct {
	File string // <cadre home>/trust.json
}

// Entry is one trusted project.
type Entry struct {
	Dir      string
	Digest   string            // of the hooks; "" if they are not trusted
	Files    map[string]string // digests of the other files, by their names
	Recorded time.Time
}

const trustVersion = 1

type trustFile struct {
	Version  int                     `json:"version"`
	Projects map[string]trustProject `json:"projects"`
}

type trustProject struct {
	Digest   string            `json:"digest"`
	Files    map[string]string `json:"files,omitempty"`
	Recorded time.Time         `json:"recorded"`
}

// Trusted reports whether the project's hooks are exactly those that were recorded. A project
// without hooks of its own needs no trust.
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

// Untrusted returns the events for which hooks of the project in dir do not run because the user
// does not trust them, in the order of [Events]. off reports whether a hook is switched off.
func (t Trust) Untrusted(dir string, off func(id string) bool) ([]string, error) {
	config, err := loadProject(dir)
	if err != nil {
		return nil, err
	}
	config.SwitchOff(off)
	config.Hooks = slices.DeleteFunc(config.Hooks, func(h Hook) bool { return !h.Source.NeedsTrust() })
	if trusted, err := t.Trusted(config); trusted || err != nil {
		return nil, err
	}
	var events []string
	for _, event := range Events() {
		if slices.ContainsFunc(config.Hooks, func(h Hook) bool { return h.Event == event && !h.Off }) {
			events = append(events, event)
		}
	}
	return events, nil
}

// loadProject reads the hooks that come with the project. In the user's home folder the project's
// settings are the user's own.
func loadProject(dir string) (*Config, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		home = dir
	}
	return Load(filepath.Join(home, ".claude"), dir, nil)
}

// Record trusts the project's hooks as they were when they were examined. A hook that changed since
// then needs trust again.
func (t Trust) Record(e Examined, now time.Time) error {
	return t.change(func(file *trustFile) {
		p := file.Projects[e.Dir]
		delete(file.Projects, e.Dir)
		if p.Digest = e.Digest; p.Digest != "" || len(p.Files) > 0 {
			p.Recorded = now.UTC().Truncate(time.Second)
			file.Projects[e.Dir] = p
		}
	})
}

// RecordFiles trusts files of the project in dir, with these digests by their names, beside those
// that it trusts already.
func (t Trust) RecordFiles(dir string, digests map[string]string, now time.Time) error {
	dir, err := realDir(dir)
	if err != nil {
		return fmt.Errorf("record trust: %w", err)
	}
	return t.change(func(file *trustFile) {
		p := file.Projects[dir]
		all := maps.Clone(p.Files)
		if all == nil {
			all = map[string]string{}
		}
		maps.Copy(all, digests)
		p.Files, p.Recorded = all, now.UTC().Truncate(time.Second)
		file.Projects[dir] = p
	})
}

// Files returns the digests of the trusted files of the project in dir, by their names.
func (t Trust) Files(dir string) (map[string]string, error) {
	dir, err := realDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read trust: %w", err)
	}
	file, err := t.read()
	if err != nil {
		return nil, err
	}
	return file.Projects[dir].Files, nil
}

// Remove withdraws the trust in a project. The project's folder need not exist any more.
func (t Trust) Remove(dir string) error {
	resolved, err := realDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		resolved, err = filepath.Abs(dir)
	}
	if err != nil {
		return fmt.Errorf("withdraw trust: %w", err)
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
		entries = append(entries, Entry{Dir: dir, Digest: p.Digest, Files: p.Files, Recorded: p.Recorded})
	}
	return entries, nil
}

// Examined describes a project's hooks at one moment, with the digest that trust is bound to.
type Examined struct {
	Dir    string
	Hooks  []ExaminedHook // from the project's own settings files
	Digest string         // "" for a project without hooks of its own
}

// ExaminedHook is one hook and the files and programs that its command names.
type ExaminedHook struct {
	Event   string `json:"event"`   // TeammateIdle, TaskCreated or TaskCompleted
	Command string `json:"command"` // command for /bin/sh
	Named
}

// Examine examines the hooks of the project's own settings files. [Trust] says what the digest
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
		names := namedBy(config.Dir, h.Command)
		for _, file := range names.Files {
			sum, err := hashFile(filepath.Join(config.Dir, file))
			if err != nil {
				return Examined{}, fmt.Errorf("trust of the hooks in %s: %w", config.Dir, err)
			}
			c.Scripts[file] = sum
		}
		for _, special := range names.Special { // a file that replaces it later needs trust again
			c.Scripts[special] = "special"
		}
		all = append(all, c)
		e.Hooks = append(e.Hooks, ExaminedHook{h.Event, h.Command, names})
	}
	if len(all) == 0 {
		return e, nil
	}
	data, err := json.Marshal(all) // the keys of a map are sorted, so equal content gives equal bytes
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

// maxTrust bounds how much of the file of trusted projects is read, in bytes.
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
		return file, fmt.Errorf("read trust: %s: %w; delete it, and trust the hooks of your projects again", t.File,
			err)
	}
	if file.Version != trustVersion {
		return file, fmt.Errorf("read trust: %s has format version %d, and this cadre reads %d; use the cadre that "+
			"wrote it", t.File, file.Version, trustVersion)
	}
	if file.Projects == nil {
		file.Projects = map[string]trustProject{}
	}
	return file, nil
}

// change reads, edits and writes the file under a lock. If the machine stops, either the old or the
// new file is there.
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

// lock waits until no other process is changing the file.
func (t Trust) lock() (*filelock.Lock, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return filelock.Wait(ctx, t.File+".lock")
}
