// Package render turns teams into lines for people: what happened, what there is. It prints nothing
// itself.
//
// # Guarantees
//
// A line holds no line break and no character that controls a terminal, whatever agents wrote.
package render

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"cadre/internal/render/excerpt"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// Lines says what the record changed, one line for each event that matters to a person.
func Lines(r *team.Record) []string {
	var lines []string
	for _, e := range r.Events {
		if line := event(e, r); line != "" {
			lines = append(lines, Clean(line))
		}
	}
	return lines
}

func event(e team.Event, r *team.Record) string {
	switch e := e.(type) {
	case *team.TeamCreated:
		return fmt.Sprintf("team %s (%s) created, led by %s", e.Team.Name, e.Team.ID, e.Lead.Name)
	case *team.TeamRestored:
		return fmt.Sprintf("team %s (%s) restored from its checkpoint %d", e.Team.Name, e.Team.ID, e.Team.Restored.Seq)
	case *team.TeamReleased:
		return "team let go of" + prefixed(" on ", e.Machine)
	case *team.TeamTakenBack:
		return "team taken back"
	case *team.WorkFound:
		return "the work of task " + strings.Join(e.Tasks, ", ") + " is there now"
	case *team.TeamStatusChanged:
		return "team is " + string(e.Status) + tail(e.Reason) + tail(e.Report)
	case *team.TeamCleanedUp:
		return "team cleaned up"
	case *team.ConsolidationBegan:
		return fmt.Sprintf("consolidation %d begins", e.Attempt)
	case *team.WorktreesMerged:
		if len(e.Members) == 0 {
			return ""
		}
		return "the work of " + strings.Join(e.Members, ", ") + word(len(e.Members) == 1, " is on its branch",
			" is on their branches")
	case *team.WorkStaged:
		if e.Tree == "" {
			return "nothing to commit"
		}
		return fmt.Sprintf("staged: %s on %s", files(e.Files), Parent(e.Parent)) + prefixed(", with ",
			Branches(e.Branches))
	case *team.CheckPassed:
		return fmt.Sprintf("check %s passed", e.Check)
	case *team.CheckFailed:
		return fmt.Sprintf("check %s FAILED", e.Check)
	case *team.CommitMade:
		if e.Commit == "" {
			return ""
		}
		return fmt.Sprintf("commit %.12s made", e.Commit)
	case *team.TeamConsolidated:
		return fmt.Sprintf("consolidation %d done", e.Attempt)
	case *team.ConsolidationAbandoned:
		return fmt.Sprintf("consolidation %d given up", e.Attempt) + tail(e.Reason)
	case *team.DelegateChanged:
		return "delegate mode " + onOff(e.On)
	case *team.BudgetChanged:
		return "new budget"
	case *team.BudgetExhausted:
		return "the budget is spent: " + e.What
	case *team.LeadAttached:
		if e.Session == team.User {
			return "the user leads" + prefixed(" instead of session ", e.TakenOver)
		}
		return fmt.Sprintf("session %s leads%s", e.Session, prefixed(" instead of ", e.TakenOver))
	case *team.LeadLost:
		return fmt.Sprintf("the lead is lost: session %s was seen last at %s", e.Session, Clock(e.Seen))
	case *team.FactsRecorded:
		names := make([]string, len(e.Facts))
		for i, f := range e.Facts {
			names[i] = f.Name
		}
		return "the facts are recorded as they are now" + tail(strings.Join(names, ", "))
	case *team.TeamMoved:
		return fmt.Sprintf("the project was moved from %s to %s", e.From, e.Dir)
	case *team.MemberSpawned:
		return fmt.Sprintf("%s joined (%s%s)", e.Member.Name, e.Member.Agent, prefixed(", ", e.Member.Role))
	case *team.MemberAttached:
		return fmt.Sprintf("%s runs on host %s", e.Member, excerpt.Characters(e.Host, 8))
	case *team.MemberStarted:
		return e.Member + " started"
	case *team.MemberStatusChanged:
		if e.Summary != "" {
			return fmt.Sprintf("%s is %s: %s", e.Member, e.Status, e.Summary)
		}
		return fmt.Sprintf("%s is %s", e.Member, e.Status)
	case *team.MemberDetached:
		return e.Member + " is to be started again" + tail(e.Reason)
	case *team.MemberTroubled:
		if e.Setbacks == 0 {
			return e.Member + " is tried again"
		}
		if team.Hopeless(e.Trouble) { // its first failure is its last, whatever it counts for
			return e.Member + " cannot continue" + tail(e.Text)
		}
		again := ""
		if e.RetryAt > r.At && r.At > 0 {
			again = "; it starts again in " + Span(time.Duration(e.RetryAt-r.At)*time.Millisecond)
		}
		return fmt.Sprintf("%s could not continue (%d in a row)", e.Member, e.Setbacks) + tail(e.Text) + again
	case *team.HandoverRequested:
		return "a fresh session is to go on for " + e.Member + tail(e.Reason)
	case *team.ReportAsked:
		return "the lead was asked for its report"
	case *team.ReportGiven:
		return "the lead gave its report" + tail(e.Text)
	case *team.MemberStopped:
		return e.Member + " stopped" + tail(e.Reason)
	case *team.MemberFailed:
		return e.Member + " FAILED" + tail(e.Reason)
	case *team.MemberReturned:
		return e.Member.Name + " is there again"
	case *team.GapNoticed:
		return "something of " + e.Source + " was missed" + tail(e.Reason)
	case *team.ModeChanged:
		return fmt.Sprintf("%s is in permission mode %s", e.Member, e.Mode)
	case *team.ShutdownRequested:
		return e.Member + " was asked to shut down" + tail(e.Reason)
	case *team.ShutdownAnswered:
		return fmt.Sprintf("%s %s the shutdown", e.Member, word(e.Approved, "approved", "rejected")) + tail(e.Reason)
	case *team.ShutdownWithdrawn:
		return e.Member + " need not shut down"
	case *team.PlanSubmitted:
		return e.Member + " submitted a plan"
	case *team.PlanAnswered:
		return fmt.Sprintf("the plan of %s was %s", e.Member, word(e.Approved, "approved", "rejected")) +
			tail(e.Feedback)
	case *team.PermissionRequested:
		return fmt.Sprintf("%s asks to use %s (%s)", e.Permission.Member, e.Permission.Tool, e.Permission.Request) +
			tail(Input(e.Permission.Input))
	case *team.PermissionAnswered:
		return fmt.Sprintf("permission %s of %s: %s", e.Request, e.Member, strings.ReplaceAll(e.Outcome, "_", " ")) +
			tail(e.Reason)
	case *team.UsageReported:
		return fmt.Sprintf("%s used %d tokens%s", e.Member, e.Usage.Tokens(), prefixed(" for task ", e.Task))
	case *team.HookRejected:
		return fmt.Sprintf("hook %s said no to %s (%d in a row)", e.Hook, e.Member, e.Count) + tail(e.Feedback)
	case *team.TaskCreated:
		return fmt.Sprintf("task %s: %s%s", e.Task.ID, e.Task.Subject, waits(e.Task.BlockedBy))
	case *team.TaskUpdated:
		return "task " + e.Task + " changed"
	case *team.TaskClaimed:
		return fmt.Sprintf("%s took task %s", word(e.Member == "", "somebody", e.Member), e.Task)
	case *team.TasksSkipped, *team.MemberDescribed:
		return ""
	case *team.TaskReleased:
		return "task " + e.Task + " is back on the list" + tail(e.Reason)
	case *team.TaskFailed:
		return fmt.Sprintf("%s FAILED task %s", e.By, e.Task) + tail(e.Reason)
	case *team.TaskCompleted:
		return fmt.Sprintf("%s completed task %s%s", e.By, e.Task, frees(e.Unblocked))
	case *team.TaskDeleted:
		return "task " + e.Task + " deleted" + frees(e.Unblocked)
	case *team.BranchLeft:
		if e.Commit == "" {
			return "nothing of " + e.Member + " is left to merge"
		}
		return fmt.Sprintf("the work of %s is on the branch %s, and not merged", e.Member, e.Branch)
	case *team.WorkSaved:
		return fmt.Sprintf("what %s has done of task %s is kept with it", e.Saved.Member, e.Task)
	case *team.TaskRolledBack:
		return "what was done of task " + e.Task + " was rolled back, and it is on the list again" + tail(e.Reason)
	case *team.WorkRecorded:
		return fmt.Sprintf("task %s: %s", e.Task, Work(e.Work))
	case *team.MessageSent:
		from := e.Message.From
		if from == "" {
			from = "cadre"
		}
		return fmt.Sprintf("#%d %s → %s: %s", e.Message.Seq, from, e.Message.To, e.Message.Body)
	case *team.MessagesDelivered:
		return fmt.Sprintf("%s was given %s", e.Member, messages(e.Seqs))
	case *team.MessagesRead:
		return fmt.Sprintf("%s has read up to #%d", e.Member, e.Through)
	case *team.MessagesReturned:
		return fmt.Sprintf("%s for %s returned", messages(e.Seqs), e.Member)
	case *team.MemberOffline:
		return fmt.Sprintf("%s OFFLINE: %s", e.Member, e.Reason)
	case *team.MemberOnline:
		return e.Member + " is online again"
	case *team.MessagesLate:
		return fmt.Sprintf("%s for %s UNDELIVERED", messages(e.Seqs), e.Member)
	case *team.MessagesResent:
		return fmt.Sprintf("%s sent to %s again", messages(e.Seqs), e.Member)
	}
	return e.Kind()
}

// Work is what a task did, in one line.
func Work(w team.Work) string {
	switch {
	case w.Base == "":
		return "what it starts from was not recorded" + tail(strings.Join(w.Left, "; "))
	case w.Open():
		return "starts from " + Parent(w.Base)
	case w.Commit == "":
		return "what it did was not recorded" + tail(strings.Join(w.Left, "; "))
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

// Parent is the commit that something is staged on.
func Parent(commit string) string {
	if commit == "" {
		return "no commit yet"
	}
	return fmt.Sprintf("%.12s", commit)
}

// Branches are their names.
func Branches(all []team.Branch) string {
	var names []string
	for _, b := range all {
		names = append(names, b.Name)
	}
	return strings.Join(names, ", ")
}

// Clock is a time as people read it, to the second, where they are.
func Clock(t team.Time) string { return time.UnixMilli(int64(t)).Format("15:04:05") }

// When is the local time of day at t, with the date where that is not the day of now.
func When(now, t team.Time) string {
	at, today := time.UnixMilli(int64(t)), time.UnixMilli(int64(now))
	if at.Format(time.DateOnly) == today.Format(time.DateOnly) {
		return Clock(t)
	}
	return at.Format(time.DateTime)
}

// Clean makes one line of a text that may hold anything, and shortens it.
func Clean(s string) string { return excerpt.Characters(sanitize.Line(s), mostOfALine) }

// mostOfALine is how many characters of a text fit where a person reads it in passing.
const mostOfALine = 400

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

// Input is the input of a tool for people: the command of one that runs a command, else the JSON. A
// long one is cut, and says so.
func Input(input string) string {
	var in struct{ Command string }
	if json.Unmarshal([]byte(input), &in) == nil && in.Command != "" {
		input = in.Command
	}
	if len(input) > mostInput {
		input = excerpt.Bytes(input, mostInput, fmt.Sprintf(" … (%d more bytes)", len(input)-mostInput))
	}
	return Clean(input)
}
