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
//   - Whoever works with teams never makes or changes a table. That is up to [Database.Init] and
//     [Database.Migrate], which a person calls.
package database

import (
	"cmp"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"sync"

	"cadre/internal/git"
	"cadre/internal/git/project"
	"cadre/internal/journal"
	"cadre/internal/journal/pgjournal"
	"cadre/internal/journal/store"
	"cadre/internal/layout"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Variable is the environment variable with the address.
const Variable = "CADRE_STORE"

// Database is a database that a person named.
type Database struct {
	// Place has the teams.
	Place *layout.Place

	at pgjournal.Location
}

// Open reads the address of a database, and does not connect yet. It removes the address and
// PostgreSQL's own variables from the environment of this process.
func Open(address string, log func(string)) (*Database, error) {
	at, env, err := read(address)
	if err != nil {
		return nil, team.Refuse(team.Invalid, "%v", err)
	}
	d := &Database{at: at}
	d.Place = layout.NewPlace(at.Called, Project, func(ctx context.Context) (store.Teams, func(), error) {
		s, err := at.Connect(ctx, pgjournal.Options{Report: log})
		switch {
		case errors.Is(err, pgjournal.ErrNoTables):
			return nil, nil, d.noTables()
		case errors.Is(err, pgjournal.ErrOlder):
			return nil, nil, team.Refuse(team.NotReady, "%v", err).With(team.Hint{Action: team.ActMigrateStore})
		case errors.Is(err, journal.ErrNewer):
			return nil, nil, team.Refuse(team.Invalid, "%v", err)
		case err != nil:
			return nil, nil, d.unusable(err)
		}
		return s.Teams(), s.Close, nil
	})
	d.Place.Environment = env
	return d, nil
}

// unusable refuses a database that does not do what was asked of it. It says whether that may pass.
func (d *Database) unusable(err error) error {
	if pgjournal.Hopeless(err) {
		return team.Refuse(team.Invalid, "%s cannot be used: %v", d.at.Called, err)
	}
	return team.Refuse(team.NotReady, "%s cannot be used now: %v", d.at.Called, err)
}

func (d *Database) noTables() error {
	return team.Refuse(team.NotReady, "there are no tables of cadre in %s", d.at.Called).
		With(team.Hint{Action: team.ActInitStore})
}

// Init makes the tables, and grants a role what it needs to work with teams; "" for no role. It
// returns the version of the tables before and after. It refuses tables of an older version, and a
// server that does not sync.
func (d *Database) Init(ctx context.Context, role string) (from, to int, err error) {
	now, err := d.at.Look(ctx)
	if err != nil {
		return 0, 0, d.unusable(err)
	}
	if !now.Fsync {
		return 0, 0, team.Refuse(team.NotReady, "the server of %s has fsync = off: a loss of power can destroy every team. "+
			"Set fsync = on, and try again", d.at.Called)
	}
	if now.Schema > 0 && now.Schema < pgjournal.Version() {
		return 0, 0, team.Refuse(team.NotReady, "the tables in %s have version %d, and this cadre needs %d", d.at.Called,
			now.Schema, pgjournal.Version()).With(team.Hint{Action: team.ActMigrateStore})
	}
	if from, to, err = d.at.Migrate(ctx); err == nil && role != "" {
		err = d.at.Grant(ctx, role)
	}
	if err != nil {
		err = d.unusable(err)
	}
	return from, to, err
}

// Migrate brings the tables to this version. It returns the version before and after. Without
// tables it refuses.
func (d *Database) Migrate(ctx context.Context) (from, to int, err error) {
	now, err := d.at.Look(ctx)
	switch {
	case err != nil:
		return 0, 0, d.unusable(err)
	case now.Schema == 0:
		return 0, 0, d.noTables()
	}
	if from, to, err = d.at.Migrate(ctx); err != nil {
		err = d.unusable(err)
	}
	return from, to, err
}

// taken is what leads to a database and was removed from the environment of this process.
var taken struct {
	sync.Mutex
	address   string
	variables []string // "name=value", of PostgreSQL
}

// Address returns the address in the environment, also after it was removed from there; "" for
// none.
func Address() string {
	taken.Lock()
	defer taken.Unlock()
	return cmp.Or(os.Getenv(Variable), taken.address)
}

// read reads an address, with PostgreSQL's variables in the environment, and removes them and the
// address from there. An earlier call may have removed them: then they come back for a moment.
func read(address string) (at pgjournal.Location, env []string, err error) {
	taken.Lock()
	defer taken.Unlock()
	for _, variable := range taken.variables {
		name, value, _ := strings.Cut(variable, "=")
		if _, set := os.LookupEnv(name); !set {
			os.Setenv(name, value)
		}
	}
	at, err = pgjournal.Locate(address)
	taken.address = cmp.Or(os.Getenv(Variable), taken.address)
	taken.variables = nil
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if strings.HasPrefix(name, "PG") {
			taken.variables = append(taken.variables, variable)
		}
		if name == Variable || strings.HasPrefix(name, "PG") {
			os.Unsetenv(name)
		}
	}
	return at, append([]string{Variable + "=" + address}, taken.variables...), err
}

// ofRepository begins the name of a project that is a repository.
const ofRepository = "repository "

// Portable reports whether the project has that name on each machine.
func Portable(project string) bool { return strings.HasPrefix(project, ofRepository) }

// Project returns what the project of a directory is called in a database. A repository has the
// same name on each machine: that of its first commit. Another directory has that of its machine
// and its path, and so has a shallow clone.
func Project(dir string) string {
	path, repository := project.Of(dir)
	if repository {
		if first := firstCommit(path); first != "" {
			return ofRepository + first
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
	// The first commit of a shallow clone is any commit.
	if shallow, err := run.Text(ctx, "rev-parse", "--is-shallow-repository"); err != nil || shallow != "false" {
		return ""
	}
	out, err := run.Text(ctx, "rev-list", "--max-parents=0", "HEAD")
	if err != nil { // there is no commit yet
		return ""
	}
	commits := strings.Fields(out)
	slices.Sort(commits)
	firsts.Store(repository, commits[0])
	return commits[0]
}
