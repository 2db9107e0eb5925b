package board

import (
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
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
	proxy := &httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(&url.URL{Scheme: "http", Host: w.address})
		p.Out.Host = p.In.Host
	}, ErrorLog: log.New(io.Discard, "", 0)}
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
