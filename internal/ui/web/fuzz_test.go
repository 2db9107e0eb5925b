package web

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"cadre/internal/engine"
	"cadre/internal/layout"
	"cadre/internal/server/api"
	"cadre/internal/server/auth"
	"cadre/internal/team"
	"cadre/internal/testkit/historytest"
)

// FuzzBoard: whatever follows /board/, and whatever the body is, the answer is JSON, and no refusal
// is an error of the server.
func FuzzBoard(f *testing.F) {
	h := historytest.New()
	h.Do("lead", &team.CreateTask{Subject: "mend the test", Name: "mend"})
	home := layout.Home{Root: f.TempDir(), Claude: f.TempDir()}
	if _, err := home.Found("core", "t1", h.Encoded()); err != nil {
		f.Fatal(err)
	}
	b := &Board{Engine: &engine.Engine{Home: home, Log: func(string) {}, Advise: func(team.Advice) {},
		Shared: &engine.Shared{}}}
	data := b.Data()
	for _, one := range api.Besides() {
		if path, is := strings.CutPrefix(one.Path, "/board/"); is && !strings.HasPrefix(one.ID, "open") {
			path = strings.NewReplacer("{team}", "core", "{task}", "1").Replace(path)
			f.Add(one.Method == http.MethodPost, path, "", []byte(`{"seq":1}`))
			for _, p := range one.Query {
				for _, value := range []string{"", "0", "1", "-1", "99", "x", "1125899906842624",
					"99999999999999999999"} {
					f.Add(false, path, p.Name+"="+value, []byte(nil))
				}
			}
		}
	}
	f.Add(false, "teams/../../etc/passwd/log", "", []byte(nil))
	f.Add(false, "teams/..%2f..%2fetc/log", "", []byte(nil))
	f.Add(false, "teams/core/tasks/%00", "", []byte(nil))
	f.Add(false, "teams/.core/states", "after=0&every=1&base=true", []byte(nil))
	f.Add(true, "commands", "", []byte(`[{"action":"resume","team":"; rm"}]`))
	f.Fuzz(func(t *testing.T, posts bool, path, query string, body []byte) {
		at, err := url.ParseRequestURI("/board/" + path + "?" + query)
		if err != nil {
			return
		}
		r := httptest.NewRequest(http.MethodGet, "/", strings.NewReader(string(body)))
		r.URL, r.RequestURI = at, at.String()
		if r.Header.Set("Content-Type", "application/json"); posts {
			r.Method = http.MethodPost
		}
		w := httptest.NewRecorder()
		data.ServeHTTP(w, r.WithContext(auth.With(t.Context(), auth.Principal{Role: auth.Admin})))
		kind := w.Header().Get("Content-Type")
		if w.Code >= 500 || strings.HasPrefix(kind, "application/") && !json.Valid(w.Body.Bytes()) {
			t.Errorf("%s %s %q: %d %s %.500s", r.Method, at, body, w.Code, kind, w.Body)
		}
		if strings.Contains(w.Body.String(), home.Root) && w.Code != 200 {
			t.Errorf("%s %s: the refusal has a path: %s", r.Method, at, w.Body)
		}
	})
}
