package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"cadre/internal/server/api"
	"cadre/internal/testkit/soak"
	"cadre/pkg/teams"
)

// methods are the methods of a client, by the ids of the routes that they ask.
var methods = map[string][]string{
	"getHealth": {"Health"}, "getCaller": {"Caller"}, "listKept": {"KeptTeams"}, "keepTeam": {"KeepTeam"},
	"dropTeam": {"DropTeam"}, "reserveRoom": {"ReserveRoom"}, "giveBackRoom": {"GiveBackRoom"},
	"createLoginCode": {"CreateLoginCode"}, "getDescription": {"Description"},
	"listTeams": {"Teams"}, "createTeam": {"CreateTeam"}, "getTeam": {"State", "StateAt"}, "getStatus": {"Status"},
	"followEvents": {"Events"}, "listRecords": {"Records"}, "listMarks": {"Marks"}, "sumUp": {"Since"},
	"pauseTeam": {"PauseTeam"}, "resumeTeam": {"ResumeTeam"}, "setDelegate": {"SetDelegate"}, "windDown": {"WindDown"},
	"abortTeam": {"AbortTeam"}, "cleanUpTeam": {"CleanUpTeam"},
	"listMembers": {"Members"}, "spawnMember": {"Spawn"}, "getMember": {"Member"}, "followSession": {"Session"},
	"shutDownMember": {"Shutdown"}, "withdrawShutdown": {"WithdrawShutdown"}, "answerShutdown": {"AnswerShutdown"},
	"interruptMember": {"Interrupt"}, "liftRateLimit": {"LiftRateLimit"}, "handOver": {"HandOver"}, "setMode": {"SetMode"},
	"listTasks": {"Tasks"}, "addTask": {"AddTask"}, "getTask": {"Task"}, "updateTask": {"UpdateTask"},
	"deleteTask": {"DeleteTask"}, "claimNext": {"ClaimNext", "WaitNext"}, "claimTask": {"ClaimTask"},
	"completeTask": {"CompleteTask", "Decide"}, "failTask": {"FailTask"}, "releaseTask": {"ReleaseTask"},
	"listPaths": {"Paths"}, "claimPaths": {"ClaimPaths"}, "releasePaths": {"ReleasePaths"},
	"reassignTask": {"Reassign"}, "rollBackTask": {"RollBackTask"}, "getDiff": {"Diff"},
	"listMessages": {"Messages"}, "sendMessage": {"Send"}, "broadcast": {"Broadcast"}, "peekInbox": {"PeekInbox"},
	"receiveMessages": {"Receive", "AwaitMessages"}, "markRead": {"MarkRead"}, "resendMessages": {"Resend"},
	"listNotes": {"Notes"}, "getNote": {"Note", "NoteAt"}, "setNote": {"SetNote"}, "appendNote": {"AppendNote"},
	"deleteNote": {"DeleteNote"}, "listNoteChanges": {"NoteChanges"}, "search": {"Search"},
	"listTemplates": {"Templates"}, "getTemplate": {"Template"},
	"listPermissions": {"Permissions"}, "answerPermission": {"AnswerPermission"}, "listPlans": {"Plans"},
	"getPlan": {"Plan"}, "answerPlan": {"AnswerPlan"}, "submitPlan": {"SubmitPlan"}, "listRules": {"Rules"},
	"addRule": {"AddRule"}, "removeRule": {"RemoveRule"},
	"listLimits": {"Limits"}, "setBudget": {"SetBudget"}, "listCheckpoints": {"Checkpoints"},
	"makeCheckpoint": {"MakeCheckpoint"}, "planConsolidation": {"PlanConsolidation"}, "tryChecks": {"TryChecks"},
	"consolidate": {"Consolidate"}, "rollBack": {"RollBackConsolidation"}, "listFacts": {"Facts"},
	"recordFacts": {"RecordFacts"}, "probe": {"Probe"}, "review": {"Review"}, "checkTeam": {"CheckTeam"},
	"listHooks": {"Hooks"}, "disableHook": {"DisableHook"}, "enableHook": {"EnableHook"}, "tryHook": {"TryHook"},
	"listAttention": {"Attention", "AwaitAttention"}, "listTeamAttention": {"TeamAttention", "AwaitTeamAttention"},
	"watchTeams": {"Watch"},
}

// TestEveryRouteHasAMethod checks the table above both ways.
func TestEveryRouteHasAMethod(t *testing.T) {
	known := map[string]bool{"As": true, "Close": true}
	for _, r := range api.Routes() {
		if methods[r.ID] == nil {
			t.Errorf("no method asks the route %s", r.ID)
		}
	}
	for id, names := range methods {
		if !slices.ContainsFunc(api.Routes(), func(r api.Route) bool { return r.ID == id }) {
			t.Errorf("there is no route %s", id)
		}
		for _, name := range names {
			known[name] = true
			if _, is := reflect.TypeFor[*Client]().MethodByName(name); !is {
				t.Errorf("a client has no method %s", name)
			}
		}
	}
	for m := range reflect.TypeFor[*Client]().Methods() {
		if !known[m.Name] {
			t.Errorf("no route stands beside the method %s", m.Name)
		}
		for in := range m.Type.Ins() {
			if in.Kind() == reflect.Bool {
				t.Errorf("%s has a boolean parameter", m.Name)
			}
		}
	}
}

// TestEveryMethod calls each method on a real server, and checks what comes back, and that it asks
// the route of the table.
func TestEveryMethod(t *testing.T) {
	soak.Long(t)
	l := newLab(t)
	l.serve()
	c := l.open(Options{})
	ctx := within(t)
	called := map[string]bool{}
	// asks checks that the call of a method asks its route, and perhaps for the status of a team
	// first.
	asks := func(method string, do func()) {
		t.Helper()
		called[method] = true
		ids := l.asked.during(do)
		for id, names := range methods {
			if slices.Contains(names, method) && !slices.Contains(ids, id) {
				t.Errorf("%s asks %v, not %s", method, ids, id)
			}
		}
		for _, id := range ids {
			if !slices.Contains(methods[id], method) && id != "getStatus" {
				t.Errorf("%s asks %s", method, id)
			}
		}
	}
	check := func(is bool, format string, args ...any) {
		t.Helper()
		if !is {
			t.Errorf(format, args...)
		}
	}

	// The server, and a team.
	asks("Health", func() {
		is, err := c.Health(ctx)
		check(err == nil && is == Health{true, "test"}, "%+v, %v", is, err)
	})
	asks("Caller", func() {
		is, err := c.Caller(ctx)
		check(err == nil && is == Caller{User: true, Role: RoleAdmin}, "%+v, %v", is, err)
	})
	asks("Description", func() {
		is, err := c.Description(ctx)
		check(err == nil && bytes.Equal(is, bytes.TrimSpace(api.OpenAPI)), "%.100s, %v", is, err)
	})
	asks("CreateTeam", func() {
		is, err := c.CreateTeam(ctx, TeamSpec{Name: "demo", Goal: "Ship it.", MaxTeammates: 7,
			Policy: teams.PolicyDeny, Budget: teams.Budget{Tokens: 5, Time: time.Hour},
			Metadata: map[string]json.RawMessage{"k": json.RawMessage(`[1]`)}})
		check(err == nil && is.Name == "demo" && is.Goal == "Ship it." && is.MaxTeammates == 7 && is.Dir == l.project &&
			is.Budget == teams.Budget{Tokens: 5, Time: time.Hour} && string(is.Metadata["k"]) == "[1]" &&
			is.Permissions.Policy == teams.PolicyDeny && is.Lead == "lead" &&
			time.Since(is.CreatedAt) < time.Minute, "%+v, %v", is, err)
	})
	asks("Spawn", func() {
		for _, s := range []MemberSpec{{Name: "ann", Agent: teams.External, Role: "reviewer",
			Budget: teams.Budget{Tokens: 3}},
			{Name: "bob", Agent: teams.External, PlanApproval: true}, {Name: "eve", Agent: teams.External}} {
			is, err := c.Spawn(ctx, "demo", s)
			check(err == nil && is.Name == s.Name && is.Role == s.Role && is.Budget == s.Budget &&
				is.Plan.Required == s.PlanApproval, "%+v, %v", is, err)
		}
	})
	asks("Members", func() {
		is, err := c.Members(ctx, "demo")
		check(err == nil && names(is) == "lead ann bob eve", "%+v, %v", is, err)
	})
	asks("Member", func() {
		is, err := c.Member(ctx, "demo", "ann")
		check(err == nil && is.Role == "reviewer" && is.Agent == teams.External, "%+v, %v", is, err)
		_, err = c.Member(ctx, "demo", "nobody")
		want(t, err, teams.ErrNotFound)
	})
	asks("KeepTeam", func() { ok(t, c.KeepTeam(ctx, "demo")) })
	asks("KeptTeams", func() {
		is, err := c.KeptTeams(ctx)
		check(err == nil && len(is) == 1 && is[0].Name == "demo" && is[0].ID != "", "%+v, %v", is, err)
	})
	asks("DropTeam", func() { ok(t, c.DropTeam(ctx, "demo")) })
	asks("ReserveRoom", func() { ok(t, c.ReserveRoom(ctx, "demo", "room")) })
	asks("GiveBackRoom", func() { ok(t, c.GiveBackRoom(ctx, "demo", "room")) })
	asks("CreateLoginCode", func() {
		is, err := c.CreateLoginCode(ctx, "")
		check(err == nil && is.Code != "" && is.Expires.After(time.Now()), "%+v, %v", is, err)
	})
	asks("Teams", func() {
		is, err := c.Teams(ctx, TeamFilter{Archived: true})
		check(err == nil && len(is) == 1 && is[0].Team.Name == "demo" && is[0].Teammates == 3 &&
			is[0].Err == nil, "%+v, %v", is, err)
	})

	// Tasks.
	ann := c.As("ann")
	asks("AddTask", func() {
		is, err := c.AddTask(ctx, "demo", TaskSpec{Name: "look", Subject: "Look at it", Priority: teams.PriorityHigh,
			Timeout: 90 * time.Second, Retries: 2, Description: "All of it."})
		check(err == nil && is.ID == "1" && is.Name == "look" && is.Priority == teams.PriorityHigh &&
			is.Timeout == 90*time.Second && is.Retries == 2, "%+v, %v", is, err)
		is, err = ann.AddTask(ctx, "demo", TaskSpec{Name: "mend", Subject: "Mend it", BlockedBy: []string{"look"}})
		check(err == nil && is.CreatedBy == "ann" && slices.Equal(is.Waiting, []string{"1"}), "%+v, %v", is, err)
		for _, name := range []string{"a", "b", "c"} {
			_, err := c.AddTask(ctx, "demo", TaskSpec{Name: name, Subject: name, Owner: "eve"})
			ok(t, err)
		}
	})
	asks("Tasks", func() {
		is, err := c.Tasks(ctx, "demo", TaskFilter{States: []TaskState{TaskBlocked}})
		check(err == nil && len(is) == 1 && is[0].Name == "mend" && slices.Equal(is[0].Waiting, []string{"1"}),
			"%+v, %v", is, err)
		is, err = c.Tasks(ctx, "demo", TaskFilter{ClaimableBy: "ann", Priority: teams.PriorityHigh})
		check(err == nil && len(is) == 1 && is[0].Name == "look", "%+v, %v", is, err)
	})
	asks("Task", func() {
		is, err := c.Task(ctx, "demo", "look")
		check(err == nil && is.ID == "1", "%+v, %v", is, err)
		_, err = c.Task(ctx, "demo", "../look?x=%2F")
		want(t, err, teams.ErrNotFound)
	})
	asks("UpdateTask", func() {
		owner, priority := "ann", teams.PriorityCritical
		is, err := c.UpdateTask(ctx, "demo", "look", TaskChange{Owner: &owner, Priority: &priority})
		check(err == nil && is.Owner == "ann" && is.Priority == priority, "%+v, %v", is, err)
	})
	asks("DeleteTask", func() { ok(t, c.DeleteTask(ctx, "demo", "c")) })
	var claim teams.Claim
	asks("ClaimTask", func() {
		is, err := ann.ClaimTask(ctx, "demo", "look")
		check(err == nil && is.ID == "1" && is.Fence > 0 && is.Task.Owner == "ann" &&
			is.Task.Status == teams.TaskStatusInProgress, "%+v, %v", is, err)
		_, err = c.As("eve").ClaimTask(ctx, "demo", "look")
		want(t, err, teams.ErrConflict)
		claim = is
	})
	asks("Diff", func() {
		_, err := c.Diff(ctx, "demo", "look")
		want(t, err, teams.ErrNoTask)
	})
	asks("ClaimPaths", func() {
		is, err := ann.ClaimPaths(ctx, "demo", "look", "src/**")
		check(err == nil && slices.Equal(is.Holds, []string{"src"}), "%+v, %v", is, err)
	})
	asks("Paths", func() {
		is, err := c.Paths(ctx, "demo")
		check(err == nil && len(is) == 1 && is[0].ID == "1", "%+v, %v", is, err)
	})
	asks("ReleasePaths", func() {
		is, err := ann.ReleasePaths(ctx, "demo", "look")
		check(err == nil && len(is.Holds) == 0, "%+v, %v", is, err)
	})
	asks("ReleaseTask", func() {
		is, err := ann.ReleaseTask(ctx, "demo", claim, "later")
		check(err == nil && is.Status == teams.TaskStatusPending, "%+v, %v", is, err)
	})
	asks("ClaimNext", func() {
		is, err := ann.ClaimNext(ctx, "demo")
		check(err == nil && is.ID == "1" && is.Fence > claim.Fence, "%+v, %v", is, err)
		claim = is
	})
	asks("FailTask", func() {
		is, err := ann.FailTask(ctx, "demo", claim, "no tools", "half of it")
		check(err == nil && is.Failures == 1 && is.Failure == "no tools", "%+v, %v", is, err)
	})
	asks("WaitNext", func() {
		is, err := ann.WaitNext(ctx, "demo")
		check(err == nil && is.ID == "1", "%+v, %v", is, err)
		claim = is
	})
	asks("CompleteTask", func() {
		_, err := ann.CompleteTask(ctx, "demo", teams.Claim{ID: "1", Fence: claim.Fence - 1}, "")
		want(t, err, teams.ErrConflict)
		is, err := ann.CompleteTask(ctx, "demo", claim, "It is broken.")
		check(err == nil && is.Status == teams.TaskStatusCompleted && is.Result == "It is broken.", "%+v, %v", is, err)
	})
	asks("Reassign", func() {
		is, err := c.Reassign(ctx, "demo", teams.Reassignment{Task: "mend", To: "bob"})
		check(err == nil && is.Owner == "bob", "%+v, %v", is, err)
	})
	asks("RollBackTask", func() {
		_, err := c.RollBackTask(ctx, "demo", "look", "it was wrong")
		var refused *teams.Error
		check(errors.As(err, &refused) && refused.Text != "", "%v", err)
	})

	asks("Decide", func() { // TestDecide has the rest
		_, err := ann.Decide(ctx, "demo", teams.Claim{ID: "1"}, teams.VerdictAccepted, "It is right.")
		want(t, err, teams.ErrConflict)
	})

	// Messages.
	asks("Send", func() {
		is, err := ann.Send(ctx, "demo", MessageSpec{To: "bob", Body: "Hello.", Intent: teams.IntentQuestion,
			Priority: teams.MessageUrgent})
		check(err == nil && is.Message.From == "ann" && is.Message.Body == "Hello." &&
			is.Message.Intent == teams.IntentQuestion && !is.Message.SentAt.IsZero(), "%+v, %v", is, err)
	})
	asks("Broadcast", func() {
		is, err := c.Broadcast(ctx, "demo", BroadcastSpec{Body: "All."})
		check(err == nil && slices.Equal(is.Message.Recipients, []string{"ann", "bob", "eve"}), "%+v, %v", is, err)
	})
	asks("PeekInbox", func() {
		is, err := c.PeekInbox(ctx, "demo", "bob", InboxFilter{})
		check(err == nil && len(is) > 0 && is[0].DeliveredAt.IsZero(), "%+v, %v", is, err)
	})
	var read int64
	asks("Receive", func() {
		is, err := c.Receive(ctx, "demo", "bob", InboxFilter{})
		check(err == nil && len(is) >= 2, "%+v, %v", is, err)
		read = is[len(is)-1].Seq
		again, err := c.Receive(ctx, "demo", "bob", InboxFilter{Again: true})
		check(err == nil && len(again) == len(is), "%+v, %v", again, err)
	})
	asks("AwaitMessages", func() {
		_, err := c.AwaitMessages(ctx, "demo", "eve", InboxFilter{})
		ok(t, err)
	})
	asks("MarkRead", func() {
		is, err := c.MarkRead(ctx, "demo", "bob", read)
		check(err == nil && is == read, "%d, %v", is, err)
	})
	asks("Messages", func() {
		is := collected(t, c.Messages(ctx, "demo",
			MessageFilter{Member: "bob", Types: []teams.MessageType{teams.MessageDirect}}))
		check(len(is) == 1 && is[0].Body == "Hello." && !is[0].ReadAt.IsZero() && !is[0].DeliveredAt.IsZero(),
			"%+v", is)
	})
	asks("Resend", func() {
		is, err := c.Resend(ctx, "demo", "ann")
		check(err == nil || errors.Is(err, teams.ErrNoTask), "%v, %v", is, err)
	})

	// Notes.
	var set teams.Note
	asks("SetNote", func() {
		is, err := ann.SetNote(ctx, "demo", teams.NoteEdit{Key: "decisions/api", Text: "Errors are JSON.",
			IfSeq: teams.NewNote})
		check(err == nil && is.UpdatedBy == "ann" && is.Seq > 0 && !is.SetAt.IsZero(), "%+v, %v", is, err)
		set = is
		_, err = c.SetNote(ctx, "demo", teams.NoteEdit{Key: "decisions/api", Text: "x", IfSeq: teams.NewNote})
		refused, _ := errors.AsType[*teams.Error](err)
		check(errors.Is(err, teams.ErrConflict) && refused.Note != nil && *refused.Note == set, "%+v", err)
	})
	asks("AppendNote", func() {
		is, err := c.AppendNote(ctx, "demo", "decisions/api", "They have a code.")
		check(err == nil && is.Text == "Errors are JSON.\nThey have a code." && is.SetBy == "ann" &&
			is.UpdatedBy == teams.User, "%+v, %v", is, err)
	})
	asks("Note", func() {
		is, err := c.Note(ctx, "demo", "decisions/api")
		check(err == nil && is.Seq == set.Seq+1, "%+v, %v", is, err)
	})
	asks("NoteAt", func() {
		is, err := c.NoteAt(ctx, "demo", "decisions/api", set.Seq)
		check(err == nil && is == set, "%+v, %v", is, err)
	})
	asks("Notes", func() {
		is, err := c.Notes(ctx, "demo")
		check(err == nil && len(is) == 1 && is[0].Key == "decisions/api", "%+v, %v", is, err)
	})
	asks("NoteChanges", func() {
		is, err := c.NoteChanges(ctx, "demo", "decisions/api")
		check(err == nil && len(is) == 2 && is[1].How == teams.NoteWasAppended && is[1].Text == "They have a code.",
			"%+v, %v", is, err)
	})
	asks("Search", func() {
		is, err := c.Search(ctx, teams.SearchQuery{Words: []string{"A CODE"}, Team: "demo",
			Kinds: []teams.TextKind{teams.TextNote},
			Since: time.Now().Add(-time.Hour), Until: time.Now().Add(time.Hour), Last: 5})
		check(err == nil && len(is) == 1 && is[0].Note == "decisions/api" && is[0].Text == "They have a code." &&
			len(is[0].Spans) == 1, "%+v, %v", is, err)
	})
	asks("Templates", func() {
		is, err := c.Templates(ctx, "demo")
		check(err == nil && slices.ContainsFunc(is, func(t teams.Template) bool {
			return t.Name == "fix" && t.Source == "built in" && len(t.Parameters) > 0 && t.Summary != ""
		}), "%+v, %v", is, err)
	})
	asks("Template", func() {
		is, err := c.Template(ctx, "", "hello")
		check(err == nil && is.Name == "hello" && len(is.Tasks) > 0 && len(is.Commands) > 0 &&
			strings.Contains(is.Text, "name: "), "%+v, %v", is, err)
		_, err = c.Template(ctx, "", "nothing")
		want(t, err, teams.ErrNotFound)
	})
	asks("DeleteNote", func() {
		want(t, c.DeleteNote(ctx, "demo", teams.NoteEdit{Key: "decisions/api", IfSeq: set.Seq}), teams.ErrConflict)
		ok(t, c.DeleteNote(ctx, "demo", teams.NoteEdit{Key: "decisions/api"}))
	})

	// Plans, permissions and rules.
	var request string
	asks("SubmitPlan", func() {
		is, err := c.SubmitPlan(ctx, "demo", "bob", "Look, then mend.")
		check(err == nil && is != "", "%q, %v", is, err)
		request = is
	})
	asks("AwaitAttention", func() {
		is, err := c.AwaitAttention(ctx)
		check(err == nil && len(is) > 0 && is[0].Team == "demo", "%+v, %v", is, err)
	})
	for name, list := range map[string]func() ([]teams.Attention, error){
		"Attention":          func() ([]teams.Attention, error) { return c.Attention(ctx) },
		"TeamAttention":      func() ([]teams.Attention, error) { return c.TeamAttention(ctx, "demo") },
		"AwaitTeamAttention": func() ([]teams.Attention, error) { return c.AwaitTeamAttention(ctx, "demo") }} {
		asks(name, func() {
			is, err := list()
			check(err == nil && slices.ContainsFunc(is, func(a teams.Attention) bool {
				return a.Kind == teams.AttentionPlan && a.Request == request && a.Hint.Action == teams.ActAnswerPlan &&
					a.Team == "demo"
			}), "%s: %+v, %v", name, is, err)
		})
	}
	asks("Plans", func() {
		is, err := c.Plans(ctx, "demo", teams.PlanStateSubmitted)
		check(err == nil && len(is) == 1 && is[0].Request == request, "%+v, %v", is, err)
	})
	asks("AnswerPlan", func() {
		is, err := c.AnswerPlan(ctx, "demo", request, PlanAnswer{Approved: true})
		check(err == nil && is.Member == "bob" && is.Outcome == "approved", "%+v, %v", is, err)
	})
	asks("Plan", func() {
		is, err := c.Plan(ctx, "demo", request)
		check(err == nil && is.State == teams.PlanStateApproved && is.Text == "Look, then mend." &&
			is.AnsweredBy == teams.User && !is.AskedAt.IsZero() && !is.AnsweredAt.IsZero(), "%+v, %v", is, err)
	})
	asks("Permissions", func() {
		is, err := c.Permissions(ctx, "demo")
		check(err == nil && len(is) == 0, "%+v, %v", is, err)
	})
	asks("AnswerPermission", func() {
		_, err := c.AnswerPermission(ctx, "demo", "permission-9", PermissionAnswer{Allow: true})
		want(t, err, teams.ErrNotFound)
	})
	asks("AddRule", func() {
		is, err := c.AddRule(ctx, "demo", teams.PermissionRule{Rule: "Bash(go test:*)", Member: "ann"})
		check(err == nil && is.Rule == "Bash(go test:*)" && is.Allows != "" && is.By == teams.User &&
			!is.At.IsZero(), "%+v, %v", is, err)
		_, err = c.AddRule(ctx, "demo", teams.PermissionRule{Rule: "Bash"})
		want(t, err, teams.ErrDenied)
	})
	asks("Rules", func() {
		is, err := c.Rules(ctx, "demo")
		check(err == nil && len(is) == 1 && is[0].Member == "ann", "%+v, %v", is, err)
	})
	asks("State", func() {
		is, err := c.State(ctx, "demo")
		check(err == nil && is.Info.Name == "demo" && is.Seq == is.Last && len(is.Members) == 4 && len(is.Rules) == 1 &&
			is.Rules[0].Rule == "Bash(go test:*)" && is.Now != nil && is.Standings["ann"] != "" && is.Messages > 2 &&
			len(is.Budget) > 0, "%+v, %v", is, err)
	})
	asks("RemoveRule", func() {
		ok(t, c.RemoveRule(ctx, "demo", teams.PermissionRule{Rule: "Bash(go test:*)", Member: "ann"}))
	})

	// What is read.
	asks("StateAt", func() {
		is, err := c.StateAt(ctx, "demo", 1)
		check(err == nil && is.Seq == 1 && is.Last > 10 && len(is.Members) == 1 && is.Now == nil &&
			len(is.Tasks) == 0, "%+v, %v", is, err)
	})
	asks("Status", func() {
		is, err := c.Status(ctx, "demo")
		check(err == nil && is.Team.Name == "demo" && is.Completed == 1 && len(is.Members) == 4 &&
			is.Ready > 0, "%+v, %v", is, err)
	})
	asks("Records", func() {
		is := collected(t, c.Records(ctx, "demo", RecordFilter{Kinds: []string{"task"}, Members: []string{"ann"}}))
		check(len(is) > 4 && is[0].Seq > 0, "%+v", is)
		for _, e := range is {
			switch e.Fact.(type) {
			case teams.TaskCreated, teams.TaskUpdated, teams.TaskClaimed, teams.TaskReleased, teams.TaskFailed,
				teams.TaskCompleted:
			default:
				t.Errorf("got a %T", e.Fact)
			}
		}
	})
	asks("Marks", func() {
		is, err := c.Marks(ctx, "demo")
		check(err == nil && len(is) > 0 && is[0].Seq > 0 && !is[0].At.IsZero() && is[0].Kind != "", "%+v, %v", is, err)
	})
	asks("Since", func() {
		is, err := c.Since(ctx, "demo", 0)
		check(err == nil && is.From == 1 && is.To > 10 && len(is.Lines) > 0, "%+v, %v", is, err)
	})
	asks("Watch", func() {
		is := first(t, c.Watch(ctx), func(all Teams) bool { return len(all.Teams) == 1 })
		check(is.Teams[0].Team.Name == "demo", "%+v", is)
	})
	asks("Events", func() {
		e := first(t, c.Events(ctx, "demo", 0), func(teams.Event) bool { return true })
		made, is := e.Fact.(teams.TeamCreated)
		check(is && e.Seq == 1 && made.Team.Name == "demo" && e.By == teams.User, "%+v", e)
	})
	asks("Limits", func() {
		is, err := c.Limits(ctx, "demo", "")
		check(err == nil && slices.ContainsFunc(is,
			func(l Limit) bool { return l.What == teams.BudgetTokens && l.Limit == 5 }),
			"%+v, %v", is, err)
	})
	asks("SetBudget", func() {
		tokens, span := int64(0), 2*time.Hour
		is, err := c.SetBudget(ctx, "demo", BudgetChange{Tokens: &tokens, Time: &span})
		check(err == nil && slices.ContainsFunc(is, func(l Limit) bool {
			return l.What == teams.BudgetTime && l.Limit == span.Milliseconds()
		}), "%+v, %v", is, err)
	})
	asks("Probe", func() {
		is, err := c.Probe(ctx, "demo")
		check(err == nil && is.Team.Name == "demo" && len(is.Members) == 4 && is.Completed == 1, "%+v, %v", is, err)
	})
	asks("Facts", func() {
		is, err := c.Facts(ctx, "demo")
		check(err == nil && len(is) == 0, "%+v, %v", is, err)
	})
	asks("RecordFacts", func() {
		_, err := c.RecordFacts(ctx, "demo")
		check(err == nil || errors.Is(err, teams.ErrInvalid) || errors.Is(err, teams.ErrNoTask), "%v", err)
	})
	asks("CheckTeam", func() {
		is, err := c.CheckTeam(ctx, "demo")
		check(err == nil && is.Healthy && is.Records > 10, "%+v, %v", is, err)
	})
	asks("Hooks", func() {
		is, err := c.Hooks(ctx, "demo")
		check(err == nil && len(is.Hooks) == 0, "%+v, %v", is, err)
	})
	for name, do := range map[string]func(context.Context, string, string) (teams.TeamHook, error){
		"DisableHook": c.DisableHook, "EnableHook": c.EnableHook} {
		asks(name, func() {
			_, err := do(ctx, "demo", "TaskCreated")
			want(t, err, teams.ErrNotFound)
		})
	}
	asks("TryHook", func() {
		_, err := c.TryHook(ctx, "demo", "TaskCreated", json.RawMessage(`{}`))
		want(t, err, teams.ErrNotFound)
	})
	asks("MakeCheckpoint", func() {
		is, err := c.MakeCheckpoint(ctx, "demo")
		check(err == nil && is.Written && is.Commit != "" && is.Records > 10 &&
			strings.Contains(is.Place, "cadre/demo") && !is.At.IsZero(), "%+v, %v", is, err)
	})
	asks("Checkpoints", func() {
		is, err := c.Checkpoints(ctx, "demo")
		check(err == nil && len(is) == 1 && is[0].Team == "demo" && is[0].Commit != "", "%+v, %v", is, err)
	})

	// Members: what they are asked, and a session.
	asks("SetMode", func() {
		is, err := c.SetMode(ctx, "demo", "eve", teams.ModePlan)
		check(err == nil && is.PermissionMode == teams.ModePlan || errors.Is(err, teams.ErrInvalid), "%+v, %v", is, err)
	})
	asks("Interrupt", func() {
		_, err := c.Interrupt(ctx, "demo", "eve")
		var refused *teams.Error
		check(errors.As(err, &refused), "%v", err)
	})
	asks("LiftRateLimit", func() {
		_, err := c.LiftRateLimit(ctx, "demo", "eve")
		want(t, err, teams.ErrNotReady)
	})
	asks("HandOver", func() {
		_, err := c.HandOver(ctx, "demo", "eve", "")
		want(t, err, teams.ErrInvalid)
	})
	asks("Shutdown", func() {
		deadline := time.Hour
		is, err := c.Shutdown(ctx, "demo", "eve", ShutdownSpec{Reason: "done", Deadline: &deadline})
		check(err == nil && is.Shutdown != "", "%+v, %v", is, err)
	})
	asks("WithdrawShutdown", func() {
		is, err := c.WithdrawShutdown(ctx, "demo", "eve")
		check(err == nil && is.Shutdown == "", "%+v, %v", is, err)
	})
	deadline := time.Hour
	asked, err := c.Shutdown(ctx, "demo", "eve", ShutdownSpec{Deadline: &deadline})
	ok(t, err)
	asks("AnswerShutdown", func() {
		is, err := c.AnswerShutdown(ctx, "demo", "eve", ShutdownAnswer{Approved: true, Reason: "Bye."})
		check(err == nil && is == asked.Shutdown, "%q, %v", is, err)
	})
	_, err = c.Spawn(ctx, "demo", MemberSpec{Name: "sue", Agent: teams.Shell})
	ok(t, err)
	_, err = c.AddTask(ctx, "demo", TaskSpec{Subject: "Say it", Owner: "sue", Run: "echo said"})
	ok(t, err)
	asks("Session", func() {
		is := first(t, c.Session(ctx, "demo", "sue"), func(s teams.Shown) bool { return s.Kind == teams.ShownResult })
		check(is.Text == "said\n" && is.Seq > 0, "%+v", is)
		for _, err := range c.Session(ctx, "demo", "ann") {
			want(t, err, teams.ErrInvalid)
		}
	})
	asks("PauseTeam", func() {
		is, err := c.PauseTeam(ctx, "demo")
		check(err == nil, "%+v, %v", is, err)
	})
	asks("ResumeTeam", func() {
		is, err := c.ResumeTeam(ctx, "demo")
		check(err == nil && is.Name == "demo", "%+v, %v", is, err)
	})
	asks("SetDelegate", func() {
		is, err := c.SetDelegate(ctx, "demo", Delegation{On: true})
		check(err == nil && is.Delegate, "%+v, %v", is, err)
	})

	// The end.
	asks("WindDown", func() {
		is, err := c.WindDown(ctx, "demo")
		check(err == nil && is.Status == teams.TeamStatusConsolidating, "%+v, %v", is, err)
	})
	asks("RollBackConsolidation", func() {
		is, err := c.RollBackConsolidation(ctx, "demo")
		check(err == nil && is.Status == teams.TeamStatusActive, "%+v, %v", is, err)
	})
	_, err = c.AbortTeam(ctx, "demo", "enough")
	ok(t, err)
	asks("Review", func() {
		is, err := c.Review(ctx, "demo")
		check(err == nil && is.Team.Status == teams.TeamStatusAborted && len(is.Tasks) >= 4, "%+v, %v", is, err)
	})
	asks("CleanUpTeam", func() { ok(t, c.CleanUpTeam(ctx, "demo", teams.RemoveOptions{Force: true, Branches: true})) })
	want(t, c.CleanUpTeam(ctx, "demo", teams.RemoveOptions{}), teams.ErrNotFound)

	// A team that is consolidated.
	_, err = c.CreateTeam(ctx, TeamSpec{Name: "second", Allow: []string{"Edit"},
		Checks: []CheckSpec{{Command: "echo bad; test -e good"}}})
	ok(t, err)
	_, err = c.Spawn(ctx, "second", MemberSpec{Name: "ann", Agent: teams.External})
	ok(t, err)
	for name, do := range map[string]func() error{
		"PlanConsolidation": func() error {
			is, err := c.PlanConsolidation(ctx, "second", ConsolidationSpec{})
			check(is.Team == "second", "%+v", is)
			return err
		},
		"TryChecks": func() error {
			_, err := c.TryChecks(ctx, "second", ConsolidationSpec{})
			failed, is := errors.AsType[*CheckError](err)
			check(is && failed.Output == "bad\n" && errors.Is(err, teams.ErrNotReady), "%v", err)
			l.write("good")
			_, err = c.TryChecks(ctx, "second", ConsolidationSpec{})
			return err
		},
	} {
		asks(name, func() { ok(t, do()) })
	}
	asks("Consolidate", func() {
		is, err := c.Consolidate(ctx, "second", ConsolidationSpec{NoCommit: true})
		check(err == nil && is.Record.Team == "second" && is.Record.By == teams.User && is.Record.Seq > 0,
			"%+v, %v", is, err)
	})
	asks("AbortTeam", func() {
		_, err := c.AbortTeam(ctx, "second", "late")
		check(err == nil || errors.Is(err, teams.ErrFinished), "%v", err)
	})

	for _, all := range methods {
		for _, name := range all {
			check(called[name], "%s was not called", name)
		}
	}
	for _, r := range api.Routes() {
		for name := range l.asked.all[r.ID] {
			check(slices.ContainsFunc(r.Query, func(p api.Param) bool { return p.Name == name }), "%s has no %s=", r.ID,
				name)
		}
	}
}
