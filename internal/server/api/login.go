package api

import (
	"net/http"
	"reflect"
	"slices"
	"time"

	"cadre/internal/server/auth"
	"cadre/internal/team"
)

// CodeSpec asks for a one-time code.
type CodeSpec struct {
	Token string `json:"token,omitempty"` // token whose role the browser gets; the one of this request by default
	// scheme and host at which the browser is to open the login, such as https://my-tunnel.example;
	// refused if the server does not answer there
	Address string `json:"address,omitempty"`
}

// LoginCode is a one-time code for a browser.
type LoginCode struct {
	Code    string    `json:"code"`    // to be opened as /login?code=CODE
	Expires team.Time `json:"expires"` // until when it can be used, once
}

var loginRoutes = []Route{
	{Method: "POST", Path: "/v1/login-codes", ID: "createLoginCode", Command: "serve", Role: auth.Observe,
		About: "Make a one-time code with which a browser logs in.", Body: reflect.TypeFor[CodeSpec](),
		Answer: reflect.TypeFor[LoginCode](), handle: (*call).createLoginCode},
}

// createLoginCode makes a code for the token of the request, or for a weaker one.
func (c *call) createLoginCode() (any, error) {
	spec := c.body.(*CodeSpec)
	name := spec.Token
	if at := spec.Address; at != "" && !slices.Contains(c.server.Origins(), at) {
		return nil, team.Refuse(team.NotReady, "the server does not answer to %s; it has to be allowed when the "+
			"server is started", short(at))
	}
	if name == "" {
		name = c.who.Token
	}
	if name == "" { // the user on the socket
		name = auth.AdminToken
		if _, err := c.server.Tokens.Ensure(name, auth.Admin); err != nil {
			return nil, err
		}
	}
	role := c.server.Tokens.Role(name)
	if role == 0 {
		return nil, team.Refuse(team.NotFound, "the token %q does not exist", name)
	}
	if err := c.who.Needs(role, "a code with the role of "+name); err != nil {
		return nil, err
	}
	now := time.Now()
	code, err := c.server.Codes.Create(name, now)
	return LoginCode{code, team.Time(now.Add(auth.CodeTime).UnixMilli())}, err
}

// LogIn answers the address with a one-time code: it sets the cookie, and sends the browser to the
// page, so that the code does not stay in its history. secure reports whether the browser uses
// https.
func (s *Server) LogIn(secure func(*http.Request) bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet { // HEAD, of a program that shows what an address leads to
			w.Header().Set("Allow", http.MethodGet)
			http.Error(w, "a code is for GET", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Cache-Control", "no-store")
		cookie, err := s.Codes.Redeem(r.URL.Query().Get("code"), secure(r), time.Now())
		if err != nil {
			Refuse(w, r, ProblemOf(err))
			return
		}
		http.SetCookie(w, cookie)
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
}
