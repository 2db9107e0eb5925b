// Package historytest makes histories of teams for tests and benchmarks: lists of records as the
// core decides them.
//
// It has no authority. Every record comes from [team.Decide], so that a history is one that a team
// can have, and commands that the core refuses leave no trace in it. The same choices always give
// the same history.
package historytest

import (
	"fmt"
	"slices"
	"strconv"

	"cadre/internal/team"

	"pgregory.net/rapid"
)

// Began is the time of the first record of every history.
const Began team.Time = 1_700_000_000_000

// Team is a team whose history grows with each command. The zero value is not usable; see [New].
type Team struct {
	State   *team.State
	Records []*team.Record
	Now     team.Time
}

// New returns a team that an external lead has created.
func New() *Team {
	s, err := team.DecodeSnapshot(0, "")
	if err != nil {
		panic(err)
	}
	t := &Team{State: s, Now: Began}
	t.Do(team.User, &team.CreateTeam{TeamID: "t1", Name: "core", Dir: "/repo"})
	return t
}

// Do sends a command, a second after the last one. It reports whether the core accepted it.
func (t *Team) Do(actor string, b team.Body) bool {
	t.Now += 1000
	d, err := team.Decide(t.State, team.Command{ID: "command-number-" + strconv.Itoa(int(t.Now)), Actor: actor,
		At: t.Now, Body: b})
	if err != nil || d.Record == nil {
		return false
	}
	t.State.Apply(d.Record)
	t.Records = append(t.Records, d.Record)
	return true
}

// Encoded returns the records as a journal has them.
func (t *Team) Encoded() [][]byte {
	all := make([][]byte, len(t.Records))
	for i, r := range t.Records {
		all[i] = team.AppendRecord(nil, r)
	}
	return all
}

var members = []string{"ann", "bob", "cy", "dan"}

// Choices generates choices for [Play]: at most that many, and at least a third as many. All
// histories begin with tasks, and with members that run three different agents. One member must
// submit a plan.
func Choices(most int) *rapid.Generator[[]uint32] {
	// Rapid prefers small numbers, which would choose the same few commands.
	choice := rapid.Custom(func(t *rapid.T) uint32 {
		action := rapid.SampledFrom(actions).Draw(t, "action")
		return action + kinds*(rapid.Uint32().Draw(t, "details")*2654435761>>8)
	})
	return rapid.Map(rapid.SliceOfN(choice, most/3, most), func(choices []uint32) []uint32 {
		return append([]uint32{0, kinds * 36, kinds * 24, kinds * 108, 2, 3, 3, 4}, choices...)
	})
}

// kinds is how many kinds of commands there are.
const kinds = 25

var actions = []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23,
	24}

// Play returns the history that the choices make: each one is a command on members and tasks that
// exist, or nearly.
func Play(choices []uint32) *Team {
	t := New()
	for _, c := range choices {
		t.play(c)
	}
	return t
}

// play sends the command that the bits of c choose.
func (t *Team) play(c uint32) {
	take := func(n int) int {
		i := int(c) % n
		c /= uint32(n)
		return i
	}
	action := take(kinds)
	t.Now += team.Time(take(4)) * 20_000
	name := members[take(len(members))]
	task := func() string { return strconv.Itoa(1 + take(t.tasks()+1)) }
	held := func() string { // a task of the member, if it has one
		if held := t.State.Held(name); len(held) > 0 {
			return held[0].ID
		}
		return task()
	}
	host := team.Host("h")
	switch action {
	case 0, 1:
		t.Do("lead", &team.SpawnMember{Name: name, Agent: []string{team.Claude, team.Shell, team.External}[take(3)],
			Prompt: "work", Role: []string{"", "tester"}[take(2)], PlanApproval: take(2) == 1})
	case 2:
		t.Do(host, &team.AttachMember{Member: name})
		t.Do(host, &team.ReportStarted{Member: name, Session: "s" + strconv.Itoa(take(3))})
	case 3, 4:
		b := &team.CreateTask{Subject: "look at it", Run: "true", Retries: int64(take(2))}
		if take(2) == 1 {
			b.BlockedBy = []string{task()}
		}
		if take(4) == 1 {
			b.Owner = name
		}
		t.Do("lead", b)
	case 5, 6:
		t.Do(name, &team.ClaimTask{})
	case 7:
		t.Do(team.User, &team.CompleteTask{Task: held(), Member: name, Result: "done"})
	case 8:
		t.Do(name, &team.CompleteTask{Task: held()})
	case 9:
		t.Do(name, &team.FailTask{Task: held(), Reason: "exit status 1"})
	case 10:
		t.Do("lead", &team.ReleaseTask{Task: task(), Reason: "again"})
	case 11, 12:
		t.Do(team.User, &team.ReportStatus{Member: name, Status: team.Active, Summary: "it works"})
	case 13, 14:
		t.Do(team.User, &team.ReportStatus{Member: name, Status: team.Idle})
	case 15:
		t.Do(team.User, &team.RequestPermission{Member: name, Tool: "Bash", Input: `{"command":"rm x"}`,
			Deadline: t.Now + 600_000})
	case 16:
		for _, p := range t.State.Permissions() {
			t.Do(team.User, &team.AnswerPermission{Request: p.Request, Allow: take(2) == 0})
		}
	case 17:
		t.Do(team.User, &team.SubmitPlan{Member: name, Plan: "first this, then that"})
	case 18:
		if m, _ := t.State.Member(name); m.Plan.Request != "" {
			t.Do(team.User, &team.AnswerPlan{Request: m.Plan.Request, Approved: take(2) == 0, Feedback: "hm"})
		}
	case 19:
		t.Do(team.User, &team.ReportTrouble{Member: name, Trouble: "limit", Text: "429", Gone: take(3) == 0,
			Retrying: take(2) == 0, Pool: []string{"", "p"}[len(t.Records)%2]})
	case 20:
		t.Do("lead", &team.RetryMember{Member: name})
	case 21:
		t.Do(team.User, &team.ReportUsage{Member: name, Task: task(), Usage: team.Usage{
			InputTokens: int64(take(5000)), OutputTokens: int64(take(100)), CostMicroUSD: int64(take(1000))}})
		t.Do(name, &team.SendMessage{To: "lead", Body: "how is it?", Intent: []string{"question", ""}[take(2)]})
	case 22:
		t.Do("lead", &team.SendMessage{To: name, Body: "go on"})
		t.Do(name, &team.ReceiveMessages{})
		if m, _ := t.State.Member(name); take(2) == 0 {
			t.Do(name, &team.MarkRead{Through: m.DeliveredSeq})
		}
	case 23:
		switch take(5) {
		case 4:
			t.Do(team.User, &team.Interrupt{Member: name})
		case 0:
			t.Do(team.User, &team.ReportStopped{Member: name, Reason: "asked"})
		case 1:
			t.Do(team.User, &team.ReportFailed{Member: name, Reason: "crash"})
		case 2:
			t.Do(team.User, &team.DetachMember{Member: name, Reason: "host gone"})
		case 3:
			t.Do("lead", &team.DeleteTask{Task: task()})
		}
	case 24:
		t.note(name, take)
	}
}

// note changes one of two notes as the member.
func (t *Team) note(name string, take func(int) int) {
	key := []string{"plan", "decisions/api"}[take(2)]
	switch take(4) {
	case 0:
		t.Do(name, &team.SetNote{Key: key, Text: "the plan is number " + strconv.Itoa(take(100))})
	case 1:
		t.Do(name, &team.DeleteNote{Key: key})
	default:
		t.Do(name, &team.AppendNote{Key: key, Text: "and then number " + strconv.Itoa(take(100))})
	}
}

func (t *Team) tasks() int {
	n := 0
	for _, status := range []team.TaskStatus{team.Pending, team.InProgress, team.Completed, team.Deleted} {
		n += t.State.Count(status)
	}
	return n
}

// Long returns the history of a team with eight working members that has at least that many
// records. They claim and complete tasks with usage, messages and questions in between. tasks are
// there at the start; when they are done, others follow one by one.
func Long(records, tasks int) *Team {
	t := New()
	host := team.Host("h")
	var names []string
	for i := range 8 {
		name := fmt.Sprint("worker-", i)
		names = append(names, name)
		t.Do("lead", &team.SpawnMember{Name: name, Agent: team.Claude, Prompt: "work off the list"})
		t.Do(host, &team.AttachMember{Member: name})
		t.Do(host, &team.ReportStarted{Member: name, Session: name})
	}
	for i := range tasks {
		t.Do("lead", &team.CreateTask{Subject: fmt.Sprintf("Look at the module number %d", i+1),
			Description: "Read the module, note what is wrong with it, and say so."})
	}
	for i := 0; len(t.Records) < records; i++ {
		name := names[i%len(names)]
		if t.State.Count(team.Pending) == 0 {
			t.Do("lead", &team.CreateTask{Subject: fmt.Sprintf("Look again at the module number %d", i)})
		}
		t.Do(name, &team.ClaimTask{})
		held := t.State.Held(name)
		t.Do(host, &team.ReportStatus{Member: name, Status: team.Active, Summary: "it looks at the module"})
		t.Do(host, &team.ReportUsage{Member: name, Task: held[0].ID,
			Usage: team.Usage{InputTokens: 900, OutputTokens: 120, CostMicroUSD: 4000}})
		t.Do(host, &team.RequestPermission{Member: name, Tool: "Bash", Input: `{"command":"make check"}`,
			Deadline: t.Now + 600_000})
		for _, p := range t.State.Permissions() {
			t.Do(team.User, &team.AnswerPermission{Request: p.Request, Allow: true})
		}
		t.Do(name, &team.SendMessage{To: "lead", Body: "The module is done: 12 checks passed."})
		t.Do("lead", &team.ReceiveMessages{})
		t.Do(name, &team.CompleteTask{Task: held[0].ID, Result: "exit status 0"})
		t.Do(host, &team.ReportStatus{Member: name, Status: team.Idle})
	}
	t.Records = slices.Clip(t.Records)
	return t
}
