package coordinator

import (
	"errors"

	"cadre/internal/engine"
	"cadre/internal/server/api"
	"cadre/internal/team"
)

// The codes of the protocol. Other errors have cadre's codes.
const (
	teamNotFound         = "TEAM_NOT_FOUND"
	teamAlreadyExists    = "TEAM_ALREADY_EXISTS"
	teamNotActive        = "TEAM_NOT_ACTIVE"
	teamHasActiveMembers = "TEAM_HAS_ACTIVE_MEMBERS"
	memberNotFound       = "MEMBER_NOT_FOUND"
	maxTeammatesReached  = "MAX_TEAMMATES_REACHED"
	sessionSpawnFailed   = "SESSION_SPAWN_FAILED"
	nestedTeams          = "NESTED_TEAMS_NOT_ALLOWED"
	oneTeamPerSession    = "ONE_TEAM_PER_SESSION"
	claimConflict        = "CLAIM_CONFLICT"
)

// Codes of a cursor that cannot be continued from, as in the HTTP API.
const (
	codeUsage = "usage"
	codeAhead = "ahead"
	codeGone  = "gone"
)

// step is the part of a request that failed.
type step int

const (
	atTeam    step = iota + 1 // looking for the team
	atMember                  // looking for a member
	atCreate                  // creating the team
	atSpawn                   // adding a teammate
	atSession                 // starting its session
	atClaim                   // claiming or completing a task
	atCleanUp                 // removing the team
	atChange                  // any change of a team that winds down or has ended
)

// translation is a row of the table of codes.
type translation struct {
	At   step
	Ours team.Code // "" for any error
	Is   string
	When string
}

// translations returns the table of codes: what a code of ours is called after a step.
func translations() []translation {
	return []translation{
		{atTeam, team.NotFound, teamNotFound, "no team has that id or name"},
		{atMember, team.NotFound, memberNotFound, "the team has no member of that name"},
		{atCreate, team.Taken, teamAlreadyExists, "the directory has a team of that name"},
		{atCreate, team.Denied, nestedTeams, "a member of a team asked for a team"},
		{atSpawn, team.MaxTeammatesReached, maxTeammatesReached,
			"the team has as many running teammates as it may have"},
		{atSession, "", sessionSpawnFailed,
			"the agent is not installed or not logged in, or no host can run its session"},
		{atClaim, team.Conflict, claimConflict, "another member has the task, or it is completed"},
		{atCleanUp, team.NotReady, teamHasActiveMembers, "a teammate has not ended"},
		{atChange, team.Finished, teamNotActive, "the team is complete, aborted or cleaned up"},
		{atChange, team.NotReady, teamNotActive, "the team winds down"},
	}
}

// stepError is an error with the step at which it came.
type stepError struct {
	error
	at step
}

func (e stepError) Unwrap() error { return e.error }

// at returns the error of a step; nil for nil.
func at(is step, err error) error {
	if err == nil {
		return nil
	}
	return stepError{err, is}
}

// protocolError is an error with a code of the protocol.
type protocolError struct {
	error
	code string
	seq  int64
}

func (e protocolError) Unwrap() error { return e.error }

// failureOf describes an error for clients.
func failureOf(err error) Failure {
	problem := api.ProblemOf(err)
	f := Failure{Code: problem.Code, Message: problem.Detail, Hints: problem.Hints}
	if problem.Note != nil {
		f.Note = new(noteOf(*problem.Note))
	}
	if is, ok := errors.AsType[protocolError](err); ok {
		f.Code, f.Seq = is.code, is.seq
		return f
	}
	if _, is := errors.AsType[usageError](err); is {
		f.Code = codeUsage
		return f
	}
	code := team.CodeOf(err)
	for is, ok := errors.AsType[stepError](err); ok; is, ok = errors.AsType[stepError](is.error) {
		for _, t := range translations() {
			if t.At == is.at && (t.Ours == code || t.Ours == "") {
				f.Code = t.Is
				return f
			}
		}
	}
	return f
}

// lost is the error for a cursor whose records cannot be read any more.
func lost(err error) error {
	if is, ok := errors.AsType[*engine.LostError](err); ok {
		return protocolError{err, codeGone, is.Next}
	}
	return err
}
