package board

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/layout"
	"cadre/internal/team"
	"cadre/internal/testkit/historytest"
)

// TestLive: a page that is open shows what a team does as it happens, with the session of a member, and what was
// changed for its task.
func TestLive(t *testing.T) {
	w := serve(t)
	b := browse(t, 1400, 900)
	b.login(w, "")
	b.shows("No team is running.")
	for _, args := range [][]string{{"init", "-q"}, {"-c", "user.name=Ann", "-c", "user.email=ann@mail.example",
		"commit", "-q", "--allow-empty", "-m", "begin"}} {
		git := exec.Command("git", args...)
		git.Dir = w.dir
		if out, err := git.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	w.cadre("create", "port", "--goal", "port the parser")
	b.shows("port the parser")
	b.login(w, "#team=port&member=w")
	b.shows("1 record")
	w.cadre("spawn", "port", "w", "--agent", "shell", "--isolation", "worktree")
	b.shows("Message to w")
	w.cadre("task", "add", "port", "Write the new file", "--run", "echo hello from the task; echo a new line >new.txt")
	b.shows("hello from the task")
	b.until(`document.querySelectorAll(".column.completed .task").length === 1`)
	b.login(w, "#team=port&task=1")
	b.expects("/tasks/1/diff") // the page may ask before the work of the task is recorded
	b.press("Show changes")
	b.shows("+a new line")
	b.press("Actions")
	b.press("Consolidate …")
	b.until(`[...document.querySelectorAll("dialog .paths li")].some(e => e.innerText.includes("new.txt"))`)
	b.press("Check and commit")
	b.shows("Committed as ")
	b.shows("complete")
	if text, err := os.ReadFile(filepath.Join(w.dir, "new.txt")); err != nil || string(text) != "a new line\n" {
		t.Errorf("the file has %q: %v", text, err)
	}
}

// TestSince: a page says what happened since a person last looked at the team, on any screen.
func TestSince(t *testing.T) {
	w := serve(t, billing(t))
	b := browse(t, 1200, 800)
	b.login(w, "#team=billing")
	b.shows("77 records")
	b.press("All teams")
	b.until("document.querySelector('main.teams')")
	w.cadre("task", "done", "billing", "refunds", "--as", "ann", "--result", "moved")
	b.login(w, "#team=billing")
	b.shows("Since you last looked")
	b.until(`document.querySelector(".since li").innerText.includes("refunds")`)
	js[bool](b, `[...document.querySelectorAll(".since button")].find(e => e.innerText === "Compare").click(), true`)
	b.until(`location.hash.includes("with=77")`)
	b.until(`!document.querySelector(".since")`)
	b.until(`document.querySelector(".compare .changes")?.innerText.includes("refunds")`)
}

// TestSlider moves through a long history as fast as the page draws. Each moment that it rests on is the one of
// the server.
func TestSlider(t *testing.T) {
	h := historytest.Long(3_000, 300)
	w := serveHistory(t, h)
	b := browse(t, 1400, 900)
	b.login(w, "#team=core")
	b.shows(" records")
	for _, seq := range []int{2_500, 17, 1_000, 1_001, 2_999, 1, 1_500} {
		slide(b, ".rail input", seq)
		b.shows(fmt.Sprintf("after record %d.", seq))
		var state struct{ Tasks []team.Task }
		got := js[string](b, fmt.Sprintf(`fetch("/v1/teams/core?seq=%d").then(r => r.text())`, seq))
		if err := json.Unmarshal([]byte(got), &state); err != nil {
			t.Fatal(err)
		}
		b.until(fmt.Sprintf(`document.querySelector(".tasks .head .n").innerText === "%d"`, len(state.Tasks)))
	}
	b.until(`location.hash.includes("seq=1500")`)
}

// serveHistory starts a server with that history as the team core.
func serveHistory(t testing.TB, h *historytest.Team) *world {
	t.Helper()
	if chromium == "" {
		t.Skip("no Chromium is installed")
	}
	home := t.TempDir()
	id := "core-" + strings.ToLower(rand.Text()) // as an engine makes ids
	h.Records[0].Events[0].(*team.TeamCreated).Team.ID = id
	if _, err := (layout.Home{Root: home}).Found("core", id, h.Encoded()); err != nil {
		t.Fatal(err)
	}
	return serveAt(t, home)
}

// TestManyPages: more pages than a browser opens connections to a host are visible at a time. Each
// follows all teams, a team and the session of a member, and can ask for more.
func TestManyPages(t *testing.T) {
	w := serve(t)
	first := browse(t, 1000, 700)
	w.cadre("create", "port", "--goal", "port the parser")
	w.cadre("spawn", "port", "w", "--agent", "shell")
	pages := []*tab{first}
	for range 7 {
		pages = append(pages, first.another())
	}
	for _, b := range pages {
		b.login(w, "#team=port&member=w")
		b.shows("Message to w")
	}
	w.cadre("task", "add", "port", "Say hello", "--run", "echo hello from the task")
	for i, b := range pages {
		b.shows("hello from the task")
		b.until(`document.querySelectorAll(".column.completed .task").length === 1`)
		if state := js[string](b, "document.visibilityState"); state != "visible" {
			t.Errorf("page %d is %s", i, state)
		}
		if status := js[int](b, `fetch("/v1/teams").then(r => r.status)`); status != 200 {
			t.Errorf("page %d gets %d", i, status)
		}
	}
}
