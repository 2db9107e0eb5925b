package board

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"cadre/internal/team"
)

// planned is a team whose member dan had a plan rejected, another one approved, and then worked on a task.
func planned(t testing.TB) (s *story, rejected int64) {
	s = newStory(t, "guide", "Write the migration guide")
	s.join("dan", "claude", "", "docs", true)
	s.add("pages", "Write the pages", "docs")
	s.do("dan", &team.SubmitPlan{Plan: "One long page."})
	s.after(30)
	rejected = s.do(team.User, &team.AnswerPlan{Request: s.plan("dan"), Feedback: "Callers read one page each."}).Seq
	s.after(20)
	s.do("dan", &team.SubmitPlan{Plan: "One page a caller group."})
	s.after(30)
	s.do(team.User, &team.AnswerPlan{Request: s.plan("dan"), Approved: true})
	s.works("dan", "pages")
	s.after(60)
	s.completes("dan", "pages", "three pages")
	return s, rejected
}

// TestPlans: the plans of a member are shown with their answers, as they were at the moment that is shown; also
// beside the task that the member did after them, and in an exported file.
func TestPlans(t *testing.T) {
	s, rejected := planned(t)
	w := serve(t, s)
	b := browse(t, 1200, 900)
	plans := func(want ...string) {
		t.Helper()
		list, _ := json.Marshal(want)
		b.until(fmt.Sprintf(`(want => { const all = [...document.querySelectorAll(".panel .plan")];
			const has = (e, parts) => parts.split("|").every(part => e.textContent.includes(part));
			return all.length === want.length && all.every((e, i) => has(e, want[i])) })(%s)`, list))
	}
	second := "approved|One page a caller group.|Approved by you"
	first := "rejected|One long page.|Rejected by you|Callers read one page each."
	check := func(open func(at string)) {
		open("member=dan")
		plans(second, first)
		open("task=1")
		plans(second, first)
		open(fmt.Sprint("member=dan&seq=", rejected))
		plans(first)
		open(fmt.Sprint("member=dan&seq=", rejected-1))
		plans("submitted|One long page.")
		open(fmt.Sprint("member=dan&seq=", rejected-2))
		b.until(`document.querySelector(".panel") && !document.querySelector(".plan")`)
	}
	check(func(at string) { b.login(w, "#team=guide&"+at) })
	file := filepath.Join(t.TempDir(), "guide.html")
	w.cadre("export", "guide", "-o", file)
	check(func(at string) {
		b.do(chromedp.Navigate("about:blank"), chromedp.Navigate("file://"+file+"#team=guide&"+at))
	})
}

// TestAttempts: a task says how often it was tried, by whom, and why it failed.
func TestAttempts(t *testing.T) {
	s := newStory(t, "flaky", "Mend a test")
	s.join("ann", "claude", "", "", false)
	s.join("bob", "claude", "", "", false)
	s.add("mend", "Mend the test", "")
	s.works("ann", "mend")
	failed := s.do("ann", &team.FailTask{Task: "mend", Reason: "it needs a clock"}).Seq
	s.do(team.User, &team.ReleaseTask{Task: "mend"})
	s.works("bob", "mend")
	s.says("bob", "ann", "Which clock does task mend need?", "question")
	w := serve(t, s)
	b := browse(t, 1200, 900)
	attempts := `[...document.querySelectorAll(".attempts li")].map(e => e.innerText).join(" / ")`
	b.login(w, "#team=flaky&task=1")
	b.until(attempts + `.match(/bob[^]*works[^]*\/[^]*ann[^]*failed[^]*it needs a clock/)`)
	b.shows("1 message about it")
	b.login(w, fmt.Sprint("#team=flaky&task=1&seq=", failed-1))
	b.until(attempts + `.match(/^[^\/]*ann[^\/]*works[^\/]*$/)`)
}

// TestAddress: the address has the moment and what is selected, so that it shows the same elsewhere, and the browser
// goes back to what was shown before.
func TestAddress(t *testing.T) {
	w := serve(t, billing(t))
	b := browse(t, 1400, 900)
	b.login(w, "#team=billing")
	b.shows("77 records")
	js[bool](b, `[...document.querySelectorAll(".task")].find(e => e.innerText.includes("Design the schema")).click(),
		true`)
	b.until(`location.hash.includes("task=2")`)
	slide(b, ".rail input", 40)
	b.until(`location.hash.includes("seq=40")`)
	b.shows("after record 40.")
	if hash := js[string](b, "location.hash"); hash != "#team=billing&seq=40&task=2" {
		t.Errorf("the address is %s", hash)
	}
	other := browse(t, 1400, 900)
	other.login(w, js[string](b, "location.hash"))
	other.shows("after record 40.")
	other.until(`document.querySelector(".panel h2")?.innerText === "Design the schema of the ledger entries"`)
	b.press("Timeline")
	b.until(`location.hash.includes("tab=timeline")`)
	b.shows("waits for a person")
	js[bool](b, "history.back(), true")
	b.until(`!location.hash.includes("tab=")`)
	b.until(`document.querySelector(".kanban")`)
	js[bool](b, "history.back(), true")
	b.until(`!location.hash.includes("task=") && !document.querySelector(".panel")`)
	js[bool](b, "history.forward(), true")
	b.until(`document.querySelector(".panel h2")?.innerText === "Design the schema of the ledger entries"`)
	b.press("Close")
	b.press("Now")
	b.until(`location.hash === "#team=billing"`)
}

// TestMoments compares two moments with the states that the server has of them.
func TestMoments(t *testing.T) {
	w := serve(t, billing(t))
	b := browse(t, 1400, 900)
	b.login(w, "#team=billing")
	b.press("Compare")
	b.until(`location.hash.includes("with=")`)
	for _, pair := range [][2]int{{20, 77}, {30, 55}, {60, 61}, {61, 60}, {50, 50}} {
		b.login(w, fmt.Sprintf("#team=billing&with=%d&seq=%d", pair[0], pair[1]))
		b.shows(fmt.Sprintf("From record %d ", pair[0]))
		b.shows(fmt.Sprintf("to record %d ", pair[1]))
		var state [2]struct{ Tasks []team.Task }
		var done [2]int
		for i, seq := range []int{min(pair[0], pair[1]), max(pair[0], pair[1])} {
			text := js[string](b, fmt.Sprintf(`fetch("/v1/teams/billing?seq=%d").then(r => r.text())`, seq))
			if err := json.Unmarshal([]byte(text), &state[i]); err != nil {
				t.Fatal(err)
			}
			for _, task := range state[i].Tasks {
				if task.Status == team.Completed {
					done[i]++
				}
			}
		}
		if pair[0] == pair[1] {
			b.shows("Nothing differs.")
			continue
		}
		row := func(name string, was, is int) {
			t.Helper()
			want := ""
			if was != is {
				want = fmt.Sprintf("%d → %d", was, is)
			}
			b.until(fmt.Sprintf(`([...document.querySelectorAll(".compare tr")]
				.filter(e => e.querySelector("th").innerText === %q)
				.map(e => [...e.querySelectorAll("td")].map(d => d.innerText).join(" "))[0] || "") === %q`, name, want))
		}
		row("Tasks", len(state[0].Tasks), len(state[1].Tasks))
		row("Completed", done[0], done[1])
	}
	b.login(w, "#team=billing&with=20")
	b.shows("From record 20 ")
	slide(b, ".compare input", 35)
	b.shows("From record 35 ")
	b.until(`location.hash.includes("with=35")`)
}

// TestThreads: what two members wrote to each other is one thread, up to the moment that is shown.
func TestThreads(t *testing.T) {
	w := serve(t, billing(t))
	b := browse(t, 1400, 900)
	b.login(w, "#team=billing&tab=messages&open=ann%20and%20bob")
	messages := `[...document.querySelectorAll(".message")].map(e => e.querySelector(".long").innerText)`
	b.until(messages + `.length === 3`)
	if first := js[string](b, messages+`[0]`); !strings.HasPrefix(first, "There are 14 callers.") {
		t.Errorf("the thread begins with %q", first)
	}
	b.until(`[...document.querySelectorAll(".thread strong")].map(e => e.innerText).includes("cleo and lead")`)
	slide(b, ".rail input", 40)
	b.until(messages + `.length === 1`)
	b.until(`![...document.querySelectorAll(".thread strong")].map(e => e.innerText).includes("cleo and lead")`)
}

// TestNarrowing: the board narrows tasks and teams in the language of the screen, and says what is wrong with a filter.
func TestNarrowing(t *testing.T) {
	w := serve(t, billing(t), finished(t, "flaky", "Find out why a tenth of the builds fail"))
	b := browse(t, 1400, 900)
	b.login(w, "#team=billing")
	narrow := func(names, filter string, want []string) {
		t.Helper()
		b.fill("input[type=search]", filter)
		list, _ := json.Marshal(want)
		b.until(fmt.Sprintf(`JSON.stringify([...document.querySelectorAll(%q)].map(e => e.innerText).sort()) === %q`,
			names, list))
	}
	tasks := func(filter string, want ...string) { t.Helper(); narrow(".task .id", filter, want) }
	teams := func(filter string, want ...string) { t.Helper(); narrow(".card .name", filter, want) }
	tasks("m:cleo", "contract", "fixtures")
	tasks("s:in_progress s:failed", "contract", "invoices", "refunds")
	tasks(`-s:completed "ledger entries"`, "invoices", "refunds")
	tasks("#8 #guide", "contract", "guide")
	tasks("x:y", "contract", "guide") // those of the filter before
	b.shows(`"x" is not a key; the keys are m: (a member), s: (a state) and t: (a team).`)
	b.until(`document.querySelector("input[type=search]").getAttribute("aria-invalid") === "true"`)
	b.login(w, "")
	teams("", "billing", "flaky")
	teams("m:bob", "billing")
	teams("s:aborted", "flaky")
	teams("builds", "flaky")
}

// TestPastBySeq: records of one moment are told apart in the past: messages and lanes are those up
// to the record that is shown, and changes that are not those of that moment are not shown.
func TestPastBySeq(t *testing.T) {
	s := newStory(t, "guide", "Write the migration guide")
	s.join("ann", "claude", "", "", false)
	s.add("pages", "Write the pages", "")
	first := s.do("ann", &team.SendMessage{To: "lead", Body: "The first one."}).Seq
	s.at -= 700 // at the same moment
	second := s.do("ann", &team.SendMessage{To: "lead", Body: "The second one."}).Seq
	works := s.do("ann", &team.ClaimTask{Task: "pages"}).Seq
	s.at -= 700
	failed := s.do("ann", &team.FailTask{Task: "pages", Reason: "it needs a map"}).Seq
	s.after(60)
	s.do(team.User, &team.ReleaseTask{Task: "pages"})
	w := serve(t, s)
	b := browse(t, 1200, 900)
	b.login(w, fmt.Sprint("#team=guide&tab=messages&seq=", first))
	b.shows("The first one.")
	if js[bool](b, "document.body.innerText.includes('The second one.')") {
		t.Error("a message of a later record is shown")
	}
	b.login(w, fmt.Sprint("#team=guide&tab=messages&seq=", second))
	b.shows("The second one.")
	b.login(w, fmt.Sprint("#team=guide&tab=timeline&seq=", failed))
	b.until(`document.querySelector(".sign.failure")`)
	b.login(w, fmt.Sprint("#team=guide&tab=timeline&seq=", works))
	b.until(`document.querySelector(".lane .run")`)
	if js[bool](b, `!!document.querySelector("button.sign.failure")`) {
		t.Error("a failure of a later record is shown")
	}
	lanes := func(seq int64) string {
		return js[string](b, fmt.Sprintf(`fetch("/board/teams/guide/lanes?columns=10&seq=%d").then(r => r.text())`,
			seq))
	}
	if at, later := lanes(works), lanes(failed); !strings.Contains(later, `"kind":"failure"`) ||
		strings.Contains(at, `"kind":"failure"`) || !strings.Contains(at, fmt.Sprintf(`"seq":%d`, works)) {
		t.Errorf("the lanes are\n%s\nand\n%s", at, later)
	}
	b.expects("409") // there are no changes to show
	b.login(w, fmt.Sprint("#team=guide&task=1&seq=", failed))
	b.press("Show changes")
	b.shows("What was changed by this moment is not kept.")
	b.press("Show the present")
	b.until("!location.hash.includes('seq=')")
	b.shows("no work on task pages was saved or recorded") // the story has no work in git
}

// TestPastSession: the session of a member is shown up to the moment.
func TestPastSession(t *testing.T) {
	w := serve(t)
	b := browse(t, 1400, 900)
	w.cadre("create", "port")
	w.cadre("spawn", "port", "w", "--agent", "shell")
	w.cadre("task", "add", "port", "First", "--run", "echo hello from the first")
	b.login(w, "#team=port&member=w")
	b.shows("hello from the first")
	b.until(`document.querySelectorAll(".column.completed .task").length === 1`)
	js[bool](b, "new Promise(r => setTimeout(() => r(true), 20))") // the clock of the history counts milliseconds
	added := w.cadre("task", "add", "port", "Second", "--run", "echo hello from the second", "--json")
	b.shows("hello from the second")
	b.until(`document.querySelectorAll(".column.completed .task").length === 2`)
	var is struct{ CreatedAt int64 }
	if err := json.Unmarshal([]byte(added), &is); err != nil || is.CreatedAt == 0 {
		t.Fatalf("%s: %v", added, err)
	}
	seq := js[int](b, fmt.Sprintf(`fetch("/v1/teams/port/records").then(r => r.json())
		.then(all => all.find(r => r.at === %d).seq)`, is.CreatedAt))
	slide(b, ".rail input", seq)
	b.shows(fmt.Sprintf("after record %d.", seq))
	b.until(`(e => e && e.innerText.includes("hello from the first") && !e.innerText.includes("hello from the second"))(
		document.querySelector(".session"))`)
}

// TestIncremental: what comes while a page is open is read alone, without the history before it.
func TestIncremental(t *testing.T) {
	w := serve(t, billing(t))
	b := browse(t, 1200, 900)
	b.login(w, "#team=billing&tab=messages")
	b.shows("Partial refunds differ")
	asked := `performance.getEntriesByType("resource").map(e => e.name.replace(/^.*\/board\/teams\/billing/, ""))`
	b.until(`document.querySelectorAll(".marks i.failure").length === 1`) // nothing of the beginning is still read
	b.until(asked + `.some(e => e.startsWith("/messages")) && ` + asked + `.some(e => e.startsWith("/marks"))`)
	js[bool](b, "performance.clearResourceTimings(), true")
	w.cadre("send", "billing", "One more thing.", "--to", "ann")
	w.cadre("task", "fail", "billing", "refunds", "--as", "ann", "--reason", "no map")
	b.shows("One more thing.")
	b.until(`document.querySelectorAll(".marks i.failure").length === 2`)
	b.until(asked + `.some(e => e.startsWith("/messages"))`)
	all := js[[]string](b, asked)
	for _, one := range all {
		if strings.HasPrefix(one, "/marks") || one == "/messages?after=0" ||
			strings.Contains(one, "/v1/teams/billing/messages") {
			t.Errorf("the page asks for %s", one)
		}
	}
}

// TestTimelineOfAFile: an exported file shows the lanes and the costs that the server shows: after
// any record, in columns of the same width. TestLanesOfAFile in ui/web has parts of the time.
func TestTimelineOfAFile(t *testing.T) {
	w := serve(t, billing(t))
	live := browse(t, 1400, 900)
	live.login(w, "")
	live.shows("billing")
	still := live.another()
	still.do(chromedp.EmulateViewport(1400, 900))
	file := filepath.Join(t.TempDir(), "billing.html")
	w.cadre("export", "billing", "-o", file)
	last := "" // what both showed
	same := func(what string, seq int, of string) {
		t.Helper()
		html := fmt.Sprintf(`document.querySelector("%s .line") ? document.querySelector("%[1]s").innerHTML : ""`, of)
		var one, other string
		for end := time.Now().Add(patience); one == "" || one == last || one != other; {
			if time.Now().After(end) {
				t.Fatalf("after record %d, %s, the server shows\n%s\nand the file\n%s", seq, what, one, other)
			}
			one, other = js[string](live, html), js[string](still, html)
		}
		last = one
	}
	for _, seq := range []int{76, 50, 40} {
		at := fmt.Sprintf("#team=billing&tab=timeline&seq=%d", seq)
		for b, page := range map[*tab]string{live: "http://" + w.address + "/", still: "file://" + file} {
			b.do(chromedp.Navigate("about:blank"))
			b.do(chromedp.Navigate(page + at))
			b.shows(fmt.Sprintf("after record %d.", seq))
		}
		same("of all of the time", seq, ".timeline")
		live.press("Costs")
		still.press("Costs")
		same("of the costs", seq, ".costs")
	}
}
