package teams

import (
	"cadre/internal/replica"
	"cadre/internal/team"
)

// Action is a next step: after a refusal, or for an item that waits.
type Action string

// The actions of hints, with the fields of [Hint] that they use besides Team.
const (
	ActAnswerPermission Action = "answer_permission"  // answer the permission request Request
	ActAnswerPlan       Action = "answer_plan"        // answer the plan Request
	ActCreate           Action = "create"             // create the team, or a team by any name if Team is ""
	ActResume           Action = "resume"             // continue the team
	ActContinueCopy     Action = "continue_copy"      // continue the team in another clone, from its checkpoints
	ActMove             Action = "move"               // record the new directory of the team: Dir, or any if it is ""
	ActTakeOver         Action = "take_over"          // take the lead from the session that has it
	ActTakeBack         Action = "take_back"          // continue here what this machine released
	ActRelease          Action = "release"            // release the team, so that another machine can continue it
	ActPull             Action = "pull"               // fetch the team from where it is now
	ActCleanUp          Action = "clean_up"           // remove a team that has ended or is observed
	ActForceCleanUp     Action = "force_clean_up"     // end all sessions of the team, and remove it
	ActAbort            Action = "abort"              // end the team and the teams in it at once
	ActMend             Action = "mend"               // check the damaged history, and repair it
	ActRaiseBudget      Action = "raise_budget"       // raise Budget of Member, or of the team if Member is ""
	ActConsolidate      Action = "consolidate"        // check and commit its work
	ActFinish           Action = "finish"             // finish the interrupted consolidation
	ActRollBack         Action = "roll_back"          // abandon the consolidation, and continue the team
	ActSkipCommit       Action = "skip_commit"        // complete the team without a commit
	ActGoWithout        Action = "go_without"         // complete the team without the work of Tasks
	ActKeepCheckChanges Action = "keep_check_changes" // also commit what the checks change
	ActIncludeFiles     Action = "include_files"      // also commit the files Paths, or files to name if it is empty
	ActCommitOnly       Action = "commit_only"        // commit only the files Paths, or files to name if it is empty
	ActCheckClean       Action = "check_clean"        // run the checks without uncommitted changes of the user
	ActSpawn            Action = "spawn"              // add the member Name with the agent Agent; any where they are ""
	ActSubmitPlan       Action = "submit_plan"        // submit a plan, as Member
	ActShutDown         Action = "shut_down"          // shut down Member, or any teammate if it is ""
	ActRejoin           Action = "rejoin"             // start the session of the external member Member again
	ActResend           Action = "resend"             // send the late messages of Member again
	ActLift             Action = "lift"               // have the rate-limited model of Member tried again now
	ActAsk              Action = "ask"                // send Member a question
	ActReadMail         Action = "read_mail"          // read the mail of Member
	ActClaimTask        Action = "claim_task"         // claim Task, as Member
	ActClaimNext        Action = "claim_next"         // claim another task, as Member
	ActReassign         Action = "reassign"           // give Task to another member
	ActRetryTask        Action = "retry_task"         // return Task to the queue
	ActSetCommand       Action = "set_command"        // give Task a new command
	ActDeleteTask       Action = "delete_task"        // delete Task
	ActRollBackTask     Action = "rollback_task"      // undo Task in the files Paths
	ActCompleteTask     Action = "complete_task"      // do Task, and complete it
	ActAssignTask       Action = "assign_task"        // name the member that does Task
	ActVerify           Action = "verify"             // accept or reject with Task what it verifies, and say why
	ActShowTeams        Action = "show_teams"
	ActShowTeam         Action = "show_team"
	ActShowWaiting      Action = "show_waiting" // list what waits for a person in the team Name
	ActShowAlive        Action = "show_alive"   // show which members are alive
	ActShowHosts        Action = "show_hosts"   // list the machines that run members by their labels
	ActShowTasks        Action = "show_tasks"
	ActShowTask         Action = "show_task"     // show Task
	ActInitStore        Action = "init_store"    // make the tables of a database for teams
	ActMigrateStore     Action = "migrate_store" // bring them to this version
	ActShowNotes        Action = "show_notes"
	ActDeleteNote       Action = "delete_note" // delete the note Note
	ActShowLog          Action = "show_log"
	ActFollowLog        Action = "follow_log" // watch the team run
	ActShowReview       Action = "show_review"
	ActRecordFacts      Action = "record_facts"
	ActTrust            Action = "trust"       // trust the hooks of the project in Dir, so that they run
	ActRevertWork       Action = "revert_work" // change the files in the work tree Dir back from the commit From to To
	// show the files Paths of the commit or tree From, in the repository Dir, or list all if Paths
	// is empty
	ActShowFile   Action = "show_file"
	ActKeepCommit Action = "keep_commit" // put the commit From on a branch of the repository Dir

	ActForgetWorktree Action = "forget_worktree" // remove the record of the worktree Name from the repository Dir
	ActRepairWorktree Action = "repair_worktree" // join the worktree Name and its repository Dir again
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

// Hint suggests an action and its object. A program carries it out with the methods of a [Team], or
// words it for its own users.
type Hint struct {
	Action Action
	Team   string
	Member string
	Task   string
	// TaskName is the name of Task, if it has one.
	TaskName string
	// TaskRef is the number of Task with a mark (#3), if it has no name and another task is named
	// 3.
	TaskRef string
	Note    string // key of the note
	Request string
	// Name is for spawn a free name, or "" for any; for release the machine that has the team, or
	// "" for this one; else of a remote, a branch or a worktree.
	Name   string
	Agent  string     // spawn
	Budget BudgetKind // raise_budget
	Dir    string     // move, trust, and the actions of git
	From   string     // revert_work, show_file, keep_commit, push_commit, revert_commit: id of the commit or tree
	To     string     // revert_work, revert_commit: id of a commit
	Tasks  []string   // go_without
	Paths  []string   // include_files, commit_only, rollback_task, show_file
}

// Purpose says in a few words what the action is for. It can follow "to": "take the lead".
func (h Hint) Purpose() string { return h.core().Purpose() }

func hint(h team.Hint) Hint {
	return Hint{Action(h.Action), h.Team, h.Member, h.Task, h.TaskName, h.TaskRef, h.Note, h.Request, h.Name, h.Agent,
		BudgetKind(h.Budget), h.Dir, h.From, h.To, h.Tasks, h.Paths}
}

func (h Hint) core() team.Hint {
	return team.Hint{Action: team.Action(h.Action), Team: h.Team, Member: h.Member, Task: h.Task,
		TaskName: h.TaskName, TaskRef: h.TaskRef, Note: h.Note, Request: h.Request, Name: h.Name, Agent: h.Agent,
		Budget: string(h.Budget), Dir: h.Dir, From: h.From, To: h.To, Tasks: h.Tasks, Paths: h.Paths}
}

// hintsOf returns the hints of an error of the packages below.
func hintsOf(err error) (all []Hint) {
	for _, h := range replica.HintsOf(err) {
		all = append(all, hint(h))
	}
	return all
}
