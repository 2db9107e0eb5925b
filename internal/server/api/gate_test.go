package api_test

import (
	"slices"
	"strings"
	"testing"

	"cadre/internal/access"
	"cadre/internal/agent"
	"cadre/internal/server/api"
	"cadre/internal/server/auth"
	"cadre/internal/server/supervisor"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// withoutRoute has the commands that act on a team or show it, and that no route does the work of.
var withoutRoute = map[string]string{
	"run":             "it reads a team file, whose path only a process of this machine may name",
	"host":            "it runs sessions in its own process; the server starts it",
	"hosts":           "machines belong to a database, whichever servers have it",
	"push":            "it sends the team to a remote, which the person agrees to at a terminal",
	"pull":            "it fetches from a remote, and asks which history of a team counts",
	"store init":      "a server has its database already",
	"store migrate":   "the servers of an older version end first",
	"store move":      "it moves a team between a server's teams and others",
	"trust":           "the person reads the hooks of a project before they run",
	"notify":          "it sets up how this machine notifies; GET /v1/watch is there for other machines",
	"watch":           "it is a screen; GET /v1/watch and the events have what it shows",
	"panes":           "it opens panes of a terminal",
	"join":            "it runs an agent at a terminal",
	"claude-teammate": "it runs an agent for Claude Code",
	"board":           "it opens a browser on this server",
	"export":          "it writes a file that the person names",
	"serve token":     "it is help",
	"serve token add": "only who is at the machine lets somebody in",
	"serve token ls":  "it shows paths of files",
	"serve token rm":  "only who is at the machine decides who gets in",
	"mcp":             "it speaks MCP with the session that started it",
	"wake":            "it is a hook of Claude Code",
	"observe":         "it reads the output of agents on this machine",
	"report-killed":   "a process of this machine calls it that found a member killed",
}

// aboutNoTeam has the commands that are about no team.
var aboutNoTeam = []string{"", "help", "completion", "completion bash", "completion fish", "completion powershell",
	"completion zsh", "__complete", "schema observe", "schema teamfile", "validate", "doctor", "init",
	"gemini-hook", "task", "note", "store"}

// TestTable checks that each route names a command, and that each command about a team has a route
// or a reason why it has none.
func TestTable(t *testing.T) {
	commands, seen, paths := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, row := range access.Commands() {
		commands[row.Name] = true
	}
	for _, r := range api.Routes() {
		if !commands[r.Command] {
			t.Errorf("%s %s names the command %q, which is not in the table of callers", r.Method, r.Path, r.Command)
		}
		if seen[r.ID] || paths[r.Method+r.Path] {
			t.Errorf("%s %s, or its id, is there twice", r.Method, r.Path)
		}
		seen[r.ID], paths[r.Method+r.Path] = true, true
		if r.Role < auth.Observe || r.Role > auth.Admin || r.About == "" || !strings.HasSuffix(r.About, ".") {
			t.Errorf("%s %s needs the role %d and says %q", r.Method, r.Path, r.Role, r.About)
		}
		if reads := access.RuleOf(r.Command, nil) <= access.Reads; r.Method != "GET" && r.Role == auth.Observe &&
			reads && !slices.Contains([]string{"planConsolidation"}, r.ID) {
			t.Errorf("%s %s changes something, and needs only the role observe", r.Method, r.Path)
		}
	}
	routed := func(command string) bool {
		return slices.ContainsFunc(api.Routes(), func(r api.Route) bool { return r.Command == command })
	}
	for name := range commands {
		none := slices.Contains(aboutNoTeam, name)
		if n := count(routed(name), withoutRoute[name] != "", none); n != 1 {
			t.Errorf("cadre %s has a route: %v, has none because %q, and is about no team: %v", name, routed(name),
				withoutRoute[name], none)
		}
	}
	for name := range withoutRoute {
		if !commands[name] {
			t.Errorf("there is no command %q", name)
		}
	}
}

func count(all ...bool) (n int) {
	for _, is := range all {
		if is {
			n++
		}
	}
	return n
}

// example returns a path of the route, and a body that it takes.
func example(r api.Route) (path, body string) {
	path = strings.NewReplacer("{team}", "demo", "{member}", "ann", "{task}", "1", "{request}", "plan-1@ann",
		"{hook}", "x", "{template}", "hello").Replace(r.Path)
	if r.Body != nil {
		body = "{}"
	}
	if r.ID == "sendMessage" {
		body = `{"to":"bob","body":"x"}`
	}
	return path, body
}

// TestRoles checks that a token may use the routes of its role, and no others, and that what it
// does is in the history.
func TestRoles(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	of := l.create(members("ann")...)
	for role := auth.Observe; role <= auth.Admin; role++ {
		c := l.as(auth.Principal{Role: role, Token: "phone"})
		for _, r := range api.Routes() {
			if r.Role <= role {
				continue
			}
			path, body := example(r)
			p := c.refused(403, "denied", r.Method, path, body)
			if !strings.Contains(p.Detail, "needs a token with the role "+r.Role.String()) {
				t.Errorf("%s %s: %s", r.Method, path, p.Detail)
			}
		}
	}
	observer := l.as(auth.Principal{Role: auth.Observe, Token: "tv"})
	answers := l.as(auth.Principal{Role: auth.Answer, Token: "phone"})
	tv := api.Caller{User: true, Role: "observe", Token: "tv"}
	if is := ask[api.Caller](observer, "GET", "/v1/caller", nil); is != tv {
		t.Errorf("%+v", is)
	}
	request := asks(t, of, "ann", "go test ./...")
	answers.refused(403, "denied", "POST", demo+"/permissions/"+request+"/answer",
		api.PermissionAnswer{Allow: true, Always: true})
	ask[api.Answered](answers, "POST", demo+"/permissions/"+request+"/answer", api.PermissionAnswer{Allow: true})
	of.Refresh(within(t))
	for r, err := range of.Read(within(t), of.Seq()-1) {
		if err != nil || r.Via != "token phone" || r.Actor != team.User {
			t.Errorf("%+v, %v", r, err)
		}
	}
	steers := l.as(auth.Principal{Role: auth.Steer, Token: "desk"})
	steers.refused(403, "denied", "POST", demo+"/tasks", api.TaskSpec{Subject: "a", Run: "true"})
	steers.refused(403, "denied", "PATCH", demo+"/tasks/1", `{"run":"true"}`)
	steers.refused(403, "denied", "PUT", demo+"/members/ann/mode", api.ModeSpec{Mode: "bypassPermissions"})
	steers.refused(403, "denied", "POST", demo+"/members",
		api.MemberSpec{Name: "bob", PermissionMode: "bypassPermissions"})
	for _, rule := range []string{"Write(/**)", "Bash(go test:*)"} {
		steers.refused(403, "denied", "POST", demo+"/rules", api.RuleSpec{Rule: rule})
	}
	request = asks(t, of, "ann", "make")
	steers.refused(403, "denied", "POST", demo+"/permissions/"+request+"/answer",
		api.PermissionAnswer{Allow: true, Always: true})
	l.do("POST", "/v1/teams", api.TeamSpec{Name: "free", PermissionMode: "bypassPermissions"})
	// the lead's mode
	steers.refused(403, "denied", "POST", "/v1/teams/free/members", api.MemberSpec{Name: "bob", Agent: "external"})
	ask[team.Member](steers, "POST", "/v1/teams/free/members",
		api.MemberSpec{Name: "bob", Agent: "external", PermissionMode: "default"})
}

// TestMemberCalls checks that a member's session may do over the API what it may do on the command
// line.
func TestMemberCalls(t *testing.T) {
	l := newLab(t)
	of := l.create(members("ann", "bob")...)
	t.Setenv(agent.TeamVariable, "demo")
	t.Setenv(agent.TeamIDVariable, of.Team().ID)
	t.Setenv(agent.MemberVariable, "ann")
	who, err := access.Who(l.Home)
	if err != nil || who.Member() != "ann" {
		t.Fatalf("%s, %v", who, err)
	}
	ann := l.as(auth.Principal{Caller: who, Role: auth.Admin})
	if is := ask[api.Caller](ann, "GET", "/v1/caller", nil); is.User || is.Member != "ann" {
		t.Errorf("%+v", is)
	}
	for _, r := range api.Routes() {
		var body any
		path, text := example(r)
		if text != "" {
			body = text
		}
		if access.RuleOf(r.Command, nil) == access.User {
			if p := ann.refused(403, "denied", r.Method, path, body); !strings.Contains(p.Detail, "is for the user") {
				t.Errorf("%s %s: %s", r.Method, path, p.Detail)
			}
		}
		if strings.Contains(path, "/demo") {
			ann.refused(403, "denied", r.Method, strings.Replace(path, "/demo", "/other", 1), body)
		}
	}
	if is := ask[team.Task](ann, "POST", demo+"/tasks", api.TaskSpec{Subject: "Mine"}); is.CreatedBy != "ann" {
		t.Errorf("%+v", is)
	}
	ann.refused(403, "denied", "POST", demo+"/tasks", api.TaskSpec{Subject: "a", Run: "true"})
	ann.refused(403, "denied", "POST", demo+"/tasks?as=bob", api.TaskSpec{Subject: "a"})
	// it is not the lead
	ann.refused(403, "denied", "POST", demo+"/members", api.MemberSpec{Name: "cat", Agent: "external"})
	ann.refused(403, "denied", "PUT", demo+"/rooms/cat", nil)
	ann.refused(403, "denied", "POST", demo+"/members/bob/shutdown/answer", api.ShutdownAnswer{Approved: true})
	ann.refused(403, "denied", "POST", demo+"/members/bob/plan", api.PlanSpec{Plan: "x"})
	ann.refused(403, "denied", "GET", demo+"/members/bob/inbox", nil)
	ann.refused(403, "denied", "POST", demo+"/members/bob/inbox/receive", nil)
	ann.refused(403, "denied", "POST", demo+"/members/bob/inbox/read", api.Reading{})
	ann.refused(403, "denied", "GET", demo+"/messages?member=bob", nil)
	ann.refused(403, "denied", "PATCH", demo+"/budget", `{"tokens":7}`)
	ann.refused(403, "denied", "POST", demo+"/facts/record", nil)
	ann.refused(403, "denied", "POST", demo+"/permissions/"+asks(t, of, "ann", "ls")+"/answer",
		api.PermissionAnswer{Allow: true})
	ask[raw](ann, "GET", demo+"/members/ann/inbox", nil)
	if all := ask[raw](ann, "GET", "/v1/teams", nil); !strings.Contains(string(all), of.Team().ID) {
		t.Errorf("%s", all)
	}

	// of other teams it sees nothing
	l.do("POST", "/v1/teams", api.TeamSpec{Name: "other"})
	l.do("PUT", "/v1/server/teams/demo", nil)
	l.do("PUT", "/v1/server/teams/other", nil)
	if kept := ask[[]supervisor.Team](ann, "GET", "/v1/server/teams", nil); len(kept) != 1 || kept[0].Name != "demo" {
		t.Errorf("it sees that the server keeps %+v", kept)
	}
	for _, path := range []string{"/v1/teams", "/v1/attention", "/v1/server/teams"} {
		if is := ann.send("GET", path, nil); is.status != 200 || strings.Contains(string(is.body), `"other"`) {
			t.Errorf("%s shows %d %s", path, is.status, is.body)
		}
	}
	f := l.Attention("")
	defer f.Close()
	found, err := f.Teams(within(t))
	if err != nil || len(found) != 2 {
		t.Fatalf("%+v, %v", found, err)
	}
	l.api.See(found)
	if e := ann.stream("/v1/watch").next(); strings.Contains(e.data, `"other"`) ||
		!strings.Contains(e.data, of.Team().ID) {
		t.Errorf("%s", e.data)
	}

	// the lead's session may reserve room for a teammate, and give it back
	t.Setenv(agent.MemberVariable, "lead")
	if who, err = access.Who(l.Home); err != nil || who.Member() != "lead" {
		t.Fatalf("%s, %v", who, err)
	}
	lead := l.as(auth.Principal{Caller: who, Role: auth.Admin})
	lead.do("PUT", demo+"/rooms/cat", nil)
	lead.do("DELETE", demo+"/rooms/cat", nil)
}

// TestRoomGivenBack: room that is reserved for a teammate counts until it is given back.
func TestRoomGivenBack(t *testing.T) {
	t.Parallel()
	l := newLabOf(t, 1)
	l.create()
	for _, one := range []struct {
		method, room string
		status       int
	}{{"PUT", "ann", 204}, {"PUT", "bob", 409}, {"DELETE", "bob", 204}, {"PUT", "bob", 409}, {"DELETE", "ann", 204},
		{"PUT", "bob", 204}, {"PUT", "ann", 409}} {
		if is := l.send(one.method, demo+"/rooms/"+one.room, nil); is.status != one.status {
			t.Fatalf("%s for %s answers %d %s", one.method, one.room, is.status, is.body)
		}
	}
	for _, k := range ask[[]supervisor.Team](l.client, "GET", "/v1/server/teams", nil) {
		t.Errorf("the server keeps %s, for which only room was reserved", k.Name)
	}
}

// TestRoom checks that the server runs no more teammates than it may.
func TestRoom(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLabOf(t, 1)
	of := l.create()
	spawn := func(name, agent string) answer {
		t.Helper()
		return l.send("POST", demo+"/members", api.MemberSpec{Name: name, Agent: agent}, "Idempotency-Key", name)
	}
	if is := spawn("ann", ""); is.status != 200 {
		t.Fatalf("%s", is.body)
	}
	if p := l.refused(409, "not_ready", "POST", demo+"/members",
		api.MemberSpec{Name: "bob"}); !strings.Contains(p.Detail, "1 teammates, of at most 1") {
		t.Errorf("%+v", p)
	}
	kept := strings.Replace(demo, "/v1/", "/v1/server/", 1)
	if p := l.refused(409, "not_ready", "PUT", demo+"/rooms/bob", nil); !strings.Contains(p.Detail, "of at most 1") {
		t.Errorf("%+v", p)
	}
	for _, is := range [][2]string{{"DELETE", kept}, {"PUT", demo + "/rooms/bob"},
		{"PUT", kept}} { // what it does not keep does not count
		if got := l.send(is[0], is[1], nil); got.status != 204 {
			t.Errorf("%s %s: %s", is[0], is[1], got.body)
		}
	}
	if is := spawn("cat", "external"); is.status != 200 { // it has no session here
		t.Errorf("%s", is.body)
	}
	if is := spawn("ann", ""); is.status != 200 { // the same request again
		t.Errorf("%s", is.body)
	}
	zero := int64(0)
	ask[team.Member](l.client, "POST", demo+"/members/ann/shutdown?wait=30", api.ShutdownSpec{Deadline: &zero})
	if is := spawn("bob", ""); is.status != 200 {
		t.Errorf("%s", is.body)
	}
	ask[team.Member](l.client, "POST", demo+"/members/bob/shutdown?wait=30", api.ShutdownSpec{Deadline: &zero})
	if err := of.Refresh(within(t)); err != nil {
		t.Fatal(err)
	}
}
