package main

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// step is a hint as a command line and a note. A person fills in the words in capitals.
type step struct{ line, note string }

func (t step) String() string { return t.line + t.note }

// command maps the actions of hints to command lines, with [gitCommand]. There is no other such table.
func command(h team.Hint) step {
	id := taskOf(h)
	task := func(verb string, more ...string) step {
		return line("task "+verb, append([]string{h.Team, id}, more...)...)
	}
	switch h.Action {
	case team.ActAnswerPermission:
		return step{line("permit", h.Team, h.Request).line, ", or with --deny"}
	case team.ActAnswerPlan:
		return step{line("plan", h.Team, h.Request).line, ", then with --approve or --reject WHY"}
	case team.ActSubmitPlan:
		return line("plan submit", append([]string{h.Team, "PLAN"}, as(h.Member)...)...)
	case team.ActCreate:
		return line("create", cmp.Or(h.Team, "NAME"))
	case team.ActResume:
		return line("resume", h.Team)
	case team.ActContinueCopy:
		return line("resume", h.Team, "--from-git")
	case team.ActMove:
		return line("resume", h.Team, "--dir", cmp.Or(h.Dir, "DIR"))
	case team.ActTakeOver:
		return step{line("resume", h.Team, "--take-over").line, ", which takes it from that session"}
	case team.ActTakeBack:
		return line("resume", h.Team, "--take-back")
	case team.ActRelease:
		if h.Dir != "" { // the copy of another home, on this machine
			return step{line: "cd " + sanitize.Quote(h.Dir) + " && CADRE_HOME=DIR " + line("push", h.Team, "--release").line}
		}
		return line("push", h.Team, "--release")
	case team.ActPull:
		return line("pull", h.Team)
	case team.ActCleanUp:
		return line("cleanup", h.Team)
	case team.ActForceCleanUp:
		return line("cleanup", h.Team, "--force")
	case team.ActMend:
		return line("fsck", h.Team)
	case team.ActRaiseBudget:
		words := []string{h.Team}
		if h.Member != "" {
			words = append(words, "--member", h.Member)
		}
		return line("budget", append(words, budgetFlags(h.Budget)...)...)
	case team.ActConsolidate, team.ActFinish:
		return line("consolidate", h.Team)
	case team.ActRollBack:
		return line("consolidate", h.Team, "--rollback")
	case team.ActSkipCommit:
		return line("consolidate", h.Team, "--no-commit", "--complete")
	case team.ActGoWithout:
		return line("consolidate", append([]string{h.Team}, each("--without", h.Tasks, "TASK")...)...)
	case team.ActKeepCheckChanges:
		return line("consolidate", h.Team, "--with-check-changes")
	case team.ActIncludeFiles:
		return line("consolidate", append([]string{h.Team}, each("--include", h.Paths, "PATH")...)...)
	case team.ActCommitOnly:
		return line("consolidate", append([]string{h.Team}, each("--only", h.Paths, "PATH")...)...)
	case team.ActCheckClean:
		return line("consolidate", h.Team, "--clean")
	case team.ActSpawn:
		words := []string{h.Team, cmp.Or(h.Name, "NAME")}
		if h.Agent != "" {
			words = append(words, "--agent", h.Agent)
		}
		return line("spawn", words...)
	case team.ActShutDown:
		return line("shutdown", h.Team, cmp.Or(h.Member, "NAME"))
	case team.ActRejoin:
		return line("mcp", "--team", h.Team, "--as", h.Member)
	case team.ActResend:
		return line("resend", h.Team, h.Member)
	case team.ActAsk:
		return line("send", h.Team, "--to", h.Member, "TEXT")
	case team.ActReadMail:
		return line("inbox", h.Team, h.Member)
	case team.ActClaimTask:
		return line("task claim", append([]string{h.Team, id}, as(h.Member)...)...)
	case team.ActClaimNext:
		return line("task claim", append([]string{h.Team, "--next"}, as(h.Member)...)...)
	case team.ActReassign:
		return line("reassign", h.Team, id, "NAME")
	case team.ActRetryTask:
		return task("release")
	case team.ActSetCommand:
		return task("update", "--run", "COMMAND")
	case team.ActCompleteTask:
		return task("done")
	case team.ActDeleteTask:
		return task("rm")
	case team.ActRollBackTask:
		return task("rollback", each("--only", h.Paths, "PATH")...)
	case team.ActAssignTask:
		return task("update", "--owner", "NAME")
	case team.ActShowTask:
		return task("show")
	case team.ActShowTasks:
		return line("task list", h.Team)
	case team.ActShowTeam:
		return line("status", h.Team)
	case team.ActShowAlive:
		return line("probe", h.Team)
	case team.ActFollowLog:
		return line("log", h.Team, "--follow")
	case team.ActShowReview:
		return line("review", h.Team)
	case team.ActTrust:
		return line("trust", "--dir", h.Dir)
	case team.ActRecordFacts:
		return line("facts", h.Team, "--record")
	}
	if of, is := gitCommand(h); is {
		return of
	}
	return line("log", h.Team)
}

// gitCommand returns the command line of an action that git does. cadre does not change the branch
// or the files of a user in these cases.
func gitCommand(h team.Hint) (of step, is bool) {
	git := "git -C " + sanitize.Quote(h.Dir)
	switch from := fmt.Sprintf("%.12s", h.From); h.Action {
	case team.ActRevertWork:
		return step{line: fmt.Sprintf("%s diff --binary %s %.12s | %s apply", git, from, h.To, git)}, true
	case team.ActShowFile:
		git += " show"
		for _, path := range h.Paths {
			git += " " + sanitize.Quote(from+":"+path)
		}
		return step{line: git}, true
	case team.ActKeepCommit:
		return step{line: git + " branch NAME " + from}, true
	}
	return step{}, false
}

// taskOf returns how a command names the task of a hint. If the task's name is a number, another
// task may have that number.
func taskOf(h team.Hint) string {
	if h.TaskName != "" && strings.Trim(h.TaskName, "0123456789") == "" {
		return "#" + h.Task
	}
	return cmp.Or(h.TaskName, h.Task)
}

// line returns a command line: the name of a command, and words quoted for a shell.
func line(command string, words ...string) step {
	all := []string{"cadre", command}
	for _, w := range words {
		all = append(all, sanitize.Quote(w))
	}
	return step{line: strings.Join(all, " ")}
}

func as(member string) []string {
	if member == "" {
		return nil
	}
	return []string{"--as", member}
}

// each repeats a flag for each value, or adds it once with a placeholder.
func each(flag string, values []string, word string) (words []string) {
	if len(values) == 0 {
		values = []string{word}
	}
	for _, v := range values {
		words = append(words, flag, v)
	}
	return words
}

func budgetFlags(budget string) []string {
	switch budget {
	case "cost":
		return []string{"--usd", "AMOUNT"}
	case "time":
		return []string{"--time", "DURATION"}
	}
	return []string{"--tokens", "N"}
}

// way is a command line that would help after an error, and that stands for no action of the core.
type way struct{ purpose, line string }

// guided is an error of the command line, with what to type next.
type guided struct {
	error
	ways []way
}

func (g guided) Unwrap() error { return g.error }

// withWays adds ways to an error, the best first.
func withWays(err error, ways ...way) error { return guided{err, ways} }

// seeHelp is the purpose of the command that shows how a command is called.
const seeHelp = "see how it is called"

// helpOf is the way to the help of a command.
func helpOf(c *cobra.Command) way { return way{seeHelp, c.CommandPath() + " --help"} }

// remedies returns what would help after the error: the hints of a refusal, and the ways of the
// command line.
func remedies(err error) []remedy {
	var all []remedy
	for _, h := range engine.HintsOf(err) {
		all = append(all, remedy{&h, h.Purpose(), command(h).line, command(h).note})
	}
	if g, is := errors.AsType[guided](err); is {
		for _, w := range g.ways {
			all = append(all, remedy{Purpose: w.purpose, Command: w.line})
		}
	}
	return all
}

// explain returns an error as text for a person: its sentence, and what to type next.
func explain(err error) string { return remedied(err.Error(), remedies(err)) }

// helped adds what to type next to a text that says what failed.
func helped(text string, hints []team.Hint) string {
	return remedied(text, remedies(&team.Error{Help: hints}))
}

// remedied adds what to type next to a text that says what failed.
func remedied(text string, all []remedy) string {
	var helps []string
	for _, r := range all {
		if r.Purpose == seeHelp {
			text += "; see: " + r.Command
			continue
		}
		helps = append(helps, "to "+r.Purpose+": "+r.Command+r.note)
	}
	if len(helps) == 0 {
		return text
	}
	if strings.Contains(text, "\n") { // a line for each
		for _, help := range helps {
			text = strings.TrimRight(text, "\n") + "\nT" + strings.TrimPrefix(help, "t")
		}
		return text
	}
	help := "T" + strings.TrimPrefix(strings.Join(helps, "; "), "t")
	if text = strings.TrimRight(text, " ;"); text == "" || !strings.ContainsRune(".?!", rune(text[len(text)-1])) {
		text += "."
	}
	return text + " " + help
}

// advise prints a note for the person that is not a result, and what would change it.
func (a *app) advise(n team.Note) { a.note(helped(n.Text, n.Hints)) }

// fail prints an error that does not end the command.
func (a *app) fail(err error) { say(a.err.Writer, render.Alarm, errorPrefix, explain(err)) }
