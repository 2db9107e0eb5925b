package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/run"
	"cadre/internal/run/teamfile"
	"cadre/internal/run/templates"
	"cadre/internal/team"
)

// places returns where templates are looked for in the project in dir.
func (a *app) places(dir string) templates.Places { return templates.Places{Home: a.home, Dir: dir} }

// template returns the template that the name means in the project in dir, if it may be used.
func (a *app) template(name, dir string) (templates.Template, error) {
	t, err := a.places(dir).Usable(name)
	return t, a.aboutTemplate(err)
}

// aboutTemplate adds to an error about a template what helps.
func (a *app) aboutTemplate(err error) error {
	if _, is := errors.AsType[*templates.UnknownError](err); is {
		return withWays(usage{err}, way{"list the templates", "cadre templates"})
	}
	if u, is := errors.AsType[*templates.UntrustedError](err); is {
		return withWays(usage{err}, way{"read it", render.Typed("templates", u.Name, "--text")},
			way{"agree to the templates and the hooks of the project", "cadre trust"})
	}
	if _, is := errors.AsType[teamfile.Errors](err); is {
		return usage{err}
	}
	return err
}

// templateFlag gives the command the flag --template. Without a value it lists the templates.
func (a *app) templateFlag(c *cobra.Command, name *string, meaning string) {
	c.Flags().StringVar(name, "template", "", meaning)
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if !strings.HasSuffix(err.Error(), "flag needs an argument: --template") {
			return c.Root().FlagErrorFunc()(c, err)
		}
		home, err := findHome() // flags are read before the home is known
		if err != nil {
			return err
		}
		a.home = home
		return a.listTemplates(".")
	})
}

// fromTemplate returns the team file of that template, and its origin.
func (a *app) fromTemplate(name, dir string, set []teamfile.Setting) (*teamfile.File, string, error) {
	t, err := a.template(name, dir)
	if err != nil {
		return nil, "", err
	}
	f, origin, err := t.File(set...)
	if err != nil {
		return nil, "", withWays(a.aboutTemplate(usage{err}), way{"see its parameters", render.Typed("templates", name)})
	}
	return f, origin, nil
}

// again returns the options with which a resumed team continues.
func (a *app) again(of *engine.Team) run.Options {
	o := run.Again(a.engine(), of, a.places("").Loader().Template)
	t := of.Team()
	if name, is := strings.CutPrefix(t.Origin, run.TemplateOrigin); is {
		if f, _, err := a.fromTemplate(name, t.Dir, run.SettingsOf(t)); err == nil && f.Digest() == t.OriginDigest {
			o.File = f // it decides what the report has
		}
	}
	return o
}

// nameLine matches the line of a template that names the team.
var nameLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^name: .*$`) })

// withName returns the template with that team name. The name is quoted where YAML reads the plain
// word as something else, such as null.
func withName(template []byte, path, name string) []byte {
	text := nameLine().ReplaceAll(template, []byte("name: "+name))
	if f, err := run.ParseUnset(path, text); err != nil || f.Name != name {
		text = nameLine().ReplaceAll(template, []byte(`name: "`+name+`"`))
	}
	return text
}

// written is a team file that was made from a template.
type written struct {
	File     string `json:"file"`     // path of the file
	Name     string `json:"name"`     // name of the team in it
	Template string `json:"template"` // name of the template
}

func (a *app) initCommand() *cobra.Command {
	var from string
	c := &cobra.Command{
		Use: "init [NAME]", Short: "Write a team file to start from", Args: atMost(1),
		Long: `Write the team file NAME.yaml in this directory. If NAME is the name of a template (cadre templates), the file is
that template. Else it is the template start: it runs as it is, with shell teammates, and its comments say what to
change. --template makes it another one.

Without NAME it is named after the directory. A file that exists is never overwritten.`,
		Example: "  cadre init release\n  cadre init health\n  cadre init audit --template health",
		RunE: func(c *cobra.Command, args []string) error {
			name := ""
			if len(args) > 0 {
				name = strings.TrimSuffix(args[0], ".yaml")
			}
			found, err := a.starting(name, from, c.Flags().Changed("template"))
			if err != nil {
				return err
			}
			if name == "" {
				if name, err = nameOfDirectory(); err != nil {
					return err
				}
			}
			if err := team.CheckName("team", name); err != nil {
				return err
			}
			path := name + ".yaml"
			text := withName(found.Text, path, name)
			if err := writeNew(path, text); err != nil {
				return err
			}
			needs := ""
			if f, err := run.ParseUnset(path, text); err == nil {
				needs = requiredSettings(f.Parameters)
			}
			return a.print(written{path, name, found.Name},
				said("%s is written, from the template %s; run it: cadre run %s%s", path, found.Name, sanitize.Quote(path),
					needs))
		},
	}
	a.templateFlag(c, &from, "the template to start from, such as hello or health")
	c.Flags().Lookup("template").DefValue = startTemplate
	from = startTemplate
	return c
}

// startTemplate is the template that a new file is made from where no other is named.
const startTemplate = "start"

// starting returns the template for a new team file of that name: the one that is chosen, or the
// one that has the name.
func (a *app) starting(name, from string, chosen bool) (templates.Template, error) {
	if !chosen && name != "" {
		t, err := a.template(name, ".")
		if _, unknown := errors.AsType[*templates.UnknownError](err); !unknown {
			return t, err
		}
	}
	return a.template(from, ".")
}

// requiredSettings returns the flags for the parameters that have no default, with a space before
// each.
func requiredSettings(all []teamfile.Parameter) (flags string) {
	for _, p := range all {
		if p.Required {
			flags += " --set " + p.Usage()
		}
	}
	return flags
}

// writeNew writes a file that does not exist yet.
func writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return withWays(usage{fmt.Errorf("%s already exists, and is not overwritten", path)},
			way{"use another name", "cadre init NAME"})
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Close()); err != nil {
		os.Remove(path) // an incomplete file is of no use
	}
	return err
}

// notInName matches characters that the name of a team cannot have.
var notInName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^A-Za-z0-9_-]+`) })

// nameOfDirectory returns a team name that is made from the name of the current directory.
func nameOfDirectory() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	name := strings.Trim(notInName().ReplaceAllString(filepath.Base(dir), "-"), "-_")
	name = name[:min(len(name), 64)]
	if name == "" {
		name = "team"
	}
	return name, nil
}
