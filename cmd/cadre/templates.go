package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/run/templates"
)

func (a *app) templatesCommand() *cobra.Command {
	var dir string
	var text bool
	c := &cobra.Command{
		Use: "templates [TEMPLATE]", Short: "List the templates, or show one", Args: atMost(1),
		Long: `List the team files that can be run by a name, or show one with its parameters.

Templates are in the program, in the folder templates of cadre's home (~/.cadre/templates), and in .cadre/templates of
the project. Of several with one name, that of the project counts, then yours. The commands of a template that came
with a project run only after you agreed to it: cadre trust. If it changes, it needs your agreement again.`,
		Example: "  cadre templates\n  cadre templates review\n  cadre run --template review --set base=main\n" +
			"  cadre init review",
		RunE: func(_ *cobra.Command, args []string) error {
			path, err := workDir(dir)
			if err != nil {
				return err
			}
			if len(args) == 0 {
				return a.listTemplates(path)
			}
			return a.showTemplate(args[0], path, text)
		},
	}
	c.Flags().StringVar(&dir, "dir", ".", "the project")
	c.Flags().BoolVar(&text, "text", false, "print the team file, and nothing else")
	return c
}

func (a *app) listTemplates(dir string) error {
	found, err := a.places(dir).All()
	if err != nil {
		return err
	}
	all := templates.Offers(found)
	return a.print(all, func(w *sanitize.Writer) error {
		t := render.NewTable(len(all)+1, "TEMPLATE", "WHAT IT IS FOR", "FROM", "NOTE")
		t.Texts, t.Spare = []string{"WHAT IT IS FOR"}, []string{"FROM"}
		untrusted := false
		for i, one := range all {
			from, note := one.Source, ""
			switch {
			case found[i].Trouble != nil:
				note = "cannot be read"
			case one.Trouble != "":
				note = "has mistakes"
			case one.Untrusted:
				note = "not trusted"
			}
			untrusted = untrusted || one.Untrusted && one.Trouble == ""
			t.Row(one.Name, one.Summary, from, note)
		}
		t.Compact()
		if err := t.Write(w); err != nil {
			return err
		}
		if untrusted {
			return w.Printf("\nto look at those of this project, and agree to them: cadre trust\n")
		}
		return nil
	})
}

func (a *app) showTemplate(name, dir string, text bool) error {
	t, err := a.places(dir).Find(name)
	if err != nil {
		return a.aboutTemplate(err)
	}
	one := t.Show()
	return a.print(one, func(w *sanitize.Writer) error {
		if text {
			return w.Printf("%s", sanitize.Block(one.Text))
		}
		return writeTemplate(w, one)
	})
}

func writeTemplate(w *sanitize.Writer, shown templates.Shown) error {
	t := shown.Template
	w.Printf("%s: %s\n", t.Name, t.Summary)
	w.Printf("from: %s\n", cmp.Or(t.Path, t.Source))
	if t.Trouble != "" {
		return w.Printf("it cannot be used:\n%s\n", sanitize.Block(t.Trouble))
	}
	if len(t.Parameters) > 0 {
		w.Printf("\n")
		p := render.NewTable(len(t.Parameters)+1, "--set", "DEFAULT", "WHAT IT IS")
		p.Texts = []string{"WHAT IT IS"}
		for _, one := range t.Parameters {
			usual := one.Default
			if one.Required {
				usual = "(required)"
			}
			p.Row(one.Usage(), usual, one.Help)
		}
		if err := p.Write(w); err != nil {
			return err
		}
	}
	w.Printf("\n")
	tasks := render.NewTable(len(shown.Tasks)+1, "TASK", "SUBJECT")
	tasks.Texts = []string{"SUBJECT"}
	for _, one := range shown.Tasks {
		tasks.Row(one.ID, one.Subject)
	}
	if err := tasks.Write(w); err != nil {
		return err
	}
	if t.Untrusted {
		return w.Printf("\nit came with this project, and runs once you agreed to it: cadre trust\n")
	}
	return w.Printf("\nrun it: cadre run --template %s%s\nwrite it as a file: cadre init %s\n", t.Name,
		requiredSettings(t.Parameters), t.Name)
}
