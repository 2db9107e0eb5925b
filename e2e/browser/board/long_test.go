package board

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"cadre/internal/team"
	"cadre/internal/testkit/historytest"
)

// walk scrolls from the beginning of an element to its end, and returns what seen finds on the way.
const walk = `(async (box, seen) => {
	const frame = () => new Promise(f => requestAnimationFrame(f)), found = new Set();
	box.scrollTop = 0;
	for (let still = 0; still < 4; ) {
		await frame(); await frame();
		const {top, bottom} = box.getBoundingClientRect();
		for (const e of box.querySelectorAll("[data-i]")) {
			const is = e.getBoundingClientRect();
			if (is.bottom > top && is.top < bottom) seen(e, found);
		}
		const before = box.scrollTop;
		box.scrollTop += box.clientHeight * 0.8;
		still = box.scrollTop === before ? still + 1 : 0;
	}
	return [...found];
})`

// TestLongKanban: of 2,000 tasks only those around the window are on the page. Scrolling leads to each of
// them, and so do the keys.
func TestLongKanban(t *testing.T) {
	h := historytest.Long(5_000, 2_000)
	w := serveHistory(t, h)
	b := browse(t, 1400, 900)
	b.login(w, "#team=core")
	b.until("document.querySelectorAll('.task').length > 20")
	if n := js[int](b, "document.querySelectorAll('.task').length"); n > 400 {
		t.Errorf("%d tasks are on the page", n)
	}
	ids := js[[]string](b, walk+`(document.querySelector(".view"),
		(e, found) => found.add(e.querySelector(".id").innerText))`)
	seen := map[string]bool{}
	for _, id := range ids {
		seen[strings.TrimPrefix(id, "#")] = true
	}
	for task := range h.State.Tasks() {
		if !seen[task.ID] {
			t.Errorf("scrolling does not lead to task %s, which is %s", task.ID, task.State())
			break
		}
	}
	pending := h.State.Count(team.Pending)
	if pending < 1_000 {
		t.Fatalf("only %d tasks are pending", pending)
	}
	js[bool](b, `document.querySelector(".view").scrollTop = 0, true`)
	b.until(`document.querySelector(".column.pending [aria-posinset='1'] .task[tabindex='0']")`)
	js[bool](b, `document.querySelector(".column.pending .task[tabindex='0']").focus(), true`)
	at := func(column string, place int) {
		t.Helper()
		b.until(fmt.Sprintf(`((e, seen) => e && e.getAttribute("aria-posinset") === "%d" && e.closest(".column.%s") &&
			seen(e.getBoundingClientRect()))(document.activeElement.closest("[data-i]"),
				r => r.top >= 0 && r.bottom <= innerHeight)`, place, column))
	}
	key := func(k string) { t.Helper(); b.do(chromedp.KeyEvent(k)) }
	at("pending", 1)
	key(kb.ArrowDown)
	at("pending", 2)
	key(kb.End)
	at("pending", pending)
	key(kb.ArrowUp)
	at("pending", pending-1)
	key(kb.Home)
	at("pending", 1)
	for range 3 {
		key(kb.PageDown)
	}
	b.until(`Number(document.activeElement.closest("[data-i]").getAttribute("aria-posinset")) > 10`)
	key(kb.ArrowRight)
	b.until(`!!document.activeElement.closest(".column:not(.pending)")`)
	key(kb.ArrowLeft)
	b.until(`!!document.activeElement.closest(".column.pending")`)
	key(kb.Home)
	key("\r")
	b.until("location.hash.includes('task=')")
	js[bool](b, `document.querySelector(".view").scrollTop = 1e6, true`) // away from the task that has the focus
	b.until(`document.activeElement.matches(".column.pending ul")`)
	key(kb.ArrowDown)
	at("pending", 2)
}

// TestLongHistory: every record of a long history can be scrolled to, narrowed to, and shown at once.
func TestLongHistory(t *testing.T) {
	h := historytest.Long(6_000, 400)
	w := serveHistory(t, h)
	b := browse(t, 1400, 900)
	b.login(w, "#team=core&tab=history")
	last := len(h.Records)
	b.until(fmt.Sprintf(`document.querySelector(".log [role=status]")?.innerText.endsWith("of records 1 to %d")`, last))
	lines := js[int](b, `parseInt(document.querySelector(".log [role=status]").innerText)`)
	if n := js[int](b, "document.querySelectorAll('.log tbody tr').length"); n > 200 {
		t.Errorf("%d lines are on the page", n)
	}
	rows := js[[]int](b, walk+`(document.querySelector(".table"), (e, found) => found.add(Number(e.dataset.i)))`)
	if len(rows) != lines || lines < last/2 {
		t.Errorf("scrolling leads to %d of %d lines", len(rows), lines)
	}
	b.until(fmt.Sprintf(`document.querySelector(".log [data-i='%d']")`, lines-1))
	b.fill(".log input[type=search]", `#7 m:worker-6`)
	b.until(`[...document.querySelectorAll(".log .what")].length === 2`)
	text := js[string](b, `document.querySelector(".log tbody").innerText`)
	if !strings.Contains(text, "module number 7") {
		t.Errorf("the lines of task 7 are\n%s", text)
	}
	b.fill(".log input[type=search]", `x:7`)
	b.shows(`"x" is not a key`)
	b.fill(".log input[type=search]", "")
	b.fill(".log select", "worker-3")
	b.until(`[...document.querySelectorAll(".log [data-i]")].every(e => e.innerText.includes("worker-3"))`)
	b.login(w, "#team=core&tab=history&seq=3000")
	b.until(`(n => n > 2990 && n <= 3000)(Number(document.querySelector(".log [data-i='0'] td")?.innerText))`)
}

// TestLongThread: a thread opens at its newest message, and scrolling leads to the first one.
func TestLongThread(t *testing.T) {
	s := newStory(t, "talk", "Talk a lot")
	s.join("ann", "claude", "", "", false)
	s.join("bob", "claude", "", "", false)
	const messages = 300
	for i := range messages {
		words := strings.Repeat("It has some words. ", i%9)
		s.says("ann", "bob", fmt.Sprintf("This is message number %d. %s", i+1, words), "")
	}
	s.says("bob", "lead", "Shall I go on?", "question")
	w := serve(t, s)
	b := browse(t, 1200, 800)
	b.login(w, "#team=talk&tab=messages&open=ann%20and%20bob")
	b.shows("message number " + strconv.Itoa(messages) + ".")
	if n := js[int](b, "document.querySelectorAll('.message').length"); n > 100 {
		t.Errorf("%d messages are on the page", n)
	}
	rows := js[[]int](b, walk+`(document.querySelector(".messages .scroll"),
		(e, found) => found.add(Number(e.dataset.i)))`)
	if len(rows) != messages {
		t.Errorf("scrolling leads to %d of %d messages", len(rows), messages)
	}
	js[bool](b, `[...document.querySelectorAll(".thread")]
		.find(e => e.innerText.startsWith("bob and lead")).click(), true`)
	b.shows("Shall I go on?")
}
