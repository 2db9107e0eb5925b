package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"cadre/internal/engine"
	"cadre/internal/observe"
	"cadre/internal/observe/present"
	observeproto "cadre/internal/observe/protocol"
	"cadre/internal/observe/source"
	"cadre/internal/observe/store"
	"cadre/internal/render"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// observation is one call of cadre observe.
type observation struct {
	*app
	transcripts string
	members     []string // NAME=FILE
	follow      bool
	state       bool
	live        bool // the whole state first, and then its changes
	messages    bool
	pass        bool
	asTeam      string
	sdkURL      string // address to listen on for a program
	insecure    bool   // also on addresses that other machines can reach
	exec        string // that program
	agent       string // of a session without a team
	claudeTeam  string // one that Claude Code runs, by its files

	mu    sync.Mutex    // guards the fields below: lines come from several feeds
	to    *bufio.Writer // standard output
	inner bool          // the last line that was passed on has not ended
	held  [][]byte      // events that wait for that
	noted int           // printed warnings
	told  *present.Live // with --live-state, what was printed of the state so far
	board *screen
}

// observeHelp is the text of cadre observe --help.
const observeHelp = `Watch a team of Claude Code, or a session of another agent, through its output, without changing
anything:

  claude -p --output-format stream-json --verbose ... | cadre observe -
  cadre observe stream.jsonl --state
  cadre observe --transcripts ~/.claude/projects/-home-me-project
  cadre observe lead.jsonl --member alice=alice.jsonl --as-team fx
  cadre observe --sdk-url :8700 --exec claude -- --model opus
  codex exec --json ... | cadre observe --agent codex -
  gemini -p ... --output-format stream-json | cadre observe --agent gemini -
  opencode run --format json ... | cadre observe --agent opencode -
  cadre observe --claude-team session-3ef37f77

If a folder or log has several teams, the one that started last is observed.

On a terminal the command shows the members, tasks and messages live, until you type q. Otherwise it prints a line for
each event. With --json it prints one event a line. With --state it prints the session at the end as one JSON value:
its team, if it has one, and the names of its agents. With --json --live-state the first line is that value at the
start, and each later change is a line with a JSON Patch (RFC 6902). cadre schema observe prints the JSON
Schema of the lines.

- is standard input. Files and transcripts are read to their end. With --follow, and always on a terminal, later
output is read too, until you interrupt the command.

The input itself is not printed, unless you pass --pass. Then standard output is standard input, unchanged, with the
events of --json as lines between its lines, and messages for people are on standard error.

If a stream comes on standard input or through --sdk-url, and the environment is a teammate's (CLAUDE_CODE_TEAM_NAME,
CLAUDE_CODE_AGENT_NAME), the stream counts as that teammate's. A stream that does not name its sender is recognized as a
teammate's by its first message or plan.

With --sdk-url the command is a relay between a Claude Code that connects to it and the program that uses that
session. It passes on both sides unchanged. --exec starts Claude Code with the arguments after --. Its user is
standard input and output with --pass, otherwise a WebSocket; the command prints its address and bearer token (the
token is $CADRE_CONSUMER_TOKEN, if that is set). Without --exec it also prints the address and token for Claude Code.
Called again with the same address and $CLAUDE_CODE_SESSION_ACCESS_TOKEN, it accepts the same session again. It
reports output that was lost while the connection was down. Claude Code 2.1.47 connects; newer versions refuse an
address that is not their maker's.

With --agent the command reads the stream of an agent without teams (codex, gemini, opencode or acp:COMMAND) and shows
it as a team of one. The stream is what the agent prints when it runs alone, as above, or what it sends to a program
that drives it: codex app-server, or the Agent Client Protocol. A stream that ends in the middle of a turn was cut off,
and the session counts as failed. The agent's next session belongs to the same member; then, repeated standard input
counts again.

With --claude-team the command follows the files of a team that Claude Code runs: its roster, tasks and inboxes. It
writes nothing there. TEAM is the name of a folder in Claude Code's teams folder: ls ~/.claude/teams. The command
continues until that team no longer exists, and keeps what it saw as a team: under the same name, or that of
--as-team. With --state it looks once, and keeps nothing without --as-team. With --transcripts it also knows what the
files do not contain, and continues until you interrupt it. If Claude Code creates another team of the same name, that
one replaces the earlier one.

With --as-team the command keeps the team under that name, which all output uses then. cadre ls, status, log and task
list show it like any other team, and no command changes it. Called again, also after kill -9, it continues; repeated
input counts once.`

func (a *app) observeCommand() *cobra.Command {
	o := &observation{app: a}
	c := &cobra.Command{
		Use: "observe [FILE|-]...", Short: "Watch a team of Claude Code, or a session of another agent, by what the " +
			"agents say",
		Long: observeHelp,
		RunE: func(c *cobra.Command, args []string) error { return o.run(c.Context(), args) },
	}
	flags := c.Flags()
	flags.StringVar(&o.transcripts, "transcripts", "", "read all transcripts below this `folder`: a project's, or "+
		"Claude Code's own")
	flags.StringArrayVar(&o.members, "member", nil, "read the stream of a teammate that has a process of its own: "+
		"`NAME=FILE`")
	flags.BoolVarP(&o.follow, "follow", "f", false, "also read what is written later")
	flags.BoolVar(&o.state, "state", false, "print only the session at the end, as one JSON value")
	flags.BoolVar(&o.live, "live-state", false, "with --json, print the session first, and then its changes as "+
		"JSON Patches")
	flags.BoolVar(&o.messages, "messages", false,
		"with --json, print the messages that supplement the agents' own, too")
	flags.BoolVar(&o.pass, "pass", false, "pass standard input on to standard output, unchanged")
	flags.StringVar(&o.sdkURL, "sdk-url", "", "listen on this `address`, :PORT or HOST:PORT, for Claude Code with "+
		"--sdk-url; without a host on this machine alone")
	flags.BoolVar(&o.insecure, "insecure-listen", false, "with --sdk-url, listen also where other machines can "+
		"connect: nothing is encrypted")
	flags.StringVar(&o.exec, "exec", "", "with --sdk-url, start this `command`; {url} in it, else --sdk-url behind "+
		"it, becomes the address")
	flags.StringVar(&o.agent, "agent", "", "observe a session of this `agent`, which has no teams")
	flags.StringVar(&o.claudeTeam, "claude-team", "", "follow the files of this `team` of Claude Code's")
	flags.StringVar(&o.asTeam, "as-team", "", "keep it as a team of this `name`")
	return c
}

func (o *observation) run(ctx context.Context, args []string) error {
	stays()
	if err := o.check(&args); err != nil {
		return err
	}
	closedIsError() // what has to be kept is kept first
	to := o.out.JSON()
	if o.pass {
		to = protocol()
	}
	o.to = bufio.NewWriterSize(to, 64<<10)
	terminal := o.out.terminal() && !o.json && !o.state && !o.pass
	o.follow = o.follow || terminal || o.claudeTeam != "" && !o.state
	if o.claudeTeam != "" && o.asTeam == "" && !o.state {
		o.asTeam = o.claudeTeam
	}
	restore, err := o.observer(args)
	if err != nil {
		return err
	}
	feeds, err := o.feeds(args)
	if err != nil {
		return err
	}
	w := &store.Watch{Now: engine.Now, Look: o.look}
	if o.asTeam != "" {
		if err := o.keep(ctx, w); err != nil {
			return err
		}
		defer w.Kept.Close()
		defer w.Book.Close()
	}
	if err := o.begin(ctx, w, restore); err != nil {
		return quiet(err)
	}
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	if terminal {
		typed := openKeys(slices.Contains(args, "-"), quit)
		o.board = openScreen(o.out, o.observed(), typed != nil, func(see func(*team.State)) {
			w.View(func(seen store.Observer) { see(seen.Team()) })
		})
		if typed != nil {
			defer typed.close()
		}
	}
	err = w.Run(ctx, feeds...)
	if o.board != nil {
		o.board.close()
	}
	if err = o.ended(w, err); err != nil {
		return quiet(err)
	}
	return o.conclude(w)
}

// begin continues the kept observation, or begins a new one. With --live-state it prints the
// session as it is now.
func (o *observation) begin(ctx context.Context, w *store.Watch, restore store.Restore) error {
	switch err := w.Begin(ctx, restore); {
	case errors.Is(err, observe.ErrOther):
		return team.Refuse(team.Taken, "%s is the observation of something else; give this one another name", o.asTeam).
			With(team.Hint{Action: team.ActCleanUp, Team: o.asTeam})
	case errors.Is(err, store.ErrDamaged):
		return withWays(err, way{"start over", render.Typed("cleanup", o.asTeam)})
	case err != nil || !o.live:
		return err
	}
	var first present.StateLine
	w.View(func(seen store.Observer) { o.told, first = present.NewLive(seen) })
	return o.print(first)
}

// quiet ignores the error of a closed output, because everything is kept.
func quiet(err error) error {
	if errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return err
}

// check refuses flags that exclude each other.
func (o *observation) check(args *[]string) error {
	stdin := 0
	for _, arg := range *args {
		if arg == "-" {
			stdin++
		}
	}
	switch {
	case o.exec != "" && o.sdkURL == "":
		return usage{errors.New("--exec is the program that connects to --sdk-url ADDRESS")}
	case o.sdkURL != "" && o.exec == "" && len(*args) > 0:
		return usage{errors.New("with --sdk-url the arguments are those of the program of --exec")}
	case o.insecure && o.sdkURL == "":
		return usage{errors.New("--insecure-listen is for an address that --sdk-url listens on")}
	case o.claudeTeam != "" && o.agent != "":
		return usage{errors.New("--claude-team is a team of Claude Code's, and --agent for agents without teams")}
	case o.sdkURL != "" && o.agent != "":
		return usage{errors.New("--sdk-url is for Claude Code, and --agent for agents without teams")}
	case o.sdkURL != "": // standard input is not observed
	case len(*args) == 0 && o.transcripts == "" && len(o.members) == 0 && o.claudeTeam == "":
		if atTerminal() {
			return withWays(usage{errors.New("say what to observe: a file, - for standard input, --transcripts " +
				"FOLDER or --claude-team TEAM")}, way{seeHelp, "cadre observe --help"})
		}
		*args = []string{"-"}
	case stdin > 1:
		return usage{errors.New("standard input can be read once")}
	case o.pass && stdin == 0:
		return usage{errors.New("--pass passes standard input on, which is not read: name it as -")}
	}
	switch {
	case o.state && o.pass:
		return usage{errors.New("--state and --pass both want standard output")}
	case o.messages && (!o.json || o.state):
		return usage{errors.New("--messages goes with --json")}
	case o.live && o.state:
		return usage{errors.New("--live-state prints the state as it changes, and --state at the end: choose one")}
	case o.live && !o.json:
		return usage{errors.New("--live-state goes with --json")}
	}
	return nil
}

// feeds returns the named sources.
func (o *observation) feeds(args []string) (all []source.Feed, err error) {
	if o.sdkURL != "" {
		f, err := o.relayFeed(args)
		if err != nil {
			return nil, err
		}
		all, args = append(all, f), nil
	}
	if o.claudeTeam != "" {
		f, err := o.claudeFeed()
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	for _, arg := range args {
		if arg == "-" {
			s := &source.Stream{Source: "stdin", Reader: os.Stdin}
			s.Team, s.Member = observeproto.TeammateOf(os.Getenv)
			if o.pass {
				s.Pass, s.Rest = o.passOn, o.flush
			}
			all = append(all, s)
			continue
		}
		path, err := filepath.Abs(arg)
		if err != nil {
			return nil, err
		}
		all = append(all, &source.File{Path: path, Follow: o.follow})
	}
	for _, arg := range o.members {
		name, file, ok := strings.Cut(arg, "=")
		if !ok || name == "" || file == "" {
			return nil, usage{fmt.Errorf("--member %s: it is NAME=FILE", arg)}
		}
		path, err := filepath.Abs(file)
		if err != nil {
			return nil, err
		}
		all = append(all, &source.File{Path: path, Follow: o.follow, Member: name})
	}
	if o.transcripts != "" {
		path, err := filepath.Abs(o.transcripts)
		if err != nil {
			return nil, err
		}
		all = append(all, &source.Transcripts{Dir: path, Follow: o.follow})
	}
	return all, nil
}

// keep stores the watch as a team.
func (o *observation) keep(ctx context.Context, w *store.Watch) (err error) {
	if err := team.CheckName("team", o.asTeam); err != nil {
		return err
	}
	w.Kept, err = store.OpenKept(o.home.Observation(o.asTeam))
	if errors.Is(err, store.ErrObserved) {
		return team.Refuse(team.NotReady, "%s is observed already, by a running process", o.asTeam).
			With(team.Hint{Action: team.ActShowTeam, Team: o.asTeam})
	}
	if err != nil {
		return err
	}
	if w.Book, err = store.OpenBook(ctx, o.home, o.asTeam, o.note); err != nil {
		return errors.Join(err, w.Kept.Discard())
	}
	return nil
}

// look shows what was observed.
func (o *observation) look(of store.Observer, seen observe.Seen) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.board != nil:
		o.board.see(seen)
		return nil
	case o.state:
	case o.json:
		if err := o.events(of, seen); err != nil {
			return err
		}
	default:
		to := o.out
		if o.pass {
			to = o.err
		}
		var folder render.Folder
		for _, r := range seen.Records {
			if err := writeLines(to.Writer, folder.Add(r)); err != nil {
				return err
			}
		}
		if err := writeLines(to.Writer, folder.Rest()); err != nil {
			return err
		}
	}
	for _, text := range seen.Warnings {
		if o.noted++; o.noted <= mostNotes {
			o.note(text)
		} else if o.noted == mostNotes+1 {
			o.note("more of that kind is only counted")
		}
	}
	return nil
}

// mostNotes bounds how many warnings are printed one by one.
const mostNotes = 20

// events prints the observation for programs: the supplements, the events, and their changes of the
// state.
func (o *observation) events(of store.Observer, seen observe.Seen) error {
	var values []any
	if o.messages {
		for _, m := range seen.Supplements {
			values = append(values, m)
		}
	}
	for _, n := range seen.Notices {
		values = append(values, n)
	}
	if o.told != nil {
		if patch := o.told.Next(of, seen.Records); len(patch) > 0 {
			values = append(values, present.StateLine{Type: present.SessionPatch, Patch: patch})
		}
	}
	return o.print(values...)
}

// print prints lines for programs, as soon as the line that is passed on has ended.
func (o *observation) print(values ...any) error {
	var lines [][]byte
	for _, v := range values {
		line, err := json.Marshal(v)
		if err != nil {
			return err
		}
		lines = append(lines, append(sanitize.JSON(line), '\n'))
	}
	if o.inner {
		o.held = append(o.held, lines...)
		return nil
	}
	return o.write(lines)
}

func (o *observation) write(lines [][]byte) error {
	for _, line := range lines {
		if _, err := o.to.Write(line); err != nil {
			return err
		}
	}
	return o.to.Flush()
}

// passOn copies a part of standard input to standard output.
func (o *observation) passOn(piece []byte) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	_, err := o.to.Write(piece)
	o.inner = !bytes.HasSuffix(piece, []byte("\n"))
	if err == nil && !o.inner && len(o.held) > 0 {
		err, o.held = o.write(o.held), nil
	}
	return err
}

func (o *observation) flush() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.to.Flush()
}

// conclude prints the final summary.
func (o *observation) conclude(w *store.Watch) error {
	var session present.Session
	var counts observe.Counts
	none := false
	w.View(func(seen store.Observer) {
		session, counts, none = present.SessionOf(seen), seen.Counts(), seen.Team() == nil
	})
	if len(o.held) > 0 { // the stream that was passed on ended within a line
		if err := o.write(append([][]byte{{'\n'}}, o.held...)); err != nil {
			return err
		}
	}
	o.count(counts, none)
	if !o.state {
		return nil
	}
	return o.out.Value(session)
}

// count reports unusual lines.
func (o *observation) count(c observe.Counts, none bool) {
	var odd []string
	for _, one := range []struct {
		n    int64
		what string
	}{{c.Garbage, "no JSON"}, {c.Truncated, "cut off"}, {c.Huge, "too long"}, {c.InvalidUTF, "no valid UTF-8"},
		{c.Unknown, "with an unknown tool"}, {c.Invalid, "with a call that lacks something"},
		{c.Discarded, "with a call that got no result in time"}, {c.Orphaned, "with a result that got no call in time"},
		{c.Dropped, "of a teammate that no other stream introduced in time"}} {
		if one.n > 0 {
			odd = append(odd, fmt.Sprintf("%d %s", one.n, one.what))
		}
	}
	if len(odd) > 0 {
		o.note(fmt.Sprintf("of %s: %s", team.Count(c.Lines, "line"), strings.Join(odd, ", ")))
	}
	if none && !o.state {
		o.note(fmt.Sprintf("no %s was seen in %s", o.observed(), team.Count(c.Lines, "line")))
	}
}
