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

	"cadre/examples"
	"cadre/internal/engine"
	"cadre/internal/render/sanitize"
	"cadre/internal/run"
	"cadre/internal/run/teamfile"
	"cadre/internal/team"
)

// template returns the example of that name. The error lists all of them.
func template(name string) (found examples.Example, err error) {
	var names []string
	list := ""
	for _, one := range examples.All() {
		if one.Name == name {
			return one, nil
		}
		names = append(names, one.Name)
		list += fmt.Sprintf("\n  %-8s %s", one.Name, one.Summary)
	}
	what := "name a template"
	if name != "" {
		what = "unknown template " + name
		if near := teamfile.Nearest(name, names); near != "" {
			what += ", did you mean " + near + "?"
		}
	}
	return found, usage{fmt.Errorf("%s; the templates:%s", what, list)}
}

// templateFlag gives the command the flag --template. Without a value it lists the templates.
func templateFlag(c *cobra.Command, name *string, meaning string) {
	c.Flags().StringVar(name, "template", "", meaning)
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		if strings.HasSuffix(err.Error(), "flag needs an argument: --template") {
			_, err := template("")
			return err
		}
		return c.Root().FlagErrorFunc()(c, err)
	})
}

// fromTemplate returns the team file of that example, and its origin.
func fromTemplate(name string) (*teamfile.File, string, error) {
	found, err := template(name)
	if err != nil {
		return nil, "", err
	}
	f, err := run.ParseFile(name+".yaml", found.Text)
	return f, run.TemplateOrigin + name, err
}

// again returns the options with which a resumed team continues.
func (a *app) again(of *engine.Team) run.Options {
	o := run.Again(a.engine(), of)
	t := of.Team()
	if name, is := strings.CutPrefix(t.Origin, run.TemplateOrigin); is {
		if f, _, err := fromTemplate(name); err == nil && f.Digest() == t.OriginDigest {
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
	if f, err := run.ParseFile(path, text); err != nil || f.Name != name {
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
		Long: `Write the team file NAME.yaml in this directory. It runs as it is, with shell teammates, and its
comments say what to change. Without NAME it is named after the directory. A file that exists is never overwritten.`,
		Example: "  cadre init release\n  cadre run release.yaml\n  cadre init audit --template health",
		RunE: func(_ *cobra.Command, args []string) error {
			found, err := template(from)
			if err != nil {
				return err
			}
			name := ""
			if len(args) > 0 {
				name = strings.TrimSuffix(args[0], ".yaml")
			} else if name, err = nameOfDirectory(); err != nil {
				return err
			}
			if err := team.CheckName("team", name); err != nil {
				return err
			}
			path := name + ".yaml"
			text := withName(found.Text, path, name)
			if err := writeNew(path, text); err != nil {
				return err
			}
			return a.print(written{path, name, found.Name},
				said("%s is written; run it: cadre run %s", path, sanitize.Quote(path)))
		},
	}
	templateFlag(c, &from, "the example to start from, such as hello or health")
	c.Flags().Lookup("template").DefValue = "start"
	from = "start"
	return c
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
