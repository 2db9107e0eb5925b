package web

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"cadre/internal/engine"
	"cadre/internal/inspect/history"
	"cadre/internal/team"
)

// account is what happened to a task: how often it was tried, and what was said about it.
type account struct {
	Attempts []attempt `json:"attempts"`
	Mentions []mention `json:"mentions"`
}

// attempt is a time in which a member held a task.
type attempt struct {
	Member     string      `json:"member"`
	Seq        int64       `json:"seq"` // of the record in which it began
	Began      team.Time   `json:"began"`
	EndSeq     int64       `json:"endSeq,omitempty"` // 0 while it runs
	Ended      team.Time   `json:"ended,omitempty"`
	How        string      `json:"how,omitempty"` // how it ended
	Reason     string      `json:"reason,omitempty"`
	Rejections []rejection `json:"rejections,omitempty"`
}

// rejection is a quality gate's answer that a task is not done.
type rejection struct {
	Seq      int64     `json:"seq"`
	At       team.Time `json:"at"`
	Hook     string    `json:"hook"`
	Feedback string    `json:"feedback,omitempty"`
}

// mention is a message that names a task.
type mention struct {
	Seq  int64     `json:"seq"`
	At   team.Time `json:"at"`
	From string    `json:"from"`
	To   string    `json:"to"`
	Text string    `json:"text"`
}

// accountOf returns what happened to the task, in the whole history that was read.
func accountOf(tasks *history.Tasks, id string) account {
	is := account{[]attempt{}, []mention{}}
	for _, a := range tasks.Attempts(id, 0) {
		one := attempt{a.Member, a.Seq, a.Began, a.EndSeq, a.Ended, a.How, a.Reason, nil}
		for _, r := range a.Rejections {
			one.Rejections = append(one.Rejections, rejection{r.Seq, r.At, r.Hook, r.Feedback})
		}
		is.Attempts = append(is.Attempts, one)
	}
	for _, m := range tasks.Mentions(id, 0) {
		is.Mentions = append(is.Mentions, mention{m.Seq, m.At, m.From, m.To, m.Text})
	}
	return is
}

// recall calls read with the history of the team of the route, which is read as far as it goes.
func (b *Board) recall(v *view, read func(*recalled) error) error {
	t, err := v.look()
	if err != nil {
		return err
	}
	defer t.Close()
	return b.of(t.Team().ID).recalled(v.Context(), t, read)
}

// recalled calls read with the history of the team, which is read as far as it goes.
func (k *known) recalled(ctx context.Context, t *engine.Team, read func(*recalled) error) error {
	h := &k.recall
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.read(ctx, t, latest); err != nil {
		return err
	}
	return read(h)
}

// account answers with what happened to the task of the route.
func (b *Board) account(v *view) (any, error) {
	var is account
	err := b.recall(v, func(h *recalled) error {
		is = accountOf(&h.tasks, v.PathValue("task"))
		return nil
	})
	return is, err
}

// marks answers with the records worth a look, from those after the record after.
func (b *Board) marks(v *view) (any, error) {
	after, err := v.number("after", 0, latest)
	if err != nil {
		return nil, err
	}
	t, err := v.look()
	if err != nil {
		return nil, err
	}
	defer t.Close()
	is := struct {
		Marks []point `json:"marks"`
		Seq   int64   `json:"seq"` // the last record that was read
	}{}
	is.Marks, is.Seq, err = b.of(t.Team().ID).marksAfter(v.Context(), t, after)
	return is, err
}

// marksAfter returns the marks after a record, and the last record that was read.
func (k *known) marksAfter(ctx context.Context, t *engine.Team, after int64) (all []point, seq int64, err error) {
	all = []point{}
	err = k.recalled(ctx, t, func(h *recalled) error {
		seq = h.seq
		marks := h.marks.All()
		first, _ := slices.BinarySearchFunc(marks, after+1,
			func(m history.Mark, seq int64) int { return cmp.Compare(m.Seq, seq) })
		for _, m := range marks[first:] {
			all = append(all, pointOf(m))
		}
		return nil
	})
	return all, seq, err
}

// messages answers with the messages of the records after the record after, and the last record
// that was read.
func (b *Board) messages(v *view) (any, error) {
	after, err := v.number("after", 0, latest)
	if err != nil {
		return nil, err
	}
	t, err := v.look()
	if err != nil {
		return nil, err
	}
	defer t.Close()
	is := struct {
		Messages []history.MailboxMessage `json:"messages"`
		Seq      int64                    `json:"seq"`
		Last     int64                    `json:"last"` // the last record that there is
	}{nil, after, t.Seq()}
	is.Messages, err = history.Messages(func(yield func(*team.Record, error) bool) {
		n := 0
		for r, err := range t.Records(v.Context(), after) {
			lost, damaged := errors.AsType[*engine.LostError](err)
			switch {
			case damaged:
				is.Seq = max(is.Seq, lost.Next)
				continue
			case err != nil:
				yield(nil, err)
				return
			case n == mostMessages || !yield(r, nil):
				return
			}
			is.Seq = r.Seq
			n++
		}
		is.Last = is.Seq
	})
	if is.Messages == nil {
		is.Messages = []history.MailboxMessage{}
	}
	return is, err
}

// mostMessages bounds the records that are read for the messages of one answer.
const mostMessages = 20_000

// point is a record worth a look, as the API has it.
type point struct {
	Seq    int64     `json:"seq"`
	At     team.Time `json:"at"`
	Kind   string    `json:"kind"`
	Event  string    `json:"event"`
	Member string    `json:"member,omitempty"`
	Task   string    `json:"task,omitempty"`
}

func pointOf(m history.Mark) point {
	return point{m.Seq, m.At, string(m.Kind), m.Event, m.Member, m.Task}
}
