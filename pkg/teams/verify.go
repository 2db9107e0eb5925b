package teams

import (
	"slices"

	"cadre/internal/team"
)

// Verify says who must accept a task before it counts as completed. Nobody verifies their own work.
type Verify struct {
	By     string     `json:"by"`               // a member, else a role
	Count  int        `json:"count,omitempty"`  // how many verify it; 0 for 1
	Rule   VerifyRule `json:"rule,omitempty"`   // "" for VerifyAll
	Rounds int        `json:"rounds,omitempty"` // after that many rejections the attempt has failed; 0 for 3
}

// VerifyRule says how many of those who verify a task must accept it.
type VerifyRule string

// The rules.
const (
	VerifyAll      VerifyRule = "all"      // each of them; the first rejection gives it back
	VerifyMajority VerifyRule = "majority" // more than half of them
)

// Verdict is what came of a task that verifies another one; "" before that.
type Verdict string

// The verdicts.
const (
	VerdictAccepted Verdict = "accepted"
	VerdictRejected Verdict = "rejected"
)

// Submission is a result that others verify.
type Submission struct {
	By     string   // member that submitted it
	Result string   // what it says
	Round  int      // number of the round, from 1
	Tasks  []string // ids of the tasks that verify it
}

func (v *Verify) core() *team.Verify {
	if v == nil {
		return nil
	}
	return &team.Verify{By: v.By, Count: int64(v.Count), Rule: string(v.Rule), Rounds: int64(v.Rounds)}
}

func verifyOf(v *team.Verify) *Verify {
	if v == nil {
		return nil
	}
	return &Verify{By: v.By, Count: int(v.Count), Rule: VerifyRule(v.Rule), Rounds: int(v.Rounds)}
}

func submissionOf(b *team.Submission) *Submission {
	if b == nil {
		return nil
	}
	return &Submission{By: b.By, Result: b.Result, Round: int(b.Round), Tasks: slices.Clone(b.Tasks)}
}
