// Package attention follows what waits for a person in all teams of a home.
//
// # Authority
//
// Package team derives what waits from the state of a team and from what package inspect finds
// outside. This package combines the two for many teams, and says when to look again. While it waits
// it records what is overdue, so that the lead is notified although no host runs. It changes nothing
// else.
//
// # Guarantees
//
//   - What was recorded is seen at once. What is not recorded, such as the end of a process, is
//     seen within [inspect.MaxAge].
//   - A team that appears, disappears or is damaged meanwhile does not hide the others.
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
	"cadre/internal/journal"
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

// ForUser reports whether one of the items waits for a person.
func ForUser(items []Item) bool {
	return slices.ContainsFunc(items, func(i Item) bool { return i.WaitsFor == team.ForUser })
}

// Follower follows the teams of a home. It belongs to one goroutine, and the caller must close it.
type Follower struct {
	Home layout.Home
	Only string // the team to follow; "" for all
	Log  func(string)

	waits   bool // Wait was called
	teams   map[string]*followed
	folders *fswatch.Folders
}

// followed is one team.
type followed struct {
	replica *replica.Replica
	looker  inspect.Looker
	info    os.FileInfo // of its folder, to notice another team of that name
}

// breath is the shortest time between two looks: a person does not notice the delay.
const breath = 100 * time.Millisecond

// List returns what waits now, sorted by the names of the teams. A damaged team has one item, which
// says so. A team that cannot be examined otherwise is named in the error; the list has the others.
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
		if damage, ok := errors.AsType[*journal.DamageError](err); ok {
			items = append(items, Item{name, team.Item{Kind: team.ItemDamaged, WaitsFor: team.ForUser,
				Text: "The team is damaged: " + damage.Error() + ".",
				Hint: team.Hint{Action: team.ActMend, Team: name}}})
		} else if err != nil {
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
	if err == nil && f.waits {
		err = one.replica.Settle(ctx)
	}
	var outside *team.Outside
	if err == nil {
		outside, err = one.looker.Look(ctx, time.Now())
	}
	if err != nil {
		f.drop(name, one) // another team may have the name by now
		return nil, err
	}
	var items []team.Item
	one.replica.View(func(s *team.State) { items = s.Attention(replica.Now(), outside) })
	return items, nil
}

// open returns the team and keeps it open.
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

// Wait returns the list as soon as an item waits for the user. It reports once a team that cannot
// be examined, and skips it.
func (f *Follower) Wait(ctx context.Context) ([]Item, error) {
	if f.folders == nil {
		f.folders = fswatch.New()
	}
	f.waits = true
	told := ""
	for {
		if f.Only == "" {
			f.folders.Add(filepath.Join(f.Home.Root, "teams"))
		}
		for _, one := range f.teams {
			// watch before the look, so that no later change is missed
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
		if len(f.teams) != opened { // the new journals are not watched yet
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(breath):
			f.folders.Wait(ctx, inspect.MaxAge-breath)
		}
	}
}

// Close closes the teams and ends the watch.
func (f *Follower) Close() {
	if f.folders != nil {
		f.folders.Close()
	}
	for name, one := range f.teams {
		f.drop(name, one)
	}
}
