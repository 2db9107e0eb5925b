package server

import (
	"context"
	"log"
	"net"
	"net/http"
	"strings"
	"time"

	"cadre/internal/server/auth"
)

// limits bound what clients can hold of the server.
type limits struct {
	conns     int           // connections at a time, of each listener
	headBytes int           // of the head of a request, with its address
	head      time.Duration // to read the head of a request
	request   time.Duration // to read a request with its body
	write     time.Duration // to send chunk bytes of an answer
	idle      time.Duration // that an unused connection stays open
}

var standardLimits = limits{conns: 1000, headBytes: 64 << 10, head: 10 * time.Second, request: time.Minute,
	write: 30 * time.Second, idle: 2 * time.Minute}

// chunk is how much of an answer is sent within one limit of time.
const chunk = 64 << 10

// server returns the HTTP server with these limits.
func (l limits) server(ctx context.Context, handler http.Handler, say func(string)) *http.Server {
	return &http.Server{Handler: l.bounded(handler), ReadHeaderTimeout: l.head, ReadTimeout: l.request,
		IdleTimeout: l.idle, MaxHeaderBytes: l.headBytes, ConnContext: auth.Accepted,
		BaseContext: func(net.Listener) context.Context { return ctx }, ErrorLog: log.New(panics(say), "", 0)}
}

// panics passes on what the HTTP server says of a panic. Anybody can make it say the rest, such as
// that a client does not speak TLS.
type panics func(string)

func (p panics) Write(line []byte) (int, error) {
	if text := string(line); strings.HasPrefix(text, "http: panic") {
		p(text)
	}
	return len(line), nil
}

// bounded bounds how long a client takes to read the answer.
func (l limits) bounded(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a := &answer{ResponseWriter: w, to: http.NewResponseController(w), limit: l.write}
		a.renew()
		next.ServeHTTP(a, r)
	})
}

// answer is an answer that the client must read.
type answer struct {
	http.ResponseWriter
	to    *http.ResponseController
	limit time.Duration
}

func (a *answer) renew() { a.to.SetWriteDeadline(time.Now().Add(a.limit)) }

// Unwrap returns the writer below, for [http.ResponseController].
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

func (a *answer) WriteHeader(status int) {
	a.renew()
	a.ResponseWriter.WriteHeader(status)
}

func (a *answer) Write(p []byte) (n int, err error) {
	for first := true; err == nil && (first || len(p) > 0); first = false {
		a.renew()
		var sent int
		sent, err = a.ResponseWriter.Write(p[:min(len(p), chunk)])
		n, p = n+sent, p[sent:]
	}
	return n, err
}
