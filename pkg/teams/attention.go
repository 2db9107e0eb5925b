package teams

import (
	"context"
	"fmt"
	"slices"
	"time"

	"cadre/internal/inspect"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// Attention is one thing in a team that waits for a person, or for the lead where an agent leads
// that can see to it. The cadre program shows the same list, in the same order.
type Attention struct {
	Team     string // its name
	Kind     AttentionKind
	WaitsFor string    // [ForUser], or the name of the lead
	Member   string    // that it is about; "" for none
	Task     string    // id of the task that it is about
	Request  string    // id of the request that waits for an answer
	About    string    // the budget, check, hook or branch that it is about
	Since    time.Time // zero where nobody knows
	Deadline time.Time // when it is answered with no because nobody did; zero for never
	Text     string    // a sentence; it may quote what agents wrote
	Hint     Hint
}

// ForUser is [Attention].WaitsFor where the human whose team it is has to act.
const ForUser = team.ForUser

// Attention returns what waits for a person: open requests, members that failed or of which nothing
// is heard, tasks out of retries, a lead that was lost, a spent budget, and the like. Which
// processes are alive is looked at in the call.
func (v *View) Attention(ctx context.Context) ([]Attention, error) {
	return v.attention(ctx, &inspect.Looker{Replica: v.of.Replica, Dir: v.of.Dir})
}

func (v *View) attention(ctx context.Context, looker *inspect.Looker) (all []Attention, err error) {
	if err := v.of.Refresh(ctx); err != nil {
		return nil, public(err)
	}
	outside, err := looker.Look(ctx, time.Now())
	if err != nil {
		return nil, public(err)
	}
	v.of.View(func(s *team.State) {
		all = attentionOf(v.name, s.Attention(replica.Now(), outside))
	})
	return all, nil
}

func attentionOf(name string, items []team.Item) (all []Attention) {
	for _, i := range items {
		all = append(all, Attention{Team: name, Kind: AttentionKind(i.Kind), WaitsFor: i.WaitsFor, Member: i.Member,
			Task: i.Task, Request: i.Request, About: i.About, Since: clock(i.Since), Deadline: clock(i.Deadline),
			Text: i.Text, Hint: hint(i.Hint)})
	}
	return all
}

// AwaitAttention waits until something waits for the user, and returns the list as it is then. What
// is not recorded, such as the end of a process, it sees within two seconds. It is refused with
// Finished where the team has ended and nothing waits.
func (v *View) AwaitAttention(ctx context.Context) ([]Attention, error) {
	looker := &inspect.Looker{Replica: v.of.Replica, Dir: v.of.Dir}
	for {
		seq := v.of.Seq() // before the look, so that nothing after it is missed
		all, err := v.attention(ctx, looker)
		if err != nil || slices.ContainsFunc(all, func(a Attention) bool { return a.WaitsFor == ForUser }) {
			return all, err
		}
		over := false
		v.of.View(func(s *team.State) { over = ended(s) })
		if over {
			return nil, refuse(ErrFinished, fmt.Sprintf("team %s has ended, and nothing waits in it", v.name))
		}
		waiting, cancel := context.WithTimeout(ctx, inspect.MaxAge)
		err = v.of.Await(waiting, seq)
		expired := waiting.Err() != nil
		cancel()
		if err != nil && (ctx.Err() != nil || !expired) {
			return nil, public(err)
		}
	}
}
