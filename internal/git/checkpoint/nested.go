package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"cadre/internal/team"
)

// Nested is a team in the team, as a checkpoint carries it: the commit of its own checkpoint is a
// parent of the commit, so a clone that has the one branch has the whole tree.
type Nested struct {
	Team    string `json:"team_id"`
	Name    string `json:"team_name"`
	Commit  string `json:"commit,omitempty"` // of its checkpoint; "" if none is carried
	Seq     int64  `json:"checkpoint_sequence,omitempty"`
	History string `json:"history,omitempty"` // which of its histories
	// why the commit is not its present state, or missing; "" if all is well
	Why string `json:"why,omitempty"`
	// paths of a directory of its own that its checkpoint does not carry; the first ones, and the
	// number of further ones
	Left []Left `json:"left,omitempty"`
	More int    `json:"left_more,omitempty"`
}

// is reports whether two checkpoints carry the same of the team.
func (n Nested) is(o Nested) bool { return n.Team == o.Team && n.Commit == o.Commit && n.Why == o.Why }

// of returns the branch of another team in the same repository.
func (b *branch) of(name string) *branch {
	return &branch{git: b.git, repo: b.repo, name: "cadre/" + name, dir: ".claude/teams/" + name, null: b.null,
		files: b.files, top: b.top}
}

// Of returns the store of a team in the team, whose branch is in the same repository. It is for
// reading: it never writes beside the team.
func (s *Store) Of(n Nested) (*Store, error) {
	b, ok := s.shelf.(*branch)
	if !ok {
		return nil, s.none()
	}
	if err := team.CheckName("team", n.Name); err != nil {
		return nil, s.damaged("it names a team %.100q in it", n.Name)
	}
	return &Store{team: n.Name, shelf: b.of(n.Name)}, nil
}

// readTree reads the team, and then has checkpoints made of the teams in it. So they are at least
// as new as what is read: mail that the team gave away is theirs. If the team was given mail
// meanwhile, that may be missing in both. It is then read again, with new checkpoints.
func (d *draft) readTree(ctx context.Context, source Source, after, seq int64, beside Beside, b *branch) error {
	for {
		var err error
		if after, err = d.readAll(ctx, source, after, seq, beside); err != nil {
			return err
		}
		if b == nil || beside.Nested == nil || len(d.team.Children) == 0 {
			return nil
		}
		all, err := beside.Nested(ctx, d.team)
		if err != nil {
			return err
		}
		if d.doc.Nested, err = b.nested(ctx, all, d.prev); err != nil {
			return err
		}
		heard := true
		source.View(func(state *team.State) {
			heard, seq = sameMail(d.team.Children, state.Team().Children), state.Seq()
		})
		if heard {
			return nil
		}
	}
}

// sameMail reports whether the team was given no mail of the teams in it meanwhile.
func sameMail(before, now []team.Child) bool {
	return !slices.ContainsFunc(before, func(c team.Child) bool {
		return slices.ContainsFunc(now, func(n team.Child) bool { return n.Team == c.Team && n.Heard != c.Heard })
	})
}

// nested completes what a checkpoint carries of the teams, from their branches. Where the branch of
// one has no checkpoint of it, what the last checkpoint carried stays.
func (b *branch) nested(ctx context.Context, all []Nested, prev *image) ([]Nested, error) {
	for i := range all {
		n := &all[i]
		own := b.of(n.Name)
		at, err := own.load(ctx)
		if damage := (*DamageError)(nil); errors.As(err, &damage) {
			n.Why = cmp.Or(n.Why, briefly(err))
		} else if err != nil {
			return nil, err
		}
		if at != nil && at.image.doc.TeamID == n.Team {
			doc := at.image.doc
			n.Commit, n.Seq, n.History = at.id, doc.Sequence, doc.History
			if doc.Work.Top != b.top {
				n.Left, n.More = doc.Work.Left, doc.Work.More
			}
			continue
		}
		n.Why = cmp.Or(n.Why, fmt.Sprintf("the branch %s has no checkpoint of it", own.name))
		if prev == nil {
			continue
		}
		for _, old := range prev.doc.Nested {
			if old.Team == n.Team && old.Commit != "" {
				why := n.Why
				*n = old
				n.Why = why
			}
		}
	}
	return all, nil
}

// tree returns the checkpoints that the checkpoint carries, however deep, after itself.
func (b *branch) tree(ctx context.Context, at *tip) ([]*tip, error) {
	all := []*tip{at}
	level := []*tip{at}
	for range team.MostDepth {
		var below []*tip
		for _, parent := range level {
			for _, n := range parent.image.doc.Nested {
				if n.Commit == "" || !team.ValidName(n.Name) {
					continue
				}
				one, err := b.of(n.Name).loadAt(ctx, n.Commit)
				if err != nil {
					return nil, err
				}
				if one != nil {
					below = append(below, one)
				}
			}
		}
		all, level = append(all, below...), below
	}
	return all, nil
}

// Rejoin moves the branch of a nested team to the checkpoint from which it is restored. Later and
// other checkpoints of it stay reachable: which one continues was decided for its parent. The error
// is [ErrTaken] if the branch belongs to another team that has not ended.
func (s *Store) Rejoin(ctx context.Context, r *Restored) error {
	b, ok := s.shelf.(*branch)
	if !ok {
		return s.none()
	}
	now, err := b.load(ctx)
	if err != nil {
		return err
	}
	if now != nil {
		doc := now.image.doc
		if doc.TeamID == r.Team && doc.History == r.History && doc.Sequence == r.Seq {
			return nil // a killed restoration came as far as this
		}
		if err := s.foreign(now, r.Team); err != nil {
			return err
		}
		return s.Settle(ctx, r.Commit, now.id)
	}
	return s.Settle(ctx, r.Commit)
}

// Free returns why the branch cannot continue from a checkpoint of the team with that id: it has a
// checkpoint of another team that has not ended, or belongs to another program. It returns nil if
// nothing is in the way.
func (s *Store) Free(ctx context.Context, id string) error {
	now, err := s.shelf.load(ctx)
	if err != nil || now == nil {
		return err
	}
	return s.foreign(now, id)
}

// foreign refuses a checkpoint of another team that has not ended.
func (s *Store) foreign(at *tip, id string) error {
	doc := at.image.doc
	if doc.TeamID == id || doc.Status.Ended() {
		return nil
	}
	err := fmt.Errorf("%w, on %s: team %s, which is %s", ErrTaken, s.shelf.place(), doc.TeamID, doc.Status)
	if b, ok := s.shelf.(*branch); ok {
		return team.Hinted(err, b.hint(team.ActRenameBranch, b.name))
	}
	return err
}

// At returns the checkpoint at that commit, like one that [Store.Found] returns.
func (s *Store) At(ctx context.Context, commit string) (Found, error) {
	b, ok := s.shelf.(*branch)
	if !ok {
		return Found{}, s.none()
	}
	at, err := b.loadAt(ctx, commit)
	if err != nil {
		return Found{}, err
	}
	if at == nil {
		return Found{}, s.damaged("the commit %.12s is missing", commit)
	}
	return s.found(at), nil
}
