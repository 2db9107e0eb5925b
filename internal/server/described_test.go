package server

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"cadre/internal/server/api"
)

// TestDescribedAddresses: the server answers every address that the description has, and refuses
// parameters that the address does not take.
func TestDescribedAddresses(t *testing.T) {
	said := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "here is "+r.URL.Path) })
	w := running(t, func(o *Options) { o.Page, o.Data = said, said })
	var d struct {
		Paths map[string]map[string]struct {
			OperationID string `json:"operationId"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(api.OpenAPI, &d); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/metrics", "/ws", "/login", "/v1/asyncapi.json", "/board/teams", "/", "/v1/teams"} {
		if d.Paths[path] == nil {
			t.Errorf("%s is not described", path)
		}
	}
	for path, methods := range d.Paths {
		at := strings.NewReplacer("{", "", "}", "").Replace(path)
		for method, is := range methods {
			r, text := w.send(strings.ToUpper(method), at+"?no-such-parameter=1", map[string]any{})
			if strings.HasPrefix(is.OperationID, "getPage") { // an address of a page may carry anything
				if text != "here is "+at {
					t.Errorf("%s: %d %s", at, r.StatusCode, text)
				}
			} else if r.StatusCode != 400 || !strings.Contains(text, "no-such-parameter= is not a parameter") {
				t.Errorf("%s %s: %d %s", method, at, r.StatusCode, text)
			}
		}
	}
	for at, want := range map[string]string{"/metrics": "cadre_tasks", "/v1/asyncapi.json": `"asyncapi"`,
		"/board/teams": "here is", "/board/else": "here is", "/login?code=x": "code", "/ws": "", "/board/streams": "",
		"/board/events": "at= must name"} {
		if r, text := w.send("GET", at, nil); r.StatusCode == 404 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %.200s", at, r.StatusCode, text)
		}
	}
}
