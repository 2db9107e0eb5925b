package api

import (
	_ "embed"
	"encoding/json"
	"reflect"

	"cadre/internal/server/auth"
)

// OpenAPI is the description of the API, in the form of OpenAPI 3.1. A test makes it of the routes.
//
//go:embed openapi.json
var OpenAPI []byte

var descriptionRoutes = []Route{
	{Method: "GET", Path: "/v1/openapi.json", ID: "getDescription", Command: "schema", Role: auth.Observe,
		About: "Show the OpenAPI description of the API.", Answer: reflect.TypeFor[map[string]json.RawMessage](),
		handle: (*call).getDescription},
}

func (c *call) getDescription() (any, error) {
	c.w.Header().Set("Content-Type", "application/json")
	c.w.Write(OpenAPI)
	return nil, answered
}
