package tracing

import (
	"encoding/binary"
	"iter"
	"math"

	"cadre/internal/agent/traceparent"
	"cadre/internal/team"
)

// message is a protobuf message that is being written. The numbers of its fields are those of
// opentelemetry/proto/trace/v1/trace.proto and the files that it imports.
type message []byte

// These are the wire types that OTLP uses.
const (
	wireVarint  = 0
	wireFixed64 = 1
	wireBytes   = 2
	wireFixed32 = 5
)

func (m *message) tag(field, wire int) { *m = binary.AppendUvarint(*m, uint64(field<<3|wire)) }

func (m *message) varint(field int, v uint64) {
	if v != 0 {
		m.tag(field, wireVarint)
		*m = binary.AppendUvarint(*m, v)
	}
}

func (m *message) fixed64(field int, v uint64) {
	m.tag(field, wireFixed64)
	*m = binary.LittleEndian.AppendUint64(*m, v)
}

func (m *message) fixed32(field int, v uint32) {
	m.tag(field, wireFixed32)
	*m = binary.LittleEndian.AppendUint32(*m, v)
}

func (m *message) bytes(field int, b []byte) {
	m.tag(field, wireBytes)
	*m = append(binary.AppendUvarint(*m, uint64(len(b))), b...)
}

func (m *message) text(field int, s string) {
	if s != "" {
		m.bytes(field, []byte(s))
	}
}

// sub writes a message within the message.
func (m *message) sub(field int, write func(*message)) {
	var inner message
	write(&inner)
	m.bytes(field, inner)
}

func (m *message) attributes(field int, all []Attribute) {
	for _, a := range all {
		m.sub(field, func(m *message) {
			m.text(1, a.Key)
			m.sub(2, func(m *message) {
				switch v := a.Value.(type) { // one of a choice is written even if it is zero
				case string:
					m.bytes(1, []byte(v))
				case int64:
					m.tag(3, wireVarint)
					*m = binary.AppendUvarint(*m, uint64(v))
				case float64:
					m.fixed64(4, math.Float64bits(v))
				}
			})
		})
	}
}

const (
	// sampled and local are the flags of a span: it is sampled, and its parent is not remote.
	sampled = 0x1
	local   = 0x100
	// internal is the kind of all spans: SPAN_KIND_INTERNAL.
	internal = 1
	// failed is the status code of a span that failed.
	failed = 2
)

// nanos returns the time in nanoseconds. It stops at the largest one.
func nanos(t team.Time) uint64 {
	const unit = 1_000_000
	return uint64(max(0, min(t, math.MaxInt64/unit))) * unit
}

// proto returns the span as a protobuf message.
func (s *Span) proto(trace traceparent.TraceID) []byte {
	var m message
	m.bytes(1, trace[:])
	m.bytes(2, s.ID[:])
	if s.Parent != (traceparent.SpanID{}) {
		m.bytes(4, s.Parent[:])
	}
	m.text(5, s.Name)
	m.varint(6, internal)
	m.fixed64(7, nanos(s.Start))
	m.fixed64(8, nanos(s.End))
	m.attributes(9, s.Attributes)
	for _, e := range s.Events {
		m.sub(11, func(m *message) {
			m.fixed64(1, nanos(e.At))
			m.text(2, e.Name)
			m.attributes(3, e.Attributes)
		})
	}
	m.varint(12, uint64(s.DroppedEvents))
	for _, l := range s.Links {
		m.sub(13, func(m *message) {
			m.bytes(1, trace[:])
			m.bytes(2, l.To[:])
			m.attributes(4, l.Attributes)
			m.fixed32(6, sampled|local)
		})
	}
	m.varint(14, uint64(s.DroppedLinks))
	if s.Failed {
		m.sub(15, func(m *message) {
			m.text(2, s.Failure)
			m.varint(3, failed)
		})
	}
	m.fixed32(16, sampled|local)
	return m
}

// protoRequest returns a request with these spans, which are messages.
func protoRequest(resource []Attribute, version string, spans [][]byte) []byte {
	var m message
	m.sub(1, func(m *message) {
		m.sub(1, func(m *message) { m.attributes(1, resource) })
		m.sub(2, func(m *message) {
			m.sub(1, func(m *message) {
				m.text(1, scopeName)
				m.text(2, version)
			})
			for _, s := range spans {
				m.bytes(2, s)
			}
		})
	})
	return m
}

// scopeName names the library that made the spans.
const scopeName = "cadre"

// protoRefused reads the answer to a request: how many spans were refused, and why.
func protoRefused(answer []byte) (n int64, why string) {
	for field, value := range fieldsOf(answer) {
		if field == 1 {
			for field, value := range fieldsOf(value.bytes) {
				switch field {
				case 1:
					n = int64(value.number)
				case 2:
					why = string(value.bytes)
				}
			}
		}
	}
	return n, why
}

// value is a field of a message: a number, or bytes.
type value struct {
	number uint64
	bytes  []byte
}

// fieldsOf yields the fields of a message. It ends at the first byte that is not part of a message.
func fieldsOf(m []byte) iter.Seq2[int, value] {
	return func(yield func(int, value) bool) {
		for len(m) > 0 {
			tag, n := binary.Uvarint(m)
			if n <= 0 {
				return
			}
			m = m[n:]
			var v value
			skip := 0
			switch tag & 7 {
			case wireVarint:
				v.number, skip = binary.Uvarint(m)
			case wireFixed64:
				skip = 8
			case wireFixed32:
				skip = 4
			case wireBytes:
				length, n := binary.Uvarint(m)
				if n <= 0 || length > uint64(len(m)-n) {
					return
				}
				skip = n + int(length)
				v.bytes = m[n:skip]
			}
			if skip <= 0 || skip > len(m) || !yield(int(tag>>3), v) {
				return
			}
			m = m[skip:]
		}
	}
}
