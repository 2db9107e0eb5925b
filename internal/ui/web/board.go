package web

import (
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"cadre/internal/engine"
	"cadre/internal/inspect/attention"
	"cadre/internal/inspect/catalog"
	"cadre/internal/render"
	"cadre/internal/server/api"
	"cadre/internal/server/auth"
	"cadre/internal/team"
)

// Board serves the page and its data.
type Board struct {
	// Engine opens the teams. It must keep shared replicas.
	Engine *engine.Engine

	mu    sync.Mutex
	known map[string]*known // by the ids of the teams
}

// known is what is kept of a team between requests.
type known struct {
	film   film
	reels  reels
	recall recalled
}

// mostKnown bounds the teams of which something is kept. More than so many are rarely shown at a
// time.
const mostKnown = 16

// of returns what is kept of the team.
func (b *Board) of(id string) *known {
	b.mu.Lock()
	defer b.mu.Unlock()
	is := b.known[id]
	if is == nil {
		if b.known == nil || len(b.known) >= mostKnown {
			b.known = map[string]*known{}
		}
		is = &known{}
		b.known[id] = is
	}
	return is
}

// view is a request for data.
type view struct {
	*http.Request
	engine *engine.Engine
	body   []byte
}

// routes are the routes below /board/; [api.Besides] describes them.
func (b *Board) routes() map[string]func(*view) (any, error) {
	return map[string]func(*view) (any, error){
		"GET /board/teams":                     b.teams,
		"GET /board/search":                    b.hits,
		"POST /board/commands":                 b.commands,
		"GET /board/teams/{team}/now":          b.now,
		"POST /board/teams/{team}/saw":         b.saw,
		"GET /board/teams/{team}/lanes":        b.lanes,
		"GET /board/teams/{team}/states":       b.states,
		"GET /board/teams/{team}/log":          b.log,
		"GET /board/teams/{team}/marks":        b.marks,
		"GET /board/teams/{team}/messages":     b.messages,
		"GET /board/teams/{team}/tasks/{task}": b.account,
	}
}

// Data returns the handler of the routes below /board/. Each request passed [auth.Guard.Handler].
func (b *Board) Data() http.Handler {
	mux := http.NewServeMux()
	for pattern, handle := range b.routes() {
		mux.Handle(pattern, b.serve(handle))
	}
	mux.HandleFunc("/board/", func(w http.ResponseWriter, r *http.Request) {
		api.Refuse(w, r, api.ProblemOf(team.Refuse(team.NotFound, "the board has no such data")))
	})
	return mux
}

// mostBody bounds the body of a request, in bytes.
const mostBody = 1 << 20

func (b *Board) serve(handle func(*view) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, err := b.answer(w, r, handle)
		if err != nil {
			api.Refuse(w, r, api.ProblemOf(engine.InTermsOf(r.PathValue("team"), err)))
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		if answer == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		if data, encoded := answer.(io.WriterTo); encoded {
			data.WriteTo(w)
			return
		}
		json.NewEncoder(w).Encode(answer)
	})
}

func (b *Board) answer(w http.ResponseWriter, r *http.Request, handle func(*view) (any, error)) (any, error) {
	who := auth.From(r.Context())
	if err := who.Command("board", nil); err != nil {
		return nil, err
	}
	if err := who.Needs(auth.Observe, "the board"); err != nil {
		return nil, err
	}
	e := *b.Engine
	e.Home = who.Scoped(e.Home)
	v := &view{Request: r, engine: &e}
	if r.Method == http.MethodPost {
		kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
		if err != nil || kind != "application/json" {
			return nil, team.Refuse(team.Invalid, "the body must be JSON")
		}
		if v.body, err = io.ReadAll(http.MaxBytesReader(w, r.Body, mostBody)); err != nil {
			return nil, err
		}
	}
	return handle(v)
}

// look opens the team of the route for reading. The caller closes it.
func (v *view) look() (*engine.Team, error) {
	name := v.PathValue("team")
	if name == "" || name[0] == '.' || strings.ContainsAny(name, `/\`) { // no request names a path
		return nil, team.Refuse(team.NotFound, "this is not the name or the id of a team")
	}
	return v.engine.Look(v.Context(), name)
}

// number returns a number of the query; or if it is missing.
func (v *view) number(name string, or, most int64) (int64, error) {
	if !v.URL.Query().Has(name) {
		return or, nil
	}
	text := v.URL.Query().Get(name)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > most {
		return 0, team.Refuse(team.Invalid, "%s is not a number up to %d", name, most)
	}
	return n, nil
}

// section is a part of the list of teams.
type section struct {
	Name  string   `json:"name"`
	Teams []listed `json:"teams"`
}

// listed is a team in the list.
type listed struct {
	Ref string `json:"ref"` // its name in commands
	catalog.Overview
	State string `json:"state"` // the status for people
	Needs int    `json:"needs"` // number of items that wait for a person
}

// waiting is an item that waits in a team.
type waiting struct {
	Team string `json:"team"` // its name in commands
	Key  string `json:"key"`  // which the item keeps for as long as it waits
	item
}

// teams answers with all teams in their sections, and everything that waits.
func (b *Board) teams(v *view) (any, error) {
	f := v.engine.Attention("")
	defer f.Close()
	found, err := f.Teams(v.Context())
	if err != nil && len(found) == 0 {
		return nil, err
	}
	is := struct {
		Sections  []section `json:"sections"`
		Attention []waiting `json:"attention"`
		Problem   string    `json:"problem,omitempty"` // teams that cannot be examined
	}{[]section{}, []waiting{}, ""}
	if err != nil {
		is.Problem = err.Error()
	}
	for _, name := range attention.Sections {
		is.Sections = append(is.Sections, section{name, []listed{}})
	}
	for _, t := range found {
		one := listed{t.Folder, t.Overview, t.State(), t.Needs()}
		if one.ID == "" { // it is damaged
			one.Name, one.Tasks, one.Attention = t.Folder, map[string]int{}, t.Items
		}
		in := &is.Sections[t.Section()]
		in.Teams = append(in.Teams, one)
	}
	for _, i := range attention.Waiting(found) {
		is.Attention = append(is.Attention, waiting{i.Team, i.Key(), item{i.Item, render.CommandFor(i.Hint).String()}})
	}
	return is, nil
}

// commands answers with the command lines of hints.
func (b *Board) commands(v *view) (any, error) {
	var hints []team.Hint
	if err := json.Unmarshal(v.body, &hints); err != nil {
		return nil, team.Refuse(team.Invalid, "the body is not a list of hints: %v", err)
	}
	lines := []string{}
	for _, h := range hints {
		lines = append(lines, render.CommandFor(h).String())
	}
	return lines, nil
}

// present is what is known only of the present of a team.
type present struct {
	listed
	Phases map[string]team.Phase `json:"phases"` // what each member does, as it was found
	Items  []waiting             `json:"items"`  // what waits
	Looked int64                 `json:"looked"` // the last record that a person saw; 0 for none
	Rules  []team.Rule           `json:"rules"`  // permission rules that were added
	// the question whether to end the command of each member that runs one
	Endings map[string]string `json:"endings"`
}

func (b *Board) now(v *view) (any, error) {
	t, err := v.look()
	if err != nil {
		return nil, err
	}
	defer t.Close()
	found, err := t.Standing(v.Context())
	if err != nil {
		return nil, err
	}
	ref := v.PathValue("team")
	is := present{listed{ref, found.Overview, found.Overview.State(), 0}, found.Standings, []waiting{},
		t.Looked(v.Context()), append([]team.Rule{}, found.Added...), map[string]string{}}
	t.View(func(s *team.State) {
		for _, m := range s.Roster() {
			if question := s.EndOfCommand(m.Name); question != "" {
				is.Endings[m.Name] = question
			}
		}
	})
	for _, i := range found.Attention {
		i = i.Known(found.Overview.Name, ref)
		if i.WaitsFor == team.ForUser {
			is.Needs++
		}
		is.Items = append(is.Items, waiting{ref, i.Key(), item{i, render.CommandFor(i.Hint).String()}})
	}
	return is, nil
}

// saw records up to which record a person saw the team.
func (b *Board) saw(v *view) (any, error) {
	var is struct {
		Seq int64 `json:"seq"`
	}
	if err := json.Unmarshal(v.body, &is); err != nil {
		return nil, team.Refuse(team.Invalid, "the body is not the number of a record: %v", err)
	}
	t, err := v.look()
	if err != nil {
		return nil, err
	}
	defer t.Close()
	if is.Seq < 1 || is.Seq > t.Seq() {
		return nil, team.Refuse(team.Invalid, "team %s has no record %d", t.Name, is.Seq)
	}
	return nil, t.Saw(v.Context(), max(is.Seq, t.Looked(v.Context())))
}

// mostColumns bounds the columns of lanes: a screen has no more pixels.
const mostColumns = 4_000

func (b *Board) lanes(v *view) (any, error) {
	columns, err := v.number("columns", 400, mostColumns)
	if err != nil {
		return nil, err
	}
	from, err := v.number("from", 0, latest)
	if err != nil {
		return nil, err
	}
	to, err := v.number("to", 0, latest)
	if err != nil {
		return nil, err
	}
	if to != 0 && to <= from {
		return nil, team.Refuse(team.Invalid, "the time ends before it begins")
	}
	seq, err := v.number("seq", 0, latest)
	if err != nil {
		return nil, err
	}
	t, err := v.look()
	if err != nil {
		return nil, err
	}
	defer t.Close()
	var is lanes
	err = b.of(t.Team().ID).recalled(v.Context(), t, func(h *recalled) error {
		if seq > 0 {
			if h, err = h.until(v.Context(), t, seq); err != nil {
				return err
			}
		}
		is = h.view(team.Time(from), team.Time(to), int(max(1, columns)))
		return nil
	})
	return is, err
}

// latest is the latest time that a request may name, in milliseconds since 1970.
const latest = 1 << 50

// mostStates bounds the states of one answer.
const mostStates = 2_000

// states answers with the states after the record after, one after every so many records: as
// patches, after the state itself if base is set. With marks they come with the marks after that
// record, which may be another one. Without after it answers with the present.
func (b *Board) states(v *view) (any, error) {
	after, err := v.number("after", -1, latest)
	if err != nil {
		return nil, err
	}
	to, err := v.number("to", latest, latest)
	if err != nil {
		return nil, err
	}
	every, err := v.number("every", 1, latest)
	if err != nil {
		return nil, err
	}
	t, err := v.look()
	if err != nil {
		return nil, err
	}
	defer t.Close()
	of := b.of(t.Team().ID)
	if after < 0 {
		return of.film.present(v.Context(), t)
	}
	if last := t.Seq(); after > last {
		return nil, team.Refuse(team.Conflict, "team %s has no record %d yet; its last one is %d", t.Name, after, last)
	}
	if every < 1 || to < after {
		return nil, team.Refuse(team.Invalid, "no states lie between these records")
	}
	marks, err := v.number("marks", -1, latest)
	if err != nil {
		return nil, err
	}
	whole := v.URL.Query().Get("base") == "true"
	is := frames{}
	if !whole && every == 1 {
		is, err = of.film.recent(v.Context(), t, after, to)
	}
	if is.Patches == nil && err == nil {
		is, err = of.reels.frames(v.Context(), t, stretch{after, to, every}, whole)
	}
	if marks >= 0 && err == nil {
		is.Marks, is.Marked, err = of.marksAfter(v.Context(), t, marks)
	}
	return is, err
}
