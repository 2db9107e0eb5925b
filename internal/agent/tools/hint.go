package tools

import (
	"cmp"
	"strconv"
	"strings"

	"cadre/internal/team"
)

// usage says how an action is done with a tool: the tool's name, and the known part of its input.
type usage struct {
	tool  string
	input []argument
}

// argument is a field of an input. Its value is a text, true, or nil if the caller has to choose.
type argument struct {
	name  string
	value any
}

// with adds an argument, if the text is not empty.
func (u usage) with(name, value string) usage {
	if value != "" {
		u.input = append(u.input, argument{name, value})
	}
	return u
}

// String returns the usage as a model reads it: TaskClaim with taskId "3".
func (u usage) String() string {
	var all []string
	for _, a := range u.input {
		switch v := a.value.(type) {
		case string:
			all = append(all, a.name+" "+quoted(v))
		case bool:
			all = append(all, a.name+": "+strconv.FormatBool(v))
		default:
			all = append(all, a.name)
		}
	}
	if len(all) == 0 {
		return u.tool
	}
	return u.tool + " with " + strings.Join(all, " and ")
}

// toolFor returns how a hint's action is done with a tool. If there is no tool, it reports whether
// the user can do it; otherwise the hint is of no use to an agent.
func toolFor(h team.Hint) (u usage, users bool) {
	of := func(tool string) usage { return usage{tool: tool} }
	task := cmp.Or(h.TaskRef, h.Task)
	switch h.Action {
	case team.ActAnswerPermission:
		return of("RespondToPermission").with("requestId", h.Request), false
	case team.ActAnswerPlan:
		return of("RespondToPlan").with("requestId", h.Request), false
	case team.ActSubmitPlan:
		return of("SubmitPlan"), false
	case team.ActCleanUp:
		return of(cleanupTeam), false
	case team.ActForceCleanUp:
		return usage{cleanupTeam, []argument{{"force", true}}}, false
	case team.ActSpawn:
		return of(spawnTeammate).with("name", h.Name).with("agent", h.Agent), false
	case team.ActShutDown:
		return of("ShutdownTeammate").with("name", h.Member), false
	case team.ActResend:
		return of("ResendMessages").with("name", h.Member), false
	case team.ActAsk:
		return of("SendMessage").with("to", h.Member), false
	case team.ActReadMail:
		return of("ReadMessages"), false
	case team.ActClaimTask:
		return of("TaskClaim").with("taskId", task), false
	case team.ActClaimNext:
		return usage{"TaskClaim", []argument{{"next", true}}}, false
	case team.ActReassign, team.ActAssignTask:
		u := of("TaskUpdate").with("taskId", task)
		u.input = append(u.input, argument{"owner", nil})
		return u, false
	case team.ActRetryTask:
		return of("TaskUpdate").with("taskId", task).with("status", string(team.Pending)), false
	case team.ActDeleteTask:
		return of("TaskUpdate").with("taskId", task).with("status", string(team.Deleted)), false
	case team.ActCompleteTask:
		return of("TaskUpdate").with("taskId", task).with("status", string(team.Completed)), false
	case team.ActVerify:
		u := of("TaskUpdate").with("taskId", task).with("status", string(team.Completed))
		u.input = append(u.input, argument{"verdict", nil}, argument{"result", nil})
		return u, false
	case team.ActShowTeam, team.ActShowAlive:
		return of(teamStatus), false
	case team.ActShowTasks:
		return of("TaskList"), false
	case team.ActShowTask:
		return of("TaskGet").with("taskId", task), false
	case team.ActShowNotes:
		return of(noteList), false
	case team.ActDeleteNote:
		u := of(noteWrite).with("key", h.Note)
		u.input = append(u.input, argument{"delete", true})
		return u, false
	case team.ActShowTeams, team.ActShowLog, team.ActFollowLog, team.ActShowReview, team.ActShowFile, team.ActInitStore,
		team.ActMigrateStore, team.ActShowHosts:
		return usage{}, false
	}
	return usage{}, true
}

// help returns a hint for the agent; "" if the agent does not have the tool, or would act for
// another member.
func (c *call) help(h team.Hint) string {
	u, users := toolFor(h)
	switch {
	case users:
		return "Only the user can " + h.Purpose() + "."
	case u.tool == "", h.Action == team.ActAsk && h.Member == c.me,
		h.Action == team.ActReadMail && h.Member != c.me:
		return ""
	case (h.Action == team.ActClaimTask || h.Action == team.ActClaimNext) && h.Member != "" && h.Member != c.me:
		return ""
	}
	for i := range table {
		if t := &table[i]; t.name == u.tool && c.offers(t, c.leads) {
			return "To " + h.Purpose() + ": " + u.String() + "."
		}
	}
	return ""
}

// helps returns the hints of a refusal, each after a space.
func (c *call) helps(err error) string {
	var b strings.Builder
	for _, h := range team.HintsOf(err) {
		if help := c.help(h); help != "" {
			b.WriteString(" " + help)
		}
	}
	return b.String()
}
