// Package traceparent derives the ids of a team's trace, and hands the session of a member its
// place in it.
//
// # Authority
//
// It decides which trace is a team's, which span id a part of a team has, and whether the person
// asked for traces. The spans themselves are made from the history (server/tracing), by another
// process or at another time. A host only needs the id of the span that a session will have, to put
// it into the environment of the session's process.
//
// # Guarantees
//
//   - Ids are hashes of the team's id and the name of the part. Every process computes the same ones,
//     on any machine and after any restart. They reveal nothing of the team but that they belong
//     together.
//   - A session gets the variables only where the person asked for traces ([Wanted]).
package traceparent

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"

	"cadre/internal/agent"
)

// TraceID is the id of a trace.
type TraceID [16]byte

// SpanID is the id of a span; zero for no span.
type SpanID [8]byte

func (t TraceID) String() string { return hex.EncodeToString(t[:]) }

func (s SpanID) String() string { return hex.EncodeToString(s[:]) }

// Team returns the trace of the team with that id.
func Team(id string) (t TraceID) {
	copy(t[:], sum("trace", id))
	return t
}

// Span returns the id of a part of the team. The names of the part tell it from all other parts.
func Span(team string, part ...string) (s SpanID) {
	copy(s[:], sum(append([]string{"span", team}, part...)...))
	return s
}

// Session returns the id of the span of a member's session, by its number.
func Session(team, member string, incarnation int64) SpanID {
	return Span(team, "session", member, strconv.FormatInt(incarnation, 10))
}

// sum hashes the parts with their lengths, so that no two lists of parts have the same text.
func sum(parts ...string) []byte {
	h := sha256.New()
	for _, p := range parts {
		_ = binary.Write(h, binary.BigEndian, uint64(len(p))) // a hash returns no error
		h.Write([]byte(p))
	}
	return h.Sum(nil)
}

// Environment returns the variables that place the session in its team's trace, as W3C Trace
// Context writes them: the session's span is the parent of all that the session reports, and is
// sampled. It returns none if env does not ask for traces.
func Environment(env []string, team, member string, incarnation int64) []string {
	if !Wanted(func(name string) string { return agent.Variable(env, name) }) {
		return nil
	}
	// a state that was inherited belongs to another trace
	return []string{"TRACEPARENT=00-" + Team(team).String() + "-" + Session(team, member, incarnation).String() + "-01",
		"TRACESTATE="}
}

// Wanted reports whether the person asked for traces by OpenTelemetry's variables: for the exporter
// otlp, or for an endpoint and no other exporter. get returns the value of a variable.
func Wanted(get func(name string) string) bool {
	if strings.EqualFold(strings.TrimSpace(get("OTEL_SDK_DISABLED")), "true") {
		return false
	}
	if exporters := strings.TrimSpace(get("OTEL_TRACES_EXPORTER")); exporters != "" {
		for e := range strings.SplitSeq(exporters, ",") {
			if strings.TrimSpace(e) == "otlp" {
				return true
			}
		}
		return false
	}
	return strings.TrimSpace(get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")+get("OTEL_EXPORTER_OTLP_ENDPOINT")) != ""
}
