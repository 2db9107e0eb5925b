package board

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"cadre/internal/team"
)

// views are the views of a team, each with a text that it shows of the team billing.
var views = []struct{ name, at, shows string }{
	{"board", "", "Move invoices to ledger entries"},
	{"graph", "tab=graph", "Plan the rollout"},
	{"timeline", "tab=timeline", "waits for a person"},
	{"messages", "tab=messages", "Partial refunds differ"},
	{"costs", "tab=costs", "of the budget of $25.00"},
	{"history", "tab=history", "submitted a plan"},
	{"notes", "tab=notes", "Refunds are rounded once"},
	{"task", "task=8", "Why it failed"},
	{"member", "member=bob", "Message to bob"},
	{"the past", "seq=40", "Back to the present"},
	{"the past of the timeline", "seq=55&tab=timeline", "works"},
	{"two moments", "with=20", "Waited for a person"},
}

// axe returns the source of axe-core, which npm keeps in the user's cache.
func axe(t *testing.T) string {
	t.Helper()
	const version = "4.14.1"
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Skip(err)
	}
	dir := filepath.Join(cache, "cadre-tests", "axe-core-"+version)
	file := filepath.Join(dir, "package", "axe.min.js")
	if _, err := os.Stat(file); err != nil {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		pack := exec.Command("npm", "pack", "--silent", "axe-core@"+version)
		pack.Dir = dir
		if out, err := pack.CombinedOutput(); err != nil {
			t.Skipf("axe-core cannot be had from npm: %v\n%s", err, out)
		}
		untar := exec.Command("tar", "xzf", "axe-core-"+version+".tgz")
		untar.Dir = dir
		if out, err := untar.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	source, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(source)
}

// accessible checks the page with axe.
func (b *tab) accessible(source, what string) {
	b.t.Helper()
	js[bool](b, source+";true")
	found := js[[]string](b, `axe.run().then(r => r.violations.map(v => {
		const why = n => (n.any[0] || n.all[0] || n.none[0] || {message: ""}).message;
		return v.id + ": " + v.help + "\n    " +
			v.nodes.slice(0, 4).map(n => n.html.slice(0, 160) + "\n    " + why(n)).join("\n    ");
	}))`)
	for _, one := range found {
		b.t.Errorf("%s: axe finds %s", what, one)
	}
}

func (b *tab) scheme(name string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: name},
			{Name: "prefers-reduced-motion", Value: "reduce"}}})
	if err != nil {
		b.t.Fatal(err)
	}
}

// TestViews opens every view, in light and dark. Nothing is on the console, and axe finds nothing.
func TestViews(t *testing.T) {
	source := axe(t)
	w := serve(t, billing(t), finished(t, "flaky", "Find out why a tenth of the builds fail"))
	b := browse(t, 1440, 900)
	for _, scheme := range []string{"light", "dark"} {
		b.scheme(scheme)
		b.login(w, "")
		b.shows("flaky")
		b.accessible(source, scheme+", all teams")
		for _, v := range views {
			b.login(w, "#team=billing&"+v.at)
			b.shows(v.shows)
			b.accessible(source, scheme+", "+v.name)
		}
	}
	b.press("Actions")
	b.shows("Consolidate …")
	b.accessible(source, "the menu")
	b.press("Budget …")
	b.shows("Minutes since the team was created")
	b.accessible(source, "a form")
}

// TestNarrow: at a width of 360 pixels nothing is wider than the page, and a request can be answered.
func TestNarrow(t *testing.T) {
	source := axe(t)
	w := serve(t, billing(t))
	b := browse(t, 360, 740)
	b.do(chromedp.EmulateViewport(360, 740, chromedp.EmulateMobile, chromedp.EmulateTouch))
	fits := func(what string) {
		t.Helper()
		if wide := js[int](b, "document.documentElement.scrollWidth"); wide > 360 {
			t.Errorf("%s is %d pixels wide", what, wide)
		}
		wide := js[int](b, `Math.max(0, ...[...document.querySelectorAll(".view, main.teams")]
			.map(e => e.scrollWidth - e.clientWidth))`)
		if wide > 0 && !strings.Contains(what, "graph") {
			t.Errorf("%s is %d pixels too wide", what, wide)
		}
	}
	b.login(w, "")
	b.shows("billing")
	fits("the list of teams")
	for _, v := range views {
		b.login(w, "#team=billing&"+v.at)
		b.shows(v.shows)
		fits(v.name)
	}
	b.accessible(source, "a narrow page")
	b.login(w, "#team=billing")
	b.press("Allow once")
	b.shows("bob may do it.")
	b.until(`!document.body.innerText.includes("Allow once")`)
	if list := w.cadre("permit", "list", "billing"); strings.Contains(list, "bob") {
		t.Errorf("the request still waits: %s", list)
	}
}

// TestKeys: everything that the board does for a request can be done with the keyboard alone.
func TestKeys(t *testing.T) {
	w := serve(t, billing(t))
	b := browse(t, 1200, 800)
	b.login(w, "#team=billing")
	b.shows("Allow once")
	key := func(keys string) { t.Helper(); b.do(chromedp.KeyEvent(keys)) }
	key("4")
	b.shows("Threads")
	key("7")
	b.shows("New note …")
	key("3")
	b.shows("waits for a person")
	key("[")
	b.shows("Back to the present")
	key("[")
	key("{")
	b.until("location.hash.includes('seq=') && !document.body.innerText.includes('Reading')")
	key("0")
	b.until("!location.hash.includes('seq=')")
	key("1")
	key("?")
	b.shows("the previous or next failure")
	key("\x1b")
	b.until("!document.querySelector('dialog[open]')")
	key("a")
	b.until("document.activeElement.innerText === 'Allow once'")
	key("\t")
	key("\t")
	b.until("document.activeElement.innerText.startsWith('Deny')")
	key("\r")
	b.until("document.querySelector('dialog[open]')")
	b.until("document.querySelector('dialog[open]').contains(document.activeElement)")
	tabTo := func(is string) {
		t.Helper()
		for range 20 {
			if js[bool](b, is) {
				return
			}
			key("\t")
		}
		t.Fatalf("after 20 tabs it is not so: %s", is)
	}
	tabTo("document.activeElement.tagName === 'TEXTAREA'")
	key("not on this database")
	tabTo("document.activeElement.innerText === 'Deny'")
	key("\r")
	b.shows("bob may not do it.")
	if log := w.cadre("log", "billing"); !strings.Contains(log, "not on this database") {
		t.Errorf("the log does not have the reason:\n%s", log)
	}
}

// TestKeysBetweenFrames: what a person does after a dialog was closed is not lost although the
// browser has not drawn the page since.
func TestKeysBetweenFrames(t *testing.T) {
	w := serve(t, billing(t))
	b := browse(t, 1200, 800)
	b.login(w, "#team=billing")
	b.shows("Allow once")
	js[bool](b, `(globalThis.press = (key) => document.activeElement.dispatchEvent(new KeyboardEvent("keydown",
		{key, bubbles: true, cancelable: true})),
		globalThis.deny = () => [...document.querySelectorAll(".wait button")].find(e => e.innerText.startsWith("Deny")), true)`)
	open := "document.querySelector('dialog[open]')?.innerText.includes('Reason, for the member')"
	// the browser closes the dialog, and says so with the next frame
	js[bool](b, "(press('?'), true)")
	b.shows("the previous or next failure")
	js[bool](b, "(document.querySelector('dialog').close(), deny().focus(), deny().click(), true)")
	b.until(open)
	// the same kind of dialog again, while the page still has the element of the one before
	b.fill("#field-reason", "of the first one")
	js[bool](b, "(document.querySelector('dialog').close(), deny().click(), true)")
	b.until(open + " && document.querySelector('#field-reason').value === ''")
	b.press("Cancel")
	b.until("!document.querySelector('dialog') && document.activeElement === deny()")
	// a dialog that is not drawn yet
	js[bool](b, "(press('?'), press('Escape'), true)")
	b.until("!document.querySelector('dialog') && location.hash.includes('team=billing')")
	js[bool](b, "(press('?'), press('4'), true)")
	b.shows("the previous or next failure")
	if hash := js[string](b, "location.hash"); strings.Contains(hash, "tab=") {
		t.Errorf("a key below a dialog changed the address to %s", hash)
	}
}

// holdsReads gives the pages that b loads from now on "reads", which holds back what they read until it lets it go.
// What they send to change something is not held.
func (b *tab) holdsReads() {
	b.t.Helper()
	b.before(`(() => {
		const real = window.fetch;
		let held = null;
		window.reads = {
			running: 0,
			hold() { held = new Promise(go => (this.go = go)); },
		};
		window.fetch = async (url, options) => {
			if (options && options.method && options.method !== "GET") return real(url, options);
			if (held) await held;
			reads.running++;
			try {
				return await real(url, options);
			} finally {
				reads.running--;
			}
		};
	})()`)
}

// TestFirstAnswerWins: a request that was answered elsewhere meanwhile is refused in words, and leaves the list.
func TestFirstAnswerWins(t *testing.T) {
	w := serve(t, billing(t))
	one, two := browse(t, 1200, 800), browse(t, 1200, 800)
	two.holdsReads()
	for _, b := range []*tab{one, two} {
		b.login(w, "#team=billing")
		b.shows("Approve")
	}
	js[bool](two, "reads.hold(), true") // the second page does not hear that the plan was answered
	two.until("!reads.running")
	one.press("Approve")
	one.shows("The plan of dan is approved.")
	one.until(`![...document.querySelectorAll(".wait")].some(e => e.innerText.includes("dan"))`)
	two.expects("409")
	two.press("Approve")
	two.until(`document.querySelector(".note.bad")`)
	if said := js[string](two, `document.querySelector(".note.bad").innerText`); !strings.Contains(said, "approved") {
		t.Errorf("the second page says %q", said)
	}
	js[bool](two, "reads.go(), true")
	two.until(`![...document.querySelectorAll(".wait")].some(e => e.innerText.includes("dan"))`)
}

// TestSteer answers, sends and changes what the board can change, and looks at what the team then has.
func TestSteer(t *testing.T) {
	w := serve(t, billing(t))
	b := browse(t, 1440, 900)
	b.login(w, "#team=billing")
	b.shows("Allow once")
	status := func() (s struct {
		Delegate bool
		Members  []team.Member
	}) {
		t.Helper()
		if err := json.Unmarshal([]byte(w.cadre("status", "billing", "--json")), &s); err != nil {
			t.Fatal(err)
		}
		return s
	}
	b.press("Answer …")
	b.fill("#field-body", "Yes, both of them.")
	b.press("Send")
	b.shows("cleo has your answer.")
	b.until(`![...document.querySelectorAll(".wait")].some(e => e.innerText.includes("cleo asks you"))`)
	b.press("Actions")
	b.press("Delegate: the lead only coordinates")
	b.shows("The lead only coordinates.")
	if !status().Delegate {
		t.Error("the team is not in delegate mode")
	}
	b.press("Retry")
	b.shows("The task is back in the queue.")
	b.until(`![...document.querySelectorAll(".column.failed .task")].length`)
	if task := w.cadre("task", "show", "billing", "contract"); strings.Contains(task, "failed after") {
		t.Errorf("the task is still failed:\n%s", task)
	}
	b.press("Add task …")
	b.fill("#field-subject", "Tell the partners")
	b.press("Add")
	b.until(`[...document.querySelectorAll(".task")].some(e => e.innerText.includes("Tell the partners"))`)
	if list := w.cadre("task", "list", "billing"); !strings.Contains(list, "Tell the partners") {
		t.Errorf("the list of tasks:\n%s", list)
	}
	b.login(w, "#team=billing&member=ann")
	b.shows("Interrupt")
	b.fill("#line", "Leave the fixtures as they are.")
	b.press("Send")
	b.shows("Sent to ann.")
	if log := w.cadre("log", "billing"); !strings.Contains(log, "Leave the fixtures as they are.") {
		t.Errorf("the log does not have the message:\n%s", log)
	}
	b.press("Mode …")
	b.fill("#field-mode", "acceptEdits")
	b.press("Change")
	b.shows("ann works in the mode acceptEdits.")
	for _, m := range status().Members {
		if m.Name == "ann" && m.PermissionMode != "acceptEdits" {
			t.Errorf("ann works in the mode %s", m.PermissionMode)
		}
	}
}

// TestInterruptOfAShell: the page says what an interrupt of a shell member costs, and asks, before its
// command ends.
func TestInterruptOfAShell(t *testing.T) {
	s := newStory(t, "builds", "Build")
	s.join("dan", team.Shell, "", "", false)
	s.do(team.User, &team.CreateTask{Subject: "Docs", Name: "docs", Run: "make docs"})
	s.works("dan", "1")
	w := serve(t, s)
	b := browse(t, 1440, 900)
	b.login(w, "#team=builds&member=dan")
	b.press("Interrupt")
	b.shows("This ends the command of dan, and its task docs fails. End it?")
	b.press("Cancel")
	b.until(`!document.querySelector("dialog[open]")`)
	if log := w.cadre("log", "builds"); strings.Contains(log, "interrupted dan") {
		t.Errorf("without a yes, the log has:\n%s", log)
	}
	b.press("Interrupt")
	b.press("End it")
	b.shows("dan is interrupted.")
	if log := w.cadre("log", "builds"); !strings.Contains(log, "interrupted dan") {
		t.Errorf("the log lacks the interrupt:\n%s", log)
	}
}

// hostileText would run, load or break something wherever it became markup, an address or a style.
const hostileText = `<img src=x onerror="window.evil=1"><script>window.evil=1</script>"'` + "`" +
	`${window.evil=1}</pre></script></style>javascript:window.evil=1 &lt;b&gt; {{evil}}`

// TestHostileTexts: texts of agents stay text in every view, on the page and in an exported file.
func TestHostileTexts(t *testing.T) {
	s := newStory(t, "evil", hostileText)
	s.join("eve", "claude", hostileText, "", true)
	s.do(team.User, &team.CreateTask{Subject: hostileText, Description: hostileText})
	s.do(team.User, &team.CreateTask{Subject: "second " + hostileText, BlockedBy: []string{"1"}})
	s.do("eve", &team.SubmitPlan{Plan: hostileText})
	s.do(team.User, &team.AnswerPlan{Request: s.plan("eve"), Approved: true})
	s.works("eve", "1")
	s.do("eve", &team.SendMessage{To: "lead", Body: hostileText, Intent: "question"})
	s.do(host, &team.RequestPermission{Member: "eve", Tool: "Bash", Input: `{"command":` + quoted(hostileText) + `}`,
		Deadline: s.at + 3_600_000})
	s.do("eve", &team.FailTask{Task: "1", Reason: hostileText, Result: hostileText})
	s.do("eve", &team.SetNote{Key: "evil", Text: hostileText})
	w := serve(t, s)
	b := browse(t, 1200, 900)
	check := func(what string) {
		t.Helper()
		if js[bool](b, `!!window.evil ||
			!!document.querySelector("#board script, #board img[src=x], #board style, #board b[onclick]")`) {
			t.Fatalf("%s: a text became markup", what)
		}
	}
	b.login(w, "")
	b.shows("onerror=")
	check("all teams")
	for _, at := range []string{"", "tab=graph", "tab=timeline", "tab=messages", "tab=costs", "tab=history",
		"tab=notes", "task=1",
		"member=eve", "with=3", "tab=" + hostileText, "find=" + hostileText, "member=" + hostileText} {
		b.login(w, "#team=evil&"+strings.NewReplacer("&", "%26", "#", "%23").Replace(at))
		b.shows("records")
		check(at)
	}
	file := filepath.Join(t.TempDir(), "evil.html")
	w.cadre("export", "evil", "-o", file)
	b.do(chromedp.Navigate("file://" + file))
	b.shows("onerror=")
	check("an exported file")
}

func (s *story) plan(member string) string {
	m, _ := s.state.Member(member)
	return m.Plan.Request
}

func quoted(text string) string {
	data, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// TestExported: a file shows every view at any moment without a server, and asks for nothing.
func TestExported(t *testing.T) {
	source := axe(t)
	w := serve(t, billing(t))
	file := filepath.Join(t.TempDir(), "billing.html")
	w.cadre("export", "billing", "-o", file)
	b := browse(t, 1440, 900)
	for _, v := range views {
		if v.name == "member" {
			v.shows = "not in the exported file"
		}
		b.do(chromedp.Navigate("about:blank"), chromedp.Navigate("file://"+file+"#team=billing&"+v.at))
		b.shows(v.shows)
		b.accessible(source, "the file, "+v.name)
	}
	b.do(chromedp.Navigate("about:blank"), chromedp.Navigate("file://"+file))
	b.shows("12 tasks")
	if js[int](b, "performance.getEntriesByType('resource').length") > 0 {
		t.Error("the file loads something")
	}
	for _, name := range []string{"Allow once", "Actions", "Add task …"} {
		if js[bool](b, fmt.Sprintf("[...document.querySelectorAll('button')].some(e => e.innerText === %q)", name)) {
			t.Errorf("the file offers %q", name)
		}
	}
}
