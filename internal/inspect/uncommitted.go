package inspect

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cadre/internal/consolidate"
	"cadre/internal/git/project"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// committing is what git said last about the files of a team, and what that depends on.
type committing struct {
	at    time.Time
	depot string // stamp of the repository before git was asked
	work  string // stamp of the team's files
	files []string
}

const (
	// gitPatience bounds how long git may take to list the files of a team.
	gitPatience = 2 * time.Second
	// gitAge is how long an answer of git counts while neither the repository nor the team's files
	// change. It bounds the effect of what the stamps miss, such as a new ignore rule, and it is
	// the time until git is asked again after it failed.
	gitAge = time.Minute
)

// uncommitted returns the files of a complete team that are not committed. It runs git only if its
// last answer may be out of date. For any other team it returns none, and for an archived one too,
// because that cannot be consolidated any more.
func (l *Looker) uncommitted(ctx context.Context, t team.Team, now time.Time) []string {
	if !consolidate.Complete(t) || t.Released.At != 0 || l.Home.Root == "" || l.Home.Archived(l.Dir) {
		return nil
	}
	depot, known := stampOf(depotFiles(t.Base.Top)), &l.files
	age := now.Sub(known.at)
	if known.depot == depot && age >= 0 && age < gitAge && known.work == l.workStamp(t, known.files) {
		return known.files
	}
	asking, cancel := context.WithTimeout(ctx, gitPatience)
	defer cancel()
	files, err := consolidate.Uncommitted(asking, consolidate.Options{Replica: l.Replica, Dir: l.Dir,
		Except:  []string{l.Home.Root, l.Home.Claude},
		Foreign: func() []string { return Foreign(asking, l.Home, t) }}, l.Trees)
	if err != nil || asking.Err() != nil { // the last answer counts until there is a whole one
		files = known.files
	}
	*known = committing{now, depot, l.workStamp(t, files), files}
	return files
}

// workStamp changes whenever one of the files changes, or one that the team's tasks changed.
func (l *Looker) workStamp(t team.Team, files []string) string {
	files = slices.Clone(files[:min(len(files), team.MaxFiles)])
	l.Replica.View(func(s *team.State) {
		for task := range s.Tasks() {
			if task.Work != nil && len(files) < 2*team.MaxFiles {
				files = append(files, task.Work.Files...)
			}
		}
	})
	slices.Sort(files)
	files = slices.Compact(files)
	for i := range files {
		files[i] = filepath.Join(t.Base.Top, filepath.FromSlash(files[i]))
	}
	return stampOf(files)
}

// depotFiles returns files and folders of a repository. At least one of them changes with each
// commit, and with each change of the index.
func depotFiles(top string) []string {
	own := filepath.Join(top, ".git")
	if elsewhere := project.Pointer(own, "gitdir: "); elsewhere != "" { // top is a linked work tree
		own = elsewhere
	}
	shared := own
	if folder := project.Pointer(filepath.Join(own, "commondir"), ""); folder != "" {
		shared = folder
	}
	files := []string{filepath.Join(top, ".gitignore"), filepath.Join(shared, "packed-refs"),
		filepath.Join(shared, "reftable", "tables.list")}
	for _, name := range []string{"HEAD", "index", "logs/HEAD", "MERGE_HEAD"} {
		files = append(files, filepath.Join(own, name))
	}
	if head, err := regularfile.Read(filepath.Join(own, "HEAD"), 4<<10); err == nil {
		if branch, ok := strings.CutPrefix(strings.TrimSpace(string(head)), "ref: "); ok && filepath.IsLocal(branch) {
			files = append(files, filepath.Join(shared, branch))
		}
	}
	return files
}

// stampOf returns a text that changes whenever one of the files changes.
func stampOf(files []string) string {
	var b strings.Builder
	for _, path := range files {
		if info, err := os.Lstat(path); err == nil {
			fmt.Fprintf(&b, "%d %d %s", info.ModTime().UnixNano(), info.Size(), info.Mode())
		}
		b.WriteByte('\n')
	}
	return b.String()
}
