// Package agenttest runs real coding agents in tests without a model. It has a scripted model
// server on loopback, the agent programs, installed from npm, and a clean environment in which they
// know only that server.
//
// # The model server
//
// A [Server] speaks Anthropic Messages, OpenAI Responses and Gemini generateContent, streaming and
// not, on one address. A [Script] decides what the model answers. The server records what each
// model was shown, in the same form for all three protocols.
//
// # Recordings
//
// The output of the programs is in the testdata of their drivers, in a folder for each version.
// Beside each recording is the result of the driver's decoder. To record a version: go test
// ./internal/agent/codex -run Recordings -record -update. Package headless keeps what the programs
// print without a driver.
//
// # Guarantees
//
//   - Tests use no credentials and reach nothing but loopback. The environment is built from
//     nothing, with a home folder of its own.
//   - A program is installed once for each machine and version, however many tests need it. A test
//     is skipped, with the reason, only if the program cannot be installed.
package agenttest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Script returns the model's answer to a request. It may be called for several requests
// concurrently.
type Script func(*Request) Turn

// Request is a request to a model.
type Request struct {
	N        int    // counts the requests of a server, from 1
	Protocol string // anthropic, openai or gemini
	Model    string
	Key      string // the API key of the request
	Stream   bool
	Side     bool // the program asked for its own purposes, such as a title; the server answered it itself
	System   string
	Tools    []string // names of the offered tools
	Messages []Message
	Raw      []byte
}

// Message is one of the messages in a request.
type Message struct {
	// Role is user, assistant or tool, or system for what Claude Code tells its model later. Tool
	// results are in a user's message, except with openai.
	Role    string
	Text    string
	Calls   []Call
	Results []Result
}

// Call is a tool call.
type Call struct {
	ID    string
	Name  string
	Input map[string]any
}

// Result is the result of a tool call.
type Result struct {
	ID, Text string
	Failed   bool
}

// Turn is an answer of the model.
type Turn struct {
	Text  string
	Calls []Call

	Status     int                   // answer with this HTTP status instead, and Text as the error message
	RetryAfter string                // the header of that name
	Cut        bool                  // the stream ends in the middle of the text
	Wait       func(context.Context) // called first; its context ends when the program disconnects
	Half       func(context.Context) // called in the middle of a text that is streamed
	In, Out    int                   // tokens; 0 for 100 and 10
	CacheRead  int                   // tokens of In that came from a cache
	CacheWrite int                   // tokens of In that went into a cache
}

// Say returns a turn with a text only.
func Say(format string, args ...any) Turn { return Turn{Text: fmt.Sprintf(format, args...)} }

// Use returns a turn that calls one tool.
func Use(tool string, input map[string]any) Turn {
	return Turn{Calls: []Call{{Name: tool, Input: input}}}
}

// Fail returns a turn that is an error.
func Fail(status int, words string) Turn { return Turn{Status: status, Text: words} }

// Sequence answers with one turn after the other, and then repeats the last one.
func Sequence(turns ...Turn) Script {
	var mu sync.Mutex
	n := 0
	return func(*Request) Turn {
		mu.Lock()
		defer mu.Unlock()
		t := turns[min(n, len(turns)-1)]
		n++
		return t
	}
}

// shown returns everything that the model was shown.
func (r *Request) shown() string {
	var b strings.Builder
	b.WriteString(r.System + "\n")
	for _, m := range r.Messages {
		b.WriteString(m.Text + "\n")
		for _, res := range m.Results {
			b.WriteString(res.Text + "\n")
		}
	}
	return b.String()
}

// Has reports whether the model was shown the text, anywhere.
func (r *Request) Has(text string) bool { return strings.Contains(r.shown(), text) }

// Count returns how often the model was shown the text.
func (r *Request) Count(text string) int { return strings.Count(r.shown(), text) }

// Last returns the last message. It may contain both a user's text and tool results.
func (r *Request) Last() Message {
	if len(r.Messages) == 0 {
		return Message{}
	}
	return r.Messages[len(r.Messages)-1]
}

// LastUser returns the text of the last user message that has a text.
func (r *Request) LastUser() string {
	for i := len(r.Messages) - 1; i >= 0; i-- {
		if m := r.Messages[i]; m.Role == "user" && strings.TrimSpace(m.Text) != "" {
			return m.Text
		}
	}
	return ""
}

// SinceAnswer returns the texts of all messages since the model's last answer.
func (r *Request) SinceAnswer() string {
	var texts []string
	for i := len(r.Messages) - 1; i >= 0 && r.Messages[i].Role != "assistant"; i-- {
		texts = append(texts, r.Messages[i].Text)
		for _, result := range r.Messages[i].Results {
			texts = append(texts, result.Text)
		}
	}
	slices.Reverse(texts)
	return strings.Join(texts, "\n")
}

// Results returns the results of the last tool calls, or "" if the last message has no results.
func (r *Request) Results() string {
	var texts []string
	for i := len(r.Messages) - 1; i >= 0 && r.Messages[i].Role != "assistant"; i-- {
		for _, res := range r.Messages[i].Results {
			texts = append([]string{res.Text}, texts...)
		}
	}
	return strings.Join(texts, "\n")
}

// Calls returns how many calls of the tool the request shows.
func (r *Request) Calls(tool string) int {
	n := 0
	for _, m := range r.Messages {
		for _, c := range m.Calls {
			if c.Name == tool {
				n++
			}
		}
	}
	return n
}

// Tool returns the full name of the offered tool that ends in the name, such as
// mcp__cadre__TaskList for TaskList. Without such a tool, it returns the name itself.
func (r *Request) Tool(name string) string {
	for _, t := range r.Tools {
		if t == name {
			return t
		}
	}
	for _, t := range r.Tools {
		if strings.HasSuffix(t, "_"+name) || strings.HasSuffix(t, "/"+name) {
			return t
		}
	}
	return name
}

// Server is a scripted model on loopback.
type Server struct {
	URL string // http://127.0.0.1:PORT

	script Script
	mu     sync.Mutex
	all    []*Request
	more   chan struct{} // closed and replaced with every request
	calls  int
}

// NewServer starts a server. The server ends with the test.
func NewServer(t testing.TB, script Script) *Server {
	t.Helper()
	s := &Server{script: script, more: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(s.serve))
	s.URL = server.URL
	t.Cleanup(func() {
		server.CloseClientConnections() // a waiting turn ends with its program
		server.Close()
	})
	return s
}

// Answer makes the server answer by another script.
func (s *Server) Answer(script Script) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = script
}

// Requests returns the requests so far, without those that a program made for its own purposes.
func (s *Server) Requests() []*Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var main []*Request
	for _, r := range s.all {
		if !r.Side {
			main = append(main, r)
		}
	}
	return main
}

// patience limits the wait for a request. Real programs take seconds to start, and a minute on a
// slow machine that is busy with other tests.
const patience = 3 * time.Minute

// WaitFor returns the first request for which is returns true. The request may be an earlier one.
func (s *Server) WaitFor(t testing.TB, what string, is func(*Request) bool) *Request {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for n := 0; ; {
		s.mu.Lock()
		fresh, more := s.all[n:], s.more
		n = len(s.all)
		s.mu.Unlock()
		for _, r := range fresh {
			if !r.Side && is(r) {
				return r
			}
		}
		select {
		case <-more:
		case <-deadline.C:
			t.Fatalf("no model was shown %s; requests so far:\n%s", what, s.Story())
		}
	}
}

// Story describes the last and the number of requests of every model, for a failure message.
func (s *Server) Story() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var b strings.Builder
	for _, r := range s.all {
		last := r.Last()
		text := strings.Join(strings.Fields(last.Text), " ")
		for _, res := range last.Results {
			text += " [result: " + strings.Join(strings.Fields(res.Text), " ") + "]"
		}
		if len(text) > 300 {
			text = text[:150] + " … " + text[len(text)-150:]
		}
		fmt.Fprintf(&b, "%3d %-9s side=%-5t %2d messages, %2d tools; last, of %s: %s\n", r.N, r.Protocol, r.Side,
			len(r.Messages), len(r.Tools), last.Role, text)
	}
	return b.String()
}

func (s *Server) serve(w http.ResponseWriter, h *http.Request) {
	// Read the body to its end; otherwise the server would not notice that the program disconnects.
	body, err := io.ReadAll(http.MaxBytesReader(w, h.Body, 64<<20))
	if err != nil {
		return
	}
	p := protocolOf(h)
	if p == nil {
		fill(w, h)
		return
	}
	r := p.read(h, body)
	r.Raw, r.Key, r.Side = body, key(h), len(r.Tools) == 0
	s.mu.Lock()
	s.all = append(s.all, r)
	r.N = len(s.all)
	script := s.script
	close(s.more)
	s.more = make(chan struct{})
	s.mu.Unlock()

	t := Turn{Text: "ok"}
	if !r.Side {
		t = script(r)
	}
	if t.Wait != nil {
		t.Wait(h.Context())
		if h.Context().Err() != nil {
			return
		}
	}
	if t.Status != 0 {
		if t.RetryAfter != "" {
			w.Header().Set("Retry-After", t.RetryAfter)
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(t.Status)
		json.NewEncoder(w).Encode(p.failure(t))
		return
	}
	t.Calls = slices.Clone(t.Calls) // a script may repeat a turn, whose calls then need ids of their own
	for i := range t.Calls {
		s.mu.Lock()
		s.calls++
		n := s.calls
		s.mu.Unlock()
		if t.Calls[i].ID == "" {
			t.Calls[i].ID = fmt.Sprintf("toolu_%04d", n)
		}
		if t.Calls[i].Input == nil {
			t.Calls[i].Input = map[string]any{}
		}
	}
	if t.In == 0 {
		t.In = 100
	}
	t.In = max(t.In, t.CacheRead+t.CacheWrite)
	if t.Out == 0 {
		t.Out = 10
	}
	out := &stream{w: w, live: r.Stream, cut: t.Cut, pause: func() {}}
	if t.Half != nil {
		out.pause = func() { t.Half(h.Context()) }
	}
	p.answer(out, r, t)
}

// key returns the credential of the request, wherever its protocol puts it.
func key(h *http.Request) string {
	for _, k := range []string{h.Header.Get("X-Api-Key"), h.Header.Get("X-Goog-Api-Key"),
		strings.TrimPrefix(h.Header.Get("Authorization"), "Bearer "), h.URL.Query().Get("key")} {
		if k != "" {
			return k
		}
	}
	return ""
}

// fill answers requests that are not for a model.
func fill(w http.ResponseWriter, h *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	switch {
	case strings.HasSuffix(h.URL.Path, "count_tokens"):
		w.Write([]byte(`{"input_tokens":100}`))
	case strings.HasSuffix(h.URL.Path, ":countTokens"):
		w.Write([]byte(`{"totalTokens":100}`))
	case strings.HasSuffix(h.URL.Path, "/models"):
		w.Write([]byte(`{"object":"list","data":[],"models":[]}`))
	default:
		w.WriteHeader(http.StatusNotFound)
		w.Write([]byte(`{"error":{"message":"nothing is here"}}`))
	}
}

// stream writes the events of a streamed answer.
type stream struct {
	w     http.ResponseWriter
	live  bool
	cut   bool
	pause func() // in the middle of a text
}

func (s *stream) head() {
	s.w.Header().Set("Content-Type", "text/event-stream")
	s.w.WriteHeader(http.StatusOK)
}

// event writes one event; the name may be "".
func (s *stream) event(name string, data any) {
	text, _ := json.Marshal(data)
	if name != "" {
		fmt.Fprintf(s.w, "event: %s\n", name)
	}
	fmt.Fprintf(s.w, "data: %s\n\n", text)
	s.w.(http.Flusher).Flush()
}

// half comes in the middle of a text.
func (s *stream) half() {
	if s.cut {
		s.breakOff()
	}
	s.pause()
}

// breakOff closes the connection in the middle of the stream.
func (s *stream) breakOff() { panic(http.ErrAbortHandler) }

func (s *stream) whole(v any) {
	if s.cut {
		s.breakOff()
	}
	s.w.Header().Set("Content-Type", "application/json")
	json.NewEncoder(s.w).Encode(v)
}
