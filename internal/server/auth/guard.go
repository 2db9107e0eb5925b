package auth

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"cadre/internal/layout"
	"cadre/internal/team"
)

// Cookie is the name of the cookie that a browser gets for a code.
const Cookie = "cadre_session"

// Guard identifies the sender of each request, and refuses strangers.
type Guard struct {
	Home   layout.Home
	Tokens Tokens
	Codes  *Codes
	// Origins are the origins of the pages of the TCP listener, such as http://127.0.0.1:7433. It
	// answers to their hosts alone. If a host is there twice, the first counts. The origin is https
	// where the listener encrypts, and where a tunnel or a proxy before it does. The function is
	// called at each request, because the port may be known only then.
	Origins func() []string
	// Tunnel says that the user has named a tunnel or a proxy. Its process may belong to another
	// user, so a connection on this machine is then accepted although its owner is not seen.
	Tunnel bool
	// Refuse answers a request with a refusal.
	Refuse func(w http.ResponseWriter, r *http.Request, status int, err error)

	bad slowdown
}

type principalKey struct{}

// With returns the context of a request that the principal sends.
func With(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, principalKey{}, p)
}

// From returns who sent the request, which passed [Guard.Handler].
func From(ctx context.Context) Principal {
	p, _ := ctx.Value(principalKey{}).(Principal)
	return p
}

// Handler passes on the requests of known senders; see [From].
func (g *Guard) Handler(next http.Handler) http.Handler {
	cross := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := r.Context().Value(connectionKey{}).(*connection)
		if !ok {
			g.Refuse(w, r, http.StatusInternalServerError, team.Refuse(team.Denied, "the connection is unknown"))
			return
		}
		if err := g.place(c, r); err != nil {
			g.Refuse(w, r, http.StatusForbidden, err)
			return
		}
		if err := cross.Check(r); err != nil {
			g.Refuse(w, r, http.StatusForbidden, team.Refuse(team.Denied, "the request comes from another site"))
			return
		}
		p, still, err := g.principal(c, r)
		if err != nil {
			status := http.StatusForbidden
			if refused, is := errors.AsType[refusal](err); is {
				status = refused.status
			}
			if status == http.StatusUnauthorized {
				w.Header().Set("WWW-Authenticate", `Bearer realm="cadre"`)
			}
			g.Refuse(w, r, status, err)
			return
		}
		ctx, end := while(With(r.Context(), p), still)
		defer end()
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// Page passes on the requests for a page without data: it checks where they come from, and not who
// sends them.
func (g *Guard) Page(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, ok := r.Context().Value(connectionKey{}).(*connection)
		if !ok || g.host(c, r) != nil {
			g.Refuse(w, r, http.StatusForbidden, wrongHost(r))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// place checks that the request was sent to this server and by no other page: its Host, its Origin
// if there is one, and what the browser says of its sender. No browser connects to a unix socket by
// itself, so a page's request that comes in there was forwarded, and is refused.
func (g *Guard) place(c *connection, r *http.Request) error {
	if err := g.host(c, r); err != nil {
		return err
	}
	origins, sent := r.Header["Origin"]
	sites := r.Header["Sec-Fetch-Site"]
	if c.unix() && (sent || len(sites) > 0) {
		return team.Refuse(team.Denied,
			"the socket does not answer to browsers; they use the TCP address of the server")
	}
	if sent && (len(origins) != 1 || origins[0] != g.origin(r.Host)) {
		return otherOrigin(r, origins)
	}
	for _, site := range sites {
		if site != "same-origin" && site != "none" {
			return team.Refuse(team.Denied, "the request comes from a page of another site")
		}
	}
	return nil
}

// socketHosts are the values of Host on the unix socket.
var socketHosts = []string{"cadre", "localhost", ""}

func (g *Guard) host(c *connection, r *http.Request) error {
	known := g.origin(r.Host) != ""
	if c.unix() {
		known = slices.Contains(socketHosts, r.Host)
	}
	if !known {
		return wrongHost(r)
	}
	return nil
}

// origin returns the origin of the pages at a host; "" if the TCP listener does not answer to it.
func (g *Guard) origin(host string) string {
	for _, origin := range g.Origins() {
		if _, at, _ := strings.Cut(origin, "://"); at == host {
			return origin
		}
	}
	return ""
}

// Secure reports whether browsers reach the host of the request by https alone, so that its cookies
// are for https alone.
func (g *Guard) Secure(r *http.Request) bool { return strings.HasPrefix(g.origin(r.Host), "https://") }

func otherOrigin(r *http.Request, origins []string) error {
	if len(origins) == 1 && origins[0] == "https://"+r.Host {
		return team.Refuse(team.Denied, "the page was opened with https, and the server knows its host without; "+
			"https://%s has to be allowed when the server is started", clip(r.Host))
	}
	return team.Refuse(team.Denied, "the request comes from a page of another origin")
}

func wrongHost(r *http.Request) error {
	return team.Refuse(team.Denied, "this server does not answer to the host %q; it has to be allowed when the server "+
		"is started", clip(r.Host))
}

func clip(s string) string { return strings.ToValidUTF8(s[:min(len(s), 80)], "") }

// refusal is an error with the status of its answer.
type refusal struct {
	error
	status int
}

func (r refusal) Unwrap() error { return r.error }

func unauthorized(format string, args ...any) error {
	return refusal{team.Refuse(team.Denied, format, args...), http.StatusUnauthorized}
}

// principal returns who sends the request. still reports later whether its token is still valid; it
// is nil for a process of the user on the unix socket.
func (g *Guard) principal(c *connection, r *http.Request) (p Principal, still func() bool, err error) {
	p = Principal{Role: Admin}
	if !c.unix() {
		is, found, err := g.bearer(r)
		if err != nil {
			return Principal{}, nil, err
		}
		p.Token, p.Role = is.name, is.role
		still = func() bool {
			now, ok := found()
			return ok && now == is
		}
	}
	p.Caller, err = c.who(g.Home, g.Tunnel)
	if err != nil {
		return Principal{}, nil, err
	}
	return p, still, nil
}

// maxCookies bounds how many session cookies of one request are tried. Pages of other ports of this
// host may set cookies, too.
const maxCookies = 8

// bearer returns the token or the cookie's token of the request, and how to find it again.
func (g *Guard) bearer(r *http.Request) (is known, found func() (known, bool), err error) {
	query := r.URL.Query()
	if query.Has("token") || query.Has("access_token") {
		return is, nil, unauthorized("a token in an address can be read by others; send it as Authorization: Bearer")
	}
	if headers := r.Header["Authorization"]; len(headers) > 0 {
		if len(headers) > 1 {
			return is, nil, unauthorized("the request has several Authorization headers; send one")
		}
		kind, value, _ := strings.Cut(headers[0], " ")
		if !strings.EqualFold(kind, "bearer") {
			return is, nil, unauthorized("a token is needed: send it as Authorization: Bearer")
		}
		if is, ok := g.Tokens.find(strings.TrimSpace(value)); ok {
			return is, func() (known, bool) { return g.Tokens.named(is.name) }, nil
		}
		return is, nil, g.wrong(r)
	}
	cookies := r.CookiesNamed(Cookie)
	if len(cookies) == 0 {
		return is, nil, unauthorized("a token is needed: send it as Authorization: Bearer")
	}
	for _, cookie := range cookies[:min(len(cookies), maxCookies)] {
		found := func() (known, bool) { return g.Codes.session(cookie.Value, time.Now()) }
		if is, ok := found(); ok {
			return is, found, nil
		}
	}
	return is, nil, g.wrong(r)
}

// wrong refuses a request with an unknown token or cookie, later the more there are.
func (g *Guard) wrong(r *http.Request) error {
	first, waited := g.bad.failed(r.Context())
	if first {
		g.Tokens.log("requests with wrong tokens come in; they are refused, and the refusals are delayed")
	}
	if !waited {
		return refusal{team.Refuse(team.NotReady, "too many requests with wrong tokens; try again later"),
			http.StatusTooManyRequests}
	}
	return unauthorized("the token is not known, or was removed")
}

// recheck is how often the token of a request is checked while it is answered. Streams last long.
const recheck = time.Second

// errEnded is the cause of the end of a request whose token was removed.
var errEnded = errors.New("the token of the request was removed")

// while returns a context that ends when valid no longer holds. It never ends by that if valid is
// nil.
func while(ctx context.Context, valid func() bool) (context.Context, func()) {
	if valid == nil {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	var timer *time.Timer
	var mu sync.Mutex // the timer may fire before it is assigned
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(recheck, func() {
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() != nil {
			return
		}
		if !valid() {
			cancel(errEnded)
			return
		}
		timer.Reset(recheck)
	})
	return ctx, func() {
		cancel(nil)
		timer.Stop()
	}
}
