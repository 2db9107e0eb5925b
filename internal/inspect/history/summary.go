package history

import (
	"cmp"
	"fmt"
	"iter"
	"slices"
	"strings"

	"cadre/internal/render/excerpt"
	"cadre/internal/team"
)

// Summary sums up the records between two looks at a team, for a person who was away. Add the
// records in their order to one that has its Reader.
type Summary struct {
	Reader string // name of the member that the person is; "" to leave out their mail

	From, To   int64     // the first and last record; 0 for none
	Began, End team.Time // when they were recorded

	Created   int           // tasks that were added
	Completed []string      // ids of tasks that are completed now
	Failed    []TaskFailure // tasks whose last attempt failed
	Joined    []string      // members that were added
	Ended     []MemberEnd   // members that stopped or failed, and did not return
	Waiting   []Waiting     // what began to wait for a person, and still waits
	Answered  int           // requests and plans that were answered meanwhile, or that timed out
	Messages  int64         // to the reader, without questions of members
	Mail      []team.Message
	Commits   []string // commits of the team's work
	Status    team.TeamStatus
	Usage     team.Usage
	Failures  int // troubles of members and failed checks
	// Gaps counts the places where records are lost to damage.
	Gaps int
}

// TaskFailure is a task whose last attempt failed.
type TaskFailure struct{ Task, By, Reason string }

// MemberEnd is a member that ended.
type MemberEnd struct {
	Member, Reason string
	Failed         bool
}

// Waiting is something that waits for a person.
type Waiting struct {
	Kind    team.ItemKind // permission, plan or question
	Member  string
	Request string // "" for a question
	Message int64  // the question's number among the messages; 0 for a request
	Text    string // the tool, the plan or the question
	Since   team.Time
}

// mostMail is how many messages a summary keeps: the last ones.
const mostMail = 20

// Sum adds the records of the source, and counts the places where it lost some. It returns any
// other error.
func (s *Summary) Sum(source iter.Seq2[*team.Record, error], lost func(error) bool) error {
	for r, err := range source {
		switch {
		case err == nil:
			s.Add(r)
		case lost != nil && lost(err):
			s.Gaps++
		default:
			return err
		}
	}
	return nil
}

// Add adds the next record.
func (s *Summary) Add(r *team.Record) {
	if s.From == 0 {
		s.From, s.Began = r.Seq, r.At
	}
	s.To, s.End = r.Seq, r.At
	for _, e := range r.Events {
		if !s.task(e) && !s.member(e) {
			s.rest(e, r)
		}
	}
}

// task adds an event of a task, and reports whether it is one.
func (s *Summary) task(e team.Event) bool {
	switch e := e.(type) {
	case *team.TaskCreated:
		s.Created++
	case *team.TaskCompleted:
		s.forget(e.Task)
		s.Completed = append(s.Completed, strings.Clone(e.Task)) // a part of the record's line, which is longer
	case *team.TaskFailed:
		s.forget(e.Task)
		s.Failed = append(s.Failed, TaskFailure{strings.Clone(e.Task), strings.Clone(e.By), strings.Clone(e.Reason)})
	case *team.TaskClaimed:
		s.forget(e.Task)
	case *team.TaskReleased:
		s.forget(e.Task)
	case *team.TaskDeleted:
		s.forget(e.Task)
	case *team.TaskUpdated:
		if e.Run != nil { // a new command begins without failures
			s.Failed = slices.DeleteFunc(s.Failed, func(f TaskFailure) bool { return f.Task == e.Task })
		}
	case *team.TaskRolledBack:
		s.forget(e.Task)
	default:
		return false
	}
	return true
}

// forget drops the state of the task.
func (s *Summary) forget(task string) {
	s.Completed = slices.DeleteFunc(s.Completed, func(id string) bool { return id == task })
	s.Failed = slices.DeleteFunc(s.Failed, func(f TaskFailure) bool { return f.Task == task })
}

// member adds an event of a member, and reports whether it is one.
func (s *Summary) member(e team.Event) bool {
	switch e := e.(type) {
	case *team.MemberSpawned:
		s.Joined = append(s.Joined, strings.Clone(e.Member.Name))
	case *team.MemberReturned:
		s.Ended = slices.DeleteFunc(s.Ended, func(end MemberEnd) bool { return end.Member == e.Member.Name })
	case *team.MemberStopped:
		s.ended(MemberEnd{strings.Clone(e.Member), strings.Clone(e.Reason), false})
	case *team.MemberFailed:
		s.ended(MemberEnd{strings.Clone(e.Member), strings.Clone(e.Reason), true})
	case *team.MemberDetached:
		s.drop(func(w Waiting) bool { return w.Kind == team.ItemPermission && w.Member == e.Member })
	case *team.MemberTroubled:
		if e.Setbacks > 0 {
			s.Failures++
		}
	default:
		return false
	}
	return true
}

func (s *Summary) ended(end MemberEnd) {
	s.Ended = append(s.Ended, end)
	s.drop(func(w Waiting) bool { return w.Kind != team.ItemQuestion && w.Member == end.Member })
}

func (s *Summary) rest(e team.Event, r *team.Record) {
	switch e := e.(type) {
	case *team.PermissionRequested:
		if !answered(r, e.Permission.Request) {
			s.Waiting = append(s.Waiting, Waiting{Kind: team.ItemPermission, Member: e.Permission.Member,
				Request: e.Permission.Request, Text: e.Permission.Tool, Since: r.At})
		}
	case *team.PermissionAnswered:
		s.answer(e.Request, r)
	case *team.PlanSubmitted:
		s.drop(func(w Waiting) bool { return w.Kind == team.ItemPlan && w.Member == e.Member })
		s.Waiting = append(s.Waiting, Waiting{Kind: team.ItemPlan, Member: e.Member, Request: e.Request, Text: e.Plan,
			Since: r.At})
	case *team.PlanAnswered:
		s.answer(e.Request, r)
	case *team.MessageSent:
		s.mail(e.Message, r)
	case *team.MessagesRead:
		s.read(e.Member, func(seq int64) bool { return seq <= e.Through })
	case *team.MessagesDelivered:
		s.read(e.Member, func(seq int64) bool { return slices.Contains(e.Seqs, seq) })
	case *team.CommitMade:
		s.Commits = append(s.Commits, strings.Clone(e.Commit))
	case *team.CheckFailed:
		s.Failures++
	case *team.TeamStatusChanged:
		s.Status = e.Status
	case *team.UsageReported:
		s.Usage.InputTokens += e.Usage.InputTokens
		s.Usage.OutputTokens += e.Usage.OutputTokens
		s.Usage.CacheReadTokens += e.Usage.CacheReadTokens
		s.Usage.CacheWriteTokens += e.Usage.CacheWriteTokens
		s.Usage.CostMicroUSD += e.Usage.CostMicroUSD
	}
}

// answer ends a request. What the rules answered in the same record never waited.
func (s *Summary) answer(request string, r *team.Record) {
	asked := slices.ContainsFunc(r.Events, func(e team.Event) bool {
		p, is := e.(*team.PermissionRequested)
		return is && p.Permission.Request == request
	})
	if !asked {
		s.Answered++
	}
	s.drop(func(w Waiting) bool { return w.Request == request && request != "" })
}

func (s *Summary) mail(m team.Message, r *team.Record) {
	switch m.Type {
	case "", team.TypeMessage, team.TypeBroadcast, team.TypeIdle: // requests are counted by themselves
	default:
		return
	}
	if s.Reader == "" || !to(m, s.Reader) || m.From == "" || m.From == s.Reader || m.Quiet {
		return
	}
	if asks(m, s.Reader) {
		s.Waiting = append(s.Waiting, Waiting{Kind: team.ItemQuestion, Member: m.From, Message: m.Seq, Text: m.Body,
			Since: r.At})
		return
	}
	s.Messages++
	m.SentAt = r.At
	s.Mail = append(s.Mail, m)
	s.Mail = slices.Delete(s.Mail, 0, max(0, len(s.Mail)-mostMail))
}

// read drops the questions that the reader has got.
func (s *Summary) read(member string, got func(seq int64) bool) {
	if member == s.Reader {
		s.drop(func(w Waiting) bool { return w.Kind == team.ItemQuestion && got(w.Message) })
	}
}

func (s *Summary) drop(gone func(Waiting) bool) { s.Waiting = slices.DeleteFunc(s.Waiting, gone) }

// Lines says what happened, the most urgent first, one sentence a line. It is empty if no event
// matters to a person. called returns what a task is called. The texts quote what agents wrote.
func (s *Summary) Lines(called func(task string) string) []string {
	return append(s.urgent(called), s.others(called)...)
}

// urgent says what a person may have to act on.
func (s *Summary) urgent(called func(task string) string) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	for _, w := range few(s.Waiting) {
		switch w.Kind {
		case team.ItemPermission:
			add("%s asks to use %s.", w.Member, w.Text)
		case team.ItemPlan:
			add("%s submitted a plan and waits for its approval.", w.Member)
		default:
			add("%s asks: %s", w.Member, excerpt.FirstLine(w.Text))
		}
	}
	if n := len(s.Waiting) - most; n > 0 {
		add("%s more for you to answer.", plural(n, "request waits", "requests wait"))
	}
	for _, f := range few(s.Failed) {
		add("Task %s failed: %s", called(f.Task), excerpt.FirstLine(f.Reason))
	}
	if n := len(s.Failed) - most; n > 0 {
		add("%s more failed.", plural(n, "task", "tasks"))
	}
	for _, end := range few(s.Ended) {
		add("%s %s: %s", end.Member, map[bool]string{true: "failed", false: "stopped"}[end.Failed],
			cmp.Or(excerpt.FirstLine(end.Reason), "no reason given"))
	}
	if n := len(s.Ended) - most; n > 0 {
		add("%s more ended.", plural(n, "member", "members"))
	}
	return lines
}

// others says what else happened.
func (s *Summary) others(called func(task string) string) (lines []string) {
	add := func(format string, args ...any) { lines = append(lines, fmt.Sprintf(format, args...)) }
	if n := len(s.Completed); n > 0 {
		var names []string
		for _, id := range few(s.Completed) {
			names = append(names, called(id))
		}
		if n > most {
			names = append(names, fmt.Sprintf("%d more", n-most))
		}
		add("%s completed: %s.", plural(n, "task was", "tasks were"), strings.Join(names, ", "))
	}
	if s.Created > 0 {
		add("%s added.", plural(s.Created, "task was", "tasks were"))
	}
	if len(s.Joined) > 0 {
		add("%s joined.", strings.Join(s.Joined, ", "))
	}
	if s.Messages > 0 {
		add("%s to you.", plural(int(s.Messages), "message came", "messages came"))
	}
	if s.Answered > 0 {
		add("%s answered.", plural(s.Answered, "request was", "requests were"))
	}
	if s.Failures > 0 {
		add("%s had to be overcome.", plural(s.Failures, "trouble or failed check", "troubles and failed checks"))
	}
	for _, commit := range s.Commits {
		add("The work was committed as %.12s.", commit)
	}
	if s.Status != "" {
		add("The team is %s.", s.Status)
	}
	if s.Gaps > 0 {
		add("Part of the history is lost to damage.")
	}
	return lines
}

// most is how many things of one sort are named.
const most = 5

func few[T any](all []T) []T { return all[:min(most, len(all))] }

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
