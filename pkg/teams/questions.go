package teams

import (
	"context"
	"iter"
	"time"

	"cadre/internal/engine"
	"cadre/internal/team"
)

// Question is something that waits for the user: leave for a member to use a tool or, where this
// program leads, a member's plan.
type Question struct {
	Request  string    // its id
	Member   string    // who asks
	Tool     string    // by Claude Code's name for its kind, such as Bash or Edit; "" for a plan
	Input    string    // what the tool would be given, as JSON
	Plan     string    // "" for a tool
	Deadline time.Time // when it is answered with no because nobody did; zero for never
}

// Questions yields what waits for the user's answer, now and later, each question once. The user is
// the human whose team it is, for whom the lead's program speaks; what the rules settle, and what
// an agent that leads is to decide, is not among it. [Team.Approve] and [Team.Decline] answer. It
// ends with the team, and with an error, the last pair, when ctx or the manager does, and with
// ErrDenied for the manager of a teammate.
//
//	for q, err := range team.Questions(ctx) {
//		if err != nil {
//			return err
//		}
//		if ask(q) {
//			err = team.Approve(ctx, q, "")
//		} else {
//			err = team.Decline(ctx, q, "because …")
//		}
//		…
//	}
func (t *Team) Questions(ctx context.Context) iter.Seq2[Question, error] {
	return func(yield func(Question, error) bool) {
		_, err := t.asUser("Team.Questions", "answer what the user is asked")
		if err == nil {
			err = public(t.of.Refresh(ctx))
		}
		if err != nil {
			yield(Question{}, err)
			return
		}
		yielded := map[string]bool{}
		for {
			var seq int64
			var over bool
			var open []Question
			t.of.View(func(s *team.State) {
				seq, over, open = s.Seq(), ended(s), questions(s)
			})
			if over {
				return
			}
			before := yielded
			yielded = map[string]bool{}
			for _, q := range open {
				yielded[q.Request] = true
				if !before[q.Request] && !yield(q, nil) {
					return
				}
			}
			if err := t.of.Await(ctx, seq); err != nil {
				yield(Question{}, public(err))
				return
			}
		}
	}
}

func ended(s *team.State) bool {
	t := s.Team()
	return !s.Exists() || t.Status == team.TeamComplete || t.Status == team.TeamAborted
}

// questions are those that wait for the user.
func questions(s *team.State) (open []Question) {
	for _, q := range engine.Questions(s) {
		open = append(open, Question{Request: q.Request, Member: q.Member, Tool: q.Tool, Input: q.Input, Plan: q.Plan,
			Deadline: clock(q.Deadline)})
	}
	return open
}

// Approve answers a question with yes: the tool may be used, or the plan be carried out. The words
// are for the member. The first answer counts: a question that was answered elsewhere meanwhile, or
// timed out, is refused with ErrConflict and who answered it, and one whose session ended with
// ErrNotFound.
func (t *Team) Approve(ctx context.Context, q Question, words string) error {
	if q.Plan == "" {
		return t.AllowPermission(ctx, q.Request, words)
	}
	return t.ApprovePlan(ctx, q.Request, words)
}

// Decline answers a question with no, as Approve does with yes. The rejection of a plan needs words
// that say what it lacks.
func (t *Team) Decline(ctx context.Context, q Question, words string) error {
	if q.Plan == "" {
		return t.DenyPermission(ctx, q.Request, words)
	}
	return t.RejectPlan(ctx, q.Request, words)
}
