package client

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"cadre/internal/sys/sleep"
	"cadre/pkg/teams"
	"cadre/pkg/teams/internal/wire"
)

// request is a request of a route.
type request struct {
	method, path string
	query        url.Values
	body         any  // nil for none
	once         bool // it is not sent again once the server may have it
	err          error
}

// to returns the request of a route. The parts of its path are names, which may have any
// characters.
func to(method string, parts ...string) request {
	r := request{method: method, path: "/v1", query: url.Values{}}
	for _, part := range parts {
		if part == "" || part == "." || part == ".." {
			r.err = invalid("%q is not the name of a team, a member or a thing in a team", part)
		}
		r.path += "/" + url.PathEscape(part)
	}
	return r
}

func get(parts ...string) request  { return to("GET", parts...) }
func post(parts ...string) request { return to("POST", parts...) }

// team returns the request of a route below a team.
func team(method, name string, parts ...string) request {
	return to(method, append([]string{"teams", name}, parts...)...)
}

// with sets the body.
func (r request) with(body any) request {
	r.body = body
	return r
}

// where adds a value to the query, unless it is "".
func (r request) where(name, value string) request {
	if value != "" {
		r.query.Add(name, value)
	}
	return r
}

// number adds a number to the query, unless it is 0.
func (r request) number(name string, n int64) request {
	if n == 0 {
		return r
	}
	return r.where(name, strconv.FormatInt(n, 10))
}

// by lets the client's member act.
func (r request) by(c *Client) request { return r.where("as", c.member) }

// ask sends a request, and returns the answer.
func ask[T any](ctx context.Context, c *Client, r request) (v T, err error) {
	err = c.do(ctx, r, &v)
	return v, err
}

// public sends a request, and returns the value of package teams for its answer of the type Core.
func public[T, Core any](ctx context.Context, c *Client, r request) (v T, err error) {
	core, err := ask[Core](ctx, c, r)
	if err != nil {
		return v, err
	}
	return of[T](core), nil
}

// list is public for an answer that is a list.
func list[T, Core any](ctx context.Context, c *Client, r request) ([]T, error) {
	all, err := ask[[]Core](ctx, c, r)
	return each[T](all), err
}

// of returns the value of package teams for a value of the packages below it.
func of[T any](core any) T { return wire.Of(core).(T) }

func each[T, Core any](all []Core) []T {
	var values []T
	for _, one := range all {
		values = append(values, of[T](one))
	}
	return values
}

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 1 << 30

// do sends a request until it is answered, and reads the answer into a value; nil for none.
func (c *Client) do(ctx context.Context, r request, into any) error {
	var body []byte
	if r.err == nil && r.body != nil {
		body, r.err = json.Marshal(r.body)
	}
	if r.err != nil {
		return r.err
	}
	key := ""
	if r.method != "GET" && !r.once { // package http sends a request with a key again, too
		key = keyOf(ctx)
	}
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	again := c.patient(ctx)
	defer func() { again.end() }()
	for {
		answer, err := c.answer(ctx, r, body, key)
		if b, is := errors.AsType[*brokenError](err); is {
			if r.once && !b.unsent {
				return &teams.Error{Code: teams.ErrUncertain, Text: fmt.Sprintf(
					"the connection broke before the server had answered: %v; it may have happened", b.cause)}
			}
			if err := again.wait(b); err != nil {
				return err
			}
			continue
		}
		if err != nil || into == nil || len(answer) == 0 {
			return err
		}
		if err := json.Unmarshal(answer, into); err != nil {
			return fmt.Errorf("read the answer of the server to %s %s: %w", r.method, r.path, err)
		}
		return nil
	}
}

// answer sends a request once, and returns the body of its answer.
func (c *Client) answer(ctx context.Context, r request, body []byte, key string) ([]byte, error) {
	is, err := c.send(ctx, r, body, key)
	if err != nil {
		return nil, err
	}
	defer is.Body.Close()
	return c.read(ctx, is)
}

// send sends a request once.
func (c *Client) send(ctx context.Context, r request, body []byte, key string) (*http.Response, error) {
	address := c.base + r.path
	if len(r.query) > 0 {
		address += "?" + r.query.Encode()
	}
	var content io.Reader
	if body != nil {
		content = bytes.NewReader(body)
	}
	h, err := http.NewRequestWithContext(ctx, r.method, address, content)
	if err != nil {
		return nil, err
	}
	if body != nil {
		h.Header.Set("Content-Type", "application/json")
	}
	if key != "" {
		h.Header.Set("Idempotency-Key", key)
	}
	token, err := c.options.authorization()
	if err != nil {
		return nil, err
	}
	if token != "" {
		h.Header.Set("Authorization", token)
	}
	is, err := c.http.Do(h)
	if err != nil {
		return nil, c.broken(ctx, err)
	}
	return is, nil
}

// read returns the body of an answer, or the problem in it.
func (c *Client) read(ctx context.Context, is *http.Response) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(is.Body, maxAnswer))
	if err != nil {
		return nil, c.broken(ctx, err)
	}
	if is.StatusCode < 300 {
		return data, nil
	}
	kind, _, _ := mime.ParseMediaType(is.Header.Get("Content-Type"))
	if kind != "application/problem+json" {
		err := fmt.Errorf("the server answers %s", is.Status)
		switch is.StatusCode { // of a proxy in front of it
		case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return nil, &brokenError{cause: err}
		}
		return nil, &ProblemError{Status: is.StatusCode, Text: err.Error()}
	}
	return nil, problemOf(data, is.StatusCode)
}

// brokenError says that the server could not be reached, or did not answer to the end.
type brokenError struct {
	cause  error
	unsent bool // the server did not get the request
}

func (e *brokenError) Error() string { return e.cause.Error() }
func (e *brokenError) Unwrap() error { return e.cause }

// broken returns the error of a request that failed: that of its context, or of the connection.
func (c *Client) broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	_, untrusted := errors.AsType[*tls.CertificateVerificationError](err)
	if _, plain := errors.AsType[tls.RecordHeaderError](err); untrusted || plain {
		return fmt.Errorf("connect to the server: %w", err) // it will not change by itself
	}
	at, is := errors.AsType[*net.OpError](err)
	return &brokenError{err, is && at.Op == "dial"}
}

// bounded returns a context that also ends when the client is closed.
func (c *Client) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(c.done, func() { cancel(context.Cause(c.done)) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// patience is how a call tries again.
type patience struct {
	ctx   context.Context
	most  time.Duration // after the first failure; 0 for no limit but ctx
	n     int           // attempts in a row that failed
	tried time.Time     // when the present attempt began
	long  int           // attempts that reached the server and lasted longer than most
	until context.Context
	end   context.CancelFunc
}

// patient returns how long a call tries again: to its deadline, or to the end of the client's
// patience.
func (c *Client) patient(ctx context.Context) *patience {
	p := &patience{ctx: ctx, until: ctx, end: func() {}, tried: time.Now()}
	if _, bounded := ctx.Deadline(); !bounded {
		p.most = c.options.Patience
	}
	return p
}

const (
	soonest  = 20 * time.Millisecond // before the second attempt
	latest   = 2 * time.Second       // between two attempts
	mostLong = 5                     // attempts after which the patience begins again
)

// wait waits before the next attempt. The patience begins with the first failure, and again with an
// attempt that the server carried out for longer than that, such as a consolidation during which
// the server was restarted.
func (p *patience) wait(b *brokenError) error {
	again := !b.unsent && time.Since(p.tried) > p.most && p.long < mostLong
	if p.most > 0 && (again || p.until == p.ctx) {
		if again {
			p.long, p.n = p.long+1, 0
		}
		p.end()
		p.until, p.end = context.WithTimeout(p.ctx, p.most)
	}
	pause := min(soonest<<min(p.n, 10), latest)
	p.n++
	if err := sleep.For(p.until, pause/2+rand.N(pause/2)); err != nil {
		if b.unsent {
			return fmt.Errorf("%w: the server cannot be reached: %w", err, b.cause)
		}
		return fmt.Errorf("%w: the server does not answer to the end: %w", err, b.cause)
	}
	p.tried = time.Now()
	return nil
}
