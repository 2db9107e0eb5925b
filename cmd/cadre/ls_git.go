package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"cadre/internal/engine"
	"cadre/internal/git/checkpoint"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// listGit lists the teams that the repository of the working directory has checkpoints of.
func (a *app) listGit(ctx context.Context) error {
	here, err := workDir(".")
	if err != nil {
		return err
	}
	all, err := a.engine().Checkpoints(ctx, here)
	if err != nil {
		return err
	}
	return a.print(all, func(w *sanitize.Writer) error {
		if len(all) == 0 {
			return w.Printf("%s has no checkpoints of teams.\n", here)
		}
		t := render.Table{Texts: []string{""}, Spare: []string{"LAST CHANGE", "TASKS DONE"}}
		t.Row("TEAM", "STATUS", "TASKS DONE", "LAST CHANGE", "BRANCH", "")
		now, missing := now(), ""
		var found []checkpoint.Listed
		here := map[string]bool{}
		for _, one := range all {
			found = append(found, one.Listed)
			here[one.Name] = here[one.Name] || one.Here
		}
		for _, one := range all {
			switch {
			case one.Why != "":
				t.Row(one.Name, "", "", "", one.Branch, "cannot be read: "+one.Why)
				continue
			case one.Here:
				t.Row(one.Name, string(one.Status), doneOf(one.Listed), render.Ago(now, one.UpdatedAt), one.Branch, "here")
				continue
			case one.Archived:
				t.Row(one.Name, string(one.Status), doneOf(one.Listed), render.Ago(now, one.UpdatedAt), one.Branch, "archived")
				continue
			}
			top := engine.OutermostInGit(found, one.Listed)
			if !here[top] && !one.Status.Ended() { // where its parent is, a new team does its task
				missing = cmp.Or(top, missing)
			}
			t.Row(one.Name, string(one.Status), doneOf(one.Listed), render.Ago(now, one.UpdatedAt), one.Branch, "")
			for _, n := range withDepth(one.Nested, 1) {
				t.Row(strings.Repeat("  ", n.depth)+n.Name, string(n.Status), doneOf(n.Listed), render.Ago(now, n.UpdatedAt),
					one.Branch, n.Why)
			}
		}
		if err := t.Write(w); err != nil || missing == "" {
			return err
		}
		return w.Printf("to continue one here: cadre resume %s --from-git\n", missing)
	})
}

func doneOf(k checkpoint.Listed) string {
	return fmt.Sprintf("%d of %d", k.Completed, k.Pending+k.InProgress+k.Completed)
}

// listedNested is a team that the checkpoint of another one carries, so many levels below it.
type listedNested struct {
	checkpoint.Listed
	depth int
}

// withDepth lists the teams, each followed by the teams in it.
func withDepth(all []checkpoint.Listed, depth int) (tree []listedNested) {
	for _, one := range all {
		tree = append(append(tree, listedNested{one, depth}), withDepth(one.Nested, depth+1)...)
	}
	return tree
}

// onlyInGit returns the checkpoints in the repository of the working directory for teams that are
// not in this home: for that team, or for all if name is "".
func (a *app) onlyInGit(ctx context.Context, name string, here []string) []checkpoint.Listed {
	dir, err := os.Getwd()
	if err != nil {
		return nil
	}
	return a.engine().OnlyInGit(ctx, dir, name, here)
}

// alsoInGit lists teams that only the repository has, after the list of the teams here.
func (a *app) alsoInGit(ctx context.Context, w *sanitize.Writer, here []string) error {
	var names, removed []string
	for _, one := range a.onlyInGit(ctx, "", here) {
		list := &names
		if !a.engine().Continuable(one) {
			continue
		}
		if a.home.Removed(one.Team, one.Commit) {
			list = &removed
		}
		if !slices.Contains(*list, one.Name) {
			*list = append(*list, one.Name)
		}
	}
	removed = slices.DeleteFunc(removed, func(name string) bool { return slices.Contains(names, name) })
	return errors.Join(writeInGit(w, names, "not here yet"), writeInGit(w, removed, "removed from here"))
}

// writeInGit names teams that have checkpoints in the repository.
func writeInGit(w *sanitize.Writer, names []string, state string) error {
	if len(names) == 0 {
		return nil
	}
	const most = 5
	some := strings.Join(names[:min(most, len(names))], ", ")
	if len(names) > most {
		some += fmt.Sprintf(" and %d more", len(names)-most)
	}
	return w.Printf("This repository has checkpoints of %s, %s: cadre ls --git. To continue one: cadre resume %s "+
		"--from-git\n", some, state, names[0])
}

// notHere returns the error for a team that is not in this home. missing is the error of looking
// for it. If the repository has checkpoints of the team, the error names them instead.
func (a *app) notHere(ctx context.Context, name string, missing error) error {
	found, all := a.onlyInGit(ctx, name, nil), a.onlyInGit(ctx, "", nil)
	for _, one := range all {
		if slices.ContainsFunc(withDepth(one.Nested, 1), func(n listedNested) bool { return n.Name == name }) {
			found = append(found, one)
		}
	}
	if len(found) == 0 {
		return missing
	}
	var where []string
	top := ""
	for _, one := range found {
		top = cmp.Or(top, engine.OutermostInGit(all, one))
		where = append(where, one.Where())
	}
	refusal := team.Refuse(team.NotFound, "Team %s is not in this home, but the repository has its checkpoints (%s)",
		name, strings.Join(where, ", "))
	switch _, err := a.home.Folder(top); {
	case top == "":
		return refusal
	case err == nil: // it was in a team that continues here without it
		return withWays(refusal, way{"continue the team that it was in", render.Typed("resume", top)})
	case top != name:
		return withWays(refusal, way{"continue the team that it is in", render.Typed("resume", top, "--from-git")})
	}
	return withWays(refusal, way{"continue it here", render.Typed("resume", name, "--from-git")})
}
