package team

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var (
	// Actors with more rights come more often.
	propertyActors = []string{User, User, "lead", "lead", "lead", "ann", "ann", "ann", "bob", "bob", "cy", "dan",
		Host("h1"), Host("h1"), Host("h2"), Host(""), "nobody"}
	propertyNames = []string{"lead", "ann", "ann", "bob", "bob", "cy", "dan", "Ann", "zoe"}
)

// drawCommand draws a command that is often sensible in the state: its ids belong to existing
// things, or nearly.
func drawCommand(t *rapid.T, s *State, n int) Command {
	c := Command{ID: fmt.Sprint("c", n), Actor: rapid.SampledFrom(propertyActors).Draw(t, "actor"), At: Time(n * 10),
		Body: drawBody(t, s, Time(n*10))}
	switch rapid.IntRange(0, 9).Draw(t, "guards") {
	case 0:
		c.Incarnation = rapid.Int64Range(1, 3).Draw(t, "incarnation")
	case 1:
		c.Lease = rapid.Int64Range(1, 3).Draw(t, "lease")
	case 2:
		c.ID = fmt.Sprint("c", rapid.IntRange(max(1, n-3), n).Draw(t, "id")) // often a repetition
	}
	if _, ok := c.Body.(*AttachMember); ok {
		c.Actor = rapid.SampledFrom([]string{Host("h1"), Host("h2"), Host("h3")}).Draw(t, "host")
	}
	return c
}

func drawBody(t *rapid.T, s *State, now Time) Body {
	name := rapid.SampledFrom(propertyNames)
	maybe := rapid.SampledFrom(append(make([]string, 12), propertyNames...))
	task := rapid.Custom(func(t *rapid.T) string {
		return strconv.Itoa(rapid.IntRange(1, len(s.tasks)+1).Draw(t, "task"))
	})
	tasks := rapid.Custom(func(t *rapid.T) []string {
		return rapid.SliceOfN(task, 0, rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "most")).Draw(t, "tasks")
	})
	paths := rapid.Custom(func(t *rapid.T) []string {
		return rapid.SliceOfN(rapid.SampledFrom([]string{"a", "a/x", "*/x", "b/**", "c", "**", "/c", ""}), 0, 2).Draw(t,
			"patterns")
	})
	word := rapid.SampledFrom([]string{"x", "some words", "ä😀\"\\\n", "bad\xff", "x", "x", "x", "", hostile, "HOSTILE"})
	priority := rapid.SampledFrom(slices.Concat([]string{"", "soon"}, Priorities, Priorities))
	fence := rapid.SampledFrom([]int64{0, 0, 0, 1, 2, 3})
	some := rapid.Bool()
	deadline := rapid.Custom(func(t *rapid.T) Time { return now + Time(rapid.Int64Range(-2, 200).Draw(t, "ahead")) })
	request := func(kind string) *rapid.Generator[string] {
		return rapid.Custom(func(t *rapid.T) string {
			known := []string{kind + "-1@ann"}
			for i := range s.members {
				known = append(known, s.members[i].Shutdown.Request, s.members[i].Plan.Request)
			}
			for _, p := range s.permissions {
				known = append(known, p.Request, p.Request)
			}
			return rapid.SampledFrom(known).Draw(t, "request")
		})
	}
	attempt := rapid.Custom(func(t *rapid.T) int64 {
		return s.team.Consolidation.Attempt + rapid.SampledFrom([]int64{0, 0, 0, 0, 0, 0, -1, 1}).Draw(t, "off")
	})
	left := rapid.SampledFrom([][]Fact{nil, nil, {{Path: "out", SHA256: "1"}}, {{Path: "/out"}}})
	text := func(g *rapid.Generator[string]) *string {
		if rapid.IntRange(0, 3).Draw(t, "set") > 0 {
			return nil
		}
		v := g.Draw(t, "value")
		return &v
	}
	weights := bodyWeights
	if s.team.Consolidation.Open() && rapid.IntRange(0, 3).Draw(t, "continues") > 0 {
		weights = []string{"ReportMerged", "ReportStaged", "ReportStaged", "ReportCheck", "ReportCheck", "ReportMade",
			"ReportConsolidated", "AbandonConsolidation"}
	}
	switch rapid.SampledFrom(weights).Draw(t, "body") {
	case "CreateTeam":
		depth := rapid.Int64Range(0, 1).Draw(t, "depth")
		return &CreateTeam{TeamID: "t", Name: "demo", Dir: "/d", Timing: Timing{Beat: time.Millisecond},
			MaxDepth: rapid.Int64Range(0, 4).Draw(t, "maxDepth"), Depth: depth,
			Parent: Parent{Team: strings.Repeat("p", int(depth)), Worktree: depth > 0},
			Budget: Budget{Tokens: rapid.SampledFrom([]int64{0, 0, 5000}).Draw(t, "tokens")}}
	case "RestoreTeam":
		return &RestoreTeam{From: s}
	case "SetStatus":
		return &SetStatus{Status: rapid.SampledFrom([]TeamStatus{TeamActive, TeamConsolidating, TeamComplete,
			TeamAborted}).Draw(t, "status")}
	case "CleanUp":
		return &CleanUp{Force: some.Draw(t, "force")}
	case "SetDelegate":
		return &SetDelegate{On: some.Draw(t, "on")}
	case "SetBudget":
		return &SetBudget{Budget: Budget{Tokens: rapid.Int64Range(-1, 20000).Draw(t, "tokens")},
			Member: rapid.OneOf(rapid.Just(""), name).Draw(t, "member")}
	case "ReportUsage":
		return &ReportUsage{Member: name.Draw(t, "member"), Task: rapid.OneOf(rapid.Just(""), task).Draw(t, "task"),
			Usage: Usage{InputTokens: rapid.Int64Range(-1, 500).Draw(t, "tokens")}}
	case "CheckBudget":
		return &CheckBudget{}
	case "RejectByHook":
		return &RejectByHook{Hook: rapid.SampledFrom(hookEvents).Draw(t, "hook"), Member: name.Draw(t, "member"),
			Task: task.Draw(t, "task"), Feedback: word.Draw(t, "feedback")}
	case "SwitchHook":
		return &SwitchHook{ID: word.Draw(t, "id"), Event: rapid.SampledFrom(hookEvents).Draw(t, "hook"),
			Off: some.Draw(t, "off")}
	case "AddRule":
		return &AddRule{Rule: rapid.SampledFrom([]string{"Edit(a)", "Bash(make:*)", "Bash", "Bash("}).Draw(t, "rule"),
			Member: rapid.OneOf(rapid.Just(""), name).Draw(t, "member"), Unbounded: some.Draw(t, "unbounded")}
	case "RemoveRule":
		return &RemoveRule{Rule: rapid.SampledFrom([]string{"Edit(a)", "Bash(make:*)", "Bash"}).Draw(t, "rule"),
			Member: rapid.OneOf(rapid.Just(""), name).Draw(t, "member")}
	case "SpawnMember":
		return &SpawnMember{Name: name.Draw(t, "name"),
			Agent:        rapid.SampledFrom([]string{Shell, External, "claude", NestedTeam}).Draw(t, "agent"),
			Prompt:       rapid.SampledFrom([]string{"", "do it"}).Draw(t, "prompt"),
			Role:         rapid.SampledFrom([]string{"", "r", "r", "HOSTILE"}).Draw(t, "role"),
			PlanApproval: some.Draw(t, "plan"),
			Isolation:    rapid.SampledFrom([]string{"", Worktree}).Draw(t, "isolation"),
			Budget: Budget{Tokens: rapid.SampledFrom([]int64{0, 0, 0, 400}).Draw(t, "own tokens"),
				Time: rapid.SampledFrom([]time.Duration{0, 0, 0, 50 * time.Millisecond}).Draw(t, "own time")},
			Succeeds: rapid.OneOf(rapid.Just(""), rapid.Just(""), name).Draw(t, "succeeds")}
	case "LeaveBranch":
		return &LeaveBranch{Member: name.Draw(t, "member"),
			Commit: rapid.SampledFrom([]string{"", "c1", "c1", "c2"}).Draw(t, "commit"),
			With:   rapid.SampledFrom([]string{"", "w"}).Draw(t, "with"),
			Why:    rapid.SampledFrom([]string{"", "conflict"}).Draw(t, "why"), Once: some.Draw(t, "once")}
	case "AttachMember":
		return &AttachMember{Member: name.Draw(t, "member"),
			From: rapid.SampledFrom([]string{"", "h1", "h2"}).Draw(t, "from"), Pool: drawPool.Draw(t, "pool")}
	case "DetachMember":
		return &DetachMember{Member: name.Draw(t, "member"), Reason: word.Draw(t, "reason"),
			Fresh: some.Draw(t, "fresh"), Note: word.Draw(t, "note")}
	case "ReportStarted":
		return &ReportStarted{Member: name.Draw(t, "member"), Session: word.Draw(t, "session")}
	case "ReportStatus":
		return &ReportStatus{Member: name.Draw(t, "member"),
			Status: rapid.SampledFrom([]MemberStatus{Active, Idle, Blocked, Stopped}).Draw(t, "status"),
			Report: word.Draw(t, "report"), Task: task.Draw(t, "task"), Words: word.Draw(t, "words")}
	case "ReportStopped":
		return &ReportStopped{Member: name.Draw(t, "member"),
			Reason: rapid.OneOf(word, rapid.Just(AtDeadline)).Draw(t, "reason")}
	case "ReportFailed":
		return &ReportFailed{Member: name.Draw(t, "member"), Reason: word.Draw(t, "reason")}
	case "SetMode":
		return &SetMode{Member: name.Draw(t, "member"), Mode: rapid.SampledFrom(PermissionModes).Draw(t, "mode")}
	case "RequestShutdown":
		return &RequestShutdown{Member: name.Draw(t, "member"), Deadline: deadline.Draw(t, "deadline")}
	case "AnswerShutdown":
		return &AnswerShutdown{Member: maybe.Draw(t, "member"), Request: request("shutdown").Draw(t, "request"),
			Approved: some.Draw(t, "approved")}
	case "WithdrawShutdown":
		return &WithdrawShutdown{Member: name.Draw(t, "member")}
	case "ExpireShutdown":
		return &ExpireShutdown{Member: name.Draw(t, "member")}
	case "SubmitPlan":
		return &SubmitPlan{Member: maybe.Draw(t, "member"), Plan: word.Draw(t, "plan"),
			Deadline: rapid.OneOf(rapid.Just(Time(0)), deadline).Draw(t, "deadline")}
	case "AnswerPlan":
		return &AnswerPlan{Request: request("plan").Draw(t, "request"), Approved: some.Draw(t, "approved"),
			Feedback: word.Draw(t, "feedback")}
	case "RequestPermission":
		return &RequestPermission{Member: maybe.Draw(t, "member"),
			Tool: rapid.SampledFrom([]string{"Bash", hostile, "HOSTILE"}).Draw(t, "tool"), Input: word.Draw(t, "input"),
			Deadline: deadline.Draw(t, "deadline")}
	case "AnswerPermission":
		return &AnswerPermission{Request: request("permission").Draw(t, "request"), Allow: some.Draw(t, "allow")}
	case "ExpirePermission":
		return &ExpirePermission{Request: request("permission").Draw(t, "request")}
	case "ClaimPaths":
		return &ClaimPaths{Task: rapid.OneOf(rapid.Just(""), task).Draw(t, "task"), Member: maybe.Draw(t, "member"),
			Paths: paths.Draw(t, "paths")}
	case "ReportWrites":
		return &ReportWrites{Member: name.Draw(t, "member"), Task: task.Draw(t, "task"), Holder: name.Draw(t, "holder"),
			Files:  rapid.SampledFrom([][]string{nil, {"a/x"}, {hostile}}).Draw(t, "files"),
			Unsure: some.Draw(t, "unsure")}
	case "ReleasePaths":
		return &ReleasePaths{Task: rapid.OneOf(rapid.Just(""), task).Draw(t, "task"), Member: maybe.Draw(t, "member"),
			Paths: paths.Draw(t, "paths")}
	case "CreateTask":
		return &CreateTask{Paths: paths.Draw(t, "paths"), Subject: word.Draw(t, "subject"),
			Owner: maybe.Draw(t, "owner"),
			Role:  rapid.SampledFrom([]string{"", "", "r", hostile, "HOSTILE"}).Draw(t, "role"),
			Run:   rapid.SampledFrom([]string{"", "true", "true"}).Draw(t, "run"), BlockedBy: tasks.Draw(t, "blocked"),
			Priority: priority.Draw(t, "priority"),
			When:     rapid.SampledFrom([]string{"", "", Always, OnFailure, OnFailure, OnSuccess}).Draw(t, "when"),
			Schema:   rapid.SampledFrom([]json.RawMessage{nil, nil, nil, []byte(` {"a": [1 ,2]}`)}).Draw(t, "schema"),
			Check: rapid.SampledFrom([]*TaskCheck{nil, nil, nil, {Run: "make"}, {Run: "make", Rounds: 2},
				{Name: "unit"}, {Name: "other"}}).Draw(t, "check"),
			ForEach: forEach.Draw(t, "for each"),
			Verify:  drawVerify(t),
			Retries: rapid.Int64Range(0, 1).Draw(t, "retries"), Metadata: map[string]json.RawMessage{
				word.Draw(t, "key"): json.RawMessage(` {"a": [1 ,2]}`)}}
	case "UpdateTask":
		var these *[]string
		if rapid.IntRange(0, 3).Draw(t, "set") == 0 {
			list := paths.Draw(t, "paths")
			these = &list
		}
		return &UpdateTask{Paths: these, Task: task.Draw(t, "task"), Subject: text(word), Owner: text(maybe),
			Priority: text(priority), Metadata: map[string]json.RawMessage{
				word.Draw(t, "key"): json.RawMessage(rapid.SampledFrom([]string{"null", "1"}).Draw(t, "value"))},
			AddBlockedBy: tasks.Draw(t, "add"), RemoveBlockedBy: tasks.Draw(t, "remove"),
			AddBlocks: tasks.Draw(t, "addBlocks"), RemoveBlocks: tasks.Draw(t, "removeBlocks")}
	case "ClaimTask":
		return &ClaimTask{Task: rapid.OneOf(rapid.Just(""), task).Draw(t, "task"), Member: maybe.Draw(t, "member")}
	case "CompleteTask":
		return &CompleteTask{Task: task.Draw(t, "task"), Member: maybe.Draw(t, "member"), Fence: fence.Draw(t, "fence"),
			Result: word.Draw(t, "result"), Examined: some.Draw(t, "examined"), Verdict: drawVerdict(t, s)}
	case "RejectResult":
		return &RejectResult{Task: task.Draw(t, "task"), Member: maybe.Draw(t, "member"), Fence: fence.Draw(t, "fence"),
			By:       rapid.SampledFrom([]string{ByResult, ByCheck, ByCheck, "ann"}).Draw(t, "by"),
			Feedback: word.Draw(t, "feedback"), Result: word.Draw(t, "result")}
	case "FailTask":
		return &FailTask{Task: task.Draw(t, "task"), Member: maybe.Draw(t, "member"), Fence: fence.Draw(t, "fence"),
			Reason: word.Draw(t, "reason")}
	case "ReleaseTask":
		return &ReleaseTask{Task: task.Draw(t, "task"), Member: maybe.Draw(t, "member"), Fence: fence.Draw(t, "fence")}
	case "DeleteTask":
		return &DeleteTask{Task: task.Draw(t, "task")}
	case "SetNote":
		return &SetNote{Key: noteKey.Draw(t, "key"), Text: word.Draw(t, "text"), IfSeq: drawIfSeq(t, s)}
	case "AppendNote":
		return &AppendNote{Key: noteKey.Draw(t, "key"), Text: word.Draw(t, "text")}
	case "DeleteNote":
		return &DeleteNote{Key: noteKey.Draw(t, "key"), IfSeq: drawIfSeq(t, s)}
	case "SendMessage":
		return &SendMessage{To: rapid.OneOf(name, name, name, rapid.Just(ParentName)).Draw(t, "to"), Body: word.Draw(t, "text"),
			Answers: rapid.SampledFrom([]int64{0, 0, s.messageSeq}).Draw(t, "answers")}
	case "Broadcast":
		return &Broadcast{Body: word.Draw(t, "text")}
	case "ReceiveMessages":
		return &ReceiveMessages{Member: maybe.Draw(t, "member"), Max: rapid.IntRange(0, 2).Draw(t, "most"),
			Seqs: rapid.SampledFrom([][]int64{nil, nil, {s.messageSeq, s.messageSeq},
				{s.messageSeq, 1}}).Draw(t, "seqs")}
	case "ReportTrouble":
		return &ReportTrouble{Member: name.Draw(t, "member"),
			Trouble: rapid.SampledFrom([]string{"login", "limit", "model", "model", "context", "crash", ""}).Draw(t,
				"trouble"), Text: word.Draw(t, "text"),
			Gone: some.Draw(t, "gone"), Retrying: rapid.IntRange(0, 4).Draw(t, "retrying") == 0,
			Pool: drawPool.Draw(t, "pool"), Until: rapid.OneOf(rapid.Just(Time(0)), deadline).Draw(t, "until")}
	case "LiftLimit":
		return &LiftLimit{Member: name.Draw(t, "member")}
	case "GrantTurn":
		return &GrantTurn{Member: name.Draw(t, "member")}
	case "RetryMember":
		return &RetryMember{Member: name.Draw(t, "member")}
	case "HandOver":
		return &HandOver{Member: name.Draw(t, "member"), Reason: word.Draw(t, "reason")}
	case "Interrupt":
		return &Interrupt{Member: name.Draw(t, "member")}
	case "AskReport":
		return &AskReport{}
	case "GiveReport":
		return &GiveReport{Text: word.Draw(t, "text")}
	case "AttachLead":
		return &AttachLead{Agent: some.Draw(t, "agent"),
			Session:  rapid.SampledFrom([]string{"s1", "s1", "s2", User}).Draw(t, "session"),
			From:     rapid.SampledFrom([]string{"", s.team.LeadSession, "s1", "s2"}).Draw(t, "from"),
			Seen:     now - Time(rapid.Int64Range(0, 3000).Draw(t, "silent")),
			Since:    rapid.SampledFrom([]Time{s.team.LeadSince, s.team.LeadSince, 0}).Draw(t, "since"),
			TakeOver: some.Draw(t, "over"), Left: some.Draw(t, "left")}
	case "LoseLead":
		return &LoseLead{Session: rapid.SampledFrom([]string{"s1", "s2"}).Draw(t, "session"),
			Since: rapid.SampledFrom([]Time{s.team.LeadSince, s.team.LeadSince, 0}).Draw(t, "since"),
			Seen:  now - Time(rapid.Int64Range(0, 500000).Draw(t, "silent"))}
	case "RecordFacts":
		return &RecordFacts{Facts: []Fact{{Name: "f", Path: rapid.SampledFrom([]string{"a", "a/../b", ""}).Draw(t,
			"path"), SHA256: word.Draw(t, "sum")}}}
	case "MoveTeam":
		return &MoveTeam{Dir: rapid.SampledFrom([]string{"/project", "/moved", "/moved/", "moved"}).Draw(t, "dir"),
			Top: rapid.SampledFrom([]string{"", "", "/moved"}).Draw(t, "top")}
	case "SaveWork":
		return &SaveWork{Task: task.Draw(t, "task"), Saved: Saved{Member: name.Draw(t, "member"),
			Diff: word.Draw(t, "diff"), Output: word.Draw(t, "output"), At: now}}
	case "RollBackTask":
		return &RollBackTask{Task: task.Draw(t, "task"), Fence: fence.Draw(t, "fence")}
	case "RecordWork":
		return &RecordWork{Task: task.Draw(t, "task"), Work: Work{Member: name.Draw(t, "member"),
			Branch: rapid.SampledFrom([]string{"", "branch"}).Draw(t, "branch"),
			Base:   rapid.SampledFrom([]string{"", "base"}).Draw(t, "base"),
			Commit: rapid.SampledFrom([]string{"", "", "commit"}).Draw(t, "commit"), Fence: fence.Draw(t, "fence"),
			Left: rapid.SampledFrom([][]string{nil, nil, {word.Draw(t, "left")}}).Draw(t, "why")}}
	case "MarkLate":
		return &MarkLate{Member: name.Draw(t, "member")}
	case "ResendMessages":
		return &ResendMessages{Member: name.Draw(t, "member"),
			Seqs: rapid.SampledFrom([][]int64{nil, nil, {s.messageSeq}, {s.messageSeq, 1}}).Draw(t, "seqs")}
	case "ReportOffline":
		return &ReportOffline{Member: name.Draw(t, "member"), Incarnation: rapid.Int64Range(1, 3).Draw(t, "session"),
			Seen: now - Time(rapid.Int64Range(0, 1_000_000).Draw(t, "silent")),
			Gone: rapid.SampledFrom([]string{"", SessionOver, hostile, "HOSTILE"}).Draw(t, "gone")}
	case "ReportOnline":
		return &ReportOnline{Member: name.Draw(t, "member"), Incarnation: rapid.Int64Range(1, 3).Draw(t, "session")}
	case "Consolidate":
		return &Consolidate{Message: word.Draw(t, "message"),
			Include:  rapid.SampledFrom([][]string{nil, nil, {"a"}, {"../a"}}).Draw(t, "include"),
			Only:     rapid.SampledFrom([][]string{nil, nil, nil, {"a"}}).Draw(t, "only"),
			NoCommit: some.Draw(t, "noCommit")}
	case "ReportMerged":
		return &ReportMerged{Attempt: attempt.Draw(t, "attempt"),
			Members: rapid.SampledFrom([][]string{nil, nil, {"ann"}, {"zoe"}}).Draw(t, "members")}
	case "ReportStaged":
		return &ReportStaged{Attempt: attempt.Draw(t, "attempt"), Parent: "p",
			Tree: rapid.SampledFrom([]string{"", "tree"}).Draw(t, "tree")}
	case "ReportCheck":
		return &ReportCheck{Attempt: attempt.Draw(t, "attempt"),
			Check:   rapid.SampledFrom([]string{"build", "build", "HOSTILE", "none"}).Draw(t, "check"),
			Failure: rapid.SampledFrom([]string{"", "", "", "exit status 1", hostile, "HOSTILE"}).Draw(t, "failure"),
			Output:  word.Draw(t, "output"), Left: left.Draw(t, "left")}
	case "ReportMade":
		return &ReportMade{Attempt: attempt.Draw(t, "attempt"),
			Commit: rapid.SampledFrom([]string{"", "commit"}).Draw(t, "commit")}
	case "ReportConsolidated":
		return &ReportConsolidated{Attempt: attempt.Draw(t, "attempt")}
	case "AbandonConsolidation":
		return &AbandonConsolidation{Attempt: attempt.Draw(t, "attempt"), Reason: word.Draw(t, "reason"),
			Left: left.Draw(t, "left")}
	case "ExpirePlan":
		return &ExpirePlan{Request: request("plan").Draw(t, "request")}
	case "MarkRead":
		return &MarkRead{Member: maybe.Draw(t, "member"), Through: rapid.Int64Range(0, s.messageSeq+1).Draw(
			t, "through")}
	case "ReviseTeam":
		return &ReviseTeam{To: Team{Goal: word.Draw(t, "goal"), HandoverAt: rapid.Int64Range(-1, 101).Draw(t,
			"percent"), MaxParallel: rapid.Int64Range(-1, 2).Draw(t, "parallel"), OriginDigest: word.Draw(t, "digest"),
			FileDigests: []string{word.Draw(t, "digests")},
			Metadata: map[string]json.RawMessage{ParametersKey: json.RawMessage(rapid.SampledFrom([]string{"null", "[]",
				`[{"name": "a"}]`, "{"}).Draw(t, "parameters"))}},
			Fields: rapid.SliceOf(rapid.SampledFrom([]string{"goal", "handoverAt", "checks", "clean", "hooks",
				"maxParallel", "metadata"})).Draw(t,
				"fields")}
	case "ReviseMember":
		return &ReviseMember{To: Member{Name: name.Draw(t, "member"), Model: word.Draw(t, "model"),
			Agent:  rapid.SampledFrom([]string{"", External, "claude", "codex"}).Draw(t, "agent"),
			Prompt: word.Draw(t, "prompt"), Dropped: some.Draw(t, "dropped")},
			Fields: rapid.SliceOf(rapid.SampledFrom([]string{"agent", "model", "prompt", "plan", "dropped"})).Draw(t,
				"fields")}
	case "ReviseTask":
		return &ReviseTask{Task: task.Draw(t, "task"), Delete: some.Draw(t, "delete"), FileDigests: []string{"run=1"},
			To: CreateTask{Subject: word.Draw(t, "subject"), Run: word.Draw(t, "run"), Owner: maybe.Draw(t, "owner"),
				Paths:    paths.Draw(t, "paths"),
				Priority: priority.Draw(t, "priority"), Retries: rapid.Int64Range(-1, 2).Draw(t, "retries"),
				ForEach: forEach.Draw(t, "for each"),
				When:    rapid.SampledFrom([]string{"", Always, "soon"}).Draw(t, "when"), Verify: drawVerify(t)},
			Fields: rapid.SliceOf(rapid.SampledFrom([]string{"subject", "run", "owner", "priority", "retries", "when",
				"metadata", "paths", "forEach", "verify"})).Draw(t, "fields")}
	case "ExpandTask":
		id := task.Draw(t, "task")
		for i := range s.due.all() {
			if rapid.Bool().Draw(t, "due") {
				id = s.tasks[i].ID
			}
		}
		fence := fence.Draw(t, "fence")
		if k := s.task(id); k != nil && rapid.IntRange(0, 3).Draw(t, "now") > 0 {
			fence = k.Fence
		}
		return &ExpandTask{Task: id, Fence: fence, Items: forEach.Draw(t, "items").list(),
			Failure: rapid.SampledFrom([]string{"", "", "", "exit status 1", hostile}).Draw(t, "failure")}
	case "BeginChild":
		id := child.Draw(t, "child")
		return &BeginChild{Task: task.Draw(t, "task"), Team: id, Name: id, Instead: rapid.OneOf(rapid.Just(""),
			child).Draw(t, "instead")}
	case "ReportChild":
		return &ReportChild{Team: child.Draw(t, "child"), Usage: Usage{InputTokens: rapid.Int64Range(-1,
			500).Draw(t, "tokens")}}
	case "HearParent":
		return &HearParent{Message: Message{Seq: rapid.Int64Range(-1, 5).Draw(t, "heard"), Body: word.Draw(t, "body")}}
	case "HearChild":
		return &HearChild{Team: child.Draw(t, "child"), Message: Message{Seq: rapid.Int64Range(-1, 5).Draw(t, "heard"),
			Body: word.Draw(t, "body")}}
	case "PassedToParent":
		return &PassedToParent{Through: rapid.Int64Range(-1, 50).Draw(t, "through")}
	case "ConfineTeam":
		return &ConfineTeam{Budget: Budget{Tokens: rapid.Int64Range(-1, 500).Draw(t, "tokens")},
			Mode:    rapid.SampledFrom([]string{"plan", "default", "bypassPermissions", "", "all"}).Draw(t, "mode"),
			AnyRule: some.Draw(t, "any rule")}
	case "EndChild":
		return &EndChild{Team: child.Draw(t, "child")}
	case "RedoTask":
		return &RedoTask{Task: task.Draw(t, "task"), Reason: word.Draw(t, "reason")}
	case "Batch":
		batch := &Batch{}
		for range rapid.IntRange(0, 3).Draw(t, "commands") {
			batch.Bodies = append(batch.Bodies, drawBody(t, s, now))
		}
		return batch
	}
	panic("one of the kinds of commands is never drawn")
}

// child draws the id of a child team.
var child = rapid.SampledFrom([]string{"c1", "c1", "c2", "", "HOSTILE"})

// forEach draws for which items a task makes tasks; mostly it makes none.
var forEach = rapid.Custom(func(t *rapid.T) *ForEach {
	item := rapid.SampledFrom([]json.RawMessage{json.RawMessage(`"x"`), json.RawMessage(` {"a": 1}`), TextItem(hostile),
		TextItem("$(touch x)"), json.RawMessage(`"`)})
	switch rapid.IntRange(0, 12).Draw(t, "kind") {
	case 0:
		return &ForEach{Items: rapid.SliceOfN(item, 0, 3).Draw(t, "items")}
	case 1:
		return &ForEach{Glob: rapid.SampledFrom([]string{"a/*", "/a"}).Draw(t, "glob")}
	case 2:
		return &ForEach{Run: "ls", Items: rapid.SliceOfN(item, 0, 1).Draw(t, "items")}
	}
	return nil
})

func (f *ForEach) list() []json.RawMessage {
	if f == nil {
		return []json.RawMessage{TextItem("one"), TextItem("two")}
	}
	return f.Items
}

var noteKey = rapid.SampledFrom([]string{"plan", "plan", "decisions/api", "decisions/db", "../x", "a b", ""})

// drawIfSeq draws the change of a note that a writer has seen last: of an existing note, or nearly.
func drawIfSeq(t *rapid.T, s *State) *int64 {
	seqs := []int64{-1, 0, s.noteSeq}
	for _, n := range s.notes {
		seqs = append(seqs, n.Seq, n.Seq)
	}
	if rapid.Bool().Draw(t, "any") {
		return nil
	}
	seq := rapid.SampledFrom(seqs).Draw(t, "if seq")
	return &seq
}

// bodyWeights has each kind of command as often as it is drawn. Commands that end the team are
// rare.
var bodyWeights = func() []string {
	var all []string
	for name := range bodies {
		n := map[string]int{"CreateTeam": 1, "RestoreTeam": 1, "SetStatus": 1, "CleanUp": 1, "ReportFailed": 2,
			"ReportStopped": 2, "SetBudget": 2, "CreateTask": 10, "UpdateTask": 10, "ClaimTask": 12, "CompleteTask": 10,
			"RejectResult":      8,
			"RequestPermission": 6, "FailTask": 6, "SendMessage": 8, "Broadcast": 4, "ReceiveMessages": 8,
			"AttachMember": 6, "SpawnMember": 6, "ExpandTask": 5}[name]
		for range max(n, 3) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all
}()

// founded returns a team with a few members, from which random histories start.
func founded(t fataler) (*State, []*Record) { return foundedBy(t, External) }

func foundedBy(t fataler, lead string) (*State, []*Record) {
	s := &State{}
	var records []*Record
	var depth int64 // a team that an agent leads is nested
	if lead != External {
		depth = 1
	}
	for i, c := range []Command{
		{Actor: User, Body: &CreateTeam{TeamID: "t", Name: "demo", Dir: "/d", LeadAgent: lead, Depth: depth,
			Parent: Parent{Team: strings.Repeat("p", int(depth)), Worktree: depth > 0},
			Timing: Timing{Undelivered: 100 * time.Millisecond, Zombie: 300 * time.Millisecond,
				Blocked: 200 * time.Millisecond},
			Checks:   []Check{{Name: "build", Command: "make"}, {Name: "HOSTILE", Command: "make test"}},
			Commands: []NamedCommand{{Name: "unit", Run: "go test ./..."}},
			Base:     Base{Top: "/d", Commit: "c", Dirty: []Fact{{Path: "out", SHA256: "0"}}}}},
		{Actor: "lead", Body: &SpawnMember{Name: "ann", Agent: External, Role: "r"}},
		{Actor: "lead", Body: &SpawnMember{Name: "bob", Agent: "claude", PlanApproval: true}},
		{Actor: Host("h1"), Body: &AttachMember{Member: "bob"}},
		{Actor: "lead", Body: &CreateTask{Subject: "first"}},
		{Actor: "lead", Body: &CreateTask{Subject: "second", BlockedBy: []string{"1"}}},
		{Actor: "ann", Body: &CreateTask{Subject: "third"}},
	} {
		c.ID = fmt.Sprint("found", i)
		d, err := Decide(s, c)
		if err != nil {
			t.Fatalf("%v", err)
		}
		s.Apply(d.Record)
		records = append(records, d.Record)
	}
	return s, records
}

// finishWork ends all open work, so that the team can be consolidated, and begins the
// consolidation.
func finishWork(t fataler, s *State) (records []*Record) {
	for i, c := range []Command{
		{Actor: User, Body: &CompleteTask{Task: "1"}}, {Actor: User, Body: &CompleteTask{Task: "2"}},
		{Actor: User, Body: &CompleteTask{Task: "3"}},
		{Actor: Host("h1"), Body: &DetachMember{Member: "bob"}}, {Actor: "lead", Body: &Consolidate{}},
	} {
		c.ID = fmt.Sprint("finish", i)
		d, err := Decide(s, c)
		if err != nil {
			t.Fatalf("%v", err)
		}
		s.Apply(d.Record)
		records = append(records, d.Record)
	}
	return records
}

// leftOf returns the unmerged branches in the record.
func leftOf(s *State) map[string]Left {
	all := map[string]Left{}
	for _, m := range s.Unmerged() {
		all[m.Name] = m.Left
	}
	return all
}

func TestRandomHistories(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, records := foundedBy(t, rapid.SampledFrom([]string{External, "claude"}).Draw(t, "lead"))
		model := newModel(t, s, records)
		if rapid.IntRange(0, 3).Draw(t, "ready") == 0 {
			records = append(records, finishWork(t, s)...)
			model = newModel(t, s, records)
		}
		limits := modelLimits{}
		steps := rapid.IntRange(1, 200).Draw(t, "steps")
		for n := 1; n <= steps; n++ {
			c := drawCommand(t, s, n)
			before := string(AppendSnapshot(nil, s))
			d, err := Decide(s, c)
			if after := string(AppendSnapshot(nil, s)); after != before {
				t.Fatalf("%+v changed the state from\n%s\nto\n%s", c.Body, before, after)
			}
			if err != nil && CodeOf(err) == "" {
				t.Fatalf("the refusal has no code: %v", err)
			}
			model.judge(t, c, d, err)
			if d.Record == nil {
				continue
			}
			limits.judge(t, c, d.Record)
			if again := recoded(t, d.Record); !reflect.DeepEqual(again, d.Record) {
				t.Fatalf("the record is read as\n%s\nand was\n%s", AppendRecord(nil, again),
					AppendRecord(nil, d.Record))
			}
			moved, left := movesOf(s), leftOf(s)
			if !s.Apply(d.Record) || s.Apply(d.Record) {
				t.Fatalf("the record %d was applied never or twice", d.Record.Seq)
			}
			records = append(records, d.Record)
			if err := moved(d.Record); err != nil {
				t.Fatalf("%T %+v: %v", c.Body, c.Body, err)
			}
			if c.Actor != User && c.Actor != s.team.Lead && !reflect.DeepEqual(leftOf(s), left) {
				t.Fatalf("%s changed what is to be merged with %T %+v: %v became %v", c.Actor, c.Body, c.Body,
					left, leftOf(s))
			}
			model.apply(t, d.Record)
			if err := invariants(s); err != nil {
				t.Fatalf("after %T %+v: %v", c.Body, c.Body, err)
			}
			model.compare(t, s)
			limits.apply(d.Record)
			limits.compare(t, s, c.At)
			limits.compare(t, s, c.At+Time(rapid.IntRange(0, 200_000).Draw(t, "later")))
		}
		// Applying any prefix again changes nothing. A snapshot anywhere and the remaining records
		// give the same state as all records.
		want := string(AppendSnapshot(nil, s))
		for _, r := range records[:rapid.IntRange(0, len(records)).Draw(t, "prefix")] {
			if s.Apply(r) {
				t.Fatalf("record %d was applied again", r.Seq)
			}
		}
		cut := rapid.IntRange(0, len(records)).Draw(t, "cut")
		again := &State{}
		for i, r := range records {
			if i == cut {
				again = reopened(t, again)
			}
			again.Apply(recoded(t, r))
		}
		for how, other := range map[string]*State{"applied again": s, "replayed": again, "reopened": reopened(t, s)} {
			if got := string(AppendSnapshot(nil, other)); got != want {
				t.Fatalf("%s:\n%s\nwant\n%s", how, got, want)
			}
			if err := invariants(other); err != nil {
				t.Fatalf("%s: %v", how, err)
			}
		}
	})
}

// TestApplyTakesAnything applies records to states that they were not decided on.
func TestApplyTakesAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := &State{}
		if rapid.Bool().Draw(t, "founded") {
			s, _ = founded(t)
		}
		for range rapid.IntRange(1, 40).Draw(t, "records") {
			r := &Record{Seq: s.Seq() + 1, ID: "x", Actor: rapid.SampledFrom(propertyActors).Draw(t, "actor")}
			for range rapid.IntRange(1, 3).Draw(t, "events") {
				r.Events = append(r.Events, drawEvent(t))
			}
			s.Apply(recoded(t, r))
			again := reopened(t, s)
			if got, want := string(AppendSnapshot(nil, again)), string(AppendSnapshot(nil, s)); got != want {
				t.Fatalf("reopened:\n%s\nwant\n%s", got, want)
			}
			if s.counts != again.counts || !reflect.DeepEqual(s.Claimable(""), again.Claimable("")) {
				t.Fatalf("what is derived differs after %s", AppendRecord(nil, r))
			}
			s.Wants(1000)
			c := drawCommand(t, s, 1)
			c.ID = "probe"
			Decide(s, c)
		}
	})
}

// drawEvent draws any event, its fields nearly at random.
func drawEvent(t *rapid.T) Event {
	kind := rapid.SampledFrom(Kinds()).Draw(t, "kind")
	e := eventOf(kind)
	scramble(t, reflect.ValueOf(e).Elem())
	return e
}

func eventOf(kind string) Event { return newEvent(kind) }

var scrambledTexts = []string{"", "lead", "ann", "bob", "1", "2", "3", "4", "pending", "in_progress", "completed",
	"deleted", "active", "stopped", "failed", "shutting_down", "idle", "high", "shutdown-1@ann", "@user",
	"h1", "t", "x\xff"}

func scramble(t *rapid.T, v reflect.Value) {
	if v.Type() == reflect.TypeFor[json.RawMessage]() {
		v.SetBytes([]byte(rapid.SampledFrom([]string{"null", `"x"`, `{"a":1}`, "[1]"}).Draw(t, "value")))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if rapid.Bool().Draw(t, "set") {
			v.Set(reflect.New(v.Type().Elem()))
			scramble(t, v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				scramble(t, v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type() == reflect.TypeFor[json.RawMessage]() {
			if rapid.Bool().Draw(t, "set") {
				v.SetBytes([]byte(`{"type":"object"}`))
			}
			return
		}
		n := rapid.IntRange(0, 3).Draw(t, "len")
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			scramble(t, v.Index(i))
		}
	case reflect.Map:
		v.Set(reflect.ValueOf(map[string]json.RawMessage{"k": json.RawMessage("null"), "l": json.RawMessage("[1]")}))
	case reflect.String:
		v.SetString(rapid.SampledFrom(scrambledTexts).Draw(t, "text"))
	case reflect.Int64:
		v.SetInt(rapid.Int64Range(-1, 6).Draw(t, "number"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "bool"))
	}
}
