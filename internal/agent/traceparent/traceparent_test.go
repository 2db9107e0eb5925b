package traceparent

import (
	"regexp"
	"slices"
	"testing"
)

// TestIDs has golden ids: those that were sent once are for ever, because other processes join
// spans to them.
func TestIDs(t *testing.T) {
	if got := Team("t1").String(); got != "c3a16dce3ceae8ab032bf7e8d53116ec" {
		t.Errorf("the trace is %s", got)
	}
	if got := Session("t1", "ann", 2).String(); got != "7ceb739296bbb93b" {
		t.Errorf("the session's span is %s", got)
	}
	seen := map[SpanID][]string{}
	for _, part := range [][]string{{"t1", "session", "ann", "1"}, {"t1", "session", "ann", "11"},
		{"t1", "session", "ann1", "1"}, {"t2", "session", "ann", "1"}, {"t1", "sessionann", "1"}, {"t1"}, {"t1", ""}} {
		id := Span(part[0], part[1:]...)
		if other, again := seen[id]; again || id == (SpanID{}) {
			t.Errorf("%q and %q have the id %s", part, other, id)
		}
		seen[id] = part
	}
}

func TestEnvironment(t *testing.T) {
	form := regexp.MustCompile(`^TRACEPARENT=00-[0-9a-f]{32}-[0-9a-f]{16}-01$`)
	for _, c := range []struct {
		name string
		env  []string
		want bool
	}{
		{"nothing is set", nil, false},
		{"an endpoint", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318"}, true},
		{"an endpoint for traces", []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:4318/v1/traces"},
			true},
		{"an endpoint for metrics", []string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://127.0.0.1:4318"}, false},
		{"an empty endpoint", []string{"OTEL_EXPORTER_OTLP_ENDPOINT="}, false},
		{"the last value counts", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://x", "OTEL_EXPORTER_OTLP_ENDPOINT="},
			false},
		{"the exporter", []string{"OTEL_TRACES_EXPORTER=otlp"}, true},
		{"several exporters", []string{"OTEL_TRACES_EXPORTER=console, otlp"}, true},
		{"another exporter", []string{"OTEL_TRACES_EXPORTER=console", "OTEL_EXPORTER_OTLP_ENDPOINT=http://x"}, false},
		{"no exporter", []string{"OTEL_TRACES_EXPORTER=none", "OTEL_EXPORTER_OTLP_ENDPOINT=http://x"}, false},
		{"disabled", []string{"OTEL_SDK_DISABLED=TRUE", "OTEL_EXPORTER_OTLP_ENDPOINT=http://x"}, false},
		{"not disabled", []string{"OTEL_SDK_DISABLED=no", "OTEL_EXPORTER_OTLP_ENDPOINT=http://x"}, true},
	} {
		got := Environment(c.env, "t1", "ann", 2)
		if (got != nil) != c.want || c.want && (!form.MatchString(got[0]) ||
			!slices.Equal(got[1:], []string{"TRACESTATE="})) {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}
