package api

import (
	"reflect"

	"cadre/internal/engine"
	"cadre/internal/server/auth"
	"cadre/internal/team"
)

var searchRoutes = []Route{
	{Method: "GET", Path: "/v1/search", ID: "search", Command: "search", Role: auth.Observe,
		About: "Find words in the texts of one team, or of all with the archived runs.",
		Query: []Param{{"q", "string", "the words; those in quotation marks follow each other"},
			{"team", "string", "only this team"},
			{"kind", "array", "only texts of this kind: message, result, note, report or task; may be repeated"},
			{"member", "array", "only what this member wrote or got; may be repeated"},
			{"task", "array", "only texts of this task of the team, and messages about it; may be repeated"},
			{"since", "integer", "no earlier texts, in milliseconds since 1970"},
			{"until", "integer", "no later texts, in milliseconds since 1970"},
			pageLimit},
		Answer: reflect.TypeFor[[]engine.Found](), handle: (*call).search},
}

func (c *call) search() (any, error) {
	query := c.URL.Query()
	q := engine.Search{Team: query.Get("team"), TaskRefs: query["task"], Texts: query["kind"]}
	q.Words, q.Members = engine.WordsOf(query.Get("q")), query["member"]
	since, err := c.number("since", 0)
	if err != nil {
		return nil, err
	}
	until, err := c.number("until", 0)
	if err != nil {
		return nil, err
	}
	if q.Last, err = c.limit(); err != nil {
		return nil, err
	}
	q.Since, q.Until = team.Time(since), team.Time(until)
	found := []engine.Found{}
	for f, err := range c.engine.Search(c.Context(), q) {
		if err != nil {
			return nil, err
		}
		found = append(found, f)
	}
	return found, nil
}
