package web

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"cadre/internal/engine"
	"cadre/internal/inspect/history"
	"cadre/internal/layout"
	"cadre/internal/team"
	"cadre/internal/testkit/historytest"
)

// opened writes the history to a home, and opens the team.
func opened(t testing.TB, h *historytest.Team) *engine.Team {
	t.Helper()
	root := t.TempDir()
	if _, err := (layout.Home{Root: root}).Found("core", "t1", h.Encoded()); err != nil {
		t.Fatal(err)
	}
	e := &engine.Engine{Home: layout.Home{Root: root}, Log: func(string) {}, Advise: func(team.Advice) {}}
	of, err := e.Look(t.Context(), "core")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { of.Close() })
	return of
}

// unpacked returns the data of an exported file.
func unpacked(t testing.TB, file string) (all map[string]any) {
	t.Helper()
	found := regexp.MustCompile(`id="data">([^<]*)</script>`).FindStringSubmatch(file)
	if found == nil {
		t.Fatal("the file has no data")
	}
	z, err := gzip.NewReader(base64.NewDecoder(base64.StdEncoding, strings.NewReader(found[1])))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(z)
	if err == nil {
		err = json.Unmarshal(data, &all)
	}
	if err != nil {
		t.Fatal(err)
	}
	return all
}

const secret = "sk-ant-api03-Zq8mV3nB7xC1kL5pR9tY2wE6uI0oA4sD8fG3hJ7kQ1zX5cV9bN2mM6qW0eR4tY8uI3oP7aS1dF5gH9jK-LqWnAAA"

// TestExport: the file has the state after each record and no secret, and its script and style are
// the ones that its policy names.
func TestExport(t *testing.T) {
	h := historytest.Long(300, 20)
	h.Do("lead", &team.CreateTask{Subject: "rotate the key", Description: "it is " + secret})
	h.Do("lead", &team.SendMessage{To: "worker-0", Body: "export ANTHROPIC_API_KEY=" + secret})
	h.Do("worker-0", &team.SetNote{Key: "login", Text: "log in with " + secret})
	h.Do("lead", &team.DeleteNote{Key: "login"})
	h.Do("lead", &team.SetNote{Key: "plan", Text: "first the parser"})
	of := opened(t, h)
	var b bytes.Buffer
	if _, err := export(t.Context(), &b, of, "test"); err != nil {
		t.Fatal(err)
	}
	file := b.String()
	all := unpacked(t, file)
	packed, _ := json.Marshal(all)
	if strings.Contains(string(packed), secret[:30]) || strings.Contains(file, secret[:30]) {
		t.Error("the file has the secret")
	}
	patches := all["patches"].([]any)
	if len(patches) != len(h.Records) {
		t.Fatalf("%d patches of %d records", len(patches), len(h.Records))
	}
	var state any
	for _, p := range patches {
		state = merge(state, p)
	}
	want := h.State.Count(team.Pending) + h.State.Count(team.InProgress) + h.State.Count(team.Completed)
	if got := len(state.(map[string]any)["tasks"].(map[string]any)); got != want {
		t.Errorf("%d tasks, not %d", got, want)
	}
	notes := state.(map[string]any)["notes"].(map[string]any)
	if plan, is := notes["plan"].(map[string]any); len(notes) != 1 || !is || plan["begin"] != "first the parser" {
		t.Errorf("the notes are %v", notes)
	}
	if changes := all["notes"].(map[string]any); len(changes) != 2 || len(changes["login"].([]any)) != 2 {
		t.Errorf("the changes of notes are %v", changes)
	}
	for _, kind := range []string{"style", "script type=\"module\""} {
		_, rest, _ := strings.Cut(file, "<"+kind+">")
		text, _, _ := strings.Cut(rest, "</"+strings.Fields(kind)[0]+">")
		if text == "" || !strings.Contains(file, "'"+sumOf(text)+"'") {
			t.Errorf("the policy does not have the sum of the %s", kind)
		}
	}
	_, script, _ := strings.Cut(file, `<script type="module">`)
	script, _, _ = strings.Cut(script, "</script>")
	if node, err := exec.LookPath("node"); err == nil {
		c := exec.Command(node, "--check", "--input-type=module", "-")
		c.Stdin = strings.NewReader(script)
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
	}
	if found := regexp.MustCompile(`(?m)^\s*(import|export)\b.*`).FindString(file); found != "" {
		t.Errorf("the file has %q", found)
	}
}

// TestExportSize: a history of 20,000 records has room in 10 MB.
func TestExportSize(t *testing.T) {
	if testing.Short() {
		t.Skip("it makes a long history")
	}
	h := historytest.Long(20_000, 2_000)
	of := opened(t, h)
	var b bytes.Buffer
	if _, err := export(t.Context(), &b, of, "test"); err != nil {
		t.Fatal(err)
	}
	if b.Len() > 10<<20 {
		t.Errorf("%d records take %d bytes", len(h.Records), b.Len())
	}
	t.Logf("%d records take %d bytes", len(h.Records), b.Len())
}

// TestProject: the page makes the states that package team has, from the patches, also where it
// jumps, and where it shows a state nearby.
func TestProject(t *testing.T) {
	h := historytest.Long(2_300, 60)
	s, k, far := empty(), newTracker(), newTracker()
	var patches, overview []json.RawMessage
	states := map[int64]json.RawMessage{}
	for i, r := range h.Records {
		s.Apply(r)
		patches = append(patches, encoded(k.update(s, r)))
		if r.Seq%97 == 0 || r.Seq%256 < 2 {
			states[r.Seq] = encoded(k.whole(r.Seq, r.At))
		}
		if r.Seq%8 == 0 {
			overview = append(overview, encoded(far.update(s, h.Records[i-7:i+1]...)))
		}
	}
	said := node(t, "film.js", map[string]any{"patches": patches, "states": states, "far": overview})
	if said != "the same\n" {
		t.Error(said)
	}
}

// TestNoteTexts: the page makes the texts of notes that the program has, from their changes.
func TestNoteTexts(t *testing.T) {
	h := historytest.New()
	for i := range 40 {
		key := []string{"plan", "decisions/api"}[i%2]
		switch i % 7 {
		case 0:
			h.Do("lead", &team.SetNote{Key: key, Text: fmt.Sprint("number ", i, []string{"", "\n"}[i%3%2])})
		case 5:
			h.Do("lead", &team.DeleteNote{Key: key})
		default:
			h.Do("lead", &team.AppendNote{Key: key, Text: fmt.Sprint("and ", i)})
		}
	}
	changes, err := history.AllNoteChanges(each(h.Records))
	if err != nil {
		t.Fatal(err)
	}
	texts, some := map[string]map[int64]string{}, 0
	for key, all := range changes {
		texts[key] = map[int64]string{}
		for _, c := range all {
			if c.How != history.NoteDeleted {
				n, err := history.NoteAt(each(h.Records), key, c.Seq)
				if err != nil {
					t.Fatal(err)
				}
				texts[key][c.Seq] = n.Text
				some++
			}
		}
	}
	if said := node(t, "notes.js", map[string]any{"changes": changes, "texts": texts}); said != "the same\n" ||
		some < 30 {
		t.Errorf("%s, of %d texts", said, some)
	}
}

// node runs a script of testdata beside the page's modules, with the data in data.json. It returns
// what the script prints.
func node(t *testing.T, script string, data any) string {
	t.Helper()
	program, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed")
	}
	dir := t.TempDir()
	if err := os.CopyFS(dir, page); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", script))
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"main.js": text, "data.json": encoded,
		"package.json": []byte(`{"type": "module"}`)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := exec.Command(program, "main.js")
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}
