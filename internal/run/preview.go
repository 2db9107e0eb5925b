package run

import (
	"cmp"
	"context"
	"strings"

	"cadre/internal/engine"
	"cadre/internal/run/teamfile"
	"cadre/internal/team"
)

// Preview says what a run would do.
type Preview struct {
	Team      string          `json:"team"` // name of the team
	Dir       string          `json:"dir"`  // absolute path of the directory in which it would work
	Does      string          `json:"does"` // create, continue, or start_over if the earlier team has ended
	Lead      PreviewMember   `json:"lead"`
	Members   []PreviewMember `json:"members"`
	Tasks     []PreviewTask   `json:"tasks"`             // in the order in which they would be added
	Report    string          `json:"report"`            // path of the lead's report
	Completed int             `json:"completed"`         // number of completed tasks that the run would not do again
	Cannot    []string        `json:"cannot,omitempty"`  // why agents cannot run here
	Refused   string          `json:"refused,omitempty"` // why the run would be refused
	// how many teammates would have a turn at a time; 0 for no limit
	MaxParallel int                `json:"maxParallel,omitempty"`
	Parameters  []PreviewParameter `json:"parameters,omitempty"` // of the team file, with their values
	Checks      []string           `json:"checks,omitempty"`     // checks that would run before the commit
	Changes     []Change           `json:"changes,omitempty"`    // changes of the file of a team that it continues
	// the teams in the team, each followed by those in it
	ChildTeams []PreviewTeam `json:"childTeams,omitempty"`
	// open tasks that were added to the team without the file: the run would do them, too
	ByHand  []PreviewTask  `json:"byHand,omitempty"`
	File    *teamfile.File `json:"-"`
	Refusal error          `json:"-"` // the error behind Refused
}

// PreviewParameter is a parameter with the value that the run would use.
type PreviewParameter struct {
	Name    string `json:"name"`              // name of the parameter
	Value   string `json:"value"`             // its value; of a list its only entry, or a JSON list
	Default bool   `json:"default,omitempty"` // the value is the default
}

// parametersOf returns the parameters of the file with their values.
func parametersOf(f *teamfile.File) (all []PreviewParameter) {
	set := map[string]string{} // those that differ from the defaults
	for _, s := range f.Settings() {
		set[s.Name] = s.Text
	}
	for _, p := range f.Parameters {
		one := PreviewParameter{p.Name, p.Default, true}
		if text, is := set[p.Name]; is {
			one.Value, one.Default = text, false
		}
		all = append(all, one)
	}
	return all
}

// PreviewMember is a member that the team would have.
type PreviewMember struct {
	Name      string `json:"name"`                // name of the member
	Agent     string `json:"agent"`               // agent that would run its sessions
	Role      string `json:"role,omitempty"`      // its role; "" for none
	Isolation string `json:"isolation,omitempty"` // worktree, or "" for the team's directory
	// labels of the machine that would run it; none where the team is run
	RunsOn []string `json:"runsOn,omitempty"`
}

// PreviewTeam is what the teams of members would be made from: one for each task of such a member.
type PreviewTeam struct {
	// the members, each behind the members whose teams it is in: sub/deep
	Of       []string        `json:"of"`
	Level    int             `json:"level"`              // 1 for a team in the team, 2 for one in that
	File     string          `json:"file,omitempty"`     // path of the team file that it is made from
	Template string          `json:"template,omitempty"` // name of the template that it is made from
	Goal     string          `json:"goal,omitempty"`     // goal to which an agent leads it
	Lead     PreviewMember   `json:"lead"`               // its lead; without an agent for the first installed one
	Members  []PreviewMember `json:"members"`            // its members
	Tasks    []PreviewTask   `json:"tasks"`              // its tasks, in the order in which they would be added
}

// PreviewTask is a task that the team would have.
type PreviewTask struct {
	Name      string   `json:"name"`                // its name; "" for a task without one
	Subject   string   `json:"subject"`             // its title
	Owner     string   `json:"owner,omitempty"`     // member that it is assigned to; "" for any
	Role      string   `json:"role,omitempty"`      // only members of this role take it; "" for any
	BlockedBy []string `json:"blockedBy,omitempty"` // names of the tasks that it waits for
	Paths     []string `json:"paths,omitempty"`     // patterns of the files that it changes
	When      string   `json:"when,omitempty"`      // always, or "" for after the completion of its blockers
	Run       string   `json:"run,omitempty"`       // command for a shell member
	// where the items come from for which it makes tasks; "" for a task that makes none, or did so
	// before
	ForEach    string   `json:"forEach,omitempty"`
	Items      []string `json:"items,omitempty"`      // these items, if known; files as they are now
	ItemsKnown bool     `json:"itemsKnown,omitempty"` // the items are known: no command prints them
	Status     string   `json:"status,omitempty"`     // status with which the run would continue; "" for a new task
	// its status now as people see it, such as failed, blocked or skipped; "" for a new task
	State string `json:"state,omitempty"`
}

// leadOf returns the lead of the file's team.
func leadOf(f *teamfile.File) PreviewMember {
	return PreviewMember{Name: f.Lead, Agent: cmp.Or(f.Leader.Agent, team.External), Role: f.Leader.Role}
}

// membersOf returns the members of the file's team, without the lead.
func membersOf(f *teamfile.File) []PreviewMember {
	all := []PreviewMember{}
	for _, m := range f.Members {
		all = append(all, PreviewMember{m.Name, m.Agent, m.Role, m.Isolation, m.RunsOn})
	}
	return all
}

// tasksOf returns the tasks of the file's team.
func tasksOf(f *teamfile.File) []PreviewTask {
	all := []PreviewTask{}
	for _, t := range f.Order() {
		one := PreviewTask{Name: t.ID, Subject: t.Subject, Owner: t.Owner, Role: t.Role,
			BlockedBy: t.BlockedBy, Paths: t.Paths, When: t.When, Run: t.Run}
		one.itemsOf(t)
		all = append(all, one)
	}
	return all
}

// TeamsIn returns the teams in the file's team, each followed by those in it.
func TeamsIn(f *teamfile.File) []PreviewTeam { return teamsIn(f, "", 1) }

// teamsIn returns the teams in the file's team, which are at that level, each followed by those in
// it. in names the members in whose teams these are; "" for none.
func teamsIn(f *teamfile.File, in string, level int) (all []PreviewTeam) {
	at := -1 // place of the team of the member before
	for i, m := range f.Members {
		n, path := m.Nested, below(in, m.Name)
		if m.Agent != team.NestedTeam {
			continue
		}
		if i > 0 && n.Beside(f.Members[i-1].Nested) {
			all[at].Of = append(all[at].Of, path)
			continue
		}
		one := PreviewTeam{Of: []string{path}, Level: level, File: n.File, Template: n.Template, Goal: n.Goal,
			Lead: PreviewMember{Name: teamfile.DefaultLead, Agent: n.Lead}, Members: []PreviewMember{}, Tasks: []PreviewTask{}}
		if n.Of != nil {
			one.Lead, one.Members, one.Tasks = leadOf(n.Of), membersOf(n.Of), tasksOf(n.Of)
		}
		at = len(all)
		all = append(all, one)
		if n.Of != nil {
			all = append(all, teamsIn(n.Of, path, level+1)...)
		}
	}
	return all
}

// Look returns what [Run] would do, without doing it. An existing team that Run would not continue
// is an error.
func Look(ctx context.Context, o Options) (Preview, error) {
	if o.Agent == nil {
		o.Agent = o.Engine.Agents.Agent
	}
	a := &attempt{Options: o}
	f := o.File
	p := Preview{Team: f.Name, Dir: o.Dir, Does: "create", Report: a.reportPath(), File: f,
		MaxParallel: f.MaxParallel, Parameters: parametersOf(f),
		Lead: leadOf(f), Members: membersOf(f), Tasks: tasksOf(f), ChildTeams: TeamsIn(f)}
	for _, c := range f.Checks {
		p.Checks = append(p.Checks, c.Name)
	}
	p.Cannot = a.cannot()
	p.findFiles(ctx)
	p.refuse(a.placeForReport())
	a.Engine = o.Engine.In(o.Dir)
	if _, err := a.folder(); team.CodeOf(err) == team.NotFound {
		if len(o.Redo) > 0 {
			return p, nothingToRedo(f.Name)
		}
		p.refuse(a.able(ctx))
		if p.Refusal == nil {
			p.refuse(a.unfinishedInGit(ctx))
		}
		return p, nil
	} else if err != nil {
		return p, err
	}
	there, err := a.Engine.Look(ctx, f.Name)
	if err != nil {
		return p, err
	}
	defer there.Close()
	return p, p.beside(ctx, a, there)
}

// refuse records why a run would be refused; nil for no reason.
func (p *Preview) refuse(err error) {
	if err != nil {
		p.Refused, p.Refusal = err.Error(), err
	}
}

// beside compares the file with the existing team.
func (p *Preview) beside(ctx context.Context, a *attempt, there *engine.Team) error {
	t := there.Team()
	if t.Ended() {
		p.Does = "start_over"
		if len(a.Redo) > 0 {
			return nothingToRedo(t.Name)
		}
		p.refuse(a.able(ctx))
		if !t.CleanedUp && p.Refusal == nil {
			var members []team.Member
			there.View(func(s *team.State) { members = s.Members() })
			p.refuse(a.uncommitted(ctx, there))
			if p.Refusal == nil {
				p.refuse(merged(ctx, t, members))
			}
		}
		return nil
	}
	p.Does = "continue"
	gone := a.missing(ctx, t)
	p.refuse(gone)
	if gone == nil {
		if err := a.unlike(t); err != nil {
			return err
		}
		p.refuse(there.Runnable(ctx))
	}
	if p.Refusal == nil && t.Consolidation.Open() {
		p.refuse(consolidating(t))
	}
	if gone == nil && !strings.HasPrefix(a.Path, team.GoalOrigin) {
		changes, err := Differences(ctx, there, a.File, a.Redo)
		if err != nil {
			return err
		}
		p.Changes = changes.All
		if p.Refusal == nil {
			p.refuse(changes.Refused())
		}
	}
	there.View(func(s *team.State) { p.progress(s, a.File) })
	return nil
}

// progress says how far the team has come with the tasks of the file and those added by hand.
func (p *Preview) progress(s *team.State, f *teamfile.File) {
	redone := map[string]bool{}
	for _, c := range p.Changes {
		if c.What == "task" && c.Does == ChangeRedo {
			redone[c.Name] = true
		}
	}
	p.Completed = s.Count(team.Completed) - len(redone)
	p.ByHand = byHand(s, f)
	for i := range p.Tasks {
		if id, err := s.TaskID(team.ByName(p.Tasks[i].Name)); err == nil {
			one, _ := s.Task(id)
			p.Tasks[i].Status, p.Tasks[i].State = string(one.Status), one.State()
			if one.Expanded && !redone[one.Called()] {
				p.Tasks[i].ForEach, p.Tasks[i].Items, p.Tasks[i].ItemsKnown = "", nil, false
			}
			if redone[one.Called()] {
				p.Tasks[i].Status = string(team.Pending)
			}
		}
	}
}

// byHand returns the open tasks of the team that were added without its file. A team that was made
// from a goal has none, and of one from before digests they are unknown.
func byHand(s *team.State, f *teamfile.File) (all []PreviewTask) {
	of := s.Team()
	if of.FileDigests == nil || strings.HasPrefix(of.Origin, team.GoalOrigin) {
		return nil
	}
	inFile := map[string]bool{}
	for _, t := range f.Tasks {
		inFile[t.ID] = true
	}
	for t := range s.Tasks() {
		if t.Status == team.Completed || t.FileDigests != nil || inFile[fileID(t)] || t.Of != "" || t.Verifies != "" {
			continue
		}
		all = append(all, PreviewTask{Name: t.Called(), Subject: t.Subject, Owner: t.Owner, Role: t.Role,
			BlockedBy: s.CalledAll(t.BlockedBy), Paths: t.Paths, When: t.When, Run: t.Run, Status: string(t.Status),
			State: t.State()})
	}
	return all
}
