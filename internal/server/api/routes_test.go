package api_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/agent/sessionlog"
	"cadre/internal/engine"
	"cadre/internal/engine/upkeep"
	"cadre/internal/inspect"
	"cadre/internal/inspect/attention"
	"cadre/internal/inspect/catalog"
	"cadre/internal/inspect/history"
	"cadre/internal/run/templates"
	"cadre/internal/server/api"
	"cadre/internal/server/auth"
	"cadre/internal/server/supervisor"
	"cadre/internal/team"
	"cadre/internal/testkit/soak"
)

// same reports a difference between two values in their JSON. The first one may be the JSON itself.
func same(t testing.TB, what string, got, want any) {
	t.Helper()
	text := func(v any) string {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	if g, w := text(got), text(want); g != w {
		t.Errorf("%s is\n%.1500s\nwant\n%.1500s", what, g, w)
	}
}

var keys int

// twice sends a request twice with one Idempotency-Key: the second time it changes nothing, and has
// the same answer. It returns the answer.
func twice[T any](l *lab, of *engine.Team, method, path string, body any) (v T) {
	l.t.Helper()
	keys++
	key := fmt.Sprint("key-", keys)
	first := l.send(method, path, body, "Idempotency-Key", key)
	if first.status >= 300 {
		l.t.Fatalf("%s %s is refused: %d %s", method, path, first.status, first.body)
	}
	if err := of.Refresh(within(l.t)); err != nil {
		l.t.Fatal(err)
	}
	seq := of.Seq()
	second := l.send(method, path, body, "Idempotency-Key", key)
	if second.status != first.status || !bytes.Equal(second.body, first.body) {
		l.t.Errorf("%s %s answers\n%d %.1000s\nand then\n%d %.1000s", method, path, first.status, first.body,
			second.status, second.body)
	}
	if err := of.Refresh(within(l.t)); err != nil {
		l.t.Fatal(err)
	}
	if of.Seq() != seq {
		l.t.Errorf("%s %s is repeated, and makes %d records", method, path, of.Seq()-seq)
	}
	if seq := first.header.Get("Cadre-Seq"); seq != second.header.Get("Cadre-Seq") {
		l.t.Errorf("%s %s makes record %s, and then %s", method, path, seq, second.header.Get("Cadre-Seq"))
	}
	if len(first.body) > 0 {
		if err := json.Unmarshal(first.body, &v); err != nil {
			l.t.Fatalf("%s %s: %v", method, path, err)
		}
	}
	return v
}

// aTeam is what tests read of a team.
type aTeam struct {
	ID, Name, Goal, Dir string
	Status              team.TeamStatus
	Delegate            bool
	MaxTeammates        int64
	Budget              struct{ Tokens int64 }
}

const demo = "/v1/teams/demo"

// raw is an answer that is compared as it is.
type raw = json.RawMessage

// TestRoutes calls each route, and compares what it says and does with the team.
func TestRoutes(t *testing.T) {
	soak.Long(t)
	t.Parallel()
	l := newLab(t)
	l.write("make.txt", "all")
	of := l.createOf(&team.CreateTeam{Goal: "port it", Checks: []team.Check{{Name: "lint", Command: "true"}},
		Facts: []team.Fact{{Name: "make", Path: "make.txt"}}, Permissions: team.Permissions{Allow: []string{"Read"}}},
		members("ann", "bob")...)
	teamsPart(l, of)
	tasksPart(l, of)
	membersPart(l, of)
	messagesPart(l, of)
	notesPart(l, of)
	requestsPart(l, of)
	attentionPart(l, of)
	hooksPart(l, of)
	sessionPart(l, of)
	workPart(l, of)
	endPart(l)
	for _, r := range api.Routes() {
		if !l.checker.used[r.ID] {
			t.Errorf("the test does not call %s %s", r.Method, r.Path)
		}
	}
}

func teamsPart(l *lab, of *engine.Team) {
	t := l.t
	if h := ask[api.Health](l.client, "GET", "/v1/health", nil); !h.Healthy || h.Version != "test" {
		t.Errorf("%+v", h)
	}
	if c := ask[api.Caller](l.client, "GET", "/v1/caller", nil); !c.User || c.Role != "admin" || c.Token != "" {
		t.Errorf("%+v", c)
	}
	if text := l.send("GET", "/v1/openapi.json", nil); !bytes.Equal(text.body, api.OpenAPI) {
		t.Error("the description is another one")
	}
	if code := ask[api.LoginCode](l.client, "POST", "/v1/login-codes", api.CodeSpec{}); code.Code == "" ||
		code.Expires <= engine.Now() {
		t.Errorf("%+v", code)
	}
	same(t, "the list", ids(ask[[]catalog.Overview](l.client, "GET", "/v1/teams", nil)), []string{of.Team().ID})

	spec := api.TeamSpec{Name: "second", Goal: "more", Delegate: true, MaxTeammates: 3,
		Budget: api.BudgetSpec{Tokens: 7}, Metadata: map[string]json.RawMessage{"n": json.RawMessage("1")}}
	made := l.send("POST", "/v1/teams", spec, "Idempotency-Key", "second-team")
	var second aTeam
	if err := json.Unmarshal(made.body, &second); err != nil || second.Goal != "more" || !second.Delegate ||
		second.MaxTeammates != 3 || second.Budget.Tokens != 7 || second.Dir != l.project ||
		made.header.Get("Location") != "/v1/teams/"+second.ID {
		t.Errorf("%+v, %v, %v", second, err, made.header)
	}
	again := l.send("POST", "/v1/teams", spec, "Idempotency-Key", "second-team")
	if !bytes.Equal(again.body, made.body) {
		t.Errorf("the team is created again as %s", again.body)
	}
	l.refused(409, "taken", "POST", "/v1/teams", api.TeamSpec{Name: "second"})

	l.do("PUT", "/v1/server/teams/demo", nil)
	if kept := ask[[]supervisor.Team](l.client, "GET", "/v1/server/teams", nil); len(kept) != 1 ||
		kept[0].ID != of.Team().ID {
		t.Errorf("%+v", kept)
	}
	l.do("DELETE", "/v1/server/teams/demo", nil)
	if l.keeps.Has(of.Team().ID) {
		t.Error("the team is still kept")
	}

	present := l.send("GET", demo, nil)
	var state struct {
		Seq, Last            int64
		Team, Members, Rules raw
		Now                  *catalog.Overview
	}
	if err := json.Unmarshal(present.body, &state); err != nil {
		t.Fatal(err)
	}
	of.View(func(s *team.State) {
		same(t, "the team", state.Team, s.Team())
		same(t, "the members", state.Members, s.Members())
		same(t, "the rules", state.Rules, []api.PermissionRule{{Rule: "Read", Allows: team.RuleMeaning("Read")}})
	})
	if state.Seq != of.Seq() || state.Last != of.Seq() || state.Now == nil ||
		!strings.HasPrefix(present.header.Get("ETag"), fmt.Sprintf(`"%d-`, of.Seq())) {
		t.Errorf("%d of %d, %v", state.Seq, state.Last, present.header)
	}
	if status := ask[catalog.Standing](l.client, "GET", demo+"/status", nil); status.ID != of.Team().ID ||
		status.Seq != of.Seq() {
		t.Errorf("%+v", status.Overview)
	}
	records := ask[[]raw](l.client, "GET", demo+"/records?after=1&kind=member", nil)
	if len(records) != 2 || !strings.Contains(string(records[0]), `"member_spawned"`) {
		t.Errorf("%s", records)
	}
	if marks := ask[api.Marks](l.client, "GET", demo+"/marks", nil); len(marks.Marks) != 0 {
		t.Errorf("%+v", marks)
	}
	if since := ask[api.Since](l.client, "GET", demo+"/since?after=1", nil); since.From != 2 || since.To != of.Seq() {
		t.Errorf("%+v", since)
	}
	s := l.stream(demo + "/events?after=1")
	for seq := int64(2); seq <= of.Seq(); seq++ {
		if e := s.next(); e.kind != "record" || e.id != fmt.Sprint(seq) {
			t.Errorf("%+v", e)
		}
	}
	s.close()

	if is := twice[aTeam](l, of, "POST", demo+"/delegate", api.On{On: true}); !is.Delegate {
		t.Errorf("%+v", is)
	}
	if is := ask[aTeam](l.client, "POST", demo+"/delegate", api.On{}); is.Delegate {
		t.Errorf("%+v", is)
	}
	if is := ask[struct {
		Hosts int
		Team  aTeam
	}](l.client, "POST", demo+"/pause", nil); is.Hosts != 0 || is.Team.ID != of.Team().ID {
		t.Errorf("%+v", is)
	}
	if is := ask[aTeam](l.client, "POST", demo+"/resume", nil); is.ID != of.Team().ID || !l.keeps.Has(is.ID) {
		t.Errorf("%+v", is)
	}
}

func ids(all []catalog.Overview) (ids []string) {
	for _, o := range all {
		ids = append(ids, o.ID)
	}
	return ids
}

func tasksPart(l *lab, of *engine.Team) {
	t := l.t
	task := func(is team.Task) {
		t.Helper()
		of.Refresh(within(t))
		of.View(func(s *team.State) {
			want, _ := s.Task(is.ID)
			want.Fence = is.Fence // which is in an answer alone
			same(t, "the task", jsonOf(is.ID, is.Subject, is.Status, is.Owner),
				jsonOf(want.ID, want.Subject, want.Status, want.Owner))
		})
	}
	one := twice[team.Task](l, of, "POST", demo+"/tasks", api.TaskSpec{Name: "parse", Subject: "Parse it",
		Priority: "high", Timeout: 60_000, Metadata: map[string]json.RawMessage{"n": json.RawMessage("1")}})
	task(one)
	two := ask[team.Task](l.client, "POST", demo+"/tasks", api.TaskSpec{Subject: "Test it",
		BlockedBy: []string{"parse"}})
	three := ask[team.Task](l.client, "POST", demo+"/tasks", api.TaskSpec{Subject: "Say it", Owner: "bob"})
	of.Refresh(within(t))
	of.View(func(s *team.State) {
		same(t, "the tasks", raw(l.send("GET", demo+"/tasks", nil).body), collect(s))
	})
	if all := ask[[]team.Task](l.client, "GET", demo+"/tasks?status=blocked", nil); len(all) != 1 ||
		all[0].ID != two.ID {
		t.Errorf("%+v", all)
	}
	if is := ask[team.Task](l.client, "GET", demo+"/tasks/parse", nil); is.ID != one.ID {
		t.Errorf("%+v", is)
	}
	subject := "Parse all of it"
	if is := twice[team.Task](l, of, "PATCH", demo+"/tasks/parse",
		api.TaskChange{Subject: &subject}); is.Subject != subject {
		t.Errorf("%+v", is)
	}
	claimed := twice[team.Task](l, of, "POST", demo+"/tasks/parse/claim?as=ann", nil)
	if claimed.Owner != "ann" || claimed.Status != team.InProgress || claimed.Fence == 0 {
		t.Errorf("%+v", claimed)
	}
	paths := api.TaskPaths{Paths: []string{"src/**"}}
	if is := twice[team.Task](l, of, "POST", demo+"/tasks/parse/paths/claim?as=ann", paths); !slices.Equal(is.Holds,
		[]string{"src"}) {
		t.Errorf("%+v", is)
	}
	if all := ask[[]team.Task](l.client, "GET", demo+"/paths", nil); len(all) != 1 || all[0].ID != one.ID {
		t.Errorf("%+v", all)
	}
	l.refused(404, "not_found", "POST", demo+"/tasks/parse/paths/release?as=ann",
		api.TaskPaths{Paths: []string{"docs"}})
	if is := twice[team.Task](l, of, "POST", demo+"/tasks/parse/paths/release?as=ann", paths); len(is.Holds) > 0 {
		t.Errorf("%+v", is)
	}
	if is := twice[team.Task](l, of, "POST", demo+"/tasks/parse/release?as=ann",
		api.Outcome{Fence: claimed.Fence}); is.Status != team.Pending {
		t.Errorf("%+v", is)
	}
	if is := twice[team.Task](l, of, "POST", demo+"/tasks/parse/reassign",
		api.Reassignment{To: "ann"}); is.Owner != "ann" {
		t.Errorf("%+v", is)
	}
	claimed = twice[team.Task](l, of, "POST", demo+"/tasks/claim?as=ann&wait=5", nil)
	if claimed.ID != one.ID {
		t.Errorf("%+v", claimed)
	}
	l.refused(409, "nothing", "POST", demo+"/tasks/claim?as=ann", nil)
	if is := ask[team.Task](l.client, "POST", demo+"/tasks/parse/complete?as=ann",
		api.Outcome{Fence: claimed.Fence, Result: "done"}); is.Result != "done" || is.Status != team.Completed {
		t.Errorf("%+v", is)
	}
	ask[team.Task](l.client, "POST", demo+"/tasks/"+three.ID+"/claim?as=bob", nil)
	if is := twice[team.Task](l, of, "POST", demo+"/tasks/"+three.ID+"/fail?as=bob",
		api.Outcome{Reason: "no paper"}); is.Failure != "no paper" {
		t.Errorf("%+v", is)
	}
	twice[any](l, of, "DELETE", demo+"/tasks/"+two.ID, nil)
	l.refused(404, "not_found", "GET", demo+"/tasks/nine", nil)
}

func jsonOf(all ...any) []any { return all }

func collect(s *team.State) (all []team.Task) {
	for task := range s.Tasks() {
		all = append(all, task)
	}
	return all
}

func membersPart(l *lab, of *engine.Team) {
	t := l.t
	cat := twice[team.Member](l, of, "POST", demo+"/members", api.MemberSpec{Name: "cat", Agent: "external",
		Role: "tester", Prompt: "test it", PermissionMode: "plan", PlanApproval: true,
		Budget: api.BudgetSpec{Tokens: 9, Time: 3_600_000}})
	if cat.Role != "tester" || cat.PermissionMode != "plan" || !cat.Plan.Required || cat.Budget.Tokens != 9 {
		t.Errorf("%+v", cat)
	}
	of.View(func(s *team.State) {
		same(t, "the members", raw(l.send("GET", demo+"/members", nil).body), s.Members())
		m, _ := s.Member("cat")
		same(t, "the member", raw(l.send("GET", demo+"/members/cat", nil).body), m)
		if m.Budget.Time != time.Hour {
			t.Errorf("%+v", m.Budget)
		}
	})
	if is := twice[team.Member](l, of, "PUT", demo+"/members/ann/mode",
		api.ModeSpec{Mode: "acceptEdits"}); is.PermissionMode != "acceptEdits" {
		t.Errorf("%+v", is)
	}
	asked := twice[team.Member](l, of, "POST", demo+"/members/cat/shutdown", api.ShutdownSpec{Reason: "enough"})
	if asked.Shutdown.Request == "" || asked.Shutdown.Reason != "enough" || asked.Shutdown.Deadline < engine.Now() {
		t.Errorf("%+v", asked.Shutdown)
	}
	if is := twice[team.Member](l, of, "DELETE", demo+"/members/cat/shutdown", nil); is.Shutdown.Request != "" {
		t.Errorf("%+v", is.Shutdown)
	}
	ask[team.Member](l.client, "POST", demo+"/members/cat/shutdown", api.ShutdownSpec{})
	if is := twice[api.Leaving](l, of, "POST", demo+"/members/cat/shutdown/answer",
		api.ShutdownAnswer{Approved: true}); !is.Approved || is.Member != "cat" || is.Request == "" {
		t.Errorf("%+v", is)
	}
	zero := int64(0)
	ask[team.Member](l.client, "POST", demo+"/members", api.MemberSpec{Name: "dan", Agent: "external"})
	if is := ask[team.Member](l.client, "POST", demo+"/members/dan/shutdown?wait=20",
		api.ShutdownSpec{Deadline: &zero}); is.Status != team.Stopped {
		t.Errorf("%s", is.Status)
	}

	l.do("PUT", demo+"/rooms/eve", nil) // the test of rooms says what for
	l.do("DELETE", demo+"/rooms/eve", nil)

	// a shell member has a host, and the server keeps its team
	l.do("DELETE", "/v1/server/teams/demo", nil)
	first := l.send("POST", demo+"/members", api.MemberSpec{Name: "eve"}, "Idempotency-Key", "eve")
	again := l.send("POST", demo+"/members", api.MemberSpec{Name: "eve"}, "Idempotency-Key", "eve")
	if seq := first.header.Get("Cadre-Seq"); first.status != 200 || again.status != 200 || seq == "" ||
		seq != again.header.Get("Cadre-Seq") {
		t.Errorf("%+v, and then %+v", first, again)
	}
	if !l.keeps.Has(of.Team().ID) {
		t.Error("the server does not keep the team of a member that it has added")
	}
	if err := of.Refresh(within(t)); err != nil {
		t.Fatal(err)
	}
	if m, err := of.AwaitStart(within(t), "eve"); err != nil || m.Host == "" {
		t.Fatalf("%+v, %v", m, err)
	}
	limited(l, of, "eve")
	long := ask[team.Task](l.client, "POST", demo+"/tasks", api.TaskSpec{Subject: "Wait", Owner: "eve",
		Run: "sleep 1000"})
	until(t, of, func(s *team.State) bool {
		m, _ := s.Member("eve")
		task, _ := s.Task(long.ID)
		return m.Status == team.Active && task.Status == team.InProgress
	})
	if is := ask[team.Member](l.client, "POST", demo+"/members/eve/interrupt", nil); is.Interrupt == 0 {
		t.Errorf("%+v", is)
	}
	l.refused(409, "not_ready", "POST", demo+"/members/eve/lift", nil)
	l.refused(422, "invalid", "POST", demo+"/members/eve/handover", api.Reason{Reason: "fresh"}) // it has no context
	if is := ask[team.Member](l.client, "POST", demo+"/members/eve/shutdown?wait=30",
		api.ShutdownSpec{Deadline: &zero}); is.Status.Running() {
		t.Errorf("%+v", is)
	}
}

// limited has the model of a member tried again that waits for a rate limit.
func limited(l *lab, of *engine.Team, member string) {
	t := l.t
	host := ""
	of.View(func(s *team.State) {
		m, _ := s.Member(member)
		host = team.Host(m.Host)
	})
	act(t, of, host, &team.ReportTrouble{Member: member, Trouble: team.TroubleLimit, Text: "429",
		Pool: "a pool", Until: engine.Now().Add(time.Hour)})
	if is := ask[team.Member](l.client, "POST", demo+"/members/"+member+"/lift", nil); is.Name != member {
		t.Errorf("%+v", is)
	}
	of.View(func(s *team.State) {
		if limits := s.RateLimits(); len(limits) > 0 {
			t.Errorf("still limited: %+v", limits)
		}
	})
}

// templatesPart lists and shows templates: those of a project only with a team that works in it.
func templatesPart(l *lab) {
	t := l.t
	l.write(".cadre/templates/own.yaml", "# What is ours.\nname: own\nparameters: {n: {type: int, default: 2}}\n"+
		"members: [{name: w}]\ntasks: [{id: a, subject: Do it, run: make}]\n")
	names := func(of []templates.Offer) (all []string) {
		for _, one := range of {
			all = append(all, one.Name)
		}
		return all
	}
	list := ask[[]templates.Offer](l.client, "GET", "/v1/templates", nil)
	if all := names(list); !slices.Contains(all, "review") || slices.Contains(all, "own") {
		t.Errorf("the templates are %q", all)
	}
	list = ask[[]templates.Offer](l.client, "GET", "/v1/templates?team=demo", nil)
	if i := slices.Index(names(list), "own"); i < 0 || !list[i].Untrusted || len(list[i].Parameters) != 1 {
		t.Errorf("the templates of the project are %+v", list)
	}
	is := ask[templates.Shown](l.client, "GET", "/v1/templates/own?team=demo", nil)
	if is.Template.Summary != "What is ours" || !slices.Equal(is.Commands, []string{"make"}) || len(is.Tasks) != 1 ||
		!strings.Contains(is.Text, "name: own") {
		t.Errorf("the template is %+v", is)
	}
	l.refused(404, "not_found", "GET", "/v1/templates/own", nil)
	l.refused(404, "not_found", "GET", "/v1/templates?team=nowhere", nil)
	l.refused(422, "invalid", "GET", "/v1/templates?team="+url.QueryEscape("../.."), nil)
}

func notesPart(l *lab, of *engine.Team) {
	t := l.t
	note, zero := demo+"/notes/decisions%2Fapi", int64(0)
	set := twice[team.Note](l, of, "PUT", note+"?as=ann", api.NoteText{Text: "Errors are JSON.", IfSeq: &zero})
	if set.Key != "decisions/api" || set.SetBy != "ann" || set.Seq == 0 {
		t.Errorf("%+v", set)
	}
	added := twice[team.Note](l, of, "POST", note+"/append", api.NoteAddition{Text: "They have a code."})
	if added.Text != "Errors are JSON.\nThey have a code." || added.UpdatedBy != team.User {
		t.Errorf("%+v", added)
	}
	p := l.refused(409, "conflict", "PUT", note, api.NoteText{Text: "x", IfSeq: &set.Seq})
	if p.Note == nil || *p.Note != added {
		t.Errorf("the problem is %+v", p)
	}
	l.refused(409, "conflict", "DELETE", note+fmt.Sprint("?ifSeq=", set.Seq), nil)
	l.refused(422, "invalid", "PUT", demo+"/notes/a%20b", api.NoteText{Text: "x"})
	l.refused(413, "too_large", "PUT", note, api.NoteText{Text: strings.Repeat("x", team.MaxNote+1)})
	same(t, "the list", ask[[]team.Note](l.client, "GET", demo+"/notes", nil), []team.Note{added})
	found := ask[[]engine.Found](l.client, "GET", "/v1/search?q="+url.QueryEscape(`"errors are" json`)+"&team=demo&kind=note", nil)
	if len(found) == 0 || found[0].Note != added.Key || len(found[0].Spans) != 2 {
		t.Errorf("the search finds %+v", found)
	}
	l.refused(422, "invalid", "GET", "/v1/search?q=", nil)
	l.refused(422, "invalid", "GET", "/v1/search?q=x&task=1", nil)
	templatesPart(l)
	is := l.send("GET", note, nil)
	same(t, "the note", raw(is.body), added)
	if tag := is.header.Get("ETag"); tag != fmt.Sprintf("%q", fmt.Sprint(added.Seq)) {
		t.Errorf("the ETag is %s", tag)
	}
	tag := is.header.Get("ETag")
	if is := l.send("GET", note, nil, "If-None-Match", tag); is.status != 304 {
		t.Errorf("with the present tag: %d", is.status)
	}
	if is := l.send("PUT", note, api.NoteText{Text: "x"}, "If-Match", fmt.Sprintf(`"%d"`, set.Seq)); is.status != 409 {
		t.Errorf("with an older tag: %d", is.status)
	}
	if is := l.send("PUT", note, api.NoteText{Text: "x"}, "If-Match", "x"); is.status != 422 {
		t.Errorf("with no tag: %d", is.status)
	}
	if is := l.send("DELETE", note, nil, "If-Match", fmt.Sprintf(`"%d"`, set.Seq)); is.status != 409 {
		t.Errorf("the end of a note with an older tag: %d", is.status)
	}
	if is := l.send("PUT", note, api.NoteText{Text: added.Text}, "If-Match", tag); is.status != 200 {
		t.Errorf("with the present tag: %d", is.status)
	}
	l.refused(404, "not_found", "GET", note+"?seq=0", nil)
	same(t, "the older version", ask[team.Note](l.client, "GET", note+fmt.Sprint("?seq=", set.Seq), nil), set)
	same(t, "the notes of the state", ask[struct{ Notes []team.Note }](l.client, "GET", demo, nil).Notes,
		[]team.Note{added})
	changes, err := of.NoteChanges(within(t), "decisions/api")
	if err != nil || len(changes) != 2 {
		t.Errorf("%+v, %v", changes, err)
	}
	same(t, "the changes", raw(l.send("GET", note+"/changes", nil).body), changes)
	twice[raw](l, of, "DELETE", note+fmt.Sprint("?ifSeq=", added.Seq), nil)
	l.refused(404, "not_found", "GET", note, nil)
	same(t, "no notes", raw(l.send("GET", demo+"/notes", nil).body), []team.Note{})
}

func messagesPart(l *lab, of *engine.Team) {
	t := l.t
	sent := twice[api.SentMessage](l, of, "POST", demo+"/messages", api.MessageSpec{To: "ann", Body: "hello",
		Intent: "question", Metadata: map[string]json.RawMessage{"n": json.RawMessage("1")}})
	if m := sent.Message; m.To != "ann" || m.Body != "hello" || m.From != team.User || m.Intent != "question" ||
		m.SentAt == 0 {
		t.Errorf("%+v", m)
	}
	all := twice[api.SentMessage](l, of, "POST", demo+"/broadcasts?as=bob", api.BroadcastSpec{Body: "lunch"})
	if m := all.Message; m.From != "bob" || m.Type != team.TypeBroadcast {
		t.Errorf("%+v", m)
	}
	same(t, "the peek", raw(l.send("GET", demo+"/members/ann/inbox", nil).body),
		inboxOf(t, l, "ann", engine.Reading{Peek: true}))
	mail := twice[[]raw](l, of, "POST", demo+"/members/ann/inbox/receive?wait=5", nil)
	of.Refresh(within(t))
	var ann team.Member
	of.View(func(s *team.State) { ann, _ = s.Member("ann") })
	if len(mail) == 0 || ann.DeliveredSeq != all.Message.Seq || ann.ReadSeq >= ann.DeliveredSeq {
		t.Errorf("%d messages, %d of %d read", len(mail), ann.ReadSeq, ann.DeliveredSeq)
	}
	same(t, "the unread messages", raw(l.send("GET", demo+"/members/ann/inbox?again=true", nil).body),
		inboxOf(t, l, "ann", engine.Reading{Peek: true, Again: true}))
	if is := twice[api.Reading](l, of, "POST", demo+"/members/ann/inbox/read",
		api.Reading{Through: ann.DeliveredSeq}); is.Through != ann.DeliveredSeq {
		t.Errorf("%+v", is)
	}
	l.refused(422, "invalid", "POST", demo+"/members/ann/inbox/read", api.Reading{Through: 1 << 40})
	messages, err := l.MailOf(within(t), "demo", team.User, "ann",
		history.MailFilter{Types: []string{team.TypeBroadcast}})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the list of a member", raw(l.send("GET", demo+"/messages?member=ann&type=broadcast", nil).body), messages)
	var from []struct{ From string }
	if err := json.Unmarshal(l.send("GET", demo+"/messages?from=bob", nil).body, &from); err != nil || len(from) != 1 {
		t.Errorf("%+v, %v", from, err)
	}
	if some := ask[[]raw](l.client, "GET", demo+fmt.Sprint("/messages?after=", all.Message.Seq-1, "&limit=1"),
		nil); len(some) != 1 {
		t.Errorf("%s", some)
	}
	if none := ask[[]raw](l.client, "GET", demo+fmt.Sprint("/messages?since=", engine.Now()+1_000_000),
		nil); len(none) != 0 {
		t.Errorf("%s", none)
	}
	ask[api.SentMessage](l.client, "POST", demo+"/messages?as=ann", api.MessageSpec{To: "bob", Body: "again"})
	var seq int64
	of.Refresh(within(t))
	of.View(func(s *team.State) { inbox := s.Inbox("bob"); seq = inbox[len(inbox)-1].Seq })
	if is := twice[api.Resent](l, of, "POST", demo+"/members/bob/inbox/resend",
		api.Choice{Messages: []int64{seq}}); is.Member != "bob" || !reflect.DeepEqual(is.Messages, []int64{seq}) {
		t.Errorf("%+v", is)
	}
}

func inboxOf(t testing.TB, l *lab, member string, r engine.Reading) (all []history.MailboxMessage) {
	t.Helper()
	r.Actor, r.Member = team.User, member
	if err := l.ReadMail(within(t), "demo", r, func(mail []history.MailboxMessage, _ int64) error {
		all = mail
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return all
}

// asks makes the member ask for permission, and returns the request.
func asks(t testing.TB, of *engine.Team, member, command string) string {
	t.Helper()
	input, _ := json.Marshal(map[string]string{"command": command})
	r := act(t, of, member, &team.RequestPermission{Tool: "Bash", Input: string(input),
		Deadline: engine.Now() + 600_000})
	e, _ := team.EventIn[*team.PermissionRequested](r)
	return e.Permission.Request
}

func requestsPart(l *lab, of *engine.Team) {
	t := l.t
	first := asks(t, of, "ann", "go test ./...")
	of.View(func(s *team.State) {
		same(t, "the requests", raw(l.send("GET", demo+"/permissions", nil).body), s.Permissions())
	})
	answered := twice[api.Answered](l, of, "POST", demo+"/permissions/"+first+"/answer",
		api.PermissionAnswer{Allow: true, Reason: "fine"})
	if answered != (api.Answered{Request: first, Member: "ann", Outcome: "allowed"}) {
		t.Errorf("%+v", answered)
	}
	if p := l.refused(409, "conflict", "POST", demo+"/permissions/"+first+"/answer",
		api.PermissionAnswer{}); !strings.Contains(p.Detail, "was allowed by the user") {
		t.Errorf("it does not say who was first: %s", p.Detail)
	}
	always := twice[api.Answered](l, of, "POST", demo+"/permissions/"+asks(t, of, "ann", "go vet ./...")+"/answer",
		api.PermissionAnswer{Allow: true, Always: true})
	if always.Outcome != "allowed" || always.Rule == "" {
		t.Errorf("%+v", always)
	}
	waits := asks(t, of, "bob", "make lint")
	rule := twice[api.PermissionRule](l, of, "POST", demo+"/rules", api.RuleSpec{Rule: "Bash(make:*)", Member: "bob"})
	if rule.By != team.User || rule.Allows == "" || !reflect.DeepEqual(rule.Allowed, []string{waits}) {
		t.Errorf("%+v", rule)
	}
	l.refused(403, "denied", "POST", demo+"/rules", api.RuleSpec{Rule: "Bash"})
	l.refused(422, "invalid", "POST", demo+"/rules", api.RuleSpec{Rule: "Bosh(ls:*)"})
	rules := ask[[]api.PermissionRule](l.client, "GET", demo+"/rules", nil)
	if len(rules) != 3 || rules[0].Rule != "Read" || rules[1].Rule != always.Rule || rules[2].Rule != rule.Rule {
		t.Errorf("%+v", rules)
	}
	twice[any](l, of, "DELETE", demo+"/rules?rule=Bash(make:*)&member=bob", nil)
	l.refused(404, "not_found", "DELETE", demo+"/rules?rule=Bash(make:*)&member=bob", nil)
	l.refused(400, "usage", "DELETE", demo+"/rules", nil)

	act(t, of, team.User, &team.SpawnMember{Name: "fay", Agent: team.External, PlanApproval: true})
	plan := twice[api.Submitted](l, of, "POST", demo+"/members/fay/plan", api.PlanSpec{Plan: "read, then write"})
	if plan.Member != "fay" || plan.Request == "" {
		t.Errorf("%+v", plan)
	}
	of.Refresh(within(t))
	plans, err := of.Plans(within(t))
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the plans", raw(l.send("GET", demo+"/plans?state=submitted", nil).body), plans)
	same(t, "the plan", raw(l.send("GET", demo+"/plans/"+plan.Request, nil).body), plans[0])
	approved := twice[api.Answered](l, of, "POST", demo+"/plans/"+plan.Request+"/answer",
		api.PlanAnswer{Approved: true})
	if approved != (api.Answered{Request: plan.Request, Member: "fay", Outcome: "approved"}) {
		t.Errorf("%+v", approved)
	}
	if p := l.refused(409, "conflict", "POST", demo+"/plans/"+plan.Request+"/answer",
		api.PlanAnswer{Feedback: "no"}); !strings.Contains(p.Detail, "was approved by the user") {
		t.Errorf("it does not say who was first: %s", p.Detail)
	}
	l.refused(404, "not_found", "GET", demo+"/plans/plan-77@fay", nil)
}

// attentionPart checks that each list of what waits is the one of the engine, which the command
// line prints.
func attentionPart(l *lab, of *engine.Team) {
	t := l.t
	asks(t, of, "ann", "rm -r build")
	list := func(only string) []attention.Item {
		t.Helper()
		f := l.Attention(only)
		defer f.Close()
		items, err := f.List(within(t))
		if err != nil || len(items) == 0 {
			t.Fatalf("%+v, %v", items, err)
		}
		return items
	}
	same(t, "the list", raw(l.send("GET", "/v1/attention", nil).body), list(""))
	same(t, "the list of a team", raw(l.send("GET", demo+"/attention", nil).body), list("demo"))
	same(t, "the list after a wait", raw(l.send("GET", demo+"/attention?wait=5", nil).body), list("demo"))

	f := l.Attention("")
	defer f.Close()
	look := func() {
		t.Helper()
		found, err := f.Teams(within(t))
		if err != nil {
			t.Fatal(err)
		}
		l.api.See(found)
	}
	look()
	s := l.stream("/v1/watch")
	var now api.Teams
	read := func(s *stream) string {
		t.Helper()
		e := s.next()
		if err := json.Unmarshal([]byte(e.data), &now); err != nil || e.kind != "teams" {
			t.Fatalf("%+v, %v", e, err)
		}
		return e.data
	}
	read(s)
	same(t, "the list of the stream", now.Attention, list(""))
	if len(now.Teams) != 2 || now.Teams[0].Name != "demo" || now.Teams[0].Seq != of.Seq() {
		t.Errorf("%+v", now.Teams)
	}
	look() // nothing changed, so nothing is sent
	act(t, of, team.User, &team.SetDelegate{On: true})
	look()
	act(t, of, team.User, &team.SetDelegate{})
	look()
	for read(s); now.Teams[0].Seq < of.Seq(); read(s) {
	}
	if now.Teams[0].Delegate {
		t.Errorf("%+v", now.Teams[0])
	}
}

func hooksPart(l *lab, of *engine.Team) {
	t := l.t
	if err := os.MkdirAll(l.Home.Claude, 0o700); err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(l.Home.Claude, "settings.json")
	if err := os.WriteFile(settings, []byte(`{"hooks": {"TaskCreated":
		[{"hooks": [{"type": "command", "command": "cat >&2; exit 2"}]}]}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	list, err := of.ListHooks()
	if err != nil || len(list.Hooks) != 1 {
		t.Fatalf("%+v, %v", list.Hooks, err)
	}
	hooks := ask[api.Hooks](l.client, "GET", demo+"/hooks", nil)
	same(t, "the hooks", hooks.Hooks, list.Hooks)
	id := list.Hooks[0].ID
	if is := ask[engine.HookTrial](l.client, "POST", demo+"/hooks/"+id+"/try", api.HookInput{}); !is.Rejected {
		t.Errorf("%+v", is)
	}
	trial := ask[engine.HookTrial](l.client, "POST", demo+"/hooks/TaskCreated/try",
		api.HookInput{Event: json.RawMessage(`{"hook_event_name":"TaskCreated","task_subject":"from the test"}`)})
	if !strings.Contains(trial.Feedback, "from the test") {
		t.Errorf("%+v", trial)
	}
	l.refused(422, "rejected", "POST", demo+"/tasks", api.TaskSpec{Subject: "Refuse it"})
	if is := twice[engine.Hook](l, of, "POST", demo+"/hooks/"+id+"/disable", nil); is.State != engine.HookOff {
		t.Errorf("%+v", is)
	}
	if is := twice[engine.Hook](l, of, "POST", demo+"/hooks/"+id+"/enable", nil); is.State != engine.HookOn {
		t.Errorf("%+v", is)
	}
	if err := os.Remove(settings); err != nil {
		t.Fatal(err)
	}
	l.refused(404, "not_found", "POST", demo+"/hooks/none/disable", nil)
}

func sessionPart(l *lab, of *engine.Team) {
	t := l.t
	act(t, of, team.User, &team.SpawnMember{Name: "gus", Agent: team.Claude})
	log, err := sessionlog.Of(of.Dir).Open("gus")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	add := func(kind sessionlog.Kind, text string) {
		t.Helper()
		if err := log.Add(sessionlog.Entry{Kind: kind, Text: text, At: engine.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	add(sessionlog.Prompt, "do it")
	add(sessionlog.Part, "I ")
	s := l.stream(demo + "/members/gus/session")
	is := func(s *stream, id, kind, text string) {
		t.Helper()
		e := s.next()
		var entry sessionlog.Entry
		if err := json.Unmarshal([]byte(e.data), &entry); err != nil || e.id != id || e.kind != "entry" ||
			string(entry.Kind) != kind || entry.Text != text {
			t.Fatalf("%+v, %v; want %s %s %s", e, err, id, kind, text)
		}
	}
	is(s, "1", "prompt", "do it")
	is(s, "2", "part", "I ")
	add(sessionlog.Text, "I do it")
	is(s, "3", "text", "I do it")
	back := l.stream(demo+"/members/gus/session?after=1", "Last-Event-ID", "2")
	is(back, "3", "text", "I do it")
	l.refused(409, "ahead", "GET", demo+"/members/gus/session?after=4", nil)
	l.refused(422, "invalid", "GET", demo+"/members/ann/session", nil) // it runs its own session

	for range 3 { // so that the first entries are not kept any more
		for range 2 * sessionlog.SegmentSize / (32 << 10) {
			add(sessionlog.Text, strings.Repeat("x", 32<<10))
		}
	}
	late := l.stream(demo + "/members/gus/session?after=2")
	e := late.next()
	var lost sessionlog.Entry
	if err := json.Unmarshal([]byte(e.data), &lost); err != nil || lost.Kind != sessionlog.Lost || lost.Seq != 3 ||
		e.id != fmt.Sprint(lost.Seq+lost.Count-1) {
		t.Fatalf("%+v, %v", e, err)
	}
	if next := late.next(); next.id != fmt.Sprint(lost.Seq+lost.Count) {
		t.Errorf("after %d lost entries from %d on comes %s", lost.Count, lost.Seq, next.id)
	}
	if is := twice[team.Member](l, of, "POST", demo+"/members/gus/handover",
		api.Reason{Reason: "fresh"}); is.Incarnation != 2 {
		t.Errorf("%+v", is)
	}
	act(t, of, team.User, &team.ReportStopped{Member: "gus", Reason: "the test ends it"})
	for e = late.next(); e.kind == "entry"; e = late.next() {
	}
	if e.kind != "end" {
		t.Errorf("%+v", e)
	}
}

func workPart(l *lab, of *engine.Team) {
	t := l.t
	limits, err := of.Limits("")
	if err != nil {
		t.Fatal(err)
	}
	got := ask[[]engine.Limit](l.client, "GET", demo+"/budget", nil)
	for i := range got { // they run
		got[i].Spent, limits[i].Spent, got[i].Left, limits[i].Left = 0, 0, 0, 0
	}
	same(t, "the budget", got, limits)
	tokens := int64(1000)
	keys++
	change := l.send("PATCH", demo+"/budget", api.BudgetChange{Tokens: &tokens})
	of.Refresh(within(t))
	if b := of.Team().Budget; change.status != 200 || b.Tokens != 1000 || b.Time != 0 {
		t.Errorf("%+v, %s", b, change.body)
	}
	hour := int64(3_600_000)
	ask[[]engine.Limit](l.client, "PATCH", demo+"/budget", api.BudgetChange{Member: "ann", Time: &hour})
	of.Refresh(within(t))
	of.View(func(s *team.State) {
		if m, _ := s.Member("ann"); m.Budget.Time != time.Hour || s.Team().Budget.Tokens != 1000 {
			t.Errorf("%+v", m.Budget)
		}
	})
	l.refused(400, "usage", "PATCH", demo+"/budget", api.BudgetChange{})

	l.write("make.txt", "more")
	facts := ask[[]inspect.Fact](l.client, "GET", demo+"/facts", nil)
	if len(facts) != 1 || !facts[0].Stale {
		t.Errorf("%+v", facts)
	}
	if facts = twice[[]inspect.Fact](l, of, "POST", demo+"/facts/record", nil); len(facts) != 1 || facts[0].Stale {
		t.Errorf("%+v", facts)
	}
	if is := ask[struct {
		Team    aTeam
		Members []raw
	}](l.client, "GET", demo+"/probe", nil); is.Team.ID != of.Team().ID || len(is.Members) == 0 {
		t.Errorf("%+v", is)
	}
	shown := filepath.Join(l.Home.Claude, "teams", "demo")
	if err := os.RemoveAll(shown); err != nil {
		t.Fatal(err)
	}
	if is := ask[upkeep.Health](l.client, "GET", demo+"/health", nil); !is.Healthy || is.Last != of.Seq() {
		t.Errorf("%+v", is)
	}
	if _, err := os.Stat(shown); err == nil {
		t.Error("a check that only reads writes in Claude Code's folders")
	}
	made := ask[api.Checkpoint](l.client, "POST", demo+"/checkpoints", nil)
	if made.Team != of.Team().ID || !made.Written || made.Commit == "" {
		t.Errorf("%+v", made)
	}
	list := ask[[]catalog.Checkpoint](l.client, "GET", demo+"/checkpoints", nil)
	if len(list) != 1 || list[0].Commit != made.Commit || !list[0].Here {
		t.Errorf("%+v", list)
	}
	rolledBack(l)
}

// rolledBack completes a task of the team work on a shell member, and undoes it.
func rolledBack(l *lab) {
	t := l.t
	l.git("add", "-A")
	l.git("commit", "-qm", "all")
	ask[aTeam](l.client, "POST", "/v1/teams", api.TeamSpec{Name: "work"})
	const work = "/v1/teams/work"
	of, err := l.Engine.Open(within(t), "work")
	if err != nil {
		t.Fatal(err)
	}
	defer of.Close()
	ask[team.Member](l.client, "POST", work+"/members", api.MemberSpec{Name: "sue"})
	task := ask[team.Task](l.client, "POST", work+"/tasks", api.TaskSpec{Subject: "Write it",
		Run: "echo text >new.txt"})
	until(t, of, func(s *team.State) bool {
		is, _ := s.Task(task.ID)
		return is.Status == team.Completed && is.Work != nil && !is.Work.Open()
	})
	diff := ask[api.Diff](l.client, "GET", work+"/tasks/"+task.ID+"/diff", nil)
	if !strings.Contains(diff.Patch, "new.txt") || diff.Member != "sue" {
		t.Errorf("%+v", diff)
	}
	zero := int64(0) // otherwise it does the task again
	ask[team.Member](l.client, "POST", work+"/members/sue/shutdown?wait=30", api.ShutdownSpec{Deadline: &zero})
	if is := twice[team.Task](l, of, "POST", work+"/tasks/"+task.ID+"/rollback",
		api.Undoing{Reason: "not so"}); is.Status == team.Completed {
		t.Errorf("%+v", is)
	}
	if is := ask[aTeam](l.client, "POST", work+"/abort", api.Reason{Reason: "enough"}); is.Status != team.TeamAborted {
		t.Errorf("%+v", is)
	}
	if is := ask[struct {
		Team aTeam
		All  []raw
	}](l.client, "GET", work+"/review", nil); is.Team.Status != team.TeamAborted || len(is.All) != 1 {
		t.Errorf("%+v", is)
	}
	l.do("POST", work+"/cleanup", api.Removal{Force: true, Branches: true})
	l.refused(404, "not_found", "GET", work, nil)
}

// endPart consolidates a team whose member has done its work by itself.
func endPart(l *lab) {
	t := l.t
	const third = "/v1/teams/third"
	ask[aTeam](l.client, "POST", "/v1/teams", api.TeamSpec{Name: "third", Checks: []api.CheckSpec{{Name: "text",
		Command: "cat third.txt && grep -q good third.txt"}}, Allow: []string{"Read"}, Policy: "deny"})
	of, err := l.Engine.Open(within(t), "third")
	if err != nil {
		t.Fatal(err)
	}
	defer of.Close()
	ask[team.Member](l.client, "POST", third+"/members", api.MemberSpec{Name: "ann", Agent: "external"})
	ask[team.Task](l.client, "POST", third+"/tasks", api.TaskSpec{Subject: "Write it", Owner: "ann"})
	ask[team.Task](l.client, "POST", third+"/tasks/claim?as=ann", nil)
	l.write("third.txt", "text\n")
	ask[team.Task](l.client, "POST", third+"/tasks/1/complete?as=ann", api.Outcome{})
	if is := twice[aTeam](l, of, "POST", third+"/wind-down", nil); is.Status != team.TeamConsolidating {
		t.Errorf("%+v", is)
	}
	if is := twice[aTeam](l, of, "POST", third+"/consolidation/rollback", nil); is.Status != team.TeamActive {
		t.Errorf("%+v", is)
	}
	spec := api.ConsolidationSpec{Only: []string{"third.txt"}, Message: "Write it"}
	plan := ask[raw](l.client, "POST", third+"/consolidation/plan", spec)
	if !strings.Contains(string(plan), `"third.txt"`) {
		t.Errorf("%s", plan)
	}
	for _, path := range []string{"/consolidation/trial", "/consolidation"} {
		if p := l.refused(409, "not_ready", "POST", third+path, spec); p.Output != "text\n" {
			t.Errorf("%+v", p)
		}
	}
	l.write("third.txt", "good text")
	ask[raw](l.client, "POST", third+"/consolidation/trial", spec)
	for _, path := range []string{"../x", "/etc/passwd", "a/../b", "a//b", ".", "", ":(top)x", `a\b`} {
		l.refused(422, "invalid", "POST", third+"/consolidation", api.ConsolidationSpec{Only: []string{path}})
		l.refused(422, "invalid", "POST", third+"/consolidation", api.ConsolidationSpec{Include: []string{path}})
	}
	var done api.Consolidated
	text := twice[raw](l, of, "POST", third+"/consolidation", spec)
	if err := json.Unmarshal(text, &done); err != nil || done.Record == nil ||
		done.Record.Commit != l.git("rev-parse", "HEAD") || !reflect.DeepEqual(done.Staged, []string{"A third.txt"}) {
		t.Errorf("%v: %s", err, text)
	}
}

// TestLogIn checks that a code is used up by the browser that logs in, and not by a program that
// asks what its address leads to.
func TestLogIn(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	if _, err := l.tokens.Create("phone", auth.Answer); err != nil {
		t.Fatal(err)
	}
	code := ask[api.LoginCode](l.client, "POST", "/v1/login-codes", api.CodeSpec{Token: "phone"}).Code
	for _, step := range []struct {
		method string
		status int
		cookie bool
	}{{"HEAD", 405, false}, {"GET", 303, true}, {"GET", 403, false}} {
		w := httptest.NewRecorder()
		request := httptest.NewRequest(step.method, "/login?code="+code, nil)
		l.api.LogIn(func(*http.Request) bool { return false }).ServeHTTP(w, request)
		if w.Code != step.status || (len(w.Result().Cookies()) == 1) != step.cookie {
			t.Errorf("%s is answered by %d with %v", step.method, w.Code, w.Result().Cookies())
		}
	}
}
