package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"sync"

	"cadre/internal/journal"
	"cadre/internal/journal/filejournal"
	"cadre/internal/journal/recorded"
	"cadre/internal/replica"
	"cadre/internal/replica/search"
	"cadre/internal/team"
)

// Search says where to search for what.
type Search struct {
	search.Query
	Team     string   // name or id of a team; "" for all teams of the home, with the archived runs
	TaskRefs []string // ids or names of tasks, which each team resolves; nil for all
	Texts    []string // kinds of texts, added to Kinds
}

// TextKinds returns the kinds of texts that a search can be narrowed to.
func TextKinds() (names []string) {
	for _, k := range search.Kinds {
		names = append(names, string(k))
	}
	return names
}

// WordsOf returns the words of a query. Words in quotation marks are one.
func WordsOf(query string) []string { return search.WordsOf(query) }

// Found is a text of a team that matches.
type Found struct {
	Team     string `json:"team"`               // its name in commands
	Archived bool   `json:"archived,omitempty"` // the team is an archived run
	search.Match
	TaskName string `json:"taskName,omitempty"` // name of the task that Match.Task is the id of
}

// Title says what the text is, and whose.
func (f *Found) Title() string { return f.Match.Title(cmp.Or(f.TaskName, f.Task)) }

// Search yields the texts of one team or of all teams that match, by team, and of each team the
// oldest first. A team that cannot be read does not end the search: the error, which names the
// team, is yielded after the matches of the others. With Last it yields the last ones of each team.
func (e *Engine) Search(ctx context.Context, q Search) iter.Seq2[Found, error] {
	return func(yield func(Found, error) bool) {
		for _, kind := range q.Texts {
			q.Kinds = append(q.Kinds, search.Kind(kind))
		}
		if err := q.Check(); err != nil {
			yield(Found{}, err)
			return
		}
		if len(q.TaskRefs) > 0 && q.Team == "" {
			yield(Found{}, team.Refuse(team.Invalid,
				"name the team of the tasks: tasks of several teams have the same numbers"))
			return
		}
		if q.Team != "" {
			e.searchIn(ctx, q, q.Team, "", yield)
			return
		}
		places, err := e.searched()
		var all []error
		for _, p := range places {
			more := e.searchIn(ctx, q, p.name, p.dir, func(f Found, err error) bool {
				if err != nil && ctx.Err() == nil {
					all = append(all, fmt.Errorf("%s: %w", p.name, err))
					return true
				}
				return yield(f, err)
			})
			if !more {
				return
			}
		}
		if err = errors.Join(append(all, err)...); err != nil {
			yield(Found{}, err)
		}
	}
}

// searchedTeam is a team with its folder; dir is "" for a name that has to be looked up.
type searchedTeam struct{ name, dir string }

// searched returns the teams of the home, with the archived runs.
func (e *Engine) searched() (all []searchedTeam, err error) {
	var names []string
	if e.Memory != nil {
		names = e.Memory.Names()
	} else if names, err = e.Home.Names(); err != nil {
		return nil, err
	}
	for _, name := range names {
		all = append(all, searchedTeam{name: name})
	}
	if e.Memory != nil {
		return all, nil
	}
	folders, err := e.Home.Archive()
	for _, dir := range folders {
		all = append(all, searchedTeam{filepath.Base(dir), dir})
	}
	return all, err
}

// searchIn searches one team, and reports whether more is wanted.
func (e *Engine) searchIn(ctx context.Context, q Search, name, dir string, yield func(Found, error) bool) bool {
	t, err := e.openToSearch(name, dir)
	if err != nil {
		return yield(Found{}, err)
	}
	defer t.close()
	query := q.Query
	query.Candidate = func() { t.loadNames(ctx) }
	if query.Members, err = t.withUser(ctx, q.Members); err != nil {
		return yield(Found{}, err)
	}
	for _, ref := range q.TaskRefs {
		id, err := t.taskID(ctx, ref)
		switch {
		case err == nil:
			query.Tasks = append(query.Tasks, id)
		case q.Team != "":
			return yield(Found{}, err)
		}
	}
	if len(q.TaskRefs) > 0 && len(query.Tasks) == 0 { // the team has no such task
		return true
	}
	parts, err := t.parts(ctx)
	if err != nil {
		return yield(Found{}, err)
	}
	for m, err := range search.InParts(ctx, parts, query) {
		if err != nil {
			return yield(Found{}, err)
		}
		found := Found{Team: name, Archived: t.archived, Match: m}
		if m.Task != "" {
			if found.TaskName, err = t.taskName(ctx, m.Task); err != nil {
				return yield(Found{}, err)
			}
		}
		if !yield(found, nil) {
			return false
		}
	}
	return true
}

// toSearch is a team that is searched. The names of its tasks are read beside the search, once a
// record may match. Its state is read only to find the tasks that a person names.
type toSearch struct {
	engine   *Engine
	journal  journal.Journal // nil for a team that is open already
	archived bool
	of       *Team // nil without the state

	once    sync.Once // for loadNames
	loading sync.WaitGroup
	names   *team.TaskNames // nil with the state
	err     error           // why they could not be read
}

func (e *Engine) openToSearch(name, dir string) (*toSearch, error) {
	t := &toSearch{engine: e}
	var err error
	switch {
	case dir != "":
		t.archived = true
		t.journal, err = e.Home.OpenFolder(dir, e.Note)
	case e.Shared != nil || e.Memory != nil:
		t.of, err = e.Look(context.Background(), name)
	default:
		var at string
		if t.journal, at, err = e.Home.Open(name, e.Note); err == nil {
			t.archived = e.Home.Archived(at)
		}
	}
	return t, err
}

// parts returns the records of the team.
func (t *toSearch) parts(ctx context.Context) ([]iter.Seq2[journal.Record, error], error) {
	if t.journal == nil {
		return []iter.Seq2[journal.Record, error]{t.of.Raw(ctx, 0)}, nil
	}
	read := func(after int64) iter.Seq2[journal.Record, error] { return t.journal.Read(ctx, after) }
	files, is := t.journal.(*filejournal.Journal)
	if !is {
		return []iter.Seq2[journal.Record, error]{read(0)}, nil
	}
	starts, err := files.Starts(ctx)
	return search.Parts(read, starts), err
}

// loadNames begins to read the names of the tasks, once. It may be called from any goroutine.
func (t *toSearch) loadNames(ctx context.Context) {
	t.once.Do(func() {
		if t.of == nil {
			t.loading.Go(func() { t.names, t.err = recorded.TaskNames(ctx, t.journal, t.engine.Note) })
		}
	})
}

// unclosed is a journal that its reader does not close.
type unclosed struct{ journal.Journal }

func (unclosed) Close() error { return nil }

// load reads the state. It is called before the search begins.
func (t *toSearch) load(ctx context.Context) error {
	if t.of != nil {
		return nil
	}
	of, err := (&Team{engine: t.engine}).with(ctx, unclosed{t.journal}, replica.Options{Log: t.engine.Note})
	if err == nil {
		t.of = of
	}
	return err
}

// taskID returns the id of the task that a person names. It is called before the search begins.
func (t *toSearch) taskID(ctx context.Context, ref string) (id string, err error) {
	if err := t.load(ctx); err != nil {
		return "", err
	}
	t.of.View(func(s *team.State) { id, err = s.TaskID(ref) })
	return id, err
}

// withUser returns the members. If "user" or "@user" is among them, it adds the user's name in
// records. Where no agent leads, the user reads the mail of the lead, so it adds the lead too.
// It is called before the search begins.
func (t *toSearch) withUser(ctx context.Context, members []string) ([]string, error) {
	if !slices.Contains(members, team.User) && !slices.Contains(members, team.ForUser) {
		return members, nil
	}
	if err := t.load(ctx); err != nil {
		return nil, err
	}
	members = append(slices.Clone(members), team.User)
	t.of.View(func(s *team.State) {
		if lead, _ := s.Member(s.Team().Lead); lead.Agent == team.External {
			members = append(members, lead.Name)
		}
	})
	return members, nil
}

func (t *toSearch) taskName(ctx context.Context, id string) (name string, err error) {
	if t.of != nil {
		t.of.View(func(s *team.State) { name = s.Called(id) })
		return name, nil
	}
	t.loadNames(ctx)
	t.loading.Wait() // it ends with ctx
	if t.err != nil {
		return "", t.err
	}
	return t.names.Called(id), nil
}

func (t *toSearch) close() {
	t.loading.Wait()
	var err error
	if t.of != nil {
		err = t.of.Close()
	}
	if t.journal != nil {
		err = errors.Join(err, t.journal.Close())
	}
	if err != nil {
		t.engine.warn(err)
	}
}
