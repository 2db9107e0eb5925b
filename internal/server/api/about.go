package api

import (
	"path/filepath"
	"reflect"
	"slices"

	"cadre/internal/server/auth"
	"cadre/internal/server/supervisor"
)

// Health says whether the server answers.
type Health struct {
	Healthy bool   `json:"healthy"` // it answers
	Version string `json:"version"` // version of the program
}

// Caller is who sends the request, as the server sees it.
type Caller struct {
	User   bool   `json:"user"`             // the person who owns the home
	Team   string `json:"team,omitempty"`   // for a member: its team
	Member string `json:"member,omitempty"` // for a member: its name
	Role   string `json:"role"`             // for the user: observe, answer, steer or admin
	Token  string `json:"token,omitempty"`  // name of the token; missing on the unix socket
}

var serverRoutes = []Route{
	{Method: "GET", Path: "/v1/health", ID: "getHealth", Command: "version", Role: auth.Observe,
		About: "Say that the server answers.", Answer: reflect.TypeFor[Health](), handle: (*call).getHealth},
	{Method: "GET", Path: "/v1/caller", ID: "getCaller", Command: "version", Role: auth.Observe,
		About: "Say who sends the request.", Answer: reflect.TypeFor[Caller](), handle: (*call).getCaller},
	{Method: "GET", Path: "/v1/server/teams", ID: "listKept", Command: "ls", Role: auth.Observe,
		About:  "List the teams that the server keeps running.",
		Answer: reflect.TypeFor[[]supervisor.Team](), handle: (*call).listKept},
	{Method: "PUT", Path: "/v1/server/teams/{team}", ID: "keepTeam", Command: "serve", Role: auth.Steer,
		About:  "Keep a team running that another process has just started.",
		handle: (*call).keepTeam},
	{Method: "DELETE", Path: "/v1/server/teams/{team}", ID: "dropTeam", Command: "serve", Role: auth.Steer,
		About:  "Keep a team running no longer. It is not stopped.",
		handle: (*call).dropTeam},
}

func (c *call) getHealth() (any, error) { return Health{true, c.server.Version}, nil }

func (c *call) getCaller() (any, error) {
	return Caller{c.who.IsUser(), c.who.Team(), c.who.Member(), c.who.Role.String(), c.who.Token}, nil
}

// listKept lists the teams that the caller may reach.
func (c *call) listKept() (any, error) {
	return slices.DeleteFunc(c.server.Keeps.Teams(), func(k supervisor.Team) bool {
		return !c.who.IsUser() && c.who.Reach(c.folder(k.ID)) != nil
	}), nil
}

// folder returns the name of the folder of a team; "" for none.
func (c *call) folder(id string) string {
	dir, err := c.server.Engine.Home.Folder(id)
	if err != nil {
		return ""
	}
	return filepath.Base(dir)
}

func (c *call) keepTeam() (any, error) {
	of, err := c.engine.Glance(c.Context(), c.PathValue("team"))
	if err != nil {
		return nil, err
	}
	return nil, c.server.Keeps.Keep(of)
}

func (c *call) dropTeam() (any, error) {
	of, err := c.engine.Glance(c.Context(), c.PathValue("team"))
	if err != nil {
		return nil, err
	}
	return nil, c.server.Keeps.Drop(of.ID)
}
