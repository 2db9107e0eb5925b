package run

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"cadre/internal/engine"
	"cadre/internal/run/teamfile"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// maxTeamFile bounds what is read of a team file, in bytes. More than ten thousand tasks fit.
const maxTeamFile = 16 << 20

// LoadFile reads a team file. It also returns the file's path, which is the same however the file
// is named.
func LoadFile(name string) (*teamfile.File, string, error) {
	data, err := regularfile.Read(name, maxTeamFile)
	if err != nil {
		return nil, "", fmt.Errorf("the team file cannot be read: %w", err)
	}
	f, err := ParseFile(name, data)
	if err != nil {
		return nil, "", err
	}
	path, err := filepath.Abs(name)
	if err != nil {
		return nil, "", err
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return f, path, nil
}

// TemplateOrigin begins the origin of a team that was made from an example in the program. The name
// of the example follows.
const TemplateOrigin = "template:"

// ParseFile parses the text of a team file. Errors give that name.
func ParseFile(name string, data []byte) (*teamfile.File, error) {
	known := []teamfile.Agent{{Name: team.Shell, CommandsOnly: true}, {Name: team.External}}
	for _, model := range engine.Models() {
		known = append(known, teamfile.Agent{Name: model})
	}
	return teamfile.Parse(data, name, append(known, teamfile.Agent{Name: team.ClaudeTmux, Boundless: true, FollowsOnly: true},
		teamfile.Agent{Name: team.ACP, Boundless: true}))
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
	Line    int    `json:"line"`    // line from 1; 0 for the file as a whole
	Column  int    `json:"column"`  // column from 1; 0 for the line as a whole
	Message string `json:"message"` // what is wrong and what to write
}

// Mistakes returns the errors in a file from the error of reading it.
func Mistakes(err error) []Mistake {
	all := []Mistake{}
	found, ok := errors.AsType[teamfile.Errors](err)
	if !ok {
		return append(all, Mistake{Message: err.Error()})
	}
	for _, e := range found {
		all = append(all, Mistake{e.Line, e.Column, e.Message})
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

// Tasks returns the tasks of a team file, each after its blockers, with the ids that they get in a
// new team.
func Tasks(f *teamfile.File) (all []*team.CreateTask) {
	ids := map[string]string{}
	for i, t := range f.Order() {
		ids[t.ID] = fmt.Sprint(i + 1)
		var before []string
		for _, id := range t.BlockedBy {
			before = append(before, ids[id])
		}
		one := create(t, before)
		one.FileDigests = saidOfTask(t).digests()
		all = append(all, one)
	}
	return all
}

// create returns the command that adds the task, blocked by those before it.
func create(t teamfile.Task, before []string) *team.CreateTask {
	return &team.CreateTask{Name: t.ID, Subject: t.Subject, Description: t.Description, Owner: t.Owner, Role: t.Role,
		BlockedBy: before, Priority: t.Priority, Run: t.Run, In: t.In, Dir: t.Dir, Env: t.Env, When: t.When,
		Metadata: t.Metadata, Timeout: t.Timeout, Retries: int64(t.Retries)}
}
