package hook

import (
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

	"cadre/internal/durable"
	"cadre/internal/proc"
	"cadre/internal/regularfile"
)

// Trust remembers which hooks of which projects a person has allowed to run, in a file of the user, as a digest for each
// project's folder.
//
// The digest covers the hooks of the project's two settings files for the events of this package (event, command and
// timeout, in order), and the content of the scripts inside the project that these commands run by name. It does not cover
// what such a script calls in its turn, what make or a package manager reads, or programs outside of the project: trust
// means that the person trusts those.
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

// Trusted reports whether the project's hooks are, to the letter, those that were recorded. A project without hooks of its
// own needs no trust.
func (t Trust) Trusted(config *Config) (bool, error) {
	digest, err := Digest(config)
	if err != nil {
		return false, err
	}
	if digest == "" {
		return true, nil
	}
	file, err := t.read()
	if err != nil {
		return false, err
	}
	return file.Projects[config.Dir].Digest == digest, nil
}

// Record trusts the project's hooks as they are in config, which is what the person was shown, not what the files hold by now.
// The scripts are taken as they are now.
func (t Trust) Record(config *Config, now time.Time) error {
	digest, err := Digest(config)
	if err != nil {
		return err
	}
	return t.change(func(file *trustFile) {
		delete(file.Projects, config.Dir)
		if digest != "" {
			file.Projects[config.Dir] = trustProject{Digest: digest, Recorded: now.UTC().Truncate(time.Second)}
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

// Digest returns what the trust in a project's hooks is bound to, and "" if the project has none. See [Trust] for what it
// covers.
func Digest(config *Config) (string, error) {
	type covered struct {
		Source  Source
		Event   string
		Command string
		Timeout time.Duration
		Scripts map[string]string
	}
	var all []covered
	for _, h := range config.Hooks {
		if !h.Source.NeedsTrust() {
			continue
		}
		c := covered{h.Source, h.Event, h.Command, h.Timeout, map[string]string{}}
		for _, script := range scripts(config.Dir, h.Command) {
			sum, err := hashFile(filepath.Join(config.Dir, script))
			if err != nil {
				return "", fmt.Errorf("trust of the hooks in %s: %w", config.Dir, err)
			}
			c.Scripts[script] = sum
		}
		all = append(all, c)
	}
	if len(all) == 0 {
		return "", nil
	}
	data, err := json.Marshal(all) // keys of a map come sorted, so equal content gives equal bytes
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:]), nil
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
		return file, fmt.Errorf("read trust: %s: %w; delete it and run `cadre trust` again in the projects that you trust", t.File, err)
	}
	if file.Version != trustVersion {
		return file, fmt.Errorf("read trust: %s has format version %d, and this cadre knows %d; use the cadre that wrote it", t.File, file.Version, trustVersion)
	}
	if file.Projects == nil {
		file.Projects = map[string]trustProject{}
	}
	return file, nil
}

// change reads, changes and writes the file while no other process does. The old file or the new one is there whenever the
// machine stops.
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
	if err := durable.Write(t.File, append(data, '\n')); err != nil {
		return fmt.Errorf("write trust: %w", err)
	}
	return nil
}

// lock waits for the moment that another process needs for its change.
func (t Trust) lock() (*proc.Lock, error) {
	deadline := time.Now().Add(5 * time.Second)
	for {
		lock, err := proc.NewLock(t.File + ".lock")
		if !errors.Is(err, proc.ErrHeld) || time.Now().After(deadline) {
			return lock, err
		}
	}
}
