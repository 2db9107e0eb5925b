package render

import (
	"cmp"
	"fmt"
	"strings"

	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// Command is what a person types for a hint: a command line of cadre or of git, and a note that
// follows it. The person fills in the words in capitals.
type Command struct{ Line, Note string }

func (a Command) String() string { return a.Line + a.Note }

// CommandFor returns what to type for a hint. Every front end that shows commands uses this table,
// with [gitCommand]; an agent's tools and a Go program have terms of their own.
func CommandFor(h team.Hint) Command {
	id := h.TypedTask()
	line := func(command string, words ...string) Command { return Command{Line: Typed(command, words...)} }
	task := func(verb string, more ...string) Command {
		return line("task "+verb, append([]string{h.Team, id}, more...)...)
	}
	switch h.Action {
	case team.ActAnswerPermission:
		return Command{Typed("permit", h.Team, h.Request), ", or with --deny"}
	case team.ActAnswerPlan:
		return Command{Typed("plan", h.Team, h.Request), ", then with --approve or --reject WHY"}
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
		return Command{Typed("resume", h.Team, "--take-over"), ", which takes it from that session"}
	case team.ActTakeBack:
		return line("resume", h.Team, "--take-back")
	case team.ActRelease:
		if h.Dir != "" { // the copy of another home, on this machine
			return Command{Line: "cd " + sanitize.Quote(h.Dir) + " && CADRE_HOME=DIR " +
				Typed("push", h.Team, "--release")}
		}
		return line("push", h.Team, "--release")
	case team.ActPull:
		return line("pull", h.Team)
	case team.ActCleanUp:
		return line("cleanup", h.Team)
	case team.ActAbort:
		return line("abort", h.Team)
	case team.ActShowWaiting:
		return line("attention", h.Name)
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
	case team.ActLift:
		return line("lift", h.Team, h.Member)
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
	case team.ActVerify:
		return verdict(task("done", "--accept", "--result", "WHY"), h.Member)
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
	case team.ActShowTeams:
		return line("ls")
	case team.ActInitStore:
		return line("store init")
	case team.ActMigrateStore:
		return line("store migrate")
	case team.ActShowNotes:
		return line("note list", h.Team)
	case team.ActDeleteNote:
		return line("note rm", h.Team, h.Note)
	case team.ActShowTeam:
		return line("status", h.Team)
	case team.ActShowHosts:
		return line("hosts")
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
func gitCommand(h team.Hint) (of Command, is bool) {
	git := "git -C " + sanitize.Quote(h.Dir)
	switch from := fmt.Sprintf("%.12s", h.From); h.Action {
	case team.ActRevertWork:
		return Command{Line: fmt.Sprintf("%s diff --binary %s %.12s | %s apply", git, from, h.To, git)}, true
	case team.ActShowFile:
		if len(h.Paths) == 0 {
			return Command{Line: git + " ls-tree -r " + from}, true
		}
		git += " show"
		for _, path := range h.Paths {
			git += " " + sanitize.Quote(from+":"+path)
		}
		return Command{Line: git}, true
	case team.ActKeepCommit:
		return Command{Line: git + " branch NAME " + from}, true
	case team.ActForgetWorktree:
		return Command{Line: git + " worktree remove --force " + sanitize.Quote(h.Name)}, true
	case team.ActRepairWorktree:
		return Command{Line: git + " worktree repair " + sanitize.Quote(h.Name)}, true
	case team.ActUnlockWorktree:
		return Command{Line: git + " worktree unlock " + sanitize.Quote(h.Name)}, true
	case team.ActCheckOut:
		return Command{Line: git + " checkout " + sanitize.Quote(h.Name)}, true
	case team.ActAddRemote:
		return Command{Line: git + " remote add " + sanitize.Quote(cmp.Or(h.Name, "NAME")) + " URL"}, true
	case team.ActFetchBranch:
		return Command{Line: git + " fetch REPOSITORY " + sanitize.Quote(h.Name+":"+h.Name)}, true
	case team.ActRenameBranch:
		return Command{Line: git + " branch -m " + sanitize.Quote(h.Name) + " NAME"}, true
	case team.ActPushCommit:
		return Command{Line: git + " push " + sanitize.Quote(h.Name) + " " + from + ":refs/heads/BRANCH"}, true
	case team.ActMergeBranch:
		return Command{Line: git + " merge " + sanitize.Quote(h.Name)}, true
	case team.ActDeleteBranch:
		return Command{Line: git + " branch -D " + sanitize.Quote(h.Name)}, true
	case team.ActRevertCommit:
		if h.To != "" {
			from = "-m 1 " + from
		}
		return Command{Line: git + " revert " + from}, true
	}
	return Command{}, false
}

// Typed returns a command line: the name of a command of cadre, and words quoted for a shell.
func Typed(command string, words ...string) string {
	all := []string{"cadre", command}
	for _, w := range words {
		all = append(all, sanitize.Quote(w))
	}
	return strings.Join(all, " ")
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

// Remedy is something to do about a failure.
type Remedy struct {
	Purpose string // what it is for, as in "resume the team"; "" for a command that shows help
	Command Command
}

// verdict completes the command with which a member accepts what it verifies; "" is for you.
func verdict(c Command, member string) Command {
	if c.Note = ", or with --reject"; member != "" {
		c.Line += " --as " + sanitize.Quote(member)
	}
	return c
}

// Helped adds what to type next to a text that says what failed.
func Helped(text string, hints []team.Hint) string {
	var all []Remedy
	for _, h := range hints {
		all = append(all, Remedy{h.Purpose(), CommandFor(h)})
	}
	return Remedied(text, all)
}

// Explain returns an error as text for a person: its sentence, the note that it is about, and what
// to type next.
func Explain(err error, hints []team.Hint) string { return Helped(Sentence(err), hints) }

// Sentence returns the text of an error, with the note that it is about as that is.
func Sentence(err error) string {
	text := err.Error()
	if now := team.NoteOf(err); now != nil {
		text += ". It is now:\n" + now.Text
	}
	return text
}

// Remedied adds what to type next to a text that says what failed. The first remedy is most likely
// the right one; the others follow after "or".
func Remedied(text string, all []Remedy) string {
	var helps []string
	for _, r := range all {
		if r.Purpose == "" {
			text += "; see: " + r.Command.String()
			continue
		}
		helps = append(helps, "to "+r.Purpose+": "+r.Command.String())
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
	help := "T" + strings.TrimPrefix(strings.Join(helps, "; or "), "t")
	if text = strings.TrimRight(text, " ;"); text == "" || !strings.ContainsRune(".?!", rune(text[len(text)-1])) {
		text += "."
	}
	return text + " " + help
}
