package tracing

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestEnvironment(t *testing.T) {
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:4318"
	for _, c := range []struct {
		name string
		env  []string
		want string // "" for no traces
		note string // part of the only note; "" for no notes
	}{
		{"nothing is set", nil, "", ""},
		{"an endpoint", []string{endpoint}, "http://collector:4318/v1/traces", ""},
		{"an endpoint with a path", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=https://c.example/otlp/"},
			"https://c.example/otlp/v1/traces", ""},
		{"an endpoint of traces", []string{endpoint, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c:1/x"},
			"http://c:1/x", ""},
		{"an endpoint of traces without a path", []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://c:1"},
			"http://c:1/", ""},
		{"the exporter alone", []string{"OTEL_TRACES_EXPORTER=otlp"}, "http://localhost:4318/v1/traces", ""},
		{"no exporter", []string{endpoint, "OTEL_TRACES_EXPORTER=none"}, "", ""},
		{"disabled", []string{endpoint, "OTEL_SDK_DISABLED=true"}, "", ""},
		{"not an address", []string{"OTEL_EXPORTER_OTLP_ENDPOINT=collector:4318"}, "",
			"OTEL_EXPORTER_OTLP_ENDPOINT is not an address like http://localhost:4318"},
		{"another scheme", []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=unix:///run/s3cret"}, "",
			"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT is not an address"},
		{"json", []string{endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=http/json"},
			"http://collector:4318/v1/traces json", ""},
		{"protobuf for traces", []string{endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc",
			"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf"}, "http://collector:4318/v1/traces", ""},
		{"grpc", []string{endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=grpc"}, "",
			"no traces are sent: OTEL_EXPORTER_OTLP_PROTOCOL is grpc, which cadre does not speak"},
		{"another protocol", []string{endpoint, "OTEL_EXPORTER_OTLP_PROTOCOL=carrier pigeon"}, "",
			"neither http/protobuf nor http/json"},
		{"times", []string{endpoint, "OTEL_EXPORTER_OTLP_TIMEOUT=1", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT=250",
			"OTEL_BSP_SCHEDULE_DELAY=1000", "OTEL_BSP_MAX_EXPORT_BATCH_SIZE=7"},
			"http://collector:4318/v1/traces 250ms 1s 7", ""},
		{"a long time, a large batch", []string{endpoint, "OTEL_EXPORTER_OTLP_TIMEOUT=9999999999",
			"OTEL_BSP_MAX_EXPORT_BATCH_SIZE=999999"}, "http://collector:4318/v1/traces 1h0m0s 5s 4096", ""},
		{"no number", []string{endpoint, "OTEL_EXPORTER_OTLP_TIMEOUT=10s"}, "http://collector:4318/v1/traces",
			"OTEL_EXPORTER_OTLP_TIMEOUT is not a whole number from 1 on; 10000 is used"},
		{"no time", []string{endpoint, "OTEL_BSP_SCHEDULE_DELAY=0"}, "http://collector:4318/v1/traces",
			"OTEL_BSP_SCHEDULE_DELAY is not a whole number"},
		{"a header that HTTP does not allow", []string{endpoint, "OTEL_EXPORTER_OTLP_HEADERS=a=x%0d%0as3cret"},
			"http://collector:4318/v1/traces", "OTEL_EXPORTER_OTLP_HEADERS has a header that HTTP does not allow"},
		{"a header with a bad name", []string{endpoint, "OTEL_EXPORTER_OTLP_HEADERS=a b=s3cret"},
			"http://collector:4318/v1/traces", "OTEL_EXPORTER_OTLP_HEADERS has a header that HTTP does not allow"},
		{"no header", []string{endpoint, "OTEL_EXPORTER_OTLP_TRACES_HEADERS=s3cret"}, "http://collector:4318/v1/traces",
			"OTEL_EXPORTER_OTLP_TRACES_HEADERS has an entry that is not key=value"},
	} {
		got := ""
		config, notes := FromEnvironment(environ(c.env...), "1")
		if config != nil {
			got = config.URL
			if config.JSON {
				got += " json"
			}
			if config.Timeout != 10*time.Second || config.Delay != 5*time.Second || config.Batch != 512 {
				got += fmt.Sprint(" ", config.Timeout, " ", config.Delay, " ", config.Batch)
			}
		}
		note := strings.Join(notes, "\n")
		if got != c.want || len(notes) > 1 || (note == "") != (c.note == "") || !strings.Contains(note, c.note) {
			t.Errorf("%s: %q, notes %q", c.name, got, note)
		}
		if strings.Contains(note, "s3cret") {
			t.Errorf("%s: the note has a secret: %s", c.name, note)
		}
	}
}

func TestHeadersAndResource(t *testing.T) {
	c, notes := FromEnvironment(environ("OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_HEADERS=a=1,%62=2%2C3, "+
		"a = 4 ,", "OTEL_RESOURCE_ATTRIBUTES=service.name=mine,deployment=te%20st,cadre.team=not "+
		"ours,service.version=9"), "1")
	want := http.Header{"A": {"1", "4"}, "B": {"2,3"}}
	if fmt.Sprint(c.Header) != fmt.Sprint(want) || notes != nil {
		t.Errorf("the headers are %v, %q", c.Header, notes)
	}
	if got := ours(c.Resource); got != "service.name=mine deployment=te st service.version=9 " {
		t.Errorf("the resource is %s", got)
	}
	c, _ = FromEnvironment(environ("OTEL_TRACES_EXPORTER=otlp", "OTEL_RESOURCE_ATTRIBUTES=service.name=mine",
		"OTEL_SERVICE_NAME=best"), "1")
	if got := ours(c.Resource); got != "service.name=best service.version=1 " {
		t.Errorf("the resource is %s", got)
	}
}
