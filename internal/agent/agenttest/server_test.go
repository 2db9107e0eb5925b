package agenttest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"cadre/internal/agent/agenttest"
)

func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		name  string
		turn  agenttest.Turn
		text  string
		calls []string // names and inputs
		usage [4]int64
	}{
		{"a text", agenttest.Say("The sum is %d: käse, 中文.", 42), "The sum is 42: käse, 中文.", nil, [4]int64{100, 10}},
		{"nothing", agenttest.Turn{}, "", nil, [4]int64{100, 10}},
		{"a call", agenttest.Use("Sum", map[string]any{"of": []any{"40", "2"}}), "", []string{`Sum{"of":["40","2"]}`},
			[4]int64{100, 10}},
		{"a text and two calls", agenttest.Turn{Text: "I look.",
			Calls: []agenttest.Call{{Name: "Sum", Input: map[string]any{"a": "b"}}, {Name: "Look"}}},
			"I look.", []string{`Sum{"a":"b"}`, `Look{}`}, [4]int64{100, 10}},
		{"usage", agenttest.Turn{Text: "x", In: 1000, Out: 7, CacheRead: 600, CacheWrite: 30}, "x", nil,
			[4]int64{1000, 7, 600, 30}},
		{"all from the cache", agenttest.Turn{Text: "x", CacheRead: 600}, "x", nil, [4]int64{600, 10, 600}},
	} {
		t.Run(c.name, func(t *testing.T) {
			forEach(t, func(t *testing.T, d dialect, stream bool) {
				s := agenttest.NewServer(t, func(*agenttest.Request) agenttest.Turn { return c.turn })
				a, _, err := d.send(t.Context(), s, ask{stream: stream, tools: true})
				if err != nil {
					t.Fatal(err)
				}
				var calls, ids []string
				for _, call := range a.calls {
					input, _ := json.Marshal(call.Input)
					calls = append(calls, call.Name+string(input))
					ids = append(ids, call.ID)
				}
				if !a.over || a.text != c.text || !slices.Equal(calls, c.calls) {
					t.Errorf("over=%t, got text %q and calls %q", a.over, a.text, calls)
				}
				if slices.Contains(ids, "") || len(slices.Compact(ids)) != len(calls) {
					t.Errorf("the ids are %q", ids)
				}
				want := c.usage
				if d.name == "gemini" {
					want[3] = 0 // this dialect does not count them
				}
				if got := d.tokens(a); got != want {
					t.Errorf("got usage %v, want %v", got, want)
				}
			})
		})
	}
}

func TestWhatTheModelWasShown(t *testing.T) {
	forEach(t, func(t *testing.T, d dialect, stream bool) {
		s := agenttest.NewServer(t, func(*agenttest.Request) agenttest.Turn { return agenttest.Say("Yes.") })
		for _, history := range []bool{false, true} {
			if _, _, err := d.send(t.Context(), s, ask{stream: stream, tools: true, history: history}); err != nil {
				t.Fatal(err)
			}
		}
		requests := s.Requests()
		if len(requests) != 2 {
			t.Fatal(s.Story())
		}
		first, second := requests[0], requests[1]
		for i, r := range requests {
			if r.N != i+1 || r.Protocol != d.name || r.Model != "m-1" || r.Key != "dummy" || r.Stream != stream ||
				r.Side || len(r.Raw) == 0 {
				t.Errorf("request %d is %+v", i+1, r)
			}
			if !strings.Contains(r.System, "You are ann.") || !r.Has("You are ann.") || r.Has("You are bob.") ||
				r.Count("What is the sum?") != 1 {
				t.Errorf("request %d was shown %q and %+v", i+1, r.System, r.Messages)
			}
			listed := "mcp__cadre__TaskList"
			if d.name == "openai" {
				listed = "mcp__cadre__/TaskList" // of a namespace
			}
			if !slices.Equal(r.Tools, []string{"Sum", listed}) || r.Tool("TaskList") != listed ||
				r.Tool("Sum") != "Sum" || r.Tool("Other") != "Other" {
				t.Errorf("request %d was offered %q", i+1, r.Tools)
			}
		}
		if first.LastUser() != "What is the sum?" || first.Last().Text != "What is the sum?" || first.Results() != "" ||
			first.Calls("Sum") != 0 {
			t.Errorf("the first has %+v", first.Messages)
		}
		if second.LastUser() != "Go on." || second.Results() != "no such sum" || second.Count("no such sum") != 1 ||
			second.Calls("Sum") != 1 {
			t.Errorf("the second has %+v", second.Messages)
		}
		for _, m := range second.Messages {
			if (len(m.Calls) > 0 || strings.Contains(m.Text, "I look.")) != (m.Role == "assistant") {
				t.Errorf("%s said %+v", m.Role, m)
			}
			for _, c := range m.Calls {
				if c.ID != "c1" || c.Input["of"] != "40 and 2" {
					t.Errorf("the call is %+v", c)
				}
			}
			for _, r := range m.Results {
				if r.ID != "c1" || r.Failed != (d.name != "openai") { // openai reports a failure in the text only
					t.Errorf("the result is %+v", r)
				}
			}
		}
	})
}

func TestErrors(t *testing.T) {
	kinds := map[string]map[int]string{
		"anthropic": {400: "error: invalid_request_error", 401: "error: authentication_error",
			429: "error: rate_limit_error", 500: "error: api_error", 529: "error: overloaded_error"},
		"openai": {400: "error: context_length_exceeded", 401: "error: invalid_api_key",
			429: "error: rate_limit_exceeded", 500: "error: server_error", 529: "error: server_error"},
		"gemini": {400: "400: INVALID_ARGUMENT", 401: "401: UNAUTHENTICATED", 429: "429: RESOURCE_EXHAUSTED",
			500: "500: INTERNAL", 529: "529: INTERNAL"},
	}
	forEach(t, func(t *testing.T, d dialect, stream bool) {
		for status, kind := range kinds[d.name] {
			turn := agenttest.Fail(status, "not today")
			turn.RetryAfter = "3"
			s := agenttest.NewServer(t, agenttest.Sequence(turn, agenttest.Say("Now.")))
			a, resp, err := d.send(t.Context(), s, ask{stream: stream, tools: true})
			if err != nil || resp.StatusCode != status || resp.Header.Get("Retry-After") != "3" ||
				a.text != kind+": not today" {
				t.Errorf("%d: %v, %+v, %q", status, err, resp, a.text)
			}
			if a, _, err := d.send(t.Context(), s, ask{stream: stream, tools: true}); err != nil || a.text != "Now." {
				t.Errorf("after %d requests got %q: %v", status, a.text, err)
			}
		}
	})
}

func TestCut(t *testing.T) {
	forEach(t, func(t *testing.T, d dialect, stream bool) {
		s := agenttest.NewServer(t, func(*agenttest.Request) agenttest.Turn {
			return agenttest.Turn{Text: "half of a word", Cut: true}
		})
		a, _, err := d.send(t.Context(), s, ask{stream: stream, tools: true})
		if err == nil || a.over {
			t.Errorf("the stream came to its end: %+v", a)
		}
		if want := map[bool]string{true: "half of", false: ""}[stream]; a.text != want {
			t.Errorf("got %q", a.text)
		}
	})
}

// TestHalf checks that a streamed text stops in the middle for as long as the script wants.
func TestHalf(t *testing.T) {
	forEach(t, func(t *testing.T, d dialect, stream bool) {
		stopped := make(chan struct{}, 1)
		s := agenttest.NewServer(t, func(*agenttest.Request) agenttest.Turn {
			return agenttest.Turn{Text: "both halves", Half: func(context.Context) { stopped <- struct{}{} }}
		})
		if a, _, err := d.send(t.Context(), s, ask{stream: stream, tools: true}); err != nil ||
			a.text != "both halves" {
			t.Errorf("got %q: %v", a.text, err)
		}
		if got := len(stopped) == 1; got != stream {
			t.Errorf("it stopped: %t; it was streamed: %t", got, stream)
		}
	})
}

// TestSide checks that the script does not see requests that a program makes for its own purposes.
func TestSide(t *testing.T) {
	forEach(t, func(t *testing.T, d dialect, stream bool) {
		s := agenttest.NewServer(t, func(r *agenttest.Request) agenttest.Turn {
			t.Errorf("the script was asked: %+v", r)
			return agenttest.Turn{}
		})
		a, _, err := d.send(t.Context(), s, ask{stream: stream})
		if err != nil || a.text == "" || !a.over {
			t.Errorf("%+v: %v", a, err)
		}
		if all := s.Requests(); len(all) != 0 {
			t.Errorf("%d requests", len(all))
		}
		if story := s.Story(); !strings.Contains(story, "side=true") || !strings.Contains(story, "What is the sum?") {
			t.Errorf("the story is %s", story)
		}
	})
}

// TestWait checks a turn that waits. It continues when the script allows it, and ends when the
// program disconnects, however the program sent its request.
func TestWait(t *testing.T) {
	forEach(t, func(t *testing.T, d dialect, stream bool) {
		let := make(chan struct{})
		s := agenttest.NewServer(t, func(*agenttest.Request) agenttest.Turn {
			return agenttest.Turn{Text: "At last.", Wait: func(context.Context) { <-let }}
		})
		var asking sync.WaitGroup
		asking.Go(func() {
			if a, _, err := d.send(t.Context(), s, ask{stream: stream, tools: true}); err != nil ||
				a.text != "At last." {
				t.Errorf("got %q: %v", a.text, err)
			}
		})
		s.WaitFor(t, "it", func(r *agenttest.Request) bool { return r.Has("What is the sum?") })
		close(let)
		asking.Wait()

		for _, chunked := range []bool{false, true} {
			gone := make(chan struct{})
			s := agenttest.NewServer(t, func(*agenttest.Request) agenttest.Turn {
				return agenttest.Turn{Wait: func(ctx context.Context) { <-ctx.Done(); close(gone) }}
			})
			body, _ := json.Marshal(d.ask(ask{stream: stream, tools: true}))
			var reader io.Reader = bytes.NewReader(body)
			if chunked {
				reader = io.MultiReader(reader) // hides the length
			}
			ctx, leave := context.WithCancel(t.Context())
			asking.Go(func() {
				if _, _, err := d.post(ctx, s, stream, reader); err == nil {
					t.Error("the request was answered")
				}
			})
			s.WaitFor(t, "it", func(*agenttest.Request) bool { return true })
			leave()
			<-gone
			asking.Wait()
		}
	})
}

// TestSameTurnAgain checks that the calls of a repeated turn get new ids, even in concurrent
// requests.
func TestSameTurnAgain(t *testing.T) {
	s := agenttest.NewServer(t, agenttest.Sequence(agenttest.Say("First."), agenttest.Use("Sum", nil)))
	if a, _, err := anthropic.send(t.Context(), s, ask{tools: true}); err != nil || a.text != "First." {
		t.Fatalf("%+v: %v", a, err)
	}
	var mu sync.Mutex
	ids := map[string]bool{}
	var asking sync.WaitGroup
	for range 8 {
		asking.Go(func() {
			a, _, err := anthropic.send(t.Context(), s, ask{stream: true, tools: true})
			if err != nil || len(a.calls) != 1 {
				t.Errorf("%+v: %v", a, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			ids[a.calls[0].ID] = true
		})
	}
	asking.Wait()
	if len(ids) != 8 {
		t.Errorf("8 calls have the ids %v", ids)
	}
}

func TestWaitForWhatWas(t *testing.T) {
	s := agenttest.NewServer(t, func(*agenttest.Request) agenttest.Turn { return agenttest.Say("Yes.") })
	for _, d := range []dialect{gemini, openai, anthropic} {
		if _, _, err := d.send(t.Context(), s, ask{tools: true}); err != nil {
			t.Fatal(err)
		}
	}
	if r := s.WaitFor(t, "a request of openai", func(r *agenttest.Request) bool {
		return r.Protocol == "openai"
	}); r.N != 2 {
		t.Errorf("the request has number %d", r.N)
	}
}

func TestBesidesModels(t *testing.T) {
	s := agenttest.NewServer(t, nil)
	for _, c := range []struct{ method, path, has string }{
		{http.MethodPost, "/v1/messages/count_tokens", "input_tokens"},
		{http.MethodPost, "/v1beta/models/m-1:countTokens", "totalTokens"},
		{http.MethodGet, "/v1/models", "models"},
		{http.MethodGet, "/elsewhere", "nothing is here"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, s.URL+c.path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if !strings.Contains(string(body), c.has) || (resp.StatusCode == http.StatusOK) != (c.path != "/elsewhere") {
			t.Errorf("%s: %d %s", c.path, resp.StatusCode, body)
		}
	}
	if s.Story() != "" {
		t.Errorf("a model was asked: %s", s.Story())
	}
}
