package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/consolidate/branches"
	"cadre/internal/engine"
	"cadre/internal/engine/upkeep"
	"cadre/internal/layout"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

func (a *app) cleanupCommand() *cobra.Command {
	var how engine.Removal
	var yes bool
	c := a.onTeam(0, &cobra.Command{
		Use: "cleanup [TEAM]", SuggestFor: []string{"delete", "remove", "rm"}, Short: "Remove a team and its files",
		Long: `Remove a team: its folder with its history, and its files in Claude Code's folders. It is refused while
a teammate runs or can be resumed; --force ends the sessions first, and removes the team. It is safe to repeat: a later
call removes what an earlier one left. If nothing is left, the exit status is 2, because the name may be mistyped.

On a terminal you are asked first; --yes skips the question, and still refuses a team whose teammates can be resumed. A
script needs --yes or --force.

The team's branches stay in the repository, and are listed: cadre/TEAM with its checkpoints, the branches of members
with worktrees, and those of the teams in the team. --branches removes them, and prints the commit of each. Branches
that are checked out stay. So does a branch with commits that no other branch, tag or checkpoint has: the commits are
listed, and --force removes it too. If the team is removed already, --branches removes its branches from the repository
that you are in. Files in the work tree that changed since the team was created and are not committed stay, and are
named.

A name stands for the team of the project that you are in. On a terminal it may also be the only team of that name in
another project: the question names that project. A script, or --yes, needs the id of such a team, so that a removal
that is repeated does not reach a second team of the name. An archived run is removed by its id, too: cadre ls --all
has the ids.

A team whose project directory is missing is removed only with --force. Its worktrees are kept then, and listed.

Example:
  cadre cleanup demo --branches

Exit status 0: the team is removed. 1: not now: a teammate runs or can be resumed, or branches stay because
commits would be lost. 2: will not work.`,
	}, func(c *cobra.Command, name string, _ []string) error {
		if !how.Branches { // branches of a removed team are found by its name
			sure, err := a.sure(name, yes)
			if err == nil {
				name = sure
			} else if elsewhere := byID(c, err, "remove"); elsewhere != nil {
				return withWays(err, elsewhere...)
			}
		}
		if !yes && (a.asks() || !how.Force) {
			if err := a.confirmRemoval(c.Context(), name, how); err != nil {
				return err
			}
		}
		ctx, cancel := context.WithTimeoutCause(c.Context(), time.Minute,
			fmt.Errorf("team %s could not be cleaned up within a minute", name))
		defer cancel()
		err := a.cleanup(ctx, name, how)
		return withWays(err, byID(c, err, "remove")...)
	})
	c.Flags().BoolVar(&how.Force, "force", false, "end running teammates, and remove branches whose commits "+
		"would be lost")
	c.Flags().BoolVar(&how.Branches, "branches", false, "remove the team's branches from the repository too")
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

// confirmRemoval asks whether the team is removed.
func (a *app) confirmRemoval(ctx context.Context, name string, how engine.Removal) error {
	e := a.measure(ctx, name)
	if e.open != nil && !how.Force {
		return e.open // it would be refused after the question
	}
	what := e.what
	again := render.Typed("cleanup", name)
	if how.Branches {
		what += " and its branches"
		again += " --branches"
	}
	return a.confirm(ctx, "Remove "+what+"?", way{"remove " + what, again + " --yes"})
}

// byID returns the call again for each team of other projects that the error names, by its id.
func byID(c *cobra.Command, err error, does string) (ways []way) {
	other, is := errors.AsType[*layout.ElsewhereError](err)
	if !is {
		return nil
	}
	for _, k := range other.Teams {
		again := strings.Replace(retyped(c, nil), "TEAM", k.Team.ID, 1)
		ways = append(ways, way{does + " the one in " + k.Team.Dir, again})
	}
	return ways
}

// sure returns what to call the team that a command ends or removes: by its name, if the project
// that the user is in has the team. The only team of that name in another project is called by its
// id if the person can be asked. Without a question it is refused: a removal that is repeated must
// not reach a second team of that name.
func (a *app) sure(name string, unasked bool) (string, error) {
	_, err := a.home.Sure(name)
	if other, elsewhere := errors.AsType[*layout.ElsewhereError](err); elsewhere && !unasked && a.asks() &&
		len(other.Teams) == 1 && other.Teams[0].Team.ID != "" {
		return other.Teams[0].Team.ID, nil
	}
	return name, err
}

// extent is what a team has that a command would end or remove.
type extent struct {
	what  string // names the team and says how large it is, for a question
	ended bool   // it is complete or aborted, and no teammate is left
	open  error  // the refusal to remove it without force, because teammates have not ended
}

// measure returns the extent of the team.
func (a *app) measure(ctx context.Context, name string) extent {
	e := extent{what: "team " + name} // if only its remains are left
	of, err := a.engine().Look(ctx, name)
	if err != nil {
		return e
	}
	defer of.Close()
	n, err := of.Standing(ctx)
	if err != nil {
		return e
	}
	tasks, running, paused := 0, 0, 0
	for _, count := range n.Tasks {
		tasks += count
	}
	for _, m := range n.Members {
		switch is := n.Standings[m.Name]; {
		case m.Name == n.Lead || !m.Status.Running():
		case is == team.Away || is == team.Paused:
			paused++
		default:
			running++
		}
	}
	teammates := team.Count(running, "running teammate")
	if paused > 0 {
		teammates += fmt.Sprintf(", %d without a session", paused)
	}
	e.what = fmt.Sprintf("team %s (%s, %s; %s)", name, team.Count(tasks, "task"), teammates, n.Dir)
	if running+paused == 0 {
		e.ended = n.Status.Ended()
		return e
	}
	var hints []team.Hint
	if n.Dormant {
		hints = append(hints, team.Hint{Action: team.ActResume, Team: name})
	}
	e.open = team.Refuse(team.NotReady, "%s is unfinished", e.what).
		With(append(hints, team.Hint{Action: team.ActForceCleanUp, Team: name})...)
	return e
}

func (a *app) cleanup(ctx context.Context, name string, how engine.Removal) error {
	var nowhere error // where this was called
	how.Actor = a.actor
	how.Dir, nowhere = workDir(".")
	r, err := a.engine().RemoveTeam(ctx, name, how)
	if lingers, ok := errors.AsType[*upkeep.LingeringError](err); ok {
		return withWays(&team.Error{Code: team.NotReady, Text: lingers.Error()},
			way{"remove the rest later", render.Typed("cleanup", name)})
	}
	if gone, ok := errors.AsType[*upkeep.UnreachableError](err); ok {
		return withWays(&team.Error{Code: team.Invalid, Text: gone.Error(), Help: []team.Hint{{Action: team.ActMove,
			Team: name}}}, way{"remove the team, and keep its worktrees", render.Typed("cleanup", name, "--force")})
	}
	if last, ok := errors.AsType[*upkeep.UnfinishedError](err); ok {
		return withWays(&team.Error{Code: team.NotReady, Help: []team.Hint{{Action: team.ActContinueCopy, Team: name}},
			Text: last.Error() + ": it may run there, or under another CADRE_HOME"},
			way{"remove its branches all the same", render.Typed("cleanup", name, "--branches", "--force")})
	}
	switch {
	case err != nil:
		return err
	case r.Gone && how.Branches && nowhere != nil:
		return nowhere
	case r.Observed:
		return a.print(r.Team, said("the observation of team %s is removed", name))
	case r.Replaced:
		return a.print(r.Team, said("team %s is removed; another team of that name was created meanwhile", name))
	case r.Gone && r.Team.ID == "":
		meant := ""
		if there, err := a.engine().Home.Names(); err == nil && team.Nearest(name, there) != "" {
			meant = "; did you mean " + team.Nearest(name, there) + "?"
		}
		err := team.Refuse(team.NotFound, "team %s does not exist, and nothing is left to remove%s", name, meant)
		if how.Branches {
			return err
		}
		return withWays(err, way{"remove its branches in this repository, if any",
			render.Typed("cleanup", name, "--branches")})
	case r.Gone:
		return a.cleaned(r, fmt.Sprintf("team %s was removed before", name))
	}
	return a.cleaned(r, fmt.Sprintf("team %s is removed", name))
}

// removedTeam is a team that was removed, with what it leaves behind, as JSON.
type removedTeam struct {
	team.Team
	Branches    []branches.Branch
	Uncommitted []string // files that changed since the team was created and are not committed; they stay
}

// MarshalJSON writes the team with what it leaves behind.
func (r removedTeam) MarshalJSON() ([]byte, error) {
	of, err := r.Team.MarshalJSON()
	if err != nil {
		return nil, err
	}
	left, err := json.Marshal(struct {
		Branches    []branches.Branch `json:"branches"`
		Uncommitted []string          `json:"uncommitted"`
	}{r.Branches, r.Uncommitted})
	return slices.Concat(bytes.TrimSuffix(of, []byte("}")), []byte(","), bytes.TrimPrefix(left, []byte("{"))), err
}

// cleaned prints what happened to a removed team, its uncommitted files and its branches. If
// branches should be removed but stay because commits would be lost, it returns an error that names
// the commits.
func (a *app) cleaned(removed engine.Removed, what string) error {
	t, left := removed.Team, removed.Branches
	printed := removedTeam{t, append([]branches.Branch{}, left...), append([]string{}, removed.Uncommitted...)}
	err := a.print(printed, func(w *sanitize.Writer) error {
		w.Printf("%s\n", what)
		if n := len(removed.Uncommitted); n > 0 {
			w.Printf("not committed, and left in %s: %s\n", t.Base.Top, team.Count(n, "file"))
			writePaths(w, removed.Uncommitted)
		}
		if len(left) == 0 {
			return nil
		}
		stay, unknown := false, false
		for _, b := range left {
			stay = stay || !b.Removed && b.Unknown == "" && b.CheckedOut == "" && b.Lost == nil &&
				!b.Needed
			unknown = unknown || b.Unknown != ""
		}
		w.Printf("its branches in %s:\n", t.Dir)
		table := render.NewList()
		for _, b := range left {
			table.Row("", b.Name, b.String())
		}
		if err := table.Write(w); err != nil {
			return err
		}
		if unknown {
			return w.Printf("to remove those that are there, in the project: cadre cleanup %s --branches\n", t.Name)
		}
		if stay {
			return w.Printf("to remove them: cd %s && cadre cleanup %s --branches\n", sanitize.Quote(t.Dir), t.Name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return losing(removed.Removed)
}

// mostLost bounds how many lost commits are named.
const mostLost = 10

// losing returns an error that names the branches that stay because their commits would be lost. It
// returns nil if no branch stays.
func losing(removed upkeep.Removed) error {
	var names, commits []string
	seen := map[string]bool{}
	t := removed.Team
	for _, b := range removed.Lost() {
		names = append(names, b.Name)
		for _, c := range b.Lost {
			if !seen[c.Commit] {
				commits = append(commits, fmt.Sprintf("%.12s %q", c.Commit, render.Cut(c.Subject, 60)))
			}
			seen[c.Commit] = true
		}
	}
	if len(names) == 0 {
		return nil
	}
	if more := len(commits) - mostLost; more > 0 {
		commits = append(commits[:mostLost], fmt.Sprintf("and %d more", more))
	}
	dir := sanitize.Quote(t.Dir)
	return withWays(team.Refuse(team.NotReady, "not removed: %s. These commits are in no other branch, and would be "+
		"lost: %s", strings.Join(names, ", "), strings.Join(commits, ", ")),
		way{"keep them", "git -C " + dir + " branch NAME COMMIT"},
		way{"lose them", "cd " + dir + " && " + render.Typed("cleanup", t.Name, "--branches", "--force")})
}
