package inspect

import (
	"context"

	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// Open opens the team in that folder for reading, without hooks and projections. log gets repairs.
func Open(ctx context.Context, home layout.Home, dir string, log func(string)) (*replica.Replica, error) {
	j, err := home.OpenFolder(dir, log)
	if err != nil {
		return nil, err
	}
	return replica.Open(ctx, j, replica.Options{Log: log})
}

// Glance returns a team's present state.
func Glance(ctx context.Context, home layout.Home, name string, log func(string)) (team.Team, error) {
	dir, err := home.Folder(name)
	if err != nil {
		return team.Team{}, err
	}
	return GlanceIn(ctx, home, dir, log)
}

// GlanceIn is Glance for the team in that folder.
func GlanceIn(ctx context.Context, home layout.Home, dir string, log func(string)) (team.Team, error) {
	rep, err := Open(ctx, home, dir, log)
	if err != nil {
		return team.Team{}, err
	}
	defer rep.Close()
	return rep.Team(), nil
}

// Foreign returns the paths of files that belong to the other teams of the home: their reports and
// team files. Teams that cannot be read are left out.
func Foreign(ctx context.Context, home layout.Home, t team.Team) (all []string) {
	names, err := home.Names()
	if err != nil {
		return nil
	}
	for _, name := range names {
		other, err := Glance(ctx, home, name, func(string) {})
		if err != nil || other.ID == t.ID {
			continue
		}
		for _, file := range []string{other.Report, other.Origin} {
			if file != "" && file != t.Origin && file != t.Report {
				all = append(all, file)
			}
		}
	}
	return all
}
