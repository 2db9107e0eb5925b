// Package tools is the set of tools with which an agent works in its team: their names, inputs, and
// results.
//
// # Authority
//
// The table in table.go is the only place where the tools are defined; their servers use it.
// Package team has all rules: a tool turns its input into commands, and their outcome into words.
// For a refusal, it names the tool to use next.
//
// # A call
//
//	input ──▶ known, complete, of the right kind ──▶ commands on the replica ──▶ words ──▶ followed by the member's mail
//	             └─ a mistake: all of it named, nothing done                     └─ refused: why, and what to do next
//
// # Guarantees
//
//   - A member is offered the tools that it may use. A call of another tool says which member to ask.
//   - A repeated call changes nothing twice, as far as that can be detected: an outcome that exists
//     already is an answer, not a failure.
//   - Nothing that another member wrote can pass for the words of a tool, or for a message. It is
//     one line, shortened, quoted if it looks like our own marks, or set off at the left.
//   - The member's mail follows the result of every call, even of a failed one.
//
// A [Set] keeps nothing between calls, and may be used from any goroutine.
package tools

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"cadre/internal/agent"
	"cadre/internal/journal"
	"cadre/internal/team"
)

// Options of a set of tools. Team, Member and Now are required.
type Options struct {
	Team   agent.Team       // the member's access to the team
	Member string           // the member that has these tools
	Now    func() team.Time // the present time, for deadlines

	// Refresh updates what Team shows before a call; nil if it is always up to date.
	Refresh func(ctx context.Context) error
	// Mail returns the messages that the member has not got yet, as text; "" for none. It is called
	// at the end of every call, and its text follows the result. It decides when the messages count
	// as delivered. If it is nil, ReadMessages takes the messages and counts them as delivered, and
	// other results carry none.
	Mail func(ctx context.Context) (text string, err error)
	// Wait returns when there is a record after seq after, with Team up to date, or with an error
	// when ctx ends. If it is nil, TeamStatus cannot wait. A session that nothing wakes needs it.
	Wait func(ctx context.Context, after int64) error
	// LongestWait bounds how long TeamStatus waits in one call; nil for [MaxWait]. It is for an
	// agent that aborts calls sooner.
	LongestWait func() time.Duration
	// Records returns the history of the team. If it is nil, the member has no TeamSearch.
	Records func(ctx context.Context) iter.Seq2[journal.Record, error]
	// Agents returns the agents that SpawnTeammate may start, the default first; nil for any.
	Agents func() []string
	// Without are tools that the team does not have; nil for none.
	Without []string
	// Spawned is called when a member was added, or exists already and the call was repeated: it
	// needs a host.
	Spawned func(ctx context.Context, name string) error
	// Room reserves room for a teammate with a session that is about to be added, or refuses it;
	// nil if nobody counts. giveBack is called if the teammate is not added.
	Room func(ctx context.Context, name string) (giveBack func(), err error)
	// Isolates says why no member can have a worktree of its own here; nil if it can, or if that is
	// unknown.
	Isolates func(ctx context.Context) error
	// Cleanup is called after the team has been cleaned up, to remove its folders. If it is nil,
	// the process that runs the team removes it after the lead's report, and CleanupTeam only says
	// so. A lead that ended its team itself would be ended before its report.
	Cleanup func(ctx context.Context) error
}

// MaxWait is the longest that TeamStatus waits in one call.
const MaxWait = 10 * time.Minute

// Set is the tools of one member. It implements [agent.Tools].
type Set struct{ o Options }

// New returns the tools of a member.
func New(o Options) *Set { return &Set{o} }

// separator is the line between a result and the mail after it. No line of a result begins with it.
const separator = "\n\n----\n"

// List returns the tools that the member is offered.
func (b *Set) List() []agent.Tool {
	leads := b.leads()
	var offered []agent.Tool
	for i := range table {
		if t := &table[i]; b.offers(t, leads) {
			offered = append(offered, agent.Tool{Name: t.name, Description: t.about, Schema: b.schema(t)})
		}
	}
	return offered
}

// offers reports whether the member may use the tool, and the team has it.
func (b *Set) offers(t *tool, leads bool) bool {
	return t.offeredTo(leads) && !slices.Contains(b.o.Without, t.name) && (t.name != teamSearch || b.o.Records != nil)
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
	over  bool // no member gets mail any more
}

// Call calls a tool.
func (b *Set) Call(ctx context.Context, name string, input json.RawMessage) (text string, failed bool) {
	c := &call{Set: b, ctx: ctx, tool: name, me: b.o.Member, leads: b.leads()}
	text, err := c.run(input)
	if err != nil {
		text = c.explain(err)
	}
	if b.o.Mail == nil || c.over || ctx.Err() != nil { // the mail of a cancelled call would be lost
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
	case t == nil || slices.Contains(c.o.Without, t.name):
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
		return "", mistake("The team does not exist any more: it was cleaned up. Stop working and end your turn.")
	}
	return t.call(c, input)
}

func (c *call) exists() (there bool) {
	c.view(func(s *team.State) { there = s.Exists() })
	return there
}

func (c *call) offered() (names []string) {
	for i := range table {
		if c.offers(&table[i], c.leads) {
			names = append(names, table[i].name)
		}
	}
	return names
}

// view calls see with the team.
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

// tasks replaces what the agent calls tasks by their ids. Other texts are left for the team to
// refuse, in its own words.
func (c *call) tasks(refs ...*string) (err error) {
	c.view(func(s *team.State) {
		for _, ref := range refs {
			for _, read := range readings(*ref) {
				id, refused := s.TaskID(read)
				if team.CodeOf(refused) == team.Invalid { // a number that is a name, too
					err = refused
				} else if refused != nil {
					continue
				}
				*ref = id
				break
			}
		}
	})
	return err
}

// readings returns the ways to read what an agent wrote for a task, starting with the form that we
// show: 3, #3, lint, "task 3", Task #3.
func readings(ref string) []string {
	all := []string{ref}
	if len(ref) > len("task") && strings.EqualFold(ref[:len("task")], "task") {
		all = append(all, strings.TrimSpace(ref[len("task"):]))
	}
	return all
}

// every returns the places of those texts.
func every(lists ...[]string) (all []*string) {
	for _, list := range lists {
		for i := range list {
			all = append(all, &list[i])
		}
	}
	return all
}

// ref returns the name of a task for use within our words.
func (c *call) ref(id string) (ref string) {
	c.view(func(s *team.State) { ref = s.Refs([]string{id})[0] })
	return ref
}

func (c *call) refs(ids []string) (refs string) {
	c.view(func(s *team.State) { refs = strings.Join(s.Refs(ids), ", ") })
	return refs
}

func (c *call) member(name string) (m team.Member, ok bool) {
	c.view(func(s *team.State) { m, ok = s.Member(name) })
	return m, ok
}

// refused returns the team's refusal of a command at the moment; nil if it would accept it.
func (c *call) refused(body team.Body) (err error) {
	c.view(func(s *team.State) {
		_, err = team.Decide(s, team.Command{ID: "asked beforehand", Actor: c.me, At: c.o.Now(), Body: body})
	})
	return err
}

// name returns the member's name as the team spells it. Agents write @ann, Ann, or ann@team.
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

// blunder reports a call that makes no sense. Its text is ours and complete.
type blunder struct{ text string }

func (b *blunder) Error() string { return b.text }

func isBlunder(err error) bool {
	_, ok := errors.AsType[*blunder](err)
	return ok
}
