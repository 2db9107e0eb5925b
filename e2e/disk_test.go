package e2e

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// filesOfThePage returns an expression for each path in docs/architecture/disk.md that is in
// cadre's own folder.
func filesOfThePage(t *testing.T) (all []*regexp.Regexp) {
	t.Helper()
	text, err := os.ReadFile("../docs/architecture/disk.md")
	if err != nil {
		t.Fatal(err)
	}
	page, _, _ := strings.Cut(string(text), "\nOutside:\n")
	ofTeam, elsewhere, found := strings.Cut(page, "\nElsewhere in `<home>`:\n")
	if !found {
		t.Fatal("the page does not say what is elsewhere in the folder")
	}
	path, part := regexp.MustCompile("`([^`]+)`"), regexp.MustCompile(`<[^>]*>|…`)
	add := func(tables, prefix string) {
		for line := range strings.Lines(tables) {
			if !strings.HasPrefix(line, "| `") {
				continue
			}
			before := ""
			for _, m := range path.FindAllStringSubmatch(strings.Split(line, " | ")[0], -1) {
				name := m[1]
				if strings.HasPrefix(name, ".") { // another ending of the path before
					name = strings.TrimSuffix(before, filepath.Ext(before)) + name
				}
				before = name
				pattern := part.ReplaceAllString(strings.ReplaceAll(name, ".", `\.`), `[^/]+`)
				if strings.HasSuffix(name, "/") || strings.HasSuffix(name, "…") {
					pattern += ".*"
				}
				all = append(all, regexp.MustCompile("^"+prefix+pattern+"$"))
			}
		}
	}
	add(ofTeam, "teams/[^./][^/]*/")
	add(elsewhere, "")
	return all
}

// TestFilesOnThePage checks that docs/architecture/disk.md has each file that a team and a server
// write into cadre's folder.
func TestFilesOnThePage(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	receiver := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(receiver.Close)
	w.env = append(w.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+receiver.URL, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf")
	w.must("serve", "token", "add", "phone", "--role", "answer")
	w.serve("--listen", "127.0.0.1:0")
	w.must("run", "--template", "hello")
	w.must("create", "demo")
	w.must("send", "demo", "--to", "lead", "hello")
	eventually(t, "the spans of a team are sent", func() bool {
		sent, err := filepath.Glob(filepath.Join(w.home, "server", "traces", "*.json"))
		return err == nil && len(sent) > 0
	})

	described := filesOfThePage(t)
	temporary := regexp.MustCompile(`\.tmp|/\.[^/]*$`)
	checked := 0
	err := filepath.WalkDir(w.home, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		name, err := filepath.Rel(w.home, path)
		if checked++; !temporary.MatchString(name) &&
			!slices.ContainsFunc(described, func(p *regexp.Regexp) bool { return p.MatchString(name) }) {
			t.Errorf("docs/architecture/disk.md does not have %s", name)
		}
		return err
	})
	if err != nil || checked < 15 {
		t.Errorf("%d files were checked: %v", checked, err)
	}
}
