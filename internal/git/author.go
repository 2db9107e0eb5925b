package git

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// These identify commits if git does not know who commits, as in CI. Git would make up an identity
// from the names of the user and the machine, or refuse.
const (
	ourName = "cadre"
	ourMail = "cadre@localhost"
)

// Author returns git's author of a commit, with the mail address in angle brackets; cadre if git
// knows none.
func (r Runner) Author(ctx context.Context) string {
	return cmp.Or(r.told(ctx, "AUTHOR"), ourName+" <"+ourMail+">")
}

// Committing returns the runner with cadre as the author or committer if git knows none.
func (r Runner) Committing(ctx context.Context) Runner {
	named := r
	for _, role := range []string{"AUTHOR", "COMMITTER"} {
		if r.told(ctx, role) == "" {
			named = named.With("GIT_"+role+"_NAME="+ourName, "GIT_"+role+"_EMAIL="+ourMail)
		}
	}
	return named
}

// Ours returns the runner with cadre as the author and the committer, for commits that are not a
// member's work.
func (r Runner) Ours() Runner {
	return r.With("GIT_AUTHOR_NAME="+ourName, "GIT_AUTHOR_EMAIL="+ourMail, "GIT_COMMITTER_NAME="+ourName,
		"GIT_COMMITTER_EMAIL="+ourMail)
}

func (r Runner) told(ctx context.Context, role string) string {
	r.Settings = append(slices.Clone(r.Settings), "user.useConfigOnly=true")
	ident, err := r.Text(ctx, "var", "GIT_"+role+"_IDENT")
	end := strings.LastIndexByte(ident, '>') // the date follows it
	if err != nil {
		return ""
	}
	return ident[:end+1]
}
