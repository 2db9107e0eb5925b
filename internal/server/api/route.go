package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"cadre/internal/engine"
	"cadre/internal/server/auth"
	"cadre/internal/team"
)

// Limits on a request.
const (
	// MaxBody bounds the body of a request, in bytes. A text of a team has at most a megabyte, and
	// JSON may write a character in six.
	MaxBody = 8 << 20
	// MaxWait bounds how long a request waits with wait=, in seconds.
	MaxWait = 60
)

// Route is a row of the table of routes.
type Route struct {
	Method string
	Path   string // as net/http has it: {team} is the name or the id of a team
	ID     string // unique name, for clients that are made from the description
	About  string // what it does, one sentence
	// command of the command line that does the same, without cadre: who may call it may call the
	// route
	Command string
	Role    auth.Role    // what a token must allow
	Query   []Param      // what the address may carry
	Body    reflect.Type // of the request; nil for none
	Answer  reflect.Type // of the answer; nil for none
	Stream  bool         // the answer is a stream of server-sent events
	Event   string       // name of the events with an Answer; others are end, which ends a stream, and problem
	// Flags returns which flags of the command the body stands for, where some need more than the
	// command; nil for none.
	Flags func(body any) []string
	// Tagged says that the answer has an ETag, and that If-None-Match is understood.
	Tagged bool
	// Matched says that If-Match with the ETag of what the route changes is understood.
	Matched bool

	handle func(*call) (any, error)
}

// Param is a value in the query of an address.
type Param struct {
	Name, Type string // Type is string, integer, boolean, or array for one that may be repeated
	About      string
}

// The parameters that several routes have.
var (
	pageSeq   = Param{"seq", "integer", "show the team as it was after this record, from 1; without it, as it is now"}
	pageWait  = Param{"wait", "integer", "wait up to so many seconds until there is something, at most 60"}
	pageAfter = Param{"after", "integer", "the last record that the client has; 0 for the whole history"}
	pageLimit = Param{"limit", "integer", "at most so many, at least 1; 1000 by default, which is the most"}
	pageAs    = Param{"as", "string", "act as this member; the user by default"}
)

// call is one request.
type call struct {
	*http.Request
	w      http.ResponseWriter
	server *Server
	route  Route
	who    auth.Principal
	engine *engine.Engine // scoped to what the caller may reach
	body   any            // a pointer to the route's Body
	opened []*engine.Team
	seq    int64 // of the record that the request made
	again  bool  // the request was carried out before, as its Idempotency-Key shows
	main   func(team.Body) bool
}

// serve answers a request to the route.
func (s *Server) serve(route Route) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c := &call{Request: r, w: w, server: s, route: route, who: auth.From(r.Context())}
		defer c.close()
		answer, err := c.answer(route)
		if _, over := errors.AsType[written](err); over {
			return
		}
		if err != nil {
			s.refused(err)
			Refuse(w, r, ProblemOf(engine.InTermsOf(r.PathValue("team"), err)))
			return
		}
		if c.seq > 0 {
			w.Header().Set("Cadre-Seq", strconv.FormatInt(c.seq, 10))
		}
		if answer == nil {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		json.NewEncoder(w).Encode(answer)
	})
}

// written is the result of a handler that has answered already.
type written struct{ error }

var answered error = written{errors.New("the request was answered")}

func (c *call) answer(route Route) (any, error) {
	if route.Body != nil {
		c.body = reflect.New(route.Body).Interface()
		if err := c.decode(c.body); err != nil {
			return nil, err
		}
	}
	var flags []string
	if route.Flags != nil {
		flags = route.Flags(c.body)
	}
	if c.URL.Query().Get("as") != "" {
		flags = append(flags, "as")
	}
	given := func(flag string) bool {
		for _, f := range flags {
			if f == flag {
				return true
			}
		}
		return false
	}
	if err := c.who.Command(route.Command, given); err != nil {
		return nil, err
	}
	if err := c.who.Needs(route.Role, route.Method+" "+route.Path); err != nil {
		return nil, err
	}
	if err := CheckQuery(c.URL.RawQuery, route.Query); err != nil {
		return nil, err
	}
	if ref := c.PathValue("team"); ref != "" && !ValidRef(ref) {
		return nil, team.Refuse(team.NotFound, "%q is not the name or the id of a team", short(ref))
	}
	query := c.URL.Query()
	query.Del("wait") // which may differ when the request is sent again
	done, err := c.server.Keys.Check(c.key(), c.Method, c.URL.Path, query, c.who.Caller.String(), c.body)
	if err != nil {
		return nil, err
	}
	e := *c.server.Engine
	e.Home = c.who.Scoped(e.Home)
	e.Stamp = c.stamp()
	c.engine = &e
	answer, err := route.handle(c)
	if err == nil {
		done()
	}
	return answer, err
}

// ValidRef reports whether a text can be the name or the id of a team, and not a path.
func ValidRef(ref string) bool {
	name, rest, id := strings.Cut(ref, "-")
	return len(ref) <= 2*team.MaxName && team.ValidName(name) && (!id || strings.Trim(rest,
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") == "")
}

func short(s string) string { return strings.ToValidUTF8(s[:min(len(s), 80)], "") }

// decode reads the body of the request.
func (c *call) decode(into any) error {
	kind, _, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	if err != nil || kind != "application/json" {
		return usageError{errors.New("the body must be JSON: send Content-Type: application/json")}
	}
	d := json.NewDecoder(http.MaxBytesReader(c.w, c.Body, MaxBody))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		if _, is := errors.AsType[*http.MaxBytesError](err); is {
			return err
		}
		return usageError{fmt.Errorf("the body is not what the route takes: %w", err)}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return usageError{errors.New("the body has more than one JSON value")}
	}
	return nil
}

// actor returns who acts: the member that the query names, the member that calls, or the user.
func (c *call) actor() (string, error) {
	if !slices.Contains(c.route.Query, pageAs) {
		return "", fmt.Errorf("the description of %s lacks as=", c.route.ID)
	}
	return c.who.Actor("as=", c.URL.Query().Get("as"))
}

// look opens the team of the route for reading, until the request is answered.
func (c *call) look() (*engine.Team, error) {
	return c.opens(c.engine.Look(c.Context(), c.PathValue("team")))
}

// open opens the team of the route for an actor, until the request is answered.
func (c *call) open() (*engine.Team, error) {
	return c.opens(c.engine.Open(c.Context(), c.PathValue("team")))
}

// acting opens the team of the route, and returns who acts in it.
func (c *call) acting() (t *engine.Team, actor string, err error) {
	if actor, err = c.actor(); err == nil {
		t, err = c.open()
	}
	return t, actor, err
}

func (c *call) opens(t *engine.Team, err error) (*engine.Team, error) {
	if err == nil {
		c.opened = append(c.opened, t)
	}
	return t, err
}

func (c *call) close() {
	for _, t := range c.opened {
		t.Close()
	}
}

// CheckQuery refuses a query that cannot be read, a parameter that is not among those that the
// route takes, one that is given twice though it has one value, and a boolean that is not true or
// false.
func CheckQuery(raw string, takes []Param) error {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return usageError{fmt.Errorf("the query of the address cannot be read: %w", err)}
	}
	if err := unknownQuery(query, takes); err != nil {
		return err
	}
	for _, p := range takes {
		all := query[p.Name]
		if len(all) > 1 && p.Type != "array" {
			return usageError{fmt.Errorf("%s= is given %d times, and takes one value", p.Name, len(all))}
		}
		if len(all) > 0 && p.Type == "boolean" && all[0] != "true" && all[0] != "false" {
			return usageError{fmt.Errorf("%s=%s is not true or false", p.Name, short(all[0]))}
		}
	}
	return nil
}

// unknownQuery refuses a query with a parameter that is not among those that the route takes.
func unknownQuery(query url.Values, takes []Param) error {
	var names []string
	for _, p := range takes {
		names = append(names, p.Name+"=")
	}
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch is := name + "="; {
		case slices.Contains(names, is):
		case len(names) == 0:
			return usageError{fmt.Errorf("%s is not a parameter of this address, which takes none", short(is))}
		default:
			return usageError{fmt.Errorf("%s is not a parameter of this address, which takes %s", short(is),
				strings.Join(names, ", "))}
		}
	}
	return nil
}

// number returns a number of the query; or if it is missing.
func (c *call) number(name string, or int64) (int64, error) {
	query := c.URL.Query()
	if !query.Has(name) {
		return or, nil
	}
	text := query.Get(name)
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, usageError{fmt.Errorf("%s=%s is not a number", name, short(text))}
	}
	return n, nil
}

// limit returns how many records or messages the answer may have.
func (c *call) limit() (int, error) {
	n, err := c.number(pageLimit.Name, mostRecords)
	if err == nil && n == 0 {
		err = usageError{errors.New("limit=0 asks for nothing; give at least 1, or leave limit out")}
	}
	return int(min(n, mostRecords)), err
}

// Least returns the least value of an integer.
func (p Param) Least() int {
	if p == pageSeq || p == pageLimit || p == boardEvery {
		return 1
	}
	return 0
}

// wait returns how long the request may wait; 0 if it may not.
func (c *call) wait() (time.Duration, error) {
	n, err := c.number("wait", 0)
	if err == nil && n > MaxWait {
		err = usageError{fmt.Errorf("wait=%d is more than %d seconds", n, MaxWait)}
	}
	return time.Duration(n) * time.Second, err
}

// within returns the request's context, which ends after a wait with the refusal that nothing came.
func (c *call) within(wait time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(c.Context(), wait,
		team.Refuse(team.Nothing, "nothing came within %s", team.Span(wait)))
}
