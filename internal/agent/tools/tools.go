// Package tools is the set of tools with which an agent works in its team: what they are called,
// what they take, and what an agent reads when it has called one.
//
// # Authority
//
// The table in table.go is the only place where the tools are defined; whoever serves them takes
// them from here. The team package has every rule: a tool turns its input into commands, and what
// became of them into words. It says of a refusal which tool to use next.
//
// # A call
//
//	input ──▶ known, complete, of the right kind ──▶ commands on the replica ──▶ words ──▶ and the member's mail behind them
//	             └─ a mistake: all of it named, nothing done                     └─ refused: why, and what to do next
//
// # Guarantees
//
//   - A member is offered what it may use, and a call of anything else says whom to ask.
//   - A call that is made again does nothing twice where that can be told: what is so already is an
//     answer, not a failure.
//   - Nothing that another member wrote passes for the words of a tool, or for a message: it is one
//     line, clipped, quoted where it looks like our own marks, or else set off at the left.
//   - The member's mail, where there is some, is behind the result of every call, also of a failed
//     one.
//
// A Toolbox keeps nothing between calls and may be used from any goroutine.
package tools

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"cadre/internal/agent"
	"cadre/internal/team"
)

// Options of a set of tools. Team, Member and Now are needed.
type Options struct {
	Team   agent.Team       // on which the member acts
	Member string           // whose tools these are
	Now    func() team.Time // the present time, for deadlines

	// Refresh brings what Team shows up to date before a call; nil where it is so already.
	Refresh func(ctx context.Context) error
	// Mail returns the messages that the member was not given yet, as it is to read them, and ""
	// for none. It is called at the end of every call, and its text stands behind the result. When
	// the messages count as delivered is its affair. With nil, ReadMessages takes the messages and
	// counts them as delivered, and other results carry none.
	Mail func(ctx context.Context) (text string, err error)
	// Wait returns when there is a record after seq after, with Team up to date, and with an error
	// when ctx ends. With nil TeamStatus cannot wait, because the member is woken: a session that
	// is not needs it.
	Wait func(ctx context.Context, after int64) error
	// LongestWait bounds what TeamStatus waits in one call; nil for [MaxWait]. An agent that gives
	// up its calls sooner than that is not to see one fail.
	LongestWait func() time.Duration
	// Agents returns the agents that SpawnTeammate may start, the usual one first; nil for any.
	Agents func() []string
	// Spawned is called when a member was added, or is there already and the call was made again:
	// it needs a host.
	Spawned func(ctx context.Context, name string) error
	// Isolates says why no member can have a worktree of its own here; nil where it can, or nobody
	// asks.
	Isolates func(ctx context.Context) error
	// Cleanup is called when the team has been cleaned up: it has folders that go now. With nil the
	// team is removed by who runs it, after the lead's report, and CleanupTeam only says so: a lead
	// that ended its team itself would be ended before it could report.
	Cleanup func(ctx context.Context) error
}

// MaxWait is the longest that TeamStatus waits in one call.
const MaxWait = 10 * time.Minute

// Toolbox is the tools of one member. It is an [agent.Tools].
type Set struct{ o Options }

// New returns the tools of a member.
func New(o Options) *Set { return &Set{o} }

// separator stands between a result and the mail behind it. No line of a result begins so.
const separator = "\n\n----\n"

// List returns the tools that the member is offered.
func (b *Set) List() []agent.Tool {
	leads := b.leads()
	var offered []agent.Tool
	for i := range table {
		if t := &table[i]; t.offeredTo(leads) {
			offered = append(offered, agent.Tool{Name: t.name, Description: t.about, Schema: b.schema(t)})
		}
	}
	return offered
}

func (b *Set) leads() (leads bool) {
	b.o.Team.View(func(s *team.State) { leads = s.Team().Lead == b.o.Member })
	return leads
}

// call is one call of a tool.
type call struct {
	*Set
	ctx   context.Context
	tool  string
	me    string
	leads bool
	over  bool // nobody is to get mail any more
}

// Call calls a tool.
func (b *Set) Call(ctx context.Context, name string, input json.RawMessage) (text string, failed bool) {
	c := &call{Set: b, ctx: ctx, tool: name, me: b.o.Member, leads: b.leads()}
	text, err := c.run(input)
	if err != nil {
		text = c.explain(err)
	}
	if b.o.Mail == nil || c.over || ctx.Err() != nil { // mail for a call that was cancelled would be lost
		return text, err != nil
	}
	mail, trouble := b.o.Mail(ctx)
	switch {
	case trouble != nil:
		mail = "Your messages could not be read now: " + line(trouble.Error(), mostOfAnError) +
			"\nThey are kept; call ReadMessages later."
	case name == readMessages && err == nil && mail == "":
		text = noMessages
	}
	if mail != "" {
		text += separator + mail
	}
	return text, err != nil
}

func (c *call) run(input json.RawMessage) (string, error) {
	t := find(c.tool)
	switch {
	case t == nil:
		return "", mistake("There is no tool %s. Your tools are: %s.", quoted(c.tool), strings.Join(c.offered(), ", "))
	case t.who == lead && !c.leads:
		return "", mistake("%s is for the lead alone. Ask %s for it with SendMessage.", t.name, c.lead())
	case t.who == teammates && c.leads:
		return "", mistake("%s is for teammates, and you are the lead: %s", t.name, t.instead)
	}
	if c.o.Refresh != nil {
		if err := c.o.Refresh(c.ctx); err != nil {
			return "", err
		}
	}
	if !c.exists() && t.name != cleanupTeam {
		return "", mistake("There is no team any more: it was cleaned up. Stop working and end your turn.")
	}
	return t.call(c, input)
}

func (c *call) exists() (there bool) {
	c.view(func(s *team.State) { there = s.Exists() })
	return there
}

func (c *call) offered() (names []string) {
	for i := range table {
		if table[i].offeredTo(c.leads) {
			names = append(names, table[i].name)
		}
	}
	return names
}

// view looks at the team.
func (c *call) view(see func(*team.State)) { c.o.Team.View(see) }

func (c *call) do(body team.Body) (*team.Record, error) { return c.o.Team.Do(c.ctx, body) }

func (c *call) lead() (name string) {
	c.view(func(s *team.State) { name = s.Team().Lead })
	return name
}

func (c *call) task(id string) (t team.Task, ok bool) {
	c.view(func(s *team.State) { t, ok = s.Task(id) })
	return t, ok
}

func (c *call) member(name string) (m team.Member, ok bool) {
	c.view(func(s *team.State) { m, ok = s.Member(name) })
	return m, ok
}

// refused is what the team would say to a command at the moment; nil if it would take it.
func (c *call) refused(body team.Body) (err error) {
	c.view(func(s *team.State) {
		_, err = team.Decide(s, team.Command{ID: "asked beforehand", Actor: c.me, At: c.o.Now(), Body: body})
	})
	return err
}

// name is the member's name as the team spells it. Agents write @ann, Ann, or ann@team.
func (c *call) name(written string) string {
	names := []string{}
	c.view(func(s *team.State) {
		for _, m := range s.Members() {
			names = append(names, m.Name)
		}
		written = strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(written), "@"), "@"+s.Team().Name)
	})
	if !slices.Contains(names, written) {
		if i := slices.IndexFunc(names, func(n string) bool { return strings.EqualFold(n, written) }); i >= 0 {
			return names[i]
		}
	}
	return written
}

// found returns the first event of a kind in a record; a record that is nil has none.
func found[E team.Event](r *team.Record) (e E, ok bool) {
	if r != nil {
		for _, one := range r.Events {
			if e, ok := one.(E); ok {
				return e, true
			}
		}
	}
	return e, false
}

// blunder is a call that makes no sense as it is. Its text is ours and complete.
type blunder struct{ text string }

func (b *blunder) Error() string { return b.text }

func isBlunder(err error) bool {
	_, ok := errors.AsType[*blunder](err)
	return ok
}
