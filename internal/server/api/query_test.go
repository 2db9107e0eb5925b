package api_test

import (
	"strings"
	"testing"

	"cadre/internal/server/api"
)

// TestQueryRefused: a parameter that a route does not take, and a value that makes no sense, are
// named in a refusal.
func TestQueryRefused(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.create()
	for at, names := range map[string]string{
		"?seq=0":                     "seq=0 is before the first record",
		"?seq=":                      "seq= is not a number",
		"?seq=-1":                    "seq=-1 is not a number",
		"?sequence=1":                "sequence= is not a parameter of this address, which takes seq=",
		"/events?afer=1":             "afer= is not a parameter",
		"/records?after=1&Kind=task": "Kind= is not a parameter",
		"/status?verbose":            "verbose= is not a parameter of this address, which takes none",
		"/status?as=ann":             "as= is not a parameter",
		"/records?limit=0":           "limit=0",
		"/messages?limit=0":          "limit=0",
		"?seq=%zz":                   "the query of the address cannot be read",
		"/records?after=1;limit=1":   "the query of the address cannot be read",
		"?seq=1&seq=2":               "seq= is given 2 times",
		"/messages?unread=1":         "unread=1 is not true or false",
		"/messages?unread=":          "unread= is not true or false",
	} {
		if is := l.refused(400, "usage", "GET", demo+at, nil); !strings.Contains(is.Detail, names) {
			t.Errorf("%s: %s", at, is.Detail)
		}
	}
	for _, r := range api.Routes() {
		path := strings.NewReplacer("{team}", "demo", "{member}", "lead", "{task}", "1", "{request}", "1", "{hook}",
			"1").
			Replace(r.Path)
		var body any
		if r.Body != nil {
			body = map[string]any{}
		}
		is := l.send(r.Method, path+"?no-such-parameter=1", body)
		if is.status != 400 || !strings.Contains(string(is.body), "no-such-parameter= is not a parameter") {
			t.Errorf("%s %s: %d %s", r.Method, r.Path, is.status, is.body)
		}
	}
}
