package api

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"reflect"
	"testing"
	"unicode/utf8"
)

// FuzzBody: the body of every route that takes one is read as what it says, or refused in words.
// What is read can be written and read again, and is the same.
func FuzzBody(f *testing.F) {
	var routes []Route
	for _, r := range Routes() {
		if r.Body != nil {
			routes = append(routes, r)
		}
	}
	for i, r := range routes {
		sample, err := json.Marshal(reflect.New(r.Body).Interface())
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint(i), "application/json", sample)
		for _, odd := range []string{"", "{}", "[]", "null", `{"a":1}`, "{} {}", "\xff", `{"reason":"\ud800"}`,
			`{"prompt":7}`} {
			f.Add(uint(i), "application/json; charset=utf-8", []byte(odd))
		}
	}
	f.Add(uint(0), "text/plain", []byte("{}"))
	f.Add(uint(0), "application/json; =", []byte("{}"))
	f.Fuzz(func(t *testing.T, n uint, kind string, data []byte) {
		route := routes[n%uint(len(routes))]
		read := func(kind string, data []byte) (any, error) {
			r := httptest.NewRequest(route.Method, "/", bytes.NewReader(data))
			r.Header.Set("Content-Type", kind)
			body := reflect.New(route.Body).Interface()
			return body, (&call{Request: r, w: httptest.NewRecorder(), route: route}).decode(body)
		}
		body, err := read(kind, data)
		if err != nil {
			if p := ProblemOf(err); p.Status != 400 && p.Status != 413 || p.Detail == "" ||
				len(p.Detail) > 2000+len(data) {
				t.Errorf("%s: %q is refused with %+v", route.ID, data, p)
			}
			return
		}
		if route.Flags != nil {
			route.Flags(body)
		}
		again, err := json.Marshal(body)
		if err != nil || !utf8.Valid(again) {
			t.Fatalf("%s: %q cannot be written again: %v", route.ID, data, err)
		}
		same, err := read("application/json", again)
		if err != nil {
			t.Fatalf("%s: %q is written as %q, which is refused: %v", route.ID, data, again, err)
		}
		if twice, err := json.Marshal(same); err != nil || !bytes.Equal(twice, again) {
			t.Errorf("%s: %q is read as %q, and then as %q: %v", route.ID, data, again, twice, err)
		}
	})
}
