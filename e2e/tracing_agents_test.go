package e2e

import (
	"context"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"cadre/internal/agent"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/server/tracing"
	"cadre/internal/team"

	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// traced is a span that arrived, with the service that sent it.
type traced struct {
	*tracepb.Span
	service string
}

// attribute returns the text or the number of an attribute.
func (s traced) attribute(key string) (text string, number int64) {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.GetStringValue(), a.Value.GetIntValue()
		}
	}
	return "", 0
}

// collector receives traces in protobuf.
type collector struct {
	*httptest.Server
	mu    sync.Mutex
	spans []traced
	more  chan struct{} // closed at the next request, and then replaced
}

func newCollector(t *testing.T) *collector {
	c := &collector{more: make(chan struct{})}
	c.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var data tracepb.TracesData
		if err == nil && r.URL.Path == "/v1/traces" {
			err = proto.Unmarshal(body, &data)
		}
		if err != nil {
			t.Errorf("a request cannot be read: %v", err)
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, of := range data.ResourceSpans {
			i := slices.IndexFunc(of.Resource.Attributes,
				func(a *commonpb.KeyValue) bool { return a.Key == "service.name" })
			for _, scope := range of.ScopeSpans {
				for _, s := range scope.Spans {
					c.spans = append(c.spans, traced{s, of.Resource.Attributes[i].Value.GetStringValue()})
				}
			}
		}
		close(c.more)
		c.more = make(chan struct{})
	}))
	t.Cleanup(c.Close)
	return c
}

// wait returns the spans when the wanted one is among them.
func (c *collector) wait(t *testing.T, what string, is func(traced) bool) []traced {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		c.mu.Lock()
		spans, more := slices.Clone(c.spans), c.more
		c.mu.Unlock()
		if slices.ContainsFunc(spans, is) {
			return spans
		}
		select {
		case <-more:
		case <-ctx.Done():
			var names []string
			for _, s := range spans {
				names = append(names, s.service+": "+s.Name)
			}
			t.Fatalf("%s did not arrive; there are\n%s", what, strings.Join(names, "\n"))
		}
	}
}

// TestTraceToTheModel checks that the spans that the real Claude Code sends of itself hang below
// those that cadre makes of the team's history: one trace from the team to each call of the model.
func TestTraceToTheModel(t *testing.T) {
	t.Parallel()
	s := newStudio(t, complete, "claude")
	c := newCollector(t)
	otel := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + c.URL, "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
		"OTEL_TRACES_EXPORTER=otlp", "OTEL_TRACES_EXPORT_INTERVAL=100", "CLAUDE_CODE_ENABLE_TELEMETRY=1",
		"CLAUDE_CODE_ENHANCED_TELEMETRY_BETA=1"}
	s.env = append(s.env, otel...)
	r := s.run(s.file("name: traced\npermissions: {mode: bypassPermissions}\nmembers: [{name: ann, agent: claude}]\n" +
		"tasks: [{id: look, owner: ann, description: take a look}]\n"))
	if r.code != 0 {
		t.Fatalf("exit status %d\n%s%s", r.code, r.out, r.err)
	}

	// as the server does it
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	exporter := tracing.New(tracing.Options{
		Environment: func(name string) string { return agent.Variable(otel, name) },
		Folder:      filepath.Join(s.home, "traces"),
		Teams:       func() []tracing.Team { return []tracing.Team{{ID: "traced", Follow: s.records("traced")}} },
		Log:         func(text string) { t.Error(text) }})
	go func() {
		defer close(ended)
		exporter.Run(ctx)
	}()
	c.wait(t, "the span of the team", func(s traced) bool { return s.Name == "invoke_workflow traced" })
	cancel()
	<-ended
	spans := c.wait(t, "the span of a turn", func(s traced) bool { return s.Name == "claude_code.interaction" })

	byID := map[string]traced{}
	for _, one := range spans {
		byID[string(one.SpanId)] = one
		if string(one.TraceId) != string(spans[0].TraceId) {
			t.Errorf("%s is in another trace", one.Name)
		}
	}
	// path names a span and those above it
	path := func(s traced) (names string) {
		for is := true; is; s, is = byID[string(s.ParentSpanId)] {
			names = s.service + ": " + s.Name + "\n" + names
		}
		return names
	}
	paths := map[string]int{}
	for _, one := range spans {
		paths[path(one)]++
	}
	const session = "cadre: invoke_workflow traced\ncadre: invoke_agent ann\n"
	for _, want := range []string{session, "cadre: invoke_workflow traced\ncadre: invoke_agent ann task\n",
		session + "claude-code: claude_code.interaction\n",
		session + "claude-code: claude_code.interaction\nclaude-code: claude_code.llm_request\n",
		session + "claude-code: claude_code.interaction\nclaude-code: claude_code.tool\n"} {
		if paths[want] == 0 {
			t.Errorf("there is no\n%s", want)
		}
	}
	if t.Failed() {
		t.Logf("there are %v", paths)
	}
	status := read[struct {
		Usage struct{ InputTokens, CacheReadTokens, CacheWriteTokens, OutputTokens int64 }
	}](s.world, "status", "traced").Usage
	root := spans[slices.IndexFunc(spans, func(s traced) bool { return s.Name == "invoke_workflow traced" })]
	_, input := root.attribute("gen_ai.usage.input_tokens")
	_, output := root.attribute("gen_ai.usage.output_tokens")
	if input != status.InputTokens+status.CacheReadTokens+status.CacheWriteTokens || output != status.OutputTokens ||
		output == 0 {
		t.Errorf("the trace has %d and %d tokens, and the status is %+v", input, output, status)
	}
}

// records returns a function that follows the records of a team of the world.
func (w *world) records(name string) func(context.Context, int64) iter.Seq2[*team.Record, error] {
	return func(ctx context.Context, after int64) iter.Seq2[*team.Record, error] {
		return func(yield func(*team.Record, error) bool) {
			j, _, err := layout.Home{Root: w.home}.Open(name, func(string) {})
			if err != nil {
				yield(nil, err)
				return
			}
			rep, err := replica.Open(ctx, j, replica.Options{})
			if err != nil {
				yield(nil, err)
				return
			}
			defer rep.Close()
			for r, err := range rep.Watch(ctx, after) {
				if !yield(r, err) {
					return
				}
			}
		}
	}
}
