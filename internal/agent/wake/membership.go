package wake

import (
	"errors"
	"fmt"

	"cadre/internal/liveness/detector"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Seat is a session's place in a team: the member that it is through cadre mcp.
type Seat struct {
	Team, Member string
	Dir          string // the team's folder
}

// server returns the process that serves the seat's tools, if that is a server of the session that
// runs this process. The seat's lock identifies the process. A heartbeat would not, because it may
// come from another process or machine.
func (s Seat) server() (server proc.Holder, ours bool, err error) {
	server, held, err := proc.HolderOf(detector.Presence(s.Dir, s.Member))
	if err != nil || !held {
		return proc.Holder{}, false, err
	}
	session, known := proc.Starter()
	theirs, knows := proc.StarterOf(server.Pid)
	return server, known && knows && session == theirs, nil
}

// Search finds the seats of the session that runs this process.
type Search struct {
	// Teams returns the names of the teams, and Folder the folder of one. An error with the code
	// not_found means that the team does not exist any more.
	Teams  func() ([]string, error)
	Folder func(team string) (string, error)
	// Team and Member restrict the search to that team and member; "" for any.
	Team, Member string
}

// Seats returns the seats of the session. It has several if it has several servers of tools. An
// error in one team does not hide the seats in others: it is returned only if there is no seat. A
// session inside a tool of another one does not have that one's seats.
func (s Search) Seats() ([]Seat, error) {
	teams, err := s.Teams()
	if err != nil {
		return nil, err
	}
	var seats []Seat
	var troubles []error
	for _, name := range teams {
		if s.Team != "" && s.Team != name {
			continue
		}
		found, err := s.of(name)
		seats = append(seats, found...)
		if err != nil {
			troubles = append(troubles, fmt.Errorf("look for this session in team %s: %w", name, err))
		}
	}
	if len(seats) > 0 {
		return seats, nil
	}
	return nil, errors.Join(troubles...)
}

// of returns the seats in one team.
func (s Search) of(name string) (seats []Seat, err error) {
	dir, err := s.Folder(name)
	if team.CodeOf(err) == team.NotFound { // it was removed just now
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	members, err := detector.Present(dir)
	if err != nil {
		return nil, err
	}
	var troubles []error
	for _, member := range members {
		if s.Member != "" && s.Member != member {
			continue
		}
		seat := Seat{Team: name, Member: member, Dir: dir}
		_, ours, err := seat.server()
		if ours {
			seats = append(seats, seat)
		}
		troubles = append(troubles, err)
	}
	return seats, errors.Join(troubles...)
}
