package observe

import (
	"testing"

	"cadre/internal/observe/protocol"
)

func TestTimeOf(t *testing.T) {
	timed := 0
	for name, inputs := range recordings {
		for _, in := range inputs {
			for n, line := range recorded(t, in.file) {
				m, err := protocol.Decode(line)
				if err != nil {
					t.Fatal(err)
				}
				if got := protocol.TimeOf(line); got != m.At {
					t.Errorf("%s %s:%d has the time %d, not %d", name, in.file, n+1, got, m.At)
				}
				if m.At != 0 {
					timed++
				}
			}
		}
	}
	if timed < 500 {
		t.Errorf("only %d lines have a time", timed)
	}
	for _, line := range []string{``, `{`, `"`, `{"`, `{"timestamp`, `{"timestamp"`, `{"timestamp":`, `{"timestamp":"`,
		`{"timestamp":7}`, `{"a":"timestamp","b":"2026-11-21T00:00:00Z"}`,
		`{"a":{"timestamp":"2026-11-21T00:00:00Z"}}`, `{"a":"\\","b":"\"timestamp\":\"2026-11-21T00:00:00Z\""}`,
		`["timestamp":"2026`, `{"timestamp":"\\`} {
		if got := protocol.TimeOf([]byte(line)); got != 0 {
			t.Errorf("%s has the time %d", line, got)
		}
	}
	if got := protocol.TimeOf([]byte(`{"a":"\\\"","b":[{}], "timestamp" : "2026-11-21T00:00:00.250Z"}`)); got != 1795219200250 {
		t.Errorf("the time is %d", got)
	}
}
