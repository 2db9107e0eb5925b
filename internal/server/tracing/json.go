package tracing

import (
	"encoding/json"
	"strconv"

	"cadre/internal/agent/traceparent"
)

// The types of OTLP in JSON: the protobuf messages by the rules of JSON, but ids are in hex, and
// enumerations are numbers.
type (
	jsonSpan struct {
		TraceID       string          `json:"traceId"`
		SpanID        string          `json:"spanId"`
		ParentSpanID  string          `json:"parentSpanId,omitempty"`
		Flags         int             `json:"flags"`
		Name          string          `json:"name"`
		Kind          int             `json:"kind"`
		Start         string          `json:"startTimeUnixNano"`
		End           string          `json:"endTimeUnixNano"`
		Attributes    []jsonAttribute `json:"attributes,omitempty"`
		Events        []jsonEvent     `json:"events,omitempty"`
		DroppedEvents int             `json:"droppedEventsCount,omitempty"`
		Links         []jsonLink      `json:"links,omitempty"`
		DroppedLinks  int             `json:"droppedLinksCount,omitempty"`
		Status        *jsonStatus     `json:"status,omitempty"`
	}
	jsonStatus struct {
		Message string `json:"message,omitempty"`
		Code    int    `json:"code"`
	}
	jsonEvent struct {
		Time       string          `json:"timeUnixNano"`
		Name       string          `json:"name"`
		Attributes []jsonAttribute `json:"attributes,omitempty"`
	}
	jsonLink struct {
		TraceID    string          `json:"traceId"`
		SpanID     string          `json:"spanId"`
		Attributes []jsonAttribute `json:"attributes,omitempty"`
		Flags      int             `json:"flags"`
	}
	jsonAttribute struct {
		Key   string    `json:"key"`
		Value jsonValue `json:"value"`
	}
	jsonValue struct {
		String *string  `json:"stringValue,omitempty"`
		Int    *string  `json:"intValue,omitempty"`
		Double *float64 `json:"doubleValue,omitempty"`
	}
	jsonRequest struct {
		ResourceSpans [1]jsonResourceSpans `json:"resourceSpans"`
	}
	jsonResourceSpans struct {
		Resource struct {
			Attributes []jsonAttribute `json:"attributes"`
		} `json:"resource"`
		ScopeSpans [1]jsonScopeSpans `json:"scopeSpans"`
	}
	jsonScopeSpans struct {
		Scope struct {
			Name    string `json:"name"`
			Version string `json:"version,omitempty"`
		} `json:"scope"`
		Spans []json.RawMessage `json:"spans"`
	}
)

func jsonAttributes(all []Attribute) (list []jsonAttribute) {
	for _, a := range all {
		j := jsonAttribute{Key: a.Key}
		switch v := a.Value.(type) {
		case string:
			j.Value.String = &v
		case int64:
			n := strconv.FormatInt(v, 10)
			j.Value.Int = &n
		case float64:
			j.Value.Double = &v
		}
		list = append(list, j)
	}
	return list
}

// json returns the span as JSON.
func (s *Span) json(trace traceparent.TraceID) []byte {
	number := func(n uint64) string { return strconv.FormatUint(n, 10) }
	j := jsonSpan{TraceID: trace.String(), SpanID: s.ID.String(), Flags: sampled | local, Name: s.Name, Kind: internal,
		Start: number(nanos(s.Start)), End: number(nanos(s.End)), Attributes: jsonAttributes(s.Attributes),
		DroppedEvents: s.DroppedEvents, DroppedLinks: s.DroppedLinks}
	if s.Parent != (traceparent.SpanID{}) {
		j.ParentSpanID = s.Parent.String()
	}
	for _, e := range s.Events {
		j.Events = append(j.Events, jsonEvent{number(nanos(e.At)), e.Name, jsonAttributes(e.Attributes)})
	}
	for _, l := range s.Links {
		j.Links = append(j.Links,
			jsonLink{trace.String(), l.To.String(), jsonAttributes(l.Attributes), sampled | local})
	}
	if s.Failed {
		j.Status = &jsonStatus{s.Failure, failed}
	}
	return encode(j)
}

// encode returns v as JSON. It is called with the types above alone, which JSON can hold.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return data
}

// jsonRequestOf returns a request with these spans, which are JSON.
func jsonRequestOf(resource []Attribute, version string, spans [][]byte) []byte {
	var r jsonRequest
	of := &r.ResourceSpans[0]
	of.Resource.Attributes = jsonAttributes(resource)
	of.ScopeSpans[0].Scope.Name, of.ScopeSpans[0].Scope.Version = scopeName, version
	for _, s := range spans {
		of.ScopeSpans[0].Spans = append(of.ScopeSpans[0].Spans, s)
	}
	return encode(r)
}

// jsonRefused reads the answer to a request: how many spans were refused, and why.
func jsonRefused(answer []byte) (n int64, why string) {
	var a struct {
		PartialSuccess struct {
			RejectedSpans json.RawMessage
			ErrorMessage  string
		}
	}
	if json.Unmarshal(answer, &a) != nil {
		return 0, ""
	}
	text := string(a.PartialSuccess.RejectedSpans) // a number or a text, by the rules of JSON for protobuf
	if unquoted, err := strconv.Unquote(text); err == nil {
		text = unquoted
	}
	n, _ = strconv.ParseInt(text, 10, 64)
	return n, a.PartialSuccess.ErrorMessage
}
