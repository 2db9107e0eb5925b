package tracing

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"cadre/internal/agent/traceparent"
)

// Config says where spans go, and how.
type Config struct {
	URL      string // to which requests are posted
	JSON     bool   // in JSON instead of protobuf
	Header   http.Header
	Timeout  time.Duration // for one request
	Delay    time.Duration // how long an ended span waits for others
	Batch    int           // how many spans make a request
	Resource []Attribute   // of all spans
}

// The defaults of OpenTelemetry.
const (
	defaultEndpoint = "http://localhost:4318"
	defaultTimeout  = 10 * time.Second
	defaultDelay    = 5 * time.Second
	defaultBatch    = 512
	// maxBatch bounds the memory of a batch, whatever the person sets.
	maxBatch = 4096
)

// variables lists the variables of OpenTelemetry that [FromEnvironment] reads.
var variables = []struct{ Name, Meaning string }{
	{"OTEL_EXPORTER_OTLP_ENDPOINT", "the receiver; `/v1/traces` is added to its path"},
	{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "the receiver of traces, as it is. Like each variable with `TRACES`, " +
		"it comes before the one without"},
	{"OTEL_TRACES_EXPORTER", "`otlp` sends to `http://localhost:4318` where no endpoint is set; `none` or " +
		"another value switches traces off"},
	{"OTEL_SDK_DISABLED", "`true` switches traces off"},
	{"OTEL_EXPORTER_OTLP_PROTOCOL, OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "`http/protobuf` (default) or `http/json`; " +
		"`grpc` is not spoken, and nothing is sent"},
	{"OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_TRACES_HEADERS", "headers of each request: " +
		"`name=value,name=value`, with percent encoding"},
	{"OTEL_EXPORTER_OTLP_TIMEOUT, OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "limit for one request in milliseconds; 10000"},
	{"OTEL_BSP_SCHEDULE_DELAY", "how long an ended span waits for others, in milliseconds; 5000"},
	{"OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "how many spans make a request; 512, at most 4096"},
	{"OTEL_RESOURCE_ATTRIBUTES", "attributes of the resource: `key=value,key=value`"},
	{"OTEL_SERVICE_NAME", "`service.name`; `cadre`"},
}

// FromEnvironment returns the configuration that OpenTelemetry's variables give; nil if the person
// asked for no traces, or for what cadre cannot do. The notes say what is wrong with the variables.
// They contain no values, which may be secret.
func FromEnvironment(get func(name string) string, version string) (c *Config, notes []string) {
	if !traceparent.Wanted(get) {
		return nil, nil
	}
	e := environment{get: get}
	c = &Config{Header: http.Header{}}
	if c.URL = e.url(); c.URL == "" {
		return nil, e.notes
	}
	name, protocol := e.first("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
	switch protocol {
	case "", "http/protobuf":
	case "http/json":
		c.JSON = true
	case "grpc":
		e.note("no traces are sent: %s is grpc, which cadre does not speak. Set OTEL_EXPORTER_OTLP_TRACES_PROTOCOL="+
			"http/protobuf and the receiver's endpoint for HTTP (usually port 4318)", name)
		return nil, e.notes
	default:
		e.note("no traces are sent: %s is neither http/protobuf nor http/json", name)
		return nil, e.notes
	}
	c.Timeout = e.millis(defaultTimeout, 1, "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT", "OTEL_EXPORTER_OTLP_TIMEOUT")
	c.Delay = e.millis(defaultDelay, 10, "OTEL_BSP_SCHEDULE_DELAY")
	c.Batch = min(maxBatch, e.number(defaultBatch, 1, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE"))
	name, headers := e.first("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")
	for _, h := range e.pairs(name, headers) {
		if !token(h.Key) || !printable(h.Value.(string)) {
			e.note("%s has a header that HTTP does not allow; it is left out", name)
			continue
		}
		c.Header.Add(h.Key, h.Value.(string))
	}
	c.Resource = e.resource(version)
	return c, e.notes
}

// environment reads variables, and collects what is wrong with them.
type environment struct {
	get   func(name string) string
	notes []string
}

func (e *environment) note(format string, args ...any) {
	e.notes = append(e.notes, fmt.Sprintf(format, args...))
}

// first returns the first of the variables that is set, and its name.
func (e *environment) first(names ...string) (name, value string) {
	for _, name := range names {
		if v := strings.TrimSpace(e.get(name)); v != "" {
			return name, v
		}
	}
	return "", ""
}

// url returns the address to post to; "" if it cannot be used.
func (e *environment) url() string {
	name, value := e.first("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")
	if value == "" {
		value = defaultEndpoint
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		e.note("no traces are sent: %s is not an address like %s", name, defaultEndpoint)
		return ""
	}
	u.Fragment = ""
	if name != "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" {
		u = u.JoinPath("v1", "traces")
	} else if u.Path == "" {
		u.Path = "/"
	}
	return u.String()
}

// number returns the number in the first of the variables that is set, or else the default.
func (e *environment) number(other, least int, names ...string) int {
	name, value := e.first(names...)
	if value == "" {
		return other
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < least {
		e.note("%s is not a whole number from %d on; %d is used", name, least, other)
		return other
	}
	return n
}

// millis is number for a duration in milliseconds, of at most an hour.
func (e *environment) millis(other time.Duration, least int, names ...string) time.Duration {
	const most = time.Hour / time.Millisecond
	n := e.number(int(other/time.Millisecond), least, names...)
	return time.Duration(min(n, int(most))) * time.Millisecond
}

// pairs reads a list of key=value with percent encoding, as W3C Baggage writes it. It leaves out
// what does not have that form.
func (e *environment) pairs(name, list string) (all []Attribute) {
	for pair := range strings.SplitSeq(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		key, value, ok := strings.Cut(pair, "=")
		key, err := url.PathUnescape(strings.TrimSpace(key))
		decoded, bad := url.PathUnescape(strings.TrimSpace(value))
		if !ok || key == "" || err != nil || bad != nil {
			e.note("%s has an entry that is not key=value with percent encoding; it is left out", name)
			continue
		}
		all = append(all, Attribute{key, decoded})
	}
	return all
}

// resource returns the attributes of the process. What the person sets comes before what we know,
// but cadre.team is the team's.
func (e *environment) resource(version string) []Attribute {
	all := e.pairs("OTEL_RESOURCE_ATTRIBUTES", e.get("OTEL_RESOURCE_ATTRIBUTES"))
	if service := strings.TrimSpace(e.get("OTEL_SERVICE_NAME")); service != "" {
		all = append([]Attribute{{"service.name", service}}, all...)
	}
	all = append(all, Attribute{"service.name", "cadre"}, Attribute{"service.version", version})
	var kept []Attribute
	for _, a := range all {
		a.Key, a.Value = clean(a.Key), clean(a.Value.(string))
		if a.Value != "" && a.Key != teamAttribute && len(kept) < maxEach &&
			!slices.ContainsFunc(kept, func(k Attribute) bool { return k.Key == a.Key }) {
			kept = append(kept, a)
		}
	}
	return kept
}

// teamAttribute names the team of a resource's spans.
const teamAttribute = "cadre.team"

// token reports whether HTTP allows the name of a header.
func token(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return r <= ' ' || r > '~' || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
	})
}

// printable reports whether HTTP allows the value of a header.
func printable(value string) bool {
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f })
}
