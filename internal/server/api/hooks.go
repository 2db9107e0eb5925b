package api

import (
	"bytes"
	"encoding/json"
	"reflect"

	"cadre/internal/engine"
	"cadre/internal/server/auth"
	"cadre/internal/team"
)

// Hooks are the hooks of a team.
type Hooks struct {
	Team  string        `json:"team"`            // name of the team
	Dir   string        `json:"dir"`             // the project
	Hooks []engine.Hook `json:"hooks"`           // in the order in which they run
	Notes []string      `json:"notes,omitempty"` // what is wrong with the settings files
}

// HookInput is what a hook that is tried reads.
type HookInput struct {
	Event json.RawMessage `json:"event,omitempty"` // what it reads on its standard input; a made-up event by default
}

var hookRoutes = []Route{
	{Method: "GET", Path: "/v1/teams/{team}/hooks", ID: "listHooks", Command: "hooks", Role: auth.Observe,
		About: "List the hooks of a team.", Answer: reflect.TypeFor[Hooks](), handle: (*call).listHooks},
	{Method: "POST", Path: "/v1/teams/{team}/hooks/{hook}/disable", ID: "disableHook", Command: "hooks disable",
		Role:  auth.Admin,
		Query: []Param{pageAs}, About: "Switch a hook off for the team.", Answer: reflect.TypeFor[engine.Hook](),
		handle: (*call).disableHook},
	{Method: "POST", Path: "/v1/teams/{team}/hooks/{hook}/enable", ID: "enableHook", Command: "hooks enable",
		Role:  auth.Admin,
		Query: []Param{pageAs}, About: "Switch a hook of the team on again.", Answer: reflect.TypeFor[engine.Hook](),
		handle: (*call).enableHook},
	{Method: "POST", Path: "/v1/teams/{team}/hooks/{hook}/try", ID: "tryHook", Command: "hooks try", Role: auth.Admin,
		About: "Run a hook once, and show what it answers. Nothing changes in the team.",
		Body:  reflect.TypeFor[HookInput](), Answer: reflect.TypeFor[engine.HookTrial](), handle: (*call).tryHook},
}

func (c *call) hooks() (engine.HookList, error) {
	t, err := c.look()
	if err != nil {
		return engine.HookList{}, err
	}
	return t.ListHooks()
}

func (c *call) listHooks() (any, error) {
	list, err := c.hooks()
	return Hooks{list.Team.Name, list.Dir, listed(list.Hooks), list.Notes}, err
}

func (c *call) disableHook() (any, error) { return c.switchHook(true) }

func (c *call) enableHook() (any, error) { return c.switchHook(false) }

func (c *call) switchHook(off bool) (hook engine.Hook, err error) {
	actor, err := c.actor()
	if err != nil {
		return hook, err
	}
	list, err := c.hooks()
	if err == nil {
		hook, err = list.Find(c.PathValue("hook"))
	}
	if err != nil {
		return hook, err
	}
	err = c.actAs(actor, func(*team.State) (team.Body, error) { return hook.Switch(off), nil },
		makes(func(e *team.HookSwitched) bool { return e.ID == hook.ID && e.Off == off }),
		func(t *engine.Team, _ *team.Record) error {
			list, err := t.ListHooks()
			if err != nil {
				return err
			}
			if now, err := list.Find(hook.ID); err == nil { // one that is not set up any more is gone once it is on
				hook = now
			}
			return nil
		})
	return hook, err
}

func (c *call) tryHook() (any, error) {
	list, err := c.hooks()
	if err != nil {
		return nil, err
	}
	hook, err := list.Find(c.PathValue("hook"))
	if err != nil {
		return nil, err
	}
	if event := c.body.(*HookInput).Event; event != nil {
		return list.TryWith(c.Context(), hook, "-", bytes.NewReader(event))
	}
	return list.Try(c.Context(), hook, list.Sample(hook))
}
