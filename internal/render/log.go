package render

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"cadre/internal/render/excerpt"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// Lines says what the record changed, one line for each event that matters to a person. called
// returns what the task with an id is called; nil for its id.
func Lines(r *team.Record, called func(id string) string) []string {
	if called == nil {
		called = func(id string) string { return id }
	}
	var lines []string
	for _, e := range r.Events {
		if line := event(e, r, called); line != "" {
			lines = append(lines, Clean(line))
		}
	}
	return lines
}

// Step describes an event for a person who waits for a consolidation; "" for events that do not
// matter.
func Step(e team.Event) string {
	switch e := e.(type) {
	case *team.ConsolidationBegan:
		return fmt.Sprintf("consolidation %d begins", e.Attempt)
	case *team.CheckPassed:
		return fmt.Sprintf("✓ check %s (%s)", e.Check, team.Span(e.Took))
	case *team.CheckFailed:
		return fmt.Sprintf("✗ check %s (%s)", e.Check, team.Span(e.Took))
	case *team.WorktreesMerged, *team.WorkStaged, *team.CommitMade:
		if lines := Lines(&team.Record{Events: []team.Event{e}}, nil); len(lines) > 0 {
			return "· " + lines[0]
		}
	}
	return ""
}

// event says what happened; "" if it matters to no person.
func event(e team.Event, r *team.Record, called func(id string) string) string {
	switch e := e.(type) {
	case *team.TasksSkipped, *team.MemberDescribed, *team.TurnGranted:
		return ""
	case *team.RateLimited:
		return fmt.Sprintf("%s waits for a rate limit (%s), %s", e.By, e.Pool, team.Span(max(0, e.Until.Sub(r.At)))) +
			tail(e.Text)
	case *team.RateLimitLifted:
		return fmt.Sprintf("the rate limit is over (%s)", e.Pool)
	case *team.MemberTroubled:
		return troubled(e, r.At)
	}
	if line, is := ofGroup(e, called); is {
		return line
	}
	if line, is := ofTask(e, called); is {
		return line
	}
	if line, is := ofNested(e, called); is {
		return line
	}
	if line, is := ofOutcome(e, called); is {
		return line
	}
	if line, is := ofNote(e, r.Actor); is {
		return line
	}
	for _, describe := range [...]func(team.Event) (string, bool){ofTeam, ofConsolidation, ofMember, ofRequest,
		ofMail} {
		if line, is := describe(e); is {
			return line
		}
	}
	return e.Kind()
}

// ofTeam describes an event of the team as a whole. is reports whether e is one.
func ofTeam(e team.Event) (line string, is bool) {
	switch e := e.(type) {
	case *team.TeamCreated:
		return fmt.Sprintf("team %s (%s) created, led by %s", e.Team.Name, e.Team.ID, e.Lead.Name), true
	case *team.TeamRestored:
		return fmt.Sprintf("team %s (%s) restored from its checkpoint %d", e.Team.Name, e.Team.ID,
			e.Team.Restored.Seq), true
	case *team.TeamReleased:
		return "team released" + prefixed(" by ", e.Machine), true
	case *team.TeamTakenBack:
		return "team taken back", true
	case *team.TeamStatusChanged:
		if e.Status == team.TeamConsolidating {
			return "team winds down, and starts nothing new" + tail(e.Reason) + tail(e.Report), true
		}
		if e.Status == team.TeamActive && e.Report != "" { // a run ended early
			return "report written: " + e.Report + "; the team is not complete" + tail(e.Reason), true
		}
		return "team is " + string(e.Status) + tail(e.Reason) + tail(e.Report), true
	case *team.TeamCleanedUp:
		return "team cleaned up", true
	case *team.DelegateChanged:
		return "delegate mode " + onOff(e.On), true
	case *team.BudgetChanged:
		return "the team has a new budget", true
	case *team.BudgetExhausted:
		return "the " + team.BudgetOf(e.What, "") + " is spent", true
	case *team.BudgetAlerted:
		return fmt.Sprintf("%d %% of the %s is spent", e.Percent, team.BudgetOf(e.What, e.Member)), true
	case *team.MemberBudgetChanged:
		return e.Member + " has a new budget", true
	case *team.MemberBudgetExhausted:
		return "the " + team.BudgetOf(e.What, e.Member) + " is spent", true
	case *team.TeamRevised:
		return "the team file changed" + tail(strings.Join(e.Fields, ", ")), true
	case *team.HookSwitched:
		return fmt.Sprintf("the hook %s [%s] of %s is switched %s", e.Event, e.Command, sourced(e.Source),
			onOff(!e.Off)), true
	case *team.LeadAttached:
		return leads(e), true
	case *team.LeadLost:
		return fmt.Sprintf("the lead is lost: session %s was seen last at %s", e.Session, Clock(e.Seen)), true
	case *team.FactsRecorded:
		names := make([]string, len(e.Facts))
		for i, f := range e.Facts {
			names[i] = f.Name
		}
		return "the facts are recorded" + tail(strings.Join(names, ", ")), true
	case *team.TeamMoved:
		return fmt.Sprintf("the project was moved from %s to %s", e.From, e.Dir), true
	case *team.ReportAsked:
		return "the lead was asked for its report", true
	case *team.ReportGiven:
		return "the lead gave its report" + tail(e.Text), true
	case *team.GapNoticed:
		return "something of " + e.Source + " was missed" + tail(e.Reason), true
	}
	return "", false
}

// leads says who leads from now on, and how the lead got there.
func leads(e *team.LeadAttached) string {
	who, before := leader(e.Session), leader(cmp.Or(e.TakenOver, e.From))
	switch byHand := e.Session == team.User; {
	case e.TakenOver != "":
		return who + " took the lead from " + before
	case byHand && e.From != "":
		return before + " handed the lead back to the user"
	case e.From == e.Session && !byHand:
		return who + " is back, and leads again"
	}
	return who + " leads"
}

// leader names a session that leads. A run has an id of its own, which says nothing to a person.
func leader(session string) string {
	switch {
	case session == team.User:
		return "the user"
	case strings.HasPrefix(session, team.RunSession):
		return "the run"
	}
	return "session " + session
}

// sourced says where a hook comes from.
func sourced(source string) string {
	switch source {
	case "user":
		return "the user's settings"
	case "project", "local":
		return "the project's settings"
	case "team":
		return "the team"
	}
	return "a program"
}

// ofConsolidation describes an event of a consolidation. is reports whether e is one.
func ofConsolidation(e team.Event) (line string, is bool) {
	switch e := e.(type) {
	case *team.ConsolidationBegan:
		return fmt.Sprintf("consolidation %d begins", e.Attempt), true
	case *team.WorktreesMerged:
		if len(e.Members) == 0 {
			return "", true
		}
		return "the work of " + strings.Join(e.Members, ", ") + word(len(e.Members) == 1, " is on its branch",
			" is on their branches"), true
	case *team.WorkStaged:
		if e.Tree == "" {
			return "nothing to commit", true
		}
		return fmt.Sprintf("staged: %s on %s", files(e.Files), Parent(e.Parent)) + prefixed(", with ",
			Branches(e.Branches)), true
	case *team.CheckPassed:
		return fmt.Sprintf("check %s passed", e.Check), true
	case *team.CheckFailed:
		return fmt.Sprintf("check %s FAILED", e.Check), true
	case *team.CommitMade:
		if e.Commit == "" {
			return "", true
		}
		return fmt.Sprintf("commit %.12s made", e.Commit), true
	case *team.TeamConsolidated:
		return fmt.Sprintf("consolidation %d done", e.Attempt), true
	case *team.ConsolidationAbandoned:
		return fmt.Sprintf("consolidation %d abandoned", e.Attempt) + tail(e.Reason), true
	case *team.BranchLeft:
		if e.Commit == "" {
			return "no work of " + e.Member + " is left to merge", true
		}
		return fmt.Sprintf("the work of %s is on the branch %s, not merged", e.Member, e.Branch), true
	}
	return "", false
}

// ofMember describes an event of a member. is reports whether e is one.
func ofMember(e team.Event) (line string, is bool) {
	switch e := e.(type) {
	case *team.MemberSpawned:
		return fmt.Sprintf("%s joined (%s%s)", e.Member.Name, e.Member.Agent, prefixed(", ", e.Member.Role)), true
	case *team.MemberAttached:
		if e.Machine != "" {
			return fmt.Sprintf("%s runs on the machine %s", e.Member, e.Machine), true
		}
		return fmt.Sprintf("%s runs on host %s", e.Member, excerpt.Characters(e.Host, 8)), true
	case *team.MemberRevised:
		if e.Member.Dropped {
			return e.Member.Name + " is no longer in the team file", true
		}
		return e.Member.Name + " changed with the team file" + tail(strings.Join(e.Fields, ", ")), true
	case *team.MemberStarted:
		return e.Member + " started", true
	case *team.MemberStatusChanged:
		if e.Summary != "" {
			return fmt.Sprintf("%s is %s: %s", e.Member, e.Status, e.Summary), true
		}
		return fmt.Sprintf("%s is %s", e.Member, e.Status), true
	case *team.MemberDetached:
		switch e.Reason {
		case team.PausedReason:
			return e.Member + " is paused", true
		case team.RunEndedReason:
			return e.Member + " is paused: the run ended", true
		case team.BudgetSpentReason:
			return e.Member + " is paused: its budget is spent; it starts again when the budget is raised", true
		}
		return e.Member + " will be started again" + tail(e.Reason), true
	case *team.HandoverRequested:
		return e.Member + " gets a fresh session" + tail(e.Reason), true
	case *team.InterruptRequested:
		return e.By + " interrupted " + e.Member, true
	case *team.MemberStopped:
		return e.Member + " stopped" + tail(e.Reason), true
	case *team.MemberFailed:
		return e.Member + " FAILED" + tail(e.Reason), true
	case *team.MemberReturned:
		return e.Member.Name + " is back", true
	case *team.RuleAdded:
		return fmt.Sprintf("%s may use without asking: %s (rule %s)", cmp.Or(e.Member, "every member"),
			team.RuleMeaning(e.Rule), e.Rule), true
	case *team.RuleRemoved:
		return fmt.Sprintf("the rule %s for %s is removed", e.Rule, cmp.Or(e.Member, "all members")), true
	case *team.ModeChanged:
		return fmt.Sprintf("%s is in permission mode %s", e.Member, e.Mode), true
	case *team.MemberOffline:
		return fmt.Sprintf("%s OFFLINE: %s", e.Member, e.Reason), true
	case *team.MemberOnline:
		return e.Member + " is online again", true
	}
	return "", false
}

// ofRequest describes a request or its answer. is reports whether e is one.
func ofRequest(e team.Event) (line string, is bool) {
	switch e := e.(type) {
	case *team.ShutdownRequested:
		return e.Member + " was asked to shut down" + tail(e.Reason), true
	case *team.ShutdownAnswered:
		return fmt.Sprintf("%s %s the shutdown", e.Member, word(e.Approved, "approved", "rejected")) +
			tail(e.Reason), true
	case *team.ShutdownWithdrawn:
		return e.Member + " need not shut down", true
	case *team.PlanSubmitted:
		return e.Member + " submitted a plan", true
	case *team.PlanAnswered:
		return fmt.Sprintf("the plan of %s was %s", e.Member, word(e.Approved, "approved", "rejected")) +
			tail(e.Feedback), true
	case *team.PermissionRequested:
		return fmt.Sprintf("%s asks to use %s (%s)", e.Permission.Member, e.Permission.Tool, e.Permission.Request) +
			tail(Input(e.Permission.Tool, e.Permission.Input)), true
	case *team.PermissionAnswered:
		return fmt.Sprintf("permission %s of %s: %s", e.Request, e.Member, strings.ReplaceAll(e.Outcome, "_", " ")) +
			tail(e.Reason), true
	case *team.HookRejected:
		// the feedback is for an agent, and begins with a line that says where it comes from
		feedback := strings.TrimPrefix(e.Feedback, e.Hook+" hook feedback:\n")
		return fmt.Sprintf("the %s hook rejected %s (%d in a row)", e.Hook, e.Member, e.Count) + tail(feedback), true
	}
	return "", false
}

// ofTask describes an event of a task or its work. is reports whether e is one.
func ofTask(e team.Event, called func(id string) string) (line string, is bool) {
	all := func(ids []string) (names []string) {
		for _, id := range ids {
			names = append(names, called(id))
		}
		return names
	}
	switch e := e.(type) {
	case *team.UsageReported:
		if e.Task == "" {
			return fmt.Sprintf("%s used %d tokens", e.Member, e.Usage.Tokens()), true
		}
		return fmt.Sprintf("%s used %d tokens for task %s", e.Member, e.Usage.Tokens(), called(e.Task)), true
	case *team.WorkFound:
		return "the work of task " + strings.Join(all(e.Tasks), ", ") + " has arrived", true
	case *team.TaskCreated:
		if e.Task.Subject == e.Task.Name {
			return fmt.Sprintf("task %s%s", e.Task.Name, waits(all(e.Task.BlockedBy))), true
		}
		return fmt.Sprintf("task %s: %s%s", called(e.Task.ID), e.Task.Subject, waits(all(e.Task.BlockedBy))), true
	case *team.TaskUpdated:
		return "task " + called(e.Task) + " changed" + tail(strings.Join(changes(e.Changes(), all), ", ")), true
	case *team.PathsChanged:
		if len(e.Added) > 0 {
			return fmt.Sprintf("%s added %s to the paths of task %s", e.By, strings.Join(e.Added, ", "),
				called(e.Task)), true
		}
		return fmt.Sprintf("%s gave back %s of task %s", e.By, strings.Join(e.Removed, ", "), called(e.Task)), true
	case *team.WritesFound:
		if e.Unsure {
			return fmt.Sprintf("files of task %s of %s changed while %s and others ran commands: %s", called(e.Task),
				e.Holder, e.Member, strings.Join(e.Files, ", ")), true
		}
		return fmt.Sprintf("%s changed files of task %s of %s: %s", e.Member, called(e.Task), e.Holder,
			strings.Join(e.Files, ", ")), true
	case *team.TaskClaimed:
		return fmt.Sprintf("%s took task %s", word(e.Member == "", "a member", e.Member), called(e.Task)), true
	case *team.TaskReleased:
		return "task " + called(e.Task) + " is back in the queue" + tail(e.Reason), true
	case *team.TaskFailed:
		return fmt.Sprintf("%s FAILED task %s%s", e.By, called(e.Task), frees(all(e.Unblocked))) + tail(e.Reason), true
	case *team.TaskDeleted:
		return "task " + called(e.Task) + " deleted" + frees(all(e.Unblocked)), true
	case *team.WorkSaved:
		return fmt.Sprintf("the work of %s on task %s is saved with the task", e.Saved.Member, called(e.Task)), true
	case *team.TaskRevised:
		return "task " + called(e.Task.ID) + " changed with the team file" + tail(strings.Join(e.Fields, ", ")), true
	case *team.TaskRolledBack:
		return "task " + called(e.Task) + " was rolled back and is back in the queue" +
			tail(e.Reason), true
	case *team.WorkRecorded:
		return fmt.Sprintf("task %s: %s", called(e.Task), Work(e.Work)), true
	case *team.TaskSkipped:
		return fmt.Sprintf("task %s is skipped%s", called(e.Task), frees(all(e.Unblocked))) + tail(e.Reason), true
	}
	return ofRejection(e, called)
}

// ofNote describes the change of a note. is reports whether e is one.
func ofNote(e team.Event, actor string) (line string, is bool) {
	by := strings.TrimPrefix(actor, "@")
	switch e := e.(type) {
	case *team.NoteSet:
		return fmt.Sprintf("%s set the note %s (%s)", by, e.Key, team.Count(len(e.Text), "byte")), true
	case *team.NoteAppended:
		return fmt.Sprintf("%s added to the note %s", by, e.Key) + tail(e.Text), true
	case *team.NoteDeleted:
		return fmt.Sprintf("%s deleted the note %s", by, e.Key), true
	}
	return "", false
}

// ofMail describes an event of messages. is reports whether e is one.
func ofMail(e team.Event) (line string, is bool) {
	switch e := e.(type) {
	case *team.MessageSent:
		from := e.Message.From
		if from == "" {
			from = "cadre"
		}
		return fmt.Sprintf("#%d %s → %s: %s", e.Message.Seq, from, e.Message.To, e.Message.Body), true
	case *team.MessagesDelivered:
		return fmt.Sprintf("%s received %s", e.Member, messages(e.Seqs)), true
	case *team.MessagesRead:
		return fmt.Sprintf("%s has read up to #%d", e.Member, e.Through), true
	case *team.MessagesReturned:
		return fmt.Sprintf("%s for %s returned", messages(e.Seqs), e.Member), true
	case *team.MessagesLate:
		return fmt.Sprintf("%s for %s UNDELIVERED", messages(e.Seqs), e.Member), true
	case *team.MessagesResent:
		return fmt.Sprintf("%s sent to %s again", messages(e.Seqs), e.Member), true
	}
	return "", false
}

// troubled says what a trouble at that time means for its member.
func troubled(e *team.MemberTroubled, at team.Time) string {
	if e.Setbacks == 0 {
		return e.Member + " is tried again"
	}
	if team.Hopeless(e.Trouble) { // its first failure is final
		return e.Member + " cannot continue" + tail(e.Text)
	}
	again := ""
	if e.RetryAt > at && at > 0 {
		again = "; it starts again in " + team.Span(e.RetryAt.Sub(at))
	}
	return fmt.Sprintf("%s could not continue (%d in a row)", e.Member, e.Setbacks) + tail(e.Text) + again
}

// Work says in one line what a task did.
func Work(w team.Work) string {
	switch {
	case w.Base == "":
		return "the commit that it starts from was not recorded" + tail(strings.Join(w.Left, "; "))
	case w.Open():
		return "starts from " + Parent(w.Base)
	case w.Commit == "":
		return "its work was not recorded" + tail(strings.Join(w.Left, "; "))
	}
	done := fmt.Sprintf("%s changed %s (%.12s..%.12s", w.Member, files(int64(len(w.Files))), w.Base, w.Commit)
	if w.Branch != "" {
		done += " on " + w.Branch
	}
	done += ")"
	if len(w.Others) > 0 {
		done += ", while others worked there: " + strings.Join(w.Others, ", ")
	}
	return done
}

// Parent names the commit that something is staged on.
func Parent(commit string) string {
	if commit == "" {
		return "no commit yet"
	}
	return fmt.Sprintf("%.12s", commit)
}

// Branches returns the names of the branches.
func Branches(all []team.Branch) string {
	var names []string
	for _, b := range all {
		names = append(names, b.Name)
	}
	return strings.Join(names, ", ")
}

// Clock formats a time to the second, in the local time zone.
func Clock(t team.Time) string { return time.UnixMilli(int64(t)).Format("15:04:05") }

// When formats the local time of day at t, with the date if that is not the date of now.
func When(now, t team.Time) string {
	at, today := time.UnixMilli(int64(t)), time.UnixMilli(int64(now))
	if at.Format(time.DateOnly) == today.Format(time.DateOnly) {
		return Clock(t)
	}
	return at.Format(time.DateTime)
}

// Clean makes one line of any text, and shortens it.
func Clean(s string) string { return excerpt.Characters(sanitize.Line(s), mostOfALine) }

// mostOfALine bounds the characters of a text that people read in passing.
const mostOfALine = 400

// changes describes what an update changed of a task. all names the tasks with those ids.
func changes(list []team.Change, all func([]string) []string) (words []string) {
	for _, c := range list {
		switch c.Field {
		case "subject":
			words = append(words, "subject "+team.Quoted(excerpt.Line(c.Is, mostOfASubject)))
		case "owner", "priority":
			now := c.Field + " " + cmp.Or(c.Is, "none")
			if c.Was != "" {
				now = c.Field + " " + c.Was + " → " + cmp.Or(c.Is, "none")
			}
			words = append(words, now)
		case "blockedBy", "blocks":
			blocks := word(c.Field == "blocks", "blocks task ", "blocked by task ")
			if len(c.Added) > 0 {
				words = append(words, blocks+strings.Join(all(c.Added), ", "))
			}
			if len(c.Removed) > 0 {
				words = append(words, "no longer "+blocks+strings.Join(all(c.Removed), ", "))
			}
		case "run":
			words = append(words, "command")
		case "activeForm":
			words = append(words, "active form")
		default:
			words = append(words, strings.Replace(c.Field, "metadata.", "metadata ", 1))
		}
	}
	return words
}

// mostOfASubject bounds a new subject in a line of the log, in bytes.
const mostOfASubject = 60

func tail(s string) string { return prefixed(": ", s) }

func prefixed(prefix, s string) string {
	if s == "" {
		return ""
	}
	return prefix + s
}

func word(b bool, yes, no string) string {
	if b {
		return yes
	}
	return no
}

func onOff(b bool) string { return word(b, "on", "off") }

func waits(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return " (after " + strings.Join(ids, ", ") + ")"
}

func frees(ids []string) string {
	if len(ids) == 0 {
		return ""
	}
	return ", which frees task " + strings.Join(ids, ", ")
}

func files(n int64) string {
	if n == 1 {
		return "1 file"
	}
	return fmt.Sprintf("%d files", n)
}

func messages(seqs []int64) string {
	if len(seqs) == 1 {
		return fmt.Sprintf("message #%d", seqs[0])
	}
	return fmt.Sprintf("%d messages", len(seqs))
}

// mostInput bounds what is shown of a tool's input, in bytes: more than most commands have, and
// less than a file.
const mostInput = 300
