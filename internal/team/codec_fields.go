package team

import (
	"io"
	"iter"
	"time"
)

// This file says how the parts of the state are written as JSON: in snapshots, in events that carry
// them whole, and for people and programs. For the last, derived fields are added. The names are
// the vocabulary of docs/architecture/core.md.

func (u *Usage) fields(c *coder) {
	c.int("inputTokens", &u.InputTokens)
	c.int("outputTokens", &u.OutputTokens)
	c.int("cacheReadTokens", &u.CacheReadTokens)
	c.int("cacheWriteTokens", &u.CacheWriteTokens)
	c.int("costMicroUSD", &u.CostMicroUSD)
}

func (b *Budget) fields(c *coder) {
	c.int("tokens", &b.Tokens)
	c.int("costMicroUSD", &b.CostMicroUSD)
	c.duration("millis", &b.Time, time.Millisecond)
}

func (a *Alerted) fields(c *coder) {
	c.str("what", &a.What)
	c.int("percent", &a.Percent)
}

func (h *Hook) fields(c *coder) {
	c.str("event", &h.Event)
	c.str("command", &h.Command)
	c.duration("seconds", &h.Timeout, time.Second)
}

func (t *Team) fields(c *coder) {
	c.str("id", &t.ID)
	c.str("name", &t.Name)
	c.str("status", (*string)(&t.Status))
	c.str("goal", &t.Goal)
	c.str("dir", &t.Dir)
	c.str("lead", &t.Lead)
	c.str("observed", &t.Observed)
	c.bool("session", &t.Session)
	c.bool("delegate", &t.Delegate)
	c.sub("budget", t.Budget == Budget{}, &t.Budget)
	c.str("exhausted", &t.Exhausted)
	objects(c, "alerted", &t.Alerted)
	objects(c, "hooks", &t.Hooks)
	c.sub("permissions", t.Permissions.none(), &t.Permissions)
	c.int("handoverAt", &t.HandoverAt)
	c.int("maxTeammates", &t.MaxTeammates)
	c.int("maxParallel", &t.MaxParallel)
	c.int("depth", &t.Depth)
	c.int("maxDepth", &t.MaxDepth)
	c.sub("parent", t.Parent == Parent{}, &t.Parent)
	c.ints("outbox", &t.Outbox)
	objects(c, "children", &t.Children)
	c.str("origin", &t.Origin)
	c.str("originDigest", &t.OriginDigest)
	c.strs("fileDigests", &t.FileDigests)
	c.str("report", &t.Report)
	c.bool("reportAsked", &t.ReportAsked)
	c.str("lastWords", &t.LastWords)
	c.sub("usage", t.Usage == Usage{}, &t.Usage)
	c.int("createdAt", (*int64)(&t.CreatedAt))
	c.int("updatedAt", (*int64)(&t.UpdatedAt))
	c.bool("cleanedUp", &t.CleanedUp)
	c.sub("timing", t.Timing == Timing{}, &t.Timing)
	objects(c, "facts", &t.Facts)
	c.str("leadSession", &t.LeadSession)
	c.str("leadMachine", &t.LeadMachine)
	c.bool("leadAgent", &t.LeadAgent)
	c.int("leadSince", (*int64)(&t.LeadSince))
	c.int("leadLost", (*int64)(&t.LeadLost))
	c.int("heldAfter", &t.HeldAfter)
	objects(c, "checks", &t.Checks)
	objects(c, "commands", &t.Commands)
	c.bool("clean", &t.Clean)
	c.bool("changes", &t.Changes)
	c.str("remote", &t.Remote)
	c.sub("base", t.Base.none(), &t.Base)
	c.sub("consolidation", t.Consolidation.Attempt == 0, &t.Consolidation)
	c.sub("restored", t.Restored == Restored{}, &t.Restored)
	objects(c, "missing", &t.Missing)
	c.sub("released", t.Released == Released{}, &t.Released)
	objects(c, "hooksOff", &t.HooksOff)
	objects(c, "rules", &t.Rules)
	c.int("endingAt", (*int64)(&t.EndingAt))
	c.raws("metadata", &t.Metadata)
}

func (r *Restored) fields(c *coder) {
	c.str("id", &r.ID)
	c.str("from", &r.From)
	c.int("seq", &r.Seq)
}

func (t *Timing) fields(c *coder) {
	c.duration("beat", &t.Beat, time.Millisecond)
	c.duration("offline", &t.Offline, time.Millisecond)
	c.duration("leadLost", &t.LeadLost, time.Millisecond)
	c.duration("zombie", &t.Zombie, time.Millisecond)
	c.duration("blocked", &t.Blocked, time.Millisecond)
	c.duration("undelivered", &t.Undelivered, time.Millisecond)
	c.duration("stale", &t.Stale, time.Millisecond)
	c.duration("checkpoint", &t.Checkpoint, time.Millisecond)
}

func (f *Fact) fields(c *coder) {
	c.str("name", &f.Name)
	c.str("path", &f.Path)
	c.str("sha256", &f.SHA256)
}

func (s *Saved) fields(c *coder) {
	c.str("member", &s.Member)
	c.str("commit", &s.Commit)
	c.str("diff", &s.Diff)
	c.str("note", &s.Note)
	c.str("output", &s.Output)
	c.int("at", (*int64)(&s.At))
}

func (p *Permissions) fields(c *coder) {
	c.strs("allow", &p.Allow)
	c.duration("millis", &p.Timeout, time.Millisecond)
	c.str("policy", &p.Policy)
}

func (p *Permissions) none() bool { return len(p.Allow) == 0 && p.Policy == "" && p.Timeout == 0 }

func (m *Member) fields(c *coder) {
	c.str("name", &m.Name)
	c.str("agent", &m.Agent)
	c.str("model", &m.Model)
	c.str("program", &m.Program)
	c.strs("args", &m.Args)
	c.strs("env", &m.Env)
	c.str("role", &m.Role)
	c.str("prompt", &m.Prompt)
	c.str("color", &m.Color)
	part(c, "nested", &m.Nested)
	c.str("isolation", &m.Isolation)
	c.str("status", (*string)(&m.Status))
	c.int("since", (*int64)(&m.Since))
	c.int("incarnation", &m.Incarnation)
	c.str("permissionMode", &m.PermissionMode)
	c.str("ownMode", &m.OwnMode)
	c.sub("plan", m.Plan == Plan{}, &m.Plan)
	c.sub("shutdown", m.Shutdown == Shutdown{}, &m.Shutdown)
	c.strs("runsOn", &m.RunsOn)
	c.str("machine", &m.Machine)
	c.str("host", &m.Host)
	c.int("lease", &m.Lease)
	c.str("session", &m.Session)
	c.str("summary", &m.Summary)
	c.str("note", &m.Note)
	c.str("handover", &m.Handover)
	c.int("interrupt", &m.Interrupt)
	c.int("setbacks", &m.Setbacks)
	c.int("retryAt", (*int64)(&m.RetryAt))
	c.str("pool", &m.Pool)
	c.int("limitedAt", (*int64)(&m.Limited))
	c.int("turn", &m.Turn)
	c.int("context", &m.Context)
	c.int("joinedAt", (*int64)(&m.JoinedAt))
	c.sub("usage", m.Usage == Usage{}, &m.Usage)
	c.ints("inbox", &m.Inbox)
	c.int("deliveredSeq", &m.DeliveredSeq)
	c.int("readSeq", &m.ReadSeq)
	c.ints("late", &m.Late)
	c.int("offline", (*int64)(&m.Offline))
	c.int("resent", &m.Resent)
	c.sub("left", m.Left == Left{}, &m.Left)
	c.int("sessionCost", &m.SessionCost)
	c.sub("budget", m.Budget == Budget{}, &m.Budget)
	c.str("exhausted", &m.Exhausted)
	objects(c, "alerted", &m.Alerted)
	c.bool("dropped", &m.Dropped)
	c.strs("fileDigests", &m.FileDigests)
	c.sub("inherited", m.Inherited == Usage{}, &m.Inherited)
	c.int("budgetFrom", (*int64)(&m.BudgetFrom))
	c.int("change", &m.Change)
	c.sub("told", m.Told == Told{}, &m.Told)
}

func (p *Plan) fields(c *coder) {
	c.bool("required", &p.Required)
	c.str("state", &p.State)
	c.str("request", &p.Request)
	c.str("text", &p.Text)
	c.str("feedback", &p.Feedback)
	c.int("deadline", (*int64)(&p.Deadline))
	c.int("askedAt", (*int64)(&p.AskedAt))
}

func (r *Shutdown) fields(c *coder) {
	c.str("request", &r.Request)
	c.str("reason", &r.Reason)
	c.int("deadline", (*int64)(&r.Deadline))
	c.str("answer", &r.Answer)
}

func (t *Task) fields(c *coder) {
	c.str("id", &t.ID)
	c.str("name", &t.Name)
	c.str("subject", &t.Subject)
	c.str("description", &t.Description)
	c.str("activeForm", &t.ActiveForm)
	c.str("status", (*string)(&t.Status))
	c.str("owner", &t.Owner)
	c.bool("assigned", &t.Assigned)
	c.str("role", &t.Role)
	c.strs("blockedBy", &t.BlockedBy)
	c.strs("blocks", &t.Blocks)
	if c.view {
		c.strs("blocked", &t.open)
		c.str("waitsForPath", &t.path)
		state := t.State()
		c.str("state", &state)
	}
	c.str("priority", &t.Priority)
	c.str("run", &t.Run)
	c.str("in", &t.In)
	c.str("dir", &t.Dir)
	c.strs("env", &t.Env)
	c.str("when", &t.When)
	c.duration("timeoutMs", &t.Timeout, time.Millisecond)
	c.int("retries", &t.Retries)
	c.int("fence", &t.Fence)
	c.int("attempts", &t.Attempts)
	c.int("failures", &t.Failures)
	c.str("failure", &t.Failure)
	c.str("failedBy", &t.FailedBy)
	c.str("result", &t.Result)
	if !c.ahead("createdBy") { // most tasks have none of these
		t.fieldsOfExamination(c)
		t.fieldsOfGroup(c)
	}
	c.str("createdBy", &t.CreatedBy)
	c.str("completedBy", &t.CompletedBy)
	c.int("createdAt", (*int64)(&t.CreatedAt))
	c.int("updatedAt", (*int64)(&t.UpdatedAt))
	c.int("startedAt", (*int64)(&t.StartedAt))
	c.int("completedAt", (*int64)(&t.CompletedAt))
	c.sub("usage", t.Usage == Usage{}, &t.Usage)
}

// fieldsOfExamination are those about what a result has to pass.
func (t *Task) fieldsOfExamination(c *coder) {
	c.rawValue("schema", &t.Schema)
	part(c, "check", &t.Check)
	part(c, "verify", &t.Verify)
	part(c, "submission", &t.Submission)
	c.strs("workers", &t.Workers)
	part(c, "rejected", &t.Rejected)
	c.str("skipped", &t.Skipped)
	c.strs("verified", &t.Verified)
	c.str("verifies", &t.Verifies)
	c.str("verdict", &t.Verdict)
	c.str("lastWords", &t.LastWords)
}

// fieldsOfGroup are those about the files and the tasks that belong to it.
func (t *Task) fieldsOfGroup(c *coder) {
	c.raws("metadata", &t.Metadata)
	c.strs("paths", &t.Paths)
	c.strs("holds", &t.Holds)
	part(c, "forEach", &t.ForEach)
	c.bool("expanded", &t.Expanded)
	c.str("of", &t.Of)
	c.value("item", &t.Item)
	c.strs("fileDigests", &t.FileDigests)
	part(c, "saved", &t.Saved)
	part(c, "work", &t.Work)
}

func (m *Message) fields(c *coder) {
	c.int("seq", &m.Seq)
	c.str("from", &m.From)
	c.str("to", &m.To)
	c.strs("recipients", &m.Recipients)
	c.str("type", &m.Type)
	c.str("intent", &m.Intent)
	c.str("priority", &m.Priority)
	c.str("body", &m.Body)
	c.str("summary", &m.Summary)
	c.str("ref", &m.Ref)
	c.int("incarnation", &m.Incarnation)
	c.bool("quiet", &m.Quiet)
	c.int("sentAt", (*int64)(&m.SentAt))
	c.int("resentAt", (*int64)(&m.ResentAt))
	c.raws("metadata", &m.Metadata)
	objects(c, "news", &m.News)
}

func (p *Permission) fields(c *coder) {
	c.str("request", &p.Request)
	c.str("member", &p.Member)
	c.int("incarnation", &p.Incarnation)
	c.str("tool", &p.Tool)
	c.str("input", &p.Input)
	c.int("deadline", (*int64)(&p.Deadline))
	c.int("askedAt", (*int64)(&p.AskedAt))
}

// MarshalJSON writes the team as one JSON object.
func (t Team) MarshalJSON() ([]byte, error) { return encode(&t, true, nil), nil }

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Team) UnmarshalJSON(data []byte) error { return unmarshal(t, data) }

// MarshalJSON writes the member as one JSON object.
func (m Member) MarshalJSON() ([]byte, error) { return encode(&m, true, nil), nil }

// UnmarshalJSON reads what MarshalJSON writes.
func (m *Member) UnmarshalJSON(data []byte) error { return unmarshal(m, data) }

// MarshalJSON writes the task as one JSON object; blocked lists the open tasks that it waits for.
func (t Task) MarshalJSON() ([]byte, error) { return encode(&t, true, nil), nil }

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Task) UnmarshalJSON(data []byte) error { return unmarshal(t, data) }

// WriteTasks writes the tasks as one JSON array, in the form that encoding/json writes. A list may
// be long, so it uses one buffer for the array and one variable for each task in turn.
func WriteTasks(w io.Writer, tasks iter.Seq[Task]) error {
	const piece = 64 << 10
	c := coder{mode: writing, view: true, out: append(make([]byte, 0, piece+piece/4), '[')}
	var t Task
	first := true
	for t = range tasks {
		if !first {
			c.out = append(c.out, ',')
		}
		first = false
		c.object(&t)
		if len(c.out) >= piece {
			if _, err := w.Write(c.out); err != nil {
				return err
			}
			c.out = c.out[:0]
		}
	}
	_, err := w.Write(append(c.out, ']'))
	return err
}

// MarshalJSON writes the message as one JSON object.
func (m Message) MarshalJSON() ([]byte, error) { return encode(&m, true, nil), nil }

// UnmarshalJSON reads what MarshalJSON writes.
func (m *Message) UnmarshalJSON(data []byte) error { return unmarshal(m, data) }

// MarshalJSON writes the request as one JSON object.
func (p Permission) MarshalJSON() ([]byte, error) { return encode(&p, true, nil), nil }

// UnmarshalJSON reads what MarshalJSON writes.
func (p *Permission) UnmarshalJSON(data []byte) error { return unmarshal(p, data) }

// MarshalJSON writes the missing work as one JSON object.
func (m Missing) MarshalJSON() ([]byte, error) { return encode(&m, true, nil), nil }

// UnmarshalJSON reads what MarshalJSON writes.
func (m *Missing) UnmarshalJSON(data []byte) error { return unmarshal(m, data) }

// MarshalJSON writes the usage as one JSON object.
func (u Usage) MarshalJSON() ([]byte, error) { return encode(&u, true, nil), nil }

// UnmarshalJSON reads what MarshalJSON writes.
func (u *Usage) UnmarshalJSON(data []byte) error { return unmarshal(u, data) }
