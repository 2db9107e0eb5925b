package api

import (
	"errors"
	"reflect"

	"cadre/internal/run/templates"
	"cadre/internal/server/auth"
	"cadre/internal/team"
)

// pageProject names a project by a team that works in it: no request names a directory to read.
var pageProject = Param{"team", "string", "also the templates of the project that this team works in"}

var templateRoutes = []Route{
	{Method: "GET", Path: "/v1/templates", ID: "listTemplates", Command: "templates", Role: auth.Observe,
		About: "List the team files that can be run by a name. Of several with one name, the first one counts.",
		Query: []Param{pageProject}, Answer: reflect.TypeFor[[]templates.Offer](), handle: (*call).listTemplates},
	{Method: "GET", Path: "/v1/templates/{template}", ID: "getTemplate", Command: "templates", Role: auth.Observe,
		About: "Show a template, with its parameters, its commands and its text.",
		Query: []Param{pageProject}, Answer: reflect.TypeFor[templates.Shown](), handle: (*call).getTemplate},
}

// templates returns where templates are looked for.
func (c *call) templates() (templates.Places, error) {
	p := templates.Places{Home: c.engine.Home}
	name := c.URL.Query().Get("team")
	if name == "" {
		return p, nil
	}
	of, err := c.engine.Glance(c.Context(), name)
	p.Dir = of.Dir
	return p, err
}

func (c *call) listTemplates() (any, error) {
	p, err := c.templates()
	if err != nil {
		return nil, err
	}
	all, err := p.All()
	return templates.Offers(all), err
}

func (c *call) getTemplate() (any, error) {
	p, err := c.templates()
	if err != nil {
		return nil, err
	}
	t, err := p.Find(c.PathValue("template"))
	if _, unknown := errors.AsType[*templates.UnknownError](err); unknown {
		return nil, team.Refuse(team.NotFound, "%v", err)
	}
	return t.Show(), err
}
