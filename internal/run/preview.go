package run

import (
	"cmp"
	"context"
	"strings"

	"cadre/internal/agent"
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
	File        *teamfile.File     `json:"-"`
	Refusal     error              `json:"-"` // the error behind Refused
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
	Status    string   `json:"status,omitempty"`    // status with which the run would continue; "" for a new task
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
		Lead:    PreviewMember{Name: f.Lead, Agent: cmp.Or(f.Leader.Agent, team.External), Role: f.Leader.Role},
		Members: []PreviewMember{}, Tasks: []PreviewTask{}}
	for _, m := range f.Members {
		p.Members = append(p.Members, PreviewMember{m.Name, m.Agent, m.Role, m.Isolation})
	}
	for _, t := range f.Order() {
		p.Tasks = append(p.Tasks, PreviewTask{Name: t.ID, Subject: t.Subject, Owner: t.Owner, Role: t.Role,
			BlockedBy: t.BlockedBy, Paths: t.Paths, When: t.When, Run: t.Run})
	}
	for _, c := range f.Checks {
		p.Checks = append(p.Checks, c.Name)
	}
	p.Cannot = a.cannot()
	p.refuse(a.placeForReport())
	a.Engine = o.Engine.In(o.Dir)
	if _, err := a.folder(); team.CodeOf(err) == team.NotFound {
		if len(o.Redo) > 0 {
			return p, nothingToRedo(f.Name)
		}
		p.refuse(a.notInstalled())
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
		p.refuse(a.notInstalled())
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
	if err := a.unlike(t); err != nil {
		return err
	}
	p.Does = "continue"
	p.refuse(a.missing(ctx, t))
	if p.Refusal == nil {
		p.refuse(there.Runnable(ctx))
	}
	if p.Refusal == nil && t.Consolidation.Open() {
		p.refuse(consolidating(t))
	}
	if !strings.HasPrefix(a.Path, team.GoalOrigin) {
		changes, err := Differences(ctx, there, a.File, a.Redo)
		if err != nil {
			return err
		}
		p.Changes = changes.All
		if p.Refusal == nil {
			p.refuse(changes.Refused())
		}
	}
	redone := map[string]bool{}
	for _, c := range p.Changes {
		if c.What == "task" && c.Does == ChangeRedo {
			redone[c.Name] = true
		}
	}
	there.View(func(s *team.State) {
		p.Completed = s.Count(team.Completed) - len(redone)
		for i := range p.Tasks {
			if id, err := s.TaskID(team.ByName(p.Tasks[i].Name)); err == nil {
				one, _ := s.Task(id)
				p.Tasks[i].Status = string(one.Status)
				if redone[one.Called()] {
					p.Tasks[i].Status = string(team.Pending)
				}
			}
		}
	})
	return nil
}

// cannot says which agents of the file are not installed, and which members need them.
func (a *attempt) cannot() (reasons []string) {
	for _, m := range append([]teamfile.Member{a.File.Leader}, a.File.Members...) {
		if m.Agent == "" || m.Agent == team.External {
			continue
		}
		if err := agent.Missing(a.Agent(m.Agent), m.Command); err != nil {
			reasons = append(reasons, cmp.Or(m.Name, a.File.Lead)+": "+m.Agent+" cannot work here: "+err.Error())
		}
	}
	return reasons
}
