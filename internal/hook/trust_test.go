package hook

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const gate = `{"hooks":{"TaskCompleted":[{"hooks":[{"type":"command","command":"sh scripts/check.sh"}]}]}}`

func TestProjectHooksNeedTrust(t *testing.T) {
	dir := t.TempDir()
	settings := write(t, filepath.Join(dir, ".claude", "settings.json"), gate)
	script := write(t, filepath.Join(dir, "scripts", "check.sh"), "echo no >&2; exit 2")
	r := newRunner(t, dir, Hook{Event: TaskCompleted, Command: "true"})
	reload := func() {
		t.Helper()
		config, err := Load(filepath.Join(dir, "none"), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Config = config
	}
	gated := func(when string, want bool) {
		t.Helper()
		v := run(t, r, Event{Name: TaskCompleted})
		if v.Rejected != want {
			t.Errorf("%s: got %+v", when, v)
		}
		if !want && (len(v.Untrusted) != 1 || !strings.Contains(v.Untrusted[0], "are not trusted yet") ||
			!strings.Contains(v.Untrusted[0], r.Config.Dir)) {
			t.Errorf("%s: got %q, want one text about the hook of %s", when, v.Untrusted, r.Config.Dir)
		}
	}
	trust := func() {
		t.Helper()
		if err := record(r.Trust, r.Config, time.Now()); err != nil {
			t.Fatal(err)
		}
	}

	gated("at first", false)
	trust()
	gated("trusted", true)
	write(t, script, "echo still no >&2; exit 2")
	gated("the script changed", false)
	trust()
	gated("trusted again", true)
	write(t, settings, `{"model":"other",`+gate[1:])
	reload()
	gated("another setting changed", true)
	write(t, settings, strings.Replace(gate, "check.sh", "check.sh -x", 1))
	reload()
	gated("the command changed", false)
	trust()
	write(t, filepath.Join(dir, ".claude", "settings.local.json"), strings.Replace(gate, "TaskCompleted",
		"TaskCreated", 1))
	reload()
	gated("a local file was added", false)
	trust()
	gated("trusted with the local file", true)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := r.Trust.Remove(link); err != nil {
		t.Fatal(err)
	}
	gated("withdrawn under another name of the folder", false)
}

func TestUserAndTeamNeedNoTrust(t *testing.T) {
	root, dir := t.TempDir(), t.TempDir()
	write(t, filepath.Join(root, "settings.json"), strings.Replace(gate, "sh scripts/check.sh",
		"echo user >&2; exit 2", 1))
	write(t, filepath.Join(dir, ".claude", "settings.json"), gate)
	r := newRunner(t, dir)
	config, err := Load(root, dir, []Hook{{Event: TaskCompleted, Command: "echo team >&2; exit 2"}})
	if err != nil {
		t.Fatal(err)
	}
	r.Config = config
	v := run(t, r, Event{Name: TaskCompleted})
	if !strings.Contains(v.Feedback, "]: user\n") || !strings.HasSuffix(v.Feedback, "]: team") ||
		len(v.Untrusted) != 1 {
		t.Errorf("got %+v", v)
	}
}

func TestTrustFile(t *testing.T) {
	trust := Trust{File: filepath.Join(t.TempDir(), "home", "trust.json")}
	if entries, err := trust.List(); err != nil || len(entries) > 0 {
		t.Errorf("got %v, %v", entries, err)
	}
	now := time.Date(2026, 5, 6, 7, 8, 9, 10, time.UTC)
	var configs []*Config
	for i := range 8 {
		dir := filepath.Join(t.TempDir(), fmt.Sprint(i))
		write(t, filepath.Join(dir, ".claude", "settings.json"), gate)
		config, err := Load(filepath.Join(dir, "none"), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		configs = append(configs, config)
	}
	var all sync.WaitGroup
	for _, config := range configs {
		all.Go(func() {
			if err := record(trust, config, now); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	entries, err := trust.List()
	if err != nil || len(entries) != len(configs) {
		t.Fatalf("got %v, %v", entries, err)
	}
	for _, config := range configs {
		if ok, err := trust.Trusted(config); err != nil || !ok {
			t.Errorf("%s: got %v, %v", config.Dir, ok, err)
		}
	}
	if !entries[0].Recorded.Equal(now.Truncate(time.Second)) || !strings.HasPrefix(entries[0].Digest, "sha256:") {
		t.Errorf("got %+v", entries[0])
	}
	if info, err := os.Stat(trust.File); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got %v, %v", info.Mode(), err)
	}
	if files, _ := filepath.Glob(trust.File + "*"); len(files) != 2 {
		t.Errorf("left: %v", files)
	}

	if err := os.RemoveAll(configs[0].Dir); err != nil {
		t.Fatal(err)
	}
	if err := trust.Remove(configs[0].Dir); err != nil {
		t.Error(err)
	}
	if entries, _ := trust.List(); len(entries) != len(configs)-1 {
		t.Errorf("got %v", entries)
	}
}

func TestTrustFileThatCannotBeRead(t *testing.T) {
	for name, content := range map[string]string{"damaged": "{", "of a newer version": `{"version":2,"projects":{}}`} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, ".claude", "settings.json"), gate)
		r := newRunner(t, dir)
		write(t, r.Trust.File, content)
		v := run(t, r, Event{Name: TaskCompleted})
		if v.Rejected || v.Ran > 0 || len(v.Untrusted) != 2 || !strings.Contains(v.Untrusted[0], r.Trust.File) {
			t.Errorf("%s: got %+v", name, v)
		}
		if err := record(r.Trust, r.Config, time.Now()); err == nil {
			t.Errorf("%s: the file was overwritten", name)
		}
	}
}

func TestProjectWithoutHooksIsTrusted(t *testing.T) {
	r := newRunner(t, t.TempDir())
	if ok, err := r.Trust.Trusted(r.Config); err != nil || !ok {
		t.Errorf("got %v, %v", ok, err)
	}
	if err := record(r.Trust, r.Config, time.Now()); err != nil {
		t.Fatal(err)
	}
	if entries, err := r.Trust.List(); err != nil || len(entries) > 0 {
		t.Errorf("got %v, %v", entries, err)
	}
}

// record trusts the hooks as they are now.
func record(trust Trust, config *Config, now time.Time) error {
	e, err := Examine(config)
	if err != nil {
		return err
	}
	return trust.Record(e, now)
}

// TestTrustOfFilesAndHooks checks that trust in the hooks of a project and in its files do not
// depend on each other, and that both are withdrawn together.
func TestTrustOfFilesAndHooks(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, ".claude", "settings.json"), `{"hooks":{"TaskCompleted":[{"hooks":[{"type":"command","command":"true"}]}]}}`)
	config, err := Load(filepath.Join(dir, "none"), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	trust := Trust{File: filepath.Join(t.TempDir(), "trust.json")}
	is := func(when string, hooks bool, files int) {
		t.Helper()
		trusted, err := trust.Trusted(config)
		found, wrong := trust.Files(dir)
		if err != nil || wrong != nil || trusted != hooks || len(found) != files {
			t.Errorf("%s: the hooks are trusted: %t, and %d files; %v, %v", when, trusted, len(found), err, wrong)
		}
	}
	is("at first", false, 0)
	if err := trust.RecordFiles(dir, map[string]string{"a": "1"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	is("with a file", false, 1)
	if err := record(trust, config, time.Now()); err != nil {
		t.Fatal(err)
	}
	is("with the hooks", true, 1)
	if err := trust.RecordFiles(dir, map[string]string{"b": "2"}, time.Now()); err != nil {
		t.Fatal(err)
	}
	is("with another file", true, 2)
	if err := trust.Remove(dir); err != nil {
		t.Fatal(err)
	}
	is("in the end", false, 0)
}
