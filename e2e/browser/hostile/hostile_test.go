package hostile

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	_ "embed"
)

//go:embed attack.js
var attacks string

// strange serves a page of strangers, and records the cookies that come to it.
type strange struct {
	*http.Server
	at      string
	mu      sync.Mutex
	cookies map[string]string // by the Host of the request
}

func stranger(t *testing.T, address string) *strange {
	t.Helper()
	s := &strange{cookies: map[string]string{}}
	mux := http.NewServeMux()
	mux.HandleFunc("/page", func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.cookies[r.Host] = r.Header.Get("Cookie")
		s.mu.Unlock()
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, "<!doctype html><title>a nice page</title><script>%s</script>", attacks)
	})
	mux.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusTemporaryRedirect)
	})
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	s.at, s.Server = l.Addr().String(), &http.Server{Handler: mux}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return s
}

// result is how an attack ended.
type result struct {
	Name   string `json:"name"`
	Result string `json:"result"`
}

// expect fails the test if an attack got anything.
func expect(t *testing.T, results []result, want int) {
	t.Helper()
	if len(results) < want {
		t.Errorf("only %d attacks were tried: %v", len(results), results)
	}
	for _, r := range results {
		if !slices.Contains([]string{"blocked", "opaque"}, r.Result) {
			t.Errorf("%s: %s", r.Name, r.Result)
		}
	}
}

// TestStrangers opens pages of another port of this host, which is the same site, so that the browser
// sends the cookie, and of another host. They read nothing and change nothing.
func TestStrangers(t *testing.T) {
	b := browse(t)
	w := newWorld(t)
	address := w.serve("0")
	evil := stranger(t, "127.0.0.1:0")
	_, port, _ := net.SplitHostPort(evil.at)

	b.do(chromedp.Navigate("http://" + address + "/login?code=" + w.code()))
	here := func() string {
		b.do(chromedp.Navigate("http://" + address + "/v1/caller"))
		return js[string](b, "document.body.innerText")
	}
	if text := here(); !strings.Contains(text, `"token":"admin"`) {
		t.Fatalf("the user is not logged in: %s", text)
	}
	if cookies := js[string](b, "document.cookie"); cookies != "" {
		t.Errorf("scripts see the cookie: %s", cookies)
	}

	for _, host := range []string{"127.0.0.1:" + port, "localhost:" + port} {
		b.do(chromedp.Navigate("http://" + host + "/page"))
		expect(t, js[[]result](b, fmt.Sprintf("attack(%q)", address)), 25)
		w.unchanged()
	}
	// docs/server-security.md says so: cookies are shared between the ports of a host
	if !strings.Contains(evil.cookies["127.0.0.1:"+port], "cadre_session=") {
		t.Error("the browser keeps the cookie from other ports, and the document says that it does not")
	}
	if evil.cookies["localhost:"+port] != "" {
		t.Error("the browser sends the cookie to another host")
	}
	if text := here(); !strings.Contains(text, `"token":"admin"`) {
		t.Errorf("the user was logged out: %s", text)
	}
}

// TestRebinding opens a page whose name resolves to this machine, on the port that is the server's from
// then on. The browser takes the server for the page's own.
func TestRebinding(t *testing.T) {
	b := browse(t, chromedp.Flag("host-resolver-rules", "MAP evil.test 127.0.0.1"))
	w := newWorld(t)
	evil := stranger(t, "127.0.0.1:0")
	_, port, _ := net.SplitHostPort(evil.at)
	b.do(chromedp.Navigate("http://evil.test:" + port + "/page"))
	evil.Close()
	address := w.serve(port)
	expect(t, js[[]result](b, fmt.Sprintf("attack(%q)", "evil.test:"+port)), 25)
	expect(t, js[[]result](b, fmt.Sprintf("attack(%q)", address)), 25)
	w.unchanged()
	if status := js[int](b, "fetch('/v1/caller').then(r => r.status)"); status != http.StatusForbidden {
		t.Errorf("the page's own request is answered with %d", status)
	}
	b.do(chromedp.Navigate("http://evil.test:" + port + "/login?code=" + w.code()))
	b.do(chromedp.Navigate("http://evil.test:" + port + "/v1/caller"))
	if text := js[string](b, "document.body.innerText"); !strings.Contains(text, "does not answer to the host") {
		t.Errorf("by another name the server says %s", text)
	}
}
