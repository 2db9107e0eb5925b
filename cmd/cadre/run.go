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
	set         []string // --set
}

func (a *app) runCommand() *cobra.Command {
	r := &running{app: a}
	c := &cobra.Command{Use: "run FILE | run \"GOAL\"", SuggestFor: []string{"start"}, Args: oneGoal,
		Short: "Run a team file, or a goal, to its end",
		Long: `Run a team file to its end: create the team, run its teammates, and write the lead's report.

With a goal instead of a file an agent leads: it plans tasks, spawns teammates, and writes the report when all is
done. --agent and --model choose the agent and its model; without --agent it is the first one that is installed (cadre
doctor). --template NAME runs a template (cadre templates), and --set NAME=VALUE gives a value to a parameter of it, or
of a team file. A single word counts as a mistyped file and starts nothing; --goal WORD makes it a goal.

A team uses significantly more tokens than one session: each member has a context of its own. It is worth it for
research, reviews and features whose parts can be explored in parallel; not for routine work, or work in which each
step needs the one before.

Killed or interrupted, the same command continues where it stopped: completed tasks are not done again, and failed
ones are tried again. If the file was changed, the changes are shown and asked about first; --yes applies them without
asking, --dry-run only shows them, and --redo NAME does a completed task again. A team that is complete is archived
under its id, and the file starts over. If the team left files in the directory that are
not committed, the run is refused and lists them; --yes starts over all the same.

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
		RunE: r.run,
	}
	r.templateFlag(c, &r.template, "run this template; --template alone lists them")
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
		"start over although work of an earlier team of that name is left")
	f.StringArrayVar(&r.redo, "redo", nil, "do this completed task again, also where only the "+
		"consolidation is left; may be repeated")
	f.StringArrayVar(&r.set, "set", nil, "a value for a parameter of the file or template, as NAME=VALUE; may be repeated")
	r.lead.flags(c)
	r.paneFlag(c)
	r.plainFlag(c)
	f.BoolVar(&r.app.leave, "detach", false, "start the team, and continue it in the background")
	return c
}

func (r *running) run(c *cobra.Command, args []string) error {
	stays()
	if r.app.leave && (r.json || r.dry) {
		return withWays(
			usage{errors.New("--detach starts a team and prints no result; leave --json and --dry-run out")},
			way{"read a team as JSON", "cadre status TEAM --json"})
	}
	if !r.dry {
		if stands, err := r.inFront(c.Context()); stands {
			return err
		}
	}
	o, err := r.options(c, args)
	if err != nil {
		return err
	}
	o.Redo, o.Changed, o.StartOver = r.redo, r.changed(c.Context()), r.yes
	if r.dry {
		return r.preview(c.Context(), o)
	}
	ctx := r.pausesUnread(c.Context())
	if r.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.timeout,
			fmt.Errorf("the time limit of %s was reached", team.Span(r.timeout)))
		defer cancel()
	}
	return r.orStartOver(o, r.takeThrough(ctx, o, r.commits || o.File.Consolidate))
}

// oneGoal accepts a team file or a goal. Several words without quotes are most likely a goal.
func oneGoal(c *cobra.Command, args []string) error {
	if len(args) > 1 && !slices.ContainsFunc(args, isFile) {
		return withWays(usage{fmt.Errorf("%q is one argument too many. Put a goal in quotes", args[1])},
			way{"run it", render.Typed("run", strings.Join(args, " "))})
	}
	return counts(c, args, 0, 1)
}

// orStartOver adds the command that starts over, where work of an earlier team is in the way.
func (r *running) orStartOver(o run.Options, err error) error {
	if _, is := errors.AsType[*run.StartOverError](err); !is {
		return err
	}
	again := render.Typed("run", o.File.Goal, "--yes")
	if !strings.HasPrefix(o.Path, team.GoalOrigin) {
		again = r.again(o.Path, "--yes")
	}
	return withWays(err, way{"start over all the same", again})
}

// options returns the options of the run that the arguments and flags ask for.
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
		return usage{errors.New("--template runs a template; leave the file and the goal out")}
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
	set, err := teamfile.ParseSettings(r.set)
	if err != nil {
		return usage{err}
	}
	switch {
	case hasTemplate:
		o.File, o.Path, err = r.fromTemplate(r.template, o.Dir, set)
		o.Mode, err = r.lead.mode, r.unset(err, run.TemplateOrigin+r.template)
	case file:
		o.File, o.Path, err = r.teamFile(text, o.Dir, set...)
		if _, mistakes := errors.AsType[teamfile.Errors](err); errors.Is(err, fs.ErrNotExist) && !mistakes {
			if near := run.NearFile(text); near != "" {
				err = withWays(usage{fmt.Errorf("%w; did you mean %s?", err, near)},
					way{"run that", render.Typed("run", near)})
			} else {
				err = noFile(err, text)
			}
		}
		o.Mode, err = r.lead.mode, r.unset(err, text)
	case len(set) > 0:
		return usage{errors.New("--set is for a team file or a template; write the goal as it is meant")}
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
// is named. dir is the directory of the team.
func (a *app) teamFile(name, dir string, set ...teamfile.Setting) (*teamfile.File, string, error) {
	f, path, err := a.places(dir).Loader().File(name, set...)
	if err != nil {
		return nil, "", a.aboutTemplate(usage{err})
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
	goal := way{"run it as a goal", render.Typed("run", "--goal", word)}
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
			way{"continue it", render.Typed("resume", word)}, goal)
	}
	if err == nil {
		ways := append([]way{{"see what it did", render.Typed("review", word)}}, restart(of)...)
		return withWays(usage{fmt.Errorf("%s is a team that is %s, not a team file", word, of.Status)},
			append(ways, goal)...)
	}
	var likely []way
	if file := run.NearFile(word); file != "" {
		likely = append(likely, way{"run " + file, render.Typed("run", file)})
	}
	if _, err := a.places("").Find(word); err == nil {
		likely = append(likely, way{"run the template " + word, render.Typed("run", "--template", word)})
	}
	if name := team.Nearest(word, unfinished); name != "" {
		likely = append(likely, way{"continue team " + name, render.Typed("resume", name)})
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
		way{"run one", render.Typed("run", files[0])})
}

// restart returns how to run again the file or template of an ended team; nil if unknown.
func restart(of team.Team) []way {
	if name, is := strings.CutPrefix(of.Origin, run.TemplateOrigin); is {
		return []way{{"start over", render.Typed("run", "--template", name)}}
	}
	if of.Origin == "" || strings.HasPrefix(of.Origin, team.GoalOrigin) {
		return nil
	}
	return []way{{"start over", render.Typed("run", of.Origin)}}
}

// ended is the last line that run prints with --json.
type ended struct {
	Result result `json:"result"`
}

// result is how a run ended.
type result struct {
	Team      team.Team `json:"team"`             // the team as it is now
	Report    string    `json:"report"`           // path of the lead's report
	Done      bool      `json:"done"`             // all tasks are completed, and nothing failed
	Reason    string    `json:"reason,omitempty"` // why the run is not done; "" if it is
	Completed int       `json:"completed"`        // number of completed tasks
	Failed    int       `json:"failed"`           // number of tasks that are out of retries
	// number of tasks that are pending or in progress, and not failed
	Open         int         `json:"open"`
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

// takeThrough runs the team and shows how it goes. If commits is set and everything is done, it
// consolidates the team.
func (a *app) takeThrough(ctx context.Context, o run.Options, commits bool) error {
	a.home, a.team = a.home.In(o.Dir), o.File.Name
	var again bool
	var sealed sealedTeam
	steps := run.Steps{
		Work: func(ctx context.Context) (r run.Result, err error) {
			r, again, err = a.shown(ctx, o)
			return r, err
		},
		Done: func(r run.Result) {
			if !a.json {
				a.printDone(r, again)
			}
		},
	}
	if commits {
		steps.Interrupted = o.Consolidates(ctx)
		steps.Consolidate = func(ctx context.Context) (*consolidate.Record, error) {
			var err error
			sealed, err = a.consolidated(ctx, o.File.Name, consolidate.Options{Actor: team.User})
			return sealed.Record, err
		}
	}
	e, err := run.Through(ctx, steps)
	switch {
	case err != nil:
		return a.moving(err, o.File.Name, "cadre resume "+o.File.Name)
	case !e.Ran && e.Failure != nil:
		return e.Failure
	case !e.Ran:
		return a.print(sealed, func(w *sanitize.Writer) error { return writeSealed(w, sealed.Record) })
	}
	if err := a.printRun(runEnd{e, again, sealed}); err != nil {
		return err
	}
	if _, unchecked := errors.AsType[*consolidate.FailedCheck](e.Failure); unchecked {
		return withWays(e.Failure, a.mending(e.Team, o)...)
	}
	if e.Failure != nil {
		return e.Failure
	}
	return a.unfinished(e.Result)
}

// shown runs the team with its screen, its panes and its notifications. It reports whether the run
// continued an earlier one.
func (a *app) shown(ctx context.Context, o run.Options) (r run.Result, again bool, err error) {
	choice, err := a.choosePanes(o.Dir, false)
	if err != nil {
		return r, false, err
	}
	p := &progress{app: a, live: !a.json && a.out.terminal()}
	screen := newRunScreen(a, p, newAsker(a, p))
	shown := a.showMembers(choice, p.note)
	screen.notifies(context.WithoutCancel(ctx))
	defer screen.quiet()
	return screen.follow(ctx, o, shown)
}

// runEnd is how a run ended, for its result.
type runEnd struct {
	run.Ended
	again  bool       // the run continued an earlier one
	sealed sealedTeam // of the consolidation; zero for none
}

// printDone prints how many tasks are done.
func (a *app) printDone(e run.Result, again bool) {
	took := " in " + team.Span(e.Took)
	if again { // earlier runs did some of the tasks
		took = "; this run took " + team.Span(e.Took)
	}
	a.out.Printf("%s%s; report: %s\n", team.TasksDone(e.Completed, e.Completed+e.Failed+e.Open), took, e.Report)
}

// printRun prints the result of a run.
func (a *app) printRun(e runEnd) error {
	switch {
	case a.json:
		return quiet(a.out.Value(ended{e.result()}))
	case e.sealed.Record != nil:
		return quiet(writeSealed(a.out.Writer, e.sealed.Record))
	case e.Failure != nil:
		return nil
	}
	a.printDone(e.Result, e.again)
	if err := quiet(writeFailures(a.out.Writer, e.Failures)); err != nil {
		return err
	}
	items := slices.DeleteFunc(e.Attention, saidAtEnd(e.Result))
	if err := quiet(writeItems(a.out.Writer, a.callable(e.Team), items)); err != nil {
		return err
	}
	if last := next(e.Result, a.callable(e.Team)); last != "" {
		a.out.Printf("%s\n", last)
	}
	return nil
}

// result returns what --json prints of the end of a run.
func (e runEnd) result() result {
	last := result{Team: e.Team, Report: e.Report, Done: e.Done() && e.Failure == nil,
		Completed: e.Completed, Failed: e.Failed, Open: e.Open, Took: seconds(e.Took),
		Uncommitted: e.Pending.Files, Unknown: e.Pending.Unknown, Attention: e.Attention}
	switch {
	case e.Short != nil:
		last.Reason = explain(e.Short)
	case e.Failure != nil:
		last.Reason = explain(e.Failure)
	}
	for _, b := range e.Pending.Branches {
		last.Unmerged = append(last.Unmerged, b.Name)
	}
	if e.sealed.Record != nil {
		last.Consolidated, last.Team.Status = &e.sealed, team.TeamComplete
	}
	return last
}

// unfinished returns why a run did not finish, and what would help; nil if everything is done.
func (a *app) unfinished(r run.Result) error {
	switch {
	case r.Done():
		return nil
	case paused(r.Short):
		return team.Refuse(team.NotReady, "paused: %v; the same command continues where this one stopped", r.Short).
			With(team.Hint{Action: team.ActResume, Team: a.callable(r.Team)})
	case r.Team.Ended():
		review := team.Hint{Action: team.ActShowReview, Team: a.callable(r.Team)}
		return withWays(team.Refuse(team.NotReady, "not finished: %v", r.Short).With(review), restart(r.Team)...)
	case team.CodeOf(r.Short) == team.Conflict: // another session leads now
		return team.Refuse(team.NotReady, "not finished here: %v; the team continues there", r.Short).
			With(team.Hint{Action: team.ActFollowLog, Team: a.callable(r.Team)})
	case team.CodeOf(r.Short) == team.Exhausted:
		return team.Refuse(team.Exhausted,
			"not finished: %v; with a larger budget, the same command continues where this one stopped",
			r.Short).With(team.HintsOf(r.Short)...)
	}
	return team.Refuse(team.NotReady, "not finished: %v; the same command continues where this one stopped", r.Short).
		With(team.HintsOf(r.Short)...)
}

// saidAtEnd returns which items the other lines at the end of a run have said: the failed tasks,
// the command that commits the work, and the error that the same command continues.
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
		if err := w.Printf("✗ task %s failed%s: %s\n", t.Called(), prefix(" by ", t.FailedBy),
			t.Failure); err != nil {
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
	by := way{"commit it after you repaired it", render.Typed("consolidate", a.callable(t))}
	if o.File.Leader.Agent != "" {
		return []way{by, {"let the lead repair it", render.Typed("resume", a.callable(t))}}
	}
	words := []string{o.Path}
	if name, is := strings.CutPrefix(o.Path, run.TemplateOrigin); is {
		words = []string{"--template", name}
	}
	return []way{by, {"have a task done again, also after a change of the file",
		render.Typed("run", append(words, "--redo", "TASK", "--consolidate")...)}}
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
