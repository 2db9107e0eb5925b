package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"cadre/internal/team"
)

func mistake(format string, args ...any) error { return &blunder{fmt.Sprintf(format, args...)} }

// explain returns an error for the agent: what is wrong, and what to do next.
func (c *call) explain(err error) string {
	if isBlunder(err) {
		return err.Error()
	}
	if p, ok := errors.AsType[*partial](err); ok {
		return p.done + " The rest was not done.\n" + c.explain(p.err)
	}
	code := team.CodeOf(err)
	switch {
	case code == team.Rejected:
		return c.rejected(err)
	case code == "" && errors.Is(err, context.Canceled):
		return "The call was cancelled. Look with TaskList or TeamStatus whether it was done."
	case code == "":
		return "The team could not be reached: " + line(err.Error(), mostOfAnError) +
			"\nThe call may have been done all the same: look with TaskList or TeamStatus before you make it again."
	}
	text := "Not done: " + stop(line(err.Error(), mostOfAnError))
	if now := team.NoteOf(err); now != nil && !c.finished() {
		return text + conflicting(now)
	}
	helps, own := c.helps(err), next()[c.tool][code]
	switch {
	case c.finished():
		return text + helps + " Stop working and end your turn."
	case code == team.Exhausted:
		return text + " " + c.spent(err)
	case own != "" && !namesTool(text) && !acts(err): // it says more than where to look
		return text + " " + own
	}
	return text + helps
}

// acts reports whether a hint of the error is more than a place to look.
func acts(err error) bool {
	return slices.ContainsFunc(team.HintsOf(err), func(h team.Hint) bool {
		return h.Action != team.ActShowTask && h.Action != team.ActShowTasks && h.Action != team.ActShowTeam
	})
}

// spent says what to do after a refusal because of a spent budget: the team's, its own, or that of
// another member.
func (c *call) spent(err error) string {
	whose := "the budget of the team"
	for _, h := range team.HintsOf(err) {
		switch h.Member {
		case "":
		case c.me:
			whose = "your budget"
		default:
			return "Choose another member; only the user can raise the budget of " + h.Member + "."
		}
	}
	return "Stop working and end your turn; only the user can raise " + whose + "."
}

// next returns what to do after a refusal that does not say so itself.
var next = sync.OnceValue(func() map[string]map[team.Code]string {
	return map[string]map[team.Code]string{
		"TaskClaim": {team.Conflict: another, team.NotReady: "Take another one meanwhile: TaskClaim with next: true.",
			team.Denied: another},
		"TaskUpdate": {team.Conflict: "Stop working on it; TaskClaim with next: true takes another one.",
			team.NotFound: "TaskList shows the tasks.",
			team.NotReady: "TaskGet shows its status.", team.Denied: "You claim tasks for yourself alone; TaskList " +
				"shows which ones you can."},
		"TaskCreate":          {team.NotFound: "TaskList shows the tasks."},
		"SubmitPlan":          {team.NotReady: "End your turn; the answer comes as a message."},
		"RespondToShutdown":   {team.Conflict: "Continue your work; ReadMessages shows what is new."},
		"RespondToPlan":       {team.NotFound: pending, team.Conflict: pending},
		"RespondToPermission": {team.NotFound: pending, team.Conflict: pending},
		"ShutdownTeammate": {team.Conflict: "TeamStatus shows its status.",
			team.NotFound: "TeamStatus shows who is on the team."},
		"ResendMessages": {team.Conflict: "TeamStatus shows the late messages.",
			team.Nothing:  "TeamStatus shows the late messages.",
			team.NotFound: "TeamStatus shows who is on the team."},
	}
})

const (
	another = "Take another one: TaskClaim with next: true."
	pending = "TeamStatus shows the requests that wait."
)

// finished reports whether no call makes sense for the caller any more.
func (c *call) finished() (over bool) {
	c.view(func(s *team.State) {
		m, ok := s.Member(c.me)
		t := s.Team()
		over = !s.Exists() || t.Status == team.TeamComplete || t.Status == team.TeamAborted || ok && !m.Status.Running()
	})
	return over
}

// rejected returns a hook's feedback, which is shown to the agent unchanged.
func (c *call) rejected(err error) string {
	text := "Not done: a quality gate of the project rejected it. Its feedback:\n" + block(err.Error()) + "\n"
	r, ok := errors.AsType[interface {
		error
		Final() bool
		Ended() bool
		Demanded() bool
	}](err)
	switch {
	case ok && r.Ended():
		return "Not done: the result was rejected, and with it your attempt at the task has ended.\n" +
			block(err.Error()) + "\nStop working on it."
	case ok && r.Demanded():
		return "Not done: the result was rejected.\n" + block(err.Error())
	case ok && r.Final() && c.leads:
		return text + "It has rejected this many times in a row: tell the user instead of trying again."
	case ok && r.Final():
		return text + "It has rejected this many times in a row, and " + c.lead() +
			" was notified: do not try again before you have an answer."
	case c.tool == "TaskCreate":
		return text + "Change the task accordingly and create it again."
	}
	return text + "Fix that and complete the task again."
}

func namesTool(text string) bool {
	for i := range table {
		if strings.Contains(text, table[i].name) {
			return true
		}
	}
	return false
}

// stop adds a full stop to a text of the team.
func stop(s string) string {
	if strings.HasSuffix(s, ".") {
		return s
	}
	return s + "."
}

func sentence(s string) string {
	if s == "" {
		return s
	}
	return stop(strings.ToUpper(s[:1]) + s[1:])
}
