package board

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/chromedp/chromedp"
)

// TestTunnel: through a tunnel that ends TLS, a phone answers at the address that the person named. A page of
// that host that came without TLS, and one of another host, change nothing.
func TestTunnel(t *testing.T) {
	if chromium == "" {
		t.Skip("no Chromium is installed")
	}
	home := t.TempDir()
	billing(t).save(home)
	w := serveAt(t, home, "--host", "https://board.test")
	proxy := w.proxy()
	plain, secure := httptest.NewServer(proxy), httptest.NewTLSServer(proxy)
	t.Cleanup(plain.Close) // once the browser has left
	t.Cleanup(secure.Close)
	b := browse(t, 360, 740, chromedp.Flag("ignore-certificate-errors", true), chromedp.Flag("host-resolver-rules",
		fmt.Sprintf("MAP board.test:443 %s,MAP board.test:80 %s", secure.Listener.Addr(), plain.Listener.Addr())))
	at := func(origin string) { b.do(chromedp.Navigate(origin + "/login?code=" + w.code() + "#team=billing")) }

	for _, refused := range []string{"401", "403", "Cross-Origin-Opener-Policy header has been ignored"} {
		b.expects(refused) // of the page without TLS
	}
	at("http://board.test") // no browser keeps a cookie from there that is for https alone
	b.shows("cadre board")
	answer := `fetch("/v1/teams/billing/messages", {method: "POST", headers: {"Content-Type": "application/json"}, body: "{}"}).
		then(r => r.json()).then(p => p.status + " " + p.detail)`
	if said := js[string](b, answer); !strings.HasPrefix(said, "403 the request comes from a page of another origin") {
		t.Errorf("a page without TLS is answered by %s", said)
	}

	at("https://board.test")
	b.press("Allow once")
	b.shows("bob may do it.")
	if list := w.cadre("permit", "list", "billing"); strings.Contains(list, "bob") {
		t.Errorf("the request still waits: %s", list)
	}
	if js[string](b, "document.cookie") != "" {
		t.Error("a script sees the cookie")
	}
}

// proxy returns a proxy that passes the host on.
func (w *world) proxy() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(&url.URL{Scheme: "http", Host: w.address})
		p.Out.Host = p.In.Host
	}, ErrorLog: log.New(io.Discard, "", 0)}
}

// TestNoWebSockets: where a proxy passes no WebSockets, the board follows the same streams as
// server-sent events. When the proxy breaks them, the board continues where it was: it misses
// nothing, and shows nothing twice.
func TestNoWebSockets(t *testing.T) {
	if chromium == "" {
		t.Skip("no Chromium is installed")
	}
	var w *world
	var refused, streams, open, cut atomic.Int64
	front := httptest.NewUnstartedServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		switch {
		case r.Header.Get("Upgrade") != "":
			refused.Add(1)
			http.Error(to, "no upgrades", http.StatusForbidden)
		case r.URL.Path == "/board/events" && cut.Load() > 0:
			cut.Add(-1)
			http.Error(to, "no server", http.StatusBadGateway)
		default:
			if r.URL.Path == "/board/events" {
				streams.Add(1)
				open.Add(1)
				defer open.Add(-1)
			}
			w.proxy().ServeHTTP(to, r)
		}
	}))
	w = serveAt(t, t.TempDir(), "--host", front.Listener.Addr().String())
	front.Start()
	t.Cleanup(front.Close) // once the browser has left
	w.cadre("create", "port", "--goal", "port the parser")
	for _, member := range []string{"w", "x"} {
		w.cadre("spawn", "port", member, "--agent", "shell")
	}
	b := browse(t, 1400, 900)
	b.expects("/board/streams") // the upgrade is refused
	b.expects("/board/events")  // once the proxy breaks them
	b.expects("ERR_EMPTY_RESPONSE")
	b.do(chromedp.Navigate(front.URL + "/login?code=" + w.code() + "#team=port&member=w"))
	b.shows("Message to w")
	until := func(what string, is func() bool) { t.Helper(); w.eventually(what, is) }
	until("the streams are open", func() bool { return streams.Load() > 0 })
	if refused.Load() == 0 {
		t.Error("the board did not try a WebSocket")
	}

	count := t.TempDir() + "/go"
	w.cadre("task", "add", "port", "Count", "--owner", "w", "--run", fmt.Sprintf("for i in 1 2 3; do echo number $i.; "+
		"done; until [ -e %s ]; do sleep 0.1; done; for i in 4 5 6; do echo number $i.; done", count))
	b.shows("number 3.") // while the command runs
	times := func(text string) int {
		return js[int](b, fmt.Sprintf(`document.querySelector(".session").innerText.split(%q).length - 1`, text))
	}
	const broken = `document.querySelector(".broken")?.innerText.startsWith("The connection is lost")`
	before := streams.Load()
	cut.Store(2)
	front.CloseClientConnections()
	b.until(broken)
	w.cadre("task", "add", "port", "Say hello", "--owner", "x", "--run", "printf 'hello %s' from-x")
	b.until("!(" + broken + ")")
	until("the streams are open again", func() bool { return streams.Load() > before })
	b.until(`document.querySelectorAll(".task").length === 2`)
	b.until(`document.querySelectorAll(".column.completed .task").length === 1`)
	for _, once := range []string{"number 2.", "session started"} {
		if n := times(once); n != 1 {
			t.Errorf("the session shows %q %d times", once, n)
		}
	}
	if err := os.WriteFile(count, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.until(`document.querySelectorAll(".column.completed .task").length === 2`)
	b.shows("number 6.")
	for i := 1; i <= 6; i++ {
		if n := times(fmt.Sprintf("number %d.", i)); n != 1 {
			t.Errorf("the session shows number %d %d times", i, n)
		}
	}

	until("one connection is open", func() bool { return open.Load() == 1 })

	b.login(&world{t: t, home: w.home, address: front.Listener.Addr().String()}, "#team=port&member=x")
	b.shows("hello from-x") // other streams are followed, from their beginnings
	if n := times("hello from-x"); n != 1 {
		t.Errorf("the session of x shows its output %d times", n)
	}
	b.press("History")
	b.until(`document.querySelectorAll(".log tbody [data-i]").length > 5`)
	w.cadre("task", "add", "port", "Think") // it comes without a question of the page
	b.until(`document.querySelector(".log tbody [data-i]").innerText.includes("Think")`)
	twice := js[[]string](b, `(all => all.filter((one, i) => all.indexOf(one) < i))(
		[...document.querySelectorAll(".log tbody [data-i]")].map(e => e.innerText))`)
	if len(twice) > 0 {
		t.Errorf("the history shows twice: %q", twice)
	}
	until("one connection is open", func() bool { return open.Load() == 1 })
	if n := streams.Load(); n > 30 {
		t.Errorf("the page has asked %d times for streams", n)
	}
}
