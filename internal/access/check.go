package access

import "strings"

// A check acts as the user, because the user chose its command. But what it runs may be the members' work: the
// tests that they wrote. So it may not call what gives power away, on its own or to a member.
//
// The keys are names of rows, or of rows with a flag; the values say why.
var (
	refusedInChecks = map[string]string{
		"trust":             "hooks that are trusted run with the user's rights",
		"mode":              "it says what a member may do without asking",
		"delegate":          "it says what the lead may do",
		"permit":            "it says what a member may do",
		"plan --approve":    "it says what a member may do",
		"budget":            "it says what the team may spend",
		"spawn":             "it starts a session",
		"task add --run":    "its command would run with the user's rights",
		"task update --run": "its command would run with the user's rights",
		"run":               "it starts sessions and hooks with the user's rights",
		"create":            "a team has hooks and checks of its own",
		"host":              "it starts sessions with the user's rights",
		"resume":            "it starts sessions with the user's rights",
		"join":              "it starts a session with the user's rights",
		"claude-teammate":   "it starts a session with the user's rights",
		"mcp":               "it leads a team with all of the lead's tools",
	}
	entriesRefusedInChecks = map[string]string{
		"Manager.CreateTeam":    "a team has hooks and checks of its own",
		"Manager.SpawnTeammate": "it starts a session",
		"Team.SetMode":          "it says what a member may do without asking",
		"Team.SetDelegate":      "it says what the lead may do",
		"Team.SetBudget":        "it says what the team may spend",
		"Team.AnswerPermission": "it says what a member may do",
		"Team.ApprovePlan":      "it says what a member may do",
		"Team.Run":              "it starts sessions with the user's rights",
		"Team.Retry":            "it starts sessions with the user's rights",
		"TaskList.Create Run":   "its command would run with the user's rights",
	}
)

// passCheck is the gate for a check.
func passCheck(table []Row, refused map[string]string, prefix, dash, name string, given func(string) bool) error {
	because, what := refused[name], name
	row, _ := find(table, name, nil)
	for _, f := range row.Flags {
		if given == nil || !given(f.Name) {
			continue
		}
		if f.Rule == Anyone { // a helper
			return nil
		}
		if flagged := name + " " + dash + f.Name; because == "" && refused[flagged] != "" {
			because, what = refused[flagged], flagged
		}
	}
	if because == "" {
		return nil
	}
	return deny("%s is refused in a check: %s, and a check may run what members wrote. Call it yourself, or from a hook that you trust.", strings.TrimSpace(prefix+what), because)
}
