package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/consolidate"
	"cadre/internal/engine"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// taskPatch is what the work of a task changed.
type taskPatch struct {
	Task  string `json:"task"`  // id of the task
	Patch string `json:"patch"` // what the task changed, as a patch for git apply
}

func (a *app) taskShow() *cobra.Command {
	var patch bool
	c := a.looking(1, &cobra.Command{
		Use: "show [TEAM] ID", Short: "Show a task with its result and its work",
		Long: "Show a task: its result, its saved work, and the files that it changed. With --patch only the patch " +
			"is printed, for git apply. While a member works on the task in a worktree, " +
			"it is the patch of the worktree as it is now.\nCharacters that could harm a terminal are escaped.\n\n  " +
			"cadre task show health 3 --patch | git apply --check",
	}, func(c *cobra.Command, d *engine.Team, args []string) error {
		var t team.Task
		var err error
		d.View(func(s *team.State) {
			if t, err = s.Find(args[0]); err == nil && t.Status == team.Deleted {
				err = team.Refuse(team.NotFound, "task %s was deleted", t.Called()).
					With(team.Hint{Action: team.ActShowTasks, Team: d.Name})
			}
		})
		if err != nil {
			return err
		}
		if !patch {
			return a.print(t, func(w *sanitize.Writer) error { return describe(c.Context(), w, d, t) })
		}
		text, err := d.Patch(c.Context(), "#"+t.ID)
		if err != nil {
			return err
		}
		if len(text) == 0 { // standard output is for git
			what := "the work of task " + t.Called() + " is not recorded"
			if t.Work != nil {
				what = "task " + t.Called() + " changed no files"
			}
			a.note(what)
		}
		return a.print(taskPatch{t.ID, string(text)}, func(w *sanitize.Writer) error {
			if !isPatch(string(text)) { // otherwise its lines could look like cadre's
				return w.Printf("%s\n", sanitize.Block(text))
			}
			_, err := w.Write(text)
			return err
		})
	})
	c.Flags().BoolVar(&patch, "patch", false, "print only the patch of the work")
	return c
}

// describeWork writes the recorded work on the task, and where it is.
func describeWork(ctx context.Context, w *sanitize.Writer, d *engine.Team, t team.Task) error {
	of := d.Team()
	whole := fmt.Sprintf("the whole patch: cadre task show %s %s --patch", d.Name,
		sanitize.Quote(t.Hint(&of, team.ActShowTask).TypedTask()))
	if s := t.Saved; s != nil {
		w.Printf("\nsaved by %s, %s:\n", s.Member, render.When(team.Time(time.Now().UnixMilli()), s.At))
		patches, err := d.Saved(ctx, t)
		if err != nil {
			w.Printf("  the patch cannot be read: %v\n", err)
		}
		for _, one := range patches {
			w.Printf("  %s (%s)\n", one.Path, tally(one.Text))
		}
		if len(patches) > 0 {
			w.Printf("  %s\n", whole)
		}
		for _, part := range []struct{ what, text string }{{"  not in the history", s.Note},
			{"  last words", s.Output}} {
			if part.text != "" {
				w.Printf("%s:\n%s\n", part.what, sanitize.Block(part.text))
			}
		}
	}
	switch k := t.Work; {
	case k != nil:
		w.Printf("\nwork: %s\n", render.Work(*k))
		for i, file := range k.Files {
			if i == mostListed && len(k.Files) > mostListed+1 {
				w.Printf("  and %d more\n", len(k.Files)-i)
				break
			}
			w.Printf("  %s\n", file)
		}
		if len(k.Left) > 0 && k.Commit != "" {
			w.Printf("  left out of the record: %s\n", byReason(k.Left))
		}
		if k.Commit != "" && len(k.Files) > 0 {
			w.Printf("  %s\n", whole)
		}
	case t.Status == team.Completed && t.Attempts > 0:
		why := "no host ran when the task was claimed"
		if d.Team().Base.Top == "" {
			why = "the team's directory is not in a git repository"
		}
		w.Printf("\nwork: not recorded; %s\n", why)
	}
	return nil
}

// byReason names each reason of "PATH (REASON)" once, behind its paths.
func byReason(left []string) string {
	var order []string
	paths := map[string][]string{}
	for _, one := range left {
		path, reason := one, ""
		if at := strings.LastIndex(one, " ("); at > 0 && strings.Index(one[at:], ")") == len(one)-at-1 {
			path, reason = one[:at], one[at:]
		}
		if paths[reason] == nil {
			order = append(order, reason)
		}
		paths[reason] = append(paths[reason], path)
	}
	for i, reason := range order {
		order[i] = strings.Join(paths[reason], ", ") + reason
	}
	return strings.Join(order, "; ")
}

// isPatch reports whether each line of the text is one that git writes in a patch. A member wrote
// the text, and it may contain anything.
func isPatch(text string) bool {
	binary := false
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		header := slices.ContainsFunc(patchHeaders, func(head string) bool { return strings.HasPrefix(line, head) })
		switch {
		case line == "GIT binary patch":
			binary = true
		case strings.HasPrefix(line, "diff --git "):
			binary = false
		case header || line == "":
		case !binary || strings.ContainsAny(line, " \t:"):
			return false
		}
	}
	return true
}

// patchHeaders are the prefixes of lines of a patch.
var patchHeaders = []string{"+", "-", " ", "@@ -", "\\ No newline", "index ", "old mode ", "new mode ",
	"new file mode ", "deleted file mode ", "literal ", "delta "}

// tally returns the numbers of lines that a patch of one file adds and removes.
func tally(patch []byte) string {
	added, removed := 0, 0
	for line := range strings.Lines(string(patch)) {
		switch {
		case strings.HasPrefix(line, "GIT binary patch"):
			return "binary"
		case strings.HasPrefix(line, "+++") || strings.HasPrefix(line, "---"):
		case strings.HasPrefix(line, "+"):
			added++
		case strings.HasPrefix(line, "-"):
			removed++
		}
	}
	return fmt.Sprintf("+%d -%d", added, removed)
}

// confirmRollBack asks before the work of a task is undone, if there is a person to ask. It does
// not ask about a task without work, because that is refused.
func (a *app) confirmRollBack(ctx context.Context, of *engine.Team, ref string, only []string) error {
	if !a.asks() || a.actor != team.User {
		return nil
	}
	question := ""
	of.View(func(s *team.State) {
		t, err := s.Find(ref)
		if err != nil || t.Work == nil {
			return
		}
		files := t.Work.Files
		if len(only) > 0 {
			files = only
		}
		question = fmt.Sprintf("Undo the changes of task %s to %s%s, and return it to the queue?", s.Called(t.ID),
			team.Count(len(files), "file"), prefix(": ", someFiles(files)))
	})
	if question == "" {
		return nil
	}
	return a.confirm(ctx, question)
}

func (a *app) taskRollBack() *cobra.Command {
	var reason string
	var only []string
	var yes bool
	c := a.onTeam(1, &cobra.Command{
		Use: "rollback [TEAM] ID", Short: "Undo the work of a task, and return it to the queue",
		Long: `Undo the saved or committed work of a task, and return the task to the queue. In a worktree, the
member's branch gets a commit that undoes the work. In the team's directory, each file is restored to its state before
the task. If a file was changed since, by others or by you, nothing changes and the command names the files. After a
kill, the same command finishes.

If several members worked in one directory at the same time, it is not known whose a changed file is. Then name the
task's files with --only: these are restored, and the others stay.

On a terminal you are asked first; --yes skips the question. A script is not asked.

  cadre task rollback health 3
  cadre task rollback health 3 --only src/parser.go`,
	}, func(c *cobra.Command, name string, args []string) error {
		return a.consolidating(c.Context(), name, consolidate.Options{Only: only},
			func(of *engine.Team, o consolidate.Options) error {
				if !yes {
					if err := a.confirmRollBack(c.Context(), of, args[0], o.Only); err != nil {
						return err
					}
				}
				u, err := of.RollBackTask(c.Context(), a.actor, args[0], reason, o.Only...)
				if err != nil {
					return err
				}
				a.winding(of.Team())
				var called string
				of.View(func(s *team.State) { called = s.Called(u.Task) })
				return a.print(u, func(w *sanitize.Writer) error {
					w.Printf("task %s is back in the queue; its changes to %s are undone", called,
						team.Count(len(u.Files), "file"))
					if u.Branch != "" {
						w.Printf(" on %s (%.12s)", u.Branch, u.Commit)
					}
					w.Printf("\n")
					for i, file := range u.Files {
						if i == mostListed && len(u.Files) > mostListed+1 {
							return w.Printf("  and %d more\n", len(u.Files)-i)
						}
						w.Printf("  %s\n", file)
					}
					return nil
				})
			})
	})
	c.Flags().StringVar(&reason, "reason", "", "why, for the record")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	c.Flags().StringArrayVar(&only, "only", nil, "restore only this file or folder; may be repeated")
	return c
}
