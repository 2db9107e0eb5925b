package auth

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// expand replaces HOST by the address of the server, PORT by its port, TOKEN and COOKIE by what
// lets in.
func (l *lab) expand(request, token, cookie string) string {
	_, port, _ := net.SplitHostPort(l.address)
	return strings.NewReplacer("HOST", l.address, "PORT", port, "TOKEN", token, "COOKIE", Cookie+"="+
		cookie).Replace(request)
}

// TestGuard checks which requests come in over TCP.
func TestGuard(t *testing.T) {
	const bearer = "Authorization: Bearer TOKEN"
	const cookie = "Cookie: COOKIE"
	for _, test := range []struct {
		name, line, host string
		headers          []string
		want             int
	}{
		{"a token", "GET /data", "HOST", []string{bearer}, 200},
		{"a cookie", "GET /data", "HOST", []string{cookie}, 200},
		{"by the name localhost", "GET /data", "localhost:PORT", []string{bearer}, 200},
		{"by the IPv6 address", "GET /data", "[::1]:PORT", []string{bearer}, 200},
		{"a token in other letters", "GET /data", "HOST", []string{"authorization: bearer TOKEN"}, 200},
		{"a token among spaces", "GET /data", "HOST", []string{"Authorization: Bearer   TOKEN  "}, 200},
		{"a method that changes", "POST /data", "HOST", []string{bearer}, 200},
		{"a method that is not known", "PURGE /data", "HOST", []string{bearer}, 200}, // the routes decide

		{"nothing", "GET /data", "HOST", nil, 401},
		{"an empty token", "GET /data", "HOST", []string{"Authorization: Bearer "}, 401},
		{"no token", "GET /data", "HOST", []string{"Authorization: Bearer"}, 401},
		{"a wrong token", "GET /data", "HOST", []string{"Authorization: Bearer TOKENA"}, 401},
		{"a name for a token", "GET /data", "HOST", []string{"Authorization: Bearer tok"}, 401},
		{"another scheme", "GET /data", "HOST", []string{"Authorization: Basic TOKEN"}, 401},
		{"another scheme and a cookie", "GET /data", "HOST", []string{"Authorization: Basic TOKEN", cookie}, 401},
		{"two tokens", "GET /data", "HOST", []string{bearer, "Authorization: Bearer x"}, 401},
		{"the same token twice", "GET /data", "HOST", []string{bearer, bearer}, 401},
		{"a wrong token and a cookie", "GET /data", "HOST", []string{"Authorization: Bearer x", cookie}, 401},
		{"a token in the address", "GET /data?token=TOKEN", "HOST", nil, 401},
		{"a token in the address, too", "GET /data?token=TOKEN", "HOST", []string{bearer}, 401},
		{"an access token in the address", "GET /data?access_token=TOKEN", "HOST", []string{bearer}, 401},
		{"a token as a cookie", "GET /data", "HOST", []string{"Cookie: " + Cookie + "=TOKEN"}, 401},
		{"a wrong cookie", "GET /data", "HOST", []string{"Cookie: " + Cookie + "=x"}, 401},
		{"a cookie behind a wrong one", "GET /data", "HOST", []string{"Cookie: " + Cookie + "=x; COOKIE"}, 200},
		{"a cookie behind too many wrong ones", "GET /data", "HOST",
			[]string{"Cookie: " + strings.Repeat(Cookie+"=x; ", 20) + "COOKIE"}, 401},

		{"another host", "GET /data", "evil.test:PORT", []string{bearer}, 403}, // DNS rebinding
		{"another host with a cookie", "GET /data", "evil.test:PORT", []string{cookie}, 403},
		{"a host that ends alike", "GET /data", "evil.HOST", []string{cookie}, 403},
		{"a host that begins alike", "GET /data", "HOST.evil.test", []string{cookie}, 403},
		{"another port", "GET /data", "127.0.0.1:1", []string{bearer}, 403},
		{"no port", "GET /data", "127.0.0.1", []string{bearer}, 403},
		{"an empty host", "GET /data", "", []string{bearer}, 403},
		{"the address of all interfaces", "GET /data", "0.0.0.0:PORT", []string{bearer}, 403},
		{"the number of the address", "GET /data", "2130706433:PORT", []string{bearer}, 403},
		{"the host with a dot", "GET /data", "localhost.:PORT", []string{bearer}, 403},
		{"the socket's host", "GET /data", "cadre", []string{bearer}, 403},
		{"another host in the target", "GET http://evil.test/data", "HOST", []string{bearer}, 403},
		{"this host in the target", "GET http://HOST/data", "evil.test", []string{bearer}, 200}, // the target counts
		{"another host as forwarded", "GET /data", "HOST", []string{bearer, "X-Forwarded-Host: evil.test"}, 200},
		{"this host as forwarded", "GET /data", "evil.test", []string{bearer, "X-Forwarded-Host: HOST",
			"Forwarded: host=HOST"}, 403},

		{"the own origin", "GET /data", "HOST", []string{cookie, "Origin: http://HOST"}, 200},
		{"the own origin by another name", "GET /data", "localhost:PORT",
			[]string{cookie, "Origin: http://localhost:PORT"}, 200},
		{"the origin of another name of it", "GET /data", "HOST", []string{cookie, "Origin: http://localhost:PORT"},
			403},
		{"no origin by name", "GET /data", "HOST", []string{cookie, "Origin: null"}, 403}, // a sandboxed frame, a file
		{"an empty origin", "GET /data", "HOST", []string{cookie, "Origin: "}, 403},
		{"another port's origin", "GET /data", "HOST", []string{cookie, "Origin: http://127.0.0.1:1"}, 403},
		{"another scheme's origin", "GET /data", "HOST", []string{cookie, "Origin: https://HOST"}, 403},
		{"an origin in capitals", "GET /data", "HOST", []string{cookie, "Origin: HTTP://HOST"}, 403},
		{"an origin with a path", "GET /data", "HOST", []string{cookie, "Origin: http://HOST/"}, 403},
		{"an origin that begins alike", "GET /data", "HOST", []string{cookie, "Origin: http://HOST.evil.test"}, 403},
		{"two origins", "GET /data", "HOST", []string{cookie, "Origin: http://HOST", "Origin: http://evil.test"}, 403},
		{"two origins in one", "GET /data", "HOST", []string{cookie, "Origin: http://HOST http://evil.test"}, 403},
		{"another origin with a token", "GET /data", "HOST", []string{bearer, "Origin: http://evil.test"}, 403},
		{"another origin that changes", "POST /data", "HOST", []string{cookie, "Origin: http://evil.test"}, 403},
		{"an extension", "GET /data", "HOST", []string{cookie, "Origin: chrome-extension://abc"}, 403},

		{"the same site and origin", "POST /data", "HOST", []string{cookie, "Origin: http://HOST",
			"Sec-Fetch-Site: same-origin"}, 200},
		{"the user", "GET /data", "HOST", []string{cookie, "Sec-Fetch-Site: none"}, 200},
		{"another port of this machine", "GET /data", "HOST", []string{cookie, "Sec-Fetch-Site: same-site"}, 403},
		{"another port that changes", "POST /data", "HOST", []string{cookie, "Sec-Fetch-Site: same-site"}, 403},
		{"another site", "GET /data", "HOST", []string{cookie, "Sec-Fetch-Site: cross-site"}, 403},
		{"another site that navigates", "GET /data", "HOST", []string{cookie, "Sec-Fetch-Site: cross-site",
			"Sec-Fetch-Mode: navigate"}, 403},
		{"a site of two minds", "GET /data", "HOST", []string{cookie, "Sec-Fetch-Site: none",
			"Sec-Fetch-Site: cross-site"}, 403},
		{"an unknown site", "GET /data", "HOST", []string{cookie, "Sec-Fetch-Site: x"}, 403},
		// it proves nothing
		{"another page as the referrer", "GET /data", "HOST", []string{bearer, "Referer: http://evil.test/"}, 200},
		{"the own page as the referrer", "GET /data", "HOST", []string{cookie, "Origin: http://evil.test",
			"Referer: http://HOST/"}, 403},

		// a tunnel or a proxy that ends TLS before this listener
		{"an https page", "POST /data", "tunnel.test", []string{cookie, "Origin: https://tunnel.test"}, 200},
		{"an https page on a port", "POST /data", "proxy.test:8443",
			[]string{cookie, "Origin: https://proxy.test:8443"}, 200},
		{"an https page's WebSocket", "GET /ws", "tunnel.test", []string{cookie, "Origin: https://tunnel.test",
			"Connection: Upgrade", "Upgrade: websocket"}, 200},
		{"an https page that reads", "GET /data", "tunnel.test", []string{cookie, "Sec-Fetch-Site: same-origin"}, 200},
		{"an http page of an https host", "POST /data", "tunnel.test", []string{cookie, "Origin: http://tunnel.test"},
			403},
		{"an http page's WebSocket", "GET /ws", "tunnel.test", []string{cookie, "Origin: http://tunnel.test",
			"Connection: Upgrade", "Upgrade: websocket"}, 403},
		{"no origin by name at an https host", "POST /data", "tunnel.test", []string{cookie, "Origin: null"}, 403},
		{"another https page", "POST /data", "tunnel.test", []string{cookie, "Origin: https://evil.test"}, 403},
		{"another named https page", "POST /data", "tunnel.test", []string{cookie, "Origin: https://proxy.test:8443"},
			403},
		{"an https page below it", "POST /data", "tunnel.test", []string{cookie, "Origin: https://evil.tunnel.test"},
			403},
		{"an https page that begins alike", "POST /data", "tunnel.test",
			[]string{cookie, "Origin: https://tunnel.test.evil.test"}, 403},
		{"an https page with the usual port", "POST /data", "tunnel.test",
			[]string{cookie, "Origin: https://tunnel.test:443"}, 403},
		{"an https page on another port", "POST /data", "tunnel.test",
			[]string{cookie, "Origin: https://tunnel.test:8443"}, 403},
		{"an https page of an http host", "POST /data", "HOST", []string{cookie, "Origin: https://HOST"}, 403},
		{"an https page for an http host", "POST /data", "HOST", []string{cookie, "Origin: https://tunnel.test"}, 403},
		{"an https host with this port", "GET /data", "tunnel.test:PORT", []string{bearer}, 403},
		{"an https host on another port", "GET /data", "proxy.test", []string{bearer}, 403},
		{"a host below an https host", "GET /data", "evil.tunnel.test", []string{bearer}, 403},
		{"an https host by its scheme", "GET /data", "https://tunnel.test", []string{bearer}, 400},
		{"https as forwarded", "POST /data", "HOST", []string{cookie, "Origin: https://HOST",
			"X-Forwarded-Proto: https", "Forwarded: proto=https"}, 403},
		{"another site at an https host", "POST /data", "tunnel.test", []string{cookie, "Origin: https://tunnel.test",
			"Sec-Fetch-Site: cross-site"}, 403},
		{"an https host without a token", "POST /data", "tunnel.test", []string{"Origin: https://tunnel.test"}, 401},

		{"a preflight of another origin", "OPTIONS /data", "HOST", []string{"Origin: http://evil.test",
			"Access-Control-Request-Method: POST"}, 403},
		{"a preflight", "OPTIONS /data", "HOST", []string{"Access-Control-Request-Method: POST"}, 401},

		{"a WebSocket", "GET /ws", "HOST", []string{cookie, "Origin: http://HOST", "Connection: Upgrade",
			"Upgrade: websocket"}, 200},
		{"another origin's WebSocket", "GET /ws", "HOST", []string{cookie, "Origin: http://evil.test",
			"Connection: Upgrade", "Upgrade: websocket"}, 403},
		{"another port's WebSocket", "GET /ws", "HOST", []string{cookie, "Origin: http://127.0.0.1:1",
			"Connection: Upgrade", "Upgrade: websocket"}, 403},
		{"another host's WebSocket", "GET /ws", "evil.test:PORT", []string{cookie, "Origin: http://evil.test:PORT",
			"Connection: Upgrade", "Upgrade: websocket"}, 403},
		{"a WebSocket without a token", "GET /ws", "HOST", []string{"Connection: Upgrade", "Upgrade: websocket"}, 401},
		{"a WebSocket with a token in its protocol", "GET /ws", "HOST", []string{"Connection: Upgrade",
			"Upgrade: websocket", "Sec-WebSocket-Protocol: TOKEN"}, 401},
		{"a WebSocket with a token in its address", "GET /ws?token=TOKEN", "HOST", []string{"Connection: Upgrade",
			"Upgrade: websocket"}, 401},
		{"events", "GET /events", "HOST", []string{cookie, "Accept: text/event-stream", "Sec-Fetch-Site: same-origin"},
			200},
		{"another port's events", "GET /events", "HOST", []string{cookie, "Accept: text/event-stream",
			"Sec-Fetch-Site: same-site",
			"Origin: http://127.0.0.1:1"}, 403},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := open(t)
			token := l.create("tok", Steer)
			given := l.login("tok").Value
			r, body := l.send("tcp", l.expand(text(test.line, test.host, test.headers...), token, given))
			if r.StatusCode != test.want || (test.want == 200) != (body == "steer tok\n") {
				t.Errorf("the answer is %d %q, want %d", r.StatusCode, body, test.want)
			}
			for name := range r.Header {
				if strings.HasPrefix(name, "Access-Control") || name == "Set-Cookie" {
					t.Errorf("the answer has %s: %s", name, r.Header.Get(name))
				}
			}
			if (r.Header.Get("WWW-Authenticate") != "") != (test.want == 401) {
				t.Errorf("it asks for %q", r.Header.Get("WWW-Authenticate"))
			}
			if test.want != 200 && (strings.Contains(body, token) || strings.Contains(body, given) ||
				strings.Contains(body, l.home.Root)) {
				t.Errorf("the refusal says too much: %s", body)
			}
		})
	}
}

// TestGuardRaw checks requests that no browser writes.
func TestGuardRaw(t *testing.T) {
	for _, test := range []struct {
		name, network, request string
		want                   int
	}{
		{"no host", "tcp", "GET /data HTTP/1.1\r\nAuthorization: Bearer TOKEN\r\n\r\n", 400},
		{"no host in HTTP 1.0", "tcp", "GET /data HTTP/1.0\r\nAuthorization: Bearer TOKEN\r\n\r\n", 403},
		{"two hosts", "tcp", "GET /data HTTP/1.1\r\nHost: HOST\r\nHost: evil.test\r\nAuthorization: Bearer " +
			"TOKEN\r\n\r\n", 400},
		// as one line
		{"a folded header", "tcp", "GET /data HTTP/1.1\r\nHost: HOST\r\nAuthorization: Bearer\r\n TOKEN\r\n\r\n", 200},
		{"a space before the colon", "tcp", "GET /data HTTP/1.1\r\nHost: HOST\r\nAuthorization : Bearer TOKEN\r\n\r\n",
			400},
		{"two lengths", "tcp", "POST /data HTTP/1.1\r\nHost: HOST\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxx",
			400},
		{"on the socket without a host", "unix", "GET /data HTTP/1.0\r\n\r\n", 200},
		{"on the socket", "unix", text("GET /data", "localhost"), 200},
		{"on the socket by another host", "unix", text("GET /data", "evil.test"), 403},
		{"on the socket by an address", "unix", text("GET /data", "127.0.0.1:7433"), 403}, // it was forwarded
		{"on the socket from a page", "unix", text("GET /data", "localhost", "Origin: http://localhost"), 403},
		{"on the socket by a browser", "unix", text("GET /data", "localhost", "Sec-Fetch-Site: none"), 403},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := open(t)
			token := l.create("tok", Steer)
			if r, body := l.send(test.network, l.expand(test.request, token, "")); r.StatusCode != test.want {
				t.Errorf("the answer is %d %q, want %d", r.StatusCode, body, test.want)
			}
		})
	}
}

// TestGuardPage checks that a page without data needs no token, and the right host.
func TestGuardPage(t *testing.T) {
	l := open(t)
	for host, want := range map[string]int{"HOST": 200, "evil.test:PORT": 403} {
		if r, body := l.send("tcp", l.expand(text("GET /page", host), "", "")); r.StatusCode != want {
			t.Errorf("%s: %d %q", host, r.StatusCode, body)
		}
	}
}

// TestUnknownConnection checks that a connection that was not looked up gets nothing.
func TestUnknownConnection(t *testing.T) {
	l := open(t)
	server := &http.Server{Handler: l.guard.Handler(http.HandlerFunc(l.answer))}
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go server.Serve(tcp)
	defer server.Close()
	l.address = tcp.Addr().String()
	token := l.create("tok", Steer)
	if r, body := l.send("tcp", l.expand(text("GET /data", "HOST", "Authorization: Bearer TOKEN"), token,
		"")); r.StatusCode != 500 {
		t.Errorf("%d %q", r.StatusCode, body)
	}
}

// TestRemovedDuring checks that a stream ends when the token or the login that it came with ends.
func TestRemovedDuring(t *testing.T) {
	// The subtests run beside each other: each waits for a check that comes once a second.
	var all sync.WaitGroup
	defer all.Wait()
	run := func(kind string, test func(*testing.T)) { all.Go(func() { t.Run(kind, test) }) }
	for _, kind := range []string{"token", "cookie", "role"} {
		run(kind, func(t *testing.T) {
			l := open(t)
			token := l.create("tok", Steer)
			header := "Authorization: Bearer " + token
			if kind == "cookie" {
				header = "Cookie: " + l.login("tok").String()
				header, _, _ = strings.Cut(header, ";")
			}
			conn, err := net.Dial("tcp", l.address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			fmt.Fprint(conn, text("GET /stream", l.address, header))
			if got := next(t, l.answered); got != "steer tok" {
				t.Fatal(got)
			}
			if err := l.tokens.Remove("tok"); err != nil {
				t.Fatal(err)
			}
			if kind == "role" {
				l.create("tok", Observe)
			}
			if got := next(t, l.answered); got != errEnded.Error() {
				t.Errorf("the stream ends: %s", got)
			}
			r, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil {
				t.Fatal(err)
			}
			io.Copy(io.Discard, r.Body)
		})
	}
}

// TestWhile checks that a context lasts as long as its token, and that its checks end with it.
func TestWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		checks, valid := 0, true
		ctx, end := while(t.Context(), func() bool {
			mu.Lock()
			defer mu.Unlock()
			checks++
			return valid
		})
		time.Sleep(10*recheck + 1)
		mu.Lock()
		if ctx.Err() != nil || checks != 10 {
			t.Errorf("after %d checks: %v", checks, ctx.Err())
		}
		valid = false
		mu.Unlock()
		time.Sleep(recheck)
		if context.Cause(ctx) != errEnded {
			t.Errorf("it lasts: %v", ctx.Err())
		}
		end()
		_, end = while(t.Context(), func() bool { t.Error("it is checked after its end"); return true })
		end()
		time.Sleep(10 * recheck)
		same, end := while(t.Context(), nil)
		if end(); same.Err() != nil {
			t.Errorf("a context without a token ends: %v", same.Err())
		}
	})
}

// TestWrongTokens checks that wrong tokens are refused later and said once, and that the right one
// is never held up by them.
func TestWrongTokens(t *testing.T) {
	l := open(t)
	token := l.create("tok", Steer)
	wrong := text("GET /data", l.address, "Authorization: Bearer x")
	for range freeFailures + 3 {
		if r, _ := l.send("tcp", wrong); r.StatusCode != 401 {
			t.Fatal(r.Status)
		}
	}
	if said := next(t, l.said); !strings.Contains(said, "wrong tokens") || len(l.said) > 0 {
		t.Errorf("it is said %q, and %d more", said, len(l.said))
	}
	l.guard.bad.mu.Lock()
	l.guard.bad.waiting = mostWaiting
	l.guard.bad.mu.Unlock()
	if r, body := l.send("tcp", wrong); r.StatusCode != 429 {
		t.Errorf("one too many: %s %s", r.Status, body)
	}
	if r, body := l.send("tcp", text("GET /data", l.address, "Authorization: Bearer "+token)); r.StatusCode != 200 {
		t.Errorf("the right one: %s %s", r.Status, body)
	}
}

// FuzzCookie checks that no Cookie header but one with the login lets in.
func FuzzCookie(f *testing.F) {
	l := open(f)
	l.create("tok", Steer)
	value := l.login("tok").Value
	for _, header := range []string{Cookie + "=" + value, Cookie + "=\"" + value + "\"", "a=b; " + Cookie + "=" + value,
		Cookie, Cookie + "=", "; ;" + Cookie + "==" + value,
		strings.Repeat(Cookie+"=x;", 100), Cookie + "=" + value + "\x00"} {
		f.Add(strings.ReplaceAll(header, value, "VALUE"))
	}
	f.Fuzz(func(t *testing.T, header string) {
		l.guard.bad.mu.Lock()
		l.guard.bad.wrong = 0 // a refusal is not delayed
		l.guard.bad.mu.Unlock()
		r := &http.Request{Header: http.Header{"Cookie": {strings.ReplaceAll(header, "VALUE", value)}},
			URL: &url.URL{Path: "/data"}}
		is, _, err := l.guard.bearer(r)
		if err == nil && (is.name != "tok" || !strings.Contains(header, "VALUE") && !strings.Contains(header, value)) {
			t.Errorf("%q lets in as %v", header, is)
		}
	})
}
