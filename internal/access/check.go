package access

import "strings"

// A check acts as the user, because the user chose its command. But it may run the members' work,
// such as tests that they wrote. So a check may not call anything that gives power to itself or to
// a member. That other homes are not restricted does not change this: a team that was made there
// must not come back through a remote, so pull and push are refused.
//
// Both maps have a verdict for every row with the rule User or Acts, and for every flag with such a
// rule in a row that a check may call. A key is the name of a row, or of a row with a flag. The
// value says why a check is refused, or is may. Without a verdict a check is refused, and a test
// fails.
const may = ""

var (
	inChecks = map[string]string{
		"store init":         "it makes tables, and says who may use them",
		"store migrate":      "it changes the tables of every team in a database",
		"store move":         "it decides where a team continues",
		"trust":              "hooks that are trusted run with the user's rights",
		"notify":             "it runs a command of the user's settings",
		"hooks --dir":        may,
		"hooks disable":      "hooks judge what members do",
		"hooks enable":       may,
		"hooks try":          "hooks run with the user's rights, and the check would choose what they read",
		"mode":               "it says what a member may do without asking",
		"delegate":           "it says what the lead may do",
		"permit":             "it says what a member may do",
		"permit --always":    "it says what a member may do without asking",
		"permission add":     "it says what a member may do without asking",
		"permission rm":      may, // it only takes rights away
		"budget --tokens":    "it says what may be spent",
		"budget --usd":       "it says what may be spent",
		"budget --time":      "it says what may be spent",
		"budget --unlimited": "it says what may be spent",
		"spawn":              "it starts a session",
		"watch":              "what is typed on the screen is the user's word",
		"attach":             "what is typed at a member's terminal is the user's word",
		"panes":              "it opens panes in the terminal of the user",
		"handover":           "it starts a session",
		"interrupt":          may,
		"lift":               may,
		"run":                "it starts sessions and hooks with the user's rights",
		"create":             "a team has hooks and checks of its own",
		"pull":               "a team has hooks and checks of its own",
		"push":               "another machine may continue the team that it sends",
		"serve":              "it starts sessions with the user's rights",
		"serve token add":    "a token lets in whoever has it",
		"serve token ls":     may,
		"serve token rm":     may, // it only takes rights away
		"board":              "what is clicked on the board is the user's word",
		"hosts":              "machines run the members of all teams",
		"host":               "it starts sessions with the user's rights",
		"resume":             "it starts sessions with the user's rights",
		"join":               "it starts a session with the user's rights",
		"claude-teammate":    "it starts a session with the user's rights",

		"mcp":               "it leads a team with all of the lead's tools",
		"plan --approve":    "it says what a member may do",
		"task add --run":    "its command would run with the user's rights",
		"task add --file":   "its command would run with the user's rights",
		"task add --check":  "its check would run with the user's rights",
		"task add --until":  "its check would run with the user's rights",
		"task update --run": "its command would run with the user's rights",

		"abort":                 may,
		"pause":                 may,
		"cleanup":               may,
		"consolidate":           may, // the user chose the checks
		"checkpoint":            may,
		"fsck --mend":           may,
		"facts --add":           may,
		"facts --record":        may,
		"plan --reject":         may,
		"observe --as-team":     may, // an observed team starts nothing
		"observe --claude-team": may,
		"shutdown":              may,
		"shutdown --graceful":   may,
		"resend":                may,
		"reassign":              may,
		"task add":              may,
		"task update":           may,
		"task claim":            may,
		"task done":             "it completes a task in the user's name, past its check and its verification",
		"task fail":             may,
		"task release":          may,
		"task paths claim":      may,
		"task paths release":    may,
		"task rm":               "what waits for the task would run without it",
		"task rollback":         may,
		"note set":              may,
		"note append":           may,
		"note rm":               may,
		"send":                  may,
		"broadcast":             may,
		"inbox":                 may,
		"plan submit":           may,
		"leave":                 may,
		"report-killed":         may,
	}
	entriesInChecks = map[string]string{
		"Manager.CreateTeam":            "a team has hooks and checks of its own",
		"Manager.PullTeam":              "a team has hooks and checks of its own",
		"Manager.ShowPanes":             "it opens panes in the terminal of the user",
		"Manager.Machines":              "machines run the members of all teams",
		"Manager.DrainMachine":          "machines run the members of all teams",
		"Manager.ServeMachine":          "it starts sessions with the user's rights",
		"Manager.ResumeTeam":            "it starts sessions with the user's rights",
		"Manager.RestoreTeam":           "a team has hooks and checks of its own",
		"Manager.PushTeam":              "another machine may continue the team that it sends",
		"Team.Spawn":                    "it starts a session",
		"Team.HandOver":                 "it starts a session",
		"Team.Interrupt":                may,
		"Team.LiftRateLimit":            may,
		"Team.SetMode":                  "it says what a member may do without asking",
		"Team.AddRule":                  "it says what a member may do without asking",
		"Team.RemoveRule":               may, // it only takes rights away
		"Team.DisableHook":              "hooks judge what members do",
		"Team.TryHook":                  "hooks run with the user's rights, and the check would choose what they read",
		"Team.EnterDelegateMode":        "it says what the lead may do",
		"Team.LeaveDelegateMode":        "it says what the lead may do",
		"Team.SetBudget":                "it says what the team may spend",
		"Team.SetMemberBudget":          "it says what a member may spend",
		"Team.AllowPermission":          "it says what a member may do",
		"Team.ApprovePlan":              "it says what a member may do",
		"Team.Run":                      "it starts sessions with the user's rights",
		"Team.Retry":                    "it starts sessions with the user's rights",
		"TaskList.Create Run":           "its command would run with the user's rights",
		"TaskList.CreateAll Run":        "its command would run with the user's rights",
		"TaskList.Update Run":           "its command would run with the user's rights",
		"TaskList.Create Check":         "its check would run with the user's rights",
		"TaskList.CreateAll Check":      "its check would run with the user's rights",
		"TaskList.Create ForEachRun":    "its command would run with the user's rights",
		"TaskList.CreateAll ForEachRun": "its command would run with the user's rights",
		"Manager.OpenTeam":              "it starts sessions with the user's rights",

		"New":                        may,
		"Manager.Cleanup":            may,
		"Team.Tasks":                 may,
		"Team.Mail":                  may,
		"Team.As":                    may,
		"Team.RequestShutdown":       may,
		"Team.WithdrawShutdown":      may,
		"Team.RejectPlan":            may,
		"Team.Approve":               may, // it is checked again as AllowPermission or ApprovePlan
		"Team.Decline":               may,
		"Team.DenyPermission":        may,
		"Team.Shutdown":              may,
		"Team.UserMail":              may,
		"Team.Questions":             may,
		"Team.EnableHook":            may,
		"Team.RollBackTask":          may,
		"Team.Consolidate":           may, // the user chose the checks
		"Team.TryChecks":             may,
		"Team.RollBackConsolidation": may,
		"Team.WindDown":              may,
		"Team.Checkpoint":            may,
		"Team.RecordFacts":           may,
		"Team.Reassign":              may,
		"Team.Resend":                may,
		"Manager.AddHook":            may, // it affects only this program
		"Manager.RemoveHook":         may,
		"Manager.PauseTeam":          may,
		"Manager.ClosePanes":         may,
		"Manager.RemoveTeam":         may,
		"Manager.MendTeam":           may,
		"Team.Complete":              may,
		"Team.Abort":                 may,
		"Team.Notes":                 may,
		"Teammate.Notes":             may,
		"Notes.Set":                  may,
		"Notes.Append":               may,
		"Notes.Delete":               may,
		"TaskList.Create":            may,
		"TaskList.CreateAll":         may,
		"TaskList.Update":            may,
		"TaskList.Claim":             may,
		"TaskList.ClaimNext":         may,
		"TaskList.WaitNext":          may,
		"TaskList.Complete":          "it completes a task in the user's name, past its check and its verification",
		"TaskList.Decide":            "it completes a task in the user's name, past its check and its verification",
		"TaskList.Fail":              may,
		"TaskList.Release":           may,
		"TaskList.ClaimPaths":        may,
		"TaskList.ReleasePaths":      may,
		"TaskList.Delete":            "what waits for the task would run without it",
		"Mailbox.Send":               may,
		"Mailbox.Broadcast":          may,
		"Mailbox.Peek":               may,
		"Mailbox.History":            may,
		"Mailbox.Receive":            may,
		"Mailbox.Wait":               may,
		"Mailbox.All":                may,
		"Mailbox.MarkRead":           may,
		"Teammate.Tasks":             may,
		"Teammate.Mail":              may,
		"Teammate.Busy":              may,
		"Teammate.Idle":              may,
		"Teammate.ApproveShutdown":   may,
		"Teammate.RejectShutdown":    may,
		"Teammate.SubmitPlan":        may,
		"Teammate.AwaitPlan":         may,
		"Teammate.GiveReport":        may,
		"Teammate.AskPermission":     may,
	}
)

// passCheck is the gate for a check.
func passCheck(table []Row, verdicts map[string]string, prefix, dash, name string, given func(string) bool) error {
	row, _ := find(table, name, nil)
	because, what := verdict(verdicts, name, row.Rule), name
	for _, f := range row.Flags {
		if given == nil || !given(f.Name) {
			continue
		}
		if f.Rule == Anyone { // a helper
			return nil
		}
		if because == may {
			flagged := name + " " + dash + f.Name
			if because = verdict(verdicts, flagged, f.Rule); because != may {
				what = flagged
			}
		}
	}
	if because == may {
		return nil
	}
	return deny("%s is refused in a check: %s, and a check may run what members wrote. Call it yourself, or from a "+
		"hook that you trust.", strings.TrimSpace(prefix+what), because)
}

// verdict says why a check is refused a call with that rule, or returns may.
func verdict(verdicts map[string]string, key string, rule Rule) string {
	because, there := verdicts[key]
	if !there && rule >= Acts {
		return "the table does not say whether a check may call it"
	}
	return because
}
