// Package supervisor keeps teams running: it starts the process that runs a team, and starts it
// again when it dies.
//
// # Authority
//
// A supervisor owns the list of its teams, in one file. It decides when a team is resumed. The
// process that resumes a team is the same that a person starts, so the supervisor knows nothing of
// sessions.
//
// # Decisions
//
// For each team of the list, from what was recorded and what was found:
//
//	ended, or not there any more     it leaves the list
//	a process runs it                nothing to do
//	its budget is spent, it is on
//	another machine, its directory
//	is missing                       it waits, and the reason is shown
//	it has external members alone    it waits, because there is nothing to run
//	it is a team in another team     it waits, because it runs with that team
//	paused by a person               it waits for a person
//	added, or stopped with the
//	server, or its host died         it is resumed
//
// # Guarantees
//
//   - The list is on disk before a team of it is started, and before the teams are paused for a stop.
//   - A team is resumed at most once at a time, and after a failure not before a pause that doubles
//     up to [longestPause].
package supervisor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"cadre/internal/access"
	"cadre/internal/engine"
	"cadre/internal/inspect/attention"
	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// unseen is why a team that was just added is not running.
const unseen = "it was not looked at yet"

const (
	shortestPause = 2 * time.Second
	longestPause  = 10 * time.Minute
	// steady is how long a team must run before an earlier failure is forgotten.
	steady = time.Minute
	// maxList bounds the size of the file with the list.
	maxList = 4 << 20
)

// Options configure a supervisor.
type Options struct {
	Engine *engine.Engine
	// File has the list of the teams.
	File string
	// Resume returns the command line that continues the team with that id.
	Resume func(id string) []string
	// MaxSessions bounds how many teammates may run in all teams of the list together; 0 for no
	// bound. A team that is running is never stopped for it.
	MaxSessions int
	Log         func(string)
}

// Entry is a team of the list.
type Entry struct {
	ID    string `json:"id"`              // id of the team
	Name  string `json:"name"`            // name of the team
	Start bool   `json:"start,omitempty"` // resume it even if it is paused: it was added, or stopped with the server
}

// Team is a team of the list with its present state.
type Team struct {
	Entry
	Running bool   `json:"running"`         // a process runs it
	Why     string `json:"why,omitempty"`   // why it is not running
	Tries   int    `json:"tries,omitempty"` // how often in a row it could not be resumed
}

// Supervisor keeps the teams of its list running. Any goroutine may call its methods.
type Supervisor struct {
	Options

	mu     sync.Mutex
	list   []*kept
	found  []attention.Found
	seen   bool          // the teams were looked at
	change chan struct{} // wakes Run after a change of the list
	stops  bool
	coming []*room // what is reserved
}

// room is the place of a teammate among those that may run.
type room struct{ team, member string }

// kept is a team of the list.
type kept struct {
	Team
	busy  bool      // its process was started and has not ended
	gone  int       // how many looks in a row did not find it; the first may have begun before it was added
	since time.Time // since when it is running
	next  time.Time // when it may be resumed again
}

// Open reads the list.
func Open(o Options) (*Supervisor, error) {
	s := &Supervisor{Options: o, change: make(chan struct{}, 1)}
	data, err := regularfile.Read(o.File, maxList)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	var list []Entry
	if err == nil {
		err = json.Unmarshal(data, &list)
	}
	if err != nil {
		return nil, fmt.Errorf("read the list of the server's teams: %w; mend or remove %s", err, o.File)
	}
	for _, e := range list {
		s.list = append(s.list, &kept{Team: Team{Entry: e, Why: unseen}})
	}
	return s, nil
}

// Add puts a team on the list, and has it resumed unless a process runs it. It refuses a team that
// has ended or is only observed, and one that runs with the team that it is in.
func (s *Supervisor) Add(ctx context.Context, of team.Team) error {
	if err := errors.Join(of.CheckOurs(), of.CheckHere()); err != nil {
		return err
	}
	if of.Ended() {
		return team.Refuse(team.Finished, "team %s is %s, and has nothing to run", of.Name, of.Status).
			With(team.Hint{Action: team.ActShowReview, Team: of.Name})
	}
	if err := s.Engine.WithParent(ctx, of, "run", ""); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stops {
		return team.Refuse(team.NotReady, "the server stops; try again when it runs again")
	}
	k := s.find(of.ID)
	if k == nil {
		k = &kept{Team: Team{Entry: Entry{ID: of.ID}}}
		s.list = append(s.list, k)
	}
	k.Name, k.Start, k.next, k.Tries = of.Name, true, time.Time{}, 0
	err := s.save()
	s.wake()
	return err
}

// Keep puts a team on the list that another process just started. It ignores a team that runs with
// the team that it is in.
func (s *Supervisor) Keep(of team.Team) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.find(of.ID) != nil || of.Parent.Team != "" && s.Engine.Home.Has(of.Parent.Team) != "" {
		return nil
	}
	s.list = append(s.list, &kept{Team: Team{Entry: Entry{ID: of.ID, Name: of.Name}, Why: unseen}})
	return s.save()
}

// Reserve reserves room for a teammate of the team, until it is called back: then the teammate is
// recorded, or will not be. It refuses if the teams of the list run as many as they may.
func (s *Supervisor) Reserve(ctx context.Context, of team.Team, member string) (release func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.MaxSessions == 0 {
		return func() {}, nil
	}
	ids := []string{of.ID}
	for _, k := range s.list {
		if k.ID != of.ID && (k.Running || k.Start) {
			ids = append(ids, k.ID)
		}
	}
	taken := map[room]bool{} // a teammate that has joined may still have its room reserved
	for _, one := range s.coming {
		taken[*one] = true
	}
	for _, id := range ids {
		if err := s.teammates(ctx, id, taken); err != nil && ctx.Err() != nil {
			return nil, context.Cause(ctx)
		} // none in a damaged team
	}
	own := &room{of.ID, member}
	if len(taken) >= s.MaxSessions && !taken[*own] {
		return nil, team.Refuse(team.NotReady, "the server runs %d teammates, of at most %d; shut one down first, or "+
			"start the server with a higher limit", len(taken), s.MaxSessions)
	}
	s.coming = append(s.coming, own)
	return sync.OnceFunc(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.coming = slices.DeleteFunc(s.coming, func(one *room) bool { return one == own })
	}), nil
}

// teammates adds the sessions of teammates that the team has now.
func (s *Supervisor) teammates(ctx context.Context, id string, to map[room]bool) error {
	t, err := s.Engine.Look(ctx, id)
	if err != nil {
		return err
	}
	defer t.Close()
	t.View(func(state *team.State) {
		for _, m := range state.Members() {
			if m.Name != state.Team().Lead && m.Agent != team.External && m.Status.Running() {
				to[room{id, m.Name}] = true
			}
		}
	})
	return nil
}

// Drop takes a team off the list. It keeps running.
func (s *Supervisor) Drop(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.list = slices.DeleteFunc(s.list, func(k *kept) bool { return k.ID == id })
	return s.save()
}

// Rest notes that a person paused the team, so that it waits for a person.
func (s *Supervisor) Rest(id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	k := s.find(id)
	if k == nil || !k.Start {
		return nil
	}
	k.Start = false
	return s.save()
}

// Has reports whether the team is on the list.
func (s *Supervisor) Has(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.find(id) != nil
}

// Teams returns the list, sorted by name.
func (s *Supervisor) Teams() []Team {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := []Team{}
	for _, k := range s.list {
		all = append(all, k.Team)
	}
	slices.SortFunc(all, func(a, b Team) int { return strings.Compare(a.Name+a.ID, b.Name+b.ID) })
	return all
}

// Found returns the teams of the home as they were found last; false before the first look.
func (s *Supervisor) Found() ([]attention.Found, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.found, s.seen
}

func (s *Supervisor) find(id string) *kept {
	i := slices.IndexFunc(s.list, func(k *kept) bool { return k.ID == id })
	if i < 0 {
		return nil
	}
	return s.list[i]
}

// save writes the list.
func (s *Supervisor) save() error {
	list := []Entry{}
	for _, k := range s.list {
		list = append(list, k.Entry)
	}
	data, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(s.File, append(data, '\n'))
}

func (s *Supervisor) wake() {
	select {
	case s.change <- struct{}{}:
	default:
	}
}

// See takes note of the teams as they were found, and resumes those that have to be.
func (s *Supervisor) See(found []attention.Found, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.found, s.seen = found, true
	for _, k := range s.list {
		if k.gone++; s.look(k.ID) != nil {
			k.gone = 0
		}
	}
	s.tend(now)
}

// Run tends the teams whenever the list changes, and from time to time, until ctx ends.
func (s *Supervisor) Run(ctx context.Context) {
	for {
		timer := time.NewTimer(shortestPause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-s.change:
		case <-timer.C:
		}
		timer.Stop()
		s.mu.Lock()
		if s.seen {
			s.tend(time.Now())
		}
		s.mu.Unlock()
	}
}

// tend does for each team what is due.
func (s *Supervisor) tend(now time.Time) {
	if s.stops {
		return
	}
	sessions := 0
	for _, f := range s.found {
		if f.Overview.Hosted && s.find(f.Overview.ID) != nil {
			sessions += f.Overview.Sessions
		}
	}
	before := len(s.list)
	s.list = slices.DeleteFunc(s.list, func(k *kept) bool {
		f := s.look(k.ID)
		return k.gone > 1 || f != nil && f.Team.ID != "" && f.Team.Ended()
	})
	changed := len(s.list) != before
	for _, k := range s.list {
		f := s.look(k.ID)
		if f == nil {
			continue
		}
		do, why := decide(k.Entry, f, s.parent(f), team.Time(now.UnixMilli()))
		k.Running, k.Why = do == runs, why
		switch {
		case do == runs:
			if k.since.IsZero() {
				k.since = now
			}
			if k.Start {
				k.Start, changed = false, true
			}
			if now.Sub(k.since) > steady {
				k.Tries = 0
			}
		case do == rests:
			k.since = time.Time{}
		case k.busy || now.Before(k.next):
			k.since = time.Time{}
			k.Why = "it is being resumed"
		// a team that alone has more than the server may run would never run again
		case s.MaxSessions > 0 && sessions > 0 && sessions+f.Overview.Sessions > s.MaxSessions:
			k.since = time.Time{}
			k.Why = fmt.Sprintf("the server runs %d of at most %d teammates, and the team has %d", sessions,
				s.MaxSessions, f.Overview.Sessions)
		default:
			k.since = time.Time{}
			sessions += f.Overview.Sessions
			s.resume(k, now)
		}
	}
	if changed {
		if err := s.save(); err != nil {
			s.Log(err.Error())
		}
	}
}

// parent returns the team in which that one is nested; nil for none, and for one that was removed.
func (s *Supervisor) parent(f *attention.Found) *attention.Found {
	if f.Team.Parent.Team == "" { // damaged teams have no id
		return nil
	}
	return s.look(f.Team.Parent.Team)
}

func (s *Supervisor) look(id string) *attention.Found {
	for i := range s.found {
		if s.found[i].Overview.ID == id {
			return &s.found[i]
		}
	}
	return nil
}

// deed is what a supervisor does with a team.
type deed int

const (
	runs    deed = iota // a process runs the team
	rests               // the team waits for a person, or has nothing to run
	resumes             // the team must be resumed
)

// decide returns what to do with a team of the list, and why it rests. parent is the team in which
// it is nested; nil for none.
func decide(e Entry, f, parent *attention.Found, now team.Time) (deed, string) {
	o := f.Overview
	spent := cmp.Or(o.Exhausted, f.Team.BudgetSpent(now))
	switch {
	case o.Hosted || o.Led:
		return runs, ""
	case f.Team.ID == "":
		return rests, "its files are damaged"
	case parent != nil:
		return rests, "it runs with team " + f.Team.Parent.Name
	case spent != "":
		return rests, "its " + team.BudgetWord(spent) + " is spent"
	case o.Released != 0:
		return rests, "it continues on another machine"
	}
	for _, item := range f.Items {
		switch item.Kind {
		case team.ItemDirectory, team.ItemElsewhere, team.ItemInterrupted:
			return rests, item.Text
		}
	}
	switch {
	case !o.Dormant && o.Sessions == 0:
		return rests, "it has nothing to run"
	case e.Start:
		return resumes, ""
	case f.Rests:
		return rests, "it is paused, or its run has ended"
	case o.Dormant:
		return resumes, ""
	}
	return rests, "it has nothing to run"
}

// resume starts the process that continues the team.
func (s *Supervisor) resume(k *kept, now time.Time) {
	k.Tries++
	k.next = now.Add(min(shortestPause<<(2*min(k.Tries-1, 8)), longestPause))
	k.Why = "it is being resumed"
	dir, err := s.Engine.Home.Folder(k.ID)
	if err != nil {
		k.Why = err.Error()
		return
	}
	log, err := engine.HostLog(dir)
	if err != nil {
		k.Why = err.Error()
		return
	}
	defer log.Close()
	home := s.Engine.Home
	ended, err := proc.DetachWatched(home.Running(), s.Resume(k.ID), home.ForOurs(access.Unnamed(os.Environ())), log)
	if err != nil {
		k.Why = err.Error()
		return
	}
	s.Log(fmt.Sprintf("team %s is resumed", k.Name))
	k.busy = true
	go func() {
		<-ended
		s.mu.Lock()
		defer s.mu.Unlock()
		k.busy = false
		if k.Start { // it could be resumed, and has nothing to run, or it failed and is tried again
			k.Start = k.Tries < 3
		}
		s.wake()
	}()
}

// Stopping reports whether Stop was called. No team is resumed any more then.
func (s *Supervisor) Stopping() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stops
}

// Stop notes that the running teams are to be resumed by the next server, and pauses them. It
// returns when all are paused, or ctx has ended.
func (s *Supervisor) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.stops = true
	var running []string
	for _, k := range s.list {
		if k.Running || k.busy {
			k.Start = true
			running = append(running, k.ID)
		}
	}
	err := s.save()
	s.mu.Unlock()
	if err != nil {
		return err
	}
	errs := make([]error, len(running))
	var all sync.WaitGroup
	for i, id := range running {
		all.Go(func() { errs[i] = s.pause(ctx, id) })
	}
	all.Wait()
	return errors.Join(errs...)
}

func (s *Supervisor) pause(ctx context.Context, id string) error {
	t, err := s.Engine.Open(ctx, id)
	if err != nil {
		return err
	}
	defer t.Close()
	_, err = t.Pause(ctx)
	if team.CodeOf(err) == team.Finished {
		return nil
	}
	return err
}
