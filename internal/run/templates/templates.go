// Package templates finds the team files that can be run by a name.
//
// # Authority
//
// The package decides which templates there are in a directory, which one a name means, and whether
// it may be used. Package teamfile reads them; package builtin has those that are in the program.
//
// # Order
//
// Several templates may have one name. The project's own comes first, from .cadre/templates. The
// user's comes next, from the folder templates of cadre's home. The program's comes last.
//
// # Guarantees
//
//   - A template that came with a project is used only if the user trusts it, with exactly the text
//     that is then run. One that is not trusted never takes the place of another.
//   - A broken template does not hide the others.
package templates

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cadre/internal/hook"
	"cadre/internal/layout"
	"cadre/internal/run"
	"cadre/internal/run/teamfile"
	"cadre/internal/run/templates/builtin"
	"cadre/internal/sys/paths"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// Limits of what is read of a folder of templates.
const (
	maxTemplate  = 1 << 20 // bytes of one
	maxTemplates = 1000
)

// The sources of templates, the nearest last.
const (
	BuiltIn = "built in"
	User    = "user"
	Project = "project"
)

// Template is a team file with a name.
type Template struct {
	Name    string // of the file, without .yaml or .yml
	Summary string // its first sentence
	Source  string
	Path    string // absolute; "" for one in the program
	Text    []byte
	// Untrusted says that it came with a project, and that the user has not agreed to its text.
	Untrusted bool
	Trouble   error // why it cannot be read; nil if it can

	places Places
}

// Places are where templates are looked for.
type Places struct {
	Home layout.Home
	Dir  string // directory of the project; "" for none
}

// All returns all templates, in the order of their names. Those of one name begin with the one that
// the name means.
func (p Places) All() (all []Template, err error) {
	for _, one := range builtin.All() {
		all = append(all, Template{Name: one.Name, Summary: one.Summary, Source: BuiltIn, Text: one.Text})
	}
	users := p.Home.Templates()
	found, err := in(users, User)
	if err != nil {
		return nil, err
	}
	all = append(all, found...)
	if own := p.folder(); p.Dir != "" && !paths.Same(own, users) { // in the home folder, the project's are the user's
		if found, err = in(own, Project); err != nil {
			return nil, err
		}
		agreed, err := p.trust().Files(p.Dir)
		if err != nil {
			return nil, err
		}
		for i := range found {
			found[i].Untrusted = agreed[filepath.Base(found[i].Path)] != found[i].digest()
		}
		all = append(all, found...)
	}
	for i := range all {
		all[i].places = p
	}
	slices.SortStableFunc(all, func(a, b Template) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.rank(), b.rank()))
	})
	return all, nil
}

// rank orders the templates of one name: the nearest first, and those that are not trusted last.
func (t Template) rank() int {
	if t.Untrusted {
		return 3
	}
	return slices.Index([]string{Project, User, BuiltIn}, t.Source)
}

func (p Places) trust() hook.Trust { return hook.Trust{File: p.Home.Trust()} }

func (p Places) folder() string { return filepath.Join(p.Dir, ".cadre", "templates") }

// in reads the templates in a folder, which need not exist.
func in(dir, source string) (all []Template, err error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, fmt.Errorf("the templates cannot be read: %w", err)
	}
	for _, e := range entries {
		ext := filepath.Ext(e.Name())
		name := strings.TrimSuffix(e.Name(), ext)
		if ext != ".yaml" && ext != ".yml" || strings.HasPrefix(e.Name(), ".") {
			continue
		}
		if len(all) == maxTemplates {
			return nil, fmt.Errorf("the templates cannot be read: %s has more than %d", dir, maxTemplates)
		}
		t := Template{Name: name, Source: source, Path: filepath.Join(dir, e.Name())}
		same := slices.IndexFunc(all, func(of Template) bool { return of.Name == name })
		if t.Trouble = team.CheckName("template", name); same >= 0 {
			t.Trouble = fmt.Errorf("%s has the same name; remove one of them", filepath.Base(all[same].Path))
		}
		if t.Trouble == nil {
			t.Text, t.Trouble = read(t.Path)
		}
		if t.Trouble == nil {
			t.Summary = builtin.Summary(t.Text)
		}
		all = append(all, t)
	}
	return all, nil
}

// read reads a template, which may be a symbolic link to a file.
func read(path string) ([]byte, error) {
	text, err := regularfile.Read(path, maxTemplate)
	if errors.Is(err, fs.ErrNotExist) {
		if target, isLink := os.Readlink(path); isLink == nil {
			return nil, fmt.Errorf("%s is a symbolic link to %s, which does not exist", path, target)
		}
	}
	return text, err
}

func (t Template) digest() string {
	sum := sha256.Sum256(t.Text)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// UnknownError says that no template has the name.
type UnknownError struct {
	Name string
	Near string // the name that may be meant; "" for none
}

func (e *UnknownError) Error() string {
	what := "unknown template " + e.Name
	if e.Near != "" {
		what += ", did you mean " + e.Near + "?"
	}
	return what
}

// UntrustedError says that the user has not agreed to the template of a project.
type UntrustedError struct{ Name, Path, Dir string }

func (e *UntrustedError) Error() string {
	return fmt.Sprintf("the template %s came with this project (%s), and you have not agreed to it as it is now", e.Name,
		e.Path)
}

// Find returns the template that the name means. One that is not trusted is found only if no other
// has the name.
func (p Places) Find(name string) (Template, error) {
	all, err := p.All()
	if err != nil {
		return Template{}, err
	}
	var names []string
	for _, t := range all {
		if t.Name == name {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return Template{}, &UnknownError{name, team.Nearest(name, names)}
}

// Usable returns the template that the name means, if it may be used.
func (p Places) Usable(name string) (Template, error) {
	t, err := p.Find(name)
	switch {
	case err != nil:
		return t, err
	case t.Trouble != nil:
		return t, fmt.Errorf("the template %s cannot be read: %w", name, t.Trouble)
	case t.Untrusted:
		return t, &UntrustedError{t.Name, t.Path, p.Dir}
	}
	return t, nil
}

// File returns the team file with values for its parameters, and the origin of a team that is made
// from it.
func (t Template) File(set ...teamfile.Setting) (f *teamfile.File, origin string, err error) {
	f, err = t.places.Loader().Of(t.source(), set...)
	return f, t.Origin(), err
}

// Unset returns the team file with examples of the values that it needs. The templates of its
// members need no trust before this one has it.
func (t Template) Unset() (*teamfile.File, error) {
	if t.Trouble != nil {
		return nil, t.Trouble
	}
	l := t.places.Loader()
	if t.Untrusted {
		l.Template = func(name, _ string) (run.Source, error) {
			of, err := t.places.Find(name)
			return of.source(), cmp.Or(err, of.Trouble)
		}
	}
	return l.CheckOf(t.source())
}

// Alone is Unset without the templates of the members.
func (t Template) Alone() (*teamfile.File, error) {
	if t.Trouble != nil {
		return nil, t.Trouble
	}
	return run.Loader{}.CheckOf(t.source())
}

func (t Template) source() run.Source {
	return run.Source{Text: t.Text, Called: t.called(), Origin: t.Origin()}
}

// Loader returns a loader of team files for a team in the directory of the project.
func (p Places) Loader() run.Loader {
	return run.Loader{Dir: p.Dir, Template: func(name, dir string) (run.Source, error) {
		t, err := Places{p.Home, dir}.Usable(name)
		return t.source(), err
	}}
}

// Origin returns the origin of a team that is made from the template.
func (t Template) Origin() string {
	if t.Path == "" {
		return run.TemplateOrigin + t.Name
	}
	if real, err := filepath.EvalSymlinks(t.Path); err == nil {
		return real
	}
	return t.Path
}

// called returns the name of the file in messages.
func (t Template) called() string { return cmp.Or(t.Path, t.Name+".yaml") }

// Commands returns the commands that a team of the file runs, in the order of the file.
func Commands(f *teamfile.File) (all []string) {
	add := func(command string) {
		if command = strings.TrimSpace(command); command != "" && !slices.Contains(all, command) {
			all = append(all, command)
		}
	}
	for _, m := range append([]teamfile.Member{f.Leader}, f.Members...) {
		add(strings.Join(append([]string{m.Command}, m.Args...), " "))
		if strings.HasPrefix(m.Agent, team.ACP) {
			add(strings.TrimPrefix(m.Agent, team.ACP))
		}
		if strings.HasPrefix(m.Nested.Lead, team.ACP) {
			add(strings.TrimPrefix(m.Nested.Lead, team.ACP))
		}
	}
	for _, h := range run.Hooks(f.Hooks) {
		add(h.Command)
	}
	for _, c := range f.Commands {
		add(c.Run)
	}
	for _, t := range f.Tasks {
		if t.ForEach != nil {
			add(t.ForEach.Run)
		}
		add(t.Run)
		add(t.Check)
	}
	for _, c := range f.Checks {
		add(c.Run)
	}
	return all
}

// Untrusted returns the templates of the project to which the user has not agreed: those that can
// be used, and those that cannot, because they cannot be read or have mistakes. [Template.Alone]
// has the reason.
func (p Places) Untrusted() (usable, broken []Template, err error) {
	found, err := p.All()
	for _, t := range found {
		if !t.Untrusted {
			continue
		}
		if _, wrong := t.Alone(); wrong != nil {
			broken = append(broken, t)
			continue
		}
		usable = append(usable, t)
	}
	return usable, broken, err
}

// Trust allows these templates of the project to be used, with the text that they have here, beside
// those that were allowed before.
func (p Places) Trust(these []Template, now time.Time) error {
	digests := map[string]string{}
	for _, t := range these {
		digests[filepath.Base(t.Path)] = t.digest()
	}
	return p.trust().RecordFiles(p.Dir, digests, now)
}
