package run

import (
	"fmt"
	"path/filepath"

	"cadre/internal/run/teamfile"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// maxTeamFile is the most that is read of a team file, in bytes: more than ten thousand tasks take.
const maxTeamFile = 16 << 20

// LoadFile reads a team file whose members may be agents of these names besides those that are
// always there. It returns its path as the same file has it however it is named.
func LoadFile(name string, models []string) (*teamfile.File, string, error) {
	data, err := regularfile.Read(name, maxTeamFile)
	if err != nil {
		return nil, "", fmt.Errorf("the team file cannot be read: %w", err)
	}
	known := []teamfile.Agent{{Name: team.Shell, CommandsOnly: true}, {Name: team.External}}
	for _, model := range models {
		known = append(known, teamfile.Agent{Name: model})
	}
	f, err := teamfile.Parse(data, name, append(known, teamfile.Agent{Name: team.ACP, Boundless: true}))
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

// Tasks are the tasks of a team file, each behind those that it comes after, with the ids that they
// get in a new team.
func Tasks(f *teamfile.File) (all []*team.CreateTask) {
	ids := map[string]string{}
	for i, t := range f.Order() {
		ids[t.ID] = fmt.Sprint(i + 1)
		var before []string
		for _, id := range t.BlockedBy {
			before = append(before, ids[id])
		}
		all = append(all, &team.CreateTask{Subject: t.Subject, Description: t.Description, Owner: t.Owner, Role: t.Role,
			BlockedBy: before, Priority: t.Priority, Run: t.Run, In: t.In, TimeoutMS: t.Timeout.Milliseconds(),
			Retries: int64(t.Retries), Metadata: keyed(t.ID)})
	}
	return all
}
