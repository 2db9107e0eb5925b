package auth

import (
	"strings"
	"testing"
)

// TestKnownFailures sends the requests with which other local servers of agents and tools were
// taken over. The user's browser is logged in, and sends its cookie wherever a browser would.
func TestKnownFailures(t *testing.T) {
	const cookie = "Cookie: COOKIE"
	for _, test := range []struct {
		name    string
		request []string // the line, the host, and headers
		want    int
	}{
		// OpenCode served every process and, by permissive CORS headers, every page without a
		// password: a page created a session and ran a shell in it. There is no mode without a
		// token here, no answer has a CORS header, and a page of another origin is refused before
		// its token counts.
		{"CVE-2026-22812, a process", []string{"POST /session/1/shell", "HOST", "Content-Type: application/json"}, 401},
		{"CVE-2026-22812, a page asks first", []string{"OPTIONS /session/1/shell", "HOST", "Origin: https://evil.test",
			"Sec-Fetch-Site: cross-site", "Access-Control-Request-Method: POST",
			"Access-Control-Request-Headers: content-type"}, 403},
		{"CVE-2026-22812, a page", []string{"POST /session/1/shell", "HOST", cookie, "Origin: https://evil.test",
			"Sec-Fetch-Site: cross-site", "Content-Type: application/json"}, 403},

		// OpenClaw's page took the address of its gateway from its own address, and sent its token
		// there; with it, or from a page on the WebSocket, which checked no Origin, a stranger
		// steered the agent. No page has a token here: it has a cookie that its scripts cannot read
		// (TestCodes). A WebSocket needs the exact Origin, and no address carries a token.
		{"CVE-2026-25253, the socket from another page", []string{"GET /ws", "HOST", cookie,
			"Origin: https://evil.test", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
			"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="}, 403},
		{"CVE-2026-25253, the socket from another port", []string{"GET /ws", "HOST", cookie,
			"Origin: http://127.0.0.1:1", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
			"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=="}, 403},
		{"CVE-2026-25253, with the token in the address", []string{"GET /ws?token=TOKEN", "HOST",
			"Connection: Upgrade", "Upgrade: websocket"}, 401},

		// OpenClaw's control of a browser listened on loopback only, and so trusted whoever reached
		// it: a page's form could change its state. A change needs the exact Origin here, and, from
		// a browser that says so, the same site.
		{"CVE-2026-26317, a form", []string{"POST /tabs/open", "HOST", cookie, "Origin: https://evil.test",
			"Sec-Fetch-Site: cross-site", "Content-Type: application/x-www-form-urlencoded"}, 403},
		{"CVE-2026-26317, a form of a sandboxed frame", []string{"POST /tabs/open", "HOST", cookie, "Origin: null",
			"Sec-Fetch-Site: cross-site", "Content-Type: text/plain"}, 403},
		{"CVE-2026-26317, in an old browser", []string{"DELETE /storage", "HOST", cookie, "Origin: http://evil.test"},
			403},

		// A web application for tools had an endpoint that made calls for whoever asked. It is the
		// class of which number 10280 of 2026 is known; of number 10281 nothing more was found than
		// that it exists.
		{"a call for whoever asks", []string{"POST /api/mcp/call", "HOST", "Content-Type: application/json"}, 401},

		// The TypeScript SDK of MCP did not check Host: a page whose name was made to resolve to
		// this machine had the same origin as the server. Host is exact here, for streams too.
		{"CVE-2025-66414", []string{"POST /mcp", "rebound.evil.test:PORT", "Origin: http://rebound.evil.test:PORT",
			"Content-Type: application/json"}, 403},
		{"CVE-2025-66414, events", []string{"GET /sse", "rebound.evil.test:PORT", "Accept: text/event-stream"}, 403},
		{"CVE-2025-66414, with a stolen token", []string{"GET /sse", "rebound.evil.test:PORT",
			"Authorization: Bearer TOKEN"}, 403},

		// MCP Inspector started a program that a GET named, without a password, and browsers let
		// any page reach it by the address 0.0.0.0. No GET changes anything here, 0.0.0.0 is not
		// this server's name, and nothing is answered without a token.
		{"CVE-2025-49596, a process", []string{"GET /sse?transportType=stdio&command=touch&args=x", "HOST"}, 401},
		{"CVE-2025-49596, by 0.0.0.0", []string{"GET /sse?transportType=stdio&command=touch&args=x", "0.0.0.0:PORT",
			cookie, "Origin: https://evil.test"}, 403},
		{"CVE-2025-49596, an image", []string{"GET /sse?transportType=stdio&command=touch&args=x", "HOST", cookie,
			"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"}, 403},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := open(t)
			token := l.create("tok", Admin)
			request := text(test.request[0], test.request[1], test.request[2:]...)
			r, body := l.send("tcp", l.expand(request, token, l.login("tok").Value))
			if r.StatusCode != test.want {
				t.Errorf("the answer is %d %q, want %d", r.StatusCode, body, test.want)
			}
			for name := range r.Header {
				if strings.HasPrefix(name, "Access-Control") {
					t.Errorf("the answer has %s", name)
				}
			}
		})
	}
}
