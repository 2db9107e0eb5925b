package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/hook"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/run/templates"
	"cadre/internal/team"
)

// trusted says whether the hooks and templates of a project run.
type trusted struct {
	Dir       string              `json:"dir"`                 // directory of the project
	Trusted   bool                `json:"trusted"`             // they run for as long as they do not change
	Hooks     []hook.ExaminedHook `json:"hooks,omitempty"`     // the hooks that were shown before the question
	Templates []askedTemplate     `json:"templates,omitempty"` // the templates that were shown before the question
	// templates that nobody can agree to, because they cannot be used
	Broken []brokenTemplate `json:"broken,omitempty"`
}

// brokenTemplate is a template of a project that cannot be used.
type brokenTemplate struct {
	Name string `json:"name"` // name of the template
	Path string `json:"path"` // path of the file
	Why  string `json:"why"`  // its mistakes, or why it cannot be read
}

// askedTemplate is a template of a project that a person is asked about.
type askedTemplate struct {
	Name     string   `json:"name"`               // name of the template
	Path     string   `json:"path"`               // path of the file
	Commands []string `json:"commands,omitempty"` // the commands that it runs
}

// trustedProject is a project whose hooks and templates run for as long as they have these digests.
type trustedProject struct {
	Dir    string `json:"dir"`              // directory of the project
	Digest string `json:"digest,omitempty"` // SHA-256 of its hooks and of the files that they name
	// SHA-256 of the trusted templates, by the names of their files
	Templates  map[string]string `json:"templates,omitempty"`
	RecordedAt team.Time         `json:"recordedAt"` // when it was trusted
}

func (a *app) trustCommand() *cobra.Command {
	var dir string
	var revoke, list, yes bool
	c := &cobra.Command{
		Use: "trust", Short: "Let the hooks and templates of this project run", Args: exactly(0),
		Long: `Hooks in a project's .claude/settings.json and settings.local.json, and the templates in its .cadre/templates,
have commands that came with the repository. They run only after you have looked at them here and agreed. If they
change, they need your agreement again.

Trust covers the commands of hooks, and every file of the project that they name. It does not cover what these files and
other programs run or read, such as a makefile that no command names. The command lists what it cannot follow before it
asks you. Of a template it covers the text of the file, and no other file. A template with mistakes is left out.

Without a terminal, --yes is needed. A session of a team can never trust hooks or templates.`,
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
					said("the hooks and templates of %s no longer run", path))
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

// trust records the hooks and templates that it showed, not those that are there when the person
// answers.
func (a *app) trust(ctx context.Context, path string, yes bool) error {
	e, err := a.engine().ProjectHooks(path)
	if err != nil {
		return usage{err}
	}
	found, broken, err := a.places(path).Untrusted()
	if err != nil {
		return usage{err}
	}
	value := trusted{e.Dir, true, e.Hooks, askedTemplates(found), brokenTemplates(broken)}
	agree := func() error {
		if e.Digest != "" {
			if err := a.engine().Trust(e); err != nil {
				return err
			}
		}
		if len(found) == 0 {
			return nil
		}
		return a.places(path).Trust(found, time.Now())
	}
	what := whatTrusted(e, found)
	if what == "" {
		return a.print(value, func(w *sanitize.Writer) error {
			return errors.Join(w.Printf("%s has no hooks of its own and no templates to agree to, so it needs no trust\n",
				e.Dir), writeBroken(w, value.Broken))
		})
	}
	write := func(w *sanitize.Writer) error {
		return errors.Join(writeTrust(w, e), writeAskedTemplates(w, value.Templates), writeBroken(w, value.Broken))
	}
	if yes {
		if err := agree(); err != nil {
			return err
		}
		return a.print(value, func(w *sanitize.Writer) error {
			return errors.Join(w.Printf("these %s of %s run from now on:\n", what, e.Dir), write(w))
		})
	}
	a.note("the " + what + " of " + e.Dir + " are:")
	if err := write(a.err.Writer); err != nil {
		return err
	}
	if err := a.confirm(ctx, "Let them run?", way{"agree to what is listed", "cadre trust --yes"}); err != nil {
		return err
	}
	if err := agree(); err != nil {
		return err
	}
	return a.print(value, said("the %s of %s run from now on", what, e.Dir))
}

// whatTrusted names what a person is asked about; "" for nothing.
func whatTrusted(e hook.Examined, found []templates.Template) string {
	switch {
	case e.Digest != "" && len(found) > 0:
		return "hooks and templates"
	case e.Digest != "":
		return "hooks"
	case len(found) > 0:
		return "templates"
	}
	return ""
}

func askedTemplates(found []templates.Template) (all []askedTemplate) {
	for _, t := range found {
		one := askedTemplate{Name: t.Name, Path: t.Path}
		if f, err := t.Alone(); err == nil {
			one.Commands = templates.Commands(f)
		}
		all = append(all, one)
	}
	return all
}

func brokenTemplates(broken []templates.Template) (all []brokenTemplate) {
	for _, t := range broken {
		_, err := t.Alone()
		all = append(all, brokenTemplate{t.Name, t.Path, err.Error()})
	}
	return all
}

// writeBroken says which templates are left out, and why.
func writeBroken(w *sanitize.Writer, all []brokenTemplate) (err error) {
	for _, t := range all {
		err = errors.Join(err, w.Printf("  template %s: left out, because it cannot be used:\n%s\n", t.Name,
			sanitize.Block(t.Why)))
	}
	if len(all) > 0 {
		err = errors.Join(err, w.Printf("  once these are mended: cadre trust\n"))
	}
	return err
}

// writeAskedTemplates writes the commands of each template: the first line of each, since they can
// be long.
func writeAskedTemplates(w *sanitize.Writer, all []askedTemplate) (err error) {
	for _, t := range all {
		err = errors.Join(err, w.Printf("  template %s: %s\n", t.Name, t.Path))
		for _, command := range t.Commands {
			first, _, more := strings.Cut(command, "\n")
			if more {
				first += " …"
			}
			err = errors.Join(err, w.Printf("    %s\n", first))
		}
	}
	if len(all) > 0 {
		err = errors.Join(err, w.Printf("  to read all of a template: cadre templates NAME --text\n"))
	}
	return err
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
		all = append(all, trustedProject{e.Dir, e.Digest, e.Files, team.Time(e.Recorded.UnixMilli())})
	}
	return a.print(all, func(w *sanitize.Writer) error {
		t := render.NewList()
		for _, p := range all {
			t.Row(p.Dir, render.When(now(), p.RecordedAt))
		}
		return t.Write(w)
	})
}
