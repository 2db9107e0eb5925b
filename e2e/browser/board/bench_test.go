package board

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"cadre/internal/testkit/historytest"
)

// sweep moves the slider from the first record to the last one in four seconds, a bit in each frame that the browser
// draws. It returns how many different states were shown a second, and the longest time without another one.
const sweep = `(async () => {
	const rail = document.querySelector(".rail input"), place = document.querySelector(".place");
	const last = Number(rail.max), took = 4000;
	const frame = () => new Promise(f => requestAnimationFrame(f)), seen = new Set(), began = performance.now();
	let longest = 0, changed = began;
	for (let now = began; now - began < took; now = performance.now()) {
		rail.value = 1 + Math.round((last - 1) * (now - began) / took);
		rail.dispatchEvent(new Event("input", {bubbles: true}));
		await frame();
		const at = place.innerText, is = performance.now();
		if (!seen.has(at)) changed = is;
		longest = Math.max(longest, is - changed);
		seen.add(at);
	}
	return [seen.size * 1000 / took, longest];
})()`

// BenchmarkSlider moves the slider through a history of 20,000 records and 2,000 tasks: as soon as the tasks are
// painted, in a server that nobody has asked for the past, and then again. 20 states a second are promised.
func BenchmarkSlider(b *testing.B) {
	h := historytest.Long(20_000, 2_000)
	for b.Loop() {
		b.StopTimer()
		w := serveHistory(b, h)
		page := browse(b, 1400, 900)
		page.login(w, "")
		page.shows("core")
		page.do(chromedp.Navigate("about:blank"))
		b.StartTimer()
		began := time.Now()
		page.do(chromedp.Navigate("http://" + w.address + "/#team=core"))
		page.until("document.querySelectorAll('.task').length > 10")
		b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms-to-tasks")
		for _, name := range []string{"first", "again"} {
			before := ticks(b, w.pid) + browserTicks(b)
			is := js[[]float64](page, sweep)
			b.ReportMetric(is[0], "frames/s-"+name)
			b.ReportMetric(is[1], "ms-longest-"+name)
			b.ReportMetric(float64(10*(ticks(b, w.pid)+browserTicks(b)-before))/(4*is[0]), "cpu-ms/frame-"+name)
		}
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkLists opens the longest lists of that history, and reports the time until they are painted.
func BenchmarkLists(b *testing.B) {
	w := serveHistory(b, historytest.Long(20_000, 2_000))
	page := browse(b, 1400, 900)
	page.login(w, "")
	page.shows("core")
	for b.Loop() {
		for name, of := range map[string]struct{ at, shows string }{
			"tasks":    {"", "document.querySelectorAll('.task').length > 10"},
			"history":  {"&tab=history", "document.querySelectorAll('.log [data-i]').length > 10"},
			"messages": {"&tab=messages", "document.querySelectorAll('.message').length > 5"},
		} {
			page.do(chromedp.Navigate("about:blank"))
			began := time.Now()
			page.do(chromedp.Navigate("http://" + w.address + "/#team=core" + of.at))
			page.until(of.shows)
			b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms-to-"+name)
		}
	}
	b.ReportMetric(0, "ns/op")
}

// BenchmarkIdle leaves a page alone that shows a team with 8 members who do nothing, and reports which share of a core
// the server and all of the browser take. The server runs the members. 1 % is promised for all of that together. A
// browser is at work for its first minute, also without a page, so it is left alone for longer before. It also reports
// what the browser takes with an empty page: that is not the board's.
func BenchmarkIdle(b *testing.B) {
	w := serve(b)
	silent(w)
	page := browse(b, 1400, 900)
	leave := func(d time.Duration) {
		js[bool](page, fmt.Sprintf("new Promise(f => setTimeout(() => f(true), %d))", d.Milliseconds()))
	}
	used := func() (server, browser float64) { // in percent of a core
		s, c := ticks(b, w.pid), browserTicks(b) // in hundredths of a second
		leave(idleFor)
		return float64(ticks(b, w.pid)-s) / idleFor.Seconds(), float64(browserTicks(b)-c) / idleFor.Seconds()
	}
	leave(idleFor)
	leave(idleFor)
	_, empty := used()
	page.login(w, "#team=silent")
	page.shows("worker-8")
	leave(idleFor)
	for b.Loop() {
		server, browser := used()
		b.ReportMetric(empty, "%core-empty-browser")
		b.ReportMetric(server, "%core-server")
		b.ReportMetric(browser, "%core-browser")
		b.ReportMetric(server+browser, "%core")
	}
	b.ReportMetric(0, "ns/op")
}

// idleFor is how long BenchmarkIdle leaves a page alone at a time.
const idleFor = 30 * time.Second

// silent creates a team of 8 members, which have nothing to do.
func silent(w *world) {
	w.cadre("create", "silent", "--goal", "Wait for something to do")
	for i := range 8 {
		w.cadre("spawn", "silent", fmt.Sprint("worker-", i+1), "--agent", "shell")
	}
}

// ticks returns the time that a process has used, in hundredths of a second.
func ticks(t testing.TB, pid int) int {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return user + system
}

// browserTicks returns the time of all processes below this one that are the browser's.
func browserTicks(t testing.TB) (sum int) {
	parents := map[int]int{}
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		pid, _ := strconv.Atoi(filepath.Base(dir))
		text, err := os.ReadFile(filepath.Join(dir, "stat"))
		if err != nil {
			continue
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		parents[pid], _ = strconv.Atoi(fields[1])
	}
	for pid := range parents {
		for at := pid; at > 1; at = parents[at] {
			if at == os.Getpid() {
				if cmd, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); strings.Contains(string(cmd), "chrom") {
					sum += ticks(t, pid)
				}
				break
			}
		}
	}
	return sum
}
