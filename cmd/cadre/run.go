package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/consolidate"
	"cadre/internal/engine"
	"cadre/internal/render"
	"cadre/internal/render/excerpt"
	"cadre/internal/render/sanitize"
	"cadre/internal/run"
	"cadre/internal/run/teamfile"
	"cadre/internal/team"
)

// running has the options of one call of cadre run.
type running struct {
	*app
	lead        goalFlags
	dir, report string
	goal        string // of --goal
	template    string // of --template
	timeout     time.Duration
	commits     bool // --consolidate
	dry         bool
	yes         bool     // --yes
	redo        []string // --redo
}

func (a *app) runCommand() *cobra.Command {
	r := &running{app: a}
	c := &cobra.Command{
		Use: "run FILE | run \"GOAL\"", Short: "Run a team file, or a goal, to its end", Args: oneGoal,
		Long: `Run a team file to its end: create the team, run its teammates, and write the lead's report.

With a goal instead of a file an agent leads: it plans tasks, spawns teammates, and writes the report when all is
done. --agent and --model choose the agent and its model; without --agent it is the first one that is installed (cadre
doctor). --template NAME runs an example, and --template alone lists them. A single word counts as a mistyped file and starts nothing;
--goal WORD makes it a goal.

A team uses significantly more tokens than one session: each member has a context of its own. It is worth it for
research, reviews and features whose parts can be explored in parallel; not for routine work, or work in which each
step needs the one before.

Killed or interrupted, the same command continues where it stopped: completed tasks are not done again, and failed
ones are tried again. If the file was changed, the changes are shown and asked about first; --yes applies them without
asking, --dry-run only shows them, and --redo NAME does a completed task again. A team that is complete is archived
under its id, and the file starts over. If the team left files in the
directory that are not committed, the run is refused and lists them; --yes starts over.

A run commits nothing. Work done in worktrees is on the members' branches. The last line names the command that checks
and commits the work: cadre consolidate TEAM. With --consolidate, or consolidate: true in the team file, the run does
that itself.

On a terminal the screen of cadre watch opens after two seconds. When you quit it, it asks whether the team is paused or
continues in the background; --detach continues there at once, and cadre pause TEAM pauses it. The last lines of the run
stand in the terminal when the screen has closed. --plain prints lines and opens no screen; so do CI, TERM=dumb and
"screen": "never" in settings.json in the folder of the teams.

Each line begins with a mark: + a member joined, · a task was added, ▸ a task began, ✓ it is done, ✗ it failed, ↺ it
returned to the queue, ✉ a message, ! something that you should look at.

Exit status 0: every task is completed, and with --consolidate the work is committed; or you let the team continue in
the background. 1: not everything is done, for the reason that is printed; run it again. 2: it cannot work.
With --json every record is printed as it happens, one a line, and the result last.`,
		RunE: func(c *cobra.Command, args []string) error {
			stays()
			if r.app.leave && (r.json || r.dry) {
				return withWays(usage{errors.New("--detach starts a team and prints no result; leave --json and --dry-run out")},
					way{"read a team as JSON", "cadre status TEAM --json"})
			}
			if !r.dry {
				if stands, err := r.inFront(); stands {
					return err
				}
			}
			o, err := r.options(c, args)
			if err != nil {
				return err
			}
			o.Redo, o.Changed, o.StartOver = r.redo, r.changed(c.Context()), r.yes
			if r.dry {
				return a.preview(c.Context(), o)
			}
			ctx := a.pausesUnread(c.Context())
			if r.timeout > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeoutCause(ctx, r.timeout, fmt.Errorf("the time limit of %s was reached", team.Span(r.timeout)))
				defer cancel()
			}
			return r.orStartOver(o, a.runAndConsolidate(ctx, o, r.commits || o.File.Consolidate))
		},
	}
	templateFlag(c, &r.template, "run an example that is in the program; --template alone lists them")
	f := c.Flags()
	f.StringVar(&r.goal, "goal", "", "the goal, also where it is a single word")
	f.StringVar(&r.dir, "dir", ".", "directory that the team works in")
	f.StringVar(&r.report, "report", "",
		"where the report goes; by default where the file says, else NAME-report.md in "+
			"the directory")
	f.DurationVar(&r.timeout, "timeout", 0, "end the run after this time, for example 30m")
	f.BoolVar(&r.commits, "consolidate", false, "when all is done, check what the team did and commit it: "+
		"cadre consolidate")
	f.BoolVar(&r.dry, "dry-run", false, "show what the run would do, and start nothing")
	f.BoolVar(&r.yes, "yes", false, "apply the changes of a team file without asking; "+
		"start over although work of the complete team is not committed")
	f.StringArrayVar(&r.redo, "redo", nil, "do this completed task again, also where only the "+
		"consolidation is left; may be repeated")
	r.lead.flags(c)
	r.paneFlag(c)
	r.plainFlag(c)
	f.BoolVar(&r.app.leave, "detach", false, "start the team, and continue it in the background")
	return c
}

// oneGoal accepts a team file or a goal. Several words without quotes are most likely a goal.
func oneGoal(c *cobra.Command, args []string) error {
	if len(args) > 1 && !slices.ContainsFunc(args, isFile) {
		return withWays(usage{fmt.Errorf("%q is one argument too many. Put a goal in quotes", args[1])},
			way{"run it", line("run", strings.Join(args, " ")).line})
	}
	return counts(c, args, 0, 1)
}

// orStartOver adds the command that starts over, where uncommitted work is in the way.
func (r *running) orStartOver(o run.Options, err error) error {
	if _, is := errors.AsType[*run.UncommittedError](err); !is {
		return err
	}
	again := line("run", o.File.Goal, "--yes").line
	if !strings.HasPrefix(o.Path, team.GoalOrigin) {
		again = r.again(o.Path, "--yes")
	}
	return withWays(err, way{"start over all the same", again})
}

// options returns what to run, and how.
func (r *running) options(c *cobra.Command, args []string) (o run.Options, err error) {
	if o.Dir, err = workDir(r.dir); err != nil {
		return o, err
	}
	r.home = r.home.In(o.Dir)
	o.Engine = r.engine()
	if r.lead.mode, err = r.lead.chosen(c); err != nil {
		return o, err
	}
	if err := r.source(c, args, &o); err != nil {
		return o, err
	}
	if r.report != "" {
		o.Report, err = filepath.Abs(r.report)
	}
	return o, err
}

// source finds the team file, the template or the goal that the arguments name.
func (r *running) source(c *cobra.Command, args []string, o *run.Options) (err error) {
	hasGoal, hasTemplate := c.Flags().Changed("goal"), c.Flags().Changed("template")
	text := r.goal
	switch {
	case hasTemplate && (hasGoal || len(args) > 0):
		return usage{errors.New("--template runs an example; leave the file and the goal out")}
	case hasGoal && len(args) > 0:
		return usage{fmt.Errorf("--goal is the goal already; leave %q or --goal out", args[0])}
	case !hasTemplate && !hasGoal && len(args) == 0:
		return withWays(usage{errors.New("there is nothing to run. Pass a team file or a goal")}, helpOf(c),
			way{"run a team file", "cadre run FILE"}, way{"run a goal", `cadre run "GOAL"`})
	case len(args) > 0:
		text = args[0]
	}
	file := !hasGoal && !hasTemplate && isFile(text)
	if file || hasTemplate {
		if err := onlyForGoal(c, text); err != nil {
			return err
		}
	}
	switch {
	case hasTemplate:
		o.File, o.Path, err = fromTemplate(r.template)
		o.Mode = r.lead.mode
	case file:
		o.File, o.Path, err = r.teamFile(text)
		if errors.Is(err, fs.ErrNotExist) {
			if near := run.NearFile(text); near != "" {
				err = withWays(usage{fmt.Errorf("%w; did you mean %s?", err, near)}, way{"run that", line("run", near).line})
			} else {
				err = noFile(err, text)
			}
		}
		o.Mode = r.lead.mode
	default:
		if !hasGoal {
			err = r.mistyped(c.Context(), text)
		}
		if err == nil {
			err = r.led(c.Context(), text, o)
		}
	}
	return err
}

// led fills in the team that an agent leads to the goal.
func (r *running) led(ctx context.Context, text string, o *run.Options) error {
	goal, err := r.lead.goal(text, o.Dir)
	if err != nil {
		return err
	}
	if o.File, err = goal.File(ctx, o.Engine); errors.Is(err, engine.ErrNoAgent) {
		err = withWays(err, way{"see which agents are installed", "cadre doctor"},
			way{"run a team without a model", "cadre run --template hello"})
	}
	o.Path = team.GoalOrigin + o.Dir
	return err
}

// teamFile reads a team file. It also returns the file's path, which is the same however the file
// is named.
func (a *app) teamFile(name string) (*teamfile.File, string, error) {
	f, path, err := run.LoadFile(name)
	if err != nil {
		return nil, "", usage{err}
	}
	return f, path, nil
}

// mistyped refuses an argument that is more likely a team file or a team than a goal: a directory,
// or a single word. A goal starts an agent, which costs money. It returns nil for anything else.
func (a *app) mistyped(ctx context.Context, text string) error {
	if isDirectory(text) {
		return withWays(usage{fmt.Errorf("%s is a directory. Pass a team file (team.yaml) or a goal in quotes", text)},
			way{seeHelp, "cadre run --help"})
	}
	if !run.IsWord(text) {
		return nil
	}
	word := strings.TrimSpace(text)
	goal := way{"run it as a goal", line("run", "--goal", word).line}
	open, err := a.engine().Unfinished(ctx)
	if err != nil {
		return err
	}
	var unfinished []string
	for _, one := range open { // by its id if other projects also have a team of that name
		unfinished = append(unfinished, one.Name)
	}
	of, err := a.engine().Glance(ctx, word)
	if slices.Contains(unfinished, word) || err == nil && !of.Ended() {
		return withWays(usage{fmt.Errorf("%s is a team, not a team file", word)},
			way{"continue it", line("resume", word).line}, goal)
	}
	if err == nil {
		ways := append([]way{{"see what it did", line("review", word).line}}, restart(of)...)
		return withWays(usage{fmt.Errorf("%s is a team that is %s, not a team file", word, of.Status)}, append(ways, goal)...)
	}
	var likely []way
	if file := run.NearFile(word); file != "" {
		likely = append(likely, way{"run " + file, line("run", file).line})
	}
	if name := teamfile.Nearest(word, unfinished); name != "" {
		likely = append(likely, way{"continue team " + name, line("resume", name).line})
	}
	if len(likely) > 0 {
		return withWays(usage{fmt.Errorf("%s is not a team file or a team", word)}, append(likely, goal)...)
	}
	text = word + " is not a team file or a team, and one word is not taken for a goal"
	if len(unfinished) > 0 {
		text += ". Unfinished teams: " + strings.Join(unfinished, ", ")
	}
	if files := run.TeamFiles("."); len(files) > 0 {
		text += ". Team files here: " + strings.Join(files, ", ")
	}
	return withWays(usage{errors.New(text)}, goal)
}

// noFile adds the team files of the directory to the error for a team file that does not exist.
func noFile(err error, path string) error {
	files := run.TeamFiles(filepath.Dir(path))
	if len(files) == 0 {
		return usage{fmt.Errorf("%w. The directory has no team files", err)}
	}
	return withWays(usage{fmt.Errorf("%w. Team files there: %s", err, strings.Join(files, ", "))},
		way{"run one", line("run", files[0]).line})
}

// restart returns how to run again the file or template of an ended team; nil if unknown.
func restart(of team.Team) []way {
	if name, is := strings.CutPrefix(of.Origin, run.TemplateOrigin); is {
		return []way{{"start over", line("run", "--template", name).line}}
	}
	if of.Origin == "" || strings.HasPrefix(of.Origin, team.GoalOrigin) {
		return nil
	}
	return []way{{"start over", line("run", of.Origin).line}}
}

// ended is the last line that run prints with --json.
type ended struct {
	Result result `json:"result"`
}

// result is how a run ended.
type result struct {
	Team         team.Team   `json:"team"`                   // the team as it is now
	Report       string      `json:"report"`                 // path of the lead's report
	Done         bool        `json:"done"`                   // all tasks are completed, and nothing failed
	Reason       string      `json:"reason,omitempty"`       // why the run is not done; "" if it is
	Completed    int         `json:"completed"`              // number of completed tasks
	Failed       int         `json:"failed"`                 // number of tasks that are out of retries
	Open         int         `json:"open"`                   // number of tasks that are pending or in progress, and not failed
	Took         seconds     `json:"seconds"`                // how long the run took
	Unmerged     []string    `json:"unmerged,omitempty"`     // branches that are not consolidated
	Uncommitted  []string    `json:"uncommitted,omitempty"`  // changed files that are not consolidated
	Unknown      string      `json:"unknown,omitempty"`      // why these files are unknown
	Attention    []team.Item `json:"attention,omitempty"`    // items that wait for a person
	Consolidated *sealedTeam `json:"consolidated,omitempty"` // record of the consolidation, if there was one
}

// seconds is a duration, as a number of seconds in JSON.
type seconds time.Duration

func (d seconds) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).Seconds()) }

// runAndConsolidate runs the team. If commits is set and everything is done, it consolidates the
// team.
func (a *app) runAndConsolidate(ctx context.Context, o run.Options, commits bool) error {
	a.home = a.home.In(o.Dir)
	if commits && o.Consolidates(ctx) { // an earlier run completed the team
		return a.consolidate(ctx, o.File.Name, consolidate.Options{Actor: team.User})
	}
	choice, err := a.choosePanes(o.Dir, false)
	if err != nil {
		return err
	}
	p := &progress{app: a, live: !a.json && a.out.terminal()}
	asker := newAsker(a, p)
	screen := newRunScreen(a, p, asker)
	shown := a.showMembers(choice, p.note)
	o.Engine.Log, o.Said = p.note, p.said
	o.Engine.Advise = func(n team.Note) { p.beside(func() { a.advise(n) }) }
	o.Engine.Warn = func(err error) { p.beside(func() { a.fail(err) }) }
	again := false // the run continues an earlier one
	o.Began = func(t team.Team, continues bool) {
		again = continues
		p.began(t, again)
		screen.begins(ctx, t)
	}
	o.Saw = func(r *team.Record, of *engine.Team) {
		p.saw(r, of)
		asker.saw(ctx, r, of)
		shown.saw(ctx, of)
	}
	o.Hurry, o.Kill, o.Pause = a.haste.hurry, a.haste.kill, a.haste.pause
	screen.notifies(context.WithoutCancel(ctx))
	defer screen.quiet()
	stop := a.announce(ctx, p.note, p.sessions)
	r, err := run.Run(ctx, o)
	screen.ends(err == nil && ctx.Err() == nil && r.Short != nil && slices.ContainsFunc(r.Attention,
		func(i team.Item) bool { return i.WaitsFor == team.ForUser }))
	stop()
	shown.shown.Stop()
	p.clear()
	if err != nil {
		return a.moving(err, o.File.Name, "cadre resume "+o.File.Name)
	}
	done := func() error {
		took := " in " + team.Span(r.Took)
		if again { // earlier runs did some of the tasks
			took = "; this run took " + team.Span(r.Took)
		}
		return a.out.Printf("%d of %d tasks done%s; report: %s\n", r.Completed, r.Completed+r.Failed+r.Open, took, r.Report)
	}
	var sealed sealedTeam
	var failure error
	if commits && r.Done() {
		if !a.json {
			done()
		}
		if sealed, failure = a.consolidated(ctx, r.Team.Name, consolidate.Options{Actor: team.User}); failure == nil {
			r.Pending = consolidate.Pending{}
		}
	}
	why := ""
	switch {
	case r.Short != nil:
		why = explain(r.Short)
	case failure != nil:
		why = explain(failure)
	}
	switch {
	case a.json:
		last := result{Team: r.Team, Report: r.Report, Done: r.Done() && failure == nil, Reason: why,
			Completed: r.Completed, Failed: r.Failed, Open: r.Open, Took: seconds(r.Took),
			Uncommitted: r.Pending.Files, Unknown: r.Pending.Unknown, Attention: r.Attention}
		for _, b := range r.Pending.Branches {
			last.Unmerged = append(last.Unmerged, b.Name)
		}
		if sealed.Record != nil {
			last.Consolidated, last.Team.Status = &sealed, team.TeamComplete
		}
		if err := quiet(a.out.Value(ended{last})); err != nil {
			return err
		}
	case sealed.Record != nil:
		if err := quiet(writeSealed(a.out.Writer, sealed.Record)); err != nil {
			return err
		}
	case failure == nil:
		done()
		if err := quiet(writeFailures(a.out.Writer, r.Failures)); err != nil {
			return err
		}
		items := slices.DeleteFunc(r.Attention, saidAtEnd(r))
		if err := quiet(writeItems(a.out.Writer, a.callable(r.Team), items)); err != nil {
			return err
		}
		if last := next(r, a.callable(r.Team)); last != "" {
			a.out.Printf("%s\n", last)
		}
	}
	_, unchecked := errors.AsType[*consolidate.FailedCheck](failure)
	switch {
	case unchecked:
		return withWays(failure, a.mending(r.Team, o)...)
	case failure != nil:
		return failure
	case r.Done():
		return nil
	case paused(r.Short):
		return team.Refuse(team.NotReady, "paused: %v; the same command continues where this one stopped", r.Short).
			With(team.Hint{Action: team.ActResume, Team: a.callable(r.Team)})
	case r.Team.Ended():
		return withWays(team.Refuse(team.NotReady, "not finished: %v", r.Short).With(team.Hint{Action: team.ActShowReview,
			Team: a.callable(r.Team)}), restart(r.Team)...)
	case team.CodeOf(r.Short) == team.Exhausted:
		return team.Refuse(team.Exhausted,
			"not finished: %v; with a larger budget, the same command continues where this one stopped",
			r.Short).With(team.HintsOf(r.Short)...)
	}
	return team.Refuse(team.NotReady, "not finished: %v; the same command continues where this one stopped", r.Short).
		With(team.HintsOf(r.Short)...)
}

// saidAtEnd returns which items the other lines at the end of a run have said: the failed tasks, the
// command that commits the work, and the error that the same command continues.
func saidAtEnd(r run.Result) func(team.Item) bool {
	return func(i team.Item) bool {
		switch i.Kind {
		case team.ItemConsolidate:
			return true
		case team.ItemTaskFailed:
			return len(r.Failures) > 0
		case team.ItemDormant, team.ItemUnhosted:
			return r.Short != nil && (i.Hint.Action == team.ActResume || slices.ContainsFunc(team.HintsOf(r.Short),
				func(h team.Hint) bool { return h.Action == i.Hint.Action }))
		}
		return false
	}
}

// mostFailures and mostOutput bound how many failed tasks the end of a run shows, and how many
// lines of the output of each.
const mostFailures, mostOutput = 5, 8

// writeFailures names the tasks that failed, with the last lines of their output.
func writeFailures(w *sanitize.Writer, failed []team.Task) error {
	for i, t := range failed {
		if i == mostFailures {
			return w.Printf("… and %s more\n", team.Count(len(failed)-i, "failed task"))
		}
		last, left := excerpt.LastLines(t.Result, mostOutput)
		if left > 0 {
			last = fmt.Sprintf("… %s before\n", team.Count(left, "line")) + last
		}
		if err := w.Printf("✗ task %s failed: %s\n", t.Called(), t.Failure); err != nil {
			return err
		}
		if strings.TrimSpace(last) == "" {
			continue
		}
		if err := w.Printf("%s\n", sanitize.Block(last)); err != nil {
			return err
		}
	}
	return nil
}

// mending returns how to repair the work of a team after a failed check.
func (a *app) mending(t team.Team, o run.Options) []way {
	by := way{"commit it after you repaired it", line("consolidate", a.callable(t)).line}
	if o.File.Leader.Agent != "" {
		return []way{by, {"let the lead repair it", line("resume", a.callable(t)).line}}
	}
	words := []string{o.Path}
	if name, is := strings.CutPrefix(o.Path, run.TemplateOrigin); is {
		words = []string{"--template", name}
	}
	return []way{by, {"have a task done again, also after a change of the file",
		line("run", append(words, "--redo", "TASK", "--consolidate")...).line}}
}

// paused reports whether a signal, or the end of the reader of its output, ended the run early.
func paused(short error) bool {
	_, signaled := errors.AsType[*interruptedError](short)
	return signaled || errors.Is(short, errReaderGone)
}

// someFiles names up to three files.
func someFiles(files []string) string {
	const most = 3
	if more := len(files) - most; more > 0 {
		return strings.Join(files[:most], ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(files, ", ")
}

// next returns the last line of a run: what to consolidate, and the command; "" for nothing. name
// is what the person calls the team.
func next(r run.Result, name string) string {
	var waits []string
	if len(r.Pending.Branches) > 0 {
		waits = append(waits, "work on "+render.Branches(r.Pending.Branches))
	}
	if n := len(r.Pending.Files); n > 0 {
		waits = append(waits, team.Count(n, "file")+" ("+someFiles(r.Pending.Files)+")")
	}
	command := "cadre consolidate " + name
	switch {
	case !r.Done():
		return ""
	case r.Pending.Unknown != "":
		return fmt.Sprintf("it is not known what would be committed: %s; then: %s", r.Pending.Unknown, command)
	case len(waits) > 0:
		return fmt.Sprintf("not committed yet: %s; to check and commit it: %s", strings.Join(waits, ", "), command)
	case r.Team.Status == team.TeamConsolidating:
		return fmt.Sprintf("the checks have not run yet; to run them: %s", command)
	}
	return ""
}
