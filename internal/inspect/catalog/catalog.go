// Package catalog lists the teams of a home, and the teams that a repository has checkpoints of.
//
// # Authority
//
// The package decides what a list says of a team, for every front end that has one. It opens teams
// to read them, and changes nothing. Package inspect finds out which processes are alive.
//
// # Guarantees
//
//   - A team that cannot be read stays in the list: its entry says why.
//   - The package creates nothing, in a home or in a repository.
package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"cadre/internal/consolidate"
	"cadre/internal/git/checkpoint"
	"cadre/internal/git/project"
	"cadre/internal/inspect"
	"cadre/internal/layout"
	"cadre/internal/observe/store"
	"cadre/internal/replica"
	"cadre/internal/sys/proc"
	"cadre/internal/team"
)

// Overview is a team in a list.
type Overview struct {
	ID       string          `json:"id"`                 // id of the team
	Name     string          `json:"name"`               // name of the team
	Status   team.TeamStatus `json:"status"`             // pending, active, consolidating, complete or aborted
	Goal     string          `json:"goal,omitempty"`     // what the team is to do
	Dir      string          `json:"dir"`                // absolute path of the directory in which it works
	Unusable string          `json:"unusable,omitempty"` // why the directory cannot be used, for example because it was moved
	// repository that the directory is in, or else the directory
	Project  string `json:"project"`
	Here     bool   `json:"here,omitempty"`     // the command was called in that project
	Archived bool   `json:"archived,omitempty"` // it is a finished run whose name was given to a new one
	Lead     string `json:"lead"`               // name of the lead
	Delegate bool   `json:"delegate"`           // the lead may only coordinate
	Depth    int64  `json:"depth,omitempty"`    // how deep it is nested in other teams; 0 for a team by itself
	Parent   string `json:"parent,omitempty"`   // id of the team that it is nested in; "" for none
	// ids of the teams that its members run, in the order in which they began
	Children []string `json:"children,omitempty"`
	// name that its own agents have for it, where the team is only observed
	Observed string `json:"observed,omitempty"`
	// not a team but one session is observed, of the agent that Observed names
	Session     bool           `json:"session,omitempty"`
	Watched     bool           `json:"watched,omitempty"`     // a running process observes it
	Hosted      bool           `json:"hosted"`                // a running process hosts its sessions
	Led         bool           `json:"led"`                   // a running process leads it
	Dormant     bool           `json:"dormant"`               // no process of it is alive, although one should be
	Interrupted bool           `json:"interrupted,omitempty"` // a consolidation was started, and no process runs it
	Tasks       map[string]int `json:"tasks"`                 // number of tasks by status
	Teammates   int            `json:"teammates"`             // number of teammates that have not ended
	Sessions    int            `json:"sessions"`              // number of those whose sessions cadre runs: all but external ones
	Offline     int            `json:"offline,omitempty"`     // number of teammates that send no heartbeats
	Zombies     int            `json:"zombies,omitempty"`     // number of teammates that work without a lead
	Messages    int64          `json:"messages"`              // number of all messages
	Usage       team.Usage     `json:"usage"`                 // tokens and cost of all members together
	// which budget is spent: tokens, cost or time; "" for none
	Exhausted string      `json:"exhausted,omitempty"`
	Report    string      `json:"report,omitempty"`     // path of the lead's report; "" before there is one
	Seq       int64       `json:"seq"`                  // number of records in its history
	CreatedAt team.Time   `json:"createdAt"`            // when the team was created
	UpdatedAt team.Time   `json:"updatedAt"`            // when it last changed
	Released  team.Time   `json:"releasedAt,omitempty"` // since when it continues on another machine
	MovedTo   string      `json:"movedTo,omitempty"`    // the place of teams, such as a database, where it continues
	LookedAt  team.Time   `json:"lookedAt"`             // when the processes were checked
	Attention []team.Item `json:"attention"`            // what waits for a person

	Metadata map[string]json.RawMessage `json:"metadata,omitempty"` // what its creator keeps with it
	// "ready" if it winds down and can be consolidated, "winding_down" if it cannot yet, ""
	// otherwise
	Winding string `json:"winding,omitempty"`
}

// Unwatched is the state of a team of another program that no process observes any more.
const Unwatched = "not observed now"

// Watched reports whether a running process observes the team of another program.
func Watched(home layout.Home, t *team.Team) bool {
	return t.Observed != "" && store.Observes(home.Observation(t.Name))
}

// State is the status for people: what is true of the team, not only what was recorded last.
func (o *Overview) State() string {
	switch {
	case o.Released != 0:
		return "released"
	case o.Interrupted:
		return "interrupted"
	case o.Dormant:
		return "dormant"
	case o.Winding == "ready":
		return "ready to be consolidated"
	case o.Winding != "":
		return "winding down"
	case o.Observed != "" && o.Status != team.TeamComplete && !o.Watched:
		return Unwatched
	case o.Observed != "" && o.Status != team.TeamComplete:
		return "observed"
	}
	return string(o.Status)
}

// Summarize describes a team of a home, from its state and what was found outside.
func Summarize(home layout.Home, s *team.State, outside *team.Outside) Overview {
	t := s.Team()
	o := Overview{ID: t.ID, Name: t.Name, Status: t.Status, Goal: t.Goal, Dir: t.Dir, Project: project.Named(t.Dir),
		Lead:     t.Lead,
		Delegate: t.Delegate, Usage: t.Usage, Exhausted: t.Exhausted, Report: t.Report, Seq: s.Seq(),
		Metadata: t.Metadata,
		Messages: s.MessageCount(), CreatedAt: t.CreatedAt, UpdatedAt: t.UpdatedAt, Hosted: outside.Hosted,
		Led: outside.Led, Dormant: s.Dormant(outside), Interrupted: s.Interrupted(outside), LookedAt: outside.At,
		Released: t.Released.At, MovedTo: t.Released.Place(), Tasks: map[string]int{},
		Attention: s.Attention(replica.Now(), outside)}
	o.Depth, o.Parent = t.Depth, t.Parent.Team
	for _, c := range t.Children {
		o.Children = append(o.Children, c.Team)
	}
	switch c := t.Consolidation; {
	case t.Status != team.TeamConsolidating || c.Open():
	case s.ReadyToConsolidate():
		o.Winding = "ready"
	default:
		o.Winding = "winding_down"
	}
	if t.Released == (team.Released{}) { // it works in the directory of another machine
		o.Unusable = outside.Directory
	}
	if o.Attention == nil {
		o.Attention = []team.Item{}
	}
	for _, status := range []team.TaskStatus{team.Pending, team.InProgress, team.Completed} {
		o.Tasks[string(status)] = s.Count(status)
	}
	for _, m := range s.Members() {
		if m.Name == t.Lead || !m.Status.Running() {
			continue
		}
		o.Teammates++
		if m.Agent != team.External {
			o.Sessions++
		}
		switch s.Standing(m.Name, outside) {
		case team.Away:
			o.Offline++
		case team.Zombie:
			o.Zombies++
		}
	}
	o.Observed, o.Session = t.Observed, t.Session
	o.Watched = Watched(home, &t)
	return o
}

// Entry is a team of a home.
type Entry struct {
	Name     string // or its id, if the name does not stand for it here
	Overview Overview
	Err      error // why it cannot be read; then the Overview is empty
}

// List returns the teams of the home by project: first those of the project that home.Dir belongs
// to, then the others, sorted by the paths of the projects. In a project they are sorted by name.
// With archive the archived teams follow, in the same order. log gets repairs.
func List(ctx context.Context, home layout.Home, archive bool, log func(string)) ([]Entry, error) {
	names, err := home.Names()
	if err != nil {
		return nil, err
	}
	all, trees := make([]Entry, 0, len(names)), inspect.Trees{}
	for _, name := range names {
		dir, err := home.Folder(name)
		if err != nil {
			all = append(all, Entry{Name: name, Err: err})
			continue
		}
		all = append(all, entry(ctx, home, name, dir, trees, log))
	}
	if archive {
		folders, err := home.Archive()
		if err != nil {
			return nil, err
		}
		for _, dir := range folders {
			e := entry(ctx, home, filepath.Base(dir), dir, trees, log)
			e.Overview.Archived = true
			all = append(all, e)
		}
	}
	joinParents(all)
	here := ""
	if home.Dir != "" {
		here = project.Named(home.Dir)
	}
	for i := range all {
		all[i].Overview.Here = here != "" && all[i].Overview.Project == here
	}
	rank := func(e Entry) int {
		switch {
		case e.Overview.Archived:
			return 3
		case e.Overview.Project == "": // it cannot be read
			return 2
		case e.Overview.Here:
			return 0
		}
		return 1
	}
	slices.SortStableFunc(all, func(a, b Entry) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a.Overview.Project, b.Overview.Project))
	})
	return all, nil
}

// joinParents gives each nested team the project of its parent. Its own directory may be the
// worktree of a member, which does not last.
func joinParents(all []Entry) {
	at := map[string]int{} // by id
	for i := range all {
		at[all[i].Overview.ID] = i
	}
	for i := range all {
		o := &all[i].Overview
		for level, up := 0, o.Parent; up != "" && level < team.MostDepth; level++ {
			parent, there := at[up]
			if !there {
				break
			}
			o.Project, up = all[parent].Overview.Project, all[parent].Overview.Parent
		}
	}
}

func entry(ctx context.Context, home layout.Home, name, dir string, trees inspect.Trees, log func(string)) Entry {
	e := Entry{Name: name}
	rep, err := inspect.Open(ctx, home, dir, log)
	if err != nil {
		e.Err = err
		return e
	}
	shared, err := home.Shared(dir)
	if err != nil {
		e.Err = errors.Join(err, rep.Close())
		return e
	}
	looker := inspect.Looker{Replica: rep, Home: home, Dir: dir, Shared: shared, Trees: trees}
	outside, err := looker.Look(ctx, time.Now())
	if err == nil {
		rep.View(func(s *team.State) { e.Overview = Summarize(home, s, outside) })
	}
	e.Err = errors.Join(err, rep.Close())
	return e
}

// Open opens a team for reading, without hooks and projections, and also returns its folder.
func Open(ctx context.Context, home layout.Home, name string, log func(string)) (*replica.Replica, string, error) {
	dir, err := home.Folder(name)
	if err != nil {
		return nil, "", err
	}
	rep, err := inspect.Open(ctx, home, dir, log)
	return rep, dir, err
}

// Beside returns the other teams of the home whose work in the same work tree could be taken for
// this team's. It calls unknown for each team where that cannot be decided.
func Beside(ctx context.Context, home layout.Home, t team.Team, log func(string),
	unknown func(name string, err error)) (all []string, err error) {
	names, err := home.Names()
	if err != nil {
		return nil, err
	}
	parents, besides := map[string]string{}, map[string]string{} // by id
	for _, name := range names {
		other, err := inspect.Glance(ctx, home, name, log)
		if err != nil {
			unknown(name, err)
			continue
		}
		parents[other.ID] = other.Parent.Team
		if consolidate.Beside(t, other) && !untouched(ctx, home, other, name, log) {
			besides[other.ID] = name
		}
	}
	for id, name := range besides {
		if !within(t.ID, id, parents) { // what a team in the team did is its member's work
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all, nil
}

// untouched reports whether the team is known to have changed no file. The history of a team that
// is not complete is not read.
func untouched(ctx context.Context, home layout.Home, t team.Team, name string, log func(string)) (known bool) {
	if t.Status != team.TeamComplete {
		return false
	}
	rep, _, err := Open(ctx, home, name, log)
	if err != nil {
		return false
	}
	rep.View(func(s *team.State) { known = consolidate.Untouched(s) })
	return rep.Close() == nil && known
}

// within reports whether the team inner is in the team outer, however deep.
func within(outer, inner string, parents map[string]string) bool {
	for range team.MostDepth {
		if inner = parents[inner]; inner == outer {
			return true
		}
	}
	return false
}

// Checkpoint is the last checkpoint of a team in a repository.
type Checkpoint struct {
	checkpoint.Listed
	Branch   string `json:"branch"`             // git's name of it
	Here     bool   `json:"here"`               // this home has that team
	Archived bool   `json:"archived,omitempty"` // it is in the archive of this home
}

// InRepository lists the checkpoints in the repository of the directory, on its own branches and on
// fetched ones.
func InRepository(ctx context.Context, home layout.Home, dir string, log func(string)) ([]Checkpoint, error) {
	found, err := Checkpoints(ctx, dir)
	if err != nil {
		return nil, err
	}
	all := []Checkpoint{}
	for _, one := range found {
		here := false
		if dir := home.Has(one.Team); dir != "" { // the name may be ambiguous
			t, err := inspect.GlanceIn(ctx, home, dir, log)
			here = err == nil && t.ID == one.Team
		}
		all = append(all, Checkpoint{one, one.Where(), here, !here && home.InArchive(one.Team) != ""})
	}
	return all, nil
}

// Checkpoints is InRepository without a look at a home.
func Checkpoints(ctx context.Context, dir string) ([]checkpoint.Listed, error) {
	procs, err := proc.Open("")
	if err != nil {
		return nil, err
	}
	defer procs.Close(context.WithoutCancel(ctx))
	return checkpoint.List(ctx, procs, dir)
}

// OnlyInGit removes the checkpoints of teams whose id or name is in here. If name is not "", it
// keeps only those of that team. A team of another project may have the name of a checkpoint's
// team, so here should have its id alone.
func OnlyInGit(found []checkpoint.Listed, name string, here []string) []checkpoint.Listed {
	return slices.DeleteFunc(found, func(l checkpoint.Listed) bool {
		return l.Team == "" || name != "" && l.Name != name || slices.Contains(here, l.Team) ||
			slices.Contains(here, l.Name)
	})
}
