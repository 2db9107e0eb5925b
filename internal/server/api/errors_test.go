package api_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"cadre/internal/server/api"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// TestMistakes checks what each mistake in a request is answered with.
func TestMistakes(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	of := l.create(members("ann")...)
	seq := of.Seq()
	const tasks = demo + "/tasks"
	for _, c := range []struct {
		what         string
		status       int
		code         string
		method, path string
		body         any
		header       []string
	}{
		{"not JSON", 400, "usage", "POST", tasks, "{", nil},
		{"no body", 400, "usage", "POST", tasks, nil, []string{"Content-Type", "application/json"}},
		{"an unknown field", 400, "usage", "POST", tasks, `{"subject":"a","program":"/bin/sh"}`, nil},
		{"two values", 400, "usage", "POST", tasks, `{"subject":"a"} {}`, nil},
		{"another type of a field", 400, "usage", "POST", tasks, `{"subject":7}`, nil},
		{"a form", 400, "usage", "POST", tasks, `subject=a`,
			[]string{"Content-Type", "application/x-www-form-urlencoded"}},
		{"JSON called text", 400, "usage", "POST", tasks, `{"subject":"a"}`, []string{"Content-Type", "text/plain"}},
		{"too large", 413, "too_large", "POST", tasks, `{"subject":"` + strings.Repeat("x", api.MaxBody) + `"}`, nil},
		{"a field that is too large", 413, "too_large", "POST", tasks,
			api.TaskSpec{Subject: strings.Repeat("x", team.MaxSubject+1)}, nil},
		{"too large a key", 413, "too_large", "POST", tasks, api.TaskSpec{Subject: "a"},
			[]string{"Idempotency-Key", strings.Repeat("x", team.MaxID+1)}},
		{"an unknown route", 404, "not_found", "GET", "/v1/nothing", nil, nil},
		{"another method", 405, "usage", "PUT", tasks, api.TaskSpec{Subject: "a"}, nil},
		{"an unknown team", 404, "not_found", "GET", "/v1/teams/other", nil, nil},
		{"an unknown team to change", 404, "not_found", "POST", "/v1/teams/other/tasks",
			api.TaskSpec{Subject: "a"}, nil},
		{"an unknown member", 404, "not_found", "GET", demo + "/members/zoe", nil, nil},
		{"mail of an unknown member", 404, "not_found", "GET", demo + "/members/zoe/inbox", nil, nil},
		{"an unknown task", 404, "not_found", "PATCH", tasks + "/77", api.TaskChange{}, nil},
		{"an unknown request", 404, "not_found", "POST", demo + "/permissions/permission-7@ann/answer",
			api.PermissionAnswer{}, nil},
		{"an unknown actor", 404, "not_found", "POST", tasks + "?as=zoe", api.TaskSpec{Subject: "a"}, nil},
		{"not a number", 400, "usage", "GET", demo + "?seq=x", nil, nil},
		{"a negative number", 400, "usage", "GET", demo + "/records?after=-1", nil, nil},
		{"not a Last-Event-ID", 400, "usage", "GET", demo + "/events", nil, []string{"Last-Event-ID", "x"}},
		{"too long a wait", 400, "usage", "POST", tasks + "/claim?as=ann&wait=61", nil, nil},
		{"an unknown status", 400, "usage", "GET", tasks + "?status=new", nil, nil},
		{"an unknown kind", 422, "invalid", "GET", demo + "/records?kind=nothing", nil, nil},
		{"an unknown type", 422, "invalid", "GET", demo + "/messages?type=nothing", nil, nil},
		{"a filter that does not fit", 400, "usage", "GET", demo + "/messages?unread=true", nil, nil},
		{"a negative budget", 422, "invalid", "PATCH", demo + "/budget", `{"tokens":-1}`, nil},
		{"a program for an agent", 403, "denied", "POST", demo + "/members",
			api.MemberSpec{Name: "bob", Agent: "acp:/bin/sh -c x"}, nil},
		{"an unknown agent", 422, "invalid", "POST", demo + "/members",
			api.MemberSpec{Name: "bob", Agent: "robot"}, nil},
		{"a path for a role", 422, "invalid", "POST", demo + "/members",
			api.MemberSpec{Name: "bob", Agent: "external", Role: "../x"}, nil},
		{"a name that is a path", 422, "invalid", "POST", "/v1/teams", api.TeamSpec{Name: "../x"}, nil},
		{"a broadcast that is no message", 422, "invalid", "POST", demo + "/messages",
			api.MessageSpec{To: "*", Body: "x"}, nil},
		{"an end of a team that has not ended", 409, "not_ready", "GET", demo + "/review", nil, nil},
		{"nothing within the wait", 409, "nothing", "POST", demo + "/members/ann/inbox/receive?wait=1", nil, nil},
		{"nothing waits within the wait", 409, "nothing", "GET", demo + "/attention?wait=1", nil, nil},
	} {
		p := l.refused(c.status, c.code, c.method, c.path, c.body, c.header...)
		if p.Detail == "" || p.Title != http.StatusText(c.status) || p.Type != "about:blank" || len(p.Detail) > 2000 {
			t.Errorf("%s: %+v", c.what, p)
		}
		if c.what == "too large" && p.Detail != "the body has more than 8388608 bytes, which is the most" {
			t.Errorf("%s: %s", c.what, p.Detail)
		}
	}
	if err := of.Refresh(within(t)); err != nil || of.Seq() != seq {
		t.Errorf("there are %d records more: %v", of.Seq()-seq, err)
	}
}

// TestPaths checks that no part of an address is a path of this machine.
func TestPaths(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.create(members("ann")...)
	for _, evil := range []string{"%2e%2e", "%2e%2e%2f%2e%2e%2fetc", "..%2fdemo", "demo%2f..%2fdemo", "%2fetc%2fpasswd",
		"demo%00", "demo%5c..", "demo-..%2fx", "de%6do%2fjournal", strings.Repeat("a", 5000)} {
		for _, path := range []string{"/v1/teams/" + evil, "/v1/teams/" + evil + "/tasks", demo + "/tasks/" + evil,
			demo + "/members/" + evil, demo + "/members/" + evil + "/session", demo + "/plans/" + evil} {
			is := l.send("GET", path, nil)
			if is.status != 404 {
				t.Errorf("%s answers %d %.300s", path, is.status, is.body)
			}
		}
		l.refused(404, "not_found", "POST", demo+"/hooks/"+evil+"/disable", nil)
		l.refused(404, "not_found", "PUT", "/v1/server/teams/"+evil, nil)
	}
	// net/http cleans a path before it looks for its route
	r, err := http.NewRequestWithContext(within(t), "GET", "http://cadre/v1/teams/../../etc/passwd", nil)
	if err != nil {
		t.Fatal(err)
	}
	is, err := l.http.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	is.Body.Close()
	if is.StatusCode < 300 {
		t.Errorf("it answers %d", is.StatusCode)
	}
}

// TestMethods checks that a route answers no other method, and says which ones it answers.
func TestMethods(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	of := l.create(members("ann")...)
	seq := of.Seq()
	path := strings.NewReplacer("{team}", "demo", "{member}", "ann", "{task}", "1", "{request}", "plan-1@ann",
		"{hook}", "x")
	takes := func(method, at string) bool {
		return route(method, at).ID != "" || method == "HEAD" && route("GET", at).ID != ""
	}
	for _, r := range api.Routes() {
		at := path.Replace(r.Path)
		var allowed []string
		for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
			if takes(method, at) {
				allowed = append(allowed, method)
			}
		}
		for _, method := range []string{"GET", "POST", "PUT", "PATCH", "DELETE", "TRACE", "OPTIONS", "PURGE"} {
			if takes(method, at) {
				continue
			}
			is := l.send(method, at, nil)
			var p api.Problem
			if err := json.Unmarshal(is.body, &p); err != nil || is.status != 405 || p.Status != 405 ||
				p.Code != "usage" {
				t.Errorf("%s %s answers %d %.300s", method, at, is.status, is.body)
			}
			if list := is.header.Get("Allow"); list != strings.Join(allowed, ", ") ||
				!strings.Contains(p.Detail, list) {
				t.Errorf("%s %s: Allow is %q, and the problem is %q; it takes %v", method, at, list, p.Detail, allowed)
			}
		}
	}
	if is := l.send("PUT", "/v1/nothing", nil); is.status != 404 || is.header.Get("Allow") != "" {
		t.Errorf("an unknown path answers %d, and allows %q", is.status, is.header.Get("Allow"))
	}
	if err := of.Refresh(within(t)); err != nil || of.Seq() != seq {
		t.Errorf("there are %d records more: %v", of.Seq()-seq, err)
	}
}

// TestKeys checks that an Idempotency-Key stands for one change.
func TestKeys(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	of := l.create(members("ann", "bob")...)
	const key = "Idempotency-Key"
	if _, err := of.Do(within(t), team.Command{ID: "k1", Actor: team.User,
		// as before a restart: only its record tells
		Body: &team.CreateTask{Subject: "Parse it", Priority: "medium"}}); err != nil {
		t.Fatal(err)
	}
	seq := strconv.FormatInt(of.Seq(), 10)
	for _, c := range []struct {
		method, path string
		body         any
	}{
		{"POST", demo + "/tasks", api.TaskSpec{Subject: "Test it"}},
		{"PATCH", demo + "/tasks/1", `{"subject":"Other"}`},
		{"DELETE", demo + "/tasks/1", nil},
		{"POST", demo + "/tasks/1/claim?as=ann", nil},
		{"POST", demo + "/tasks/claim?as=ann", nil},
		{"POST", demo + "/tasks/1/reassign", api.Reassignment{To: "ann"}},
		{"POST", demo + "/members", api.MemberSpec{Name: "cat", Agent: "external"}},
		{"POST", demo + "/members/ann/shutdown", api.ShutdownSpec{}},
		{"POST", demo + "/members/ann/shutdown/answer", api.ShutdownAnswer{Approved: true}},
		{"PUT", demo + "/members/ann/mode", api.ModeSpec{Mode: "plan"}},
		{"POST", demo + "/messages", api.MessageSpec{To: "ann", Body: "x"}},
		{"POST", demo + "/broadcasts", api.BroadcastSpec{Body: "x"}},
		{"POST", demo + "/members/ann/inbox/receive", nil},
		{"POST", demo + "/members/ann/inbox/read", api.Reading{}},
		{"POST", demo + "/members/ann/inbox/resend", api.Choice{}},
		{"POST", demo + "/permissions/permission-1@ann/answer", api.PermissionAnswer{Allow: true}},
		{"POST", demo + "/plans/plan-1@ann/answer", api.PlanAnswer{Approved: true}},
		{"POST", demo + "/members/ann/plan", api.PlanSpec{Plan: "x"}},
		{"POST", demo + "/rules", api.RuleSpec{Rule: "Bash(ls:*)"}},
		{"DELETE", demo + "/rules?rule=Bash(ls:*)", nil},
		{"PATCH", demo + "/budget", `{"tokens":7}`},
		{"POST", demo + "/facts/record", nil},
		{"POST", demo + "/consolidation", api.ConsolidationSpec{}},
		{"POST", demo + "/consolidation/rollback", nil},
		{"POST", demo + "/wind-down", nil},
		{"POST", demo + "/delegate", api.On{On: true}},
		{"POST", demo + "/abort", api.Reason{}},
	} {
		l.refused(400, "usage", c.method, c.path, c.body, key, "k1")
	}
	again := l.send("POST", demo+"/tasks", api.TaskSpec{Subject: "Parse it"}, key, "k1")
	if err := of.Refresh(within(t)); err != nil || again.header.Get("Cadre-Seq") != seq ||
		strconv.FormatInt(of.Seq(), 10) != seq {
		t.Errorf("%d records, want %s; %v", of.Seq(), seq, err)
	}

	// a request that was refused made no change, so its key may be used again
	ask[team.Task](l.client, "POST", demo+"/tasks/claim?as=ann", nil)
	l.refused(409, "nothing", "POST", demo+"/tasks/claim?as=bob", nil, key, "k2")
	ask[team.Task](l.client, "POST", demo+"/tasks", api.TaskSpec{Subject: "Test it"})
	if is := ask[team.Task](l.client, "POST", demo+"/tasks/claim?as=bob", nil, key, "k2"); is.Owner != "bob" {
		t.Errorf("%+v", is)
	}
}

// TestKeysOfLikeRequests checks that a key is refused for a request that differs from the first one
// in anything at all.
func TestKeysOfLikeRequests(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	l.create(members("ann", "bob")...)
	const key = "Idempotency-Key"
	for i, c := range []struct {
		method, path, other string
		first, second       any
	}{
		{"POST", demo + "/tasks", "", api.TaskSpec{Subject: "a"}, api.TaskSpec{Subject: "a", Description: "b"}},
		{"POST", demo + "/tasks", "", api.TaskSpec{Subject: "c"}, api.TaskSpec{Subject: "c", Priority: "high"}},
		{"POST", demo + "/tasks", demo + "/tasks?as=ann", api.TaskSpec{Subject: "d"}, api.TaskSpec{Subject: "d"}},
		{"POST", demo + "/messages", "", api.MessageSpec{To: "ann", Body: "x"},
			api.MessageSpec{To: "ann", Body: "x", Priority: "urgent"}},
		{"POST", "/v1/teams", "", api.TeamSpec{Name: "more"}, api.TeamSpec{Name: "more", Goal: "x"}},
	} {
		k := fmt.Sprint("like", i)
		l.send(c.method, c.path, c.first, key, k)
		l.send(c.method, c.path, c.first, key, k)
		l.refused(400, "usage", c.method, cmp.Or(c.other, c.path), c.second, key, k)
	}
	l.refused(400, "usage", "POST", demo+"/tasks", api.TaskSpec{Subject: "a"}, key, "\xff\xfe")
}

// TestKeyWhileWaiting checks that the key of a request that waited stands for what it waited for.
func TestKeyWhileWaiting(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	of := l.create(members("ann")...)
	claimed := make(chan answer)
	const claim = demo + "/tasks/claim?as=ann&wait=60"
	go func() { claimed <- l.send("POST", claim, nil, "Idempotency-Key", "k") }()
	act(t, of, team.User, &team.SendMessage{To: "ann", Body: "it wakes who waits"})
	act(t, of, team.User, &team.CreateTask{Subject: "one"})
	act(t, of, team.User, &team.CreateTask{Subject: "two"})
	first := <-claimed
	second := l.send("POST", claim, nil, "Idempotency-Key", "k")
	if first.status != 200 || string(first.body) != string(second.body) {
		t.Errorf("%d %s, and then %d %s", first.status, first.body, second.status, second.body)
	}
}
