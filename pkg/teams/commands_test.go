package teams_test

import (
	"slices"
	"strings"
	"testing"

	"cadre/internal/access"
)

// withEntry lists the commands of cadre that the library can do too, with their entries.
var withEntry = map[string]string{
	"run":                "LoadTeamFile Manager.CreateTeam Team.Run",
	"validate":           "LoadTeamFile",
	"templates":          "Manager.Templates Manager.LoadTemplate",
	"create":             "Manager.CreateTeam",
	"host":               "Manager.OpenTeam Manager.ServeMachine",
	"hosts":              "Manager.Machines Manager.DrainMachine",
	"resume":             "Manager.ResumeTeam Manager.RestoreTeam",
	"pause":              "Manager.PauseTeam",
	"abort":              "Team.Abort",
	"cleanup":            "Manager.RemoveTeam Manager.Cleanup",
	"consolidate":        "Team.Consolidate Team.TryChecks Team.RollBackConsolidation",
	"push":               "Manager.PushTeam",
	"pull":               "Manager.PullTeam",
	"checkpoint":         "Team.Checkpoint Manager.Checkpoints",
	"hooks":              "Team.Hooks",
	"hooks disable":      "Team.DisableHook",
	"hooks enable":       "Team.EnableHook",
	"hooks try":          "Team.TryHook",
	"ls":                 "Manager.Teams",
	"status":             "View.Info View.Members TaskReader.List",
	"log":                "View.Events View.EventsAfter",
	"search":             "Manager.Search",
	"probe":              "View.Probe",
	"attention":          "Manager.Attention View.Attention",
	"review":             "View.Review",
	"fsck":               "Manager.CheckTeam Manager.MendTeam",
	"facts":              "View.Facts Team.RecordFacts",
	"plan":               "Team.ApprovePlan Team.RejectPlan",
	"plan list":          "View.Members",
	"plan submit":        "Teammate.SubmitPlan",
	"observe":            "NewObserver",
	"schema observe":     "ObserverSchema",
	"spawn":              "Team.Spawn",
	"shutdown":           "Team.Shutdown Team.RequestShutdown",
	"permit":             "Team.AllowPermission Team.DenyPermission",
	"permit list":        "View.Permissions",
	"permission":         "View.Rules",
	"permission add":     "Team.AddRule",
	"permission rm":      "Team.RemoveRule",
	"leave":              "Teammate.ApproveShutdown Teammate.RejectShutdown",
	"resend":             "Team.Resend",
	"mode":               "Team.SetMode",
	"delegate":           "Team.EnterDelegateMode Team.LeaveDelegateMode",
	"budget":             "Team.SetBudget Team.SetMemberBudget",
	"attach":             "View.Session",
	"panes":              "Manager.ShowPanes Manager.ClosePanes",
	"handover":           "Team.HandOver",
	"interrupt":          "Team.Interrupt",
	"lift":               "Team.LiftRateLimit",
	"reassign":           "Team.Reassign",
	"task add":           "TaskList.Create TaskList.CreateAll",
	"task list":          "TaskReader.List",
	"task show":          "TaskReader.Get TaskReader.Patch",
	"task update":        "TaskList.Update",
	"task claim":         "TaskList.Claim TaskList.ClaimNext TaskList.WaitNext",
	"task done":          "TaskList.Complete",
	"task fail":          "TaskList.Fail",
	"task release":       "TaskList.Release",
	"task rm":            "TaskList.Delete",
	"task paths":         "TaskReader.WithPaths",
	"task paths claim":   "TaskList.ClaimPaths",
	"task paths release": "TaskList.ReleasePaths",
	"task rollback":      "Team.RollBackTask",
	"send":               "Mailbox.Send",
	"broadcast":          "Mailbox.Broadcast",
	"note set":           "Notes.Set",
	"note append":        "Notes.Append",
	"note get":           "NoteReader.Get NoteReader.At",
	"note list":          "NoteReader.List",
	"note log":           "NoteReader.Changes",
	"note rm":            "Notes.Delete",
	"inbox":              "Mailbox.Peek Mailbox.Receive Mailbox.Wait Mailbox.History",
	"doctor":             "Adapters Installed",
}

// withoutEntry lists the other commands, with the reason.
var withoutEntry = map[string]string{
	"":                      "the help",
	"help":                  "the help",
	"task":                  "the help of its commands",
	"note":                  "the help of its commands",
	"schema":                "the help of its commands",
	"serve token":           "the help of its commands",
	"completion":            "it completes command lines in a shell",
	"completion bash":       "it completes command lines in a shell",
	"completion fish":       "it completes command lines in a shell",
	"completion powershell": "it completes command lines in a shell",
	"completion zsh":        "it completes command lines in a shell",
	"__complete":            "it completes command lines in a shell",
	"version":               "the build information of a program says which version it links",
	"schema teamfile":       "it is for editors; LoadTeamFile checks a file",
	"init":                  "it writes a file for a person to edit",
	"store":                 "the help of its commands",
	"store init":            "an administrator prepares a database, once",
	"store migrate":         "an administrator updates a database, once",
	"store move":            "a person moves a team, once",
	"serve":                 "a process of its own; programs call it with pkg/teams/client",
	"serve token add":       "part of cadre serve",
	"serve token ls":        "part of cadre serve",
	"serve token rm":        "part of cadre serve",
	"board":                 "part of cadre serve",
	"watch":                 "a screen; a program reads the same with View and Attention",
	"export":                "a page for a browser; a program reads the same with View",
	"trust":                 "a person decides that, at a terminal",
	"notify":                "it tells a person; a program reads Manager.AwaitAttention",
	"mcp":                   "it serves a session of an agent on its standard streams; a program acts with Team.As",
	"wake":                  "a hook of an agent's session calls it",
	"gemini-hook":           "a hook of an agent's session calls it",
	"report-killed":         "the watchdog of a session calls it",
	"join":                  "it is a member of a team that Claude Code runs itself",
	"claude-teammate":       "Claude Code starts it, as a member of its own team",
}

// TestCommandsHaveEntries checks what the package comment says of the commands of cadre: each has
// an entry in the library, or a reason why not.
func TestCommandsHaveEntries(t *testing.T) {
	entries := access.Entries()
	known := map[string]bool{}
	for _, row := range access.Commands() {
		known[row.Name] = true
		names, reason := withEntry[row.Name], withoutEntry[row.Name]
		if (names == "") == (reason == "") {
			t.Errorf("cadre %s: has the entries %q, and the reason %q to have none", row.Name, names, reason)
		}
		for _, name := range strings.Fields(names) {
			if !slices.ContainsFunc(entries, func(e access.Row) bool { return e.Name == name }) {
				t.Errorf("cadre %s: the library has no %s", row.Name, name)
			}
		}
	}
	for _, table := range []map[string]string{withEntry, withoutEntry} {
		for name := range table {
			if !known[name] {
				t.Errorf("cadre %s is not a command", name)
			}
		}
	}
}
