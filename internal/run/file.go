package run

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"cadre/internal/engine"
	"cadre/internal/run/teamfile"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// maxTeamFile bounds what is read of a team file, in bytes. More than ten thousand tasks fit.
const maxTeamFile = 16 << 20

// LoadFile reads a team file as [Loader.File] does, without the templates of its members.
func LoadFile(name string, set ...teamfile.Setting) (*teamfile.File, string, error) {
	return Loader{}.File(name, set...)
}

// nests reports whether a member of the file is a team.
func nests(f *teamfile.File) bool {
	return slices.ContainsFunc(f.Members, func(m teamfile.Member) bool { return m.Agent == team.NestedTeam })
}

// NestedOf returns what the teams of the member are made from; nil for a member that is not a team.
func NestedOf(m teamfile.Member) *team.Nested {
	if m.Agent != team.NestedTeam {
		return nil
	}
	n := m.Nested
	return &team.Nested{File: n.Path, Digest: n.Digest, Template: n.Template, Goal: n.Goal, Leader: n.Lead,
		Set: wordsOf(n.Set)}
}

// wordsOf returns settings as a person writes them: NAME=VALUE.
func wordsOf(set []teamfile.Setting) (words []string) {
	for _, one := range set {
		words = append(words, one.Name+"="+one.Text)
	}
	return words
}

func read(name string) ([]byte, error) {
	data, err := regularfile.Read(name, maxTeamFile)
	if err != nil {
		return nil, fmt.Errorf("the team file cannot be read: %w", err)
	}
	return data, nil
}

// TemplateOrigin begins the origin of a team that was made from an example in the program. The name
// of the example follows.
const TemplateOrigin = "template:"

// ParseFile parses the text of a team file, with values for its parameters. Errors give that name.
func ParseFile(name string, data []byte, set ...teamfile.Setting) (*teamfile.File, error) {
	return teamfile.ParseWith(data, name, knownAgents(), set)
}

// ParseUnset parses the text of a team file whose parameters may have no values yet.
func ParseUnset(name string, data []byte) (*teamfile.File, error) {
	return teamfile.ParseUnset(data, name, knownAgents())
}

// knownAgents returns the agents that a team file can name.
func knownAgents() []teamfile.Agent {
	known := []teamfile.Agent{{Name: team.Shell, CommandsOnly: true}, {Name: team.External}}
	for _, model := range engine.Models() {
		known = append(known, teamfile.Agent{Name: model})
	}
	return append(known, teamfile.Agent{Name: team.ClaudeTmux, Boundless: true, FollowsOnly: true},
		teamfile.Agent{Name: team.NestedTeam, Nests: true, FollowsOnly: true},
		teamfile.Agent{Name: team.ACP, Boundless: true})
}

// LoadTasks reads tasks for an existing team from a file, or from in for "-".
func LoadTasks(name string, in io.Reader) ([]teamfile.Task, error) {
	if name == "-" {
		data, err := io.ReadAll(io.LimitReader(in, maxTeamFile+1))
		if err != nil {
			return nil, fmt.Errorf("the tasks cannot be read: %w", err)
		}
		return teamfile.ParseTasks(data, "standard input")
	}
	data, err := regularfile.Read(name, maxTeamFile)
	if err != nil {
		return nil, fmt.Errorf("the tasks cannot be read: %w", err)
	}
	return teamfile.ParseTasks(data, name)
}

// Mistake is one error in a file.
type Mistake struct {
	File    string `json:"file,omitempty"` // path of the file, if it is that of a team in a team
	Line    int    `json:"line"`           // line from 1; 0 for an error that is not in the file
	Column  int    `json:"column"`         // column from 1; 0 for an error that is not in the file
	Message string `json:"message"`        // what is wrong and what to write
}

// Mistakes returns the errors in a file from the error of reading it.
func Mistakes(err error) []Mistake {
	all := []Mistake{}
	found, ok := errors.AsType[teamfile.Errors](err)
	if !ok {
		return append(all, Mistake{Message: err.Error()})
	}
	for _, e := range found {
		one := Mistake{Line: e.Line, Column: e.Column, Message: e.Words()}
		if e.Line == 0 {
			one.Message = e.Error()
		}
		if len(e.Namers) > 0 {
			one.File = e.File
		}
		all = append(all, one)
	}
	return all
}

// AddTasks returns the command that adds the tasks, all or none, to an existing team. A blocker is
// one of these tasks, or else a task of the team as a person names it.
func AddTasks(s *team.State, tasks []teamfile.Task) (team.Body, error) {
	own := map[string]bool{}
	for _, t := range tasks {
		own[t.ID] = t.ID != ""
	}
	batch := &team.Batch{}
	for _, t := range tasks {
		var before []string
		for _, ref := range t.BlockedBy {
			ref, err := blocker(s, own, ref)
			if err != nil {
				return nil, err
			}
			before = append(before, ref)
		}
		batch.Bodies = append(batch.Bodies, create(t, before))
	}
	return batch, nil
}

// blocker returns the name that a command needs for a task that a person named.
func blocker(s *team.State, own map[string]bool, ref string) (string, error) {
	if !own[ref] {
		return s.TaskID(ref)
	}
	if t, there := s.Task(ref); there && t.Status != team.Deleted {
		return "",
			team.Refuse(team.Invalid, "%s is the id of a task that is added, and the number of one of the team (%s): "+
				"write '#%s' for that, or give the new one another id", ref, t.Subject, t.ID)
	}
	return team.ByName(ref), nil
}

// Tasks returns the tasks of a team file, each after its blockers.
func Tasks(f *teamfile.File) (all []*team.CreateTask) {
	for _, t := range f.Order() {
		var before []string
		for _, id := range t.BlockedBy {
			before = append(before, byName(id))
		}
		one := create(t, before)
		one.FileDigests = saidOfTask(t).digests()
		all = append(all, one)
	}
	return all
}

// byName returns a reference to the task of that name in a new team. A name of digits could be the
// number of another task.
func byName(name string) string {
	if strings.Trim(name, "0123456789") == "" {
		return team.ByName(name)
	}
	return name
}

// create returns the command that adds the task, blocked by those before it.
func create(t teamfile.Task, before []string) *team.CreateTask {
	c := &team.CreateTask{Name: t.ID, Subject: t.Subject, Description: t.Description, Owner: t.Owner, Role: t.Role,
		BlockedBy: before, Priority: t.Priority, Run: t.Run, In: t.In, Dir: t.Dir, Env: t.Env, When: t.When,
		Schema: t.Result, Check: checkOf(t), Paths: t.Paths, ForEach: t.ForEach, Metadata: t.Metadata,
		Timeout: t.Timeout,
		Retries: int64(t.Retries)}
	if v := t.Verify; v.By != "" {
		c.Verify = &team.Verify{By: v.By, Count: int64(v.Count), Rule: v.Rule, Rounds: int64(v.Rounds)}
	}
	return c
}
