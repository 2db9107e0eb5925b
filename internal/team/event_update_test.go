package team

import (
	"encoding/json"
	"reflect"
	"testing"
)

func TestChanges(t *testing.T) {
	t.Parallel()
	text := func(s string) *string { return &s }
	e := &TaskUpdated{Task: "1", Owner: text(""), Subject: text("b"), AddBlockedBy: []string{"2"},
		RemoveBlocks: []string{"3"},
		Metadata:     map[string]json.RawMessage{"z": []byte("null"), "a": []byte("1")},
		Was: &TaskWas{Owner: text("ann"), Subject: text("a"),
			Metadata: map[string]json.RawMessage{"z": []byte(`"x"`), "a": []byte("null")}}}
	want := []Change{{Field: "subject", Was: "a", Is: "b"}, {Field: "owner", Was: "ann"},
		{Field: "metadata.a", Is: "1"}, {Field: "metadata.z", Was: `"x"`},
		{Field: "blockedBy", Added: []string{"2"}}, {Field: "blocks", Removed: []string{"3"}}}
	if got := e.Changes(); !reflect.DeepEqual(got, want) {
		t.Errorf("the changes are %+v", got)
	}
	e.Was = nil // a record of an older version
	want[0].Was, want[1].Was, want[3].Was = "", "", ""
	if got := e.Changes(); !reflect.DeepEqual(got, want) {
		t.Errorf("without the old values the changes are %+v", got)
	}
}
