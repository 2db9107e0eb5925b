package consolidate

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"cadre/internal/git/worktree"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// Plan says what a consolidation would do now, path by path. Making a plan changes nothing.
type Plan struct {
	Team     string   `json:"team"`               // the name of the team
	Parent   string   `json:"parent,omitempty"`   // the commit that the work would be committed on
	Paths    []Staged `json:"paths"`              // what would be committed, and then what would not
	Checks   []string `json:"checks"`             // the checks that run first
	Branches []string `json:"branches"`           // the branches of members that would be merged
	Obstacle string   `json:"obstacle,omitempty"` // why a consolidation is refused now
	Refused  error    `json:"-"`                  // the same with what helps; nil if nothing is in the way
	Top      string   `json:"-"`                  // the top of the work tree; "" without a repository
}

// Fate says what a consolidation does with a path.
type Fate string

// The fates of paths, in the order of a plan.
const (
	Conflicts Fate = "conflict" // its branch does not merge: with others, or because a file of the user is in the way
	Unclear   Fate = "unclear"  // it is unknown whose changes these are, so the consolidation is refused
	Commits   Fate = "commit"
	LeftOut   Fate = "left_out"
)

var fates = []Fate{Conflicts, Unclear, Commits, LeftOut}

// String returns the fate in words.
func (f Fate) String() string { return strings.ReplaceAll(string(f), "_", " ") }

// Staged is a path of a plan.
type Staged struct {
	Path   string   `json:"path"`             // from the top of the work tree
	Fate   Fate     `json:"fate"`             // conflict, unclear, commit or left_out
	Change string   `json:"change,omitempty"` // git's letter: A, D, M or T
	From   []string `json:"from,omitempty"`   // the members whose tasks changed it
	Branch string   `json:"branch,omitempty"` // the branch that it comes from; left out for the work tree
	Why    string   `json:"why,omitempty"`    // why it is not simply committed
}

// Changes says what happens to the path: added, changed or deleted; "" if that is not known.
func (s Staged) Changes() string {
	return map[string]string{"A": "added", "M": "changed", "D": "deleted", "T": "changed"}[s.Change]
}

// Origin says where the change comes from: members, and their branch.
func (s Staged) Origin() string {
	from := strings.Join(s.From, ", ")
	if s.Branch != "" {
		from += " (" + s.Branch + ")"
	}
	return from
}

// Count returns how many paths have that fate.
func (p *Plan) Count(f Fate) (n int) {
	for _, one := range p.Paths {
		if one.Fate == f {
			n++
		}
	}
	return n
}

// String sums the plan up in a sentence.
func (p *Plan) String() string {
	var parts []string
	add := func(n int, one, many string) {
		if n == 1 {
			parts = append(parts, "1 "+one)
		} else if n > 1 {
			parts = append(parts, fmt.Sprintf("%d %s", n, many))
		}
	}
	add(p.Count(Commits), "path to commit", "paths to commit")
	add(p.Count(Conflicts), "path in conflict", "paths in conflict")
	add(p.Count(Unclear), "path that is unclear", "paths that are unclear")
	add(p.Count(LeftOut), "path left out", "paths left out")
	add(len(p.Checks), "check", "checks")
	if len(parts) == 0 {
		return "nothing to commit"
	}
	return strings.Join(parts, ", ")
}

// Preview returns the plan of a consolidation with these options.
func Preview(ctx context.Context, o Options) (_ *Plan, err error) {
	w, ctx, done, err := prepare(ctx, o, false)
	if err != nil {
		return nil, err
	}
	defer done(&err)
	t := w.Replica.Team()
	p := &Plan{Team: t.Name, Paths: []Staged{}, Checks: []string{}, Branches: []string{}, Top: w.repo.top}
	for _, check := range t.Checks {
		p.Checks = append(p.Checks, check.Name)
	}
	if c := t.Consolidation; c.Open() {
		p.obstacle(notReady("consolidation %d is not finished; a consolidation continues it", c.Attempt).
			With(w.hint(team.ActFinish), w.hint(team.ActRollBack)))
		return p, nil
	}
	w.Replica.View(func(s *team.State) {
		_, err = team.Decide(s, team.Command{ID: "plan", At: replica.Now(), Actor: w.Actor,
			Body: &team.Consolidate{NoCommit: w.NoCommit, Without: w.Without}})
	})
	p.obstacle(err)
	c := team.Consolidation{Include: w.Include, Only: w.Only, NoCommit: w.NoCommit}
	commits, err := w.commits(ctx, c)
	if err == nil {
		err = w.whole(c)
	}
	if err != nil || !commits {
		p.obstacle(err)
		return p, lasting(err)
	}
	return p, w.preview(ctx, c, p)
}

// obstacle keeps the first refusal.
func (p *Plan) obstacle(err error) {
	if err != nil && p.Obstacle == "" {
		p.Obstacle, p.Refused = err.Error(), err
	}
}

// lasting returns nil for a refusal, and other errors unchanged.
func lasting(err error) error {
	if team.CodeOf(err) != "" {
		return nil
	}
	return err
}

// preview fills in the paths of the plan.
func (w *work) preview(ctx context.Context, c team.Consolidation, p *Plan) (err error) {
	advise := w.Advise
	w.Advise = func(team.Advice) {} // the plan lists these paths itself
	defer func() { w.Advise = advise }()
	s, err := w.selected(ctx, c)
	if err != nil {
		p.obstacle(err)
		return lasting(err)
	}
	_, err = w.ours(ctx, c)
	p.obstacle(err)
	if lasting(err) != nil {
		return err
	}
	for _, left := range []struct {
		paths []string
		fate  Fate
		why   string
	}{
		{s.both, Unclear, "it had changes before the team was created, and more since"},
		{s.strangers, LeftOut, ""},
		{s.yours, LeftOut, "it is as it was before the team was created"},
		{s.unnamed, LeftOut, isUnnamed},
	} {
		for _, path := range left.paths {
			p.Paths = append(p.Paths, Staged{Path: path, Fate: left.fate, Why: cmp.Or(left.why, s.why[path])})
		}
	}
	if p.Parent, err = w.repo.head(ctx); err != nil {
		return err
	}
	before, err := w.repo.stage(ctx, w.scratch("plan"), p.Parent, s.ours)
	if err != nil {
		return err
	}
	if err := w.commitsTo(ctx, p, p.Parent, before, nil, w.changers()); err != nil {
		return err
	}
	if p.Parent != "" {
		err = w.previewBranches(ctx, p, before)
	}
	slices.SortStableFunc(p.Paths, func(a, b Staged) int {
		return cmp.Or(slices.Index(fates, a.Fate)-slices.Index(fates, b.Fate), strings.Compare(a.Path, b.Path))
	})
	return err
}

// commitsTo adds the changes from one tree to the next, which would be committed.
func (w *work) commitsTo(ctx context.Context, p *Plan, from, to string, branch *team.Branch,
	by map[string][]string) error {
	changes, err := w.repo.changes(ctx, from, to)
	for _, one := range changes {
		path := Staged{Path: one.Path, Fate: Commits, Change: one.Letter, From: by[one.Path]}
		if branch != nil {
			path.From, path.Branch = []string{branch.Member}, branch.Name
		}
		p.Paths = append(p.Paths, path)
	}
	return err
}

// previewBranches adds the changes of the members' branches, each on top of the ones before.
func (w *work) previewBranches(ctx context.Context, p *Plan, before string) error {
	branches, err := w.present(ctx)
	if err != nil || len(branches) == 0 {
		return err
	}
	m, err := w.merging(ctx, p.Parent, before, branches)
	if err != nil {
		return err
	}
	for _, b := range branches {
		next, conflict, err := worktree.Join(ctx, w.procs, w.repo.top, m.ours, b.Commit)
		if err != nil {
			return err
		}
		if !conflict.None() {
			w.conflicting(p, b, conflict)
			if err := w.staying(ctx, p, m.ours, b, conflict.Files); err != nil {
				return err
			}
			continue
		}
		if err := os.MkdirAll(w.scratch(""), 0o700); err != nil {
			return err
		}
		why, err := w.blocked(ctx, b, before, m.tree, next)
		if p.obstacle(err); lasting(err) != nil {
			return err
		}
		if err != nil {
			why = "a file in the work tree is in its way"
		}
		if why != "" {
			brings, err := w.repo.changes(ctx, m.tree, next)
			if err != nil {
				return err
			}
			for _, one := range brings {
				p.Paths = append(p.Paths, Staged{Path: one.Path, Fate: Conflicts, Change: one.Letter,
					From: []string{b.Member}, Branch: b.Name, Why: strings.TrimSuffix(why, ".")})
			}
			continue
		}
		p.Branches = append(p.Branches, b.Name)
		if err := w.commitsTo(ctx, p, m.tree, next, &b, nil); err != nil {
			return err
		}
		if err := m.take(ctx, w.repo, b, next); err != nil {
			return err
		}
	}
	return nil
}

// conflicting adds the paths in which a branch conflicts; "." if none is known.
func (w *work) conflicting(p *Plan, b team.Branch, conflict worktree.Conflict) {
	why := "the branch does not merge; a consolidation creates a task that says how"
	if known := w.recipe(b.Member); known != "" {
		why = "the branch does not merge; task " + known + " says how"
	}
	if conflict.Why != "" {
		why += ": " + conflict.Why
	}
	files := conflict.Files
	if len(files) == 0 {
		files = []string{"."}
	}
	for _, path := range files {
		p.Paths = append(p.Paths, Staged{Path: path, Fate: Conflicts, From: []string{b.Member},
			Branch: b.Name, Why: why})
	}
}

// staying adds the paths of a conflicting branch that do not conflict themselves: they stay on the
// branch.
func (w *work) staying(ctx context.Context, p *Plan, ours string, b team.Branch, conflicting []string) error {
	if len(conflicting) == 0 {
		return nil // it is not known on what the branch is based
	}
	brings, err := w.repo.Changes(ctx, "diff", ours+"..."+b.Commit)
	for _, one := range brings {
		if !slices.Contains(conflicting, one.Path) {
			p.Paths = append(p.Paths, Staged{Path: one.Path, Fate: LeftOut, Change: one.Letter,
				From:   []string{b.Member},
				Branch: b.Name, Why: "its branch does not merge, and a branch is merged as a whole"})
		}
	}
	return err
}

// recipe returns the name of the task that says how to merge the member's branch; "" for none.
func (w *work) recipe(member string) (called string) {
	w.Replica.View(func(s *team.State) {
		m, _ := s.Member(member)
		if t, is := s.Task(m.Left.Task); is && m.Left.Commit != "" && !m.Left.Out {
			called = t.Called()
		}
	})
	return called
}

// changers returns the members whose tasks changed each path.
func (w *work) changers() map[string][]string {
	by := map[string][]string{}
	w.Replica.View(func(s *team.State) {
		for t := range s.Tasks() {
			who := cmp.Or(t.CompletedBy, t.Owner)
			if t.Work == nil || who == "" {
				continue
			}
			for _, path := range t.Work.Files {
				if !slices.Contains(by[path], who) {
					by[path] = append(by[path], who)
				}
			}
		}
	})
	return by
}
