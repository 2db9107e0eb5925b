package checkpoint

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"time"

	"cadre/internal/git"
	"cadre/internal/sys/proc"
)

// gitTimeout bounds one git command, and all commands of one checkpoint.
const gitTimeout = time.Minute

// repository is the git repository of a project.
type repository struct {
	dir    string // the folder that all its work trees share
	digits int    // length of its object ids
	top    string // of the work tree that the directory is in; "" for none
}

// find returns the repository of a directory. If the directory is in no repository, why says the
// reason. If git cannot tell, find returns an error.
func find(ctx context.Context, procs *proc.Register, dir string) (repo repository, why string, err error) {
	if git.Installed() != nil {
		return repo, "git is not installed", nil
	}
	out, err := git.Runner{Procs: procs, Dir: dir, Limit: gitTimeout}.Text(ctx, "rev-parse", "--show-object-format",
		"--is-inside-work-tree", "--path-format=absolute", "--git-common-dir", "--show-cdup")
	refused, ok := errors.AsType[*git.Refusal](err)
	switch {
	case ok && strings.Contains(refused.Words, "not a git repository"):
		return repo, dir + " is not in a git repository", nil
	case ok:
		return repo, refused.Words, nil
	case err != nil:
		return repo, "", err
	}
	parts := strings.Split(out+"\n\n", "\n") // the last line is empty at the top
	if repo = (repository{dir: parts[2], digits: 40}); parts[0] == "sha256" {
		repo.digits = 64
	}
	if parts[1] == "true" {
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return repo, "", err
		}
		repo.top = filepath.Join(real, filepath.FromSlash(parts[3]))
	}
	return repo, "", nil
}

// runner runs git in the repository without replacement objects, and without fetching. While
// another git process holds a lock, git retries. A small checkpoint does not become a pack of its
// own.
func (r repository) runner(procs *proc.Register) git.Runner {
	return git.Runner{Procs: procs, Settings: []string{"fastimport.unpackLimit=100"}, Env: []string{"GIT_DIR=" + r.dir,
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_NO_LAZY_FETCH=1"},
		Limit: gitTimeout, Patience: -1}
}
