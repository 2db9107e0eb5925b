package checkpoint

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"cadre/internal/git"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// branch keeps checkpoints as commits.
type branch struct {
	git  git.Runner
	repo string // the folder that all of its work trees share
	name string // cadre/TEAM
	dir  string // in the tree
	null string // the null object id, in the repository's format

	files git.Runner // in the work tree
	top   string     // of the work tree; "" for none

	once   sync.Once
	author string // name and mail address

	known  map[string]item // cache of items for files that may be unchanged; one goroutine at a time uses it
	shared struct{ sum, commit string }
	packed packing
	tidied sync.Once
}

func newBranch(procs *proc.Register, repo repository, name string) *branch {
	return &branch{git: repo.runner(procs), repo: repo.dir, name: "cadre/" + name, dir: ".claude/teams/" + name,
		null: strings.Repeat("0", repo.digits),
		files: git.Runner{Procs: procs, Dir: repo.top, Env: []string{"GIT_NO_LAZY_FETCH=1"}, Limit: gitTimeout,
			Patience: -1}, top: repo.top}
}

func (b *branch) place() string { return "the branch " + b.name + " of " + b.repo }

// hint returns a hint about the branch or the remote of that name in the repository.
func (b *branch) hint(a team.Action, name string) team.Hint {
	return team.Hint{Action: a, Team: strings.TrimPrefix(b.name, "cadre/"), Name: name, Dir: cmp.Or(b.top, b.repo)}
}

func (b *branch) ref() string { return "refs/heads/" + b.name }

func (b *branch) load(ctx context.Context) (*tip, error) { return b.loadAt(ctx, b.ref()) }

// loadAt returns the checkpoint at a ref or a commit, or nil.
func (b *branch) loadAt(ctx context.Context, ref string) (*tip, error) {
	found, err := b.objects(ctx, ref, b.object(ref, stateFile), b.object(ref, logs[mailbox].file),
		b.object(ref, logs[tasks].file))
	if err != nil || found[0] == nil {
		return nil, err
	}
	if found[0].kind != "commit" || found[1] == nil {
		return nil, &DamageError{b.place(), fmt.Sprintf("it has no %s/%s, so it is not a checkpoint of cadre",
			b.dir, stateFile)}
	}
	var tails [2][]byte
	for n := range logs {
		if o := found[2+n]; o != nil {
			tails[n] = o.data
		}
	}
	i, err := open(found[1].data, tails)
	if err != nil {
		return nil, &DamageError{b.place(), err.Error()}
	}
	return &tip{found[0].id, i}, nil
}

// read returns the files of a checkpoint; nil for a missing file.
func (b *branch) read(ctx context.Context, at *tip, files []string) ([][]byte, error) {
	specs := make([]string, len(files))
	for i, name := range files {
		specs[i] = b.object(at.id, name)
	}
	found, err := b.objects(ctx, specs...)
	if err != nil {
		return nil, err
	}
	texts := make([][]byte, len(files))
	for i, o := range found {
		if o != nil {
			texts[i] = o.data
		}
	}
	return texts, nil
}

func (b *branch) object(commit, file string) string { return commit + ":" + b.dir + "/" + file }

type object struct {
	id, kind string
	data     []byte
}

// objects reads any number of objects with one git process; nil for a missing object.
func (b *branch) objects(ctx context.Context, specs ...string) ([]*object, error) {
	if len(specs) == 0 {
		return nil, nil
	}
	out, err := b.git.Run(ctx, []byte(strings.Join(specs, "\n")+"\n"), "cat-file", "--batch")
	if _, ok := errors.AsType[*git.Refusal](err); ok {
		return nil, &DamageError{b.place(), err.Error()}
	} else if err != nil {
		return nil, err
	}
	found := make([]*object, len(specs))
	for i, spec := range specs {
		head, rest, ok := bytes.Cut(out, []byte("\n"))
		fields := strings.Fields(string(head))
		if !ok || len(fields) < 2 {
			return nil, fmt.Errorf("git cat-file says %.80q of %s", head, spec)
		}
		if out = rest; len(fields) != 3 || fields[len(fields)-1] == "missing" {
			continue
		}
		size, err := strconv.Atoi(fields[2])
		if err != nil || size >= len(out) {
			return nil, fmt.Errorf("git cat-file says %.80q of %s", head, spec)
		}
		found[i] = &object{fields[0], fields[1], out[:size:size]}
		out = out[size+1:]
	}
	return found, nil
}

// mostParents bounds the parents of a commit, because people look at them. Further commits become
// parents of intermediate commits.
const mostParents = 15

// save commits the files on top of on, and moves the branch there if it is still at on. The commits
// of the work are further parents, each once.
func (b *branch) save(ctx context.Context, on *tip, next *image, files map[string][]byte, fresh bool) (string, error) {
	parents, err := b.bundled(ctx, next)
	if err != nil {
		return "", err
	}
	first := ""
	if on != nil {
		first = on.id
	} else if len(parents) > 0 { // only checkpoints are on the line of first parents
		if first, err = b.stream(ctx, next.doc.Created, "Checkpoints of team "+next.doc.TeamName+
			"\n\n[skip ci]\n").commit(ctx); err != nil {
			return "", b.failed(err)
		}
	}
	s := b.stream(ctx, next.doc.Updated, next.message)
	if first != "" {
		s.line("from %s", first)
	}
	for _, parent := range parents {
		s.line("merge %s", parent)
	}
	if fresh {
		s.line("deleteall")
	}
	if on != nil && !fresh {
		for _, old := range on.image.doc.Sheets {
			if !slices.Contains(next.doc.Sheets, old) {
				s.line("D %s/%s", b.dir, old.file())
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		path := b.dir + "/" + name
		if name == readmeFile { // a forge looks for it at the top
			path = name
		}
		s.line("M 100644 inline %s", path)
		s.data(files[name])
	}
	id, err := s.commit(ctx)
	old := b.null
	if on != nil {
		old = on.id
	}
	if err == nil {
		err = b.git.UpdateOwn(ctx, b.ref(), "-m", "checkpoint", b.ref(), id, old)
	}
	if err != nil {
		return "", b.failed(err)
	}
	b.pack(ctx, id)
	b.tidied.Do(b.tidy)
	return id, nil
}

// maxCrash bounds how much of a crash report is read, in bytes.
const maxCrash = 256 << 10

// tidy removes the crash reports of fast-imports whose host was killed while they read their input.
// Git never removes them. Reports of other programs' imports stay.
func (b *branch) tidy() {
	files, err := os.ReadDir(b.repo)
	if err != nil {
		return
	}
	for _, f := range files {
		if !strings.HasPrefix(f.Name(), "fast_import_crash_") {
			continue
		}
		path := filepath.Join(b.repo, f.Name())
		text, err := regularfile.Read(path, maxCrash)
		if err == nil && bytes.Contains(text, []byte("commit "+b.ref()+"@_\n")) {
			os.Remove(path)
		}
	}
}

// bundled returns the parents that keep the work's commits reachable. If there are too many for one
// commit, it makes commits that each have some of them as parents.
func (b *branch) bundled(ctx context.Context, next *image) ([]string, error) {
	parents := next.carried
	for len(parents) > mostParents {
		s := b.stream(ctx, next.doc.Updated, "Work of team "+next.doc.TeamName+"\n\n[skip ci]\n")
		s.line("from %s", parents[0])
		for _, parent := range parents[1:mostParents] {
			s.line("merge %s", parent)
		}
		s.line("deleteall")
		id, err := s.commit(ctx)
		if err != nil {
			return nil, b.failed(err)
		}
		parents = append(parents[mostParents:len(parents):len(parents)], id)
	}
	return parents, nil
}

// failed returns why a commit did not become the branch's tip.
func (b *branch) failed(err error) error {
	_, locked := errors.AsType[*git.LockedError](err)
	refused, ok := errors.AsType[*git.Refusal](err)
	switch {
	case ok && strings.Contains(refused.Words, "cannot create '"+b.ref()+"'"):
		return b.blocked(refused.Words)
	case locked, ok && slices.ContainsFunc(collisions,
		func(words string) bool { return strings.Contains(refused.Words, words) }):
		return fmt.Errorf("%w: %w", errMoved, err)
	}
	return fmt.Errorf("%s: %w", b.place(), err)
}

// stream is the input of git fast-import that makes one commit.
type stream struct {
	b  *branch
	in bytes.Buffer
}

// stream starts a commit. It uses a temporary branch, which it resets before the branch exists.
// fast-import itself checks whether it may move a branch. But next to a running git gc, fast-import
// was seen to move a branch when it must not. update-ref checks while it holds the lock.
func (b *branch) stream(ctx context.Context, at team.Time, message string) *stream {
	b.once.Do(func() { b.author = b.git.Author(ctx) })
	s := &stream{b: b}
	s.line("feature done\ncommit %s@_\nmark :1", b.ref())
	for _, role := range []string{"author", "committer"} {
		s.line("%s %s %d +0000", role, b.author, max(0, int64(at)/1000))
	}
	s.data([]byte(message))
	return s
}

func (s *stream) line(format string, args ...any) { fmt.Fprintf(&s.in, format+"\n", args...) }

func (s *stream) data(text []byte) {
	s.line("data %d", len(text))
	s.in.Write(text)
	s.in.WriteByte('\n')
}

// commit makes the commit. Nothing refers to it yet.
func (s *stream) commit(ctx context.Context) (string, error) {
	s.line("get-mark :1\nreset %s@_\nfrom %s\n\ndone", s.b.ref(), s.b.null)
	out, err := s.b.git.Run(ctx, s.in.Bytes(), "fast-import", "--quiet", "--done", "--date-format=raw")
	return strings.TrimSpace(string(out)), err
}

// blocked names the branch that git reports as being in the way: cadre, or one below the team's.
func (b *branch) blocked(words string) error {
	for _, quoted := range strings.Split(words, "'") {
		if name, ok := strings.CutPrefix(quoted, "refs/heads/"); ok && name != b.name {
			return team.Hinted(fmt.Errorf("%w of %s: it is named %s, and git can keep only one of the two; "+
				"rename it to have them there", ErrBlocked,
				b.place(), name), b.hint(team.ActRenameBranch, name))
		}
	}
	return fmt.Errorf("%w of %s: %s", ErrBlocked, b.place(), words)
}

// collisions are parts of git's errors when another process writes at the same time, besides errors
// about locks: the branch moved, or a folder was just removed.
var collisions = []string{"but expected", "reference already exists", "unable to resolve reference",
	"unable to create temporary file"}
