// Package attention follows what waits for a person in all teams of a home.
//
// # Authority
//
// What waits is derived by the team package from the state of a team and from what the resume
// package finds outside; this package brings the two together for many teams, and says when to look
// again. It changes nothing.
//
// # Guarantees
//
//   - What was recorded is seen at once. What is not recorded, such as the end of a process, is
//     seen after [inspect.MaxAge] at most.
//   - A team that comes, goes or is damaged meanwhile keeps nobody from seeing the others.
package attention

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cadre/internal/inspect"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/sys/fswatch"
	"cadre/internal/team"
)

// Item is something that waits in a team.
type Item struct {
	Team string `json:"team"` // its name
	team.Item
}

// ForUser reports whether a person is to see to one of them.
func ForUser(items []Item) bool {
	return slices.ContainsFunc(items, func(i Item) bool { return i.WaitsFor == team.ForUser })
}

// Follower follows the teams of a home. It belongs to one goroutine, and is to be closed.
type Follower struct {
	Home layout.Home
	Only string // the team that is meant; "" for all
	Log  func(string)

	teams   map[string]*followed
	folders *fswatch.Folders
}

// followed is one team.
type followed struct {
	replica *replica.Replica
	looker  inspect.Looker
	info    os.FileInfo // of its folder: another team of that name has another one
}

// breath is how long a follower rests between two looks, however much happens: a person cannot tell
// the difference.
const breath = 100 * time.Millisecond

// List returns what waits now, team by team in the order of their names. A team that cannot be
// looked at is named by the error; the list has the others.
func (f *Follower) List(ctx context.Context) ([]Item, error) {
	names := []string{f.Only}
	if f.Only == "" {
		var err error
		if names, err = f.Home.Names(); err != nil {
			return nil, err
		}
	}
	for name, one := range f.teams {
		if !slices.Contains(names, name) {
			f.drop(name, one)
		}
	}
	items := []Item{}
	var failed error
	for _, name := range names {
		some, err := f.of(ctx, name)
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("team %s: %w", name, err))
		}
		for _, i := range some {
			items = append(items, Item{name, i})
		}
	}
	return items, failed
}

func (f *Follower) of(ctx context.Context, name string) ([]team.Item, error) {
	one, err := f.open(ctx, name)
	if err != nil {
		return nil, err
	}
	err = one.replica.Refresh(ctx)
	var outside *team.Outside
	if err == nil {
		outside, err = one.looker.Look(ctx, time.Now())
	}
	if err != nil {
		f.drop(name, one) // it may be another team by now
		return nil, err
	}
	var items []team.Item
	one.replica.View(func(s *team.State) { items = s.Attention(replica.Now(), outside) })
	return items, nil
}

// open returns the team, which stays open.
func (f *Follower) open(ctx context.Context, name string) (*followed, error) {
	one := f.teams[name]
	if one != nil {
		if now, err := os.Stat(one.looker.Dir); err == nil && os.SameFile(one.info, now) {
			return one, nil
		}
		f.drop(name, one)
	}
	j, dir, err := f.Home.Open(name, f.Log)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, errors.Join(err, j.Close())
	}
	rep, err := replica.Open(ctx, j, replica.Options{Log: f.Log})
	if err != nil {
		return nil, err
	}
	if f.teams == nil {
		f.teams = map[string]*followed{}
	}
	one = &followed{replica: rep, looker: inspect.Looker{Replica: rep, Dir: dir}, info: info}
	f.teams[name] = one
	return one, nil
}

func (f *Follower) drop(name string, one *followed) {
	if err := one.replica.Close(); err != nil {
		f.Log(err.Error())
	}
	delete(f.teams, name)
}

// Wait returns the list as soon as something in it waits for the user. A team that cannot be looked
// at is told of once, and passed over.
func (f *Follower) Wait(ctx context.Context) ([]Item, error) {
	if f.folders == nil {
		f.folders = fswatch.New()
	}
	told := ""
	for {
		if f.Only == "" {
			f.folders.Add(filepath.Join(f.Home.Root, "teams"))
		}
		for _, one := range f.teams {
			// before the look, so that what comes after it is told
			f.folders.Add(filepath.Join(one.looker.Dir, "journal"))
		}
		opened := len(f.teams)
		items, err := f.List(ctx)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case ForUser(items):
			return items, nil
		case err != nil && f.Only != "":
			return nil, err
		case err != nil && err.Error() != told:
			told = err.Error()
			f.Log(told)
		}
		if len(f.teams) != opened { // the journals of those are not watched yet
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(breath):
			f.folders.Wait(ctx, inspect.MaxAge-breath)
		}
	}
}

// Close ends it.
func (f *Follower) Close() {
	if f.folders != nil {
		f.folders.Close()
	}
	for name, one := range f.teams {
		f.drop(name, one)
	}
}
