package team

import (
	"encoding/json"
	"math"
	"reflect"
	"testing"
	"time"
)

// TestDurationsAreRecordedWhole checks that a duration between two units is rounded up before
// anything applies it. So the process that decided and a process that reads the journal have the
// same state, and the shortest timeout does not become the default.
func TestDurationsAreRecordedWhole(t *testing.T) {
	created := &TeamCreated{Team: Team{ID: "t", Name: "demo", Status: TeamPending, Dir: "/d", Lead: "lead",
		Budget:      Budget{Time: time.Hour + 1},
		Permissions: Permissions{Timeout: 1},
		Timing:      Timing{Beat: 1500 * time.Microsecond, Offline: -1},
		Hooks:       []Hook{{Event: "TaskCreated", Command: "true", Timeout: 10 * time.Millisecond}},
		Checks: []Check{{Name: "test", Command: "true", Timeout: 90*time.Second + 1}, {Name: "vet",
			Command: "true"}},
	}, Lead: Member{Name: "lead"}}
	r := &Record{Seq: 1, ID: "c", Actor: User, At: 1, Events: []Event{created}}
	clean(r)
	read, err := DecodeRecord(1, string(AppendRecord(nil, r)))
	if err != nil {
		t.Fatal(err)
	}
	got := read.Events[0].(*TeamCreated)
	if !reflect.DeepEqual(got, created) {
		t.Errorf("read\n%+v\nand applied\n%+v", got.Team, created.Team)
	}
	for what, pair := range map[string][2]time.Duration{
		"budget":      {got.Team.Budget.Time, time.Hour + time.Millisecond},
		"permissions": {got.Team.Permissions.Timeout, time.Millisecond},
		"beat":        {got.Team.Timing.Beat, 2 * time.Millisecond},
		"offline":     {got.Team.Timing.Offline, -time.Millisecond},
		"hook":        {got.Team.Hooks[0].Timeout, time.Second},
		"check":       {got.Team.Checks[0].Timeout, 91 * time.Second},
		"no timeout":  {got.Team.Checks[1].Timeout, 0},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %s, want %s", what, pair[0], pair[1])
		}
	}
}

// TestLongTimes checks that a number that no duration can hold becomes the longest duration, and a
// time never overflows.
func TestLongTimes(t *testing.T) {
	for _, number := range []string{"9223372036854775807", "9223372036855", "-9223372036854775808"} {
		r, err := DecodeRecord(1,
			`{"id":"c","actor":"@user","at":1,"events":[{"kind":"budget_changed","budget":{"millis":`+
				number+`}}]}`)
		if err != nil {
			t.Fatal(err)
		}
		got := r.Events[0].(*BudgetChanged).Budget.Time
		if want := map[bool]time.Duration{false: longest, true: -longest}[number[0] == '-']; got != want {
			t.Errorf("%s ms are %s, want %s", number, got, want)
		}
	}
	for _, c := range []struct {
		what      string
		got, want any
	}{
		{"after the end of time", Time(math.MaxInt64 - 5).Add(time.Second), Time(math.MaxInt64)},
		{"before its begin", Time(math.MinInt64 + 5).Add(-time.Second), Time(math.MinInt64)},
		{"a second later", Time(5).Add(time.Second), Time(1005)},
		{"between both ends", Time(math.MaxInt64).Sub(math.MinInt64), longest},
		{"and back", Time(math.MinInt64).Sub(math.MaxInt64), -longest},
		{"too far for a duration", Time(math.MaxInt64).Sub(1), longest},
		{"a second before", Time(5).Sub(1005), -time.Second},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", c.what, c.got, c.want)
		}
	}
}

// TestSpan checks the form of durations: at most two units, and nothing that is 0.
func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Hour: "0 s", 0: "0 s", time.Microsecond: "0 s", 300 * time.Millisecond: "300 ms",
		999*time.Millisecond + 999*time.Microsecond: "999 ms", time.Second: "1 s", 1540 * time.Millisecond: "1.5 s",
		10 * time.Second: "10 s", 59960 * time.Millisecond: "1 min", time.Minute: "1 min",
		65 * time.Second: "1 min 05 s",
		30 * time.Minute: "30 min", time.Hour - time.Millisecond: "59 min 59 s", 90 * time.Minute: "1 h 30 min",
		2 * time.Hour: "2 h", 48*time.Hour - time.Second: "47 h 59 min", 48 * time.Hour: "2 days",
	} {
		if got := Span(d); got != want {
			t.Errorf("%d ns: got %q, want %q", d, got, want)
		}
	}
}

// TestDurationInJSON checks that JSON shows a duration in whole milliseconds, and omits none.
func TestDurationInJSON(t *testing.T) {
	type value struct {
		Took Duration `json:"millis"`
		Left Duration `json:"leftMillis,omitempty"`
	}
	data, err := json.Marshal(value{Took: Duration(1500*time.Millisecond + 999)})
	if err != nil || string(data) != `{"millis":1500}` {
		t.Errorf("JSON is %s, %v", data, err)
	}
	var read value
	err = json.Unmarshal([]byte(`{"millis":9223372036854775807,"leftMillis":250}`), &read)
	if want := (value{Duration(longest), Duration(250 * time.Millisecond)}); err != nil || read != want {
		t.Errorf("read %+v, %v", read, err)
	}
	if err := json.Unmarshal([]byte(`{"millis":"1s"}`), &read); err == nil {
		t.Error("a text was read as a duration")
	}
}
