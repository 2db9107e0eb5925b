package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strconv"

	"cadre/internal/engine"
	"cadre/internal/inspect/catalog"
	"cadre/internal/inspect/history"
	"cadre/internal/server/auth"
	"cadre/internal/team"
)

// State is a team as it was after a record, or as it is now.
type State struct {
	Seq         int64             `json:"seq"`         // the record after which the team was like this
	Last        int64             `json:"last"`        // the last record that there is
	Team        team.Team         `json:"team"`        // the team as a whole
	Members     []team.Member     `json:"members"`     // the lead and the teammates
	Tasks       []team.Task       `json:"tasks"`       // all tasks
	Permissions []team.Permission `json:"permissions"` // requests that wait for an answer
	Rules       []PermissionRule  `json:"rules"`       // permission rules of the team
	Notes       []team.Note       `json:"notes"`       // notes that the team shares, by their keys
	Messages    int64             `json:"messages"`    // number of all messages
	Attention   []team.Item       `json:"attention"`   // what waits for a person
	Budget      []team.Spent      `json:"budget"`      // use of each of the team's budgets
	// what each member does, by its name
	Standings map[string]team.Phase `json:"standings"`
	// what is known only of the present: which processes run, and what they were found to do;
	// missing for an earlier record
	Now *catalog.Overview `json:"now,omitempty"`
}

// TeamSpec describes a team to create.
type TeamSpec struct {
	Name           string `json:"name"`                     // name of the team, unique in the project
	Goal           string `json:"goal,omitempty"`           // what the team is to do
	Lead           string `json:"lead,omitempty"`           // name of the lead; lead by default
	PermissionMode string `json:"permissionMode,omitempty"` // what the lead and its members may do without asking
	Delegate       bool   `json:"delegate,omitempty"`       // the lead may only coordinate
	MaxTeammates   int64  `json:"maxTeammates,omitempty"`   // teammates that run at a time; 0 for the default
	MaxParallel    int64  `json:"maxParallel,omitempty"`    // teammates that have a turn at a time; 0 for no limit
	MaxDepth       int64  `json:"maxDepth,omitempty"`       // how deep teams may be nested in it; 0 for none
	// git remote through which the work of members travels between machines
	Remote string     `json:"remote,omitempty"`
	Budget BudgetSpec `json:"budget,omitzero"` // what the team may spend
	// commands that have to pass before its work is committed
	Checks []CheckSpec `json:"checks,omitempty"`
	Allow  []string    `json:"allow,omitempty"` // rules for tools that need no permission
	// who answers if no rule does: user, lead, allow or deny
	Policy   string                     `json:"policy,omitempty"`
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"` // what the creator keeps with the team
}

// CheckSpec is a check of a team's work.
type CheckSpec struct {
	Name    string `json:"name,omitempty"` // name of the check; its command by default
	Command string `json:"command"`        // command for /bin/sh, run in the team's directory
}

// Reason says why something is done.
type Reason struct {
	Reason string `json:"reason,omitempty"` // why, for the history and for those whom it concerns
}

// Removal says how a team is removed.
type Removal struct {
	Force    bool `json:"force,omitempty"`    // end running members, and remove branches whose commits would be lost
	Branches bool `json:"branches,omitempty"` // also remove the team's branches
}

// On switches something.
type On struct {
	On bool `json:"on"` // on or off
}

// Marks are records worth a look.
type Marks struct {
	Marks []Mark `json:"marks"` // in the order of their records
}

// Mark is a record worth a look.
type Mark struct {
	Seq    int64     `json:"seq"`              // number of the record
	At     team.Time `json:"at"`               // when it was recorded
	Kind   string    `json:"kind"`             // failure, wait or commit
	Event  string    `json:"event"`            // kind of the event
	Member string    `json:"member,omitempty"` // member that it concerns
	Task   string    `json:"task,omitempty"`   // id of the task that it concerns
}

// Since sums up what happened after a record.
type Since struct {
	From  int64    `json:"from"`  // the first record that is summed up; 0 for none
	To    int64    `json:"to"`    // the last one
	Lines []string `json:"lines"` // what happened, the most urgent first, a sentence each
}

var teamRoutes = []Route{
	{Method: "GET", Path: "/v1/teams", ID: "listTeams", Command: "ls", Role: auth.Observe,
		About:  "List the teams of this machine, with what waits for a person in each.",
		Query:  []Param{{"archive", "boolean", "also list archived runs"}},
		Answer: reflect.TypeFor[[]catalog.Overview](), handle: (*call).listTeams},
	{Method: "POST", Path: "/v1/teams", ID: "createTeam", Command: "create", Role: auth.Admin,
		About: "Create a team that works in the server's directory and is led by its user.",
		Body:  reflect.TypeFor[TeamSpec](), Answer: reflect.TypeFor[team.Team](), handle: (*call).createTeam},
	{Method: "GET", Path: "/v1/teams/{team}", ID: "getTeam", Command: "status", Role: auth.Observe,
		About: "Show a team after any record. The ETag begins with the number of the record.",
		Query: []Param{pageSeq}, Tagged: true, Answer: reflect.TypeFor[State](), handle: (*call).getTeam},
	{Method: "GET", Path: "/v1/teams/{team}/status", ID: "getStatus", Command: "status", Role: auth.Observe,
		About:  "Show a team at a glance.",
		Answer: reflect.TypeFor[catalog.Standing](), handle: (*call).getStatus},
	{Method: "GET", Path: "/v1/teams/{team}/events", ID: "followEvents", Command: "log", Role: auth.Observe,
		Stream: true, About: "Follow the records of a team. Each event has the number of its record as its id. A " +
			"client that comes back continues after its Last-Event-ID.",
		Query: []Param{pageAfter}, Event: "record", Answer: reflect.TypeFor[team.Record](),
		handle: (*call).followEvents},
	{Method: "GET", Path: "/v1/teams/{team}/records", ID: "listRecords", Command: "log", Role: auth.Observe,
		About: "List records of a team, at most 1000 at a time.",
		Query: []Param{pageAfter, {"member", "array", "only events that concern this member; may be repeated"},
			{"kind", "array", "only events of this kind, or whose kind begins with this word; may be repeated"},
			pageLimit},
		Answer: reflect.TypeFor[[]team.Record](), handle: (*call).listRecords},
	{Method: "GET", Path: "/v1/teams/{team}/marks", ID: "listMarks", Command: "log", Role: auth.Observe,
		About:  "List the records that are worth a look: failures, waits for a person, and commits.",
		Answer: reflect.TypeFor[Marks](), handle: (*call).listMarks},
	{Method: "GET", Path: "/v1/teams/{team}/since", ID: "sumUp", Command: "log", Role: auth.Observe,
		About: "Sum up what happened after a record.", Query: []Param{pageAfter},
		Answer: reflect.TypeFor[Since](), handle: (*call).sumUp},
	{Method: "POST", Path: "/v1/teams/{team}/pause", ID: "pauseTeam", Command: "pause", Role: auth.Steer,
		About:  "End the sessions of a team until it is resumed.",
		Answer: reflect.TypeFor[engine.Paused](), handle: (*call).pauseTeam},
	{Method: "POST", Path: "/v1/teams/{team}/resume", ID: "resumeTeam", Command: "resume", Role: auth.Steer,
		About:  "Continue a team on this server.",
		Answer: reflect.TypeFor[team.Team](), handle: (*call).resumeTeam},
	{Method: "POST", Path: "/v1/teams/{team}/delegate", ID: "setDelegate", Command: "delegate", Role: auth.Steer,
		About: "Restrict the lead to coordination, or lift that.", Query: []Param{pageAs},
		Body: reflect.TypeFor[On](), Answer: reflect.TypeFor[team.Team](), handle: (*call).setDelegate},
	{Method: "POST", Path: "/v1/teams/{team}/wind-down", ID: "windDown", Command: "shutdown", Role: auth.Steer,
		Query:  []Param{pageAs},
		About:  "Let the team finish its tasks in progress and begin no others.",
		Flags:  func(any) []string { return []string{"graceful"} },
		Answer: reflect.TypeFor[team.Team](), handle: (*call).windDown},
	{Method: "POST", Path: "/v1/teams/{team}/abort", ID: "abortTeam", Command: "abort", Role: auth.Admin,
		Query: []Param{pageAs},
		About: "End a team and all its sessions at once. Its record and its work stay.",
		Body:  reflect.TypeFor[Reason](), Answer: reflect.TypeFor[team.Team](), handle: (*call).abortTeam},
	{Method: "POST", Path: "/v1/teams/{team}/cleanup", ID: "cleanUpTeam", Command: "cleanup", Role: auth.Admin,
		Query: []Param{pageAs},
		About: "Remove a team and everything that belongs to it.",
		Body:  reflect.TypeFor[Removal](), handle: (*call).cleanUpTeam},
}

func (c *call) listTeams() (any, error) {
	found, err := c.engine.List(c.Context(), c.URL.Query().Get("archive") == "true")
	if err != nil {
		return nil, err
	}
	all := []catalog.Overview{}
	for _, one := range found {
		if one.Overview.Name == "" && one.Err != nil { // it cannot be read
			one.Overview.Name = one.Name
			one.Overview.Attention = []team.Item{{Kind: team.ItemDamaged, Text: one.Err.Error(),
				WaitsFor: team.ForUser}}
		}
		all = append(all, one.Overview)
	}
	return all, nil
}

func (c *call) createTeam() (any, error) {
	spec := c.body.(*TeamSpec)
	if err := team.CheckName("team", spec.Name); err != nil {
		return nil, err
	}
	budget, err := spec.Budget.budget()
	if err != nil {
		return nil, err
	}
	e := c.engine.In(c.server.Dir)
	body := &team.CreateTeam{Name: spec.Name, Goal: spec.Goal, Dir: c.server.Dir, Lead: spec.Lead,
		PermissionMode: spec.PermissionMode, Delegate: spec.Delegate, MaxTeammates: spec.MaxTeammates,
		MaxParallel: spec.MaxParallel, MaxDepth: spec.MaxDepth, Remote: spec.Remote, Budget: budget,
		Permissions: team.Permissions{Allow: spec.Allow, Policy: spec.Policy}, Metadata: spec.Metadata}
	for _, check := range spec.Checks {
		body.Checks = append(body.Checks, team.Check{Name: cmp.Or(check.Name, check.Command), Command: check.Command})
	}
	if err := e.Founding(c.Context(), body); err != nil {
		return nil, err
	}
	command := engine.Command(team.User, body)
	command.ID = "" // the client's, if it chose one
	e.Stamp(&command)
	if command.ID == "" {
		command.ID = engine.Command(team.User, body).ID
	}
	if err := e.Create(spec.Name, []team.Command{command}); err != nil && !c.repeats(e, spec.Name, err) {
		return nil, err
	}
	of, err := e.Glance(c.Context(), spec.Name)
	c.w.Header().Set("Location", "/v1/teams/"+of.ID)
	return of, err
}

// repeats reports whether a team was refused because the same request created it before.
func (c *call) repeats(e *engine.Engine, name string, err error) bool {
	key := c.key()
	if key == "" || team.CodeOf(err) != team.Taken {
		return false
	}
	t, err := c.opens(e.Look(c.Context(), name))
	if err != nil {
		return false
	}
	known := false
	t.View(func(s *team.State) { known = s.Remembers(key) })
	return known
}

func (c *call) getTeam() (any, error) {
	t, err := c.look()
	if err != nil {
		return nil, err
	}
	if !c.URL.Query().Has("seq") {
		state, err := c.present(t)
		if err != nil {
			return nil, err
		}
		content, now := state, *state.Now
		now.LookedAt = 0
		content.Now = &now
		return c.tagged(state.Seq, state, content)
	}
	seq, err := c.number("seq", 0)
	if err != nil {
		return nil, err
	}
	if seq == 0 {
		return nil, usageError{errors.New("seq=0 is before the first record, which is 1; leave seq out for the present")}
	}
	state, err := c.past(t, seq)
	if err != nil {
		return nil, err
	}
	// the last record changes, and the team after this one does not; its name may be given again
	return c.unless(fmt.Sprintf(`W/"%d-%s"`, state.Seq, state.Team.ID), state)
}

// present returns the team as it is now.
func (c *call) present(t *engine.Team) (state State, err error) {
	found, err := t.Standing(c.Context())
	if err != nil {
		return state, err
	}
	t.View(func(s *team.State) { state = stateOf(s, found.LookedAt) })
	state.Now, state.Attention, state.Standings = &found.Overview, found.Attention, found.Standings
	state.Last = state.Seq
	return state, nil
}

// past returns the team as it was after the record seq.
func (c *call) past(t *engine.Team, seq int64) (state State, err error) {
	if seq > t.Seq() {
		return state, ahead("team "+t.Name, "record", seq, t.Seq())
	}
	s, err := t.Past().At(c.Context(), seq)
	if err != nil {
		return state, orGone(t.Name, seq, err)
	}
	state = stateOf(s, s.Team().UpdatedAt)
	state.Last = t.Seq()
	return state, nil
}

// stateOf returns the state as the API shows it. now is the time to which it belongs.
func stateOf(s *team.State, now team.Time) State {
	state := State{Seq: s.Seq(), Team: s.Team(), Members: listed(s.Members()), Tasks: listed(slices.Collect(s.Tasks())),
		Permissions: listed(s.Permissions()), Rules: rulesOf(s), Notes: listed(s.Notes()), Messages: s.MessageCount(),
		Attention: listed(s.Attention(now, nil)), Budget: listed(s.Spending(now)), Standings: map[string]team.Phase{}}
	for _, m := range state.Members {
		state.Standings[m.Name] = s.Standing(m.Name, nil)
	}
	return state
}

// listed returns the list, which is [] in JSON where it is empty.
func listed[T any](all []T) []T { return append([]T{}, all...) }

// ahead is the error for a cursor behind the last record of a team, or the last entry of a session.
func ahead(of, what string, seq, last int64) error {
	return cursorError{error: fmt.Errorf("%s has no %s %d yet; its last one is %d", of, what, seq, last),
		status: http.StatusConflict, code: codeAhead, seq: last}
}

// gone is the error for records that are lost to damage. It names the first record whose state is
// still known.
func gone(name string, seq int64, lost *engine.LostError) error {
	return cursorError{error: fmt.Errorf("team %s cannot be shown after record %d: %w", name, seq, lost),
		status: http.StatusGone, code: codeGone, seq: lost.Next}
}

// orGone returns the error that follows the record seq, which is [gone] if the next ones are lost.
func orGone(name string, seq int64, err error) error {
	if lost, is := errors.AsType[*engine.LostError](err); is {
		return gone(name, seq, lost)
	}
	return err
}

func (c *call) getStatus() (any, error) {
	t, err := c.look()
	if err != nil {
		return nil, err
	}
	return t.Standing(c.Context())
}

// cursor returns the number of the last record, or of another thing, that the client has. last is
// the last one that there is.
func (c *call) cursor(last int64, of, what string) (int64, error) {
	after, err := c.number("after", 0)
	if id := c.Header.Get("Last-Event-ID"); id != "" && err == nil {
		if after, err = strconv.ParseInt(id, 10, 64); err != nil || after < 0 {
			err = usageError{fmt.Errorf("Last-Event-ID: %s is not the number of a %s", short(id), what)}
		}
	}
	if err == nil && after > last {
		err = ahead(of, what, after, last)
	}
	return after, err
}

// continued opens the team of the route for reading, and returns the last record that the client
// has.
func (c *call) continued() (t *engine.Team, after int64, err error) {
	if t, err = c.look(); err == nil {
		after, err = c.cursor(t.Seq(), "team "+t.Name, "record")
	}
	return t, after, err
}

func (c *call) followEvents() (any, error) {
	t, after, err := c.continued()
	if err != nil {
		return nil, err
	}
	feed, leave, err := c.server.feeds.Follow(t.Team().ID, func() (*engine.Team, error) {
		return c.engine.Look(context.Background(), t.Name) // an observed team is not found by its id
	})
	if err != nil {
		return nil, err
	}
	defer leave()
	place, left := c.server.cursors.enter(feed.team.Seq, after)
	defer left()
	var s *stream
	for {
		var frames []Frame
		next := func(ctx context.Context) (err error) {
			frames, err = feed.Next(ctx, after)
			return err
		}
		if s == nil { // what fails before the first event is answered with a problem
			first, cancel := context.WithTimeout(c.Context(), together)
			err := next(first)
			idle := first.Err() != nil
			cancel()
			if err != nil && !idle {
				return nil, orGone(t.Name, after, err)
			}
			s = c.stream()
		} else if err := s.waiting(next); err != nil {
			c.server.ends(s, orGone(t.Name, after, err))
			return nil, answered
		}
		for _, f := range frames {
			s.add(strconv.FormatInt(f.Seq, 10), "record", f.Data)
			after = f.Seq
		}
		if s.flush() != nil {
			return nil, answered
		}
		place.at.Store(after)
		s.rest(feed.rest())
	}
}

// ends tells the client why its stream ends, if it still listens.
func (s *Server) ends(to *stream, err error) {
	if to.call.Context().Err() != nil {
		return
	}
	data, _ := json.Marshal(ProblemOf(err))
	to.add("", "problem", data)
	to.flush()
}

// mostRecords bounds the records of one answer.
const mostRecords = 1000

func (c *call) listRecords() (any, error) {
	t, after, err := c.continued()
	if err != nil {
		return nil, err
	}
	limit, err := c.limit()
	if err != nil {
		return nil, err
	}
	query := c.URL.Query()
	filter := history.Filter{Members: query["member"], Kinds: query["kind"]}
	if err := filter.Check(); err != nil {
		return nil, err
	}
	all := []*team.Record{}
	for r, err := range filter.Select(t.Records(c.Context(), after)) {
		if err != nil && len(all) > 0 { // the next request meets it again
			break
		}
		if err != nil {
			return nil, orGone(t.Name, after, err)
		}
		if all = append(all, r); len(all) >= limit {
			break
		}
	}
	return all, nil
}

func (c *call) listMarks() (any, error) {
	t, err := c.look()
	if err != nil {
		return nil, err
	}
	found, err := t.Marks(c.Context())
	marks := Marks{[]Mark{}}
	for _, m := range found {
		marks.Marks = append(marks.Marks, Mark{m.Seq, m.At, string(m.Kind), m.Event, m.Member, m.Task})
	}
	return marks, err
}

func (c *call) sumUp() (any, error) {
	t, after, err := c.continued()
	if err != nil {
		return nil, err
	}
	sum, err := t.Since(c.Context(), after)
	if err != nil {
		return nil, err
	}
	var lines []string
	t.View(func(s *team.State) { lines = sum.Lines(s.Called) })
	return Since{sum.From, sum.To, append([]string{}, lines...)}, nil
}

func (c *call) pauseTeam() (any, error) {
	t, err := c.open()
	if err != nil {
		return nil, err
	}
	if err := c.server.Keeps.Rest(t.Team().ID); err != nil { // first, so that nothing resumes it meanwhile
		return nil, err
	}
	return t.Pause(c.Context())
}

func (c *call) resumeTeam() (any, error) {
	t, err := c.open()
	if err != nil {
		return nil, err
	}
	if err := c.server.Keeps.Add(c.Context(), t.Team()); err != nil {
		return nil, err
	}
	return t.Team(), t.Refresh(c.Context())
}

func (c *call) setDelegate() (any, error) {
	on := c.body.(*On).On
	return c.team(&team.SetDelegate{On: on}, makes(func(e *team.DelegateChanged) bool { return e.On == on }))
}

func (c *call) windDown() (any, error) {
	return c.team(&team.SetStatus{Status: team.TeamConsolidating}, makes(func(e *team.TeamStatusChanged) bool {
		return e.Status == team.TeamConsolidating
	}))
}

// team sends the command, and returns the team.
func (c *call) team(body team.Body, m made) (of team.Team, err error) {
	err = c.act(body, m, func(t *engine.Team, _ *team.Record) error {
		of = t.Team()
		return nil
	})
	return of, err
}

func (c *call) abortTeam() (any, error) {
	t, actor, err := c.acting()
	if err != nil {
		return nil, err
	}
	decides[*team.SetStatus](c)
	aborts := makes(func(e *team.TeamStatusChanged) bool { return e.Status == team.TeamAborted })
	if _, err := c.earlier(t, aborts); err != nil {
		return nil, err
	}
	if err := t.Abort(c.Context(), actor, c.body.(*Reason).Reason); err != nil {
		return nil, err
	}
	c.seq = t.Seq()
	return t.Team(), nil
}

func (c *call) cleanUpTeam() (any, error) {
	how := c.body.(*Removal)
	actor, err := c.actor()
	if err != nil {
		return nil, err
	}
	_, err = c.engine.RemoveTeam(c.Context(), c.PathValue("team"), engine.Removal{Actor: actor, Force: how.Force,
		Branches: how.Branches})
	return nil, err
}
