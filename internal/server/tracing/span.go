package tracing

import (
	"strings"

	"cadre/internal/agent/traceparent"
	"cadre/internal/render/excerpt"
	"cadre/internal/render/redact"
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// Span is a part of a team's trace that has ended.
type Span struct {
	ID, Parent traceparent.SpanID // Parent is zero for the root of the trace
	Name       string
	Start, End team.Time
	Attributes []Attribute
	Events     []Event
	Links      []Link
	// how many events and links were left out because a span has room for [maxEach] of each
	DroppedEvents, DroppedLinks int
	Failed                      bool
	Failure                     string // why it failed; "" if it did not, or that is unknown
}

// Attribute is a named value: a string, an int64 or a float64.
type Attribute struct {
	Key   string
	Value any
}

// Event is something that happened at one time within a span.
type Event struct {
	Name       string
	At         team.Time
	Attributes []Attribute
}

// Link refers to another span of the same trace.
type Link struct {
	To         traceparent.SpanID
	Attributes []Attribute
}

const (
	// maxEach bounds the events and the links of a span, as OpenTelemetry's SDKs do by default.
	maxEach = 128
	// maxText bounds a text in bytes.
	maxText = 256
	// maxRaw bounds how much of a text is searched for secrets. It is far more than what is sent,
	// so that no secret is cut in two before it is found.
	maxRaw = 8 << 10
)

// clean returns a text as it may be sent: short, valid UTF-8, on one line.
func clean(s string) string {
	return excerpt.Line(sanitize.Line(strings.ToValidUTF8(s, "\uFFFD")), maxText)
}

// words returns a text of an agent or a person as it may be sent.
func words(s string) string { return clean(redact.Text(excerpt.Bytes(s, maxRaw, ""))) }

// set adds an attribute. It leaves out "" and, for numbers, 0.
func (s *Span) set(key string, value any) {
	switch v := value.(type) {
	case string:
		if value = clean(v); value == "" {
			return
		}
	case int64:
		if v == 0 {
			return
		}
	case float64:
		if v == 0 {
			return
		}
	}
	s.Attributes = append(s.Attributes, Attribute{key, value})
}

func (s *Span) link(to traceparent.SpanID, attributes ...Attribute) {
	if len(s.Links) >= maxEach {
		s.DroppedLinks++
		return
	}
	s.Links = append(s.Links, Link{to, attributes})
}

func (s *Span) event(e Event) {
	if len(s.Events) >= maxEach {
		s.DroppedEvents++
		return
	}
	s.Events = append(s.Events, e)
}
