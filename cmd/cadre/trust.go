package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/hook"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// trusted says whether the hooks of a project run.
type trusted struct {
	Dir     string              `json:"dir"`             // directory of the project
	Trusted bool                `json:"trusted"`         // its hooks run for as long as they do not change
	Hooks   []hook.ExaminedHook `json:"hooks,omitempty"` // the hooks that were shown before the question
}

// trustedProject is a project whose hooks run for as long as they have this digest.
type trustedProject struct {
	Dir        string    `json:"dir"`        // directory of the project
	Digest     string    `json:"digest"`     // SHA-256 of its hooks and of the files that they name
	RecordedAt team.Time `json:"recordedAt"` // when it was trusted
}

func (a *app) trustCommand() *cobra.Command {
	var dir string
	var revoke, list, yes bool
	c := &cobra.Command{
		Use: "trust", Short: "Let the hooks of this project run", Args: exactly(0),
		Long: `Hooks in a project's .claude/settings.json and settings.local.json are commands that came with the
repository. They run only after you have looked at them here and agreed. If they change, they need your agreement
again.

Trust covers the commands, and every file of the project that they name. It does not cover what these files and other
programs run or read, such as a makefile that no command names. The command lists what it cannot follow before it asks
you.

Without a terminal, --yes is needed. A session of a team can never trust hooks.`,
		Example: "  cadre trust\n  cadre trust --yes --dir ~/src/project\n  cadre trust --revoke",
		RunE: func(c *cobra.Command, _ []string) error {
			path, err := workDir(dir)
			if err != nil {
				return err
			}
			switch {
			case list:
				return a.listTrusted()
			case revoke:
				if err := a.engine().Distrust(path); err != nil {
					return err
				}
				return a.print(trusted{Dir: path},
					said("the hooks of %s no longer run", path))
			}
			return a.trust(c.Context(), path, yes)
		},
	}
	c.Flags().StringVar(&dir, "dir", ".", "the project")
	c.Flags().BoolVar(&yes, "yes", false, "trust what is listed, without being asked")
	c.Flags().BoolVar(&revoke, "revoke", false, "revoke the trust")
	c.Flags().BoolVar(&list, "list", false, "list the projects that are trusted")
	return c
}

// trust records the hooks that it showed, not those that are there when the person answers.
func (a *app) trust(ctx context.Context, path string, yes bool) error {
	e, err := a.engine().ProjectHooks(path)
	if err != nil {
		return usage{err}
	}
	value := trusted{e.Dir, true, e.Hooks}
	if e.Digest == "" {
		return a.print(value, said("%s has no hooks of its own, so it needs no trust", e.Dir))
	}
	if yes {
		if err := a.engine().Trust(e); err != nil {
			return err
		}
		return a.print(value, func(w *sanitize.Writer) error {
			return errors.Join(w.Printf("these hooks of %s run from now on:\n", e.Dir), writeTrust(w, e))
		})
	}
	a.note("the hooks of " + e.Dir + " are:")
	if err := writeTrust(a.err.Writer, e); err != nil {
		return err
	}
	if err := a.confirm(ctx, "Let them run?", way{"agree to what is listed", "cadre trust --yes"}); err != nil {
		return err
	}
	if err := a.engine().Trust(e); err != nil {
		return err
	}
	return a.print(value, said("the hooks of %s run from now on", e.Dir))
}

// writeTrust writes what is trusted, and what that does not cover.
func writeTrust(w *sanitize.Writer, e hook.Examined) (err error) {
	for _, h := range e.Hooks {
		err = errors.Join(err, w.Printf("  %s: %s\n", h.Event, h.Command))
		for _, part := range []struct {
			what  string
			names []string
		}{
			{"covered files", h.Files},
			{"not covered: what is read or run by", h.Programs},
			{"not covered: what is in the folders", h.Folders},
			{"not covered: what comes from", h.Special},
			{"not covered: what is known only when it runs,", h.Unknown},
		} {
			if len(part.names) > 0 {
				err = errors.Join(err, w.Printf("    %s %s\n", part.what, strings.Join(part.names, ", ")))
			}
		}
	}
	return err
}

func (a *app) listTrusted() error {
	entries, err := a.engine().Trusted()
	if err != nil {
		return err
	}
	all := []trustedProject{}
	for _, e := range entries {
		all = append(all, trustedProject{e.Dir, e.Digest, team.Time(e.Recorded.UnixMilli())})
	}
	return a.print(all, func(w *sanitize.Writer) error {
		t := render.NewList()
		for _, p := range all {
			t.Row(p.Dir, render.When(now(), p.RecordedAt))
		}
		return t.Write(w)
	})
}
