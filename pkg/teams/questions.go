package teams

import (
	"context"
	"iter"
	"time"

	"cadre/internal/engine"
	"cadre/internal/team"
)

// Question waits for the user: a request to use a tool or, if this program leads, a member's plan.
type Question struct {
	Request  string    // its id
	Member   string    // who asks
	Tool     string    // Claude Code's name for its kind, such as Bash or Edit; "" for a plan
	Input    string    // what the tool would be given, as JSON
	Plan     string    // "" for a tool
	Deadline time.Time // when it is denied without an answer; zero for never
}

// Questions yields each question that waits for the user, now and later, once. The lead's program
// speaks for the user. Requests that the rules decide, or that an agent that leads decides, are not
// included. Answer with [Team.Approve] or [Team.Decline]. The sequence ends with the team. It ends
// with an error, as the last pair, when ctx or the manager ends, and with ErrDenied for the manager
// of a teammate.
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

// questions returns the questions that wait for the user.
func questions(s *team.State) (open []Question) {
	for _, q := range engine.Questions(s) {
		open = append(open, Question{Request: q.Request, Member: q.Member, Tool: q.Tool, Input: q.Input, Plan: q.Plan,
			Deadline: clock(q.Deadline)})
	}
	return open
}

// Approve answers a question with yes: the member may use the tool, or carry out the plan. The
// words are for the member. The first answer counts. If a question was answered elsewhere or timed
// out, Approve returns ErrConflict and names who answered. If the session that asked has ended, it
// returns ErrNotFound.
func (t *Team) Approve(ctx context.Context, q Question, words string) error {
	if q.Plan == "" {
		return t.AllowPermission(ctx, q.Request, words)
	}
	return t.ApprovePlan(ctx, q.Request, words)
}

// Decline answers a question with no; see Approve. The rejection of a plan needs words that say
// what is missing.
func (t *Team) Decline(ctx context.Context, q Question, words string) error {
	if q.Plan == "" {
		return t.DenyPermission(ctx, q.Request, words)
	}
	return t.RejectPlan(ctx, q.Request, words)
}
