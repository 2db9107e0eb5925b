package engine

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

	"cadre/internal/agent"
	"cadre/internal/agent/drivers"
	"cadre/internal/agent/envelope"
	"cadre/internal/agent/prompts"
	"cadre/internal/agent/tools"
	"cadre/internal/agent/wake"
	"cadre/internal/claude/settings"
	"cadre/internal/journal/store"
	"cadre/internal/liveness/detector"
	"cadre/internal/liveness/leader"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Outside is a member without a session of cadre's: a person's own agent acts as it, through the
// team's tools. Outside remembers which mail the session was given but has not yet shown to have
// received.
type Outside struct {
	team   *Team
	member string
	dir    string // directory that the session runs in
	tools  *tools.Set

	ctx  context.Context // of background work; ends before the team is closed
	kept *sync.WaitGroup // counts the goroutines of that work

	client atomic.Pointer[wake.Client] // nil until it has introduced itself
	codex  atomic.Pointer[wake.Codex]  // nil for a session that is not woken this way

	mu      sync.Mutex
	started bool
	shown   int64 // the last message that was behind a result
}

// NameOf makes a name for a team from the directory that it works in. ok is false if no part of
// that can be in a name.
func NameOf(dir string) (name string, ok bool) {
	name = strings.Trim(strings.Map(func(r rune) rune {
		if r < 0x80 && team.ValidName("a"+string(r)) {
			return r
		}
		return '-'
	}, filepath.Base(dir)), "-_")
	name = name[:min(len(name), 64)]
	return name, team.ValidName(name)
}

// Attend lets an external session act as the member, "" for the lead, until serve returns. The
// session runs in dir. A member has one session at a time. As the lead it leads the team; if
// another session leads, it works beside that one. When it ends, its teammates are without a lead,
// and notice that after a while. The context of serve ends when another session took the lead over,
// because that session must get the lead's mail, and when it lost the right to act as the member.
func (t *Team) Attend(ctx context.Context, member, dir string,
	serve func(ctx context.Context, o *Outside) error) error {
	if member == "" {
		member = t.Team().Lead
	}
	if err := t.isOutside(member); err != nil {
		return err
	}
	present, err := t.Shared().Acquire(ctx, store.Presence(member))
	if errors.Is(err, store.ErrHeld) {
		return team.Refuse(team.NotReady, "another session is %s in team %s already; end that session, or be another "+
			"member", member, t.Name).With(team.Hint{Action: team.ActSpawn, Team: t.Name, Agent: team.External})
	}
	if err != nil {
		return err
	}
	defer present.Release()
	ctx, stay := store.While(ctx, present)
	defer stay()
	switch _, signed, err := t.Shared().Holder(ctx, store.Presence(member)); {
	case err != nil:
		t.engine.Note("this session cannot be woken: " + err.Error())
	case !signed:
		t.engine.Note("this session cannot be woken, because it is not known which process it is")
	}
	if member == t.Team().Lead {
		leading, release, err := t.leadBeside(ctx)
		if err != nil {
			return err
		}
		defer release()
		ctx = leading
	}
	beside, leave := context.WithCancel(ctx)
	var kept sync.WaitGroup
	defer kept.Wait()
	defer leave()
	kept.Go(func() {
		detector.Keep(beside, detector.Options{Replica: t.Replica, Dir: t.Dir, Shared: t.Shared(), Member: member,
			Log: t.engine.Note})
	})
	o := &Outside{team: t, member: member, dir: dir, ctx: beside, kept: &kept}
	o.tools = o.newTools()
	err = serve(ctx, o)
	if cause := context.Cause(ctx); errors.Is(cause, leader.ErrTakenOver) || errors.Is(cause, store.ErrLost) {
		return team.Refuse(team.Conflict, "%v; this session cannot act in team %s any more", cause, t.Name)
	}
	return err
}

// isOutside refuses a member that cannot have an external session.
func (t *Team) isOutside(name string) error {
	var m team.Member
	var unknown error
	t.View(func(s *team.State) { m, unknown = s.Named(name) })
	switch {
	case unknown != nil:
		return unknown
	case !m.Status.Running():
		return team.Refuse(team.Finished, "%s is %s, and cannot act in team %s any more", name, m.Status, t.Name)
	case m.Agent != team.External:
		return team.Refuse(team.Taken, "%s is a session of %s that cadre runs; a session outside is a member with the "+
			"agent %s", name, m.Agent, team.External).
			With(team.Hint{Action: team.ActSpawn, Team: t.Name, Agent: team.External})
	}
	return nil
}

// leadBeside makes this session lead for as long as it runs, unless another session leads.
func (t *Team) leadBeside(ctx context.Context) (leading context.Context, release func(), err error) {
	of := t.Team()
	lock, err := leader.Claim(ctx, t.Shared())
	if errors.Is(err, store.ErrHeld) {
		t.engine.Note(fmt.Sprintf("session %s leads team %s already; this session works beside it, as the same lead",
			of.LeadSession, of.Name))
		return ctx, func() {}, nil
	}
	if err != nil {
		return nil, nil, err
	}
	lead, err := leader.Take(ctx, leader.Options{Replica: t.Replica, Shared: t.Shared(),
		Session: "mcp-" + strings.ToLower(replica.NewID()), Lease: lock, Beats: true, Agent: true,
		Log: t.engine.Note})
	if err != nil {
		lock.Release()
		return nil, nil, err
	}
	leading, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-lead.Lost():
			cancel(lead.Why())
		case <-leading.Done():
		}
	}()
	return leading, func() {
		cancel(nil)
		lead.Close()
		lock.Release()
	}, nil
}

func (o *Outside) newTools() *tools.Set {
	t := o.team
	return tools.New(tools.Options{Team: o, Member: o.member, Now: replica.Now, Refresh: t.Refresh, Mail: o.mail,
		Wait: t.Wait, LongestWait: o.longest, Records: t.History,
		Agents: func() []string { return append(drivers.Offers(""), team.External) },
		Spawned: func(ctx context.Context, name string) error {
			if m, _ := t.member(name); m.Agent == team.External {
				return nil
			}
			return t.EnsureHost(ctx, name)
		},
		Room:     t.room(),
		Isolates: func(ctx context.Context) error { return Isolates(ctx, t.Team().Dir) },
		Cleanup:  t.Remove})
}

// Tools returns the team's tools for the member.
func (o *Outside) Tools() agent.Tools { return o.tools }

// View calls see with the team's state.
func (o *Outside) View(see func(*team.State)) { o.team.View(see) }

// Do sends a command as the member.
func (o *Outside) Do(ctx context.Context, body team.Body) (*team.Record, error) {
	receipt, err := o.team.Do(ctx, team.Command{Actor: o.member, Body: body})
	return receipt.Record, err
}

// Greet returns the briefing for the session of a client that introduces itself. From then on it is
// woken where its agent has a way.
func (o *Outside) Greet(client string) (instructions string) {
	c := wake.Of(client)
	session := prompts.Unwoken
	if first := o.client.Swap(&c) == nil; first && o.wakes(c) {
		session = prompts.Woken
	}
	o.View(func(s *team.State) { instructions = prompts.Instructions(s, o.member, session) })
	return instructions
}

// Called records which session calls a tool, from the data that its agent sends with the call.
func (o *Outside) Called(beside map[string]any) {
	if c := o.codex.Load(); c != nil {
		c.Called(beside)
	}
}

// wakes reports whether the client's session will be woken from now on.
func (o *Outside) wakes(c wake.Client) bool {
	if c.Agent == team.Claude {
		// The client reads the settings of the directory in which it runs, which may not be the
		// team's, and starts its servers there.
		return o.dir != "" && wake.Session{Claude: o.team.engine.Home.Claude, Dir: o.dir, Managed: settings.Managed(),
			Team: o.team.Name, Member: o.member}.Stays()
	}
	if c.Agent != team.Codex {
		return false
	}
	children, err := proc.Open("")
	if err != nil {
		return false
	}
	end := func() { children.Close(context.WithoutCancel(o.ctx)) }
	codex := &wake.Codex{Home: codexHome(), Dir: o.team.Team().Dir, Children: children}
	if !codex.Stays(o.ctx) {
		end()
		return false
	}
	o.codex.Store(codex)
	o.kept.Go(func() {
		defer end()
		wake.Keep(o.ctx, wake.Options{Seq: o.team.Seq, Wait: o.team.Wait, Log: o.team.engine.Note, Idle: codex.Idle,
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
	user, _ := os.UserHomeDir() // without a home there are no sessions either
	return filepath.Join(user, ".codex")
}

// longest returns how long a call may take before the client counts it as failed.
func (o *Outside) longest() time.Duration {
	if c := o.client.Load(); c != nil {
		return c.Longest
	}
	return wake.Of("").Longest
}

// mail takes the messages that go behind a result. The notes of the team come with the first ones:
// the instructions of a client have no room for them. A later call shows that the earlier result
// arrived, and its mail then counts as read. Mail of a session that ended before showing that is
// given again to the next session.
func (o *Outside) mail(ctx context.Context) (string, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.shown > 0 {
		if _, err := o.Do(ctx, &team.MarkRead{Through: o.shown}); err != nil && team.CodeOf(err) == "" {
			return "", err
		}
		o.shown = 0
	}
	var before []team.Message
	if m, _ := o.team.member(o.member); !o.started && m.DeliveredSeq > m.ReadSeq {
		var err error
		if before, err = o.team.unread(ctx, m); err != nil {
			return "", err
		}
	}
	var notes string
	if !o.started {
		o.View(func(s *team.State) { notes = prompts.Notes(s) })
	}
	o.started = true
	mail, _, err := o.team.take(ctx, o.member, o.member, before)
	if team.CodeOf(err) != "" { // the team takes no more commands, and the mail stays delivered
		mail, err = before, nil
	}
	if err != nil || len(mail) == 0 {
		return notes, err
	}
	o.shown = mail[len(mail)-1].Seq
	return strings.TrimPrefix(notes+"\n\n"+envelope.Batch(o.team.Team().ID, o.member, mail), "\n\n"), nil
}
