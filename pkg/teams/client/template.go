package client

import (
	"context"

	"cadre/internal/run/templates"
	"cadre/pkg/teams"
)

// Template is a template with all that it has.
type Template struct {
	teams.Template
	Tasks    []TemplateTask
	Commands []string // that it runs
	Text     string   // the team file
}

// TemplateTask is a task of a template.
type TemplateTask struct{ ID, Subject string }

// Templates returns the team files that can be run by a name; with a team, also those of the
// project that it works in. Of several with one name, the first one counts.
func (c *Client) Templates(ctx context.Context, team string) ([]teams.Template, error) {
	return list[teams.Template, templates.Offer](ctx, c, get("templates").where("team", team))
}

// Template returns a template; with a team, also one of the project that it works in.
func (c *Client) Template(ctx context.Context, team, name string) (t Template, err error) {
	shown, err := ask[templates.Shown](ctx, c, get("templates", name).where("team", team))
	if err != nil {
		return t, err
	}
	t = Template{Template: of[teams.Template](shown.Template), Commands: shown.Commands, Text: shown.Text}
	for _, task := range shown.Tasks {
		t.Tasks = append(t.Tasks, TemplateTask(task))
	}
	return t, nil
}
