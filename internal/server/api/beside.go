package api

import (
	"net/http"
	"strings"

	"cadre/internal/server/auth"
)

// Beside is an address of the server that is not a route of the API: other parts answer it. The
// table makes the server answer it, and describes it.
type Beside struct {
	Method, Path string // Path as in [Route]
	ID           string
	About        string
	Role         auth.Role // what a token must allow
	Open         bool      // it has no data, and answers everybody
	Query        []Param
	AnyQuery     bool   // other parameters are ignored
	Body         string // media type of the request; "" for none
	Kind         string // media type of the answer; "" for none
	Status       int    // of the answer
	Tagged       bool   // as in [Route]
}

const (
	jsonKind = "application/json"
	boardAt  = "/board/teams/{team}/"
)

var (
	boardAfter = Param{"after", "integer", "what comes after this record"}
	boardEvery = Param{"every", "integer", "one state for every so many records"}
	boardTo    = Param{"to", "integer", "up to this record; to the last one by default"}
)

// Besides returns the table of what the server answers beside the API.
func Besides() []Beside {
	all := []Beside{
		{Path: "/metrics", ID: "getMetrics", About: "Show the metrics of all teams, in Prometheus's text format. " +
			"docs/monitoring.md lists them.", Kind: "text/plain"},
		{Path: "/v1/asyncapi.json", ID: "getSocketDescription", About: "Show the AsyncAPI description of /ws.",
			Kind: jsonKind},
		{Path: "/ws", ID: "openSocket", About: "Open a WebSocket for requests and events of teams. " +
			"docs/websocket.md explains it, and /v1/asyncapi.json describes it.",
			Status: http.StatusSwitchingProtocols},
		{Path: "/login", ID: "logIn", About: "Log a browser in with a one-time code, and send it to the page.",
			Open:  true,
			Query: []Param{{"code", "string", "the code, from /v1/login-codes"}}, Status: http.StatusSeeOther},
		{Path: "/", ID: "getPage", About: "Show the page of the board. It has no data.", Open: true, AnyQuery: true,
			Kind: "text/html", Tagged: true},
		{Path: "/assets/{file}", ID: "getPageFile", About: "Show a file of the page. It has no data.", Open: true,
			AnyQuery: true, Kind: "*/*", Tagged: true},
		boardStreams, boardEvents,
		{Path: "/board/teams", ID: "boardTeams", About: "List all teams in their sections, for the page.",
			Kind: jsonKind},
		boardSearch,
		{Method: http.MethodPost, Path: "/board/commands", ID: "boardCommands",
			About: "Show the command lines of hints, for the page.", Body: jsonKind, Kind: jsonKind},
		{Path: boardAt + "now", ID: "boardNow", About: "Show what is known only of the present, for the page.",
			Kind: jsonKind},
		{Method: http.MethodPost, Path: boardAt + "saw", ID: "boardSaw",
			About: "Record up to which record a person saw the team, for the page.", Body: jsonKind,
			Status: http.StatusNoContent},
		{Path: boardAt + "lanes", ID: "boardLanes", About: "Show what members did over time, for the page.",
			Kind: jsonKind,
			Query: []Param{{"columns", "integer", "how many parts the time has"},
				{"from", "integer", "begin at this time, in milliseconds since 1970; 0 for the first record"},
				{"to", "integer", "end at this time; 0 for the last record"}, boardSeq}},
		{Path: boardAt + "states", ID: "boardStates", About: "Show states as patches, for the page.", Kind: jsonKind,
			Query: []Param{boardAfter, boardTo, boardEvery,
				{"base", "boolean", "begin with the state after the record after"},
				{"marks", "integer", "also the records after this one that are worth a look"}}},
		{Path: boardAt + "log", ID: "boardLog", About: "Show records in words, for the page.", Kind: jsonKind,
			Query: []Param{boardAfter, boardTo}},
		{Path: boardAt + "messages", ID: "boardMessages", About: "List the messages, for the page.", Kind: jsonKind,
			Query: []Param{boardAfter}},
		{Path: boardAt + "marks", ID: "boardMarks", About: "List the records that are worth a look, for the page.",
			Kind: jsonKind, Query: []Param{boardAfter}},
		{Path: boardAt + "tasks/{task}", ID: "boardTask", About: "Show the attempts at a task, for the page.",
			Kind: jsonKind},
	}
	for i := range all {
		b := &all[i]
		if b.Method == "" {
			b.Method = http.MethodGet
		}
		if b.Status == 0 {
			b.Status = http.StatusOK
		}
		if !b.Open {
			b.Role = auth.Observe
		}
	}
	return all
}

var boardStreams = Beside{Path: "/board/streams", ID: "openStreams",
	About:  "Open a WebSocket that carries several streams of the API, for the page.",
	Status: http.StatusSwitchingProtocols}

var boardEvents = Beside{Path: "/board/events", ID: "openEvents",
	About: "Follow several streams of the API as one, for the page, where a proxy passes no WebSockets.",
	Kind:  "text/event-stream", Query: []Param{{"at", "array", "the address of a stream; may be repeated"}}}

var boardSearch = Beside{Path: "/board/search", ID: "boardSearch",
	About: "Find words in the texts of one team or of all, for the page.", Kind: jsonKind,
	Query: []Param{{"q", "string", "the words; those in quotation marks follow each other"},
		{"team", "string", "only this team"}}}

var boardSeq = Param{"seq", "integer", "only records up to this one; all by default"}

// Pattern returns the pattern for [http.ServeMux].
func (b Beside) Pattern() string {
	path := strings.Replace(b.Path, "{file}", "{file...}", 1)
	if path == "/" {
		path = "/{$}"
	}
	return b.Method + " " + path
}

// Known passes on the requests with parameters that the address takes, as [CheckQuery] says.
func (b Beside) Known(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := CheckQuery(r.URL.RawQuery, b.Query); err != nil && !b.AnyQuery {
			Refuse(w, r, ProblemOf(err))
			return
		}
		next.ServeHTTP(w, r)
	})
}
