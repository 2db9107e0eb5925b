package tracing

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"testing"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is a server of OTLP over HTTP. It decodes with OpenTelemetry's own types.
type receiver struct {
	t testing.TB

	mu      sync.Mutex
	spans   []*tracepb.Span          // that it took
	of      []*tracepb.ResourceSpans // by request that it took
	asked   int                      // requests, whatever it answered
	headers http.Header              // of the last request
	// answer handles a request instead, if it returns true; nil never
	answer func(n int, w http.ResponseWriter, r *http.Request) bool
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil {
		return // the client gave up
	}
	r.mu.Lock()
	r.asked++
	n, answer := r.asked, r.answer
	r.headers = request.Header
	r.mu.Unlock()
	if request.Method != http.MethodPost || request.URL.Path != "/v1/traces" {
		r.t.Errorf("%s %s", request.Method, request.URL.Path)
	}
	if answer != nil && answer(n, w, request) {
		return
	}
	data := decode(r.t, request.Header.Get("Content-Type"), body)
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, of := range data.ResourceSpans {
		r.of = append(r.of, of)
		for _, scope := range of.ScopeSpans {
			r.spans = append(r.spans, scope.Spans...)
		}
	}
}

// decode reads a request.
func decode(t testing.TB, kind string, body []byte) *tracepb.TracesData {
	var data tracepb.TracesData
	var err error
	switch kind {
	case "application/x-protobuf":
		err = proto.Unmarshal(body, &data)
	case "application/json":
		err = protojson.Unmarshal(inBase64(t, body), &data)
	default:
		t.Errorf("a request of type %q", kind)
	}
	if err != nil {
		t.Errorf("a request cannot be read: %v\n%q", err, body)
	}
	return &data
}

// inBase64 returns JSON of OTLP with its ids in base64, as JSON for protobuf has them.
func inBase64(t testing.TB, body []byte) []byte {
	var all any
	if err := json.Unmarshal(body, &all); err != nil {
		t.Errorf("%v in %q", err, body)
	}
	var visit func(v any)
	visit = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, one := range v {
				visit(one)
			}
		case map[string]any:
			for key, value := range v {
				if slices.Contains([]string{"traceId", "spanId", "parentSpanId"}, key) {
					id, err := hex.DecodeString(value.(string))
					if err != nil {
						t.Errorf("an id is %v", value)
					}
					v[key] = base64.StdEncoding.EncodeToString(id)
				} else {
					visit(value)
				}
			}
		}
	}
	visit(all)
	out, _ := json.Marshal(all)
	return out
}

// names returns the names of the spans that the receiver took.
func (r *receiver) names() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.spans {
		names = append(names, s.Name)
	}
	return names
}

func (r *receiver) requests() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.asked
}

// repeated returns the names of the spans that the receiver took twice.
func (r *receiver) repeated() (names []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := map[string]bool{}
	for _, s := range r.spans {
		if seen[string(s.SpanId)] {
			names = append(names, s.Name)
		}
		seen[string(s.SpanId)] = true
	}
	return names
}

// network connects a client and a server within a test bubble, where nothing may wait for the
// kernel.
type network struct {
	conns chan net.Conn
	done  chan struct{}
	once  sync.Once

	mu   sync.Mutex
	down bool
}

func newNetwork() *network { return &network{conns: make(chan net.Conn), done: make(chan struct{})} }

func (n *network) set(down bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.down = down
}

func (n *network) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	n.mu.Lock()
	down := n.down
	n.mu.Unlock()
	if down {
		return nil, errors.New("connection refused")
	}
	client, server := net.Pipe()
	select {
	case n.conns <- server:
		return client, nil
	case <-n.done:
	case <-ctx.Done():
	}
	return nil, errors.Join(errors.New("nobody accepts"), client.Close(), server.Close())
}

func (n *network) Accept() (net.Conn, error) {
	select {
	case c := <-n.conns:
		return c, nil
	case <-n.done:
		return nil, net.ErrClosed
	}
}

func (n *network) Close() error {
	n.once.Do(func() { close(n.done) })
	return nil
}

func (n *network) Addr() net.Addr { return &net.UnixAddr{Name: "bubble", Net: "unix"} }
