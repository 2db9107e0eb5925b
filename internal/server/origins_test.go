package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"cadre/internal/server/api"
	"cadre/internal/server/auth"
	"cadre/internal/team"
)

// TestOrigins checks at which addresses browsers reach the TCP listener.
func TestOrigins(t *testing.T) {
	for _, test := range []struct {
		listen, address, certificate string
		named                        []string
		want                         string
	}{
		{"127.0.0.1:0", "127.0.0.1:7433", "", nil,
			"http://127.0.0.1:7433 http://localhost:7433 http://127.0.0.1:7433 http://[::1]:7433"},
		{"127.1.2.3:7433", "127.1.2.3:7433", "", []string{"Board.Test:8000"},
			"http://board.test:8000 http://127.1.2.3:7433 http://localhost:7433 http://127.0.0.1:7433 " +
				"http://[::1]:7433"},
		{"10.0.0.1:80", "10.0.0.1:80", "", []string{"a.test:80", "https://b.test", "https://c.test:8443/"},
			"http://a.test http://a.test:80 https://b.test https://c.test:8443 http://10.0.0.1 http://10.0.0.1:80"},
		{"board.test:443", "10.0.0.1:443", "cert", nil, "https://board.test https://board.test:443"},
		{"board.test:80", "10.0.0.1:80", "cert", nil, "https://board.test:80"},
		{"0.0.0.0:7433", "[::]:7433", "cert", nil, ""},
		{"[::]:7433", "[::]:7433", "cert", []string{"a.test:7433", "https://B.test:443"},
			"https://a.test:7433 https://b.test https://b.test:443"},
		{":7433", "[::]:7433", "cert", nil, ""},
		{"", "", "", nil, ""},
	} {
		s := &Server{Options: Options{Listen: test.listen, Hosts: test.named, Certificate: test.certificate},
			address: test.address}
		var err error
		if s.named, err = s.namedOrigins(); err != nil {
			t.Errorf("%s: %v", test.listen, err)
		}
		if got := strings.Join(s.origins(), " "); got != test.want {
			t.Errorf("%s: %s, want %s", test.listen, got, test.want)
		}
	}
}

// TestWrongHosts checks that what no browser's address bar can show is refused.
func TestWrongHosts(t *testing.T) {
	for _, test := range []struct {
		named       []string
		certificate string
	}{
		{[]string{""}, ""}, {[]string{"https://"}, ""}, {[]string{"https://:443"}, ""}, {[]string{"a.test/path"}, ""},
		{[]string{"https://a.test/path"}, ""}, {[]string{"https://a.test?x"}, ""}, {[]string{"https://a.test#x"}, ""},
		{[]string{"https://ann@a.test"}, ""}, {[]string{"ws://a.test"}, ""}, {[]string{"a test"}, ""},
		{[]string{"http://a.test"}, "cert"},
		{[]string{"a.test:443", "https://a.test:443"}, ""}, {[]string{"https://a.test", "http://a.test"}, ""},
	} {
		o := Options{Listen: "127.0.0.1:0", Hosts: test.named, Certificate: test.certificate, Key: test.certificate}
		if err := (&Server{Options: o}).check(); team.CodeOf(err) != team.Invalid {
			t.Errorf("%q is accepted: %v", test.named, err)
		}
	}
}

// tunnel runs a proxy that ends TLS, and passes requests on by http. It returns a browser that
// reaches it by that name.
func tunnel(t *testing.T, name, to string) *http.Client {
	t.Helper()
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(p *httputil.ProxyRequest) {
		p.SetURL(&url.URL{Scheme: "http", Host: to})
		p.Out.Host = p.In.Host
	}})
	t.Cleanup(proxy.Close)
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(proxy.Certificate())
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "example.com"},
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			if host, _, _ := net.SplitHostPort(address); host != name {
				return nil, fmt.Errorf("%s is not %s", address, name)
			}
			var d net.Dialer
			return d.DialContext(ctx, network, proxy.Listener.Addr().String())
		}}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Jar: jar}
}

// TestTunnel checks that a browser behind a tunnel that ends TLS can read and write at the address
// that the person named, and that a page of another origin cannot.
func TestTunnel(t *testing.T) {
	const name, origin = "board.test", "https://board.test"
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "the board") })
	w := running(t, func(o *Options) {
		o.Listen, o.Hosts, o.Page, o.Data = "127.0.0.1:0", []string{origin}, page, page
	})
	browser := tunnel(t, name, w.server.Address())

	login, err := LogIn(t.Context(), w.engine.Home, origin, "", "")
	if err != nil {
		t.Fatal(err)
	}
	browser.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		cookies := r.Response.Cookies()
		if len(cookies) != 1 || cookies[0].Name != auth.Cookie || !cookies[0].Secure || !cookies[0].HttpOnly {
			t.Errorf("the login sets %v", cookies)
		}
		return nil
	}
	r, err := browser.Get(login.Address)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil || string(text) != "the board" || r.Request.URL.String() != origin+"/" {
		t.Errorf("the login leads to %s: %s %q %v", r.Request.URL, r.Status, text, err)
	}

	w.post("/v1/teams", api.TeamSpec{Name: "port"})
	for from, want := range map[string]int{origin: 200, "http://board.test": 403, "https://evil.test": 403, "null": 403,
		"http://" + w.server.Address(): 403, origin + ":443": 403, "https://" + w.server.Address(): 403} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", origin+"/v1/teams/port/tasks",
			strings.NewReader(`{"subject":"from the phone"}`))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Origin", from)
		is, err := browser.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		is.Body.Close()
		if is.StatusCode != want {
			t.Errorf("a task from a page of %s is answered by %s, want %d", from, is.Status, want)
		}
		ws, _, err := websocket.Dial(t.Context(), "wss://board.test/ws", &websocket.DialOptions{HTTPClient: browser,
			HTTPHeader: http.Header{"Origin": {from}}})
		if (err == nil) != (want == 200) {
			t.Errorf("a WebSocket from a page of %s: %v", from, err)
		}
		if err == nil {
			ws.CloseNow()
		}
	}
}

// TestLoginAddress checks that a login is made only for an address that the server answers to.
func TestLoginAddress(t *testing.T) {
	w := running(t, func(o *Options) { o.Listen, o.Hosts = "127.0.0.1:0", []string{"https://board.test"} })
	for at, ok := range map[string]bool{"https://board.test": true, "": true, "http://" + w.server.Address(): true,
		"http://board.test": false, "https://other.test": false, "https://" + w.server.Address(): false} {
		is, err := LogIn(t.Context(), w.engine.Home, at, "", "")
		if (err == nil) != ok || ok && !strings.HasPrefix(is.Address, at) {
			t.Errorf("a login for %q is at %q: %v", at, is.Address, err)
		}
		if !ok && (team.CodeOf(err) != team.NotReady || !strings.Contains(err.Error(), at)) {
			t.Errorf("a login for %q is refused with %v", at, err)
		}
	}
	r, text := w.send("POST", "/v1/login-codes", api.CodeSpec{Address: "x"})
	var p api.Problem
	if err := json.Unmarshal([]byte(text), &p); err != nil || r.StatusCode != http.StatusConflict {
		t.Errorf("a malformed address is answered by %s %s", r.Status, text)
	}
}
