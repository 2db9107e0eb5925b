package team

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// A task may demand two things of a completion: a result that fits a JSON Schema, and a command
// that passes. Neither can be found out here. A replica's gate validates the result and runs the
// command, and then sends CompleteTask with Examined, or RejectResult.

// Limits on what a task demands.
const (
	MaxSchema      = 64 << 10 // bytes of a JSON Schema
	MaxCheckRounds = 100      // rounds of a check
	MaxCommands    = 100      // named commands of a team
	DefaultRounds  = 5        // rounds of until, where nothing else is said
	MaxMisfits     = 3        // results that do not fit, after which an attempt has failed
)

// What rejects a result, as [TaskRejected].By says. Other values are the names of members.
const (
	ByResult = "result" // the result does not fit the schema
	ByCheck  = "check"  // the check did not pass
)

// TaskCheck is a command that must pass before a task is completed.
type TaskCheck struct {
	Run string // command for /bin/sh
	// how often it is tried in one attempt until it passes; 0 for a plain check
	Rounds int64
	Name   string // name of the team's command that Run was taken from; "" for none
}

// Limit returns how many failures of the check end an attempt.
func (c *TaskCheck) Limit() int64 {
	if c.Rounds > 0 {
		return c.Rounds
	}
	return MaxStrikes
}

// TaskRejection is the last rejection of a task's result, and how often each of the task's demands
// rejected the present attempt.
type TaskRejection struct {
	By            string // [ByResult], [ByCheck], or the names of the members that verified it
	Feedback      string // why
	Results       int64  // results that did not fit
	Checks        int64  // failures of the check
	Verifications int64  // rejections by members
}

// NamedCommand is a command that tasks can name as their check.
type NamedCommand struct {
	Name string // name of the command
	Run  string // command for /bin/sh
}

// Demands reports whether a completion of the task must be examined before it is accepted.
func (t Task) Demands() bool { return len(t.Schema) > 0 || t.Check != nil }

// checkDemands refuses an invalid schema or check. It returns the schema on one line, and the check
// with its command.
func (d *decision) checkDemands(schema json.RawMessage, check *TaskCheck) (json.RawMessage, *TaskCheck, error) {
	schema, err := cleanSchema(schema)
	if err != nil || check == nil {
		return schema, nil, err
	}
	own := *check
	if own.Name != "" && own.Run == "" {
		if own.Run, err = d.team.command(own.Name); err != nil {
			return nil, nil, err
		}
	}
	switch {
	case strings.TrimSpace(own.Run) == "":
		return nil, nil, refuse(Invalid, "a check needs a command")
	case own.Rounds < 0 || own.Rounds > MaxCheckRounds:
		return nil, nil, refuse(Invalid, "a check has 1 to %d rounds, not %d", MaxCheckRounds, own.Rounds)
	}
	return schema, &own, limit(text{"check", own.Run, MaxText}, text{"name of the check", own.Name, MaxName})
}

// cleanSchema returns the schema on one line; nil for none. Whether it is a valid JSON Schema is
// not decided here.
func cleanSchema(schema json.RawMessage) (json.RawMessage, error) {
	text := strings.ToValidUTF8(strings.TrimSpace(string(schema)), "\uFFFD")
	if text == "" || text == "null" {
		return nil, nil
	}
	if len(text) > MaxSchema {
		return nil, refuse(TooLarge, "the schema of the result has %d bytes, of at most %d", len(text), MaxSchema)
	}
	c := coder{mode: reading, in: text}
	c.skip(maxDepth / 2) // its event nests it deeper
	var one bytes.Buffer
	if err := json.Compact(&one, []byte(text)); err != nil || c.err != nil {
		return nil, refuse(Invalid, "the schema of the result is not JSON, or nested more than %d times", maxDepth/2)
	}
	if first := one.Bytes()[0]; first != '{' {
		return nil, refuse(Invalid, "the schema of the result is not a JSON object")
	}
	return one.Bytes(), nil
}

// command returns the team's command of that name.
func (t *Team) command(name string) (string, error) {
	var known []string
	for _, c := range t.Commands {
		if c.Name == name {
			return c.Run, nil
		}
		known = append(known, c.Name)
	}
	if len(known) == 0 {
		return "", refuse(Invalid, "no command %q: the team has no named commands", brief(name))
	}
	return "", refuse(Invalid, "no command %q; the team has: %s", brief(name), strings.Join(known, ", "))
}

// checkCommands refuses invalid named commands.
func checkCommands(commands []NamedCommand) error {
	if len(commands) > MaxCommands {
		return refuse(TooLarge, "%d named commands are too many; a team has at most %d", len(commands), MaxCommands)
	}
	for i, c := range commands {
		switch {
		case !ValidName(c.Name):
			return refuse(Invalid, "%q cannot be the name of a command; use letters, digits, _ and -", brief(c.Name))
		case strings.TrimSpace(c.Run) == "":
			return refuse(Invalid, "the command %s is empty", c.Name)
		case slices.ContainsFunc(commands[:i], func(o NamedCommand) bool { return o.Name == c.Name }):
			return refuse(Invalid, "two commands are named %s", c.Name)
		}
		if err := limit(text{"command", c.Run, MaxText}); err != nil {
			return err
		}
	}
	return nil
}

// Examines reports whether this completion of the task must be examined before it is accepted. A
// submitted result was examined when it was submitted.
func (t Task) Examines(result string) bool {
	return t.Demands() && (t.Submission == nil || result != "")
}

// unexamined refuses a completion that was not examined although the task demands it.
func (d *decision) unexamined(t *Task, b *CompleteTask) error {
	if b.Examined || !t.Examines(b.Result) {
		return nil
	}
	what := "its result must fit a schema"
	if t.Check != nil {
		what = "its check must pass"
	}
	return refuse(NotReady, "%s cannot be completed here: %s, and nothing examined that", t.label(), what)
}

// RejectResult records that a completion was examined and does not meet the task's demands. At the
// limit of its rejections the attempt has failed. Nothing is recorded where no attempt of the
// member is in progress, as when a person completes a task of the queue.
type RejectResult struct {
	Task     string
	Member   string // "" for the actor
	Fence    int64
	By       string // [ByResult] or [ByCheck]
	Feedback string
	Result   string
}

func (b *RejectResult) decide(d *decision) error {
	if err := limit(text{"result", b.Result, MaxText}); err != nil {
		return err
	}
	if err := oneOf("reason to reject a result", b.By, []string{ByResult, ByCheck}); err != nil {
		return err
	}
	t, err := d.live(b.Task)
	if err != nil {
		return err
	}
	by := b.Member
	if by == "" {
		by = d.Actor
	}
	if t.Status != InProgress || t.Owner != by {
		return nil
	}
	t, m, err := d.held(b.Task, b.Member, b.Fence)
	if err != nil {
		return err
	}
	switch {
	case b.By == ByCheck && t.Check == nil:
		return refuse(Conflict, "%s has no check", t.label())
	case b.By == ByResult && len(t.Schema) == 0:
		return refuse(Conflict, "the result of %s has no schema", t.label())
	}
	return d.reject(t, m, b.By, b.Feedback, b.Result)
}

// reject records one more rejection of the present attempt, and at the limit its failure.
func (d *decision) reject(t *Task, m *Member, by, feedback, result string) error {
	e := &TaskRejected{Task: t.ID, Member: m.Name, By: by, Feedback: clipTo(feedback, MaxOutput)}
	var so TaskRejection
	if t.Rejected != nil {
		so = *t.Rejected
	}
	e.Count, e.Limit = *so.counter(by)+1, t.tries(m, by)
	d.emit(e)
	if !e.Final() {
		return nil
	}
	reason := ""
	switch {
	case e.Limit == 1: // the feedback says it all
	case by == ByCheck:
		reason = fmt.Sprintf("its check failed, %d times:\n", e.Count)
	default:
		reason = fmt.Sprintf("its result did not fit its schema, %d times:\n", e.Count)
	}
	return d.fail(t, m, reason+e.Feedback, result)
}

// tries returns how often the member may complete the task in an attempt until its result is
// accepted. A command and a team do not read feedback as an agent does: they run again only in the
// rounds of a check.
func (t *Task) tries(m *Member, by string) int64 {
	switch reads := m.Agent != Shell && m.Agent != NestedTeam; {
	case by == ByCheck && (reads || t.Check.Rounds > 0):
		return t.Check.Limit()
	case by == ByResult && reads:
		return MaxMisfits
	}
	return 1
}

// counter returns the count of what rejects results as by.
func (r *TaskRejection) counter(by string) *int64 {
	switch by {
	case ByResult:
		return &r.Results
	case ByCheck:
		return &r.Checks
	}
	return &r.Verifications
}

// TaskRejected says that a result was sent back to the member, for the Count-th time in this
// attempt. At Limit the attempt has failed; the same record says so.
type TaskRejected struct {
	Task, Member, By, Feedback string
	Count, Limit               int64
}

// Final reports whether the attempt has failed with this rejection.
func (e *TaskRejected) Final() bool { return e.Limit > 0 && e.Count >= e.Limit }

// Words says in one line what was rejected, and how often.
func (e *TaskRejected) Words() string {
	switch {
	case e.Limit == 1 && e.By == ByResult:
		return "the result does not fit its schema"
	case e.Limit == 1 && e.By == ByCheck:
		return "the check failed"
	case e.By == ByResult:
		return fmt.Sprintf("the result does not fit its schema (%d of %d)", e.Count, e.Limit)
	case e.By != ByCheck:
		return fmt.Sprintf("%s rejected the result (%d of %d)", cmp.Or(e.By, "half of them"), e.Count, e.Limit)
	}
	return fmt.Sprintf("the check failed in round %d of %d", e.Count, e.Limit)
}

// Kind returns the event's name in the journal.
func (*TaskRejected) Kind() string { return "task_rejected" }

func (e *TaskRejected) fields(c *coder) {
	c.str("task", &e.Task)
	c.str("member", &e.Member)
	c.str("by", &e.By)
	c.str("feedback", &e.Feedback)
	c.int("count", &e.Count)
	c.int("limit", &e.Limit)
}

func (e *TaskRejected) apply(s *State, r *Record) {
	s.change(e.Task, r, func(t *Task) {
		so := TaskRejection{}
		if t.Rejected != nil {
			so = *t.Rejected // a reader may hold the old one
		}
		so.By, so.Feedback = e.By, e.Feedback
		own(&so.By, &so.Feedback)
		switch {
		case t.Submission != nil: // whatever the names of those who verified it are
			so.Verifications = e.Count
		case e.Limit == 1: // there was one try, and nothing to count
			*so.counter(e.By) = 0
		default:
			*so.counter(e.By) = e.Count
		}
		t.Rejected, t.Submission = &so, nil
	})
	s.childrenOver(e.Task)
}

// anew gives the next attempt all of its tries. Its member is still told of the last rejection.
func (t *Task) anew() {
	if t.Rejected != nil {
		t.Rejected = &TaskRejection{By: t.Rejected.By, Feedback: t.Rejected.Feedback}
	}
}

// released lets the next attempt begin with all of its tries if the lead or the user returned the
// task to the queue. A member that returns its own task has used up its tries.
func (s *State) released(t *Task, by string) {
	if by == User || by == s.team.Lead && t.Owner != by {
		t.anew()
	}
}

func (k *TaskCheck) fields(c *coder) {
	c.str("run", &k.Run)
	c.int("rounds", &k.Rounds)
	c.str("name", &k.Name)
}

func (r *TaskRejection) fields(c *coder) {
	c.str("by", &r.By)
	c.str("feedback", &r.Feedback)
	c.int("results", &r.Results)
	c.int("checks", &r.Checks)
	c.int("verifications", &r.Verifications)
}

func (n *NamedCommand) fields(c *coder) {
	c.str("name", &n.Name)
	c.str("run", &n.Run)
}

// ownDemands copies the texts of what the task demands, which are part of the record's line.
func (t *Task) ownDemands() {
	t.Schema = bytes.Clone(t.Schema)
	if t.Check != nil {
		check := *t.Check
		own(&check.Run, &check.Name)
		t.Check = &check
	}
	if t.Rejected != nil {
		rejected := *t.Rejected
		own(&rejected.By, &rejected.Feedback)
		t.Rejected = &rejected
	}
	t.Skipped = strings.Clone(t.Skipped)
}

// Refusal says to who completed the task what was rejected and why, and what to do.
func (e *TaskRejected) Refusal(t Task) string {
	words := "the check failed"
	switch {
	case e.Count > 0:
		words = e.Words()
	case e.By == ByResult:
		words = "the result does not fit its schema"
	}
	then := "Correct that, and complete the task again."
	switch {
	case e.Final():
		then = "That was the last try of this attempt at the task: it has failed."
	case e.By == ByCheck:
		then = "Correct the work, and complete the task again."
	}
	return fmt.Sprintf("task %s: %s:\n%s\n%s", t.Called(), words, strings.TrimRight(e.Feedback, "\n"), then)
}

// SentBack says why a task's last result was sent back, and gives the feedback. Both are "" if none
// was, or if there is another result since.
func (t Task) SentBack() (why, feedback string) {
	r := t.Rejected
	if r == nil || t.Status == Completed || t.Submission != nil {
		return "", ""
	}
	count := func(n, limit int64, before string) string {
		if n == 0 { // a person gave it all its tries again
			return ""
		}
		return fmt.Sprintf("%s%d of %d", before, n, limit)
	}
	switch {
	case r.By == ByResult:
		why = "the result does not fit its schema" + count(r.Results, MaxMisfits, ", ")
	case r.By == ByCheck && t.Check != nil:
		why = "the check failed" + count(r.Checks, t.Check.Limit(), " in round ")
	case r.By == ByCheck:
		why = "the check failed"
	default:
		why = "not accepted by " + cmp.Or(r.By, "half of those who verified it") +
			count(r.Verifications, t.VerifyRounds(), " in round ")
	}
	return why, r.Feedback
}
