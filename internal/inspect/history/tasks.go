package history

import (
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cadre/internal/render/excerpt"
	"cadre/internal/team"
)

// Attempt is a time in which a member held a task.
type Attempt struct {
	Member string
	Seq    int64 // of the record in which it began
	Began  team.Time
	EndSeq int64 // 0 while it runs
	Ended  team.Time
	// completed, submitted, rejected, failed, released, rolled back, reassigned or deleted; ""
	// while it runs
	How        string
	Reason     string // why it did not complete; may be ""
	Rejections []Rejection
}

// Rejection is a quality gate's answer that a task is not done.
type Rejection struct {
	Seq      int64
	At       team.Time
	Hook     string // "" for the task's own check, or the schema of its result
	Feedback string
}

// Mention is a message that names a task.
type Mention struct {
	Seq      int64
	At       team.Time
	From, To string
	Text     string // shortened
}

// These bound what [Tasks] keeps of a task, and of a member's plans.
const (
	mostAttempts = 100
	mostMentions = 50
	mostPlans    = 8
	// of an attempt, by its check or the schema of its result
	mostRejections = team.MaxCheckRounds
	mentionSize    = 600
)

// Tasks collects what happened to each task, from a history that grows record by record. The zero
// value begins a history. Of each task it keeps the last [mostAttempts] attempts and [mostMentions]
// messages. It keeps no record.
type Tasks struct {
	through int64
	of      map[string]*taskPast
	named   map[string]string // ids by name
	plans   map[string][]Plan // by member, the oldest first
	seqs    map[string]int64  // of the records in which plans were submitted, by request
}

type taskPast struct {
	attempts []Attempt
	mentions []Mention
}

// Add takes the next record. It ignores a record that was added before.
func (t *Tasks) Add(r *team.Record) {
	if r.Seq <= t.through {
		return
	}
	t.through = r.Seq
	for _, e := range r.Events {
		t.take(e, r)
	}
}

// Attempts returns the attempts of the task that began at or before the record seq, as they were
// then. 0 stands for the last record.
func (t *Tasks) Attempts(task string, seq int64) (all []Attempt) {
	of := t.of[task]
	if of == nil {
		return nil
	}
	for _, a := range of.attempts {
		if seq > 0 && a.Seq > seq {
			break
		}
		if seq > 0 && a.EndSeq > seq {
			a.EndSeq, a.Ended, a.How, a.Reason = 0, 0, "", ""
		}
		if seq > 0 {
			a.Rejections = slices.DeleteFunc(slices.Clone(a.Rejections), func(r Rejection) bool { return r.Seq > seq })
		}
		all = append(all, a)
	}
	return all
}

// Mentions returns the messages about the task up to the record seq; 0 stands for the last record.
func (t *Tasks) Mentions(task string, seq int64) []Mention {
	of := t.of[task]
	if of == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(of.mentions), func(m Mention) bool { return seq > 0 && m.Seq > seq })
}

// Plan returns the last plan that the member submitted up to the record seq; 0 stands for the last
// record.
func (t *Tasks) Plan(member string, seq int64) (p Plan, is bool) {
	for _, one := range slices.Backward(t.plans[member]) {
		if seq == 0 || t.seqs[one.Request] <= seq {
			return one, true
		}
	}
	return p, false
}

func (t *Tasks) task(id string) *taskPast {
	if t.of == nil {
		t.of, t.named = map[string]*taskPast{}, map[string]string{}
	}
	of := t.of[id]
	if of == nil {
		of = &taskPast{}
		t.of[strings.Clone(id)] = of // the id is part of the record's line, which is longer
	}
	return of
}

func (t *Tasks) take(e team.Event, r *team.Record) {
	switch e := e.(type) {
	case *team.TeamRestored:
		for i := range e.Tasks {
			t.create(&e.Tasks[i], r)
		}
	case *team.TaskCreated:
		t.create(&e.Task, r)
	case *team.TaskClaimed:
		t.end(e.Task, "released", "", r)
		of := t.task(e.Task)
		of.attempts = bounded(append(of.attempts, Attempt{Member: strings.Clone(e.Member), Seq: r.Seq, Began: r.At}),
			mostAttempts)
	case *team.TaskReleased:
		t.end(e.Task, "released", e.Reason, r)
	case *team.TaskRolledBack:
		if !t.end(e.Task, "rolled back", e.Reason, r) {
			t.revise(e.Task, "rolled back", e.Reason, r)
		}
	case *team.TaskFailed:
		t.end(e.Task, "failed", e.Reason, r)
	case *team.TaskSubmitted:
		t.end(e.Task, "submitted", "", r)
	case *team.TaskCompleted:
		if !t.end(e.Task, "completed", "", r) {
			t.accepted(e.Task)
		}
	case *team.TaskDeleted:
		t.end(e.Task, "deleted", "", r)
	case *team.TaskUpdated:
		if of := t.of[e.Task]; e.Owner != nil && of != nil && len(of.attempts) > 0 &&
			of.attempts[len(of.attempts)-1].Member != *e.Owner {
			t.end(e.Task, "reassigned", "", r)
		}
	case *team.TaskRejected:
		t.sentBack(e, r)
	case *team.HookRejected:
		if of := t.of[e.Task]; of != nil && len(of.attempts) > 0 {
			last := &of.attempts[len(of.attempts)-1]
			last.Rejections = bounded(append(last.Rejections, Rejection{r.Seq, r.At, strings.Clone(e.Hook),
				brief(e.Feedback)}), mostPlans)
		}
	case *team.PlanSubmitted:
		if t.plans == nil {
			t.plans, t.seqs = map[string][]Plan{}, map[string]int64{}
		}
		t.seqs[strings.Clone(e.Request)] = r.Seq
		t.plans[e.Member] = bounded(append(t.plans[e.Member],
			Plan{Member: e.Member, State: "submitted", Request: e.Request,
				Plan: e.Plan, AskedAt: r.At}), mostPlans)
	case *team.PlanAnswered:
		t.answer(e, r)
	case *team.MessageSent:
		t.message(e.Message, r)
	}
}

// sentBack adds a rejection of a result. One that others verified has ended its attempt, with its
// submission.
func (t *Tasks) sentBack(e *team.TaskRejected, r *team.Record) {
	of := t.of[e.Task]
	if of == nil || len(of.attempts) == 0 {
		return
	}
	last := &of.attempts[len(of.attempts)-1]
	if last.EndSeq != 0 {
		t.revise(e.Task, "rejected", e.Feedback, r)
		return
	}
	last.Rejections = bounded(append(last.Rejections, Rejection{r.Seq, r.At, "",
		brief(e.Words() + ": " + e.Feedback)}), mostRejections)
}

func (t *Tasks) create(k *team.Task, r *team.Record) {
	t.task(k.ID)
	if k.Name != "" {
		t.named[strings.Clone(k.Name)] = strings.Clone(k.ID)
	}
	if k.Status == team.InProgress { // of a restored team
		of := t.task(k.ID)
		of.attempts = append(of.attempts, Attempt{Member: strings.Clone(k.Owner), Seq: r.Seq, Began: k.StartedAt})
	}
}

// end ends the attempt that runs, and reports whether there was one.
func (t *Tasks) end(task, how, reason string, r *team.Record) bool {
	of := t.of[task]
	if of == nil || len(of.attempts) == 0 || of.attempts[len(of.attempts)-1].EndSeq != 0 {
		return false
	}
	t.revise(task, how, reason, r)
	return true
}

// revise says how the last attempt ended.
func (t *Tasks) revise(task, how, reason string, r *team.Record) {
	if of := t.of[task]; of != nil && len(of.attempts) > 0 {
		last := &of.attempts[len(of.attempts)-1]
		last.EndSeq, last.Ended, last.How, last.Reason = r.Seq, r.At, how, brief(reason)
	}
}

// accepted says that the last attempt, which was submitted, was accepted.
func (t *Tasks) accepted(task string) {
	if of := t.of[task]; of != nil && len(of.attempts) > 0 {
		if last := &of.attempts[len(of.attempts)-1]; last.How == "submitted" {
			last.How = "completed"
		}
	}
}

func (t *Tasks) answer(e *team.PlanAnswered, r *team.Record) {
	plans := t.plans[e.Member]
	for i := range plans {
		if p := &plans[i]; p.Request == e.Request {
			p.State, p.Feedback, p.AnsweredBy, p.AnsweredAt = "rejected", e.Feedback, e.By, r.At
			if e.Approved {
				p.State = "approved"
			}
		}
	}
}

// message notes a message with each task that it names: by #number, as "task NAME", or by a name
// that no word of prose is.
func (t *Tasks) message(m team.Message, r *team.Record) {
	if m.From == "" || m.Type != team.TypeMessage && m.Type != team.TypeBroadcast && m.Type != team.TypeIdle {
		return
	}
	var noted []string
	before := ""
	for word := range strings.FieldsFuncSeq(m.Body, between) {
		word = strings.Trim(word, ".-:/")
		if id := t.called(word, before); id != "" && !slices.Contains(noted, id) {
			noted = append(noted, id)
		}
		before = strings.ToLower(word)
	}
	for _, id := range noted {
		of := t.task(id)
		of.mentions = bounded(append(of.mentions, Mention{r.Seq, r.At, strings.Clone(m.From), strings.Clone(m.To),
			brief(m.Body)}), mostMentions)
	}
}

// brief shortens a text of a record to one line. The result does not keep the line of the record,
// of which the text is a part.
func brief(text string) string { return strings.Clone(excerpt.Line(text, mentionSize)) }

// between reports whether the character stands between words.
func between(r rune) bool {
	return r != '#' && r != '-' && r != '_' && r != '.' && r != ':' && r != '/' && !unicode.IsLetter(r) &&
		!unicode.IsDigit(r)
}

// called returns the id of the task that the word names, behind the word before; "" for none.
func (t *Tasks) called(word, before string) string {
	number, is := strings.CutPrefix(word, "#")
	if is || before == "task" || before == "tasks" {
		if t.of[number] != nil {
			return number
		}
		return t.named[number]
	}
	if id := t.named[word]; id != "" && (strings.ContainsAny(word, "-_./") || utf8.RuneCountInString(word) > 12) {
		return id
	}
	return ""
}

// bounded returns the last elements, as many as there may be.
func bounded[T any](all []T, most int) []T {
	if over := len(all) - most; over > 0 {
		all = slices.Delete(all, 0, over)
	}
	return all
}
