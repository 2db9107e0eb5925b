package e2e

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// segments returns the files of a team's journal that hold records, the oldest first.
func (w *world) segments(name string) []string {
	w.t.Helper()
	all, err := filepath.Glob(filepath.Join(w.home, "teams", name, "journal", "*.jsonl"))
	if err != nil || len(all) == 0 {
		w.t.Fatalf("no segments: %v", err)
	}
	return all
}

// damaged creates the team demo and changes its journal. It returns the path and the bytes of the
// changed segment.
func damaged(t *testing.T, change func([]byte) []byte) (w *world, segment string, content []byte) {
	t.Helper()
	w = newWorld(t)
	w.must("create", "demo")
	for i := range 5 {
		w.must("task", "add", "demo", fmt.Sprintf("task number %d", i+1))
	}
	os.Remove(filepath.Join(w.home, "teams", "demo", "state.json"))
	segment = w.segments("demo")[0]
	content, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	content = change(content)
	if err := os.WriteFile(segment, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return w, segment, content
}

// TestDamage checks that every command refuses a journal that differs from what was acknowledged.
// The error names the place and the way out, and nothing changes.
func TestDamage(t *testing.T) {
	t.Parallel()
	third := []byte("task number 3")
	cases := []struct {
		name   string
		change func([]byte) []byte
		says   []string
	}{
		{"a bit flipped", func(b []byte) []byte { b[bytes.Index(b, third)] ^= 4; return b },
			[]string{"line 5", "checksum"}},
		{"cut in the middle of a line", func(b []byte) []byte { return b[:len(b)-10] },
			[]string{"line 7", "truncated"}},
		{"cut at the end of a line", func(b []byte) []byte { return b[:1+bytes.LastIndexByte(b[:len(b)-1], '\n')] },
			[]string{"ends with record 5"}},
		{"a line gone", func(b []byte) []byte {
			at := bytes.Index(b, third)
			from := bytes.LastIndexByte(b[:at], '\n')
			return append(b[:from:from], b[at+bytes.IndexByte(b[at:], '\n'):]...)
		}, []string{"line 5", "seq 5, expected 4"}},
		{"emptied", func([]byte) []byte { return nil }, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			w, segment, content := damaged(t, c.change)
			says := append([]string{segment, "cadre fsck demo"}, c.says...)
			for _, args := range [][]string{{"status", "demo"}, {"task", "list", "demo"},
				{"task", "add", "demo", "more"}, {"send", "demo", "--to", "lead", "x"}, {"inbox", "demo", "lead"}} {
				w.refused(w.cadre(args...), 2, says...)
			}
			r := w.cadre("fsck", "demo")
			if r.code != 2 || !strings.Contains(r.out+r.err, filepath.Base(segment)) {
				t.Errorf("fsck ended with %d: %s%s", r.code, r.out, r.err)
			}
			if now, err := os.ReadFile(segment); err != nil || !bytes.Equal(now, content) {
				t.Errorf("the damaged file was changed: %v", err)
			}
			if len(content) == 0 {
				return // fsck has nothing left to repair from
			}
			w.must("fsck", "demo", "--mend")
			w.must("task", "add", "demo", "after the damage")
			w.must("fsck", "demo")
		})
	}
}

// TestDamageWithCheckpoint checks that attention lists a damaged team, and that fsck prefers a
// checkpoint in git that has more records than the damaged files.
func TestDamageWithCheckpoint(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"config", "user.name", "Ann Example"},
		{"config", "user.email", "ann@example.org"}, {"commit", "-q", "--allow-empty", "-m", "first"}} {
		cmd := exec.Command("git", args...)
		cmd.Dir = w.dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	w.must("create", "demo")
	w.must("spawn", "demo", "ann", "--agent", "external")
	w.must("task", "add", "demo", "task number 1")
	w.must("task", "add", "demo", "task number 2")
	w.must("checkpoint", "demo")
	os.Remove(filepath.Join(w.home, "teams", "demo", "state.json"))
	segment := w.segments("demo")[0]
	content, err := os.ReadFile(segment)
	if err != nil {
		t.Fatal(err)
	}
	content[bytes.Index(content, []byte("number 1"))] ^= 4
	if err := os.WriteFile(segment, content, 0o600); err != nil {
		t.Fatal(err)
	}
	if r := w.cadre("attention"); r.code != 2 || !strings.Contains(r.out, "The team is damaged: ") ||
		!strings.Contains(r.out, "cadre fsck demo") {
		t.Errorf("attention ended with %d: %s%s", r.code, r.out, r.err)
	}
	if r := w.cadre("fsck", "demo"); r.code != 2 ||
		!strings.Contains(r.out, "a checkpoint in git has all up to record 4; "+
			"to restore it: cadre resume demo --from-git") {
		t.Errorf("fsck ended with %d: %s%s", r.code, r.out, r.err)
	}
	w.refused(w.cadre("fsck", "demo", "--mend"), 1, "a checkpoint in git has the records up to 4", "--force",
		"cadre resume demo --from-git")
	if now, err := os.ReadFile(segment); err != nil || !bytes.Equal(now, content) {
		t.Errorf("the damaged file was changed: %v", err)
	}
	w.must("resume", "demo", "--from-git")
	if tasks := read[[]any](w, "task", "list", "demo"); len(tasks) != 2 {
		t.Errorf("%d tasks of 2 are there", len(tasks))
	}
}

// TestTornTail checks that a last line that was never acknowledged is cut off with a message, and
// that acknowledged lines stay.
func TestTornTail(t *testing.T) {
	t.Parallel()
	w, segment, _ := damaged(t, func(b []byte) []byte { return append(b, `{"seq":7,"crc":"12`...) })
	if tasks := read[[]any](w, "task", "list", "demo"); len(tasks) != 5 {
		t.Errorf("%d of 5 tasks are there", len(tasks))
	}
	r := w.cadre("task", "add", "demo", "one more")
	if r.code != 0 || !strings.Contains(r.err, filepath.Base(segment)) {
		t.Errorf("the command ended with %d and did not say what was cut: %s", r.code, r.err)
	}
	if tasks := read[[]any](w, "task", "list", "demo"); len(tasks) != 6 {
		t.Errorf("%d of 6 tasks are there", len(tasks))
	}
}

// TestNewerFormat checks that this version does not touch what a newer version wrote.
func TestNewerFormat(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, old, now string }{
		{"of the journal", `{"cadre-journal":1,`, `{"cadre-journal":2,`},
		{"of a record", `"data":{"v":1,`, `"data":{"v":2,`},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, segment, content := damaged(t, func(b []byte) []byte {
				line := bytes.Index(b, []byte(c.old))
				if line < 0 {
					t.Fatalf("the journal has no %s:\n%s", c.old, b)
				}
				line = bytes.LastIndexByte(b[:line], '\n') + 1
				end := line + bytes.IndexByte(b[line:], '\n')
				changed := reframe(strings.Replace(string(b[line:end]), c.old, c.now, 1))
				return append(append(append([]byte(nil), b[:line]...), changed...), b[end:]...)
			})
			for _, args := range [][]string{{"status", "demo"}, {"task", "add", "demo", "more"}, {"log", "demo"},
				{"fsck", "demo"}} {
				w.refused(w.cadre(args...), 2, "newer version of cadre")
			}
			if now, err := os.ReadFile(segment); err != nil || !bytes.Equal(now, content) {
				t.Errorf("the newer journal was changed: %v", err)
			}
		})
	}
}

var crcField = regexp.MustCompile(`,"crc":"[0-9a-f]{8}"`)

// reframe updates the checksum of a line.
func reframe(line string) string {
	bare := crcField.ReplaceAllString(line, "")
	sum := crc32.Checksum([]byte(bare), crc32.MakeTable(crc32.Castagnoli))
	return crcField.ReplaceAllString(line, fmt.Sprintf(`,"crc":"%08x"`, sum))
}

// fill adds tasks with the command of add until one is refused. It returns the number of tasks and
// the refusal.
func (w *world) fill(add func(subject string) *exec.Cmd) (added int, refusal result) {
	w.t.Helper()
	for added = range 1000 {
		if refusal = finish(w.t, add(fmt.Sprintf("task number %d", added+1))); refusal.code != 0 {
			return added, refusal
		}
	}
	w.t.Fatal("the disk never became full")
	return added, refusal
}

// afterNoRoom checks that a full disk lost and changed nothing, and that everything works once
// there is room.
func (w *world) afterNoRoom(added int, refusal result) {
	w.t.Helper()
	w.t.Logf("refused after %d tasks: %s", added, refusal.err)
	if refusal.code != 1 && refusal.code != 2 || refusal.out != "" {
		w.t.Errorf("exit status %d, printed %q", refusal.code, refusal.out)
	}
	if tasks := read[[]any](w, "task", "list", "demo"); len(tasks) != added {
		w.t.Errorf("%d tasks are there, but %d were added", len(tasks), added)
	}
	w.must("task", "add", "demo", "with room again")
	if tasks := read[[]any](w, "task", "list", "demo"); len(tasks) != added+1 {
		w.t.Errorf("%d of %d tasks are there", len(tasks), added+1)
	}
	w.must("fsck", "demo")
}

var padding = strings.Repeat("x", 3000)

func TestFileSizeLimit(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	added, refusal := w.fill(func(subject string) *exec.Cmd {
		c := exec.Command("/bin/sh", "-c", `ulimit -f 64; exec "$0" "$@"`, cadre, "task", "add", "demo", subject,
			"--description", padding)
		c.Dir, c.Env = w.dir, w.env
		return c
	})
	if !strings.Contains(refusal.err, "file too large") {
		t.Errorf("the error does not give the reason: %s", refusal.err)
	}
	w.afterNoRoom(added, refusal)
}

func TestFullDisk(t *testing.T) {
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("a test with a small disk needs Linux and root")
	}
	w := newWorld(t)
	if err := os.Mkdir(w.home, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs",
		w.home).CombinedOutput(); err != nil {
		t.Skipf("cannot mount a small disk: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", w.home).CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	})
	w.must("create", "demo")
	ballast := filepath.Join(w.home, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 128<<10), 0o600); err != nil {
		t.Fatal(err)
	}
	added, refusal := w.fill(func(subject string) *exec.Cmd {
		c := exec.Command(cadre, "task", "add", "demo", subject, "--description", padding)
		c.Dir, c.Env = w.dir, w.env
		return c
	})
	if !strings.Contains(refusal.err, "no space left") {
		t.Errorf("the error does not give the reason: %s", refusal.err)
	}
	w.refused(w.cadre("create", "second"), 1, "no space left")
	if has(w.home, "teams", "second") {
		t.Error("the team was half created")
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	w.afterNoRoom(added, refusal)
}

// TestReadOnlyHome checks that a read-only home can be read, and that every change is refused for
// that reason.
func TestReadOnlyHome(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	w.must("task", "add", "demo", "look around")
	var paths []string
	err := filepath.WalkDir(w.root, func(path string, _ os.DirEntry, err error) error {
		paths = append(paths, path)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	paths = append(paths, filepath.Dir(w.root))
	const nobody = 65534
	chmod := func(folders, files os.FileMode) {
		for _, path := range paths {
			mode := files
			if info, err := os.Lstat(path); err != nil {
				t.Fatal(err)
			} else if info.IsDir() {
				mode = folders
			}
			if !strings.HasPrefix(path, w.home) {
				mode |= 0o755
			}
			if err := os.Chmod(path, mode); err != nil {
				t.Fatal(err)
			}
			if os.Getuid() == 0 { // root, whom file modes do not stop
				os.Lchown(path, nobody, nobody)
			}
		}
	}
	chmod(0o500, 0o400)
	t.Cleanup(func() { chmod(0o700, 0o600) })
	as := func(args ...string) result {
		c := exec.Command(cadre, args...)
		c.Dir, c.Env = w.dir, w.env
		if os.Getuid() == 0 {
			c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		return finish(t, c)
	}
	for _, args := range [][]string{{"ls"}, {"status", "demo"}, {"task", "list", "demo", "--json"}, {"log", "demo"},
		{"inbox", "demo", "lead", "--peek"}} {
		if r := as(args...); r.code != 0 || r.out == "" {
			t.Errorf("%v ended with %d: %s", args, r.code, r.err)
		}
	}
	file := w.write("file.yaml", "name: other\nmembers: [{name: ann, agent: shell}]\ntasks: [{id: a, run: 'true'}]\n")
	for _, args := range [][]string{{"task", "add", "demo", "x"}, {"send", "demo", "--to", "lead", "x"},
		{"spawn", "demo", "ann"}, {"create", "second"}, {"cleanup", "demo", "--force"}, {"run", file}} {
		w.refused(as(args...), 2, "permission denied")
	}
	chmod(0o700, 0o600)
	if r := as("task", "list", "demo", "--json"); strings.Count(r.out, `"subject"`) != 1 {
		t.Errorf("something changed: %s%s", r.out, r.err)
	}
}

// TestTooLarge checks that input over the limit is refused with its size, on every way in.
func TestTooLarge(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	w.must("task", "add", "demo", "look around")
	w.must("spawn", "demo", "ann", "--agent", "external")
	w.must("task", "claim", "demo", "1", "--as", "ann")
	for _, args := range [][]string{{"send", "demo", "--to", "lead", "-"}, {"broadcast", "demo", "-"},
		{"task", "done", "demo", "1", "--as", "ann", "--result", "-"}} {
		c := exec.Command(cadre, args...)
		c.Dir, c.Env, c.Stdin = w.dir, w.env, strings.NewReader(strings.Repeat("x", 2<<20))
		w.refused(finish(t, c), 2, "2097152 bytes, of at most 1048576")
	}
	c := exec.Command(cadre, "send", "demo", "--to", "ann", "-")
	c.Dir, c.Env, c.Stdin = w.dir, w.env, strings.NewReader(strings.Repeat("y", 1<<20))
	if r := finish(t, c); r.code != 0 {
		t.Errorf("a message of exactly 1 MiB was refused: %s", r.err)
	}
	if mail := read[[]struct{ Body string }](w, "inbox", "demo", "ann"); len(mail) != 1 || len(mail[0].Body) != 1<<20 {
		t.Errorf("%d messages arrived", len(mail))
	}
}
