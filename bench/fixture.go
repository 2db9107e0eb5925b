// Package bench compares cadre with baselines in the same run: raw disk, SQLite, a program that
// does nothing. It is a separate module because nothing else needs SQLite.
//
// The results are ratios; `make bench` prints each beside its limit.
package bench

import (
	"fmt"
	"strings"

	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// Build creates a team with that many tasks and at least that many records. Messages that are sent
// and read follow the tasks.
func Build(h layout.Home, name string, tasks, records int) error {
	return BuildNoted(h, name, tasks, records, 0)
}

// BuildNoted is Build for a team with that many notes, which have as much text together as notes
// can.
func BuildNoted(h layout.Home, name string, tasks, records, notes int) error {
	var commands []team.Command
	id := 0
	add := func(actor string, body team.Body) {
		id++
		commands = append(commands, team.Command{ID: fmt.Sprintf("%s-%026d", name, id), Actor: actor,
			At: replica.Now(), Body: body})
	}
	add(team.User, &team.CreateTeam{TeamID: name + "-" + strings.ToLower(replica.NewID()), Name: name, Dir: "/"})
	for i := range 32 {
		add(team.User, &team.SpawnMember{Name: fmt.Sprintf("m%d", i), Agent: team.External})
	}
	for i := range tasks {
		add("lead", &team.CreateTask{Subject: fmt.Sprintf("Look into module %d and mend what is broken there", i),
			Description: "Read the module, run its tests, and report what you changed and why."})
	}
	for i := range notes {
		add("lead", note(i, notes))
	}
	for len(commands) < records {
		from, to := fmt.Sprintf("m%d", len(commands)%32), fmt.Sprintf("m%d", (len(commands)+7)%32)
		add(from, &team.SendMessage{To: to, Body: "The parser is done; the tests of the lexer fail on an empty file. " +
			"Can you look?"})
		add(to, &team.ReceiveMessages{})
	}
	return h.Create(name, commands)
}

// note is a command that sets one of so many notes, which have as much text together as notes can.
func note(i, notes int) team.Body {
	line := fmt.Sprintf("decision %d of the team, with a reason that is as long as reasons are\n", i)
	return &team.SetNote{Key: fmt.Sprintf("decisions/%03d", i),
		Text: strings.Repeat(line, team.MaxNotesText/notes/len(line))}
}
