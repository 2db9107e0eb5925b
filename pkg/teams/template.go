package teams

import (
	"errors"

	"cadre/internal/run/templates"
)

// Template is a team file that can be used by its name.
type Template struct {
	Name    string
	Summary string // what it is for
	Source  string // "built in", "user" or "project"
	Path    string // of the file; "" for one in the program
	// Untrusted says that it came with the project, and that the user has not agreed to it as it is
	// now. It cannot be loaded before that: a person runs cadre trust.
	Untrusted  bool
	Parameters []Parameter
	Trouble    string // the mistakes in the file, for which it cannot be loaded; "" for none
}

// Parameter is a value that a template takes.
type Parameter struct {
	Name     string
	Type     string // string, int, bool, list, path or enum
	Help     string
	Values   []string // the values that an enum can have
	Required bool     // it has no default
	Default  string   // as [Setting] takes it
}

// Templates returns the templates that are in the program, in the home, and in .cadre/templates of
// Options.Dir, in the order of their names. Of several with one name, the first is the one that
// [Manager.LoadTemplate] loads.
func (m *Manager) Templates() ([]Template, error) {
	if err := m.pass("Manager.Templates"); err != nil {
		return nil, err
	}
	found, err := m.places().All()
	if err != nil {
		return nil, public(err)
	}
	var all []Template
	for _, one := range found {
		all = append(all, templateOf(one.Offer()))
	}
	return all, nil
}

func templateOf(o templates.Offer) Template {
	t := Template{Name: o.Name, Summary: o.Summary, Source: o.Source, Path: o.Path, Untrusted: o.Untrusted,
		Trouble: o.Trouble}
	for _, p := range o.Parameters {
		t.Parameters = append(t.Parameters, Parameter(p))
	}
	return t
}

// LoadTemplate reads the template of that name, with values for its parameters, as [LoadTeamFile]
// reads a file. It returns [ErrNotFound] if no template has that name, and [ErrDenied] for a
// template of the project that the user has not trusted.
func (m *Manager) LoadTemplate(name string, set ...Setting) (*TeamFile, error) {
	if err := m.pass("Manager.LoadTemplate"); err != nil {
		return nil, err
	}
	t, err := m.places().Usable(name)
	_, unknown := errors.AsType[*templates.UnknownError](err)
	_, untrusted := errors.AsType[*templates.UntrustedError](err)
	switch {
	case unknown:
		return nil, &Error{Code: ErrNotFound, Text: err.Error(), cause: err}
	case untrusted:
		return nil, &Error{Code: ErrDenied, Text: err.Error() + "; a person has to read it and agree", cause: err}
	case err != nil:
		return nil, public(err)
	}
	f, origin, err := t.File(settingsOf(set)...)
	if err != nil {
		return nil, &Error{Code: ErrInvalid, Text: err.Error(), cause: err}
	}
	return teamFileOf(f, origin), nil
}

func (m *Manager) places() templates.Places {
	return templates.Places{Home: m.engine.Home, Dir: m.opts.Dir}
}
