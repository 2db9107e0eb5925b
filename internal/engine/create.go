package engine

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"cadre/internal/consolidate"
	"cadre/internal/inspect"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// Create makes the team with these commands as the beginning of its history. It refuses a name that
// is taken.
func (e *Engine) Create(name string, commands []team.Command) error {
	if e.Memory != nil {
		return e.Memory.create(name, commands)
	}
	return e.Home.Create(name, commands)
}

// Command returns a command of the actor, with a new id and the present time.
func Command(actor string, body team.Body) team.Command {
	return team.Command{ID: replica.NewID(), Actor: actor, At: replica.Now(), Body: body}
}

// Founding completes the body that creates a team: with an id, the facts as they are now, and the
// content of the directory before the team changes anything. From that content a consolidation
// knows which changes are the team's. The paths in except never count as the team's work.
func (e *Engine) Founding(ctx context.Context, body *team.CreateTeam, except ...string) (err error) {
	body.TeamID = body.Name + "-" + strings.ToLower(replica.NewID())
	if body.Facts, err = inspect.Recorded(ctx, body.Dir, body.Facts); err == nil && e.Memory == nil {
		body.Base = consolidate.Look(ctx, body.Dir, append(except, e.Home.Root, e.Home.Claude)...)
	}
	return err
}

// CreateLed creates a team that works in the directory and is led by an external session. An
// existing team is not an error.
func (e *Engine) CreateLed(ctx context.Context, name, dir string) error {
	body := &team.CreateTeam{Name: name, Dir: dir, Lead: team.DefaultLead}
	err := e.Founding(ctx, body)
	if err == nil {
		err = e.Create(name, []team.Command{Command(team.User, body)})
	}
	if team.CodeOf(err) == team.Taken { // another process was faster
		return nil
	}
	return err
}

// TellElsewhere notes the unfinished teams of other projects that were made from the same file,
// because the person may mean to continue one of them. notFound is the error that says that the
// project has no team of that name.
func (e *Engine) TellElsewhere(notFound error, origin string) {
	elsewhere, there := errors.AsType[*layout.ElsewhereError](notFound)
	if !there || !filepath.IsAbs(origin) { // an example of cadre's own is not a sign
		return
	}
	for _, k := range elsewhere.Teams {
		if t := k.Team; k.Err == nil && t.Origin == origin && !t.Ended() {
			e.Tell(team.Advice{Text: fmt.Sprintf("team %s in %s was made from this file too, and is unfinished; this "+
				"is a new team", t.Name, t.Dir), Hints: []team.Hint{{Action: team.ActResume, Team: t.ID}}})
		}
	}
}
