package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/spf13/cobra"

	"cadre/internal/consolidate"
	"cadre/internal/engine"
	"cadre/internal/engine/transfer"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

func (a *app) consolidateCommand() *cobra.Command {
	s := &sealing{app: a}
	c := a.onTeam(0, &cobra.Command{
		Use: "consolidate [TEAM]", Short: "Check and commit what a team did",
		Long: `End a team when all members are done, and commit its work. Members with their own worktrees end, and
their branches are merged into the work tree. Then the checks run in the team's directory (checks: in the team file,
or --check). The work becomes one commit on the checked-out branch, with the merged branches as further parents. The
team is then complete, and its record is the file COMPLETED in its folder. A complete team without that record can be
consolidated too.

The commit has the files that have changed since the team was created. Files that you had changed before and that are
still the same stay as they are, staged or not. If a file has both your changes and later ones, the command refuses:
commit or stash the file, or name it with --include. Changes that you make while the team works look like the team's:
the command shows what it stages, and --only commits just the files that you name. If another team has uncommitted
work in the same work tree, --only is needed. Ignored files are never committed. A checkpoint on cadre/TEAM is made
first. Hooks of the repository do not run, unless a check runs them: GIT_INDEX_FILE="$CADRE_INDEX" git hook run
pre-commit

Until then, the work of members in worktrees stays on their branches. A branch that conflicts becomes a task for the
lead, with the conflicting branch and how to merge the two. If the task is deleted, the branch is left out.

The checks pass with exactly the tracked files that are committed. If a check changes tracked files, nothing is
committed, and the files are named. With --with-check-changes these files are committed too, and the checks run again.
With --clean the checks run in a clean checkout, without ignored and uncommitted files.

With --no-commit only the checks run, and the team does not change. They run in a temporary checkout of what would be
committed, with the work of members in worktrees but without ignored files (node_modules, for example). If you have
committed the team's work yourself, complete the team with: --no-commit --complete. Branches that are not merged then
stay, and are named.

With --dry-run nothing runs and nothing changes: the command shows each path that would be committed with the members
it is from, the paths that conflict, and those that are left out, with the reason.

A name that no team of the project that you are in has stands for the only team of that name elsewhere. The command
then says first which project that is.

If a check fails, nothing is committed: HEAD, the work tree and the branches are unchanged, the team continues, and
its lead gets the output of the check. After a kill, the same command continues where it stopped. --rollback abandons
an unfinished consolidation. It also lets a team continue that winds down (cadre shutdown --graceful).

Exit status 0: the team is complete. 1: not now: a member works, a check failed, a file is in the way. 2: it will not
work.`,
	}, func(c *cobra.Command, name string, _ []string) error { return s.run(c, name) })
	s.flags(c)
	a.renamed(c, "roll-back", "rollback")
	actsAs(c)
	return c
}

// sealing has the flags of a consolidation.
type sealing struct {
	*app
	consolidate.Options
	rollsBack, pushes, complete, dryRun bool
	to                                  transfer.PushOptions
}

func (s *sealing) flags(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&s.pushes, "push", false, "push the commit and the team's branch, cadre/TEAM, when the team is "+
		"complete")
	f.StringVar(&s.to.Remote, "remote", "", "with --push, name of the remote; the one that git pushes to "+
		"by default")
	f.BoolVar(&s.to.Yes, "yes", false, "with --push, agree to the first push to this remote")
	f.BoolVar(&s.dryRun, "dry-run", false, "show what would be committed, path by path, and change nothing")
	f.StringArrayVar(&s.Without, "without", nil, "task whose work is missing since the team was restored: "+
		"the team is completed without it; may be repeated")
	f.StringVarP(&s.Message, "message", "m", "", "first lines of the commit's message; by default made from "+
		"the goal")
	f.StringArrayVar(&s.Include, "include", nil, "file or folder that is committed although you had changes "+
		"there before the team; may be repeated")
	f.StringArrayVar(&s.Only, "only", nil, "file or folder that is committed, and nothing else of the work "+
		"tree; may be repeated")
	f.BoolVar(&s.NoCommit, "no-commit", false, "only run the checks: commit nothing, and leave the "+
		"team as it is")
	f.BoolVar(&s.complete, "complete", false, "with --no-commit, complete the team without a commit")
	f.BoolVar(&s.Clean, "clean", false, "run the checks in a clean checkout of what is to be committed")
	f.BoolVar(&s.Changes, "with-check-changes", false, "commit files that the checks write with the work, "+
		"and run the checks again")
	f.BoolVar(&s.rollsBack, "rollback", false, "abandon an unfinished consolidation, or let a team "+
		"continue that winds down: nothing is committed, and the team continues")
}

func (s *sealing) run(c *cobra.Command, name string) error {
	s.Actor = s.actor
	for _, flag := range []string{"message", "include", "only", "no-commit", "clean",
		"with-check-changes", "without", "complete"} {
		s.Restart = s.Restart || c.Flags().Changed(flag)
	}
	if s.dryRun && (s.rollsBack || s.pushes || s.complete) {
		return usage{fmt.Errorf("--dry-run only shows what would be committed; leave out --rollback, --push and " +
			"--complete")}
	}
	if s.dryRun {
		return s.planConsolidation(c.Context(), name, s.Options)
	}
	if s.rollsBack {
		if s.Restart {
			return usage{fmt.Errorf("--rollback only abandons the unfinished consolidation; leave out the " +
				"other flags")}
		}
		return s.rollBack(c.Context(), name, s.Options)
	}
	switch {
	case s.complete && !s.NoCommit:
		return usage{fmt.Errorf("--complete is for --no-commit; without it every consolidation completes the team")}
	case s.pushes && s.NoCommit && !s.complete:
		return usage{fmt.Errorf("--no-commit makes no commit that --push could push; leave one of them out")}
	case s.NoCommit && !s.complete:
		return s.tryChecks(c.Context(), name, s.Options)
	}
	s.to.Team, s.to.Head = name, true
	if s.pushes {
		if err := s.canPush(c.Context()); err != nil {
			return err
		}
	}
	if err := s.consolidate(c.Context(), name, s.Options); err != nil || !s.pushes {
		return err
	}
	return s.push(c.Context(), s.to)
}

// canPush refuses a consolidation whose result could not be pushed, before anything is committed.
func (s *sealing) canPush(ctx context.Context) error {
	first, err := s.engine().CanPush(ctx, s.to)
	if err != nil {
		return s.moving(err, s.to.Team, pushing(s.to))
	}
	if why := s.unattended(); first && !s.to.Yes && why != "" {
		return usage{fmt.Errorf("the remote gets team %s for the first time, so %s, and %s; add --yes",
			s.to.Team, needsConfirmation, why)}
	}
	return nil
}

// consolidating opens the team for its consolidation, and calls do with the common options.
func (a *app) consolidating(ctx context.Context, name string, o consolidate.Options,
	do func(of *engine.Team, o consolidate.Options) error) error {
	stays()
	of, err := a.engine().Open(ctx, name)
	if err != nil {
		return err
	}
	defer of.Close()
	if o.Include, err = fromTop(of.Team(), o.Include); err != nil {
		return err
	}
	if o.Only, err = fromTop(of.Team(), o.Only); err != nil {
		return err
	}
	var check atomic.Value // the name of the check that runs; "" for none
	defer a.announceStop(ctx, func() string {
		if name, _ := check.Load().(string); name != "" {
			return "the check " + name
		}
		return "the consolidation"
	})()
	if !a.json {
		began := "" // printed with the next step: a refusal may come first, for example because a branch conflicts
		step := func(line string) {
			if began != "" {
				a.out.Printf("%s\n", began)
				began = ""
			}
			a.out.Printf("%s\n", line)
		}
		o.Checking = func(name string) { check.Store(name); step("▸ check " + name) }
		o.Tried = func(end team.Event) { check.Store(""); step(render.Step(end)) }
		o.Saw = func(r *team.Record) {
			check.Store("")
			for _, e := range r.Events {
				line := render.Step(e)
				if _, is := e.(*team.ConsolidationBegan); is {
					began = line
				} else if line != "" {
					step(line)
				}
			}
		}
	}
	return do(of, o)
}

// consolidate starts or continues the consolidation of the team.
func (a *app) consolidate(ctx context.Context, name string, o consolidate.Options) error {
	sealed, err := a.consolidated(ctx, name, o)
	if err != nil {
		return err
	}
	return a.print(sealed, func(w *sanitize.Writer) error { return writeSealed(w, sealed.Record) })
}

// sealedTeam is the record of a team that was consolidated, with what was staged.
type sealedTeam struct {
	*consolidate.Record
	Staged []string `json:"staged"` // files that the commit changes, each after git's status letter, as in "M main.go"
}

// consolidated does what consolidate does, and leaves it to the caller to print the record.
func (a *app) consolidated(ctx context.Context, name string, o consolidate.Options) (sealed sealedTeam, err error) {
	err = a.consolidating(ctx, name, o, func(of *engine.Team, o consolidate.Options) error {
		staged := []string{}
		o.Staged = func(changes []string) {
			if staged = changes; !a.json {
				writePaths(a.out.Writer, changes)
			}
		}
		if t := of.Team(); t.Status == team.TeamComplete && t.Consolidation.Step == team.Done {
			a.note("team " + name + " was consolidated before; nothing is committed now")
		}
		r, err := of.Consolidate(ctx, o)
		if failed, ok := errors.AsType[*consolidate.FailedCheck](err); ok {
			if failed.Output != "" {
				a.err.Printf("%s\n", sanitize.Block(failed.Output))
			}
			return withWays(err, way{"check again once the cause is repaired", render.Typed("consolidate", name)})
		}
		if err != nil {
			return err
		}
		sealed = sealedTeam{r, staged}
		return nil
	})
	return sealed, err
}

// tryChecks runs the checks of the team, and commits nothing.
func (a *app) tryChecks(ctx context.Context, name string, o consolidate.Options) error {
	var trial *consolidate.Trial
	err := a.consolidating(ctx, name, o, func(of *engine.Team, o consolidate.Options) (err error) {
		trial, err = of.TryChecks(ctx, o)
		if failed, ok := errors.AsType[*consolidate.FailedCheck](err); ok && failed.Output != "" {
			a.err.Printf("%s\n", sanitize.Block(failed.Output))
		}
		return err
	})
	if err != nil {
		return err
	}
	return a.print(trial, func(w *sanitize.Writer) error {
		return writeTried(w, trial)
	})
}

// planConsolidation shows what a consolidation would do.
func (a *app) planConsolidation(ctx context.Context, name string, o consolidate.Options) error {
	var p *consolidate.Plan
	if err := a.consolidating(ctx, name, o, func(of *engine.Team, o consolidate.Options) (err error) {
		p, err = of.PlanConsolidation(ctx, o)
		return err
	}); err != nil {
		return err
	}
	if err := a.print(p, func(w *sanitize.Writer) error { return writeStaging(w, p) }); err != nil {
		return err
	}
	return p.Refused
}

// writeStaging writes each path with what becomes of it.
func writeStaging(w *sanitize.Writer, p *consolidate.Plan) error {
	if len(p.Paths) > 0 {
		t := render.Table{Texts: []string{"PATH", "WHY"}, Spare: []string{"FROM"}}
		t.Row("FATE", "CHANGE", "PATH", "FROM", "WHY")
		for _, one := range p.Paths {
			t.Row(one.Fate.String(), one.Changes(), one.Path, one.Origin(), one.Why)
		}
		t.Compact()
		if err := t.Write(w); err != nil {
			return err
		}
	}
	checks := ""
	if len(p.Checks) > 0 {
		checks = " (" + strings.Join(p.Checks, ", ") + ")"
	}
	return w.Printf("team %s: %s%s; nothing was changed\n", p.Team, p, checks)
}

// writeTried writes which checks passed.
func writeTried(w *sanitize.Writer, t *consolidate.Trial) error {
	var passed []string
	for _, check := range t.Checks {
		passed = append(passed, fmt.Sprintf("%s (%s)", check.Name, team.Span(check.Took.Std())))
	}
	what := "team " + t.Team + " has no checks"
	if len(passed) > 0 {
		what = "checks of team " + t.Team + " passed: " + strings.Join(passed, ", ")
	}
	if len(t.Branches) > 0 {
		what += "; in a temporary checkout with " + strings.Join(t.Branches, ", ")
	}
	return w.Printf("%s; nothing was committed; to commit: cadre consolidate %s\n", what, t.Team)
}

// mostListed bounds how many paths are printed.
const mostListed = 20

// writePaths writes the paths, a line each, up to a readable number.
func writePaths(w *sanitize.Writer, paths []string) {
	for i, one := range paths {
		if i == mostListed && len(paths) > mostListed+1 {
			w.Printf("    and %d more\n", len(paths)-i)
			break
		}
		w.Printf("    %s\n", one)
	}
}

// winding warns a person who adds something to a team that winds down: no member will start it.
func (a *app) winding(t team.Team) {
	if t.Status == team.TeamConsolidating {
		a.note(fmt.Sprintf("team %s winds down, and no new work starts; to let it continue: cadre "+
			"consolidate %s --rollback", t.Name, t.Name))
	}
}

func (a *app) rollBack(ctx context.Context, name string, o consolidate.Options) error {
	return a.consolidating(ctx, name, o, func(of *engine.Team, o consolidate.Options) error {
		if err := of.RollBack(ctx, o, "it was rolled back"); err != nil {
			return err
		}
		then := "continues"
		if of.Team().Status == team.TeamComplete {
			then = "is complete, as before"
		}
		return a.print(of.Team(), said("team %s %s; nothing was committed", name, then))
	})
}

// writeSealed writes the record of a team that was consolidated.
func writeSealed(w *sanitize.Writer, r *consolidate.Record) error {
	what := "nothing was committed"
	if r.Commit != "" {
		what = fmt.Sprintf("commit %.12s, %s", r.Commit, team.Count(r.Files, "file"))
	}
	var checks []string
	for _, c := range r.Checks {
		checks = append(checks, c.Name)
	}
	passed := ""
	if len(checks) > 0 {
		passed = "; checks: " + strings.Join(checks, ", ")
	}
	who := map[string]bool{}
	for _, t := range r.Tasks {
		who[t.By] = true
	}
	var by []string
	delete(who, "")
	led := len(r.Members) > 0 && who[r.Members[0].Name]
	if led {
		delete(who, r.Members[0].Name)
	}
	if len(who) > 0 {
		by = append(by, team.Count(len(who), "member"))
	}
	if led {
		by = append(by, "the lead")
	}
	return w.Printf("team %s is complete: %s; %s%s%s\n", r.Name, what, team.Count(len(r.Tasks), "task"),
		prefix(" by ", strings.Join(by, " and ")), passed)
}

// reached describes the state of an unfinished consolidation.
func reached(t team.Team) []string {
	c := t.Consolidation
	lines := []string{fmt.Sprintf("consolidation %d, started by %s, is not finished", c.Attempt,
		strings.TrimPrefix(c.By, "@"))}
	if c.Step == team.Began {
		return append(lines, "nothing is staged or checked")
	}
	if c.Step == team.Merged {
		return append(lines,
			"what members did in worktrees is on their branches; nothing is staged or checked")
	}
	staged := "nothing to commit"
	if c.Tree != "" {
		staged = fmt.Sprintf("staged: %s, on %s", team.Count(c.Files, "file"), render.Parent(c.Parent))
		if len(c.Branches) > 0 {
			staged += ", with " + render.Branches(c.Branches)
		}
	}
	var left []string
	for _, check := range t.Checks {
		if !slices.Contains(c.Passed, check.Name) {
			left = append(left, check.Name)
		}
	}
	lines = append(lines, staged, "checks that passed: "+cmp.Or(strings.Join(c.Passed, ", "), "none")+
		"; that are left: "+cmp.Or(strings.Join(left, ", "), "none"))
	if c.Step == team.Made && c.Commit != "" {
		lines = append(lines, fmt.Sprintf("commit %.12s is made", c.Commit))
	}
	return lines
}

// writeRecord writes the record of the team, and whether the history still is the one that it
// describes.
func writeRecord(w *sanitize.Writer, r *consolidate.Record, holds bool, dir string) error {
	w.Printf("\n")
	if err := writeSealed(w, r); err != nil {
		return err
	}
	if !holds {
		return w.Printf("! the history is not the one that %s describes\n",
			filepath.Join(dir, consolidate.RecordFile))
	}
	return nil
}

// fromTop converts paths relative to the current directory into paths relative to the top of the
// work tree.
func fromTop(t team.Team, paths []string) ([]string, error) {
	var all []string
	for _, path := range paths {
		whole, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		// the file itself may be a link, and is meant
		if real, err := filepath.EvalSymlinks(filepath.Dir(whole)); err == nil {
			whole = filepath.Join(real, filepath.Base(whole))
		}
		rel, err := filepath.Rel(t.Base.Top, whole)
		if err != nil || !filepath.IsLocal(rel) || rel == "." {
			return nil, usage{fmt.Errorf("%s is not in %s; a path is relative to the directory in which you are", whole,
				cmp.Or(t.Base.Top, "a repository that the team was created in"))}
		}
		all = append(all, filepath.ToSlash(rel))
	}
	return all, nil
}
