package team

import (
	"cmp"
	"slices"
	"strings"
)

// NestedTeam is the agent of a member that is a team of its own. For each of its tasks it runs a
// team, whose report is the result of the task.
const NestedTeam = "team"

// MostDepth is how deep teams can be nested at most.
const MostDepth = 3

// Nested says what the teams of a member are made from. One of File, Template and Goal is set.
type Nested struct {
	File     string   // absolute path of a team file
	Digest   string   // SHA-256 of that file, or of the template; another text of it is not run
	Template string   // name of a template; one from before templates had digests has none
	Goal     string   // what the team is to do, which an agent leads
	Leader   string   // agent that leads to the goal; "" for the first installed one
	Set      []string // values for the parameters of the file or template: NAME=VALUE
}

// Parent is the member that a nested team is for.
type Parent struct {
	Team   string // id of its team; "" for a team that is not nested
	Name   string // name of that team
	Top    string // name of the outermost team, if that is another one
	Member string // name of the member
	Task   string // id of the task there whose result the report of this team is
	Heard  int64  // number of the last message there that was passed on to the lead here
	Asked  int64  // number of the last question to the lead there, if it was not answered; 0 for none
	Left   Budget // what this team may use at most, with what it has used
	Binds  Budget // the limits of Left that the budget of the member sets, not that of its team
	Own    Budget // budget that it has if that allows it
	Mode   string // permission mode that its members have at most; "" before it is known
	// the member has a worktree, which is this team's directory: its work is checked and committed
	// there
	Worktree bool
}

// Child is a team that a member of this one runs for a task.
type Child struct {
	Team   string // its id
	Name   string // its name
	Member string // member that runs it
	Task   string // task whose result its report is
	Lead   string // agent that leads it; "" for a program, which reads no mail
	Usage  Usage  // what it used, as far as it is counted as the member's
	Heard  int64  // number of its last message that was passed on to the lead here
	// its report was taken for the task, or the task needs none any more. What it has not done yet
	// is ended
	Over bool
}

// Outermost returns the name of the team that contains all others of the tree. It is the team's own
// name if the team is not nested.
func (t *Team) Outermost() string { return cmp.Or(t.Parent.Top, t.Parent.Name, t.Name) }

// withOutermost lists what is done to a nested team by doing it to the outermost team of its tree.
var withOutermost = []Action{ActResume, ActContinueCopy, ActMove, ActTakeOver, ActTakeBack, ActRelease, ActPull,
	ActConsolidate, ActFinish, ActRollBack, ActSkipCommit, ActGoWithout, ActKeepCheckChanges, ActIncludeFiles,
	ActCommitOnly, ActCheckClean}

// Aim returns the hint with the team that it is about. For a nested team that may be the outermost
// team of its tree, or the member that leaves it too small a budget.
func (t *Team) Aim(h Hint) Hint {
	h.Team = t.Name
	switch {
	case slices.Contains(withOutermost, h.Action):
		h.Team = t.Outermost()
	case h.Action == ActRaiseBudget && h.Member == "" && t.leftTooLittle(h.Budget):
		h = t.Parent.raise(h.Budget)
	}
	return h
}

// leftTooLittle reports whether the team's limit is the one that its parent leaves it.
func (t *Team) leftTooLittle(what string) bool {
	left, own := t.Parent.Left.part(what), t.Parent.Own.part(what)
	return left > 0 && (own == 0 || left <= own)
}

// raise returns the hint to raise what the parent leaves its nested team.
func (p *Parent) raise(what string) Hint {
	h := Hint{Action: ActRaiseBudget, Team: p.Name, Budget: what}
	if p.Binds.part(what) > 0 {
		h.Member = p.Member
	}
	return h
}

// placed refuses a worktree to a new member of a team whose work is not merged where that team is.
// One that succeeds another has the isolation of that one.
func (b *SpawnMember) placed(d *decision) error {
	if b.Isolation == "" || d.team.Consolidates() {
		return nil
	}
	if old := d.member(b.Succeeds); old != nil && old.Isolation == b.Isolation {
		return nil
	}
	return Refuse(NotReady, "%s works in the directory of its team, which commits the work there, so no member of team "+
		"%s can have a worktree; leave the isolation out", d.team.Parent.Member, d.team.Name)
}

// Consolidates reports whether the team's work is checked and committed: that of a nested team is
// where its member has a worktree, and is its parent's elsewhere.
func (t *Team) Consolidates() bool { return t.Parent.Team == "" || t.Parent.Worktree }

// OnlyInWorktree refuses a nested team in the directory of its parent what only a team with a
// worktree has. what says that in words. member is the one that is the team.
func OnlyInWorktree(what, member string) error {
	return Refuse(NotReady, "%s works in the directory of its team, which checks and commits the work there, so %s; "+
		"give %s isolation: worktree, or leave that out", member, what, member)
}

// IsTeam reports whether the member is a team of its own.
func (m *Member) IsTeam() bool { return m.Agent == NestedTeam }

// runs reports whether the member has no context of its own: it runs commands, or teams.
func (m *Member) runs() bool { return m.Agent == Shell || m.Agent == NestedTeam }

// unable refuses a task with that command to a member that is a team, which runs no commands.
func (m *Member) unable(t *Task, run string) error {
	if !m.IsTeam() || strings.TrimSpace(run) == "" {
		return nil
	}
	return refuse(Invalid, "%s is a team and runs no commands, and %s has one; give it to another member, such as a "+
		"shell, or leave the command out", m.Name, t.label())
}

// ChildOf returns the child team that is to do the task; false if a new one must be made.
func (s *State) ChildOf(task string) (Child, bool) {
	for _, c := range slices.Backward(s.team.Children) {
		if c.Task == task {
			return c, !c.Over
		}
	}
	return Child{}, false
}

// readsMail reports whether a lead reads mail in the child team that does the task.
func (s *State) readsMail(t *Task) bool {
	c, open := s.ChildOf(t.ID)
	return open && c.Lead != ""
}

// Nest returns what a child team for the task has of this one: its parent, its depth, and how deep
// teams may be nested in it.
func (s *State) Nest(member, task string) (p Parent, depth, maxDepth int64) {
	m := s.member(member)
	p = Parent{Team: s.team.ID, Name: s.team.Name, Member: member, Task: task,
		Worktree: m != nil && m.Isolation == Worktree}
	if top := s.team.Outermost(); top != p.Name {
		p.Top = top
	}
	return p, s.team.Depth + 1, max(0, s.team.MaxDepth-1)
}

// checkDepth refuses an invalid nesting of a new team.
func (b *CreateTeam) checkDepth() error {
	nested := b.Parent.Team != ""
	if nested != (b.Depth > 0) || b.Depth < 0 {
		return refuse(Invalid, "a nested team has a parent and a depth from 1, and other teams have neither")
	}
	if nested {
		if err := CheckNotParent(cmp.Or(b.Lead, DefaultLead)); err != nil {
			return err
		}
		if len(b.Checks) > 0 && !b.Parent.Worktree {
			return OnlyInWorktree("team "+b.Name+" can have no checks", b.Parent.Member)
		}
	}
	return cmp.Or(checkMaxDepth(b.Depth, b.MaxDepth), limit(text{"id of the parent team", b.Parent.Team, MaxID},
		text{"name of the parent team", b.Parent.Name, MaxID}, text{"name of the outermost team", b.Parent.Top, MaxID},
		text{"name of the parent member", b.Parent.Member, MaxID},
		text{"task of the parent team", b.Parent.Task, MaxID}))
}

// checkMaxDepth refuses more teams in teams than there can be.
func checkMaxDepth(depth, maxDepth int64) error {
	if maxDepth < 0 || depth+maxDepth > MostDepth {
		return Refuse(NestedTeamsNotAllowed, "teams can be nested at most %d deep, and with maxDepth %d they would be %d "+
			"deep (%s); 0 is for no teams in the team", MostDepth, maxDepth, depth+maxDepth, NestedTeamsNotAllowed)
	}
	return nil
}

// nestable refuses a nested team where the team may have none.
func (d *decision) nestable(what string) error {
	switch {
	case d.team.MaxDepth > 0:
		return nil
	case d.team.Depth >= MostDepth:
		return Refuse(NestedTeamsNotAllowed, "%s: team %s is nested %d deep already, and teams can be nested at most %d "+
			"deep (%s); give the work to another agent", what, d.team.Name, d.team.Depth, MostDepth, NestedTeamsNotAllowed)
	case d.team.Depth > 0:
		return Refuse(NestedTeamsNotAllowed, "%s: team %s is nested %d deep, and no deeper team is allowed (%s); raise "+
			"maxDepth in the team files above it, or give the work to another agent", what, d.team.Name, d.team.Depth,
			NestedTeamsNotAllowed)
	}
	return Refuse(NestedTeamsNotAllowed, "%s: team %s allows no teams in it (%s); set maxDepth, from 1 to %d, in its "+
		"team file or when it is created, or give the work to another agent", what, d.team.Name, NestedTeamsNotAllowed,
		MostDepth)
}

// nests checks a new member that is a team, and returns what its teams are made from. It returns
// nil for other members. A lead that is an agent gives a goal and nothing else: team files and
// templates have commands.
func (d *decision) nests(b *SpawnMember) (*Nested, error) {
	if b.Agent != NestedTeam {
		if b.Nested != nil {
			return nil, refuse(Invalid, "%s is not a team, and has no team file, template or goal of one; set the agent "+
				"to %s", b.Name, NestedTeam)
		}
		return nil, nil
	}
	if err := d.nestable(b.Name + " cannot be a team"); err != nil {
		return nil, err
	}
	n := Nested{Goal: b.Prompt}
	if b.Nested != nil {
		n = *b.Nested
	}
	sources := 0
	for _, one := range []string{n.File, n.Template, strings.TrimSpace(n.Goal)} {
		if one != "" {
			sources++
		}
	}
	switch {
	case sources != 1:
		return nil, refuse(Invalid, "say what the team %s is made from: one of a team file, a template and a goal", b.Name)
	case n.Goal == "" && d.Actor != User && d.lead().Agent != External:
		return nil, refuse(Denied, "only the user gives a team a team file or a template, which have commands; give %s a "+
			"goal", b.Name)
	case n.File != "" && !absolute(n.File):
		return nil, refuse(Invalid, "the team file %q is not an absolute path", brief(n.File))
	case n.File != "" && n.Digest == "":
		return nil, refuse(Invalid, "the team file of %s has no digest; send the SHA-256 of the text that was read", b.Name)
	case n.Goal != "" && n.Digest != "":
		return nil, refuse(Invalid, "a goal has no digest; leave that of %s out", b.Name)
	case n.Goal != "" && len(n.Set) > 0:
		return nil, refuse(Invalid, "a goal has no parameters; leave the values for %s out", b.Name)
	case n.Leader != "" && n.Goal == "":
		return nil, refuse(Invalid, "the team file of %s says who leads; name a leading agent only with a goal", b.Name)
	case b.PlanApproval:
		return nil, refuse(Invalid, "%s is a team and submits no plan; leave planApproval out, or set it for members of "+
			"that team", b.Name)
	case b.Program != "" || len(b.Args) > 0:
		return nil, refuse(Invalid, "%s is a team and has no program; leave the command and the arguments out", b.Name)
	}
	return &n, limit(text{"path of the team file", n.File, MaxSubject}, text{"digest", n.Digest, MaxSubject},
		text{"name of the template", n.Template, MaxSubject}, text{"goal", n.Goal, MaxText},
		text{"agent", n.Leader, MaxSubject}, text{"values", strings.Join(n.Set, "\n"), MaxText})
}

// BeginChild records which team does the task, before that team is made or continued. So a member
// that continues after any interruption finds it again. If the task has a team already, nothing
// changes but who runs it, unless that team could not be made: Instead is its id then.
type BeginChild struct {
	Task    string
	Team    string // id of the team
	Name    string // its name
	Lead    string // agent that leads it; "" for a program, which reads no mail
	Instead string // id of the team that could not be made; "" for none
}

func (b *BeginChild) decide(d *decision) error {
	m, t, err := d.childTask(b.Task)
	if err != nil {
		return err
	}
	if err := d.nestable("task " + t.Called() + " cannot be done by a team"); err != nil {
		return err
	}
	c := Child{Team: b.Team, Name: b.Name, Member: m.Name, Task: t.ID, Lead: b.Lead}
	if now, open := d.ChildOf(t.ID); open && now.Team != b.Instead {
		if now.Member == m.Name {
			return nil
		}
		c.Team, c.Name, c.Lead = now.Team, now.Name, now.Lead
	} else if open {
		d.emit(&ChildEnded{Team: now.Team})
	}
	if c.Team == "" || c.Name == "" {
		return refuse(Invalid, "the team for task %s has no id or no name", t.Called())
	}
	if err := cmp.Or(CheckName("team", c.Name), limit(text{"id of the team", c.Team, MaxID},
		text{"agent", c.Lead, MaxSubject})); err != nil {
		return err
	}
	d.emit(&ChildBegan{Child: c})
	return nil
}

// childTask returns the actor, which must be a team, and the task, which it must have in progress.
func (d *decision) childTask(id string) (*Member, *Task, error) {
	m, t := d.actor, d.task(id)
	switch {
	case m == nil || !m.IsTeam():
		return nil, nil, refuse(Denied, "only a member that is a team runs one for its tasks")
	case t == nil:
		return nil, nil, d.noTask(id)
	case t.Status != InProgress || t.Owner != m.Name:
		return nil, nil, refuse(Conflict, "%s does not have task %s in progress", m.Name, t.Called())
	}
	return m, t, nil
}

// ReportChild adds what a child team used to the usage of its member. The figures are totals: what
// was counted before is not counted again.
type ReportChild struct {
	Team  string
	Usage Usage
}

func (b *ReportChild) decide(d *decision) error {
	c, err := d.ownChild(b.Team)
	if err != nil {
		return err
	}
	u := b.Usage.beyond(c.Usage)
	if u == (Usage{}) {
		return nil
	}
	total := c.Usage
	total.add(u)
	d.emit(&ChildReported{Team: c.Team, Usage: total, Heard: c.Heard})
	m := d.member(c.Member)
	d.emit(&UsageReported{Member: m.Name, Task: c.Task, Usage: u})
	if m.Status.Running() {
		own := u
		own.add(m.Charged())
		d.checkMemberBudget(m, own)
	}
	u.add(d.team.Usage)
	d.checkBudget(u)
	return nil
}

// ownChild returns the child team with that id. It refuses an actor that does not run it.
func (d *decision) ownChild(id string) (*Child, error) {
	i := slices.IndexFunc(d.team.Children, func(c Child) bool { return c.Team == id })
	switch {
	case i < 0:
		return nil, refuse(NotFound, "team %s has no child team %s", d.team.Name, brief(id))
	case d.Actor != User && !d.isHost() && d.Actor != d.team.Children[i].Member:
		return nil, refuse(Denied, "%s does not run the team %s", brief(d.Actor), d.team.Children[i].Name)
	}
	return &d.team.Children[i], nil
}

// EndChild records that the child team's report was used up, or that the team does no more. The
// next attempt of its task begins with a new team.
type EndChild struct{ Team string }

func (b *EndChild) decide(d *decision) error {
	c, err := d.ownChild(b.Team)
	if err == nil && !c.Over {
		d.emit(&ChildEnded{Team: c.Team})
	}
	return err
}

// beyond returns what u has more than other.
func (u Usage) beyond(other Usage) Usage {
	return Usage{InputTokens: max(0, u.InputTokens-other.InputTokens),
		OutputTokens:     max(0, u.OutputTokens-other.OutputTokens),
		CacheReadTokens:  max(0, u.CacheReadTokens-other.CacheReadTokens),
		CacheWriteTokens: max(0, u.CacheWriteTokens-other.CacheWriteTokens),
		CostMicroUSD:     max(0, u.CostMicroUSD-other.CostMicroUSD)}
}

// The events of nested teams.
type (
	// ChildBegan says which team a member runs for a task. If the team is a child already, the
	// member continues it.
	ChildBegan struct{ Child Child }
	// ChildReported sets what is counted of the child team: its usage, and which of its messages
	// were passed on.
	ChildReported struct {
		Team  string
		Usage Usage
		Heard int64
	}
	// ChildEnded says that nothing more is expected of the child team.
	ChildEnded struct{ Team string }
)

// Kind returns the event's name in the journal.
func (*ChildBegan) Kind() string { return "child_began" }

// Kind returns the event's name in the journal.
func (*ChildReported) Kind() string { return "child_reported" }

// Kind returns the event's name in the journal.
func (*ChildEnded) Kind() string { return "child_ended" }

func (e *ChildBegan) fields(c *coder) { c.sub("child", false, &e.Child) }
func (e *ChildEnded) fields(c *coder) { c.str("team", &e.Team) }

func (e *ChildReported) fields(c *coder) {
	c.str("team", &e.Team)
	c.sub("usage", e.Usage == Usage{}, &e.Usage)
	c.int("heard", &e.Heard)
}

func (n *Nested) fields(c *coder) {
	c.str("file", &n.File)
	c.str("digest", &n.Digest)
	c.str("template", &n.Template)
	c.str("goal", &n.Goal)
	c.str("leader", &n.Leader)
	c.strs("set", &n.Set)
}

func (p *Parent) fields(c *coder) {
	c.str("team", &p.Team)
	c.str("name", &p.Name)
	c.str("top", &p.Top)
	c.str("member", &p.Member)
	c.str("task", &p.Task)
	c.int("heard", &p.Heard)
	c.int("asked", &p.Asked)
	c.sub("left", p.Left == Budget{}, &p.Left)
	c.sub("binds", p.Binds == Budget{}, &p.Binds)
	c.sub("own", p.Own == Budget{}, &p.Own)
	c.str("mode", &p.Mode)
	c.bool("worktree", &p.Worktree)
}

func (c *Child) fields(k *coder) {
	k.str("team", &c.Team)
	k.str("name", &c.Name)
	k.str("member", &c.Member)
	k.str("task", &c.Task)
	k.str("lead", &c.Lead)
	k.sub("usage", c.Usage == Usage{}, &c.Usage)
	k.int("heard", &c.Heard)
	k.bool("over", &c.Over)
}

func (e *ChildBegan) apply(s *State, _ *Record) {
	c := e.Child
	c.Member = s.known(c.Member)
	own(&c.Team, &c.Name, &c.Task, &c.Lead)
	if !s.changeChild(c.Team, func(old *Child) { old.Member, old.Over = c.Member, false }) {
		s.team.Children = append(slices.Clip(s.team.Children), c)
	}
}

func (e *ChildReported) apply(s *State, _ *Record) {
	s.changeChild(e.Team, func(c *Child) { c.Usage, c.Heard = e.Usage, e.Heard })
}

func (e *ChildEnded) apply(s *State, _ *Record) {
	s.changeChild(e.Team, func(c *Child) { c.Over = true })
}

// changeChild changes the child team with that id, in a new list: readers keep the old one.
func (s *State) changeChild(id string, change func(*Child)) bool {
	i := slices.IndexFunc(s.team.Children, func(c Child) bool { return c.Team == id })
	if i < 0 {
		return false
	}
	s.team.Children = slices.Clone(s.team.Children)
	change(&s.team.Children[i])
	return true
}

// childrenOver notes that the child teams of the task have nothing more to do: its result was
// given, or it needs none.
func (s *State) childrenOver(task string) {
	for i := range s.team.Children {
		if c := s.team.Children[i]; c.Task == task && !c.Over {
			s.changeChild(c.Team, func(c *Child) { c.Over = true })
		}
	}
}
