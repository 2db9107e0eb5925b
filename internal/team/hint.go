package team

import (
	"fmt"
	"slices"
	"strings"
)

// Action is what would help somebody who was refused, or for whom something waits. It names no
// command and no tool: each front end says in its own terms how the action is done.
type Action string

// The actions of hints, with the fields of [Hint] that they use besides Team.
const (
	ActAnswerPermission Action = "answer_permission" // Request
	ActAnswerPlan       Action = "answer_plan"       // Request

	ActCreate       Action = "create"         // create the team; one by any name where Team is ""
	ActResume       Action = "resume"         // continue the team
	ActContinueCopy Action = "continue_copy"  // continue the team in another clone, from its checkpoints
	ActMove         Action = "move"           // say where the team's directory is now: Dir, or any where it is ""
	ActTakeOver     Action = "take_over"      // take the lead from the session that has it
	ActTakeBack     Action = "take_back"      // continue here what this machine let go of
	ActRelease      Action = "release"        // let go of the team, so that another machine can continue it
	ActPull         Action = "pull"           // fetch the team from where it is now
	ActCleanUp      Action = "clean_up"       // remove the team, which is over or observed
	ActForceCleanUp Action = "force_clean_up" // end everything of the team, and remove it
	ActMend         Action = "mend"           // look at the damaged history, and mend it
	ActRaiseBudget  Action = "raise_budget"   // Budget

	ActConsolidate      Action = "consolidate"        // check and commit its work
	ActFinish           Action = "finish"             // finish the consolidation that was begun
	ActRollBack         Action = "roll_back"          // give the consolidation up, and continue the team
	ActSkipCommit       Action = "skip_commit"        // complete the team without a commit
	ActGoWithout        Action = "go_without"         // complete the team without the work of Tasks
	ActKeepCheckChanges Action = "keep_check_changes" // commit what its checks change, too
	ActIncludeFiles     Action = "include_files"      // commit the files Paths, too
	ActCommitOnly       Action = "commit_only"        // commit nothing but named files; Paths, or any where it is empty
	ActCheckClean       Action = "check_clean"        // check without the changes of the person

	ActSpawn    Action = "spawn"     // add the member Name with the agent Agent; any where they are ""
	ActShutDown Action = "shut_down" // Member, or any teammate where it is ""
	ActRejoin   Action = "rejoin"    // start the session of the external member again
	ActResend   Action = "resend"    // send the late messages of Member again
	ActAsk      Action = "ask"       // ask Member with a message

	ActClaimTask    Action = "claim_task"    // Task, by Member
	ActClaimNext    Action = "claim_next"    // take the next task of the list, by Member
	ActReassign     Action = "reassign"      // give Task to somebody else
	ActRetryTask    Action = "retry_task"    // return Task to the queue
	ActCompleteTask Action = "complete_task" // do Task, and complete it
	ActAssignTask   Action = "assign_task"   // say who is to do Task

	ActShowTeam    Action = "show_team"
	ActShowAlive   Action = "show_alive" // show which members are alive
	ActShowTasks   Action = "show_tasks"
	ActShowTask    Action = "show_task" // Task
	ActShowLog     Action = "show_log"
	ActFollowLog   Action = "follow_log" // watch the team run
	ActShowReview  Action = "show_review"
	ActRecordFacts Action = "record_facts"
)

// Actions returns every action that a hint can name.
func Actions() []Action {
	return []Action{ActAnswerPermission, ActAnswerPlan, ActCreate, ActResume, ActContinueCopy, ActMove, ActTakeOver,
		ActTakeBack, ActRelease, ActPull, ActCleanUp, ActForceCleanUp, ActMend, ActRaiseBudget, ActConsolidate, ActFinish,
		ActRollBack, ActSkipCommit, ActGoWithout, ActKeepCheckChanges, ActIncludeFiles, ActCommitOnly, ActCheckClean,
		ActSpawn, ActShutDown, ActRejoin, ActResend, ActAsk, ActClaimTask, ActClaimNext, ActReassign, ActRetryTask,
		ActCompleteTask, ActAssignTask, ActShowTeam, ActShowAlive, ActShowTasks, ActShowTask, ActShowLog, ActFollowLog,
		ActShowReview, ActRecordFacts}
}

// Hint says which action would help, and on what. It is data: a front end renders it, and may
// leave out what it has no way to do.
type Hint struct {
	Action  Action   `json:"action"`
	Team    string   `json:"team,omitempty"`
	Member  string   `json:"member,omitempty"`
	Task    string   `json:"task,omitempty"`
	Request string   `json:"request,omitempty"`
	Name    string   `json:"name,omitempty"`   // spawn: a free name, or "" for any
	Agent   string   `json:"agent,omitempty"`  // spawn
	Budget  string   `json:"budget,omitempty"` // raise_budget: tokens, cost or time
	Dir     string   `json:"dir,omitempty"`    // move
	Tasks   []string `json:"tasks,omitempty"`  // go_without
	Paths   []string `json:"paths,omitempty"`  // include_files, commit_only
}

// Purpose says in a few words what the action is good for, to stand behind "to": "take the lead".
func (h Hint) Purpose() string {
	switch h.Action {
	case ActAnswerPermission:
		return "answer the request"
	case ActAnswerPlan:
		return "answer the plan"
	case ActCreate:
		return "create one"
	case ActResume:
		return "resume the team"
	case ActContinueCopy:
		return "continue in another clone"
	case ActMove:
		if h.Dir != "" {
			return "continue there"
		}
		return "say where it was moved to"
	case ActTakeOver:
		return "take the lead"
	case ActTakeBack:
		return "take the team back, where it runs nowhere else"
	case ActRelease:
		return "let go of the team"
	case ActPull:
		return "see what became of it"
	case ActCleanUp:
		return "remove the team"
	case ActForceCleanUp:
		return "end and remove the whole team"
	case ActMend:
		return "look at it and mend it"
	case ActRaiseBudget:
		return "raise the budget"
	case ActConsolidate:
		return "check and commit its work"
	case ActFinish:
		return "finish the consolidation"
	case ActRollBack:
		return "give the consolidation up and continue the team"
	case ActSkipCommit:
		return "complete the team without a commit"
	case ActGoWithout:
		return "complete the team without that work"
	case ActKeepCheckChanges:
		return "commit what the checks change, too"
	case ActIncludeFiles:
		return "commit " + strings.Join(h.Paths, ", ") + ", too"
	case ActCommitOnly:
		return "name the files to commit"
	case ActCheckClean:
		return "run the checks without your changes"
	case ActSpawn:
		return "add " + orA(h.Name, "teammate")
	case ActShutDown:
		return "shut down " + orA(h.Member, "teammate that is not needed")
	case ActRejoin:
		return "start the session of " + h.Member + " again"
	case ActResend:
		return "send the messages again"
	case ActAsk:
		return "ask " + h.Member
	case ActClaimTask:
		return "claim it"
	case ActClaimNext:
		return "take another one"
	case ActReassign:
		return "give task " + h.Task + " to somebody else"
	case ActRetryTask:
		return "return task " + h.Task + " to the queue"
	case ActCompleteTask:
		return "complete task " + h.Task
	case ActAssignTask:
		return "say who does task " + h.Task
	case ActShowTeam:
		return "look at the team"
	case ActShowAlive:
		return "see who is alive"
	case ActShowTasks:
		return "see the tasks"
	case ActShowTask:
		return "look at task " + h.Task
	case ActShowLog:
		return "see the history"
	case ActFollowLog:
		return "follow it"
	case ActShowReview:
		return "see what it did"
	case ActRecordFacts:
		return "record the facts as they are now"
	}
	return ""
}

func orA(name, what string) string {
	if name != "" {
		return name
	}
	return "a " + what
}

// HintsOf returns the hints of all errors in err's tree, each once.
func HintsOf(err error) (all []Hint) {
	switch e := err.(type) { // errors.As finds the first one of a tree, and not the others
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

// Hinted adds hints to an error that is no refusal.
func Hinted(err error, hints ...Hint) error { return &hinted{err, hints} }

type hinted struct {
	error
	help []Hint
}

func (e *hinted) Hints() []Hint { return e.help }
func (e *hinted) Unwrap() error { return e.error }

// hint is one on the team itself.
func (t *Team) hint(a Action) Hint { return Hint{Action: a, Team: t.Name} }
