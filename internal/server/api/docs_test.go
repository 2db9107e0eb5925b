package api_test

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"cadre/internal/server/api"
	"cadre/internal/server/auth"
	"cadre/internal/team"
	"cadre/internal/testkit/golden"
)

const page = "../../../docs/api.md"

// TestDocumentsRoutes checks that docs/api.md lists the routes, and the commands that have none.
func TestDocumentsRoutes(t *testing.T) {
	var routes, none strings.Builder
	routes.WriteString("\n| request | what it does | command | role |\n| --- | --- | --- | --- |\n")
	for _, r := range api.Routes() {
		var query []string
		for _, p := range r.Query {
			query = append(query, p.Name)
		}
		path := r.Path
		if query != nil {
			path += "?" + strings.Join(query, "&")
		}
		about, _, _ := strings.Cut(r.About, ". ") // the description has all of it
		fmt.Fprintf(&routes, "| `%s %s` | %s | `%s` | `%s` |\n", r.Method, path, strings.TrimSuffix(about, "."),
			r.Command, r.Role)
	}
	none.WriteString("\n| command | why |\n| --- | --- |\n")
	for _, name := range slices.Sorted(maps.Keys(withoutRoute)) {
		fmt.Fprintf(&none, "| `cadre %s` | %s |\n", name, withoutRoute[name])
	}
	golden.Part(t, page, "-run DocumentsRoutes -update -->\n", "<!-- end -->", routes.String()+"\n")
	golden.Part(t, page, "<!-- commands without a route -->\n", "<!-- end of commands -->", none.String()+"\n")
}

// TestDocumentsStatuses checks that docs/api.md has each code with its status.
func TestDocumentsStatuses(t *testing.T) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []team.Code{team.Invalid, team.NotFound, team.Taken, team.Denied, team.Conflict, team.NotReady,
		team.Nothing, team.TooLarge, team.Exhausted, team.Finished, team.Rejected, team.MaxTeammatesReached} {
		p := api.ProblemOf(team.Refuse(code, "no"))
		if row := regexp.MustCompile(fmt.Sprintf("(?m)^\\| %d \\|.*`%s`", p.Status, p.Code)); !row.Match(text) {
			t.Errorf("docs/api.md does not say that %s is %d", p.Code, p.Status)
		}
	}
}

// TestDocumentedRequests sends the requests that docs/api.md shows.
func TestDocumentedRequests(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	l := newLab(t)
	l.create(members("ann")...)
	found := regexp.MustCompile("(?ms)^ *```http\n(.*?)^ *```").FindAllStringSubmatch(string(text), -1)
	if len(found) < 4 {
		t.Fatalf("only %d requests", len(found))
	}
	for _, one := range found {
		lines := strings.Split(strings.TrimSpace(one[1]), "\n")
		method, path, _ := strings.Cut(strings.TrimSpace(lines[0]), " ")
		if strings.Contains(path, "/events") {
			l.stream(path).next()
			continue
		}
		var header []string
		var body any
		for i, line := range lines[1:] {
			if line == "" {
				body = strings.Join(lines[i+2:], "\n")
				break
			}
			name, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
			header = append(header, name, value)
		}
		if is := l.send(method, path, body, header...); is.status != 200 {
			t.Errorf("%s %s answers %d %s", method, path, is.status, is.body)
		}
	}
}

// TestDocumentedConnections runs the calls of curl that docs/api.md shows.
func TestDocumentedConnections(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	l := newLab(t)
	of := l.create()
	address := l.listenTCP()
	calls := 0
	for scan := bufio.NewScanner(strings.NewReader(string(text))); scan.Scan(); {
		if !strings.HasPrefix(scan.Text(), "curl ") {
			continue
		}
		calls++
		call := strings.NewReplacer("~/.cadre/server/socket", l.socket, "~/.cadre/server/tokens", l.tokens.Dir,
			"127.0.0.1:7433", address).Replace(scan.Text())
		call = strings.Replace(call, "curl ", "curl -sS --fail-with-body ", 1)
		out, err := exec.CommandContext(within(t), "sh", "-c", call).CombinedOutput()
		if err != nil || !strings.Contains(string(out), of.Team().ID) {
			t.Errorf("%s: %v\n%s", call, err, out)
		}
	}
	if calls != 2 {
		t.Errorf("%d calls", calls)
	}
	is, err := http.Get("http://" + address + "/v1/teams")
	if err != nil {
		t.Fatal(err)
	}
	io.Copy(io.Discard, is.Body)
	is.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	if is.StatusCode != http.StatusUnauthorized {
		t.Errorf("without a token it answers %d", is.StatusCode)
	}
}

// listenTCP serves the API over TCP, to those that have a token, and returns its address.
func (l *lab) listenTCP() string {
	l.t.Helper()
	if _, err := l.tokens.Ensure(auth.AdminToken, auth.Admin); err != nil {
		l.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l.t.Fatal(err)
	}
	address := listener.Addr().String()
	guard := &auth.Guard{Home: l.Home, Tokens: l.tokens, Codes: &auth.Codes{Tokens: l.tokens}, Refuse: refuse,
		Origins: func() []string { return []string{"http://" + address} }}
	l.serveOn(listener, guard.Handler)
	return address
}
