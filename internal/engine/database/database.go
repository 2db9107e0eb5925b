// Package database makes the place for teams that live in a PostgreSQL database.
//
// # Authority
//
// The package reads the address that a person gives, with --store or CADRE_STORE, and decides what
// a project is called in a database. The teams themselves are kept by pgjournal.
//
// # Guarantees
//
//   - No child process inherits the address or the credentials: they leave the environment of this
//     process when the place is made. Only our own programs get them, from [layout.Place.Environment].
//   - A place never creates or changes a table. That is up to [Init], which a person calls.
package database

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"cadre/internal/git"
	"cadre/internal/git/project"
	"cadre/internal/journal/pgjournal"
	"cadre/internal/journal/store"
	"cadre/internal/layout"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Variable is the environment variable with the address.
const Variable = "CADRE_STORE"

// Place returns the place at that address. It does not connect yet. It removes the address and
// PostgreSQL's own variables from the environment of this process.
func Place(address string, log func(string)) (*layout.Place, error) {
	at, err := locate(address)
	if err != nil {
		return nil, err
	}
	p := layout.NewPlace(at.Called, Project, func(ctx context.Context) (store.Teams, func(), error) {
		s, err := pgjournal.Connect(ctx, address, pgjournal.Options{Schema: at.Schema, Report: log})
		switch {
		case errors.Is(err, pgjournal.ErrNoTables):
			return nil, nil, team.Refuse(team.NotReady, "%v", err).With(team.Hint{Action: team.ActInitStore})
		case errors.Is(err, pgjournal.ErrOlder):
			return nil, nil, team.Refuse(team.NotReady, "%v", err).With(team.Hint{Action: team.ActMigrateStore})
		case err != nil:
			return nil, nil, fmt.Errorf("%s cannot be reached: %w", at.Called, err)
		}
		return s.Teams(), s.Close, nil
	})
	p.Address, p.Environment = address, takeEnvironment(address)
	return p, nil
}

// Init makes the tables at an address, and grants a role what it needs to work with teams; "" for no
// role. It returns the version of the tables before and after. It refuses tables of an older version.
func Init(ctx context.Context, address, role string) (from, to int, err error) {
	at, err := locate(address)
	if err != nil {
		return 0, 0, err
	}
	now, err := pgjournal.Look(ctx, address, at.Schema)
	if err != nil {
		return 0, 0, err
	}
	if now.Schema > 0 && now.Schema < pgjournal.Version() {
		return 0, 0, team.Refuse(team.NotReady, "the tables in %s have version %d, and this cadre needs %d", at.Called,
			now.Schema, pgjournal.Version()).With(team.Hint{Action: team.ActMigrateStore})
	}
	if from, to, err = pgjournal.Migrate(ctx, address, at.Schema); err == nil && role != "" {
		err = pgjournal.Grant(ctx, address, at.Schema, role)
	}
	return from, to, err
}

// Migrate brings the tables at an address to this version. It returns the version before and after.
// Without tables it refuses.
func Migrate(ctx context.Context, address string) (from, to int, err error) {
	at, err := locate(address)
	if err != nil {
		return 0, 0, err
	}
	now, err := pgjournal.Look(ctx, address, at.Schema)
	if err != nil {
		return 0, 0, err
	}
	if now.Schema == 0 {
		return 0, 0, team.Refuse(team.NotReady, "%s has no tables of cadre", at.Called).
			With(team.Hint{Action: team.ActInitStore})
	}
	return pgjournal.Migrate(ctx, address, at.Schema)
}

func locate(address string) (pgjournal.Location, error) {
	at, err := pgjournal.Locate(address)
	if err != nil {
		return at, team.Refuse(team.Invalid, "%v", err)
	}
	return at, nil
}

// takeEnvironment removes what leads to a database from the environment, and returns it, with the
// address.
func takeEnvironment(address string) []string {
	taken := []string{Variable + "=" + address}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		switch {
		case name == Variable:
			os.Unsetenv(name)
		case strings.HasPrefix(name, "PG"):
			taken = append(taken, variable)
			os.Unsetenv(name)
		}
	}
	return taken
}

// Project returns what the project of a directory is called in a database. A repository has the
// same name on each machine: that of its first commit. Another directory has that of its machine
// and its path.
func Project(dir string) string {
	path, repository := project.Of(dir)
	if repository {
		if first := firstCommit(path); first != "" {
			return "repository " + first
		}
	}
	machine, _ := os.Hostname()
	return machine + ":" + path
}

// firsts has the first commits of repositories: to find one, git reads the whole history.
var firsts sync.Map

// firstCommit returns the first commit of a repository, of several the least one; "" for none.
func firstCommit(repository string) string {
	if known, is := firsts.Load(repository); is {
		return known.(string)
	}
	ctx, cancel := context.WithTimeout(context.Background(), git.DefaultLimit)
	defer cancel()
	procs, err := proc.Open("")
	if err != nil {
		return ""
	}
	defer procs.Close(ctx)
	run := git.Runner{Procs: procs, Dir: repository}
	out, err := run.Text(ctx, "rev-list", "--max-parents=0", "HEAD")
	if err != nil { // there is no commit yet
		return ""
	}
	commits := strings.Fields(out)
	slices.Sort(commits)
	firsts.Store(repository, commits[0])
	return commits[0]
}
