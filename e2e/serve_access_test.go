package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"cadre/internal/access"
	"cadre/internal/server/api"
)

// answered is what a route answered to a member.
type answered struct {
	route   api.Route
	network string // socket or tcp
	team    string // of the request; "" for a route without one
	status  int
	body    string
}

// detail returns why the request was refused.
func (a answered) detail() string {
	var p api.Problem
	json.Unmarshal([]byte(a.body), &p)
	return p.Detail
}

// pathParam finds the parameters of a route's path.
var pathParam = regexp.MustCompile(`\{[a-z]+\}`)

// TestServedRoutes calls every route from a member's task with curl, on the socket and with the
// token that it has read. Each route gives the verdict of its command: what is for the user is
// refused, and so is every other team; on its own team the core decides.
func TestServedRoutes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	p := w.serve("--listen", "127.0.0.1:0")
	p.awaits("and on http://")
	_, address, _ := strings.Cut(p.said(), "http://")
	w.must("create", "other")
	w.must("spawn", "other", "ann", "--agent", "shell")
	w.must("create", "demo")
	w.must("spawn", "demo", "ann", "--agent", "shell")
	eventually(t, "the server has both teams", func() bool { return len(w.keeping()) == 2 })

	var asked []answered
	var script strings.Builder
	fmt.Fprintf(&script, "token=$(cut -d' ' -f2 %s)\n", filepath.Join(w.home, "server", "tokens", "admin"))
	for _, route := range api.Routes() {
		teams := []string{""}
		if strings.Contains(route.Path, "{team}") {
			teams = []string{"demo", "other"}
		}
		for _, name := range teams {
			for _, network := range []string{"socket", "tcp"} {
				path := pathParam.ReplaceAllString(strings.ReplaceAll(route.Path, "{team}", name), "99")
				fmt.Fprintf(&script, "curl -sS --max-time 3 -w '\\n%%{http_code}' -o %[1]s -X %[2]s",
					file(w, len(asked), "body"), route.Method)
				if route.Body != nil {
					fmt.Fprint(&script, " -H 'Content-Type: application/json' -d '{}'")
				}
				if network == "socket" {
					fmt.Fprintf(&script, " --unix-socket %s http://cadre%s", filepath.Join(w.home, "server", "socket"),
						path)
				} else {
					fmt.Fprintf(&script, " -H \"Authorization: Bearer $token\" http://%s%s", strings.Fields(address)[0],
						path)
				}
				fmt.Fprintf(&script, " >%s 2>/dev/null\n", file(w, len(asked), "status"))
				asked = append(asked, answered{route: route, network: network, team: name})
			}
		}
	}
	path := filepath.Join(w.root, "ask.sh")
	if err := os.WriteFile(path, []byte(script.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(w.root, "answers"), 0o700); err != nil {
		t.Fatal(err)
	}
	w.must("task", "add", "demo", "ask", "--run", "sh "+path+"; true")
	w.untilCompleted(1)

	rules := map[access.Rule]int{}
	for i, is := range asked {
		status, err := os.ReadFile(file(w, i, "status"))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Sscan(string(status), &is.status)
		body, _ := os.ReadFile(file(w, i, "body")) // missing for an empty one
		is.body = string(body)
		rules[is.check(t)]++
	}
	for _, rule := range []access.Rule{access.Anyone, access.Reads, access.Acts, access.User} {
		if rules[rule] < 2 {
			t.Errorf("only %d requests have the rule %s", rules[rule], rule)
		}
	}
	if out := w.must("ls"); !strings.Contains(out, "other") || !strings.Contains(out, "demo") ||
		strings.Contains(out, "aborted") {
		t.Errorf("the member changed the teams:\n%s", out)
	}
}

func file(w *world, n int, kind string) string {
	return filepath.Join(w.root, "answers", fmt.Sprintf("%d.%s", n, kind))
}

// check compares the answer with the rule of the route's command, which it returns.
func (is answered) check(t *testing.T) access.Rule {
	var flags []string
	if is.route.Flags != nil {
		var body any
		if is.route.Body != nil {
			body = reflect.New(is.route.Body).Interface()
		}
		flags = is.route.Flags(body)
	}
	rule := access.RuleOf(is.route.Command, func(flag string) bool {
		for _, f := range flags {
			if f == flag {
				return true
			}
		}
		return false
	})
	if is.route.ID == "windDown" { // as cadre shutdown --graceful
		rule = access.User
	}
	bad := func(why string) {
		t.Errorf("%s %s of team %q over the %s, which %s: %s: %d %.300s", is.route.Method, is.route.Path, is.team,
			is.network, rule, why, is.status, is.body)
	}
	user := strings.Contains(is.detail(), " is for the user: ")
	elsewhere := strings.Contains(is.detail(), "is not the team of this session")
	unknown := strings.Contains(is.detail(), "it is not known who calls")
	switch {
	case is.status == 0 || is.status >= 500 || is.status == http.StatusUnauthorized || unknown:
		bad("it was not answered")
	case rule == access.User:
		if is.status != http.StatusForbidden || !user {
			bad("it is not refused as the user's")
		}
	case user:
		bad("it is refused as the user's")
	case is.team == "other" && is.route.Method == "GET":
		if is.status != http.StatusForbidden || !elsewhere {
			bad("another team is read")
		}
	case is.team == "other": // a wrong request may be refused before its team is looked for
		if is.status < 400 {
			bad("another team is changed")
		}
	case elsewhere:
		bad("its own team is refused")
	case is.team == "" && is.status < 300 && strings.Contains(is.body, `"other"`):
		bad("another team is shown")
	}
	return rule
}
