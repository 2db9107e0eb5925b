package team

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
)

// TestUnmarshalReadsWhatMarshalWrites checks that a program reads from the output for programs what
// was written, with the fields that are only there.
func TestUnmarshalReadsWhatMarshalWrites(t *testing.T) {
	for _, kind := range Kinds() {
		want := filledRecord(kind)
		switch e := want.Events[0].(type) { // only the number of these is written
		case *TeamCreated:
			e.Team.Base.Dirty = nil
		case *TeamRestored:
			e.Team.Base.Dirty = nil
		case *TeamRevised:
			e.Team.Base.Dirty = nil
		}
		data, err := json.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{string(data), sortedKeys(t, data), withUnknown(t, data)} {
			got := &Record{}
			if err := json.Unmarshal([]byte(text), got); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: read\n%+v, %v\nwant\n%+v", kind, got, err, want)
			}
		}
	}
	var n int64
	want := Task{}
	fill(reflect.ValueOf(&want), "task", &n)
	want.open = []string{"3", "5"}
	data, err := json.Marshal([]*Task{&want, nil})
	if err != nil {
		t.Fatal(err)
	}
	got := []*Task{nil, {ID: "9"}}
	if err := json.Unmarshal(data, &got); err != nil || !reflect.DeepEqual(got, []*Task{&want, nil}) ||
		!slices.Equal(got[0].Blocked(), want.open) {
		t.Errorf("read\n%+v, %v\nwant\n%+v", got[0], err, want)
	}
	for _, bad := range []string{`[]`, `"x"`, `{"id":1}`, `7`} {
		if err := json.Unmarshal([]byte(bad), &Task{}); err == nil {
			t.Errorf("%s is read as a task", bad)
		}
	}
}
