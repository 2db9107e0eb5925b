package board

import (
	"fmt"
	"testing"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// before runs the script in each page that b loads from now on, before the page's own.
func (b *tab) before(script string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, page.AddScriptToEvaluateOnNewDocument,
		page.AddScriptToEvaluateOnNewDocumentParams{Source: script})
	if err != nil {
		b.t.Fatal(err)
	}
}

// TestMarks checks that the slider has the marks of the history where their records are, and that
// the keys and the buttons beside it lead from one to the next.
func TestMarks(t *testing.T) {
	w := serve(t, billing(t))
	b := browse(t, 1400, 900)
	b.login(w, "#team=billing")
	b.shows("77 records")
	type mark struct {
		Kind string
		Seq  int
	}
	marks := js[[]mark](b, `fetch("/v1/teams/billing/marks").then(r => r.json()).then(all => all.marks || all)`)
	kinds := map[string]bool{}
	for _, m := range marks {
		kinds[m.Kind] = true
	}
	if len(kinds) < 2 {
		t.Fatalf("the history has only the marks %v", marks)
	}
	for _, m := range marks {
		b.until(fmt.Sprintf(`[...document.querySelectorAll(".marks i.%s")].some(e =>
			Math.abs(parseFloat(e.style.left) - 100 * (%d - 1) / 76) < 0.3)`, m.Kind, m.Seq))
	}
	if shown := js[int](b, `document.querySelectorAll(".marks i").length`); shown > len(marks) {
		t.Errorf("the slider has %d marks of %d", shown, len(marks))
	}
	at := func(i int) {
		t.Helper()
		b.until(fmt.Sprintf(`location.hash.includes("seq=%d")`, marks[i].Seq))
		b.shows(fmt.Sprintf("after record %d.", marks[i].Seq))
	}
	last := len(marks) - 1
	b.press("Previous mark")
	at(last)
	b.press("Previous mark")
	at(last - 1)
	b.do(chromedp.KeyEvent("{"))
	at(last - 2)
	b.press("Next mark")
	at(last - 1)
	b.do(chromedp.KeyEvent("}"))
	at(last)
}

// breakable gives pages "streams", which ends a stream of the server as if it had broken, and keeps
// it from coming back until it is mended.
const breakable = `(() => {
	const streams = (window.streams = {
		broken: new Set(),
		open: new Map(), // the socket and the number of each stream, by its path
		break(path) {
			this.broken.add(path);
			const [socket, n] = this.open.get(path);
			socket.says(n + " end\n");
		},
		mend(path) { this.broken.delete(path); },
	});
	window.WebSocket = class extends WebSocket {
		says(text) { this.dispatchEvent(new MessageEvent("message", {data: text})); }
		send(text) {
			const is = JSON.parse(text);
			if (is.open) {
				const path = is.at.split("?")[0];
				streams.open.set(path, [this, is.open]);
				if (streams.broken.has(path)) return void setTimeout(() => this.says(is.open + " end\n"));
			}
			super.send(text);
		}
	};
})()`

// TestStreamWarnings checks that the page warns while any of its streams is broken, however the
// others are, and no longer when what is broken is no longer followed.
func TestStreamWarnings(t *testing.T) {
	w := serve(t, billing(t))
	b := browse(t, 1400, 900)
	b.before(breakable)
	b.login(w, "#team=billing")
	b.shows("77 records")
	const list, events = "/v1/watch", "/v1/teams/billing/events"
	const warning = `document.querySelector(".broken")?.innerText === "The connection is lost. It is tried again."`
	both := fmt.Sprintf(`streams.open.has(%q) && streams.open.has(%q)`, list, events)
	change := func(how, path string) { js[bool](b, fmt.Sprintf("streams.%s(%q), true", how, path)) }
	// comes waits until the page has asked again for a stream and got it
	comes := func(path string) {
		t.Helper()
		number := fmt.Sprintf("streams.open.get(%q)[1]", path)
		before := js[int](b, number)
		change("mend", path)
		b.until(fmt.Sprintf("%s > %d", number, before))
	}
	b.until(both)
	b.until("!(" + warning + ")")
	change("break", events)
	b.until(warning)
	change("break", list)
	comes(list)
	w.cadre("task", "add", "billing", "Look twice") // the list has heard of it, so it is back
	b.shows("Look twice")
	if !js[bool](b, warning) {
		t.Error("one stream is back, and the page no longer warns of the other one")
	}
	comes(events)
	b.until("!(" + warning + ")")
	change("break", list) // alone
	b.until(warning)
	comes(list)
	b.until("!(" + warning + ")")

	change("break", events)
	b.until(warning)
	b.press("All teams")
	b.until("!(" + warning + ")")
}

// answersDiffs gives pages "diffs", which answers for the server what was changed for a task.
const answersDiffs = `(() => {
	const real = window.fetch;
	const diffs = (window.diffs = {asked: 0, running: 0, most: 0, there: false, held: null,
		hold() { this.held = new Promise(go => (this.go = () => { this.held = null; go(); })); }});
	const patch = n => "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -0,0 +1 @@\n+version " + n + "\n";
	window.fetch = async (url, options) => {
		if (!String(url).endsWith("/diff")) return real(url, options);
		const n = ++diffs.asked;
		diffs.most = Math.max(diffs.most, ++diffs.running);
		if (diffs.held) await diffs.held;
		diffs.running--;
		if (!diffs.there) return new Response(JSON.stringify({detail: "not recorded yet"}), {status: 409});
		return new Response(JSON.stringify({patch: patch(n)}));
	};
})()`

// TestDiffRequests checks that what was changed for a task is asked for again until it is recorded,
// and whenever the task changes; with one request at a time, and none once it is hidden.
func TestDiffRequests(t *testing.T) {
	w := serve(t, billing(t))
	b := browse(t, 1400, 900)
	b.before(answersDiffs)
	b.login(w, "#team=billing&task=8")
	b.press("Show changes")
	b.shows("not recorded yet")
	b.until("diffs.asked >= 2") // by itself
	js[bool](b, "diffs.there = true")
	b.shows("+version ")
	before := js[int](b, "diffs.asked")

	js[bool](b, "diffs.hold(), true")
	state := func(word string) {
		t.Helper()
		b.until(fmt.Sprintf(`document.querySelector(".panel header").innerText.includes(%q)`, word))
	}
	w.cadre("task", "release", "billing", "contract")
	b.until("diffs.running === 1")
	w.cadre("task", "claim", "billing", "contract", "--as", "cleo")
	state("in progress")
	js[bool](b, "diffs.go(), true")
	b.shows(fmt.Sprintf("+version %d", before+2)) // one for the change meanwhile
	if most := js[int](b, "diffs.most"); most != 1 {
		t.Errorf("%d requests run at a time", most)
	}

	js[bool](b, "(diffs.there = false, true)") // so that it would ask again by itself
	w.cadre("task", "release", "billing", "contract")
	state("pending")
	b.shows("not recorded yet")
	b.press("Hide changes")
	b.until(`[...document.querySelectorAll(".panel button")].some(e => e.innerText === "Show changes")`)
	b.until("diffs.running === 0")
	asked := js[int](b, "diffs.asked")
	w.cadre("task", "claim", "billing", "contract", "--as", "cleo")
	state("in progress")
	js[bool](b, "new Promise(f => setTimeout(() => f(true), 2500))")
	if now := js[int](b, "diffs.asked"); now != asked {
		t.Errorf("hidden changes were asked for %d times", now-asked)
	}
}

// counted gives pages "counts": how often they asked the server for something, drew a frame by
// script, or changed anything but an age.
const counted = `(() => {
	const counts = (window.counts = {asked: 0, frames: 0, changes: []});
	const before = (of, name, count) => {
		const real = of[name];
		of[name] = function (...all) { counts[count]++; return real.apply(this, all); };
	};
	before(window, "fetch", "asked");
	before(WebSocket.prototype, "send", "asked");
	before(window, "requestAnimationFrame", "frames");
	const all = {subtree: true, childList: true, characterData: true, attributes: true};
	new MutationObserver(list => list.forEach(m => {
		const at = m.target.closest ? m.target : m.target.parentElement;
		if (!at || !at.closest("time")) counts.changes.push(m.type + " of " + (at ? at.outerHTML.slice(0, 100) : "?"));
	})).observe(document, all);
})()`

// TestSilence checks that a page on which nothing happens asks for nothing, animates nothing, and
// changes nothing but the ages that it shows, which it does.
func TestSilence(t *testing.T) {
	w := serve(t)
	silent(w)
	b := browse(t, 1400, 900)
	b.before(counted)
	b.login(w, "#team=silent")
	b.shows("worker-8")
	const ages = `[...document.querySelectorAll(".member time")].map(e => e.innerText).join()`
	for range 3 { // the last members have started a moment ago
		js[bool](b, "Object.assign(counts, {asked: 0, frames: 0, changes: []}), true")
		before := js[string](b, ages)
		js[bool](b, "new Promise(f => setTimeout(() => f(true), 11_000))")
		if before == js[string](b, ages) {
			t.Error("the ages of members stand still")
		}
		if js[bool](b, "counts.asked + counts.frames + counts.changes.length === 0") {
			break
		}
	}
	if said := js[string](b, "JSON.stringify(counts)"); said != `{"asked":0,"frames":0,"changes":[]}` {
		t.Errorf("while nothing happens, the page does %s", said)
	}
	if n := js[int](b, "document.getAnimations().length"); n > 0 {
		t.Errorf("%d animations run", n)
	}
}
