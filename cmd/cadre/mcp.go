package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"cadre/internal/agent"
	"cadre/internal/agent/acp"
	"cadre/internal/agent/drivers"
	"cadre/internal/agent/envelope"
	"cadre/internal/agent/mcpserver"
	"cadre/internal/agent/prompts"
	"cadre/internal/agent/tools"
	"cadre/internal/agent/wake"
	"cadre/internal/claude/settings"
	"cadre/internal/consolidate"
	"cadre/internal/engine"
	"cadre/internal/host"
	"cadre/internal/liveness/detector"
	"cadre/internal/liveness/leader"
	"cadre/internal/replica"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

func (a *app) mcpCommand() *cobra.Command {
	var name, as, socket string
	c := &cobra.Command{
		Use: "mcp", Short: "Serve the team's tools to an agent, as MCP on standard input and output", Args: exactly(0),
		Long: `Serve the team's tools to an agent that cadre does not run: add this command as an MCP server to an interactive Claude Code, Codex or
Gemini session, and that session is the lead of the team, or with --as one of its teammates.

  claude mcp add cadre -- cadre mcp --team NAME
  codex mcp add cadre -- cadre mcp --team NAME
  gemini mcp add cadre cadre mcp --team NAME

A team that does not exist is created, with this session as its lead, which is briefed when it connects. Every result of a tool ends with the messages that have
come meanwhile, and with what teammates completed. TeamStatus with wait_seconds waits for the next ones.

A session whose turn has ended is woken when there is news: a Codex by itself, as long as its own server runs; a Claude Code by this hook in its settings.json,
or .claude/settings.local.json:

  ` + wake.Hook + `

Nothing wakes Gemini CLI, opencode, claude -p and codex exec: they are told to wait with TeamStatus.`,
		RunE: func(c *cobra.Command, _ []string) error {
			stays()
			if socket != "" {
				return acp.Relay(c.Context(), socket, os.Stdin, protocol())
			}
			return a.serveTools(c.Context(), name, as)
		},
	}
	c.Flags().StringVar(&name, "team", os.Getenv("CADRE_TEAM"), "the team; by default one named after the directory")
	c.Flags().StringVar(&as, "as", "", "the member that the session is; the lead by default")
	c.Flags().StringVar(&socket, "socket", "", "connect with the socket of a session that cadre runs")
	c.Flags().MarkHidden("socket")
	return c
}

func (a *app) geminiHookCommand() *cobra.Command {
	return &cobra.Command{
		Use: "gemini-hook SOCKET", Hidden: true, Args: exactly(1), Short: "Give a working Gemini CLI its mail before " +
			"it asks its model",
		RunE: func(c *cobra.Command, args []string) error {
			return acp.Hook(c.Context(), args[0], os.Stdin, protocol())
		},
	}
}

// serveTools serves the tools of a member that has no session of ours.
func (a *app) serveTools(ctx context.Context, name, as string) error {
	if name == "" {
		var err error
		if name, err = teamOfDirectory(); err != nil {
			return err
		}
	}
	if _, err := a.home.Folder(name); team.CodeOf(err) == team.NotFound && as == "" {
		if err := a.found(ctx, name); err != nil {
			return err
		}
	}
	t, err := a.engine().Open(ctx, name)
	if err != nil {
		return err
	}
	defer t.Close()
	rep, dir := t.Replica, t.Dir
	if as == "" {
		as = a.actor
	}
	if as == team.User {
		as = rep.Team().Lead
	}
	var m team.Member
	var known bool
	rep.View(func(s *team.State) { m, known = s.Member(as) })
	switch {
	case known && !m.Status.Running():
		return &team.Error{Code: team.Finished, Text: fmt.Sprintf("%s has %s, and acts no more in team %s", as,
			m.Status, name)}
	case !known:
		return &team.Error{Code: team.NotFound, Text: fmt.Sprintf("no member named %q in team %s", as, name)}
	case m.Agent != team.External:
		return &team.Error{Code: team.Taken, Text: fmt.Sprintf("%s is a session of %s that cadre runs; spawn a "+
			"member with --agent external to be that one", as, m.Agent)}
	}
	present, err := filelock.New(detector.Presence(dir, as))
	if errors.Is(err, filelock.ErrHeld) {
		return &team.Error{Code: team.NotReady, Text: fmt.Sprintf("another session is %s in team %s already; end "+
			"that one, or be another member: cadre spawn %s NAME --agent external, and cadre mcp --team %s --as NAME",
			as, name, name, name)}
	}
	if err != nil {
		return err
	}
	defer present.Unlock()
	if err := proc.Sign(present); err != nil {
		a.note("cadre wake does not find this session: " + err.Error())
	}
	if as == rep.Team().Lead {
		leading, release, err := a.leadFrom(ctx, rep, dir)
		if err != nil {
			return err
		}
		defer release()
		ctx = leading
	}
	keeping, takeLeave := context.WithCancel(ctx)
	var kept sync.WaitGroup
	kept.Go(func() { detector.Keep(keeping, detector.Options{Replica: rep, Dir: dir, Member: as, Log: a.note}) })
	defer kept.Wait()
	defer takeLeave()
	box := &outsider{app: a, replica: rep, name: name, member: as, ctx: keeping, kept: &kept}
	tools := tools.New(tools.Options{Team: box, Member: as, Now: replica.Now, Refresh: rep.Refresh, Mail: box.mail,
		Wait: rep.Wait, LongestWait: box.longest, Agents: func() []string {
			return append(drivers.Offers(""),
				team.External)
		},
		Spawned: func(ctx context.Context, member string) error {
			rep.View(func(s *team.State) { m, _ = s.Member(member) })
			if m.Agent == team.External {
				return nil
			}
			return t.EnsureHost(ctx, member)
		},
		Isolates: func(ctx context.Context) error { return engine.Isolates(ctx, rep.Team().Dir) },
		Cleanup: func(ctx context.Context) error {
			if err := host.Settle(ctx, filepath.Join(dir, "hosts"), rep.Team().Dir, a.note); err != nil {
				return err
			}
			if err := host.DropWork(ctx, rep.Team()); err != nil {
				a.fail(err)
			}
			return a.removeFolder(dir)
		}})
	err = mcpserver.Stdio(ctx, tools, os.Stdin, protocol(), mcpserver.Options{Name: agent.ToolServerName,
		Version: version, Greet: box.greet, Called: box.called})
	if cause := context.Cause(ctx); errors.Is(cause, leader.ErrTakenOver) {
		return &team.Error{Code: team.Conflict, Text: fmt.Sprintf("%v; this one acts no more in team %s", cause, name)}
	}
	return err
}

// leadFrom has this session lead the team for as long as it lives, unless another one does: then it
// works beside that. When it ends its teammates are without a lead, and after a while they know.
// The context that it returns ends when the lead was taken over: who has it then is to have its
// mail, too.
func (a *app) leadFrom(ctx context.Context, rep *replica.Replica,
	dir string) (leading context.Context, release func(), err error) {
	t := rep.Team()
	lock, err := leader.Claim(dir)
	if errors.Is(err, filelock.ErrHeld) {
		a.note(fmt.Sprintf("session %s leads team %s already; this one works beside it, as the same lead",
			t.LeadSession, t.Name))
		return ctx, func() {}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	lead, err := leader.Take(ctx, leader.Options{Replica: rep, Dir: dir,
		Session: "mcp-" + strings.ToLower(replica.NewID()), Beats: true, Agent: true, Log: a.note})
	if err != nil {
		lock.Unlock()
		return nil, nil, err
	}
	leading, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-lead.Lost():
			cancel(leader.ErrTakenOver)
		case <-leading.Done():
		}
	}()
	return leading, func() {
		cancel(nil)
		lead.Close()
		lock.Unlock()
	}, nil
}

// teamOfDirectory is a name for a team, made from where this is.
func teamOfDirectory() (string, error) {
	dir, err := workDir(".")
	if err != nil {
		return "", err
	}
	name := strings.Trim(strings.Map(func(r rune) rune {
		if r < 0x80 && team.ValidName("a"+string(r)) {
			return r
		}
		return '-'
	}, filepath.Base(dir)), "-_")
	if name = name[:min(len(name), 64)]; !team.ValidName(name) {
		return "", usage{errors.New("no team can be named after this directory; say which one: --team NAME")}
	}
	return name, nil
}

// found creates a team whose lead is the session that asks for its tools.
func (a *app) found(ctx context.Context, name string) error {
	dir, err := workDir(".")
	if err != nil {
		return err
	}
	body := &team.CreateTeam{TeamID: name + "-" + strings.ToLower(replica.NewID()), Name: name, Dir: dir,
		Lead: team.DefaultLead,
		Base: consolidate.Look(ctx, dir, a.home.Root, a.home.Claude)}
	err = a.home.Create(name, []team.Command{{ID: replica.NewID(), Actor: team.User, At: replica.Now(), Body: body}})
	if team.CodeOf(err) == team.Taken { // somebody was faster
		return nil
	}
	return err
}

// outsider acts as a member that has no session of ours, and knows what it was given but has not
// shown to have read.
type outsider struct {
	app          *app
	replica      *replica.Replica
	name, member string

	ctx  context.Context // of what stays beside the tools, and ends before the replica does
	kept *sync.WaitGroup // has it

	client atomic.Pointer[wake.Client] // nil until it has introduced itself
	codex  atomic.Pointer[wake.Codex]  // nil for a session that is not woken so

	mu    sync.Mutex
	begun bool
	shown int64 // the last message that was at the end of a result
}

func (o *outsider) Do(ctx context.Context, body team.Body) (*team.Record, error) {
	receipt, err := o.replica.Do(ctx, team.Command{Actor: o.member, Body: body})
	return receipt.Record, err
}

// greet returns the briefing for the session of a client that introduces itself. From then on it is
// woken where its agent has a way.
func (o *outsider) greet(client string) (instructions string) {
	c := wake.Of(client)
	session := prompts.Unwoken
	if first := o.client.Swap(&c) == nil; first && o.wakes(c) {
		session = prompts.Woken
	}
	o.View(func(s *team.State) { instructions = prompts.Instructions(s, o.member, session) })
	return instructions
}

// called takes note of the session that calls.
func (o *outsider) called(beside map[string]any) {
	if c := o.codex.Load(); c != nil {
		c.Called(beside)
	}
}

// wakes reports whether the session of the client is woken from now on.
func (o *outsider) wakes(c wake.Client) bool {
	if c.Agent == team.Claude {
		// It reads the settings of the directory in which it runs, which need not be the team's,
		// and starts its servers there.
		here, err := workDir(".")
		return err == nil && wake.Session{Claude: o.app.home.Claude, Dir: here, Managed: settings.Managed(), Team: o.name,
			Member: o.member}.Stays()
	}
	if c.Agent != team.Codex {
		return false
	}
	children, err := proc.Open("")
	if err != nil {
		return false
	}
	end := func() { children.Close(context.WithoutCancel(o.ctx)) }
	codex := &wake.Codex{Home: codexHome(), Dir: o.replica.Team().Dir, Children: children}
	if !codex.Stays(o.ctx) {
		end()
		return false
	}
	o.codex.Store(codex)
	o.kept.Go(func() {
		defer end()
		wake.Keep(o.ctx, wake.Options{Seq: o.replica.Seq, Wait: o.replica.Wait, Log: o.app.note, Idle: codex.Idle,
			News: func() (news wake.News) {
				o.View(func(s *team.State) { news = wake.NewsOf(s, o.member) })
				return news
			},
			Wake: func(ctx context.Context) error { return codex.Wake(ctx, prompts.News) }})
	})
	return true
}

func codexHome() string {
	if home := os.Getenv("CODEX_HOME"); home != "" {
		return home
	}
	user, _ := os.UserHomeDir() // without one there are no sessions either
	return filepath.Join(user, ".codex")
}

// longest is how long a call may take before the client counts it as failed.
func (o *outsider) longest() time.Duration {
	if c := o.client.Load(); c != nil {
		return c.Longest
	}
	return wake.Of("").Longest
}

func (o *outsider) View(see func(*team.State)) { o.replica.View(see) }

// mail takes the messages that go behind a result. A further call shows that the result before it
// came through, so what was with that is read then; what was given to a session that ended before
// it showed so is repeated to the next one.
func (o *outsider) mail(ctx context.Context) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.shown > 0 {
		if _, err := o.Do(ctx, &team.MarkRead{Through: o.shown}); err != nil && team.CodeOf(err) == "" {
			return "", err
		}
		o.shown = 0
	}
	var m team.Member
	o.View(func(s *team.State) { m, _ = s.Member(o.member) })
	var mail []team.Message
	if !o.begun && m.DeliveredSeq > m.ReadSeq {
		before, err := handedOut(ctx, o.replica, m)
		if err != nil {
			return "", err
		}
		mail = before
	}
	o.begun = true
	var inbox []team.Message
	o.View(func(s *team.State) { inbox = s.Inbox(o.member) })
	r, err := o.Do(ctx, &team.ReceiveMessages{})
	if err != nil && team.CodeOf(err) == "" {
		return "", err
	}
	taken, _ := find[*team.MessagesDelivered](r)
	fresh, err := o.app.settle(ctx, o.replica, inbox, taken, team.Member{})
	if err != nil {
		return "", err
	}
	if mail = append(mail, fresh...); len(mail) == 0 {
		return "", nil
	}
	o.shown = mail[len(mail)-1].Seq
	return envelope.Batch(o.replica.Team().ID, o.member, mail), nil
}
