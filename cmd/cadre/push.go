package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"cadre/internal/engine/transfer"
	"cadre/internal/git/checkpoint"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/run"
	"cadre/internal/team"
)

func (a *app) pushCommand() *cobra.Command {
	var o transfer.PushOptions
	var include []string
	c := a.onTeam(0, &cobra.Command{
		Use: "push [TEAM]", Short: "Push a team with its work to a remote",
		Long: `Make a checkpoint of the team and push its branch, cadre/TEAM. That branch carries the whole team:
its history, the work on its members' branches, its uncommitted changes, and the teams in it. Only that branch is
pushed. Nothing is overwritten: if the remote has another history of the team, or of a team in it, the command refuses.

The first push to a remote shows what is pushed, and asks; without a terminal it needs --yes. If a commit contains
files over 5 MiB or likely secrets, the command refuses until --include names the files. Your pre-push hooks run, as
with git push.

With --release this machine releases the team: its sessions end, and the team no longer changes here until
cadre resume TEAM --take-back. Another machine continues it: cadre pull TEAM, then cadre resume TEAM.

Example:
  cadre push demo --release

Exit status 0: the remote has the team. 1: not now: the remote cannot be reached, or the team runs and cannot be
released. 2: it will not work.`,
	}, func(c *cobra.Command, name string, _ []string) error {
		o.Team = name
		t, err := a.engine().Glance(c.Context(), name)
		if err != nil {
			return err
		}
		if o.Include, err = fromTop(t, include); err != nil {
			return err
		}
		stays()
		return a.push(c.Context(), o)
	})
	c.Flags().StringVar(&o.Remote, "remote", "", "name of the remote; the one that git pushes to by default")
	c.Flags().StringArrayVar(&include, "include", nil, "file or folder to push although it is ignored, "+
		"large, or likely contains a secret; may be repeated")
	c.Flags().BoolVar(&o.Release, "release", false,
		"release the team on this machine, so that another one can continue it")
	c.Flags().BoolVar(&o.Yes, "yes", false, "agree to the first push to this remote")
	c.Flags().BoolVar(&o.Ours, "ours", false, "of two histories continue this one; the remote's stays reachable from "+
		"the branch")
	return c
}

// pushed says what of a team is on the remote.
type pushed struct {
	Team     string            `json:"team"`     // id of the team
	Seq      int64             `json:"seq"`      // number of records that the remote has
	Commit   string            `json:"commit"`   // id of the checkpoint's commit
	Remote   string            `json:"remote"`   // name of the remote in git
	URL      string            `json:"url"`      // address of the remote
	Pushed   bool              `json:"pushed"`   // the remote did not have this checkpoint before
	Released bool              `json:"released"` // this machine released the team, so that another one can continue it
	Left     []checkpoint.Left `json:"left"`     // files that the push does not carry
}

// pulled says what came from the remote.
type pulled struct {
	Remote   string            `json:"remote"`   // name of the remote in git
	URL      string            `json:"url"`      // address of the remote
	Commit   string            `json:"commit"`   // id of the checkpoint's commit
	Seq      int64             `json:"seq"`      // number of records that the remote has
	Restored bool              `json:"restored"` // the remote had a newer history, and the team here now has it
	Missing  []team.Missing    `json:"missing"`  // work of tasks that was found neither here nor on the remote
	Left     []checkpoint.Left `json:"left"`     // files that the checkpoint does not contain
}

// pushing returns the command that pushes with these options. It does not agree to a first push.
func pushing(o transfer.PushOptions) string {
	words := []string{o.Team}
	if o.Remote != "" {
		words = append(words, "--remote", o.Remote)
	}
	for _, path := range o.Include {
		words = append(words, "--include", path)
	}
	if o.Release {
		words = append(words, "--release")
	}
	if o.Ours {
		words = append(words, "--ours")
	}
	return render.Typed("push", words...)
}

// push pushes the team, and asks the user if that needs agreement.
func (a *app) push(ctx context.Context, o transfer.PushOptions) error {
	p, err := a.engine().Push(ctx, o, func(first error) error {
		a.note(first.Error())
		return a.confirm(ctx, "Push it?", way{"push it", pushing(o) + " --yes"})
	})
	err = a.moving(err, o.Team, pushing(o))
	if p == nil || err != nil && !o.Head && !p.Released { // otherwise the checkpoint was pushed
		return err
	}
	a.noteLeft(p.Checkpoint)
	a.noteNested(p.Checkpoint)
	value := pushed{p.Team, p.Seq, p.Commit, p.Remote.Name, p.Remote.URL, p.New, p.Released, leftOf(p.Checkpoint)}
	return errors.Join(err, a.print(value, func(w *sanitize.Writer) error {
		what := fmt.Sprintf("team %s is on %s (%s): %s, commit %.12s", o.Team, p.Remote.Name, p.Remote.URL,
			team.Count(p.Seq, "record"), p.Commit)
		if !p.New {
			what = fmt.Sprintf("%s (%s) has everything of team %s already: %s, commit %.12s", p.Remote.Name,
				p.Remote.URL, o.Team, team.Count(p.Seq, "record"), p.Commit)
		}
		if p.Released {
			what += ". This machine has released it"
			if err == nil { // else the remote does not know
				what += fmt.Sprintf("; another one continues it: cadre pull %s", o.Team)
			}
		}
		w.Printf("%s\n", what)
		if p.Head.Branch == "" {
			return nil
		}
		return w.Printf("commit %.12s is on the branch %s of %s (%s)\n", p.Head.Commit, p.Head.Branch, p.Remote.Name,
			p.Remote.URL)
	}))
}

func (a *app) pullCommand() *cobra.Command {
	var o transfer.PullOptions
	var dir string
	var checks []string
	c := &cobra.Command{
		Use: "pull TEAM", Short: "Fetch a team with its work from a remote", Args: exactly(1),
		Long: `Fetch the branch cadre/TEAM from a remote and restore the team from it, with the branches of its
members, its uncommitted changes, and the teams in it. Run it in a clone of the project. It starts no session: cadre
resume TEAM continues the team.

Work is restored only where no file of yours is in the way. Missing work is listed by task. If a copy of the team
exists here, and the remote has everything that it has, the copy is set aside. If both have something new, the command
refuses until you choose one.

Example:
  cadre pull demo && cadre resume demo

Exit status 0: the team is here. 1: not now: it runs here, or the remote cannot be reached. 2: it will not work.`,
		RunE: func(c *cobra.Command, args []string) (err error) {
			o.Team, o.Named = args[0], c.Flags().Changed("dir")
			if o.Dir, err = workDir(dir); err != nil {
				return err
			}
			if o.Checks, err = run.ParseChecks(checks); err != nil {
				return err
			}
			return a.pull(c.Context(), o)
		},
	}
	c.Flags().StringVar(&o.Remote, "remote", "", "name of the remote; the one that git pushes to by default")
	c.Flags().StringVar(&dir, "dir", ".", "a clone of the project")
	c.Flags().BoolVar(&o.Theirs, "theirs", false, "of two histories continue the remote's; the one that is here "+
		"stays reachable from the branch")
	c.Flags().StringArrayVar(&checks, "check", nil, "NAME: COMMAND for a check whose command was redacted; may be "+
		"repeated")
	return c
}

// pull fetches a team, and prints what came with it.
func (a *app) pull(ctx context.Context, o transfer.PullOptions) error {
	p, err := a.engine().Pull(ctx, o)
	if err != nil {
		return a.moving(err, o.Team, fmt.Sprintf("cadre pull %s --theirs", o.Team))
	}
	if p.Arrived != nil {
		a.noteArrived(o.Team, p.Arrived)
	}
	if p.Aside != "" {
		a.note("the earlier copy is kept in " + p.Aside)
	}
	if p.Released {
		a.note(fmt.Sprintf("this machine released team %s; to continue it here, if it runs nowhere else: "+
			"cadre resume %s --take-back", o.Team, o.Team))
	}
	value := pulled{p.Remote.Name, p.Remote.URL, p.There.Commit, p.There.Seq, p.Arrived != nil,
		missingOf(p.Arrived), []checkpoint.Left{}}
	if p.Arrived != nil && p.Arrived.Left != nil {
		value.Left = p.Arrived.Left
	}
	return a.print(value, func(w *sanitize.Writer) error {
		if p.Arrived == nil {
			return said("nothing new: team %s here has everything that %s (%s) has", o.Team, p.Remote.Name,
				p.Remote.URL)(w)
		}
		next := "Resume with: cadre resume " + o.Team
		a.home = a.home.In(p.Arrived.Dir)
		if of, err := a.engine().Glance(ctx, o.Team); err == nil && of.Ended() {
			next = fmt.Sprintf("It is %s. To see what it did: cadre review %s", of.Status, o.Team)
		}
		return said("team %s is here, from %s (%s): %s, made %s; it works in %s. %s", o.Team, p.Remote.Name,
			p.Remote.URL, team.Count(p.Arrived.Seq, "record"), render.Ago(now(), p.Arrived.At), p.Arrived.Dir,
			next)(w)
	})
}

func missingOf(a *transfer.Arrived) []team.Missing {
	if a == nil || a.Missing == nil {
		return []team.Missing{}
	}
	return a.Missing
}

// noteArrived lists what is missing in a restored team, before anything starts.
func (a *app) noteArrived(name string, arrived *transfer.Arrived) {
	for _, lost := range arrived.Redacted {
		a.advise(lost)
	}
	for _, m := range arrived.Missing {
		a.advise(m.Advice(team.Team{Name: name, Dir: arrived.Dir}, m.Task))
	}
	if len(arrived.Left) > 0 || arrived.More > 0 {
		a.note("not in the checkpoint, and not here: " + listed(arrived.Left, arrived.More, checkpoint.Left.String) +
			"; no task names it as its work")
	}
	if len(arrived.Missing) > 0 {
		a.note(fmt.Sprintf("when these files are here: cadre resume %s; to complete the team without them: cadre "+
			"consolidate %s --without TASK", name, name))
	}
}

// moving adds what to type next to an error of a push, pull or resume. mine is the command to type
// again, with what it lacks.
func (a *app) moving(err error, name, mine string) error {
	if errors.Is(err, transfer.ErrNoRepository) {
		return withWays(err, way{"fetch it in a clone of its repository", "cd CLONE && " + render.Typed("pull", name)})
	}
	if fork, ok := errors.AsType[*checkpoint.ForkError](err); ok {
		return withWays(usage{fmt.Errorf("%w\nChoose one; the other stays reachable from the branch.", err)},
			choices(fork, name)...)
	}
	if _, ok := errors.AsType[*transfer.MovedError](err); ok {
		return withWays(usage{err}, way{"take it over here", render.Typed("pull", name)},
			way{"continue this copy, and leave what was done elsewhere", render.Typed("resume", name, "--ours")})
	}
	if suspects, ok := errors.AsType[*transfer.SuspectError](err); ok {
		for i, s := range suspects.Suspects {
			if i < 5 {
				mine += " --include " + sanitize.Quote(s.Path)
			}
		}
		return withWays(usage{fmt.Errorf("%w. A commit cannot be changed", err)},
			way{"push them all the same", mine})
	}
	if missing, ok := errors.AsType[*transfer.MissingCheck](err); ok {
		again := render.Typed("resume", name, "--from-git", "--check", missing.Name+": COMMAND")
		if strings.HasPrefix(mine, "cadre pull") {
			again = render.Typed("pull", name, "--check", missing.Name+": COMMAND")
		}
		return withWays(usage{err}, way{"set it again", again})
	}
	return err
}

// choices returns the commands that keep one of two histories, for each of them.
func choices(fork *checkpoint.ForkError, name string) []way {
	var all []way
	here := false
	for _, s := range fork.Sides {
		here = here || s.Ref == ""
	}
	for _, s := range fork.Sides {
		switch {
		case s.Ref == "":
			all = append(all, way{"continue the one that is here", render.Typed("resume", name, "--ours")},
				way{"push the one that is here", render.Typed("push", name, "--ours")})
		case here && strings.Contains(s.Ref, "/cadre/"):
			remote, _, _ := strings.Cut(s.Ref, "/cadre/")
			all = append(all, way{"continue the one of " + remote,
				render.Typed("pull", name, "--remote", remote, "--theirs")})
		case here:
			all = append(all, way{"remove the copy that is here, and continue the one of " + s.Ref,
				render.Typed("cleanup", name) + " && " + render.Typed("resume", name, "--from-git", "--at", s.Ref)})
		default:
			all = append(all, way{"continue the one of " + s.Ref,
				render.Typed("resume", name, "--from-git", "--at", s.Ref)})
		}
	}
	return all
}
