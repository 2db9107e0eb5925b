// Package attention follows what waits for a person in all teams of a home.
//
// # Authority
//
// Package team derives what waits from the state of a team and from what package inspect finds
// outside. This package combines the two for many teams, and says when to look again. While it
// waits it records what is overdue, so that the lead is notified although no host runs. It changes
// nothing else.
//
// # Guarantees
//
//   - What was recorded is seen at once. What is not recorded, such as the end of a process, is
//     seen within [inspect.MaxAge].
//   - A team that appears, disappears or is damaged meanwhile does not hide the others.
package attention

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cadre/internal/inspect"
	"cadre/internal/inspect/catalog"
	"cadre/internal/journal"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/sys/fswatch"
	"cadre/internal/team"
)

// Item is something that waits in a team.
type Item struct {
	Team string `json:"team"` // its name, or its id if the name does not stand for it here
	Dir  string `json:"dir"`  // directory in which the team works; "" if the team is damaged
	team.Item
}

// ByID reports whether the item names its team by its id, which says less to a person than its
// directory.
func (i Item) ByID() bool { return layout.NameOf(i.Team) != i.Team }

// ForUser reports whether one of the items waits for a person.
func ForUser(items []Item) bool {
	return slices.ContainsFunc(items, func(i Item) bool { return i.WaitsFor == team.ForUser })
}

// Follower follows the teams of a home. It belongs to one goroutine, and the caller must close it.
type Follower struct {
	Home   layout.Home
	Only   string          // the team to follow; "" for all
	Shared *replica.Shared // keeps the replicas; nil for replicas of the follower alone
	Log    func(string)
	// Pace is the longest time between two looks of [Follower.Watch]; 0 for [inspect.MaxAge].
	Pace time.Duration

	waits   bool // Wait or Watch waits for changes
	teams   map[string]*followed
	folders *fswatch.Folders
	news    chan struct{} // a team that has no journal in a folder has a new record
}

// followed is one team.
type followed struct {
	replica *replica.Replica
	looker  inspect.Looker
	info    os.FileInfo // of its folder, to notice another team of that name
	unheard func()      // ends the wait for records of a team without a journal in a folder
}

// breath is the shortest time between two examinations: a person does not notice the delay.
const breath = 100 * time.Millisecond

// Found is a team with what waits in it.
type Found struct {
	Folder string    // its name in the home
	Team   team.Team // zero if the team is damaged
	Paused bool      // no host has a session of it: they were ended in order, or none was started
	Rests  bool      // it is paused, and its sessions were ended in order, to be resumed later
	Items  []team.Item
	// Overview is what a list says of the team; zero if the team is damaged.
	Overview catalog.Overview
	Members  []string // names of the members that have not ended
	// Outside is what was found of its processes; nil if the team is damaged. It must not be
	// changed.
	Outside *team.Outside
}

// Sooner compares two items: what a person must answer before a deadline comes first, the nearest
// deadline before the others. All others are equal, so a stable sort leaves them in their order.
func Sooner(a, b team.Item) int {
	limit := func(i team.Item) team.Time {
		if i.Deadline == 0 || i.WaitsFor != team.ForUser {
			return math.MaxInt64
		}
		return i.Deadline
	}
	return cmp.Compare(limit(a), limit(b))
}

// List returns what waits now, team by team: first the teams with a deadline, then the others by
// name.
func (f *Follower) List(ctx context.Context) ([]Item, error) {
	found, err := f.Teams(ctx)
	return Waiting(found), err
}

// Waiting returns what waits in the teams, in the order of [Follower.List]. The hint of an item
// names the team as the item does.
func Waiting(teams []Found) []Item {
	items := []Item{}
	teams = slices.Clone(teams)
	first := func(f Found) (one team.Item) {
		if len(f.Items) > 0 {
			one = slices.MinFunc(f.Items, Sooner)
		}
		return one
	}
	slices.SortStableFunc(teams, func(a, b Found) int { return Sooner(first(a), first(b)) })
	for _, t := range teams {
		for _, i := range t.Items {
			items = append(items, Item{t.Folder, t.Team.Dir, i.Known(t.Team.Name, t.Folder)})
		}
	}
	return items
}

// Teams returns the teams, sorted by name, each with what waits now. A damaged team has one item,
// which says so. A team that cannot be examined otherwise is named in the error; the others are
// returned.
func (f *Follower) Teams(ctx context.Context) (teams []Found, failed error) {
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
	if f.Only != "" {
		names = append(names, f.nested(ctx, f.Only, team.MostDepth)...)
	}
	trees := inspect.Trees{}
	for _, name := range names {
		found, err := f.of(ctx, name, trees)
		if damage, ok := errors.AsType[*journal.DamageError](err); ok {
			found.Items, err = []team.Item{{Kind: team.ItemDamaged, WaitsFor: team.ForUser,
				Text: "The team is damaged: " + damage.Error() + ".",
				Hint: team.Hint{Action: team.ActMend, Team: name}}}, nil
		}
		if team.CodeOf(err) == team.NotFound && name != f.Only && f.Only != "" { // a nested team was removed
			continue
		}
		if err != nil {
			failed = errors.Join(failed, fmt.Errorf("team %s: %w", name, err))
			continue
		}
		teams = append(teams, found)
	}
	return teams, failed
}

// nested returns the ids of the teams in the team, down to that level, that are in the home: what
// waits there waits in the team, too.
func (f *Follower) nested(ctx context.Context, name string, levels int) (ids []string) {
	one, err := f.open(ctx, name)
	if err != nil || levels == 0 { // the look at the team itself reports the error
		return nil
	}
	if err := one.replica.Refresh(ctx); err != nil {
		return nil
	}
	for _, c := range one.replica.Team().Children {
		if !c.Over && f.Home.Has(c.Team) != "" {
			ids = append(append(ids, c.Team), f.nested(ctx, c.Team, levels-1)...)
		}
	}
	return ids
}

func (f *Follower) of(ctx context.Context, name string, trees inspect.Trees) (Found, error) {
	found := Found{Folder: name}
	one, err := f.open(ctx, name)
	if err != nil {
		return found, err
	}
	err = one.replica.Refresh(ctx)
	if err == nil && f.waits {
		err = one.replica.RecordOverdue(ctx)
	}
	var outside *team.Outside
	if err == nil {
		one.looker.Trees = trees
		outside, err = one.looker.Look(ctx, time.Now())
	}
	if err != nil {
		f.drop(name, one) // another team may have the name by now
		return found, err
	}
	one.replica.View(func(s *team.State) {
		found.Team, found.Paused, found.Rests = s.Team(), s.Paused(), s.Rests()
		found.Overview = catalog.Summarize(f.Home, s, outside)
		found.Items, found.Outside = found.Overview.Attention, outside
		for _, m := range s.Members() {
			if m.Status.Running() {
				found.Members = append(found.Members, m.Name)
			}
		}
	})
	return found, nil
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
	dir, err := f.Home.Folder(name)
	if err != nil {
		return nil, err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil, err
	}
	rep, err := f.Shared.Open(ctx, dir, f.Log, func(report func(string)) (journal.Journal, error) {
		return f.Home.OpenFolder(dir, report)
	})
	if err != nil {
		return nil, err
	}
	shared, err := f.Home.Shared(dir)
	if err != nil {
		return nil, errors.Join(err, rep.Close())
	}
	if f.teams == nil {
		f.teams = map[string]*followed{}
	}
	looker := inspect.Looker{Replica: rep, Home: f.Home, Dir: dir, Shared: shared}
	one = &followed{replica: rep, looker: looker, info: info, unheard: func() {}}
	if _, placed := f.Home.Placed(dir); placed && f.waits {
		one.unheard = f.hear(rep)
	}
	f.teams[name] = one
	return one, nil
}

// hear tells news of each record of a team in a place, whose folder shows nothing of it. stop ends
// that, and waits for it.
func (f *Follower) hear(rep *replica.Replica) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for seq := rep.Seq(); rep.Wait(ctx, seq) == nil; seq = rep.Seq() {
			select {
			case f.news <- struct{}{}:
			default:
			}
		}
	}()
	return func() { cancel(); <-ended }
}

func (f *Follower) drop(name string, one *followed) {
	one.unheard()
	if err := one.replica.Close(); err != nil {
		f.Log(err.Error())
	}
	delete(f.teams, name)
}

// Wait returns the list as soon as an item waits for the user. It reports once a team that cannot
// be examined, and skips it.
func (f *Follower) Wait(ctx context.Context) (items []Item, err error) {
	return items, f.Watch(ctx, func(teams []Found) (done bool) {
		items = Waiting(teams)
		return ForUser(items)
	})
}

// WaitNew returns the items that begin to wait for the user after the first look, as soon as there
// is one. It skips teams as Wait does.
func (f *Follower) WaitNew(ctx context.Context) (items []Item, err error) {
	var before map[string]bool // what waited for the user before; nil before the first look
	return items, f.Watch(ctx, func(teams []Found) (done bool) {
		waits, first := map[string]bool{}, before == nil
		items = nil
		for _, i := range Waiting(teams) {
			if i.WaitsFor != team.ForUser {
				continue
			}
			key := i.Team + "/" + i.Key()
			if waits[key] = true; !first && !before[key] {
				items = append(items, i)
			}
		}
		before = waits // what was settled in between is new when it waits again
		return len(items) > 0
	})
}

// Watch calls see with the teams, and again whenever something may have changed, until see returns
// true or ctx ends; then its error is the cause of ctx. It reports once a team that cannot be
// examined, and skips it.
func (f *Follower) Watch(ctx context.Context, see func([]Found) (done bool)) error {
	if f.folders == nil {
		f.folders, f.news = fswatch.New(), make(chan struct{}, 1)
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
		teams, err := f.Teams(ctx)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil && f.Only != "":
			return err
		case see(teams):
			return nil
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
			f.rest(ctx)
		}
	}
}

// rest waits until something may have changed.
func (f *Follower) rest(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		select {
		case <-f.news:
			stop()
		case <-ctx.Done():
		}
	}()
	f.folders.Wait(ctx, f.next(time.Now()))
	stop()
	<-heard
}

// next returns the time until the next look.
func (f *Follower) next(now time.Time) time.Duration {
	next := cmp.Or(f.Pace, inspect.MaxAge)
	for _, one := range f.teams {
		if due := one.looker.Due(now); f.Pace == 0 || one.looker.Ending(now) {
			next = min(next, due)
		}
	}
	return next
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
