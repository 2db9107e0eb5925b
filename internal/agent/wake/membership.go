package wake

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"cadre/internal/journal/store"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Membership is a session's place in a team: the member that it is through cadre mcp.
type Membership struct {
	Team, Member string
	Dir          string // the team's folder
}

// server returns the process that serves the membership's tools, if that is a server of the session
// that runs this process. The membership's lock identifies the process. A heartbeat would not,
// because it may come from another process or machine.
func (s Membership) server() (server proc.Holder, ours bool, err error) {
	server, held, err := proc.HolderOf(filestore.Team(s.Dir).LeasePath(store.Presence(s.Member)))
	if err != nil || !held {
		return proc.Holder{}, false, err
	}
	session, known := proc.Starter()
	theirs, knows := proc.StarterOf(server.Pid)
	return server, known && knows && session == theirs, nil
}

// Search finds the memberships of the session that runs this process.
type Search struct {
	// Teams returns the names of the teams, and Folder the folder of one. An error with the code
	// not_found means that the team does not exist any more.
	Teams  func() ([]string, error)
	Folder func(team string) (string, error)
	// Team and Member restrict the search to that team and member; "" for any.
	Team, Member string
}

// Memberships returns the memberships of the session. It has several if it has several servers of
// tools. An error in one team does not hide the memberships in others: it is returned only if there
// is no membership. A session that runs inside a tool call of another session does not have the
// other's memberships.
func (s Search) Memberships() ([]Membership, error) {
	teams, err := s.Teams()
	if err != nil {
		return nil, err
	}
	var memberships []Membership
	var troubles []error
	for _, name := range teams {
		if s.Team != "" && s.Team != name {
			continue
		}
		found, err := s.inTeam(name)
		memberships = append(memberships, found...)
		if err != nil {
			troubles = append(troubles, fmt.Errorf("look for this session in team %s: %w", name, err))
		}
	}
	if len(memberships) > 0 {
		return memberships, nil
	}
	return nil, errors.Join(troubles...)
}

// inTeam returns the memberships in one team.
func (s Search) inTeam(name string) (memberships []Membership, err error) {
	dir, err := s.Folder(name)
	if team.CodeOf(err) == team.NotFound { // it was removed just now
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	members, err := present(dir)
	if err != nil {
		return nil, err
	}
	var troubles []error
	for _, member := range members {
		if s.Member != "" && s.Member != member {
			continue
		}
		membership := Membership{Team: name, Member: member, Dir: dir}
		_, ours, err := membership.server()
		if ours {
			memberships = append(memberships, membership)
		}
		troubles = append(troubles, err)
	}
	return memberships, errors.Join(troubles...)
}

// present returns the members that have, or had, an external session of this machine, sorted by
// name.
func present(teamDir string) ([]string, error) {
	entries, err := os.ReadDir(teamDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var members []string
	for _, e := range entries {
		name, isLock := strings.CutSuffix(e.Name(), ".lock")
		if member, of := strings.CutPrefix(name, store.Presence("")); isLock && of && team.ValidName(member) {
			members = append(members, member)
		}
	}
	return members, nil
}
