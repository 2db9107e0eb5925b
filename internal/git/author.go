package git

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// Nobody told git who commits: that may be so in CI. It would make somebody up from the names of
// the user and the machine, or refuse.
const (
	ourName = "cadre"
	ourMail = "cadre@localhost"
)

// Author is whom git names as the author of a commit, as far as it was told, with the mail address
// in angle brackets; else it is cadre.
func (r Runner) Author(ctx context.Context) string {
	return cmp.Or(r.told(ctx, "AUTHOR"), ourName+" <"+ourMail+">")
}

// Committing is the runner with cadre in the place of the author and the committer that git was not
// told.
func (r Runner) Committing(ctx context.Context) Runner {
	named := r
	for _, role := range []string{"AUTHOR", "COMMITTER"} {
		if r.told(ctx, role) == "" {
			named = named.With("GIT_"+role+"_NAME="+ourName, "GIT_"+role+"_EMAIL="+ourMail)
		}
	}
	return named
}

// Ours is the runner with cadre as the author and the committer, of commits that are nobody's work.
func (r Runner) Ours() Runner {
	return r.With("GIT_AUTHOR_NAME="+ourName, "GIT_AUTHOR_EMAIL="+ourMail, "GIT_COMMITTER_NAME="+ourName,
		"GIT_COMMITTER_EMAIL="+ourMail)
}

func (r Runner) told(ctx context.Context, role string) string {
	r.Settings = append(slices.Clone(r.Settings), "user.useConfigOnly=true")
	ident, err := r.Text(ctx, "var", "GIT_"+role+"_IDENT")
	end := strings.LastIndexByte(ident, '>') // the date is behind it
	if err != nil {
		return ""
	}
	return ident[:end+1]
}
