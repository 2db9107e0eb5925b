package team

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Action is something to do that would help after a refusal, or that answers a waiting item. It
// names no command and no tool: each front end says in its own terms how to do it.
type Action string

// The actions of hints. Each comment names the fields of [Hint] that the action uses besides Team.
const (
	ActAnswerPermission Action = "answer_permission" // answer the permission request Request
	ActAnswerPlan       Action = "answer_plan"       // answer the plan Request

	ActCreate       Action = "create"         // create the team, or a team by any name if Team is ""
	ActResume       Action = "resume"         // continue the team
	ActContinueCopy Action = "continue_copy"  // continue the team in another clone, from its checkpoints
	ActMove         Action = "move"           // record the new directory of the team: Dir, or any if it is ""
	ActTakeOver     Action = "take_over"      // take the lead from the session that has it
	ActTakeBack     Action = "take_back"      // continue here what this machine released
	ActRelease      Action = "release"        // release the team, so that another machine can continue it
	ActPull         Action = "pull"           // fetch the team from where it is now
	ActCleanUp      Action = "clean_up"       // remove a team that has ended or is observed
	ActForceCleanUp Action = "force_clean_up" // end all sessions of the team, and remove it
	ActAbort        Action = "abort"          // end the team and the teams in it at once
	ActMend         Action = "mend"           // examine the damaged history, and repair it
	ActRaiseBudget  Action = "raise_budget"   // raise Budget of Member, or of the team if Member is ""

	ActConsolidate      Action = "consolidate"        // check and commit the team's work
	ActFinish           Action = "finish"             // finish the consolidation that was started
	ActRollBack         Action = "roll_back"          // abandon the consolidation, and continue the team
	ActSkipCommit       Action = "skip_commit"        // complete the team without a commit
	ActGoWithout        Action = "go_without"         // complete the team without the work of Tasks
	ActKeepCheckChanges Action = "keep_check_changes" // also commit what the checks change
	// also commit the files Paths; if Paths is empty, the person names them
	ActIncludeFiles Action = "include_files"
	ActCommitOnly   Action = "commit_only" // commit only the files Paths, or files to name if it is empty
	ActCheckClean   Action = "check_clean" // run the checks without uncommitted changes of the user

	ActSpawn      Action = "spawn"       // add the member Name with the agent Agent; any where they are ""
	ActSubmitPlan Action = "submit_plan" // submit a plan, as Member

	ActShutDown Action = "shut_down" // shut down Member, or any teammate if it is ""
	ActRejoin   Action = "rejoin"    // start the session of the external member Member again
	ActResend   Action = "resend"    // send the late messages of Member again
	ActLift     Action = "lift"      // have the rate-limited model of Member tried again now
	ActAsk      Action = "ask"       // send Member a question
	ActReadMail Action = "read_mail" // read the mail of Member

	ActClaimTask    Action = "claim_task"    // claim Task, as Member
	ActClaimNext    Action = "claim_next"    // claim another task, as Member
	ActReassign     Action = "reassign"      // give Task to another member
	ActRetryTask    Action = "retry_task"    // return Task to the queue
	ActSetCommand   Action = "set_command"   // give Task a new command
	ActCompleteTask Action = "complete_task" // do Task, and complete it
	ActAssignTask   Action = "assign_task"   // name the member that does Task
	ActVerify       Action = "verify"        // accept or reject with Task what it verifies, and say why
	ActDeleteTask   Action = "delete_task"   // delete Task
	ActRollBackTask Action = "rollback_task" // undo Task in the files Paths

	ActShowTeams   Action = "show_teams"   // list the teams
	ActShowTeam    Action = "show_team"    // show the team
	ActShowWaiting Action = "show_waiting" // list what waits for a person in the team Name
	ActShowAlive   Action = "show_alive"   // show which members are alive
	ActShowHosts   Action = "show_hosts"   // list the machines that run members
	ActShowTasks   Action = "show_tasks"   // list the tasks
	ActShowTask    Action = "show_task"    // show Task

	ActInitStore    Action = "init_store"    // make the tables of a database for teams
	ActMigrateStore Action = "migrate_store" // bring them to this version
	ActShowNotes    Action = "show_notes"    // list the notes
	ActDeleteNote   Action = "delete_note"   // delete the note Note
	ActShowLog      Action = "show_log"      // show the history
	ActFollowLog    Action = "follow_log"    // watch the team run
	ActShowReview   Action = "show_review"   // review the work of a team that has ended
	ActRecordFacts  Action = "record_facts"  // record the files that all members rely on as they are now
	ActTrust        Action = "trust"         // trust the hooks of the project in Dir, so that they run

	ActRevertWork Action = "revert_work" // change the files in the work tree Dir back from the commit From to To
	// show the files Paths of the commit or tree From, in the repository Dir, or list all if Paths
	// is empty
	ActShowFile   Action = "show_file"
	ActKeepCommit Action = "keep_commit" // put the commit From on a branch of the repository Dir

	// remove the record of the worktree Name from the repository Dir
	ActForgetWorktree Action = "forget_worktree"
	// join the worktree Name and its repository Dir again
	ActRepairWorktree Action = "repair_worktree"
	ActUnlockWorktree Action = "unlock_worktree" // unlock the record of the worktree Name in the repository Dir
	ActCheckOut       Action = "check_out"       // check the branch Name out in the worktree Dir

	ActAddRemote    Action = "add_remote"    // add the remote Name, or one to name if it is "", to the repository Dir
	ActFetchBranch  Action = "fetch_branch"  // fetch the branch Name from another repository into the repository Dir
	ActRenameBranch Action = "rename_branch" // rename the branch Name of the repository Dir
	// push the commit From of the repository Dir to a branch of the remote Name
	ActPushCommit   Action = "push_commit"
	ActMergeBranch  Action = "merge_branch"  // merge the branch Name into the one checked out in Dir
	ActDeleteBranch Action = "delete_branch" // delete the branch Name of the repository Dir, merged or not
	ActRevertCommit Action = "revert_commit" // revert the commit From in Dir; if it is a merge, to its first parent To
)

// Actions returns every action that a hint can name.
func Actions() []Action {
	return []Action{ActAnswerPermission, ActAnswerPlan, ActCreate, ActResume, ActContinueCopy, ActMove, ActTakeOver,
		ActTakeBack, ActRelease, ActPull, ActCleanUp, ActForceCleanUp, ActAbort, ActMend, ActRaiseBudget,
		ActConsolidate, ActFinish,
		ActRollBack, ActSkipCommit, ActGoWithout, ActKeepCheckChanges, ActIncludeFiles, ActCommitOnly, ActCheckClean,
		ActSpawn, ActSubmitPlan, ActShutDown, ActRejoin, ActResend, ActLift, ActAsk, ActReadMail, ActClaimTask, ActClaimNext,
		ActReassign, ActRetryTask, ActSetCommand, ActDeleteTask, ActRollBackTask,
		ActCompleteTask, ActAssignTask, ActVerify, ActShowTeams, ActShowTeam, ActShowWaiting, ActShowAlive, ActShowHosts,
		ActShowTasks, ActShowTask, ActInitStore, ActMigrateStore,
		ActShowNotes, ActDeleteNote, ActShowLog,
		ActFollowLog, ActShowReview, ActRecordFacts, ActTrust, ActRevertWork, ActShowFile, ActKeepCommit,
		ActForgetWorktree, ActRepairWorktree, ActUnlockWorktree, ActCheckOut, ActAddRemote, ActFetchBranch,
		ActRenameBranch, ActPushCommit, ActMergeBranch, ActDeleteBranch, ActRevertCommit}
}

// Hint says which action would help, and on what. It is data: a front end renders it, and may omit
// an action that it does not offer.
type Hint struct {
	Action   Action `json:"action"`             // one of the actions above
	Team     string `json:"team,omitempty"`     // name of the team
	Member   string `json:"member,omitempty"`   // name of the member
	Task     string `json:"task,omitempty"`     // id of the task
	TaskName string `json:"taskName,omitempty"` // name of the task; "" for a task without one
	// the number of a task without a name, with a mark (#3), where another task has that number as
	// its name; else ""
	TaskRef string `json:"taskRef,omitempty"`
	Note    string `json:"note,omitempty"`    // key of the note
	Request string `json:"request,omitempty"` // id of the request or plan
	// for spawn: a free name, or "" for any; for release: the machine that has the team, "" for
	// this one; else a remote, branch or worktree
	Name   string `json:"name,omitempty"`
	Agent  string `json:"agent,omitempty"`  // for spawn: agent of the new member, or "" for any
	Budget string `json:"budget,omitempty"` // for raise_budget: tokens, cost or time
	// for move, trust: the directory; for release: that of another copy on this machine; else of
	// the repository
	Dir string `json:"dir,omitempty"`
	// for revert_work, show_file, keep_commit, push_commit, revert_commit: id of the commit or tree
	From string `json:"from,omitempty"`
	// for revert_work: id of the commit that has the files as they were; for revert_commit: of the
	// first parent of a merge
	To    string   `json:"to,omitempty"`
	Tasks []string `json:"tasks,omitempty"` // for go_without: ids of the tasks
	Paths []string `json:"paths,omitempty"` // for include_files, commit_only, rollback_task and show_file
}

// TaskCalled returns the [Task.Called] of the hint's task.
func (h Hint) TaskCalled() string { return cmp.Or(h.TaskName, h.TaskRef, h.Task) }

// TypedTask returns what a person types for the hint's task, so that [State.Find] finds it. If the
// task's name is a number, another task may have that number.
func (h Hint) TypedTask() string {
	if h.TaskName != "" && strings.Trim(h.TaskName, "0123456789") == "" {
		return "#" + h.Task
	}
	return h.TaskCalled()
}

// purposes lists the actions whose purpose does not depend on their fields.
var purposes = [...]struct {
	action  Action
	purpose string
}{
	{ActAnswerPermission, "answer the request"},
	{ActAnswerPlan, "answer the plan"},
	{ActSubmitPlan, "submit a plan"},
	{ActCreate, "create one"},
	{ActResume, "resume the team"},
	{ActContinueCopy, "continue from the checkpoint"},
	{ActTakeOver, "take the lead"},
	{ActTakeBack, "take the team back, where it runs nowhere else"},
	{ActPull, "see where the team is now"},
	{ActCleanUp, "remove the team"},
	{ActForceCleanUp, "end and remove the whole team"},
	{ActAbort, "end it, with the teams in it"},
	{ActShowWaiting, "see it all"},
	{ActMend, "look at it and repair it"},
	{ActConsolidate, "check and commit its work"},
	{ActFinish, "finish the consolidation"},
	{ActRollBack, "abandon the consolidation and continue the team"},
	{ActSkipCommit, "complete the team without a commit"},
	{ActGoWithout, "complete the team without that work"},
	{ActKeepCheckChanges, "commit what the checks change, too"},
	{ActCommitOnly, "name the files to commit"},
	{ActCheckClean, "run the checks without your changes"},
	{ActResend, "send the messages again"},
	{ActLift, "have its model tried again now"},
	{ActClaimTask, "claim it"},
	{ActVerify, "say accepted or rejected, and why"},
	{ActClaimNext, "take another one"},
	{ActShowTeams, "see the teams"},
	{ActInitStore, "make the tables"},
	{ActMigrateStore, "bring them to this version, once no older one uses them"},
	{ActShowTeam, "look at the team"},
	{ActShowAlive, "see who is alive"},
	{ActShowHosts, "see which machines there are"},
	{ActShowTasks, "see the tasks"},
	{ActShowNotes, "see the notes"},
	{ActShowLog, "see the history"},
	{ActFollowLog, "follow it"},
	{ActShowReview, "see what it did"},
	{ActRecordFacts, "record the facts as they are now"},
	{ActTrust, "look at the hooks, and let them run"},
	{ActRevertWork, "undo it in the work tree"},
	{ActKeepCommit, "keep the commit"},
	{ActForgetWorktree, "remove its record"},
	{ActRepairWorktree, "join them"},
	{ActUnlockWorktree, "unlock its record"},
	{ActCheckOut, "check its branch out"},
	{ActPushCommit, "push the commit yourself"},
	{ActMergeBranch, "merge it"},
	{ActDeleteBranch, "discard it"},
	{ActRevertCommit, "undo all of that"},
	{ActFetchBranch, "fetch it from the repository that has it"},
}

// Purpose says in a few words what the action is for, to stand behind "to": "take the lead".
func (h Hint) Purpose() string {
	switch h.Action {
	case ActMove:
		if h.Dir != "" {
			return "continue there"
		}
		return "say where it was moved to"
	case ActIncludeFiles:
		if len(h.Paths) == 0 {
			return "commit one of them, too"
		}
		return "commit " + strings.Join(h.Paths, ", ") + ", too"
	case ActRelease:
		switch {
		case h.Dir != "":
			return "release it in that copy"
		case h.Name != "":
			return "release it on " + h.Name
		}
		return "release the team"
	case ActRaiseBudget:
		if h.Member != "" {
			return "raise the budget of " + h.Member
		}
		return "raise the budget"
	case ActSpawn:
		return "add " + orA(h.Name, "teammate")
	case ActShutDown:
		return "shut down " + orA(h.Member, "teammate that is not needed")
	case ActRejoin:
		return "start the session of " + h.Member + " again"
	case ActAsk:
		return "ask " + h.Member
	case ActReadMail:
		return "read the mail of " + h.Member
	case ActReassign:
		return "give task " + h.TaskCalled() + " to another member"
	case ActRetryTask:
		return "return task " + h.TaskCalled() + " to the queue"
	case ActSetCommand:
		return "set the command of task " + h.TaskCalled()
	case ActCompleteTask:
		return "complete task " + h.TaskCalled()
	case ActDeleteTask:
		return "leave task " + h.TaskCalled() + " out"
	case ActRollBackTask:
		return "undo only these files of task " + h.TaskCalled()
	case ActShowFile:
		if len(h.Paths) == 0 {
			return "list the files"
		}
		return "see " + strings.Join(h.Paths, ", ")
	case ActAddRemote:
		return "add " + cmp.Or(h.Name, "a remote")
	case ActRenameBranch:
		return "rename the branch " + h.Name
	case ActAssignTask:
		return "say who does task " + h.TaskCalled()
	case ActDeleteNote:
		return "delete the note"
	case ActShowTask:
		return "look at task " + h.TaskCalled()
	}
	for i := range purposes {
		if purposes[i].action == h.Action {
			return purposes[i].purpose
		}
	}
	return ""
}

// Advice is worth knowing but is not a refusal. Its hints say what would change it.
type Advice struct {
	Text  string
	Hints []Hint
}

func orA(name, what string) string {
	if name != "" {
		return name
	}
	return "a " + what
}

// HintsOf returns the hints of all errors in err's tree, each once.
func HintsOf(err error) (all []Hint) {
	switch e := err.(type) { // errors.As finds only the first one of a tree
	case nil:
		return nil
	case interface{ Hints() []Hint }:
		all = slices.Clone(e.Hints())
	}
	var below []error
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		below = []error{e.Unwrap()}
	case interface{ Unwrap() []error }:
		below = e.Unwrap()
	}
	for _, one := range below {
		for _, h := range HintsOf(one) {
			if !slices.ContainsFunc(all, func(o Hint) bool { return fmt.Sprint(o) == fmt.Sprint(h) }) {
				all = append(all, h)
			}
		}
	}
	return all
}

// Hinted adds hints to an error that is not a refusal.
func Hinted(err error, hints ...Hint) error { return &hinted{err, hints} }

type hinted struct {
	error
	help []Hint
}

func (e *hinted) Hints() []Hint { return e.help }
func (e *hinted) Unwrap() error { return e.error }

// Onward returns what to do with a team that is in the way. Removing it is right only if it has
// ended and its work is committed, or if it is only observed.
func (t *Team) Onward() Hint {
	switch {
	case t.Observed != "", t.Ended() && !t.reopens():
		return t.hint(ActCleanUp)
	case t.Status == TeamConsolidating:
		return t.hint(ActConsolidate)
	}
	return t.hint(ActShowTeam)
}

// hint returns a hint about the team itself.
func (t *Team) hint(a Action) Hint { return t.Aim(Hint{Action: a}) }
