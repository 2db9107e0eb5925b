package board

import (
	"fmt"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"cadre/internal/team"
)

// noted is a team with two notes, of which one was changed, and one more that was deleted.
func noted(t testing.TB) *story {
	s := newStory(t, "noted", "Agree on the interface")
	s.do(team.User, &team.SpawnMember{Name: "ann", Agent: team.External})
	s.do("ann", &team.SetNote{Key: "decisions/api", Text: "Errors are JSON."})
	s.do(team.User, &team.AppendNote{Key: "decisions/api", Text: "They have a code."})
	s.do("ann", &team.SetNote{Key: "wrong", Text: "The cache is fresh after a restart."})
	s.do("ann", &team.DeleteNote{Key: "wrong"})
	s.do("ann", &team.SetNote{Key: "tried", Text: "A cache: stale after a restart."})
	return s
}

// TestNotes reads, changes and deletes notes on the board. An edit that is based on an older change
// is not saved over a later one.
func TestNotes(t *testing.T) {
	w := serve(t, noted(t))
	b := browse(t, 1300, 900)
	text := func(is string) {
		t.Helper()
		b.until(fmt.Sprintf(`(document.querySelector(".sheet .text") || {}).innerText === %q`, is))
	}
	b.login(w, "#team=noted")
	b.press("Notes 2")
	b.shows("A cache: stale after a restart.")
	b.press("Show change 5")
	js[bool](b, `[...document.querySelectorAll(".thread")].find(e => e.innerText.includes("decisions/api")).click(), true`)
	b.shows("Errors are JSON.\nThey have a code.")
	b.shows("set first by")
	b.press("Show change 1")
	b.shows("As it was after change 1.")
	text("Errors are JSON.")
	b.press("Show it as it is now")
	b.shows("Errors are JSON.\nThey have a code.")

	b.press("Edit")
	b.fill("#note-text", "Errors are text.")
	w.cadre("note", "append", "noted", "decisions/api", "Codes are short.", "--as", "ann")
	b.expects("409")
	b.press("Save")
	b.shows("changed it meanwhile")
	b.shows("Codes are short.")
	if now := w.cadre("note", "get", "noted", "decisions/api"); strings.Contains(now, "Errors are text.") {
		t.Fatalf("a later change was overwritten: %s", now)
	}
	b.until(`(document.querySelector("#note-text") || {}).value === "Errors are text."`)
	b.fill("#note-text", "Errors are text.\nCodes are short.")
	b.press("Save")
	b.shows("The note is set.")
	text("Errors are text.\nCodes are short.")
	b.fill("#addition", "Always.")
	b.press("Add")
	text("Errors are text.\nCodes are short.\nAlways.")
	if log := w.cadre("note", "log", "noted", "decisions/api"); strings.Count(log, "user") != 3 {
		t.Errorf("the changes are\n%s", log)
	}

	b.press("New note …")
	b.fill("#field-key", "who/parser")
	b.fill("#field-text", "ann")
	b.press("Set")
	b.until(`(document.querySelector(".sheet h2") || {}).innerText === "who/parser"`)
	b.press("Delete …")
	b.press("Delete")
	b.shows("The note is deleted.")
	b.until(`!document.body.innerText.includes("who/parser")`)

	b.login(w, "#team=noted&tab=notes&seq=5") // the record of the deleted note's beginning
	b.shows("The cache is fresh after a restart.")
	b.until(`![...document.querySelectorAll(".sheet button")].some(e => ["Edit", "Add"].includes(e.innerText))`)
	if js[bool](b, `document.body.innerText.includes("Always.")`) {
		t.Error("the past has a note of the present")
	}
}

// TestNotesOfARole shows notes to a browser that may only observe: it can change none.
func TestNotesOfARole(t *testing.T) {
	w := serve(t, noted(t))
	w.cadre("serve", "token", "add", "eyes", "--role", "observe")
	b := browse(t, 1300, 900)
	address := strings.TrimSpace(w.cadre("board", "--print", "--token", "eyes"))
	b.do(chromedp.Navigate(address + "#team=noted&tab=notes"))
	b.shows("A cache: stale after a restart.")
	for _, name := range []string{"New note …", "Edit", "Delete …", "Add"} {
		button := fmt.Sprintf("[...document.querySelectorAll('button')].find(e => e.innerText === %q)", name)
		b.until(button)
		if !js[bool](b, button+".disabled") {
			t.Errorf("a browser that may only observe can press %q", name)
		}
	}
}
