package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"cadre/internal/server"
)

// TestBoard: cadre board starts a server where none runs. Its address logs a browser in, once. The
// page is open to all, and its data only to that browser.
func TestBoard(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo", "--goal", "port the parser")
	t.Cleanup(func() { w.cadre("serve", "--stop") })
	var is server.Login
	if err := json.Unmarshal([]byte(w.must("board", "demo", "--json")), &is); err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(is.Address)
	if err != nil || address.Hostname() != "127.0.0.1" || !strings.HasPrefix(address.Fragment, "team=demo-") {
		t.Fatalf("the address is %s: %v", is.Address, err)
	}
	base := "http://" + address.Host
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	known, stranger := &http.Client{Jar: jar}, &http.Client{}
	get := func(c *http.Client, path string) (int, string) {
		t.Helper()
		r, err := c.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		var b strings.Builder
		if _, err := fmt.Fprint(&b, r.Header.Get("Content-Security-Policy"), "\n"); err != nil {
			t.Fatal(err)
		}
		var value any
		json.NewDecoder(r.Body).Decode(&value) // the page is no JSON
		fmt.Fprint(&b, value)
		return r.StatusCode, b.String()
	}
	data := []string{"/board/teams", "/board/teams/demo/now", "/board/teams/demo/states",
		"/board/teams/demo/states?after=0&base=true", "/board/teams/demo/lanes", "/board/teams/demo/log"}
	for _, path := range append(data, "/v1/teams") {
		if status, body := get(stranger, path); status != http.StatusUnauthorized || strings.Contains(body, "parser") {
			t.Errorf("a stranger gets %d from %s: %s", status, path, body)
		}
	}
	if status, body := get(stranger, "/"); status != http.StatusOK || !strings.Contains(body, "script-src 'self'") {
		t.Errorf("the page: %d %s", status, body)
	}
	if status, _ := get(known, address.RequestURI()); status != http.StatusOK {
		t.Errorf("the login: %d", status)
	}
	for _, path := range data {
		if status, body := get(known, path); status != http.StatusOK {
			t.Errorf("the browser gets %d from %s: %s", status, path, body)
		}
	}
	for _, path := range []string{"/board/teams/%2e%2e/now", "/board/teams/..%2fdemo/now", "/board/teams/nobody/now",
		"/board/nothing"} {
		if status, body := get(known, path); status != http.StatusNotFound {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	if status, _ := get(stranger, address.RequestURI()); status == http.StatusOK {
		t.Error("the code logs in twice")
	}
	const named = "https://box.example:7433"
	if r := w.cadre("board", "--phone", named); r.code != 1 ||
		!strings.Contains(r.err, "cadre serve --listen 127.0.0.1:7433 --host "+named) {
		t.Errorf("for an address that the server does not know it ends with %d and says %q", r.code, r.err)
	}
	if r := w.cadre("board", "--phone", "box"); r.code == 0 || !strings.Contains(r.err, "is not an address") {
		t.Errorf("for no address it ends with %d and says %q", r.code, r.err)
	}
	w.must("serve", "--stop")
	w.serve("--listen", "127.0.0.1:0", "--host", named)
	if said := w.must("board", "--phone", named+"/"); !strings.Contains(said, named+"/login?code=") ||
		strings.Count(said, "█") < 100 {
		t.Errorf("for a phone it prints\n%s", said)
	}
	w.must("serve", "--stop")
	w.serve()
	if r := w.cadre("board", "--print"); r.code == 0 || !strings.Contains(r.err, "does not listen for browsers") {
		t.Errorf("without TCP it ends with %d and says %q", r.code, r.err)
	}
}

// TestBoardOfMember: a member's session gets nothing of the board's data, on the socket and with
// the token that it has read. It cannot open the board.
func TestBoardOfMember(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	w := newWorld(t)
	p := w.serve("--listen", "127.0.0.1:0")
	p.awaits("and on http://")
	_, rest, _ := strings.Cut(p.said(), "and on http://")
	address := strings.Fields(rest)[0]
	w.must("create", "demo", "--goal", "port the parser")
	w.must("spawn", "demo", "ann", "--agent", "shell")
	var script strings.Builder
	fmt.Fprintf(&script, "token=$(cut -d' ' -f2 %s)\n", filepath.Join(w.home, "server", "tokens", "admin"))
	socket := filepath.Join(w.home, "server", "socket")
	for _, path := range []string{"/board/teams", "/board/teams/demo/now", "/board/teams/demo/states",
		"/board/teams/demo/lanes", "/board/teams/demo/log"} {
		fmt.Fprintf(&script, "curl -sS --max-time 5 --unix-socket %s http://cadre%s\n", socket, path)
		fmt.Fprintf(&script, "curl -sS --max-time 5 -H \"Authorization: Bearer $token\" http://%s%s\n", address, path)
	}
	fmt.Fprintf(&script, "curl -sS --max-time 5 --unix-socket %s -H 'Content-Type: application/json' -d '{\"seq\":1}' "+
		"http://cadre/board/teams/demo/saw\n", socket)
	if err := os.WriteFile(filepath.Join(w.root, "ask.sh"), []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	answers := filepath.Join(w.root, "answers")
	w.must("task", "add", "demo", "ask", "--run", "sh "+filepath.Join(w.root, "ask.sh")+" >"+answers+" 2>&1; true")
	w.untilCompleted(1)
	said, err := os.ReadFile(answers)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(said), `"code":"denied"`); n != 11 || strings.Contains(string(said), "parser") {
		t.Errorf("%d of 11 requests were denied:\n%s", n, said)
	}
}

// TestExportedTeam: a team is in one file, which another run replaces.
func TestExportedTeam(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo", "--goal", "port the parser")
	file := filepath.Join(w.root, "demo.html")
	for range 2 {
		if said := w.must("export", "demo", "-o", file); said != "team demo is in "+file+"\n" {
			t.Errorf("it says %q", said)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(text), "<title>demo · cadre</title>") {
		t.Errorf("%d bytes: %v", len(text), err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others can read the file: %v", err)
	}
}
