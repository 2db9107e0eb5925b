package replica

import (
	"context"
	"errors"

	"cadre/internal/journal"
	"cadre/internal/journal/recorded"
	"cadre/internal/team"
)

// Notes is an actor's handle on the notes of a team, for a process that sends one command. It reads
// an outline of the team, which takes a fraction of the time of the state: commands about notes
// have no hooks, and nothing outside the team shows notes. It belongs to one goroutine.
type Notes struct {
	opts    Options
	journal journal.Journal
	outline *team.Outline
}

// OpenNotes reads the notes from the journal, which it closes when it fails. It uses Log, Stamp,
// Now and NewID of the options.
func OpenNotes(ctx context.Context, j journal.Journal, opts Options) (*Notes, error) {
	o, err := recorded.Outline(ctx, j, opts.Log)
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	return &Notes{opts.orDefaults(), j, o}, nil
}

// Outline returns the team as the handle has seen it last.
func (n *Notes) Outline() *team.Outline { return n.outline }

// Overdue reports whether something is to be recorded before a command. Only a [Replica] does it.
func (n *Notes) Overdue() bool { return n.outline.Overdue(n.opts.Now()) }

// Do sends a command about notes, with a new id and the present time. It returns when the command
// is durable. The record is nil when nothing changed. The error is a [*team.Error] if the team
// refuses.
func (n *Notes) Do(ctx context.Context, c team.Command) (*team.Record, error) {
	if n.opts.Stamp != nil {
		n.opts.Stamp(&c)
	}
	c.ID, c.At = n.opts.NewID(), n.opts.Now()
	apply := func(r journal.Record) error {
		record, err := team.DecodeRecord(r.Seq, string(r.Data))
		if err == nil {
			n.outline.Apply(record)
		}
		return err
	}
	var decision team.Decision
	_, err := n.journal.Append(ctx, n.outline.Seq(), apply, func() (_ []byte, err error) {
		if decision, err = n.outline.Decide(c); err != nil || decision.Record == nil {
			return nil, err
		}
		return team.AppendRecord(nil, decision.Record), nil
	})
	if err != nil {
		return nil, err
	}
	if decision.Record != nil {
		n.outline.Apply(decision.Record)
	}
	return decision.Record, nil
}

// SnapshotDue reports whether a snapshot is due. Only a [Replica] has the state to save one.
func (n *Notes) SnapshotDue() bool { return n.journal.SnapshotDue(0) }

// Close closes the journal.
func (n *Notes) Close() error { return n.journal.Close() }
