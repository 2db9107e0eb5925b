package board

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"

	"cadre/internal/team"
)

// searched is a team in which a word is in a task, in a message among many, in a note that was
// changed since, and in the report.
func searched(t testing.TB) *story {
	s := newStory(t, "searched", "Find it")
	s.do(team.User, &team.SpawnMember{Name: "ann", Agent: team.External})
	s.do(team.User, &team.SpawnMember{Name: "bob", Agent: team.External})
	s.do(team.User, &team.CreateTask{Name: "look", Subject: "Look for the needle"})
	s.do("ann", &team.SetNote{Key: "where", Text: "The needle is in the north."})
	s.do("ann", &team.SetNote{Key: "where", Text: "It is in the south."})
	s.do("ann", &team.SendMessage{To: "bob", Body: "I saw a <b>needle</b> in the hay."})
	for i := range 80 {
		s.do("ann", &team.SendMessage{To: "bob", Body: fmt.Sprint("And thing ", i)})
	}
	s.do("bob", &team.SendMessage{To: "lead", Body: "Nothing here."})
	return s
}

// lateFirst makes the first answer to a search come after the second, and then sets window.late.
const lateFirst = `{
	const real = window.fetch;
	let searches = 0, second;
	const answered = new Promise(done => { second = done; });
	window.fetch = async (url, ...rest) => {
		const search = String(url).includes("/search?") ? ++searches : 0;
		const answer = await real(url, ...rest);
		if (search === 1) await answered.then(() => new Promise(done => setTimeout(done, 100)));
		if (search === 1) setTimeout(() => { window.late = true; }, 100);
		if (search === 2) second();
		return answer;
	};
	true
}`

// TestLateAnswer asks twice at once: the answer to the first question, which comes last, does not
// replace that to the second.
func TestLateAnswer(t *testing.T) {
	other := newStory(t, "other", "Something else")
	other.do(team.User, &team.CreateTask{Name: "far", Subject: "A needle far away"})
	w := serve(t, searched(t), other)
	b := browse(t, 1300, 900)
	b.login(w, "#team=searched")
	b.shows("Look for the needle")
	js[bool](b, lateFirst)
	b.do(chromedp.KeyEvent("S"))
	b.fill("#words", "needle")
	js[bool](b, `document.querySelector("dialog form").requestSubmit(), true`)
	js[bool](b, `document.querySelector("dialog input[type=checkbox]").click(), true`)
	js[bool](b, `document.querySelector("dialog form").requestSubmit(), true`)
	b.until("window.late")
	b.shows("4 texts.")
}

// TestSearch finds texts on the board, in the open team and in all, and goes to each of them.
func TestSearch(t *testing.T) {
	other := newStory(t, "other", "Something else")
	other.do(team.User, &team.CreateTask{Name: "far", Subject: "A needle far away"})
	w := serve(t, searched(t), other)
	b := browse(t, 1300, 900)
	hit := func(says string) {
		t.Helper()
		find := fmt.Sprintf(`[...document.querySelectorAll(".hits button")].find(e => e.innerText.includes(%q))`, says)
		b.until(find)
		js[bool](b, find+".click(), true")
	}
	find := func(words string) {
		t.Helper()
		js[bool](b, `document.body.dispatchEvent(new KeyboardEvent("keydown", {key: "S", bubbles: true})), true`)
		b.fill("#words", words)
		js[bool](b, `document.querySelector("dialog form").requestSubmit(), true`)
	}
	b.login(w, "#team=searched")
	b.shows("Look for the needle")
	find("NEEDLE")
	b.shows("3 texts.")
	b.until(`[...document.querySelectorAll(".hits mark")].every(e => e.innerText === "needle")`)
	b.shows("I saw a <b>needle</b> in the hay.")
	hit("task look by the user")
	b.until(`(document.querySelector(".panel h2") || {}).innerText === "Look for the needle"`)

	find("needle")
	hit("message of ann to bob")
	b.until(`(document.querySelector(".sought") || {innerText: ""}).innerText.includes("in the hay")`)
	b.until(`(e => e && (r => r.top >= 0 && r.bottom <= innerHeight)(e.getBoundingClientRect()))(document.querySelector(".sought"))`)

	find("needle")
	hit("note where, change 1")
	b.shows("The needle is in the north.")
	b.shows("The team as it was at")

	find("needle")
	js[bool](b, `document.querySelector("dialog input[type=checkbox]").click(), true`)
	js[bool](b, `document.querySelector("dialog form").requestSubmit(), true`)
	b.shows("4 texts.")
	hit("task far by the user")
	b.until(`(document.querySelector(".panel h2") || {}).innerText === "A needle far away"`)
	if got := js[string](b, "location.hash"); got != "#team=other&task=1" {
		t.Errorf("the address is %s", got)
	}
}
