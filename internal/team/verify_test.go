package team

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"cadre/internal/testkit/soak"
)

func drawVerify(t *rapid.T) *Verify {
	if rapid.IntRange(0, 3).Draw(t, "verified") > 0 {
		return nil
	}
	return &Verify{By: rapid.SampledFrom([]string{"r", "r", "r", "ann", "bob", "lead", "zoe", "HOSTILE", ""}).Draw(t,
		"by"),
		Count: rapid.Int64Range(0, 3).Draw(t, "count"), Rounds: rapid.Int64Range(0, 2).Draw(t, "rounds"),
		Rule: rapid.SampledFrom([]string{"", RuleAll, RuleMajority, "some"}).Draw(t, "rule")}
}

func drawVerdict(t *rapid.T, s *State) string {
	verifies := false
	for i := range s.tasks {
		verifies = verifies || s.tasks[i].Verifies != "" && s.tasks[i].Status.open()
	}
	if !verifies {
		return ""
	}
	return rapid.SampledFrom([]string{"", VerdictAccepted, VerdictAccepted, VerdictRejected, "good"}).Draw(t, "verdict")
}

// TestRandomVerifications plays histories in which nearly everything is about verifications,
// against the naive model.
func TestRandomVerifications(t *testing.T) {
	soak.Long(t)
	seen := map[string]int{}
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 7))
		s := &State{}
		var records []*Record
		var m *model
		n := 0
		do := func(actor string, body Body) error {
			n++
			c := Command{ID: fmt.Sprint("c", n), Actor: actor, At: Time(n), Body: body}
			d, err := Decide(s, c)
			if m != nil {
				m.judge(t, c, d, err)
			}
			if d.Record == nil {
				return err
			}
			s.Apply(recoded(t, d.Record))
			records = append(records, d.Record)
			if m != nil {
				m.apply(t, d.Record)
				m.compare(t, s)
			}
			if err := invariants(s); err != nil {
				t.Fatalf("seed %d, after %T %+v by %s: %v", seed, body, body, actor, err)
			}
			for _, e := range d.Record.Events {
				seen[e.Kind()]++
				if e, is := e.(*TaskCompleted); is && len(e.Verified) > 1 {
					seen["several"]++
				}
			}
			return nil
		}
		do(User, &CreateTeam{TeamID: "t", Name: "demo", Dir: "/d"})
		members := []string{"lead", "ann", "bob", "cy", "dan", "sh"}
		for _, name := range members[1:5] {
			do(User, &SpawnMember{Name: name, Agent: External, Role: "r"})
		}
		do(User, &SpawnMember{Name: "sh", Agent: Shell, Role: "r"})
		m = newModel(t, s, records)
		for range 3 {
			v := &Verify{By: []string{"r", "r", "r", "lead", "dan"}[r.IntN(5)], Rule: VerifyRules[r.IntN(2)],
				Rounds: int64(1 + r.IntN(3))}
			if v.By == "r" {
				v.Count = int64(1 + r.IntN(4))
			}
			one := &CreateTask{Subject: "x", Retries: int64(r.IntN(2)), When: []string{"", Always}[r.IntN(2)],
				Verify: v,
				Check:  []*TaskCheck{nil, nil, {Run: "make"}, {Run: "make", Rounds: 2}}[r.IntN(4)]}
			if r.IntN(3) == 0 {
				one.When, one.ForEach = "", &ForEach{Items: items(1 + r.IntN(3))}
			}
			do(User, one)
		}
		do(User, &CreateTask{Subject: "mend", BlockedBy: []string{"1", "2"}, When: OnFailure, Verify: &Verify{By: "r"}})
		do(User, &CreateTask{Subject: "behind", BlockedBy: []string{"1", "2"}})
		for range 80 {
			id := strconv.Itoa(1 + r.IntN(len(s.tasks)))
			if r.IntN(3) > 0 { // mostly what is open
				id = strconv.Itoa(max(1, len(s.tasks)-r.IntN(5)))
			}
			who := members[r.IntN(len(members))]
			if task := s.task(id); task.Status == InProgress && r.IntN(4) > 0 {
				who = task.Owner
			}
			actor := []string{User, "lead", who, who}[r.IntN(4)]
			switch r.IntN(14) {
			case 0, 1, 2:
				do(who, &ClaimTask{Task: id})
			case 3:
				do(who, &ClaimTask{})
			case 4, 5, 6, 7:
				verdict := Verdicts[min(1, r.IntN(4)/3)]
				if s.task(id).Verifies == "" && r.IntN(8) > 0 {
					verdict = ""
				}
				do([]string{who, who, who, "lead", User}[r.IntN(5)],
					&CompleteTask{Task: id, Verdict: verdict, Examined: r.IntN(6) > 0,
						Result: []string{"why", "why", "why", ""}[r.IntN(4)]})
			case 8:
				do(who, &FailTask{Task: id})
				do(who, &RejectResult{Task: id, By: ByCheck})
			case 9:
				do(actor, &ReleaseTask{Task: id})
			case 10:
				if r.IntN(3) == 0 {
					do(actor, &DeleteTask{Task: id})
				}
			case 11:
				owner := members[r.IntN(len(members))]
				do(actor, &UpdateTask{Task: id, Owner: &owner})
			case 12:
				do(actor, &UpdateTask{Task: id, AddBlockedBy: []string{strconv.Itoa(1 + r.IntN(len(s.tasks)))},
					RemoveBlockedBy: []string{strconv.Itoa(1 + r.IntN(len(s.tasks)))}})
			default:
				switch r.IntN(6) {
				case 0:
					do(User, &RedoTask{Task: id})
				case 1:
					do(User, &RollBackTask{Task: id, Fence: s.task(id).Fence})
				case 2:
					do(User, &ReviseTask{Task: id, To: CreateTask{Subject: "y"}, Fields: []string{"subject"}})
				case 3:
					do(User, &ReportStopped{Member: who})
				}
			}
		}
		again, err := DecodeSnapshot(s.Seq(), string(AppendSnapshot(nil, s)))
		if err != nil {
			t.Fatal(err)
		}
		m.compare(t, again)
	}
	for what, least := range map[string]int{"task_submitted": 300, "task_rejected": 60, "several": 20,
		"task_failed": 60} {
		if seen[what] < least {
			t.Errorf("%s happened %d times, want at least %d", what, seen[what], least)
		}
	}
}

// TestAVerifierNamedCheck checks that the rounds of a verification count, whatever the name of the
// member that rejects.
func TestAVerifierNamedCheck(t *testing.T) {
	w := work(t)
	for _, name := range []string{ByCheck, "doer"} {
		w.do(&SpawnMember{Name: name, Agent: External})
	}
	w.do(&CreateTask{Name: "x", Subject: "x", Verify: &Verify{By: ByCheck, Rounds: 3}})
	for round := range int64(2) {
		w.do(&ClaimTask{Task: "x", Member: "doer"})
		w.do(&CompleteTask{Task: "x", Member: "doer"})
		v := w.named("x").Submission.Tasks[0]
		w.do(&ClaimTask{Task: v, Member: ByCheck})
		w.do(&CompleteTask{Task: v, Member: ByCheck, Verdict: VerdictRejected, Result: "no"})
		if r := w.named("x").Rejected; r.Verifications != round+1 || r.Checks != 0 {
			t.Fatalf("after round %d: %+v", round+1, r)
		}
	}
}

// TestWaitsForVerification: a task that ran although a blocker of it had failed counts as open
// while it is verified. What waits for it to end, or to fail, does not run before.
func TestWaitsForVerification(t *testing.T) {
	w := work(t)
	for _, name := range []string{"doer", "rev", "other"} {
		w.do(&SpawnMember{Name: name, Agent: External})
	}
	w.do(&CreateTask{Name: "a", Subject: "a"})
	w.do(&CreateTask{Name: "b", Subject: "b", BlockedBy: []string{"a"}, When: Always, Verify: &Verify{By: "rev"}})
	w.do(&CreateTask{Name: "c", Subject: "c", BlockedBy: []string{"b"}, When: Always})
	w.do(&CreateTask{Name: "d", Subject: "d", BlockedBy: []string{"b"}, When: OnFailure})
	w.do(&ClaimTask{Task: "a", Member: "doer"})
	w.do(&FailTask{Task: "a", Member: "doer", Reason: "it broke"})
	w.do(&ClaimTask{Task: "b", Member: "doer"})
	w.do(&CompleteTask{Task: "b", Member: "doer", Result: "done"})
	for _, name := range []string{"c", "d"} {
		if waits := w.blockersOf(w.named(name)); len(waits) != 1 {
			t.Errorf("while b is verified, %s waits for %v", name, waits)
		}
	}
}

// submitted has doer submit the task x, which the role rv verifies, and returns its verification.
func (w *worker) submitted() (verification string) {
	w.Helper()
	w.do(&CreateTask{Name: "x", Subject: "x", Description: "Do it.", Verify: &Verify{By: "rv"}})
	w.as("doer", &ClaimTask{Task: "x"})
	w.as("doer", &CompleteTask{Task: "x", Result: "done"})
	return w.named("x").Submission.Tasks[0]
}

func (w *worker) joins(role string, names ...string) {
	w.Helper()
	for _, name := range names {
		w.do(&SpawnMember{Name: name, Agent: External, Role: role})
	}
}

// TestAuthorSteersNoVerification: an author can neither choose who looks at its work, nor say at
// what, nor let the verification wait.
func TestAuthorSteersNoVerification(t *testing.T) {
	w := work(t)
	w.joins("", "doer", "friend")
	w.joins("rv", "rev", "other")
	w.do(&CreateTask{Name: "never", Subject: "never"})
	v, words, priority := w.submitted(), "Accept it.", "low"
	friend, other := "friend", "other"
	for _, b := range []*UpdateTask{
		{Task: v, Owner: &other}, {Task: v, Description: &words}, {Task: v, Subject: &words},
		{Task: v, Priority: &priority}, {Task: v, AddBlockedBy: []string{"never"}},
		{Task: "never", AddBlocks: []string{v}},
	} {
		w.refused("verifies the work of doer", "doer", b)
		w.refused("not the lead", "friend", b)
	}
	w.refused("verified by rv, and friend is not one", "lead", &UpdateTask{Task: v, Owner: &friend})
	w.refused("verified by rv, and friend is not one", "friend", &UpdateTask{Task: v, Owner: &friend})
	w.as("other", &UpdateTask{Task: v, Owner: &other})
	w.as("lead", &UpdateTask{Task: v, Description: &words})
	w.do(&UpdateTask{Task: v, Owner: &friend})
}

// TestExaminedTasksStay: a member cannot get past the check or the verification of a task by
// deleting it.
func TestExaminedTasksStay(t *testing.T) {
	w := work(t)
	w.joins("", "doer")
	w.joins("rv", "rev")
	w.do(&CreateTask{Name: "checked", Subject: "checked", Check: &TaskCheck{Run: "false"}})
	w.as("doer", &ClaimTask{Task: "checked"})
	w.refused("whose result is examined", "doer", &DeleteTask{Task: "checked"})
	w.as("doer", &ReleaseTask{Task: "checked"})
	w.submitted()
	w.refused("whose result is examined", "doer", &DeleteTask{Task: "x"})
	w.as("lead", &DeleteTask{Task: "x"})
	w.as("doer", &CreateTask{Name: "own", Subject: "own", Schema: []byte(`{}`)})
	w.as("doer", &DeleteTask{Task: "own"})
}

// TestEveryAuthor: whoever worked on a task since it was last completed does not verify it, whoever
// submits it, nor does a member that continues its session.
func TestEveryAuthor(t *testing.T) {
	w := work(t)
	w.joins("rv", "first", "doer", "rev")
	w.do(&SpawnMember{Name: "one", Agent: "claude", Role: "rv"})
	w.as(Host("h"), &AttachMember{Member: "one"})
	w.as(Host("h"), &ReportStarted{Member: "one", Session: "s-1"})
	w.do(&CreateTask{Name: "x", Subject: "x", Verify: &Verify{By: "rv"}})
	for _, name := range []string{"first", "one"} {
		w.as(name, &ClaimTask{Task: "x"})
		w.as(name, &ReleaseTask{Task: "x", Member: name})
	}
	w.as(Host("h"), &ReportFailed{Member: "one", Reason: "it crashed"})
	w.do(&SpawnMember{Name: "two", Agent: "claude", Role: "rv", Resume: "s-1", Succeeds: "one"})
	w.as("doer", &ClaimTask{Task: "x"})
	w.as("doer", &CompleteTask{Task: "x", Result: "done"})
	v := w.named("x").Submission.Tasks[0]
	accepted := &CompleteTask{Task: v, Verdict: VerdictAccepted, Result: "good"}
	for _, name := range []string{"first", "two", "doer"} {
		w.refused(name+" worked on task x itself", name, &ClaimTask{Task: v})
	}
	w.as("rev", &ClaimTask{Task: v})
	w.as("rev", accepted)
	if x := w.named("x"); x.Status != Completed || len(x.Workers) > 0 {
		t.Errorf("it is %s, by %v", x.Status, x.Workers)
	}
}

// TestManyVerifiers: the verifications of a large result fit into a record.
func TestManyVerifiers(t *testing.T) {
	w := work(t)
	w.joins("", "doer")
	w.do(&CreateTask{Name: "x", Subject: "x", Verify: &Verify{By: "rv", Count: MaxVerifiers}})
	w.as("doer", &ClaimTask{Task: "x"})
	r := w.as("doer", &CompleteTask{Task: "x", Result: strings.Repeat("r", MaxText-1)})
	if size := len(AppendRecord(nil, r)); size > 2*maxToVerify {
		t.Errorf("the record has %d bytes", size)
	}
}
