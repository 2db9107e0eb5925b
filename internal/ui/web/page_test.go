package web

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestVendored compares the vendored files with the sums beside them. There must be a licence.
func TestVendored(t *testing.T) {
	sums, err := fs.ReadFile(page, "page/vendor/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for line := range strings.Lines(string(sums)) {
		sum, name, is := strings.Cut(strings.TrimSpace(line), "  ")
		if !is {
			t.Fatalf("%q is not a sum and a name", line)
		}
		known[name] = sum
	}
	files, err := fs.Glob(page, "page/vendor/*.js")
	if err != nil || len(files) != len(known) {
		t.Fatalf("%d files, and sums of %d: %v", len(files), len(known), err)
	}
	for _, file := range files {
		data, err := fs.ReadFile(page, file)
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%x", sha256.Sum256(data)); got != known[path.Base(file)] {
			t.Errorf("%s has the sum %s", file, got)
		}
	}
	licences, err := fs.ReadFile(page, "page/vendor/LICENSES.txt")
	if err != nil || !strings.Contains(string(licences), "MIT License") {
		t.Errorf("the licences: %v", err)
	}
}

// TestPage: every file is served with its media type and a policy that allows nothing from
// elsewhere. A file that did not change is not sent again.
func TestPage(t *testing.T) {
	h := (&Board{}).Page()
	get := func(at string, header ...string) *httptest.ResponseRecorder {
		r, w := httptest.NewRequest("GET", at, nil), httptest.NewRecorder()
		if len(header) > 0 {
			r.Header.Set(header[0], header[1])
		}
		h.ServeHTTP(w, r)
		return w
	}
	err := fs.WalkDir(page, "page", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || path.Base(name) == "SHA256SUMS" {
			return err
		}
		at := "/assets/" + strings.TrimPrefix(name, "page/")
		w := get(at)
		if w.Code != http.StatusOK || w.Header().Get("Content-Type") == "" {
			t.Errorf("%s: %d, %v", at, w.Code, w.Header())
		}
		if p := w.Header().Get("Content-Security-Policy"); p != policy || strings.Contains(p, "unsafe") {
			t.Errorf("%s: the policy is %q", at, p)
		}
		again := get(at, "If-None-Match", w.Header().Get("ETag"))
		if again.Code != http.StatusNotModified || again.Body.Len() > 0 {
			t.Errorf("%s again: %d", at, again.Code)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if w := get("/"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `src="/assets/app.js"`) {
		t.Errorf("the page: %d", w.Code)
	}
	for _, at := range []string{"/assets/none.js", "/assets/../page.go", "/assets/%2e%2e/page.go", "/assets/",
		"/assets/vendor"} {
		if w := get(at); w.Code != http.StatusNotFound {
			t.Errorf("%s: %d", at, w.Code)
		}
	}
}

// TestNoMarkup: no module can turn a text into markup, or run one.
func TestNoMarkup(t *testing.T) {
	files, err := fs.Glob(page, "page/*.js")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	never := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacent|document\.write|dangerously|srcdoc|\beval\(|` +
		`new Function|javascript:`)
	for _, file := range files {
		data, err := fs.ReadFile(page, file)
		if err != nil {
			t.Fatal(err)
		}
		if found := never.FindString(string(data)); found != "" {
			t.Errorf("%s has %s", file, found)
		}
	}
}
