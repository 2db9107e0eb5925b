// Package checkout checks whether a team's directory still exists, and still has the repository in
// which the team was created.
//
// # Authority
//
// The package only reads. It prevents a session from starting in a directory that is not the
// team's. Its callers decide what to refuse.
//
// # How a repository is recognized
//
// A repository is the team's if it has the commit that HEAD named when the team was created, or a
// checkpoint of this very team. A repository with neither is another one. If the team has neither
// such a commit nor a checkpoint, this is unknown. The repository then counts as the team's, unless
// it has a later checkpoint of another team of that name.
//
// # Guarantees
//
//   - A missing directory never counts as moved: it may be on a volume that is not mounted.
//   - A person's statement where the project is now counts only if the repository confirms it.
package checkout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cadre/internal/git"
	"cadre/internal/git/checkpoint"
	"cadre/internal/sys/paths"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// These can be missing.
const (
	Directory  = "directory"
	Repository = "repository"
)

// MissingError reports that a team's directory, or its repository, is not where it was. Only a
// person can correct that.
type MissingError struct {
	What string // [Directory] or [Repository]
	Path string
	Why  string // continues a sentence that starts with Path
	Try  string // what to do in the file system, as a sentence; may be ""
	Help []team.Hint
}

func (e *MissingError) Error() string {
	if e.Try == "" {
		return e.Path + " " + e.Why
	}
	return e.Path + " " + e.Why + ". " + e.Try
}

// Hints returns actions that may help.
func (e *MissingError) Hints() []team.Hint { return e.Help }

// moved returns the hint for a moved project: to dir, or to an unknown place if dir is "".
func moved(t team.Team, dir string) []team.Hint {
	return []team.Hint{{Action: team.ActMove, Team: t.Name, Dir: dir}}
}

// IsMissing reports whether the error says that a team's directory or repository is missing.
func IsMissing(err error) bool {
	_, ok := errors.AsType[*MissingError](err)
	return ok
}

// Glance checks only what is visible without git, which is much faster. Its error is a
// [*MissingError].
func Glance(t team.Team) error {
	if t.Observed != "" { // its own agents decide where it works
		return nil
	}
	info, err := os.Stat(t.Dir)
	const try = "Bring it back, or mount its volume."
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &MissingError{Directory, t.Dir, "does not exist", try, moved(t, "")}
	case err != nil:
		return &MissingError{Directory, t.Dir, "cannot be read: " + reason(err),
			"Make it readable, and try again.", nil}
	case !info.IsDir():
		return &MissingError{Directory, t.Dir, "is not a directory", try, moved(t, "")}
	case t.Base.Top == "" || elsewhere(t):
		return nil
	}
	if _, err := os.Lstat(filepath.Join(t.Base.Top, ".git")); errors.Is(err, fs.ErrNotExist) {
		return &MissingError{Repository, t.Base.Top, "holds no git repository any more", try, moved(t, "")}
	}
	return nil
}

// elsewhere reports whether the team may have been created in another work tree than its present
// one. It may if it was restored from a checkpoint, which may come from another clone.
func elsewhere(t team.Team) bool { return t.Restored.ID != "" }

// reason returns the text of a file error without the path.
func reason(err error) string {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err.Error()
	}
	return err.Error()
}

// Check returns an error if the team's directory cannot be used. An error that is not a
// [*MissingError] means that this is unknown.
func Check(ctx context.Context, procs *proc.Register, t team.Team) error {
	if err := Glance(t); err != nil || t.Observed != "" || t.Base.Top == "" || git.Installed() != nil {
		return err
	}
	top, err := topOf(ctx, procs, t.Dir)
	const try = "Bring the repository back."
	switch refused := (*git.Refusal)(nil); {
	case errors.As(err, &refused):
		return &MissingError{Repository, t.Dir, "is in no work tree that git can use: " + refused.Words, try,
			moved(t, "")}
	case err != nil:
		return err
	case top == t.Base.Top || elsewhere(t):
	case paths.Same(top, t.Base.Top):
		return &MissingError{Repository, t.Base.Top, "is now a link to " + top, "", moved(t, t.Dir)}
	default:
		return &MissingError{Repository, t.Dir, fmt.Sprintf("is in the repository %s, and the team was created in %s",
			top, t.Base.Top), try, moved(t, "")}
	}
	its, err := identify(ctx, procs, t, t.Dir)
	if err == nil && !its {
		err = &MissingError{Repository, t.Dir, "is in another repository" + lacks(t), try, moved(t, "")}
	}
	return err
}

func topOf(ctx context.Context, procs *proc.Register, dir string) (string, error) {
	return git.Runner{Procs: procs, Dir: dir}.Text(ctx, "rev-parse", "--path-format=absolute", "--show-toplevel")
}

// identify reports whether the directory's repository is the team's, or may be.
func identify(ctx context.Context, procs *proc.Register, t team.Team, dir string) (bool, error) {
	g := git.Runner{Procs: procs, Dir: dir}.With("GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1")
	if t.Base.Commit != "" {
		out, err := g.Run(ctx, []byte(t.Base.Commit+"^{commit}\n"), "cat-file", "--batch-check=%(objecttype)")
		if err != nil || strings.TrimSpace(string(out)) == "commit" {
			return err == nil, err
		}
	}
	all, err := checkpoint.List(ctx, procs, dir)
	if err != nil {
		return false, err
	}
	others := false
	for _, c := range all {
		if c.Team == t.ID {
			return true, nil
		}
		// An earlier team of that name, whose run was archived, leaves its checkpoint.
		others = others || c.Name == t.Name && c.Team != "" && c.UpdatedAt >= t.CreatedAt
	}
	return t.Base.Commit == "" && !others, nil
}

// Lacking returns the commits that the directory's repository does not have.
func Lacking(ctx context.Context, procs *proc.Register, dir string, commits []string) (lacking []string, err error) {
	if len(commits) == 0 {
		return nil, nil
	}
	g := git.Runner{Procs: procs, Dir: dir}.With("GIT_NO_LAZY_FETCH=1", "GIT_NO_REPLACE_OBJECTS=1")
	out, err := g.Run(ctx, []byte(strings.Join(commits, "\n")+"\n"), "cat-file", "--batch-check=%(objecttype)")
	if err != nil {
		return nil, err
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for i, commit := range commits {
		if i >= len(lines) || lines[i] != "commit" {
			lacking = append(lacking, commit)
		}
	}
	return lacking, nil
}

// lacks returns why a repository is not the team's.
func lacks(t team.Team) string {
	if t.Base.Commit == "" {
		return ", whose checkpoints are of another team of that name"
	}
	return fmt.Sprintf(": it has neither the commit %.12s, which was checked out when the team was created, nor a "+
		"checkpoint of the team", t.Base.Commit)
}

// Moved finds the team's directory in the project's new place. A person has named the place: the
// directory itself, or the top of its work tree. Moved returns the directory and the top of the
// work tree for the team to use. It returns an error if the project is still in its old place, or
// is another project.
func Moved(ctx context.Context, procs *proc.Register, t team.Team, to string) (dir, top string, err error) {
	refuse := func(format string, args ...any) error {
		return &team.Error{Code: team.Invalid, Text: fmt.Sprintf(format, args...)}
	}
	switch err := Check(ctx, procs, t); {
	case err == nil && paths.Same(t.Dir, to):
		return t.Dir, t.Base.Top, nil
	case err == nil && t.Base.Top != "" && paths.Same(t.Base.Top, to):
		return t.Dir, t.Base.Top, nil
	case err == nil:
		return "", "", team.Hinted(refuse("team %s works in %s, which still exists; a new place can be given only for "+
			"a project that was moved", t.Name, t.Dir), team.Hint{Action: team.ActResume, Team: t.Name})
	case !IsMissing(err):
		return "", "", err
	}
	if t.Base.Top == "" {
		return to, "", nil
	}
	if err := git.Installed(); err != nil {
		return "", "", refuse("cannot check without git whether %s is the repository of team %s: %v", to, t.Name, err)
	}
	top, err = topOf(ctx, procs, to)
	switch refused := (*git.Refusal)(nil); {
	case errors.As(err, &refused):
		return "", "", refuse("%s is not the project of team %s, which is a git repository: %s", to, t.Name,
			refused.Words)
	case err != nil:
		return "", "", err
	}
	if dir, err = below(t, to, top); err != nil {
		return "", "", err
	}
	its, err := identify(ctx, procs, t, to)
	if err == nil && !its {
		err = refuse("%s is not the repository of team %s%s", to, t.Name, lacks(t))
	}
	return dir, top, err
}

// below returns the team's directory in the work tree that was moved to top. The person has named
// it, or the top.
func below(t team.Team, to, top string) (string, error) {
	sub, err := filepath.Rel(t.Base.Top, t.Dir)
	if err != nil || !filepath.IsLocal(sub) || sub == "." { // named through a link: only the person knows
		return to, nil
	}
	for _, dir := range []string{to, filepath.Join(to, sub)} {
		if paths.Same(dir, filepath.Join(top, sub)) {
			return dir, nil
		}
	}
	return "", &team.Error{Code: team.Invalid, Text: fmt.Sprintf("team %s works in the folder %s of its repository, "+
		"and %s is not there", t.Name, sub, filepath.Join(top, sub))}
}
