package host

import (
	"context"
	"os"
	"path/filepath"
	"time"

	"cadre/internal/git/worktree"
	"cadre/internal/sys/paths"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// AsItWas is why the record of a task's work has left out a file that nobody has touched since the
// team was created.
const AsItWas = "not committed when the team was created, and as it was"

// personal knows the person's files: those that were uncommitted when the team was created, while
// they are unchanged. It also knows cadre's own folder and the report on the team, which a run
// writes.
type personal struct {
	procs  *proc.Register
	ours   string
	report string            // absolute path; "" for none in the repository
	files  map[string]string // digests, by absolute path
	seen   map[string]sighting
}

// sighting is what was found of a file. The file is read again only when it changed.
type sighting struct {
	size  int64
	at    time.Time
	mode  os.FileMode
	still bool
}

func newPersonal(procs *proc.Register, of team.Team, teamDir string) *personal {
	base := of.Base
	p := &personal{procs: procs, ours: teamDir, files: map[string]string{}, seen: map[string]sighting{}}
	// normally teams is a folder in cadre's home; a Go program may have its teams elsewhere
	if teams := filepath.Dir(teamDir); filepath.Base(teams) == "teams" {
		p.ours = filepath.Dir(teams)
	}
	if real, err := filepath.EvalSymlinks(p.ours); err == nil {
		p.ours = real
	}
	if base.Top != "" && len(paths.NotAround(base.Top, p.ours)) == 0 { // a nested team, in a worktree
		p.ours = teamDir
	}
	if report := worktree.From(base.Top, of.Report); report != "" {
		p.report = filepath.Join(base.Top, filepath.FromSlash(report))
	}
	for _, f := range base.Dirty {
		p.files[filepath.Join(base.Top, filepath.FromSlash(f.Path))] = f.SHA256
	}
	return p
}

func (p *personal) except(ctx context.Context) worktree.Exception {
	most := int64(digested)
	return func(path string) (bool, string) {
		if paths.Within(path, p.ours) || path == p.report {
			return true, ""
		}
		was, known := p.files[path]
		if !known || !p.still(ctx, path, was, &most) {
			return false, ""
		}
		return true, AsItWas
	}
}

// still reports whether the file is unchanged. A file that cannot be read counts as unchanged.
func (p *personal) still(ctx context.Context, path, was string, most *int64) bool {
	now := sighting{}
	info, err := os.Lstat(path)
	if err == nil {
		now = sighting{size: info.Size(), at: info.ModTime(), mode: info.Mode()}
	}
	if before, looked := p.seen[path]; looked && err == nil && now.size == before.size && now.at.Equal(before.at) &&
		now.mode == before.mode {
		return before.still
	}
	digest, err := worktree.Digest(ctx, p.procs, path, most)
	now.still = err != nil || digest == was
	// a file system may give two writes at one moment the same time
	if info != nil && !info.IsDir() && time.Since(now.at) > time.Second {
		p.seen[path] = now
	}
	return now.still
}
