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

// Attention is one item in a team that waits for a person, or for an agent that leads and can
// handle it. The cadre program shows the same list, in the same order.
type Attention struct {
	Team     string // its name
	Kind     AttentionKind
	WaitsFor string    // [ForUser], or the name of the lead
	Member   string    // member that it concerns; "" for none
	Task     string    // id of the task that it is about
	Request  string    // id of the request that waits for an answer
	About    string    // the budget, check, hook or branch that it is about
	Since    time.Time // zero if unknown
	Deadline time.Time // when it is denied without an answer; zero for never
	Text     string    // a sentence; it may quote what agents wrote
	Hint     Hint
}

// ForUser is the value of [Attention].WaitsFor for an item that the user has to handle.
const ForUser = team.ForUser

// Attention returns the items that wait for a person: open requests, failed or offline members,
// tasks out of retries, a lost lead, a spent budget, and the like. It checks at the time of the
// call which processes are alive.
func (v *View) Attention(ctx context.Context) ([]Attention, error) {
	return v.attention(ctx, v.of.Looker())
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

// AwaitAttention waits until an item waits for the user, and returns the list at that time. It
// notices changes that are not recorded, such as the end of a process, within two seconds. It
// returns ErrFinished if the team has ended and nothing waits.
func (v *View) AwaitAttention(ctx context.Context) ([]Attention, error) {
	looker := v.of.Looker()
	for {
		seq := v.of.Seq() // taken first, so that no later change is missed
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
