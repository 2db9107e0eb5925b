package templates

import "cadre/internal/run/teamfile"

// Offer is a template in a list.
type Offer struct {
	Name       string               `json:"name"`                 // name of the template
	Summary    string               `json:"summary"`              // what it is for
	Source     string               `json:"source"`               // built in, user or project
	Path       string               `json:"path,omitempty"`       // path of the file; "" for one in the program
	Untrusted  bool                 `json:"untrusted,omitempty"`  // it is the project's, and you have not agreed to it
	Parameters []teamfile.Parameter `json:"parameters,omitempty"` // the values that it takes
	Trouble    string               `json:"trouble,omitempty"`    // why it cannot be used; "" if it can
}

// Shown is a template with all that it has.
type Shown struct {
	Template Offer     `json:"template"`           // its entry in the list
	Tasks    []Planned `json:"tasks,omitempty"`    // its tasks
	Commands []string  `json:"commands,omitempty"` // the commands that it runs
	Text     string    `json:"text"`               // the team file
}

// Planned is a task of a template.
type Planned struct {
	ID      string `json:"id"`      // id of the task
	Subject string `json:"subject"` // what it is about
}

// Offer returns what a list shows of the template.
func (t Template) Offer() Offer {
	o, _ := t.offer()
	return o
}

func (t Template) offer() (Offer, *teamfile.File) {
	o := Offer{Name: t.Name, Summary: t.Summary, Source: t.Source, Path: t.Path, Untrusted: t.Untrusted}
	f, err := t.Unset()
	if err != nil {
		o.Trouble = err.Error()
		return o, nil
	}
	o.Parameters = f.Parameters
	return o, f
}

// Show returns all that the template has.
func (t Template) Show() Shown {
	s := Shown{Text: string(t.Text)}
	var f *teamfile.File
	if s.Template, f = t.offer(); f == nil {
		return s
	}
	s.Commands = Commands(f)
	for _, task := range f.Tasks {
		s.Tasks = append(s.Tasks, Planned{task.ID, task.Subject})
	}
	return s
}

// Offers returns the entries of a list of templates.
func Offers(all []Template) []Offer {
	offers := []Offer{}
	for _, t := range all {
		offers = append(offers, t.Offer())
	}
	return offers
}
