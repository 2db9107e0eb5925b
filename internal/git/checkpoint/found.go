package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cadre/internal/git"
	"cadre/internal/team"
)

// Found is a checkpoint in the repository.
type Found struct {
	Checkpoint
	Ref      string // cadre/TEAM, or REMOTE/cadre/TEAM for a remote's branch as of the last fetch
	Own      bool   // it is the repository's own branch
	By       string // author of the commit
	Work     Work
	Before   []Ended // histories that its own continues, the oldest first
	Released bool    // the machine released the team with it
	Heard    team.Time
}

// Found returns the newest checkpoint of the team's own branch, and of each remote's branch as of
// the last fetch. It skips a remote's branch without checkpoints of this team.
func (s *Store) Found(ctx context.Context) ([]Found, error) {
	b, ok := s.shelf.(*branch)
	if !ok {
		return nil, s.none()
	}
	out, err := b.git.Run(ctx, nil, "for-each-ref", "--format=%(objectname) %(refname) %(authorname)", b.ref(),
		"refs/remotes/*/"+b.name)
	if err != nil {
		return nil, err
	}
	var all []Found
	for line := range strings.Lines(string(out)) {
		parts := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(parts) < 2 {
			continue
		}
		own := parts[1] == b.ref()
		at, err := b.loadAt(ctx, parts[0])
		if damage := (*DamageError)(nil); errors.As(err, &damage) && !own {
			continue
		}
		if err != nil || at == nil {
			return nil, err
		}
		doc := at.image.doc
		if doc.TeamName != s.team {
			if own {
				return nil, s.damaged("it is of a team named %s", doc.TeamName)
			}
			continue
		}
		f := s.found(at)
		f.Ref, f.Own = strings.TrimPrefix(strings.TrimPrefix(parts[1], "refs/heads/"), "refs/remotes/"), own
		if len(parts) == 3 {
			f.By = parts[2]
		}
		all = append(all, f)
	}
	return all, nil
}

// found describes a checkpoint without its place.
func (s *Store) found(at *tip) Found {
	doc := at.image.doc
	f := Found{Checkpoint: s.describe(at), Work: doc.Work, Before: doc.Before, Released: doc.Released,
		Heard: doc.Updated}
	for _, m := range doc.Teammates {
		f.Heard = max(f.Heard, m.Heartbeat)
	}
	return f
}

// Newest returns the checkpoint that is a successor of all others. If there is none, the error is a
// [*ForkError].
func (s *Store) Newest(ctx context.Context, found []Found) (Found, error) {
	if len(found) == 0 {
		return Found{}, s.none()
	}
	var tops []Found
	for i, f := range found {
		under := false
		for j, other := range found {
			if i == j || under {
				continue
			}
			if f.Commit == other.Commit {
				under = j < i // of two equal ones, the first counts
				continue
			}
			var err error
			if under, err = s.Leads(ctx, f.Commit, other.Commit); err != nil {
				return Found{}, err
			}
		}
		if !under {
			tops = append(tops, f)
		}
	}
	if len(tops) == 1 {
		return tops[0], nil
	}
	return Found{}, fork(s.team, tops)
}

// Leads reports whether one commit is an ancestor of the other, or the same.
func (s *Store) Leads(ctx context.Context, from, to string) (bool, error) {
	b, ok := s.shelf.(*branch)
	if !ok || from == "" || to == "" {
		return false, nil
	}
	return b.git.Holds(ctx, "merge-base", "--is-ancestor", from, to)
}

// Side is one of two histories of a team.
type Side struct {
	Ref     string // "" for the local team
	Machine string
	By      string
	At      team.Time // of its last record
	Records int64     // since the histories parted
	Commit  string
}

func (s Side) String() string {
	what := s.Ref
	if what == "" {
		what = "here"
	}
	said := fmt.Sprintf("%s: %s since then, the last of %s", what, team.Count(s.Records, "record"), Date(s.At))
	if s.Machine != "" {
		said += " on " + s.Machine
	}
	if s.By != "" {
		said += " (" + s.By + ")"
	}
	return said
}

// Date formats a time of a checkpoint, which may come from any machine.
func Date(t team.Time) string { return time.UnixMilli(int64(t)).UTC().Format("2006-01-02 15:04 UTC") }

// ForkError reports two histories of a team, neither of which continues the other. Only the user
// can choose between them.
type ForkError struct {
	Team  string
	Since int64 // number of records that they have in common
	Sides []Side
}

func (e *ForkError) Error() string {
	sides := make([]string, len(e.Sides))
	for i, s := range e.Sides {
		sides[i] = s.String()
	}
	since := "nothing in common"
	if e.Since > 0 {
		since = team.Count(e.Since, "record") + " in common"
	}
	return fmt.Sprintf("team %s has two histories, with %s:\n%s", e.Team, since, strings.Join(sides, "\n"))
}

func (e *ForkError) Unwrap() error { return ErrForked }

func fork(name string, tops []Found) error {
	e := &ForkError{Team: name, Since: -1}
	for _, f := range tops[1:] {
		common := parting(tops[0].line(), f.line())
		if tops[0].Team != f.Team {
			common = 0
		}
		if e.Since < 0 || common < e.Since {
			e.Since = common
		}
	}
	for _, f := range tops {
		e.Sides = append(e.Sides, f.Side(e.Since))
	}
	return e
}

// Side describes the checkpoint as one of two histories that have that many records in common.
func (f Found) Side(since int64) Side {
	return Side{Ref: f.Ref, Machine: f.Work.Machine, By: f.By, At: f.At, Records: f.Seq - since, Commit: f.Commit}
}

// line returns the histories of a checkpoint, its own last.
func (f Found) line() []Ended { return append(slices.Clip(f.Before), Ended{f.History, f.Seq}) }

// parting returns how many records two lines of histories have in common.
func parting(a, b []Ended) int64 {
	for i := len(a) - 1; i >= 0; i-- {
		for _, other := range b {
			if other.History == a[i].History {
				return min(a[i].Seq, other.Seq)
			}
		}
	}
	return 0
}

// Relation relates a checkpoint to the local team.
type Relation int

// The values of [Relation].
const (
	Behind  Relation = iota // the local team has all of it
	Ahead                   // it has all of the local team, and more
	Forked                  // each has records that the other lacks
	Another                 // it belongs to another team of that name
)

// Compare relates the checkpoint to a local team, and returns how many records they have in common.
// found are all checkpoints; they show where the team comes from.
func (f Found) Compare(s *team.State, found []Found) (Relation, int64) {
	t := s.Team()
	if f.Team != t.ID {
		return Another, 0
	}
	ours := []Ended{{t.Restored.ID, s.Position()}}
	if t.Restored.ID != "" {
		ours = []Ended{{t.Restored.From, t.Restored.Seq}, ours[0]}
	}
	for _, other := range found {
		line := other.line()
		if i := slices.IndexFunc(line, func(e Ended) bool { return e.History == t.Restored.ID }); i > 0 &&
			other.Team == t.ID {
			ours = append(slices.Clone(line[:i]), ours[len(ours)-1])
			break
		}
	}
	switch common := parting(ours, f.line()); {
	case common >= f.Seq:
		return Behind, common
	case common >= s.Position():
		return Ahead, common
	default:
		return Forked, common
	}
}

// Settle lets the team's branch continue from one commit, and abandons the others. Those stay
// reachable, and count as decided. It returns errMoved if another process moves the branch in the
// meantime.
func (s *Store) Settle(ctx context.Context, keep string, leave ...string) error {
	b, ok := s.shelf.(*branch)
	if !ok {
		return s.none()
	}
	now, err := b.git.Text(ctx, "rev-parse", "--verify", "--quiet", b.ref())
	if refused, no := errors.AsType[*git.Refusal](err); no && refused.Status == 1 {
		now = b.null
	} else if err != nil {
		return err
	}
	args := []string{"commit-tree", keep + "^{tree}", "-F", "-", "-p", keep}
	short := []string{}
	for _, other := range leave {
		if in, err := s.Leads(ctx, other, keep); err != nil {
			return err
		} else if !in {
			args = append(args, "-p", other)
			short = append(short, fmt.Sprintf("%.12s", other))
		}
	}
	id := keep
	if len(short) > 0 {
		text := fmt.Sprintf("%s: continued from %.12s, not from %s\n\n[skip ci]\n", s.team, keep,
			strings.Join(short, ", "))
		out, err := b.git.Committing(ctx).Run(ctx, []byte(text), args...)
		if err != nil {
			return b.failed(err)
		}
		id = strings.TrimSpace(string(out))
	}
	s.mu.Lock()
	s.last = nil
	s.mu.Unlock()
	if id == now {
		return nil
	}
	if err := b.git.UpdateOwn(ctx, b.ref(), "-m", "checkpoints of another history are left", b.ref(), id,
		now); err != nil {
		return b.failed(err)
	}
	return nil
}

// Last returns the newest checkpoint of that history among the ancestors of a commit; "" if there
// is none.
func (s *Store) Last(ctx context.Context, history, from string) (string, error) {
	b, ok := s.shelf.(*branch)
	if !ok {
		return "", nil
	}
	const most = 5000
	out, err := b.git.Text(ctx, "rev-list", "--first-parent", fmt.Sprint("--max-count=", most), from)
	if err != nil {
		return "", err
	}
	for commit := range strings.Lines(out) {
		commit = strings.TrimSpace(commit)
		at, err := b.loadAt(ctx, commit)
		if damage := (*DamageError)(nil); errors.As(err, &damage) { // the line starts before the first checkpoint
			return "", nil
		}
		if err != nil {
			return "", err
		}
		if at != nil && at.image.doc.History == history {
			return commit, nil
		}
	}
	return "", nil
}

// Branches creates the branches of members that a checkpoint carries, or fast-forwards them, and
// the team's own branch. A branch with other commits, or whose commit is missing here, is left
// unchanged and returned.
func (s *Store) Branches(ctx context.Context, r *Restored) (left []Tip, err error) {
	b, ok := s.shelf.(*branch)
	if !ok {
		return nil, nil
	}
	for _, t := range append(slices.Clone(r.Work.Branches), Tip{b.name, r.Commit}) {
		if t.Name != b.name && !strings.HasPrefix(t.Name, b.name+"@") {
			continue // touch only the team's branches, whatever a checkpoint says
		}
		stays, err := b.bring(ctx, s, t)
		if err != nil {
			return nil, err
		}
		if stays && t.Name != b.name {
			left = append(left, t)
		}
	}
	return left, nil
}

func (b *branch) bring(ctx context.Context, s *Store, t Tip) (stays bool, err error) {
	ref := "refs/heads/" + t.Name
	if ok, err := b.git.Holds(ctx, "cat-file", "-e", t.Commit+"^{commit}"); !ok {
		if _, refused := errors.AsType[*git.Refusal](err); refused || err == nil {
			return true, nil
		}
		return true, err
	}
	now, err := b.git.Text(ctx, "rev-parse", "--verify", "--quiet", ref)
	if refused, no := errors.AsType[*git.Refusal](err); no && refused.Status == 1 {
		now = ""
	} else if err != nil {
		return true, err
	}
	if now != "" {
		if has, err := s.Leads(ctx, t.Commit, now); has || err != nil {
			return false, err
		}
		follows, err := s.Leads(ctx, now, t.Commit)
		// its commits are part of an abandoned history, and stay reachable from the team's branch
		if err == nil && !follows {
			var line string
			if line, err = b.git.Text(ctx, "for-each-ref", "--format=%(objectname)", b.ref()); err == nil {
				follows, err = s.Leads(ctx, now, line)
			}
		}
		if !follows || err != nil {
			return true, err
		}
		// a worktree has that branch checked out
		if at, err := b.git.Text(ctx, "for-each-ref", "--format=%(worktreepath)", ref); at != "" || err != nil {
			return true, err
		}
	}
	old := now
	if old == "" {
		old = b.null
	}
	if err = b.git.UpdateOwn(ctx, ref, "-m", "from a checkpoint of the team", ref, t.Commit, old); err != nil {
		return true, b.failed(err)
	}
	return false, nil
}
